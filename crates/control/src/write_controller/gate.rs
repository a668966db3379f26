//! The gate at which writers wait. It counts the bytes that its rate has let pass.
//!
//! 1. [`Gate::publish`] sets the rate. The count goes on from where it is.
//! 2. A writer books the next place in the count, for its bytes ([`Gate::book`]).
//! 3. It goes on when the count has reached its place ([`Gate::wait`]). If the rate changes
//!    meanwhile, the wait changes with it.

use std::time::Duration;

use super::{Admission, AdmissionState};
use crate::arithmetic::{NS_PER_SECOND, scale};
use crate::types::Instant;

/// The time over which unused bytes collect, so that a burst may pass after a pause.
const BURST_NS: u64 = 1_000_000;
/// A writer that would wait no longer than this goes on at once, and later writers wait longer
/// instead. A short sleep costs more than it helps: a timer and two context switches.
const AHEAD_NS: u64 = 100_000;

/// A gate, for all writers or for those of a column family. The engine and the simulator let
/// writers wait with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gate {
    admission: Admission,
    /// Bytes that the rates have let pass up to `since`.
    passed: u64,
    /// The time of the last change of the rate.
    since: Instant,
    /// The next place.
    booked: u64,
    /// The next place of low-priority writers, which together get a part of the rate.
    booked_slower: u64,
}

impl Gate {
    /// Sets the admission from `now` on. Writers that passed an open gate have booked nothing.
    pub fn publish(&mut self, now: Instant, admission: Admission) {
        self.passed = self.passed_at(now);
        self.since = now;
        if self.rate().is_none() {
            self.booked = self.passed;
            self.booked_slower = self.passed;
        }
        let ahead = self.ahead();
        self.admission = admission;
        // Writers that went ahead of the count did so for a moment at the old rate. At a thousandth
        // of that rate the next writers would wait a thousand times as long for it, so the excess
        // is forgiven.
        let forgiven = ahead.saturating_sub(self.ahead());
        self.passed += forgiven.min(self.booked.saturating_sub(self.passed));
    }

    /// Returns the bytes that may go ahead of the count.
    fn ahead(&self) -> u64 {
        scale(self.rate().unwrap_or(0), AHEAD_NS, NS_PER_SECOND)
    }

    /// Returns the current admission.
    #[must_use]
    pub fn admission(&self) -> Admission {
        self.admission
    }

    /// Returns the rate in bytes per second: `None` if the gate is open, 0 if it is stopped.
    #[must_use]
    pub fn rate(&self) -> Option<u64> {
        match self.admission.state {
            AdmissionState::Open => None,
            AdmissionState::Delayed { bytes_per_second } => Some(bytes_per_second.max(1)),
            AdmissionState::Stopped => Some(0),
        }
    }

    /// Returns the count at `now`.
    #[must_use]
    pub fn passed_at(&self, now: Instant) -> u64 {
        let over_ns = now.0.saturating_sub(self.since.0);
        self.passed.saturating_add(scale(self.rate().unwrap_or(0), over_ns, NS_PER_SECOND))
    }

    /// Returns the next place for a writer that comes now. A pause leaves at most a burst.
    fn next_place(&self, now: Instant) -> u64 {
        let burst = scale(self.rate().unwrap_or(0), BURST_NS, NS_PER_SECOND);
        self.booked.max(self.passed_at(now).saturating_sub(burst))
    }

    /// Books the next place for `bytes` bytes, and returns the place to wait for. With `slower`
    /// above 1, the writer gets 1/`slower` of the rate, together with all others that do.
    pub fn book(&mut self, now: Instant, bytes: u64, slower: u64) -> u64 {
        let place = self.next_place(now);
        self.booked = place.saturating_add(bytes);
        let passed = self.passed_at(now);
        if slower > 1 {
            let from = self.booked_slower.max(passed);
            self.booked_slower = from.saturating_add(bytes.saturating_mul(slower));
            return place.max(self.booked_slower);
        }
        if place <= passed.saturating_add(self.ahead()) { passed } else { place }
    }

    /// Returns how long it takes until the count reaches `place` at the present rate; zero if it
    /// has.
    #[must_use]
    pub fn wait(&self, now: Instant, place: u64) -> Duration {
        let missing = place.saturating_sub(self.passed_at(now));
        let rate = self.rate().unwrap_or(u64::MAX).max(1);
        let ns = (u128::from(missing) * u128::from(NS_PER_SECOND)).div_ceil(u128::from(rate));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Returns how long a small write would wait now.
    #[must_use]
    pub fn expected_wait(&self, now: Instant) -> Duration {
        if self.rate().is_none() { Duration::ZERO } else { self.wait(now, self.booked) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_controller::StallCause;

    fn delayed(bytes_per_second: u64) -> Admission {
        let state = AdmissionState::Delayed { bytes_per_second };
        Admission { state, cause: Some(StallCause::MemtableLimit), column_family: None }
    }

    #[test]
    fn who_went_on_ahead_at_a_high_rate_is_not_waited_for_at_a_low_one() {
        let mut gate = Gate::default();
        let now = Instant(1_000_000_000);
        gate.publish(now, delayed(500 << 20));
        // As many writers as may go ahead.
        while gate.book(now, 1000, 1) <= gate.passed_at(now) {}
        let wait = gate.expected_wait(now);
        assert!(wait > Duration::from_micros(95) && wait < Duration::from_micros(110), "{wait:?}");
        gate.publish(now, delayed(64 << 10));
        // The writer that has to wait does so at the new rate.
        let wait = gate.expected_wait(now);
        assert!(wait < Duration::from_millis(40), "{wait:?}");
        // The new rate is still kept.
        let place = (0..10).map(|_| gate.book(now, 1000, 1)).last().unwrap_or_default();
        assert!(gate.wait(now, place) > Duration::from_millis(130), "{:?}", gate.wait(now, place));
    }
}
