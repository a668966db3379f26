//! The driver: it carries out the actions of control, one step at a time.
//!
//! [`Driver::step_once`], which each worker calls in a loop:
//!
//! 1. [`Driver::poll_control`] reports memtables that were sealed, then polls control until it has
//!    no more actions. It makes jobs ([`Driver::start`]), queues grants, discards jobs
//!    ([`Driver::discard`]) and publishes admissions to the gates.
//! 2. A discarded job is abandoned outside the lock, if there is one.
//! 3. Otherwise the next job with a grant is taken out of its slot ([`DriverState::next_runnable`])
//!    and stepped outside the lock (`Job::step`).
//! 4. [`Driver::after_step`] reports the step to control. A job that has more to do goes back to
//!    its slot. A finished one is installed ([`Driver::install_result`]), and
//!    [`Driver::finish_job`] reports its end.
//!
//! What must stay true:
//!
//! - Control is called under the driver's lock. Steps run outside it.
//! - A step ends with its grant.
//! - At the end of a job its edit is installed first. Then control hears of the new version, of the
//!   memtables and of the end, in this order, before it is polled again.

mod away;
mod failures;
mod install;
#[cfg(any(test, feature = "test-support"))]
pub(crate) mod interfere;
pub(crate) mod lent;
mod limits;
mod listening;
pub(crate) mod observe;
mod pausing;
mod request;
mod sampler;
pub(crate) mod step;

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use lent::Lent;
use observe::{finished, memtables_event, part_event, stepped_event};
use step::{Edits, Step, StepBytes};

use super::chores::board::ChoreBoard;
use super::compaction::Compactor;
use super::compaction::job::CompactionJob;
use super::flush::Flusher;
use super::flush::group::FlushGroup;
use crate::background::output::Outputs;
use crate::environment::Environment;
use crate::runtime::device::panicked;
use crate::tree::Tree;
use crate::write::path::WritePath;
use sateen_control::version::Version;
use sateen_control::{
    Action, ControlPlane, Event, FileId, Instant, JobId, JobResult, RequestId, SeqNo,
};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, lock};
use sateen_store::base::waited::step_read_bytes;

use crate::admission::gate::AdmissionGate;
use crate::events::CompactionInfo;
use crate::metrics::SchedulerMetrics;
use crate::runtime::{Place, Stepped};
use crate::timeline::{EventKind, Grant};
use crate::tree::families::ColumnFamilyData;

/// A flush or compaction.
pub(crate) enum Job {
    Flush(FlushGroup),
    Compaction(Box<CompactionJob>),
}

impl Job {
    /// Does at most `bytes` bytes of work.
    pub(crate) fn step(&mut self, bytes: u64, driver: &Driver) -> Result<Step<Edits>> {
        let begin = observe::cpu_time();
        let mut stepped = match self {
            Job::Flush(job) => job.step(bytes, &driver.flusher),
            Job::Compaction(job) => {
                job.step(bytes, &driver.tree.versions.counters).map(Step::of_one)
            }
        };
        if let Ok(Step::More(moved) | Step::Done(moved, _)) = &mut stepped {
            moved.read = step_read_bytes();
            clock::computed(moved.read + moved.written);
            let cpu_ns = observe::cpu_time().saturating_sub(begin);
            moved.cpu_ns = cpu_ns;
            driver.env.metrics.stepped(cpu_ns);
        }
        stepped
    }

    /// Returns the column families that the job works on.
    pub(crate) fn families(&self) -> Vec<&Arc<ColumnFamilyData>> {
        match self {
            Job::Flush(job) => job.families().collect(),
            Job::Compaction(job) => vec![&job.family],
        }
    }

    /// Gives up the job and removes its files.
    pub(crate) fn abandon(&mut self) {
        match self {
            Job::Flush(job) => job.abandon(),
            Job::Compaction(job) => job.abandon(),
        }
    }

    /// Returns the job's files: the one that is being written and those that are finished.
    pub(crate) fn files(&self) -> Vec<FileId> {
        match self {
            Job::Flush(job) => job.files(),
            Job::Compaction(job) => job.files().to_vec(),
        }
    }
}

