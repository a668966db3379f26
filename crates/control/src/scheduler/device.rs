//! What is believed of the device: how fast it reads and writes, and what a barrier costs. Learned
//! from what the driver's samples say it delivered, never by probes of its own (SILK takes the
//! bandwidth as a constant).
//!
//! How: while background work has more to spend than it spends, its requests take several times as
//! long as they did at best, and so do those of clients, the device is the limit: what it delivers
//! becomes the belief. While it has less to spend than it wants, the belief is the limit: it grows,
//! for a while only back to where the device was the limit last. Requests that take long although
//! the belief holds them back do so for another reason, a busy processor above all: then that is
//! the new best. Where no client waits for the device nobody is harmed, and nothing is concluded. What must
//! stay true: a belief is never below [`BANDWIDTH_MIN`], and follows a device that became faster or
//! slower within ten seconds of demand.

use crate::event::Sample;
use crate::types::{Instant, IoClass};

/// What is believed of a device. Kept across restarts as a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceProfile {
    /// Bytes a second that it reads.
    pub read_bytes_per_second: u64,
    /// Bytes a second that it writes.
    pub write_bytes_per_second: u64,
    /// What a barrier takes, in nanoseconds.
    pub barrier_ns: u64,
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

/// What a device is taken for before it has shown anything: a cheap SSD.
const BANDWIDTH_START: u64 = 256 << 20;
/// Nothing slower is believed: background work must end.
pub(crate) const BANDWIDTH_MIN: u64 = 4 << 20;
const BANDWIDTH_MAX: u64 = 64 << 30;

/// So long is looked at at a time.
const WINDOW_NS: u64 = 50_000_000;
/// Requests that take so many times as long for their bytes as they did at best have queued.
const QUEUED_TIMES: u64 = 3;
/// Clients are harmed when their requests take so many times as long as at best, and longer by so
/// much.
const HARM_TIMES: u64 = 3;
const HARM_NS: u64 = 500_000;
/// Fewer requests of clients in a window say nothing.
const CLIENT_REQUESTS_MIN: u64 = 4;
/// Fewer bytes in a window say nothing.
const BYTES_MIN: u64 = 512 << 10;
/// So many windows in a row must agree before anything is concluded from them.
const WINDOWS_MIN: u32 = 2;
/// A window in which the device seemed to be the limit takes no more than this away from the
/// belief, in thousandths.
const LOSS_MAX: u64 = 300;
/// How long after requests queued the belief stays at or below what was delivered then.
const HOLD_NS: u64 = 4_000_000_000;
/// A best that has not been seen again for so long is forgotten, bit by bit.
const FADE_PER_WINDOW: u64 = 256;
/// By this part of itself the belief grows in a window.
const GROWTH: u64 = 20;
/// And by this one, in the first second beyond where requests queued last.
const GROWTH_CAREFUL: u64 = 100;

/// One direction of the device.
#[derive(Clone, Copy, Debug)]
struct Direction {
    bandwidth: u64,
    /// The least nanoseconds for a mebibyte that background requests took. 0: not known.
    best_ns_per_mib: u64,
    /// Where requests queued last, and when.
    plateau: u64,
    queued_at: Option<Instant>,
    /// What of the window is over.
    bytes: u64,
    background_bytes: u64,
    background_ns: u64,
    /// Background work wanted more than it was granted.
    wanted: bool,
    /// Windows in a row in which requests queued: at the device, or although they were held back.
    queued_windows: u32,
    slow_windows: u32,
}

/// The device as the samples show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceModel {
    read: Direction,
    write: Direction,
    barrier_ns: u64,
    client_reads: Requests,
    client_writes: Requests,
    window_start: Option<Instant>,
}

/// What clients wait for, in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    count: u64,
    ns: u64,
    /// The least mean time of a window. 0: not known.
    best_ns: u64,
}

impl Requests {
    fn add(&mut self, count: u64, ns: u64) {
        self.count += count;
        self.ns += ns;
    }

    /// The window is over: whether they took long in it.
    fn harm(&mut self) -> bool {
        let (count, ns) = (std::mem::take(&mut self.count), std::mem::take(&mut self.ns));
        if count < CLIENT_REQUESTS_MIN {
            return false;
        }
        let mean = (ns / count).max(1);
        let best = self.best_ns;
        self.best_ns = match best {
            0 => mean,
            best => (best + best / FADE_PER_WINDOW + 1).min(mean),
        };
        best > 0 && mean >= best.saturating_mul(HARM_TIMES) && mean >= best + HARM_NS
    }
}

impl Direction {
    fn new(bandwidth: u64) -> Direction {
        Direction {
            bandwidth: bandwidth.clamp(BANDWIDTH_MIN, BANDWIDTH_MAX),
            best_ns_per_mib: 0,
            plateau: 0,
            queued_at: None,
            bytes: 0,
            background_bytes: 0,
            background_ns: 0,
            wanted: false,
            queued_windows: 0,
            slow_windows: 0,
        }
    }

