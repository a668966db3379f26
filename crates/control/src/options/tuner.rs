//! What the tuner may adjust, how far and how often.

use std::time::Duration;

use super::{GIB, MIB};

/// From where on too much waits for compaction (ADOC §4.1: redundancy overflow).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebtLimit {
    /// What is more than may wait would take so long to drain.
    Time(Duration),
    /// So many bytes of a column family wait (the paper: RocksDB's 64 GB).
    Bytes(u64),
}

impl DebtLimit {
    /// The paper's.
    pub const PAPER: DebtLimit = DebtLimit::Bytes(64 * GIB);
}

/// What is adjusted while the database runs (ADOC §5). By default nothing is.
#[derive(Clone, Debug, PartialEq)]
pub struct TunerOptions {
    /// How many job slots there are.
    pub slots: bool,
    /// How large memtables are.
    pub memtables: bool,
    /// How often it is looked for an overflow, and so the most often that anything is adjusted.
    pub interval: Duration,
    /// What has changed its direction does not change it again for so long. Zero: it may at every
    /// look (the paper's).
    pub hold_time: Duration,
    /// Job slots, at most; no fewer than are configured.
    pub slots_max: usize,
    /// Bytes of a memtable, at most; no fewer than are configured.
    pub memtable_bytes_max: u64,
    /// When the debt has overflowed.
    pub debt: DebtLimit,
}

impl Default for TunerOptions {
    fn default() -> TunerOptions {
        TunerOptions {
            slots: false,
            memtables: false,
            interval: Duration::from_secs(1),
            hold_time: Duration::from_secs(60),
            slots_max: 1,
            memtable_bytes_max: 512 * MIB,
            debt: DebtLimit::Time(Duration::from_secs(30)),
        }
    }
}

impl TunerOptions {
    /// Adjusts both, as the paper: up to `slots_max` job slots and memtables of 512 MB, and debt
    /// that has overflowed is counted in bytes.
    #[must_use]
    pub fn adoc(slots_max: usize) -> TunerOptions {
        TunerOptions {
            slots: true,
            memtables: true,
            slots_max,
            debt: DebtLimit::PAPER,
            ..TunerOptions::default()
        }
    }

    /// Whether it adjusts anything.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.slots || self.memtables
    }
}
