//! Properties by name, as users of RocksDB ask for them ([`Db::property`](crate::Db::property)):
//! one number, or a text for people.

use std::sync::Arc;

use sateen_store::base::names::shown;

use crate::core::DbCore;
use crate::db::observe::Observer;
use crate::metrics::LevelShape;
use crate::tree::families::ColumnFamilyData;

/// The names that [`Db::property`](crate::Db::property) knows, without prefix. `<N>` stands for a
/// level.
pub const PROPERTIES: &[&str] = &[
    "stats",
    "dbstats",
    "levelstats",
    "cfstats",
    "sstables",
    "base-level",
    "num-files-at-level<N>",
    "bytes-at-level<N>",
    "estimate-num-keys",
    "estimate-live-data-size",
    "total-sst-files-size",
    "num-immutable-mem-table",
    "mem-table-flush-pending",
    "compaction-pending",
    "num-running-flushes",
    "num-running-compactions",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "num-entries-active-mem-table",
    "num-deletes-active-mem-table",
    "num-range-tombstones",
    "num-entries-imm-mem-tables",
    "num-deletes-imm-mem-tables",
    "num-snapshots",
    "oldest-snapshot-sequence",
    "min-log-number-to-keep",
    "background-errors",
    "is-file-deletions-enabled",
    "is-write-stopped",
    "actual-delayed-write-rate",
    "device-read-bandwidth",
    "device-write-bandwidth",
    "device-barrier-nanoseconds",
    "is-short-of-processor",
    "compaction-debt-milliseconds",
    "flush-slots",
    "compaction-slots",
    "memtable-limit-bytes",
    "estimate-pending-compaction-bytes",
    "block-cache-usage",
    "block-cache-capacity",
    "block-cache-pinned-usage",
    "estimate-table-readers-mem",
    "options",
    "health",
];

/// Returns the property `name`, without its prefix, of `family` or the database.
pub(super) fn property(
    core: &DbCore,
    family: &Arc<ColumnFamilyData>,
    name: &str,
) -> Option<String> {
    let level_of = |prefix: &str| name.strip_prefix(prefix)?.parse::<u8>().ok();
    let sum = |what: &dyn Fn(&ColumnFamilyData) -> u64| {
        family.trees().map(|tree| what(tree)).sum::<u64>()
    };
    if let Some(level) = level_of("num-files-at-level") {
        let tables = |tree: &ColumnFamilyData| tree.super_version().version.level(level).tables();
        return Some(sum(&|tree| tables(tree) as u64).to_string());
    }
    if let Some(level) = level_of("bytes-at-level") {
        let bytes = |tree: &ColumnFamilyData| tree.super_version().version.level(level).bytes();
        return Some(sum(&bytes).to_string());
    }
    let limit = || family.trees().filter_map(|tree| Observer { core }.write_rate_limit(tree)).min();
    let number: u64 = match name {
        "stats" => return Some(shape_text(core, family) + "\n" + &stats_text(core)),
        "dbstats" => return Some(stats_text(core)),
        "levelstats" | "cfstats" | "cfstats-no-file-histogram" => {
            return Some(shape_text(core, family));
        }
        "sstables" => return Some(tables_text(family)),
        "options" => return Some(core.env.options.load().to_text()),
        "health" => return Some(core.env.health.health().name().to_owned()),
        "estimate-num-keys" => sum(&estimated_keys),
        "estimate-live-data-size" | "total-sst-files-size" | "live-sst-files-size" => {
            sum(&|tree| tree.super_version().version.bytes())
        }
        "num-immutable-mem-table" => sum(&|tree| tree.sealed_usage().0 as u64),
        "mem-table-flush-pending" => u64::from(family.trees().any(|tree| tree.wants_flush())),
        "compaction-pending" => u64::from(core.background.driver.has_due_work()),
        "num-running-flushes" => core.background.driver.running().0,
        "num-running-compactions" => core.background.driver.running().1,
        "cur-size-active-mem-table" => sum(&|tree| tree.active_memtable().memory_bytes() as u64),
        "cur-size-all-mem-tables" => sum(&|tree| memtable_bytes(tree)),
        "size-all-mem-tables" => sum(&|tree| memtable_bytes(tree) + tree.held_bytes()),
        "num-entries-active-mem-table" => sum(&|tree| tree.active_memtable().entries() as u64),
        "num-deletes-active-mem-table" => sum(&|tree| tree.active_memtable().tombstones() as u64),
        "num-range-tombstones" => {
            sum(&|tree| tree.super_version().ranges().map_or(0, |ranges| ranges.len() as u64))
        }
        "num-entries-imm-mem-tables" => sum(&|tree| {
            tree.super_version().sealed.iter().map(|sealed| sealed.entries() as u64).sum()
        }),
        "num-deletes-imm-mem-tables" => sum(&|tree| {
            tree.super_version().sealed.iter().map(|sealed| sealed.tombstones() as u64).sum()
        }),
        "num-snapshots" => core.writes.snapshots.count() as u64,
        "oldest-snapshot-sequence" => core.writes.snapshots.oldest().map_or(0, |seqno| seqno.0),
        "min-log-number-to-keep" => {
            core.writes.pipeline.live_logs().iter().map(|(number, _)| number.0).min().unwrap_or(0)
        }
        "base-level" => {
            let occupied = |tree: &Arc<ColumnFamilyData>| {
                let version = tree.super_version().version.clone();
                let mut levels = version.levels().iter().skip(1);
                levels.position(|level| !level.is_empty()).map(|at| at as u64 + 1)
            };
            family.trees().filter_map(occupied).min().unwrap_or(0)
        }
        "background-errors" => core.env.metrics.snapshot().background_errors,
        "is-file-deletions-enabled" => u64::from(!core.tree.reclaimer.is_held()),
        "is-write-stopped" => u64::from(limit() == Some(0)),
        "actual-delayed-write-rate" => limit().unwrap_or(0),
        "device-read-bandwidth" => core.background.driver.device().read_bytes_per_second,
        "device-write-bandwidth" => core.background.driver.device().write_bytes_per_second,
        "is-short-of-processor" => u64::from(core.background.driver.is_short_of_processor()),
        "device-barrier-nanoseconds" => core.background.driver.device().barrier_ns,
        "compaction-debt-milliseconds" => {
            u64::try_from(core.background.driver.debt().as_millis()).unwrap_or(u64::MAX)
        }
        "flush-slots" => core.background.driver.scheduling().flush_slots,
        "compaction-slots" => core.background.driver.scheduling().compaction_slots,
        "memtable-limit-bytes" => {
            family.trees().map(|tree| tree.next_memtable_bytes()).max().unwrap_or(0)
        }
        "estimate-pending-compaction-bytes" => sum(&|tree| Observer { core }.standing_of(tree).0),
        "block-cache-usage" => core.tree.blocks.usage_bytes(),
        "block-cache-capacity" => core.tree.blocks.capacity(),
        "block-cache-pinned-usage" => core.tree.blocks.pinned_bytes(),
        "estimate-table-readers-mem" => core.tree.tables.memory_bytes(),
        _ => return None,
    };
    Some(number.to_string())
}

