//! The pace of work beside the jobs: the scrub, and copies of backups. It comes in slices.
//!
//! 1. [`Pace::next`] waits for the rate, then for room. After `held_ns_max` it grants a slice
//!    without room, so that the work ends.
//! 2. [`Pace::stepped`] counts what a slice moved.
//!
//! What must stay true: time spent waiting for room is not made up for by moving faster later.

use crate::arithmetic::{NS_PER_SECOND, scale};
use crate::types::Instant;

/// Bytes of a slice: a few milliseconds on a slow device.
pub(crate) const SLICE_BYTES: u64 = 256 << 10;
/// The pause before the next look for room.
const LOOK_NS: u64 = 20_000_000;

/// What work beside the jobs may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaceStep {
    /// Move about this many bytes, and report them.
    Move(u64),
    /// Nothing before this moment.
    Wait(Instant),
}

/// The pace of one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The start of the period over which the rate is measured, and the bytes moved since then.
    paced_from: Instant,
    bytes: u64,
    /// The rate in that period.
    rate: u64,
    /// When it began to wait for room.
    held_from: Option<Instant>,
}

impl Pace {
    /// Returns the pace of work that begins now.
    #[must_use]
    pub fn begun(now: Instant) -> Pace {
        Pace { paced_from: now, bytes: 0, rate: 0, held_from: None }
    }

    /// Returns what to do now, at most at `rate` bytes per second (0: no limit). `room` is true if
    /// no other work needs the device.
    pub fn next(&mut self, now: Instant, room: bool, rate: u64, held_ns_max: u64) -> PaceStep {
        if rate != self.rate {
            self.rate = rate;
            self.begin_period(now);
        }
        if rate > 0 {
            let due = self.paced_from.0.saturating_add(scale(self.bytes, NS_PER_SECOND, rate));
            if now.0 < due {
                return PaceStep::Wait(Instant(due));
            }
        }
        let held_from = *self.held_from.get_or_insert(now);
        if !room && now.0.saturating_sub(held_from.0) < held_ns_max {
            return PaceStep::Wait(Instant(now.0.saturating_add(LOOK_NS)));
        }
        self.held_from = None;
        PaceStep::Move(if rate > 0 { SLICE_BYTES.min(rate) } else { SLICE_BYTES })
    }

    /// Records that a slice moved `bytes` bytes.
    pub fn stepped(&mut self, now: Instant, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.rate > 0 {
            let spent = scale(self.bytes, NS_PER_SECOND, self.rate);
            let due = self.paced_from.0.saturating_add(spent);
            if due < now.0 {
                self.begin_period(now);
            }
        }
    }

    /// Begins a new period for the rate.
    pub(crate) fn begin_period(&mut self, now: Instant) {
        (self.paced_from, self.bytes) = (now, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_without_room_moves_a_slice_in_each_longest_wait() {
        let (mut pace, held_ns_max) = (Pace::begun(Instant(0)), 3 * LOOK_NS);
        let (mut now, mut moved) = (0, 0);
        while now < NS_PER_SECOND {
            match pace.next(Instant(now), false, 0, held_ns_max) {
                PaceStep::Move(bytes) => {
                    moved += bytes;
                    pace.stepped(Instant(now), bytes);
                }
                PaceStep::Wait(until) => now = until.0,
            }
        }
        assert_eq!(moved, SLICE_BYTES * (NS_PER_SECOND / held_ns_max));
    }

    #[test]
    fn with_room_only_the_rate_limits_it() {
        let mut pace = Pace::begun(Instant(0));
        for _ in 0..100 {
            assert_eq!(pace.next(Instant(0), true, 0, 0), PaceStep::Move(SLICE_BYTES));
            pace.stepped(Instant(0), SLICE_BYTES);
        }
        let mut pace = Pace::begun(Instant(0));
        assert_eq!(
            pace.next(Instant(0), true, 100, 0),
            PaceStep::Move(100),
            "a rate below a slice"
        );
        pace.stepped(Instant(0), 100);
        assert_eq!(pace.next(Instant(0), true, 100, 0), PaceStep::Wait(Instant(NS_PER_SECOND)));
    }

    #[test]
    fn a_new_rate_forgets_what_was_moved_before() {
        let mut pace = Pace::begun(Instant(0));
        for _ in 0..1000 {
            assert_eq!(pace.next(Instant(0), true, 0, 0), PaceStep::Move(SLICE_BYTES));
            pace.stepped(Instant(0), SLICE_BYTES);
        }
        let rate = 4 * SLICE_BYTES;
        assert_eq!(pace.next(Instant(5), true, rate, 0), PaceStep::Move(SLICE_BYTES));
        pace.stepped(Instant(5), SLICE_BYTES);
        let due = Instant(5 + NS_PER_SECOND / 4);
        assert_eq!(pace.next(Instant(5), true, rate, 0), PaceStep::Wait(due));
    }
}
