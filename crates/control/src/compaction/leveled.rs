//! The leveled shape as RocksDB compacts it: level 0 down to the base level, what hangs together
//! at once; deeper levels a few tables at a time; level 0 into itself when its way down is blocked;
//! and tables that touch nothing change level without being read. LevelDB is the same with other
//! values.

use std::ops::Range;

use super::group::pick_group;
use super::plan::{CompactionPlan, CompactionReason};
use super::stripes::ranks;
use super::{Bounds, CompactionPicker, PickContext, Span, hull, union};
use crate::options::{CompactionPri, CompactionStyle};
use crate::types::{Epoch, JobId, UserKey};
use crate::version::{Run, TableMeta};

/// Fewer runs than this are not worth a compaction within level 0.
const INTRA_LEVEL0_RUNS_MIN: usize = 4;
/// A stripe that would rewrite more than so many times its bytes of the base level waits for more.
const STRIPE_BASE_MAX: u64 = 2;
/// The most tables that change level by one plan out of a level below 0.
const SETTLE_TABLES_MAX: usize = 4;
/// The most victims tried before a level is left alone until something changes.
const TRIES_MAX: usize = 64;
/// Tombstones beyond half of the entries make a table this much larger, when tables are weighed.
const TOMBSTONE_WEIGHT: u64 = 2;

/// See the head of this file.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeveledPicker;

impl CompactionPicker for LeveledPicker {
    fn name(&self) -> &'static str {
        "leveled"
    }

    fn pick(&self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        if context.options.disable_auto_compactions {
            return None;
        }
        if context.level0_first
            && let Some(plan) = pick_level0(context)
        {
            return Some(plan);
        }
        if let Some(plan) = make_room(context) {
            return Some(plan);
        }
        let mut level0_blocked = context.level0_first;
        for urgent in context.scores.iter().take_while(|urgent| urgent.score >= 1.0) {
            if urgent.level == 0 {
                if let Some(plan) = pick_level0(context) {
                    return Some(plan);
                }
                level0_blocked = true;
            } else {
                // What waits to arrive in the base level would wait longer still.
                let waited_for = level0_blocked && urgent.level == context.targets.base_level;
                if waited_for || context.level0_only {
                    continue;
                }
                if let Some(plan) = pick_deeper(context, urgent.level) {
                    return Some(plan);
                }
            }
        }
        None
    }

    fn level0_blockers(&self, context: &PickContext<'_>) -> Vec<JobId> {
        let base = context.targets.base_level;
        // What makes room is what it waits for.
        if lacks_room(context) {
            return Vec::new();
        }
        let waiting = if goes_by_stripes(context) {
            stuck_stripe(context)
        } else {
            going_down(context, context.version.level(0).runs())
        };
        let Some(inputs) = waiting else { return Vec::new() };
        let Some(bounds) = hull(&inputs) else { return Vec::new() };
        let below = context.overlap(base, bounds);
        let bounds = union(bounds, below.as_ref().and_then(Span::bounds));
        let tables: Vec<_> =
            inputs.iter().chain(&below).flat_map(Span::tables).map(|table| table.id).collect();
        context.in_flight.holders(context.cf(), &tables, (base, bounds.0, bounds.1))
    }
}

/// A base level whose tables were cut by what they overlap gives good ones away before the next run
/// of level 0 comes into it, as long as it has no room for that (vLSM §4.2.1).
fn make_room(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let wanted = lacks_room(context) && !context.level0_only;
    if wanted { pick_deeper(context, context.targets.base_level) } else { None }
}

fn lacks_room(context: &PickContext<'_>) -> bool {
    let base = context.targets.base_level;
    let Some(next) = context.version.level(0).runs().last() else { return false };
    let bytes = context.version.level(base).bytes() + next.bytes();
    context.options.overlap_aware
        && base < context.last_level()
        && bytes > context.targets.bytes_max(base)
}

fn pick_level0(context: &PickContext<'_>) -> Option<CompactionPlan> {
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
}

/// Twice the multiplier: from there on the base level is large for level 0.
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
        let Stripe { mut inputs, below } = deepest_stripe(context)?;
        let merged = newest_merged(context, &inputs, below.as_ref().map_or(0, Span::bytes));
        return merged.or_else(|| {
            inputs.extend(below);
            context.plan(CompactionReason::Level0Runs, &inputs, &[], (base, Epoch(0)))
        });
    }
    if context.in_flight.level0_going_down(context.cf()) {
        return None;
    }
    let free = level0.runs().iter().rev().take_while(|run| is_free(context, run)).count();
    let runs = &level0.runs()[level0.runs().len() - free..];
    let mut inputs = going_down(context, runs)?;
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
        if same && bytes <= context.options.compaction_bytes_max() {
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
        let Stripe { mut inputs, below } = deepest_stripe(context)?;
        inputs.extend(below);
        return Some(inputs);
    }
    let inputs = going_down(context, context.version.level(0).runs())?;
    let leveled = context.options.compaction_style == CompactionStyle::Leveled;
    let below = hull(&inputs).filter(|_| leveled);
    let below = below.and_then(|bounds| context.overlap(context.targets.base_level, bounds));
    Some(inputs.into_iter().chain(below).collect())
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

