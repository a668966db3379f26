//! Metrics, the timeline, and properties by name, as users of RocksDB ask for them.
//!
//! - [`Db::metrics`] collects everything into one value (`collect_metrics`).
//! - [`Db::property`] computes one value by name (`property`).

use std::sync::Arc;

use sateen_control::compaction::{CompactionChain, FileSpace, LevelTargets, TreeView, good_bytes};
use sateen_control::version::{Level, Version};
use sateen_control::{AdmissionState, CfOptions, SeqNo, TableMeta, standing};
use sateen_store::base::key::{seek_key, user_key};
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::{iterator::InternalIterator, names::shown};
use sateen_store::memtable::MemTable;

use crate::admission::gate::AdmissionGate;
use crate::core::DbCore;
use crate::db::Db;
use crate::metrics::{
    ColumnFamilyMetrics, LevelShape, MemoryUse, Metrics, TableFile, TableFileTotals,
};
use crate::options::control;
use crate::timeline::Timeline;
use crate::tree::families::ColumnFamilyData;

/// Number of files that one call examines.
const FILES_AT_A_TIME: usize = 1024;

impl Db {
    /// Returns everything that the engine counts, at this moment. A read-only database first
    /// examines each table file once, as [`Db::table_files`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// assert_eq!(db.metrics().health, "ok");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Observer { core: self.core() }.collect_metrics()
    }

    /// Returns the space of each table file, in the order of file numbers. Files that existed at
    /// open and were not examined yet are examined first, which opens each of them.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.flush()?;
    /// assert_eq!(db.table_files().len(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn table_files(&self) -> Vec<TableFile> {
        Observer { core: self.core() }.table_files()
    }

    /// Returns what the flight recorder has: jobs, steps, decisions and stalls of the recent past,
    /// and the slowest operations of each second with where their time went. It copies a few MiB at
    /// most.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.flush()?;
    /// let json = db.timeline().to_json();
    /// assert!(json.contains("flush"));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        let mut timeline = Timeline::default();
        self.extend_timeline(&mut timeline);
        timeline
    }

    /// Brings a timeline of this database up to date. Called every few seconds, it loses nothing.
    /// Events that were overwritten before they were copied are counted in the timeline.
    pub fn extend_timeline(&self, timeline: &mut Timeline) {
        let core = self.core();
        core.env.metrics.timeline.extend(timeline);
        let families = core.tree.families();
        let names = families.values().map(|family| (family.id(), family.name().to_owned()));
        timeline.column_families.extend(names);
    }

    /// Returns a property of the default column family or of the database, such as
    /// `sateen.num-files-at-level0`. The prefix `rocksdb.` is accepted as well. Returns `None` if
    /// the name is unknown. [`PROPERTIES`] lists the names.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// assert_eq!(db.property("sateen.num-entries-active-mem-table").as_deref(), Some("1"));
    /// assert_eq!(db.property("sateen.no-such-property"), None);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn property(&self, name: &str) -> Option<String> {
        self.property_of(&self.core.tree.default_family, name)
    }

    pub(super) fn property_of(&self, family: &Arc<ColumnFamilyData>, name: &str) -> Option<String> {
        let name = name.strip_prefix("sateen.").or_else(|| name.strip_prefix("rocksdb."))?;
        property(self.core(), family, name)
    }

    /// Returns about how many bytes of tables hold the keys from `begin` (inclusive) to `end`
    /// (exclusive).
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert_eq!(db.approximate_size(b"a", b"z"), 0);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn approximate_size(&self, begin: &[u8], end: &[u8]) -> u64 {
        self.table_bytes_in(&self.core.tree.default_family, begin, end)
    }

    pub(super) fn table_bytes_in(
        &self,
        family: &Arc<ColumnFamilyData>,
        begin: &[u8],
        end: &[u8],
    ) -> u64 {
        if family.comparator().compare(begin, end).is_ge() {
            return 0;
        }
        let of_tree = |tree: &Arc<ColumnFamilyData>| {
            let version = tree.super_version().version.clone();
            let runs = version.levels().iter().flat_map(|level| level.runs());
            runs.map(|run| run.bytes_in(run.overlap(begin, end))).sum::<u64>()
        };
        family.trees_between(Some(begin), Some(end)).map(of_tree).sum()
    }

    /// Returns the bytes of keys and values from `begin` (inclusive) to `end` (exclusive) that are
    /// only in memtables. It walks through these entries. RocksDB: `INCLUDE_MEMTABLES`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// assert!(db.memtable_size(b"a", b"z") > 0);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn memtable_size(&self, begin: &[u8], end: &[u8]) -> u64 {
        self.memtable_bytes_in(&self.core.tree.default_family, begin, end)
    }

    pub(super) fn memtable_bytes_in(
        &self,
        family: &Arc<ColumnFamilyData>,
        begin: &[u8],
        end: &[u8],
    ) -> u64 {
        let comparator = family.comparator();
        let of_memtable = |memtable: &Arc<MemTable>| {
            let mut iter = memtable.iter();
            let mut bytes = 0;
            let mut moved = iter.seek(&seek_key(begin, SeqNo::MAX));
            while moved.is_ok()
                && iter.valid()
                && comparator.compare(user_key(iter.key()), end).is_lt()
            {
                bytes += (iter.key().len() + iter.value().len()) as u64;
                moved = iter.next();
            }
            bytes
        };
        let of_tree = |tree: &Arc<ColumnFamilyData>| -> u64 {
            let pinned = tree.super_version();
            std::iter::once(&pinned.active).chain(&pinned.sealed).map(of_memtable).sum()
        };
        family.trees_between(Some(begin), Some(end)).map(of_tree).sum()
    }
}

