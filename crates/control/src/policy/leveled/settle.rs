//! Moves tables that overlap nothing in the next level there as they are: a trivial move, or the
//! settled part of a group (BoLT §3.4).
//!
//! 1. [`may_settle`] refuses a table that overlaps too much of the level below its new one, its
//!    grandparents: it would soon have to be compacted with all of that. BoLT's text has no such
//!    check (`settle_checks_grandparents`).
//! 2. [`settle_level0`] sorts the tables of all runs of level 0 by key. It moves those at once that
//!    overlap no other table of level 0.
//! 3. [`settle_more`] moves a victim of a deeper level, with neighbours, up to
//!    [`SETTLE_TABLES_MAX`] tables.

use crate::geometry::{Bounds, Span, union};
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::{CfOptions, PickContext};
use crate::types::{Epoch, UserKey};
use crate::version::TableMeta;

/// The most tables that change level by one plan out of a level below 0.
const SETTLE_TABLES_MAX: usize = 4;

/// Returns the most that a table may overlap with the level below its own.
pub(super) fn grandparent_overlap_bytes_max(options: &CfOptions) -> u64 {
    match options.leveled.grandparent_bytes_max {
        0 => options.compaction_input_max(),
        bytes => bytes,
    }
}

/// Returns true if `table`, which overlaps nothing in `level`, may settle there.
pub(super) fn may_settle(context: &PickContext<'_>, table: &TableMeta, level: u8) -> bool {
    // Separated values keep their WAL alive as long as the table exists, so such a table must be
    // rewritten.
    if table.placement.values().is_some() {
        return false;
    }
    if !context.options.leveled.settle_checks_grandparents {
        return true;
    }
    let grandparents = context
        .overlap(level + 1, (&table.smallest, &table.largest))
        .map_or(0, |span| span.bytes());
    grandparents + table.size_bytes <= grandparent_overlap_bytes_max(context.options)
}

/// Returns a plan that moves tables of level 0 into the base level as they are: those that share
/// keys with no other table of level 0 and with none of the base level. Tables that only share keys
/// with newer runs could be moved as well, but merging them now is cheaper than merging into them
/// later.
pub(super) fn settle_level0(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let base = context.targets.base_level;
    if !context.moves_as_is(0, base) {
        return None;
    }
    let runs = context.version.level(0).runs();
    let mut tables: Vec<_> = (runs.iter().enumerate())
        .flat_map(|(run, tables)| (0..tables.len()).map(move |rank| (run, rank)))
        .filter_map(|(run, rank)| Some((runs.get(run)?.get(rank)?, run, rank)))
        .collect();
    tables.sort_unstable_by(|a, b| a.0.smallest.cmp(&b.0.smallest));
    let mut apart: Vec<(usize, usize)> = Vec::new();
    let mut hull: Option<Bounds<'_>> = None;
    let mut reached: Option<&UserKey> = None;
    for (at, &(table, run, rank)) in tables.iter().enumerate() {
        let alone = reached.is_none_or(|reached| *reached < table.smallest)
            && tables.get(at + 1).is_none_or(|(next, ..)| table.largest < next.smallest);
        reached = reached.max(Some(&table.largest));
        let bounds = (&table.smallest, &table.largest);
        let wider = hull.map_or(bounds, |hull| union(hull, Some(bounds)));
        if alone
            && !context.in_flight.is_claimed(table)
            && context.overlap(base, bounds).is_none()
            && may_settle(context, table, base)
            && context.may_write(base, wider)
        {
            apart.push((run, rank));
            hull = Some(wider);
        }
    }
    // Newest data first, and neighbours in one span.
    apart.sort_unstable();
    let mut settle: Vec<Span<'_>> = Vec::new();
    let mut last = None;
    for (run, rank) in apart {
        match settle.last_mut() {
            Some(span) if last == Some(run) && span.ranks.end == rank => span.ranks.end += 1,
            _ => settle.push(Span { level: 0, run: runs.get(run)?, ranks: rank..rank + 1 }),
        }
        last = Some(run);
    }
    context.plan(CompactionReason::Level0Runs, &[], &settle, (base, Epoch(0)))
}

/// Returns true if the one table in `start`, which overlaps nothing below, may settle. Its right
/// neighbours join `start` as long as the same is true of them.
pub(super) fn settle_more<'a>(context: &PickContext<'a>, start: &mut Span<'a>) -> bool {
    let output = start.level + 1;
    let may_settle = |span: &Span<'_>| span.tables().all(|t| may_settle(context, t, output));
    if !context.moves_as_is(start.level, output) || !may_settle(start) {
        return false;
    }
    while start.ranks.len() < SETTLE_TABLES_MAX && start.ranks.end < start.run.len() {
        let next = Span { ranks: start.ranks.end..start.ranks.end + 1, ..start.clone() };
        let wider = Span { ranks: start.ranks.start..next.ranks.end, ..start.clone() };
        let free = wider.bounds().is_some_and(|bounds| {
            context.overlap(output, bounds).is_none() && context.may_write(output, bounds)
        });
        if !free || context.any_claimed(&next) || !may_settle(&next) {
            break;
        }
        *start = wider;
    }
    true
}
