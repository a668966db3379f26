//! Background work: the driver carries out what control decides, step by step.
//!
//! What must stay true: control is called under the driver's lock, steps run outside it; a step
//! ends with its grant; at the end of a job its edit is installed first, then control hears of the
//! new version, of the memtables and of the end, in this order, before it is polled again.

mod failures;
mod install;
#[cfg(any(test, feature = "test-support"))]
pub(crate) mod interfere;
mod limits;
mod listening;
pub(crate) mod observe;
mod pausing;
mod request;
mod sampler;
pub(crate) mod step;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use observe::{finished, memtables_event, stepped_event};
use step::{Edits, Step, StepBytes};

use super::chores::board::ChoreBoard;
use super::compaction::Compactor;
use super::compaction::job::CompactionJob;
use super::flush::Flusher;
use super::flush::group::FlushGroup;
use crate::background::output::Outputs;
use crate::environment::Environment;
use crate::tree::Tree;
use crate::write::path::WritePath;
use sateen_control::version::Version;
use sateen_control::{
    Action, ControlOptions, ControlPlane, Event, FileId, Instant, JobId, JobResult, RequestId,
    SeqNo,
};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::plant::planted;
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, MutexGuard, lock, wait_timeout};
use sateen_store::base::waited::step_read_bytes;

use crate::admission::gate::AdmissionGate;
use crate::events::CompactionInfo;
use crate::metrics::SchedulerMetrics;
use crate::timeline::{EventKind, Grant};
use crate::tree::families::ColumnFamilyData;

pub(crate) enum Job {
    Flush(FlushGroup),
    Compaction(Box<CompactionJob>),
}

impl Job {
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
            let cpu_ns = observe::cpu_time().saturating_sub(begin);
            moved.cpu_ns = if moved.has_read_its_grant { 0 } else { cpu_ns };
            driver.env.metrics.stepped(cpu_ns);
        }
        stepped
    }

    /// The column families that it works on.
    pub(crate) fn families(&self) -> Vec<&Arc<ColumnFamilyData>> {
        match self {
            Job::Flush(job) => job.families().collect(),
            Job::Compaction(job) => vec![&job.family],
        }
    }

    pub(crate) fn abandon(&mut self) {
        match self {
            Job::Flush(job) => job.abandon(),
            Job::Compaction(job) => job.abandon(),
        }
    }

    /// The files that are being written, and those that are.
    pub(crate) fn files(&self) -> Vec<FileId> {
        match self {
            Job::Flush(job) => job.files(),
            Job::Compaction(job) => job.files().to_vec(),
        }
    }
}

pub(crate) struct RunningJob {
    /// None while a thread steps it.
    pub(crate) job: Option<Box<Job>>,
    pub(crate) is_flush: bool,
    /// Listeners were told that it begins.
    pub(crate) announced: bool,
    pub(crate) discard: bool,
    pub(crate) finish_early: bool,
    pub(crate) paused: bool,
    pub(crate) buffer_bytes: u64,
}

pub(crate) struct DriverState {
    pub(crate) plane: ControlPlane,
    pub(crate) jobs: BTreeMap<JobId, RunningJob>,
    pub(crate) runnable: VecDeque<(JobId, Grant)>,
    /// Given up: what they have written is removed outside the lock.
    pub(crate) abandoned: Vec<Job>,
    /// So many of them are being removed just now.
    pub(crate) abandoning: usize,
    pub(crate) scheduled: SchedulerMetrics,
    /// Manual compactions under way; Some once they are over: whether all was done.
    pub(crate) requests: BTreeMap<RequestId, Option<bool>>,
    /// What compactions made for them.
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
    /// There may be work, or a request is over.
    pub(crate) wake: Condvar,
    /// Some memtable was sealed since control last heard.
    pub(crate) memory_changed: AtomicBool,
    /// For all writers.
    pub(crate) gate: AdmissionGate,
    /// Some gate is not open.
    pub(crate) gated: AtomicBool,
    pub(crate) board: Arc<ChoreBoard>,
    /// Of a database whose steps its caller does.
    pub(crate) sampler: Mutex<sampler::Sampler>,
}

/// What one call of [`Driver::step_once`] did.
pub(crate) enum Stepped {
    /// Something.
    Worked,
    /// Nothing to do before this moment, if it is known.
    Idle(Option<Instant>),
}