/// A job that was started and has not ended.
pub(crate) struct RunningJob {
    /// The job; `None` while a thread steps it.
    pub(crate) job: Option<Box<Job>>,
    pub(crate) is_flush: bool,
    /// Whether listeners were told that it begins.
    pub(crate) announced: bool,
    /// Whether the job is abandoned when its step ends.
    pub(crate) discard: bool,
    /// Whether the job ends as soon as its result can be installed.
    pub(crate) finish_early: bool,
    /// Whether control has paused the job.
    pub(crate) paused: bool,
    /// Whether another process does the job's work.
    pub(crate) away: bool,
    /// Approximate memory of the buffers that the job reads and writes through.
    pub(crate) buffer_bytes: u64,
}

impl RunningJob {
    fn new(job: Job, buffer_bytes: u64) -> RunningJob {
        RunningJob {
            is_flush: matches!(job, Job::Flush(_)),
            job: Some(Box::new(job)),
            announced: false,
            discard: false,
            finish_early: false,
            paused: false,
            away: false,
            buffer_bytes,
        }
    }
}

/// The state of the driver, under its lock.
pub(crate) struct DriverState {
    pub(crate) plane: ControlPlane,
    pub(crate) jobs: BTreeMap<JobId, RunningJob>,
    /// Jobs with a grant, in the order of the grants.
    pub(crate) runnable: VecDeque<(JobId, Grant)>,
    /// Discarded jobs, whose files are removed outside the lock.
    pub(crate) abandoned: Vec<Job>,
    /// Number of discarded jobs whose files are being removed.
    pub(crate) abandoning: usize,
    pub(crate) scheduled: SchedulerMetrics,
    /// Manual compactions: `None` while a request runs, then whether all of it was done.
    pub(crate) requests: BTreeMap<RequestId, Option<bool>>,
    /// Results of manual compactions, for the clients that wait for them.
    pub(crate) answers: BTreeMap<RequestId, CompactionInfo>,
    pub(crate) pauses: pausing::Pauses,
    pub(crate) next_request: u64,
    pub(crate) stop: bool,
}

/// The driver of a database's background work.
pub(crate) struct Driver {
    pub(crate) env: Arc<Environment>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) writes: Arc<WritePath>,
    pub(crate) flusher: Flusher,
    pub(crate) compactor: Compactor,
    pub(crate) shared: Mutex<DriverState>,
    /// Its place in the device, whose threads call [`Driver::step_once`].
    pub(crate) place: Place,
    /// Signalled if a request has ended, or the database.
    pub(crate) wake: Condvar,
    /// Whether a memtable was sealed since it was last reported to control.
    pub(crate) memory_changed: AtomicBool,
    /// The gate of all writers. Each column family has another one.
    pub(crate) gate: AdmissionGate,
    /// Whether any gate is not open.
    pub(crate) gated: AtomicBool,
    pub(crate) board: Arc<ChoreBoard>,
    /// The sampler of a database without threads, whose caller runs the steps.
    pub(crate) sampler: Mutex<sampler::Sampler>,
}

/// The longest sleep while there may be work: a safety net, as every change calls a thread.
pub(crate) const IDLE_WAIT_MAX: Duration = Duration::from_millis(500);

impl Driver {
    pub(crate) fn new(
        env: Arc<Environment>,
        tree: Arc<Tree>,
        writes: Arc<WritePath>,
        board: Arc<ChoreBoard>,
        outputs: Outputs,
        (place, plane): (Place, ControlPlane),
    ) -> Driver {
        let flusher = Flusher {
            env: env.clone(),
            tree: tree.clone(),
            writes: writes.clone(),
            outputs: outputs.clone(),
        };
        let compactor = Compactor {
            env: env.clone(),
            tree: tree.clone(),
            writes: writes.clone(),
            outputs,
            place: place.clone(),
        };
        Driver {
            place,
            env,
            tree,
            writes,
            flusher,
            compactor,
            shared: Mutex::new(DriverState {
                scheduled: observe::at_first(&plane),
                plane,
                jobs: BTreeMap::new(),
                runnable: VecDeque::new(),
                abandoned: Vec::new(),
                abandoning: 0,
                requests: BTreeMap::new(),
                answers: BTreeMap::new(),
                pauses: pausing::Pauses::default(),
                next_request: 1,
                stop: false,
            }),
            wake: Condvar::new(),
            memory_changed: AtomicBool::new(false),
            gate: AdmissionGate::default(),
            gated: AtomicBool::new(false),
            board,
            sampler: Mutex::default(),
        }
    }

