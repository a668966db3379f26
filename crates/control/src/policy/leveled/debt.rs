//! How many bytes wait for compaction: RocksDB's estimate.
//!
//! 1. If level 0 is due, all of it moves, and all of the base level is rewritten for it. A queue
//!    rewrites the base level once for each of its compactions.
//! 2. From the base level down, the surplus of each level over its target moves into the next. It
//!    rewrites there as much as the ratio of the two levels' sizes says.
//! 3. Level 0 that waits for overlap is no debt, and neither is an overlap-aware level without a
//!    good table: no compaction would work it off.

use super::super::levels::level_number;
use super::overlap_aware::keeps_all;
use super::queue::merges;
use super::score::level0_runs;
use super::targets::{ratio, scale};
use super::wait_for_overlap::waits_for_overlap;
use crate::policy::TreeView;

/// Returns the bytes that compactions have to move until every level is within its target.
pub(super) fn debt(view: &TreeView<'_>) -> u64 {
    let TreeView { version, options, targets } = *view;
    let levels = version.levels().len();
    let level0 = version.level(0);
    let runs = level0_runs(version, options) as u64;
    let due = runs >= u64::from(options.level0_runs_to_collect())
        || level0.bytes() >= options.level_base_bytes;
    let triggered = due && !waits_for_overlap(version, options, runs, level0.bytes());
    let merges = merges(options, level0.runs().len());
    let mut pending = if triggered { level0.bytes() } else { 0 };
    let mut moving = pending;
    for level in targets.base_level..level_number(levels - 1) {
        let own = version.level(level).bytes();
        if level == targets.base_level && triggered {
            pending += own.saturating_mul(merges);
        }
        let size = own + moving;
        let kept = if keeps_all(view, level) { size } else { targets.bytes_max(level) };
        moving = size.saturating_sub(kept);
        if moving > 0 {
            let below = version.level(level + 1).bytes();
            if below > 0 {
                pending += scale(moving, ratio(below, size) + 1.0);
            }
        }
    }
    if targets.base_level == level_number(levels - 1) && triggered {
        pending += version.level(targets.base_level).bytes().saturating_mul(merges);
    }
    pending
}
