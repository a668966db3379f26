//! The control plane: events go in, actions come out. Both calls are cheap enough for every step of
//! every job.
//!
//! 1. `handle` takes in an event and decides nothing.
//! 2. `poll` decides only about what events have changed. It first fits the slots to the device
//!    (`slots`) and admits writers (`admission`), then lets the tuner look (`tuning`).
//! 3. It starts flushes (`flushes`), then compactions: `start_compactions` gives each free slot to
//!    the most urgent column family (`start_next`). Its pick is claimed and becomes a job
//!    (`start_compaction`).
//! 4. `clear_the_way` ends deep compactions that level 0 waits for (SILK §5.2.2).
//! 5. When no action is left, `poll` returns the next grant of the scheduler, if a job may step.
//! 6. `finish` releases a job's claims, and lets a failed one be retried later.

mod admission;
mod away;
mod flushes;
mod sampling;
mod scrubbing;
mod shared;
mod slots;
mod space;
mod tuning;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::column_family::{ColumnFamily, Pick};
use crate::event::{Action, Event, JobResult};
use crate::options::{ControlOptions, DeviceProfile, JobSlots, Preemption};
use crate::plan::{CompactionPlan, InFlight};
use crate::policy::{CfOptions, CompactionChain};
use crate::reads::ReadCosts;
use crate::scheduler::{IoScheduler, Lane, MeasuredDrains, Scrub};
use crate::tuner::Tuner;
use crate::types::{ColumnFamilyId, DatabaseId, Instant, IoClass, JobId};
use crate::version::Version;
use crate::write_controller::{Admission, WriteTriggers};
pub use shared::SharedScheduler;
use space::DeadTables;

/// A running job.
#[derive(Clone, Debug)]
struct Job {
    cf: ColumnFamilyId,
    /// The other column families whose memtables it stores.
    others: Vec<ColumnFamilyId>,
    /// The plan; `None` for a flush.
    plan: Option<Arc<CompactionPlan>>,
    /// Whether it was picked for a client's request.
    manual: bool,
    /// Whether it was discarded, and whether it was told to end early.
    discarded: bool,
    finishing: bool,
}

impl Job {
    fn new(cf: ColumnFamilyId, plan: Option<Arc<CompactionPlan>>, manual: bool) -> Job {
        Job { cf, others: Vec::new(), plan, manual, discarded: false, finishing: false }
    }

    /// Returns the column families that it works on.
    fn families(&self) -> impl Iterator<Item = ColumnFamilyId> {
        std::iter::once(self.cf).chain(self.others.iter().copied())
    }
}

/// Returns the debt of a column family on which no job works, and the longest chain of compactions
/// that a flush might wait for.
#[must_use]
pub fn standing(options: Arc<CfOptions>, version: Arc<Version>) -> (u64, CompactionChain) {
    let family = ColumnFamily::new(options, version);
    (family.pending_bytes(), family.chain())
}

/// Decides what background work runs and how clients are admitted.
#[derive(Debug)]
pub struct ControlPlane {
    options: ControlOptions,
    /// Its number among the databases of the device.
    database: DatabaseId,
    /// Whether the scheduler gets its samples from [`SharedScheduler::sample`], and the time of the
    /// last sample of this database.
    is_sampled_apart: bool,
    sampled_at: Instant,
    /// Whether writers wait for memory that column families or databases share.
    memory_is_awaited: bool,
    families: BTreeMap<ColumnFamilyId, ColumnFamily>,
    jobs: BTreeMap<JobId, Job>,
    in_flight: InFlight,
    scheduler: Box<IoScheduler>,
    /// The current job slots.
    slots: JobSlots,
    /// Compactions for which the device has bandwidth.
    slots_of_device: usize,
    /// Whether there may be fewer slots than before.
    slots_changed: bool,
    /// The tuner; `None` if it is off.
    tuner: Option<Box<dyn Tuner>>,
    /// When the tuner last looked.
    tuned_at: Instant,
    triggers: WriteTriggers,
    admission: Admission,
    actions: VecDeque<Action>,
    paused: bool,
    /// True while no compaction may start.
    compactions_stopped: bool,
    /// Whether an event has arrived since the last look for work.
    dirty: bool,
    /// Whether a sample has arrived since writers were last judged.
    has_sample: bool,
    drains: MeasuredDrains,
    dead: DeadTables,
    reads: ReadCosts,
    scrub: Scrub,
    /// The admission of each column family whose writers are slowed down.
    families_admitted: BTreeMap<ColumnFamilyId, Admission>,
    /// When a column family that waits is looked at again.
    retry_at: Option<Instant>,
}

