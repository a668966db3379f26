//! What the tuner may adjust, how far and how often.

use std::time::Duration;

use super::MIB;
use crate::named_enum;

named_enum! {
    /// What is adjusted while the database runs (ADOC §5).
    pub enum Tuner, "off, adoc, adoc-threads or adoc-batch" {
        /// Nothing.
        #[default]
        Off = "off",
        /// Job slots and the size of memtables.
        Adoc = "adoc",
        /// Job slots alone (ADOC-T).
        AdocThreads = "adoc-threads",
        /// The size of memtables alone (ADOC-B).
        AdocBatch = "adoc-batch",
    }
}

impl Tuner {
    /// Returns true if job slots are adjusted.
    #[must_use]
    pub fn adjusts_slots(self) -> bool {
        matches!(self, Tuner::Adoc | Tuner::AdocThreads)
    }

    /// Returns true if the size of memtables is adjusted.
    #[must_use]
    pub fn adjusts_memtables(self) -> bool {
        matches!(self, Tuner::Adoc | Tuner::AdocBatch)
    }
}

named_enum! {
    /// What the tuner's batch is (ADOC §3.1): what grows and shrinks with it.
    pub enum TunerBatch, "memtable or paper" {
        /// Memtables alone.
        #[default]
        Memtable = "memtable",
        /// Memtables, and tables and the base level in the same proportion.
        Paper = "paper",
    }
}

/// What is adjusted while the database runs (ADOC §5). By default nothing is.
#[derive(Clone, Debug, PartialEq)]
pub struct TunerOptions {
    /// What is adjusted: the option `tuner` itself.
    pub kind: Tuner,
    /// What an adjustment of the memtable size changes besides.
    pub batch: TunerBatch,
    /// The part of a limit at which a stage overflows: the limit on runs of level 0, on the debt,
    /// and the size of the active memtable while another one is to be flushed. 1: the limit itself.
    pub threshold: f64,
    /// Time between two looks for an overflow, and so between two adjustments.
    pub interval: Duration,
    /// Time for which an adjustment is not reversed. Zero: it may be reversed at every look (the
    /// paper's).
    pub hold_time: Duration,
    /// Job slots, at most; no fewer than are configured.
    pub slots_max: usize,
    /// Bytes of a memtable, at most; no fewer than are configured.
    pub memtable_bytes_max: u64,
    /// The debt overflows when what is more than may wait takes this long to drain (ADOC §4.1:
    /// redundancy overflow).
    pub debt_time: Duration,
    /// The debt of a column family overflows at this many bytes, whatever time they need (the
    /// paper: RocksDB's 64 GB); `None`: only `debt_time` counts.
    pub debt_bytes: Option<u64>,
}

impl Default for TunerOptions {
    fn default() -> TunerOptions {
        TunerOptions {
            kind: Tuner::Off,
            batch: TunerBatch::Memtable,
            threshold: 1.0,
            interval: Duration::from_secs(1),
            hold_time: Duration::from_secs(60),
            slots_max: 1,
            memtable_bytes_max: 512 * MIB,
            debt_time: Duration::from_secs(30),
            debt_bytes: None,
        }
    }
}
