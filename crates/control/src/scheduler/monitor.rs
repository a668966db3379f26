//! What clients use of the device and how fast they fill the memtables, smoothed.

use crate::arithmetic::{NS_PER_SECOND, follow, per_second};
use crate::event::Sample;
use crate::types::{Instant, IoClass};

/// A rate that follows a rise within a few samples and a fall over `fall_ns`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Smoothed {
    per_second: u64,
    rise_ns: u64,
    fall_ns: u64,
}

impl Smoothed {
    const fn new(rise_ns: u64, fall_ns: u64) -> Smoothed {
        Smoothed { per_second: 0, rise_ns, fall_ns }
    }

    pub(crate) fn add(&mut self, amount: u64, over_ns: u64) {
        let now = per_second(amount, over_ns);
        let time_ns = if now > self.per_second { self.rise_ns } else { self.fall_ns };
        self.per_second = follow(self.per_second, now, over_ns, time_ns);
    }

    pub(crate) fn per_second(&self) -> u64 {
        self.per_second
    }
}

/// Clients' bandwidth: a peak is seen at once. Its end is believed after a second only: clients
/// that wait use less of the device, and must not get less for that.
const CLIENT: Smoothed = Smoothed::new(20_000_000, NS_PER_SECOND);
/// What memtables fill up with: what counts is whether a flush ends before the next one is due.
pub(crate) const FILL: Smoothed = Smoothed::new(250_000_000, NS_PER_SECOND);
/// The same as it was in the last peak.
const FILL_PEAK: Smoothed = Smoothed::new(250_000_000, 20 * NS_PER_SECOND);
/// What happens over a peak and a valley.
const LONG: Smoothed = Smoothed::new(30 * NS_PER_SECOND, 30 * NS_PER_SECOND);

/// Clients that did nothing for so long are gone.
const ACTIVE_NS: u64 = NS_PER_SECOND;

/// Bytes a second, as they are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Monitor {
    client_read: Smoothed,
    client_write: Smoothed,
    fill: Smoothed,
    fill_peak: Smoothed,
    fill_long: Smoothed,
    deep_long: Smoothed,
    last: Option<Instant>,
    /// When clients used the device or wrote into memtables last.
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
            last: None,
            active_at: None,
        }
    }
}

impl Monitor {
    pub(crate) fn observe(&mut self, now: Instant, sample: &Sample) {
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

    /// Bytes a second that clients write into memtables.
    pub(crate) fn fill(&self) -> u64 {
        self.fill.per_second
    }

    /// The same in the last peak.
    pub(crate) fn fill_peak(&self) -> u64 {
        self.fill_peak.per_second
    }

    /// How many bytes deep compactions wrote for each byte of clients, in the long run.
    pub(crate) fn deep_amplification(&self) -> u64 {
        let (deep, fill) = (self.deep_long.per_second, self.fill_long.per_second);
        match fill {
            0..=0xFFFF => DEEP_AMPLIFICATION,
            fill => (deep / fill).clamp(1, 20),
        }
    }

    /// Bytes a second that deep compactions write in the long run.
    pub(crate) fn deep_write(&self) -> u64 {
        self.deep_long.per_second
    }

    /// Whether clients have used the device lately.
    pub(crate) fn clients_active(&self) -> bool {
        let lately = |(now, at): (Instant, Instant)| now.0 - at.0 < ACTIVE_NS;
        self.last.zip(self.active_at).is_some_and(lately)
    }
}

/// What is assumed before anything was seen: half of the multiplier between levels, for two levels.
const DEEP_AMPLIFICATION: u64 = 10;
