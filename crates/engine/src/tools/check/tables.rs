//! Checks of tables: every table is read from end to end.
//!
//! 1. [`Counted::take`] checks each entry: order, smallest key, filter.
//! 2. [`Counted::end`] compares counts, largest key and sequence numbers with the manifest.
//! 3. After an unreadable block the check goes on with the next one (`check_table`).
//! 4. `of_hole` tells a hole, which a writer punched, from damage on the disk.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use sateen_control::version::{Placement, TableMeta};
use sateen_control::{IoClass, SeqNo, TableId, ValueKind};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::files::reclaim::OpenTables;
use sateen_store::files::{PAGE_BYTES, table_file_name};
use sateen_store::table::table_cache::TableCache;
use sateen_store::table::{Table, TableIterOptions, hash_key};
use sateen_store::vfs::OpenOptions;

use super::{Checker, View, wrong};
use crate::tree::manifest_follower::ManifestFollower;

/// Bytes of one read.
const CHUNK_BYTES: usize = 1 << 20;
/// How far behind an unreadable place a hole is looked for, in bytes.
const HOLE_BYTES: u64 = 64 << 10;

/// Returns the bytes of a table in its file.
pub(super) fn extent(table: &TableMeta) -> Range<u64> {
    match table.placement {
        Placement::Slice { offset, length, .. } | Placement::Log { offset, length, .. } => {
            offset..offset.saturating_add(length)
        }
        Placement::WholeFile(_) => 0..table.size_bytes,
    }
}

/// Counts over the entries of a table.
#[derive(Default)]
struct Counted {
    entries: u64,
    tombstones: u64,
    merges: u64,
    seqnos: Option<(SeqNo, SeqNo)>,
    last: Vec<u8>,
}

impl Counted {
    /// Counts an entry. Returns what is wrong with it.
    fn take(&mut self, meta: &TableMeta, table: &Table, internal: &[u8]) -> Option<CorruptionKind> {
        let user_key = key::user_key(internal);
        let comparator = meta.smallest.comparator();
        let wrong = if self.entries == 0 && *user_key != meta.smallest {
            Some(CorruptionKind::Inconsistent("a table does not begin with its smallest key"))
        } else if self.entries > 0 && key::compare(comparator, &self.last, internal).is_ge() {
            Some(CorruptionKind::Order)
        } else if !table.may_contain(hash_key(user_key)) {
            Some(CorruptionKind::Inconsistent("a key is missing in its table's filter"))
        } else {
            None
        };
        match key::kind(internal) {
            Some(ValueKind::Merge) => self.merges += 1,
            Some(ValueKind::Delete | ValueKind::SingleDelete) => self.tombstones += 1,
            _ => {}
        }
        let seqno = key::seqno(internal);
        let (min, max) = self.seqnos.unwrap_or((seqno, seqno));
        self.seqnos = Some((min.min(seqno), max.max(seqno)));
        self.entries += 1;
        self.last.clear();
        self.last.extend_from_slice(internal);
        wrong
    }

    /// Returns what is wrong with the counts.
    fn end(&self, meta: &TableMeta) -> Option<&'static str> {
        let counted = (self.entries, self.tombstones, self.merges);
        if counted != (meta.entries, meta.tombstones, meta.merges) {
            return Some("a table's number of entries is not that in the manifest");
        }
        if *key::user_key(&self.last) != meta.largest {
            return Some("a table does not end with its largest key");
        }
        if self.seqnos != Some((meta.seqno_min, meta.seqno_max)) {
            return Some("a table's sequence numbers are not those in the manifest");
        }
        None
    }
}

