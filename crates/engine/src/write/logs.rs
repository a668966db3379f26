//! The logs that the pipeline writes: the one in use, its successor, and those that are needed
//! still.

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
    /// Hands over a log made in the background; taken up at the next switch.
    pub(crate) fn provide_wal(&self, writer: WalWriter) {
        *lock(&self.next_wal) = Some(writer);
    }

    /// True if no successor log is waiting.
    pub(crate) fn wants_wal(&self) -> bool {
        lock(&self.next_wal).is_none()
    }

    /// Takes back the successor log that nobody used.
    pub(crate) fn take_next_wal(&self) -> Option<LogNumber> {
        lock(&self.next_wal).take().map(|writer| writer.number())
    }

    /// Bytes written to the log in use, and the successor that is waiting.
    pub(crate) fn successor(&self) -> Option<(u64, Arc<WalSync>)> {
        let next = lock(&self.next_wal).as_ref().map(WalWriter::sync_handle)?;
        let written = lock(&self.logs).last().map_or(0, |(_, log)| log.written());
        Some((written, next))
    }

    pub(super) fn take_up_next_wal(&self, stage: &mut Stage) {
        // A log that failed has no end that another could follow: it is replaced once what it holds
        // is in tables.
        if self.wal_is_dead() {
            return;
        }
        let Some(previous) = stage.wal.take() else { return };
        // One that was made before the log in use replaced a dead one would not be replayed: its
        // number is too low. It stays as an orphan.
        let next =
            lock_timed(&self.next_wal).take().filter(|writer| writer.number() > previous.number());
        let Some(mut writer) = next else {
            stage.wal = Some(previous);
            return;
        };
        // Fails only if the link does not fit a record, which it does.
        if writer.follow(previous.finish()).is_ok() {
            if self.links_at_once {
                // If that fails the log is dead: whoever writes to it next hears of it.
                let _told_later = writer.write_link();
            }
            self.start_log(stage, writer);
        }
    }

    /// Replaces a dead log by `fresh` (format rule F4). The caller leads, and everything that was
    /// written to the logs before it sealed is in tables. Returns those logs, which can be removed;
    /// `None`, and `fresh` is left, if something has been written since.
    pub(crate) fn replace_wal(
        &self,
        stage: &mut Stage,
        fresh: &mut Option<WalWriter>,
    ) -> Result<Option<Vec<LogNumber>>> {
        // A writer that found all well before the log died may have come to its turn only now.
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

    /// Syncs what was written to the logs, and says so in the last of them, if it has a record:
    /// from then on damage is told from a torn tail. For a close.
    pub(crate) fn close_wal(&self) -> Result<()> {
        self.sync_wal()?;
        // Best effort: all is durable without it.
        let _unmarked = self.exclusive(|stage| stage.wal.as_mut().map(WalWriter::append_mark));
        Ok(())
    }

    /// Gives back the space that was reserved for logs and not used. For a close.
    pub(crate) fn trim_wals(&self) {
        self.exclusive(|stage| stage.wal.as_ref().map(WalWriter::trim));
        let logs = lock(&self.logs).clone();
        // The last one is in use: a writer that came before the close may still append to it.
        let complete = logs.len().saturating_sub(1);
        logs.iter().take(complete).for_each(|(_, log)| wal::space::trim(log));
    }

    fn start_log(&self, stage: &mut Stage, writer: WalWriter) {
        debug_assert!(writer.number() > stage.wal_number, "logs are in the order of their numbers");
        lock_timed(&self.logs).push((writer.number(), writer.sync_handle()));
        stage.wal_number = writer.number();
        stage.wal = Some(writer);
    }

    /// Makes everything written to the logs so far durable. Returns how far that is: the place in
    /// the last log that has a record.
    pub(crate) fn sync_wal(&self) -> Result<Option<DurableLog>> {
        // Each for itself: a log that was just taken up and has no record yet says nothing of the
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

    /// True if the log in use takes nothing any more.
    pub(crate) fn wal_is_dead(&self) -> bool {
        lock(&self.logs).iter().any(|(_, log)| log.check_alive().is_err())
    }

    /// True if something was written to the log since it was last synced.
    pub(crate) fn has_unsynced(&self) -> bool {
        lock(&self.logs).iter().any(|(_, log)| log.written() > log.synced_offset())
    }

    /// Everything in the logs below `number` is in tables: returns those, oldest first.
    pub(crate) fn retire_logs_below(&self, number: LogNumber) -> Vec<ReadableLog> {
        let mut logs = lock(&self.logs);
        let last = logs.last().map(|log| log.0);
        let (old, kept): (Vec<_>, Vec<_>) =
            logs.drain(..).partition(|log| log.0 < number && Some(log.0) != last);
        *logs = kept;
        old.iter().for_each(|(_, log)| log.retire());
        old.iter().map(readable).collect()
    }

    /// The logs that are needed, oldest first. All but the last are complete.
    pub(crate) fn readable_logs(&self) -> Vec<ReadableLog> {
        lock(&self.logs).iter().map(readable).collect()
    }

    /// The logs that are needed, and the bytes written to them.
    pub(crate) fn live_logs(&self) -> Vec<(LogNumber, u64)> {
        lock(&self.logs).iter().map(|(number, log)| (*number, log.written())).collect()
    }

    /// Bytes of the buffers that groups go through on their way into the log, at most.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        if lock(&self.logs).is_empty() { 0 } else { 2 * self.group_bytes_max as u64 }
    }
}

fn readable((number, log): &(LogNumber, Arc<WalSync>)) -> ReadableLog {
    ReadableLog { number: *number, end: log.written(), begins: log.begins() }
}
