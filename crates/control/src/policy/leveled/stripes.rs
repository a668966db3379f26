//! Compacts level 0 into the base level one stripe at a time. Each compaction takes a small part of
//! level 0, and stripes that share no key can be compacted side by side.
//!
//! 1. [`filled_stripes`] finds the tables that begin in each stripe. It adds the tables of level 0
//!    that they are connected with by overlap, and the tables of the base level that these overlap.
//! 2. [`free_stripes`] sorts the stripes that may be compacted by depth: the number of tables on
//!    top of each other.
//! 3. A stripe waits if it would rewrite more bytes than it brings. Its newest tables are merged
//!    into one run meanwhile ([`newest_merged`]), or it stays as it is while more data comes.
//! 4. [`stripes_to_base`] takes the deepest stripe that does not wait, and further ones that are
//!    due, up to the budget of a group. Beside clients only as many such jobs run as
//!    [`another_may_run`] allows.
//! 5. [`stuck_stripe`] finds a deep stripe that other jobs block. These jobs are told to end early.

use std::cmp::Reverse;

use super::intra_level0::worth_merging;
use super::level0::level0_closure;
use crate::geometry::{Span, hull, ranks};
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::PickContext;
use crate::types::Epoch;

/// The fewest tables of a waiting stripe that are merged. With fewer at a time, each byte would be
/// merged more often before it reaches the base level.
const STRIPE_RUNS_MIN: usize = 6;
/// How many times smaller a group of stripes is than a group of deeper levels, beside clients. The
/// stripes of a group are blocked until the whole group is done.
const GROUP_SHARE: u64 = 4;
/// The bytes per second that one compaction of stripes moves by itself, with LZ4. Beside clients
/// one such job runs, and one more for each time that the device has this bandwidth left. Further
/// jobs would only share the device, and each would block its stripes for longer.
const JOB_BYTES_PER_SECOND: u64 = 200_000_000;

/// Returns true if level 0 is compacted by stripes. A level 0 that is a queue has none.
pub(super) fn goes_by_stripes(context: &PickContext<'_>) -> bool {
    !context.stripes.is_empty() && !context.options.leveled.level0_fifo
}

/// The tables of level 0 that begin in one stripe, and those that they are connected with by
/// overlap.
pub(super) struct Stripe<'a> {
    /// The tables of level 0, newest run first.
    pub(super) inputs: Vec<Span<'a>>,
    /// The tables of the base level that these overlap.
    pub(super) below: Option<Span<'a>>,
}

impl<'a> Stripe<'a> {
    /// Returns all inputs of a compaction of the stripe, newest data first.
    fn spans(&self) -> impl Iterator<Item = &Span<'a>> + Clone {
        self.inputs.iter().chain(&self.below)
    }

    fn is_free(&self, context: &PickContext<'_>) -> bool {
        context.may_take(self.spans(), context.targets.base_level)
    }

    /// Returns true if a part of the stripe is being compacted.
    fn is_claimed(&self, context: &PickContext<'_>) -> bool {
        self.inputs.iter().any(|span| context.any_claimed(span))
    }

    /// Returns true if the stripe shares no key with the inputs of `other`.
    fn is_apart(&self, other: &Stripe<'_>) -> bool {
        let (own, other) = (hull(self.spans()), hull(other.spans()));
        own.zip(other).is_some_and(|(own, other)| own.1 < other.0 || other.1 < own.0)
    }

    /// Returns the bytes that the stripe brings to the base level.
    fn bytes(&self) -> u64 {
        self.inputs.iter().map(Span::bytes).sum()
    }

    /// Returns the bytes that it rewrites there.
    fn below_bytes(&self) -> u64 {
        self.below.as_ref().map_or(0, Span::bytes)
    }

    /// Returns true if the stripe should collect more first: it would rewrite more than it brings.
    fn waits(&self, context: &PickContext<'_>) -> bool {
        let merges =
            context.options.leveled.intra_level0_compaction && context.input_bytes_max == u64::MAX;
        merges && self.below_bytes() > self.bytes() && !self.costs_reads(context)
    }

    /// Returns true if reads pay more for the tables on top of each other than waiting saves.
    fn costs_reads(&self, context: &PickContext<'_>) -> bool {
        let collects = context.options.level0_runs_to_collect();
        let impatient = collects < context.options.level0_trigger;
        impatient && self.inputs.len() >= collects as usize
    }

    /// Returns true if the stripe stays as it is to collect more. It does not stay once so many
    /// tables lie on top of each other that writers would soon be slowed down.
    fn stays(&self, context: &PickContext<'_>) -> bool {
        let slowdown = context.options.level0_slowdown as usize;
        self.waits(context) && context.more_comes && self.inputs.len() < slowdown * 3 / 5
    }

    /// Returns the tables on top of each other, and the bytes brought for each byte rewritten.
    fn rank(&self) -> (usize, u64) {
        let rewritten = self.bytes() + self.below_bytes();
        (self.inputs.len(), self.bytes().saturating_mul(1000) / rewritten.max(1))
    }
}

