//! What reads cost, learned from samples, and how long it pays to let runs collect in level 0.
//!
//! 1. [`ReadCosts::observe`] sums samples up to a second, and then updates the averages. They
//!    follow a change within about eight seconds.
//! 2. [`ReadCosts::run_ns`] is what one more run of level 0 costs clients each second: processor
//!    time for every read, and the blocks that scans and mistaken filters read from the device.
//! 3. [`Collecting::runs`] weighs that against what a compaction of level 0 rewrites of the base
//!    level. With `n` runs a compaction, clients pay for `n / 2` runs on average, and each byte of
//!    level 0 rewrites `1 / n` of the base level for each run. The sum is least at the square root
//!    of twice the rewriting over the cost of a run.
//!    On a busy device rewriting counts for more, at half of it twice as much. That keeps level 0
//!    from going down before its trigger, but never makes it wait for longer.
//! 4. [`Collecting::next`] keeps that within limits, and the number in force where it is near.
//!
//! Runs that reads do not reach cost nothing: where gets find their key in a memtable or in the
//! newest run they look into few, and [`ReadCosts::run_ns`] counts the part that they reach.

use crate::arithmetic::{NS_PER_SECOND, follow, scale};
use crate::event::{ReadSample, Sample};
use crate::options::DeviceProfile;
use crate::policy::CfOptions;
use crate::types::IoClass;

/// The time that the averages are updated after, and by which part of the difference.
const WINDOW_NS: u64 = NS_PER_SECOND;
const FOLLOW_WINDOWS: u64 = 8;
/// Windows with clients before anything is decided.
const WINDOWS_MIN: u64 = 8;
/// The processor time that a read takes for a run.
const RUN_NS: u64 = 200;
/// One in this many runs that a get looks into costs it a block in vain.
const FILTER_MISTAKES_ONE_IN: u64 = 100;
/// A nanosecond of a client counts as many of a compaction: clients wait for theirs.
const CLIENT_WEIGHT: u64 = 8;
/// At least this part of the device counts as idle, in thousandths.
const IDLE_MIN: u64 = 50;
/// What a read of the device takes, before any was measured.
const DEVICE_READ_NS: u64 = 100_000;
/// Writes of less than this a second, without reads, are no load.
const WRITES_MIN: u64 = 64 << 10;
const THOUSAND: u64 = 1000;

/// The reads of clients, in thousandths a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadCosts {
    /// The samples of the current window, its time, and the reads of the device and their time.
    window: ReadSample,
    over_ns: u64,
    device_reads: u64,
    device_ns: u64,
    /// Bytes that the device read and wrote in the window, for clients and jobs.
    moved: [u64; 2],
    /// Averages.
    gets: u64,
    scans: u64,
    runs: u64,
    block_hits: u64,
    block_misses: u64,
    /// Bytes a second that the device reads, and that it writes.
    moved_read: u64,
    moved_written: u64,
    /// The mean time of a read from the device in nanoseconds; 0 if unknown.
    device_read_ns: u64,
    /// Number of windows with reads or writes.
    windows: u64,
}

impl ReadCosts {
    /// Takes in a sample after `over_ns`. Returns true at the end of a window.
    pub(crate) fn observe(&mut self, sample: &Sample, over_ns: u64) -> bool {
        let (window, reads) = (&mut self.window, &sample.reads);
        window.gets += reads.gets;
        window.runs += reads.runs;
        window.scans += reads.scans;
        window.block_hits += reads.block_hits;
        window.block_misses += reads.block_misses;
        let client = &sample.classes[IoClass::Client.index()];
        self.device_reads += client.reads;
        self.device_ns += client.read_ns;
        for class in &sample.classes {
            self.moved[0] += class.read_bytes;
            self.moved[1] += class.write_bytes;
        }
        self.windows += u64::from(self.over_ns == 0 && sample.user_bytes + reads.gets > 0);
        self.over_ns += over_ns;
        if self.over_ns < WINDOW_NS {
            return false;
        }
        let (window, moved, over_ns) = (self.window, self.moved, self.over_ns);
        let first = self.windows <= 1;
        let follow_rate = |average: &mut u64, count: u64, by: u64| {
            let now = scale(count, NS_PER_SECOND * by, over_ns);
            *average = if first { now } else { follow(*average, now, 1, FOLLOW_WINDOWS) };
        };
        follow_rate(&mut self.moved_read, moved[0], 1);
        follow_rate(&mut self.moved_written, moved[1], 1);
        let update = |average: &mut u64, count: u64| follow_rate(average, count, THOUSAND);
        update(&mut self.gets, window.gets);
        update(&mut self.scans, window.scans);
        update(&mut self.runs, window.runs);
        update(&mut self.block_hits, window.block_hits);
        update(&mut self.block_misses, window.block_misses);
        if let Some(mean) = self.device_ns.checked_div(self.device_reads) {
            let known = if self.device_read_ns == 0 { mean } else { self.device_read_ns };
            self.device_read_ns = follow(known, mean, 1, FOLLOW_WINDOWS);
        }
        (self.window, self.over_ns) = (ReadSample::default(), 0);
        (self.device_reads, self.device_ns, self.moved) = (0, 0, [0; 2]);
        true
    }

