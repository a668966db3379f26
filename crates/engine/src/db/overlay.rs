//! Entries that are not committed, as a layer above what a cursor sees of the database.
//!
//! 1. A batch with an index, or a transaction, keeps its entries in a private memtable. Their
//!    sequence numbers count from [`FIRST`], which is above all stored ones.
//! 2. [`Overlay::over`] merges them above the source of a cursor. [`AsOfIter`] hides what the
//!    cursor's snapshot does not see of the database, as the merge is read at the newest own entry.
//! 3. Range tombstones of the overlay hide both its older entries and those of the database.
//!
//! What must stay true: an overlay shows the own entries up to `through`, so that a cursor does not
//! change under writes that come after its creation.

use std::sync::Arc;

use sateen_control::{Comparator, SeqNo};
use sateen_store::base::error::Result;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::iter::as_of::AsOfIter;
use sateen_store::iter::covered_iter::{CoveredIter, SeenRanges};
use sateen_store::iter::merging_iter::MergingIter;
use sateen_store::memtable::{MemTable, MemTableIter};

use super::sources::Source;
use crate::ttl::{self, TIME_BYTES};

/// The sequence number of the first own entry. No database reaches it.
pub(crate) const FIRST: SeqNo = SeqNo(1 << 55);

/// Own entries of one column family, up to a moment.
#[derive(Clone)]
pub(crate) struct Overlay {
    pub(crate) entries: Arc<MemTable>,
    /// The newest own entry that counts.
    pub(crate) through: SeqNo,
}

impl Overlay {
    /// Returns the entries of `stored` up to `as_of`, below those of the overlay. `time` is
    /// appended to own values if the column family stores values with their time.
    pub(super) fn over(
        &self,
        stored: Source,
        as_of: SeqNo,
        time: Option<[u8; TIME_BYTES]>,
        comparator: &Comparator,
    ) -> Source {
        let own = Box::new(OwnIter { iter: self.entries.iter(), time, value: Vec::new() });
        let stored = Box::new(AsOfIter::new(stored, as_of));
        let merged = MergingIter::new(vec![Layer::Own(own), Layer::Stored(stored)], comparator);
        match self.entries.ranges() {
            Some(ranges) => {
                let seen = SeenRanges { ranges, as_of: self.through };
                Source::OverlaidCovered(CoveredIter::new(merged, seen))
            }
            None => Source::Overlaid(merged),
        }
    }
}

/// A source of the merge.
pub(crate) enum Layer {
    Own(Box<OwnIter>),
    Stored(Box<AsOfIter<Source>>),
}

/// The own entries, with a time at the end of each value if the column family has times.
pub(crate) struct OwnIter {
    iter: MemTableIter,
    time: Option<[u8; TIME_BYTES]>,
    /// The current value with its time.
    value: Vec<u8>,
}

impl OwnIter {
    /// Ends a move.
    #[inline]
    fn moved(&mut self, done: Result<()>) -> Result<()> {
        if let Some(time) = self.time {
            self.value.clear();
            if self.iter.valid() {
                self.value.extend_from_slice(&ttl::with_time(self.iter.value(), time));
            }
        }
        done
    }
}

impl InternalIterator for OwnIter {
    #[inline]
    fn valid(&self) -> bool {
        self.iter.valid()
    }
    fn seek_to_first(&mut self) -> Result<()> {
        let done = self.iter.seek_to_first();
        self.moved(done)
    }
    fn seek_to_last(&mut self) -> Result<()> {
        let done = self.iter.seek_to_last();
        self.moved(done)
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let done = self.iter.seek(target);
        self.moved(done)
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        let done = self.iter.seek_for_prev(target);
        self.moved(done)
    }
    fn next(&mut self) -> Result<()> {
        let done = self.iter.next();
        self.moved(done)
    }
    fn prev(&mut self) -> Result<()> {
        let done = self.iter.prev();
        self.moved(done)
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.iter.key()
    }
    #[inline]
    fn value(&self) -> &[u8] {
        if self.time.is_some() { &self.value } else { self.iter.value() }
    }
}
