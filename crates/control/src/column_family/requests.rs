//! Clients' requests for compactions, which are served one after the other.
//!
//! 1. A request is queued. Its state is a [`ManualCompaction`].
//! 2. [`ColumnFamily::pick`] asks the first one for its next step. [`ColumnFamily::manual_started`]
//!    notes its job.
//! 3. [`ColumnFamily::manual_finished`] moves it on. Level 0 may have a turn before the next step.
//! 4. A failure, a cancellation or a drop of the column family ends a request as incomplete.

use super::ColumnFamily;
use crate::compaction::{ChosenFiles, ManualCompaction};
use crate::event::Action;
use crate::options::BottommostLevelCompaction;
use crate::plan::CompactionPlan;
use crate::types::{JobId, RequestId, UserKey};

/// A client's request, and the job that runs for it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) compaction: ManualCompaction,
    pub(super) job: Option<JobId>,
    pub(super) cancelled: bool,
    /// Whether it waits for other compactions. None may start before it goes on.
    pub(super) blocked: bool,
    /// Whether it has just had its turn.
    pub(super) yields: bool,
}

impl ColumnFamily {
    /// Queues a compaction of a key range.
    pub(crate) fn request_compaction(
        &mut self,
        request: RequestId,
        begin: Option<UserKey>,
        end: Option<UserKey>,
        bottommost: BottommostLevelCompaction,
    ) {
        let compaction = ManualCompaction::new(request, begin, end, bottommost, &self.version);
        self.queue(compaction);
    }

    /// Queues a drop of the tables in a key range.
    pub(crate) fn request_drop(
        &mut self,
        request: RequestId,
        begin: Option<UserKey>,
        end: Option<UserKey>,
    ) {
        self.queue(ManualCompaction::dropping(request, begin, end, &self.version));
    }

    /// Queues a compaction of chosen files.
    pub(crate) fn request_files(&mut self, request: RequestId, files: ChosenFiles) {
        self.queue(ManualCompaction::of_files(request, files, &self.version));
    }

    fn queue(&mut self, compaction: ManualCompaction) {
        self.requests.push_back(Request {
            compaction,
            job: None,
            cancelled: false,
            blocked: false,
            yields: false,
        });
    }

    /// Cancels a request. Returns the action that ends it, unless its job still runs.
    pub(crate) fn cancel_request(&mut self, request: RequestId) -> Option<Action> {
        let at = self.requests.iter().position(|r| r.compaction.request == request)?;
        let found = self.requests.get_mut(at)?;
        found.cancelled = true;
        if found.job.is_some() {
            return None;
        }
        self.requests.remove(at);
        self.claims_changed();
        Some(Action::ManualDone { request, complete: false })
    }

    /// Returns the job of a cancelled request.
    pub(crate) fn cancelled_job(&self) -> Option<JobId> {
        self.requests.iter().filter(|request| request.cancelled).find_map(|request| request.job)
    }

    /// Notes the job of the first request.
    pub(crate) fn manual_started(&mut self, job: JobId) {
        if let Some(request) = self.requests.front_mut() {
            request.job = Some(job);
        }
    }

    /// Ends the job of the first request. Returns an action if the request ends with it.
    pub(crate) fn manual_finished(
        &mut self,
        job: JobId,
        plan: &CompactionPlan,
        done: bool,
    ) -> Option<Action> {
        let request = self.requests.front_mut().filter(|request| request.job == Some(job))?;
        request.job = None;
        request.yields = true;
        if done && !request.cancelled {
            request.compaction.done(plan);
            return None;
        }
        let request = request.compaction.request;
        self.requests.pop_front();
        Some(Action::ManualDone { request, complete: false })
    }

    /// Returns the actions that end all requests, because the column family was dropped.
    pub(crate) fn abandon(self) -> Vec<Action> {
        self.requests
            .iter()
            .map(|request| Action::ManualDone {
                request: request.compaction.request,
                complete: false,
            })
            .collect()
    }
}
