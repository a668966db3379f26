//! One limit for the memtables of several databases: it is kept, nobody waits for ever, and what
//! was counted is given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sateen::metrics::StallCause;
use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs};
use sateen::{
    ColumnFamilyOptions, Db, Error, Options, ReadOptions, SharedBlockCache, WriteBufferManager,
    WriteOptions,
};

use crate::support::common::assert_sound;

const LIMIT: u64 = 8 << 20;
const VALUE: usize = 1000;

fn options(manager: &WriteBufferManager, threads: u32) -> Options {
    let manager = Some(manager.clone());
    Options { background_threads: threads, write_buffer_manager: manager, ..Options::default() }
}

fn open(manager: &WriteBufferManager, threads: u32) -> Db {
    Db::open_with(Arc::new(MemVfs::new()), "/db", options(manager, threads), &[]).unwrap()
}

fn fill(db: &Db, range: std::ops::Range<u32>) {
    range.for_each(|n| db.put(n.to_be_bytes(), [7; VALUE]).unwrap());
}

fn holds(db: &Db, entries: u32) {
    let mut iter = db.cursor(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    (0..entries).for_each(|n| {
        assert_eq!(iter.key(), n.to_be_bytes());
        iter.next();
    });
    assert!(!iter.valid());
    iter.status().unwrap();
}

fn stalls(db: &Db) -> u64 {
    let of = |stall: &&sateen::metrics::StallTotals| stall.cause == StallCause::WriteBuffers;
    db.metrics().stalls.iter().find(of).unwrap().waits_ns.count()
}

#[test]
fn the_largest_memtable_is_stored_early_whoevers_it_is() {
    let manager = WriteBufferManager::new(LIMIT);
    let (idle, busy) = (open(&manager, 1), open(&manager, 1));
    let other = busy.create_column_family("other", ColumnFamilyOptions::default()).unwrap();
    fill(&idle, 0..5000);
    other.put("key", "value").unwrap();
    let used = manager.memory_bytes();
    assert!(used > 5_000_000 && used == manager.mutable_bytes(), "{used}");
    let most = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(manager.mutable_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        fill(&busy, 0..60_000);
        over.store(true, Ordering::Relaxed);
    });
    let most = most.into_inner();
    // Who is told to store may be late, as others write on; without a limit it would be 60 MB.
    assert!(most <= 2 * LIMIT, "{most} bytes take writes");
    let flushes = |db: &Db| db.metrics().flushes.durations_ns.count();
    assert!(flushes(&idle) >= 1, "what nobody writes to any more was the largest");
    // 60 MB in memtables of 8 MB or less, although each might have 64 MiB.
    assert!((4..200).contains(&flushes(&busy)), "{}", flushes(&busy));
    for (db, entries) in [(&idle, 5000), (&busy, 60_000)] {
        assert_eq!(stalls(db), 0);
        holds(db, entries);
        assert_sound(db);
    }
    idle.close().unwrap();
    busy.close().unwrap();
    assert_eq!((manager.memory_bytes(), manager.mutable_bytes()), (0, 0), "given back");
}

