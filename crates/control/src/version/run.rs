//! A sorted run: disjoint tables in key order. A clone shares everything with the original.

use std::ops::Range;
use std::sync::Arc;

use super::TableMeta;
use super::tree::{Tables, Tree};
use crate::types::{Epoch, TableId};

/// A sorted run. With leveled compaction, level 1 and each deeper level have one, with `Epoch(0)`.
/// In level 0 every flush makes one.
#[derive(Clone, Debug, Default)]
pub struct Run {
    epoch: Epoch,
    tree: Tree,
}

impl Run {
    /// Returns an empty run.
    #[must_use]
    pub fn new(epoch: Epoch) -> Run {
        Run { epoch, tree: Tree::default() }
    }

    /// Returns a run of `tables`, in any order; `None` if two of them share a user key.
    #[must_use]
    pub fn from_tables(epoch: Epoch, mut tables: Vec<Arc<TableMeta>>) -> Option<Run> {
        tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        let disjoint = tables.windows(2).all(|pair| pair[0].largest < pair[1].smallest);
        disjoint.then(|| Run { epoch, tree: Tree::from_sorted(tables) })
    }

    /// Returns when the run was installed: a larger epoch is newer.
    #[must_use]
    #[inline]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the number of tables.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Returns true if there is no table.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tree.len() == 0
    }

    /// Returns the sum of the tables' `size_bytes`. O(1).
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// Returns the table of rank `index`. O(log n).
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Arc<TableMeta>> {
        self.tree.get(index)
    }

    /// Returns the rank of the first table whose largest key is at or above `user_key`; `len()` if
    /// there is none. O(log n).
    #[must_use]
    #[inline]
    pub fn lower_bound(&self, user_key: &[u8]) -> usize {
        self.tree.lower_bound(user_key)
    }

    /// Returns the one table that may hold `user_key`. It is the cheapest way to look up a key:
    /// O(log n).
    #[must_use]
    #[inline]
    pub fn find(&self, user_key: &[u8]) -> Option<&Arc<TableMeta>> {
        self.tree.find(user_key)
    }

    /// Returns all tables in key order.
    #[must_use]
    pub fn iter(&self) -> Tables<'_> {
        self.tree.range(0, self.len())
    }

    /// Returns the tables with ranks in `range`, in key order.
    #[must_use]
    pub fn range(&self, range: Range<usize>) -> Tables<'_> {
        self.tree.range(range.start, range.end)
    }

    /// Returns the ranks of the tables that share a key with `lo..=hi`. O(log n).
    #[must_use]
    pub fn overlap(&self, lo: &[u8], hi: &[u8]) -> Range<usize> {
        let from = self.lower_bound(lo);
        let mut to = self.lower_bound(hi);
        // Tables before rank `to` end below `hi`. The one at `to` may still begin at or below it.
        if self.get(to).is_some_and(|table| table.smallest <= *hi) {
            to += 1;
        }
        from..to.max(from)
    }

    /// Returns the tables that share a key with `lo..=hi`, in key order.
    #[must_use]
    pub fn overlapping(&self, lo: &[u8], hi: &[u8]) -> Tables<'_> {
        self.range(self.overlap(lo, hi))
    }

    /// Returns the bytes of the tables with ranks in `range`. O(log n).
    #[must_use]
    pub fn bytes_in(&self, range: Range<usize>) -> u64 {
        self.tree.bytes_before(range.end).saturating_sub(self.tree.bytes_before(range.start))
    }

    /// Returns the first and the last table; `None` if there are none.
    #[must_use]
    pub fn ends(&self) -> Option<(&Arc<TableMeta>, &Arc<TableMeta>)> {
        Some((self.get(0)?, self.get(self.len().checked_sub(1)?)?))
    }

    /// Returns the table `id`, which begins at `smallest`, with its rank.
    #[must_use]
    pub fn locate(&self, smallest: &[u8], id: TableId) -> Option<(usize, &Arc<TableMeta>)> {
        let index = self.lower_bound(smallest);
        let table = self.get(index)?;
        (table.id == id && table.smallest == *smallest).then_some((index, table))
    }

    /// Adds `table`. If it overlaps another table, returns that one as an error and adds nothing.
    pub(super) fn insert(&mut self, table: &Arc<TableMeta>) -> Result<(), Arc<TableMeta>> {
        if let Some(other) = self.overlapping(table.smallest.bytes(), table.largest.bytes()).next()
        {
            return Err(other.clone());
        }
        self.tree.insert(table.clone());
        Ok(())
    }

    /// Removes the table `id`, which begins at `smallest`.
    pub(super) fn remove(&mut self, smallest: &[u8], id: TableId) -> Option<Arc<TableMeta>> {
        let (index, _) = self.locate(smallest, id)?;
        self.tree.remove(index)
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        self.tree.check();
    }
}

/// Runs are equal if they have the same epoch and the same tables.
impl PartialEq for Run {
    fn eq(&self, other: &Run) -> bool {
        self.epoch == other.epoch && self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Run {}

impl<'a> IntoIterator for &'a Run {
    type Item = &'a Arc<TableMeta>;
    type IntoIter = Tables<'a>;
    fn into_iter(self) -> Tables<'a> {
        self.iter()
    }
}
