//! The database behind its handles: the parts, and the operations that need several of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use sateen_control::compaction::CompactionPlan;
use sateen_control::version::{DurableLog, Region, Version};
use sateen_control::{ColumnFamilyId, Event, Instant, IoClass, SeqNo};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::perf::{self, PerfMetric};
use sateen_store::base::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use sateen_store::base::sync::{Mutex, lock, thread};
use sateen_store::block_cache::BlockCache;
use sateen_store::files::reclaim::Reclaimer;
use sateen_store::files::spare::SpareFiles;
use sateen_store::memtable::ArenaPool;
use sateen_store::table::TableIterOptions;
use sateen_store::table::table_cache::TableCache;
use sateen_store::table::table_images::{ImagesShare, OutputImages};
use sateen_store::vfs::{MeteredVfs, VfsLock, forks};
use sateen_store::wal::KeptLogs;

use crate::background::compaction_job::{CompactionContext, CompactionJob};
use crate::background::output::OutputContext;
use crate::background::pool::Pool;
use crate::background::scrub::Scrubbing;
use crate::background::state::{Health, HealthState};
use crate::background::{Driver, Turn};
use crate::column_family::{ColumnFamilyData, Families};
use crate::events::Events;
use crate::metrics::{EngineMetrics, LatencySampling, Operation};
use crate::options::{
    ColumnFamilyOptions, Options, ReadOptions, StatisticsLevel, WalMode, WriteOptions, control,
};
use crate::read::super_version::Lookup;
use crate::secondary::Secondary;
use crate::snapshot::{Snapshot, SnapshotList};
use crate::tree::version_set::VersionSet;
use crate::ttl;
use crate::write::admission::Writer;
use crate::write::{CommitPipeline, Logging, Payload};
use crate::write_buffers::WriteBuffers;

pub(crate) mod compact_files;
mod on_demand;
mod stored_options;

/// What compactions read at once takes no more than this part of a memory budget, all of them
/// together, but each run no less than so much.
const READING_PART: u64 = 8;
const CHUNK_BYTES_MIN: u64 = 16 << 10;
/// Who finds nothing to do looks again after so long.
const VIRTUAL_WAIT: Duration = Duration::from_millis(1);

/// Everything that a database consists of. Handles, iterators and threads share it.
pub(crate) struct DbCore {
    pub(crate) directory: PathBuf,
    pub(crate) vfs: Arc<MeteredVfs>,
    pub(crate) options: ArcSwap<Options>,
    pub(crate) read_only: bool,
    /// What it follows another database with, if it does.
    pub(crate) secondary: Option<Secondary>,
    pub(crate) pipeline: CommitPipeline,
    pub(crate) versions: VersionSet,
    pub(crate) families: ArcSwap<Families>,
    /// Held while a column family is made or dropped, or options change: never on the data path.
    pub(crate) catalogue: Mutex<()>,
    /// Compactions by hand are refused while it is above 0.
    pub(crate) manual_pauses: AtomicI32,
    /// How often that was raised.
    pub(crate) manual_pauses_begun: AtomicU64,
    pub(crate) default_family: Arc<ColumnFamilyData>,
    pub(crate) snapshots: Arc<SnapshotList>,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) reclaimer: Reclaimer,
    /// Files of tables, and of logs, that were made in advance.
    pub(crate) spare_files: Arc<SpareFiles>,
    pub(crate) spare_logs: SpareFiles,
    /// Logs that only readers of the log need.
    pub(crate) kept_logs: KeptLogs,
    pub(crate) driver: Driver,
    pub(crate) scrubbing: Scrubbing,
    pub(crate) pool: Pool,
    pub(crate) health: HealthState,
    pub(crate) events: Arc<Events>,
    pub(crate) metrics: EngineMetrics,
    pub(crate) closed: AtomicBool,
    /// [`forks`] when it was opened.
    pub(crate) forks: u64,
    /// Some write went past the log: closing has to flush.
    pub(crate) unlogged_writes: AtomicBool,
    pub(crate) start: std::time::Instant,
    /// Memory of flushed memtables, for the next ones.
    pub(crate) pool_memory: Arc<ArenaPool>,
    /// The file OPTIONS could not be written.
    pub(crate) options_unstored: AtomicBool,
    /// Its part of a limit that others have, too.
    pub(crate) write_buffers: Option<WriteBuffers>,
    /// The locks, given back when the database is closed; or a reader's mark, dropped with it.
    pub(crate) locks: Mutex<Vec<Arc<dyn VfsLock>>>,
}

