//! Pauses of flushes and compactions, at the request of a client or after a failure.

use std::time::Duration;

use sateen_control::{Event, Instant, JobId, RequestId};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::lock;

use crate::background::driver::{Driver, DriverState};
use crate::events::CompactionInfo;
use crate::timeline::Grant;

/// Why no job starts.
#[derive(Default)]
pub(crate) struct Pauses {
    /// Number of clients that pause background work.
    asked: u32,
    /// Whether a failure pauses it.
    health: bool,
    /// Number of clients that have stopped compactions.
    compactions: u32,
}

impl DriverState {
    /// Returns the next job that may take a step; `None` while a client pauses background work.
    pub(crate) fn next_runnable(&mut self) -> Option<(JobId, Grant)> {
        if self.pauses.asked > 0 { None } else { self.runnable.pop_front() }
    }

    /// Returns true if a thread has something to do without asking control.
    pub(crate) fn has_work(&self) -> bool {
        self.pauses.asked == 0 && !self.runnable.is_empty() || !self.abandoned.is_empty()
    }

    /// Returns true if a client has stopped compactions.
    pub(crate) fn stops_compactions(&self) -> bool {
        self.pauses.compactions > 0
    }

    /// Tells control whether jobs may start.
    fn tell_control(&mut self, now: Instant) {
        let paused = self.pauses.asked > 0 || self.pauses.health;
        self.plane.handle(now, Event::Paused(paused));
    }
}

impl Driver {
    /// Pauses background work after a failure, or ends that pause.
    pub(crate) fn pause_for_health(&self, now: Instant, paused: bool) {
        let mut shared = self.lend();
        shared.pauses.health = paused;
        shared.tell_control(now);
        drop(shared);
        self.place.call();
    }

    /// Returns true if a client pauses background work.
    pub(crate) fn is_paused(&self) -> bool {
        lock(&self.shared).pauses.asked > 0
    }

    /// Returns true if a job takes a step.
    fn is_stepping(&self) -> bool {
        lock(&self.shared).jobs.values().any(|slot| slot.job.is_none())
    }

    /// Keeps the result of a compaction if a client waits for it.
    pub(crate) fn keep_answer(&self, request: RequestId, made: CompactionInfo) {
        let mut shared = lock(&self.shared);
        if shared.waits_for(request) {
            shared.answers.insert(request, made);
        }
    }

    /// Removes and returns the result of a request's compaction.
    pub(crate) fn take_answer(&self, request: RequestId) -> Option<CompactionInfo> {
        lock(&self.shared).answers.remove(&request)
    }
}

impl Driver {
    /// Pauses flushes and compactions. With `wait`, returns when none takes a step. They stay
    /// paused until [`Driver::continue_background`].
    pub(crate) fn pause_background(&self, wait: bool) -> Result<()> {
        self.env.check_open()?;
        {
            let mut shared = self.lend();
            shared.pauses.asked += 1;
            shared.tell_control(self.env.now());
        }
        // A listener runs within a step, so it would wait for itself.
        while wait && !crate::events::is_listening() && self.is_stepping() {
            // The step of a thread that panicked never ends.
            if let Err(error) = self.env.check_open().and_then(|()| self.env.health.check()) {
                self.continue_background()?;
                return Err(error);
            }
            clock::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Ends one [`Driver::pause_background`].
    pub(crate) fn continue_background(&self) -> Result<()> {
        self.env.check_open()?;
        let mut shared = self.lend();
        let Some(left) = shared.pauses.asked.checked_sub(1) else {
            return Err(Error::InvalidArgument("background work is not paused".into()));
        };
        shared.pauses.asked = left;
        shared.tell_control(self.env.now());
        drop(shared);
        self.place.call();
        Ok(())
    }

    /// Discards all compactions, and waits until those that are being stepped have ended. No other
    /// starts until [`Driver::resume_compactions`].
    pub(crate) fn stop_compactions(&self) -> Result<()> {
        self.env.check_open()?;
        let mut shared = self.lend();
        shared.pauses.compactions += 1;
        shared.plane.handle(self.env.now(), Event::CompactionsStopped(true));
        let compactions = shared.jobs.iter().filter(|(_, slot)| !slot.is_flush).map(|(id, _)| *id);
        for id in compactions.collect::<Vec<_>>() {
            self.discard(&mut shared, self.env.now(), id);
        }
        let abandoned = std::mem::take(&mut shared.abandoned);
        drop(shared);
        abandoned.into_iter().for_each(|mut job| job.abandon());
        self.place.call();
        // A listener runs within a step, so it would wait for itself.
        while !crate::events::is_listening() && self.has_compactions() {
            if self.is_stopping() {
                return Err(Error::Closed);
            }
            self.env.health.check()?;
            clock::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Ends one [`Driver::stop_compactions`].
    pub(crate) fn resume_compactions(&self) -> Result<()> {
        self.env.check_open()?;
        let mut shared = self.lend();
        let Some(left) = shared.pauses.compactions.checked_sub(1) else {
            return Err(Error::InvalidArgument("compactions are not stopped".into()));
        };
        shared.pauses.compactions = left;
        shared.plane.handle(self.env.now(), Event::CompactionsStopped(left > 0));
        drop(shared);
        self.place.call();
        Ok(())
    }

    fn has_compactions(&self) -> bool {
        lock(&self.shared).jobs.values().any(|slot| !slot.is_flush)
    }

    /// Discards all flushes, and waits until those that are being stepped have ended. No other
    /// starts until control hears that background work is not paused any more.
    pub(crate) fn stop_flushes(&self) -> Result<()> {
        self.pause_for_health(self.env.now(), true);
        let mut shared = self.lend();
        let flushes = shared.jobs.iter().filter(|(_, slot)| slot.is_flush).map(|(id, _)| *id);
        for id in flushes.collect::<Vec<_>>() {
            self.discard(&mut shared, self.env.now(), id);
        }
        let abandoned = std::mem::take(&mut shared.abandoned);
        drop(shared);
        abandoned.into_iter().for_each(|mut job| job.abandon());
        while self.has_flushes() {
            if self.is_stopping() {
                return Err(Error::Closed);
            }
            // The flush may be the one that the listener hears of.
            if crate::events::is_listening() {
                let text = "a listener cannot wait for flushes to end: call resume from another \
                            thread, or after the listener has returned";
                return Err(Error::InvalidArgument(text.to_owned()));
            }
            clock::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
