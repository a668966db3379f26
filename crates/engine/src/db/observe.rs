//! Metrics, the timeline, and sizes of ranges of keys.
//!
//! [`Db::metrics`] collects everything into one value (`collect_metrics`).

use std::sync::Arc;

use sateen_control::compaction::{CompactionChain, FileSpace, LevelTargets, TreeView, good_bytes};
use sateen_control::version::{Level, Version};
use sateen_control::{AdmissionState, CfOptions, SeqNo, TableMeta, standing};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key::{seek_key, user_key};
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::memtable::MemTable;

use crate::admission::gate::AdmissionGate;
use crate::core::DbCore;
use crate::db::Db;
use crate::db::properties::property;
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
    /// the name is unknown. [`PROPERTIES`](crate::PROPERTIES) lists the names.
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

/// Collects the metrics of a database.
#[derive(Clone, Copy)]
pub(super) struct Observer<'a> {
    pub(super) core: &'a DbCore,
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
        metrics.divide_obsolete_bytes();
        metrics.table_files = self.table_file_totals();
        metrics.scrub = self.core.background.scrubber.metrics();
        metrics.live_wal_bytes =
            self.core.writes.pipeline.live_logs().iter().map(|(_, bytes)| bytes).sum();
        metrics
    }

    /// Returns the metrics of a column family, its regions added up.
    pub(super) fn family_metrics(&self, family: &Arc<ColumnFamilyData>) -> ColumnFamilyMetrics {
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
    pub(super) fn standing_of(&self, tree: &ColumnFamilyData) -> (u64, CompactionChain) {
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
    pub(super) fn write_rate_limit(&self, family: &ColumnFamilyData) -> Option<u64> {
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
