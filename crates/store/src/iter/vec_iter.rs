//! For tests: an iterator over entries in memory that fails on request.
//!
//! What must stay true: it orders and moves as every [`InternalIterator`] does.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use sateen_control::{Comparator, SeqNo, ValueKind};

use crate::base::error::{Error, Result};
use crate::base::iterator::InternalIterator;
use crate::base::key;

/// Sorted internal entries.
pub type Entries = Arc<Vec<(Vec<u8>, Vec<u8>)>>;

/// The number of moves that succeed before one fails; `None` never fails. The iterators of a test
/// share it, so that the n-th move can be any child's.
#[derive(Clone, Debug, Default)]
pub struct Fault(Rc<Cell<Option<u32>>>);

impl Fault {
    /// Lets the next `moves` moves succeed, and the one after them fail.
    pub fn after(&self, moves: u32) {
        self.0.set(Some(moves));
    }

    /// Returns true if a failure is still to come.
    pub fn is_armed(&self) -> bool {
        self.0.get().is_some()
    }

    /// Counts one move, and returns the error if this move must fail.
    pub fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(0) => {
                self.0.set(None);
                Err(Error::io("read", Path::new("test"), io::ErrorKind::Other.into()))
            }
            Some(left) => {
                self.0.set(Some(left - 1));
                Ok(())
            }
        }
    }
}

/// Returns the internal key of (`user_key`, `seqno`, `kind`).
pub fn internal(user_key: &[u8], seqno: u64, kind: ValueKind) -> Vec<u8> {
    let mut out = Vec::new();
    key::append(&mut out, user_key, SeqNo(seqno), kind);
    out
}

/// A cursor over [`Entries`].
#[derive(Clone, Debug)]
pub struct VecIter {
    entries: Entries,
    position: Option<usize>,
    fault: Fault,
}

impl VecIter {
    pub fn new(entries: Entries) -> VecIter {
        VecIter::with_fault(entries, Fault::default())
    }

    pub fn with_fault(entries: Entries, fault: Fault) -> VecIter {
        assert!(
            entries.is_sorted_by(|a, b| key::compare(&Comparator::BYTEWISE, &a.0, &b.0).is_lt()),
            "the entries of a child are strictly ascending"
        );
        VecIter { entries, position: None, fault }
    }

    fn place(&mut self, position: Option<usize>) -> Result<()> {
        self.position = None;
        self.fault.check()?;
        self.position = position.filter(|&position| position < self.entries.len());
        Ok(())
    }
}

impl InternalIterator for VecIter {
    #[inline]
    fn valid(&self) -> bool {
        self.position.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.place(Some(0))
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.place(self.entries.len().checked_sub(1))
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.place(Some(
            self.entries
                .partition_point(|e| key::compare(&Comparator::BYTEWISE, &e.0, target).is_lt()),
        ))
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        let after = self
            .entries
            .partition_point(|e| key::compare(&Comparator::BYTEWISE, &e.0, target).is_le());
        self.place(after.checked_sub(1))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let position = self.position.expect("next needs a valid cursor");
        self.place(Some(position + 1))
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let position = self.position.expect("prev needs a valid cursor");
        self.place(position.checked_sub(1))
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.entries[self.position.expect("key needs a valid cursor")].0
    }

    #[inline]
    fn value(&self) -> &[u8] {
        &self.entries[self.position.expect("value needs a valid cursor")].1
    }
}
