//! The surroundings that all services of an open database share: directory, file system, options,
//! health, listeners, metrics and clock.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use sateen_control::Instant;
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::vfs::{MeteredVfs, PathsVfs, forks};

use crate::events::Events;
use crate::health::HealthState;
use crate::metrics::EngineMetrics;
use crate::options::{Options, ReadOptions};
use crate::trace::{PointReadsGuard, Tracing};

/// The surroundings of an open database. All its services share one.
pub(crate) struct Environment {
    pub(crate) directory: PathBuf,
    pub(crate) vfs: Arc<MeteredVfs>,
    /// The directories of tables. It is a layer of `vfs`.
    pub(crate) paths: Arc<PathsVfs>,
    /// The options in force.
    pub(crate) options: ArcSwap<Options>,
    pub(crate) read_only: bool,
    pub(crate) health: HealthState,
    pub(crate) events: Arc<Events>,
    pub(crate) metrics: EngineMetrics,
    /// The trace of calls, which the commit pipeline shares.
    pub(crate) tracing: Arc<Tracing>,
    /// The trace of data blocks that readers need.
    pub(crate) block_trace: Arc<Tracing>,
    /// The trace of calls on files.
    pub(crate) io_trace: Arc<Tracing>,
    pub(crate) closed: AtomicBool,
    /// True once background work was ended for good.
    pub(crate) work_ended: AtomicBool,
    /// The value of [`forks`] when the database was opened.
    pub(crate) forks: u64,
    /// The zero of control's clock: the moment at which the first database on the device was
    /// opened.
    pub(crate) start: std::time::Instant,
}

impl Environment {
    /// Returns the current time on control's clock.
    pub(crate) fn now(&self) -> Instant {
        Instant(u64::try_from(clock::since(self.start).as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns true if background threads do the background work.
    pub(crate) fn has_threads(&self) -> bool {
        self.options.load().background_threads > 0 && !self.read_only
    }

    /// Returns true if a waiting thread must run background steps itself, because the database has
    /// no workers. In virtual time the wait itself runs them.
    pub(crate) fn must_step_itself(&self) -> bool {
        !self.has_threads() && !clock::is_passed()
    }

    /// Returns true in a process that was forked from the one that opened the database.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.forks != forks()
    }

    /// Notes for a trace of blocks that this thread reads one key or many from now on.
    #[inline]
    pub(crate) fn point_reads(
        &self,
        is_many: bool,
        options: &ReadOptions,
    ) -> Option<PointReadsGuard> {
        let is_on = self.block_trace.is_on();
        is_on.then(|| self.block_trace.point_reads(is_many, options.snapshot.is_some()))
    }

    /// Fails if the database is closed, or belongs to the parent process.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        if self.is_of_parent() { Err(Error::OfParentProcess) } else { Ok(()) }
    }

    /// Fails if what waits for background work would wait for ever: the database is closed, or this
    /// work was ended.
    pub(crate) fn check_working(&self) -> Result<()> {
        self.check_open()?;
        if self.work_ended.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Fails with the reason if `operation` cannot write: the database is read-only, closed or not
    /// healthy.
    pub(crate) fn check_writable(&self, operation: &'static str) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly(operation));
        }
        self.check_open()?;
        self.health.check()
    }

    /// Returns the directory of the WAL.
    pub(crate) fn wal_directory(&self) -> PathBuf {
        self.options.load().wal_directory(&self.directory)
    }
}
