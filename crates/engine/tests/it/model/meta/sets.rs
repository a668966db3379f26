//! Option sets: fixed ones, each extreme in one way or a profile, and random ones.

use std::time::Duration;

use sateen::{
    ColumnFamilyOptions, CompactionPriority, CompactionStyle, Compression, Options, Prefixing,
    Regions, StatisticsLevel, StopStyle, Tuner, TunerBatch, WalMode, WalRecovery, WriteController,
};

use super::keys::mirror;
use crate::support::common::{Random, appending, appending_late, deciding, small, tiny};

/// How many fixed sets there are.
pub(crate) const FIXED: usize = 69;

/// The fixed set of that number, with its name.
#[expect(clippy::too_many_lines, reason = "a table, easiest read in one piece")]
pub(crate) fn fixed(number: usize) -> (&'static str, Options) {
    let mut options = tiny();
    let family = &mut options.column_family;
    let name = match number {
        0 => "tiny",
        1 => {
            family.memtable_bytes = 1;
            "a memtable per write"
        }
        2 => {
            family.memtable_bytes = 1 << 10;
            family.level0_trigger = 1;
            "level0_trigger 1"
        }
        3 => {
            family.table_bytes = 1;
            "a table per key"
        }
        4 => {
            options.block_cache_bytes = 1;
            "cache of 1 byte"
        }
        5 => {
            options.manifest_bytes_max = 1;
            "manifest roll at every edit"
        }
        6 => {
            family.bloom_bits_per_key = 0;
            "no filters"
        }
        7 => {
            family.restart_interval = 1;
            "restart_interval 1"
        }
        8 => {
            family.restart_interval = 65_535;
            family.block_bytes = 1 << 20;
            "one restart, large blocks"
        }
        9 => {
            family.block_bytes = 1;
            "a block per entry"
        }
        10 => {
            family.levels = 2;
            "two levels"
        }
        11 => {
            family.levels = 16;
            family.level_multiplier = 1.1;
            family.level_base_bytes = 1 << 10;
            "sixteen levels"
        }
        12 => {
            family.dynamic_level_bytes = false;
            "fixed level sizes"
        }
        13 => {
            family.compression = vec![Compression::None];
            "no compression"
        }
        14 => {
            family.compression = vec![Compression::Lz4];
            "lz4"
        }
        15 => {
            family.compression = vec![Compression::Zstd];
            family.zstd_level = 1;
            "zstd"
        }
        16 => {
            options.slice_bytes_max = 4096;
            family.table_bytes = 64 << 10;
            family.level_base_bytes = 16 << 10;
            "smallest slices"
        }
        17 => {
            options.direct_reads = true;
            "direct reads"
        }
        18 => {
            options.direct_reads = true;
            options.direct_io_for_flush_and_compaction = false;
            "direct reads, buffered flushes"
        }
        19 => {
            options.max_open_files = 16;
            family.table_bytes = 512;
            "few open files"
        }
        20 => {
            options.memory_budget = Some(1 << 20);
            "small memory budget"
        }
        21 => {
            options = small("rocksdb", 8 << 10);
            "rocksdb, small"
        }
        22 => {
            options = small("leveldb", 4 << 10);
            "leveldb, small"
        }
        23 => {
            options.wal = WalMode::Off;
            "no log"
        }
        24 => {
            options.wal = WalMode::SyncEachWrite;
            "each write synced"
        }
        25 => {
            options.wal = WalMode::SyncInterval(Duration::from_nanos(1));
            "synced at every step"
        }
        26 => {
            options.max_total_wal_bytes = 1;
            "bound on logs of 1 byte"
        }
        27 => {
            family.compaction_priority = CompactionPriority::RoundRobin;
            family.compaction_bytes_max = 1;
            "round robin, smallest compactions"
        }
        28 => {
            family.memtables_max = 8;
            family.memtables_to_flush_min = 7;
            "seven memtables a flush"
        }
        29 => {
            family.disable_auto_compactions = true;
            family.level0_slowdown = 1 << 20;
            family.level0_stop = 1 << 20;
            "no compaction unless asked"
        }
        30 => {
            options.wal_dir = Some("/logs".into());
            options.wal_recovery = WalRecovery::Prefix;
            options.commit_group_bytes_max = 1;
            "logs elsewhere, groups of one"
        }
        31 => {
            family.soft_pending_compaction_bytes = 1;
            family.hard_pending_compaction_bytes = 2;
            options.statistics = StatisticsLevel::Counters;
            "debt of 2 bytes stops"
        }
        32 => {
            options.write_controller = WriteController::Off;
            family.level_multiplier = 1000.0;
            "no write controller, steep levels"
        }
        33 => {
            family.whole_key_filter = false;
            options.compaction_readahead_bytes = 0;
            "no filter, no read-ahead"
        }
        34 => {
            options.max_background_compactions = 8;
            options.max_background_flushes = 4;
            family.level0_trigger = 1;
            family.level0_slowdown = 1;
            family.level0_stop = 2;
            "many jobs, level0_stop 2"
        }
        35 => {
            family.flush_table_bytes = 256;
            family.table_bytes = 2048;
            family.cut_tables_at_gaps = true;
            "small tables of level 0, ends at gaps"
        }
        36 => {
            family.table_bytes = 256;
            family.group_compaction_bytes = 1024;
            "groups of small tables"
        }
        37 => {
            family.table_bytes = 256;
            family.group_compaction_bytes = 4096;
            family.settled_compaction = false;
            family.compaction_priority = CompactionPriority::RoundRobin;
            "groups in turn, nothing settles"
        }
        39 => {
            options = small("vlsm", 4 << 10);
            "vlsm"
        }
        40 => {
            family.level0_stripe_bytes = 1 << 10;
            family.flush_table_bytes = 256;
            family.table_bytes = 512;
            "stripes of level 0"
        }
        41 => {
            let begins = ["b", "key00050", "key00100", "key00150", "l"];
            family.regions = Regions::at(begins).unwrap();
            "regions"
        }
        42 => {
            options = small("vlsm", 2 << 10);
            options.column_family.regions = Regions::at(["key00070"]).unwrap();
            options.wal = WalMode::Off;
            "two regions of the shape of vlsm, no log"
        }
        43..48 => {
            let others = ["hyperleveldb", "bolt-rocksdb", "silk", "sateen", "rocksdb-autotuned"];
            let name = others[number - 43];
            options = small(name, 4 << 10);
            name
        }
        48..51 => {
            let name = ["adoc", "adoc-threads", "adoc-batch"][number - 48];
            options = small(name, 4 << 10);
            adjusted_often(&mut options);
            name
        }
        51 => {
            options = small("sateen", 4 << 10);
            options.tuner = Tuner::Adoc;
            options.tuner_batch = TunerBatch::Paper;
            adjusted_often(&mut options);
            "sateen, adjusted"
        }
        38 => {
            family.table_bytes = 256;
            family.compaction_files = false;
            "a file for each table"
        }
        52 => {
            family.level0_stripe_bytes = 0;
            family.group_compaction_bytes = 0;
            "level 0 as it hangs together, one table at a time"
        }
        53 => {
            options = small("pebblesdb", 4 << 10);
            options.column_family.guard_runs = 2;
            "pebblesdb"
        }
        54 => {
            options = small("triad", 4 << 10);
            "triad"
        }
        55 => {
            options = small("triad-silk", 4 << 10);
            options.column_family.memtable_hot_part = 0.5;
            options.column_family.level0_overlap_runs_max = 3;
            "triad-silk"
        }
        57 => "tiny, mirrored",
        58..64 => {
            let name = ["sateen", "vlsm", "bolt", "triad", "pebblesdb", "rocksdb"][number - 58];
            options = small(name, 4 << 10);
            name
        }
        64 => {
            options.wal = WalMode::Off;
            options.atomic_flush = true;
            family.memtables_to_flush_min = 2;
            family.memtables_max = 4;
            "flushed together, no log"
        }
        65 => {
            options = small("triad", 2 << 10);
            options.column_family.regions = Regions::at(["key00070"]).unwrap();
            options.atomic_flush = true;
            "triad with regions, flushed together"
        }
        66 => {
            options = small("rocksdb-universal", 2 << 10);
            let family = &mut options.column_family;
            family.tiered_size_ratio = 50;
            family.tiered_stop_style = StopStyle::SimilarSize;
            family.tiered_trivial_move = true;
            family.level0_trigger = 2;
            "universal, similar sizes"
        }
        67 => {
            options = small("rocksdb-universal", 4 << 10);
            let family = &mut options.column_family;
            family.tiered_size_amplification_max = 25;
            family.tiered_merge_width_min = 3;
            family.tiered_merge_width_max = 3;
            "universal, little space"
        }
        68 => {
            // Nothing may be dropped here.
            options = small("rocksdb", 2 << 10);
            let family = &mut options.column_family;
            family.compaction_style = CompactionStyle::Fifo;
            family.fifo_bytes_max = u64::MAX;
            family.fifo_compaction = true;
            "fifo without a limit"
        }
        _ => {
            options = Options { background_threads: 0, ..Options::default() };
            "defaults"
        }
    };
    let operator = if number.is_multiple_of(3) { appending_late() } else { appending() };
    options.column_family.merge_operator = Some(operator);
    options.column_family.compaction_filter = (number % 4 == 1).then(deciding);
    if number % 5 == 3 {
        options.column_family.prefix_extractor = Some(Prefixing::fixed(6));
    }
    options.column_family.ttl = (number % 7 == 2).then(|| Duration::from_secs(3600));
    if (57..64).contains(&number) {
        mirror(&mut options);
    }
    (name, options)
}

