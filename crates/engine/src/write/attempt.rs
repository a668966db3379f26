//! A commit that waits for nothing, or is not done.
//!
//! 1. The caller leads, unless another writer does.
//! 2. It looks at what the commit would wait for. If there is anything, it gives leadership back.
//! 3. Otherwise it orders its write alone, applies and publishes it.
//!
//! What must stay true: between the look and the end of the write nothing appears that it waits
//! for. Only a leader orders writes, so no earlier ticket can be open.

use sateen_control::SeqNo;
use sateen_store::base::error::Result;
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::atomic::Ordering;

use super::{CommitPipeline, Logging, Payload, Stage, queue};

impl CommitPipeline {
    /// Commits a write of `bytes` key and value bytes that is not to be synced, if nothing has to
    /// be waited for: every earlier write is published, no memtable is to be sealed, and the record
    /// only goes to the page cache. Otherwise it does nothing and returns `None`.
    pub(crate) fn try_commit(
        &self,
        payload: &Payload<'_>,
        bytes: u64,
        logging: Logging,
    ) -> Result<Option<SeqNo>> {
        debug_assert!(logging != Logging::Synced, "a sync waits");
        let assignment = queue::with_slot(|slot| {
            let Some(_leading) = self.queue.try_lead() else { return Ok(None) };
            self.queue.check()?;
            let mut stage = lock_timed(&self.stage);
            if self.would_wait(&stage, bytes) {
                return Ok(None);
            }
            slot.prepare(payload, logging, logging == Logging::None && self.tracing.is_on());
            if self.conflicts.is_on() {
                slot.prepare_keys(payload, None);
                self.order(&mut stage, slot, &[])?;
                return Ok(slot.take_assignment());
            }
            self.order_alone(&mut stage, slot).map(Some)
        })?;
        assignment.map(|assignment| self.finish(payload, &assignment, logging)).transpose()
    }