    fn add(&mut self, class: IoClass, bytes: u64, ns: u64) {
        self.bytes += bytes;
        if is_background(class) {
            self.background_bytes += bytes;
            self.background_ns += ns;
        }
    }

    /// Whether background requests took several times as long as at best in the window that is
    /// over.
    fn is_slow(&mut self, window_ns: u64) -> bool {
        if self.background_bytes < BYTES_MIN {
            return false;
        }
        let ns_per_mib = scale(self.background_ns, 1 << 20, self.background_bytes).max(1);
        // One that was outstanding for little of the time has not met a limit.
        let busy = self.background_ns >= window_ns / 4;
        let best = self.best_ns_per_mib;
        let slow = best > 0 && busy && ns_per_mib >= best.saturating_mul(QUEUED_TIMES);
        self.slow_windows = if slow && self.wanted { self.slow_windows + 1 } else { 0 };
        self.best_ns_per_mib = match best {
            0 => ns_per_mib,
            _ if self.slow_windows > 2 * WINDOWS_MIN => ns_per_mib / 2,
            best => best.saturating_add(best / FADE_PER_WINDOW).min(ns_per_mib),
        };
        slow
    }

    /// The window is over.
    fn learn(&mut self, now: Instant, window_ns: u64, harmed: bool) {
        let slow = self.is_slow(window_ns);
        let delivered = scale(self.bytes, 1_000_000_000, window_ns);
        let limit = slow && !self.wanted && harmed;
        self.queued_windows = if limit { self.queued_windows + 1 } else { 0 };
        if self.queued_windows >= WINDOWS_MIN {
            let least = scale(self.bandwidth, 1000 - LOSS_MAX, 1000);
            let found = delivered.max(least).min(self.bandwidth);
            self.bandwidth = found.clamp(BANDWIDTH_MIN, BANDWIDTH_MAX);
            self.plateau = self.bandwidth;
            self.queued_at = Some(now);
        } else if self.wanted {
            let since = self.queued_at.map_or(u64::MAX, |at| now.0.saturating_sub(at.0));
            let grown = |part: u64| self.bandwidth.saturating_add(self.bandwidth / part);
            let next = match since {
                since if since < HOLD_NS => grown(GROWTH).min(self.plateau.max(self.bandwidth)),
                since if since < HOLD_NS + 1_000_000_000 => grown(GROWTH_CAREFUL),
                _ => grown(GROWTH),
            };
            self.bandwidth = next.min(BANDWIDTH_MAX);
        }
        (self.bytes, self.background_bytes, self.background_ns, self.wanted) = (0, 0, 0, false);
    }
}

impl DeviceModel {
    pub(crate) fn new(hint: DeviceProfile) -> DeviceModel {
        DeviceModel {
            read: Direction::new(hint.read_bytes_per_second),
            write: Direction::new(hint.write_bytes_per_second),
            barrier_ns: hint.barrier_ns.max(1),
            client_reads: Requests::default(),
            client_writes: Requests::default(),
            window_start: None,
        }
    }

    pub(crate) fn profile(&self) -> DeviceProfile {
        DeviceProfile {
            read_bytes_per_second: self.read.bandwidth,
            write_bytes_per_second: self.write.bandwidth,
            barrier_ns: self.barrier_ns,
        }
    }

    /// Background work found nothing left to be granted for reads, or for writes.
    pub(crate) fn wanted(&mut self, reads: bool, writes: bool) {
        self.read.wanted |= reads;
        self.write.wanted |= writes;
    }

    /// Takes note of a sample; learns when a window is over.
    pub(crate) fn observe(&mut self, now: Instant, sample: &Sample) {
        for (class, counts) in IoClass::ALL.into_iter().zip(&sample.classes) {
            self.read.add(class, counts.read_bytes, counts.read_ns);
            self.write.add(class, counts.write_bytes, counts.write_ns);
            match class {
                IoClass::Client => self.client_reads.add(counts.reads, counts.read_ns),
                IoClass::Wal => {
                    self.client_writes
                        .add(counts.writes + counts.syncs, counts.write_ns + counts.sync_ns);
                }
                _ => {}
            }
            if let Some(mean) = counts.sync_ns.checked_div(counts.syncs) {
                self.barrier_ns = (self.barrier_ns / 8 * 7 + mean / 8).max(1);
            }
        }
        let start = *self.window_start.get_or_insert(now);
        let window_ns = now.0.saturating_sub(start.0);
        if window_ns < WINDOW_NS {
            return;
        }
        self.window_start = Some(now);
        let read_harm = self.client_reads.harm();
        let write_harm = self.client_writes.harm();
        self.read.learn(now, window_ns, read_harm);
        self.write.learn(now, window_ns, read_harm || write_harm);
    }
}

pub(crate) fn is_background(class: IoClass) -> bool {
    !matches!(class, IoClass::Client | IoClass::Wal | IoClass::Manifest)
}

/// `value * by / of`, without overflow. 0 if `of` is 0.
pub(crate) fn scale(value: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
