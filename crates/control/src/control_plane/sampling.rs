//! What a sample of the database tells.

use super::{ControlPlane, DeadTables};
use crate::event::Sample;
use crate::scheduler::Lane;
use crate::types::Instant;

impl ControlPlane {
    /// Takes in a sample. What follows from it is decided when control is polled.
    pub(super) fn sampled(&mut self, now: Instant, sample: &Sample) {
        let over_ns = if self.is_sampled_apart {
            now.0.saturating_sub(self.sampled_at.0).max(1)
        } else {
            self.scheduler.sample(now, sample)
        };
        self.sampled_at = now;
        let of_clients = sample.user_bytes + sample.reads.gets + sample.reads.scans;
        self.scheduler.set_served(now, of_clients > 0);
        self.memory_is_awaited = sample.memory_is_awaited;
        self.note_waits();
        self.dead = DeadTables::of(sample.dead_bytes, &self.families);
        let running = [Lane::Flush, Lane::Level0].map(|lane| self.scheduler.works(lane));
        let urgent = self.urgent_deep_work();
        self.drains.observe(now, sample, running, urgent);
        self.families.values_mut().for_each(|family| family.sampled(over_ns));
        if self.reads.observe(sample, over_ns) {
            self.learn_reads();
        }
        self.has_sample = true;
    }
}
