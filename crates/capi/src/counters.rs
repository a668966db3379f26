//! The counts of databases, grouped by the options that they were opened with.
//!
//! RocksDB's statistics belong to options: a database counts there while it is open, and its counts
//! stay when it is closed.

use std::sync::{Arc, Mutex, PoisonError};

use sateen::Db;
use sateen::metrics::Metrics;

/// The counts of all databases that were opened with the same options. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Counters(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    open: Vec<Db>,
    closed: Vec<Metrics>,
}

impl Counters {
    /// Counts `db` until [`Counters::closes`].
    pub(crate) fn opened(&self, db: &Db) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).open.push(db.clone());
    }

    /// Keeps the counts of `db` and releases the database.
    pub(crate) fn closes(&self, db: &Db) {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let path = db.path();
        if let Some(at) = of.open.iter().position(|open| open.path() == path) {
            let metrics = of.open.swap_remove(at).metrics();
            of.closed.push(metrics);
        }
    }

    /// Returns the metrics of all of them.
    pub(crate) fn all(&self) -> Vec<Metrics> {
        let of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        of.open.iter().map(Db::metrics).chain(of.closed.iter().cloned()).collect()
    }
}
