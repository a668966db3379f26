//! How far tables overlap: in depth, in bytes and in keys.
//!
//! 1. [`depth`] sorts the ends of all tables and counts how many are open at a time.
//! 2. [`overlap_below`] counts the tables of one run that share keys with a table, and their bytes.
//! 3. [`repeated_part`] merges the key sketches of all tables and compares the estimate of the
//!    union with the sum of the estimates.

use crate::types::UserKey;
use crate::version::{KeySketch, Run, TableMeta};

/// Returns the largest number of tables of `runs` that share one key. Only tables for which
/// `counts` returns true count.
pub(crate) fn depth(runs: &[Run], counts: impl Fn(&TableMeta) -> bool) -> usize {
    let tables = runs.iter().flat_map(Run::iter).filter(|table| counts(table));
    let mut ends: Vec<(&UserKey, bool)> =
        tables.flat_map(|table| [(&table.smallest, false), (&table.largest, true)]).collect();
    // If one table ends at the key at which another begins, both count.
    ends.sort_unstable();
    let (mut now, mut most) = (0_usize, 0);
    for (_, end) in ends {
        now = if end { now - 1 } else { now + 1 };
        most = most.max(now);
    }
    most
}

/// Returns how many tables of `below` share keys with `table`, and their bytes.
pub(crate) fn overlap_below(table: &TableMeta, below: Option<&Run>) -> (u64, u64) {
    let Some(run) = below else { return (0, 0) };
    let ranks = run.overlap(table.smallest.bytes(), table.largest.bytes());
    (ranks.len() as u64, run.bytes_in(ranks))
}

/// Returns an estimate of the part of the keys of `runs` that exists more than once, which merging
/// the runs would drop. 0 if no table has a sketch of its keys.
#[expect(clippy::cast_precision_loss, reason = "key counts are far below 2^53")]
pub(crate) fn repeated_part(runs: &[Run]) -> f64 {
    let (mut all, mut union) = (0, KeySketch::default());
    for table in runs.iter().flat_map(Run::iter) {
        if let Some(sketch) = &table.sketch {
            all += sketch.estimate();
            union.merge(sketch);
        }
    }
    if all == 0 { 0.0 } else { 1.0 - union.estimate().min(all) as f64 / all as f64 }
}
