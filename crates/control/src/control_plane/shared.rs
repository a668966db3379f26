//! One scheduler for all databases on a device. Each database keeps a control plane of its own,
//! which picks its jobs and admits its writers; the device's bandwidth, the order of grants and the
//! slots of compactions are decided for all of them together.
//!
//! 1. [`SharedScheduler::join`] returns the control plane of a further database.
//! 2. The driver lends the scheduler to a control plane before it calls it, and takes it back after
//!    that ([`SharedScheduler::exchange`], twice).
//! 3. It then polls each database of [`SharedScheduler::take_restless`].
//! 4. It adds up what the databases do, and reports it once ([`SharedScheduler::sample`]).

use std::collections::BTreeSet;

use super::ControlPlane;
use crate::event::Sample;
use crate::options::{ControlOptions, DeviceProfile};
use crate::scheduler::{Claim, IoScheduler, is_background, thousandths};
use crate::types::{DatabaseId, Instant, IoClass};

/// The I/O scheduler of a device, which the control planes of its databases borrow in turn.
#[derive(Debug)]
pub struct SharedScheduler {
    scheduler: Box<IoScheduler>,
    next: DatabaseId,
}

impl SharedScheduler {
    /// Returns a scheduler without databases. Its options are those of the first one.
    #[must_use]
    pub fn new(options: &ControlOptions) -> SharedScheduler {
        let mut scheduler = Box::new(IoScheduler::new(options));
        scheduler.leave(DatabaseId::default());
        SharedScheduler { scheduler, next: DatabaseId::default() }
    }

    /// Adds a database, and returns its control plane.
    pub fn join(&mut self, options: ControlOptions) -> ControlPlane {
        let database = self.next;
        self.next.0 += 1;
        self.scheduler.join(database);
        let mut plane = ControlPlane::new(options);
        (plane.database, plane.is_sampled_apart) = (database, true);
        self.exchange(&mut plane);
        plane.set_share();
        self.exchange(&mut plane);
        plane
    }

    /// Removes a database and its jobs.
    pub fn leave(&mut self, database: DatabaseId) {
        self.scheduler.leave(database);
    }

    /// Lends the scheduler to `plane`, or takes it back.
    pub fn exchange(&mut self, plane: &mut ControlPlane) {
        std::mem::swap(&mut self.scheduler, &mut plane.scheduler);
        plane.scheduler.asks(plane.database);
    }

    /// Takes in what all databases together did since the last call. Each control plane also gets
    /// a sample of its own database.
    pub fn sample(&mut self, now: Instant, sample: &Sample) {
        self.scheduler.sample(now, sample);
    }

    /// Removes and returns the databases whose control planes must be polled.
    pub fn take_restless(&mut self) -> BTreeSet<DatabaseId> {
        self.scheduler.take_restless()
    }

    /// Returns the estimate of the device.
    #[must_use]
    pub fn device(&self) -> DeviceProfile {
        self.scheduler.device()
    }

    /// Returns how long deep compactions of all databases would take to catch up, in nanoseconds.
    #[must_use]
    pub fn debt_ns(&self) -> u64 {
        self.scheduler.debt_ns()
    }
}

impl ControlPlane {
    /// Returns what the database would start in a slot, if others may want it.
    pub(super) fn claim(&mut self, now: Instant, level0_only: bool) -> Option<Claim> {
        if !self.scheduler.is_shared() {
            return None;
        }
        let (score, cf) = self.most_urgent(now, level0_only)?;
        let level0 = level0_only || self.most_urgent(now, true).is_some();
        let stall_ns = self.outlook([cf]).and_then(|outlook| outlook.time_to_stall_ns);
        let score = thousandths(score);
        Some(Claim { level0, stall_ns: stall_ns.unwrap_or(u64::MAX), score })
    }

    /// Tells the scheduler the share of the database.
    pub(super) fn set_share(&mut self) {
        let ControlOptions { weight, ceiling, .. } = self.options;
        self.scheduler.set_share(weight, ceiling);
    }
}

impl Sample {
    /// Adds what another database did in the same period.
    pub fn add(&mut self, other: &Sample) {
        for (class, more) in self.classes.iter_mut().zip(&other.classes) {
            class.read_bytes += more.read_bytes;
            class.reads += more.reads;
            class.read_ns += more.read_ns;
            class.write_bytes += more.write_bytes;
            class.writes += more.writes;
            class.write_ns += more.write_ns;
            class.syncs += more.syncs;
            class.sync_ns += more.sync_ns;
        }
        self.user_bytes += other.user_bytes;
        self.reads.gets += other.reads.gets;
        self.reads.runs += other.reads.runs;
        self.reads.scans += other.reads.scans;
        self.reads.block_hits += other.reads.block_hits;
        self.reads.block_misses += other.reads.block_misses;
        self.dead_bytes += other.dead_bytes;
        self.memory_is_awaited |= other.memory_is_awaited;
    }

    /// Returns true if the database had a small part in what all of `total` did: at most a quarter
    /// of what clients read and wrote, and nothing in the background. Its next sample may wait.
    #[must_use]
    pub fn is_small_part_of(&self, total: &Sample) -> bool {
        let moved = |sample: &Sample, background: bool| -> u64 {
            let classes = IoClass::ALL.into_iter().zip(&sample.classes);
            let classes = classes.filter(|(class, _)| is_background(*class) == background);
            classes.map(|(_, counts)| counts.read_bytes + counts.write_bytes).sum()
        };
        let clients = |sample: &Sample| moved(sample, false) + sample.user_bytes;
        moved(self, true) == 0 && clients(self) <= clients(total) / 4
    }
}
