//! Who is paused, for whom, and who goes on.
//!
//! What must stay true: flushes and compactions out of level 0 are never paused; a job that has no
//! slot goes on as soon as one is free.

use std::cmp::Reverse;

use super::running::{Running, RunningState};
use super::{IoScheduler, Lane};
use crate::arithmetic::mix;
use crate::event::{Note, PauseReason};
use crate::options::Preemption;
use crate::types::JobId;

impl IoScheduler {
    /// A job out of level 0 needs a slot: pauses the deep job whose pause matters least.
    pub(crate) fn preempt(&mut self, by: JobId) {
        let victim = match self.options.preemption {
            Preemption::Off => None,
            Preemption::LeastLoss => self.least_loss(),
            Preemption::Random => {
                let drawn = |id: &JobId| mix(id.0 ^ by.0.rotate_left(32));
                self.with_slots().map(|(id, _)| id).min_by_key(drawn)
            }
        };
        if let Some(victim) = victim {
            self.pause(victim, Some(PauseReason::Preempted { by }));
        }
    }

    /// There are fewer slots than jobs: the deep job whose pause matters least has none from its
    /// next step on. Says whether there was one.
    pub(crate) fn take_slot(&mut self) -> bool {
        let victim = self.least_loss();
        if let Some(victim) = victim {
            self.pause(victim, Some(PauseReason::Slots));
        }
        victim.is_some()
    }

    /// Deep jobs that have a slot, those included that are paused for a peak.
    fn with_slots(&self) -> impl Iterator<Item = (JobId, &Running)> {
        let jobs = self.jobs.iter().map(|(id, job)| (*id, job));
        jobs.filter(|(_, job)| job.lane == Lane::Deep && !job.is_preempted())
    }

    /// The least urgent of them; of those the one that has done least.
    fn least_loss(&self) -> Option<JobId> {
        let least = self.with_slots().min_by_key(|(id, job)| (job.urgency, job.moved(), *id));
        least.map(|(id, _)| id)
    }

    /// Whether some job waits for a slot to go on.
    pub(crate) fn has_preempted(&self) -> bool {
        self.jobs.values().any(Running::is_preempted)
    }

    /// A slot is free: the most urgent job that has none goes on. Says whether there was one.
    pub(crate) fn resume(&mut self) -> bool {
        let paused = self.jobs.iter().filter(|(_, job)| job.is_preempted());
        let next = paused.max_by_key(|(id, job)| (job.urgency, Reverse(**id)));
        let Some(next) = next.map(|(id, _)| *id) else { return false };
        self.pause(next, None);
        true
    }

    /// Something more important waits for the end of this job: it is served as if it were that.
    pub(crate) fn raise(&mut self, job: JobId) {
        let Some(mut running) = self.jobs.get(&job).copied() else { return };
        if running.lane != Lane::Deep {
            return;
        }
        if let RunningState::Waiting(place) = running.state {
            self.queue.remove(&self.key(job, &running, place));
        }
        if running.paused.is_some() {
            self.notes.push(Note::Resumed { job });
        }
        running = Running { lane: Lane::Level0, paused: None, ..running };
        if let RunningState::Waiting(place) = running.state {
            self.queue.insert(self.key(job, &running, place));
        }
        self.jobs.insert(job, running);
    }

    /// When clients leave nothing, all deep jobs are paused; that is told. Not while their debt
    /// earns them something in spite of clients (`earns`).
    pub(super) fn note_peaks(&mut self, earns: bool) {
        let nothing_left = self.allocation.read.min(self.allocation.write) == 0;
        self.pause_for_peak(nothing_left && !earns && self.credit <= 0);
    }

    /// Pauses all deep jobs that are not preempted, or lets them go on.
    pub(super) fn pause_for_peak(&mut self, pause: bool) {
        let changed = self.with_slots().filter(|(_, job)| job.paused.is_some() != pause);
        let changed: Vec<JobId> = changed.map(|(id, _)| id).collect();
        for job in changed {
            self.pause(job, pause.then_some(PauseReason::Peak));
        }
    }

    fn pause(&mut self, job: JobId, reason: Option<PauseReason>) {
        let Some(running) = self.jobs.get_mut(&job) else { return };
        running.paused = reason;
        self.notes.push(match reason {
            Some(reason) => Note::Paused { job, reason },
            None => Note::Resumed { job },
        });
    }

    pub(super) fn is_paused(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|job| job.paused.is_some())
    }
}
