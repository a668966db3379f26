//! What jobs and control report: to control as events, to metrics, properties and the timeline.

use std::time::Duration;

use sateen_control::compaction::CompactionChain;
use sateen_control::{
    CfOptions, ColumnFamilyId, ControlPlane, DeviceProfile, Event, Instant, IoClass, JobId,
    JobResult, Note, Outlook, Pace, PaceStep, PauseReason, ReclaimPace, ScrubStep,
};
use sateen_store::base::clock;
use sateen_store::base::error::Result;
use sateen_store::base::sync::lock;

use super::step::{Edits, Step, StepBytes};
use crate::background::driver::{Driver, DriverState, Job};
#[cfg(any(test, feature = "test-support"))]
use crate::background::held::Held;
use crate::background::output;
use crate::metrics::SchedulerMetrics;
use crate::timeline::{JobInfo, Moved};
use crate::tree::families::ColumnFamilyData;

/// Returns the scheduling metrics before control has sent a note.
pub(crate) fn at_first(plane: &ControlPlane) -> SchedulerMetrics {
    let limit = plane.rate_limit().unwrap_or(0);
    SchedulerMetrics {
        background_read_bandwidth: limit,
        background_write_bandwidth: limit,
        ..SchedulerMetrics::default()
    }
}

impl DriverState {
    /// Records what control notes about its scheduling.
    pub(crate) fn observe(&mut self, note: &Note) {
        let told = &mut self.scheduled;
        match note {
            Note::Paused { job, reason } => {
                match reason {
                    PauseReason::Preempted { .. } => told.preemptions += 1,
                    PauseReason::Peak => told.peak_pauses += 1,
                    PauseReason::Slots => told.slot_pauses += 1,
                }
                if let Some(slot) = self.jobs.get_mut(job) {
                    slot.paused = true;
                }
            }
            Note::Resumed { job } => {
                if let Some(slot) = self.jobs.get_mut(job) {
                    slot.paused = false;
                }
            }
            Note::Bandwidth { client, read, write } => {
                told.bandwidth_changes += 1;
                told.client_bandwidth = *client;
                told.background_read_bandwidth = *read;
                told.background_write_bandwidth = *write;
            }
        }
    }
}

impl Driver {
    /// Returns the number of flushes and of compactions that run.
    pub(crate) fn running(&self) -> (u64, u64) {
        let shared = lock(&self.shared);
        let flushes = shared.jobs.values().filter(|slot| slot.is_flush).count();
        (flushes as u64, (shared.jobs.len() - flushes) as u64)
    }

    #[cfg(any(test, feature = "test-support"))]
    /// Returns the jobs, and what is held for them; see [`Held`].
    pub(crate) fn held(&self) -> Held {
        let shared = self.lend();
        Held {
            jobs: shared.jobs.len(),
            inputs: shared.plane.in_flight().len(),
            given_up: shared.abandoned.len() + shared.abandoning,
            requests: shared.requests.len(),
            ..Held::default()
        }
    }

    /// Returns the approximate bytes of the buffers of running jobs.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        lock(&self.shared).jobs.values().map(|slot| slot.buffer_bytes).sum()
    }

    /// Returns the compaction debt of a column family in bytes.
    pub(crate) fn pending_compaction_bytes(&self, family: ColumnFamilyId) -> u64 {
        self.lend().plane.pending_compaction_bytes(family).unwrap_or(0)
    }

    /// Returns the options of a column family that are in force: the configured ones, with what the
    /// tuner has adjusted; `None` if control does not know the column family.
    pub(crate) fn family_options(&self, family: ColumnFamilyId) -> Option<CfOptions> {
        self.lend().plane.family_options(family).cloned()
    }

    /// Returns the longest chain of compactions that a flush of a column family might wait for.
    pub(crate) fn compaction_chain(&self, family: ColumnFamilyId) -> CompactionChain {
        self.lend().plane.compaction_chain(family).unwrap_or_default()
    }

    /// Returns the forecast of stalls for the writers of `families`.
    pub(crate) fn outlook(
        &self,
        families: impl Iterator<Item = ColumnFamilyId>,
    ) -> Option<Outlook> {
        self.lend().plane.outlook(families)
    }

    /// Returns control's estimate of the device.
    pub(crate) fn device(&self) -> DeviceProfile {
        self.lend().plane.device()
    }

    /// Returns the pace at which dead tables are reclaimed. `backlog` is what that costs, in bytes.
    pub(crate) fn reclaim_pace(&self, backlog: u64) -> ReclaimPace {
        self.lend().plane.reclaim_pace(backlog)
    }

    /// Returns true while other programs have most of the machine's processors.
    pub(crate) fn is_short_of_processor(&self) -> bool {
        self.lend().plane.is_short_of_processor()
    }

    /// Asks control for a scrub, at `rate` bytes per second if given.
    pub(crate) fn request_scrub(&self, now: Instant, rate: Option<u64>) {
        self.lend().plane.request_scrub(now, rate);
    }

    /// Returns what the scrub may do now.
    pub(crate) fn scrub_step(&self, now: Instant) -> ScrubStep {
        self.lend().plane.scrub_step(now)
    }

    /// Reports that the scrub has verified `bytes` bytes.
    pub(crate) fn scrub_stepped(&self, now: Instant, bytes: u64) {
        self.lend().plane.scrub_stepped(now, bytes);
    }

    /// Reports that the scrub has ended.
    pub(crate) fn scrub_finished(&self, now: Instant) {
        self.lend().plane.scrub_finished(now);
    }

    /// Returns what a backup may do now.
    pub(crate) fn copy_step(&self, now: Instant, pace: &mut Pace, rate: u64) -> PaceStep {
        self.lend().plane.copy_step(now, pace, rate)
    }

    /// Reports that a backup has read and written bytes.
    pub(crate) fn copied(&self, now: Instant, pace: &mut Pace, moved: (u64, u64)) {
        self.lend().plane.copied(now, pace, moved);
    }

    /// Returns how long compactions would take to work off the debt.
    pub(crate) fn debt(&self) -> Duration {
        Duration::from_nanos(self.lend().plane.debt_ns())
    }

    /// Returns the scheduling metrics as they are now.
    pub(crate) fn scheduling(&self) -> SchedulerMetrics {
        let shared = self.lend();
        let device = shared.plane.device();
        let told = shared.scheduled;
        let limit = shared.plane.rate_limit().unwrap_or(0);
        let allocates = shared.plane.options().scheduler.bandwidth;
        let read = if allocates { told.background_read_bandwidth } else { limit };
        let slots = shared.plane.job_slots();
        SchedulerMetrics {
            flush_slots: slots.flushes as u64,
            compaction_slots: slots.compactions as u64,
            background_read_bandwidth: read,
            background_write_bandwidth: limit,
            device_read_bandwidth: device.read_bytes_per_second,
            device_write_bandwidth: device.write_bytes_per_second,
            device_barrier_ns: device.barrier_ns,
            processors_others: shared.plane.processors().others,
            short_of_processor: shared.plane.is_short_of_processor(),
            debt_ns: shared.plane.debt_ns(),
            paused_jobs: shared.jobs.values().filter(|slot| slot.paused).count() as u64,
            ..told
        }
    }
}

