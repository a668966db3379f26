//! Level 0 as a queue (vLSM §4.1): only its oldest runs are compacted into the base level, one at a
//! time in the paper, so that a flush that waits for room waits for a small compaction.
//!
//! 1. [`is_queue`] says whether level 0 is one. The pick takes the [`oldest`] runs, whole, and
//!    nothing else.
//! 2. A queue is never merged into itself, and has no stripes.
//! 3. Each merge rewrites everything that it overlaps in the base level. [`merged_bytes`] and the
//!    debt, by [`merges`], count that.

use crate::policy::CfOptions;
use crate::policy::TreeView;
use crate::version::Run;

/// Returns true if level 0 is a queue.
pub(super) fn is_queue(options: &CfOptions) -> bool {
    options.leveled.level0_fifo
}

/// Returns the runs of `runs`, which are in the order of level 0, that one compaction out of a
/// queue takes: the oldest.
pub(super) fn oldest<'a>(options: &CfOptions, runs: &'a [Run]) -> &'a [Run] {
    let most = options.leveled.level0_fifo_runs_max.max(1) as usize;
    &runs[runs.len().saturating_sub(most)..]
}

/// Returns how many compactions it takes to empty a level 0 of `runs` runs.
pub(super) fn merges(options: &CfOptions, runs: usize) -> u64 {
    let at_once = options.leveled.level0_fifo_runs_max.max(1);
    if is_queue(options) { (runs as u64).div_ceil(u64::from(at_once)) } else { 1 }
}

/// Returns the bytes of level 0 that one compaction merges into the base level: the oldest runs of
/// a queue, and otherwise everything that is there at the trigger.
pub(super) fn merged_bytes(view: &TreeView<'_>) -> u64 {
    let level0 = view.version.level(0);
    let run = view.options.memtable_bytes;
    if is_queue(view.options) {
        let oldest = oldest(view.options, level0.runs()).iter();
        return oldest.map(Run::bytes).sum::<u64>().max(run);
    }
    let trigger = u64::from(view.options.level0_trigger.max(1));
    run.saturating_mul(trigger).max(level0.bytes())
}
