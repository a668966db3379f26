//! Which option values are possible, and which contradict each other. Each refusal names the
//! option, its value and what it must be.

use sateen_control::Comparator;
use sateen_store::base::error::{Error, Result};
use sateen_store::table::Compression;

use super::{ColumnFamilyOptions, CompactionStyle, GIB, MIB, Options, WalMode};

/// The largest value that any setting may allow (format rule F11).
const VALUE_BYTES_MAX: u64 = GIB;

pub(super) fn database(options: &Options) -> Result<()> {
    let check = |name, fine, must| require(options.get(name), name, fine, must);
    if options.error_if_exists && !options.create_if_missing {
        return contradiction("error_if_exists needs create_if_missing: no directory would open");
    }
    check("background_threads", options.background_threads <= 1024, "at most 1024")?;
    check("max_background_flushes", options.max_background_flushes >= 1, "at least 1")?;
    check("max_background_compactions", options.max_background_compactions >= 1, "at least 1")?;
    check("background_thread_nice", options.background_thread_nice <= 19, "0 to 19")?;
    check("level0_cache_percent", options.level0_cache_percent <= 90, "at most 90")?;
    check("scheduler_headroom", options.scheduler_headroom < 1000, "at most 999")?;
    check(
        "slice_bytes_max",
        (4096..=64 * MIB).contains(&options.slice_bytes_max),
        "4KiB to 64MiB",
    )?;
    check("tuner_interval", !options.tuner_interval.is_zero(), "above 0")?;
    check("tuner_slots_max", options.tuner_slots_max <= 1024, "at most 1024, or 0")?;
    check("tuner_memtable_bytes_max", options.tuner_memtable_bytes_max >= 1, "at least 1")?;
    check("tuner_debt_time", !options.tuner_debt_time.is_zero(), "above 0")?;
    check(
        "tuner_debt_bytes",
        options.tuner_debt_bytes.is_none_or(|bytes| bytes >= 1),
        "at least 1, or none",
    )?;
    check("max_open_files", options.max_open_files >= 16, "at least 16")?;
    check("commit_group_bytes_max", options.commit_group_bytes_max >= 1, "at least 1")?;
    check(
        "value_bytes_max",
        (1..=VALUE_BYTES_MAX).contains(&options.value_bytes_max),
        "1 to 1GiB",
    )?;
    check(
        "compaction_readahead_bytes",
        options.compaction_readahead_bytes <= 64 * MIB,
        "at most 64MiB",
    )?;
    check("manifest_bytes_max", options.manifest_bytes_max >= 1, "at least 1")?;
    check(
        "delayed_write_bytes_per_second",
        options.delayed_write_bytes_per_second >= 1,
        "at least 1",
    )?;
    check(
        "device_bandwidth",
        options.device_bandwidth.is_none_or(|bytes| bytes >= MIB),
        "at least 1MiB, or none",
    )?;
    if options.rate_limit_auto_tune && options.rate_limit_bytes_per_second == 0 {
        return contradiction(
            "rate_limit_auto_tune needs rate_limit_bytes_per_second, the upper end of its range",
        );
    }
    if let WalMode::SyncInterval(interval) = options.wal {
        check("wal", !interval.is_zero(), "an interval above 0, or sync")?;
    }
    column_family(&options.column_family)?;
    if let Some(budget) = options.memory_budget {
        let family = &options.column_family;
        let regions = family.regions.count() as u64;
        let memtables = family.memtable_bytes.saturating_mul(u64::from(family.memtables_max));
        let memtables = memtables.saturating_mul(regions);
        check("memory_budget", budget >= MIB, "at least 1MiB, or none")?;
        if memtables > budget {
            return contradiction(&format!(
                "memory_budget {} is less than memtables_max {} times memtable_bytes {} in each of \
                 {regions} regions",
                options.get("memory_budget")?,
                family.memtables_max,
                family.get("memtable_bytes")?
            ));
        }
    }
    Ok(())
}

