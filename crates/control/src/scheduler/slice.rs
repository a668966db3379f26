//! The size of grants. While clients are active a slice takes neither the device nor a processor
//! for much more than a millisecond, which is the longest that more urgent work waits behind it.

use super::Lane;
use crate::arithmetic::{NS_PER_SECOND, scale};

/// While clients are active, the longest time for which a slice takes the device.
const DEVICE_NS_MAX: u64 = 1_250_000;
/// The longest CPU time of a slice, estimated from the slices before it.
const CPU_NS_MAX: u64 = 1_000_000;
/// The smallest slice, however slow device and processor are.
const BYTES_MIN: u64 = 64 << 10;
/// Number of steps over which the CPU time is averaged.
const STEPS: u64 = 16;

/// The size of slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    bytes_max: u64,
    /// CPU nanoseconds for one MiB, for flushes and for compactions; 0 if unknown.
    cpu_ns: [u64; 2],
}

impl Slices {
    pub(crate) fn new(bytes_max: u64) -> Slices {
        Slices { bytes_max: bytes_max.max(1), cpu_ns: [0; 2] }
    }

    /// Sets the largest slice. What was measured stays.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max.max(1);
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Takes in the CPU time of a step. It is counted for the granted bytes, because the grant
    /// bounds the entries that a step handles. Files are read and written in larger pieces, and
    /// with fewer bytes if they are compressed.
    pub(crate) fn observe(&mut self, lane: Lane, granted: u64, cpu_ns: u64) {
        if granted < BYTES_MIN || cpu_ns == 0 {
            return;
        }
        let now = scale(cpu_ns, 1 << 20, granted);
        let mean = &mut self.cpu_ns[usize::from(lane != Lane::Flush)];
        *mean = if *mean == 0 { now } else { (*mean * (STEPS - 1) + now) / STEPS };
    }

    /// Returns the bytes of the next slice in `lane`. `device` is the bandwidth that may be asked
    /// of the device; `beside_clients` is true while clients are active.
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
