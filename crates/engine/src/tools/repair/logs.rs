//! Stores in tables what the WALs have and the next open could not replay: a WAL is damaged or
//! missing, or no manifest says which entries are needed.
//!
//! 1. [`Repair::take_in_logs`] replays the chain of WALs as the next open would (`replay`). If that
//!    succeeds, the WALs are left to the open.
//! 2. Otherwise `read_each` reads all parts of each WAL that verify, before and behind its damage.
//! 3. `store` writes the entries into tables and creates an empty WAL. The old WALs are moved to
//!    `lost`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use sateen_control::version::{AddedTable, DurableLog, RangeTombstone, VersionEdit};
use sateen_control::{ColumnFamilyId, Epoch, IoClass, LogNumber, SeqNo, UserKey, ValueKind};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::key;
use sateen_store::base::names::shown_path;
use sateen_store::files::replace::sync_directory;
use sateen_store::files::wal_file_name;
use sateen_store::vfs::OpenOptions;
use sateen_store::wal::frame::{FILE_HEADER_BYTES, FileHeader, FileKind};
use sateen_store::wal::reader::WalRecord;
use sateen_store::wal::{LogPlace, WalChain, WalReader, WalWriter};

use super::{Catalogue, Repair};
use crate::open::stored_wal_directory;
use crate::tree::family_state::oldest_log;
use crate::tree::version_set::durable_log;

/// The entries of a column family that were found in WALs.
#[derive(Default)]
pub(super) struct FoundEntries {
    /// Of each key, the newest entry that is no operand, and the operands after it; oldest first.
    pub(super) entries: BTreeMap<UserKey, Vec<(SeqNo, ValueKind, Vec<u8>)>>,
    pub(super) ranges: Vec<RangeTombstone>,
}

impl FoundEntries {
    /// Returns the newest sequence number.
    pub(super) fn newest(&self) -> SeqNo {
        let entries = self.entries.values().flatten().map(|(seqno, ..)| *seqno);
        entries.chain(self.ranges.iter().map(|range| range.seqno)).max().unwrap_or_default()
    }
}

pub(super) type Found = BTreeMap<ColumnFamilyId, FoundEntries>;
/// Returns the sequence number up to which a column family is stored in tables; `None` if it was
/// dropped.
type Stored<'a> = dyn Fn(ColumnFamilyId) -> Option<SeqNo> + 'a;

impl Repair {
    /// Returns the directory of the WALs.
    pub(super) fn wal_directory(&self) -> PathBuf {
        self.options.wal_directory(&self.directory)
    }

    /// Returns what to do if the WALs may be in another directory.
    fn other_logs(&self) -> Result<String> {
        let vfs = self.vfs.as_ref();
        let stored = stored_wal_directory(vfs, &self.directory, &self.wal_directory())?;
        Ok(stored.unwrap_or_else(|| {
            "set the option wal_dir if the WALs are in another directory".to_owned()
        }))
    }

    /// Takes the entries of the WALs into tables, unless the next open can replay all WALs. Fails
    /// if a WAL is needed and the directory has none.
    pub(super) fn take_in_logs(&mut self, catalogue: &mut Catalogue) -> Result<()> {
        let needed = oldest_log(catalogue.families.values());
        self.choose_logs(needed, catalogue.identity.uid)?;
        let missing = needed > LogNumber(0) && !self.logs.contains(&needed);
        let path = wal_file_name(&self.wal_directory(), needed);
        if missing && (self.logs.is_empty() || self.old_logs != self.wal_directory()) {
            // The WALs may be somewhere else, so the repair must not give them up.
            return Err(Error::IncompatibleDirectory {
                path: self.wal_directory(),
                reason: format!(
                    "there is no WAL here, and {} is needed: {}; to give up their content, create \
                     an empty file of that name and repair again",
                    shown_path(&path),
                    self.other_logs()?
                ),
            });
        }
        let uid = catalogue.identity.uid;
        let mut found = Found::new();
        let replayed = {
            let stored = |id| catalogue.families.get(&id).map(|family| family.stored);
            let durable = durable_log(&catalogue.families);
            match self.replay(uid, needed, durable, &stored, &mut found) {
                Err(error) if !error.is_corruption() => return Err(error),
                Err(error) => {
                    self.loss(error)?;
                    found.clear();
                    self.read_each(uid, needed, &stored, &mut found)?;
                    false
                }
                Ok(()) if missing => {
                    self.loss(Error::corruption(&path, 0, CorruptionKind::MissingFile))?;
                    false
                }
                Ok(()) => true,
            }
        };
        if replayed { Ok(()) } else { self.store(catalogue, found) }
    }

