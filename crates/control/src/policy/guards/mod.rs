//! Fragmented levels (PebblesDB): a level has several runs. Their tables are cut at guards, which
//! are keys chosen by their hash. Tables of a level that share keys form a group. A group goes down
//! as a whole and becomes another run of the next level, whose tables are not rewritten. The
//! deepest level that is in use has no level to pass a group to, so it merges the group in place.
//!
//! 1. [`Guards::scores`]: a level is due if a group of it has `runs_max` runs on top of each other,
//!    or if it has more bytes than its target. Level 0 is scored as in the leveled policy, with
//!    fixed targets: levels fill from above.
//! 2. [`Guards::pick`] goes through the levels that are due, most urgent first. Of each it tries
//!    the groups with the most runs first (`pick_level`).
//! 3. `down` puts a group on top of what the next level has. A group of one run that overlaps
//!    nothing there settles: its tables move without being rewritten.
//! 4. `merged` merges a group of the deepest level into one run where its oldest run was.
//! 5. `split` tells the job to cut its outputs at guards: at those that are known, and at those
//!    among the keys that the job writes. A guard is known as long as a table of its level or a
//!    deeper one begins at it. A guard that is not known yet may lie within a table. Such tables
//!    make a group wider.
//! 6. A manual compaction moves all levels at once. Where the disk has no space for a whole group,
//!    [`Guards::part_of`] moves a part of it.

mod options;

use std::cmp::Reverse;
use std::collections::BTreeSet;

pub use options::GuardsOptions;

use super::leveled::{cut_stripes, fixed_targets, level0_closure, level0_runs, level0_score};
use super::levels::most_urgent_first;
use super::{
    CfOptions, CompactionChain, CompactionPolicy, LevelScore, LevelTargets, ManualPath,
    PickContext, TreeView, leveled,
};
use crate::arithmetic::scale;
use crate::geometry::{Bounds, OutputSplit, Span, Stripes, groups, hull, is_guard};
use crate::plan::{CompactionPlan, CompactionReason, InFlight};
use crate::types::Epoch;
use crate::version::{Run, Version};

/// The next level has 2^`GUARD_BITS_PER_LEVEL` times as many guards (PebblesDB: two bits).
const GUARD_BITS_PER_LEVEL: u32 = 2;
/// How many tables are looked at to estimate the size of entries.
const SAMPLED_TABLES: usize = 64;

/// The policy with guards.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guards;

impl CompactionPolicy for Guards {
    fn admits(&self, _: u8, _: Epoch) -> bool {
        true
    }

    fn targets(&self, _: &Version, options: &CfOptions) -> LevelTargets {
        fixed_targets(options)
    }

    fn levels_to_lift(&self, version: &Version, options: &CfOptions) -> usize {
        leveled::levels_to_lift(version, options)
    }

    fn manual_path(&self, version: &Version) -> ManualPath {
        ManualPath::AtOnce { into: deepest(version).max(1) }
    }

