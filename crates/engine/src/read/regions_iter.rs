//! Chains the iterators of a column family's regions into one. Only the iterator of the region
//! where the cursor stands exists.
//!
//! What must stay true: a region has no entry outside of its range, so the last entry of one region
//! and the first of the next are neighbours.

use sateen_control::UserKey;
use sateen_store::base::error::Result;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;

/// Creates the iterator of a region, by its index.
pub(crate) type OpenRegion<I> = Box<dyn Fn(usize) -> I + Send + Sync>;

/// An iterator over all regions.
pub(crate) struct RegionsIter<I> {
    open: OpenRegion<I>,
    /// The keys at which the regions begin, without the first.
    begins: Vec<UserKey>,
    /// The region of `iter`.
    at: usize,
    /// `None` before the first seek.
    iter: Option<I>,
}

impl<I: InternalIterator> RegionsIter<I> {
    pub(crate) fn new(open: OpenRegion<I>, begins: Vec<UserKey>) -> RegionsIter<I> {
        RegionsIter { open, begins, at: 0, iter: None }
    }

    /// Moves to region `at` and returns its iterator.
    fn go_to(&mut self, at: usize) -> &mut I {
        if self.at != at {
            self.iter = None;
            self.at = at;
        }
        self.iter.get_or_insert_with(|| (self.open)(at))
    }

    /// Returns the region that holds the key of `target`.
    fn region_of(&self, target: &[u8]) -> usize {
        let user_key = key::user_key(target);
        self.begins.partition_point(|begin| *begin <= *user_key)
    }

    /// At the end of a region, moves to the first entry of the next region that has one.
    fn skip_empty(&mut self) -> Result<()> {
        while !self.valid() && self.at < self.begins.len() {
            self.go_to(self.at + 1).seek_to_first()?;
        }
        Ok(())
    }

    /// Before the beginning of a region, moves to the last entry of the previous region that has
    /// one.
    fn skip_empty_back(&mut self) -> Result<()> {
        while !self.valid()
            && let Some(before) = self.at.checked_sub(1)
        {
            self.go_to(before).seek_to_last()?;
        }
        Ok(())
    }
}

impl<I: InternalIterator> InternalIterator for RegionsIter<I> {
    fn valid(&self) -> bool {
        self.iter.as_ref().is_some_and(I::valid)
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.go_to(0).seek_to_first()?;
        self.skip_empty()
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.go_to(self.begins.len()).seek_to_last()?;
        self.skip_empty_back()
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.go_to(self.region_of(target)).seek(target)?;
        self.skip_empty()
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.go_to(self.region_of(target)).seek_for_prev(target)?;
        self.skip_empty_back()
    }
    fn next(&mut self) -> Result<()> {
        self.go_to(self.at).next()?;
        self.skip_empty()
    }
    fn prev(&mut self) -> Result<()> {
        self.go_to(self.at).prev()?;
        self.skip_empty_back()
    }
    fn load_value(&mut self) -> Result<()> {
        self.iter.as_mut().map_or(Ok(()), I::load_value)
    }
    fn key(&self) -> &[u8] {
        self.iter.as_ref().map_or(&[], I::key)
    }
    fn value(&self) -> &[u8] {
        self.iter.as_ref().map_or(&[], I::value)
    }
}
