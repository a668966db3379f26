//! The tiered policy: RocksDB's universal compaction. The tree is a list of sorted runs by age:
//! each run of level 0 and each level below it that is in use. Neighbours in that list are merged,
//! so that little is rewritten. A reader may have to look into all of them.
//!
//! 1. `runs::sorted_runs` lists the runs, newest first, and marks those that are being compacted.
//! 2. Nothing is merged while there are fewer runs than the trigger of level 0.
//! 3. `choice::by_size_amplification`: if the newer runs have more than
//!    `size_amplification_max` of the oldest one, all of them are merged into the last
//!    level.
//! 4. `choice::by_size_ratio`: otherwise neighbours of similar size are merged.
//! 5. `choice::by_number`: otherwise, if more runs than the trigger are free, the newest are
//!    merged whatever their size, so that the trigger is met again.
//! 6. The output goes above the next older run: into the level above it, or, if that is level 0,
//!    into the place of the newest input. If no older run is left, it goes into the last level.
//! 7. With `trivial_move`, runs whose tables share no keys settle there unread.
//!
//! A merge within level 0 has the I/O class of level 0, as it keeps the number of runs small.
//! Merges into deeper levels are long, and are served like other deep compactions.

mod choice;
mod options;
mod runs;

pub use options::{StopStyle, TieredOptions};

use super::paths::path_of_run;
use super::{
    CfOptions, CompactionChain, CompactionPolicy, LevelScore, LevelTargets, ManualPath,
    PickContext, TreeView,
};
use crate::geometry::{Bounds, OutputSplit, Span};
use crate::plan::{CompactionPlan, CompactionReason, InFlight};
use crate::types::{Epoch, IoClass};
use crate::version::Version;
use choice::choose;
use runs::{SortedRun, are_disjoint, sorted_runs};

/// The score of a tree that has as many runs as the trigger, or more, and nothing to merge.
const WAITING_SCORE: f64 = 0.99;

/// The most debt that is reported. Working it off in ten seconds takes 200 MB/s, and it is too
/// little for writers to be slowed down for it.
const DEBT_MAX: u64 = 2 << 30;

/// The tiered policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tiered;

impl CompactionPolicy for Tiered {
    fn targets(&self, _: &Version, _: &CfOptions) -> LevelTargets {
        LevelTargets::unlimited(1)
    }

    fn path(&self, view: &TreeView<'_>, _: u8, bytes: u64) -> usize {
        path_of_run(view.options, bytes)
    }

    /// The size of a run decides, and runs grow as they move.
    fn keeps_path(&self, view: &TreeView<'_>, _: u8, _: u8) -> bool {
        view.options.path_bytes.len() <= 1
    }

    fn manual_path(&self, version: &Version) -> ManualPath {
        ManualPath::AtOnce { into: last_level(version) }
    }

    /// From the trigger on, runs are merged whatever their size as soon as a merge of the smallest
    /// width does not leave fewer runs than the trigger.
    fn runs_at_rest(&self, options: &CfOptions) -> u32 {
        let trigger = options.level0_trigger.max(1);
        trigger.saturating_add(options.tiered.merge_width_min.max(2) - 2)
    }

    fn rests_without_debt(&self) -> bool {
        false
    }

    /// Level 0 stands for the whole tree. Its score is 1 or more exactly if there is a merge.
    fn scores(&self, view: &TreeView<'_>, in_flight: &InFlight) -> Vec<LevelScore> {
        let runs = sorted_runs(view.version, in_flight);
        let free = runs.iter().filter(|run| !run.is_claimed).count();
        let free = f64::from(u32::try_from(free).unwrap_or(u32::MAX));
        let ratio = free / f64::from(view.options.level0_trigger.max(1));
        let due = choose(view.options, &runs, last_level(view.version), false).is_some();
        let score = if due { ratio.max(1.0) } else { ratio.min(WAITING_SCORE) };
        vec![LevelScore { level: 0, score }]
    }