    /// Chooses between the WALs of two directories as the next open would.
    fn choose_logs(&mut self, needed: LogNumber, uid: u64) -> Result<()> {
        if !self.rival_logs.is_empty() {
            let wal_directory = self.wal_directory();
            let own = (self.directory.as_path(), std::mem::take(&mut self.rival_logs));
            let logs = (wal_directory.as_path(), std::mem::take(&mut self.logs));
            let place = LogPlace::choose(self.vfs.as_ref(), own, logs, needed, uid)?;
            (self.old_logs, self.logs) = (place.directory, place.logs);
        }
        Ok(())
    }

    /// Fails if two directories have WALs, and no manifest says which are needed.
    pub(super) fn refuse_rivals(&self) -> Result<()> {
        let (Some(own), Some(log)) = (self.rival_logs.first(), self.logs.first()) else {
            return Ok(());
        };
        let own = shown_path(wal_file_name(&self.directory, *own));
        let log = shown_path(wal_file_name(&self.wal_directory(), *log));
        Err(Error::IncompatibleDirectory {
            path: self.directory.clone(),
            reason: format!(
                "WALs are in its own directory ({own}) and in wal_dir ({log}), and no manifest can \
                 be read that says which are needed: move those of one directory away"
            ),
        })
    }

    /// Replays the chain of WALs as the next open would, and collects the entries that are not
    /// stored.
    pub(super) fn replay(
        &self,
        db_uid: u64,
        first: LogNumber,
        durable: Option<DurableLog>,
        stored: &Stored<'_>,
        found: &mut Found,
    ) -> Result<()> {
        let (directory, logs) = (self.old_logs.clone(), self.logs.iter().copied());
        let vfs = self.vfs.clone();
        let mut chain = WalChain::open(vfs, &directory, logs, db_uid, first, durable)?;
        while let Some(record) = chain.next()? {
            self.take(&record, stored, found)?;
        }
        let directory = self.old_logs.clone();
        let mut logs = self.logs.iter().filter(|log| **log >= first);
        logs.try_for_each(|log| self.nothing_was_given_up(&wal_file_name(&directory, *log)))
    }

    /// Reads each WAL by itself and collects the entries of all records that verify.
    pub(super) fn read_each(
        &mut self,
        db_uid: u64,
        first: LogNumber,
        stored: &Stored<'_>,
        found: &mut Found,
    ) -> Result<()> {
        for number in self.logs.clone().into_iter().filter(|number| *number >= first) {
            let path = wal_file_name(&self.old_logs, number);
            let opened = WalReader::open_damaged(self.vfs.as_ref(), &path, number, db_uid);
            let mut reader = match opened {
                Ok(reader) => reader,
                Err(error) => {
                    self.loss(error)?;
                    continue;
                }
            };
            loop {
                let taken = match reader.next() {
                    Ok(Some(record)) => self.take(&record, stored, found),
                    Ok(None) => break,
                    Err(error) => Err(error),
                };
                let Err(error) = taken else { continue };
                if !error.is_corruption() {
                    return Err(error);
                }
                let damaged_at = reader.position().end;
                self.loss(error)?;
                if !reader.skip_damage()? {
                    self.note(format!(
                        "{}: everything from offset {damaged_at} on is lost",
                        shown_path(&path)
                    ));
                    break;
                }
                let goes_on = reader.position().end;
                self.note(format!(
                    "{}: the commits between offsets {damaged_at} and {goes_on} are lost; later \
                     ones are kept",
                    shown_path(&path)
                ));
            }
        }
        Ok(())
    }

