//! Preallocates space for a WAL before its records need it.
//!
//! 1. A new WAL gets [`FIRST_BYTES`] ([`reserve`], when its file is opened).
//! 2. While a WAL is in use, the chores reserve space for its successor in steps: twice the bytes
//!    of the WAL in use ([`wanted`]). The successor is not in use, so no client waits for a
//!    reservation.
//! 3. A close frees what no record has used ([`trim`]).
//!
//! What must stay true: a failed reservation fails nothing. Whether records have space is seen when
//! they are written. A WAL never loses a byte that was written.

use std::path::Path;

use super::WalSync;
use crate::base::sync::atomic::Ordering;
use crate::vfs::Vfs;

/// The first step. A database that is hardly written takes this twice: for the WAL in use and its
/// successor.
pub const FIRST_BYTES: u64 = 64 << 10;

/// A step takes at most 1/`FREE_PART` of the free space. On a nearly full disk, tables need the
/// rest.
const FREE_PART: u64 = 8;

/// Returns how many bytes the successor of a WAL should have reserved. `written` is the size of the
/// WAL in use, and `most` the largest size of a WAL. Returns `None` if `reserved` is close enough.
pub fn wanted(written: u64, reserved: u64, most: u64) -> Option<u64> {
    let goal = written.saturating_mul(2).max(FIRST_BYTES).min(most);
    let is_worth_a_call = goal >= reserved.saturating_mul(2) || goal == most;
    (goal > reserved && is_worth_a_call).then_some(goal)
}

/// Reserves space for `log` up to `bytes` from its start. After a failure no more is reserved for
/// it.
pub fn reserve(vfs: &dyn Vfs, log: &WalSync, bytes: u64) {
    let from = log.reserved_bytes();
    let Some((file, path)) = log.file().filter(|_| from < bytes) else { return };
    let directory = path.parent().unwrap_or(Path::new(""));
    let free = vfs.free_space(directory).unwrap_or(0);
    if bytes - from > free / FREE_PART {
        return;
    }
    if file.preallocate(from, bytes - from).is_ok() {
        log.reserved.fetch_max(bytes, Ordering::Relaxed);
        return;
    }
    log.reserved.store(u64::MAX, Ordering::Relaxed);
    // Frees what the failed call reserved, while nothing can have been written to the file.
    if log.written() == 0 {
        let _more_space_taken = file.truncate(0);
    }
}

/// Frees the space that was reserved for `log` and not used. No thread may append to it meanwhile.
pub fn trim(log: &WalSync) {
    let Some((file, _)) = log.file().filter(|_| log.check_alive().is_ok()) else { return };
    // Best effort. A file with another name stays as it is, because a checkpoint may share it.
    if file.links().is_ok_and(|links| links == 1) {
        let _more_space_taken = file.truncate(log.written());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_gets_what_the_log_in_use_got_in_few_steps() {
        let most = 64 << 20;
        let (mut reserved, mut steps) = (FIRST_BYTES, 0);
        assert_eq!(wanted(4096, reserved, most), None);
        for written in (0..80 << 20).step_by(4096) {
            if let Some(goal) = wanted(written, reserved, most) {
                assert!(goal > reserved && goal <= (2 * written).max(FIRST_BYTES), "{goal}");
                (reserved, steps) = (goal, steps + 1);
            }
        }
        assert_eq!((reserved, steps), (most, 10));
        assert_eq!(wanted(u64::MAX, u64::MAX, most), None, "nothing after a failure");
    }

    #[test]
    fn small_memtables_get_no_more_than_they_hold() {
        assert_eq!(wanted(0, 0, 4096), Some(4096));
        assert_eq!(wanted(1 << 20, 4096, 4096), None);
        assert_eq!(wanted(1 << 20, 0, 0), None, "no log is written");
        assert_eq!(wanted(u64::MAX, FIRST_BYTES, u64::MAX), Some(u64::MAX));
    }
}
