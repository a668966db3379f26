//! How much a job is granted at a time. While clients are there a slice holds neither the device
//! nor a processor for longer than about a millisecond: that is the longest that anything more
//! urgent waits behind it.

use super::Lane;
use crate::arithmetic::{NS_PER_SECOND, scale};

/// While clients use the device, a slice takes it no longer than this.
const DEVICE_NS_MAX: u64 = 1_250_000;
/// Nor a processor, after what the slices before it took.
const CPU_NS_MAX: u64 = 1_000_000;
/// But no slice is smaller, however slow they are.
const BYTES_MIN: u64 = 64 << 10;
/// What the last step took counts as one of so many.
const STEPS: u64 = 16;

/// The size of slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    bytes_max: u64,
    /// Nanoseconds of a processor for a mebibyte, flushes and compactions. 0: not known.
    cpu_ns: [u64; 2],
}

impl Slices {
    pub(crate) fn new(bytes_max: u64) -> Slices {
        Slices { bytes_max: bytes_max.max(1), cpu_ns: [0; 2] }
    }

    /// What was measured outlives a change of what is allowed.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max.max(1);
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// A step that was granted so much took a processor so long. What counts is the grant: it
    /// bounds the entries that a step goes through, while files are read and written in larger
    /// pieces, and fewer bytes of them if they are compressed.
    pub(crate) fn observe(&mut self, lane: Lane, granted: u64, cpu_ns: u64) {
        if granted < BYTES_MIN || cpu_ns == 0 {
            return;
        }
        let now = scale(cpu_ns, 1 << 20, granted);
        let mean = &mut self.cpu_ns[usize::from(lane != Lane::Flush)];
        *mean = if *mean == 0 { now } else { (*mean * (STEPS - 1) + now) / STEPS };
    }

    /// Bytes of the next slice of a job in `lane`. `device`: bytes a second that may be asked of
    /// it; `beside_clients`: they use it.
    pub(crate) fn bytes(&self, lane: Lane, device: u64, beside_clients: bool) -> u64 {
        if !beside_clients {
            return self.bytes_max;
        }
        let by_device = scale(device, DEVICE_NS_MAX, NS_PER_SECOND);
        let by_cpu = match self.cpu_ns[usize::from(lane != Lane::Flush)] {
            0 => u64::MAX,
            ns => scale(1 << 20, CPU_NS_MAX, ns),
        };
        let pages = by_device.min(by_cpu) / BYTES_MIN;
        (pages * BYTES_MIN).clamp(BYTES_MIN, self.bytes_max.max(BYTES_MIN))
    }
}
