//! The pace of copies: a backup moves bytes when control says so, and at most at its own rate.
//!
//! 1. [`Pacer::turn`] waits until the next bytes may be moved.
//! 2. [`Pacer::moved`] counts them, and tells control once a slice is used up.
//!
//! What must stay true: a copy from the database's own device moves no more for each turn than the
//! turn says, rounded up to a page.

use std::time::Duration;

use sateen_control::{Instant, Pace, PaceStep};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::sleep;

use super::options::{BackupListener, BackupProgress};
use crate::core::DbCore;

/// The most bytes that are moved for one turn.
pub(super) const STEP_BYTES: usize = 64 << 10;
/// How often a wait looks whether it was cancelled.
const WAIT: Duration = Duration::from_millis(50);

/// Paces the copies of one operation.
pub(super) struct Pacer<'a> {
    /// The database whose control grants slices. `None` for work that no database has to fear.
    core: Option<&'a DbCore>,
    listener: Option<&'a dyn BackupListener>,
    /// The name of the operation, for errors.
    what: &'static str,
    /// Bytes a second at most; 0 for no limit.
    rate: u64,
    start: std::time::Instant,
    pace: Pace,
    /// Bytes that may still be moved of the last slice, and what was moved of it.
    left: u64,
    moved: (u64, u64),
    progress: BackupProgress,
}

impl<'a> Pacer<'a> {
    /// Returns the pacer of a backup of `core`, or of work beside no database.
    pub(super) fn new(
        core: Option<&'a DbCore>,
        what: &'static str,
        rate: u64,
        listener: Option<&'a dyn BackupListener>,
    ) -> Pacer<'a> {
        let start = clock::now();
        let mut pacer = Pacer {
            core,
            listener,
            what,
            rate,
            start,
            pace: Pace::begun(Instant(0)),
            left: 0,
            moved: (0, 0),
            progress: BackupProgress::default(),
        };
        pacer.pace = Pace::begun(pacer.now());
        pacer
    }

    /// Returns the time on the clock of control, or since the operation began.
    fn now(&self) -> Instant {
        match self.core {
            Some(core) => core.env.now(),
            None => Instant(u64::try_from(clock::since(self.start).as_nanos()).unwrap_or(u64::MAX)),
        }
    }

    /// Returns the database whose control is asked. One without threads has no jobs beside the
    /// copy.
    fn scheduled(&self) -> Option<&'a DbCore> {
        self.core.filter(|core| core.env.has_threads())
    }

    /// Fails if the operation was cancelled or the database closed.
    pub(super) fn check(&self) -> Result<()> {
        if self.listener.is_some_and(BackupListener::is_cancelled) {
            return Err(Error::Cancelled(self.what));
        }
        self.core.map_or(Ok(()), |core| core.env.check_open())
    }

    /// Waits until bytes may be moved. Returns how many.
    pub(super) fn turn(&mut self) -> Result<usize> {
        loop {
            self.check()?;
            if self.left > 0 {
                return Ok(usize::try_from(self.left).unwrap_or(usize::MAX).min(STEP_BYTES));
            }
            let now = self.now();
            let step = match self.scheduled() {
                Some(core) => core.background.driver.copy_step(now, &mut self.pace, self.rate),
                None => self.pace.next(now, true, self.rate, 0),
            };
            match step {
                PaceStep::Move(bytes) => self.left = bytes,
                PaceStep::Wait(until) => {
                    sleep(Duration::from_nanos(until.0.saturating_sub(now.0)).min(WAIT));
                }
            }
        }
    }

    /// Counts bytes that were moved. `done` of them count as progress.
    pub(super) fn moved(&mut self, read: u64, written: u64, done: u64) {
        self.moved = (self.moved.0 + read, self.moved.1 + written);
        self.left = self.left.saturating_sub(read.max(written));
        if self.left == 0 {
            let (now, moved) = (self.now(), std::mem::take(&mut self.moved));
            match self.scheduled() {
                Some(core) => core.background.driver.copied(now, &mut self.pace, moved),
                None => self.pace.stepped(now, moved.0.max(moved.1)),
            }
        }
        self.advance(done);
    }

    /// Counts `done` bytes as progress.
    pub(super) fn advance(&mut self, done: u64) {
        self.progress.bytes += done;
        self.tell();
    }

    /// Sets the bytes of the whole operation.
    pub(super) fn expect(&mut self, bytes: u64) {
        self.progress.total_bytes = bytes;
        self.tell();
    }

    fn tell(&self) {
        if let Some(listener) = self.listener {
            listener.progress(&self.progress);
        }
    }
}
