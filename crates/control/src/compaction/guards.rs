//! Fragmented levels (PebblesDB): a level has several runs, which are cut at guards. What of a
//! level hangs together goes down together, as another run of the next level of which nothing is
//! rewritten; it is merged where it is only in the deepest level that has anything.
//!
//! Guards are not stored. A key is one if its hash says so, to a level the more often the deeper it
//! is; it is known as long as a table of that level or a deeper one begins at it. Where a guard is
//! not known yet tables reach across it, and what hangs together is wider.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::plan::{CompactionPlan, CompactionReason, OutputSplit};
use super::{
    Bounds, CompactionPicker, InFlight, LevelScore, LevelTargets, PickContext, Span, closure, hull,
};
use crate::arithmetic::{mix, scale};
use crate::options::CfOptions;
use crate::types::{Epoch, UserKey};
use crate::version::{Level, Run, Version};

/// A level has one guard for so many powers of two of them in the next one (PebblesDB: two).
const GUARD_BITS_PER_LEVEL: u32 = 2;
/// How many tables are asked how large entries are.
const SAMPLED_TABLES: usize = 64;

/// See the head of this file.
#[derive(Clone, Copy, Debug, Default)]
pub struct GuardsPicker;

impl CompactionPicker for GuardsPicker {
    fn name(&self) -> &'static str {
        "guards"
    }

    fn pick(&self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        if context.options.disable_auto_compactions {
            return None;
        }
        let due = context.scores.iter().take_while(|urgent| urgent.score >= 1.0);
        let may = |urgent: &&LevelScore| urgent.level == 0 || !context.level0_only;
        due.filter(may).find_map(|urgent| pick_level(context, urgent.level))
    }
}

/// Tables of a level that share keys with each other and with no other of that level.
struct Group<'a> {
    /// Newest run first.
    spans: Vec<Span<'a>>,
}

impl Group<'_> {
    fn is_free(&self, in_flight: &InFlight) -> bool {
        !self.spans.iter().flat_map(Span::tables).any(|table| in_flight.is_claimed(table))
    }

    fn bytes(&self) -> u64 {
        self.spans.iter().map(Span::bytes).sum()
    }
}

/// What hangs together in `level`, in key order.
fn groups(version: &Version, level: u8) -> Vec<Group<'_>> {
    let runs = version.level(level).runs();
    let mut tables: Vec<(&UserKey, &UserKey, usize, usize)> = Vec::new();
    for (nth, run) in runs.iter().enumerate() {
        let in_run = run.iter().enumerate();
        tables.extend(in_run.map(|(rank, table)| (&table.smallest, &table.largest, nth, rank)));
    }
    tables.sort_unstable();
    let mut groups = Vec::new();
    let mut reached: Option<&UserKey> = None;
    let mut open: Vec<Range<usize>> = vec![0..0; runs.len()];
    let close = |open: &[Range<usize>]| {
        let spans =
            runs.iter().zip(open).map(|(run, ranks)| Span { level, run, ranks: ranks.clone() });
        Group { spans: spans.filter(|span| !span.ranks.is_empty()).collect() }
    };
    for (smallest, largest, nth, rank) in tables {
        if reached.is_some_and(|reached| reached < smallest) {
            groups.push(close(&open));
            open.fill(0..0);
        }
        reached = reached.max(Some(largest));
        if let Some(ranks) = open.get_mut(nth) {
            *ranks = if ranks.end == 0 { rank..rank + 1 } else { ranks.start..rank + 1 };
        }
    }
    if reached.is_some() {
        groups.push(close(&open));
    }
    groups
}

/// The deepest level that has anything; 0 if none below level 0 has.
pub(super) fn deepest(version: &Version) -> u8 {
    let used = (0u8..).zip(version.levels()).filter(|(_, level)| !level.is_empty());
    used.map(|(number, _)| number).last().unwrap_or(0)
}

/// Whether `level` has more than it should and may give some of it away, but for what is in flight.
fn is_over(version: &Version, targets: &LevelTargets, in_flight: &InFlight, level: u8) -> bool {
    let moving = in_flight.bytes(version.column_family(), level);
    level > 0
        && usize::from(level) + 1 < version.levels().len()
        && version.level(level).bytes().saturating_sub(moving) >= targets.bytes_max(level)
}