    /// Returns true if any gate is not open.
    #[inline]
    pub(crate) fn is_gated(&self) -> bool {
        self.gated.load(Ordering::Acquire)
    }

    /// Notes that a memtable was sealed. It runs on the client path, so it takes no lock under
    /// which work is done.
    pub(crate) fn memtables_changed(&self) {
        self.memory_changed.store(true, Ordering::Release);
        self.place.call();
        self.board.poke();
    }

    /// Reports the sealed memtables of `family` to control. They are read under the lock. Otherwise
    /// a flush might report in between that nothing is left. Control would then hear the older
    /// state last, and wait for ever for a flush that is over.
    pub(crate) fn report_memtables(&self, now: Instant, family: &ColumnFamilyData) {
        self.lend().plane.handle(now, memtables_event(family));
        self.place.call();
    }

    /// Reports an event to control.
    pub(crate) fn report(&self, now: Instant, event: Event) {
        self.lend().plane.handle(now, event);
        self.place.call();
    }

    /// Ends the steps. Other databases get the slots of this one at once, however long its last
    /// steps take.
    pub(crate) fn stop(&self) {
        let mut shared = self.lend();
        shared.stop = true;
        shared.plane.handle(self.env.now(), Event::Paused(true));
        drop(shared);
        self.wake.notify_all();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        lock(&self.shared).stop
    }

    /// Returns true if jobs run or are about to.
    pub(crate) fn has_jobs(&self) -> bool {
        !lock(&self.shared).jobs.is_empty()
    }

    /// Returns true if control would start work now.
    pub(crate) fn has_due_work(&self) -> bool {
        if self.has_charged_tables() {
            return true;
        }
        let shared = self.lend();
        self.memory_changed.load(Ordering::Acquire)
            || shared.has_work()
            || shared.abandoning > 0
            || !shared.plane.is_idle()
    }

    /// Returns true if a flush runs.
    pub(crate) fn has_flushes(&self) -> bool {
        lock(&self.shared).jobs.values().any(|slot| slot.is_flush)
    }

    /// Abandons every job that is left. No thread may be in the driver any more.
    pub(crate) fn abandon_all(&self) {
        let mut shared = lock(&self.shared);
        shared.runnable.clear();
        let jobs = std::mem::take(&mut shared.jobs).into_values().filter_map(|slot| slot.job);
        let abandoned = std::mem::take(&mut shared.abandoned);
        drop(shared);
        abandoned.into_iter().chain(jobs.map(|job| *job)).for_each(|mut job| job.abandon());
        self.place.device.leave(self.place.database);
    }

    /// Does one piece of work: removes the files of a discarded job, or runs one step of a job.
    pub(crate) fn step_once(self: &Arc<Self>) -> Stepped {
        let mut shared = self.lend();
        let (id, grant, announced, mut job) = loop {
            if shared.stop {
                return Stepped::Idle(None);
            }
            shared.take_back(self.env.now());
            self.poll_control(&mut shared);
            if let Some(mut job) = shared.abandoned.pop() {
                shared.abandoning += 1;
                if shared.has_work() {
                    self.place.call();
                }
                drop(shared);
                job.abandon();
                lock(&self.shared).abandoning -= 1;
                return Stepped::Worked;
            }
            let Some((id, grant)) = shared.next_runnable() else {
                return Stepped::Idle(shared.plane.poll_timeout());
            };
            let Some(slot) = shared.jobs.get_mut(&id) else { continue };
            if let Some(mut job) = slot.job.take() {
                if slot.finish_early
                    && let Job::Compaction(job) = &mut *job
                {
                    job.finish_early();
                }
                break (id, grant, std::mem::replace(&mut slot.announced, true), job);
            }
        };
        if shared.has_work() {
            self.place.call();
        }
        drop(shared);

        let watch = self.env.metrics.timeline.watch();
        let step = AssertUnwindSafe(|| {
            if !announced {
                self.announce(id, &job);
            }
            job.step(grant.bytes, self)
        });
        // A job that panicked ends like one that failed. Nobody may wait for it for ever.
        let stepped = catch_unwind(step).unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        let whose = (id, job.class());
        self.env.metrics.timeline.end_step(watch, whose, grant, observe::moved(&stepped));
        self.after_step(id, job, stepped);
        Stepped::Worked
    }

