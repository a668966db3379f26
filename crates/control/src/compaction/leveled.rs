//! The leveled shape: level 0 down to the base level, what hangs together at once or by stripes;
//! deeper levels a few tables at a time or by groups; level 0 into itself when its way down is
//! blocked; tiny runs of level 0 into one; and tables that touch nothing change level without being
//! read. RocksDB's, LevelDB's, BoLT's and the default are values of it.

use super::group::pick_group;
use super::level0::{level0_stays, pick_level0, waits_for_others};
use super::plan::{CompactionPlan, CompactionReason};
use super::tiny::{merge_tiny, tiny_urgency};
use super::{CompactionPicker, PickContext, Span, hull, union};
use crate::options::CompactionPri;
use crate::types::{Epoch, JobId, UserKey};
use crate::version::{Run, TableMeta};

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
        let PickContext { version, options, in_flight, .. } = *context;
        if tiny_urgency(version, options, in_flight).is_some_and(|urgency| urgency >= 1.0)
            && let Some(plan) = merge_tiny(context)
        {
            return Some(plan);
        }
        if let Some(plan) = make_room(context) {
            return Some(plan);
        }
        let mut level0_blocked = context.level0_first && !level0_stays(context);
        for urgent in context.scores.iter().take_while(|urgent| urgent.score >= 1.0) {
            if urgent.level == 0 {
                if let Some(plan) = pick_level0(context) {
                    return Some(plan);
                }
                level0_blocked = !level0_stays(context);
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
        // Where nothing else is due.
        merge_tiny(context)
    }

    fn level0_stays(&self, context: &PickContext<'_>) -> bool {
        level0_stays(context)
    }

    fn level0_blockers(&self, context: &PickContext<'_>) -> Vec<JobId> {
        let base = context.targets.base_level;
        // What makes room is what it waits for.
        if lacks_room(context) {
            return Vec::new();
        }
        let Some(inputs) = waits_for_others(context) else { return Vec::new() };
        let Some(bounds) = hull(&inputs) else { return Vec::new() };
        let below = context.overlap(base, bounds);
        let bounds = union(bounds, below.as_ref().and_then(Span::bounds));
        let tables: Vec<_> =
            inputs.iter().chain(&below).flat_map(Span::tables).map(|table| table.id).collect();
        context.in_flight.holders(context.cf(), &tables, (base, bounds.0.bytes(), bounds.1.bytes()))
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
            let at = run.lower_bound(pointer.bytes());
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
