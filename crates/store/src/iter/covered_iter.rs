//! Applies range tombstones to an iterator: it hides the entries that they delete. Iterators
//! without range tombstones do not use it.
//!
//! 1. After each move, `skip_forward` or `skip_back` passes over hidden entries.
//! 2. `hiding` finds the fragment of the range tombstones that contains the entry, and compares
//!    sequence numbers. It first tries the fragment of the entry before, then searches
//!    (`first_behind`).
//! 3. After 16 entries in one go, the inner iterator may leap to the end of the fragment
//!    ([`InternalIterator::leap`]). It passes whole tables that are older than the tombstone.
//!
//! What must stay true: an entry is hidden only if a tombstone that the reader sees is newer than
//! the entry.

use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_control::version::{Fragment, RangeTombstones};

use crate::base::error::Result;
use crate::base::iterator::InternalIterator;
use crate::base::key;

/// Number of hidden entries that are passed one by one before a leap is tried.
const SEQUENTIAL_SKIP_MAX: u32 = 16;

/// The range tombstones that a reader sees.
#[derive(Clone)]
pub struct SeenRanges {
    pub ranges: Arc<RangeTombstones>,
    /// The reader's snapshot.
    pub as_of: SeqNo,
}

/// The entries of `iter` that no range tombstone deletes for a reader at `as_of`. Entries newer
/// than the reader all stay; the reader ignores them itself.
pub struct CoveredIter<I> {
    iter: I,
    seen: SeenRanges,
    /// Index of the first fragment that ends behind the last entry.
    at: usize,
    /// Buffer for the target of a leap.
    target: Vec<u8>,
}

impl<I: InternalIterator> CoveredIter<I> {
    pub fn new(iter: I, seen: SeenRanges) -> CoveredIter<I> {
        CoveredIter { iter, seen, at: 0, target: Vec::new() }
    }

    /// Returns the fragment that hides the current entry, and the sequence number of its newest
    /// visible tombstone.
    #[inline]
    fn hiding(&mut self) -> Option<(&Fragment, SeqNo)> {
        let internal = self.iter.key();
        let user_key = key::user_key(internal);
        let fragments = self.seen.ranges.fragments();
        // Most entries lie in the fragment of the entry before: no search is needed then.
        let ends_behind = |at: usize| fragments.get(at).is_none_or(|f| *user_key < f.end);
        // `at` is right if the fragment before it ends before the key, and its own does not.
        let is_first = self.at == 0 || !ends_behind(self.at - 1);
        if !is_first || !ends_behind(self.at) {
            self.at = self.seen.ranges.first_behind(user_key);
        }
        let fragment = fragments.get(self.at).filter(|fragment| fragment.begin <= *user_key)?;
        let newest = fragment.newest(self.seen.as_of)?;
        (key::seqno(internal) < newest).then_some((fragment, newest))
    }

    /// Passes over hidden entries, forward, until an entry is visible or the end is reached.
    fn skip_forward(&mut self) -> Result<()> {
        let mut skipped = 0;
        while self.iter.valid() {
            let Some((fragment, newest)) = self.hiding() else { break };
            skipped += 1;
            // A leap costs more than a step, so it is tried only now and then.
            if skipped % SEQUENTIAL_SKIP_MAX == 0 {
                let end = fragment.end.clone();
                set_target(&mut self.target, end.bytes());
                if self.iter.leap(&self.target, newest)? {
                    continue;
                }
            }
            self.iter.next()?;
        }
        Ok(())
    }

    /// Passes over hidden entries, backward.
    fn skip_back(&mut self) -> Result<()> {
        let mut skipped = 0;
        while self.iter.valid() {
            let Some((fragment, newest)) = self.hiding() else { break };
            skipped += 1;
            if skipped % SEQUENTIAL_SKIP_MAX == 0 {
                let begin = fragment.begin.clone();
                set_target(&mut self.target, begin.bytes());
                if self.iter.leap_back(&self.target, newest)? {
                    continue;
                }
            }
            self.iter.prev()?;
        }
        Ok(())
    }
}

/// Sets `target` to a place before all entries of `user_key`.
fn set_target(target: &mut Vec<u8>, user_key: &[u8]) {
    target.clear();
    key::append(target, user_key, SeqNo::MAX, sateen_control::ValueKind::MAX);
}

impl<I: InternalIterator> InternalIterator for CoveredIter<I> {
    #[inline]
    fn valid(&self) -> bool {
        self.iter.valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.iter.seek_to_first()?;
        self.skip_forward()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.iter.seek_to_last()?;
        self.skip_back()
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.iter.seek(target)?;
        self.skip_forward()
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.iter.seek_for_prev(target)?;
        self.skip_back()
    }

    fn next(&mut self) -> Result<()> {
        self.iter.next()?;
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        self.iter.prev()?;
        self.skip_back()
    }

    #[inline]
    fn load_value(&mut self) -> Result<()> {
        self.iter.load_value()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.iter.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.iter.value()
    }
}
