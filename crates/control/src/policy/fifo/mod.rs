//! The FIFO policy: RocksDB's. All tables stay in level 0, and the oldest are dropped when all of
//! them together are too large: a cache, or a log of which only the recent part matters.
//!
//! 1. `drop_oldest`: while the tables have more than `bytes_max` bytes, whole runs are
//!    dropped unread, oldest first. Nothing older is left that their tombstones could bring back.
//! 2. `merge_newest`: otherwise, with `allow_compaction`, the newest runs become one, as many as
//!    each make the merge cheaper for each run that goes. As many as the trigger of level 0 must be
//!    worth it, and the cost for each of them no more than 1.1 memtables.
//! 3. One such compaction runs at a time. Writers never wait for the number of runs.
//! 4. A manual compaction changes nothing.

mod options;

pub use options::FifoOptions;

use super::{
    CfOptions, CompactionChain, CompactionPolicy, LevelScore, LevelTargets, ManualPath,
    PickContext, TreeView,
};
use crate::geometry::{Bounds, OutputSplit, Span};
use crate::plan::{CompactionPlan, CompactionReason, InFlight};
use crate::types::Epoch;
use crate::version::{Run, Version};

/// The score of level 0 when it has nothing to drop or to merge.
const RESTING_SCORE: f64 = 0.0;

/// The FIFO policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl CompactionPolicy for Fifo {
    fn admits(&self, level: u8, _: Epoch) -> bool {
        level == 0
    }

    fn targets(&self, _: &Version, _: &CfOptions) -> LevelTargets {
        LevelTargets::unlimited(1)
    }

    fn manual_path(&self, _: &Version) -> ManualPath {
        ManualPath::Stays
    }

    fn refuses_chosen_files(&self) -> Option<&'static str> {
        Some("files cannot be compacted by name where all tables stay in level 0")
    }

    fn runs_at_rest(&self, _: &CfOptions) -> u32 {
        0
    }

    fn rests_without_debt(&self) -> bool {
        false
    }

    fn scores(&self, view: &TreeView<'_>, in_flight: &InFlight) -> Vec<LevelScore> {
        let due = dropped(view, in_flight).is_some() || merged(view, in_flight).is_some();
        vec![LevelScore { level: 0, score: if due { 1.0 } else { RESTING_SCORE } }]
    }

    fn debt(&self, _: &TreeView<'_>) -> u64 {
        0
    }

    /// Runs go by size, not by number.
    fn runs_felt(&self, _: &TreeView<'_>) -> usize {
        0
    }

    fn chain(&self, _: &PickContext<'_>) -> CompactionChain {
        CompactionChain::default()
    }

    fn pick(&self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        if context.options.disable_auto_compactions {
            return None;
        }
        drop_oldest(context).or_else(|| merge_newest(context))
    }

    fn split(&self, _: &PickContext<'_>, _: u8, _: Bounds<'_>) -> OutputSplit {
        OutputSplit::BySize {
            target_bytes: u64::MAX,
            grandparent_overlap_bytes_max: u64::MAX,
            at_grandparent_boundaries: false,
            at_gaps: false,
        }
    }
}

/// Returns the number of the oldest runs that have to go.
fn dropped(view: &TreeView<'_>, in_flight: &InFlight) -> Option<usize> {
    let level0 = view.version.level(0);
    let most = view.options.fifo.bytes_max;
    if bytes(view.version) <= most || in_flight.level0_running(view.version.column_family()) {
        return None;
    }
    let mut left = bytes(view.version);
    let oldest = level0.runs().iter().rev().take_while(|run| {
        let goes = left > most;
        left = left.saturating_sub(run.bytes() + values(run));
        goes
    });
    Some(oldest.count())
}

/// Returns the bytes of all tables, with their values in value files.
fn bytes(version: &Version) -> u64 {
    let level0 = version.level(0);
    if version.value_files().is_empty() {
        return level0.bytes();
    }
    level0.bytes() + level0.runs().iter().map(values).sum::<u64>()
}

fn values(run: &Run) -> u64 {
    run.iter().map(|table| table.values.bytes()).sum()
}

/// Returns the number of the newest runs that are worth merging.
fn merged(view: &TreeView<'_>, in_flight: &InFlight) -> Option<usize> {
    let TreeView { version, options, .. } = *view;
    let level0 = version.level(0);
    if !options.fifo.compaction
        || bytes(version) > options.fifo.bytes_max
        || in_flight.level0_running(version.column_family())
    {
        return None;
    }
    let bytes_max = options.compaction_input_max();
    let (mut bytes, mut cost, mut taken) = (0_u64, u64::MAX, 0_u64);
    for size in level0.runs().iter().map(Run::bytes) {
        bytes = bytes.saturating_add(size);
        // The bytes moved for each run that goes.
        let next = bytes / taken.max(1);
        if taken > 0 && (next > cost || bytes > bytes_max) {
            break;
        }
        cost = if taken > 0 { next } else { cost };
        taken += 1;
    }
    let runs_min = u64::from(options.level0_trigger.max(2));
    let cost_max = options.memtable_bytes.saturating_add(options.memtable_bytes / 10);
    (taken >= runs_min && cost < cost_max).then_some(usize::try_from(taken).ok()?)
}

/// Returns a plan that drops the oldest runs.
fn drop_oldest(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let count = dropped(&context.view(), context.in_flight)?;
    let runs = context.version.level(0).runs();
    let oldest = runs.get(runs.len() - count..)?;
    let spans: Vec<_> = oldest.iter().map(|run| Span::whole(0, run)).collect();
    let output = (0, oldest.first()?.epoch());
    let mut plan = context.plan(CompactionReason::LevelSize, &[], &spans, output)?;
    std::mem::swap(&mut plan.settle, &mut plan.drop);
    Some(plan)
}

/// Returns a plan that merges the newest runs into one, in the place of the newest.
fn merge_newest(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let count = merged(&context.view(), context.in_flight)?;
    let newest = context.version.level(0).runs().get(..count)?;
    let spans: Vec<_> = newest.iter().map(|run| Span::whole(0, run)).collect();
    let output = (0, newest.first()?.epoch());
    context.plan(CompactionReason::IntraLevel0, &spans, &[], output)
}
