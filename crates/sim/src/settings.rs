//! Sets options of a policy by name.

use std::time::Duration;

use sateen_control::options::{
    AdmissionPolicy, CompactionPri, CompactionStyle, DebtLimit, Preemption, RateLimiterMode,
};

use crate::config::Policy;
use crate::error::{Error, Result};

/// The options that [`Policy::set`] knows.
pub const SETTING_NAMES: &[&str] = &[
    "max_background_jobs",
    "max_background_flushes",
    "max_background_compactions",
    "l0_slots_reserved",
    "parallel_only_under_pressure",
    "scheduler_bandwidth",
    "scheduler_priority",
    "scheduler_floor",
    "scheduler_headroom",
    "scheduler_change_threshold",
    "debt_floor",
    "scheduler_drain_time",
    "preemption",
    "preempt_discard",
    "device_bandwidth",
    "tuner",
    "tuner_interval",
    "tuner_hold_time",
    "tuner_slots_max",
    "tuner_memtable_bytes_max",
    "tuner_debt_time",
    "tuner_debt_bytes",
    "write_controller",
    "slice_bytes_max",
    "rate_limiter_bytes_per_second",
    "rate_limiter_auto_tuned",
    "rate_limiter_mode",
    "delayed_write_rate",
    "read_request_bytes",
    "write_request_bytes",
    "level0_cache_percent",
    "num_levels",
    "write_buffer_size",
    "max_write_buffer_number",
    "min_write_buffer_number_to_merge",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
    "soft_pending_compaction_bytes_limit",
    "hard_pending_compaction_bytes_limit",
    "max_bytes_for_level_base",
    "max_bytes_for_level_multiplier",
    "level_compaction_dynamic_level_bytes",
    "target_file_size_base",
    "target_file_size_multiplier",
    "max_compaction_bytes",
    "compaction_pri",
    "intra_level0_compaction",
    "level_compaction_dynamic_file_size",
    "level0_file_size",
    "cut_at_gaps",
    "base_level_multiplier",
    "level0_stripe_bytes",
    "level0_fifo",
    "overlap_aware",
    "group_compaction_bytes",
    "settled_compaction",
    "disable_auto_compactions",
    "compaction_style",
    "tiered_size_ratio",
    "tiered_merge_width_min",
    "tiered_merge_width_max",
    "tiered_size_amplification_max",
    "tiered_trivial_move",
];

