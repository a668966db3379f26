//! How background work shares the device with clients: the I/O scheduler and the rate limiter.

use std::time::Duration;

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

/// When what is stored is verified, and how fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubOptions {
    /// Bytes a second; 0: as fast as there is room.
    pub bytes_per_second: u64,
    /// From the end of one to the begin of the next; `None`: only when a client asks.
    pub interval_ns: Option<u64>,
}

/// Which bytes of background jobs the rate limiter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimiterMode {
    /// Only what jobs read.
    ReadsOnly,
    /// Only what jobs write (RocksDB's default).
    #[default]
    WritesOnly,
    /// Both.
    AllIo,
}

/// The limit on the bytes that background jobs move.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLimiterOptions {
    /// Bytes a second; `None`: no limit. With `auto_tuned` it is the upper bound of the limit.
    pub bytes_per_second: Option<u64>,
    /// How often the bucket is refilled.
    pub refill_period: Duration,
    /// Every so many refills the order of priorities is reversed, so that low priority does not
    /// starve; 0: never.
    pub fairness: u32,
    /// RocksDB's tuner: every 100 refills the limit moves 5 % up when the bucket ran dry in more
    /// than 90 % of them, 5 % down when in fewer than 50 %, between a twentieth of
    /// `bytes_per_second` and all of it.
    pub auto_tuned: bool,
    /// Which bytes count.
    pub mode: RateLimiterMode,
}

impl Default for RateLimiterOptions {
    fn default() -> RateLimiterOptions {
        RateLimiterOptions {
            bytes_per_second: None,
            refill_period: Duration::from_millis(100),
            fairness: 10,
            auto_tuned: false,
            mode: RateLimiterMode::WritesOnly,
        }
    }
}

/// What happens to deep compactions when a compaction out of level 0 needs their slot or their
/// inputs (SILK §5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preemption {
    /// It waits for them.
    #[default]
    Off,
    /// The one whose pause matters least is paused.
    LeastLoss,
    /// Any of them is (the paper's choice).
    Random,
}

/// The I/O scheduler (SILK §5). By default all of it is off: background work is served as RocksDB
/// serves it.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerOptions {
    /// Background work gets the bandwidth that clients leave (§5.2.1).
    pub bandwidth: bool,
    /// Flushes before level 0 before deeper levels by urgency (§5.2.2).
    pub priority: bool,
    /// Whether and how deep compactions give way (§5.2.2).
    pub preemption: Preemption,
    /// A compaction that gives way for good loses all that it has done, instead of installing what
    /// can stand by itself.
    pub discard_preempted: bool,
    /// Bytes a second of the device, for reads as for writes; `None`: learned.
    pub device_bytes_per_second: Option<u64>,
    /// Bytes a second that flushes and level 0 always get; `None`: what the memtables fill up with.
    pub floor_bytes_per_second: Option<u64>,
    /// What of the bandwidth stays unused, in thousandths (the paper's ε).
    pub headroom: u64,
    /// The allocation changes when it would by more than so many bytes a second (the paper: 10 MB/s
    /// of 200); `None`: a twentieth of the bandwidth.
    pub change_bytes_per_second: Option<u64>,
    /// In a long peak deep work that falls behind gets its share all the same.
    pub debt_floor: bool,
    /// Beside clients, background work takes no more than it needs to get rid of its debt in this
    /// time, even if they leave it more. Zero: all that they leave (the paper's).
    pub drain_time: Duration,
    /// What is believed of the device at first.
    pub hint: DeviceProfile,
}

impl Default for SchedulerOptions {
    fn default() -> SchedulerOptions {
        SchedulerOptions {
            bandwidth: false,
            priority: false,
            preemption: Preemption::Off,
            discard_preempted: false,
            device_bytes_per_second: None,
            floor_bytes_per_second: None,
            headroom: 100,
            change_bytes_per_second: None,
            debt_floor: true,
            drain_time: Duration::from_secs(10),
            hint: DeviceProfile::default(),
        }
    }
}

impl SchedulerOptions {
    /// All of it, and nothing to configure.
    #[must_use]
    pub fn silk() -> SchedulerOptions {
        SchedulerOptions {
            bandwidth: true,
            priority: true,
            preemption: Preemption::LeastLoss,
            ..SchedulerOptions::default()
        }
    }
}
