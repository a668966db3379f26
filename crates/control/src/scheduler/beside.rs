//! What background work may take at once while clients use the device: how fast dead tables are
//! given back, and how much a compaction takes in.

use super::IoScheduler;
use super::allocator::Allocation;
use crate::arithmetic::{NS_PER_SECOND, per_second, scale};

/// Beside clients dead tables are given back over so long, and no slower than so much a second: a
/// device that has to discard many blocks at once serves nobody meanwhile.
const RECLAIM_NS: u64 = 5 * NS_PER_SECOND;
const RECLAIM_MIN: u64 = 16 << 20;
/// Beside clients a compaction takes several tables together as long as it is done in this time.
const GROUP_NS: u64 = NS_PER_SECOND;

impl IoScheduler {
    /// Bytes a second that dead tables are given back at while `backlog` bytes of them wait;
    /// `None`: as fast as they can be.
    pub(crate) fn reclaim_rate(&self, backlog: u64) -> Option<u64> {
        let paced = self.options.bandwidth && self.monitor.clients_active();
        paced.then(|| per_second(backlog, RECLAIM_NS).max(RECLAIM_MIN))
    }

    /// What a compaction of several tables may take in, so that beside clients it is done soon:
    /// what there is just now for deep work decides how soon.
    pub(crate) fn group_bytes_max(&self) -> u64 {
        if !self.options.bandwidth || !self.monitor.clients_active() {
            return u64::MAX;
        }
        let Allocation { read, write, floor_read, floor_write, .. } = self.allocation;
        let left = read.saturating_sub(floor_read).min(write.saturating_sub(floor_write));
        scale(left, GROUP_NS, NS_PER_SECOND)
    }
}
