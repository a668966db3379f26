//! What control is told of the options: the same values under the names and types of its own.

use sateen_control::options as control;
use sateen_control::options::{
    AdmissionPolicy, BottommostLevelCompaction, CfOptions, CompactionPri, CompressionCode,
    ControlOptions, DebtLimit, FifoOptions, GuardsOptions, LeveledOptions, RateLimiterOptions,
    SchedulerOptions, ScrubOptions, TieredOptions, TunerOptions,
};
use sateen_store::table::Compression;

use super::{ColumnFamilyOptions, CompactionPriority, Options, Preemption, Tuner, WriteController};

/// What of the memory budget memtables may grow to: see `background/chores/memory.rs`.
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

/// What a manual compaction does to the lowest level.
pub(crate) fn bottommost(rewrite: bool) -> BottommostLevelCompaction {
    if rewrite { BottommostLevelCompaction::Force } else { BottommostLevelCompaction::IfTombstones }
}

/// The options of the whole database.
pub(crate) fn database(options: &Options) -> ControlOptions {
    let limit = options.rate_limit_bytes_per_second;
    ControlOptions {
        max_background_flushes: options.max_background_flushes.max(1) as usize,
        max_background_compactions: options.max_background_compactions.max(1) as usize,
        slice_bytes_max: options.slice_bytes_max.max(1),
        rate_limiter: RateLimiterOptions {
            bytes_per_second: (limit > 0).then_some(limit),
            auto_tuned: options.rate_limit_auto_tune,
            ..RateLimiterOptions::default()
        },
        delayed_write_rate: options.delayed_write_bytes_per_second,
        atomic_flush: options.atomic_flush,
        admission: match options.write_controller {
            WriteController::Smooth => AdmissionPolicy::Smooth,
            WriteController::Triggers | WriteController::Off => AdmissionPolicy::Triggers,
        },
        parallel_only_under_pressure: options.preemption == Preemption::Off,
        scheduler: SchedulerOptions {
            // Where the caller steps the work nobody samples, and nobody waits.
            bandwidth: options.scheduler_bandwidth && options.background_threads > 0,
            priority: options.scheduler_priority,
            preemption: match options.preemption {
                Preemption::Off => control::Preemption::Off,
                Preemption::LeastLoss => control::Preemption::LeastLoss,
                Preemption::Random => control::Preemption::Random,
            },
            discard_preempted: options.preempt_discard,
            device_bytes_per_second: options.device_bandwidth,
            floor_bytes_per_second: options.scheduler_floor,
            change_bytes_per_second: options.scheduler_change_threshold,
            drain_time: options.scheduler_drain_time,
            headroom: u64::from(options.scheduler_headroom),
            debt_floor: options.debt_floor,
            ..SchedulerOptions::default()
        },
        tuner: tuner(options),
        scrub: ScrubOptions {
            bytes_per_second: options.scrub_rate,
            interval_ns: (options.scrub_interval_seconds > 0)
                .then(|| options.scrub_interval_seconds.saturating_mul(1_000_000_000)),
        },
        ..ControlOptions::default()
    }
}

