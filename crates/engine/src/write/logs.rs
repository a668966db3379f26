//! The WALs of the pipeline: the one in use, its successor, and older ones that are still needed.
//!
//! 1. The background creates the next WAL and hands it over ([`CommitPipeline::provide_wal`]).
//! 2. When a memtable is sealed, the leader takes it up (`take_up_next_wal`). Its first record is a
//!    link to the end of the WAL before it.
//! 3. [`CommitPipeline::sync_wal`] syncs all WALs that are needed.
//! 4. [`CommitPipeline::retire_logs_below`] drops WALs whose entries are all in tables.
//! 5. If a WAL has failed, [`CommitPipeline::replace_wal`] replaces it after its entries were
//!    flushed.

use std::sync::Arc;

use sateen_control::version::DurableLog;
use sateen_control::{LogNumber, SeqNo};
use sateen_store::base::error::Result;
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::lock;
use sateen_store::memtable::MemTable;
use sateen_store::wal::frame::FILE_HEADER_BYTES;
use sateen_store::wal::{self, ReadableLog, WalSync, WalWriter};

use super::{CommitPipeline, Stage};
use crate::tree::families::ColumnFamilyData;

impl CommitPipeline {
    /// Hands over a WAL that the background created, for the next switch.
    pub(crate) fn provide_wal(&self, writer: WalWriter) {
        *lock(&self.next_wal) = Some(writer);
    }

    /// Returns true if there is no next WAL.
    pub(crate) fn wants_wal(&self) -> bool {
        lock(&self.next_wal).is_none()
    }

    /// Takes back the next WAL, which was not used. Returns its number.
    pub(crate) fn take_next_wal(&self) -> Option<LogNumber> {
        lock(&self.next_wal).take().map(|writer| writer.number())
    }

    /// Returns the bytes written to the WAL in use, and the next WAL.
    pub(crate) fn successor(&self) -> Option<(u64, Arc<WalSync>)> {
        let next = lock(&self.next_wal).as_ref().map(WalWriter::sync_handle)?;
        let written = lock(&self.logs).last().map_or(0, |(_, log)| log.written());
        Some((written, next))
    }

    /// Makes the next WAL the one in use, if it exists. The caller leads.
    pub(super) fn take_up_next_wal(&self, stage: &mut Stage) {
        // A WAL that failed has no end that another one could follow. It is replaced once its
        // entries are in tables.
        if self.wal_is_dead() {
            return;
        }
        let Some(previous) = stage.wal.take() else { return };
        // A next WAL that was created before a dead WAL was replaced has too low a number and would
        // not be replayed. It stays on disk as an orphan.
        let next =
            lock_timed(&self.next_wal).take().filter(|writer| writer.number() > previous.number());
        let Some(mut writer) = next else {
            stage.wal = Some(previous);
            return;
        };
        // Fails only if the link does not fit into a record, which cannot happen.
        if writer.follow(previous.finish()).is_ok() {
            if self.links_at_once {
                // If this fails, the WAL is dead, and its next writer gets the error.
                let _told_later = writer.write_link();
            }
            self.start_log(stage, writer);
        }
    }

    /// Replaces a dead WAL by `fresh` (format rule F4). The caller leads, and everything that was
    /// logged up to the last seal is in tables. Returns the old WALs, which can be removed. Returns
    /// `None` and leaves `fresh` if something was written since.
    pub(crate) fn replace_wal(
        &self,
        stage: &mut Stage,
        fresh: &mut Option<WalWriter>,
    ) -> Result<Option<Vec<LogNumber>>> {
        // A writer that passed the health check before the WAL died may have been ordered only now.
        self.publisher.wait_applied(stage.next_ticket);
        let holds = |(_, family, memtable): &(_, Arc<ColumnFamilyData>, Arc<MemTable>)| {
            !memtable.is_empty() || family.sealed_usage().0 > 0
        };
        if stage.active.members.iter().any(holds) {
            return Ok(None);
        }
        let Some(mut writer) = fresh.take() else { return Ok(None) };
        writer.begin_anew(SeqNo(stage.next_seqno))?;
        let dead: Vec<_> = lock(&self.logs).drain(..).collect();
        dead.iter().for_each(|(_, log)| log.retire());
        let unused = self.take_next_wal();
        self.start_log(stage, writer);
        for (_, family, _) in &stage.active.members {
            family.set_active_log(stage.wal_number);
        }
        Ok(Some(dead.into_iter().map(|(number, _)| number).chain(unused).collect()))
    }

