//! What the logs hold and the next open could not replay: where a log is damaged or missing, or no
//! manifest says what of them is needed. It goes into tables, of each log what stands before its
//! first damage; the logs are moved away, an empty one takes their place.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;

use sateen_control::version::{AddedTable, LEVELS_MAX, Version, VersionEdit};
use sateen_control::{ColumnFamilyId, Comparator, LogNumber, SeqNo, UserKey, ValueKind};

use super::{Catalogue, Repair, recovered_name};
use crate::error::{CorruptionKind, Error, Result};
use crate::files::wal_file_name;
use crate::key;
use crate::manifest::version_set::FamilyState;
use crate::wal::reader::WalRecord;
use crate::wal::{WalChain, WalReader, WalWriter};

/// Of each key the newest entry that is no operand, and the operands since; oldest first.
type Entries = BTreeMap<UserKey, Vec<(SeqNo, ValueKind, Vec<u8>)>>;
type Found = BTreeMap<ColumnFamilyId, Entries>;

impl Repair {
    pub(super) fn wal_directory(&self) -> PathBuf {
        self.options.wal_directory(&self.directory)
    }

    /// See the head of this file. Leaves the logs to the next open if it can replay them all.
    pub(super) fn take_in_logs(&mut self, catalogue: &mut Catalogue) -> Result<()> {
        let families = catalogue.families.values();
        let needed = families.map(|family| family.version.log_number()).min().unwrap_or_default();
        let believed = self.report.manifest.is_some();
        let oldest = self.logs.first().copied();
        let missing = needed > LogNumber(0) && !self.logs.contains(&needed);
        let path = wal_file_name(&self.wal_directory(), needed);
        if missing && oldest.is_none() {
            // To go on would give up logs that may be somewhere else.
            return Err(Error::IncompatibleDirectory {
                path: self.wal_directory(),
                reason: format!(
                    "there is no log here, and {} is needed: give the option wal_dir if the logs \
                     are elsewhere; to give up what they hold, make an empty file of that name",
                    path.display()
                ),
            });
        }
        let first = if believed { Some(needed) } else { oldest }.unwrap_or_default();
        let mut found = BTreeMap::new();
        let whole = match self.replay(catalogue, first, &mut found) {
            Err(error) if !error.is_corruption() => return Err(error),
            Err(error) => {
                self.report.losses.push(error);
                found.clear();
                self.read_each(catalogue, first, &mut found)?;
                false
            }
            Ok(()) if missing => {
                self.report.losses.push(Error::corruption(&path, 0, CorruptionKind::MissingFile));
                false
            }
            Ok(()) => true,
        };
        if whole && (believed || oldest.is_none()) {
            return Ok(());
        }
        self.store(catalogue, found)
    }

    /// Reads the logs as the next open would.
    fn replay(&self, catalogue: &Catalogue, first: LogNumber, found: &mut Found) -> Result<()> {
        let (directory, logs) = (self.wal_directory(), self.logs.iter().copied());
        let uid = catalogue.db_uid;
        let mut chain = WalChain::open(self.vfs.clone(), &directory, logs, uid, first)?;
        while let Some(record) = chain.next()? {
            self.take(catalogue, &record, found)?;
        }
        Ok(())
    }

