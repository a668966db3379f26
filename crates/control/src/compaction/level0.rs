//! The ways out of level 0: what touches nothing changes level unread; the rest goes down to the
//! base level, by stripes or as it hangs together; and where that way is blocked, or would rewrite
//! much for little, runs are merged into one that stays.

use std::cmp::Reverse;
use std::ops::Range;

use super::plan::{CompactionPlan, CompactionReason};
use super::stripes::ranks;
use super::{Bounds, PickContext, Span, closure, hull, union};
use crate::options::CompactionStyle;
use crate::types::{Epoch, UserKey};
use crate::version::Run;

/// Fewer runs than this are not worth a compaction within level 0.
const INTRA_LEVEL0_RUNS_MIN: usize = 4;
/// Of a stripe that waits for more so many are merged: fewer at a time, and each byte is merged
/// more often before it goes down.
const STRIPE_RUNS_MIN: usize = 6;
/// Beside clients a group of stripes is so much smaller than one of deeper levels: what it holds
/// can go down only with the next.
const GROUP_SHARE: u64 = 4;
/// Beside clients one compaction by stripes runs at a time, and another one for each time that so
/// much is left for it in a second: about what one moves by itself, with LZ4. Where the device is
/// what is short they would only share it, and each would hold its stripes for as long as all of
/// them take.
const JOB_BYTES_PER_SECOND: u64 = 200_000_000;

/// The next compaction out of level 0, or within it.
pub(super) fn pick_level0(context: &PickContext<'_>) -> Option<CompactionPlan> {
    settle_level0(context)
        .or_else(|| intra_level0_by_size(context))
        .or_else(|| level0_to_base(context))
        .or_else(|| intra_level0_when_blocked(context))
}

/// Tables of level 0 that share keys with nothing else in level 0, nor in the base level, go there
/// as they are, whatever their run. What shares keys with newer runs only could go, too, but
/// merging it with them now is cheaper than merging them into it later.
fn settle_level0(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let base = context.targets.base_level;
    if !context.same_compression(0, base) {
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
            && context.may_settle(table, base)
            && context.may_write(base, wider)
        {
            apart.push((run, rank));
            hull = Some(wider);
        }
    }
    // Newest data first, neighbours together.
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

/// When the base level is so large that merging into it would rewrite it for little, level 0 is
/// merged into itself.
fn intra_level0_by_size(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let level0 = context.version.level(0);
    let runs_min = context.options.level0_file_num_compaction_trigger.max(2) as usize;
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

/// A queue is not merged: each of its runs goes down by itself. What goes down by stripes is merged
/// by stripes.
fn intra_level0_allowed(context: &PickContext<'_>) -> bool {
    context.options.intra_level0_compaction
        && !context.options.level0_fifo
        && context.stripes.is_empty()
        && context.input_bytes_max == u64::MAX
}

/// Twice the multiplier, 20 at least: from there on the base level is large for level 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a multiplier of at least 10, and the cast saturates"
)]
fn base_to_level0_max(context: &PickContext<'_>) -> u64 {
    (context.options.max_bytes_for_level_multiplier.max(10.0) * 2.0) as u64
}

fn is_free(context: &PickContext<'_>, run: &Run) -> bool {
    !run.iter().any(|table| context.in_flight.is_claimed(table))
}

/// All of level 0 that hangs together with the first table of its oldest run, and what it overlaps
/// in the base level.
/// Newer runs that are being merged within level 0 stay, and all above them; what is older waits
/// for them if it would rewrite more of the base level than it brings.
fn level0_to_base(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let base = context.targets.base_level;
    let level0 = context.version.level(0);
    // Stripes that do not touch go down side by side.
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
        && !context.options.level0_fifo
    {
        // More of level 0 may go along if it rewrites no more of the base level.
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

/// A queue has no stripes.
fn goes_by_stripes(context: &PickContext<'_>) -> bool {
    !context.stripes.is_empty() && !context.options.level0_fifo
}

/// What the next compaction out of level 0 takes, and what it overlaps in the base level.
pub(super) fn next_out_of_level0<'a>(context: &PickContext<'a>) -> Option<Vec<Span<'a>>> {
    if goes_by_stripes(context) {
        let Stripe { mut inputs, below } = free_stripes(context).pop()?;
        inputs.extend(below);
        return Some(inputs);
    }
    let inputs = going_down(context, context.version.level(0).runs())?;
    let leveled = context.options.compaction_style == CompactionStyle::Leveled;
    let below = hull(&inputs).filter(|_| leveled);
    let below = below.and_then(|bounds| context.overlap(context.targets.base_level, bounds));
    Some(inputs.into_iter().chain(below).collect())
}

