//! Work that is done between two commit groups, by a leader with an empty group.
//!
//! - [`CommitPipeline::write_again`] keeps hot keys in memory when their memtable is flushed.
//! - [`CommitPipeline::leave_idle_wal`] leaves a WAL that only has log data.
//! - [`CommitPipeline::between_groups`] installs ingested files at a place in the commit order.

use std::sync::Arc;

use sateen_control::{SeqNo, UserKey, ValueKind};
use sateen_store::base::error::{Error, Result};

use super::conflicts::Touched;
use super::{Assignment, CommitPipeline, Logging, Payload, Stage};
use crate::batch::WriteBatch;
use crate::tree::families::ColumnFamilyData;

impl CommitPipeline {
    /// Writes values again that a flush is about to take out of memory, so that they stay in a
    /// memtable and in the WAL in use. It does so for those of `keys` whose newest entry is a value
    /// up to `stored`. No other writer runs meanwhile, so no newer entry is hidden.
    ///
    /// Writes nothing if a client demands that everything up to `stored` is flushed: it would not
    /// wait for the entries that this creates. Returns the indices of the keys that were written,
    /// with their new sequence numbers.
    pub(crate) fn write_again(
        &self,
        family: &Arc<ColumnFamilyData>,
        stored: SeqNo,
        keys: &[UserKey],
    ) -> Result<Vec<(usize, SeqNo)>> {
        self.exclusive(|stage| {
            if family.is_to_store(stored) {
                return Ok(Vec::new());
            }
            self.publisher.wait_applied(stage.next_ticket);
            let view = family.pin_super_version();
            let memtables = || std::iter::once(&view.active).chain(&view.sealed);
            let mut batch = WriteBatch::with_value_bytes_max(usize::MAX);
            let mut written = Vec::with_capacity(keys.len());
            for (place, key) in keys.iter().enumerate() {
                let newest = memtables().find_map(|memtable| memtable.get(key.bytes(), SeqNo::MAX));
                // A value that a range tombstone deletes must not be written again.
                let range = memtables()
                    .filter_map(|memtable| memtable.range_over(key.bytes(), SeqNo::MAX))
                    .max();
                if let Some((seqno, ValueKind::Put, value)) = newest
                    && seqno <= stored
                    && range.is_none_or(|range| range < seqno)
                {
                    batch.put_in(family.id(), key.bytes(), value)?;
                    let written_before = written.len() as u64;
                    written.push((place, SeqNo(stage.next_seqno + written_before)));
                }
            }
            self.commit_leading(stage, &batch, Logging::Buffered)?;
            Ok(written)
        })
    }

    /// Commits a batch. The caller leads, and every earlier write is applied.
    pub(super) fn commit_leading(
        &self,
        stage: &mut Stage,
        batch: &WriteBatch,
        logging: Logging,
    ) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let (first, count) = (stage.next_seqno, u64::from(batch.count()));
        if logging != Logging::None {
            let Some(wal) = stage.wal.as_mut() else {
                return Err(Error::InvalidArgument("the database has no WAL to write to".into()));
            };
            wal.append(SeqNo(first), batch.count(), std::iter::once(batch.data()))?;
        }
        if self.conflicts.is_on() {
            let mut touched = Touched::default();
            touched.of(&Payload::Batch(batch));
            self.conflicts.note(Some(&touched), SeqNo(first + count - 1));
        }
        let assignment = Assignment {
            first_seqno: first,
            ticket: stage.next_ticket,
            active: Some(stage.active.clone()),
            log: None,
        };
        stage.next_seqno += count;
        stage.next_ticket += 1;
        let applied = self.apply(&Payload::Batch(batch), &assignment);
        self.publisher.publish(assignment.ticket, first + count - 1, true);
        applied
    }

    /// Takes up the next WAL if it exists and no memtable holds anything. Then the WAL in use holds
    /// log data at most, and is not needed any more. Returns true if it did.
    pub(crate) fn leave_idle_wal(&self) -> bool {
        self.exclusive(|stage| {
            self.publisher.wait_applied(stage.next_ticket);
            let before = stage.wal_number;
            if stage.active.members.iter().any(|(_, _, memtable)| !memtable.is_empty()) {
                return false;
            }
            self.take_up_next_wal(stage);
            for (_, family, _) in &stage.active.members {
                family.set_active_log(stage.wal_number);
            }
            stage.wal_number != before
        })
    }

    /// Calls `install` while every earlier write is applied and no later one, if `may` returns
    /// true. `install` receives the first of `count` sequence numbers, which become visible
    /// afterwards. Returns `None` if `may` returns false.
    pub(crate) fn between_groups<R>(
        &self,
        count: u64,
        may: impl FnOnce() -> bool,
        install: impl FnOnce(SeqNo) -> Result<R>,
    ) -> Result<Option<R>> {
        self.exclusive(|stage| {
            self.publisher.wait_applied(stage.next_ticket);
            if !may() {
                return Ok(None);
            }
            let (first, ticket) = (stage.next_seqno, stage.next_ticket);
            let installed = install(SeqNo(first));
            // Used up even if `install` failed, because an edit with these numbers may be durable.
            stage.next_seqno += count;
            stage.next_ticket += 1;
            self.conflicts.note_ingested(SeqNo(first + count - 1));
            self.publisher.publish(ticket, first + count - 1, false);
            installed.map(Some)
        })
    }
}
