//! Merges level 0 into itself, when other jobs block the base level or merging into it would
//! rewrite too much.
//!
//! 1. [`intra_level0_by_size`] merges all free runs while the base level is very large.
//! 2. [`intra_level0_when_blocked`] merges the newest free runs while other jobs block the base
//!    level.
//! 3. [`worth_merging`] takes further runs while each makes the merge cheaper per run that it
//!    removes.
//! 4. [`intra_level0`] puts the result in the place of the newest of them.

use std::ops::Range;

use crate::geometry::Span;
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::PickContext;
use crate::version::Run;

/// The fewest runs that are worth a compaction within level 0.
const INTRA_LEVEL0_RUNS_MIN: usize = 4;

/// Returns a plan that merges level 0 into itself, because the base level is so large that merging
/// into it would rewrite many bytes for few.
pub(super) fn intra_level0_by_size(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let level0 = context.version.level(0);
    let runs_min = context.options.level0_trigger.max(2) as usize;
    let base_bytes = context.version.level(context.targets.base_level).bytes();
    if !intra_level0_allowed(context)
        || context.in_flight.level0_running(context.cf())
        || level0.runs().len() < runs_min
        || base_bytes <= level0.bytes().saturating_mul(base_to_level0_max(context))
    {
        return None;
    }
    let free = level0.runs().iter().take_while(|run| is_free(context, run)).count();
    (free >= runs_min).then(|| intra_level0(context, 0..free))?
}

/// Returns true if whole runs of level 0 may be merged. The runs of a queue are compacted one by
/// one, and a level 0 with stripes is merged by stripes.
fn intra_level0_allowed(context: &PickContext<'_>) -> bool {
    context.options.leveled.intra_level0_compaction
        && !context.options.leveled.level0_fifo
        && context.stripes.is_empty()
        && context.input_bytes_max == u64::MAX
}

/// Returns the ratio of the base level to level 0 from which on the base level is large: twice the
/// multiplier, but at least 20.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a multiplier of at least 10, and the cast saturates"
)]
fn base_to_level0_max(context: &PickContext<'_>) -> u64 {
    (context.options.level_multiplier.max(10.0) * 2.0) as u64
}

/// Returns true if no table of `run` is in flight.
pub(super) fn is_free(context: &PickContext<'_>, run: &Run) -> bool {
    !run.iter().any(|table| context.in_flight.is_claimed(table))
}

/// Returns a plan that merges the newest runs of level 0 into one, because other jobs block the
/// base level.
pub(super) fn intra_level0_when_blocked(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let runs = context.version.level(0).runs();
    let trigger = context.options.level0_trigger as usize;
    if !intra_level0_allowed(context) || runs.len() < trigger + 2 {
        return None;
    }
    let free = runs.iter().take_while(|run| is_free(context, run));
    let taken = worth_merging(context, free.map(Run::bytes));
    (taken >= INTRA_LEVEL0_RUNS_MIN).then(|| intra_level0(context, 0..taken))?
}

/// Returns how many of the inputs, given by their bytes, are worth merging. Further inputs are
/// taken while each makes the merge cheaper per run that it removes.
pub(super) fn worth_merging(context: &PickContext<'_>, sizes: impl Iterator<Item = u64>) -> usize {
    let mut bytes = 0u64;
    let mut bytes_per_run_gone = u64::MAX;
    let mut taken = 0;
    for size in sizes {
        bytes += size;
        let per_run = bytes / (taken as u64).max(1);
        let cheaper = taken < 2 || per_run <= bytes_per_run_gone;
        if !cheaper || bytes > context.options.compaction_input_max() {
            break;
        }
        taken += 1;
        bytes_per_run_gone = per_run;
    }
    taken
}

/// Returns a plan that merges neighbouring runs of level 0 into one in the place of the newest.
pub(super) fn intra_level0(
    context: &PickContext<'_>,
    which: Range<usize>,
) -> Option<CompactionPlan> {
    let runs = context.version.level(0).runs().get(which)?;
    let spans: Vec<_> = runs.iter().map(|run| Span::whole(0, run)).collect();
    let epoch = runs.first()?.epoch();
    context.plan(CompactionReason::IntraLevel0, &spans, &[], (0, epoch))
}
