//! Jobs whose work another process does, and requests that do not wait for them any more.

use super::ControlPlane;
use crate::column_family::ColumnFamily;
use crate::event::Action;
use crate::types::{JobId, RequestId};

impl ControlPlane {
    /// Notes that another process does the work of a job, or that the job is back.
    pub(super) fn set_away(&mut self, job: JobId, away: bool) {
        self.scheduler.set_away(job, away);
        self.discard_cancelled();
    }

    /// Cancels a request of a client.
    pub(super) fn cancel_request(&mut self, request: RequestId) {
        for family in self.families.values_mut() {
            self.actions.extend(family.cancel_request(request));
        }
        self.discard_cancelled();
    }

    /// Discards the jobs of cancelled requests that are away: they may never come back.
    fn discard_cancelled(&mut self) {
        for id in self.families.values().filter_map(ColumnFamily::cancelled_job) {
            let away = self.scheduler.is_away(id);
            let job = self.jobs.get_mut(&id).filter(|job| away && !job.discarded);
            if let Some(job) = job {
                job.discarded = true;
                self.actions.push_back(Action::Discard { job: id });
            }
        }
    }
}