impl Stripe<'_> {
    fn is_free(&self, context: &PickContext<'_>) -> bool {
        context.may_take(self.inputs.iter().chain(&self.below), context.targets.base_level)
    }

    /// Tables on top of each other, and for each byte that is rewritten how many it brings.
    fn rank(&self) -> (usize, u64) {
        let bytes = self.inputs.iter().map(Span::bytes).sum::<u64>();
        let rewritten = self.below.as_ref().map_or(0, Span::bytes);
        (self.inputs.len(), bytes.saturating_mul(1000) / (bytes + rewritten).max(1))
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
        let below = context.overlap(context.targets.base_level, hull(&inputs)?);
        Some(Stripe { inputs, below })
    })
}

/// Of the stripes that may go down the one with the most tables on top of each other, and of equals
/// that with the most bytes for those it rewrites.
fn deepest_stripe<'a>(context: &PickContext<'a>) -> Option<Stripe<'a>> {
    filled_stripes(context).filter(|stripe| stripe.is_free(context)).max_by_key(Stripe::rank)
}

/// The stripe that others keep from going down, if it is deeper by the trigger of level 0 than all
/// that may: as long as it is not, those go first.
fn stuck_stripe<'a>(context: &PickContext<'a>) -> Option<Vec<Span<'a>>> {
    let nobody_takes =
        |stripe: &Stripe<'_>| !stripe.inputs.iter().any(|span| context.any_claimed(span));
    let (free, stuck): (Vec<_>, Vec<_>) =
        filled_stripes(context).filter(nobody_takes).partition(|stripe| stripe.is_free(context));
    let stuck = stuck.into_iter().max_by_key(Stripe::rank)?;
    let trigger = context.options.level0_file_num_compaction_trigger.max(1) as usize;
    let others = free.iter().map(|stripe| stripe.inputs.len()).max().unwrap_or(0);
    (stuck.inputs.len() >= others + trigger).then_some(stuck.inputs)
}

