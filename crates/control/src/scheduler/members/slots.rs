//! The slots of compactions, which the databases of a device share.
//!
//! 1. A database that has something to start and finds a slot asks for it
//!    ([`IoScheduler::may_take_slot`]). The one with the best [`Claim`] gets it.
//! 2. [`IoScheduler::call_next`] calls the next one when a slot becomes free.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{IoScheduler, Lane, Running, WEIGHT};
use crate::arithmetic::scale;
use crate::types::DatabaseId;

/// What a database would start if it had a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Whether it is a compaction out of level 0.
    pub(crate) level0: bool,
    /// When its writers will be held back; `u64::MAX` if that is not foreseen.
    pub(crate) stall_ns: u64,
    /// The size of the level relative to its target, in thousandths.
    pub(crate) score: u64,
}

impl IoScheduler {
    /// Returns the number of compactions that run, in all databases that are not paused. With
    /// `level0` only those out of level 0.
    pub(crate) fn compactions_of_all(&self, level0: bool) -> usize {
        let counts = |job: &&Running| {
            let lane = job.own_lane == Lane::Level0 || !level0 && job.own_lane == Lane::Deep;
            lane && !job.is_preempted()
        };
        self.unpaused_jobs().filter(counts).count()
    }

    /// Sets the slots of the database that asks, and returns those of the device: as many as the
    /// database with the most may use.
    pub(crate) fn slots_of_all(&mut self, own: usize) -> usize {
        self.members.own().slots = own;
        self.device_slots()
    }

    fn device_slots(&self) -> usize {
        self.members.all.values().map(|member| member.slots).max().unwrap_or(1)
    }

    /// Returns the order of claims: level 0 first, then those with the fewest compactions for their
    /// weight, then those whose writers will be held back first.
    fn rank(&self, database: DatabaseId, claim: &Claim) -> impl Ord + use<> {
        let jobs = self.jobs.values().filter(|job| job.database == database);
        let held = jobs.filter(|job| job.own_lane != Lane::Flush && !job.is_preempted()).count();
        let weight = self.members.of(database).map_or(WEIGHT, |member| member.weight);
        let used = scale(held as u64, 1000 * WEIGHT, weight);
        (!claim.level0, used, claim.stall_ns, Reverse(claim.score), database)
    }

    /// Returns the database with the best claim. With `over`, it is one that may take the slot of a
    /// deep job.
    fn best_claim(&self, over: bool) -> Option<DatabaseId> {
        let has_level0 = |database: DatabaseId| {
            let own = self.jobs.values().filter(|job| job.database == database);
            own.filter(|job| job.own_lane == Lane::Level0).count() > 0
        };
        let claims = self.members.all.iter().filter_map(|(id, m)| Some((*id, m.claim.as_ref()?)));
        let claims = claims.filter(|(id, claim)| !over || claim.level0 && !has_level0(*id));
        claims.min_by_key(|(id, claim)| self.rank(*id, claim)).map(|(id, _)| id)
    }

    /// Returns true if the database that asks may take a free slot for `claim`. If another one has
    /// a better claim, that one is called.
    pub(crate) fn may_take_slot(&mut self, claim: Claim, over: bool) -> bool {
        if !self.members.is_shared() {
            return true;
        }
        let current = self.members.current;
        self.members.own().claim = Some(claim);
        let best = self.best_claim(over).filter(|best| *best != current);
        if let Some(best) = best {
            self.call(best);
        }
        best.is_none()
    }

    /// Sets or withdraws the claim of the database that asks, and calls another one if a slot is
    /// free.
    pub(crate) fn set_claim(&mut self, claim: Option<Claim>) {
        self.members.own().claim = claim;
        self.call_next();
    }

    /// Returns true, once, if the database that asks was called.
    pub(crate) fn take_call(&mut self) -> bool {
        let current = self.members.current;
        self.members.called.remove(&current)
    }

    fn call(&mut self, database: DatabaseId) {
        self.members.called.insert(database);
        self.members.restless.insert(database);
    }

    /// Calls the databases that can use a free slot: those with a paused job, and the one with the
    /// best claim.
    pub(crate) fn call_next(&mut self) {
        if !self.members.is_shared() || self.compactions_of_all(false) >= self.device_slots() {
            return;
        }
        let current = self.members.current;
        let paused = self.jobs.values().filter(|job| job.is_preempted()).map(|job| job.database);
        let called: BTreeSet<_> = paused.chain(self.best_claim(false)).collect();
        called.into_iter().filter(|id| *id != current).for_each(|id| self.call(id));
    }
}
