//! Builds a catalogue from tables and WALs alone, if no manifest can be believed.
//!
//! 1. [`Repair::salvage`] finds the uid, the tables in all files (`find_tables`) and the entries of
//!    the WALs (`read_logs`). It leaves out what the readable parts of manifests say is replaced or
//!    dropped.
//! 2. `merge` opens the tables of each column family, younger files first. Entries of WALs, and of
//!    tables that cannot be opened, are written to new tables first.
//! 3. It merges all tables and writes the entries that [`Newest`] keeps into one run of the last
//!    level: of each key the newest entry, and for a merge operand all entries down to a value. Of
//!    two entries with one sequence number the younger file wins.
//!
//! The readable part of the manifests still counts ([`super::remembered`]): names, comparators and
//! regions of column families, dropped or replaced tables, range deletions. What only the
//! unreadable part said is lost:
//!
//! - A table that a compaction had replaced, but that was not freed because its file has live
//!   tables, can bring back a deleted key, an older value or a merged operand. So can lost range
//!   deletions.
//! - Ingested tables that were not compacted since count as the oldest.
//! - Dropped column families come back. One without a name becomes `recovered-N`, unless its
//!   entries say that they are prepared transactions ([`prepared::is_mark`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sateen_control::version::{
    AddedTable, LEVELS_MAX, RangeTombstone, RangeTombstones, Version, VersionEdit,
};
use sateen_control::{
    ColumnFamilyId, Comparator, Epoch, FileId, IoClass, SeqNo, TableId, ValueKind,
};
use sateen_store::base::error::Result;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::files::DirectoryEntry;
use sateen_store::files::counters::Counters;
use sateen_store::manifest::Identity;
use sateen_store::table::TableIterOptions;

use super::logs::{Found, FoundEntries};
use super::sources::{Newest, Sources};
use super::tables::{Place, step_to_readable};
use super::{Catalogue, Repair, comparator_of};
use crate::background::output::Output;
use crate::tools::found::was_given_back;
use crate::tree::families::PREPARED;
use crate::tree::version_set::FamilyState;
use crate::txn::prepared;

/// Bytes of one read of a table.
const CHUNK_BYTES: usize = 64 << 10;

type FoundTables = BTreeMap<ColumnFamilyId, Vec<(FileId, DirectoryEntry)>>;

impl Repair {
    /// Builds a catalogue from tables and WALs alone.
    pub(super) fn salvage(&mut self) -> Result<Catalogue> {
        self.refuse_rivals()?;
        let counters = Counters::default();
        counters.file_seen(self.numbers_seen);
        let of_uid = || self.uid_of_files().or_else(|| self.uid_of_logs()).map(Identity::of_uid);
        let identity = self.remembered.identity.or_else(of_uid);
        let Some(identity) = identity else { return Err(self.nothing_readable()) };
        let db_uid = identity.uid;
        let found = self.find_tables(db_uid, &counters)?;
        if found.is_empty() && self.logs.is_empty() {
            return Err(self.nothing_readable());
        }
        let mut in_logs = self.read_logs(db_uid)?;
        let mut ids: BTreeSet<ColumnFamilyId> = found.keys().copied().collect();
        ids.extend(in_logs.keys());
        ids.extend(self.remembered.families.keys());
        ids.retain(|id| !self.remembered.is_dropped(*id));
        ids.insert(ColumnFamilyId(0));
        let mut catalogue = Catalogue {
            identity,
            families: BTreeMap::new(),
            counters,
            shared: BTreeSet::new(),
            last_seqno: SeqNo(0),
        };
        let log = if self.logs.is_empty() { None } else { Some(self.create_log(&catalogue)?) };
        let mut found = found;
        for id in ids {
            let next_column_family = Some(ColumnFamilyId(id.0 + 1));
            let next = VersionEdit { next_column_family, ..VersionEdit::default() };
            catalogue.counters.absorb(&next);
            let tables = found.remove(&id).unwrap_or_default();
            let logged = in_logs.remove(&id).unwrap_or_default();
            let newest = tables.iter().map(|(_, entry)| entry.seqno_max).max().unwrap_or_default();
            let stored = newest.max(logged.newest());
            catalogue.last_seqno = catalogue.last_seqno.max(stored);
            let (version, name) = self.merge(id, tables, logged, log, &catalogue)?;
            let region = self.remembered.families.get(&id).and_then(|known| known.region.clone());
            let version = Arc::new(version);
            let family =
                FamilyState { name, region, version, stored, durable_log: None, data: None };
            catalogue.families.insert(id, family);
        }
        self.forget_lost_regions(&mut catalogue);
        self.logs_are_stored = log.is_some();
        Ok(catalogue)
    }

