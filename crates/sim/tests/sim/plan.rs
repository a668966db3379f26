//! The plan of a seed: options, a device, clients and a list of operations.

use std::time::Duration;

use sateen::{
    CompactionPriority, CompactionStyle, Compression, Options, Regions, Tuner, TunerBatch, WalMode,
    WriteController,
};
use sateen_sim::{Bandwidth, DeviceConfig};

pub(crate) use crate::draw::numbered;
use crate::draw::{self, kinds};
use crate::model::Value;
use crate::support::common::{Random, appending, appending_late, deciding, small, tiny};

kinds! {
    Put 120 PutSync 6 PutUnlogged 4 PutDeadline 8 PutLarge 4 Delete 24 Merge 24 DeleteRange 6
    Batch 40 BatchSync 4
    Get 40 GetAtSnapshot 10 MultiGet 6 Scan 6 IterOpen 6 IterMove 24 IterClose 4
    SnapshotTake 8 SnapshotRelease 6
    Flush 4 FlushBegin 5 FlushAll 3 CompactRange 4 CompactBegin 3 SyncWal 4
    Step 50 Pass 12 Idle 2
    Checkpoint 2 SetOptions 4 CreateFamily 2 DropFamily 1
    FaultBegin 7 FaultClear 6 Resume 2
    PowerFails 3 PowerFailsWithin 5 Killed 2 Restart 2
}

pub(crate) type Op = draw::Op<Kind>;

/// The plan of a run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) options: Options,
    pub(crate) device: DeviceConfig,
    pub(crate) dirty_max: u64,
    /// The mean time between two client operations, in nanoseconds.
    pub(crate) gap_ns: u64,
    /// The percentage of background steps that run between two operations.
    pub(crate) eager: u64,
    pub(crate) ops: Vec<Op>,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Plan {
        let mut random = Random::new(seed);
        // Neighbouring seeds begin with similar numbers.
        for _ in 0..8 {
            random.next();
        }
        let random = &mut random;
        let faults = random.one_in(2);
        let power = random.below(4) > 0;
        Plan {
            seed,
            options: options(random),
            device: device(random),
            dirty_max: 1 << (14 + random.below(8)),
            gap_ns: logarithmic(random, 20_000, 20_000_000),
            eager: [5, 30, 80, 100][random.below(4) as usize],
            ops: ops(random, faults, power),
        }
    }
}

fn ops(random: &mut Random, faults: bool, power: bool) -> Vec<Op> {
    let count = 100 + random.below(400);
    draw::list(random, count, KINDS, |(kind, weight)| match kind {
        Kind::FaultBegin | Kind::FaultClear if !faults => 0,
        Kind::PowerFails | Kind::PowerFailsWithin | Kind::Killed if !power => 0,
        _ => *weight,
    })
}

/// Returns a number from `low` to `high`; every order of magnitude is equally likely.
fn logarithmic(random: &mut Random, low: u64, high: u64) -> u64 {
    let part = random.below(1 << 20) as f64 / (1 << 20) as f64;
    (low as f64 * (high as f64 / low as f64).powf(part)) as u64
}

fn device(random: &mut Random) -> DeviceConfig {
    const SECOND_NS: u64 = 1_000_000_000;
    let bandwidth = |random: &mut Random| Bandwidth {
        read: logarithmic(random, 200_000, 500_000_000),
        write: logarithmic(random, 100_000, 200_000_000),
    };
    let mut config = DeviceConfig {
        bandwidth: bandwidth(random),
        shared: random.one_in(3),
        latency_ns: logarithmic(random, 10_000, 5_000_000),
        barrier_ns: logarithmic(random, 50_000, 30_000_000),
        parallelism: 1 + random.below(32) as usize,
        burst_ns: [0, 0, 20_000_000][random.below(3) as usize],
        ..DeviceConfig::default()
    };
    if random.one_in(3) {
        // The device pauses for seconds.
        config.pause_every_ns = SECOND_NS * (2 + random.below(20));
        config.pause_ns = SECOND_NS / 2 + random.below(config.pause_every_ns / 2);
    }
    if random.one_in(3) {
        let mut at = 0;
        for _ in 0..1 + random.below(5) {
            at += random.below(10 * SECOND_NS);
            config.changes.push((at, bandwidth(random)));
        }
    }
    config
}

