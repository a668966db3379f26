//! The check of a whole database: everything that must be true of what is stored, looked at once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use sateen_control::version::{Placement, TableMeta, Version};
use sateen_control::{FileId, IoClass, SeqNo, UserKey, ValueKind};

use crate::column_family::{ColumnFamilyData, Families};
use crate::core::DbCore;
use crate::db::Db;
use crate::error::{CorruptionKind, Error, Result};
use crate::files::{FileName, table_file_name};
use crate::key;
use crate::read::InternalIterator;
use crate::table::{TableIter, TableIterOptions, hash_key};
use crate::vfs::Vfs;

/// What a check looked at, and what it found.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Tables read from end to end.
    pub tables: u64,
    /// Entries in them.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// What is wrong: each names a file. Empty if nothing is.
    pub problems: Vec<Error>,
    /// Files that nothing names: left by a crash or a failed removal. Removed at the next open.
    pub orphans: Vec<PathBuf>,
}

impl Db {
    /// Reads every table of the database and checks all that must be true: checksums, order,
    /// counts and bounds of each table, that runs do not overlap, that newer data lies above older,
    /// that every file is there. `progress` is told the bytes read so far, and of how many.
    ///
    /// # Errors
    /// Only if the check itself could not be done; what it finds is in the report.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport> {
        self.core().check_open()?;
        let core = self.core();
        let mut report = CheckReport::default();
        let families = core.families();
        let pinned: Vec<_> = families.values().map(|family| family.pin_super_version()).collect();
        let total = pinned.iter().map(|pinned| pinned.version.bytes()).sum();
        let mut live: BTreeMap<FileId, u64> = BTreeMap::new();
        for pinned in &pinned {
            let version = &pinned.version;
            if let Err(error) = version.validate() {
                report.problems.push(Error::InconsistentEdit {
                    path: core.directory.clone(),
                    reason: error.to_string(),
                });
            }
            let bounds =
                families.by_id(version.column_family()).map(|tree| bounds_of(&families, tree));
            for (_, _, table) in version.tables() {
                if let Some((begin, end)) = bounds.as_ref()
                    && (begin.as_ref().is_some_and(|begin| table.smallest < *begin)
                        || end.as_ref().is_some_and(|end| table.largest >= *end))
                {
                    let path = table_file_name(&core.directory, table.placement.file());
                    let what = CorruptionKind::Inconsistent("a table reaches out of its region");
                    report.problems.push(Error::corruption(&path, 0, what));
                }
                let end = match table.placement {
                    Placement::Slice { offset, length, .. }
                    | Placement::Log { offset, length, .. } => offset + length,
                    _ => table.size_bytes,
                };
                let known = live.entry(table.placement.file()).or_default();
                *known = (*known).max(end);
                if let Some(values) = table.placement.values() {
                    live.entry(values).or_default();
                }
                if let Err(error) = check_table(core, table, &mut report) {
                    report.problems.push(error);
                }
                progress(report.bytes, total);
            }
            // It reads the same tables: what is damaged was told already.
            if let Err(error) = check_depth_order(core, version)
                && report.problems.iter().all(|told| told.to_string() != error.to_string())
            {
                report.problems.push(error);
            }
        }
        check_files(core, &live, &mut report)?;
        Ok(report)
    }
}

/// The keys that a tree may hold: from the first on, up to the second.
fn bounds_of(
    families: &Families,
    tree: &Arc<ColumnFamilyData>,
) -> (Option<UserKey>, Option<UserKey>) {
    let begin = tree.region().map(|region| region.begin.clone());
    let whole = families.by_id(tree.whole()).unwrap_or(tree);
    let next = whole
        .region_begins()
        .find(|next| begin.as_ref().is_none_or(|begin| *next > begin))
        .cloned();
    (begin, next)
}

fn open_iter(core: &DbCore, table: &Arc<TableMeta>) -> Result<TableIter> {
    let options = TableIterOptions::compaction(IoClass::Client, 1 << 20);
    Ok(core.tables.get(table, IoClass::Client)?.iter(options))
}

fn check_table(core: &DbCore, meta: &Arc<TableMeta>, report: &mut CheckReport) -> Result<()> {
    let path = table_file_name(&core.directory, meta.placement.file());
    let wrong = |what| Error::corruption(&path, 0, CorruptionKind::Inconsistent(what));
    let table = core.tables.get(meta, IoClass::Client)?;
    let mut iter = open_iter(core, meta)?;
    iter.seek_to_first()?;
    let (mut entries, mut tombstones, mut merges) = (0, 0, 0);
    let (mut seqno_min, mut seqno_max) = (SeqNo::MAX, SeqNo(0));
    let mut last: Vec<u8> = Vec::new();
    while iter.valid() {
        let internal = iter.key();
        let user_key = key::user_key(internal);
        if entries == 0 && *user_key != meta.smallest {
            return Err(wrong("a table does not begin with its smallest key"));
        }
        if entries > 0 && key::compare(meta.smallest.comparator(), &last, internal).is_ge() {
            return Err(Error::corruption(&path, 0, CorruptionKind::Order));
        }
        if !table.may_contain(hash_key(user_key)) {
            return Err(wrong("a key is missing in its table's filter"));
        }
        match key::kind(internal) {
            Some(ValueKind::Merge) => merges += 1,
            Some(ValueKind::Delete | ValueKind::SingleDelete) => tombstones += 1,
            _ => {}
        }
        seqno_min = seqno_min.min(key::seqno(internal));
        seqno_max = seqno_max.max(key::seqno(internal));
        entries += 1;
        last.clear();
        last.extend_from_slice(internal);
        iter.next()?;
    }
    report.tables += 1;
    report.entries += entries;
    report.bytes += meta.size_bytes;
    let counted = (entries, tombstones, merges);
    if counted != (meta.entries, meta.tombstones, meta.merges) {
        return Err(wrong("a table has not as many entries as the catalogue says"));
    }
    if *key::user_key(&last) != meta.largest {
        return Err(wrong("a table does not end with its largest key"));
    }
    if seqno_min != meta.seqno_min || seqno_max != meta.seqno_max {
        return Err(wrong("a table's sequence numbers are not those in the catalogue"));
    }
    Ok(())
}