/// What others keep from going down, if it should go next.
pub(super) fn waits_for_others<'a>(context: &PickContext<'a>) -> Option<Vec<Span<'a>>> {
    if goes_by_stripes(context) {
        return stuck_stripe(context);
    }
    going_down(context, context.version.level(0).runs())
}

/// What goes down first of `runs`, the oldest ones of level 0: the oldest of all, or what hangs
/// together with its first table.
fn going_down<'a>(context: &PickContext<'a>, runs: &'a [Run]) -> Option<Vec<Span<'a>>> {
    let run = runs.last()?;
    if context.options.level0_fifo {
        return Some(vec![Span { level: 0, run, ranks: 0..run.len() }]);
    }
    Some(level0_closure(runs, Span { level: 0, run, ranks: 0..1 }.bounds()?))
}

/// What hangs together in level 0 with what begins in one stripe.
struct Stripe<'a> {
    /// Newest run first.
    inputs: Vec<Span<'a>>,
    /// What that overlaps in the base level.
    below: Option<Span<'a>>,
}

impl<'a> Stripe<'a> {
    /// All that a compaction of it takes, newest data first.
    fn spans(&self) -> impl Iterator<Item = &Span<'a>> + Clone {
        self.inputs.iter().chain(&self.below)
    }

    fn is_free(&self, context: &PickContext<'_>) -> bool {
        context.may_take(self.spans(), context.targets.base_level)
    }

    /// Whether some of it is on its way.
    fn is_claimed(&self, context: &PickContext<'_>) -> bool {
        self.inputs.iter().any(|span| context.any_claimed(span))
    }

    /// Whether it touches no key of what `other` takes.
    fn is_apart(&self, other: &Stripe<'_>) -> bool {
        let (own, other) = (hull(self.spans()), hull(other.spans()));
        own.zip(other).is_some_and(|(own, other)| own.1 < other.0 || other.1 < own.0)
    }

    /// What it brings to the base level.
    fn bytes(&self) -> u64 {
        self.inputs.iter().map(Span::bytes).sum()
    }

    /// What it rewrites there.
    fn below_bytes(&self) -> u64 {
        self.below.as_ref().map_or(0, Span::bytes)
    }

    /// Whether more should come together first: going down would rewrite more than it brings.
    fn waits(&self, context: &PickContext<'_>) -> bool {
        let merges = context.options.intra_level0_compaction && context.input_bytes_max == u64::MAX;
        merges && self.below_bytes() > self.bytes()
    }

    /// Whether it stays for that: until so many tables are on top of each other that writers would
    /// be slowed down for them before long.
    fn stays(&self, context: &PickContext<'_>) -> bool {
        let slowdown = context.options.level0_slowdown_writes_trigger as usize;
        self.waits(context) && context.more_comes && self.inputs.len() < slowdown * 3 / 5
    }

    /// Tables on top of each other, and for each byte that is rewritten how many it brings.
    fn rank(&self) -> (usize, u64) {
        let rewritten = self.bytes() + self.below_bytes();
        (self.inputs.len(), self.bytes().saturating_mul(1000) / rewritten.max(1))
    }
}

/// The stripes that have something in level 0.
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

/// The stripes that may go down. Last the one with the most tables on top of each other, of equals
/// that with the most bytes for those it rewrites.
fn free_stripes<'a>(context: &PickContext<'a>) -> Vec<Stripe<'a>> {
    let mut free: Vec<_> =
        filled_stripes(context).filter(|stripe| stripe.is_free(context)).collect();
    free.sort_by_key(Stripe::rank);
    free
}

