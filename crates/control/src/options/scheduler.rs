//! How background work shares the device with clients: the I/O scheduler and the rate limiter.

use std::time::Duration;

use crate::named_enum;

/// What is believed of a device. It is kept across restarts as a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceProfile {
    /// Bytes a second that the device reads.
    pub read_bytes_per_second: u64,
    /// Bytes a second that the device writes.
    pub write_bytes_per_second: u64,
    /// The time of a barrier, in nanoseconds.
    pub barrier_ns: u64,
}

impl DeviceProfile {
    /// Returns the bytes a second of the slower direction: work that reads and writes goes no
    /// faster.
    pub(crate) fn slowest(&self) -> u64 {
        self.read_bytes_per_second.min(self.write_bytes_per_second)
    }
}

impl Default for DeviceProfile {
    fn default() -> DeviceProfile {
        DeviceProfile {
            read_bytes_per_second: BANDWIDTH_START,
            write_bytes_per_second: BANDWIDTH_START,
            barrier_ns: 1_000_000,
        }
    }
}

/// The bandwidth that a device is taken for before it has shown any, that of a slow SSD. If it is
/// too high, that shows while little more than the device has is asked for.
const BANDWIDTH_START: u64 = 192 << 20;

/// When stored data is verified, and how fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubOptions {
    /// Bytes a second; 0: as fast as the device has room.
    pub rate: u64,
    /// Seconds from the end of one scrub to the next; 0: only when a client asks.
    pub interval_seconds: u64,
}

named_enum! {
    /// Which bytes of background jobs the rate limiter counts.
    pub enum RateLimitMode, "reads-only, writes-only or all-io" {
        /// Bytes that jobs read.
        ReadsOnly = "reads-only",
        /// Bytes that jobs write (RocksDB's default).
        #[default]
        WritesOnly = "writes-only",
        /// Both.
        AllIo = "all-io",
    }
}

/// The limit on the bytes that background jobs move.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLimiterOptions {
    /// Bytes a second; `None`: no limit. With `auto_tune` it is the upper bound of the limit.
    pub bytes_per_second: Option<u64>,
    /// Time between two refills of the bucket.
    pub refill_period: Duration,
    /// The number of refills after which the order of priorities is reversed once, so that low
    /// priority does not starve; 0: never.
    pub fairness: u32,
    /// RocksDB's tuner: every 100 refills the limit moves 5 % up when the bucket ran dry in more
    /// than 90 % of them, 5 % down when in fewer than 50 %, between a twentieth of
    /// `bytes_per_second` and all of it.
    pub auto_tune: bool,
    /// Which bytes count.
    pub mode: RateLimitMode,
}

impl Default for RateLimiterOptions {
    fn default() -> RateLimiterOptions {
        RateLimiterOptions {
            bytes_per_second: None,
            refill_period: Duration::from_millis(100),
            fairness: 10,
            auto_tune: false,
            mode: RateLimitMode::WritesOnly,
        }
    }
}

named_enum! {
    /// Which deep compaction gives way to one out of level 0 that needs its slot or its inputs
    /// (SILK §5.2.2).
    pub enum Preemption, "off, least-loss or random" {
        /// None: the compaction out of level 0 waits.
        #[default]
        Off = "off",
        /// The one whose pause matters least.
        LeastLoss = "least-loss",
        /// Any (the paper's choice).
        Random = "random",
    }
}

/// The I/O scheduler (SILK §5). By default all of it is off: background work is served as RocksDB
/// serves it.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerOptions {
    /// Background work gets the bandwidth that clients leave (§5.2.1).
    pub bandwidth: bool,
    /// Flushes before level 0 before deeper levels by urgency, and a floor for the first two
    /// (§5.2.2). Otherwise all are equals while `bandwidth` decides (row 1 of figure 8C).
    pub priority: bool,
    /// Whether and how deep compactions give way (§5.2.2).
    pub preemption: Preemption,
    /// True if a compaction that gives way for good loses all its work. Otherwise it installs the
    /// part that can stand by itself.
    pub preempt_discard: bool,
    /// Bytes a second of the device, for reads and for writes; `None`: learned.
    pub device_bandwidth: Option<u64>,
    /// Bytes a second that flushes and level 0 always get with `priority`; `None`: the rate at
    /// which memtables fill.
    pub floor: Option<u64>,
    /// The part of the bandwidth that stays unused, in thousandths (the paper's ε).
    pub headroom: u64,
    /// The difference, in bytes a second, from which on the allocation changes (the paper: 10 MB/s
    /// of 200); `None`: a twentieth of the bandwidth.
    pub change_threshold: Option<u64>,
    /// True if deep work that falls behind gets its share even in a long peak.
    pub debt_floor: bool,
    /// The time in which background work should get rid of its debt. Beside clients it takes no
    /// more bandwidth than that needs. Zero: all that clients leave (the paper's).
    pub drain_time: Duration,
    /// True if deep work is held in a peak of clients whose end is forecast, and the debt is worked
    /// off before the valley ends.
    pub peak_forecast: bool,
    /// Bytes a second of the device for each job that runs at a time, flushes included: no more
    /// compactions run than that allows, but at least one (§5.2.2: 50 MB/s). 0: as many as
    /// configured.
    pub slot_bandwidth: u64,
    /// The first belief about the device.
    pub hint: DeviceProfile,
}

impl Default for SchedulerOptions {
    fn default() -> SchedulerOptions {
        SchedulerOptions {
            bandwidth: false,
            priority: false,
            preemption: Preemption::Off,
            preempt_discard: false,
            device_bandwidth: None,
            floor: None,
            headroom: 100,
            change_threshold: None,
            debt_floor: true,
            drain_time: Duration::from_secs(10),
            peak_forecast: false,
            slot_bandwidth: 0,
            hint: DeviceProfile::default(),
        }
    }
}