impl Checker<'_> {
    /// Checks the tables of `view` that are not yet in `checked`.
    pub(super) fn check_tables(
        &mut self,
        view: &View,
        mut manifest: Option<&mut ManifestFollower>,
        checked: &mut BTreeSet<TableId>,
    ) -> Result<()> {
        let cache = self.table_cache(view.db_uid);
        let new = view.tables().filter(|table| !checked.contains(&table.id));
        let total = self.report.bytes + new.map(|table| table.size_bytes).sum::<u64>();
        for (id, family) in &view.families {
            if let Err(error) = family.version.validate() {
                self.problem(Error::InconsistentEdit {
                    path: self.directory.clone(),
                    reason: error.to_string(),
                });
            }
            for (file, of_tables) in family.version.value_files().iter() {
                if of_tables.live_bytes > of_tables.bytes {
                    let what = "tables refer to more bytes of a value file than it has";
                    self.problem(wrong(&self.directory, file, 0, what));
                }
            }
            let (begin, end) = view.bounds_of(*id);
            for (.., table) in family.version.tables() {
                if !checked.insert(table.id) {
                    continue;
                }
                (self.goes_on)()?;
                let before = self.report.bytes;
                let mut found = self.check_table(&cache, table);
                if begin.as_ref().is_some_and(|begin| table.smallest < *begin)
                    || end.as_ref().is_some_and(|end| table.largest >= *end)
                {
                    let what = "a table reaches out of its region";
                    let at = extent(table).start;
                    found.push(wrong(&self.directory, table.placement.file(), at, what));
                }
                if !found.is_empty() && self.is_live(manifest.as_deref_mut(), table.id) {
                    found.into_iter().for_each(|error| self.problem(error));
                }
                self.report.bytes = before + table.size_bytes;
                (self.progress)(self.report.bytes, total);
            }
        }
        Ok(())
    }

    /// Returns what is wrong with a table.
    fn check_table(&mut self, cache: &TableCache, meta: &Arc<TableMeta>) -> Vec<Error> {
        let table = match cache.get(meta, IoClass::Client) {
            Ok(table) => table,
            Err(error) => return vec![self.of_hole(meta, error)],
        };
        let at = extent(meta).start;
        let path = self.vfs.place_of(&table_file_name(&self.directory, meta.placement.file()));
        let mut found = Vec::new();
        let refs: Vec<_> = meta.values.files.iter().map(|one| (one.file, one.bytes)).collect();
        if table.properties().value_files != meta.values.encoded.then_some(refs) {
            let what =
                CorruptionKind::Inconsistent("its value files are not those in the manifest");
            found.push(Error::corruption(&path, at, what));
        }
        let mut counted = Counted::default();
        let mut iter = table.iter(TableIterOptions::compaction(IoClass::Client, CHUNK_BYTES));
        let mut moved = iter.seek_to_first();
        loop {
            if let Err(error) = moved {
                found.push(self.of_hole(meta, error));
                // The blocks behind the damage may be whole.
                moved = match iter.skip_block() {
                    Ok(false) => break,
                    skipped => skipped.map(drop),
                };
                continue;
            }
            if !iter.valid() {
                break;
            }
            let wrong = counted.take(meta, &table, iter.key());
            if let Some(kind) = wrong.filter(|_| found.is_empty()) {
                found.push(Error::corruption(&path, at, kind));
            }
            moved = iter.next();
        }
        self.report.tables += 1;
        self.report.entries += counted.entries;
        if let Some(what) = counted.end(meta).filter(|_| found.is_empty()) {
            found.push(Error::corruption(&path, at, CorruptionKind::Inconsistent(what)));
        }
        // The handle of the table is no longer needed. The file stays open for its neighbours.
        cache.evict(meta.id);
        found
    }

    /// Returns a `Hole` error instead of `error` if the bytes are a hole. Then the disk is not to
    /// blame.
    fn of_hole(&self, meta: &TableMeta, error: Error) -> Error {
        let Error::Corruption { path, offset, kind } = &error else { return error };
        if !matches!(kind, CorruptionKind::Checksum | CorruptionKind::Malformed(_)) {
            return error;
        }
        // A separated value is in another file.
        let own = self.vfs.place_of(&table_file_name(&self.directory, meta.placement.file()));
        if *path != own {
            return error;
        }
        let page = PAGE_BYTES as u64;
        let extent = extent(meta);
        let first = (offset - offset % page).max(extent.start);
        let last = first.saturating_add(HOLE_BYTES).min(extent.end);
        let Ok(file) = self.vfs.open(path, OpenOptions::READ) else { return error };
        let mut bytes = [0; PAGE_BYTES];
        let mut at = first;
        while at < last {
            // Behind the end of a table its last page is zero, so only the table's own bytes are
            // compared.
            let wanted = usize::try_from((extent.end - at).min(page)).unwrap_or(0);
            let target = bytes.get_mut(..wanted).unwrap_or_default();
            match file.read_at(target, at, IoClass::Client) {
                Ok(got) if got == wanted && target.iter().all(|byte| *byte == 0) => {
                    return Error::corruption(path, at, CorruptionKind::Hole);
                }
                Ok(_) => at += page,
                Err(_) => break,
            }
        }
        error
    }

    /// Checks the tables that are listed in the directories of table files, without a manifest.
    pub(super) fn check_described_tables(&mut self) -> Result<()> {
        for file in self.table_files()? {
            (self.goes_on)()?;
            let described = match self.directory_of(file) {
                Ok(Some(described)) => described,
                Ok(None) => continue,
                Err(error) => {
                    self.problem(error);
                    continue;
                }
            };
            for entry in &described.tables {
                match self.read_described(&described, entry) {
                    Err(_) if self.was_given_back(file, entry) => {}
                    Err(error) => self.problem(error),
                    Ok(()) => {}
                }
            }
        }
        Ok(())
    }
}
