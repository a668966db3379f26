//! Groups: tables of one level that share keys with each other and with no other table of it.
//!
//! 1. [`groups`] sorts the tables of all runs by their smallest key.
//! 2. It walks over them in that order and remembers the largest key so far. A table that begins
//!    behind that key begins another group.
//! 3. In each run the tables of a group are neighbours, so a group has at most one span of a run.

use std::ops::Range;

use super::span::Span;
use crate::types::UserKey;
use crate::version::Run;

/// Returns the groups of `runs`, the runs of `level`, in key order. The spans of a group have the
/// order of the runs.
pub(crate) fn groups(level: u8, runs: &[Run]) -> Vec<Vec<Span<'_>>> {
    let mut tables: Vec<(&UserKey, &UserKey, usize, usize)> = Vec::new();
    for (nth, run) in runs.iter().enumerate() {
        let in_run = run.iter().enumerate();
        tables.extend(in_run.map(|(rank, table)| (&table.smallest, &table.largest, nth, rank)));
    }
    tables.sort_unstable();
    let mut groups = Vec::new();
    let mut reached: Option<&UserKey> = None;
    let mut open: Vec<Range<usize>> = vec![0..0; runs.len()];
    let close = |open: &[Range<usize>]| -> Vec<Span<'_>> {
        let spans =
            runs.iter().zip(open).map(|(run, ranks)| Span { level, run, ranks: ranks.clone() });
        spans.filter(|span| !span.ranks.is_empty()).collect()
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
