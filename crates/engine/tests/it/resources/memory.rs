//! The memory budget holds, by the store's own account, whatever clients do, and however little of
//! it the device takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sateen::metrics::Metrics;
use sateen::vfs::{Fault, FaultRule, FaultVfs, MemVfs, VfsOperation};
use sateen::{ColumnFamily, ColumnFamilyOptions, Db, Options, ReadOptions, WalMode};

use crate::support::common::{Random, assert_sound};

const BUDGET: u64 = 64 << 20;
const FAMILIES: usize = 4;
const WRITERS: u64 = 2;
/// Together several times the budget.
const WRITES_EACH: u64 = 120_000;
const KEYS: u64 = 200_000;

fn key(random: &mut Random) -> [u8; 8] {
    random.below(KEYS).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn write(families: &[ColumnFamily], seed: u64) {
    let mut random = Random::new(seed);
    let value = [7; 1000];
    for _ in 0..WRITES_EACH {
        let family = &families[random.below(FAMILIES as u64) as usize];
        let length = 200 + random.below(800) as usize;
        let key = key(&mut random);
        family.put(key, &value[..length]).unwrap();
    }
}

/// Point reads, and scans that hold blocks for a while.
fn read(families: &[ColumnFamily], seed: u64, over: &AtomicBool) {
    let mut random = Random::new(seed);
    while !over.load(Ordering::Relaxed) {
        let family = &families[random.below(FAMILIES as u64) as usize];
        for _ in 0..100 {
            family.get(key(&mut random)).unwrap();
        }
        let mut iter = family.cursor(&ReadOptions::default()).unwrap();
        iter.seek(key(&mut random));
        for _ in 0..200 {
            if iter.valid() {
                iter.next();
            }
        }
        iter.status().unwrap();
    }
}

#[test]
fn the_memory_budget_holds_under_the_load_of_several_families() {
    let seed = 20_261_122;
    println!("seed {seed}");
    let place = tempfile::tempdir().unwrap();
    let mut options = Options { memory_budget: Some(BUDGET), ..Options::default() };
    options.column_family.memtable_bytes = 16 << 20;
    let family_options: ColumnFamilyOptions = options.column_family.clone();
    let db = Db::open(place.path(), options).unwrap();
    let mut families = vec![db.default_column_family()];
    for number in 1..FAMILIES {
        let name = format!("family{number}");
        families.push(db.create_column_family(&name, family_options.clone()).unwrap());
    }
    let over = AtomicBool::new(false);
    let most = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (db, families, over, most) = (&db, &families, &over, &most);
        scope.spawn(move || read(families, seed, over));
        scope.spawn(move || {
            let mut owners = Default::default();
            while !over.load(Ordering::Relaxed) {
                let memory = db.metrics().memory;
                assert_eq!(memory.budget, BUDGET);
                if most.fetch_max(memory.total(), Ordering::Relaxed) < memory.total() {
                    owners = memory;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            println!("at most {} bytes: {:?}", owners.total(), owners.owners());
        });
        let writers = (1..=WRITERS).map(|n| scope.spawn(move || write(families, seed + n)));
        let writers: Vec<_> = writers.collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        over.store(true, Ordering::Relaxed);
    });
    let most = most.into_inner();
    assert!(most > BUDGET / 4, "the load was too small to say anything: {most}");
    assert!(most <= BUDGET + BUDGET / 10, "{most} bytes of a budget of {BUDGET}");
    assert_sound(&db);
    db.close().unwrap();
}

const OVERLOAD_BUDGET: u64 = 32 << 20;
const OVERLOAD_WRITES: u64 = 30_000;

fn overload_key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// Small sizes of a profile, and a budget for them.
fn overloaded(profile: &str) -> Options {
    let mut options =
        Options { memory_budget: Some(OVERLOAD_BUDGET), ..Options::profile(profile).unwrap() };
    // A log would slow writers down before admission has to.
    options.wal = WalMode::Off;
    let family = &mut options.column_family;
    family.memtable_bytes = 1 << 20;
    family.table_bytes = 1 << 20;
    family.level_base_bytes = 4 << 20;
    family.level0_slowdown = 6;
    family.level0_stop = 10;
    options
}

/// Writers want several times what the device takes. `look` looks at the metrics meanwhile, all the
/// time; those of the end are returned. The budget holds, and nothing is lost.
fn overload(options: Options, look: impl Fn(&Metrics) + Sync) -> Metrics {
    const DEVICE: u64 = 20_000_000;
    let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
    let db = Db::open_with(Arc::new(vfs.clone()), "/db", options, &[]).unwrap();
    for operation in [VfsOperation::Read, VfsOperation::Write] {
        vfs.add(FaultRule::new(Fault::Bandwidth(DEVICE)).on(operation));
    }
    let over = AtomicBool::new(false);
    let looks = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (db, over, looks, look) = (&db, &over, &looks, &look);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let metrics = db.metrics();
                let memory = metrics.memory;
                let bound = OVERLOAD_BUDGET + OVERLOAD_BUDGET / 10;
                assert!(memory.total() <= bound, "{:?}", memory.owners());
                look(&metrics);
                looks.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let writer = |first: u64| {
            move || {
                for n in (first..OVERLOAD_WRITES).step_by(2) {
                    // Incompressible, and in no order.
                    let mut random = Random::new(n);
                    let words = (0..128).flat_map(|_| random.next().to_le_bytes());
                    let value: Vec<u8> = words.collect();
                    db.put(overload_key(n), value).unwrap();
                }
            }
        };
        let writers = [scope.spawn(writer(0)), scope.spawn(writer(1))];
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        over.store(true, Ordering::Relaxed);
    });
    let metrics = db.metrics();
    let waits: u64 = metrics.stalls.iter().map(|stall| stall.waits_ns.count()).sum();
    assert!(waits > 0 && looks.into_inner() > 100, "the device was fast enough: {waits} waits");
    vfs.clear();
    for n in 0..OVERLOAD_WRITES {
        let value = db.get(overload_key(n)).unwrap().unwrap();
        assert_eq!(value[..8], Random::new(n).next().to_le_bytes());
    }
    assert_sound(&db);
    db.close().unwrap();
    metrics
}