fn options(random: &mut Random) -> Options {
    let memtable = 1 << (10 + random.below(4));
    let mut options = if random.below(5) < 3 {
        let profiles = Options::profiles();
        small(profiles[random.below(profiles.len() as u64) as usize], memtable)
    } else {
        let mut options = tiny();
        options.column_family.memtable_bytes = memtable;
        shape(random, &mut options);
        options
    };
    options.wal = match random.below(10) {
        0 => WalMode::Off,
        1 => WalMode::SyncEachWrite,
        2 => WalMode::SyncInterval(Duration::from_millis(1 + random.below(200))),
        _ => WalMode::Buffered,
    };
    if random.one_in(4) {
        let each = [WriteController::Smooth, WriteController::Triggers, WriteController::Off];
        options.write_controller = each[random.below(3) as usize];
    }
    if random.one_in(5) {
        let each = [Tuner::Adoc, Tuner::AdocThreads, Tuner::AdocBatch];
        options.tuner = each[random.below(3) as usize];
        let each = [TunerBatch::Memtable, TunerBatch::Paper];
        options.tuner_batch = each[random.below(2) as usize];
        options.tuner_threshold = [0.5, 1.0][random.below(2) as usize];
    }
    options.max_total_wal_bytes = [0, 0, 1, 32 << 10][random.below(4) as usize];
    options.memory_budget = random.one_in(8).then_some(1 << 20);
    if random.one_in(8) {
        options.all_memtables_bytes = (2 + random.below(6)) * memtable;
    }
    let family = &mut options.column_family;
    if random.one_in(3) {
        family.level0_trigger = 1 + random.below(4) as u32;
        // A tiered tree rests with as many runs as its trigger.
        let least =
            family.level0_trigger + u32::from(family.compaction_style == CompactionStyle::Tiered);
        family.level0_slowdown = least.max(family.level0_trigger + random.below(4) as u32);
        family.level0_stop = family.level0_slowdown + random.below(3) as u32;
        family.level0_overlap_runs_max = family.level0_overlap_runs_max.min(family.level0_slowdown);
    }
    if random.one_in(5) {
        let first = random.below(KEYS / 2);
        let begins = [numbered(first), numbered(first + 1 + random.below(KEYS / 2))];
        family.regions = Regions::at(begins).expect("they ascend");
    }
    let late = random.one_in(3);
    family.merge_operator = Some(if late { appending_late() } else { appending() });
    family.compaction_filter = random.one_in(4).then(deciding);
    options
}

fn shape(random: &mut Random, options: &mut Options) {
    options.manifest_bytes_max = [1, 2 << 10, 1 << 20][random.below(3) as usize];
    options.slice_bytes_max = 4096 << random.below(4);
    options.block_cache_bytes = [1, 4 << 10, 1 << 20][random.below(3) as usize];
    options.max_background_compactions = 1 + random.below(4) as u32;
    options.max_background_flushes = 1 + random.below(3) as u32;
    options.direct_reads = random.one_in(2);
    options.direct_io_for_flush_and_compaction = random.one_in(2);
    let family = &mut options.column_family;
    family.memtables_max = 2 + random.below(3) as u32;
    family.flush_table_bytes = random.below(3) << 10;
    family.level0_stripe_bytes = random.below(3) << 12;
    family.group_compaction_bytes = random.below(3) << 11;
    family.intra_level0_compaction = random.one_in(2);
    family.settled_compaction = random.one_in(2);
    family.settle_checks_grandparents = random.one_in(2);
    family.seek_compaction_bytes = [0, 2 << 20][random.below(2) as usize];
    family.compaction_files = !random.one_in(4);
    family.memtable_hot_part = [0.0, 0.0, 0.3][random.below(3) as usize];
    family.values_stay_in_log = random.one_in(3);
    family.value_separation_bytes = if random.one_in(3) { 64 } else { 0 };
    family.value_garbage_collection = random.one_in(2);
    family.level_base_bytes = 1 << (11 + random.below(6));
    family.level_multiplier = [1.5, 3.0, 10.0][random.below(3) as usize];
    family.dynamic_level_bytes = random.one_in(2);
    family.table_bytes = 1 << (9 + random.below(5));
    if random.one_in(2) {
        family.compaction_priority = if random.one_in(2) {
            CompactionPriority::RoundRobin
        } else {
            CompactionPriority::MinOverlappingRange
        };
    }
    let codes = [Compression::None, Compression::Lz4];
    family.compression = vec![codes[random.below(2) as usize]];
}

/// The number of different keys.
pub(crate) const KEYS: u64 = 160;

/// Draws a key.
pub(crate) fn key(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0 => (0..random.below(3)).map(|_| b'a' + random.below(3) as u8).collect(),
        1..4 => numbered(random.below(10)),
        _ => numbered(random.below(KEYS)),
    }
}

/// Draws a value of fewer than `most` bytes.
pub(crate) fn value(random: &mut Random, most: u64) -> Value {
    let length = random.below(most);
    draw::bytes(random, length)
}
