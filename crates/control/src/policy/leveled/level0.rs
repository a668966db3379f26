//! Compactions out of level 0. The first of these that applies is picked:
//!
//! 1. [`settle_level0`] moves tables that share keys with no other table to the base level as they
//!    are.
//! 2. [`intra_level0_by_size`] merges level 0 into itself while the base level is very large.
//! 3. [`level0_to_base`] merges tables into the base level: stripes ([`stripes_to_base`]), the
//!    oldest runs of a queue ([`oldest`]), or all tables that are connected by overlap with the
//!    oldest one.
//! 4. [`intra_level0_when_blocked`] merges the newest runs into one while other jobs block the base
//!    level.

use super::intra_level0::{intra_level0_by_size, intra_level0_when_blocked, is_free};
use super::queue::{is_queue, oldest};
use super::settle::settle_level0;
use super::stripes::{Stripe, free_stripes, goes_by_stripes, stripes_to_base, stuck_stripe};
use crate::geometry::{Bounds, Span, closure, hull, union};
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::PickContext;
use crate::types::Epoch;
use crate::version::Run;

/// Returns the next compaction out of level 0, or within it.
pub(super) fn pick_level0(context: &PickContext<'_>) -> Option<CompactionPlan> {
    settle_level0(context)
        .or_else(|| intra_level0_by_size(context))
        .or_else(|| level0_to_base(context))
        .or_else(|| intra_level0_when_blocked(context))
}

/// Returns a plan for all tables of level 0 that are connected by overlap with the first table of
/// its oldest run, and for what they overlap in the base level. Runs that are being merged within
/// level 0 are left out, and so are all newer runs. The older runs wait for that merge if they
/// would rewrite more bytes than they bring.
fn level0_to_base(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let base = context.targets.base_level;
    let level0 = context.version.level(0);
    if goes_by_stripes(context) {
        return stripes_to_base(context);
    }
    if context.in_flight.level0_going_down(context.cf()) {
        return None;
    }
    let free = level0.runs().iter().rev().take_while(|run| is_free(context, run)).count();
    let runs = &level0.runs()[level0.runs().len() - free..];
    let mut inputs = context.oldest_of_level0(going_down(context, runs)?);
    let bounds = hull(&inputs)?;
    let below = context.overlap(base, bounds);
    let taken = inputs.iter().map(Span::bytes).sum::<u64>();
    if free < level0.runs().len() && taken < below.as_ref().map_or(0, Span::bytes) {
        return None;
    }
    if let Some(below) = &below
        && !is_queue(context.options)
    {
        // More tables of level 0 are added if they rewrite no more of the base level.
        let wider = level0_closure(runs, union(bounds, below.bounds()));
        let bytes = wider.iter().map(Span::bytes).sum::<u64>() + below.bytes();
        let wider_bounds = hull(&wider)?;
        let same =
            context.overlap(base, wider_bounds).is_some_and(|span| span.ranks == below.ranks);
        if same && bytes <= context.bytes_max() {
            inputs = wider;
        }
    }
    inputs.extend(below);
    if !context.may_take(&inputs, base) {
        return None;
    }
    context.plan(CompactionReason::Level0Runs, &inputs, &[], (base, Epoch(0)))
}

/// Returns a plan for `table` of level 0 with all tables that are connected with it by overlap, and
/// for what they overlap in the base level.
pub(super) fn level0_around<'a>(
    context: &PickContext<'a>,
    reason: CompactionReason,
    table: &Span<'a>,
) -> Option<CompactionPlan> {
    let base = context.targets.base_level;
    if context.in_flight.level0_going_down(context.cf()) {
        return None;
    }
    let connected = level0_closure(context.version.level(0).runs(), table.bounds()?);
    let mut inputs = context.oldest_of_level0(connected);
    inputs.extend(context.overlap(base, hull(&inputs)?));
    if !context.may_take(&inputs, base) {
        return None;
    }
    context.plan(reason, &inputs, &[], (base, Epoch(0)))
}

/// Returns the inputs of the next compaction out of level 0, with those in the base level.
pub(super) fn next_out_of_level0<'a>(context: &PickContext<'a>) -> Option<Vec<Span<'a>>> {
    if goes_by_stripes(context) {
        let Stripe { mut inputs, below } = free_stripes(context).pop()?;
        inputs.extend(below);
        return Some(inputs);
    }
    let inputs = going_down(context, context.version.level(0).runs())?;
    let below =
        hull(&inputs).and_then(|bounds| context.overlap(context.targets.base_level, bounds));
    Some(inputs.into_iter().chain(below).collect())
}

/// Returns the tables of level 0 that should be compacted next, if other jobs block them.
pub(super) fn waits_for_others<'a>(context: &PickContext<'a>) -> Option<Vec<Span<'a>>> {
    if goes_by_stripes(context) {
        return stuck_stripe(context);
    }
    going_down(context, context.version.level(0).runs())
}

/// Returns the tables that are compacted first of `runs`, the oldest runs of level 0: the oldest
/// runs of a queue, whole and newest first; otherwise the tables that are connected by overlap with
/// the first table of the oldest run.
fn going_down<'a>(context: &PickContext<'a>, runs: &'a [Run]) -> Option<Vec<Span<'a>>> {
    let run = runs.last()?;
    if is_queue(context.options) {
        return Some(oldest(context.options, runs).iter().map(|run| Span::whole(0, run)).collect());
    }
    Some(level0_closure(runs, Span { level: 0, run, ranks: 0..1 }.bounds()?))
}

/// Returns the tables of `runs`, runs of level 0, that share keys with `bounds`, then those that
/// share keys with these, and so on. The newest run comes first.
pub(crate) fn level0_closure<'a>(runs: &'a [Run], bounds: Bounds<'a>) -> Vec<Span<'a>> {
    closure(|| runs.iter().map(|run| (0, run)), bounds)
}