fn tuner(options: &Options) -> TunerOptions {
    TunerOptions {
        slots: matches!(options.tuner, Tuner::Adoc | Tuner::AdocThreads),
        memtables: matches!(options.tuner, Tuner::Adoc | Tuner::AdocBatch),
        interval: options.tuner_interval,
        hold_time: options.tuner_hold_time,
        slots_max: tuner_slots_max(options),
        memtable_bytes_max: tuner_memtable_bytes_max(options),
        debt: match options.tuner_debt_bytes {
            Some(bytes) => DebtLimit::Bytes(bytes),
            None => DebtLimit::Time(options.tuner_debt_time),
        },
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
    match options.tuner {
        Tuner::Adoc | Tuner::AdocThreads if options.background_threads > 0 => {
            let slots = u32::try_from(tuner_slots_max(options)).unwrap_or(u32::MAX);
            options.background_threads.max(slots)
        }
        _ => options.background_threads,
    }
}

/// The options of a column family of a database with the options `database`.
pub(crate) fn column_family(database: &Options, options: &ColumnFamilyOptions) -> CfOptions {
    let told = told_column_family(options);
    match database.write_controller {
        WriteController::Smooth | WriteController::Triggers => told,
        // Only the limit on memtables is left, which is one of memory.
        WriteController::Off => CfOptions {
            level0_slowdown_writes_trigger: u32::MAX,
            level0_stop_writes_trigger: u32::MAX,
            soft_pending_compaction_bytes_limit: 0,
            hard_pending_compaction_bytes_limit: 0,
            ..told
        },
    }
}

fn told_column_family(options: &ColumnFamilyOptions) -> CfOptions {
    let told = CfOptions {
        compaction_style: options.compaction_style,
        leveled: leveled(options),
        guards: GuardsOptions { runs_max: options.guard_runs },
        tiered: TieredOptions {
            size_ratio: options.tiered_size_ratio,
            min_merge_width: options.tiered_merge_width_min,
            max_merge_width: options.tiered_merge_width_max,
            max_size_amplification_percent: options.tiered_size_amplification_max,
            stop_style: options.tiered_stop_style,
            allow_trivial_move: options.tiered_trivial_move,
        },
        fifo: FifoOptions {
            max_table_files_size: options.fifo_bytes_max,
            allow_compaction: options.fifo_compaction,
        },
        num_levels: options.levels as usize,
        write_buffer_size: options.memtable_bytes,
        max_write_buffer_number: options.memtables_max,
        min_write_buffer_number_to_merge: options.memtables_to_flush_min,
        level0_file_num_compaction_trigger: options.level0_trigger,
        level0_slowdown_writes_trigger: options.level0_slowdown,
        level0_stop_writes_trigger: options.level0_stop,
        soft_pending_compaction_bytes_limit: options.soft_pending_compaction_bytes,
        hard_pending_compaction_bytes_limit: options.hard_pending_compaction_bytes,
        max_bytes_for_level_base: options.level_base_bytes,
        max_bytes_for_level_multiplier: options.level_multiplier,
        level_compaction_dynamic_level_bytes: options.dynamic_level_bytes,
        target_file_size_base: options.table_bytes,
        level0_file_size: options.flush_table_bytes,
        // How far apart keys are is known of bytes alone.
        cut_at_gaps: options.cut_tables_at_gaps && options.comparator.is_bytewise(),
        target_file_size_multiplier: u64::from(options.table_multiplier),
        max_compaction_bytes: options.compaction_bytes_max,
        settled_compaction: options.settled_compaction,
        disable_auto_compactions: options.disable_auto_compactions,
        compression_per_level: options.compression.iter().copied().map(compression_code).collect(),
    };
    if options.level_base_bytes == 0 { told.with_base_for_level0() } else { told }
}

/// The options of the leveled policy.
fn leveled(options: &ColumnFamilyOptions) -> LeveledOptions {
    LeveledOptions {
        level0_stripe_bytes: options.level0_stripe_bytes,
        level0_fifo: options.level0_fifo,
        level0_overlap_min: options.level0_overlap_min,
        level0_overlap_runs_max: options.level0_overlap_runs_max,
        intra_level0_compaction: options.intra_level0_compaction,
        base_level_multiplier: options.base_level_multiplier,
        compaction_pri: match options.compaction_priority {
            CompactionPriority::MinOverlappingRatio => CompactionPri::MinOverlappingRatio,
            CompactionPriority::RoundRobin => CompactionPri::RoundRobin,
        },
        group_compaction_bytes: options.group_compaction_bytes,
        max_grandparent_overlap_bytes: options.grandparent_bytes_max,
        overlap_aware: options.overlap_aware_tables,
        level_compaction_dynamic_file_size: options.align_tables,
        ..LeveledOptions::default()
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
        let base = |options: &Options| {
            column_family(options, &options.column_family).max_bytes_for_level_base
        };
        assert_eq!(base(&options), CfOptions::sateen().max_bytes_for_level_base);
        options.column_family.memtable_bytes = 16 << 20;
        options.column_family.level0_trigger = 6;
        assert_eq!(base(&options), 264 << 20);
        options.column_family.level_base_bytes = 1;
        assert_eq!(base(&options), 1);
        options.column_family = Options::profile("rocksdb").unwrap().column_family;
        assert_eq!(base(&options), 256 << 20);
    }
}