/// The names that [`Db::property`] knows, without prefix. `<N>` stands for a level.
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

/// Collects metrics and properties of a database.
#[derive(Clone, Copy)]
struct Observer<'a> {
    core: &'a DbCore,
}

impl Observer<'_> {
    /// Collects the metrics of all services.
    pub(crate) fn collect_metrics(&self) -> Metrics {
        let mut metrics = self.core.env.metrics.snapshot();
        let io = self.core.env.vfs.snapshot();
        let log = io.class(sateen_control::IoClass::Wal).totals;
        metrics.counts.wal_bytes = log.write_bytes;
        metrics.counts.wal_syncs = log.syncs;
        metrics.counts.write_groups = self.core.writes.pipeline.groups();
        metrics.counts.table_opens = self.core.tree.tables.opens();
        metrics.io = io.classes.to_vec();
        metrics.counts.data_block_hits = self.core.tree.blocks.hits();
        metrics.counts.data_block_misses = self.core.tree.blocks.misses();
        let families = self.core.tree.families();
        let (mut active, mut immutable, mut versions) = (0, 0, 0);
        for tree in families.values() {
            active += tree.active_memtable().memory_bytes() as u64;
            immutable += tree.sealed_usage().1 + tree.held_bytes();
            versions += version_bytes(&tree.super_version().version);
        }
        metrics.column_families =
            families.named().map(|family| self.family_metrics(family)).collect();
        metrics.scheduler = self.core.background.driver.scheduling();
        metrics.memory = MemoryUse {
            active_memtables: active,
            immutable_memtables: immutable + self.core.writes.memtable_pool.bytes() as u64,
            block_cache: self.core.tree.blocks.usage_bytes(),
            pinned_blocks: self.core.tree.blocks.pinned_bytes(),
            indexes_and_filters: self.core.tree.tables.memory_bytes(),
            job_buffers: self.core.background.driver.buffer_bytes(),
            wal_buffers: self.core.writes.pipeline.buffer_bytes(),
            versions,
            budget: self.core.env.options.load().memory_budget.unwrap_or(0),
        };
        metrics.health = self.core.env.health.health().name();
        metrics.health_cause = self.core.env.health.cause().map(|cause| cause.to_string());
        let (flushes, compactions) = self.core.background.driver.running();
        metrics.running_flushes = flushes;
        metrics.running_compactions = compactions;
        metrics.snapshots = self.core.writes.snapshots.count() as u64;
        metrics.obsolete_bytes = self.core.tree.reclaimer.obsolete_bytes();
        metrics.table_files = self.table_file_totals();
        metrics.scrub = self.core.background.scrubber.metrics();
        metrics.live_wal_bytes =
            self.core.writes.pipeline.live_logs().iter().map(|(_, bytes)| bytes).sum();
        metrics
    }

    /// Returns the metrics of a column family, its regions added up.
    fn family_metrics(&self, family: &Arc<ColumnFamilyData>) -> ColumnFamilyMetrics {
        let mut metrics =
            ColumnFamilyMetrics { name: family.name().to_owned(), ..Default::default() };
        for tree in family.trees() {
            let options = self.options_of(tree);
            let shapes = level_shapes(&tree.super_version().version, &options);
            let (debt, chain) = self.standing_of(tree);
            metrics.levels.resize(metrics.levels.len().max(shapes.len()), LevelShape::default());
            for (all, shape) in metrics.levels.iter_mut().zip(shapes) {
                // A read looks only into the runs of one region.
                all.runs = all.runs.max(shape.runs);
                all.tables += shape.tables;
                all.bytes += shape.bytes;
                all.good_bytes += shape.good_bytes;
                all.target_bytes = all.target_bytes.saturating_add(shape.target_bytes);
            }
            metrics.immutable_memtables += tree.sealed_usage().0 as u64;
            metrics.memtable_limit = metrics.memtable_limit.max(tree.next_memtable_bytes());
            metrics.compaction_debt_bytes += debt;
            metrics.chain_length = metrics.chain_length.max(u64::from(chain.length));
            metrics.chain_bytes = metrics.chain_bytes.max(chain.bytes);
            let version = tree.super_version().version.clone();
            let (bytes, live_bytes) = version.value_files().bytes();
            metrics.value_files += version.value_files().len() as u64;
            metrics.value_file_bytes += bytes;
            metrics.value_garbage_bytes += bytes - live_bytes;
            let limits = [metrics.write_rate_limit, self.write_rate_limit(tree)];
            metrics.write_rate_limit = limits.into_iter().flatten().min();
        }
        metrics
    }

    /// Returns the options of a tree with the sizes that the tuner has adjusted.
    fn options_of(&self, tree: &ColumnFamilyData) -> CfOptions {
        let configured = || control::column_family(&self.core.env.options.load(), &tree.options());
        self.core.background.driver.family_options(tree.id()).unwrap_or_else(configured)
    }

    /// Returns the debt of a tree, and the longest chain of compactions that a flush could wait
    /// for. In a read-only database it is computed here, because control does not run.
    fn standing_of(&self, tree: &ColumnFamilyData) -> (u64, CompactionChain) {
        if self.core.env.read_only {
            let options = Arc::new(self.options_of(tree));
            return standing(options, tree.super_version().version.clone());
        }
        (
            self.core.background.driver.pending_compaction_bytes(tree.id()),
            self.core.background.driver.compaction_chain(tree.id()),
        )
    }

    fn look_at_found_files(&self) {
        while self.core.tree.reclaimer.look_at_found_files(FILES_AT_A_TIME, self.core.env.now()) {}
    }

    fn table_files(&self) -> Vec<TableFile> {
        self.look_at_found_files();
        let file = |space: FileSpace| TableFile {
            number: space.file.0,
            live_bytes: space.live_bytes,
            dead_bytes: space.dead_bytes,
            punched_bytes: space.punched_bytes,
            holes: space.holes,
        };
        self.core.tree.reclaimer.spaces().into_iter().map(file).collect()
    }

    /// Returns the sums over all table files.
    fn table_file_totals(&self) -> TableFileTotals {
        if self.core.env.read_only {
            // A read-only database has no chores that examine files found at open.
            self.look_at_found_files();
        }
        let (descriptors, descriptors_max) = self.core.tree.tables.descriptors();
        let mut totals = TableFileTotals {
            descriptors: descriptors as u64,
            descriptors_max: descriptors_max as u64,
            punching: self.core.tree.reclaimer.can_punch(),
            removed: self.core.tree.reclaimer.counters.files_unlinked.load(Ordering::Relaxed),
            ..TableFileTotals::default()
        };
        for space in self.core.tree.reclaimer.spaces() {
            totals.files += 1;
            totals.live_bytes += space.live_bytes;
            totals.dead_bytes += space.dead_bytes;
            totals.punched_bytes += space.punched_bytes;
            totals.holes += u64::from(space.holes);
        }
        totals
    }

    /// Returns the rate to which writers of the column family are held, in bytes per second; 0 if
    /// they are stopped.
    fn write_rate_limit(&self, family: &ColumnFamilyData) -> Option<u64> {
        let gates = [&family.gate, &self.core.background.driver.gate];
        let limit = |gate: &AdmissionGate| match gate.current().state {
            AdmissionState::Open => None,
            AdmissionState::Delayed { bytes_per_second } => Some(bytes_per_second),
            AdmissionState::Stopped => Some(0),
        };
        gates.into_iter().filter_map(limit).min()
    }
}

