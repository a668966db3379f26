//! The named profiles: nothing but option values.

use std::time::Duration;

use sateen_store::base::error::{Error, Result};
use sateen_store::table::Compression;

use super::{
    CompactionPriority, CompactionStyle, GIB, KIB, MIB, Options, Preemption, Tuner, TunerBatch,
    WriteController,
};

/// Devices are sized in powers of 1000.
const MB: u64 = 1_000_000;

/// The profile of [`Options::default`].
pub(super) const DEFAULT: &str = "sateen";

/// Registers the profiles: name, what it is, and its options.
macro_rules! profiles {
    ($($name:literal, $sentence:literal => $options:expr;)*) => {
        /// The profiles there are.
        pub(super) const AVAILABLE: &[&str] = &[$($name),*];

        /// What each of them is, in the same order.
        #[cfg(test)]
        pub(super) const SENTENCES: &[&str] = &[$($sentence),*];

        pub(super) fn options(name: &str) -> Result<Options> {
            let mut options = match name {
                $($name => $options,)*
                other => return Err(unknown(other)),
            };
            name.clone_into(&mut options.profile);
            Ok(options)
        }
    };
}

profiles! {
    "sateen", "The default." => Options::default();
    "silk", "RocksDB's shape under SILK's scheduler, with the paper's four job slots." => silk();
    "silk-paper", "SILK as in its paper, at 200 MB/s: set `device_bandwidth`." =>
        silk_paper();
    "bolt", "BoLT on LevelDB's shape." => bolt(leveldb());
    "bolt-rocksdb", "BoLT on RocksDB's shape." => bolt(rocksdb());
    "vlsm", "vLSM with tables of 8 MiB." => vlsm();
    "lsmi", "LSMi: vLSM without what it adds to small tables and a queue." => lsmi();
    "adoc", "RocksDB with ADOC's tuner of job slots and of the batch." => adoc(Tuner::Adoc);
    "adoc-threads", "RocksDB with ADOC's tuner of job slots." => adoc(Tuner::AdocThreads);
    "adoc-batch", "RocksDB with ADOC's tuner of the batch." => adoc(Tuner::AdocBatch);
    "rocksdb", "What RocksDB 11 does when nothing is set." => rocksdb();
    "rocksdb-io", "RocksDB as vLSM's paper sets it, without compaction debt." => rocksdb_io();
    "rocksdb-limited", "RocksDB with a fixed rate limit of 90 MiB/s." => limited();
    "rocksdb-autotuned", "RocksDB with its self-tuning rate limit." => auto_tuned();
    "leveldb", "LevelDB's shape: small memtables and tables, one thread." => leveldb();
    "hyperleveldb", "HyperLevelDB's shape: larger tables, one more thread, no slowdown." =>
        hyperleveldb();
    "hyperbolt", "BoLT on HyperLevelDB's shape." => hyperbolt();
    "pebblesdb", "PebblesDB's fragmented levels on RocksDB's sizes." => pebblesdb();
    "rocksdb-universal", "RocksDB with universal compaction." => universal();
    "triad", "TRIAD on RocksDB's shape, with four threads." => triad(Options {
        background_threads: 4,
        max_background_compactions: 3,
        ..rocksdb()
    });
    "triad-silk", "TRIAD under SILK's scheduler." => triad(silk());
}

/// What RocksDB 11 does when nothing is set. Direct I/O is an option there, too; caches are sized
/// by their owner and left as ours, so that profiles can be compared.
fn rocksdb() -> Options {
    let mut options = Options {
        background_threads: 2,
        max_background_flushes: 1,
        max_background_compactions: 1,
        background_thread_nice: 0,
        level0_cache_percent: 0,
        wal_bytes_per_sync: 0,
        scheduler_bandwidth: false,
        scheduler_priority: false,
        preemption: Preemption::Off,
        write_controller: WriteController::Triggers,
        manifest_bytes_max: 1024 * MIB,
        ..Options::default()
    };
    let family = &mut options.column_family;
    family.compression = vec![Compression::Lz4];
    family.level_base_bytes = 256 * MIB;
    family.level_multiplier = 10.0;
    family.table_bytes = 64 * MIB;
    family.flush_table_bytes = 0;
    family.level0_stripe_bytes = 0;
    family.group_compaction_bytes = 0;
    family.cut_tables_at_gaps = false;
    family.compaction_files = false;
    options
}

