//! The leveled policy: one run in each level but level 0. RocksDB's leveled compaction, LevelDB's,
//! HyperLevelDB's, BoLT's, vLSM's, TRIAD's and the default are values of its options.
//!
//! 1. `targets`: how large each level may be. `score`: how urgent each is. `debt`: the bytes that
//!    wait. `chain`: what a flush could have to wait for.
//! 2. [`Leveled::pick`] first looks at level 0 if that goes before all else, then at many tiny runs
//!    (`tiny`), then makes room in the base level below a queue (`overlap_aware`).
//! 3. It then goes through the levels that are due, most urgent first: level 0 by `level0`
//!    (`stripes`, `queue`, `intra_level0`, `settle`), others by `deeper` (`victims`, `group`,
//!    `range`). While level 0 is blocked, the base level gets no further compaction.
//! 4. When nothing is due it merges tiny runs.
//! 5. [`Leveled::pick_charged`] compacts a table that reads looked into in vain too often
//!    (`charged`).
//! 6. `wait_for_overlap` lets level 0 wait until its keys overlap.

mod chain;
mod charged;
mod debt;
mod deeper;
mod group;
mod intra_level0;
mod level0;
mod options;
mod overlap_aware;
mod queue;
mod range;
mod score;
mod settle;
mod stripes;
mod targets;
mod tiny;
mod victims;
mod wait_for_overlap;

pub use charged::charges_max;
pub(crate) use level0::level0_closure;
pub use options::{CompactionPriority, LeveledOptions};
pub use overlap_aware::{good_bytes, good_tables};
pub(super) use score::{level0_runs, level0_score};
pub(super) use targets::{fixed as fixed_targets, levels_to_lift};

use super::{
    CfOptions, CompactionChain, CompactionPolicy, LevelScore, LevelTargets, PickContext, TreeView,
};
use crate::geometry::{Bounds, OutputSplit, Span, Stripes, hull, union};
use crate::plan::{CompactionPlan, InFlight};
use crate::types::JobId;
use crate::version::Version;
use deeper::pick_deeper;
use level0::{pick_level0, waits_for_others};
use overlap_aware::lacks_room;
use stripes::level0_stays;
use tiny::{merge_tiny, tiny_urgency};

/// The most that a stripe of level 0 moves for each of its bytes: itself, and at most as much that
/// it rewrites. One that would rewrite more waits for more.
const STRIPE_AMPLIFICATION: u64 = 2;

/// How many times as large as level 0, and as its target, a base level is that goes first.
const BASE_TO_LEVEL0_MAX: u64 = 2;

/// The leveled policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leveled;

impl CompactionPolicy for Leveled {
    fn targets(&self, version: &Version, options: &CfOptions) -> LevelTargets {
        if options.dynamic_level_bytes {
            targets::dynamic(version, options)
        } else {
            targets::fixed(options)
        }
    }

    fn levels_to_lift(&self, version: &Version, options: &CfOptions) -> usize {
        if options.dynamic_level_bytes {
            return 0;
        }
        levels_to_lift(version, options)
    }

    fn scores(&self, view: &TreeView<'_>, in_flight: &InFlight) -> Vec<LevelScore> {
        score::scores(view, in_flight)
    }

    fn idle_urgency(&self, view: &TreeView<'_>, in_flight: &InFlight) -> Option<f64> {
        tiny_urgency(view.version, view.options, in_flight)
    }

    fn debt(&self, view: &TreeView<'_>) -> u64 {
        debt::debt(view)
    }

    fn runs_felt(&self, view: &TreeView<'_>) -> usize {
        level0_runs(view.version, view.options)
    }

    fn level0_amplification(&self, view: &TreeView<'_>, stripes: &Stripes) -> u64 {
        let rewritten = view.version.level(view.targets.base_level).bytes();
        let amplification = 1 + rewritten / queue::merged_bytes(view).max(1);
        if stripes.is_empty() { amplification } else { amplification.min(STRIPE_AMPLIFICATION) }
    }

    fn chain(&self, context: &PickContext<'_>) -> CompactionChain {
        chain::chain(context)
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
                // A compaction out of the base level would block what waits to arrive there.
                let waited_for = level0_blocked && urgent.level == context.targets.base_level;
                if waited_for || context.level0_only {
                    continue;
                }
                if let Some(plan) = pick_deeper(context, urgent.level) {
                    return Some(plan);
                }
            }
        }
        merge_tiny(context)
    }

    fn pick_charged<'a>(
        &self,
        context: &PickContext<'a>,
        charged: Span<'a>,
    ) -> Option<CompactionPlan> {
        charged::pick_charged(context, charged)
    }

    fn split(&self, context: &PickContext<'_>, level: u8, _: Bounds<'_>) -> OutputSplit {
        let (options, base_level) = (context.options, context.targets.base_level);
        if options.leveled.overlap_aware_tables && level == base_level {
            return overlap_aware::split(options, base_level);
        }
        OutputSplit::BySize {
            target_bytes: options.target_file_size(level, base_level),
            grandparent_overlap_bytes_max: settle::grandparent_overlap_bytes_max(options),
            at_grandparent_boundaries: options.leveled.align_tables,
            at_gaps: options.cut_tables_at_gaps,
        }
    }

    fn level0_collects_runs(&self) -> bool {
        true
    }

    fn level0_goes_in_parts(&self, options: &CfOptions) -> bool {
        options.leveled.level0_stripe_bytes > 0
    }

    fn stripes(&self, before: &Stripes, view: &TreeView<'_>) -> Stripes {
        cut_stripes(before, view)
    }

    /// The base level goes first if it is so large that merging level 0 into it would rewrite much
    /// for little. Not where level 0 is about to slow writers down for long.
    fn level0_may_go_first(&self, view: &TreeView<'_>, runs: u32) -> bool {
        let TreeView { version, options, targets } = *view;
        let base = version.level(targets.base_level).bytes();
        let target = targets.bytes_max(targets.base_level);
        let level0 = version.level(0).bytes();
        let deepest = usize::from(targets.base_level) + 1 >= options.level_count();
        let base_goes_first = !deepest
            && base > target.max(level0).saturating_mul(BASE_TO_LEVEL0_MAX)
            && runs < options.level0_slowdown;
        !base_goes_first
    }

    fn level0_stays(&self, context: &PickContext<'_>) -> bool {
        level0_stays(context)
    }

    fn level0_blockers(&self, context: &PickContext<'_>) -> Vec<JobId> {
        let base = context.targets.base_level;
        // A compaction that makes room is not in the way.
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

/// Returns the stripes at which flushes cut level 0.
pub(super) fn cut_stripes(before: &Stripes, view: &TreeView<'_>) -> Stripes {
    let options = view.options;
    crate::geometry::stripes(
        before,
        view.version,
        view.targets.base_level,
        options.leveled.level0_stripe_bytes,
        options.level0_trigger,
    )
}

/// Returns a plan that moves tables out of the base level before the next runs of level 0 come into
/// it, if it has no room for them (vLSM §4.2.1).
fn make_room(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let wanted = lacks_room(context) && !context.level0_only;
    if wanted { pick_deeper(context, context.targets.base_level) } else { None }
}
