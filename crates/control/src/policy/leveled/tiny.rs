//! Merges tiny runs of level 0, which flushes of nearly empty memtables write. Each run costs a
//! table, an entry in the manifest and a place in every iterator, even if it overlaps nothing.
//! Stripes are compacted only where runs lie on top of each other, so tiny runs that overlap
//! nothing would stay for ever.
//!
//! 1. [`tiny_bytes`] says what is tiny: a small part of a memtable, and a larger part the more runs
//!    level 0 has.
//! 2. [`tiny_runs`] finds neighbouring tiny runs that are not being compacted, at least as many as
//!    the trigger of level 0. None of them has more than three quarters of their bytes. So the run
//!    that holds a byte grows by a third at least, and a byte is merged O(log n) times.
//! 3. [`merge_tiny`] merges them into one run in the place of the newest. The result stays in level
//!    0 until it is no longer tiny, or is compacted with its stripe.
//!
//! The merge runs when nothing else is due. [`tiny_urgency`] makes it as urgent as level 0 once
//! there are many runs.

use std::ops::Range;

use super::intra_level0::intra_level0;
use crate::plan::{CompactionPlan, InFlight};
use crate::policy::{CfOptions, PickContext};
use crate::version::{Run, Version};

/// The fewest runs that are worth a compaction.
const RUNS_MIN: usize = 4;
/// The most runs that are merged at once: each takes a buffer.
const RUNS_MAX: usize = 256;
/// A run is tiny if it is no more than one part in this many of a memtable, while level 0 has as
/// many runs as its trigger. That is less than a full memtable has in one of 32 stripes, so the
/// rest of a run that compactions by stripes leave is not tiny.
const PART: u64 = 64;
/// The most times by which the size of a tiny run grows with the number of runs.
const TIMES_MAX: u64 = 16;
/// Tiny runs are as urgent as level 0 itself once there are this many times its trigger.
const URGENT_TIMES: usize = 8;

/// Returns the ranks in level 0 of the runs to be merged, newest first; `None` if there are none.
fn tiny_runs(version: &Version, options: &CfOptions, in_flight: &InFlight) -> Option<Range<usize>> {
    let leveled = &options.leveled;
    let merges = leveled.level0_stripe_bytes > 0
        && leveled.intra_level0_compaction
        && !leveled.level0_fifo
        // With it, runs wait on purpose until their keys overlap (TRIAD).
        && leveled.level0_overlap_min <= 0.0;
    let runs = version.level(0).runs();
    if !merges || options.disable_auto_compactions || runs.len() < runs_min(options) {
        return None;
    }
    let tiny_bytes = tiny_bytes(options, runs.len());
    let is_tiny = |run: &Run| {
        run.bytes() <= tiny_bytes && !run.iter().any(|table| in_flight.is_claimed(table))
    };
    let mut found: Option<Range<usize>> = None;
    let mut start = 0;
    while start < runs.len() {
        let length = runs[start..].iter().take_while(|run| is_tiny(run)).count();
        let sizes: Vec<u64> = runs[start..start + length].iter().map(Run::bytes).collect();
        let here = balanced(&sizes, runs_min(options));
        if here.len() > found.as_ref().map_or(0, Range::len) {
            found = Some(here.start + start..here.end + start);
        }
        start += length + 1;
    }
    found
}

/// Returns the least number of runs that are merged.
fn runs_min(options: &CfOptions) -> usize {
    (options.level0_trigger as usize).max(RUNS_MIN)
}

/// Returns the size up to which a run is tiny where level 0 has `runs`.
fn tiny_bytes(options: &CfOptions, runs: usize) -> u64 {
    let part = options.memtable_bytes / PART;
    let trigger = u64::from(options.level0_trigger.max(1));
    let grown = part.saturating_mul(runs as u64) / trigger;
    grown.clamp(part, part.saturating_mul(TIMES_MAX))
}

