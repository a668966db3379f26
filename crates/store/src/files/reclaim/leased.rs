//! Tables that readers in other handles and processes keep by leases ([`crate::files::leases`]).
//!
//! What must stay true: marks are read outside the reclaimer's lock, because that is a system call.

use std::path::PathBuf;
use std::sync::Weak;

use sateen_control::Instant;

use super::{ReclaimState, Reclaimer};
use crate::base::sync::lock;
use crate::files::leases::{LeaseLimits, Round};
use crate::vfs::VfsLock;

impl Reclaimer {
    /// Watches `lock_file` for leases, until it is dropped.
    pub fn respect_leases(&self, lock_file: Weak<dyn VfsLock>) {
        lock(&self.state).leases.watch(lock_file);
    }

    /// Sets the limits of leases.
    pub fn limit_leases(&self, limits: LeaseLimits) {
        *lock(&self.lease_limits) = limits;
    }

    /// Returns the number of readers with valid leases in other handles and processes, and of
    /// leases that exceeded a limit.
    pub fn leases(&self) -> (usize, u64) {
        lock(&self.state).leases.counts()
    }

    /// Looks for leases. Where the system has no marks, there are none: readers then notice
    /// themselves that a table is gone. After another error nothing is freed until the next look.
    pub fn look_at_leases(&self, now: Instant) {
        let limits = *lock(&self.lease_limits);
        let (round, marks) = lock(&self.state).leases.begin();
        let marks = marks.and_then(|marks| marks.upgrade()).map(|marks| marks.marks());
        let marks = match marks {
            Some(Err(error)) if !has_no_marks(&error) => return,
            marks => marks.and_then(std::io::Result::ok).unwrap_or_default(),
        };
        let ReclaimState { leases, zombies, .. } = &mut *lock(&self.state);
        let kept = |since| {
            let kept = zombies.iter().filter(|zombie| zombie.retired >= since);
            kept.map(|zombie| zombie.table.size_bytes).sum()
        };
        leases.seen(round, &marks, (now, limits), kept);
    }

    /// Removes files that no version names, once no earlier reader is left.
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
            // A file that cannot be removed now is tried again at the next open.
            let _orphan = self.vfs.remove(&path);
        }
    }
}

/// Returns true if the system or the file system has no marks at all.
fn has_no_marks(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported)
}
