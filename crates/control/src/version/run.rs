//! A sorted run: disjoint tables in key order. A clone shares everything with the original.

use std::ops::Range;
use std::sync::Arc;

use super::TableMeta;
use super::tree::{Tables, Tree};
use crate::types::{Epoch, TableId};

/// A sorted run. Leveled, levels 1 and deeper have one, with `Epoch(0)`; in level 0 every flush
/// makes one.
#[derive(Clone, Debug, Default)]
pub struct Run {
    epoch: Epoch,
    tree: Tree,
}

impl Run {
    /// An empty run.
    #[must_use]
    pub fn new(epoch: Epoch) -> Run {
        Run { epoch, tree: Tree::default() }
    }

    /// A run of `tables`, which are sorted here; `None` if two of them share a user key.
    #[must_use]
    pub fn from_tables(epoch: Epoch, mut tables: Vec<Arc<TableMeta>>) -> Option<Run> {
        tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        let disjoint = tables.windows(2).all(|pair| pair[0].largest < pair[1].smallest);
        disjoint.then(|| Run { epoch, tree: Tree::from_sorted(tables) })
    }

    /// When the run was installed: larger is newer.
    #[must_use]
    #[inline]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How many tables.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there is no table.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tree.len() == 0
    }

    /// The sum of the tables' `size_bytes`. O(1).
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// The table of rank `index`. O(log n).
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Arc<TableMeta>> {
        self.tree.get(index)
    }

    /// The rank of the first table whose largest key is `user_key` or above; `len()` if there is
    /// none. O(log n).
    #[must_use]
    #[inline]
    pub fn lower_bound(&self, user_key: &[u8]) -> usize {
        self.tree.lower_bound(user_key)
    }

    /// The one table that can hold `user_key`. The cheapest way to look a key up: O(log n).
    #[must_use]
    #[inline]
    pub fn find(&self, user_key: &[u8]) -> Option<&Arc<TableMeta>> {
        self.tree.seek(user_key).filter(|table| table.smallest <= *user_key)
    }

    /// All tables in key order.
    #[must_use]
    pub fn iter(&self) -> Tables<'_> {
        self.tree.range(0, self.len())
    }

    /// The tables of the ranks in `range`, in key order.
    #[must_use]
    pub fn range(&self, range: Range<usize>) -> Tables<'_> {
        self.tree.range(range.start, range.end)
    }

    /// The ranks of the tables that share a key with `lo..=hi`. O(log n).
    #[must_use]
    pub fn overlap(&self, lo: &[u8], hi: &[u8]) -> Range<usize> {
        let from = self.lower_bound(lo);
        let mut to = self.lower_bound(hi);
        // Tables before rank `to` end below `hi`; the one at `to` may still begin at or below it.
        if self.get(to).is_some_and(|table| table.smallest <= *hi) {
            to += 1;
        }
        from..to.max(from)
    }

    /// The tables that share a key with `lo..=hi`, in key order.
    #[must_use]
    pub fn overlapping(&self, lo: &[u8], hi: &[u8]) -> Tables<'_> {
        self.range(self.overlap(lo, hi))
    }

    /// The bytes of the tables of the ranks in `range`. O(log n).
    #[must_use]
    pub fn bytes_in(&self, range: Range<usize>) -> u64 {
        self.tree.bytes_before(range.end).saturating_sub(self.tree.bytes_before(range.start))
    }

    /// The first and last tables, if any.
    #[must_use]
    pub fn ends(&self) -> Option<(&Arc<TableMeta>, &Arc<TableMeta>)> {
        Some((self.get(0)?, self.get(self.len().checked_sub(1)?)?))
    }

    /// The table `id` that begins at `smallest`, with its rank.
    #[must_use]
    pub fn locate(&self, smallest: &[u8], id: TableId) -> Option<(usize, &Arc<TableMeta>)> {
        let index = self.lower_bound(smallest);
        let table = self.get(index)?;
        (table.id == id && table.smallest == *smallest).then_some((index, table))
    }

    /// Adds `table`; gives back the table whose range it touches and adds nothing if there is one.
    pub(super) fn insert(&mut self, table: &Arc<TableMeta>) -> Result<(), Arc<TableMeta>> {
        if let Some(other) = self.overlapping(table.smallest.bytes(), table.largest.bytes()).next()
        {
            return Err(other.clone());
        }
        self.tree.insert(table.clone());
        Ok(())
    }

    /// Removes the table `id` that begins at `smallest`.
    pub(super) fn remove(&mut self, smallest: &[u8], id: TableId) -> Option<Arc<TableMeta>> {
        let (index, _) = self.locate(smallest, id)?;
        self.tree.remove(index)
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        self.tree.check();
    }
}

/// Runs are equal when they hold the same tables under the same epoch.
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
