//! An open database: the services that it consists of, and the operations that need several of
//! them.
//!
//! A write ([`DbCore::write`]):
//!
//! 1. It checks that the database takes writes, and chooses how the write reaches the WAL.
//! 2. If a gate is closed, the writer waits in `Background::wait_for_admission`.
//! 3. If databases share a limit on memtables, it may wait in `respect_write_buffers`.
//! 4. `CommitPipeline::commit` orders, logs, applies and publishes the write.
//! 5. An error is reported to the driver, which may change the health of the database.
//!
//! A change of options ([`DbCore::set_options`], [`DbCore::set_family_options`]) takes effect in
//! all services, is reported to control, and is stored in the options file.
//!
//! A close ([`DbCore::close`]):
//!
//! 1. It ends the inspection, so that operators ask for no more work.
//! 2. It stores what a crash would lose: it flushes unlogged entries, or syncs the WAL.
//! 3. It ends a trace, stops the background threads, and abandons jobs that are not finished.
//! 4. It removes preallocated files that were not used, and WALs that are not needed any more.
//! 5. It frees the space of dead tables, leaves shared limits, and releases the directory's locks.

use std::sync::Arc;

use sateen_control::{Event, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::perf::{self, PerfMetric};
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::{Mutex, RwLockReadGuard, lock};
use sateen_store::table::OnMiss;
use sateen_store::vfs::VfsLock;

use crate::admission::write_buffers::WriteBuffers;
use crate::background::Background;
use crate::environment::Environment;
use crate::inspection::Inspection;
use crate::metrics::Operation;
use crate::options::{ColumnFamilyOptions, Options, ReadOptions, WalMode, WriteOptions, control};
use crate::read::lookup::Lookup;
use crate::secondary::{Follower, Secondary};
use crate::tree::Tree;
use crate::tree::families::ColumnFamilyData;
use crate::ttl;
use crate::write::path::WritePath;
use crate::write::{CommitPipeline, Logging, Payload};

/// An open database. Handles, iterators and threads share it.
pub(crate) struct DbCore {
    pub(crate) env: Arc<Environment>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) writes: Arc<WritePath>,
    pub(crate) background: Arc<Background>,
    /// The state of a secondary, if the database follows a primary.
    pub(crate) secondary: Option<Secondary>,
    /// Locks on the directory, which close releases. A read-only database has a reader's mark
    /// instead, which is released with its last iterator.
    pub(crate) locks: Mutex<Vec<Arc<dyn VfsLock>>>,
    /// What serves the database to operators, if it is inspected. Close drops it first.
    pub(crate) inspection: Mutex<Option<Inspection>>,
}

impl DbCore {
    /// Returns the second before which values of `family` have expired for a reader that begins
    /// now. 0 hides nothing.
    #[inline]
    pub(crate) fn hidden_before(&self, family: &ColumnFamilyData) -> u64 {
        if !family.has_times() {
            return 0;
        }
        ttl::hidden_before(&family.options(), &self.env.options.load().wall_clock)
    }