pub(super) fn column_family(options: &ColumnFamilyOptions) -> Result<()> {
    let check = |name, fine, must| require(options.get(name), name, fine, must);
    check("memtable_bytes", options.memtable_bytes >= 1, "at least 1")?;
    check("memtables_max", options.memtables_max >= 2, "at least 2: one written, one flushed")?;
    if !(1..options.memtables_max).contains(&options.memtables_to_flush_min) {
        let (min, max) = (options.memtables_to_flush_min, options.memtables_max);
        return contradiction(&format!(
            "memtables_to_flush_min {min} must be at least 1 and less than memtables_max {max}"
        ));
    }
    check("level0_trigger", options.level0_trigger >= 1, "at least 1")?;
    let (trigger, slowdown, stop) =
        (options.level0_trigger, options.level0_slowdown, options.level0_stop);
    if !(trigger <= slowdown && slowdown <= stop) {
        return contradiction(&format!(
            "level0_trigger {trigger}, level0_slowdown {slowdown} and level0_stop {stop} must not \
             go down in this order"
        ));
    }
    tiered(options)?;
    check(
        "memtable_hot_part",
        (0.0..=0.5).contains(&options.memtable_hot_part),
        "0 to 0.5: more would fill the next memtable",
    )?;
    check(
        "level0_overlap_min",
        (0.0..=1.0).contains(&options.level0_overlap_min),
        "0 to 1: a part of the keys",
    )?;
    let runs_max = options.level0_overlap_runs_max;
    if options.level0_overlap_min > 0.0 && !(1..=slowdown).contains(&runs_max) {
        return contradiction(&format!(
            "level0_overlap_runs_max {runs_max} must be at least 1 and not above level0_slowdown \
             {slowdown}: level 0 would wait for overlap while writers wait for level 0"
        ));
    }
    check("levels", (2..=16).contains(&options.levels), "2 to 16")?;
    check(
        "level_multiplier",
        options.level_multiplier > 1.0 && options.level_multiplier <= 1000.0,
        "above 1, at most 1000",
    )?;
    check(
        "base_level_multiplier",
        options.base_level_multiplier == 0.0
            || (options.level_multiplier..=1000.0).contains(&options.base_level_multiplier),
        "0, or level_multiplier to 1000",
    )?;
    check("table_bytes", options.table_bytes >= 1, "at least 1")?;
    check("table_multiplier", options.table_multiplier >= 1, "at least 1")?;
    let (soft, hard) =
        (options.soft_pending_compaction_bytes, options.hard_pending_compaction_bytes);
    if soft > hard && hard != 0 {
        return contradiction(&format!(
            "soft_pending_compaction_bytes {} is above hard_pending_compaction_bytes {}",
            options.get("soft_pending_compaction_bytes")?,
            options.get("hard_pending_compaction_bytes")?
        ));
    }
    check("block_bytes", (1..=16 * MIB).contains(&options.block_bytes), "1 to 16MiB")?;
    check("restart_interval", (1..=65_535).contains(&options.restart_interval), "1 to 65535")?;
    check("bloom_bits_per_key", options.bloom_bits_per_key <= 64, "at most 64")?;
    check("compression", !options.compression.is_empty(), "at least one name")?;
    let zstd = options.compression.contains(&Compression::Zstd);
    check(
        "compression",
        cfg!(feature = "zstd") || !zstd,
        "none or lz4: zstd is not part of this build",
    )?;
    check("zstd_level", (1..=22).contains(&options.zstd_level), "1 to 22")?;
    comparator(options)?;
    check("ttl", options.ttl.is_none_or(|ttl| ttl.subsec_nanos() == 0), "a number of whole seconds")
}

/// Writers must not wait for merges that are never due.
fn tiered(options: &ColumnFamilyOptions) -> Result<()> {
    let (width_min, width_max) = (options.tiered_merge_width_min, options.tiered_merge_width_max);
    if width_max < width_min.max(2) {
        return contradiction(&format!(
            "tiered_merge_width_max {width_max} must be at least 2 and not below \
             tiered_merge_width_min {width_min}: no runs would be merged"
        ));
    }
    let (at_rest, slowdown) = (options.runs_at_rest(), options.level0_slowdown);
    if options.compaction_style == CompactionStyle::Tiered && slowdown < at_rest.saturating_add(1) {
        return contradiction(&format!(
            "level0_slowdown {slowdown} must be above {at_rest}: so many runs may stay without a \
             compaction, with compaction_style {}, level0_trigger {} and tiered_merge_width_min \
             {width_min}",
            options.get("compaction_style")?,
            options.level0_trigger,
        ));
    }
    Ok(())
}

fn comparator(options: &ColumnFamilyOptions) -> Result<()> {
    let comparator = &options.comparator;
    if comparator.is_bytewise() {
        return Ok(());
    }
    if matches!(comparator.name(), "" | Comparator::BYTEWISE_NAME) {
        return contradiction(&format!(
            "a comparator of the user's may not be called {:?}",
            comparator.name()
        ));
    }
    if options.regions.count() > 1 {
        return contradiction(&format!(
            "regions are parts of the order of bytes; the comparator is {}",
            comparator.name()
        ));
    }
    Ok(())
}

fn require(value: Result<String>, name: &str, fine: bool, must: &str) -> Result<()> {
    if fine {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!("option {name} is {}: it must be {must}", value?)))
}

fn contradiction(text: &str) -> Result<()> {
    Err(Error::InvalidArgument(text.to_owned()))
}
