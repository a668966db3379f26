//! Jobs whose work another process does. They are in their slots, without a grant.

use sateen_control::{Event, Instant, JobId};
use sateen_store::base::sync::lock;

use super::{Driver, DriverState, Job};

impl Job {
    /// Returns true if the job has something to do here.
    fn is_answered(&self) -> bool {
        match self {
            Job::Flush(_) => true,
            Job::Compaction(job) => job.is_answered(),
        }
    }
}

impl DriverState {
    /// Tells control which jobs are back, so that they get grants.
    pub(super) fn take_back(&mut self, now: Instant) {
        let away = self.jobs.iter_mut().filter(|(_, slot)| slot.away);
        let back = away.filter(|(_, slot)| slot.job.as_ref().is_some_and(|job| job.is_answered()));
        let back: Vec<JobId> = back
            .map(|(id, slot)| {
                slot.away = false;
                *id
            })
            .collect();
        for job in back {
            self.plane.handle(now, Event::JobAway { job, away: false });
        }
    }
}

impl Driver {
    /// Returns true if another process does the work of a job.
    pub(crate) fn has_away(&self) -> bool {
        lock(&self.shared).jobs.values().any(|slot| slot.away)
    }

    /// Tells the compaction service, if there is one, that no job is waited for any more.
    pub(crate) fn tell_service_of_end(&self) {
        let options = self.env.options.load();
        if let Some(service) = &options.compaction_service {
            service.service().closing(&self.env.directory);
        }
    }

    /// Discards the jobs whose work another process does. A job whose first step runs is discarded
    /// after it, because background work was ended before the call.
    pub(crate) fn discard_away(&self) {
        let mut shared = self.lend();
        let away = shared.jobs.iter().filter(|(_, slot)| slot.away).map(|(id, _)| *id);
        for id in away.collect::<Vec<_>>() {
            self.discard(&mut shared, self.env.now(), id);
        }
        let abandoned = std::mem::take(&mut shared.abandoned);
        drop(shared);
        abandoned.into_iter().for_each(|mut job| job.abandon());
        self.place.call();
    }
}
