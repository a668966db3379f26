//! The rules by which output tables end. [`OutputCutter`](super::OutputCutter) applies them.

use crate::types::UserKey;

/// What a table may overlap in the level below its own, if compacting it is to be cheap (vLSM
/// §4.2.1): that many tables, or as many bytes as that many full ones have. Tables of other sizes
/// than today's, as another profile left them, may be larger than all of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverlapLimit {
    /// Tables of the level below.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl OverlapLimit {
    /// Returns true if a table that overlaps `tables` tables of `bytes` bytes is within the limit.
    #[must_use]
    pub fn allows(&self, tables: u64, bytes: u64) -> bool {
        tables <= self.tables || bytes <= self.bytes
    }
}

/// Where output tables end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputSplit {
    /// By size, and by the overlap with the level below the output.
    BySize {
        /// The target size.
        target_bytes: u64,
        /// The most that an output table may overlap with the level below the output.
        grandparent_overlap_bytes_max: u64,
        /// Whether tables may become larger or smaller than the target to end where a table below
        /// ends.
        at_grandparent_boundaries: bool,
        /// Whether a table of a sixteenth of the target may end at a gap that is far wider than its
        /// key range.
        at_gaps: bool,
    },
    /// By overlap with the level below the output (vLSM §4.2.1): from the smallest size on, a table
    /// ends before a key with which it would overlap more than `limit`.
    ByOverlap {
        /// The smallest table.
        bytes_min: u64,
        /// The largest table.
        bytes_max: u64,
        /// The overlap that a table may have.
        limit: OverlapLimit,
    },
    /// At guards, and by size between them (PebblesDB).
    AtGuards {
        /// The known guards, ascending.
        guards: Vec<UserKey>,
        /// One key in 2^`bits` is a guard, known or not.
        bits: u32,
        /// The target size.
        target_bytes: u64,
    },
}
