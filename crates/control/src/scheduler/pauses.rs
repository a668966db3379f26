//! Pauses of deep jobs: for a compaction out of level 0, for lack of slots, or at a peak of
//! clients.
//!
//! 1. [`IoScheduler::preempt`] pauses one for a compaction out of level 0,
//!    [`IoScheduler::take_slot`] because there are fewer slots, and [`IoScheduler::note_peaks`] all
//!    of them if clients leave no bandwidth, or if the end of their peak is forecast.
//! 2. [`IoScheduler::resume`] continues one as soon as a slot is free.
//! 3. [`IoScheduler::raise`] serves a job that level 0 waits for like one of level 0.
//!
//! What must stay true: flushes and compactions out of level 0 are never paused. A job without a
//! slot continues as soon as one is free.

use std::cmp::Reverse;

use super::running::{Running, RunningState};
use super::{IoScheduler, Lane};
use crate::arithmetic::mix;
use crate::event::{Note, PauseReason};
use crate::options::Preemption;
use crate::types::JobId;

impl IoScheduler {
    /// Returns how deep jobs give way. All databases of the device have one choice.
    pub(crate) fn preemption(&self) -> Preemption {
        self.options.preemption
    }

    /// Returns true if a job that gives way for good loses its work.
    pub(crate) fn preempt_discard(&self) -> bool {
        self.options.preempt_discard
    }

    /// Pauses a deep job because the job `by`, out of level 0, needs its slot. With `own` it is one
    /// of the database that asks, which has more jobs than slots. A job of a paused database has no
    /// slot to give.
    pub(crate) fn preempt(&mut self, by: JobId, own: bool) {
        let current = self.members.current;
        let may = |job: &Running| match own {
            true => job.database == current,
            false => self.members.works(job.database),
        };
        let victim = match self.options.preemption {
            Preemption::Off => None,
            Preemption::LeastLoss => self.least_loss_of(may),
            Preemption::Random => {
                let drawn = |id: &JobId| mix(id.0 ^ by.0.rotate_left(32));
                let jobs = self.with_slots().filter(|(_, job)| may(job));
                jobs.map(|(id, _)| id).min_by_key(drawn)
            }
        };
        if let Some(victim) = victim {
            self.pause(victim, Some(PauseReason::Preempted { by }));
        }
    }

    /// Takes the slot of the deep job whose pause costs least, because there are fewer slots than
    /// jobs. Returns false if no deep job has a slot.
    pub(crate) fn take_slot(&mut self) -> bool {
        let current = self.members.current;
        let victim = self.least_loss_of(|job| job.database == current);
        if let Some(victim) = victim {
            self.pause(victim, Some(PauseReason::Slots));
        }
        victim.is_some()
    }

    /// Returns the deep jobs that have a slot, also those that are paused for a peak.
    fn with_slots(&self) -> impl Iterator<Item = (JobId, &Running)> {
        let jobs = self.jobs.iter().map(|(id, job)| (*id, job));
        jobs.filter(|(_, job)| job.lane == Lane::Deep && !job.is_preempted())
    }

    /// Returns the least urgent of these jobs that `may` be paused; among equals the one that has
    /// moved least.
    fn least_loss_of(&self, may: impl Fn(&Running) -> bool) -> Option<JobId> {
        let jobs = self.with_slots().filter(|(_, job)| may(job));
        jobs.min_by_key(|(id, job)| (job.urgency, job.moved(), *id)).map(|(id, _)| id)
    }

    /// Returns true if a job of the database is paused because it has no slot.
    pub(crate) fn has_preempted(&self) -> bool {
        let own = |job: &&Running| job.database == self.members.current;
        self.jobs.values().filter(own).any(Running::is_preempted)
    }

    /// Continues the database's most urgent job without a slot. Returns false if there is none.
    pub(crate) fn resume(&mut self) -> bool {
        let own = |job: &Running| job.database == self.members.current;
        let paused = self.jobs.iter().filter(|(_, job)| own(job) && job.is_preempted());
        let next = paused.max_by_key(|(id, job)| (job.urgency, Reverse(**id)));
        let Some(next) = next.map(|(id, _)| *id) else { return false };
        self.begins(self.members.current);
        self.comes_back(next);
        self.pause(next, None);
        true
    }

    /// Serves a deep job like one of level 0 from now on, because level 0 waits for its end.
    pub(crate) fn raise(&mut self, job: JobId) {
        let Some(mut running) = self.jobs.get(&job).copied() else { return };
        if running.lane != Lane::Deep {
            return;
        }
        if running.is_preempted() {
            self.begins(running.database);
        }
        if let RunningState::Waiting(place) = running.state {
            self.queue.remove(&self.key(job, &running, place));
        }
        if running.paused.is_some() {
            self.members.note(running.database, Note::Resumed { job });
        }
        running = Running { lane: Lane::Level0, paused: None, ..running };
        if let RunningState::Waiting(place) = running.state {
            self.queue.insert(self.key(job, &running, place));
        }
        self.jobs.insert(job, running);
    }

    /// Pauses all deep jobs while clients leave no bandwidth, or while they are held until a peak
    /// ends, unless their debt earns credit (`earns`).
    pub(super) fn note_peaks(&mut self, earns: bool) {
        let nothing_left = self.allocation.read.min(self.allocation.write) == 0;
        let peak = nothing_left || self.allocation.held;
        self.pause_for_peak(peak && !earns && self.credit <= 0);
    }

    /// Pauses all deep jobs that have a slot, or lets them continue.
    pub(super) fn pause_for_peak(&mut self, pause: bool) {
        let changed = self.with_slots().filter(|(_, job)| job.paused.is_some() != pause);
        let changed: Vec<JobId> = changed.map(|(id, _)| id).collect();
        for job in changed {
            self.pause(job, pause.then_some(PauseReason::Peak));
        }
    }

    /// Sets or clears a job's pause, and notes it for observers.
    fn pause(&mut self, job: JobId, reason: Option<PauseReason>) {
        let Some(running) = self.jobs.get_mut(&job) else { return };
        running.paused = reason;
        let database = running.database;
        let note = match reason {
            Some(reason) => Note::Paused { job, reason },
            None => Note::Resumed { job },
        };
        self.members.note(database, note);
    }

    /// Returns true if a job gets no grant: it or its database is paused, or over its ceiling.
    pub(super) fn is_held(&self, job: JobId) -> bool {
        let held = |job: &Running| job.paused.is_some() || !self.members.may_move(job.database);
        self.jobs.get(&job).is_some_and(held)
    }
}
