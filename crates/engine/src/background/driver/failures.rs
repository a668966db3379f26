//! What a failure does to the database: it sets the health, wakes the chores and may pause the
//! jobs.
//!
//! - A flush or compaction that fails with an I/O error makes the database degraded; with any other
//!   error, read-only. Only a read-only database pauses jobs ([`Driver::job_failed`]).
//! - A write that fails because the system refused something that it may grant later, such as space
//!   or memory, makes it degraded; another I/O error, read-only ([`Driver::write_failed`]).
//! - A failed edit also marks the manifest as dead ([`Driver::edit_failed`]).
//! - A degraded database is healthy again after a job has succeeded and neither WAL nor manifest is
//!   dead ([`Driver::job_succeeded`]), or when the chores have recovered it.

use sateen_control::version::DurableLog;
use sateen_store::base::error::{Error, Result};

use super::Driver;
use crate::health::Health;

impl Driver {
    /// Clears a degraded state, unless the WAL or the manifest is dead. Called when a job's result
    /// is installed.
    pub(crate) fn job_succeeded(&self) {
        if self.env.health.health() == Health::Degraded
            && !self.writes.pipeline.wal_is_dead()
            && !self.board.manifest_is_dead()
        {
            self.env.health.clear();
        }
    }

    /// Raises the health after a job has failed and removed its files. The end of the database or
    /// of a column family is no failure, and that the health is bad is known.
    pub(crate) fn job_failed(&self, error: &Error) {
        if let Error::Closed
        | Error::OfParentProcess
        | Error::NoSuchColumnFamily(_)
        | Error::Background { .. } = error
        {
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

    /// Makes the WAL durable. Returns how far it is durable.
    pub(crate) fn sync_log(&self) -> Result<Option<DurableLog>> {
        self.writes.pipeline.sync_wal().inspect_err(|error| self.write_failed(error))
    }

    /// Raises the health after an I/O error of the WAL, which is dead by then. Other errors are the
    /// caller's own and change nothing.
    pub(crate) fn write_failed(&self, error: &Error) {
        if let Error::Io { .. } = error {
            self.env.health.raise(Health::after(error), error);
            self.board.poke();
        }
    }

    /// Marks the manifest as dead and raises the health, after an edit could not be made durable.
    pub(crate) fn edit_failed(&self, error: &Error) {
        self.board.after_roll(&[]);
        self.job_failed(error);
    }
}
