//! The simulator agrees with the engine: with the same load, options and device, write
//! amplification and stalls differ by at most a tenth.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::sync::Arc;

use sateen::metrics::Metrics;
use sateen::vfs::{IoClass, MemVfs};
use sateen::{Compression, Db, Error, Options, WalMode, WriteOptions};
use sateen_sim::{Bandwidth, SimConfig, Simulation};
use sateen_workload::{ArrivalSpec, Rng, ValueSize};

const KEYS: u64 = 40_000;
const KEY_BYTES: u64 = 16;
const VALUE_BYTES: u64 = 1000;
const WRITES: u64 = 60_000;
/// The device's bandwidth for reads and writes together, in bytes a second.
const BANDWIDTH: u64 = 20_000_000;
const MEMTABLE: u64 = 1 << 20;
const TABLE: u64 = 1 << 20;
const BASE: u64 = 4 << 20;
const SLICE: u64 = 64 << 10;
/// The writer's time for a write.
const WRITE_NS: u64 = 20_000;
const BACKGROUND: [IoClass; 3] = [IoClass::Flush, IoClass::L0, IoClass::Deep(1)];
/// The number of runs in level 0 at which writes stop. They are not delayed before, because each
/// delayed write would count as a stall.
const LEVEL0_STOP: u32 = 12;

/// The figures that are compared.
#[derive(Debug)]
struct Outcome {
    write_amplification: f64,
    /// Stalls for each megabyte of keys and values.
    stalls: f64,
}

impl Outcome {
    fn new(written: u64, stalls: u64, user_bytes: u64) -> Outcome {
        let user_bytes = user_bytes as f64;
        Outcome {
            write_amplification: written as f64 / user_bytes,
            stalls: stalls as f64 / user_bytes * 1e6,
        }
    }
}

fn key(n: u64) -> [u8; KEY_BYTES as usize] {
    let mut key = [b'k'; KEY_BYTES as usize];
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

fn written(metrics: &Metrics) -> u64 {
    BACKGROUND.iter().map(|class| metrics.io[class.index()].totals.write_bytes).sum()
}

/// Runs the engine with one worker and one writer, which writes random keys as fast as it can. Time
/// is computed instead of waited for: a step begins when the one before it ends, and takes what the
/// device needs for its bytes.
fn engine(profile: &str) -> Outcome {
    let mut options = Options::profile(profile).unwrap();
    options.background_threads = 0;
    options.max_background_flushes = 1;
    options.max_background_compactions = 3;
    options.slice_bytes_max = SLICE;
    options.compaction_readahead_bytes = SLICE;
    options.wal = WalMode::Off;
    let family = &mut options.column_family;
    family.compression = vec![Compression::None];
    family.memtable_bytes = MEMTABLE;
    family.table_bytes = TABLE;
    family.level_base_bytes = BASE;
    (family.level0_slowdown, family.level0_stop) = (LEVEL0_STOP, LEVEL0_STOP);
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
    let value = [7; VALUE_BYTES as usize];
    let mut rng = Rng::new(7);
    for n in 0..KEYS {
        db.put(key(n), value).unwrap();
    }
    for _ in 0..KEYS {
        db.put(key(rng.below(KEYS)), value).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let before = db.metrics();
    let unwaiting = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
    let family = db.default_column_family();
    let (mut now, mut free_at, mut stalls, mut writes) = (0, 0, 0, 0);
    let (mut stalled, mut moved_bytes) = (false, moved(&db));
    while writes < WRITES {
        while free_at <= now {
            if !db.step().unwrap() {
                break;
            }
            let before = std::mem::replace(&mut moved_bytes, moved(&db));
            free_at = now.max(free_at) + (moved_bytes - before) * 1_000_000_000 / BANDWIDTH;
        }
        match family.writing(&unwaiting).put(key(rng.below(KEYS)), value) {
            Ok(()) => {
                stalled = false;
                writes += 1;
                now += WRITE_NS;
            }
            Err(Error::WouldStall { .. }) => {
                stalls += u64::from(!std::mem::replace(&mut stalled, true));
                assert!(free_at > now, "nothing is done about the stall");
                now = free_at;
            }
            Err(error) => panic!("{error}"),
        }
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let after = db.metrics();
    let user_bytes = WRITES * (KEY_BYTES + VALUE_BYTES);
    Outcome::new(written(&after) - written(&before), stalls, user_bytes)
}

/// Returns the bytes that background work has read and written.
fn moved(db: &Db) -> u64 {
    let metrics = db.metrics();
    let read = |class: &IoClass| metrics.io[class.index()].totals.read_bytes;
    BACKGROUND.iter().map(read).sum::<u64>() + written(&metrics)
}

fn simulator(profile: &str) -> Outcome {
    let mut config = SimConfig::standard(profile, 1.0).unwrap();
    let family = &mut config.policy.options.column_family;
    family.memtable_bytes = MEMTABLE;
    family.table_bytes = TABLE;
    family.level_base_bytes = BASE;
    family.level0_slowdown = LEVEL0_STOP;
    family.level0_stop = LEVEL0_STOP;
    config.policy.options.slice_bytes_max = SLICE;
    config.policy.options.compaction_readahead_bytes = SLICE;
    config.policy.write_request_bytes = SLICE;
    config.workers = Some(1);
    let costs = &mut config.costs;
    (costs.write_ns, costs.flush_kib_ns, costs.compaction_kib_ns) = (WRITE_NS, 0, 0);
    config.device.bandwidth = Bandwidth { read: BANDWIDTH, write: BANDWIDTH };
    config.device.shared = true;
    (config.device.latency_ns, config.device.barrier_ns, config.device.burst_ns) = (0, 0, 0);
    config.load.threads = 1;
    config.load.spec.mix.read = 0;
    config.load.sizes = ValueSize::Fixed(VALUE_BYTES as u32);
    // More than the device can take, so that the writer never idles.
    config.load.spec.arrivals = ArrivalSpec::Steady { rate: 500_000.0 };
    config.duration_ns = 600_000_000_000;
    config.db_bytes = KEYS * (KEY_BYTES + VALUE_BYTES);
    let mut simulation = Simulation::new(config).unwrap();
    let mut now = 0;
    while simulation.report().user_bytes < WRITES * (KEY_BYTES + VALUE_BYTES) {
        now += 100_000_000;
        simulation.run_until(now).unwrap();
    }
    simulation.quiesce().unwrap();
    let report = simulation.report();
    let written = report.write_amplification * report.user_bytes as f64;
    Outcome::new(written as u64, report.stall_count(), report.user_bytes)
}

#[test]
fn write_amplification_and_stalls_agree() {
    let (engine, simulator) = (engine("rocksdb"), simulator("rocksdb"));
    println!("{engine:?} {simulator:?}");
    let agree = |one: f64, other: f64| (one - other).abs() <= 0.1 * one.max(other);
    assert!(
        agree(engine.write_amplification, simulator.write_amplification)
            && agree(engine.stalls, simulator.stalls)
            && engine.stalls > 0.5,
        "{engine:?} {simulator:?}"
    );
}
