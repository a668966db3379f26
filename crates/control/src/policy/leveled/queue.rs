//! Level 0 as a queue (vLSM §4.1): only the oldest run is compacted into the base level, so that a
//! flush that waits for room waits for the compaction of one run.
//!
//! 1. [`is_queue`] says whether level 0 is one. The pick takes the whole oldest run and nothing
//!    else.
//! 2. A queue is never merged into itself, and has no stripes.
//! 3. Each run is merged by itself with everything that it overlaps in the base level.
//!    [`merged_bytes`] and the debt count that.

use crate::policy::CfOptions;
use crate::policy::TreeView;

/// Returns true if level 0 is a queue.
pub(super) fn is_queue(options: &CfOptions) -> bool {
    options.leveled.level0_fifo
}

/// Returns the bytes of level 0 that one compaction merges into the base level: one run of a queue,
/// and otherwise everything that is there at the trigger.
pub(super) fn merged_bytes(view: &TreeView<'_>) -> u64 {
    let run = view.options.memtable_bytes;
    let trigger = u64::from(view.options.level0_trigger.max(1));
    match is_queue(view.options) {
        true => run,
        false => run.saturating_mul(trigger).max(view.version.level(0).bytes()),
    }
}
