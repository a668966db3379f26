//! Turns of deep jobs.
//!
//! A deep job moves [`TURN_BYTES`] times its urgency in a turn. The jobs of a turn go one after the
//! other, the oldest first: until a job ends, there are its inputs and its outputs, and side by
//! side all would end late. Longer jobs share the device, turn by turn.
//!
//! What must stay true: a waiting job's turn comes, whatever jobs begin meanwhile. A new job
//! therefore begins where deep work is by now, and not with the job that has moved the least.

use std::collections::BTreeMap;

use super::running::{Lane, Running};
use crate::types::JobId;

const TURN_BYTES: u64 = 64 << 20;

/// Returns the turn of a deep job.
pub(super) fn turn(job: &Running) -> u64 {
    job.share / TURN_BYTES
}

/// How far deep work is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    /// The largest share of a deep job since there was none.
    largest: u64,
}

impl Turns {
    /// Returns the share of a new job. It gets no credit for what others moved before, and no more
    /// than a turn goes before it.
    pub(super) fn first_share(self, jobs: &BTreeMap<JobId, Running>) -> u64 {
        let least = jobs.values().filter(|job| job.lane == Lane::Deep).min_by_key(|job| job.share);
        let next = |job| (turn(job) + 1).saturating_mul(TURN_BYTES);
        least.map_or(0, |job| self.largest.clamp(job.share, next(job)))
    }

    /// Notes what a job has moved.
    pub(super) fn moved(&mut self, job: &Running) {
        if job.lane == Lane::Deep {
            self.largest = self.largest.max(job.share);
        }
    }

    /// Notes that a job has ended; `jobs` are the others.
    pub(super) fn ended(&mut self, jobs: &BTreeMap<JobId, Running>) {
        if !jobs.values().any(|job| job.lane == Lane::Deep) {
            *self = Turns::default();
        }
    }
}