/// Returns the stripes that have tables in level 0.
fn filled_stripes<'a>(context: &PickContext<'a>) -> impl Iterator<Item = Stripe<'a>> {
    let runs = context.version.level(0).runs();
    let stripes = context.stripes;
    (0..=stripes.len()).filter_map(move |nth| {
        let (from, to) = (nth.checked_sub(1).and_then(|at| stripes.get(at)), stripes.get(nth));
        let seed = runs.iter().rev().find_map(|run| {
            let ranks = ranks(run, from, to);
            (!ranks.is_empty()).then_some(Span { level: 0, run, ranks })
        })?;
        let inputs = level0_closure(runs, seed.bounds()?);
        let inputs = context.oldest_of_level0(inputs);
        let below = context.overlap(context.targets.base_level, hull(&inputs)?);
        Some(Stripe { inputs, below })
    })
}

/// Returns the stripes that may be compacted. The last one has the most tables on top of each
/// other. Of equals it is the one that brings the most bytes for each byte that it rewrites.
pub(super) fn free_stripes<'a>(context: &PickContext<'a>) -> Vec<Stripe<'a>> {
    let mut free: Vec<_> =
        filled_stripes(context).filter(|stripe| stripe.is_free(context)).collect();
    free.sort_by_key(Stripe::rank);
    free
}

/// Returns a plan for the deepest free stripe, or one that merges the newest tables of a stripe
/// that waits. Further stripes that are due join, neighbours or not, up to the budget of a group:
/// all of them share the barriers of one compaction.
pub(super) fn stripes_to_base(context: &PickContext<'_>) -> Option<CompactionPlan> {
    if !another_may_run(context) {
        return None;
    }
    let mut free = free_stripes(context);
    let deepest = loop {
        let next = free.pop()?;
        if !next.waits(context) {
            break next;
        }
        if let Some(plan) = newest_merged(context, &next.inputs) {
            return Some(plan);
        }
        if !next.stays(context) {
            break next;
        }
    };
    let due = context.options.level0_runs_to_collect().max(1) as usize;
    let most = context.options.leveled.group_compaction_bytes;
    let budget = match context.group_bytes_max {
        u64::MAX => most,
        beside_clients => most.min(beside_clients) / GROUP_SHARE,
    };
    let mut bytes = deepest.bytes() + deepest.below_bytes();
    let mut group = vec![deepest];
    while let Some(next) = free.pop().filter(|next| next.inputs.len() >= due) {
        if next.stays(context) || !group.iter().all(|other| other.is_apart(&next)) {
            continue;
        }
        bytes += next.bytes() + next.below_bytes();
        if bytes > budget {
            break;
        }
        group.push(next);
    }
    group.sort_by(|a, b| hull(a.spans()).cmp(&hull(b.spans())));
    let mut rewrite: Vec<_> = group.iter().flat_map(|stripe| stripe.inputs.clone()).collect();
    rewrite.sort_by_key(|span| Reverse(span.run.epoch()));
    rewrite.extend(group.iter().filter_map(|stripe| stripe.below.clone()));
    let output = (context.targets.base_level, Epoch(0));
    let mut plan = context.plan(CompactionReason::Level0Runs, &rewrite, &[], output)?;
    let begins = group.iter().skip(1).filter_map(|stripe| hull(stripe.spans()));
    plan.breaks = begins.map(|(smallest, _)| smallest.clone()).collect();
    Some(plan)
}

/// Returns true if the device has bandwidth left for one more compaction by stripes.
fn another_may_run(context: &PickContext<'_>) -> bool {
    let running = context.in_flight.level0_jobs(context.cf()) as u64;
    // The limit on a group is what the device has left in a second.
    running <= context.group_bytes_max / JOB_BYTES_PER_SECOND
}

/// Returns true if all stripes that are not being compacted stay as they are to collect more.
pub(super) fn level0_stays(context: &PickContext<'_>) -> bool {
    if !goes_by_stripes(context) {
        return false;
    }
    let waiting = |stripe: &Stripe<'_>| !stripe.is_claimed(context);
    let mut waiting = filled_stripes(context).filter(waiting).peekable();
    waiting.peek().is_some() && waiting.all(|stripe| stripe.stays(context))
}

/// Returns the stripe that other jobs block, if it is deeper than every free stripe by at least the
/// trigger of level 0. Otherwise the free stripes come first.
pub(super) fn stuck_stripe<'a>(context: &PickContext<'a>) -> Option<Vec<Span<'a>>> {
    let (free, stuck): (Vec<_>, Vec<_>) = filled_stripes(context)
        .filter(|stripe| !stripe.is_claimed(context))
        .partition(|stripe| stripe.is_free(context));
    let stuck = stuck.into_iter().filter(|stripe| !stripe.stays(context));
    let stuck = stuck.max_by_key(Stripe::rank)?;
    let trigger = context.options.level0_trigger.max(1) as usize;
    let others = free.iter().map(|stripe| stripe.inputs.len()).max().unwrap_or(0);
    (stuck.inputs.len() >= others + trigger).then_some(stuck.inputs)
}

/// Returns a plan that merges the newest tables of a stripe into one run, so that more data
/// collects before the base level is rewritten. `inputs` are the tables of level 0 in the stripe,
/// newest first.
fn newest_merged(context: &PickContext<'_>, inputs: &[Span<'_>]) -> Option<CompactionPlan> {
    let taken = worth_merging(context, inputs.iter().map(Span::bytes));
    let newest = inputs.get(..taken).filter(|newest| newest.len() >= STRIPE_RUNS_MIN)?;
    let epoch = newest.first()?.run.epoch();
    context.plan(CompactionReason::IntraLevel0, newest, &[], (0, epoch))
}
