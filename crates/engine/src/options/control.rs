//! The options as control gets them: the same values under the same names, in the groups of its own
//! structs. Values that depend on several options are derived here.

use sateen_control::options::{
    BottommostLevelCompaction, CfOptions, CompressionCode, ControlOptions, DeviceProfile,
    FifoOptions, GuardsOptions, LeveledOptions, RateLimiterOptions, SchedulerOptions, ScrubOptions,
    TieredOptions, TunerOptions, ValueOptions,
};
use sateen_store::table::Compression;

use super::{ColumnFamilyOptions, Options, Preemption, WriteController};

/// Part of the memory budget to which memtables may grow: half of it. See
/// `background/chores/memory.rs`.
const MEMTABLES_PART: u64 = 2;

/// Compression as the number that control hands back in a plan. The numbers are those of the
/// format.
pub(crate) fn compression_code(compression: Compression) -> CompressionCode {
    CompressionCode(match compression {
        Compression::None => 0,
        Compression::Lz4 => 1,
        Compression::Zstd => 2,
    })
}

pub(crate) fn compression_from_code(code: CompressionCode) -> Compression {
    match code.0 {
        1 => Compression::Lz4,
        2 => Compression::Zstd,
        _ => Compression::None,
    }
}

/// Returns how a manual compaction treats the lowest level.
pub(crate) fn bottommost(rewrite: bool) -> BottommostLevelCompaction {
    if rewrite { BottommostLevelCompaction::Force } else { BottommostLevelCompaction::IfTombstones }
}

/// Returns what control is told of the options of a database.
#[must_use]
pub fn database(options: &Options) -> ControlOptions {
    let limit = options.rate_limit_bytes_per_second;
    ControlOptions {
        max_background_flushes: options.max_background_flushes.max(1) as usize,
        max_background_compactions: options.max_background_compactions.max(1) as usize,
        slice_bytes_max: options.slice_bytes_max.max(1),
        rate_limiter: RateLimiterOptions {
            bytes_per_second: (limit > 0).then_some(limit),
            auto_tune: options.rate_limit_auto_tune,
            mode: options.rate_limit_mode,
            refill_period: options.rate_limit_refill_period,
            fairness: options.rate_limit_fairness,
        },
        delayed_write_bytes_per_second: options.delayed_write_bytes_per_second,
        atomic_flush: options.atomic_flush,
        write_controller: options.write_controller,
        parallel_only_under_pressure: options.preemption == Preemption::Off,
        scheduler: SchedulerOptions {
            // Where the caller steps the work nobody samples, and nobody waits.
            bandwidth: options.scheduler_bandwidth && options.background_threads > 0,
            priority: options.scheduler_priority,
            preemption: options.preemption,
            preempt_discard: options.preempt_discard,
            device_bandwidth: options.device_bandwidth,
            floor: options.scheduler_floor,
            change_threshold: options.scheduler_change_threshold,
            drain_time: options.scheduler_drain_time,
            peak_forecast: options.scheduler_peak_forecast,
            slot_bandwidth: options.scheduler_slot_bandwidth,
            headroom: u64::from(options.scheduler_headroom),
            debt_floor: options.debt_floor,
            // Remembered of the device by the database, not set.
            hint: DeviceProfile::default(),
        },
        tuner: TunerOptions {
            kind: options.tuner,
            batch: options.tuner_batch,
            threshold: options.tuner_threshold,
            interval: options.tuner_interval,
            hold_time: options.tuner_hold_time,
            slots_max: tuner_slots_max(options),
            memtable_bytes_max: tuner_memtable_bytes_max(options),
            debt_time: options.tuner_debt_time,
            debt_bytes: options.tuner_debt_bytes,
        },
        scrub: ScrubOptions {
            rate: options.scrub_rate,
            interval_seconds: options.scrub_interval_seconds,
        },
        retry_delay: options.retry_delay,
        weight: options.runtime_weight,
        ceiling: (options.bandwidth_ceiling > 0).then_some(options.bandwidth_ceiling),
    }
}

/// Jobs wait for the device as well as for a processor.
fn tuner_slots_max(options: &Options) -> usize {
    match options.tuner_slots_max {
        0 => 2 * sateen_store::base::sync::processors(),
        slots => slots as usize,
    }
}

/// No more than the memory budget will let them have where only the default column family is
/// written to: what it does not, the tuner would have to take back before anybody felt it.
fn tuner_memtable_bytes_max(options: &Options) -> u64 {
    let family = &options.column_family;
    let memtables = (u64::from(family.memtables_max) + 1) * family.regions.count() as u64;
    let of_budget = |budget| budget / MEMTABLES_PART / memtables.max(1);
    options.tuner_memtable_bytes_max.min(options.memory_budget.map_or(u64::MAX, of_budget))
}

/// The threads that work in the background: one for each job that may run.
pub(crate) fn threads(options: &Options) -> u32 {
    if options.tuner.adjusts_slots() && options.background_threads > 0 {
        let slots = u32::try_from(tuner_slots_max(options)).unwrap_or(u32::MAX);
        return options.background_threads.max(slots);
    }
    options.background_threads
}

