//! What is believed of the device: how fast it reads and writes, and what a barrier costs. Learned
//! from what the driver's samples say it delivered, never by probes of its own (SILK takes the
//! bandwidth as a constant).
//!
//! How: requests of background work that take several times as long as they did at best have
//! queued, so what was delivered meanwhile is all that there is: that becomes the belief. When
//! background work wants more than the belief grants and nothing queues, the belief grows, at
//! first back to where requests queued last, and only after a pause beyond it. What must stay
//! true: a belief is never below [`BANDWIDTH_MIN`], and follows a device that became faster or
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
/// Client reads have queued when they take so many times as long as they did at best, and longer
/// by [`CLIENT_QUEUED_NS`].
const CLIENT_QUEUED_TIMES: u64 = 4;
const CLIENT_QUEUED_NS: u64 = 1_000_000;
/// Fewer reads in a window say nothing.
const CLIENT_READS_MIN: u64 = 4;
/// Fewer bytes in a window say nothing.
const BYTES_MIN: u64 = 512 << 10;
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
}

/// The device as the samples show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceModel {
    read: Direction,
    write: Direction,
    barrier_ns: u64,
    /// The least mean time of clients' reads. 0: not known.
    client_best_ns: u64,
    client_reads: u64,
    client_read_ns: u64,
    window_start: Option<Instant>,
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
        }
    }

    fn add(&mut self, class: IoClass, bytes: u64, ns: u64) {
        self.bytes += bytes;
        if is_background(class) {
            self.background_bytes += bytes;
            self.background_ns += ns;
        }
    }

    /// Whether background requests queued in the window that is over.
    fn queued(&mut self, window_ns: u64) -> bool {
        if self.background_bytes < BYTES_MIN {
            return false;
        }
        let ns_per_mib = scale(self.background_ns, 1 << 20, self.background_bytes).max(1);
        // One that was outstanding for little of the time has not met a limit.
        let busy = self.background_ns >= window_ns / 4;
        let best = self.best_ns_per_mib;
        let queued = best > 0 && busy && ns_per_mib >= best.saturating_mul(QUEUED_TIMES);
        self.best_ns_per_mib = match best {
            0 => ns_per_mib,
            best => best.saturating_add(best / FADE_PER_WINDOW).min(ns_per_mib),
        };
        queued
    }

    fn learn(&mut self, now: Instant, window_ns: u64, queued: bool) {
        let delivered = scale(self.bytes, 1_000_000_000, window_ns);
        if queued {
            // A window may have been full only in part: what was delivered shortly before counts.
            let recent = self.queued_at.is_some_and(|at| now.0 - at.0 < 4 * WINDOW_NS);
            let least = if recent { self.plateau / 8 * 7 } else { self.bandwidth / 2 };
            let found = delivered.max(least.min(self.bandwidth));
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
        let Direction { bandwidth, best_ns_per_mib, plateau, queued_at, .. } = *self;
        *self = Direction { best_ns_per_mib, plateau, queued_at, ..Direction::new(bandwidth) };
    }
}

impl DeviceModel {
    pub(crate) fn new(hint: DeviceProfile) -> DeviceModel {
        DeviceModel {
            read: Direction::new(hint.read_bytes_per_second),
            write: Direction::new(hint.write_bytes_per_second),
            barrier_ns: hint.barrier_ns.max(1),
            client_best_ns: 0,
            client_reads: 0,
            client_read_ns: 0,
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
            if let Some(mean) = counts.sync_ns.checked_div(counts.syncs) {
                self.barrier_ns = (self.barrier_ns / 8 * 7 + mean / 8).max(1);
            }
            if class == IoClass::Client {
                self.client_reads += counts.reads;
                self.client_read_ns += counts.read_ns;
            }
        }
        let start = *self.window_start.get_or_insert(now);
        let window_ns = now.0.saturating_sub(start.0);
        if window_ns < WINDOW_NS {
            return;
        }
        self.window_start = Some(now);
        let clients_queued = self.clients_queued();
        let queued = self.read.queued(window_ns);
        let background_reads = self.read.background_bytes >= BYTES_MIN.max(self.read.bytes / 4);
        self.read.learn(now, window_ns, queued || clients_queued && background_reads);
        let queued = self.write.queued(window_ns);
        self.write.learn(now, window_ns, queued);
    }

    fn clients_queued(&mut self) -> bool {
        let (reads, ns) =
            (std::mem::take(&mut self.client_reads), std::mem::take(&mut self.client_read_ns));
        if reads < CLIENT_READS_MIN {
            return false;
        }
        let mean = (ns / reads).max(1);
        let best = self.client_best_ns;
        self.client_best_ns = match best {
            0 => mean,
            best => best.saturating_add(best / FADE_PER_WINDOW + 1).min(mean),
        };
        best > 0 && mean >= best * CLIENT_QUEUED_TIMES && mean >= best + CLIENT_QUEUED_NS
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
