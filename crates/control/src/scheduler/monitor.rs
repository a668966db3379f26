//! Measures how much of the device clients use and how fast they fill memtables, smoothed.

use crate::arithmetic::{NS_PER_SECOND, follow, per_second};
use crate::event::{Processors, Sample};
use crate::types::{Instant, IoClass};

/// A rate that follows a rise within `rise_ns` and a fall within `fall_ns`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Smoothed {
    per_second: u64,
    rise_ns: u64,
    fall_ns: u64,
}

impl Smoothed {
    pub(super) const fn new(rise_ns: u64, fall_ns: u64) -> Smoothed {
        Smoothed { per_second: 0, rise_ns, fall_ns }
    }

    pub(crate) fn add(&mut self, amount: u64, over_ns: u64) {
        self.follow(per_second(amount, over_ns), over_ns);
    }

    /// Follows a rate that was `now` for `over_ns`.
    pub(super) fn follow(&mut self, now: u64, over_ns: u64) {
        let time_ns = if now > self.per_second { self.rise_ns } else { self.fall_ns };
        self.per_second = follow(self.per_second, now, over_ns, time_ns);
    }

    pub(crate) fn per_second(&self) -> u64 {
        self.per_second
    }
}

/// Client bandwidth. A peak counts at once. Its end counts only after a second, because clients
/// that wait use less of the device, and must not get less for that.
const CLIENT: Smoothed = Smoothed::new(20_000_000, NS_PER_SECOND);
/// The rate at which memtables fill. It decides whether a flush ends before the next one is due.
pub(crate) const FILL: Smoothed = Smoothed::new(250_000_000, NS_PER_SECOND);
/// The rate at which memtables filled in the last peak.
const FILL_PEAK: Smoothed = Smoothed::new(250_000_000, 20 * NS_PER_SECOND);
/// An average over peaks and valleys.
pub(crate) const LONG: Smoothed = Smoothed::new(30 * NS_PER_SECOND, 30 * NS_PER_SECOND);

/// Clients without I/O or writes for this time are not active.
const ACTIVE_NS: u64 = NS_PER_SECOND;

/// The smoothed rates, in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Monitor {
    client_read: Smoothed,
    client_write: Smoothed,
    fill: Smoothed,
    fill_peak: Smoothed,
    fill_long: Smoothed,
    deep_long: Smoothed,
    /// How the machine's processors are used, and whether others have most of them.
    processors: Processors,
    is_short_of_processor: bool,
    last: Option<Instant>,
    /// When clients last used the device or wrote into memtables.
    active_at: Option<Instant>,
}

impl Default for Monitor {
    fn default() -> Monitor {
        Monitor {
            client_read: CLIENT,
            client_write: CLIENT,
            fill: FILL,
            fill_peak: FILL_PEAK,
            fill_long: LONG,
            deep_long: LONG,
            processors: Processors::default(),
            is_short_of_processor: false,
            last: None,
            active_at: None,
        }
    }
}

impl Monitor {
    /// Takes in a sample.
    pub(crate) fn observe(&mut self, now: Instant, sample: &Sample) {
        self.processors = sample.processors;
        self.is_short_of_processor = sample.processors.are_short(self.is_short_of_processor);
        let Some(last) = self.last.replace(now) else { return };
        let over_ns = now.0.saturating_sub(last.0).max(1);
        let class = |class: IoClass| sample.classes[class.index()];
        let (client, wal, deep) =
            (class(IoClass::Client), class(IoClass::Wal), class(IoClass::Deep(1)));
        let read = client.read_bytes + wal.read_bytes;
        let written = client.write_bytes + wal.write_bytes;
        if read + written + sample.user_bytes > 0 {
            self.active_at = Some(now);
        }
        self.client_read.add(read, over_ns);
        self.client_write.add(written, over_ns);
        self.fill.add(sample.user_bytes, over_ns);
        self.fill_peak.add(sample.user_bytes, over_ns);
        self.fill_long.add(sample.user_bytes, over_ns);
        self.deep_long.add(deep.write_bytes, over_ns);
    }

    pub(crate) fn client_read(&self) -> u64 {
        self.client_read.per_second
    }

    pub(crate) fn client_write(&self) -> u64 {
        self.client_write.per_second
    }

    /// Returns the rate at which clients write into memtables, in bytes per second.
    pub(crate) fn fill(&self) -> u64 {
        self.fill.per_second
    }

    /// Returns that rate in the last peak.
    pub(crate) fn fill_peak(&self) -> u64 {
        self.fill_peak.per_second
    }

    /// Returns the bytes that deep compactions write for each byte of clients, in the long run.
    pub(crate) fn deep_amplification(&self) -> u64 {
        let (deep, fill) = (self.deep_long.per_second, self.fill_long.per_second);
        match fill {
            0..=0xFFFF => DEEP_AMPLIFICATION,
            fill => (deep / fill).clamp(1, 20),
        }
    }

    /// Returns the bytes per second that deep compactions write in the long run.
    pub(crate) fn deep_write(&self) -> u64 {
        self.deep_long.per_second
    }

    /// Returns how the machine's processors were used lately.
    pub(crate) fn processors(&self) -> Processors {
        self.processors
    }

    /// Returns true if other programs have most of the processors and nothing is left.
    pub(crate) fn is_short_of_processor(&self) -> bool {
        self.is_short_of_processor
    }

    /// Returns true if clients were active lately.
    pub(crate) fn clients_active(&self) -> bool {
        let lately = |(now, at): (Instant, Instant)| now.0 - at.0 < ACTIVE_NS;
        self.last.zip(self.active_at).is_some_and(lately)
    }
}

/// The default before anything was measured: half of the multiplier of levels, for two levels.
const DEEP_AMPLIFICATION: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_short_of_processors_until_there_are_clearly_enough() {
        let mut monitor = Monitor::default();
        let mut after = |others, idle| {
            let processors = Processors { others, idle };
            monitor.observe(Instant(1), &Sample { processors, ..Sample::default() });
            monitor.is_short_of_processor()
        };
        assert!(!after(0, 0), "the system does not tell");
        assert!(!after(450, 50) && !after(900, 150), "nothing has begun between the limits");
        assert!(after(500, 99));
        assert!(after(450, 50) && after(900, 150), "nothing has ended between the limits");
        assert!(!after(399, 0));
        assert!(after(900, 0) && !after(900, 200));
    }
}
