//! Random numbers that are the same everywhere, and options drawn from them.

use std::time::Duration;

use sateen_control::options::{
    CompactionPriority, CompactionStyle, Preemption, StopStyle, Tuner, TunerBatch, WriteController,
};
use sateen_control::{CfOptions, ControlOptions};

/// splitmix64: small, and the same everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

pub(super) fn random_options(random: &mut Random) -> CfOptions {
    let mut options = CfOptions::default();
    if random.one_in(4) {
        // As LevelDB.
        options.memtable_bytes = 4 << 20;
        options.level0_stop = 12;
        options.soft_pending_compaction_bytes = 0;
        options.hard_pending_compaction_bytes = 0;
    }
    options.levels = 2 + random.below(5) as usize;
    options.level0_trigger = 1 + random.below(5) as u32;
    options.level0_slowdown = options.level0_trigger + 1 + random.below(16) as u32;
    options.level_base_bytes = 1000 * (1 + random.below(8));
    options.level_multiplier = 2.0 + random.below(6) as f64;
    options.dynamic_level_bytes = random.one_in(2);
    options.table_bytes = 4096;
    options.compaction_bytes_max = 10_000 * (1 + random.below(40));
    options.leveled.grandparent_bytes_max = 2000 * (1 + random.below(20));
    options.memtables_max = 2 + random.below(4) as u32;
    options.memtables_to_flush_min = 1 + random.below(2) as u32;
    options.leveled.align_tables = random.one_in(2);
    options.cut_tables_at_gaps = random.one_in(2);
    options.leveled.intra_level0_compaction = !random.one_in(3);
    options.leveled.base_level_multiplier = [0.0, 4.0, 32.0][random.below(3) as usize];
    options.leveled.level0_fifo = random.one_in(4);
    options.leveled.level0_fifo_runs_max = 1 + random.below(4) as u32;
    options.leveled.level0_stripe_bytes = random.below(3) * 2000;
    if random.one_in(4) {
        options.leveled.level0_overlap_min = 0.4;
        let slowdown = u64::from(options.level0_slowdown).clamp(1, 8);
        options.leveled.level0_overlap_runs_max = 1 + random.below(slowdown) as u32;
    }
    options.leveled.overlap_aware_tables = random.one_in(3);
    options.leveled.group_compaction_bytes = random.below(3) * 10_000;
    options.leveled.seek_compaction_bytes = random.below(2) << 14;
    options.settled_compaction = random.one_in(2);
    options.leveled.settle_checks_grandparents = random.one_in(2);
    options.leveled.compaction_candidates_max = 1 + random.below(20) as u32;
    options.leveled.compaction_priority = match random.below(6) {
        0 => CompactionPriority::RoundRobin,
        1 => CompactionPriority::ByCompensatedSize,
        2 => CompactionPriority::OldestLargestSeqFirst,
        3 => CompactionPriority::OldestSmallestSeqFirst,
        4 => CompactionPriority::MinOverlappingRange,
        _ => CompactionPriority::MinOverlappingRatio,
    };
    if random.one_in(4) {
        options.compaction_style = CompactionStyle::Guards;
        options.guards.runs = 2 + random.below(5) as u32;
        options.dynamic_level_bytes = false;
    } else if random.one_in(4) {
        options.compaction_style = CompactionStyle::Tiered;
        options.tiered.size_ratio = random.below(3) as u32 * 50;
        options.tiered.merge_width_min = 2 + random.below(3) as u32;
        options.tiered.merge_width_max = [4, u32::MAX][random.below(2) as usize];
        options.tiered.size_amplification_max = 50 << random.below(4);
        if random.one_in(3) {
            options.tiered.stop_style = StopStyle::SimilarSize;
        }
        options.tiered.trivial_move = random.one_in(2);
    } else if random.one_in(10) {
        // Nothing may be lost here.
        options.compaction_style = CompactionStyle::Fifo;
        options.fifo.bytes_max = u64::MAX;
        options.fifo.compaction = true;
    }
    // Otherwise writers would be slowed down for ever: an engine refuses that.
    let at_rest = options.policy().runs_at_rest(&options);
    options.level0_slowdown = options.level0_slowdown.max(at_rest.saturating_add(1));
    options
}

pub(super) fn random_control(random: &mut Random) -> ControlOptions {
    let mut options =
        ControlOptions::default().with_max_background_jobs(1 + random.below(8) as usize);
    options.parallel_only_under_pressure = random.one_in(3);
    options.scheduler.priority = random.one_in(2);
    options.slice_bytes_max = 1000;
    let scheduler = &mut options.scheduler;
    scheduler.bandwidth = random.one_in(2);
    scheduler.debt_floor = !random.one_in(4);
    scheduler.preempt_discard = random.one_in(4);
    if random.one_in(3) {
        scheduler.drain_time = Duration::ZERO;
    }
    if random.one_in(3) {
        scheduler.device_bandwidth = Some(20_000_000 + random.below(200_000_000));
    }
    scheduler.preemption = match random.below(3) {
        0 => Preemption::Off,
        1 => Preemption::Random,
        _ => Preemption::LeastLoss,
    };
    if random.one_in(2) {
        options.write_controller = WriteController::Smooth;
    }
    let tuner = &mut options.tuner;
    tuner.kind = match (random.one_in(2), random.one_in(2)) {
        (true, true) => Tuner::Adoc,
        (true, false) => Tuner::AdocThreads,
        (false, true) => Tuner::AdocBatch,
        (false, false) => Tuner::Off,
    };
    tuner.batch = [TunerBatch::Memtable, TunerBatch::Paper][random.below(2) as usize];
    tuner.threshold = [1.0, 1.0, 0.5][random.below(3) as usize];
    tuner.interval = Duration::from_millis(1 + random.below(200));
    tuner.hold_time = Duration::from_millis(random.below(2) * 1000);
    tuner.slots_max = 1 + random.below(16) as usize;
    match random.below(2) {
        0 => tuner.debt_bytes = Some(1 + random.below(100_000)),
        _ => tuner.debt_time = Duration::from_millis(random.below(100)),
    }
    if random.one_in(3) {
        options.rate_limiter.bytes_per_second = Some(100_000 + random.below(10_000_000));
        options.rate_limiter.auto_tune = random.one_in(2);
    }
    options.atomic_flush = random.one_in(4);
    options
}