impl Policy {
    /// Sets one option. Sizes may end in K, M, G or T (powers of 1024); times are in milliseconds.
    ///
    /// # Errors
    /// If no option has this name, or the option does not take this value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let known = self.set_control(name, value)?
            || self.set_tuner(name, value)?
            || self.set_family(name, value)?;
        if !known {
            return Err(Error::usage(format!(
                "there is no option {name:?}; there are: {}",
                SETTING_NAMES.join(", ")
            )));
        }
        Ok(())
    }

    /// Returns false if `name` is not an option of the whole database.
    fn set_control(&mut self, name: &str, value: &str) -> Result<bool> {
        let control = &mut self.control;
        let limiter = &mut control.rate_limiter;
        let scheduler = &mut control.scheduler;
        let some = |bytes: u64| Some(bytes).filter(|bytes| *bytes > 0);
        match name {
            "scheduler_bandwidth" => scheduler.bandwidth = flag(name, value)?,
            "scheduler_priority" => scheduler.priority = flag(name, value)?,
            "scheduler_floor" => scheduler.floor_bytes_per_second = some(bytes(name, value)?),
            "scheduler_headroom" => scheduler.headroom = number(name, value)?,
            "scheduler_change_threshold" => {
                scheduler.change_bytes_per_second = some(bytes(name, value)?);
            }
            "debt_floor" => scheduler.debt_floor = flag(name, value)?,
            "scheduler_drain_time" => {
                scheduler.drain_time = Duration::from_millis(number(name, value)?);
            }
            "preempt_discard" => scheduler.discard_preempted = flag(name, value)?,
            "device_bandwidth" => scheduler.device_bytes_per_second = some(bytes(name, value)?),
            "preemption" => {
                scheduler.preemption = match value {
                    "off" => Preemption::Off,
                    "least-loss" => Preemption::LeastLoss,
                    "random" => Preemption::Random,
                    _ => return wrong(name, value, "off, least-loss or random"),
                };
            }
            "write_controller" => {
                control.admission = match value {
                    "smooth" => AdmissionPolicy::Smooth,
                    "triggers" => AdmissionPolicy::Triggers,
                    _ => return wrong(name, value, "smooth or triggers"),
                };
            }
            "max_background_jobs" => {
                *control = control.clone().with_max_background_jobs(number(name, value)?);
            }
            "max_background_flushes" => control.max_background_flushes = number(name, value)?,
            "max_background_compactions" => {
                control.max_background_compactions = number(name, value)?;
            }
            "l0_slots_reserved" => control.l0_slots_reserved = number(name, value)?,
            "parallel_only_under_pressure" => {
                control.parallel_only_under_pressure = flag(name, value)?;
            }
            "slice_bytes_max" => control.slice_bytes_max = bytes(name, value)?.max(4096),
            "rate_limiter_bytes_per_second" => {
                limiter.bytes_per_second = some(bytes(name, value)?);
            }
            "rate_limiter_auto_tuned" => limiter.auto_tuned = flag(name, value)?,
            "rate_limiter_mode" => {
                limiter.mode = match value {
                    "reads-only" => RateLimiterMode::ReadsOnly,
                    "writes-only" => RateLimiterMode::WritesOnly,
                    "all-io" => RateLimiterMode::AllIo,
                    _ => return wrong(name, value, "reads-only, writes-only or all-io"),
                };
            }
            "read_request_bytes" => self.read_request_bytes = bytes(name, value)?,
            "write_request_bytes" => self.write_request_bytes = bytes(name, value)?,
            "level0_cache_percent" => self.level0_cache_percent = number(name, value)?,
            "delayed_write_rate" => control.delayed_write_rate = bytes(name, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns false if `name` is not an option of the tuner.
    fn set_tuner(&mut self, name: &str, value: &str) -> Result<bool> {
        let tuner = &mut self.control.tuner;
        match name {
            "tuner" => {
                (tuner.slots, tuner.memtables) = match value {
                    "off" => (false, false),
                    "adoc" => (true, true),
                    "adoc-threads" => (true, false),
                    "adoc-batch" => (false, true),
                    _ => return wrong(name, value, "off, adoc, adoc-threads or adoc-batch"),
                };
            }
            "tuner_interval" => tuner.interval = Duration::from_millis(number(name, value)?),
            "tuner_hold_time" => tuner.hold_time = Duration::from_millis(number(name, value)?),
            "tuner_slots_max" => tuner.slots_max = number(name, value)?,
            "tuner_memtable_bytes_max" => tuner.memtable_bytes_max = bytes(name, value)?,
            "tuner_debt_time" => {
                tuner.debt = DebtLimit::Time(Duration::from_millis(number(name, value)?));
            }
            "tuner_debt_bytes" => tuner.debt = DebtLimit::Bytes(bytes(name, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns false if `name` is not an option of a column family.
    fn set_family(&mut self, name: &str, value: &str) -> Result<bool> {
        let family = &mut self.family;
        match name {
            "num_levels" => family.num_levels = number(name, value)?,
            "write_buffer_size" => family.write_buffer_size = bytes(name, value)?,
            "max_write_buffer_number" => family.max_write_buffer_number = number(name, value)?,
            "min_write_buffer_number_to_merge" => {
                family.min_write_buffer_number_to_merge = number(name, value)?;
            }
            "level0_file_num_compaction_trigger" => {
                family.level0_file_num_compaction_trigger = number(name, value)?;
            }
            "level0_slowdown_writes_trigger" => {
                family.level0_slowdown_writes_trigger = number(name, value)?;
            }
            "level0_stop_writes_trigger" => {
                family.level0_stop_writes_trigger = number(name, value)?;
            }
            "soft_pending_compaction_bytes_limit" => {
                family.soft_pending_compaction_bytes_limit = bytes(name, value)?;
            }
            "hard_pending_compaction_bytes_limit" => {
                family.hard_pending_compaction_bytes_limit = bytes(name, value)?;
            }
            "max_bytes_for_level_base" => family.max_bytes_for_level_base = bytes(name, value)?,
            "max_bytes_for_level_multiplier" => {
                family.max_bytes_for_level_multiplier = number(name, value)?;
            }
            "level_compaction_dynamic_level_bytes" => {
                family.level_compaction_dynamic_level_bytes = flag(name, value)?;
            }
            "target_file_size_base" => family.target_file_size_base = bytes(name, value)?,
            "target_file_size_multiplier" => {
                family.target_file_size_multiplier = number(name, value)?;
            }
            "max_compaction_bytes" => family.max_compaction_bytes = bytes(name, value)?,
            "compaction_pri" => {
                family.leveled.compaction_pri = match value {
                    "min-overlapping-ratio" => CompactionPri::MinOverlappingRatio,
                    "round-robin" => CompactionPri::RoundRobin,
                    "oldest-largest-seq-first" => CompactionPri::OldestLargestSeqFirst,
                    "oldest-smallest-seq-first" => CompactionPri::OldestSmallestSeqFirst,
                    _ => return wrong(name, value, "such as min-overlapping-ratio, round-robin"),
                };
            }
            "intra_level0_compaction" => {
                family.leveled.intra_level0_compaction = flag(name, value)?
            }
            "level0_file_size" => family.level0_file_size = bytes(name, value)?,
            "base_level_multiplier" => family.leveled.base_level_multiplier = number(name, value)?,
            "level0_stripe_bytes" => family.leveled.level0_stripe_bytes = bytes(name, value)?,
            "level0_fifo" => family.leveled.level0_fifo = flag(name, value)?,
            "overlap_aware" => family.leveled.overlap_aware = flag(name, value)?,
            "group_compaction_bytes" => family.leveled.group_compaction_bytes = bytes(name, value)?,
            "settled_compaction" => family.settled_compaction = flag(name, value)?,
            "cut_at_gaps" => family.cut_at_gaps = flag(name, value)?,
            "level_compaction_dynamic_file_size" => {
                family.leveled.level_compaction_dynamic_file_size = flag(name, value)?;
            }
            "disable_auto_compactions" => family.disable_auto_compactions = flag(name, value)?,
            "compaction_style" => {
                family.compaction_style = CompactionStyle::from_name(value)
                    .map_or_else(|| wrong(name, value, CompactionStyle::NAMES_IN_WORDS), Ok)?;
            }
            "tiered_size_ratio" => family.tiered.size_ratio = number(name, value)?,
            "tiered_merge_width_min" => family.tiered.min_merge_width = number(name, value)?,
            "tiered_merge_width_max" => family.tiered.max_merge_width = number(name, value)?,
            "tiered_size_amplification_max" => {
                family.tiered.max_size_amplification_percent = number(name, value)?;
            }
            "tiered_trivial_move" => family.tiered.allow_trivial_move = flag(name, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn wrong<T>(name: &str, value: &str, expected: &str) -> Result<T> {
    Err(Error::usage(format!("{name}={value}: expected {expected}")))
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().or_else(|_| wrong(name, value, "a number"))
}

fn flag(name: &str, value: &str) -> Result<bool> {
    match value {
        "true" | "on" => Ok(true),
        "false" | "off" => Ok(false),
        _ => wrong(name, value, "true or false"),
    }
}

fn bytes(name: &str, value: &str) -> Result<u64> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match value.get(digits.len()..).unwrap_or("").to_ascii_lowercase().as_str() {
        "" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return wrong(name, value, "a size such as 64M"),
    };
    let number: u64 = digits.parse().or_else(|_| wrong(name, value, "a size such as 64M"))?;
    number
        .checked_shl(shift)
        .filter(|n| n >> shift == number)
        .map_or_else(|| wrong(name, value, "a smaller size"), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_and_takes_a_value() {
        let mut policy = Policy::named("rocksdb", 1).unwrap();
        for name in SETTING_NAMES {
            let values = ["7", "true", "all-io", "round-robin", "off", "smooth", "tiered"];
            assert!(values.iter().any(|value| policy.set(name, value).is_ok()), "{name}");
        }
    }

    #[test]
    fn values_arrive_and_nonsense_is_refused_with_the_option_named() {
        let mut policy = Policy::named("rocksdb", 1).unwrap();
        policy.set("write_buffer_size", "16M").unwrap();
        policy.set("rate_limiter_auto_tuned", "true").unwrap();
        assert_eq!(policy.family.write_buffer_size, 16 << 20);
        assert!(policy.control.rate_limiter.auto_tuned);
        for (name, value) in
            [("write_buffer_size", "16Q"), ("num_levels", "many"), ("colour", "red")]
        {
            let error = policy.set(name, value).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