    /// Syncs the WALs for a close. Then it appends a mark to the last one, if that has a record,
    /// which says how far it is synced. With the mark, later damage can be told from a torn tail.
    pub(crate) fn close_wal(&self) -> Result<()> {
        self.sync_wal()?;
        // Best effort: everything is durable without the mark.
        let _unmarked = self.exclusive(|stage| stage.wal.as_mut().map(WalWriter::append_mark));
        Ok(())
    }

    /// Frees the preallocated space of WALs that is not used, for a close.
    pub(crate) fn trim_wals(&self) {
        self.exclusive(|stage| stage.wal.as_ref().map(WalWriter::trim));
        let logs = lock(&self.logs).clone();
        // The last one is in use: a writer that passed its check before the close may still append
        // to it.
        let complete = logs.len().saturating_sub(1);
        logs.iter().take(complete).for_each(|(_, log)| wal::space::trim(log));
    }

    /// Makes `writer` the WAL in use.
    fn start_log(&self, stage: &mut Stage, writer: WalWriter) {
        debug_assert!(writer.number() > stage.wal_number, "logs are in the order of their numbers");
        lock_timed(&self.logs).push((writer.number(), writer.sync_handle()));
        stage.wal_number = writer.number();
        stage.wal = Some(writer);
    }

    /// Makes everything that was written to the WALs durable. Returns the last WAL that has a
    /// record, and how many bytes of it are durable.
    pub(crate) fn sync_wal(&self) -> Result<Option<DurableLog>> {
        // Each WAL is synced: one that was just taken up and has no record says nothing about the
        // one before it.
        let logs = lock(&self.logs).clone();
        let mut durable = None;
        for (log, sync) in logs {
            let bytes = sync.sync()?;
            if bytes > FILE_HEADER_BYTES as u64 {
                durable = Some(DurableLog { log, bytes });
            }
        }
        Ok(durable)
    }

    /// Returns true if a WAL has failed, so that writes to it are refused.
    pub(crate) fn wal_is_dead(&self) -> bool {
        lock(&self.logs).iter().any(|(_, log)| log.check_alive().is_err())
    }

    /// Returns true if a WAL has bytes that are not synced.
    pub(crate) fn has_unsynced(&self) -> bool {
        lock(&self.logs).iter().any(|(_, log)| log.written() > log.synced_offset())
    }

    /// Drops the WALs below `number`, whose entries are all in tables, except for the one in use.
    /// Returns them, oldest first.
    pub(crate) fn retire_logs_below(&self, number: LogNumber) -> Vec<ReadableLog> {
        let mut logs = lock(&self.logs);
        let last = logs.last().map(|log| log.0);
        let (old, kept): (Vec<_>, Vec<_>) =
            logs.drain(..).partition(|log| log.0 < number && Some(log.0) != last);
        *logs = kept;
        old.iter().for_each(|(_, log)| log.retire());
        old.iter().map(readable).collect()
    }

    /// Returns the WALs that are needed, oldest first. All but the last are complete.
    pub(crate) fn readable_logs(&self) -> Vec<ReadableLog> {
        lock(&self.logs).iter().map(readable).collect()
    }

    /// Returns the WALs that are needed, and the bytes written to each.
    pub(crate) fn live_logs(&self) -> Vec<(LogNumber, u64)> {
        lock(&self.logs).iter().map(|(number, log)| (*number, log.written())).collect()
    }

    /// Returns the largest size of the buffers through which commit groups reach the WAL, in bytes.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        if lock(&self.logs).is_empty() { 0 } else { 2 * self.group_bytes_max as u64 }
    }
}

fn readable((number, log): &(LogNumber, Arc<WalSync>)) -> ReadableLog {
    ReadableLog { number: *number, end: log.written(), begins: log.begins() }
}