    /// Returns true if there were enough windows with clients to decide.
    fn is_known(&self) -> bool {
        self.windows >= WINDOWS_MIN
    }

    /// Returns true if clients read, once a second or more.
    fn any(&self) -> bool {
        self.gets + self.scans >= THOUSAND
    }

    /// Returns the part of the device that is idle, in thousandths.
    fn idle(&self, device: DeviceProfile) -> u64 {
        let busy = |moved, bandwidth| scale(moved, THOUSAND, bandwidth).min(THOUSAND);
        let read = busy(self.moved_read, device.read_bytes_per_second);
        let written = busy(self.moved_written, device.write_bytes_per_second);
        (THOUSAND - read.max(written)).max(IDLE_MIN)
    }

    /// Returns the nanoseconds a second that one more run of level 0 costs clients, where a get
    /// that finds nothing above the last level looks into `runs` runs.
    pub(crate) fn run_ns(&self, runs: u64) -> u64 {
        let device_ns = if self.device_read_ns == 0 { DEVICE_READ_NS } else { self.device_read_ns };
        let blocks = self.block_hits + self.block_misses;
        let block_ns = scale(device_ns, self.block_misses, blocks);
        let reached = scale(self.gets, self.runs.min(self.gets * runs), self.gets * runs);
        let get_ns = RUN_NS + block_ns / FILTER_MISTAKES_ONE_IN;
        scale(reached, get_ns, THOUSAND) + scale(self.scans, RUN_NS + block_ns, THOUSAND)
    }
}

/// What decides how many runs collect in level 0 of a column family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collecting {
    /// Bytes a second that clients write.
    pub(crate) fill: u64,
    /// Bytes of the level that level 0 is compacted into.
    pub(crate) base_bytes: u64,
    /// Runs of level 0 and of the levels below that hold anything.
    pub(crate) runs: u64,
    /// What is believed of the device.
    pub(crate) device: DeviceProfile,
}

impl Collecting {
    /// Returns the number of runs at which the costs of clients and of compactions are least;
    /// `u64::MAX` if runs cost nothing.
    fn runs(&self, options: &CfOptions, costs: &ReadCosts) -> u64 {
        let rewritten = scale(self.base_bytes, self.fill, options.memtable_bytes);
        let rewriting_ns = scale(rewritten, 2 * NS_PER_SECOND, self.device.slowest());
        let run_ns = costs.run_ns(self.runs.max(1)).saturating_mul(CLIENT_WEIGHT);
        let least_at = |rewriting_ns: u64| rewriting_ns.checked_div(run_ns).map(u64::isqrt);
        let Some(runs) = least_at(rewriting_ns) else { return u64::MAX };
        let busy = least_at(scale(rewriting_ns, THOUSAND, costs.idle(self.device)));
        runs.max(busy.unwrap_or(0).min(options.level0_trigger.into()))
    }