    /// Turns a region into a column family of its own if its column family is lost.
    fn forget_lost_regions(&mut self, catalogue: &mut Catalogue) {
        let there: BTreeSet<_> = catalogue.families.keys().copied().collect();
        for family in catalogue.families.values_mut() {
            family.region = family.region.take().filter(|region| there.contains(&region.of));
        }
    }

    /// Returns the tables in all files, except those that were replaced or dropped.
    fn find_tables(&mut self, db_uid: u64, counters: &Counters) -> Result<FoundTables> {
        let mut found = FoundTables::new();
        for file in self.tables.clone() {
            for entry in self.tables_of(Some(db_uid), file)? {
                let id = entry.column_family;
                counters.absorb(&VersionEdit {
                    next_table: Some(TableId(entry.table.0 + 1)),
                    next_column_family: Some(ColumnFamilyId(id.0 + 1)),
                    ..VersionEdit::default()
                });
                if !self.remembered.is_replaced(entry.table) && !self.remembered.is_dropped(id) {
                    found.entry(id).or_default().push((file, entry));
                }
            }
        }
        self.everything_was_read()?;
        Ok(found)
    }

    /// Returns the comparator of a column family.
    fn comparator_for(
        &self,
        id: ColumnFamilyId,
        db_uid: u64,
        tables: &[(FileId, DirectoryEntry)],
    ) -> Result<Comparator> {
        match self.remembered.families.get(&id) {
            Some(known) if !known.comparator.is_empty() => {
                comparator_of(&self.given, &self.comparators(), &known.name, &known.comparator)
            }
            _ if tables.is_empty() => Ok(self.options.column_family.comparator.clone()),
            _ => self.comparator_of_tables(db_uid, tables),
        }
    }

    /// Merges the tables and WAL entries of a column family into one run of the last level, and
    /// returns its version and name.
    fn merge(
        &mut self,
        id: ColumnFamilyId,
        mut tables: Vec<(FileId, DirectoryEntry)>,
        logged: FoundEntries,
        log: Option<sateen_control::LogNumber>,
        catalogue: &Catalogue,
    ) -> Result<(Version, String)> {
        tables.sort_by_key(|(file, _)| Reverse(*file));
        let (uid, name) = (catalogue.identity.uid, self.name_of(id));
        let comparator = self.comparator_for(id, uid, &tables)?;
        let ranges = self.ranges_of(id, &logged, &comparator);
        let mut places: Vec<Place> = Vec::new();
        let mut sources = Sources::new(&comparator);
        // A table that cannot be read directly is first rewritten as one that can.
        let mut anew = self.output(id, 0, uid, &comparator);
        self.add_logged(logged, &comparator, &mut anew, catalogue)?;
        self.add_source(&name, anew, uid, &mut sources, &mut places)?;
        for (file, entry) in &tables {
            let place = match self.place_found(uid, *file, entry, &comparator) {
                Ok(place) => place,
                Err(error) => {
                    self.lose_table(&name, *file, entry, error)?;
                    continue;
                }
            };
            match self.open_table(&place) {
                Ok(_) => self.add_place(&name, place, &mut sources, &mut places)?,
                Err(_) if was_given_back(self.vfs.as_ref(), &self.directory, *file, entry) => {}
                Err(error) => {
                    self.loss(error)?;
                    self.damaged.insert(*file);
                    let mut anew = self.output(id, 0, uid, &comparator);
                    self.salvage_table(&name, &place, &mut anew, &catalogue.counters)?;
                    self.add_source(&name, anew, uid, &mut sources, &mut places)?;
                }
            }
        }
        let levels = self.options.column_family.levels;
        let level = u8::try_from(levels.saturating_sub(1)).unwrap_or(u8::MAX);
        let mut output = self.output(id, level, uid, &comparator);
        let mut newest = Newest::default();
        let (mut is_prepared, mut kept) = (false, 0_u64);
        while let Some((source, internal, value)) = sources.newest() {
            let deleted_below = ranges.over(key::user_key(internal), SeqNo::MAX);
            if newest.keeps(internal, deleted_below) {
                let is_value = key::kind(internal) == Some(ValueKind::Put);
                kept += u64::from(is_value);
                is_prepared |= is_value && prepared::is_mark(key::user_key(internal), value);
                self.add(&mut output, &catalogue.counters, internal, value)?;
            }
            let last = internal.to_vec();
            if let Some((error, behind)) = sources.advance(source) {
                self.loss(error)?;
                if let Some(place) = places.get(source).cloned() {
                    self.damaged.insert(place.source.file_id);
                    self.lost_range(&name, &place, Some(&last), behind.as_deref());
                }
            }
        }
        let written = output.finish()?;
        self.report.tables_kept += written.len() as u64;
        let added =
            written.into_iter().map(|table| AddedTable { level, epoch: Epoch(0), table }).collect();
        let edit = VersionEdit { column_family: id, added, log_number: log, ..Default::default() };
        let mut version = Version::new(id, LEVELS_MAX).with_comparator(comparator);
        let style = self.remembered.families.get(&id).and_then(|known| known.style.clone());
        if let Some(style) = style {
            version = version.with_style(style);
        }
        if let Some(times) = self.remembered.families.get(&id).and_then(|known| known.value_times) {
            version = version.with_value_times(times);
        }
        let name = if is_prepared { self.found_prepared(id, name, kept > 1) } else { name };
        Ok((self.apply(&version, &edit)?, name))
    }