    /// Polls control and carries out its actions, until there are none.
    pub(crate) fn poll_control(self: &Arc<Self>, shared: &mut Lent<'_>) {
        let now = self.env.now();
        if self.memory_changed.swap(false, Ordering::AcqRel) {
            self.report_all_memtables(shared, now);
        }
        while let Some(action) = shared.plane.poll(now) {
            match action {
                Action::StartFlush { job, cf, memtables, stripes } => {
                    let made =
                        self.flusher.make_flush(cf, memtables as usize, SeqNo::MAX, &stripes);
                    let made = made.map(|flush| Job::Flush(FlushGroup::new(vec![flush])));
                    if !self.start(shared, now, job, made) {
                        return;
                    }
                }
                Action::StartFlushTogether { job, members } => {
                    let made = self.flusher.make_flush_together(&members);
                    if !self.start(shared, now, job, made.map(Job::Flush)) {
                        return;
                    }
                }
                Action::StartCompaction { job, plan } => {
                    let made =
                        self.compactor.make_compaction(plan, shared.plane.job_slots().compactions);
                    let made = made.map(|compaction| Job::Compaction(Box::new(compaction)));
                    if !self.start(shared, now, job, made) {
                        return;
                    }
                }
                Action::Grant { job, bytes } => {
                    shared.runnable.push_back((job, Grant { at: now, bytes }));
                }
                Action::Discard { job } => self.discard(shared, now, job),
                Action::Admit(admission) => {
                    self.env.metrics.timeline.admission(now, None, admission);
                    self.gate.publish(admission);
                    self.look_at_gates();
                }
                Action::AdmitFamily { cf, admission } => {
                    self.env.metrics.timeline.admission(now, Some(cf), admission);
                    if let Some(family) = self.tree.family_by_id(cf) {
                        family.gate.publish(admission);
                        self.look_at_gates();
                    }
                }
                Action::FinishEarly { job } => {
                    shared.scheduled.early_ends += 1;
                    self.env.metrics.timeline.told(now, EventKind::FinishEarly { job });
                    if let Some(slot) = shared.jobs.get_mut(&job) {
                        slot.finish_early = true;
                    }
                }
                Action::SetLimit(adjustment) => self.set_limit(shared, now, adjustment),
                Action::Note(note) => {
                    self.env.metrics.timeline.note(now, &note);
                    shared.observe(&note);
                }
                Action::ManualDone { request, complete } => {
                    if let Some(state) = shared.requests.get_mut(&request) {
                        *state = Some(complete);
                    }
                    self.wake.notify_all();
                }
            }
        }
    }

    /// Puts a job into its slot, or reports that there is nothing to do for it. Returns false in
    /// the second case. The caller then stops polling: control would ask for the job again at once,
    /// and the thread that will report the reason needs the lock.
    pub(crate) fn start(
        &self,
        shared: &mut DriverState,
        now: Instant,
        id: JobId,
        job: Option<Job>,
    ) -> bool {
        let made = job.is_some();
        match job {
            Some(job) => {
                self.env.metrics.timeline.job_started(now, job.info(id));
                let buffer_bytes = job.buffer_bytes();
                shared.jobs.insert(id, RunningJob::new(job, buffer_bytes));
            }
            // The job has nothing to work on, for example because its column family is being
            // dropped.
            None => {
                let result = JobResult::Cancelled;
                shared.plane.handle(now, Event::JobFinished { job: id, result });
            }
        }
        made
    }

    /// Discards a job. A job that is being stepped is abandoned when its step ends.
    pub(crate) fn discard(&self, shared: &mut DriverState, now: Instant, id: JobId) {
        let Some(slot) = shared.jobs.get_mut(&id) else { return };
        slot.discard = true;
        self.env.metrics.timeline.told(now, EventKind::Discarded { job: id });
        // A job that is being stepped has no job in its slot.
        let Some(job) = slot.job.take() else { return };
        if slot.announced {
            self.queue_given_up(id, &job, shared.stops_compactions());
        }
        shared.jobs.remove(&id);
        shared.runnable.retain(|(granted, _)| *granted != id);
        shared.abandoned.push(*job);
        self.env.metrics.timeline.job_finished(now, id, JobResult::Cancelled);
        shared.plane.handle(now, Event::JobFinished { job: id, result: JobResult::Cancelled });
    }

