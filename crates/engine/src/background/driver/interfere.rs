//! Test support: changes jobs between two of their steps, as control might have asked for at that
//! moment. A job can be moved to the front, discarded or told to end early.

use std::sync::Arc;

use sateen_control::{Adjustment, JobId, JobSlots, Limit, Overflow};

use crate::background::driver::Driver;
use crate::background::driver::Job;
use crate::timeline::{CompactionReason, EventKind};

/// A change to the jobs. The numbers choose among the jobs to which it can apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// Moves another job to the front of the queue.
    NextStep(u64),
    /// Discards a job.
    Discard(u64),
    /// Tells a compaction to end at the next point at which its result can be installed.
    FinishEarly(u64),
    /// Changes job slots, or the memtable size of a column family, to values that a tuner might
    /// choose.
    Adjust(u64),
}

/// Largest factor of a memtable size. At most half as many slots are set.
const TIMES_MAX: u64 = 8;

impl Driver {
    /// Applies `how`. Returns false if there is no job to which it can apply.
    pub(crate) fn interfere(self: &Arc<Self>, how: Interference) -> bool {
        let mut shared = self.lend();
        // A client that asked for a compaction waits for its end, and is not told of a second one.
        let may_go = |job: &Job| {
            let reason = job.info(JobId(0)).reason;
            !reason.is_some_and(CompactionReason::is_manual)
        };
        let chosen = |jobs: Vec<JobId>, number: u64| {
            let at = number.checked_rem(jobs.len() as u64)?;
            jobs.get(usize::try_from(at).ok()?).copied()
        };
        let now = self.env.now();
        match how {
            Interference::NextStep(number) => {
                let count = shared.runnable.len();
                if count > 1 {
                    let by = usize::try_from(number % count as u64).unwrap_or(0);
                    shared.runnable.rotate_left(by);
                }
                count > 1
            }
            Interference::Discard(number) => {
                let jobs =
                    shared.jobs.iter().filter(|(_, slot)| slot.job.as_deref().is_some_and(may_go));
                let Some(job) = chosen(jobs.map(|(id, _)| *id).collect(), number) else {
                    return false;
                };
                self.discard(&mut shared, now, job);
                true
            }
            Interference::FinishEarly(number) => {
                let jobs =
                    shared.jobs.iter().filter(|(_, slot)| !slot.is_flush && !slot.finish_early);
                let Some(job) = chosen(jobs.map(|(id, _)| *id).collect(), number) else {
                    return false;
                };
                self.env.metrics.timeline.told(now, EventKind::FinishEarly { job });
                if let Some(slot) = shared.jobs.get_mut(&job) {
                    slot.finish_early = true;
                }
                true
            }
            Interference::Adjust(number) => {
                let (what, times) = (number / TIMES_MAX, 1 + number % TIMES_MAX);
                let families = self.tree.families();
                let limit = if what.is_multiple_of(2) {
                    // Mostly few slots, so that jobs compete for them.
                    Limit::Slots(JobSlots::divided(usize::try_from(times / 2).unwrap_or(1)))
                } else {
                    let at = (what / 2) % families.len().max(1) as u64;
                    let at = usize::try_from(at).unwrap_or(0);
                    let Some(family) = families.values().nth(at) else { return false };
                    let bytes = family.options().memtable_bytes.saturating_mul(times);
                    Limit::Memtable { cf: family.id(), bytes }
                };
                let overflow = Some(Overflow::Memory);
                shared.plane.adjust(Adjustment { limit, overflow });
                self.poll_control(&mut shared);
                true
            }
        }
    }
}