/// How long idle threads sleep at most: a safety net, not a mechanism.
pub(crate) const IDLE_WAIT_MAX: Duration = Duration::from_millis(500);

impl Driver {
    pub(crate) fn new(
        env: Arc<Environment>,
        tree: Arc<Tree>,
        writes: Arc<WritePath>,
        board: Arc<ChoreBoard>,
        outputs: Outputs,
        options: ControlOptions,
    ) -> Driver {
        let flusher = Flusher {
            env: env.clone(),
            tree: tree.clone(),
            writes: writes.clone(),
            outputs: outputs.clone(),
        };
        let compactor =
            Compactor { env: env.clone(), tree: tree.clone(), writes: writes.clone(), outputs };
        let plane = ControlPlane::new(options);
        Driver {
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

    /// True if some writers have to wait.
    #[inline]
    pub(crate) fn is_gated(&self) -> bool {
        self.gated.load(Ordering::Acquire)
    }

    /// A memtable was sealed. Called on the client path: takes no lock that work is done under.
    pub(crate) fn memtables_changed(&self) {
        self.memory_changed.store(true, Ordering::Release);
        self.wake.notify_one();
        self.board.poke();
    }

    /// Reports what memory `family` has sealed, as it is now: looked at before, it might be told
    /// after a flush told that there is nothing left, and control would wait for that for ever.
    pub(crate) fn report_memtables(&self, now: Instant, family: &ColumnFamilyData) {
        let before = planted("memtables_told_late").then(|| memtables_event(family));
        let mut shared = lock(&self.shared);
        shared.plane.handle(now, before.unwrap_or_else(|| memtables_event(family)));
        drop(shared);
        self.wake.notify_one();
    }

    /// Reports an event from outside the driver.
    pub(crate) fn report(&self, now: Instant, event: Event) {
        lock(&self.shared).plane.handle(now, event);
        self.wake.notify_one();
    }

    /// Makes every thread leave its loop.
    pub(crate) fn stop(&self) {
        lock(&self.shared).stop = true;
        self.wake.notify_all();
        self.board.stop();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        lock(&self.shared).stop
    }

    /// True if jobs run or are about to.
    pub(crate) fn has_jobs(&self) -> bool {
        !lock(&self.shared).jobs.is_empty()
    }

    /// True if control would start something now.
    pub(crate) fn has_due_work(&self) -> bool {
        let shared = lock(&self.shared);
        self.memory_changed.load(Ordering::Acquire)
            || shared.has_work()
            || shared.abandoning > 0
            || !shared.plane.is_idle()
    }

    /// True if flushes run.
    pub(crate) fn has_flushes(&self) -> bool {
        lock(&self.shared).jobs.values().any(|slot| slot.is_flush)
    }

    /// Gives up every job that is left. No thread may be in the driver any more.
    pub(crate) fn abandon_all(&self) {
        let mut shared = lock(&self.shared);
        shared.runnable.clear();
        let jobs = std::mem::take(&mut shared.jobs).into_values().filter_map(|slot| slot.job);
        let abandoned = std::mem::take(&mut shared.abandoned);
        drop(shared);
        abandoned.into_iter().chain(jobs.map(|job| *job)).for_each(|mut job| job.abandon());
    }

    /// Does one thing: a step of a job, or what control asked for meanwhile.
    pub(crate) fn step_once(self: &Arc<Self>) -> Stepped {
        let mut shared = lock(&self.shared);
        let (id, grant, announced, mut job) = loop {
            if shared.stop {
                return Stepped::Idle(None);
            }
            self.poll_control(&mut shared);
            if let Some(mut job) = shared.abandoned.pop() {
                shared.abandoning += 1;
                if shared.has_work() {
                    self.wake.notify_one();
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
            self.wake.notify_one();
        }
        drop(shared);

        if !announced {
            self.announce(id, &job);
        }
        let watch = self.env.metrics.timeline.watch();
        let stepped = job.step(grant.bytes, self);
        let whose = (id, job.class());
        self.env.metrics.timeline.end_step(watch, whose, grant, observe::moved(&stepped));
        self.after_step(id, job, stepped);
        Stepped::Worked
    }

    /// Waits until there may be work, at most until `until`.
    pub(crate) fn wait_for_work(&self, until: Option<Instant>) {
        let wait = until.map_or(IDLE_WAIT_MAX, |at| at.since(self.env.now()).min(IDLE_WAIT_MAX));
        let shared = lock(&self.shared);
        let changed = self.memory_changed.load(Ordering::Acquire);
        if shared.stop || shared.has_work() || changed || wait.is_zero() {
            return;
        }
        drop(wait_timeout(&self.wake, &self.shared, shared, wait));
    }

    pub(crate) fn poll_control(self: &Arc<Self>, shared: &mut MutexGuard<'_, DriverState>) {
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

    /// Returns false if there is no such job to be done: control would ask for it again at once,
    /// and who is about to tell it why needs the lock.
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
                let is_flush = matches!(job, Job::Flush(_));
                let buffer_bytes = job.buffer_bytes();
                let job = Some(Box::new(job));
                let (announced, discard, finish_early, paused) = (false, false, false, false);
                let slot = RunningJob {
                    job,
                    is_flush,
                    announced,
                    discard,
                    finish_early,
                    paused,
                    buffer_bytes,
                };
                shared.jobs.insert(id, slot);
            }
            // The column family is being dropped.
            None => {
                let result = JobResult::Cancelled;
                shared.plane.handle(now, Event::JobFinished { job: id, result });
            }
        }
        made
    }

    pub(crate) fn discard(&self, shared: &mut DriverState, now: Instant, id: JobId) {
        let Some(slot) = shared.jobs.get_mut(&id) else { return };
        slot.discard = true;
        self.env.metrics.timeline.told(now, EventKind::Discarded { job: id });
        // A job that is being stepped is given up when the step ends.
        let Some(job) = slot.job.take() else { return };
        if slot.announced {
            self.queue_given_up(id, &job);
        }
        shared.jobs.remove(&id);
        shared.runnable.retain(|(granted, _)| *granted != id);
        shared.abandoned.push(*job);
        self.env.metrics.timeline.job_finished(now, id, JobResult::Cancelled);
        if planted("discarded_job_keeps_slot") {
            return;
        }
        shared.plane.handle(now, Event::JobFinished { job: id, result: JobResult::Cancelled });
    }

    pub(crate) fn report_all_memtables(&self, shared: &mut DriverState, now: Instant) {
        for family in self.tree.families().values() {
            let event = memtables_event(family);
            shared.plane.handle(now, event);
            if family.was_sealed_early() {
                shared.plane.handle(now, Event::FlushRequested { cf: family.id() });
            }
        }
    }

    pub(crate) fn after_step(
        self: &Arc<Self>,
        id: JobId,
        mut job: Box<Job>,
        stepped: Result<Step<Edits>>,
    ) {
        match stepped {
            Ok(Step::More(moved)) => {
                let mut shared = lock(&self.shared);
                let now = self.env.now();
                shared.plane.handle(now, stepped_event(id, moved));
                let discard = shared.stop || shared.jobs.get(&id).is_none_or(|slot| slot.discard);
                if discard {
                    shared.jobs.remove(&id);
                    drop(shared);
                    self.queue_given_up(id, &job);
                    job.abandon();
                    self.env.metrics.timeline.job_finished(now, id, JobResult::Cancelled);
                    self.report(now, finished(id, JobResult::Cancelled));
                } else if let Some(slot) = shared.jobs.get_mut(&id) {
                    slot.job = Some(job);
                }
            }
            Ok(Step::Done(moved, edits)) => {
                let watch = self.env.metrics.timeline.watch();
                let outcome = self.outcome_of(id, &job, &edits);
                let installed = self.install_result(&mut job, edits);
                self.env.metrics.timeline.end_install(watch, id, job.class());
                let result = match &installed {
                    Ok(_) => JobResult::Done,
                    // The others start over without the one that was dropped.
                    Err(Error::NoSuchColumnFamily(_)) if job.families().len() > 1 => {
                        JobResult::Cancelled
                    }
                    Err(error) => failure(error),
                };
                // First: who waits for the job asks why it failed.
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

    pub(crate) fn finish_job(
        &self,
        id: JobId,
        moved: StepBytes,
        job: &Job,
        versions: Vec<Arc<Version>>,
        result: JobResult,
    ) {
        let now = self.env.now();
        let mut shared = lock(&self.shared);
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
        self.wake.notify_all();
    }
}

/// How a job ended that failed so.
fn failure(error: &Error) -> JobResult {
    if error.is_no_space() { JobResult::NoSpace } else { JobResult::Failed }
}
