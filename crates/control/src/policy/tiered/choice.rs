//! Which neighbours in the list of sorted runs are merged: RocksDB's three rules, in its order.
//!
//! 1. [`choose`] asks the rules one after the other, if there are as many runs as the trigger.
//! 2. [`by_size_amplification`] adds up the free runs from the oldest one backwards, and compares
//!    their sum with the oldest run.
//! 3. [`by_size_ratio`] begins at each free run, newest first, and takes in the next older one as
//!    long as that is no more than `size_ratio` percent larger than what was taken. A series of
//!    `merge_width_min` runs is enough.
//! 4. [`by_number`] does the same without a look at sizes.
//! 5. [`output_level`] follows from the first run behind the series.

use std::ops::Range;

use super::options::{StopStyle, TieredOptions};
use super::runs::SortedRun;
use crate::policy::CfOptions;

/// Runs to be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Their places in the list, newest first.
    pub(super) runs: Range<usize>,
    /// The level of the output.
    pub(super) output_level: u8,
}

/// Returns the next merge. `last`: the last level. `level0_only`: only a merge within level 0
/// counts.
pub(super) fn choose(
    options: &CfOptions,
    runs: &[SortedRun<'_>],
    last: u8,
    level0_only: bool,
) -> Option<Choice> {
    let trigger = options.level0_trigger.max(1) as usize;
    if runs.len() < trigger {
        return None;
    }
    let tiered = &options.tiered;
    let may = |taken: &Range<usize>| !level0_only || output_level(runs, taken, last) == 0;
    let taken = by_size_amplification(tiered, runs)
        .filter(may)
        .or_else(|| by_size_ratio(tiered, runs, Some(tiered.size_ratio), usize::MAX).filter(may))
        .or_else(|| by_number(tiered, runs, trigger).filter(may))?;
    let output_level = output_level(runs, &taken, last);
    Some(Choice { runs: taken, output_level })
}

/// Returns the level of the output when `taken` is merged: the last one if nothing older is left,
/// otherwise the one above the next older run.
fn output_level(runs: &[SortedRun<'_>], taken: &Range<usize>, last: u8) -> u8 {
    runs.get(taken.end).map_or(last, |next| next.span.level.saturating_sub(1))
}

/// Returns the oldest run and all free runs before it, if these have so many bytes that the tree
/// takes too much space for what it holds.
fn by_size_amplification(tiered: &TieredOptions, runs: &[SortedRun<'_>]) -> Option<Range<usize>> {
    let (oldest, newer) = runs.split_last().filter(|(oldest, _)| !oldest.is_claimed)?;
    let free = newer.iter().rev().take_while(|run| !run.is_claimed);
    let (count, bytes) = free.fold((0, 0_u64), |(count, bytes), run| {
        (count + 1, bytes.saturating_add(run.span.bytes()))
    });
    let most = u128::from(tiered.size_amplification_max) * u128::from(oldest.span.bytes());
    let too_much = u128::from(bytes) * 100 >= most;
    (count > 0 && too_much).then_some(newer.len() - count..runs.len())
}

/// Returns the first series of free runs, newest first, in which each is no more than `size_ratio`
/// percent larger than what was taken before it, and that is long enough; at most `runs_max` of it.
/// Without a ratio size does not matter.
fn by_size_ratio(
    tiered: &TieredOptions,
    runs: &[SortedRun<'_>],
    size_ratio: Option<u32>,
    runs_max: usize,
) -> Option<Range<usize>> {
    let runs_min = tiered.merge_width_min.max(2) as usize;
    let runs_max = runs_max.min(tiered.merge_width_max as usize);
    let fits = |bytes: u64, next: u64| {
        size_ratio.is_none_or(|ratio| {
            u128::from(bytes) * (100 + u128::from(ratio)) >= u128::from(next) * 100
        })
    };
    for start in (0..runs.len()).filter(|at| !runs[*at].is_claimed) {
        let mut taken = 1;
        let mut bytes = runs[start].span.bytes();
        for next in runs[start + 1..].iter().take_while(|run| !run.is_claimed) {
            let size = next.span.bytes();
            if taken >= runs_max || !fits(bytes, size) {
                break;
            }
            bytes = match tiered.stop_style {
                StopStyle::TotalSize => bytes.saturating_add(size),
                StopStyle::SimilarSize if !fits(size, bytes) => break,
                StopStyle::SimilarSize => size,
            };
            taken += 1;
        }
        if taken >= runs_min {
            return Some(start..start + taken);
        }
    }
    None
}

/// Returns as many free runs, newest first, as bring the number of runs down to the trigger.
fn by_number(
    tiered: &TieredOptions,
    runs: &[SortedRun<'_>],
    trigger: usize,
) -> Option<Range<usize>> {
    let free = runs.iter().filter(|run| !run.is_claimed).count();
    let wanted = (free + 1).checked_sub(trigger).filter(|wanted| *wanted >= 2)?;
    by_size_ratio(tiered, runs, None, wanted)
}
