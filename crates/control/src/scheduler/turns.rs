//! Turns of deep jobs.
//!
//! A deep job moves [`TURN_BYTES`] times its urgency in a turn. The jobs of a turn go one after the
//! other, the oldest first: until a job ends, there are its inputs and its outputs, and side by
//! side all would end late. Longer jobs share the device, turn by turn. Each database has turns of
//! its own.
//!
//! What must stay true: a waiting job's turn comes, whatever jobs begin or come back meanwhile.
//! These therefore begin where deep work is by now, and not with the job that has moved the least.

use std::collections::BTreeMap;

use super::IoScheduler;
use super::running::{Lane, Running, RunningState};
use crate::arithmetic::scale;
use crate::types::{DatabaseId, JobId};

const TURN_BYTES: u64 = 64 << 20;
/// The least urgency, in thousandths. Work that a client has asked for may have none.
const URGENCY_MIN: u64 = 250;

/// Returns the turn of a deep job.
pub(super) fn turn(job: &Running) -> u64 {
    job.share / TURN_BYTES
}

/// Returns what `moved` bytes of a job count.
pub(super) fn share(job: &Running, moved: u64) -> u64 {
    scale(moved, 1000, job.urgency.max(URGENCY_MIN))
}

/// How far deep work is.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// The largest share of a deep job of each database since there was none.
    largest: BTreeMap<DatabaseId, u64>,
}

impl Turns {
    /// Returns the share of a job that begins beside the others in `jobs`. It gets no credit for
    /// what they moved before, and no more than a turn goes before it.
    pub(super) fn first_share(
        &self,
        database: DatabaseId,
        jobs: impl Iterator<Item = Running>,
    ) -> u64 {
        let own = jobs.filter(|job| job.database == database && job.lane == Lane::Deep);
        let least = own.filter(Running::is_worked_on);
        let largest = self.largest.get(&database).copied().unwrap_or(0);
        let next = |job: &Running| (turn(job) + 1).saturating_mul(TURN_BYTES);
        least.min_by_key(|job| job.share).map_or(0, |job| largest.clamp(job.share, next(&job)))
    }

    /// Notes what a job has moved.
    pub(super) fn moved(&mut self, job: &Running) {
        if job.lane == Lane::Deep {
            let largest = self.largest.entry(job.database).or_default();
            *largest = (*largest).max(job.share);
        }
    }

    /// Notes that a job of a database has ended; `jobs` are the others.
    pub(super) fn ended(&mut self, database: DatabaseId, jobs: &BTreeMap<JobId, Running>) {
        let is_own_deep = |job: &Running| job.database == database && job.lane == Lane::Deep;
        if !jobs.values().any(is_own_deep) {
            self.largest.remove(&database);
        }
    }
}

impl IoScheduler {
    /// Lets a job that was away, or without a slot, begin like a new one.
    pub(super) fn comes_back(&mut self, id: JobId) {
        let Some(mut job) = self.jobs.get(&id).copied() else { return };
        let others = self.jobs.iter().filter(|(other, _)| **other != id).map(|(_, job)| *job);
        let first = self.turns.first_share(job.database, others);
        if let RunningState::Waiting(place) = job.state {
            self.queue.remove(&self.key(id, &job, place));
        }
        job.share = job.share.max(first);
        if let RunningState::Waiting(place) = job.state {
            self.queue.insert(self.key(id, &job, place));
        }
        self.jobs.insert(id, job);
    }
}