    /// Returns true if the leader would wait before a write of `bytes` bytes is published.
    fn would_wait(&self, stage: &Stage, bytes: u64) -> bool {
        self.switch_wanted.load(Ordering::Relaxed)
            || self.publisher.next_ticket() < stage.next_ticket
            // Write-back waits while the device has much to write.
            || stage.wal.as_ref().is_some_and(|wal| wal.starts_writeback_with(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sateen_control::{ColumnFamilyId, ValueKind};
    use sateen_store::vfs::MemVfs;

    use super::*;
    use crate::{Db, Options, WalMode, WriteOptions};

    fn open(change: impl FnOnce(&mut Options)) -> Db {
        let mut options = Options { background_threads: 0, ..Options::default() };
        change(&mut options);
        Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap()
    }

    fn tries(db: &Db, options: &WriteOptions) -> bool {
        db.writing(options).try_put("key", "value").unwrap()
    }

    #[test]
    fn a_write_that_need_not_wait_is_done_and_counted() {
        let db = open(|_| ());
        let options = WriteOptions::default();
        assert!(tries(&db, &options));
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        assert!(db.writing(&options).try_delete("key").unwrap());
        assert_eq!(db.get("key").unwrap(), None);
        let counts = db.metrics().counts;
        assert_eq!((counts.writes, counts.written_entries), (2, 2));
        assert!(tries(&db, &WriteOptions { disable_wal: true, ..WriteOptions::default() }));
        // Transactions keep track of what others write.
        let mut transaction = db.transaction();
        transaction.get_for_update("key").unwrap();
        assert!(tries(&db, &options));
        assert!(transaction.commit().is_err(), "the key was written meanwhile");
        db.close().unwrap();
        assert!(db.writing(&options).try_put("key", "value").is_err());
    }

    #[test]
    fn what_has_to_wait_is_not_done() {
        let untouched = |db: &Db| {
            assert_eq!(db.get("key").unwrap(), None);
            assert_eq!(db.metrics().counts.writes, 0);
        };
        let db = open(|_| ());
        assert!(!tries(&db, &WriteOptions::sync()));
        untouched(&db);
        let pipeline = &db.core().writes.pipeline;
        pipeline.exclusive(|_| assert!(!tries(&db, &WriteOptions::default()), "another one leads"));
        untouched(&db);
        pipeline.want_switch();
        assert!(!tries(&db, &WriteOptions::default()), "a memtable may be full");
        untouched(&db);
        // The write that waits has looked at the memtables.
        db.put("other", "value").unwrap();
        assert!(tries(&db, &WriteOptions::default()));

        let db = open(|options| options.wal = WalMode::SyncEachWrite);
        assert!(!tries(&db, &WriteOptions::default()));
        untouched(&db);

        let db = open(|options| options.wal_bytes_per_sync = 16 << 10);
        let writing = db.writing(WriteOptions::default());
        let tried = (0..100).filter(|_| writing.try_put("other", [7; 1000]).unwrap()).count();
        assert!((5..20).contains(&tried), "write-back after {tried} kB");
    }

    #[test]
    fn an_earlier_write_that_is_not_published_is_waited_for_by_nobody() {
        let db = open(|_| ());
        let pipeline = &db.core().writes.pipeline;
        let ticket = pipeline.exclusive(|stage| {
            stage.next_ticket += 1;
            stage.next_seqno += 1;
            (stage.next_ticket - 1, stage.next_seqno - 1)
        });
        assert!(!tries(&db, &WriteOptions::default()));
        pipeline.publisher.publish(ticket.0, ticket.1, false);
        assert!(tries(&db, &WriteOptions::default()));
    }

    #[test]
    fn tries_of_several_threads_beside_writes_that_wait_lose_nothing() {
        const THREADS: u32 = 4;
        const KEYS: u32 = 3000;
        let vfs = Arc::new(MemVfs::new());
        let mut options = Options::default();
        options.column_family.memtable_bytes = 64 << 10;
        let db = Db::open_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
        let key = |thread: u32, number: u32| format!("{thread} {number}");
        let write = &|thread| {
            let writing = db.writing(WriteOptions::default());
            let mut tried = 0;
            for number in 0..KEYS {
                let key = key(thread, number);
                if number % 3 > 0 && writing.try_put(&key, "value").unwrap() {
                    tried += 1;
                } else {
                    writing.put(&key, "value").unwrap();
                }
                assert!(db.contains_key(&key).unwrap(), "it is visible at once");
            }
            tried
        };
        let tried: u32 = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS).map(|it| scope.spawn(move || write(it))).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        assert!(tried > 0 && db.metrics().counts.writes == u64::from(THREADS * KEYS));
        db.close().unwrap();
        let db = Db::open_with(vfs, "/db", options, &[]).unwrap();
        for (thread, number) in (0..THREADS).flat_map(|it| (0..KEYS).map(move |n| (it, n))) {
            assert!(db.contains_key(key(thread, number)).unwrap(), "{thread} {number}");
        }
    }

    #[test]
    fn a_family_that_was_dropped_gets_nothing() {
        let db = open(|_| ());
        let family = db.create_column_family("other", Default::default()).unwrap();
        db.drop_column_family(&family).unwrap();
        let options = WriteOptions::default();
        assert!(family.writing(&options).try_put("key", "value").is_err());
        let ignoring = WriteOptions { ignore_missing_column_families: true, ..options };
        assert!(family.writing(&ignoring).try_put("key", "value").unwrap());
        // One that is dropped between the look and the commit.
        let (id, kind) = (ColumnFamilyId(77), ValueKind::Put);
        let late = Payload::Single { family: id, kind, key: b"key", value: b"value" };
        let tried = db.core().writes.pipeline.try_commit(&late, 8, Logging::Buffered);
        assert!(tried.is_err());
        db.put("key", "value").unwrap();
    }
}
