//! The share of the device that background work gets.
//!
//! [`Allocation::due`] computes it, for reads and for writes:
//!
//! 1. Background work gets the bandwidth that clients leave, `I = T - C - ε` (SILK §5.2.1).
//! 2. Flushes and level 0 always get a floor, so that memtables do not fill up. The floor follows
//!    the recent peak of client writes. Without priorities there is none. Background work as a
//!    whole then gets `SHARED_MIN` at least, or writers could wait for a flush for ever.
//! 3. While clients wait for the device, a pace limits deep work to what it needs: its usual rate,
//!    or the rate that works off the debt in `drain_time`. Requests take longer the closer a device
//!    is to its limit, and a debt that is gone within seconds harms nobody.
//! 4. What is not urgent leaves the device some room (`unhurried`): neither the floor nor the pace
//!    brings it nearer to its limit than `UNHURRIED`, unless clients write so fast now. Work for
//!    one database in overload leaves that room to the clients of others, too.
//! 5. Where the end of a peak or valley is forecast (`deep_pace`), deep work is held in a peak if
//!    the next valley has room for it, and a valley works off what there is before it ends.

use super::monitor::Monitor;
use super::phases::Phase;
use super::{BARRIERS, DEBT_NS_MIN};
use crate::arithmetic::{NS_PER_SECOND, nanoseconds, per_second, scale};
use crate::options::{DeviceProfile, SchedulerOptions};

/// Rates for background work, in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// Limits on the reads and writes of all background work.
    pub(crate) read: u64,
    pub(crate) write: u64,
    /// What flushes and compactions out of level 0 may read and write in any case.
    pub(crate) floor_read: u64,
    pub(crate) floor_write: u64,
    /// Bandwidth that clients use.
    pub(crate) client: u64,
    /// Whether deep work is held until a peak ends.
    pub(crate) held: bool,
    /// Whether the pace, and not clients, limits reads, and writes.
    pub(crate) paced: (bool, bool),
}

/// The work that background jobs have to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    /// The compaction debt, in bytes.
    pub(crate) debt: u64,
    /// The part of it that may wait, because it is small against the database.
    pub(crate) debt_tolerated: u64,
    /// Bytes that a compaction out of level 0 moves for each byte of level 0.
    pub(crate) level0_amplification: u64,
    /// Runs of level 0, in thousandths of those with which a compaction out of it begins: the most
    /// of all column families.
    pub(crate) level0_due: u64,
    /// Whether writers are held back.
    pub(crate) writers_wait: bool,
    /// The largest memtable size of all column families, in bytes.
    pub(crate) memtable_bytes: u64,
    /// The part of the debt that the last valleys got rid of.
    pub(crate) debt_passing: u64,
    /// How long the debt that may not wait would take to drain, in nanoseconds.
    pub(crate) overdue_ns: u64,
    /// The peak or valley that clients are in, if its end is forecast.
    pub(crate) phase: Option<Phase>,
    /// Whether clients wait for the device, so that deep work keeps to its pace.
    pub(crate) paced: bool,
    /// Whether one database in overload is left out of what is urgent here, so that the clients of
    /// others have room.
    pub(crate) greedy: bool,
}

impl Demand {
    /// Returns true if level 0 has more runs than two compactions out of it begin with.
    pub(crate) fn level0_is_late(&self) -> bool {
        self.level0_due > 2000
    }
}

/// The lowest floor. Memtables must be flushed, whatever the estimate of the device is.
const FLOOR_MIN: u64 = 16 << 20;
/// What equals get together, whatever clients leave (10 MB/s in the code of SILK's authors).
const SHARED_MIN: u64 = 10_000_000;
/// The lowest pace of deep work. Its inputs stay claimed, so it must not take too long.
const PACE_MIN: u64 = 16 << 20;
/// Work that is not urgent loads the device up to this many thousandths of its bandwidth, clients
/// included. A recent peak asks for a high floor long after it, and then the compactions out of
/// level 0 of several databases, begun together, would fill the device although nobody waits for
/// them.
const UNHURRIED: u64 = 700;
/// Whatever clients use, flushes and level 0 may have this part of the device if a recent peak
/// asked for as much: clients that wait for memory write little.
const UNHURRIED_PART: u64 = 4;
/// Before its end a valley works off its debt as if it lasted this long.
const VALLEY_NS_MIN: u64 = 2 * NS_PER_SECOND;
/// The lowest amplification of level 0. A byte that is flushed is read and written again by the
/// compaction out of level 0, together with bytes from below.
const LEVEL0_AMPLIFICATION_MIN: u64 = 2;
/// While other programs have the processors, debt is worked off in this part of the usual time.
/// Steps get less done than they are granted, so it would otherwise grow until it is urgent.
const BUSY_DRAIN_PART: u64 = 4;
/// By default an allocation changes by more than this part of the bandwidth.
const CHANGE_PART: u64 = 20;

