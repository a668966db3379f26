//! Measures how fast flushes and compactions work off what clients write. The write controller uses
//! these rates to forecast stalls.

use crate::arithmetic::{follow, per_second, scale};
use crate::event::Sample;
use crate::options::DeviceProfile;
use crate::types::{Instant, IoClass};
use crate::write_controller::Drains;

/// The time over which each rate is smoothed.
const FLUSH_NS: u64 = 200_000_000;
const LEVEL0_NS: u64 = 2_000_000_000;
const DEEP_NS: u64 = 30_000_000_000;
/// Deep work that is urgent shows what it can do, also where it lacks a processor: the time over
/// which that is measured, and after which it is forgotten.
const DEEP_URGENT_NS: u64 = 10_000_000_000;
const DEEP_KNOWN_NS: u64 = 60_000_000_000;
/// Bytes that deep compactions write for each byte of clients: the default, and the maximum.
const DEEP_AMPLIFICATION: u64 = 8;
const DEEP_AMPLIFICATION_MAX: u64 = 40;

/// Bytes per second that each kind of work wrote while there was any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeasuredDrains {
    flush: u64,
    level0: u64,
    deep_long: u64,
    /// What deep work wrote while its debt was urgent, and when that was last so.
    deep_urgent: Option<(u64, Instant)>,
    fill_long: u64,
    /// Bytes of memtables for a thousand bytes that their flush writes; 0 if unknown.
    expansion: u64,
    last: Option<Instant>,
}

/// Updates `rate`. The first measurement is taken as it is.
fn measure(rate: &mut u64, bytes: u64, over_ns: u64, time_ns: u64) {
    let now = per_second(bytes, over_ns);
    *rate = if *rate == 0 { now } else { follow(*rate, now, over_ns, time_ns) };
}

impl MeasuredDrains {
    /// Takes in a sample. `running` says whether flushes, and compactions out of level 0, are
    /// running. `urgent` is the device's bandwidth if deep compactions are running, and must work
    /// off their debt soon.
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        sample: &Sample,
        running: [bool; 2],
        urgent: Option<u64>,
    ) {
        let Some(last) = self.last.replace(now) else { return };
        let over_ns = now.0.saturating_sub(last.0).max(1);
        let written = |class: IoClass| sample.classes[class.index()].write_bytes;
        // Time in which a job runs and waits for the device counts. Time without a job says nothing
        // about the rate.
        if running[0] || written(IoClass::Flush) > 0 {
            measure(&mut self.flush, written(IoClass::Flush), over_ns, FLUSH_NS);
        }
        if running[1] || written(IoClass::L0) > 0 {
            measure(&mut self.level0, written(IoClass::L0), over_ns, LEVEL0_NS);
        }
        let before = self.deep_urgent.filter(|(_, at)| now.0.saturating_sub(at.0) < DEEP_KNOWN_NS);
        self.deep_urgent = before;
        if let Some(bandwidth) = urgent {
            let before = before.map_or(bandwidth, |(rate, _)| rate);
            let rate = per_second(written(IoClass::Deep(1)), over_ns);
            self.deep_urgent = Some((follow(before, rate, over_ns, DEEP_URGENT_NS), now));
        }
        measure(&mut self.deep_long, written(IoClass::Deep(1)), over_ns, DEEP_NS);
        measure(&mut self.fill_long, sample.user_bytes, over_ns, DEEP_NS);
    }

    /// Takes in the end of a flush of memtables of `memory_bytes`, which wrote `written` bytes.
    pub(crate) fn flushed(&mut self, memory_bytes: u64, written: u64) {
        if written > 0 {
            self.expansion = scale(memory_bytes, 1000, written).clamp(500, 8000);
        }
    }

    /// Returns the bytes of memtables that correspond to `written` bytes of their flush.
    pub(crate) fn uncompressed(&self, written: u64) -> u64 {
        if self.expansion == 0 { written } else { scale(written, self.expansion, 1000) }
    }

    /// Returns the drains, in bytes of clients per second. What was never measured is derived from
    /// the device. `barriers_ns` is the time that a job may wait for its barriers.
    pub(crate) fn of(
        &self,
        device: DeviceProfile,
        barriers_ns: u64,
        level0_amplification: u64,
        fill: u64,
    ) -> Drains {
        let write = device.write_bytes_per_second;
        let flush = if self.flush == 0 { write / 2 } else { self.flush };
        let level0 = if self.level0 == 0 { write / 3 } else { self.level0 };
        let deep_amplification = match self.fill_long {
            0..=0xFFFF => DEEP_AMPLIFICATION,
            fill => (self.deep_long / fill).clamp(DEEP_AMPLIFICATION / 2, DEEP_AMPLIFICATION_MAX),
        };
        let above = fill.saturating_mul(1 + level0_amplification);
        let deep = (write / 10 * 9).saturating_sub(above).max(write / 3);
        let shown = self.deep_urgent.map_or(u64::MAX, |(rate, _)| rate);
        Drains {
            barriers_ns,
            flush: self.uncompressed(flush),
            level0: level0 / level0_amplification.max(1),
            level0_bandwidth: level0,
            deep: (deep / deep_amplification).max(1),
            deep_bandwidth: deep,
            deep_shown: (shown / deep_amplification).max(1),
            fill,
        }
    }
}