/// Returns what control is told of the options of a column family of a database with the options
/// `database`.
#[must_use]
pub fn column_family(database: &Options, options: &ColumnFamilyOptions) -> CfOptions {
    let paths = database.paths_of(options);
    let told = CfOptions {
        path_bytes: paths.iter().map(|path| path.bytes).collect(),
        ..told_column_family(options)
    };
    if database.write_controller != WriteController::Off {
        return told;
    }
    // Only the limit on memtables is left, which is one of memory.
    CfOptions {
        level0_slowdown: u32::MAX,
        level0_stop: u32::MAX,
        soft_pending_compaction_bytes: 0,
        hard_pending_compaction_bytes: 0,
        space_amplification_max: 0.0,
        ..told
    }
}

fn told_column_family(options: &ColumnFamilyOptions) -> CfOptions {
    let told = CfOptions {
        compaction_style: options.compaction_style,
        leveled: leveled(options),
        guards: GuardsOptions { runs: options.guard_runs },
        tiered: TieredOptions {
            size_ratio: options.tiered_size_ratio,
            merge_width_min: options.tiered_merge_width_min,
            merge_width_max: options.tiered_merge_width_max,
            size_amplification_max: options.tiered_size_amplification_max,
            stop_style: options.tiered_stop_style,
            trivial_move: options.tiered_trivial_move,
        },
        fifo: FifoOptions {
            bytes_max: options.fifo_bytes_max,
            compaction: options.fifo_compaction,
        },
        levels: options.levels as usize,
        memtable_bytes: options.memtable_bytes,
        memtables_max: options.memtables_max,
        memtables_to_flush_min: options.memtables_to_flush_min,
        level0_trigger: options.level0_trigger,
        level0_slowdown: options.level0_slowdown,
        level0_stop: options.level0_stop,
        soft_pending_compaction_bytes: options.soft_pending_compaction_bytes,
        hard_pending_compaction_bytes: options.hard_pending_compaction_bytes,
        space_amplification_max: options.space_amplification_max,
        level_base_bytes: options.level_base_bytes,
        level_multiplier: options.level_multiplier,
        dynamic_level_bytes: options.dynamic_level_bytes,
        table_bytes: options.table_bytes,
        flush_table_bytes: options.flush_table_bytes,
        // How far apart keys are is known of bytes alone.
        cut_tables_at_gaps: options.cut_tables_at_gaps && options.comparator.is_bytewise(),
        table_multiplier: u64::from(options.table_multiplier),
        compaction_bytes_max: options.compaction_bytes_max,
        settled_compaction: options.settled_compaction,
        disable_auto_compactions: options.disable_auto_compactions,
        compression: options.compression.iter().copied().map(compression_code).collect(),
        // Those of the database count, too, which is not known here.
        path_bytes: Vec::new(),
        values: ValueOptions {
            garbage_collection: options.value_garbage_collection,
            garbage_age_cutoff: options.value_garbage_age_cutoff,
            garbage_force_threshold: options.value_garbage_force_threshold,
        },
    };
    if options.level_base_bytes == 0 { told.with_base_for_level0() } else { told }
}

fn leveled(options: &ColumnFamilyOptions) -> LeveledOptions {
    LeveledOptions {
        level0_stripe_bytes: options.level0_stripe_bytes,
        read_aware_compaction: options.read_aware_compaction,
        // Learned, not set.
        level0_collects: 0,
        level0_fifo: options.level0_fifo,
        level0_fifo_runs_max: options.level0_fifo_runs_max,
        level0_overlap_min: options.level0_overlap_min,
        level0_overlap_runs_max: options.level0_overlap_runs_max,
        intra_level0_compaction: options.intra_level0_compaction,
        base_level_multiplier: options.base_level_multiplier,
        compaction_priority: options.compaction_priority,
        group_compaction_bytes: options.group_compaction_bytes,
        seek_compaction_bytes: options.seek_compaction_bytes,
        grandparent_bytes_max: options.grandparent_bytes_max,
        settle_checks_grandparents: options.settle_checks_grandparents,
        overlap_aware_tables: options.overlap_aware_tables,
        align_tables: options.align_tables,
        compaction_candidates_max: options.compaction_candidates_max,
    }
}

impl ColumnFamilyOptions {
    /// The most runs that level 0 may have while no compaction is due.
    pub(super) fn runs_at_rest(&self) -> u32 {
        let told = told_column_family(self);
        told.policy().runs_at_rest(&told)
    }

    /// How tables of `level` are compressed when a flush writes them.
    pub(crate) fn compression_of(&self, level: usize) -> Compression {
        let last = self.compression.len().saturating_sub(1);
        self.compression.get(level.min(last)).copied().unwrap_or(Compression::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_level_follows_what_level_0_has_unless_told() {
        let mut options = Options::default();
        let base =
            |options: &Options| column_family(options, &options.column_family).level_base_bytes;
        assert_eq!(base(&options), 704 << 20, "2.75 times four memtables");
        options.column_family.memtable_bytes = 16 << 20;
        options.column_family.level0_trigger = 6;
        assert_eq!(base(&options), 264 << 20);
        options.column_family.level_base_bytes = 1;
        assert_eq!(base(&options), 1);
        options.column_family = Options::profile("rocksdb").unwrap().column_family;
        assert_eq!(base(&options), 256 << 20);
    }
}