/// Returns the rate that moves `rate` bytes per second on average over `within_ns`, although some
/// of that time is lost to barriers. At most three quarters count as lost.
fn beside_barriers(rate: u64, within_ns: u64, barrier_ns: u64) -> u64 {
    let lost_ns = barrier_ns.saturating_mul(BARRIERS).min(within_ns / 4 * 3);
    scale(rate, within_ns.max(1), within_ns - lost_ns)
}

/// Returns the bytes a second that deep work gets beside clients; `None` if it is held.
fn deep_pace(usable: u64, drain_ns: u64, monitor: &Monitor, demand: &Demand) -> Option<u64> {
    // Deep work gets at least what it needs in the long run, and a quarter more to catch up.
    let usual = monitor.deep_write().saturating_mul(5) / 4;
    let within = |ns: u64| per_second(demand.debt, ns).max(PACE_MIN);
    let Some(phase) = demand.phase else {
        return Some(usual.max(within(drain_ns)));
    };
    if !phase.peak {
        return Some(usual.max(within(phase.left_ns.clamp(VALLEY_NS_MIN, drain_ns))));
    }
    // What collects until the peak ends must fit into most of what the valley leaves.
    let collects = monitor.fill_peak().saturating_mul(monitor.deep_amplification());
    let collected =
        scale(collects, phase.left_ns, NS_PER_SECOND).saturating_add(demand.debt_passing);
    let room = scale(usable.saturating_sub(phase.valley) / 4 * 3, phase.next_ns, NS_PER_SECOND);
    let late = demand.level0_is_late() || demand.overdue_ns >= DEBT_NS_MIN;
    (late || collected > room).then(|| usual.max(within(drain_ns)))
}

/// Returns what background work gets while nothing is urgent, in bytes per second. The longer the
/// overdue debt would take to drain, and the more runs level 0 has, the less room is left.
fn unhurried(usable: (u64, u64), client: (u64, u64), demand: &Demand) -> u64 {
    if demand.writers_wait {
        return u64::MAX;
    }
    let of_debt = scale(demand.overdue_ns, 1000, DEBT_NS_MIN);
    let of_level0 = demand.level0_due.saturating_sub(1000);
    let hurry = scale(of_debt.max(of_level0).min(1000), 1000 - UNHURRIED, 1000);
    let left = |usable, client| {
        scale(usable, UNHURRIED + hurry, 1000).saturating_sub(client).max(usable / UNHURRIED_PART)
    };
    left(usable.0, client.0).min(left(usable.1, client.1))
}

impl Allocation {
    /// Returns the allocation for the present demand. `usable` is the bandwidth that may be asked
    /// of the device, for reads and for writes.
    pub(crate) fn due(
        options: &SchedulerOptions,
        usable: (u64, u64),
        barrier_ns: u64,
        monitor: &Monitor,
        demand: Demand,
    ) -> Allocation {
        let (client_read, client_write) = (monitor.client_read(), monitor.client_write());
        let least = if options.priority { 0 } else { SHARED_MIN };
        let read = usable.0.saturating_sub(client_read).max(least);
        let write = usable.1.saturating_sub(client_write).max(least);
        let down = demand.level0_amplification.max(LEVEL0_AMPLIFICATION_MIN);
        // The recent peak counts. Clients that wait for a flush write less, and must not get a
        // lower floor for that.
        let fill = monitor.fill_peak();
        let until_full_ns = scale(demand.memtable_bytes, NS_PER_SECOND, fill);
        let needed = |fill: u64| {
            beside_barriers(fill.saturating_mul(1 + down), until_full_ns, barrier_ns).max(FLOOR_MIN)
        };
        let now = if demand.greedy { FLOOR_MIN } else { needed(monitor.fill()) };
        let unhurried = unhurried(usable, (client_read, client_write), &demand);
        let floor = options.floor.unwrap_or(needed(fill).min(unhurried.max(now)));
        let most = unhurried.max(now.saturating_add(PACE_MIN));
        let part = if monitor.is_short_of_processor() { BUSY_DRAIN_PART } else { 1 };
        let mut held = false;
        let pace = if demand.paced && monitor.clients_active() && !options.drain_time.is_zero() {
            let drain_ns = nanoseconds(options.drain_time) / part;
            let deep = deep_pace(usable.0.min(usable.1), drain_ns, monitor, &demand);
            held = deep.is_none();
            floor.saturating_add(deep.unwrap_or(0)).min(most)
        } else {
            u64::MAX
        };
        let floor = if options.priority { floor } else { 0 };
        Allocation {
            read: read.min(pace),
            write: write.min(pace),
            held,
            paced: (pace < read, pace < write),
            floor_read: floor,
            floor_write: floor,
            client: client_read + client_write,
        }
    }

