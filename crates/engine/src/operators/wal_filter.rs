//! Filters of the WAL: code of the client that decides, record by record, what recovery does with
//! the writes that are in no table.
//!
//! What must stay true: a filter sees each record at most once an attempt, in the order of the
//! commits. A record that it drops or replaces is never replayed later.

use std::path::Path;
use std::sync::Arc;

use crate::batch::WriteBatch;

/// What recovery does with a record of the WAL.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WalDecision {
    /// Apply its writes.
    Apply,
    /// Apply these writes instead: at most as many as the record has.
    Replace(WriteBatch),
    /// Drop its writes for good.
    Skip,
    /// Drop its writes and those of all later records for good. These records are not shown.
    Stop,
    /// The record is damaged: the open fails.
    Corrupt,
}

/// A record of the WAL: writes that were committed together.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WalRecord<'a> {
    /// The number of its WAL.
    pub log: u64,
    /// The WAL file.
    pub path: &'a Path,
    /// The sequence number of its first write.
    pub first_seqno: u64,
    /// Its writes, as the clients wrote them. Some of them may be in tables already.
    pub batch: &'a WriteBatch,
}

/// A column family as the filter learns of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalFamily {
    /// Its number, which writes of a batch name.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The oldest WAL that has writes which are in none of its tables.
    pub oldest_log: u64,
}

/// Decides what recovery does with the records of the WAL.
pub trait WalFilter: Send + Sync {
    /// Returns its name, for messages.
    fn name(&self) -> &str;

    /// Is told of the column families before the first record. An open for reading only may begin
    /// again if the writer removes what it reads.
    fn begin(&self, families: &[WalFamily]) {
        let _ = families;
    }

    /// Decides about one record.
    fn decide(&self, record: &WalRecord<'_>) -> WalDecision;
}

/// A filter of the WAL, as options have it. Two are equal if they are the same object.
#[derive(Clone)]
pub struct WalFiltering(Arc<dyn WalFilter>);

impl WalFiltering {
    /// Makes `filter` the value of an option.
    pub fn new(filter: impl WalFilter + 'static) -> WalFiltering {
        WalFiltering(Arc::new(filter))
    }

    pub(crate) fn filter(&self) -> &dyn WalFilter {
        &*self.0
    }
}

impl PartialEq for WalFiltering {
    fn eq(&self, other: &WalFiltering) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for WalFiltering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WalFiltering").field(&self.0.name()).finish()
    }
}