    /// Returns the uid of the database in the first WAL whose header verifies.
    pub(super) fn uid_of_logs(&self) -> Option<u64> {
        let directory = self.old_logs.clone();
        self.logs.iter().find_map(|log| {
            let path = wal_file_name(&directory, *log);
            let file = self.vfs.open(&path, OpenOptions::READ).ok()?;
            let mut block = [0; FILE_HEADER_BYTES];
            file.read_all_at(&mut block, 0, IoClass::Wal).ok()?;
            Some(FileHeader::decode(FileKind::Wal, &block)?.db_uid)
        })
    }

    /// Collects the entries of a record that are not stored in tables.
    fn take(&self, record: &WalRecord<'_>, stored: &Stored<'_>, found: &mut Found) -> Result<()> {
        record.for_each_entry(&self.old_logs, |seqno, entry| {
            let id = entry.column_family;
            if stored(id).is_none_or(|stored| seqno <= stored) {
                return;
            }
            let family = found.entry(id).or_default();
            // Ordered by bytes here; `store` orders them as the column family does.
            let key = UserKey::bytewise(entry.key);
            if entry.kind == ValueKind::RangeDelete {
                let end = UserKey::bytewise(entry.value);
                family.ranges.push(RangeTombstone { begin: key, end, seqno });
                return;
            }
            let entries = family.entries.entry(key).or_default();
            // A WAL may repeat the entries of another one.
            if entries.last().is_some_and(|(newest, ..)| *newest >= seqno) {
                return;
            }
            if entry.kind != ValueKind::Merge {
                entries.clear();
            }
            entries.push((seqno, entry.kind, entry.value.to_vec()));
        })
    }

    /// Writes the collected entries into one run of level 0 for each column family, and creates the
    /// WAL that follows.
    fn store(&mut self, catalogue: &mut Catalogue, mut found: Found) -> Result<()> {
        catalogue.counters.file_seen(self.numbers_seen);
        let log = self.create_log(catalogue)?;
        let mut internal = Vec::new();
        for (id, family) in &mut catalogue.families {
            let found = found.remove(id).unwrap_or_default();
            family.stored = family.stored.max(found.newest());
            let epoch: Epoch = catalogue.counters.epoch();
            let comparator = family.version.comparator();
            let mut output = self.output(*id, 0, catalogue.identity.uid, comparator);
            let entries: BTreeMap<_, _> = found
                .entries
                .into_iter()
                .map(|(key, entries)| (comparator.key(key.bytes()), entries))
                .collect();
            for (user_key, entries) in entries {
                for (seqno, kind, value) in entries.into_iter().rev() {
                    internal.clear();
                    key::append(&mut internal, user_key.bytes(), seqno, kind);
                    self.add(&mut output, &catalogue.counters, &internal, &value)?;
                    self.report.log_entries_salvaged += 1;
                }
            }
            let compared = |range: RangeTombstone| RangeTombstone {
                begin: comparator.key(range.begin.bytes()),
                end: comparator.key(range.end.bytes()),
                seqno: range.seqno,
            };
            let ranges = found.ranges.into_iter().map(compared);
            catalogue.last_seqno = catalogue.last_seqno.max(family.stored);
            let written = output.finish()?;
            self.report.tables_kept += written.len() as u64;
            let added = written.into_iter().map(|table| AddedTable { level: 0, epoch, table });
            let edit = VersionEdit {
                column_family: *id,
                added: added.collect(),
                range_tombstones: ranges.filter(|range| range.begin < range.end).collect(),
                log_number: Some(log),
                ..VersionEdit::default()
            };
            family.version = Arc::new(self.apply(&family.version, &edit)?);
        }
        self.logs_are_stored = true;
        Ok(())
    }

    /// Creates an empty WAL, and makes its name durable.
    pub(super) fn create_log(&self, catalogue: &Catalogue) -> Result<LogNumber> {
        let number = catalogue.counters.log();
        let directory = self.wal_directory();
        let path = wal_file_name(&directory, number);
        WalWriter::create(self.vfs.as_ref(), &path, number, catalogue.identity.uid, 0)?;
        sync_directory(self.vfs.as_ref(), &directory)?;
        Ok(number)
    }
}
