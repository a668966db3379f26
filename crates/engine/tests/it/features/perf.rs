//! What a thread counts of its own operations is what they did.

use std::sync::Arc;

use sateen::vfs::MemVfs;
use sateen::{
    Db, Options, PerfContext, PerfLevel, PerfMetric, ReadOptions, WriteBatch, WriteOptions,
};

use crate::support::common::appending;

const KEYS: u32 = 100;

fn open() -> Db {
    // What is read is read from files.
    let mut options =
        Options { background_threads: 0, level0_cache_percent: 0, ..Options::default() };
    options.column_family.merge_operator = Some(appending());
    Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap()
}

fn fill(db: &Db) {
    (0..KEYS).for_each(|n| db.put(n.to_be_bytes(), [7; 10]).unwrap());
}

/// What `act` did, as far as `level` counts it.
fn counted(level: PerfLevel, act: impl FnOnce()) -> PerfContext {
    level.set();
    PerfContext::reset();
    act();
    let counted = PerfContext::of_thread();
    PerfLevel::Off.set();
    counted
}

fn scan(db: &Db, backwards: bool, options: &ReadOptions) -> u64 {
    let mut iter = db.cursor(options).unwrap();
    let mut seen = 0;
    if backwards {
        iter.seek_to_last()
    } else {
        iter.seek_to_first()
    }
    while iter.valid() {
        seen += 1;
        if backwards { iter.prev() } else { iter.next() }
    }
    iter.status().unwrap();
    seen
}

#[test]
fn point_reads_tell_where_they_looked() {
    let db = open();
    fill(&db);
    let read = || (0..KEYS).for_each(|n| assert!(db.get(n.to_be_bytes()).unwrap().is_some()));
    let did = counted(PerfLevel::Counts, read);
    assert_eq!(did.get(PerfMetric::GetFromMemtableCount), u64::from(KEYS));
    assert_eq!(did.get(PerfMetric::GetReadBytes), 10 * u64::from(KEYS));
    assert_eq!(did.get(PerfMetric::BlockReadCount), 0);
    assert_eq!(did.get(PerfMetric::GetFromMemtableTime), 0, "no time at this level");

    db.flush().unwrap();
    let did = counted(PerfLevel::Times, read);
    assert_eq!(did.get(PerfMetric::GetFromMemtableCount), 0, "it is empty");
    let (hits, reads) = (PerfMetric::BlockCacheHitCount, PerfMetric::BlockReadCount);
    assert!(did.get(reads) >= 1 && did.get(reads) < u64::from(KEYS), "{did}");
    assert!(did.get(hits) >= u64::from(KEYS) - did.get(reads), "{did}");
    assert!(did.get(PerfMetric::BlockReadByte) >= 14 * u64::from(KEYS), "{did}");
    assert_eq!(did.get(PerfMetric::BloomSstHitCount), u64::from(KEYS));
    for time in [PerfMetric::BlockReadTime, PerfMetric::GetFromOutputFilesTime] {
        assert!(did.get(time) > 0, "{}: {did}", time.name());
    }
    let did = counted(PerfLevel::Counts, || {
        (0..KEYS - 1).for_each(|n| {
            assert!(db.get([&n.to_be_bytes()[..], b"?"].concat()).unwrap().is_none())
        });
    });
    let (no, yes) = (did.get(PerfMetric::BloomSstMissCount), did.get(PerfMetric::BloomSstHitCount));
    assert!(no > yes, "{did}");
    assert_eq!(did.get(PerfMetric::GetReadBytes), 0);

    let did = counted(PerfLevel::Counts, || {
        let keys: Vec<_> = (0..KEYS).map(u32::to_be_bytes).collect();
        db.multi_get(&keys);
    });
    assert_eq!(did.get(PerfMetric::MultigetReadBytes), 10 * u64::from(KEYS));
}

#[test]
fn iterators_tell_what_they_went_past() {
    for flushed in [false, true] {
        let db = open();
        fill(&db);
        if flushed {
            db.flush().unwrap();
        }
        let half = KEYS / 2;
        (half..KEYS).for_each(|n| db.delete(n.to_be_bytes()).unwrap());
        let snapshot = db.snapshot();
        db.put(0_u32.to_be_bytes(), "newer").unwrap();
        let options = ReadOptions::at(&snapshot);
        let half = u64::from(half);
        let did = counted(PerfLevel::Counts, || assert_eq!(scan(&db, false, &options), half));
        // What the iterator stood on, and what the deletions hide.
        assert_eq!(did.get(PerfMetric::InternalKeySkippedCount), u64::from(KEYS), "{did}");
        assert_eq!(did.get(PerfMetric::InternalDeleteSkippedCount), half);
        assert_eq!(did.get(PerfMetric::InternalRecentSkippedCount), 1);
        assert_eq!(did.get(PerfMetric::IterNextCount), half);
        assert_eq!(did.get(PerfMetric::IterSeekCount), 1);
        assert_eq!(did.get(PerfMetric::IterReadBytes), 14 * half);
        let in_memory = if flushed { half + 1 } else { u64::from(KEYS) + half + 1 };
        let next = did.get(PerfMetric::NextOnMemtableCount);
        assert!(next >= in_memory && next <= in_memory + 1, "{did}");
        let did = counted(PerfLevel::Counts, || assert_eq!(scan(&db, true, &options), half));
        assert_eq!(did.get(PerfMetric::InternalDeleteSkippedCount), half, "{did}");
        assert_eq!(did.get(PerfMetric::IterPrevCount), half);
        assert!(did.get(PerfMetric::PrevOnMemtableCount) >= half);
        // What was done while nothing was counted is not told later.
        let mut iter = db.cursor(&options).unwrap();
        iter.seek_to_first();
        (1..half).for_each(|_| iter.next());
        let did = counted(PerfLevel::Counts, || iter.prev());
        assert_eq!(did.get(PerfMetric::IterPrevCount), 1);
        assert!(did.get(PerfMetric::InternalKeySkippedCount) <= 3, "{did}");
    }
}

#[test]
fn operands_are_counted_where_they_are_merged() {
    let db = open();
    db.put("key", "a").unwrap();
    (0..3).for_each(|_| db.merge("key", "b").unwrap());
    let did = counted(PerfLevel::Times, || {
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"abbb"[..]));
    });
    assert_eq!(did.get(PerfMetric::InternalMergePointLookupCount), 3);
    assert!(did.get(PerfMetric::MergeOperatorTimeNanos) > 0);
    let did = counted(PerfLevel::Counts, || assert_eq!(scan(&db, false, &Default::default()), 1));
    assert_eq!(did.get(PerfMetric::InternalMergeCount), 3);
}

#[test]
fn writes_tell_what_took_them_time() {
    let db = open();
    let write = |options: &WriteOptions| {
        let mut batch = WriteBatch::new();
        batch.put("key", [7; 1000]).unwrap();
        db.write(&batch, options).unwrap();
    };
    let did = counted(PerfLevel::Times, || write(&WriteOptions::sync()));
    for time in [PerfMetric::WriteWalTime, PerfMetric::WriteMemtableTime] {
        assert!(did.get(time) > 0, "{}: {did}", time.name());
    }
    assert_eq!(did.get(PerfMetric::WriteDelayTime), 0);
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    let did = counted(PerfLevel::Times, || write(&unlogged));
    assert_eq!(did.get(PerfMetric::WriteWalTime), 0);
    let did = counted(PerfLevel::Waits, || write(&WriteOptions::default()));
    assert_eq!(did.get(PerfMetric::WriteMemtableTime), 0, "{did}");
}