#[test]
fn memory_is_given_back_when_memtables_are_stored() {
    let cache = SharedBlockCache::new(32 << 20);
    let manager = WriteBufferManager::with_cache(0, &cache);
    let options = Options {
        shared_block_cache: Some(cache.clone()),
        level0_cache_percent: 0,
        ..options(&manager, 0)
    };
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
    fill(&db, 0..1000);
    let used = manager.memory_bytes();
    let charged = manager.charged_bytes();
    assert!(charged >= used && charged < used + (256 << 10), "{charged} of {used}");
    assert_eq!(cache.usage_bytes(), charged);
    let mut iter = db.cursor(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    db.flush().unwrap();
    assert_eq!((manager.memory_bytes(), manager.mutable_bytes()), (used, 0), "a reader holds it");
    drop(iter);
    assert_eq!((manager.memory_bytes(), manager.charged_bytes()), (0, 0));
    // What memtables take blocks cannot have.
    (0..1000_u32).for_each(|n| assert!(db.get(n.to_be_bytes()).unwrap().is_some()));
    let blocks = cache.usage_bytes();
    assert!(blocks > 500_000, "{blocks}");
    cache.set_capacity(2 << 20);
    (0..4).for_each(|n| db.put([n; 8], vec![n; 600_000]).unwrap());
    assert!(manager.charged_bytes() > 2 << 20);
    assert_eq!(cache.usage_bytes(), manager.charged_bytes(), "no block is left");
    db.close().unwrap();
    assert_eq!(manager.charged_bytes(), 0);
    assert_eq!(cache.usage_bytes(), 0);
}

#[test]
fn a_dropped_column_family_makes_nobody_store_early() {
    let manager = WriteBufferManager::new(LIMIT);
    let db = open(&manager, 1);
    let other = db.create_column_family("other", ColumnFamilyOptions::default()).unwrap();
    (0..5000_u32).for_each(|n| other.put(n.to_be_bytes(), [7; VALUE]).unwrap());
    let used = manager.memory_bytes();
    assert!(used > LIMIT / 2 && used == manager.mutable_bytes(), "{used}");
    db.drop_column_family(&other).unwrap();
    // The handle keeps the memory, which no flush can free.
    assert_eq!(manager.memory_bytes(), used);
    assert!(manager.mutable_bytes() < LIMIT / 2, "{}", manager.mutable_bytes());
    fill(&db, 0..1500);
    assert_eq!(db.metrics().flushes.count, 0);
    drop(other);
    assert!(manager.memory_bytes() < LIMIT / 2, "{}", manager.memory_bytes());
    assert_sound(&db);
    db.close().unwrap();
    assert_eq!((manager.memory_bytes(), manager.mutable_bytes()), (0, 0));
}

#[test]
fn an_option_limits_one_database() {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.set("db_write_buffer_size", "2MiB").unwrap();
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
    let family = db.create_column_family("large", ColumnFamilyOptions::default()).unwrap();
    (0..1000_u32).for_each(|n| {
        family.put(n.to_be_bytes(), [7; VALUE]).unwrap();
    });
    fill(&db, 0..400);
    db.wait_idle().unwrap();
    let stored = db.live_tables();
    assert!(!stored.is_empty());
    let of_large = |table: &sateen::LiveTable| table.column_family == "large";
    assert!(stored.iter().all(of_large), "the larger of the two: {stored:?}");
}

#[test]
fn writers_wait_for_memory_and_no_longer() {
    for threads in [0, 1] {
        let manager = WriteBufferManager::new(1 << 20);
        manager.set_allow_stall(true);
        let (one, two) = (open(&manager, 1), open(&manager, threads));
        fill(&one, 0..900);
        fill(&two, 0..10_000);
        holds(&two, 10_000);
        assert!(manager.memory_bytes() < 2 << 20, "{}", manager.memory_bytes());
        if threads > 0 {
            assert!(stalls(&two) > 0);
        }
        two.close().unwrap();
        holds(&one, 900);
    }
}

/// A database that holds more than is allowed, and whose flushes have `fault`; whoever writes may
/// wait from now on.
fn hog(manager: &WriteBufferManager, fault: Fault) -> (FaultVfs, Db) {
    let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
    let db = Db::open_with(Arc::new(vfs.clone()), "/db", options(manager, 1), &[]).unwrap();
    vfs.add(FaultRule::new(fault).class(IoClass::Flush));
    manager.set_limit_bytes(LIMIT);
    fill(&db, 0..1200);
    manager.set_limit_bytes(1 << 20);
    manager.set_allow_stall(true);
    (vfs, db)
}

/// Runs `act` while a writer of `db` waits. Returns how long it has waited.
fn while_waiting(db: &Db, act: impl FnOnce()) -> Duration {
    std::thread::scope(|scope| {
        let begun = Instant::now();
        let writer = scope.spawn(|| db.put("waits", "value"));
        while db.metrics().stalls.iter().all(|stall| stall.waiting == 0) {
            assert!(!writer.is_finished(), "it did not wait");
            std::thread::yield_now();
        }
        act();
        writer.join().unwrap().unwrap();
        begun.elapsed()
    })
}

const SHORT: Duration = Duration::from_millis(900);

#[test]
fn a_wait_ends_when_the_limit_rises_or_is_left() {
    let manager = WriteBufferManager::new(LIMIT);
    let (vfs, hog) = hog(&manager, Fault::Hang);
    let other = open(&manager, 1);
    assert!(while_waiting(&other, || manager.set_limit_bytes(LIMIT)) < SHORT);
    manager.set_limit_bytes(1 << 20);
    assert!(while_waiting(&other, || manager.set_allow_stall(false)) < SHORT);
    manager.set_allow_stall(true);
    // Nothing is freed for a while: it goes on.
    let waited = while_waiting(&other, || ());
    assert!(waited >= SHORT && waited < Duration::from_secs(20), "{waited:?}");
    assert_eq!(stalls(&other), 3);
    assert!(while_waiting(&other, || vfs.clear()) < SHORT);
    hog.close().unwrap();
}

#[test]
fn a_wait_is_no_longer_than_a_write_allows() {
    let manager = WriteBufferManager::new(LIMIT);
    let (vfs, hog) = hog(&manager, Fault::Hang);
    let other = open(&manager, 1);
    let family = other.default_column_family();
    for write in [
        WriteOptions { no_slowdown: true, ..WriteOptions::default() },
        WriteOptions { deadline: Some(Duration::from_millis(30)), ..WriteOptions::default() },
    ] {
        let stalled = family.writing(&write).put("key", "value");
        let cause = matches!(stalled, Err(Error::WouldStall { cause: "write-buffers", .. }));
        assert!(cause, "{stalled:?}");
    }
    assert_eq!(other.get("key").unwrap(), None);
    vfs.clear();
    hog.close().unwrap();
}

#[test]
fn a_wait_ends_when_a_database_is_closed_or_fails() {
    let manager = WriteBufferManager::new(LIMIT);
    let (_vfs, failing) = hog(&manager, Fault::Io);
    let other = open(&manager, 1);
    let begun = Instant::now();
    (0..5).for_each(|_| other.put("key", "value").unwrap());
    assert!(begun.elapsed() < SHORT, "what has failed gives nothing back");
    // What it has counts no more, although a reader holds it.
    let mut iter = failing.cursor(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    let _failed = failing.close();
    assert!(manager.memory_bytes() < 1 << 20, "{}", manager.memory_bytes());
    assert_eq!(iter.value().len(), VALUE);
}
