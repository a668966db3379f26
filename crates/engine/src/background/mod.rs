//! Background work: flushes, compactions and chores, and the requests of clients to run them.
//!
//! 1. [`driver`] polls the control plane. It starts, steps, ends and installs jobs.
//! 2. [`flush`] and [`compaction`] make the jobs, which write tables through [`output`].
//! 3. [`chores`] does the work beside the jobs: the next WAL, obsolete files, repair after errors.
//! 4. [`scrub`] verifies the stored tables, one slice at a time.
//! 5. The threads of the device work for it ([`crate::runtime`], which sees it as a [`Tenant`]).
//!    Without threads, a thread that waits runs the steps itself ([`Background::step_here`]).
//! 6. [`admit`], [`on_demand`] and [`requests`] serve clients that wait for any of these.

mod admit;
pub(crate) mod chores;
pub(crate) mod compaction;
pub(crate) mod driver;
pub(crate) mod flush;
#[cfg(any(test, feature = "test-support"))]
pub(crate) mod held;
mod on_demand;
pub(crate) mod output;
mod requests;
pub(crate) mod scrub;
mod value_output;

use std::sync::Arc;
use std::time::Duration;

use chores::Chores;
use chores::board::ChoreBoard;
use driver::{Driver, IDLE_WAIT_MAX};
use output::Outputs;
use sateen_control::{ControlOptions, Sample};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicI32, AtomicU64};
use sateen_store::base::sync::{lock, thread};
use sateen_store::files::spare::SpareFiles;
use scrub::Scrubber;

use crate::environment::Environment;
use crate::options::control;
use crate::runtime::device::Device;
use crate::runtime::{DatabaseTotals, Place, Rest, Runtime, Sampled, Stepped, Tenant};
use crate::timeline::EventKind;
use crate::tree::Tree;
use crate::write::path::WritePath;

/// How long a thread that waits sleeps in virtual time when it finds nothing to do.
const SHORT_WAIT: Duration = Duration::from_millis(1);

/// The longest time for which `open` opens tables in advance, so that the first reads find indexes
/// and filters in memory. The chores open the remaining tables while clients run.
const OPEN_TABLES_TIME: Duration = Duration::from_millis(500);

/// The background of an open database. Its threads share it, and handles ask it for work.
pub(crate) struct Background {
    pub(crate) env: Arc<Environment>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) writes: Arc<WritePath>,
    pub(crate) driver: Arc<Driver>,
    pub(crate) chores: Arc<Chores>,
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) board: Arc<ChoreBoard>,
    /// Number of clients that pause manual compactions. While it is above 0, they are refused.
    pub(crate) manual_pauses: AtomicI32,
    /// Number of pauses of manual compactions since the database was opened.
    pub(crate) manual_pauses_begun: AtomicU64,
}

impl Background {
    /// Puts the services together. No thread runs yet.
    pub(crate) fn new(
        env: &Arc<Environment>,
        tree: &Arc<Tree>,
        writes: &Arc<WritePath>,
        spare_files: Arc<SpareFiles>,
        device: Arc<Device>,
        options: ControlOptions,
    ) -> Background {
        let (env, tree, writes) = (env.clone(), tree.clone(), writes.clone());
        let hint = options.scheduler.hint;
        let plane = device.join(options);
        let place = Place { device, database: plane.database() };
        let board = Arc::new(ChoreBoard::new(place.clone()));
        let outputs =
            Outputs { env: env.clone(), tree: tree.clone(), spare_files: spare_files.clone() };
        let driver = Arc::new(Driver::new(
            env.clone(),
            tree.clone(),
            writes.clone(),
            board.clone(),
            outputs,
            (place, plane),
        ));
        let scrubber = Arc::new(Scrubber::new(env.clone(), tree.clone(), driver.clone()));
        let chores = Arc::new(Chores::new(
            env.clone(),
            tree.clone(),
            writes.clone(),
            driver.clone(),
            scrubber.clone(),
            board.clone(),
            spare_files,
            hint,
        ));
        Background {
            env,
            tree,
            writes,
            driver,
            chores,
            scrubber,
            board,
            manual_pauses: AtomicI32::new(0),
            manual_pauses_begun: AtomicU64::new(0),
        }
    }

