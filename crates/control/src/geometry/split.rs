//! The rules by which output tables may be cut. [`OutputCutter`](super::OutputCutter) follows them.

use crate::types::UserKey;

/// Where output tables end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputSplit {
    /// By size, with a view to the level below the output.
    BySize {
        /// The target size.
        target_bytes: u64,
        /// The most that an output table may overlap with the level below the output.
        grandparent_overlap_bytes_max: u64,
        /// True if tables may become larger or smaller than the target to end where a table below
        /// ends.
        at_grandparent_boundaries: bool,
        /// True if a sixteenth of the target is enough to end at a gap between keys that is far
        /// wider than the table's key range.
        at_gaps: bool,
    },
    /// By overlap with the level below the output (vLSM §4.2.1): from the smallest size on, a table
    /// ends as soon as it overlaps more than `times` its own size.
    ByOverlap {
        /// The smallest table.
        bytes_min: u64,
        /// The largest table.
        bytes_max: u64,
        /// The overlap that a table may have, in multiples of its own size.
        times: u64,
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