/// At every look, back and forth, and with overflows that come early.
fn adjusted_often(options: &mut Options) {
    options.tuner_interval = Duration::from_nanos(1);
    options.tuner_hold_time = Duration::ZERO;
    options.tuner_slots_max = 8;
    options.tuner_debt_bytes = Some(64 << 10);
    let family = &mut options.column_family;
    family.memtables_max = 4;
    family.level0_trigger = 2;
    family.level0_slowdown = 4;
}

/// A random set. All take any data that another left behind: `levels` and `wal_dir` stay.
pub(crate) fn random(random: &mut Random) -> Options {
    let mut options = random_shape(random);
    let operator = if random.one_in(3) { appending_late() } else { appending() };
    options.column_family.merge_operator = Some(operator);
    options.column_family.compaction_filter = random.one_in(2).then(deciding);
    options
}

/// A profile with an operator, and perhaps a filter.
pub(crate) fn profile(name: &str, random: &mut Random) -> Options {
    let mut options = small(name, 1 << 10 << random.below(4));
    let operator = if random.one_in(3) { appending_late() } else { appending() };
    options.column_family.merge_operator = Some(operator);
    options.column_family.compaction_filter = random.one_in(2).then(deciding);
    options
}

fn random_shape(random: &mut Random) -> Options {
    if random.one_in(4) {
        let profiles = Options::profiles();
        return small(profiles[random.below(profiles.len() as u64) as usize], 4 << 10);
    }
    let mut options = tiny();
    options.wal = match random.below(8) {
        0 => WalMode::Off,
        1 => WalMode::SyncEachWrite,
        2 => WalMode::SyncInterval(Duration::from_millis(1)),
        _ => WalMode::Buffered,
    };
    options.block_cache_bytes = [1, 4 << 10, 1 << 20][random.below(3) as usize];
    options.level0_cache_percent = [0, 25, 90][random.below(3) as usize];
    if random.below(4) == 0 {
        options.shared_block_cache = Some(SHARED_CACHE.clone());
    }
    options.manifest_bytes_max = [1, 2 << 10, 1 << 20][random.below(3) as usize];
    options.slice_bytes_max = 4096 << random.below(5);
    options.max_open_files = [16, 1000][random.below(2) as usize];
    options.max_total_wal_bytes = [0, 1, 16 << 10][random.below(3) as usize];
    options.direct_reads = random.one_in(2);
    options.direct_io_for_flush_and_compaction = random.one_in(2);
    options.max_background_compactions = 1 + random.below(4) as u32;
    options.max_background_flushes = 1 + random.below(3) as u32;
    options.memory_budget = random.one_in(4).then_some(1 << 20);
    options.atomic_flush = random.one_in(4);
    if random.one_in(4) {
        options.write_controller = WriteController::Off;
    }
    if random.one_in(3) {
        let each = [Tuner::Adoc, Tuner::AdocThreads, Tuner::AdocBatch];
        options.tuner = each[random.below(3) as usize];
        if random.one_in(2) {
            options.tuner_batch = TunerBatch::Paper;
            options.tuner_threshold = 0.5;
        }
        options.tuner_interval = Duration::from_nanos(1);
        options.tuner_hold_time = Duration::from_secs(60 * random.below(2));
        options.tuner_slots_max = 1 + random.below(8) as u32;
        options.tuner_debt_bytes = random.one_in(2).then_some(16 << 10);
    }
    random_family(&mut options.column_family, random);
    options
}

