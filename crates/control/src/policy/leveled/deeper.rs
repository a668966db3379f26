//! Compactions out of a level below 0, as in RocksDB: one table, and neighbours that add no work.
//!
//! 1. [`victims`] returns the tables to try, best first. With groups, [`pick_group`] does the rest,
//!    and with ranges of neighbours [`pick_range`]. Otherwise [`compact_first`] takes the first one
//!    that is free.
//! 2. [`expand`] adds the tables of the level below that the victim overlaps, and neighbours of the
//!    victim that overlap no further ones. It refuses a victim if any of these tables is in flight.
//! 3. A victim that overlaps nothing below settles, with its neighbours ([`settle_more`]).
//! 4. The plan moves the level's cursor ([`fn@pointer`]).

use super::group::pick_group;
use super::range::pick_range;
use super::settle::settle_more;
use super::victims::{candidates_max, pointer, victims};
use crate::geometry::{Span, union};
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::{CompactionPriority, PickContext};
use crate::types::Epoch;
use crate::version::Run;

/// Returns why `level` is compacted.
pub(super) fn reason_of(context: &PickContext<'_>, level: u8) -> CompactionReason {
    match context.targets.lowest_unneeded_level {
        Some(lowest) if level <= lowest => CompactionReason::UnneededLevel,
        _ => CompactionReason::LevelSize,
    }
}

/// Returns a plan for one table of `level`, or a few, with what they overlap in the level below.
pub(super) fn pick_deeper(context: &PickContext<'_>, level: u8) -> Option<CompactionPlan> {
    let from_base =
        context.options.leveled.overlap_aware_tables && level == context.targets.base_level;
    if from_base || context.options.leveled.group_compaction_bytes > 0 {
        return pick_group(context, level, from_base);
    }
    let run = context.version.level(level).sorted()?;
    if context.options.leveled.compaction_priority == CompactionPriority::MinOverlappingRange {
        return pick_range(context, reason_of(context, level), (level, run));
    }
    let victims = victims(context, level, run, candidates_max(context));
    compact_first(context, reason_of(context, level), (level, run), victims)
}

/// Returns a plan for the first of `victims`, ranks of tables in a level's run, that is free, with
/// what it overlaps in the level below.
pub(super) fn compact_first(
    context: &PickContext<'_>,
    reason: CompactionReason,
    (level, run): (u8, &Run),
    victims: impl IntoIterator<Item = usize>,
) -> Option<CompactionPlan> {
    let output = (level + 1, Epoch(0));
    for victim in victims {
        let victim = Span { level, run, ranks: victim..victim + 1 };
        let Some((mut start, below)) = expand(context, victim) else { continue };
        let settle = below.is_none() && settle_more(context, &mut start);
        let mut plan = if settle {
            context.plan(reason, &[], std::slice::from_ref(&start), output)
        } else {
            let inputs: Vec<_> = [Some(start.clone()), below].into_iter().flatten().collect();
            context.plan(reason, &inputs, &[], output)
        }?;
        plan.compact_pointer = pointer(context, level, run, start.ranks.end - 1);
        return Some(plan);
    }
    None
}

/// Returns `start` with the neighbours that overlap no further tables below, and the tables below
/// that it overlaps. Returns `None` if any of them is in flight.
fn expand<'a>(
    context: &PickContext<'a>,
    mut start: Span<'a>,
) -> Option<(Span<'a>, Option<Span<'a>>)> {
    let bounds = start.bounds()?;
    let below = context.overlap(start.level + 1, bounds);
    if context.any_claimed(&start) || below.as_ref().is_some_and(|b| context.any_claimed(b)) {
        return None;
    }
    if let Some(below) = &below {
        let wider = context.overlap(start.level, union(bounds, below.bounds()))?;
        let same = || {
            let overlap = context.overlap(below.level, wider.bounds()?)?;
            (overlap.ranks == below.ranks).then_some(())
        };
        if wider.ranks != start.ranks
            && wider.bytes() + below.bytes() <= context.bytes_max()
            && !context.any_claimed(&wider)
            && same().is_some()
        {
            start = wider;
        }
    }
    let bounds = union(start.bounds()?, below.as_ref().and_then(Span::bounds));
    context.may_write(start.level + 1, bounds).then_some((start, below))
}