/// RocksDB's shape under SILK's scheduler, with the paper's four job slots (SILK §6.1).
fn silk() -> Options {
    Options {
        background_threads: 4,
        max_background_compactions: 3,
        // The scheduler learns the device from what it delivers: the page cache says nothing of it.
        direct_io_for_flush_and_compaction: true,
        background_thread_nice: Options::default().background_thread_nice,
        scheduler_bandwidth: true,
        scheduler_priority: true,
        preemption: Preemption::LeastLoss,
        write_controller: WriteController::Smooth,
        ..rocksdb()
    }
}

/// SILK as its paper sets it up (§5.2, §6.1), where a setting can say so. The device is not
/// learned: set `device_bandwidth` for another than the paper's. If it is slower than told, clients
/// wait behind background work; if it is faster, background work gets no more than told.
fn silk_paper() -> Options {
    let mut options = Options {
        device_bandwidth: Some(200 * MB),
        // ε is "a small buffer" without a value; this is 5 MB/s.
        scheduler_headroom: 25,
        scheduler_change_threshold: Some(10 * MB),
        scheduler_floor: Some(50 * MB),
        scheduler_drain_time: Duration::ZERO,
        debt_floor: false,
        preemption: Preemption::Random,
        preempt_discard: true,
        write_controller: WriteController::Triggers,
        ..silk()
    };
    let family = &mut options.column_family;
    family.memtable_bytes = 128 * MIB;
    // "Very large values", so that they do not interfere with what is measured.
    family.level0_slowdown = u32::MAX;
    family.level0_stop = u32::MAX;
    options
}

/// RocksDB-IO of vLSM (§5): no overflow, so that writers wait for the whole chain of compactions. A
/// debt of 64 MB, the paper's limit of overflow, is less than a full level 0. Levels grow by 8, and
/// each region has four threads.
fn rocksdb_io() -> Options {
    let mut options = Options {
        background_threads: 4,
        max_background_compactions: 3,
        direct_io_for_flush_and_compaction: true,
        ..rocksdb()
    };
    let family = &mut options.column_family;
    family.level_multiplier = 8.0;
    family.dynamic_level_bytes = false;
    family.soft_pending_compaction_bytes = 64 * MIB;
    family.hard_pending_compaction_bytes = 64 * MIB;
    options
}

/// RocksDB with a fixed rate for background work: 90 MB/s, the best of the fixed rates that SILK
/// tries on a device of 200 MB/s (§4.3). Set `rate_limit_bytes_per_second` for another.
fn limited() -> Options {
    Options { rate_limit_bytes_per_second: 90 * MIB, ..rocksdb() }
}

/// RocksDB with its self-tuning limiter, whose upper end is far above what it should need.
fn auto_tuned() -> Options {
    Options { rate_limit_bytes_per_second: 400 * MIB, rate_limit_auto_tune: true, ..rocksdb() }
}

/// LevelDB's shape: small memtable and tables, fixed level sizes, one background thread. Like
/// LevelDB's own defaults it has no filters; the papers' measurements of LevelDB add 10 bits.
fn leveldb() -> Options {
    let mut options = Options {
        background_threads: 1,
        max_background_flushes: 1,
        max_background_compactions: 1,
        delayed_write_bytes_per_second: MIB,
        block_cache_bytes: 8 * MIB,
        max_open_files: 1000,
        ..rocksdb()
    };
    let family = &mut options.column_family;
    family.memtable_bytes = 4 * MIB;
    family.level0_trigger = 4;
    family.level0_slowdown = 8;
    family.level0_stop = 12;
    family.level_base_bytes = 10 * MIB;
    family.dynamic_level_bytes = false;
    family.table_bytes = 2 * MIB;
    family.compaction_bytes_max = 25 * 2 * MIB;
    family.grandparent_bytes_max = 10 * 2 * MIB;
    family.align_tables = false;
    family.intra_level0_compaction = false;
    family.compaction_priority = CompactionPriority::RoundRobin;
    family.soft_pending_compaction_bytes = 0;
    family.hard_pending_compaction_bytes = 0;
    family.bloom_bits_per_key = 0;
    family.seek_compaction_bytes = 16 * KIB;
    options
}

/// HyperLevelDB's shape: one thread for flushes and one for compactions, a wider first level,
/// tables of 16 to 64 MB that end where those below do (BoLT §4.2.3), the best range of neighbours
/// first, and writers that only full memtables stop. Filters of 10 bits, as in the paper's setting
/// (§4.1).
fn hyperleveldb() -> Options {
    let mut options =
        Options { background_threads: 2, write_controller: WriteController::Off, ..leveldb() };
    let family = &mut options.column_family;
    family.level_base_bytes = 64 * MIB;
    family.level_multiplier = 8.0;
    family.table_bytes = 32 * MIB;
    family.align_tables = true;
    family.compaction_bytes_max = GIB;
    family.grandparent_bytes_max = 0;
    family.settle_checks_grandparents = false;
    family.compaction_priority = CompactionPriority::MinOverlappingRange;
    family.bloom_bits_per_key = 10;
    options
}