/// Returns the longest range of at least `runs_min` of the `sizes` in which none is more than three
/// quarters of the sum; empty if there is none. A size that is too large for a range is also too
/// large for every part of the range that contains it. So the search goes on at both sides of that
/// size.
fn balanced(sizes: &[u64], runs_min: usize) -> Range<usize> {
    let Some((largest, bytes)) = (0..).zip(sizes).max_by_key(|(_, bytes)| **bytes) else {
        return 0..0;
    };
    if sizes.len() < runs_min {
        return 0..0;
    }
    let total: u64 = sizes.iter().sum();
    if bytes.saturating_mul(4) <= total.saturating_mul(3) {
        return 0..sizes.len();
    }
    let newer = balanced(&sizes[..largest], runs_min);
    let older = balanced(&sizes[largest + 1..], runs_min);
    if newer.len() >= older.len() {
        newer
    } else {
        older.start + largest + 1..older.end + largest + 1
    }
}

/// Returns how urgent it is to merge tiny runs, 0 or from 1 on; `None` if there are none to merge.
#[expect(clippy::cast_precision_loss, reason = "runs are far fewer than 2^53")]
pub(super) fn tiny_urgency(
    version: &Version,
    options: &CfOptions,
    in_flight: &InFlight,
) -> Option<f64> {
    let runs = tiny_runs(version, options, in_flight)?.len();
    let urgent = runs_min(options) * URGENT_TIMES;
    Some(if runs < urgent { 0.0 } else { runs as f64 / urgent as f64 })
}

/// Returns a plan that merges neighbouring tiny runs into one. Of many it takes the oldest: the
/// newer ones are merged with the result later.
pub(super) fn merge_tiny(context: &PickContext<'_>) -> Option<CompactionPlan> {
    let all = tiny_runs(context.version, context.options, context.in_flight)?;
    let runs = context.version.level(0).runs();
    let bytes_max = context.bytes_max();
    let mut bytes = 0u64;
    let oldest = runs[all.clone()].iter().rev().take(RUNS_MAX).take_while(|run| {
        bytes = bytes.saturating_add(run.bytes());
        bytes <= bytes_max
    });
    let taken = all.end - oldest.count()..all.end;
    let sizes: Vec<u64> = runs[taken.clone()].iter().map(Run::bytes).collect();
    let here = balanced(&sizes, runs_min(context.options));
    let taken = taken.start + here.start..taken.start + here.end;
    if taken.is_empty() { None } else { intra_level0(context, taken) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_run_has_more_than_three_quarters_of_what_is_merged() {
        assert_eq!(balanced(&[1, 1, 1], 4), 0..0);
        assert_eq!(balanced(&[1, 1, 1, 1], 4), 0..4);
        assert_eq!(balanced(&[1, 1, 1, 9], 4), 0..4);
        assert_eq!(balanced(&[1, 1, 1, 10], 4), 0..0);
        assert_eq!(balanced(&[1, 1, 1, 1, 13], 4), 0..4);
        assert_eq!(balanced(&[100, 1, 1, 1, 1, 1, 100, 1, 1, 1, 1], 4), 0..11);
        assert_eq!(balanced(&[1, 1, 1, 1, 900, 1, 1, 1, 1, 1], 4), 5..10);
        assert_eq!(balanced(&[0, 0, 0, 0], 4), 0..4);
    }

    /// Flushes of equal size, one after the other, each followed by all merges that are due.
    #[test]
    fn each_byte_is_merged_a_logarithmic_number_of_times() {
        for flushes in [100u64, 3000, 20_000] {
            let (mut runs, mut moved) = (Vec::new(), 0u64);
            let mut most = 0;
            for _ in 0..flushes {
                runs.insert(0, 1u64);
                loop {
                    let taken = balanced(&runs, 4);
                    if taken.is_empty() {
                        break;
                    }
                    let bytes: u64 = runs[taken.clone()].iter().sum();
                    moved += bytes;
                    runs.splice(taken, [bytes]);
                }
                most = most.max(runs.len());
            }
            let log4 = (flushes as f64).log(4.0);
            assert_eq!(runs.iter().sum::<u64>(), flushes);
            assert!(most as f64 <= 3.0 + log4, "{flushes}: {most} runs");
            assert!(moved as f64 <= 3.0 * log4 * flushes as f64, "{flushes}: {moved}");
        }
    }
}
