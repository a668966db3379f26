//! The entries of many tables in one order, and which of them a repaired database needs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sateen_control::{Comparator, SeqNo, UserKey};
use sateen_store::base::error::Error;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::table::TableIter;

use super::tables::step_to_readable;
use crate::entry::Visible;

/// A user key, its seqno, the newest first, and the source.
type Place = Reverse<(UserKey, Reverse<SeqNo>, usize)>;

/// Tables being merged, those of younger files first.
pub(super) struct Sources {
    comparator: Comparator,
    heap: BinaryHeap<Place>,
    iters: Vec<TableIter>,
}

impl Sources {
    pub(super) fn new(comparator: &Comparator) -> Sources {
        let comparator = comparator.clone();
        Sources { comparator, heap: BinaryHeap::new(), iters: Vec::new() }
    }

    pub(super) fn add(&mut self, iter: TableIter) {
        self.iters.push(iter);
        self.place(self.iters.len() - 1);
    }

    fn place(&mut self, source: usize) {
        let iter = &self.iters[source];
        if iter.valid() {
            let key = self.comparator.key(key::user_key(iter.key()));
            let seqno = key::seqno(iter.key());
            self.heap.push(Reverse((key, Reverse(seqno), source)));
        }
    }

    /// The smallest key's newest entry: whose it is, its internal key and its value.
    pub(super) fn newest(&self) -> Option<(usize, &[u8], &[u8])> {
        let Reverse((_, _, source)) = self.heap.peek()?;
        let iter = self.iters.get(*source)?;
        Some((*source, iter.key(), iter.value()))
    }

    /// Moves on; of a source that fails, behind the damage. Then what failed, and the entry behind
    /// it, if there is one.
    pub(super) fn advance(&mut self, source: usize) -> Option<(Error, Option<Vec<u8>>)> {
        self.heap.pop();
        let iter = &mut self.iters[source];
        let error = iter.next().err();
        if error.is_some() {
            // What is behind the damage is still good.
            step_to_readable(iter);
        }
        let behind = iter.valid().then(|| iter.key().to_vec());
        self.place(source);
        error.map(|error| (error, behind))
    }
}

/// Tells entries, of each key the newest first, that say what the key is from those that say what
/// it was.
#[derive(Default)]
pub(super) struct Newest {
    key: Option<Vec<u8>>,
    /// Of the key only entries with smaller numbers are of use.
    below: u64,
}

impl Newest {
    /// Whether the entry is to be kept: the newest value, and operands above it; none that a range
    /// tombstone deletes.
    pub(super) fn keeps(&mut self, internal: &[u8], deleted_below: Option<SeqNo>) -> bool {
        let user_key = key::user_key(internal);
        if self.key.as_deref() != Some(user_key) {
            self.key = Some(user_key.to_vec());
            self.below = u64::MAX;
        }
        let SeqNo(seqno) = key::seqno(internal);
        if seqno >= self.below {
            return false;
        }
        if deleted_below.is_some_and(|tombstone| seqno < tombstone.0) {
            self.below = 0;
            return false;
        }
        let says = Visible::of(key::kind(internal));
        self.below = if let Ok(Visible::Operand) = says { seqno } else { 0 };
        matches!(says, Ok(Visible::Value | Visible::Operand))
    }
}
