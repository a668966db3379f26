//! How much is dead: what the pace is computed from, what counts as space with a limit, and what
//! metrics show.
//!
//! What must stay true: [`Reclaimer::reclaimable_bytes`] has no bytes that something keeps. These
//! are pinned tables, those that a lease needs, files with another name, and all files during a
//! hold.

use super::{ReclaimState, Reclaimer};
use crate::base::sync::atomic::Ordering;
use crate::base::sync::lock;

impl Reclaimer {
    /// Returns the bytes of tables that no version names and that are not freed yet.
    pub fn obsolete_bytes(&self) -> u64 {
        lock(&self.state).obsolete_bytes()
    }

    /// Returns the bytes of all tables that are not freed yet, and of those that no version names.
    pub fn used_bytes(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.accounts.used_bytes() + state.unlink_bytes(), state.obsolete_bytes())
    }

    /// Returns the cost of everything that can be freed now or soon: a small hole costs as much as
    /// a larger one.
    pub fn due_cost(&self) -> u64 {
        let state = lock(&self.state);
        let unlink = state.unlink.iter().map(|dead| dead.rest.cost()).sum::<u64>();
        unlink + state.accounts.due_cost()
    }

    /// Returns the bytes that can be freed now or soon, as the last step left them. It takes no
    /// lock.
    pub fn reclaimable_bytes(&self) -> u64 {
        self.reclaimable.load(Ordering::Relaxed)
    }

    /// Notes the bytes that can be freed now or soon; 0 during a hold and after a failure.
    pub(super) fn note_reclaimable(&self, state: &ReclaimState) {
        let kept = state.holds > 0 || self.failing.load(Ordering::Relaxed);
        let own = state.unlink.iter().filter(|dead| !dead.shared);
        let bytes = || own.map(|dead| dead.rest.bytes()).sum::<u64>() + state.accounts.due_bytes();
        self.reclaimable.store(if kept { 0 } else { bytes() }, Ordering::Relaxed);
    }
}

impl ReclaimState {
    fn obsolete_bytes(&self) -> u64 {
        let zombies = self.zombies.iter().map(|zombie| zombie.table.size_bytes).sum::<u64>();
        zombies + self.unlink_bytes() + self.accounts.dead_bytes()
    }

    /// Returns the bytes of files without live tables that are not unlinked yet.
    pub(super) fn unlink_bytes(&self) -> u64 {
        self.unlink.iter().map(|dead| dead.rest.bytes()).sum::<u64>() + self.unlinking
    }
}