/// Returns one line for each table: its level, size and key range.
fn tables_text(family: &Arc<ColumnFamilyData>) -> String {
    let mut text = String::new();
    for tree in family.trees() {
        for (level, _, table) in tree.super_version().version.tables() {
            text.push_str(&format!(
                "L{level} table {}: {} bytes, {} entries, {:?} to {:?}\n",
                table.id.0,
                table.size_bytes,
                table.entries,
                table.smallest.bytes().escape_ascii().to_string(),
                table.largest.bytes().escape_ascii().to_string(),
            ));
        }
    }
    text
}

fn memtable_bytes(tree: &ColumnFamilyData) -> u64 {
    tree.active_memtable().memory_bytes() as u64 + tree.sealed_usage().1
}

fn estimated_keys(tree: &ColumnFamilyData) -> u64 {
    let version = tree.super_version().version.clone();
    let entries =
        version.tables().map(|(_, _, table)| table.entries.saturating_sub(2 * table.tombstones));
    entries.sum::<u64>() + tree.active_memtable().entries() as u64
}

/// Returns a title as RocksDB's, one line for each level, and one for the debt.
fn shape_text(core: &DbCore, family: &Arc<ColumnFamilyData>) -> String {
    use std::fmt::Write;
    let head = "level     runs   tables          bytes         target           good";
    let mut text = format!("** Compaction Stats [{}] **\n{head}\n", shown(family.name()));
    let shape = Observer { core }.family_metrics(family);
    for (number, level) in shape.levels.iter().enumerate() {
        let LevelShape { runs, tables, bytes, good_bytes, target_bytes } = level;
        // Writing to a string does not fail.
        let _infallible = writeln!(
            text,
            "L{number:<8} {runs:>4} {tables:>8} {bytes:>14} {target_bytes:>14} {good_bytes:>14}"
        );
    }
    let _infallible = writeln!(
        text,
        "compaction debt {} bytes; a full level 0 would wait for {} compactions of {} bytes",
        shape.compaction_debt_bytes, shape.chain_length, shape.chain_bytes,
    );
    text
}

/// Returns a summary of the metrics as text.
fn stats_text(core: &DbCore) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let metrics = Observer { core }.collect_metrics();
    let _infallible = writeln!(
        text,
        "** DB Stats **\n\
         Cumulative writes: {} writes, {} bytes, {} groups\n\
         gets {}  seeks {}  write amplification {:.2}  block cache hits {:.1} %\n\
         flushes {}  compactions {}  memory {} bytes  health {}{}",
        metrics.counts.writes,
        metrics.counts.write_bytes,
        metrics.counts.write_groups,
        metrics.counts.gets,
        metrics.counts.seeks,
        metrics.write_amplification(),
        metrics.block_cache_hit_rate() * 100.0,
        metrics.flushes.count,
        metrics.compactions.iter().map(|level| level.count).sum::<u64>(),
        metrics.memory.total(),
        metrics.health,
        if metrics.scheduler.short_of_processor { ", short of processor" } else { "" },
    );
    let files = metrics.table_files;
    let _infallible = writeln!(
        text,
        "files {}: {} bytes live, {} dead, {} punched in {} holes{}",
        files.files,
        files.live_bytes,
        files.dead_bytes,
        files.punched_bytes,
        files.holes,
        if files.punching { "" } else { "; the file system cannot punch holes" },
    );
    for stall in metrics.stalls.iter().filter(|stall| stall.waits_ns.count() > 0) {
        let _infallible = writeln!(
            text,
            "stalls by {}: {} of {:.3} s in all",
            stall.cause.name(),
            stall.waits_ns.count(),
            stall.waits_ns.sum() as f64 / 1e9,
        );
    }
    text
}
