//! How much of the device background work gets: what clients leave of it, `I = T - C - ε`, in each
//! direction (SILK §5.2.1), never less than what keeps the memtables from filling up. Of that it
//! takes what it needs: the closer to its limit a device is, the longer every request takes, and
//! debt that is gone in seconds harms nobody.

use super::BARRIERS;
use super::monitor::Monitor;
use crate::arithmetic::{NS_PER_SECOND, nanoseconds, per_second, scale};
use crate::options::{DeviceProfile, SchedulerOptions};

/// Bytes a second for background work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// What all of it may read and write together.
    pub(crate) read: u64,
    pub(crate) write: u64,
    /// What flushes and level 0 may read and write in any case.
    pub(crate) floor_read: u64,
    pub(crate) floor_write: u64,
    /// What clients use.
    pub(crate) client: u64,
    /// Whether clients would leave more reads, and more writes.
    pub(crate) paced: (bool, bool),
}

/// What background work has to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    /// Bytes that compactions are behind.
    pub(crate) debt: u64,
    /// So many of them may wait for a better time, for all that the database is not much larger.
    pub(crate) debt_tolerated: u64,
    /// Bytes that a compaction out of level 0 moves for each byte of level 0.
    pub(crate) level0_amplification: u64,
    /// Writers will be slowed down for level 0 soon.
    pub(crate) level0_late: bool,
    /// Bytes of a memtable, where they are largest.
    pub(crate) memtable_bytes: u64,
}

/// No floor is lower: memtables have to be flushed, whatever is believed of the device.
const FLOOR_MIN: u64 = 16 << 20;
/// Nor does deep work slow down to less than this for want of debt: its inputs stay claimed.
const PACE_MIN: u64 = 16 << 20;
/// A byte that is flushed is read and written again by the compaction out of level 0, with what it
/// overlaps below: so many times at least.
const LEVEL0_AMPLIFICATION_MIN: u64 = 2;
/// Without a setting, an allocation changes by more than this part of the bandwidth.
const CHANGE_PART: u64 = 20;

/// A rate for what has to be done in this time, of which it waits for barriers: however slow they
/// are, for three quarters of it at most.
fn beside_barriers(rate: u64, within_ns: u64, barrier_ns: u64) -> u64 {
    let lost_ns = barrier_ns.saturating_mul(BARRIERS).min(within_ns / 4 * 3);
    scale(rate, within_ns.max(1), within_ns - lost_ns)
}

impl Allocation {
    /// What is due now. `usable`: what may be asked of the device, reads and writes.
    pub(crate) fn due(
        options: &SchedulerOptions,
        usable: (u64, u64),
        barrier_ns: u64,
        monitor: &Monitor,
        demand: Demand,
    ) -> Allocation {
        let (client_read, client_write) = (monitor.client_read(), monitor.client_write());
        let read = usable.0.saturating_sub(client_read);
        let write = usable.1.saturating_sub(client_write);
        let down = demand.level0_amplification.max(LEVEL0_AMPLIFICATION_MIN);
        // Of the most that was written lately: who waits for a flush writes less, and must not get
        // less of the device for that.
        let fill = monitor.fill_peak();
        let until_full_ns = scale(demand.memtable_bytes, NS_PER_SECOND, fill);
        let needed = beside_barriers(fill.saturating_mul(1 + down), until_full_ns, barrier_ns);
        let floor = options.floor_bytes_per_second.unwrap_or(needed.max(FLOOR_MIN));
        let pace = if monitor.clients_active() && !options.drain_time.is_zero() {
            // At least what deep work needs in the long run, and some of it to catch up.
            let usual = monitor.deep_write().saturating_mul(5) / 4;
            let debt = per_second(demand.debt, nanoseconds(options.drain_time));
            floor.saturating_add(usual.max(debt).max(PACE_MIN))
        } else {
            u64::MAX
        };
        Allocation {
            read: read.min(pace),
            write: write.min(pace),
            paced: (pace < read, pace < write),
            floor_read: floor,
            floor_write: floor,
            client: client_read + client_write,
        }
    }

    /// Whether this differs enough from `before` to be worth a change (SILK §5.2.1).
    pub(crate) fn is_news(
        &self,
        before: &Allocation,
        device: DeviceProfile,
        options: &SchedulerOptions,
    ) -> bool {
        let differs = |now: u64, then: u64, bandwidth: u64| {
            let threshold = options.change_bytes_per_second.unwrap_or(bandwidth / CHANGE_PART);
            // That nothing is left, or something again, pauses deep work or lets it go on.
            (now == 0) != (then == 0) || now.abs_diff(then) > threshold
        };
        differs(self.read, before.read, device.read_bytes_per_second)
            || differs(self.write, before.write, device.write_bytes_per_second)
    }
}
