//! Tables that readers in other handles and processes keep ([`crate::files::leases`]).

use std::path::PathBuf;
use std::sync::Weak;

use sateen_control::Instant;

use super::{Reclaimer, State};
use crate::base::sync::lock;
use crate::files::leases::{LeaseLimits, Round};
use crate::vfs::VfsLock;

impl Reclaimer {
    /// Leases are looked for in `lock_file`, and no longer once it is dropped.
    pub fn respect_leases(&self, lock_file: Weak<dyn VfsLock>) {
        lock(&self.state).leases.watch(lock_file);
    }

    /// How much leases may keep from now on.
    pub fn limit_leases(&self, limits: LeaseLimits) {
        *lock(&self.lease_limits) = limits;
    }

    /// Readers in other handles and processes whose leases count, and leases that went past a
    /// limit.
    pub fn leases(&self) -> (usize, u64) {
        lock(&self.state).leases.counts()
    }

    /// Looks which readers there are. Where that cannot be told there are none: they find out by
    /// themselves that something is gone.
    pub fn look_at_leases(&self, now: Instant) {
        let limits = *lock(&self.lease_limits);
        let (round, marks) = lock(&self.state).leases.begin();
        let marks = marks.and_then(|marks| marks.upgrade()).map(|marks| marks.marks());
        let marks = marks.and_then(std::io::Result::ok).unwrap_or_default();
        let State { leases, zombies, .. } = &mut *lock(&self.state);
        let kept = |since| {
            let kept = zombies.iter().filter(|zombie| zombie.retired >= since);
            kept.map(|zombie| zombie.table.size_bytes).sum()
        };
        leases.seen(round, &marks, (now, limits), kept);
    }

    /// Removes files that nothing names, once no reader of before is left.
    pub fn take_orphans(&self, orphans: Vec<PathBuf>) {
        lock(&self.state).orphans.extend(orphans);
        self.remove_orphans();
    }

    pub(super) fn remove_orphans(&self) {
        let orphans = {
            let mut state = lock(&self.state);
            if !state.leases.frees(Round::default()) || state.holds > 0 {
                return;
            }
            std::mem::take(&mut state.orphans)
        };
        for path in orphans {
            // What cannot be removed now is tried at the next open.
            let _orphan = self.vfs.remove(&path);
        }
    }
}
