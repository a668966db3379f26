//! Learns how long the peaks and the valleys of clients last, and forecasts when the present one
//! ends.
//!
//! 1. [`Phases::observe`] follows the load of clients: the bytes that they write into memtables and
//!    read from the device. It keeps the level of recent peaks and that of recent valleys.
//! 2. A peak begins when the load comes near the upper level, and ends when it comes near the lower
//!    one. The lengths of peaks and of valleys have a mean and a deviation each.
//! 3. [`Phases::forecast`] says whether clients are in a peak, how long it will last, and how long
//!    the next phase.
//!
//! What must stay true: without a pattern there is no forecast. Levels that are close, lengths that
//! differ much, fewer than [`COUNT_MIN`] of either kind, or a phase that lasts longer than any did
//! before, are no pattern.

use super::monitor::Smoothed;
use crate::arithmetic::{NS_PER_SECOND, follow};
use crate::types::Instant;

/// The load is smoothed over this time.
const LOAD: Smoothed = Smoothed::new(250_000_000, 250_000_000);
/// The levels of peaks and valleys are forgotten within this time.
const HIGH: Smoothed = Smoothed::new(100_000_000, 300 * NS_PER_SECOND);
const LOW: Smoothed = Smoothed::new(300 * NS_PER_SECOND, 100_000_000);
/// Peaks have at least this many times the load of valleys.
const TIMES_MIN: u64 = 2;
/// Peaks and valleys of each kind before anything is forecast.
const COUNT_MIN: u32 = 3;
/// The deviation may be this part of the mean.
const DEVIATION_PART: u64 = 4;
/// Lengths are averaged over about this many phases.
const FOLLOW_PHASES: u64 = 4;

/// How long phases of one kind last, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    mean: u64,
    /// The mean difference from the mean.
    deviation: u64,
    count: u32,
}

impl Lengths {
    fn add(&mut self, length: u64) {
        if self.count == 0 {
            self.mean = length;
        }
        let off = self.mean.abs_diff(length);
        self.deviation = follow(self.deviation, off, 1, FOLLOW_PHASES);
        self.mean = follow(self.mean, length, 1, FOLLOW_PHASES);
        self.count = self.count.saturating_add(1);
    }

    fn is_known(&self) -> bool {
        self.count >= COUNT_MIN && self.deviation <= self.mean / DEVIATION_PART
    }
}

/// The present phase of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    /// Whether it is a peak.
    pub(crate) peak: bool,
    /// Nanoseconds until it ends.
    pub(crate) left_ns: u64,
    /// Nanoseconds that the next phase lasts.
    pub(crate) next_ns: u64,
    /// Bytes a second that clients write and read in a valley.
    pub(crate) valley: u64,
}

/// What was learned of peaks and valleys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phases {
    load: Smoothed,
    high: Smoothed,
    low: Smoothed,
    /// The time since the first sample.
    known_ns: u64,
    peak: bool,
    /// When the present phase began; `None` if it was not seen to begin.
    since: Option<Instant>,
    /// Lengths of valleys, and of peaks.
    lengths: [Lengths; 2],
}

impl Default for Phases {
    fn default() -> Phases {
        let lengths = [Lengths::default(); 2];
        Phases { load: LOAD, high: HIGH, low: LOW, known_ns: 0, peak: false, since: None, lengths }
    }
}

impl Phases {
    /// Takes in the bytes that clients wrote and read in `over_ns` up to `now`.
    pub(crate) fn observe(&mut self, now: Instant, bytes: u64, over_ns: u64) {
        self.load.add(bytes, over_ns);
        let load = self.load.per_second();
        self.high.follow(load, over_ns);
        // Within the first second the load itself is only coming up to what it is.
        self.known_ns = self.known_ns.saturating_add(over_ns);
        self.low.follow(load, if self.known_ns < NS_PER_SECOND { u64::MAX } else { over_ns });
        let (high, low) = (self.high.per_second(), self.low.per_second());
        if high < low.saturating_mul(TIMES_MIN).max(1) {
            (self.peak, self.since) = (false, None);
            return;
        }
        // A load between the levels changes nothing.
        let part = (high - low) / 8;
        let changes = if self.peak { load < low + 3 * part } else { load > low + 5 * part };
        if !changes {
            return;
        }
        if let Some(since) = self.since {
            self.lengths[usize::from(self.peak)].add(now.0.saturating_sub(since.0));
        }
        (self.peak, self.since) = (!self.peak, Some(now));
    }

    /// Returns the present phase and when it ends; `None` if no pattern is known.
    pub(crate) fn forecast(&self, now: Instant) -> Option<Phase> {
        let [own, next] = [self.peak, !self.peak].map(|peak| self.lengths[usize::from(peak)]);
        if !own.is_known() || !next.is_known() {
            return None;
        }
        let elapsed = now.0.saturating_sub(self.since?.0);
        // It is overdue by more than phases ever differ: the pattern has ended.
        if elapsed > own.mean.saturating_add(2 * own.deviation).saturating_add(NS_PER_SECOND) {
            return None;
        }
        Some(Phase {
            peak: self.peak,
            left_ns: own.mean.saturating_sub(elapsed),
            next_ns: next.mean,
            valley: self.low.per_second(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE_NS: u64 = 10_000_000;

    /// Runs through phases of `(load, seconds)`.
    fn run(phases: &mut Phases, now: &mut Instant, loads: &[(u64, u64)]) {
        for &(load, seconds) in loads {
            for _ in 0..seconds * NS_PER_SECOND / SAMPLE_NS {
                *now = Instant(now.0 + SAMPLE_NS);
                phases.observe(*now, load / 100, SAMPLE_NS);
            }
        }
    }

    fn seconds(ns: u64) -> u64 {
        (ns + NS_PER_SECOND / 2) / NS_PER_SECOND
    }

    #[test]
    fn regular_peaks_are_forecast_after_a_few() {
        let (mut phases, mut now) = (Phases::default(), Instant(0));
        for _ in 0..3 {
            run(&mut phases, &mut now, &[(80_000_000, 10), (20_000_000, 15)]);
            assert_eq!(phases.forecast(now), None);
        }
        run(&mut phases, &mut now, &[(80_000_000, 10), (20_000_000, 15), (80_000_000, 4)]);
        let phase = phases.forecast(now).expect("a pattern");
        assert!(phase.peak);
        assert_eq!((seconds(phase.left_ns), seconds(phase.next_ns)), (6, 15));
        run(&mut phases, &mut now, &[(80_000_000, 6), (20_000_000, 5)]);
        let phase = phases.forecast(now).expect("a pattern");
        assert!(!phase.peak);
        assert_eq!((seconds(phase.left_ns), seconds(phase.next_ns)), (10, 10));
        assert_eq!(phase.valley / 1_000_000, 20);
        // A valley that does not end is no pattern.
        run(&mut phases, &mut now, &[(20_000_000, 13)]);
        assert_eq!(phases.forecast(now), None);
    }

    #[test]
    fn a_steady_load_and_irregular_peaks_are_no_pattern() {
        let (mut phases, mut now) = (Phases::default(), Instant(0));
        run(&mut phases, &mut now, &[(50_000_000, 60), (60_000_000, 60), (40_000_000, 60)]);
        assert_eq!(phases.forecast(now), None);
        for length in [2, 19, 3, 30, 7, 23, 2] {
            run(&mut phases, &mut now, &[(80_000_000, length), (20_000_000, 32 - length)]);
            assert_eq!(phases.forecast(now), None, "{:?}", phases.lengths);
        }
    }
}
