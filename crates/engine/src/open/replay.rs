//! Replays the WALs into memtables.
//!
//! 1. [`Opening::replay`] reads record by record. A filter of the client ([`Filter`]) decides what
//!    becomes of each.
//! 2. `replay_entry` inserts an entry that is in no table. Full memtables are written to tables.
//!
//! What must stay true: what a filter drops is dropped for good. The WALs that have it are not
//! needed once the result of the replay is durable.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use sateen_control::{LogNumber, SeqNo, ValueKind};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::batch::BatchEntry;
use sateen_store::files::wal_file_name;
use sateen_store::vfs::{IoClass, OpenOptions, Vfs};
use sateen_store::wal::{self, Tail, WalChain};

use super::Opening;
use super::as_written::{AsWritten, as_written};
use crate::batch::WriteBatch;
use crate::operators::wal_filter::{WalDecision, WalFamily, WalFiltering, WalRecord};
use crate::options::WalRecovery;
use crate::tree::families::Families;
use crate::tree::version_set::durable_log;

impl Opening {
    /// Replays the WALs: inserts entries that are in no table into memtables. Full memtables are
    /// written to tables meanwhile.
    pub(super) fn replay(&mut self) -> Result<()> {
        let directory = self.old_logs.clone();
        let first = self.versions.oldest_log();
        let db_uid = self.versions.db_uid();
        let vfs: Arc<dyn Vfs> = self.vfs.clone();
        if !self.read_only && self.options.keeps_logs() {
            self.sync_logs(first)?;
        }
        let logs = self.logs.iter().copied();
        let durable = durable_log(&self.versions.families());
        let held = if self.read_only { self.hold_logs(first)? } else { BTreeMap::new() };
        let filter = self.options.wal_filter.clone();
        let mut filter = filter.map(|filter| self.begin_filter(filter)).transpose()?;
        let mut chain = WalChain::open_held(vfs, &directory, logs, db_uid, first, durable, held)?;
        let mut full = false;
        loop {
            if full && !self.read_only {
                self.write_full()?;
            }
            let Some(record) = chain.next()? else { break };
            full = false;
            // A record of log data alone has the next sequence number. Writes before it may not
            // have been logged.
            self.last_seqno = self.last_seqno.max(SeqNo(record.first_seqno.0.saturating_sub(1)));
            let decision = match &mut filter {
                Some(filter) => filter.decide(&record, &directory)?,
                None => WalDecision::Apply,
            };
            if let WalDecision::Replace(batch) = &decision {
                for (seqno, entry) in (record.first_seqno.0..).map(SeqNo).zip(batch.iter()) {
                    full |= self.replay_entry(seqno, &entry);
                }
            }
            // Numbers of writes that are dropped are not used again, either.
            let applies = decision == WalDecision::Apply;
            record.for_each_entry(&directory, |seqno, entry| {
                if applies {
                    full |= self.replay_entry(seqno, &entry);
                }
                self.last_seqno = self.last_seqno.max(seqno);
                self.replayed = self.replayed.max(seqno);
            })?;
        }
        let end = chain.into_end();
        self.replayed_to = end.position;
        if self.options.wal_recovery == WalRecovery::Absolute
            && let (Some(position), Tail::Torn { offset, .. }) = (&end.position, end.tail)
        {
            let path = wal_file_name(&directory, position.number);
            return Err(Error::corruption(&path, offset, CorruptionKind::Truncated));
        }
        Ok(())
    }

    /// Syncs the WALs from `first` on. Bytes that a killed process wrote can be read without being
    /// durable. Readers of the WAL may see them, so they must survive a power loss, too.
    fn sync_logs(&self, first: LogNumber) -> Result<()> {
        let directory = self.old_logs.clone();
        for log in self.logs.iter().filter(|log| **log >= first) {
            let path = wal_file_name(&directory, *log);
            let options = OpenOptions::WRITE;
            let file = self.vfs.open(&path, options).map_err(|e| Error::io("open", &path, e))?;
            file.sync_data(IoClass::Wal).map_err(|e| Error::io("sync", &path, e))?;
        }
        Ok(())
    }

    /// Inserts an entry into its memtable, unless it is in a table. Returns true if the memtable is
    /// full.
    fn replay_entry(&self, seqno: SeqNo, entry: &BatchEntry<'_>) -> bool {
        let BatchEntry { column_family: family, kind, key, value } = *entry;
        // The column family of this entry was dropped later.
        let Some(data) = self.families.get(&family) else { return false };
        if self.stored.get(&family).is_some_and(|stored| seqno <= *stored) {
            return false;
        }
        let memtable = data.active_memtable();
        memtable.insert(key, seqno, kind, value);
        memtable.used_bytes() >= data.memtable_bytes_max()
    }