/// What of `level` should move first: most runs on top of each other, then most bytes.
fn pick_level(context: &PickContext<'_>, level: u8) -> Option<CompactionPlan> {
    let version = context.version;
    let over = is_over(version, context.targets, context.in_flight, level);
    let stays = level > 0 && level == deepest(version) && !over;
    let runs_min = if over || level == 0 { 1 } else { context.options.guard_runs_max.max(2) };
    let mut groups: Vec<_> = (groups(version, level).into_iter())
        .filter(|group| group.spans.len() >= runs_min as usize)
        .collect();
    groups.sort_by_key(|group| Reverse((group.spans.len(), group.bytes())));
    groups
        .iter()
        .find_map(|group| if stays { merged(context, group) } else { down(context, group) })
}

/// All of a group as one run where its oldest was.
fn merged(context: &PickContext<'_>, group: &Group<'_>) -> Option<CompactionPlan> {
    let oldest = group.spans.last()?;
    if !context.may_take(&group.spans, oldest.level) {
        return None;
    }
    let output = (oldest.level, oldest.run.epoch());
    context.plan(CompactionReason::LevelSize, &group.spans, &[], output)
}

/// A group on top of what the next level has.
fn down(context: &PickContext<'_>, group: &Group<'_>) -> Option<CompactionPlan> {
    let level = group.spans.first()?.level;
    let (bounds, next) = (hull(&group.spans)?, level + 1);
    if !context.may_take(&group.spans, next) {
        return None;
    }
    let newer = |run: &&Run| !run.overlap(bounds.0.bytes(), bounds.1.bytes()).is_empty();
    let above = context.version.level(next).runs().iter().find(newer);
    let epoch = above.map_or(Epoch(0), |newest| Epoch(newest.epoch().0 + 1));
    let reason = match level {
        0 => CompactionReason::Level0Runs,
        _ => CompactionReason::LevelSize,
    };
    let settles = above.is_none()
        && group.spans.len() == 1
        && context.options.settled_compaction
        && context.same_compression(level, next);
    let (rewrite, settle): (&[_], &[_]) =
        if settles { (&[], &group.spans) } else { (&group.spans, &[]) };
    context.plan(reason, rewrite, settle, (next, epoch))
}

/// All that hangs together through all levels with the first table there is when each run begins at
/// the rank that `first` says; newest first.
pub(super) fn whole_group<'a>(
    version: &'a Version,
    first: impl Fn(&Run) -> usize,
) -> Option<Vec<Span<'a>>> {
    let levels = || (0u8..).zip(version.levels());
    let of_level =
        |(number, level): (u8, &'a Arc<Level>)| level.runs().iter().map(move |run| (number, run));
    let runs = || levels().flat_map(of_level);
    let seeds = runs().filter_map(|(_, run)| run.get(first(run)));
    let seed = seeds.min_by(|a, b| a.smallest.cmp(&b.smallest))?;
    Some(closure(runs, (&seed.smallest, &seed.largest)))
}

/// A part of what hangs together, newest first, for which there may be space: the oldest of its
/// uppermost level on top of what the next one has, so that guards part it further; or, where all
/// of it is in one level, its oldest runs merged.
pub(super) fn part_of_group<'a>(
    context: &PickContext<'a>,
    group: &[Span<'a>],
) -> Option<CompactionPlan> {
    let (first, last) = (group.first()?, group.last()?);
    let mut spans = group.to_vec();
    spans.retain(|span| span.level == first.level);
    let moves = first.level < last.level;
    let runs_min = if moves { 1 } else { 2 };
    let spans = context.oldest_that_fit(spans, runs_min, |_| None);
    if spans.len() < runs_min {
        return None;
    }
    let group = Group { spans };
    if moves { down(context, &group) } else { merged(context, &group) }
}

