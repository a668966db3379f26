//! Commits that depend on what others write: those of optimistic transactions.
//!
//! [`CommitPipeline::commit_validated`]:
//!
//! 1. It validates outside the queue, as of the newest visible sequence number.
//! 2. It joins the queue with a [`Condition`]. The leader leaves it out of the group if a bucket of
//!    its keys was noted since (`WriterSlot::take_part`).
//! 3. If it was left out, it begins again, at most [`ROUNDS`] times.
//! 4. If it was refused, it waits until every write that is numbered is visible. The entry that it
//!    met may not be visible yet, and another attempt would be refused for the same one.
//! 5. After these rounds it leads alone, and validates once every earlier write is applied. So a
//!    busy bucket cannot starve it. Searches hold up other writers only here.
//!
//! What must stay true: between validation and numbering no write to a tracked key is numbered.

use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_store::base::error::Result;
use sateen_store::base::locks::lock_timed;

use super::conflicts::{Bucket, Condition, Conflicts};
use super::{CommitPipeline, Logging, Payload};
use crate::batch::WriteBatch;

/// How often a transaction validates outside the queue.
const ROUNDS: usize = 2;

impl CommitPipeline {
    /// Returns when keys were written last.
    pub(crate) fn conflicts(&self) -> &Conflicts {
        &self.conflicts
    }

    /// Has writes note their keys from now on.
    pub(crate) fn note_conflicts(&self) {
        if !self.conflicts.is_on() {
            self.exclusive(|stage| self.conflicts.turn_on(stage.last_seqno()));
        }
    }

    /// Commits `batch` if `validate` succeeds and no key of `buckets` is written in between.
    /// `validate` fails if a key was written since it was tracked, as far as the memtables show.
    pub(crate) fn commit_validated(
        &self,
        batch: &WriteBatch,
        logging: Logging,
        buckets: &[Bucket],
        validate: impl Fn() -> Result<()>,
    ) -> Result<SeqNo> {
        for _ in 0..ROUNDS {
            let checked = self.visible_seqno();
            if let Err(error) = validate() {
                let numbered = lock_timed(&self.stage).next_ticket;
                self.publisher.wait_applied(numbered);
                return Err(error);
            }
            let condition = Condition { buckets: buckets.to_vec(), checked };
            let condition = Some(Arc::new(condition));
            if let Some(last) = self.commit_if(&Payload::Batch(batch), logging, condition)? {
                return Ok(last);
            }
        }
        self.commit_validated_alone(batch, logging, validate)
    }

    /// Commits `batch` as the leader of an empty group, if `validate` succeeds there.
    fn commit_validated_alone(
        &self,
        batch: &WriteBatch,
        logging: Logging,
        validate: impl Fn() -> Result<()>,
    ) -> Result<SeqNo> {
        let (last, log) = self.exclusive(|stage| {
            self.queue.check()?;
            self.publisher.wait_applied(stage.next_ticket);
            validate()?;
            if self.takes_switch() {
                self.seal_full(stage);
            }
            self.commit_leading(stage, batch, logging)?;
            if self.tracing.is_on() {
                self.trace(stage, batch.data());
            }
            Ok((stage.last_seqno(), stage.sync_handle()))
        })?;
        if logging == Logging::Synced
            && let Some(log) = log
        {
            log.sync()?;
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use sateen_control::ColumnFamilyId;
    use sateen_store::base::error::Error;
    use sateen_store::vfs::MemVfs;

    use super::*;
    use crate::write::conflicts::bucket_of;
    use crate::{Db, Options};

    fn open() -> Db {
        let options = Options { background_threads: 0, ..Options::default() };
        let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
        db.core().writes.pipeline.note_conflicts();
        db
    }

    fn batch(key: &str) -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.put_in(ColumnFamilyId(0), key.as_bytes(), b"mine").unwrap();
        batch
    }

    #[test]
    fn a_write_between_validation_and_numbering_is_noticed() {
        for logging in [Logging::None, Logging::Buffered, Logging::Synced] {
            let db = open();
            let pipeline = &db.core().writes.pipeline;
            let since = pipeline.visible_seqno();
            let calls = Cell::new(0);
            let validate = || {
                let family = &db.core().tree.default_family;
                let newest = family.super_version().newest_written(b"key");
                if newest.is_some_and(|newest| newest > since) {
                    return Err(Error::Busy { column_family: String::new(), key: b"key".to_vec() });
                }
                // Everything is well so far.
                db.put("key", "theirs").unwrap();
                calls.set(calls.get() + 1);
                Ok(())
            };
            let buckets = [bucket_of(b"key")];
            let done = pipeline.commit_validated(&batch("key"), logging, &buckets, validate);
            assert!(matches!(done, Err(Error::Busy { .. })), "{done:?}");
            assert_eq!(calls.get(), 1);
            assert_eq!(db.get("key").unwrap().unwrap(), b"theirs");
        }
    }

    #[test]
    fn a_busy_bucket_holds_no_transaction_up_for_ever() {
        let db = open();
        let pipeline = &db.core().writes.pipeline;
        let bucket = bucket_of(b"key");
        let mut names = (0..).map(|number| format!("other{number}"));
        let other = names.find(|name| bucket_of(name.as_bytes()) == bucket).unwrap();
        let calls = Cell::new(0);
        let validate = || {
            // The last call is the leader's, which other writers wait for.
            if calls.replace(calls.get() + 1) < ROUNDS {
                db.put(&other, "").unwrap();
            }
            Ok(())
        };
        pipeline.commit_validated(&batch("key"), Logging::Synced, &[bucket], validate).unwrap();
        assert_eq!(calls.get(), ROUNDS + 1);
        assert_eq!(db.get("key").unwrap().unwrap(), b"mine");
    }

    /// Two transactions of one group that want the same key: the leader sees the first when it
    /// numbers the second.
    #[test]
    fn a_group_has_one_writer_of_a_tracked_key() {
        let db = open();
        let pipeline = &db.core().writes.pipeline;
        let (ready, since) = (std::sync::Barrier::new(5), pipeline.visible_seqno());
        let committed = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    ready.wait();
                    let validate = || {
                        let family = &db.core().tree.default_family;
                        let newest = family.super_version().newest_written(b"key");
                        match newest.is_none_or(|newest| newest <= since) {
                            true => Ok(()),
                            false => Err(Error::Closed),
                        }
                    };
                    let buckets = [bucket_of(b"key")];
                    let logging = Logging::Buffered;
                    let batch = batch("key");
                    if pipeline.commit_validated(&batch, logging, &buckets, validate).is_ok() {
                        committed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
            // All of them wait for this leader, with their validation done or not.
            pipeline.exclusive(|_| {
                ready.wait();
                for _ in 0..2000 {
                    std::thread::yield_now();
                }
            });
        });
        assert_eq!(committed.into_inner(), 1);
    }
}