fn random_family(family: &mut ColumnFamilyOptions, random: &mut Random) {
    if random.one_in(5) {
        family.compaction_style = CompactionStyle::Tiered;
        family.tiered_size_ratio = random.below(3) as u32 * 50;
        family.tiered_size_amplification_max = 25 << random.below(4);
        family.tiered_trivial_move = random.one_in(2);
    }
    family.memtable_bytes = 1 << random.below(15);
    family.memtables_max = 2 + random.below(4) as u32;
    family.flush_table_bytes = random.below(3) << 10;
    family.level0_stripe_bytes = random.below(3) << 12;
    family.cut_tables_at_gaps = random.one_in(2);
    family.align_tables = random.one_in(2);
    family.intra_level0_compaction = random.one_in(2);
    family.grandparent_bytes_max = [0, 1, 32 << 10][random.below(3) as usize];
    family.group_compaction_bytes = random.below(3) << 11;
    family.base_level_multiplier = [0.0, 10.0, 32.0][random.below(3) as usize];
    family.level0_fifo = random.one_in(4);
    family.level0_fifo_runs_max = 1 + random.below(4) as u32;
    family.overlap_aware_tables = random.one_in(3);
    family.settled_compaction = random.one_in(2);
    family.settle_checks_grandparents = random.one_in(2);
    // With the largest of these, one read is enough.
    family.seek_compaction_bytes = [0, 64 << 10, 2 << 20][random.below(3) as usize];
    family.compaction_files = !random.one_in(4);
    family.memtables_to_flush_min = 1 + random.below(u64::from(family.memtables_max) - 1) as u32;
    family.level0_trigger = 1 + random.below(5) as u32;
    family.level0_slowdown = family.level0_trigger + random.below(8) as u32;
    if family.compaction_style == CompactionStyle::Tiered {
        family.level0_slowdown = family.level0_slowdown.max(family.level0_trigger + 1);
    }
    family.level0_stop = family.level0_slowdown + random.below(4) as u32;
    family.memtable_hot_part = [0.0, 0.1, 0.5][random.below(3) as usize];
    family.values_stay_in_log = random.one_in(3);
    if random.one_in(3) {
        family.value_separation_bytes = [1, 20, 100][random.below(3) as usize];
        family.value_starting_level = random.below(3) as u32;
        family.value_file_bytes = 1 << random.below(16);
        family.value_garbage_collection = random.one_in(2);
        family.value_garbage_age_cutoff = [0.1, 0.5, 1.0][random.below(3) as usize];
        family.value_garbage_force_threshold = [0.0, 0.3, 1.0][random.below(3) as usize];
    }
    if random.one_in(3) {
        family.level0_overlap_min = [0.1, 0.4, 1.0][random.below(3) as usize];
        let slowdown = u64::from(family.level0_slowdown);
        family.level0_overlap_runs_max = 1 + random.below(slowdown) as u32;
    }
    family.level_base_bytes = 1 << random.below(17);
    family.level_multiplier = [1.5, 3.0, 10.0][random.below(3) as usize];
    family.dynamic_level_bytes = random.one_in(2);
    family.table_bytes = 1 << random.below(16);
    family.table_multiplier = 1 + random.below(3) as u32;
    family.compaction_bytes_max = [0, 1, 32 << 10][random.below(3) as usize];
    if random.one_in(2) {
        family.compaction_priority = CompactionPriority::RoundRobin;
    }
    family.block_bytes = 1 << random.below(14);
    family.restart_interval = [1, 2, 16, 1000][random.below(4) as usize];
    family.bloom_bits_per_key = [0, 1, 10, 64][random.below(4) as usize];
    family.whole_key_filter = !random.one_in(5);
    family.prefix_extractor = match random.below(4) {
        0 => Some(Prefixing::fixed(random.below(8) as usize)),
        1 => Some(Prefixing::capped(6)),
        _ => None,
    };
    let codes = [Compression::None, Compression::Lz4, Compression::Zstd];
    family.compression = (0..=random.below(3)).map(|_| codes[random.below(3) as usize]).collect();
    family.zstd_level = 1;
}

/// A cache that worlds of all threads have, and each of them again after a restart.
static SHARED_CACHE: std::sync::LazyLock<sateen::SharedBlockCache> =
    std::sync::LazyLock::new(|| sateen::SharedBlockCache::new(256 << 10));
