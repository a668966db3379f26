//! How urgent each level is: RocksDB's formulas, and what stripes, overlap-aware tables and waiting
//! for overlap change of them. That costs O(levels): versions and claims keep the sums. Stripes
//! look at all tables of level 0, overlap-aware tables at those of the base level.
//!
//! 1. [`level0_score`] compares the runs of level 0 with their trigger, and its bytes with the base
//!    level.
//! 2. [`scores`] compares the bytes of each deeper level with its target, without those that are
//!    being compacted. With dynamic targets a level waits for what is about to arrive from above.
//! 3. A level that holds data which the level below could hold is due in any case.
//! 4. [`keeps_all`](overlap_aware::keeps_all) holds a level back that has no table worth moving.
//! 5. Scores are sorted. Of equals the upper level goes first.

use super::super::levels::{level_number, most_urgent_first};
use super::overlap_aware;
use super::targets::ratio;
use super::wait_for_overlap::waits_for_overlap;
use crate::geometry::depth;
use crate::plan::InFlight;
use crate::policy::{CfOptions, LevelScore, TreeView};
use crate::version::Version;

/// Dynamic levels multiply scores above 1 by this, so that a score between 1 and it can stand for
/// levels that are less urgent.
const SCORE_SCALE: f64 = 10.0;

/// The score of a level that is over its target and keeps its tables all the same.
const KEPT_SCORE: f64 = 0.99;

/// Returns the scores of all levels but the last, most urgent first. Tables that are being
/// compacted do not count.
pub(super) fn scores(view: &TreeView<'_>, in_flight: &InFlight) -> Vec<LevelScore> {
    let TreeView { version, options, targets } = *view;
    let dynamic = options.dynamic_level_bytes;
    let last = level_number(version.levels().len() - 1);
    let mut scores = Vec::with_capacity(version.levels().len());
    scores.push(LevelScore { level: 0, score: level0_score(view, in_flight, dynamic) });
    // Bytes that are about to arrive from above. A level that is small beside them waits for them.
    let mut arriving = version.level(0).bytes();
    for level in 1..last {
        let total = version.level(level).bytes();
        let bytes = total.saturating_sub(in_flight.bytes(version.column_family(), level));
        let target = targets.bytes_max(level);
        let unneeded = targets.lowest_unneeded_level.filter(|lowest| level <= *lowest);
        let mut score = ratio(bytes, target);
        if dynamic {
            if bytes >= target {
                score = ratio(bytes, target.saturating_add(arriving)) * SCORE_SCALE;
            }
            if let Some(lowest) = unneeded.filter(|_| bytes > 0) {
                let above = f64::from(lowest - level);
                score = score.max(SCORE_SCALE * (1.001 + 0.001 * above));
            }
        }
        if unneeded.is_none() && score >= 1.0 && overlap_aware::keeps_all(view, level) {
            score = KEPT_SCORE;
        }
        arriving += if unneeded.is_some() { total } else { total.saturating_sub(target) };
        scores.push(LevelScore { level, score });
    }
    most_urgent_first(scores)
}

/// Returns the score of level 0. `dynamic`: whether targets count from the largest level upwards.
pub(in crate::policy) fn level0_score(
    view: &TreeView<'_>,
    in_flight: &InFlight,
    dynamic: bool,
) -> f64 {
    let TreeView { version, options, targets } = *view;
    let cf = version.column_family();
    let level0 = version.level(0);
    let runs = match options.leveled.level0_stripe_bytes {
        0 => level0.runs().len().saturating_sub(in_flight.level0_runs(cf)),
        _ => depth(level0.runs(), |table| !in_flight.is_claimed(table)),
    } as u64;
    let bytes = level0.bytes().saturating_sub(in_flight.bytes(cf, 0));
    if waits_for_overlap(version, options, runs, bytes) {
        return KEPT_SCORE;
    }
    let base = options.level_base_bytes;
    let mut score = ratio(runs, u64::from(options.level0_runs_to_collect()));
    if !dynamic {
        return score.max(ratio(bytes, base));
    }
    if bytes >= base {
        // The debt counts level 0 from here on, so level 0 must be compacted, too.
        score = score.max(1.01);
    }
    let base_max = targets.bytes_max(targets.base_level);
    if bytes > base_max {
        // Level 0 is larger than the base level, so it goes before that.
        let base_bytes = version.level(targets.base_level).bytes();
        score = score.max(ratio(bytes, base_bytes.max(base_max)));
    }
    if score > 1.0 { score * SCORE_SCALE } else { score }
}

/// Returns how many runs of level 0 a reader may have to look into for one key.
pub(in crate::policy) fn level0_runs(version: &Version, options: &CfOptions) -> usize {
    match options.leveled.level0_stripe_bytes {
        0 => version.level(0).runs().len(),
        _ => depth(version.level(0).runs(), |_| true),
    }
}