/// BoLT (§3) on the shape of `base`: logical tables of 1 MB, groups of 64 MB (§4.2.1), the least
/// overlap first, what overlaps nothing settles (§3.4), and filters of 10 bits (§4.1). Where `base`
/// compacts for reads, that takes 64 times as many reads, as in the authors' code.
fn bolt(base: Options) -> Options {
    let mut options = base;
    let family = &mut options.column_family;
    family.compaction_files = true;
    family.table_bytes = MIB;
    family.flush_table_bytes = MIB;
    family.group_compaction_bytes = 64 * MIB;
    family.compaction_priority = CompactionPriority::MinOverlappingRatio;
    family.settle_checks_grandparents = false;
    family.seek_compaction_bytes /= 64;
    family.bloom_bits_per_key = 10;
    options
}

/// HyperBoLT: BoLT on HyperLevelDB's shape. Its small tables end by their size, and where they
/// would overlap ten tables.
fn hyperbolt() -> Options {
    let mut options = bolt(hyperleveldb());
    options.column_family.align_tables = false;
    options.column_family.grandparent_bytes_max = 10 * MIB;
    options
}

/// vLSM (§4) with tables of 8 MB (§6) on RocksDB's shape and scheduling: level 0 is a queue and
/// level 1 has eight tables. Level 2 is so many times as large, at most 32, that the tree has the
/// levels that it has with a tiered level 0 (§4.1). That number follows from the size of the tree.
fn vlsm() -> Options {
    let mut options = Options { background_threads: 4, max_background_compactions: 3, ..rocksdb() };
    let family = &mut options.column_family;
    family.memtable_bytes = 8 * MIB;
    family.table_bytes = 8 * MIB;
    family.level_base_bytes = 64 * MIB;
    family.level_multiplier = 8.0;
    family.base_level_multiplier = 32.0;
    family.level0_trigger = 1;
    family.level0_fifo = true;
    family.overlap_aware_tables = true;
    family.intra_level0_compaction = false;
    options
}

/// LSMi (vLSM §2.3, Fig. 3a): level 0 is a queue and tables are small, but level 2 is only 8 times
/// as large as level 1, so that there are more levels, and tables of level 1 are like all others.
fn lsmi() -> Options {
    let mut options = vlsm();
    let family = &mut options.column_family;
    family.base_level_multiplier = 0.0;
    family.overlap_aware_tables = false;
    options
}

/// PebblesDB's fragmented levels on RocksDB's sizes. Like it (SILK §4.6) it never slows writers
/// down for what waits to be compacted below level 0.
fn pebblesdb() -> Options {
    let mut options = Options { background_threads: 4, max_background_compactions: 3, ..rocksdb() };
    let family = &mut options.column_family;
    family.compaction_style = CompactionStyle::Guards;
    family.dynamic_level_bytes = false;
    family.intra_level0_compaction = false;
    family.soft_pending_compaction_bytes = 0;
    family.hard_pending_compaction_bytes = 0;
    options
}

/// RocksDB's defaults with universal compaction.
fn universal() -> Options {
    let mut options = rocksdb();
    options.column_family.compaction_style = CompactionStyle::Tiered;
    options
}

/// TRIAD on the shape of `base`: hot keys stay in memory, level 0 waits until what it holds
/// overlaps, and what is in the log is not written again by a flush.
fn triad(base: Options) -> Options {
    let mut options = base;
    let family = &mut options.column_family;
    family.memtable_hot_part = 0.25;
    family.level0_overlap_min = 0.4;
    family.values_stay_in_log = true;
    options
}

/// ADOC (§5) on RocksDB's shape, from its two job slots and memtables of 64 MB on; or one of the
/// two alone (§6.4). The batch is that of memtables and tables (§3.1). Debt overflows at 64 GB
/// (§2.3), whatever the device.
fn adoc(tuner: Tuner) -> Options {
    Options { tuner, tuner_batch: TunerBatch::Paper, tuner_debt_bytes: Some(64 * GIB), ..rocksdb() }
}

fn unknown(name: &str) -> Error {
    let there_are = AVAILABLE.join(", ");
    Error::InvalidArgument(format!("unknown profile {name:?}; there are {there_are}"))
}
