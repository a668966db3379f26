//! A limit that the tuner adjusts: it rises by steps, is halved on the way down, and does not
//! oscillate.

use std::time::Duration;

use crate::types::Instant;

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// The step and the range of a knob.
#[derive(Clone, Copy, Debug)]
pub(super) struct Travel {
    pub(super) step: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    /// The shortest time between two changes of direction.
    pub(super) hold: Duration,
}

/// A limit and the history of its changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knob {
    value: u64,
    /// The direction that has priority: the one that the first overflow wants.
    first: Way,
    /// When that direction was last asked for.
    asked: Option<Instant>,
    /// The direction of the last change.
    way: Option<Way>,
    /// When the direction last changed.
    turned: Option<Instant>,
}

impl Knob {
    pub(super) fn new(value: u64, first: Way) -> Knob {
        Knob { value, first, asked: None, way: None, turned: None }
    }

    pub(super) fn value(&self) -> u64 {
        self.value
    }

    /// Changes the value one step in a direction: additive increase, multiplicative decrease.
    /// Returns true if the value changed.
    ///
    /// Two overflows that want opposite directions may alternate between windows. Then the
    /// direction with priority wins: if it was asked for within `hold`, even in vain, the other one
    /// is refused.
    pub(super) fn turn(&mut self, now: Instant, way: Way, travel: &Travel) -> bool {
        let lately = |at: Instant| now.since(at) < travel.hold;
        if way == self.first {
            self.asked = Some(now);
        } else if self.asked.is_some_and(lately) {
            return false;
        }
        let turns = self.way.is_some_and(|before| before != way);
        if turns && self.turned.is_some_and(lately) {
            return false;
        }
        let value = match way {
            Way::Up => self.value.saturating_add(travel.step).min(travel.max),
            Way::Down => (self.value / 2).max(travel.min),
        };
        let moves = match way {
            Way::Up => value > self.value,
            Way::Down => value < self.value,
        };
        if moves {
            self.value = value;
            self.way = Some(way);
            if turns {
                self.turned = Some(now);
            }
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAVEL: Travel = Travel { step: 2, min: 1, max: 8, hold: Duration::from_secs(60) };

    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000_000)
    }

    #[test]
    fn it_goes_up_by_steps_and_down_by_halves_within_its_bounds() {
        let mut knob = Knob::new(2, Way::Up);
        for (second, value) in [(0, 4), (1, 6), (2, 8)] {
            assert!(knob.turn(at(second), Way::Up, &TRAVEL));
            assert_eq!(knob.value(), value);
        }
        assert!(!knob.turn(at(3), Way::Up, &TRAVEL));
        for (second, value) in [(63, 4), (64, 2), (65, 1)] {
            assert!(knob.turn(at(second), Way::Down, &TRAVEL));
            assert_eq!(knob.value(), value);
        }
        assert!(!knob.turn(at(66), Way::Down, &TRAVEL));
    }

    #[test]
    fn who_is_handled_first_has_its_way_as_long_as_it_was_there_lately() {
        let mut knob = Knob::new(8, Way::Up);
        // The value is at its end already, but the direction was asked for.
        assert!(!knob.turn(at(0), Way::Up, &TRAVEL));
        assert!(!knob.turn(at(59), Way::Down, &TRAVEL));
        assert!(knob.turn(at(60), Way::Down, &TRAVEL));
        // The direction with priority need not wait.
        assert!(knob.turn(at(61), Way::Up, &TRAVEL));
        assert_eq!(knob.value(), 6);
    }

    #[test]
    fn it_turns_round_once_in_a_minute_at_most() {
        let mut knob = Knob::new(4, Way::Up);
        assert!(knob.turn(at(0), Way::Down, &TRAVEL));
        assert!(knob.turn(at(1), Way::Up, &TRAVEL), "the first turn");
        assert!(!knob.turn(at(60), Way::Down, &TRAVEL));
        assert!(knob.turn(at(61), Way::Down, &TRAVEL), "the second");
        assert!(knob.turn(at(62), Way::Down, &TRAVEL));
        assert!(!knob.turn(at(63), Way::Up, &TRAVEL));
        assert!(!knob.turn(at(120), Way::Up, &TRAVEL));
        assert!(knob.turn(at(121), Way::Up, &TRAVEL), "the third");
    }

    #[test]
    fn without_a_time_to_hold_it_does_as_it_is_told() {
        let travel = Travel { hold: Duration::ZERO, ..TRAVEL };
        let mut knob = Knob::new(4, Way::Up);
        for second in 0..10 {
            assert!(knob.turn(at(second), Way::Up, &travel));
            assert!(knob.turn(at(second), Way::Down, &travel));
        }
    }

    #[test]
    fn what_is_configured_beyond_the_bounds_stays_where_it_is() {
        let mut knob = Knob::new(20, Way::Up);
        assert!(!knob.turn(at(0), Way::Up, &TRAVEL));
        assert_eq!(knob.value(), 20);
    }
}