#[test]
fn in_overload_memory_and_level0_are_bounded_and_nothing_is_lost() {
    let options = overloaded("silk");
    let level0_stop = u64::from(options.column_family.level0_stop);
    overload(options, |metrics| {
        // The flush that was under way when they were stopped may still come.
        assert!(metrics.column_families[0].levels[0].runs <= level0_stop + 1);
    });
}

/// With memtables that grow up to what the budget leaves them, and with more and fewer jobs.
#[test]
fn what_is_adjusted_in_overload_stays_within_the_budget() {
    let mut options = overloaded("adoc");
    options.tuner_interval = Duration::from_millis(50);
    options.tuner_hold_time = Duration::ZERO;
    options.tuner_slots_max = 8;
    let metrics = overload(options, |metrics| {
        // Two that wait and one that is written have half of the budget.
        assert!(metrics.column_families[0].memtable_limit <= OVERLOAD_BUDGET / 2 / 3);
        let slots = metrics.scheduler.flush_slots + metrics.scheduler.compaction_slots;
        assert!((2..=8).contains(&slots), "{slots}");
        assert!(metrics.running_compactions <= 8);
    });
    let adjusted = metrics.scheduler.adjustments;
    assert!(adjusted.iter().sum::<u64>() > 0, "nothing overflowed");
}

/// Iterators that stay hold memtables that were stored long ago. The account has them, and the
/// cache makes room for them.
#[test]
fn memtables_that_iterators_hold_count_against_the_budget() {
    const KEYS: u64 = 2000;
    let mut options = Options { memory_budget: Some(OVERLOAD_BUDGET), ..Options::default() };
    options.block_cache_bytes = OVERLOAD_BUDGET;
    options.column_family.memtable_bytes = 1 << 20;
    let vfs = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs, "/db", options, &[]).unwrap();
    let value = |n: u64| -> Vec<u8> {
        let mut random = Random::new(n);
        (0..128).flat_map(|_| random.next().to_le_bytes()).collect()
    };
    for n in 0..30_000 {
        db.put(overload_key(n), value(n)).unwrap();
    }
    db.flush_all().unwrap();
    let read_everything = || {
        let mut iter = db.cursor(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        while iter.valid() {
            iter.next();
        }
        iter.status().unwrap();
    };
    read_everything();
    let before = db.metrics().memory;
    assert!(before.block_cache > OVERLOAD_BUDGET / 2, "{before:?}");
    let mut iterators = Vec::new();
    for round in 1..=6 {
        for n in 0..KEYS {
            if n % 100 == 0 {
                let mut iter = db.cursor(&ReadOptions::default()).unwrap();
                iter.seek(overload_key(n));
                iterators.push((iter, n, n + (round - 1) * KEYS));
            }
            db.put(overload_key(n), value(n + round * KEYS)).unwrap();
        }
        db.flush_all().unwrap();
    }
    db.wait_idle().unwrap();
    read_everything();
    let held = db.metrics().memory;
    assert!(held.immutable_memtables > 5 * KEYS * 1024, "{:?}", held.owners());
    let bound = OVERLOAD_BUDGET + OVERLOAD_BUDGET / 10;
    let patience = std::time::Instant::now() + Duration::from_secs(60);
    while db.metrics().memory.total() > bound {
        assert!(std::time::Instant::now() < patience, "{:?}", db.metrics().memory.owners());
        std::thread::sleep(Duration::from_millis(5));
    }
    for (iter, key, seed) in &mut iterators {
        iter.seek(overload_key(*key));
        assert_eq!(iter.value(), value(*seed), "key {key}");
    }
    drop(iterators);
    while db.metrics().memory.immutable_memtables > held.immutable_memtables / 2 {
        assert!(std::time::Instant::now() < patience, "{:?}", db.metrics().memory.owners());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_sound(&db);
}
