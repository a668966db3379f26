//! Merges the entries of many tables, and decides which of them a repaired database needs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sateen_control::{Comparator, SeqNo, UserKey};
use sateen_store::base::error::Error;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::table::TableIter;

use super::tables::step_to_readable;
use crate::entry::Visible;

/// User key, sequence number (newest first) and index of a source.
type Place = Reverse<(UserKey, Reverse<SeqNo>, usize)>;

/// The tables of a merge, those of younger files first.
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

    /// Adds a table, which stands on its first readable entry.
    pub(super) fn add(&mut self, iter: TableIter) {
        self.iters.push(iter);
        self.place(self.iters.len() - 1);
    }

    /// Puts the entry under the cursor of a source into the heap.
    fn place(&mut self, source: usize) {
        let iter = &self.iters[source];
        if iter.valid() {
            let key = self.comparator.key(key::user_key(iter.key()));
            let seqno = key::seqno(iter.key());
            self.heap.push(Reverse((key, Reverse(seqno), source)));
        }
    }

    /// Returns the newest entry of the smallest key: its source, internal key and value.
    pub(super) fn newest(&self) -> Option<(usize, &[u8], &[u8])> {
        let Reverse((_, _, source)) = self.heap.peek()?;
        let iter = self.iters.get(*source)?;
        Some((*source, iter.key(), iter.value()))
    }

    /// Moves a source to its next entry. If that fails, moves it behind the damage and returns the
    /// error and the entry there, if there is one.
    pub(super) fn advance(&mut self, source: usize) -> Option<(Error, Option<Vec<u8>>)> {
        self.heap.pop();
        let iter = &mut self.iters[source];
        let error = iter.next().err();
        if error.is_some() {
            // The entries behind the damage are still good.
            step_to_readable(iter);
        }
        let behind = iter.valid().then(|| iter.key().to_vec());
        self.place(source);
        error.map(|error| (error, behind))
    }
}

/// Selects the entries that make up the current value of a key. Each key's entries come newest
/// first.
#[derive(Default)]
pub(super) struct Newest {
    key: Option<Vec<u8>>,
    /// Only entries of the key with smaller sequence numbers are needed.
    below: u64,
}

impl Newest {
    /// Returns true if the entry is needed: the newest value, or an operand above it. Entries under
    /// a range tombstone are not needed.
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
