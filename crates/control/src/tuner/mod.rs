//! What is adjusted while the database runs: how many job slots there are, and how large memtables
//! are. A tuner looks at what has overflowed in a window of time, and says what holds from then on.
//!
//! What must stay true: where nothing overflows nothing is adjusted; nothing goes back and forth;
//! the sizes of tables are none of a tuner's.

mod adoc;
mod knob;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::options::JobSlots;
use crate::types::{ColumnFamilyId, Instant};

pub(crate) use adoc::Adoc;

/// A part of the tree that more flows into than out of (ADOC §4.1). In the order in which several
/// at once are handled (§5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overflow {
    /// Level 0 has as many runs as slow writers down.
    Level0,
    /// More waits for compaction than may.
    Redundancy,
    /// A memtable was full before the one before it was flushed.
    Memory,
}

impl Overflow {
    /// All of them, in the order of [`Overflow::index`].
    pub const ALL: [Overflow; 3] = [Overflow::Level0, Overflow::Redundancy, Overflow::Memory];

    /// A dense index below `ALL.len()` for arrays of counters.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name in metrics and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Overflow::Level0 => "level0",
            Overflow::Redundancy => "redundancy",
            Overflow::Memory => "memory",
        }
    }
}

/// What holds from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many jobs run at a time. Control itself keeps to it; the driver needs the threads.
    Slots(JobSlots),
    /// The memtables of a column family are sealed at another size: the next one is, not the one
    /// that takes writes.
    Memtable {
        /// Which column family.
        cf: ColumnFamilyId,
        /// At so many bytes.
        bytes: u64,
    },
}

/// One thing that is adjusted, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjustment {
    /// What holds from now on.
    pub limit: Limit,
    /// What has overflowed; `None`: options changed, and what they say holds again.
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

/// What has overflowed in a column family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overflows {
    pub(crate) level0: bool,
    pub(crate) redundancy: bool,
    pub(crate) memory: bool,
}

impl Overflows {
    /// In the order in which they are handled.
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
    /// The size of memtables that is configured.
    pub(crate) memtable_bytes: u64,
    pub(crate) overflows: Overflows,
}

/// What a tuner sees of a window of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    /// The column families in which something has overflowed.
    pub(crate) families: Vec<FamilySignals>,
}

/// Adjusts what can be while the database runs.
pub(crate) trait Tuner: fmt::Debug + Send {
    /// Looks at a window that ends now. What is to hold from now on, each thing once at most.
    fn observe(&mut self, now: Instant, signals: &Signals) -> Vec<Adjustment>;

    /// The memtables of a column family are as they are configured, or it is gone.
    fn forget(&mut self, cf: ColumnFamilyId);
}
