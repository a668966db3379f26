//! Background work: flushes, compactions and chores, and what clients ask of them.
//!
//! 1. [`driver`] polls control and starts, steps and ends jobs.
//! 2. [`flush_group`] and [`compaction_job`] write tables through [`output`]; [`install`] makes
//! them
//!    part of the tree.
//! 3. [`chores`] does what is due beside the jobs: the next WAL, old files, repair after errors.
//! 4. [`on_demand`] serves clients who ask for a flush or a compaction and wait for it.

mod admit;
pub(crate) mod chores;
pub(crate) mod compact_files;
pub(crate) mod compaction_iter;
pub(crate) mod compaction_job;
mod device_hint;
pub(crate) mod driver;
mod flush_group;
pub(crate) mod flush_job;
pub(crate) mod held;
mod hot_keys;
mod install;
pub(crate) mod interfere;
mod limits;
mod listening;
mod log_values;
#[cfg(test)]
mod measure;
mod observe;
mod on_demand;
pub(crate) mod output;
mod pausing;
pub(crate) mod pool;
mod requests;
mod sampler;
pub(crate) mod scrub;
mod step;
mod stored_options;

use std::sync::Arc;
use std::time::Duration;

use driver::{Driver, Turn};
use pool::Pool;
use sateen_control::version::DurableLog;
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};
use sateen_store::base::sync::thread;
use sateen_store::files::spare::SpareFiles;
use scrub::Scrubbing;
pub(crate) use step::{Step, StepBytes};

use crate::environment::Environment;
use crate::health::Health;
use crate::options::control;
use crate::tree::Tree;
use crate::write::path::WritePath;

/// How long a waiting thread lets virtual time pass when it finds nothing to do.
const VIRTUAL_WAIT: Duration = Duration::from_millis(1);

/// For so long at most a database that is being opened opens its tables, so that the first reads
/// find their indexes and filters. What is left is opened beside clients.
const OPEN_TABLES_TIME: Duration = Duration::from_millis(500);

/// The background of an open database. Its threads share it; handles ask it for work.
pub(crate) struct Background {
    pub(crate) env: Arc<Environment>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) writes: Arc<WritePath>,
    pub(crate) driver: Driver,
    pub(crate) scrubbing: Scrubbing,
    pub(crate) pool: Pool,
    /// Table files that were created before they are needed.
    pub(crate) spare_files: Arc<SpareFiles>,
    /// Manual compactions are refused while it is above 0.
    pub(crate) manual_pauses: AtomicI32,
    /// How often manual compactions were paused.
    pub(crate) manual_pauses_begun: AtomicU64,
    /// The file OPTIONS could not be written.
    pub(crate) options_unstored: AtomicBool,
}

impl Background {
    /// Without threads of its own, the database does one piece of background work on the caller's.
    /// Returns false if there was nothing to do.
    pub(crate) fn step_here(self: &Arc<Self>) -> Result<bool> {
        self.env.check_open()?;
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

    /// A job's result is part of the tree.
    pub(crate) fn job_succeeded(&self) {
        if self.env.health.health() == Health::Degraded
            && !self.writes.pipeline.wal_is_dead()
            && !self.driver.chores.manifest_is_dead()
        {
            self.env.health.clear();
        }
    }

    /// A job failed and left nothing behind.
    pub(crate) fn job_failed(&self, error: &Error) {
        if matches!(error, Error::Closed | Error::NoSuchColumnFamily(_)) {
            return;
        }
        self.env.metrics.background_error();
        let health =
            if matches!(error, Error::Io { .. }) { Health::Degraded } else { Health::ReadOnly };
        self.env.health.raise(health, error);
        if self.env.health.health() == Health::ReadOnly {
            self.driver.pause_for_health(self.env.now(), true);
        }
        self.driver.chores.poke();
    }

    /// Makes the logs durable, and says how far.
    pub(crate) fn sync_log(&self) -> Result<Option<DurableLog>> {
        self.writes.pipeline.sync_wal().inspect_err(|error| self.write_failed(error))
    }

    /// A write could not be logged, or not be synced: the log is dead. Errors of the caller's own
    /// making change nothing.
    pub(crate) fn write_failed(&self, error: &Error) {
        if let Error::Io { .. } = error {
            let health = if error.is_no_space() { Health::Degraded } else { Health::ReadOnly };
            self.env.health.raise(health, error);
            self.driver.chores.poke();
        }
    }

    /// Bytes of what is in memory besides the block cache and memtables, but for those that were
    /// stored and that only readers hold.
    pub(crate) fn other_memory(&self) -> u64 {
        let held = self.tree.families().values().map(|family| family.held_bytes()).sum::<u64>();
        held + self.tree.tables.memory_bytes()
            + self.tree.blocks.pinned_bytes()
            + self.driver.buffer_bytes()
            + self.writes.pipeline.buffer_bytes()
    }

    /// Bytes of memtables, and of the memory that is kept for the next ones.
    pub(crate) fn memtable_memory(&self) -> u64 {
        let families = self.tree.families();
        let memtables = families
            .values()
            .map(|family| family.active_memtable().memory_bytes() as u64 + family.sealed_usage().1);
        memtables.sum::<u64>() + self.writes.memtable_pool.bytes() as u64
    }

    /// Starts the threads, if there are any, and opens tables for a short while.
    pub(crate) fn start_threads(self: &Arc<Self>) -> Result<()> {
        let options = self.env.options.load();
        let threads = if self.env.read_only { 0 } else { control::threads(&options) };
        if threads > 0 {
            self.pool.start(self, threads, options.background_thread_nice)?;
            self.open_tables_for(OPEN_TABLES_TIME);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