/// The tables of `runs`, of level 0, that share keys with `bounds`, and those that share keys with
/// them, and so on; newest run first.
pub(super) fn level0_closure<'a>(runs: &'a [Run], mut bounds: Bounds<'a>) -> Vec<Span<'a>> {
    loop {
        let spans: Vec<Span<'a>> = runs
            .iter()
            .map(|run| Span { level: 0, run, ranks: run.overlap(bounds.0, bounds.1) })
            .filter(|span| !span.ranks.is_empty())
            .collect();
        let wider = union(bounds, hull(&spans));
        if wider == bounds {
            return spans;
        }
        bounds = wider;
    }
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
fn intra_level0(context: &PickContext<'_>, which: Range<usize>) -> Option<CompactionPlan> {
    let runs = context.version.level(0).runs().get(which)?;
    let spans: Vec<_> =
        runs.iter().map(|run| Span { level: 0, run, ranks: 0..run.len() }).collect();
    let epoch = runs.first()?.epoch();
    context.plan(CompactionReason::IntraLevel0, &spans, &[], (0, epoch))
}

/// The newest tables of a stripe merged into one run, if going down would rewrite much of the base
/// level for them: more comes together first. `inputs`: all of the stripe, newest first.
fn newest_merged(
    context: &PickContext<'_>,
    inputs: &[Span<'_>],
    below_bytes: u64,
) -> Option<CompactionPlan> {
    let bytes = inputs.iter().map(Span::bytes).sum::<u64>();
    if !context.options.intra_level0_compaction
        || below_bytes <= bytes.saturating_mul(STRIPE_BASE_MAX)
    {
        return None;
    }
    let taken = worth_merging(context, inputs.iter().map(Span::bytes));
    let newest = inputs.get(..taken).filter(|newest| newest.len() >= INTRA_LEVEL0_RUNS_MIN)?;
    let epoch = newest.first()?.run.epoch();
    context.plan(CompactionReason::IntraLevel0, newest, &[], (0, epoch))
}

/// Why `level` is compacted.
pub(super) fn reason_of(context: &PickContext<'_>, level: u8) -> CompactionReason {
    match context.targets.lowest_unneeded_level {
        Some(lowest) if level <= lowest => CompactionReason::UnneededLevel,
        _ => CompactionReason::LevelSize,
    }
}

/// One table of `level`, or a few, with what they overlap in the level below.
fn pick_deeper(context: &PickContext<'_>, level: u8) -> Option<CompactionPlan> {
    let from_base = context.options.overlap_aware && level == context.targets.base_level;
    if from_base || context.options.group_compaction_bytes > 0 {
        return pick_group(context, level, from_base);
    }
    let run = context.version.level(level).sorted()?;
    let reason = reason_of(context, level);
    let output = (level + 1, Epoch(0));
    for victim in victims(context, level, run, context.options.victim_candidates_max) {
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

/// What `start` overlaps in the level below, and as much more of its own level as goes along
/// without rewriting more below; `None` if any of it is in flight.
pub(super) fn expand<'a>(
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
            && wider.bytes() + below.bytes() <= context.options.compaction_bytes_max()
            && !context.any_claimed(&wider)
            && same().is_some()
        {
            start = wider;
        }
    }
    let bounds = union(start.bounds()?, below.as_ref().and_then(Span::bounds));
    context.may_write(start.level + 1, bounds).then_some((start, below))
}

/// Whether the one table in `start`, which overlaps nothing below, may change level as it is; then
/// its right neighbours join it as long as the same is true of them.
fn settle_more<'a>(context: &PickContext<'a>, start: &mut Span<'a>) -> bool {
    let output = start.level + 1;
    let may_settle = |span: &Span<'_>| span.tables().all(|t| context.may_settle(t, output));
    if !context.same_compression(start.level, output) || !may_settle(start) {
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

/// Whether the level's cursor decides which tables are looked at.
fn uses_cursor(context: &PickContext<'_>, run: &Run) -> bool {
    context.options.compaction_pri == CompactionPri::RoundRobin
        || run.len() > context.options.victim_candidates_max.max(1)
}

/// The rank of the first table to look at.
fn window_start(context: &PickContext<'_>, level: u8, run: &Run) -> usize {
    let start = match context.version.compact_pointer(level) {
        Some(pointer) if uses_cursor(context, run) => {
            let at = run.lower_bound(pointer);
            at + usize::from(run.get(at).is_some_and(|table| table.largest == *pointer))
        }
        _ => 0,
    };
    if start < run.len() { start } else { 0 }
}

/// What the level's cursor becomes when the last table taken is that of rank `last`: round robin
/// goes on behind it, and a window of tables that were weighed against each other makes place for
/// the next one, or those that overlap most would be weighed again and again.
pub(super) fn pointer(
    context: &PickContext<'_>,
    level: u8,
    run: &Run,
    last: usize,
) -> Option<(u8, UserKey)> {
    if !uses_cursor(context, run) {
        return None;
    }
    let rank = match context.options.compaction_pri {
        CompactionPri::RoundRobin => last,
        _ => {
            let window = run.len().min(context.options.victim_candidates_max.max(1));
            (window_start(context, level, run) + window - 1) % run.len()
        }
    };
    Some((level, run.get(rank)?.largest.clone()))
}

/// The ranks of the tables to try, best first, of so many that are looked at.
pub(super) fn victims(
    context: &PickContext<'_>,
    level: u8,
    run: &Run,
    candidates_max: usize,
) -> Vec<usize> {
    let start = window_start(context, level, run);
    let window = run.len().min(candidates_max.max(1));
    let end = run.len().min(start + window);
    let wrapped = window - (end - start);
    let candidates = (start..end)
        .zip(run.range(start..end))
        .chain((0..wrapped).zip(run.range(0..wrapped)))
        .filter(|(_, table)| !context.in_flight.is_claimed(table));
    let groups = context.options.overlap_aware || context.options.group_compaction_bytes > 0;
    let tables_max = if groups { window } else { TRIES_MAX };
    if context.options.compaction_pri == CompactionPri::RoundRobin {
        return candidates.map(|(rank, _)| rank).take(tables_max).collect();
    }
    let mut weighed: Vec<(u64, usize)> =
        candidates.map(|(rank, table)| (weight(context, level, table), rank)).collect();
    // Of equals the smallest key goes first.
    weighed.sort_unstable();
    weighed.into_iter().map(|(_, rank)| rank).take(tables_max).collect()
}

/// The least goes first.
fn weight(context: &PickContext<'_>, level: u8, table: &TableMeta) -> u64 {
    match context.options.compaction_pri {
        CompactionPri::RoundRobin => 0,
        CompactionPri::MinOverlappingRatio => {
            let below = context.overlap(level + 1, (&table.smallest, &table.largest));
            let bytes = below.map_or(0, |span| span.bytes());
            bytes.saturating_mul(1024) / compensated_bytes(table).max(1)
        }
        CompactionPri::ByCompensatedSize => u64::MAX - compensated_bytes(table),
        CompactionPri::OldestLargestSeqFirst => table.seqno_max.0,
        CompactionPri::OldestSmallestSeqFirst => table.seqno_min.0,
    }
}

/// The table's size, and more if most of it is tombstones: compacting it frees what they hide.
fn compensated_bytes(table: &TableMeta) -> u64 {
    let surplus = table.tombstones.saturating_mul(2).saturating_sub(table.entries);
    let entry_bytes = table.raw_bytes / table.entries.max(1);
    let freed = surplus.saturating_mul(entry_bytes).saturating_mul(TOMBSTONE_WEIGHT);
    table.size_bytes.saturating_add(freed)
}
