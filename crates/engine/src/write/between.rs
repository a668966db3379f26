//! What is done between two groups of writes, by a leader of its own.

use std::sync::Arc;

use sateen_control::{SeqNo, UserKey, ValueKind};
use sateen_store::base::error::{Error, Result};

use super::batch::WriteBatch;
use super::{Assignment, CommitPipeline, Payload, Stage};
use crate::tree::families::ColumnFamilyData;

impl CommitPipeline {
    /// Writes those of `keys` of `family` again of which the newest entry is a value no newer than
    /// `stored`, which is about to leave memory: it stays there, and in the log in use. Nobody
    /// writes meanwhile, so that nothing newer is hidden. None, if somebody wants all up to
    /// `stored` in tables by now: who sealed the memtable for that waits for no later one. Returns
    /// the keys, by their place, and the sequence numbers that they have now.
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
                // Nobody shall see again what was deleted with its range.
                let range = memtables()
                    .filter_map(|memtable| memtable.range_over(key.bytes(), SeqNo::MAX))
                    .max();
                if let Some((seqno, ValueKind::Put, value)) = newest
                    && seqno <= stored
                    && range.is_none_or(|range| range < seqno)
                {
                    batch.put_cf_id(family.id(), key.bytes(), value)?;
                    let written_before = written.len() as u64;
                    written.push((place, SeqNo(stage.next_seqno + written_before)));
                }
            }
            self.commit_leading(stage, &batch)?;
            Ok(written)
        })
    }

    /// Commits a batch to the log. The caller leads, and all that was ordered before is applied.
    fn commit_leading(&self, stage: &mut Stage, batch: &WriteBatch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let (first, count) = (stage.next_seqno, u64::from(batch.count()));
        let Some(wal) = stage.wal.as_mut() else {
            return Err(Error::InvalidArgument("the database has no log to write to".into()));
        };
        wal.append(SeqNo(first), batch.count(), std::iter::once(batch.data()))?;
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

    /// Takes up the next log if it is there and no memtable holds anything, so that nothing in the
    /// log in use is needed any more: it has log data alone. Returns whether it did.
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

    /// With every earlier write applied and none after it: if `may`, does `install` with the first
    /// of `count` sequence numbers, which are visible afterwards.
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
            // Even if that failed: an edit that may be durable names them.
            stage.next_seqno += count;
            stage.next_ticket += 1;
            self.publisher.publish(ticket, first + count - 1, false);
            installed.map(Some)
        })
    }
}
