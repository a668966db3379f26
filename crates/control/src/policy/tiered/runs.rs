//! The sorted runs of a tree.
//!
//! 1. [`sorted_runs`] lists the runs of level 0, newest first, then each deeper level that is in
//!    use. This is the order of age: a level is newer than all levels below it.
//! 2. A run is claimed if any of its tables is being compacted. The claims keep the claimed bytes
//!    of each level, so that only the tables of level 0 are looked at one by one.
//! 3. [`are_disjoint`] tells whether the tables of runs share no keys with each other.

use crate::geometry::Span;
use crate::plan::InFlight;
use crate::version::Version;

/// A sorted run.
#[derive(Clone, Debug)]
pub(super) struct SortedRun<'a> {
    /// All of its tables.
    pub(super) span: Span<'a>,
    /// True if some of it is being compacted.
    pub(super) is_claimed: bool,
}

/// Returns all sorted runs, newest first.
pub(super) fn sorted_runs<'a>(version: &'a Version, in_flight: &InFlight) -> Vec<SortedRun<'a>> {
    let cf = version.column_family();
    let level0 = version.level(0).runs().iter().map(|run| SortedRun {
        span: Span::whole(0, run),
        is_claimed: run.iter().any(|table| in_flight.is_claimed(table)),
    });
    let deeper = (0u8..).zip(version.levels()).skip(1).filter_map(|(number, level)| {
        let span = Span::whole(number, level.sorted()?);
        Some(SortedRun { span, is_claimed: in_flight.bytes(cf, number) > 0 })
    });
    level0.chain(deeper).collect()
}

/// Returns true if no table of `spans` shares a key with another.
pub(super) fn are_disjoint(spans: &[Span<'_>]) -> bool {
    let mut tables: Vec<_> = spans.iter().flat_map(Span::tables).collect();
    tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    tables.windows(2).all(|pair| pair[0].largest < pair[1].smallest)
}
