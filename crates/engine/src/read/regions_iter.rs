//! One stream of the streams of a column family's regions, one behind the other: only that of the
//! region in which the cursor stands is there.
//!
//! What must stay true: no entry of a region lies outside of it, so that the end of one and the
//! begin of the next are neighbours.

use sateen_control::UserKey;

use super::InternalIterator;
use crate::error::Result;
use crate::key;

/// Makes the stream of a region, by its place.
pub(crate) type OpenRegion<I> = Box<dyn Fn(usize) -> I + Send + Sync>;

pub(crate) struct RegionsIter<I> {
    open: OpenRegion<I>,
    /// The keys at which all but the first begin.
    begins: Vec<UserKey>,
    at: usize,
    iter: I,
}

impl<I: InternalIterator> RegionsIter<I> {
    pub(crate) fn new(open: OpenRegion<I>, begins: Vec<UserKey>) -> RegionsIter<I> {
        let iter = open(0);
        RegionsIter { open, begins, at: 0, iter }
    }

    fn go_to(&mut self, at: usize) {
        if self.at != at {
            self.iter = (self.open)(at);
            self.at = at;
        }
    }

    fn region_of(&self, target: &[u8]) -> usize {
        let user_key = key::user_key(target);
        self.begins.partition_point(|begin| **begin <= *user_key)
    }

    /// Where a region ended, on to the first entry of those behind it.
    fn skip_empty(&mut self) -> Result<()> {
        while !self.iter.valid() && self.at < self.begins.len() {
            self.go_to(self.at + 1);
            self.iter.seek_to_first()?;
        }
        Ok(())
    }

    /// Where a region begins, back to the last entry of those before it.
    fn skip_empty_back(&mut self) -> Result<()> {
        while !self.iter.valid()
            && let Some(before) = self.at.checked_sub(1)
        {
            self.go_to(before);
            self.iter.seek_to_last()?;
        }
        Ok(())
    }
}

impl<I: InternalIterator> InternalIterator for RegionsIter<I> {
    fn valid(&self) -> bool {
        self.iter.valid()
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.go_to(0);
        self.iter.seek_to_first()?;
        self.skip_empty()
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.go_to(self.begins.len());
        self.iter.seek_to_last()?;
        self.skip_empty_back()
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.go_to(self.region_of(target));
        self.iter.seek(target)?;
        self.skip_empty()
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.go_to(self.region_of(target));
        self.iter.seek_for_prev(target)?;
        self.skip_empty_back()
    }
    fn next(&mut self) -> Result<()> {
        self.iter.next()?;
        self.skip_empty()
    }
    fn prev(&mut self) -> Result<()> {
        self.iter.prev()?;
        self.skip_empty_back()
    }
    fn key(&self) -> &[u8] {
        self.iter.key()
    }
    fn value(&self) -> &[u8] {
        self.iter.value()
    }
}