    /// Tells a filter of the column families.
    fn begin_filter(&self, filtering: WalFiltering) -> Result<Filter> {
        let mut families = Families::default();
        let wholes = self.families.values().filter(|data| data.region().is_none());
        wholes.for_each(|data| families.insert(data));
        let states = self.versions.families();
        let told = families.named().map(|data| WalFamily {
            id: data.id().0,
            name: data.name().to_owned(),
            oldest_log: states.get(&data.id()).map_or(0, |state| state.version.log_number().0),
        });
        let told: Vec<_> = told.collect();
        let filter = Filter { filtering, families, stopped: false };
        filter.call(|filtering| filtering.filter().begin(&told))?;
        Ok(filter)
    }
}

/// A filter of the client during one replay.
struct Filter {
    filtering: WalFiltering,
    families: Families,
    /// Whether the filter has ended the replay.
    stopped: bool,
}

impl Filter {
    /// Calls the filter. A panic of it fails the open.
    fn call<T>(&self, act: impl FnOnce(&WalFiltering) -> T) -> Result<T> {
        catch_unwind(AssertUnwindSafe(|| act(&self.filtering))).map_err(|_| {
            let name = self.filtering.filter().name();
            Error::InvalidArgument(format!("the WAL filter {name} panicked"))
        })
    }

    /// Asks what becomes of `record`. Records after a stop are read and dropped.
    fn decide(&mut self, record: &wal::WalRecord<'_>, directory: &Path) -> Result<WalDecision> {
        if self.stopped {
            return Ok(WalDecision::Skip);
        }
        let path = wal_file_name(directory, record.log);
        let corrupt =
            |what| Error::corruption(&path, record.offset, CorruptionKind::Malformed(what));
        let written = as_written(record.payload, &self.families).map_err(corrupt)?;
        let (log, first_seqno) = (record.log.0, record.first_seqno.0);
        let shown = WalRecord { log, path: &path, first_seqno, batch: &written.batch };
        let decision = self.call(|filtering| filtering.filter().decide(&shown))?;
        match &decision {
            WalDecision::Stop => self.stopped = true,
            WalDecision::Corrupt => {
                return Err(corrupt("the WAL filter says that the record is damaged"));
            }
            WalDecision::Replace(new) => self.check_replacement(record, &written, new)?,
            WalDecision::Apply | WalDecision::Skip => {}
        }
        Ok(decision)
    }

    /// Fails if `new` cannot take the place of a record of what was `written`.
    fn check_replacement(
        &self,
        record: &wal::WalRecord<'_>,
        written: &AsWritten,
        new: &WriteBatch,
    ) -> Result<()> {
        let refuse = |why: String| {
            let name = self.filtering.filter().name();
            let at = record.first_seqno;
            Err(Error::InvalidArgument(format!("the WAL filter {name} at write {at}: {why}")))
        };
        if new.count() > written.batch.count() {
            let (new, old) = (new.count(), written.batch.count());
            return refuse(format!("{new} writes cannot replace {old}"));
        }
        if written.had_more {
            return refuse(
                "a record of regions, lifetimes or prepared transactions cannot be replaced"
                    .to_owned(),
            );
        }
        match new.iter().find_map(|entry| self.refusal(&entry)) {
            Some(why) => refuse(why),
            None => Ok(()),
        }
    }

    /// Returns why a filter cannot write `entry`; `None` if it can.
    fn refusal(&self, entry: &BatchEntry<'_>) -> Option<String> {
        let id = entry.column_family;
        let Some(data) = self.families.named().find(|data| data.id() == id) else {
            return Some(format!("no column family has the id {id}"));
        };
        let name = data.name();
        // The database adds something to these writes, and divides those of regions.
        if data.has_times()
            || data.region_begins().len() > 0
            || data.comparator().timestamp_bytes() > 0
        {
            let what = "has regions, lifetimes or timestamps: a filter cannot write to it";
            return Some(format!("the column family {name} {what}"));
        }
        if entry.kind == ValueKind::Merge && data.options().merge_operator.is_none() {
            return Some(format!("the column family {name} has no merge operator"));
        }
        let comparator = data.comparator();
        if entry.kind == ValueKind::RangeDelete
            && comparator.compare(entry.key, entry.value) == std::cmp::Ordering::Greater
        {
            return Some("the end of a range to delete is before its begin".to_owned());
        }
        None
    }
}
