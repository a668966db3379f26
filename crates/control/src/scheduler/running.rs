//! A job as the scheduler knows it.

use crate::event::PauseReason;
use crate::types::IoClass;

/// The lanes: flushes, compactions out of level 0, all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Flush,
    Level0,
    Deep,
}

impl Lane {
    pub(crate) fn of(class: IoClass) -> Lane {
        match class {
            IoClass::Flush => Lane::Flush,
            IoClass::L0 => Lane::Level0,
            _ => Lane::Deep,
        }
    }
}

/// From where the bytes of a grant are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Limiter,
    Main,
    Floor,
    Credit,
}

/// A job between its start and its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// Where it is served.
    pub(super) lane: Lane,
    /// What it is: a deep job that level 0 waits for is served like one of level 0.
    pub(super) own_lane: Lane,
    /// In thousandths: how far its level is over its target.
    pub(super) urgency: u64,
    pub(super) state: RunningState,
    pub(super) paused: Option<PauseReason>,
    /// Bytes that it has read, and written.
    pub(super) read: u64,
    pub(super) written: u64,
    /// Bytes that it has moved, divided by its urgency: deep jobs get shares of the device by it.
    pub(super) share: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RunningState {
    /// In the queue, at this place.
    Waiting(u64),
    /// It has this many bytes to use.
    Granted(u64, Source),
}

impl Running {
    /// Bytes that it has moved: read or written, whichever is more. A step may do only one of them:
    /// files are read ahead and written behind.
    pub(super) fn moved(&self) -> u64 {
        self.read.max(self.written)
    }

    pub(super) fn is_granted(&self) -> bool {
        matches!(self.state, RunningState::Granted(..))
    }

    /// Whether it is paused because it has no slot.
    pub(super) fn is_preempted(&self) -> bool {
        matches!(self.paused, Some(PauseReason::Preempted { .. } | PauseReason::Slots))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what fits before"
)]
pub(super) fn thousandths(score: f64) -> u64 {
    (score.clamp(0.0, 1e9) * 1000.0) as u64
}