impl DbCore {
    /// The time since open on the clock that control sees.
    pub(crate) fn now(&self) -> Instant {
        Instant(u64::try_from(clock::since(self.start).as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn has_threads(&self) -> bool {
        self.options.load().background_threads > 0 && !self.read_only
    }

    /// Whether who waits for the background has to do its work: nobody else would. In virtual time
    /// there is somebody.
    pub(crate) fn does_all_itself(&self) -> bool {
        !self.has_threads() && !clock::is_passed()
    }

    pub(crate) fn families(&self) -> arc_swap::Guard<Arc<Families>> {
        self.families.load()
    }

    pub(crate) fn family_by_id(&self, id: ColumnFamilyId) -> Option<Arc<ColumnFamilyData>> {
        self.families().by_id(id).cloned()
    }

    /// Whether a process opened it of which this one is a copy.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.forks != forks()
    }

    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) || self.is_of_parent() {
            return Err(Error::Closed);
        }
        Ok(())
    }

    pub(crate) fn check_writable(&self, operation: &'static str) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly(operation));
        }
        self.check_open()?;
        self.health.check()
    }

    pub(crate) fn lookup<'a>(
        &'a self,
        family: &'a ColumnFamilyData,
        options: &ReadOptions,
    ) -> Lookup<'a> {
        let &ReadOptions { fill_cache, ignore_range_deletions: ignore_ranges, .. } = options;
        let (tables, blocks, metrics) = (&self.tables, &self.blocks, &self.metrics);
        Lookup { family, tables, blocks, metrics, fill_cache, ignore_ranges }
    }

    /// Values of `family` from before this second are hidden from a reader that begins now.
    #[inline]
    pub(crate) fn hidden_before(&self, family: &ColumnFamilyData) -> u64 {
        if !family.has_times() {
            return 0;
        }
        ttl::hidden_before(&family.options(), &self.options.load().wall_clock)
    }

    // ---- writing -------------------------------------------------------------------------------

    /// Commits a write of `bytes` key and value bytes.
    pub(crate) fn write(
        self: &Arc<Self>,
        payload: &Payload<'_>,
        bytes: u64,
        options: &WriteOptions,
    ) -> Result<()> {
        self.check_writable("a write")?;
        let timer = self.metrics.start(Operation::Write);
        let logging = self.logging(options)?;
        if self.driver.is_gated() {
            let _held_back = perf::time(PerfMetric::WriteDelayTime);
            self.wait_for_admission(payload, bytes, options)?;
        }
        self.respect_write_buffers(options)?;
        match self.pipeline.commit(payload, logging) {
            Ok(_) => {
                let entries = match payload {
                    Payload::Single { .. } => 1,
                    Payload::Batch(batch) => u64::from(batch.count()),
                };
                self.metrics.record_write(timer, bytes, entries);
                Ok(())
            }
            Err(error) => {
                self.write_failed(&error);
                Err(error)
            }
        }
    }

    fn logging(&self, options: &WriteOptions) -> Result<Logging> {
        let mode = self.options.load().wal;
        if mode == WalMode::Off || options.disable_wal {
            if options.sync {
                return Err(Error::InvalidArgument(
                    "a synced write needs the log, which is switched off".into(),
                ));
            }
            if mode != WalMode::Off && !self.unlogged_writes.load(Ordering::Relaxed) {
                self.unlogged_writes.store(true, Ordering::Relaxed);
            }
            return Ok(Logging::None);
        }
        let synced = options.sync || mode == WalMode::SyncEachWrite;
        Ok(if synced { Logging::Synced } else { Logging::Buffered })
    }

    #[cold]
    fn wait_for_admission(
        self: &Arc<Self>,
        payload: &Payload<'_>,
        bytes: u64,
        options: &WriteOptions,
    ) -> Result<()> {
        let families = self.families.load_full();
        let written: Vec<&Arc<ColumnFamilyData>> = match payload {
            Payload::Single { family, .. } => families.by_id(*family).into_iter().collect(),
            // Whether a batch writes to a family is asked only where it would have to wait.
            Payload::Batch(_) => {
                let closed = families.values().filter(|family| !family.gate.is_open());
                closed.filter(|family| payload.bytes_to(family.id()) > 0).collect()
            }
        };
        let of_families =
            written.iter().map(|family| (&family.gate, payload.bytes_to(family.id())));
        let mut gates =
            of_families.chain([(&self.driver.gate, bytes)]).filter(|(gate, _)| !gate.is_open());
        let deadline = if options.no_slowdown { Some(Duration::ZERO) } else { options.deadline };
        // So late that the clock cannot tell: no deadline.
        let deadline = deadline.and_then(|within| clock::now().checked_add(within));
        if self.does_all_itself() {
            // Nobody else would ever open the gate.
            while let Some((stopped, _)) = gates.clone().find(|(gate, _)| gate.is_stopped()) {
                if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                    return Err(stopped.would_stall());
                }
                self.health.check()?;
                self.step_or_wait()?;
            }
            return Ok(());
        }
        let give_up = || {
            self.check_open()?;
            // A gate of what is gone may never be opened again.
            match written.iter().find(|family| family.is_dropped()) {
                Some(gone) => {
                    let whole = families.by_id(gone.whole()).unwrap_or(gone);
                    Err(Error::NoSuchColumnFamily(whole.name().to_owned()))
                }
                None => self.health.check(),
            }
        };
        gates.try_for_each(|(gate, bytes)| {
            gate.wait(&Writer {
                bytes,
                deadline,
                low_priority: options.low_priority,
                metrics: &self.metrics,
                give_up: &give_up,
            })
        })
    }

    /// A write could not be logged, or not be synced: the log is dead. Errors of the caller's own
    /// making change nothing.
    fn write_failed(&self, error: &Error) {
        if let Error::Io { .. } = error {
            let health = if error.is_no_space() { Health::Degraded } else { Health::ReadOnly };
            self.health.raise(health, error);
            self.driver.chores.poke();
        }
    }

    /// Makes the logs durable, and says how far.
    pub(crate) fn sync_log(&self) -> Result<Option<DurableLog>> {
        self.pipeline.sync_wal().inspect_err(|error| self.write_failed(error))
    }

    pub(crate) fn new_family_data(
        &self,
        id: ColumnFamilyId,
        name: String,
        region: Option<Region>,
        options: ColumnFamilyOptions,
        version: Arc<Version>,
    ) -> ColumnFamilyData {
        ColumnFamilyData::new(id, name, region, options, version, self.pool_memory.clone())
    }

    pub(crate) fn has_unlogged_writes(&self) -> bool {
        self.unlogged_writes.load(Ordering::Relaxed)
    }

    /// Bytes of what is in memory besides the block cache and memtables, but for those that were
    /// stored and that only readers hold.
    pub(crate) fn other_memory(&self) -> u64 {
        let held = self.families().values().map(|family| family.held_bytes()).sum::<u64>();
        held + self.tables.memory_bytes()
            + self.blocks.pinned_bytes()
            + self.driver.buffer_bytes()
            + self.pipeline.buffer_bytes()
    }

    /// Bytes of memtables, and of the memory that is kept for the next ones.
    pub(crate) fn memtable_memory(&self) -> u64 {
        let families = self.families();
        let memtables = families
            .values()
            .map(|family| family.active_memtable().memory_bytes() as u64 + family.sealed_usage().1);
        memtables.sum::<u64>() + self.pool_memory.bytes() as u64
    }

    // ---- snapshots -----------------------------------------------------------------------------

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshots.acquire(|| self.pipeline.visible_seqno())
    }

    pub(crate) fn snapshot_list(&self) -> Vec<SeqNo> {
        self.snapshots.list(|| self.pipeline.visible_seqno())
    }

    // ---- background ----------------------------------------------------------------------------

    /// Without threads of its own, the database does one piece of background work on the caller's.
    /// Returns false if there was nothing to do.
    pub(crate) fn step_here(self: &Arc<Self>) -> Result<bool> {
        self.check_open()?;
        if clock::is_virtual() {
            self.sample_if_due();
        }
        let chores = self.do_chores();
        // Only the last knows that there is nothing else.
        let worked =
            matches!(self.background_once(), Turn::Worked) || chores || self.tidied_at_rest();
        if !worked {
            // There may be a job that another thread steps.
            thread::yield_now();
        }
        Ok(worked)
    }

    /// The same. In virtual time, which nobody else would let pass, it waits if there was nothing.
    pub(crate) fn step_or_wait(self: &Arc<Self>) -> Result<()> {
        if !self.step_here()? && clock::is_virtual() {
            clock::sleep(VIRTUAL_WAIT);
        }
        Ok(())
    }

    pub(crate) fn output_context(
        &self,
        family: &ColumnFamilyData,
        level: u8,
        class: IoClass,
        compression: sateen_store::table::Compression,
    ) -> OutputContext {
        OutputContext {
            vfs: self.vfs.clone(),
            directory: self.directory.clone(),
            db_uid: self.versions.db_uid(),
            options: self.options.load_full(),
            family_options: family.options(),
            family: family.id(),
            level,
            compression,
            class,
            spare_files: Some(self.spare_files.clone()),
            images: self.images_for(family, level),
        }
    }

    /// Where tables of `level` are kept in memory, if they are. What goes through the page cache is
    /// in memory already.
    fn images_for(&self, family: &ColumnFamilyData, level: u8) -> Option<OutputImages> {
        let (options, own) = (self.options.load(), family.options());
        let percent = options.level0_cache_percent;
        if level > 0 || !options.direct_io_for_flush_and_compaction || percent == 0 {
            return None;
        }
        // Its memtables at its trigger, and one that comes while they go.
        let memtables = u64::from(own.level0_trigger).saturating_add(1);
        let expected_bytes = memtables.saturating_mul(own.memtable_bytes);
        let table_bytes = match own.flush_table_bytes {
            0 => own.memtable_bytes,
            bytes => bytes,
        };
        let share = ImagesShare { percent, expected_bytes, table_bytes };
        Some(OutputImages { images: self.tables.images()?.clone(), share })
    }

    /// `slots`: so many compactions run at a time.
    pub(crate) fn make_compaction(
        &self,
        plan: Arc<CompactionPlan>,
        slots: usize,
    ) -> Option<CompactionJob> {
        let family = self.family_by_id(plan.cf)?;
        let version = self.versions.version(plan.cf)?;
        let options = self.options.load();
        let compression = control::compression_from_code(plan.compression);
        let chunk_bytes = match options.memory_budget {
            Some(budget) => {
                let inputs = plan.rewrite.len().max(1) as u64;
                let share = budget / READING_PART / slots.max(1) as u64 / inputs;
                options.compaction_readahead_bytes.min(share.max(CHUNK_BYTES_MIN))
            }
            None => options.compaction_readahead_bytes,
        };
        let chunk_bytes = usize::try_from(chunk_bytes).unwrap_or(1 << 20);
        let read = TableIterOptions::compaction(plan.class, chunk_bytes.max(4096));
        let context = CompactionContext {
            output: self.output_context(&family, plan.output_level, plan.class, compression),
            tables: self.tables.clone(),
            read,
            snapshots: self.snapshot_list(),
            newest_snapshot: self.snapshots.newest(),
            version,
        };
        Some(CompactionJob::new(family, plan, context))
    }

    /// A job's result is part of the tree.
    pub(crate) fn job_succeeded(&self) {
        if self.health.health() == Health::Degraded
            && !self.pipeline.wal_is_dead()
            && !self.driver.chores.manifest_is_dead()
        {
            self.health.clear();
        }
    }

    /// A job failed and left nothing behind.
    pub(crate) fn job_failed(&self, error: &Error) {
        if matches!(error, Error::Closed | Error::NoSuchColumnFamily(_)) {
            return;
        }
        self.metrics.background_error();
        let health =
            if matches!(error, Error::Io { .. }) { Health::Degraded } else { Health::ReadOnly };
        self.health.raise(health, error);
        if self.health.health() == Health::ReadOnly {
            self.driver.pause_for_health(self.now(), true);
        }
        self.driver.chores.poke();
    }

    // ---- options -------------------------------------------------------------------------------

    pub(crate) fn set_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        self.check_writable("changing options")?;
        let _catalogue = lock(&self.catalogue);
        let mut options = (*self.options.load_full()).clone();
        options.set_at_run_time(changes)?;
        // Options of column families that are set here are the default one's, too.
        let of_family =
            |(name, _): &&(&str, &str)| Options::info(name).is_ok_and(|info| info.column_family);
        let own: Vec<(&str, &str)> = changes.iter().filter(of_family).copied().collect();
        let mut default_family: ColumnFamilyOptions = (*self.default_family.options()).clone();
        default_family.set_at_run_time(&own)?;
        self.blocks.set_capacity(options.block_cache_bytes);
        self.tables.set_limits(open_tables_max(&options));
        self.metrics.set_sampling(sampling(&options));
        let told = Box::new(control::database(&options));
        self.driver.report(self.now(), Event::OptionsChanged { options: told });
        self.options.store(Arc::new(options));
        for family in self.families().values() {
            let is_default = family.whole() == self.default_family.id();
            let same = || (*family.options()).clone();
            self.put_options(family, if is_default { default_family.clone() } else { same() });
        }
        self.store_options();
        Ok(())
    }

    pub(crate) fn set_family_options(
        &self,
        family: &Arc<ColumnFamilyData>,
        changes: &[(&str, &str)],
    ) -> Result<()> {
        self.check_writable("changing options")?;
        let _catalogue = lock(&self.catalogue);
        let mut options: ColumnFamilyOptions = (*family.options()).clone();
        options.set_at_run_time(changes)?;
        family.trees().for_each(|tree| self.put_options(tree, options.clone()));
        self.store_options();
        Ok(())
    }

    fn put_options(&self, family: &ColumnFamilyData, options: ColumnFamilyOptions) {
        let event = Event::CfOptionsChanged {
            cf: family.id(),
            options: Arc::new(control::column_family(&self.options.load(), &options)),
        };
        family.set_options(options);
        self.pipeline.want_switch();
        self.driver.report(self.now(), event);
    }

    // ---- closing -------------------------------------------------------------------------------

    /// Ends the background, stores what only memory has, gives the lock back. Idempotent.
    pub(crate) fn close(self: &Arc<Self>) -> Result<()> {
        if self.is_of_parent() {
            // No thread is here to end, and files and locks are the parent's.
            if !self.closed.swap(true, Ordering::AcqRel) {
                std::mem::forget(self.clone());
            }
            return Ok(());
        }
        if self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let stored = match self.health.check() {
            _ if self.read_only => Ok(()),
            Ok(()) => self.store_unlogged(),
            // What memory alone has, or the log has unsynced, stays so: the caller must hear of it.
            Err(error) => Err(error),
        };
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.driver.stop();
        self.scrubbing.stop();
        self.pool.join();
        self.driver.abandon_all();
        if !self.read_only {
            self.keep_device_hint(true);
            self.store_options_again();
            self.remove_unused_wal();
            self.remove_spare_files();
            // So that damage to them shows; nothing is lost without it.
            let _waited = self.versions.sync_edits(&self.reclaimer);
            // What stays is found as an orphan at the next open; that is no reason to fail.
            let _orphans = self.remove_old_logs();
            if stored.is_ok() {
                self.pipeline.trim_wals();
            }
            self.reclaimer.reclaim_all(self.now());
        }
        self.write_buffers.iter().for_each(WriteBuffers::leave);
        self.tables.images().iter().for_each(|images| images.clear());
        // A reader's mark stays as long as its iterators, and goes with the last of them.
        if !self.read_only {
            lock(&self.locks).clear();
        }
        stored
    }

    /// What is in no log would be lost; what is in a log is synced.
    fn store_unlogged(self: &Arc<Self>) -> Result<()> {
        let families: Vec<_> = self.families().values().cloned().collect();
        if self.options.load().wal == WalMode::Off || self.unlogged_writes.load(Ordering::Relaxed) {
            self.flush_inner(&families, true)
        } else {
            self.pipeline.close_wal()
        }
    }
}

/// How many files may be open, and how much memory their indexes and filters may take.
pub(crate) fn open_tables_max(options: &Options) -> (usize, u64) {
    let of_budget = options.memory_budget.map_or(u64::MAX, |budget| budget / 2);
    let memory = options.table_cache_bytes.unwrap_or(u64::MAX).min(of_budget);
    (options.max_open_files.max(1) as usize, memory)
}

/// Which operations are timed.
pub(crate) fn sampling(options: &Options) -> LatencySampling {
    match options.statistics {
        StatisticsLevel::Counters => LatencySampling::OFF,
        StatisticsLevel::Latencies => LatencySampling::default(),
        StatisticsLevel::AllLatencies => LatencySampling::EXACT,
    }
}

/// The error for a range that ends before it begins.
pub(crate) fn reversed_bounds(lower: &[u8], upper: &[u8]) -> Error {
    Error::InvalidArgument(format!(
        "the lower bound \"{}\" is above the upper bound \"{}\"",
        lower.escape_ascii(),
        upper.escape_ascii()
    ))
}