    /// Returns what a point read of `family` needs: tables, caches, metrics, and the behaviour on a
    /// cache miss.
    pub(crate) fn lookup<'a>(
        &'a self,
        family: &'a ColumnFamilyData,
        options: &ReadOptions,
    ) -> Lookup<'a> {
        let &ReadOptions { ignore_range_deletions: ignore_ranges, .. } = options;
        let on_miss = OnMiss::of(options.fill_cache, options.memory_only);
        let (tables, blocks, metrics) = (&self.tree.tables, &self.tree.blocks, &self.env.metrics);
        Lookup { family, tables, blocks, metrics, on_miss, ignore_ranges }
    }

    /// Commits a write of `bytes` key and value bytes. Returns when it is applied and visible, and
    /// durable if that was asked for. Fails if the database does not take writes, if the write
    /// would stall and must not wait, or if the WAL cannot be written.
    pub(crate) fn write(
        self: &Arc<Self>,
        payload: &Payload<'_>,
        bytes: u64,
        options: &WriteOptions,
    ) -> Result<()> {
        self.write_by(payload, bytes, options, |pipeline, logging| {
            pipeline.commit(payload, logging)
        })
    }

    /// Does what [`DbCore::write`] does, with another way to commit.
    #[inline]
    pub(crate) fn write_by(
        self: &Arc<Self>,
        payload: &Payload<'_>,
        bytes: u64,
        options: &WriteOptions,
        commit: impl FnOnce(&CommitPipeline, Logging) -> Result<SeqNo>,
    ) -> Result<()> {
        self.env.check_writable("a write")?;
        let timer = self.env.metrics.start(Operation::Write);
        let logging = self.writes.logging(self.env.options.load().wal, options)?;
        if self.background.driver.is_gated() {
            let _held_back = perf::time(PerfMetric::WriteDelayTime);
            self.background.wait_for_admission(payload, bytes, options)?;
        }
        self.background.respect_write_buffers(options)?;
        match commit(&self.writes.pipeline, logging) {
            Ok(_) => {
                self.env.metrics.record_write(timer, bytes, payload.count());
                Ok(())
            }
            Err(error) => {
                self.background.driver.write_failed(&error);
                Err(error)
            }
        }
    }

    /// Does what [`DbCore::write`] does, if nothing has to be waited for. Otherwise it does nothing
    /// and returns false.
    #[inline]
    pub(crate) fn try_write(
        &self,
        payload: &Payload<'_>,
        bytes: u64,
        options: &WriteOptions,
    ) -> Result<bool> {
        self.env.check_writable("a write")?;
        let logging = self.writes.logging(self.env.options.load().wal, options)?;
        let memory_waits =
            self.writes.write_buffers.as_ref().is_some_and(|buffers| {
                buffers.manager.wants_flush() || buffers.manager.wants_stall()
            });
        if logging == Logging::Synced || self.background.driver.is_gated() || memory_waits {
            return Ok(false);
        }
        let timer = self.env.metrics.start(Operation::Write);
        match self.writes.pipeline.try_commit(payload, bytes, logging) {
            Ok(Some(_)) => {
                self.env.metrics.record_write(timer, bytes, payload.count());
                Ok(true)
            }
            Ok(None) => {
                self.env.metrics.forget(timer);
                Ok(false)
            }
            Err(error) => {
                self.background.driver.write_failed(&error);
                Err(error)
            }
        }
    }

    /// Returns a guard that a reader of a secondary holds while it takes its version and its
    /// sequence number, so that both belong to one moment. Returns `None` unless the database is a
    /// secondary: elsewhere nothing is replaced under readers.
    #[inline]
    pub(crate) fn view(&self, options: &ReadOptions) -> Result<Option<RwLockReadGuard<'_, ()>>> {
        let Some(secondary) = &self.secondary else { return Ok(None) };
        secondary.view(options, || self.writes.pipeline.visible_seqno()).map(Some)
    }

    /// Applies what the primary has written since the last call. Returns true if there was
    /// anything.
    pub(crate) fn catch_up(&self) -> Result<bool> {
        let secondary = self.secondary.as_ref().ok_or(Error::NotSecondary)?;
        secondary.catch_up(&Follower { env: &self.env, tree: &self.tree, writes: &self.writes })
    }

    /// Changes options of the database. Options of column families among `changes` apply to the
    /// default column family.
    pub(crate) fn set_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        self.env.check_writable("changing options")?;
        let _catalogue = lock(&self.tree.changes);
        let mut options = (*self.env.options.load_full()).clone();
        options.set_at_run_time(changes)?;
        // An option of a column family that is set on the database is the default family's.
        let of_family =
            |(name, _): &&(&str, &str)| Options::info(name).is_ok_and(|info| info.column_family);
        let own: Vec<(&str, &str)> = changes.iter().filter(of_family).copied().collect();
        let mut default_family: ColumnFamilyOptions = (*self.tree.default_family.options()).clone();
        default_family.set_at_run_time(&own)?;
        let default_family = Arc::new(default_family);
        let changed = (self.tree.default_family.id(), &default_family);
        self.background.chores.store_changed_options(&options, changed)?;
        self.tree.blocks.set_capacity(options.block_cache_bytes);
        self.tree.tables.set_limits(options.open_tables_max());
        self.env.metrics.set_sampling(options.sampling());
        let told = Box::new(control::database(&options));
        self.background.driver.report(self.env.now(), Event::OptionsChanged { options: told });
        if options.scheduling() != self.env.options.load().scheduling() {
            self.background.driver.place.device.set_scheduling(options.scheduling());
        }
        self.env.options.store(Arc::new(options));
        for family in self.tree.families().values() {
            let is_default = family.whole() == self.tree.default_family.id();
            let own = if is_default { Arc::clone(&default_family) } else { family.options() };
            self.put_options(family, (*own).clone());
        }
        Ok(())
    }

    /// Changes options of a column family and of its regions.
    pub(crate) fn set_family_options(
        &self,
        family: &Arc<ColumnFamilyData>,
        changes: &[(&str, &str)],
    ) -> Result<()> {
        self.env.check_writable("changing options")?;
        let _catalogue = lock(&self.tree.changes);
        let mut options: ColumnFamilyOptions = (*family.options()).clone();
        options.set_at_run_time(changes)?;
        let options = Arc::new(options);
        let changed = (family.id(), &options);
        self.background.chores.store_changed_options(&self.env.options.load(), changed)?;
        family.trees().for_each(|tree| self.put_options(tree, (*options).clone()));
        Ok(())
    }

    /// Makes `options` those of `family`, tells control, and has the next leader look whether the
    /// memtable is over its new size.
    fn put_options(&self, family: &ColumnFamilyData, options: ColumnFamilyOptions) {
        let event = Event::CfOptionsChanged {
            cf: family.id(),
            options: Arc::new(control::column_family(&self.env.options.load(), &options)),
        };
        family.set_options(options);
        self.writes.pipeline.want_switch();
        self.background.driver.report(self.env.now(), event);
    }

    /// Stores what a crash would lose, and ends background work until the close.
    pub(crate) fn end_background_work(self: &Arc<Self>, wait: bool) -> Result<()> {
        self.env.check_open()?;
        if self.env.read_only {
            return Ok(());
        }
        self.env.health.check()?;
        self.store_unlogged()?;
        if !self.env.work_ended.swap(true, Ordering::AcqRel) {
            self.background.pause_manual();
            if let Err(error) = self.background.driver.pause_background(wait) {
                self.background.resume_manual();
                self.env.work_ended.store(false, Ordering::Release);
                return Err(error);
            }
            self.background.driver.discard_away();
            self.background.driver.tell_service_of_end();
        }
        Ok(())
    }

    /// Ends all traces. Nobody can be told an error any more.
    pub(crate) fn end_traces(&self) {
        let env = &self.env;
        let _unheard = env.tracing.end();
        let _unheard = env.block_trace.end_after(|| self.tree.blocks.observed().set(None));
        let _unheard = env.io_trace.end_after(|| env.vfs.observe(None));
    }

    /// Stores what a crash would lose, ends the background and releases the locks. Further calls do
    /// nothing. If storing fails, the database is closed nevertheless, and the error is returned.
    pub(crate) fn close(self: &Arc<Self>) -> Result<()> {
        if self.env.is_of_parent() {
            // After a fork the threads exist only in the parent, which also owns the files and the
            // locks. Leaking the core keeps drop code from touching them.
            if !self.env.closed.swap(true, Ordering::AcqRel) {
                std::mem::forget(self.clone());
            }
            return Ok(());
        }
        if self.env.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let was_told = self.env.work_ended.swap(false, Ordering::AcqRel);
        if was_told {
            // Unlogged entries are flushed once more. The caller may have ended the pause already.
            self.background.resume_manual();
            let _ended = self.background.driver.continue_background();
        }
        // Nobody may ask for work from now on. The lock is not held while it ends.
        let inspection = lock(&self.inspection).take();
        drop(inspection);
        let stored = match self.env.health.check() {
            _ if self.env.read_only => Ok(()),
            Ok(()) => self.store_unlogged(),
            // Unlogged entries and the unsynced end of the WAL cannot be stored any more. The
            // caller must learn of that.
            Err(error) => Err(error),
        };
        if self.env.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // The files of traces become whole.
        self.end_traces();
        self.background.driver.stop();
        self.background.scrubber.stop();
        self.background.stop_threads();
        self.background.driver.abandon_all();
        if !self.env.read_only && !was_told {
            self.background.driver.tell_service_of_end();
        }
        if !self.env.read_only {
            self.background.chores.keep_device_hint(true);
            self.background.chores.store_options_again();
            self.background.chores.end_info_log();
            self.background.chores.remove_unused_wal();
            self.background.chores.remove_spare_files();
            // Nothing is lost without this sync. With it, later damage to the manifest's end can be
            // told from an unfinished write.
            let _waited = self.tree.versions.sync_edits(&self.tree.reclaimer);
            // A file that stays is removed as an orphan at the next open, so close does not fail
            // because of it.
            let _orphans = self.background.chores.remove_old_logs();
            if stored.is_ok() {
                self.writes.pipeline.trim_wals();
            }
            self.tree.reclaimer.reclaim_all(self.env.now());
        }
        self.writes.write_buffers.iter().for_each(WriteBuffers::leave);
        self.tree.tables.images().iter().for_each(|images| images.clear());
        // A reader's mark is released with the last iterator, which may outlive the close.
        if !self.env.read_only {
            lock(&self.locks).clear();
        }
        stored
    }

    /// Flushes all memtables if some entries are in no WAL, and otherwise syncs the WAL.
    fn store_unlogged(self: &Arc<Self>) -> Result<()> {
        let families: Vec<_> = self.tree.families().values().cloned().collect();
        if self.env.options.load().wal == WalMode::Off
            || self.writes.unlogged_writes.load(Ordering::Relaxed)
        {
            self.background.flush_inner(&families, true)
        } else {
            self.writes.pipeline.close_wal()
        }
    }
}