impl Job {
    /// Returns the approximate bytes of the buffers that the job reads and writes through.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        match self {
            Job::Flush(_) => output::BUFFER_BYTES,
            Job::Compaction(job) => job.buffer_bytes(),
        }
    }

    /// Returns the class of the job's I/O.
    pub(crate) fn class(&self) -> IoClass {
        match self {
            Job::Flush(_) => IoClass::Flush,
            Job::Compaction(job) => job.plan.class,
        }
    }

    /// Returns the description of the job for the timeline.
    pub(crate) fn info(&self, job: JobId) -> JobInfo {
        match self {
            Job::Flush(flush) => JobInfo {
                job,
                column_family: flush.first(),
                class: IoClass::Flush,
                reason: None,
                level: 0,
                output_level: 0,
                input_bytes: flush.input_bytes(),
            },
            Job::Compaction(compaction) => {
                let plan = &compaction.plan;
                JobInfo {
                    job,
                    column_family: plan.cf,
                    class: plan.class,
                    reason: Some(plan.reason),
                    level: plan.inputs().map(|input| input.level).min().unwrap_or(0),
                    output_level: plan.output_level,
                    input_bytes: plan.rewrite_bytes(),
                }
            }
        }
    }
}

/// Returns what a step moved, and its CPU time.
pub(crate) fn moved(stepped: &Result<Step<Edits>>) -> Moved {
    match stepped {
        Ok(Step::More(moved) | Step::Done(moved, _)) => {
            Moved { read_bytes: moved.read, written_bytes: moved.written, cpu_ns: moved.cpu_ns }
        }
        Ok(Step::Away) | Err(_) => Moved::default(),
    }
}

/// Returns the CPU time of the calling thread in nanoseconds. In virtual time it is what the
/// simulation says, which may be 0.
pub(crate) fn cpu_time() -> u64 {
    if clock::is_virtual() {
        let cpu = clock::virtual_cpu_time().unwrap_or_default();
        return u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

pub(crate) fn stepped_event(job: JobId, moved: StepBytes) -> Event {
    Event::JobStepped {
        job,
        read_bytes: moved.read,
        written_bytes: moved.written,
        // What it computed says nothing about bytes that it has only read.
        cpu_ns: if moved.has_read_its_grant { 0 } else { moved.cpu_ns },
    }
}

/// Returns the event of a step that did not end the job.
pub(crate) fn part_event(job: JobId, part: &Step<Edits>) -> Event {
    match part {
        Step::More(moved) | Step::Done(moved, _) => stepped_event(job, *moved),
        Step::Away => Event::JobAway { job, away: true },
    }
}

pub(crate) fn finished(job: JobId, result: JobResult) -> Event {
    Event::JobFinished { job, result }
}

/// Returns the event that tells control the memtables of `family` as they are now.
pub(crate) fn memtables_event(family: &ColumnFamilyData) -> Event {
    let (sealed, sealed_bytes) = family.sealed_usage();
    Event::MemtablesChanged {
        cf: family.id(),
        sealed: u32::try_from(sealed).unwrap_or(u32::MAX),
        sealed_bytes,
        active_bytes: family.active_memtable().used_bytes() as u64,
        size_bytes: family.memtable_bytes_max() as u64,
    }
}