    /// Returns the name of a column family whose entries say that they are prepared transactions.
    /// `any`: there is one. Only a column family whose name is lost, `name` being a new one,
    /// becomes that of prepared transactions.
    fn found_prepared(&mut self, id: ColumnFamilyId, name: String, any: bool) -> String {
        if name != PREPARED {
            let mut known = self.remembered.families.values();
            if name != super::recovered_name(id) || known.any(|family| family.name == PREPARED) {
                return name;
            }
            self.remembered.families.entry(id).or_default().name = PREPARED.to_owned();
            let lost = self.report.lost_ranges.iter_mut();
            for lost in lost.filter(|lost| lost.column_family == name) {
                lost.column_family = PREPARED.to_owned();
            }
        }
        if any {
            let text = "there are prepared transactions, some of which may have been committed or \
                        rolled back before";
            self.note(text.to_owned());
        }
        PREPARED.to_owned()
    }

    /// Returns the known range tombstones of a column family.
    fn ranges_of(
        &self,
        id: ColumnFamilyId,
        logged: &FoundEntries,
        comparator: &Comparator,
    ) -> RangeTombstones {
        let known = self.remembered.families.get(&id).map(|known| known.ranges.clone());
        let compared = |range: &RangeTombstone| RangeTombstone {
            begin: comparator.key(range.begin.bytes()),
            end: comparator.key(range.end.bytes()),
            seqno: range.seqno,
        };
        let known = known.unwrap_or_default();
        RangeTombstones::new(known.iter().chain(&logged.ranges).map(compared).collect())
    }

    /// Writes the entries of WALs to `output`.
    fn add_logged(
        &mut self,
        logged: FoundEntries,
        comparator: &Comparator,
        output: &mut Output,
        catalogue: &Catalogue,
    ) -> Result<()> {
        let mut internal = Vec::new();
        let entries = logged.entries.into_iter();
        let entries: BTreeMap<_, _> =
            entries.map(|(key, entries)| (comparator.key(key.bytes()), entries)).collect();
        for (user_key, entries) in entries {
            for (seqno, kind, value) in entries.into_iter().rev() {
                internal.clear();
                key::append(&mut internal, user_key.bytes(), seqno, kind);
                output.add(&catalogue.counters, &internal, &value)?;
                self.report.log_entries_salvaged += 1;
            }
        }
        Ok(())
    }

    /// Adds the tables of `output`, which were just written, to the merge.
    fn add_source(
        &mut self,
        family: &str,
        mut output: Output,
        db_uid: u64,
        sources: &mut Sources,
        places: &mut Vec<Place>,
    ) -> Result<()> {
        let written = output.finish()?;
        self.temporary.extend(output.files());
        for table in written {
            let place = self.place_of(db_uid, &table)?;
            self.add_place(family, place, sources, places)?;
        }
        Ok(())
    }

    /// Adds the table at `place` to the merge. An unreadable beginning is reported as lost.
    fn add_place(
        &mut self,
        family: &str,
        place: Place,
        sources: &mut Sources,
        places: &mut Vec<Place>,
    ) -> Result<()> {
        let table = self.open_table(&place)?;
        let mut iter = table.iter(TableIterOptions::compaction(IoClass::Client, CHUNK_BYTES));
        if let Err(error) = iter.seek_to_first() {
            self.loss(error)?;
            self.damaged.insert(place.source.file_id);
            step_to_readable(&mut iter);
            self.everything_was_read()?;
            let behind = iter.valid().then(|| iter.key().to_vec());
            self.lost_range(family, &place, None, behind.as_deref());
        }
        sources.add(iter);
        places.push(place);
        Ok(())
    }

    /// Returns all entries of the WALs, because no manifest says which of them are in tables.
    fn read_logs(&mut self, db_uid: u64) -> Result<Found> {
        let mut found = Found::new();
        let Some(oldest) = self.logs.first().copied() else { return Ok(found) };
        match self.replay(db_uid, oldest, None, &|_| Some(SeqNo(0)), &mut found) {
            Ok(()) => {}
            Err(error) if !error.is_corruption() => return Err(error),
            Err(error) => {
                self.loss(error)?;
                found.clear();
                self.read_each(db_uid, oldest, &|_| Some(SeqNo(0)), &mut found)?;
            }
        }
        Ok(found)
    }
}