    /// Returns true if the difference to `before` is worth a change (SILK §5.2.1).
    pub(crate) fn is_news(
        &self,
        before: &Allocation,
        device: DeviceProfile,
        options: &SchedulerOptions,
    ) -> bool {
        let differs = |now: u64, then: u64, bandwidth: u64| {
            let threshold = options.change_threshold.unwrap_or(bandwidth / CHANGE_PART);
            // If nothing is left, or something again, deep work is paused or goes on.
            (now == 0) != (then == 0) || now.abs_diff(then) > threshold
        };
        differs(self.read, before.read, device.read_bytes_per_second)
            || differs(self.write, before.write, device.write_bytes_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Processors, Sample};
    use crate::types::Instant;

    const MB: u64 = 1_000_000;
    const USABLE: (u64, u64) = (200 * MB, 200 * MB);

    #[test]
    fn the_more_urgent_work_is_the_less_room_it_leaves() {
        let left = |demand: Demand| unhurried(USABLE, (30 * MB, 10 * MB), &demand);
        let level0 = |level0_due| left(Demand { level0_due, ..Demand::default() });
        assert_eq!([level0(0), level0(1000), level0(1500)], [110 * MB, 110 * MB, 140 * MB]);
        assert_eq!([level0(2000), level0(5000)], [170 * MB, 170 * MB]);
        let debt = |overdue_ns| left(Demand { overdue_ns, ..Demand::default() });
        assert_eq!([debt(DEBT_NS_MIN / 2), debt(2 * DEBT_NS_MIN)], [140 * MB, 170 * MB]);
        assert_eq!(left(Demand { writers_wait: true, ..Demand::default() }), u64::MAX);
    }

    #[test]
    fn after_a_fill_level_0_leaves_room_unless_writers_wait() {
        let mut monitor = Monitor::default();
        let sample = |user_bytes| Sample { user_bytes, ..Sample::default() };
        let mut now = Instant(0);
        // 180 MB/s for ten seconds, and then ten seconds of 10 MB/s.
        for number in 0..2000 {
            now.0 += 10_000_000;
            monitor.observe(now, &sample(if number < 1000 { 1_800_000 } else { 100_000 }));
        }
        let options =
            SchedulerOptions { bandwidth: true, priority: true, ..SchedulerOptions::default() };
        let due = |writers_wait| {
            let (memtable_bytes, level0_amplification) = (16 << 20, 4);
            let paced = true;
            let demand =
                Demand { memtable_bytes, level0_amplification, paced, ..Demand::default() };
            let demand = Demand { writers_wait, ..demand };
            Allocation::due(&options, USABLE, 1_000_000, &monitor, demand)
        };
        let allocation = due(false);
        assert_eq!((allocation.floor_read, allocation.read), (140 * MB, 140 * MB));
        let allocation = due(true);
        assert!(allocation.floor_read > 200 * MB && allocation.read == 200 * MB);
    }

    #[test]
    fn while_others_have_the_processors_debt_is_worked_off_sooner() {
        let options =
            SchedulerOptions { bandwidth: true, priority: true, ..SchedulerOptions::default() };
        let due = |others| {
            let mut monitor = Monitor::default();
            let processors = Processors { others, idle: 0 };
            for number in 0..100 {
                let sample = Sample { user_bytes: 50_000, processors, ..Sample::default() };
                monitor.observe(Instant(number * 10_000_000), &sample);
            }
            let (debt, memtable_bytes) = (200 * MB, 16 << 20);
            let demand = Demand { debt, memtable_bytes, paced: true, ..Demand::default() };
            Allocation::due(&options, USABLE, 1_000_000, &monitor, demand).write
        };
        // The debt in ten seconds, and in two and a half.
        assert_eq!(due(900) - due(0), 60 * MB);
    }
}