impl ControlPlane {
    /// Returns a control plane that knows no column family yet and admits writers.
    #[must_use]
    pub fn new(options: ControlOptions) -> ControlPlane {
        let mut plane = ControlPlane {
            database: DatabaseId::default(),
            is_sampled_apart: false,
            sampled_at: Instant::default(),
            memory_is_awaited: false,
            families: BTreeMap::new(),
            jobs: BTreeMap::new(),
            in_flight: InFlight::default(),
            scheduler: Box::new(IoScheduler::new(&options)),
            slots: options.slots(),
            slots_of_device: usize::MAX,
            slots_changed: false,
            tuner: tuning::tuner(&options),
            tuned_at: Instant::default(),
            triggers: WriteTriggers::new(options.delayed_write_bytes_per_second),
            admission: Admission::default(),
            actions: VecDeque::new(),
            paused: false,
            compactions_stopped: false,
            dirty: false,
            has_sample: false,
            drains: MeasuredDrains::default(),
            dead: DeadTables::default(),
            reads: ReadCosts::default(),
            scrub: Scrub::new(options.scrub),
            families_admitted: BTreeMap::new(),
            retry_at: None,
            options,
        };
        plane.set_share();
        plane
    }

    /// Takes in an event. `now` never goes back.
    pub fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::JobStepped { job, read_bytes, written_bytes, cpu_ns } => {
                self.scheduler.stepped(job, read_bytes, written_bytes, cpu_ns);
                return;
            }
            // Only writers depend on the fill of the active memtable, and they are judged at
            // samples.
            Event::MemtablesChanged { cf, sealed, sealed_bytes, active_bytes, size_bytes } => {
                if let Some(family) = self.families.get_mut(&cf) {
                    self.dirty |=
                        family.set_memtables(sealed, sealed_bytes, active_bytes, size_bytes);
                }
                return;
            }
            Event::Sample(sample) => return self.sampled(now, &sample),
            _ => self.dirty = true,
        }
        match event {
            Event::ColumnFamilyAdded { options, version } => {
                let cf = version.column_family();
                self.families.entry(cf).or_insert_with(|| ColumnFamily::new(options, version));
            }
            Event::ColumnFamilyDropped { cf } => self.drop_family(cf),
            Event::FlushRequested { cf } => {
                if let Some(family) = self.families.get_mut(&cf) {
                    family.request_flush();
                }
            }
            Event::VersionInstalled { version } => {
                if let Some(family) = self.families.get_mut(&version.column_family()) {
                    family.set_version(version);
                }
            }
            Event::JobFinished { job, result } => self.finish(now, job, result),
            Event::JobAway { job, away } => self.set_away(job, away),
            Event::OptionsChanged { options } => self.set_options(now, *options),
            Event::CfOptionsChanged { cf, options } => self.set_family_options(cf, options),
            Event::CompactRange { request, cf, begin, end, bottommost } => {
                match self.families.get_mut(&cf) {
                    Some(family) => family.request_compaction(request, begin, end, bottommost),
                    None => {
                        self.actions.push_back(Action::ManualDone { request, complete: false });
                    }
                }
            }
            Event::DropTables { request, cf, begin, end } => match self.families.get_mut(&cf) {
                Some(family) => family.request_drop(request, begin, end),
                None => self.actions.push_back(Action::ManualDone { request, complete: false }),
            },
            Event::CompactFiles { request, cf, files } => match self.families.get_mut(&cf) {
                Some(family) => family.request_files(request, files),
                None => self.actions.push_back(Action::ManualDone { request, complete: false }),
            },
            Event::RangesSeen { cf, up_to } => {
                if let Some(family) = self.families.get_mut(&cf) {
                    family.drop_covered(up_to);
                }
            }
            Event::TableCharged { cf, table } => {
                if let Some(family) = self.families.get_mut(&cf) {
                    family.charge(table);
                }
            }
            Event::FilesSparse { files } => {
                self.families.values_mut().for_each(|family| family.set_sparse(&files));
            }
            Event::CompactRangeCancelled { request } => self.cancel_request(request),
            Event::Paused(paused) => {
                self.paused = paused;
                self.scheduler.set_paused(paused);
            }
            Event::CompactionsStopped(stopped) => {
                self.compactions_stopped = stopped;
                // No database waits for a slot that this one does not use.
                self.scheduler.set_claim(None);
            }
            Event::JobStepped { .. } | Event::MemtablesChanged { .. } | Event::Sample(_) => {}
        }
    }

    /// Returns the next action; `None` if there is none until the next event or
    /// [`ControlPlane::poll_timeout`].
    pub fn poll(&mut self, now: Instant) -> Option<Action> {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = self.families.values().filter_map(|f| f.retry_at(now)).min();
            self.dirty = true;
        }
        self.dirty |= self.scheduler.take_call();
        if std::mem::take(&mut self.has_sample) | self.dirty {
            self.fit_slots();
            self.admit_smoothly();
            self.note_waits();
        }
        self.tune(now);
        if self.dirty {
            self.dirty = false;
            self.admit();
            if !self.paused {
                self.start_flushes(now);
                if !self.compactions_stopped {
                    self.start_compactions(now);
                }
            }
        }
        self.actions.extend(self.scheduler.take_notes().into_iter().map(Action::Note));
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        if self.paused {
            return None;
        }
        let (job, bytes) = self.scheduler.grant(now)?;
        Some(Action::Grant { job, bytes })
    }

    /// Returns when to poll again if no event arrives; `None` if that is not needed.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let grant = if self.paused { None } else { self.scheduler.next_grant_at() };
        [grant, self.retry_at].into_iter().flatten().min()
    }

    /// Returns the admission that [`Action::Admit`] last published.
    #[must_use]
    pub fn admission(&self) -> Admission {
        self.admission
    }

    /// Returns true if no job runs, no action waits to be polled and nothing waits for a retry.
    /// Meaningful after [`ControlPlane::poll`] has returned `None`.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.actions.is_empty() && !self.dirty && self.retry_at.is_none()
    }

    /// Returns its number among the databases that share the device.
    #[must_use]
    pub fn database(&self) -> DatabaseId {
        self.database
    }

    /// Returns the current options.
    #[must_use]
    pub fn options(&self) -> &ControlOptions {
        &self.options
    }

    /// Returns the estimated bytes that compactions of a column family must move.
    #[must_use]
    pub fn pending_compaction_bytes(&self, cf: ColumnFamilyId) -> Option<u64> {
        self.families.get(&cf).map(ColumnFamily::pending_bytes)
    }

    /// Returns the longest chain of compactions that a flush of a column family might wait for.
    #[must_use]
    pub fn compaction_chain(&self, cf: ColumnFamilyId) -> Option<CompactionChain> {
        self.families.get(&cf).map(ColumnFamily::chain)
    }

    /// Returns the estimate of the device.
    #[must_use]
    pub fn device(&self) -> DeviceProfile {
        self.scheduler.device()
    }

    /// Returns how long deep compactions would take to catch up at their current bandwidth, in
    /// nanoseconds.
    #[must_use]
    pub fn debt_ns(&self) -> u64 {
        self.scheduler.debt_ns()
    }

    /// Returns the running jobs: their column family and, for compactions, their plan.
    pub fn jobs(
        &self,
    ) -> impl Iterator<Item = (JobId, ColumnFamilyId, Option<&Arc<CompactionPlan>>)> {
        self.jobs.iter().map(|(id, job)| (*id, job.cf, job.plan.as_ref()))
    }

    /// Returns the claims of the running compactions.
    #[must_use]
    pub fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// Returns the size of a column family's memtables from the next one on.
    #[must_use]
    pub fn memtable_bytes(&self, cf: ColumnFamilyId) -> Option<u64> {
        self.families.get(&cf).map(ColumnFamily::memtable_bytes)
    }

    /// Returns the options of a column family that are in force: the configured ones, with what the
    /// tuner has adjusted.
    #[must_use]
    pub fn family_options(&self, cf: ColumnFamilyId) -> Option<&CfOptions> {
        self.families.get(&cf).map(ColumnFamily::options)
    }

    /// Returns the current rate limit in bytes per second; `None` if there is none.
    #[must_use]
    pub fn rate_limit(&self) -> Option<u64> {
        self.scheduler.bytes_per_second()
    }

    /// Fits level 0 of each column family to what reads cost.
    fn learn_reads(&mut self) {
        let device = self.scheduler.device();
        for family in self.families.values_mut() {
            self.dirty |= family.learn_reads(&self.reads, device);
        }
    }

    /// Pauses compactions that have no slot any more, or fills free slots with paused and new ones.
    fn start_compactions(&mut self, now: Instant) {
        if std::mem::take(&mut self.slots_changed) {
            while self.compactions_running() > self.slots() && self.scheduler.take_slot() {}
        }
        let all = self.scheduler.slots_of_all(self.slots());
        while self.compactions_running() < self.slots()
            && self.scheduler.compactions_of_all(false) < all
            && self.scheduler.has_preempted()
        {
            // Level 0 goes before paused jobs if no compaction out of it runs.
            let level0_first = self.scheduler.preemption() == Preemption::Off
                && self.scheduler.running(Lane::Level0) == 0;
            if !(level0_first && self.start_next(now, true)) {
                self.scheduler.resume();
            }
        }
        let mut denied = false;
        while let Some(level0_only) = self.free_slot() {
            let claim = self.claim(now, level0_only);
            denied = claim.is_some_and(|claim| !self.scheduler.may_take_slot(claim, level0_only));
            if denied || !self.start_next(now, level0_only) {
                break;
            }
        }
        if self.scheduler.is_shared() {
            // A database that has a slot and does not use it wants none.
            let wants = denied || self.compactions_running() < self.slots();
            let wants = wants && (denied || self.free_slot() != Some(false));
            let claim = if wants { self.claim(now, false) } else { None };
            self.scheduler.set_claim(claim);
        }
        self.clear_the_way();
    }

    /// Returns the most urgent column family, and its urgency.
    fn most_urgent(&mut self, now: Instant, level0_only: bool) -> Option<(f64, ColumnFamilyId)> {
        let in_flight = &self.in_flight;
        let urgent = self
            .families
            .iter_mut()
            .filter_map(|(cf, family)| Some((family.urgency(now, in_flight, level0_only)?, *cf)));
        urgent.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
    }

    /// Starts the most urgent compaction. Returns false if there is nothing more to look for.
    fn start_next(&mut self, now: Instant, level0_only: bool) -> bool {
        let clears_way = self.scheduler.preemption() != Preemption::Off;
        let group_bytes_max = self.scheduler.group_bytes_max();
        // The most urgent column family goes first.
        let Some((_, cf)) = self.most_urgent(now, level0_only) else { return false };
        let Some(family) = self.families.get_mut(&cf) else { return false };
        match family.pick(now, &self.in_flight, level0_only, clears_way, group_bytes_max) {
            Pick::Plan { plan, manual } => return self.start_compaction(cf, *plan, manual),
            Pick::ManualDone(request) => {
                self.actions.push_back(Action::ManualDone { request, complete: true });
            }
            Pick::Nothing => {
                let again = family.retry_at(now);
                self.retry_at = self.retry_at.into_iter().chain(again).min();
            }
        }
        true
    }

    fn slots(&self) -> usize {
        self.job_slots().compactions
    }

    fn compactions_running(&self) -> usize {
        self.scheduler.running(Lane::Deep) + self.scheduler.running(Lane::Level0)
    }

    /// Returns `None` if no compaction may start, and `Some(true)` if only one out of level 0 may.
    fn free_slot(&mut self) -> Option<bool> {
        let running = self.compactions_running();
        let all = self.scheduler.slots_of_all(self.slots());
        let is_free = self.scheduler.compactions_of_all(false) < all;
        if self.scheduler.preemption() != Preemption::Off {
            // A compaction out of level 0 always finds a slot: it takes that of a deep one (SILK
            // §5.2.2), whichever database that is of.
            let level0 = self.scheduler.compactions_of_all(true);
            let level0_may = self.scheduler.running(Lane::Level0) == 0 && level0 < all;
            let any = running < self.slots() && is_free;
            return if any { Some(false) } else { level0_may.then_some(true) };
        }
        let serial = self.options.parallel_only_under_pressure && !self.triggers.pressure();
        (is_free && running < if serial { 1 } else { self.slots() }).then_some(false)
    }

    /// Serves deep compactions that have claimed what level 0 waits for like level 0, and ends them
    /// early. Their finished work is kept or discarded, as the options say (SILK §5.2.2).
    fn clear_the_way(&mut self) {
        if self.scheduler.preemption() == Preemption::Off {
            return;
        }
        let group_bytes_max = self.scheduler.group_bytes_max();
        for family in self.families.values_mut() {
            for id in family.level0_blockers(&self.in_flight, group_bytes_max) {
                // A compaction of a neighbouring stripe is just as urgent.
                let is_deep = |job: &Job| job.plan.as_ref().is_some_and(|p| p.class != IoClass::L0);
                let Some(job) = self.jobs.get_mut(&id).filter(|job| !job.finishing && is_deep(job))
                else {
                    continue;
                };
                job.finishing = true;
                self.scheduler.raise(id);
                if job.manual || job.discarded {
                    continue;
                }
                if self.scheduler.preempt_discard() {
                    job.discarded = true;
                    self.actions.push_back(Action::Discard { job: id });
                } else {
                    self.actions.push_back(Action::FinishEarly { job: id });
                }
            }
        }
    }

    /// Claims the tables of a plan and starts its job. Returns false if they are claimed already.
    fn start_compaction(&mut self, cf: ColumnFamilyId, plan: CompactionPlan, manual: bool) -> bool {
        let job = self.scheduler.next_job();
        let claimed = self.in_flight.claim(job, &plan);
        debug_assert_eq!(claimed, Ok(()), "a policy chose what is in flight: {plan}");
        if claimed.is_err() {
            // In a release build, one compaction less is better than two on the same tables.
            return false;
        }
        let plan = Arc::new(plan);
        if let Some(family) = self.families.get_mut(&cf) {
            family.claims_changed();
            if manual {
                family.manual_started(job);
            }
        }
        self.jobs.insert(job, Job::new(cf, Some(plan.clone()), manual));
        self.scheduler.add(job, plan.class, plan.score);
        let all = self.scheduler.slots_of_all(self.slots());
        let own = self.compactions_running() > self.slots();
        let over = own || self.scheduler.compactions_of_all(false) > all;
        let over = plan.class == IoClass::L0 && over;
        self.actions.push_back(Action::StartCompaction { job, plan });
        if over && self.scheduler.preemption() != Preemption::Off {
            self.scheduler.preempt(job, own);
        }
        true
    }

    /// Removes a job, releases its claims, and sets the time of a retry if it failed.
    fn finish(&mut self, now: Instant, id: JobId, result: JobResult) {
        let Some(job) = self.jobs.remove(&id) else { return };
        if job.plan.is_none() && result == JobResult::Done {
            self.drains.flushed(self.flush_bytes(&job), self.scheduler.moved(id));
        }
        self.scheduler.remove(id);
        self.in_flight.release(id);
        let failed = matches!(result, JobResult::Failed | JobResult::NoSpace);
        let retry_at = failed.then(|| now + self.options.retry_delay);
        if let Some(at) = retry_at {
            self.retry_at = Some(self.retry_at.map_or(at, |other| other.min(at)));
        }
        let Some(plan) = &job.plan else {
            self.flush_finished(&job, retry_at);
            return;
        };
        let Some(family) = self.families.get_mut(&job.cf) else { return };
        family.fit_inputs(plan, result);
        family.claims_changed();
        if let Some(at) = retry_at {
            family.retry_compactions_at(at);
        }
        if job.manual {
            let done = result == JobResult::Done;
            self.actions.extend(family.manual_finished(id, plan, done));
        }
    }

    /// Removes a column family, and discards the jobs that work on it.
    fn drop_family(&mut self, cf: ColumnFamilyId) {
        let Some(family) = self.families.remove(&cf) else { return };
        self.triggers.remove(cf);
        if let Some(tuner) = &mut self.tuner {
            tuner.forget(cf);
        }
        self.families_admitted.remove(&cf);
        self.actions.extend(family.abandon());
        let works_on = |job: &Job| job.families().any(|family| family == cf);
        for (id, job) in &mut self.jobs {
            if works_on(job) && !std::mem::replace(&mut job.discarded, true) {
                self.actions.push_back(Action::Discard { job: *id });
            }
        }
    }

    fn set_options(&mut self, now: Instant, options: ControlOptions) {
        // Another database may have changed the options of the scheduler, which are not changed
        // back by one that changes others.
        if !self.scheduler.is_shared() || !self.options.schedules_like(&options) {
            self.scheduler.set_options(&options);
        }
        if self.options.scrub != options.scrub {
            self.scrub.set_options(now, options.scrub);
        }
        self.triggers.set_delayed_write_rate(options.delayed_write_bytes_per_second);
        let before = std::mem::replace(&mut self.options, options);
        self.set_share();
        self.restart_tuner(now, &before);
        for family in self.families.values_mut() {
            family.claims_changed();
        }
    }
}
