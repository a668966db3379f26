//! What a test does to jobs between two of their steps: another one is next, one is given up or
//! told to end early, as control might have asked for at that moment. Nothing else calls this.

use std::sync::Arc;

use sateen_control::{Adjustment, JobId, JobSlots, Limit, Overflow};
use sateen_store::base::sync::lock;

use crate::background::driver::Driver;
use crate::background::driver::Job;
use crate::timeline::{CompactionReason, EventKind};

/// What is done to the jobs. The numbers choose among those it can be done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// Another job has the next step.
    NextStep(u64),
    /// A job is given up.
    Discard(u64),
    /// A compaction installs what it has as soon as that can stand by itself.
    FinishEarly(u64),
    /// Job slots, or the memtables of a column family, become as many or as large as a tuner might
    /// have made them.
    Adjust(u64),
}

/// Memtables are at most so many times as large as configured, and there are half as many slots.
const TIMES_MAX: u64 = 8;

impl Driver {
    pub(crate) fn interfere(self: &Arc<Self>, how: Interference) -> bool {
        let mut shared = lock(&self.shared);
        // Who asked for a compaction waits for its end, and is not told of another.
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
                    // Few mostly, so that jobs are in each other's way.
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