/// The scores of all levels, most urgent first. What is being compacted does not count.
pub(super) fn scores(
    version: &Version,
    options: &CfOptions,
    targets: &LevelTargets,
    in_flight: &InFlight,
    level0: f64,
) -> Vec<LevelScore> {
    let mut scores = vec![LevelScore { level: 0, score: level0 }];
    for level in (1u8..).take(version.levels().len().saturating_sub(1)) {
        let free = groups(version, level).into_iter().filter(|group| group.is_free(in_flight));
        let runs = free.map(|group| group.spans.len()).max().unwrap_or(0);
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        let mut score = f64::from(runs) / f64::from(options.guard_runs_max.max(2));
        if is_over(version, targets, in_flight, level) {
            let per_mille = scale(version.level(level).bytes(), 1000, targets.bytes_max(level));
            score = score.max(f64::from(u32::try_from(per_mille).unwrap_or(u32::MAX)) / 1000.0);
        }
        scores.push(LevelScore { level, score });
    }
    // Stable: of equals the upper level goes first.
    scores.sort_by(|a, b| b.score.total_cmp(&a.score));
    scores
}

/// The bytes that compactions will have to move until no level has more than it should: nothing
/// that lies below is moved along.
pub(super) fn pending_bytes(version: &Version, options: &CfOptions, targets: &LevelTargets) -> u64 {
    let level0 = version.level(0);
    let due = level0.runs().len() as u64 >= u64::from(options.level0_file_num_compaction_trigger);
    let mut moving = if due { level0.bytes() } else { 0 };
    let mut pending = moving;
    for level in (1u8..).take(version.levels().len().saturating_sub(2)) {
        let bytes = version.level(level).bytes() + moving;
        moving = bytes.saturating_sub(targets.bytes_max(level));
        pending += moving;
    }
    pending
}

/// How outputs that go to `level` within `bounds` are cut.
pub(super) fn split(context: &PickContext<'_>, level: u8, bounds: Bounds<'_>) -> OutputSplit {
    let bits = guard_bits(context, level);
    let levels =
        (0u8..).zip(context.version.levels()).filter(|(number, _)| *number >= level.max(1));
    let tables = levels
        .flat_map(|(_, level)| level.runs())
        .flat_map(|run| run.overlapping(bounds.0.bytes(), bounds.1.bytes()));
    let guards: BTreeSet<_> = tables
        .map(|table| &table.smallest)
        .filter(|key| is_guard(key.bytes(), bits))
        .cloned()
        .collect();
    OutputSplit::AtGuards {
        guards: guards.into_iter().collect(),
        bits,
        target_bytes: context.options.target_file_size(level, context.targets.base_level),
    }
}

/// One key in two to the power of this is a guard of `level`: of the deepest level about one for
/// each table.
fn guard_bits(context: &PickContext<'_>, level: u8) -> u32 {
    let version = context.version;
    let deepest = deepest(version).max(level);
    let sampled = version.level(deepest).runs().iter().chain(version.level(0).runs());
    let (mut entries, mut bytes) = (0, 0);
    for table in sampled.flat_map(Run::iter).take(SAMPLED_TABLES) {
        entries += table.entries;
        bytes += table.size_bytes;
    }
    let table_bytes = context.options.target_file_size(deepest, context.targets.base_level);
    let entries = scale(table_bytes, entries, bytes).max(1);
    entries.ilog2() + GUARD_BITS_PER_LEVEL * u32::from(deepest - level)
}

/// Whether one of so many keys is a guard, and this is one. One of more is one of less.
pub(super) fn is_guard(user_key: &[u8], bits: u32) -> bool {
    let hash =
        user_key.iter().fold(user_key.len() as u64, |hash, byte| mix(hash ^ u64::from(*byte)));
    mix(hash).leading_zeros() >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_in_so_many_is_a_guard_and_guards_of_a_level_are_guards_below_it() {
        let keys = || (0..40_000_u32).map(|n| format!("user{n:08}"));
        for bits in [0_u32, 1, 4, 8] {
            let guards: Vec<_> = keys().filter(|key| is_guard(key.as_bytes(), bits)).collect();
            let expected = 40_000 >> bits;
            assert!(guards.len().abs_diff(expected) <= expected / 5, "{bits}: {}", guards.len());
            let below = bits.saturating_sub(GUARD_BITS_PER_LEVEL);
            assert!(guards.iter().all(|key| is_guard(key.as_bytes(), below)), "{bits}");
        }
    }
}
