//! Spans: neighbouring tables of one run, from which compactions are made.
//!
//! 1. A [`Span`] names tables of one run by their ranks. [`Span::bounds`] returns its key range.
//! 2. [`hull`] returns the key range of several spans together.
//! 3. [`closure`] starts with a key range and takes in all tables that share keys with it. Their
//!    key range may be wider, so it repeats this until no further table shares a key.
//! 4. [`KeysOf`] is what is known of a table that nobody holds.

use std::ops::Range;
use std::sync::Arc;

use crate::types::UserKey;
use crate::version::{Run, TableMeta};

/// Neighbouring tables of one run, by rank.
#[derive(Clone, Debug)]
pub struct Span<'a> {
    /// The run's level.
    pub level: u8,
    /// The run.
    pub run: &'a Run,
    /// The ranks of the tables.
    pub ranks: Range<usize>,
}

impl<'a> Span<'a> {
    /// Returns all tables of a run.
    #[must_use]
    pub fn whole(level: u8, run: &'a Run) -> Span<'a> {
        Span { level, run, ranks: 0..run.len() }
    }

    /// Returns the tables in key order.
    pub fn tables(&self) -> impl Iterator<Item = &'a Arc<TableMeta>> + use<'a> {
        self.run.range(self.ranks.clone())
    }

    /// Returns the sum of the tables' sizes in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.run.bytes_in(self.ranks.clone())
    }

    /// Returns the smallest and the largest key; `None` for an empty span.
    #[must_use]
    pub fn bounds(&self) -> Option<Bounds<'a>> {
        let first = self.run.get(self.ranks.start)?;
        let last = self.run.get(self.ranks.end.checked_sub(1)?)?;
        (!self.ranks.is_empty()).then_some((&first.smallest, &last.largest))
    }
}

/// The keys and the size of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysOf {
    /// The smallest key.
    pub smallest: UserKey,
    /// The largest key.
    pub largest: UserKey,
    /// The table's `size_bytes`.
    pub size_bytes: u64,
}

impl From<&Arc<TableMeta>> for KeysOf {
    fn from(table: &Arc<TableMeta>) -> KeysOf {
        let (smallest, largest) = (table.smallest.clone(), table.largest.clone());
        KeysOf { smallest, largest, size_bytes: table.size_bytes }
    }
}

/// The smallest and the largest key of something, both inclusive.
pub type Bounds<'a> = (&'a UserKey, &'a UserKey);

/// Returns the smallest range that holds both ranges.
pub(crate) fn union<'a>(a: Bounds<'a>, b: Option<Bounds<'a>>) -> Bounds<'a> {
    b.map_or(a, |b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Returns the smallest range that holds all spans; `None` if there are none.
pub fn hull<'a: 's, 's>(spans: impl IntoIterator<Item = &'s Span<'a>>) -> Option<Bounds<'a>> {
    let bounds = spans.into_iter().filter_map(Span::bounds);
    bounds.reduce(|hull, next| union(hull, Some(next)))
}

/// Returns the tables of `runs`, each with its level, that share keys with `bounds`, then those
/// that share keys with these, and so on. The spans have the order of the runs.
pub fn closure<'a, I: Iterator<Item = (u8, &'a Run)>>(
    runs: impl Fn() -> I,
    mut bounds: Bounds<'a>,
) -> Vec<Span<'a>> {
    loop {
        let spans: Vec<Span<'a>> = runs()
            .map(|(level, run)| Span {
                level,
                run,
                ranks: run.overlap(bounds.0.bytes(), bounds.1.bytes()),
            })
            .filter(|span| !span.ranks.is_empty())
            .collect();
        let wider = union(bounds, hull(&spans));
        if wider == bounds {
            return spans;
        }
        bounds = wider;
    }
}
