//! What background work may take at once while clients use the device: how fast dead tables are
//! given back, how much a compaction takes in, and whether there is room for what nobody waits for.

use super::allocator::Allocation;
use super::{IoScheduler, Lane};
use crate::arithmetic::{NS_PER_SECOND, per_second, scale, to_i64};
use crate::types::Instant;

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

    /// Whether work that nobody waits for may read now: no job waits for its grant or does what is
    /// urgent, and clients leave something.
    pub(crate) fn has_room(&mut self, now: Instant) -> bool {
        let urgent = self.running(Lane::Flush) + self.running(Lane::Level0) > 0;
        if urgent || !self.queue.is_empty() {
            return false;
        }
        if !self.options.bandwidth {
            return true;
        }
        self.refill(now);
        let limits = self.limits(now);
        limits.brake_ns == 0 && !limits.no_step && !self.main.lacks(true, limits.reserve).0
    }

    /// Such work has read so many bytes: there is so much less for jobs.
    pub(crate) fn read_beside(&mut self, bytes: u64) {
        if self.options.bandwidth {
            self.main.take(to_i64(bytes), 0);
        }
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