/// The deepest stripe, or the newest tables merged of one that waits for more. Of the next ones as
/// many as are due go along, neighbours or not, up to the budget of a group: the barriers that a
/// compaction costs are paid once for all of them.
fn stripes_to_base(context: &PickContext<'_>) -> Option<CompactionPlan> {
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
    let due = context.options.level0_file_num_compaction_trigger.max(1) as usize;
    let most = context.options.group_compaction_bytes;
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

/// Whether there is something left of the device for one more than there are.
fn another_may_run(context: &PickContext<'_>) -> bool {
    let running = context.in_flight.level0_jobs(context.cf()) as u64;
    // What one may take in at most is what there is for it in a second.
    running <= context.group_bytes_max / JOB_BYTES_PER_SECOND
}

/// Whether all of level 0 that is not on its way stays: nobody keeps it from going down.
pub(super) fn level0_stays(context: &PickContext<'_>) -> bool {
    if !goes_by_stripes(context) {
        return false;
    }
    let waiting = |stripe: &Stripe<'_>| !stripe.is_claimed(context);
    let mut waiting = filled_stripes(context).filter(waiting).peekable();
    waiting.peek().is_some() && waiting.all(|stripe| stripe.stays(context))
}

/// The stripe that others keep from going down, if it is deeper by the trigger of level 0 than all
/// that may: as long as it is not, those go first.
fn stuck_stripe<'a>(context: &PickContext<'a>) -> Option<Vec<Span<'a>>> {
    let (free, stuck): (Vec<_>, Vec<_>) = filled_stripes(context)
        .filter(|stripe| !stripe.is_claimed(context))
        .partition(|stripe| stripe.is_free(context));
    let stuck = stuck.into_iter().filter(|stripe| !stripe.stays(context));
    let stuck = stuck.max_by_key(Stripe::rank)?;
    let trigger = context.options.level0_file_num_compaction_trigger.max(1) as usize;
    let others = free.iter().map(|stripe| stripe.inputs.len()).max().unwrap_or(0);
    (stuck.inputs.len() >= others + trigger).then_some(stuck.inputs)
}

/// The tables of `runs`, of level 0, that share keys with `bounds`, and those that share keys with
/// them, and so on; newest run first.
pub(super) fn level0_closure<'a>(runs: &'a [Run], bounds: Bounds<'a>) -> Vec<Span<'a>> {
    closure(|| runs.iter().map(|run| (0, run)), bounds)
}

/// The way down is taken: the newest runs are merged into one, so that there are fewer.
fn intra_level0_when_blocked(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let runs = context.version.level(0).runs();
    let trigger = context.options.level0_file_num_compaction_trigger as usize;
    if !intra_level0_allowed(context) || runs.len() < trigger + 2 {
        return None;
    }
    let free = runs.iter().take_while(|run| is_free(context, run));
    let taken = worth_merging(context, free.map(Run::bytes));
    (taken >= INTRA_LEVEL0_RUNS_MIN).then(|| intra_level0(context, 0..taken))?
}

/// How many of these, by their bytes, are merged: as long as each further one makes the merge
/// cheaper for each that goes.
fn worth_merging(context: &PickContext<'_>, sizes: impl Iterator<Item = u64>) -> usize {
    let mut bytes = 0u64;
    let mut bytes_per_run_gone = u64::MAX;
    let mut taken = 0;
    for size in sizes {
        bytes += size;
        let per_run = bytes / (taken as u64).max(1);
        let cheaper = taken < 2 || per_run <= bytes_per_run_gone;
        if !cheaper || bytes > context.options.compaction_bytes_max() {
            break;
        }
        taken += 1;
        bytes_per_run_gone = per_run;
    }
    taken
}

/// Merges neighbouring runs of level 0 into one that stands where the newest of them stood.
pub(super) fn intra_level0(
    context: &PickContext<'_>,
    which: Range<usize>,
) -> Option<CompactionPlan> {
    let runs = context.version.level(0).runs().get(which)?;
    let spans: Vec<_> =
        runs.iter().map(|run| Span { level: 0, run, ranks: 0..run.len() }).collect();
    let epoch = runs.first()?.epoch();
    context.plan(CompactionReason::IntraLevel0, &spans, &[], (0, epoch))
}

/// The newest tables of a stripe merged into one run: more comes together before the base level is
/// rewritten. `inputs`: all of the stripe, newest first.
fn newest_merged(context: &PickContext<'_>, inputs: &[Span<'_>]) -> Option<CompactionPlan> {
    let taken = worth_merging(context, inputs.iter().map(Span::bytes));
    let newest = inputs.get(..taken).filter(|newest| newest.len() >= STRIPE_RUNS_MIN)?;
    let epoch = newest.first()?.run.epoch();
    context.plan(CompactionReason::IntraLevel0, newest, &[], (0, epoch))
}
