//! Hides the entries that are newer than a sequence number. It lets entries of a transaction, whose
//! sequence numbers are above all stored ones, be merged above what a snapshot sees.
//!
//! After `SEQUENTIAL_SKIP_MAX` hidden entries in a row, a seek goes past those of the key.

use sateen_control::{SeqNo, ValueKind};

use crate::base::error::Result;
use crate::base::iterator::InternalIterator;
use crate::base::key;

/// Number of hidden entries that are stepped over before a seek is tried.
const SEQUENTIAL_SKIP_MAX: u32 = 8;

/// The entries of `iter` up to a sequence number.
pub struct AsOfIter<I> {
    iter: I,
    as_of: SeqNo,
    /// Buffer for the target of a seek.
    target: Vec<u8>,
}

impl<I: InternalIterator> AsOfIter<I> {
    pub fn new(iter: I, as_of: SeqNo) -> AsOfIter<I> {
        AsOfIter { iter, as_of, target: Vec::new() }
    }

    /// Returns true if the cursor stands on a hidden entry.
    #[inline]
    fn is_hidden(&self) -> bool {
        self.iter.valid() && key::seqno(self.iter.key()) > self.as_of
    }

    /// Sets the target to the place of the current user key at `seqno`.
    fn set_target(&mut self, seqno: SeqNo) {
        self.target.clear();
        key::append(&mut self.target, key::user_key(self.iter.key()), seqno, ValueKind::MAX);
    }

    fn skip_forward(&mut self) -> Result<()> {
        let mut skipped = 0;
        while self.is_hidden() {
            skipped += 1;
            if skipped % SEQUENTIAL_SKIP_MAX == 0 {
                self.set_target(self.as_of);
                self.iter.seek(&self.target)?;
            } else {
                self.iter.next()?;
            }
        }
        Ok(())
    }

    fn skip_back(&mut self) -> Result<()> {
        let mut skipped = 0;
        while self.is_hidden() {
            skipped += 1;
            if skipped % SEQUENTIAL_SKIP_MAX == 0 {
                // Hidden entries are the first ones of their key.
                self.set_target(SeqNo::MAX);
                self.iter.seek_for_prev(&self.target)?;
            } else {
                self.iter.prev()?;
            }
        }
        Ok(())
    }
}

impl<I: InternalIterator> InternalIterator for AsOfIter<I> {
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
    fn leap(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        let leapt = self.iter.leap(target, newer_than)?;
        self.skip_forward()?;
        Ok(leapt)
    }
    fn leap_back(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        let leapt = self.iter.leap_back(target, newer_than)?;
        self.skip_back()?;
        Ok(leapt)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iter::vec_iter::VecIter;

    fn entries(iter: &mut AsOfIter<VecIter>, backwards: bool) -> Vec<(Vec<u8>, u64)> {
        let mut shown = Vec::new();
        if backwards {
            iter.seek_to_last().unwrap()
        } else {
            iter.seek_to_first().unwrap()
        }
        while iter.valid() {
            shown.push((key::user_key(iter.key()).to_vec(), key::seqno(iter.key()).0));
            if backwards { iter.prev().unwrap() } else { iter.next().unwrap() }
        }
        shown
    }

    #[test]
    fn newer_entries_are_hidden_in_both_directions() {
        // Key "a" has newer entries only, "b" many of both, "c" older ones only.
        let mut all = Vec::new();
        for (user_key, seqnos) in [(b"a", 21..40_u64), (b"b", 1..60), (b"c", 3..5)] {
            for seqno in seqnos.rev() {
                let mut internal = Vec::new();
                key::append(&mut internal, user_key, SeqNo(seqno), ValueKind::Put);
                all.push((internal, Vec::new()));
            }
        }
        let mut iter = AsOfIter::new(VecIter::new(std::sync::Arc::new(all)), SeqNo(20));
        let forward = entries(&mut iter, false);
        let expected: Vec<_> = (1..=20)
            .rev()
            .map(|seqno| (b"b".to_vec(), seqno))
            .chain([(b"c".to_vec(), 4), (b"c".to_vec(), 3)])
            .collect();
        assert_eq!(forward, expected);
        let mut backward = entries(&mut iter, true);
        backward.reverse();
        assert_eq!(backward, expected);
        iter.seek(&key::seek_key(b"a", SeqNo::MAX)).unwrap();
        assert_eq!((key::user_key(iter.key()), key::seqno(iter.key())), (&b"b"[..], SeqNo(20)));
        iter.seek_for_prev(&key::seek_key(b"b", SeqNo(30))).unwrap();
        assert!(!iter.valid());
    }
}
