//! What failures make of a database: they set its health, wake the chores and pause the jobs.

use sateen_control::version::DurableLog;
use sateen_store::base::error::{Error, Result};

use super::Driver;
use crate::health::Health;

impl Driver {
    /// A job's result is part of the tree.
    pub(crate) fn job_succeeded(&self) {
        if self.env.health.health() == Health::Degraded
            && !self.writes.pipeline.wal_is_dead()
            && !self.board.manifest_is_dead()
        {
            self.env.health.clear();
        }
    }

    /// A job failed and left nothing behind.
    pub(crate) fn job_failed(&self, error: &Error) {
        if matches!(error, Error::Closed | Error::NoSuchColumnFamily(_)) {
            return;
        }
        self.env.metrics.background_error();
        let health =
            if matches!(error, Error::Io { .. }) { Health::Degraded } else { Health::ReadOnly };
        self.env.health.raise(health, error);
        if self.env.health.health() == Health::ReadOnly {
            self.pause_for_health(self.env.now(), true);
        }
        self.board.poke();
    }

    /// Makes the logs durable, and says how far.
    pub(crate) fn sync_log(&self) -> Result<Option<DurableLog>> {
        self.writes.pipeline.sync_wal().inspect_err(|error| self.write_failed(error))
    }

    /// A write could not be logged, or not be synced: the log is dead. Errors of the caller's own
    /// making change nothing.
    pub(crate) fn write_failed(&self, error: &Error) {
        if let Error::Io { .. } = error {
            let health = if error.is_no_space() { Health::Degraded } else { Health::ReadOnly };
            self.env.health.raise(health, error);
            self.board.poke();
        }
    }

    /// An edit could not be made durable: the manifest is dead.
    pub(crate) fn edit_failed(&self, error: &Error) {
        self.board.after_roll(&[]);
        self.job_failed(error);
    }
}
