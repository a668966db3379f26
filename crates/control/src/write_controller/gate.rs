//! What a writer is told at a gate. A slowed-down gate counts the bytes that its rates have let
//! pass; a writer takes the next place in that count and goes on when the count has come there. The
//! rate may change meanwhile: a wait is never longer than the rates in force made it.

use std::time::Duration;

use super::{Admission, AdmissionState};
use crate::arithmetic::{NS_PER_SECOND, scale};
use crate::types::Instant;

/// So much may pass at once after a pause.
const BURST_NS: u64 = 1_000_000;
/// Who would wait no longer than this goes on at once, and those after it wait longer instead: many
/// short sleeps cost more than they give, a timer and two switches of context each.
const AHEAD_NS: u64 = 100_000;

/// A gate, for all writers or for those of a column family. The engine and the simulator keep
/// writers waiting by it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gate {
    admission: Admission,
    /// Bytes that the rates in force have let pass up to `since`.
    passed: u64,
    since: Instant,
    /// The next place.
    booked: u64,
    /// The next place of those that get a part of the rate only, all together.
    booked_slower: u64,
}

impl Gate {
    /// Another admission is in force from `now` on. Who passed while the gate was open had nothing
    /// to book.
    pub fn publish(&mut self, now: Instant, admission: Admission) {
        self.passed = self.passed_at(now);
        self.since = now;
        if self.rate().is_none() {
            self.booked = self.passed;
            self.booked_slower = self.passed;
        }
        let ahead = self.ahead();
        self.admission = admission;
        // Who went on ahead of the count did so for a moment at the rate then in force. At a
        // thousandth of it those that come next would wait a thousand times as long for that.
        let forgiven = ahead.saturating_sub(self.ahead());
        self.passed += forgiven.min(self.booked.saturating_sub(self.passed));
    }

    /// Bytes that may go on ahead of the count.
    fn ahead(&self) -> u64 {
        scale(self.rate().unwrap_or(0), AHEAD_NS, NS_PER_SECOND)
    }

    /// How writers are admitted.
    #[must_use]
    pub fn admission(&self) -> Admission {
        self.admission
    }

    /// Bytes a second that pass: `None` if the gate is open, 0 if nobody passes.
    #[must_use]
    pub fn rate(&self) -> Option<u64> {
        match self.admission.state {
            AdmissionState::Open => None,
            AdmissionState::Delayed { bytes_per_second } => Some(bytes_per_second.max(1)),
            AdmissionState::Stopped => Some(0),
        }
    }

    /// How far the count has come.
    #[must_use]
    pub fn passed_at(&self, now: Instant) -> u64 {
        let over_ns = now.0.saturating_sub(self.since.0);
        self.passed.saturating_add(scale(self.rate().unwrap_or(0), over_ns, NS_PER_SECOND))
    }

    /// The next place for who comes now: not further back than what may pass at once.
    fn next_place(&self, now: Instant) -> u64 {
        let burst = scale(self.rate().unwrap_or(0), BURST_NS, NS_PER_SECOND);
        self.booked.max(self.passed_at(now).saturating_sub(burst))
    }

    /// Takes the next place, for `bytes`, and says what place to wait for. `slower`: who books so
    /// gets this part of the rate, together with all others that do; 1 for the whole of it.
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

    /// How long until the count has come to `place`, at the rate in force; zero if it has.
    #[must_use]
    pub fn wait(&self, now: Instant, place: u64) -> Duration {
        let missing = place.saturating_sub(self.passed_at(now));
        let rate = self.rate().unwrap_or(u64::MAX).max(1);
        let ns = (u128::from(missing) * u128::from(NS_PER_SECOND)).div_ceil(u128::from(rate));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// How long a small write would wait now.
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
        // As many as go on at once.
        while gate.book(now, 1000, 1) <= gate.passed_at(now) {}
        let wait = gate.expected_wait(now);
        assert!(wait > Duration::from_micros(95) && wait < Duration::from_micros(110), "{wait:?}");
        gate.publish(now, delayed(64 << 10));
        // The one that has to wait: at the rate that there is now.
        let wait = gate.expected_wait(now);
        assert!(wait < Duration::from_millis(40), "{wait:?}");
        // A rate is kept all the same.
        let place = (0..10).map(|_| gate.book(now, 1000, 1)).last().unwrap_or_default();
        assert!(gate.wait(now, place) > Duration::from_millis(130), "{:?}", gate.wait(now, place));
    }
}