    /// Reports the memtables of every column family to control, and those sealed early as flushes
    /// that were requested.
    pub(crate) fn report_all_memtables(&self, shared: &mut DriverState, now: Instant) {
        for family in self.tree.families().values() {
            let event = memtables_event(family);
            shared.plane.handle(now, event);
            if family.was_sealed_early() {
                shared.plane.handle(now, Event::FlushRequested { cf: family.id() });
            }
        }
    }

    /// Reports a step to control, and installs the result if the job is done.
    pub(crate) fn after_step(
        self: &Arc<Self>,
        id: JobId,
        mut job: Box<Job>,
        stepped: Result<Step<Edits>>,
    ) {
        match stepped {
            Ok(part @ (Step::More(_) | Step::Away)) => {
                let mut shared = self.lend();
                let (now, away) = (self.env.now(), matches!(part, Step::Away));
                shared.plane.handle(now, part_event(id, &part));
                let ended = away && self.env.work_ended.load(Ordering::Acquire);
                let discard =
                    shared.stop || ended || shared.jobs.get(&id).is_none_or(|slot| slot.discard);
                if discard {
                    shared.jobs.remove(&id);
                    let is_stopped = shared.stops_compactions();
                    drop(shared);
                    self.queue_given_up(id, &job, is_stopped);
                    job.abandon();
                    self.env.metrics.timeline.job_finished(now, id, JobResult::Cancelled);
                    self.report(now, finished(id, JobResult::Cancelled));
                } else if let Some(slot) = shared.jobs.get_mut(&id) {
                    slot.buffer_bytes = job.buffer_bytes();
                    (slot.job, slot.away) = (Some(job), away);
                }
            }
            Ok(Step::Done(moved, edits)) => {
                let watch = self.env.metrics.timeline.watch();
                let outcome = self.outcome_of(id, &job, &edits);
                let installed = self.install_result(&mut job, edits);
                self.env.metrics.timeline.end_install(watch, id, job.class());
                if let Job::Compaction(job) = &*job {
                    job.tell_service(installed.is_err());
                }
                let result = match &installed {
                    Ok(_) => JobResult::Done,
                    // If one of several families was dropped, the flush of the others starts over
                    // without it.
                    Err(Error::NoSuchColumnFamily(_)) if job.families().len() > 1 => {
                        JobResult::Cancelled
                    }
                    Err(error) => failure(error),
                };
                // The failure is noted first, because clients that wait for the job ask why it
                // failed.
                if let Err(error) = &installed {
                    self.this_job_failed(&job, error);
                }
                self.tell_outcome(&job, outcome, installed.as_ref().err());
                self.finish_job(id, moved, &job, installed.unwrap_or_default(), result);
                self.board.poke();
            }
            Err(error) => {
                let outcome = self.outcome_of(id, &job, &[]);
                job.abandon();
                self.this_job_failed(&job, &error);
                self.tell_outcome(&job, outcome, Some(&error));
                self.finish_job(id, StepBytes::default(), &job, Vec::new(), failure(&error));
            }
        }
    }

    /// Reports the end of a job to control: the last step, then the versions, the memtables and the
    /// result.
    pub(crate) fn finish_job(
        &self,
        id: JobId,
        moved: StepBytes,
        job: &Job,
        versions: Vec<Arc<Version>>,
        result: JobResult,
    ) {
        let now = self.env.now();
        let mut shared = self.lend();
        shared.plane.handle(now, stepped_event(id, moved));
        for version in versions {
            shared.plane.handle(now, Event::VersionInstalled { version });
        }
        if let Job::Flush(flush) = job {
            flush.families().for_each(|family| shared.plane.handle(now, memtables_event(family)));
        }
        shared.plane.handle(now, finished(id, result));
        self.env.metrics.timeline.job_finished(now, id, result);
        shared.jobs.remove(&id);
        drop(shared);
        self.place.call();
        self.wake.notify_all();
    }
}

/// Returns the result of a job that failed with `error`.
fn failure(error: &Error) -> JobResult {
    if error.is_no_space() { JobResult::NoSpace } else { JobResult::Failed }
}
