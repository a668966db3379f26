//! The rules by which output tables end. [`OutputCutter`](super::OutputCutter) applies them.

use crate::types::UserKey;

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
