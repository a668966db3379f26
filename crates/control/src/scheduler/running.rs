//! A running job, as the scheduler sees it, and its place in the queue.

use crate::event::PauseReason;
use crate::types::{DatabaseId, IoClass, JobId};

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) rank: u8,
    /// What its database has moved; 0 if it is alone.
    pub(super) of_database: u64,
    /// Of a deep job; 0 for others.
    pub(super) turn: u64,
    /// Of other jobs. In a turn the oldest job is first.
    pub(super) arrival: u64,
    pub(super) job: JobId,
}

/// The lanes: flushes, compactions out of level 0, and all others.
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

/// The source of a grant's bytes.
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
    pub(super) database: DatabaseId,
    /// The lane in which it is served.
    pub(super) lane: Lane,
    /// Its own lane. A deep job that level 0 waits for is served in the lane of level 0.
    pub(super) own_lane: Lane,
    /// The size of its level relative to the target, in thousandths.
    pub(super) urgency: u64,
    pub(super) state: RunningState,
    pub(super) paused: Option<PauseReason>,
    /// Bytes that it has read and written.
    pub(super) read: u64,
    pub(super) written: u64,
    /// Bytes that it has moved, divided by its urgency.
    pub(super) share: u64,
}

/// Whether a job waits for a grant, uses one, or needs none.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunningState {
    /// It waits in the queue, with this number of arrival.
    Waiting(u64),
    /// It has a grant of this many bytes.
    Granted(u64, Source),
    /// Another process does its work.
    Away,
}

impl Running {
    /// Returns the bytes that it has moved: read or written, whichever is more. A step may do only
    /// one of them, because files are read ahead and written behind.
    pub(super) fn moved(&self) -> u64 {
        self.read.max(self.written)
    }

    pub(super) fn is_granted(&self) -> bool {
        matches!(self.state, RunningState::Granted(..))
    }

    /// Returns true if another process does its work.
    pub(super) fn is_away(&self) -> bool {
        matches!(self.state, RunningState::Away)
    }

    /// Returns true if this process works on it: it is not away, and has a slot.
    pub(super) fn is_worked_on(&self) -> bool {
        !self.is_away() && !self.is_preempted()
    }

    /// Returns true if it is paused because it has no slot.
    pub(super) fn is_preempted(&self) -> bool {
        matches!(self.paused, Some(PauseReason::Preempted { .. } | PauseReason::Slots))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what fits before"
)]
/// Returns a score in thousandths.
pub(crate) fn thousandths(score: f64) -> u64 {
    (score.clamp(0.0, 1e9) * 1000.0) as u64
}
