//! Decides when the scrub verifies a slice.
//!
//! 1. [`Scrub::request`] begins a run; so does [`Scrub::next`] when the interval has passed.
//! 2. [`Scrub::next`] waits for the rate. Then it waits for room: no job waits for a grant, no
//!    flush or compaction out of level 0 runs, and clients leave some bandwidth ([`Pace`]).
//! 3. After [`HELD_NS_MAX`] it grants a slice without room, so that every run ends.

use super::pace::{Pace, PaceStep};
use crate::arithmetic::NS_PER_SECOND;
use crate::options::ScrubOptions;
use crate::types::Instant;

/// The longest time for which a slice waits for room.
const HELD_NS_MAX: u64 = NS_PER_SECOND;

/// What the scrub may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubStep {
    /// Verify about this many bytes, and report them with `Scrub::stepped`.
    Read(u64),
    /// Nothing before this moment.
    Wait(Instant),
    /// Nothing, because no run is active or due.
    Nothing,
}

/// A running scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ScrubRun {
    /// The rate of this run in bytes per second; `None` for that of the options.
    rate: Option<u64>,
    pace: Pace,
}

/// The scrub's schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scrub {
    options: ScrubOptions,
    run: Option<ScrubRun>,
    /// When the last run ended, or the database was opened.
    ended: Instant,
}

impl Scrub {
    /// Returns a schedule without a run. The first run by interval comes one interval from now.
    pub(crate) fn new(options: ScrubOptions) -> Scrub {
        Scrub { options, run: None, ended: Instant::default() }
    }

    /// Sets the options, also for a run that is active.
    pub(crate) fn set_options(&mut self, now: Instant, options: ScrubOptions) {
        self.options = options;
        self.pace_from(now);
    }

    /// Begins a run, with its own rate if one is given. An active run continues with this rate.
    pub(crate) fn request(&mut self, now: Instant, rate: Option<u64>) {
        let before = self.run.and_then(|run| run.rate);
        self.run = Some(ScrubRun { rate: rate.or(before), pace: Pace::begun(now) });
    }

    /// Returns what to do now. `room` is true if no other work needs the device.
    pub(crate) fn next(&mut self, now: Instant, room: bool) -> ScrubStep {
        let Some(run) = &mut self.run else {
            let interval_ns = match self.options.interval_seconds {
                0 => return ScrubStep::Nothing,
                seconds => seconds.saturating_mul(NS_PER_SECOND),
            };
            let due = Instant(self.ended.0.saturating_add(interval_ns));
            if now < due {
                return ScrubStep::Wait(due);
            }
            self.request(now, None);
            return self.next(now, room);
        };
        let rate = run.rate.unwrap_or(self.options.rate);
        match run.pace.next(now, room, rate, HELD_NS_MAX) {
            PaceStep::Move(bytes) => ScrubStep::Read(bytes),
            PaceStep::Wait(until) => ScrubStep::Wait(until),
        }
    }

    /// Records that a slice of `bytes` bytes was verified.
    pub(crate) fn stepped(&mut self, now: Instant, bytes: u64) {
        if let Some(run) = &mut self.run {
            run.pace.stepped(now, bytes);
        }
    }

    /// Ends the run.
    pub(crate) fn finished(&mut self, now: Instant) {
        (self.run, self.ended) = (None, now);
    }

    /// Begins a new period for the rate.
    fn pace_from(&mut self, now: Instant) {
        if let Some(run) = &mut self.run {
            run.pace.begin_period(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pace::SLICE_BYTES;
    use super::*;

    const LOOK_NS: u64 = 20_000_000;
    const RATE: u64 = 1 << 20;
    const SECOND: u64 = NS_PER_SECOND;

    fn at(ns: u64) -> Instant {
        Instant(ns)
    }

    fn options(interval_s: Option<u64>) -> ScrubOptions {
        ScrubOptions { rate: RATE, interval_seconds: interval_s.unwrap_or(0) }
    }

    #[test]
    fn none_runs_unasked_without_an_interval() {
        let mut scrub = Scrub::new(options(None));
        assert_eq!(scrub.next(at(u64::MAX), true), ScrubStep::Nothing);
    }

    #[test]
    fn it_comes_by_its_interval_counted_from_the_end_of_the_last() {
        let mut scrub = Scrub::new(options(Some(60)));
        assert_eq!(scrub.next(at(0), true), ScrubStep::Wait(at(60 * SECOND)));
        assert_eq!(scrub.next(at(60 * SECOND), true), ScrubStep::Read(SLICE_BYTES));
        scrub.finished(at(100 * SECOND));
        assert_eq!(scrub.next(at(101 * SECOND), true), ScrubStep::Wait(at(160 * SECOND)));
        scrub.set_options(at(102 * SECOND), options(None));
        assert_eq!(scrub.next(at(1000 * SECOND), true), ScrubStep::Nothing);
    }

    #[test]
    fn it_reads_no_more_in_a_second_than_it_may() {
        let mut scrub = Scrub::new(options(None));
        scrub.request(at(0), None);
        let (mut now, mut read) = (0, 0);
        while now < 10 * SECOND {
            match scrub.next(at(now), true) {
                ScrubStep::Read(bytes) => {
                    read += bytes;
                    scrub.stepped(at(now), bytes);
                }
                ScrubStep::Wait(until) => now = until.0,
                ScrubStep::Nothing => panic!("it runs"),
            }
        }
        assert!((9 * RATE..=10 * RATE + SLICE_BYTES).contains(&read), "{read}");
        // A request changes the rate of an active run.
        scrub.request(at(now), Some(16 * RATE));
        assert_eq!(scrub.next(at(now), true), ScrubStep::Read(SLICE_BYTES));
        scrub.stepped(at(now), SLICE_BYTES);
        let next = now + SECOND / 64;
        assert_eq!(scrub.next(at(now), true), ScrubStep::Wait(at(next)));
    }

    #[test]
    fn what_is_more_important_goes_first_but_not_for_ever() {
        let mut scrub = Scrub::new(ScrubOptions::default());
        scrub.request(at(0), None);
        assert_eq!(scrub.next(at(0), false), ScrubStep::Wait(at(LOOK_NS)));
        assert_eq!(scrub.next(at(LOOK_NS), true), ScrubStep::Read(SLICE_BYTES));
        assert_eq!(scrub.next(at(LOOK_NS), false), ScrubStep::Wait(at(2 * LOOK_NS)));
        let late = LOOK_NS + HELD_NS_MAX;
        assert_eq!(scrub.next(at(late), false), ScrubStep::Read(SLICE_BYTES));
    }

    #[test]
    fn time_that_was_waited_is_not_made_up_for() {
        let mut scrub = Scrub::new(options(None));
        scrub.request(at(0), None);
        assert_eq!(scrub.next(at(0), true), ScrubStep::Read(SLICE_BYTES));
        scrub.stepped(at(100 * SECOND), SLICE_BYTES);
        scrub.stepped(at(100 * SECOND), SLICE_BYTES);
        let due = at(100 * SECOND + SECOND / 4);
        assert_eq!(scrub.next(at(100 * SECOND), true), ScrubStep::Wait(due));
    }
}