    /// The bytes of the merge that is due, so that the scheduler gives it bandwidth. As in RocksDB
    /// they limit no writers, hence the maximum: the trigger for the number of runs does that.
    fn debt(&self, view: &TreeView<'_>) -> u64 {
        let runs = sorted_runs(view.version, &InFlight::default());
        let choice = choose(view.options, &runs, last_level(view.version), false);
        choice.map_or(0, |choice| {
            runs[choice.runs].iter().map(|run| run.span.bytes()).sum::<u64>().min(DEBT_MAX)
        })
    }

    /// Each level that is in use is a run that readers look into.
    fn runs_felt(&self, view: &TreeView<'_>) -> usize {
        let deeper = view.version.levels().iter().skip(1).filter(|level| !level.is_empty());
        view.version.level(0).runs().len() + deeper.count()
    }

    /// One merge makes room, and it waits for no other.
    fn chain(&self, context: &PickContext<'_>) -> CompactionChain {
        let runs = sorted_runs(context.version, context.in_flight);
        let choice = choose(context.options, &runs, last_level(context.version), false);
        choice.map_or_else(CompactionChain::default, |choice| {
            let bytes = runs[choice.runs].iter().map(|run| run.span.bytes()).sum();
            CompactionChain { length: 1, bytes }
        })
    }

    fn pick(&self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        if context.options.disable_auto_compactions {
            return None;
        }
        let last = last_level(context.version);
        let runs = sorted_runs(context.version, context.in_flight);
        let choice = choose(context.options, &runs, last, context.level0_only)?;
        let spans = runs[choice.runs].iter().map(|run: &SortedRun<'_>| run.span.clone()).collect();
        // Where the disk is nearly full the oldest of them are merged, and the newer ones stay
        // above.
        let spans = context.oldest_that_fit(spans, 2, |_| None);
        merge(context, &spans, choice.output_level)
    }

    fn split(&self, context: &PickContext<'_>, level: u8, _: Bounds<'_>) -> OutputSplit {
        OutputSplit::BySize {
            target_bytes: context.options.target_file_size(level, context.targets.base_level),
            grandparent_overlap_bytes_max: u64::MAX,
            at_grandparent_boundaries: false,
            at_gaps: context.options.cut_tables_at_gaps,
        }
    }

    /// The oldest runs are merged where the oldest of them is.
    fn part_of<'a>(&self, context: &PickContext<'a>, group: &[Span<'a>]) -> Option<CompactionPlan> {
        let spans = context.oldest_that_fit(group.to_vec(), 2, |_| None);
        let oldest = spans.last().filter(|_| spans.len() >= 2)?;
        let output = (oldest.level, oldest.run.epoch());
        context.plan(CompactionReason::LevelSize, &spans, &[], output)
    }
}

fn last_level(version: &Version) -> u8 {
    u8::try_from(version.levels().len().saturating_sub(1)).unwrap_or(u8::MAX).max(1)
}

/// Returns a plan that merges `spans`, whole runs that follow each other, newest first, into
/// `output_level`. In level 0 the output takes the place of the newest run.
fn merge<'a>(
    context: &PickContext<'a>,
    spans: &[Span<'a>],
    output_level: u8,
) -> Option<CompactionPlan> {
    let newest = spans.first()?;
    if output_level == 0 {
        let output = (0, newest.run.epoch());
        return context.plan(CompactionReason::IntraLevel0, spans, &[], output);
    }
    if !context.may_take(spans, output_level) {
        return None;
    }
    let reason = match newest.level {
        0 => CompactionReason::Level0Runs,
        _ => CompactionReason::LevelSize,
    };
    let output = (output_level, Epoch(0));
    let moved: Vec<_> = spans.iter().filter(|span| span.level != output_level).cloned().collect();
    let settles = context.options.tiered.trivial_move
        && are_disjoint(spans)
        && moved.iter().all(|span| {
            context.moves_as_is(span.level, output_level)
                && span.tables().all(|table| table.placement.values().is_none())
        });
    let mut plan = if settles {
        context.plan(reason, &[], &moved, output)?
    } else {
        context.plan(reason, spans, &[], output)?
    };
    plan.class = IoClass::Deep(newest.level.max(1));
    Some(plan)
}
