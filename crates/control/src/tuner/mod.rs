//! The tuner: it adjusts the number of job slots and the size of memtables while the database runs.
//! It looks at what has overflowed in a window of time.
//!
//! What must stay true: without an overflow nothing is adjusted. Limits do not oscillate. The tuner
//! never changes the size of tables.

mod adoc;
mod knob;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::options::JobSlots;
use crate::types::{ColumnFamilyId, Instant};

pub(crate) use adoc::Adoc;

/// A stage into which more flows than out of it (ADOC §4.1). Several at once are handled in this
/// order (§5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overflow {
    /// Level 0 has so many runs that writers are slowed down.
    Level0,
    /// The compaction debt exceeds its limit.
    Redundancy,
    /// A memtable was full before the one before it was flushed.
    Memory,
}

impl Overflow {
    /// All of them, in the order of [`Overflow::index`].
    pub const ALL: [Overflow; 3] = [Overflow::Level0, Overflow::Redundancy, Overflow::Memory];

    /// Returns a dense index below `ALL.len()`, for arrays of counters.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the name in metrics and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Overflow::Level0 => "level0",
            Overflow::Redundancy => "redundancy",
            Overflow::Memory => "memory",
        }
    }
}

/// A limit that is adjusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The number of jobs that may run at a time. Control enforces it; the driver needs the
    /// threads.
    Slots(JobSlots),
    /// The size at which a column family's memtables are sealed, from the next one on.
    Memtable {
        /// The column family.
        cf: ColumnFamilyId,
        /// The size in bytes.
        bytes: u64,
    },
}

/// A change of a limit, and its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjustment {
    /// The new limit.
    pub limit: Limit,
    /// The overflow; `None` if options changed and their value applies again.
    pub overflow: Option<Overflow>,
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Limit::Slots(JobSlots { flushes, compactions }) => {
                write!(f, "flushes={flushes} compactions={compactions}")?;
            }
            Limit::Memtable { cf, bytes } => write!(f, "{cf} memtable={bytes}")?,
        }
        match self.overflow {
            Some(overflow) => write!(f, " by={}", overflow.name()),
            None => write!(f, " by=options"),
        }
    }
}

/// The overflows of a column family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overflows {
    pub(crate) level0: bool,
    pub(crate) redundancy: bool,
    pub(crate) memory: bool,
}

impl Overflows {
    /// Returns the overflows in the order in which they are handled.
    pub(crate) fn iter(self) -> impl Iterator<Item = Overflow> {
        let [level0, redundancy, memory] = Overflow::ALL;
        [(self.level0, level0), (self.redundancy, redundancy), (self.memory, memory)]
            .into_iter()
            .filter_map(|(is, overflow)| is.then_some(overflow))
    }
}

/// What a tuner sees of a column family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FamilySignals {
    pub(crate) cf: ColumnFamilyId,
    /// The configured size of memtables.
    pub(crate) memtable_bytes: u64,
    pub(crate) overflows: Overflows,
}

/// What a tuner sees of a window of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    /// The column families with an overflow.
    pub(crate) families: Vec<FamilySignals>,
}

/// Adjusts limits while the database runs.
pub(crate) trait Tuner: fmt::Debug + Send {
    /// Looks at a window that ends now. Returns the new limits, each at most once.
    fn observe(&mut self, now: Instant, signals: &Signals) -> Vec<Adjustment>;

    /// Forgets a column family that was dropped, or whose memtables have their configured size
    /// again.
    fn forget(&mut self, cf: ColumnFamilyId);
}