    /// Returns the number of runs that start a compaction from now on, if they were `before` until
    /// now; 0 for the configured trigger. At least half of the trigger, at most three times as
    /// many, and at most half of the runs at which writers are slowed down.
    pub(crate) fn next(&self, options: &CfOptions, costs: &ReadCosts, before: u32) -> u32 {
        if !options.leveled.read_aware_compaction || !costs.is_known() {
            return 0;
        }
        // The device is idle, so nothing is gained by waiting.
        if self.fill < WRITES_MIN && !costs.any() {
            return 0;
        }
        let trigger = options.level0_trigger.max(1);
        let most = trigger.saturating_mul(3).min(options.level0_slowdown / 2).max(trigger);
        let least = trigger.div_ceil(2);
        let runs = u32::try_from(self.runs(options, costs)).unwrap_or(u32::MAX);
        let runs = runs.clamp(least, most);
        let force = if before == 0 { trigger } else { before };
        // A difference of a quarter is worth a change, and so is the last step to a limit.
        let near = u64::from(runs.abs_diff(force)) * 4 <= u64::from(force);
        let at_limit = runs == least || runs == most;
        if near && !at_limit { before } else { runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn options() -> CfOptions {
        let mut options = CfOptions { memtable_bytes: 16 * MIB, ..CfOptions::default() };
        options.leveled.read_aware_compaction = true;
        options
    }

    fn costs(gets: u64, scans: u64, misses: bool) -> ReadCosts {
        let mut costs = ReadCosts::default();
        for _ in 0..3000 {
            let reads = ReadSample {
                gets: gets / 100,
                runs: gets / 100 * 5,
                scans: scans / 100,
                block_hits: if misses { 0 } else { 100 },
                block_misses: if misses { 100 } else { 0 },
            };
            costs.observe(&Sample { user_bytes: 1, reads, ..Sample::default() }, 10_000_000);
        }
        costs
    }

    fn collecting(fill: u64) -> Collecting {
        let device = DeviceProfile {
            read_bytes_per_second: 200 * MIB,
            write_bytes_per_second: 200 * MIB,
            barrier_ns: 1_000_000,
        };
        Collecting { fill, base_bytes: 176 * MIB, runs: 5, device }
    }

    #[test]
    fn reads_shorten_the_wait_and_writes_lengthen_it() {
        let next =
            |gets, scans, fill| collecting(fill).next(&options(), &costs(gets, scans, true), 0);
        // Writes alone, half and half, mostly reads, mostly scans.
        assert_eq!(next(0, 0, 10 * MIB), 10);
        assert_eq!(next(2_000, 0, 10 * MIB), 7);
        assert_eq!(next(4_000, 0, 10 * MIB), 0, "5.3 is near the configured trigger");
        assert_eq!(next(20_000, 0, MIB), 2);
        assert_eq!(next(0, 2_000, MIB), 2);
        // Nothing at all: the device is free.
        assert_eq!(next(0, 0, 0), 0);
    }

    #[test]
    fn what_the_cache_holds_costs_less_to_look_into() {
        let next = |misses| collecting(2 * MIB).next(&options(), &costs(0, 2_000, misses), 0);
        assert_eq!((next(true), next(false)), (2, 8));
    }

    #[test]
    fn runs_that_no_get_reaches_cost_nothing() {
        let mut shallow = costs(20_000, 0, true);
        shallow.runs /= 50;
        let all = costs(20_000, 0, true).run_ns(5);
        assert_eq!(all / shallow.run_ns(5), 50);
    }

    #[test]
    fn a_busy_device_makes_rewriting_cost_more() {
        let mut busy = costs(20_000, 0, true);
        let runs = |busy: &ReadCosts| collecting(3 * MIB).runs(&options(), busy);
        assert_eq!(runs(&busy), 1);
        busy.moved_read = 120 * MIB;
        assert_eq!(runs(&busy), 2);
        busy.moved_written = 900 * MIB;
        assert_eq!(runs(&busy), 4, "the trigger is the limit");
    }

    #[test]
    fn small_differences_change_nothing_and_limits_hold() {
        let costs = costs(10_000, 0, true);
        assert_eq!(collecting(55 * MIB).next(&options(), &costs, 8), 8, "7.9 is near");
        assert_eq!(collecting(55 * MIB).next(&options(), &costs, 0), 7);
        let narrow = CfOptions { level0_slowdown: 6, ..options() };
        assert_eq!(collecting(100 * MIB).next(&narrow, &costs, 0), 4, "never past the trigger");
        assert_eq!(collecting(100 * MIB).next(&CfOptions::default(), &costs, 9), 0, "off");
        let fresh = ReadCosts::default();
        assert_eq!(collecting(100 * MIB).next(&options(), &fresh, 0), 0, "nothing is known");
    }
}
