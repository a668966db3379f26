//! Admission: whether and how fast clients may write, and why not faster. RocksDB's triggers and its
//! adaptation of the delayed write rate.

use std::fmt;

use crate::types::ColumnFamilyId;

/// Why writers wait. Every wait has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StallCause {
    /// As many memtables wait for their flush as may.
    MemtableLimit,
    /// Level 0 has too many runs.
    Level0Runs,
    /// Too many bytes wait for compaction.
    PendingCompactionBytes,
    /// The memory budget is used up. Never decided here: the engine knows its memory.
    MemoryBudget,
    /// Background work has stopped because of an error. Never decided here.
    BackgroundError,
}

impl StallCause {
    /// All causes, in the order of [`StallCause::index`].
    pub const ALL: [StallCause; 5] = [
        StallCause::MemtableLimit,
        StallCause::Level0Runs,
        StallCause::PendingCompactionBytes,
        StallCause::MemoryBudget,
        StallCause::BackgroundError,
    ];

    /// A dense index below `ALL.len()` for arrays of counters.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name in metrics and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            StallCause::MemtableLimit => "memtable-limit",
            StallCause::Level0Runs => "level0-runs",
            StallCause::PendingCompactionBytes => "pending-compaction-bytes",
            StallCause::MemoryBudget => "memory-budget",
            StallCause::BackgroundError => "background-error",
        }
    }
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How writers are admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdmissionState {
    /// As fast as they can.
    #[default]
    Open,
    /// At this rate in all, counted in bytes of their batches.
    Delayed {
        /// The rate.
        bytes_per_second: u64,
    },
    /// Not at all until the next [`Admission`].
    Stopped,
}

/// How writers are admitted from now on, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// How.
    pub state: AdmissionState,
    /// Why: `None` exactly when open.
    pub cause: Option<StallCause>,
    /// The column family to blame.
    pub column_family: Option<ColumnFamilyId>,
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            AdmissionState::Open => write!(f, "open")?,
            AdmissionState::Delayed { bytes_per_second } => {
                write!(f, "delayed {bytes_per_second}/s")?
            }
            AdmissionState::Stopped => write!(f, "stopped")?,
        }
        if let Some(cf) = self.column_family {
            write!(f, " {cf}")?;
        }
        if let Some(cause) = self.cause {
            write!(f, " {cause}")?;
        }
        Ok(())
    }
}