    fn refuses_chosen_files(&self) -> Option<&'static str> {
        Some("files cannot be compacted by name where levels have guards")
    }

    fn rests_without_debt(&self) -> bool {
        false
    }

    fn scores(&self, view: &TreeView<'_>, in_flight: &InFlight) -> Vec<LevelScore> {
        let TreeView { version, options, targets } = *view;
        let score = level0_score(view, in_flight, false);
        let mut scores = vec![LevelScore { level: 0, score }];
        for level in (1u8..).take(version.levels().len().saturating_sub(1)) {
            let all = groups(level, version.level(level).runs()).into_iter();
            let free = all.filter(|group| {
                !group.iter().flat_map(Span::tables).any(|table| in_flight.is_claimed(table))
            });
            let runs = free.map(|group| group.len()).max().unwrap_or(0);
            let runs = u32::try_from(runs).unwrap_or(u32::MAX);
            let mut score = f64::from(runs) / f64::from(options.guards.runs.max(2));
            if is_over(version, targets, in_flight, level) {
                let per_mille = scale(version.level(level).bytes(), 1000, targets.bytes_max(level));
                score = score.max(f64::from(u32::try_from(per_mille).unwrap_or(u32::MAX)) / 1000.0);
            }
            scores.push(LevelScore { level, score });
        }
        most_urgent_first(scores)
    }

    /// Counts only the bytes that have to move down. The tables of the level below are not
    /// rewritten.
    fn debt(&self, view: &TreeView<'_>) -> u64 {
        let TreeView { version, options, targets } = *view;
        let level0 = version.level(0);
        let trigger = u64::from(options.level0_trigger);
        let due = level0.runs().len() as u64 >= trigger;
        let mut moving = if due { level0.bytes() } else { 0 };
        let mut pending = moving;
        for level in (1u8..).take(version.levels().len().saturating_sub(2)) {
            let bytes = version.level(level).bytes() + moving;
            moving = bytes.saturating_sub(targets.bytes_max(level));
            pending += moving;
        }
        pending
    }

    fn runs_felt(&self, view: &TreeView<'_>) -> usize {
        level0_runs(view.version, view.options)
    }

    /// Nothing below has to make room, so the chain is one compaction long.
    fn chain(&self, context: &PickContext<'_>) -> CompactionChain {
        let runs = context.version.level(0).runs();
        let first = runs.last().and_then(|run| Span { level: 0, run, ranks: 0..1 }.bounds());
        let Some(bounds) = first else { return CompactionChain::default() };
        let bytes = level0_closure(runs, bounds).iter().map(Span::bytes).sum();
        CompactionChain { length: 1, bytes }
    }

    fn pick(&self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        if context.options.disable_auto_compactions {
            return None;
        }
        let due = context.scores.iter().take_while(|urgent| urgent.score >= 1.0);
        let may = |urgent: &&LevelScore| urgent.level == 0 || !context.level0_only;
        due.filter(may).find_map(|urgent| pick_level(context, urgent.level))
    }

    fn split(&self, context: &PickContext<'_>, level: u8, bounds: Bounds<'_>) -> OutputSplit {
        split(context, level, bounds)
    }

    /// If the group spans several levels, the oldest runs of its uppermost level go to the next
    /// one, where guards cut them into smaller tables. If it lies in one level, its oldest runs are
    /// merged.
    fn part_of<'a>(&self, context: &PickContext<'a>, group: &[Span<'a>]) -> Option<CompactionPlan> {
        let (first, last) = (group.first()?, group.last()?);
        let uppermost = group.iter().filter(|span| span.level == first.level).cloned().collect();
        let moves = first.level < last.level;
        let runs_min = if moves { 1 } else { 2 };
        let spans = context.oldest_that_fit(uppermost, runs_min, |_| None);
        if spans.len() < runs_min {
            return None;
        }
        if moves { down(context, &spans) } else { merged(context, &spans) }
    }

    fn level0_goes_in_parts(&self, options: &CfOptions) -> bool {
        options.leveled.level0_stripe_bytes > 0
    }

    fn stripes(&self, before: &Stripes, view: &TreeView<'_>) -> Stripes {
        cut_stripes(before, view)
    }
}

/// Returns the deepest level that is in use; 0 if none below level 0 is.
fn deepest(version: &Version) -> u8 {
    let used = (0u8..).zip(version.levels()).filter(|(_, level)| !level.is_empty());
    used.map(|(number, _)| number).last().unwrap_or(0)
}

/// Returns true if `level`, without what is in flight, has more than its target, and a level below.
fn is_over(version: &Version, targets: &LevelTargets, in_flight: &InFlight, level: u8) -> bool {
    let moving = in_flight.bytes(version.column_family(), level);
    level > 0
        && usize::from(level) + 1 < version.levels().len()
        && version.level(level).bytes().saturating_sub(moving) >= targets.bytes_max(level)
}

/// Returns a plan for the first group of `level` that may move: most runs on top of each other
/// first, then most bytes.
fn pick_level(context: &PickContext<'_>, level: u8) -> Option<CompactionPlan> {
    let version = context.version;
    let over = is_over(version, context.targets, context.in_flight, level);
    let stays = level > 0 && level == deepest(version) && !over;
    let runs_min = if over || level == 0 { 1 } else { context.options.guards.runs.max(2) };
    let mut groups: Vec<_> = groups(level, version.level(level).runs())
        .into_iter()
        .filter(|group| group.len() >= runs_min as usize)
        .collect();
    let bytes = |group: &[Span<'_>]| group.iter().map(Span::bytes).sum::<u64>();
    groups.sort_by_key(|group| Reverse((group.len(), bytes(group))));
    groups
        .iter()
        .find_map(|group| if stays { merged(context, group) } else { down(context, group) })
}

/// Returns a plan that merges a group, newest run first, into one run where its oldest was.
fn merged<'a>(context: &PickContext<'a>, group: &[Span<'a>]) -> Option<CompactionPlan> {
    let oldest = group.last()?;
    if !context.may_take(group, oldest.level) {
        return None;
    }
    let output = (oldest.level, oldest.run.epoch());
    context.plan(CompactionReason::LevelSize, group, &[], output)
}

/// Returns a plan that puts a group, newest run first, on top of what the next level has.
fn down<'a>(context: &PickContext<'a>, group: &[Span<'a>]) -> Option<CompactionPlan> {
    let level = group.first()?.level;
    let (bounds, next) = (hull(group)?, level + 1);
    if !context.may_take(group, next) {
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
        && group.len() == 1
        && context.options.settled_compaction
        && context.moves_as_is(level, next);
    let (rewrite, settle): (&[_], &[_]) = if settles { (&[], group) } else { (group, &[]) };
    context.plan(reason, rewrite, settle, (next, epoch))
}

/// Returns where outputs end that go to `level` within `bounds`.
fn split(context: &PickContext<'_>, level: u8, bounds: Bounds<'_>) -> OutputSplit {
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

/// Returns the bits of the guards of `level`: one key in 2^bits is one. The deepest level has about
/// one guard for each table.
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