    /// Reads each log for itself, to its end or its first damage, whatever became of the others.
    fn read_each(
        &mut self,
        catalogue: &Catalogue,
        first: LogNumber,
        found: &mut Found,
    ) -> Result<()> {
        for number in self.logs.clone().into_iter().filter(|number| *number >= first) {
            let path = wal_file_name(&self.wal_directory(), number);
            let uid = Some(catalogue.db_uid);
            let opened = WalReader::open(self.vfs.as_ref(), &path, number, uid, 0);
            let read = opened.and_then(|mut reader| {
                while let Some(record) = reader.next()? {
                    self.take(catalogue, &record, found)?;
                }
                Ok(())
            });
            match read {
                Err(error) if !error.is_corruption() => return Err(error),
                Err(error) => {
                    let told = |loss: &Error| loss.to_string() == error.to_string();
                    if !self.report.losses.iter().any(told) {
                        self.report.losses.push(error);
                    }
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn take(&self, catalogue: &Catalogue, record: &WalRecord<'_>, found: &mut Found) -> Result<()> {
        record.for_each_entry(&self.wal_directory(), |seqno, entry| {
            let known = catalogue.families.get(&entry.column_family);
            let stored = match known {
                Some(family) => family.stored,
                // Dropped, if that is known; or all of it is in the logs.
                None if self.report.manifest.is_some() => SeqNo::MAX,
                None => SeqNo(0),
            };
            if seqno > stored {
                let family = found.entry(entry.column_family).or_default();
                let comparator = self.comparator_of_family(known);
                let entries = family.entry(comparator.key(entry.key)).or_default();
                if entry.kind != ValueKind::Merge {
                    entries.clear();
                }
                entries.push((seqno, entry.kind, entry.value.to_vec()));
            }
        })
    }

    /// What keys of a column family are compared by; of one that is only in the logs, what the
    /// options say.
    fn comparator_of_family<'a>(&'a self, known: Option<&'a FamilyState>) -> &'a Comparator {
        known.map_or(&self.options.column_family.comparator, |family| family.version.comparator())
    }

    fn store(&mut self, catalogue: &mut Catalogue, mut found: Found) -> Result<()> {
        catalogue.counters.file_seen(self.numbers_seen);
        for id in found.keys() {
            if let Entry::Vacant(place) = catalogue.families.entry(*id) {
                let next_column_family = Some(ColumnFamilyId(id.0 + 1));
                catalogue
                    .counters
                    .absorb(&VersionEdit { next_column_family, ..VersionEdit::default() });
                let comparator = self.comparator_of_family(None).clone();
                let version = Version::new(*id, LEVELS_MAX).with_comparator(comparator);
                let version = Arc::new(version);
                let name = recovered_name(*id);
                place.insert(FamilyState {
                    name,
                    region: None,
                    version,
                    stored: SeqNo(0),
                    data: None,
                });
            }
        }
        let log = self.create_log(catalogue)?;
        let mut internal = Vec::new();
        for (id, family) in &mut catalogue.families {
            let entries = found.remove(id).unwrap_or_default();
            let epoch = catalogue.counters.epoch();
            let comparator = family.version.comparator();
            let mut output = self.output(*id, 0, catalogue.db_uid, comparator);
            for (user_key, entries) in entries {
                for (seqno, kind, value) in entries.into_iter().rev() {
                    family.stored = family.stored.max(seqno);
                    internal.clear();
                    key::append(&mut internal, user_key.bytes(), seqno, kind);
                    self.add(&mut output, &catalogue.counters, &internal, &value)?;
                }
            }
            catalogue.last_seqno = catalogue.last_seqno.max(family.stored);
            let written = output.finish()?;
            self.report.tables_kept += written.len() as u64;
            let added = written.into_iter().map(|table| AddedTable { level: 0, epoch, table });
            let edit = VersionEdit {
                column_family: *id,
                added: added.collect(),
                log_number: Some(log),
                ..VersionEdit::default()
            };
            family.version = Arc::new(self.apply(&family.version, &edit)?);
        }
        self.logs_are_stored = true;
        Ok(())
    }

    fn create_log(&self, catalogue: &Catalogue) -> Result<LogNumber> {
        let number = catalogue.counters.log();
        let directory = self.wal_directory();
        let path = wal_file_name(&directory, number);
        WalWriter::create(self.vfs.as_ref(), &path, number, catalogue.db_uid, 0)?;
        let synced = self.vfs.sync_dir(&directory);
        synced.map_err(|error| Error::io("sync directory", &directory, error))?;
        Ok(number)
    }
}