/// Returns about how much memory the current version takes. That is the metadata of its tables,
/// which older versions share.
fn version_bytes(version: &Version) -> u64 {
    let of = |table: &TableMeta| {
        size_of::<TableMeta>() + table.smallest.bytes().len() + table.largest.bytes().len()
    };
    version.tables().map(|(_, _, table)| of(table) as u64).sum()
}

/// Returns the size, the target and the runs of each level of `version`.
fn level_shapes(version: &Version, options: &CfOptions) -> Vec<LevelShape> {
    let targets = LevelTargets::new(version, options);
    let view = TreeView { version, options, targets: &targets };
    let shape = |(number, level): (u8, &Arc<Level>)| LevelShape {
        runs: level.runs().len() as u64,
        tables: level.tables() as u64,
        bytes: level.bytes(),
        good_bytes: good_bytes(&view, number),
        target_bytes: match targets.bytes_max(number) {
            u64::MAX => 0,
            bytes => bytes,
        },
    };
    (0..).zip(version.levels()).map(shape).collect()
}

/// Returns the property `name`, without its prefix, of `family` or the database.
fn property(core: &DbCore, family: &Arc<ColumnFamilyData>, name: &str) -> Option<String> {
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
         flushes {}  compactions {}  memory {} bytes  health {}",
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
