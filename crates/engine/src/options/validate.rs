//! Which option values are possible, and which contradict each other. The schema has the limits of
//! each option; here are the rules between options. Each refusal names the option, its value and
//! what it must be.

use sateen_control::Comparator;
use sateen_store::base::error::{Error, Result};
use sateen_store::table::Compression;

use super::lookup::out_of_limits;
use super::paths::check_paths;
use super::{ColumnFamilyOptions, CompactionStyle, Options};

pub(super) fn database(options: &Options) -> Result<()> {
    options.check_limits()?;
    if options.error_if_exists && !options.create_if_missing {
        return contradiction("error_if_exists needs create_if_missing: no directory would open");
    }
    if options.rate_limit_auto_tune && options.rate_limit_bytes_per_second == 0 {
        return contradiction(
            "rate_limit_auto_tune needs rate_limit_bytes_per_second, the upper end of its range",
        );
    }
    column_family(&options.column_family)?;
    options.check_paths(&options.column_family)?;
    if let Some(budget) = options.memory_budget {
        let family = &options.column_family;
        let regions = family.regions.count() as u64;
        let memtables = family.memtable_bytes.saturating_mul(u64::from(family.memtables_max));
        let memtables = memtables.saturating_mul(regions);
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
    options.check_limits()?;
    let (flush_min, max) = (options.memtables_to_flush_min, options.memtables_max);
    if flush_min >= max {
        return contradiction(&format!(
            "memtables_to_flush_min {flush_min} must be less than memtables_max {max}"
        ));
    }
    let (trigger, slowdown, stop) =
        (options.level0_trigger, options.level0_slowdown, options.level0_stop);
    if !(trigger <= slowdown && slowdown <= stop) {
        return contradiction(&format!(
            "level0_trigger {trigger} must be at most level0_slowdown {slowdown}, and that at most \
             level0_stop {stop}"
        ));
    }
    tiered(options)?;
    let runs_max = options.level0_overlap_runs_max;
    if options.level0_overlap_min > 0.0 && !(1..=slowdown).contains(&runs_max) {
        return contradiction(&format!(
            "level0_overlap_runs_max {runs_max} must be at least 1 and not above level0_slowdown \
             {slowdown}: level 0 would wait for overlap while writers wait for level 0"
        ));
    }
    let (base, multiplier) = (options.base_level_multiplier, options.level_multiplier);
    if base != 0.0 && base < multiplier {
        return contradiction(&format!(
            "base_level_multiplier {base} must be 0 or not below level_multiplier {multiplier}"
        ));
    }
    let (soft, hard) =
        (options.soft_pending_compaction_bytes, options.hard_pending_compaction_bytes);
    if soft > hard && hard != 0 {
        return contradiction(&format!(
            "soft_pending_compaction_bytes {} is above hard_pending_compaction_bytes {}",
            options.get("soft_pending_compaction_bytes")?,
            options.get("hard_pending_compaction_bytes")?
        ));
    }
    if cfg!(not(feature = "zstd")) && options.compression.contains(&Compression::Zstd) {
        let must = "none or lz4: zstd is not part of this build".to_owned();
        return Err(out_of_limits("compression", &options.get("compression")?, Some(must)));
    }
    check_paths("family_paths", &options.family_paths, options.compaction_style)?;
    comparator(options)
}

/// Writers must not wait for merges that are never due.
fn tiered(options: &ColumnFamilyOptions) -> Result<()> {
    let (width_min, width_max) = (options.tiered_merge_width_min, options.tiered_merge_width_max);
    if width_max < width_min {
        return contradiction(&format!(
            "tiered_merge_width_max {width_max} must not be below tiered_merge_width_min \
             {width_min}: no runs would be merged"
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

fn contradiction(text: &str) -> Result<()> {
    Err(Error::InvalidArgument(text.to_owned()))
}