/// One run, read from end to end.
struct RunCursor {
    tables: Vec<Arc<TableMeta>>,
    next: usize,
    iter: Option<TableIter>,
}

impl RunCursor {
    fn settle(&mut self, core: &DbCore) -> Result<()> {
        while self.iter.as_ref().is_none_or(|iter| !iter.valid()) {
            let Some(table) = self.tables.get(self.next) else {
                self.iter = None;
                return Ok(());
            };
            self.next += 1;
            let mut iter = open_iter(core, table)?;
            iter.seek_to_first()?;
            self.iter = Some(iter);
        }
        Ok(())
    }

    fn user_key(&self) -> Option<&[u8]> {
        self.iter.as_ref().map(|iter| key::user_key(iter.key()))
    }
}

/// A read stops at the first entry of a key that it may see: for nobody, now or with a snapshot,
/// may there be a newer one below. A compaction that ended early leaves copies above its output,
/// and what is merged into those later may drop what nobody can see from among them.
fn check_depth_order(core: &DbCore, version: &Version) -> Result<()> {
    let readers = core.snapshot_list();
    let runs = version.levels().iter().flat_map(|level| level.runs());
    let mut cursors: Vec<RunCursor> = runs
        .map(|run| RunCursor { tables: run.iter().cloned().collect(), next: 0, iter: None })
        .collect();
    if cursors.len() < 2 {
        return Ok(());
    }
    for cursor in &mut cursors {
        cursor.settle(core)?;
    }
    while let Some(current) = cursors.iter().filter_map(RunCursor::user_key).min() {
        let current = current.to_vec();
        let mut above: Vec<SeqNo> = Vec::new();
        for cursor in &mut cursors {
            let mut here = Vec::new();
            while cursor.user_key() == Some(&current) {
                let Some(iter) = &mut cursor.iter else { break };
                let seqno = key::seqno(iter.key());
                if is_hidden(seqno, &above, &readers) {
                    return Err(Error::InconsistentEdit {
                        path: core.directory.clone(),
                        reason: format!(
                            "the key \"{}\" has an entry {seqno} below one that is older",
                            current.escape_ascii()
                        ),
                    });
                }
                here.push(seqno);
                iter.next()?;
                cursor.settle(core)?;
            }
            above.append(&mut here);
        }
    }
    Ok(())
}

/// Whether one of `readers` that may see an entry finds an older one in front of it, of those that
/// lie above it.
fn is_hidden(seqno: SeqNo, above: &[SeqNo], readers: &[SeqNo]) -> bool {
    let first_seen = |reader: &SeqNo| above.iter().filter(|above| *above <= reader).max();
    let mut may_see = readers.iter().filter(|reader| seqno <= **reader);
    !above.is_empty() && may_see.any(|reader| first_seen(reader).is_some_and(|seen| *seen < seqno))
}

fn check_files(
    core: &DbCore,
    live: &BTreeMap<FileId, u64>,
    report: &mut CheckReport,
) -> Result<()> {
    let directory = &core.directory;
    let listing = core.vfs.list(directory).map_err(|e| Error::io("list", directory, e))?;
    let known = core.reclaimer.known_files();
    let mut seen = Vec::new();
    for path in listing {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
        if let Some(FileName::Table(file)) = name {
            seen.push(file);
            if !known.contains(&file) && core.read_only {
                report.orphans.push(directory.join(&path));
            }
        }
    }
    for (file, end) in live {
        let path = table_file_name(directory, *file);
        if !seen.contains(file) {
            report.problems.push(Error::corruption(&path, 0, CorruptionKind::MissingFile));
            continue;
        }
        let length = core
            .vfs
            .open(&path, crate::vfs::OpenOptions::READ)
            .and_then(|file| file.len())
            .map_err(|e| Error::io("open", &path, e))?;
        if length < *end {
            report.problems.push(Error::corruption(&path, length, CorruptionKind::Truncated));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_would_read_must_not_lie_below_what_is_older() {
        let hidden = |seqno, above: &[u64], readers: &[u64]| {
            let numbers = |of: &[u64]| of.iter().copied().map(SeqNo).collect::<Vec<_>>();
            is_hidden(SeqNo(seqno), &numbers(above), &numbers(readers))
        };
        assert!(!hidden(5, &[], &[9]), "nothing above");
        assert!(!hidden(5, &[7], &[9]), "a newer one above");
        assert!(hidden(5, &[3], &[9]), "an older one above");
        assert!(!hidden(5, &[5, 3], &[9]), "its copy above");
        // An older one that a snapshot keeps, and a newer one that hides both from all others.
        assert!(!hidden(5, &[7, 3], &[4, 9]));
        assert!(hidden(5, &[7, 3], &[4, 6, 9]), "the snapshot at 6 should see it");
        assert!(!hidden(5, &[3], &[4]), "nobody may see it");
    }
}
