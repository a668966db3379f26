//! The choice of HyperLevelDB (`min-overlapping-range`): neighbouring tables of a level that
//! together overlap the fewest bytes of the next level for their own. Neighbours share the tables
//! at their common borders, so a range writes less for its size than its tables would one by one.
//!
//! 1. [`Candidate::of`] looks up what each table overlaps, and leaves out what is in flight.
//! 2. [`settle_all`] moves all tables that overlap nothing by one plan, as that costs next to
//!    nothing.
//! 3. Otherwise [`best_range`] weighs every range of neighbours whose inputs are within
//!    `compaction_bytes_max`, and takes the best one.
//! 4. If no range is small enough, or other jobs are in its way, the table that overlaps least is
//!    compacted by itself.

use std::cmp::Ordering;
use std::ops::Range;

use super::deeper::compact_first;
use super::settle::may_settle;
use super::victims::{candidates_max, pointer, victims, window};
use crate::geometry::Span;
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::PickContext;
use crate::types::Epoch;
use crate::version::Run;

/// A table that may be compacted, and the ranks of what it overlaps in the next level.
struct Candidate<'a> {
    table: Span<'a>,
    below: Range<usize>,
}

impl<'a> Candidate<'a> {
    /// Returns the table with this rank; `None` if it, or what it overlaps, is in flight.
    fn of(context: &PickContext<'a>, level: u8, run: &'a Run, rank: usize) -> Option<Self> {
        let table = Span { level, run, ranks: rank..rank + 1 };
        let bounds = table.bounds()?;
        let below = context.overlap(level + 1, bounds);
        if !context.may_take(std::iter::once(&table).chain(&below), level + 1) {
            return None;
        }
        let next = context.version.level(level + 1).sorted();
        let ranks = next.map(|next| next.overlap(bounds.0.bytes(), bounds.1.bytes()));
        Some(Candidate { table, below: ranks.unwrap_or_default() })
    }

    /// Returns true if the table may change level as it is.
    fn settles(&self, context: &PickContext<'_>) -> bool {
        let output = self.table.level + 1;
        self.below.is_empty()
            && context.moves_as_is(self.table.level, output)
            && self.table.tables().all(|table| may_settle(context, table, output))
    }
}

/// Returns a plan for the best range of neighbouring tables of `level`.
pub(super) fn pick_range(
    context: &PickContext<'_>,
    reason: CompactionReason,
    (level, run): (u8, &Run),
) -> Option<CompactionPlan> {
    let ranks = window(context, level, run);
    let candidates: Vec<_> =
        ranks.filter_map(|rank| Candidate::of(context, level, run, rank)).collect();
    settle_all(context, reason, &candidates)
        .or_else(|| compact_range(context, reason, best_range(context, &candidates)?))
        .or_else(|| {
            let least_first = victims(context, level, run, candidates_max(context));
            compact_first(context, reason, (level, run), least_first)
        })
}

/// Returns a plan that moves all tables that overlap nothing; `None` if there are none.
fn settle_all(
    context: &PickContext<'_>,
    reason: CompactionReason,
    candidates: &[Candidate<'_>],
) -> Option<CompactionPlan> {
    let settling = candidates.iter().filter(|candidate| candidate.settles(context));
    let settle: Vec<_> = settling.map(|candidate| candidate.table.clone()).collect();
    let last = settle.last()?;
    let mut plan = context.plan(reason, &[], &settle, (last.level + 1, Epoch(0)))?;
    // Other jobs may use what lies between two of the tables.
    let begins = settle.iter().skip(1).filter_map(Span::bounds);
    plan.breaks = begins.map(|bounds| bounds.0.clone()).collect();
    plan.compact_pointer = pointer(context, last.level, last.run, last.ranks.start);
    Some(plan)
}

/// Returns a plan for a range, with what it overlaps in the next level; `None` if other jobs are in
/// its way.
fn compact_range<'a>(
    context: &PickContext<'a>,
    reason: CompactionReason,
    range: Span<'a>,
) -> Option<CompactionPlan> {
    let (level, run, last) = (range.level, range.run, range.ranks.end.checked_sub(1)?);
    let below = context.overlap(level + 1, range.bounds()?);
    let inputs: Vec<_> = std::iter::once(range).chain(below).collect();
    if !context.may_take(&inputs, level + 1) {
        return None;
    }
    let mut plan = context.plan(reason, &inputs, &[], (level + 1, Epoch(0)))?;
    plan.compact_pointer = pointer(context, level, run, last);
    Some(plan)
}

/// The bytes of a range, and those that it overlaps in the next level.
#[derive(Clone, Copy)]
struct Weight {
    bytes: u64,
    below: u64,
}

impl Weight {
    fn inputs(self) -> u64 {
        self.bytes.saturating_add(self.below)
    }

    /// Compares bytes for each byte below. Of equals the smaller range is better.
    fn compare(self, other: Weight) -> Ordering {
        let product = |bytes: u64, below: u64| u128::from(bytes) * u128::from(below);
        let by_ratio = product(self.bytes, other.below).cmp(&product(other.bytes, self.below));
        by_ratio.then(other.inputs().cmp(&self.inputs()))
    }
}

/// Returns the range of neighbouring candidates that has the most bytes for each byte that it
/// overlaps; `None` if the inputs of each range are too large.
fn best_range<'a>(context: &PickContext<'a>, candidates: &[Candidate<'a>]) -> Option<Span<'a>> {
    let inputs_max = context.bytes_max().min(context.group_bytes_max);
    let next_level = context.version.level(candidates.first()?.table.level + 1).sorted();
    let mut best: Option<(Weight, Span<'a>)> = None;
    for (at, first) in candidates.iter().enumerate() {
        let mut range = first.table.clone();
        let mut bytes = 0;
        for next in candidates.get(at..).unwrap_or_default() {
            if next.table.ranks.start > range.ranks.end {
                break;
            }
            range.ranks.end = next.table.ranks.end;
            bytes += next.table.bytes();
            let overlap = first.below.start..next.below.end.max(first.below.start);
            let below = next_level.map_or(0, |run| run.bytes_in(overlap));
            let weight = Weight { bytes, below };
            if weight.inputs() > inputs_max {
                break;
            }
            if best.as_ref().is_none_or(|(best, _)| weight.compare(*best).is_gt()) {
                best = Some((weight, range.clone()));
            }
        }
    }
    best.map(|(_, range)| range)
}
