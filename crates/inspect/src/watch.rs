//! A database that is being watched: its handle, and its recent past by seconds. The server adds to
//! it once a second, so that an explanation reaches further back than the flight recorder does.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sateen::Db;
use sateen::explain::History;
use sateen::timeline::{RunningJob, Timeline};

/// Seconds that are remembered.
const SECONDS: usize = 3600;

/// A watched database.
pub(crate) struct Watch {
    pub(crate) db: Db,
    past: Mutex<Past>,
}

pub(crate) struct Past {
    timeline: Timeline,
    pub(crate) history: History,
}

impl Past {
    /// Returns the jobs that run.
    pub(crate) fn running(&self) -> &[RunningJob] {
        &self.timeline.running
    }

    /// Returns the name of a column family.
    pub(crate) fn family(&self, job: &RunningJob) -> String {
        let name = self.timeline.column_families.get(&job.info.column_family);
        name.cloned().unwrap_or_default()
    }
}

impl Watch {
    pub(crate) fn new(db: Db) -> Watch {
        let past = Past { timeline: Timeline::default(), history: History::new(SECONDS) };
        Watch { db, past: Mutex::new(past) }
    }

    /// Adds what has happened, and returns the past.
    pub(crate) fn update(&self) -> MutexGuard<'_, Past> {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let Past { timeline, history } = &mut *past;
        self.db.extend_timeline(timeline);
        history.take(timeline);
        // Older operations are in the history, as far as it keeps them.
        let until = timeline.until_ns;
        timeline.forget_before(until.saturating_sub(3_000_000_000));
        past
    }
}