    /// Runs one piece of background work on the calling thread, for a database without threads.
    /// Returns false if there was nothing to do.
    pub(crate) fn step_here(self: &Arc<Self>) -> Result<bool> {
        self.env.check_open()?;
        if clock::is_virtual() {
            self.driver.sample_if_due();
        }
        self.driver.report_charged_tables();
        let chores = self.chores.do_chores();
        // `tidied_at_rest` comes last, because it may only run if there is no other work.
        let worked = matches!(self.driver.step_once(), Stepped::Worked)
            || chores
            || self.chores.tidied_at_rest();
        if !worked {
            // Another thread may be stepping a job.
            thread::yield_now();
        }
        Ok(worked)
    }

    /// Like [`Background::step_here`], but if there was nothing to do, it sleeps in virtual time,
    /// which would otherwise stand still, and while another process works.
    pub(crate) fn step_or_wait(self: &Arc<Self>) -> Result<()> {
        if !self.step_here()? && (clock::is_virtual() || self.driver.has_away()) {
            clock::sleep(SHORT_WAIT);
        }
        Ok(())
    }

    /// Has the threads of the device work for the database, if the options ask for any, and opens
    /// tables for a short time.
    pub(crate) fn start_threads(self: &Arc<Self>) -> Result<()> {
        let options = self.env.options.load();
        let threads = if self.env.read_only { 0 } else { control::threads(&options) };
        if threads > 0 {
            let of_runtime = options.runtime.as_ref().and_then(Runtime::threads);
            let threads = of_runtime.unwrap_or(threads);
            let Place { device, database } = &self.driver.place;
            device.enlist(*database, self.clone(), threads, options.background_thread_nice)?;
            self.chores.open_tables_for(OPEN_TABLES_TIME);
        }
        Ok(())
    }

    /// Ends the work of the device's threads for the database.
    pub(crate) fn stop_threads(&self) {
        let Place { device, database } = &self.driver.place;
        device.retire(*database);
    }
}

impl Tenant for Background {
    fn step(&self) -> Stepped {
        match self.driver.step_once() {
            // Control may have been polled while the reason for what it asks was not yet known.
            Stepped::Idle(None) if self.driver.has_jobs() || self.driver.has_due_work() => {
                Stepped::Idle(Some(self.env.now() + IDLE_WAIT_MAX))
            }
            stepped => stepped,
        }
    }

    fn take_sample(&self) -> Box<Sample> {
        self.driver.take_sample(&mut lock(&self.driver.sampler))
    }

    fn sampled(&self, sample: Box<Sample>, late_ns: u64) -> Sampled {
        if late_ns > 0 {
            self.env.metrics.timeline.told(self.env.now(), EventKind::Late { late_ns });
        }
        let has_jobs = self.driver.report_sample(sample);
        if self.driver.is_quiet() {
            Sampled::Quiet
        } else if has_jobs || self.driver.is_gated() {
            Sampled::Busy
        } else {
            Sampled::Used
        }
    }

    fn has_news(&self) -> bool {
        self.driver.has_news()
    }

    fn chores(&self, slower: u32) -> Rest {
        self.chores.round(slower)
    }

    fn totals(&self) -> DatabaseTotals {
        let classes = self.env.vfs.totals();
        let (running_flushes, running_compactions) = self.driver.running();
        DatabaseTotals {
            user_bytes: self.env.metrics.write_bytes(),
            read_bytes: classes.iter().map(|class| class.read_bytes).sum(),
            written_bytes: classes.iter().map(|class| class.write_bytes).sum(),
            running_flushes,
            running_compactions,
        }
    }

    fn panicked(&self, error: &Error) {
        self.driver.job_failed(error);
    }
}

#[cfg(test)]
mod tests;
