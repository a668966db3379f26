//! Starts flushes: one for each column family, or one for all of them together.

use super::{ControlPlane, Job};
use crate::arithmetic::scale;
use crate::column_family::ColumnFamily;
use crate::event::{Action, FlushMember};
use crate::scheduler::Lane;
use crate::types::{Instant, IoClass, JobId};

impl ControlPlane {
    pub(super) fn start_flushes(&mut self, now: Instant) {
        if self.options.atomic_flush {
            self.start_flush_together(now);
            return;
        }
        let mut running = self.scheduler.running(Lane::Flush);
        while running < self.slots.flushes {
            // Families whose writers wait go first, then those with the most bytes, which free the
            // most memory.
            let next = self
                .families
                .iter()
                .filter_map(|(cf, family)| Some((family.wants_flush(now)?, *cf)))
                .max_by_key(|(urgency, cf)| (*urgency, std::cmp::Reverse(*cf)));
            let Some((_, cf)) = next else { return };
            let job = self.scheduler.next_job();
            let Some(family) = self.families.get_mut(&cf) else { return };
            let (memtables, stripes) = family.start_flush(job);
            self.add_flush(job, Job::new(cf, None, false));
            self.actions.push_back(Action::StartFlush { job, cf, memtables, stripes });
            running += 1;
        }
    }

    /// Starts one flush of all column families if one of them wants a flush. Only one runs at a
    /// time, so that groups are installed in the order of their sequence numbers. After a failure
    /// the whole group waits for its retry.
    fn start_flush_together(&mut self, now: Instant) {
        let families = || self.families.values();
        let wanted = families().any(|family| family.wants_flush(now).is_some());
        let waits = families().any(|family| family.flush_waits(now));
        if !wanted || waits || self.scheduler.running(Lane::Flush) > 0 {
            return;
        }
        let job = self.scheduler.next_job();
        let members = self.families.iter_mut().map(|(cf, family)| {
            let (memtables, stripes) = family.start_flush(job);
            FlushMember { cf: *cf, memtables, stripes }
        });
        let members: Vec<_> = members.collect();
        let mut families = members.iter().map(|member| member.cf);
        let Some(first) = families.next() else { return };
        let others = families.collect();
        self.add_flush(job, Job { others, ..Job::new(first, None, false) });
        self.actions.push_back(Action::StartFlushTogether { job, members });
    }

    fn add_flush(&mut self, id: JobId, job: Job) {
        self.jobs.insert(id, job);
        self.scheduler.add(id, IoClass::Flush, 0.0);
    }

    /// Ends the flush of a job. After a failure its column families wait until `retry_at`.
    pub(super) fn flush_finished(&mut self, job: &Job, retry_at: Option<Instant>) {
        for cf in job.families() {
            if let Some(family) = self.families.get_mut(&cf) {
                family.flush_finished(retry_at);
            }
        }
    }

    /// Returns the bytes of the memtables that the flush stores.
    pub(super) fn flush_bytes(&self, job: &Job) -> u64 {
        let families = job.families().filter_map(|cf| self.families.get(&cf));
        families.map(ColumnFamily::flush_bytes).sum()
    }

    /// Returns the bytes that the running flush has moved for `family`; of a flush of several, its
    /// part.
    pub(super) fn flush_moved(&self, family: &ColumnFamily) -> Option<u64> {
        let id = family.flush_job()?;
        let (moved, own) = (self.scheduler.moved(id), family.flush_bytes());
        let all = self.jobs.get(&id).map_or(own, |job| self.flush_bytes(job));
        Some(if own < all { scale(moved, own, all) } else { moved })
    }
}
