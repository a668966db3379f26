//! Merges sorted children into one sorted stream, in both directions.
//!
//! 1. A seek moves every child (`place_all`) and builds a heap of those that stand on an entry
//!    (`build_heap`, `sift_down`). The heap's top is the current entry.
//! 2. `next` and `prev` move the top's child (`step`). Then the child goes to its place in the heap
//!    (`replace_top`), or leaves it if it has ended (`remove_top`).
//! 3. `replace_top` remembers which of the top's two children in the heap comes first. While one
//!    child has the next entry again and again, a step costs one comparison.
//! 4. A change of direction moves every other child to the other side of the current entry
//!    (`turn`).
//! 5. `leap` lets each child before the target pass over entries that are too old (`leap_all`).
//!
//! Most comparisons compare one number: each heap slot has the first eight bytes of its child's
//! user key (`precedes`). Only equal numbers compare keys (`precedes_by_key`).
//!
//! What must stay true:
//!
//! - Every child that stands on an entry is in the heap, and the heap's top is the current entry.
//! - Forward, every other child stands at or behind the current entry; backward, at or before it.
//! - Entries with equal internal keys, of which there should be none, come in the order of their
//!   children.
//! - An error of a child empties the heap, so that a failing child is never taken for one that has
//!   ended.

use std::cmp::Ordering;

use sateen_control::{Comparator, SeqNo};

use crate::base::error::Result;
use crate::base::iterator::InternalIterator;
use crate::base::key::{self, ordered_prefix};

#[cfg(test)]
mod tests;

/// A child that stands on an entry.
#[derive(Clone, Copy, Debug)]
struct HeapSlot {
    /// [`ordered_prefix`] of the entry's user key. In a heap of one it is stale, and not used.
    prefix: u64,
    /// Index of the child.
    child: usize,
}

const FORWARD: bool = false;
const REVERSE: bool = true;

/// The sorted union of its children.
pub struct MergingIter<I> {
    /// The inputs, newest data first.
    children: Vec<I>,
    /// A binary heap of the children that stand on an entry, smallest first (largest first in
    /// reverse).
    heap: Vec<HeapSlot>,
    /// Which of slots 1 and 2 of the heap comes first; 0 if not known.
    runner_up: usize,
    /// Whether the children are placed for moving backward.
    reverse: bool,
    /// The current key while the other children change direction.
    turning_key: Vec<u8>,
    comparator: Comparator,
}

impl<I: InternalIterator> MergingIter<I> {
    /// Returns a merge of `children`, newest data first, in the order of `comparator`. It is
    /// invalid until the first seek.
    pub fn new(children: Vec<I>, comparator: &Comparator) -> MergingIter<I> {
        MergingIter {
            heap: Vec::with_capacity(children.len()),
            children,
            runner_up: 0,
            reverse: false,
            turning_key: Vec::new(),
            comparator: comparator.clone(),
        }
    }

    /// Moves every child with `place`, and builds the heap of those that stand on an entry.
    fn place_all<const REVERSED: bool>(
        &mut self,
        mut place: impl FnMut(&mut I) -> Result<()>,
    ) -> Result<()> {
        self.heap.clear();
        self.reverse = REVERSED;
        for child in &mut self.children {
            place(child)?;
        }
        self.build_heap::<REVERSED>();
        Ok(())
    }

    /// Seeks to the first entry one child at a time; to be called with 0, 1, 2 and so on. Moves
    /// child `index` to its first entry and returns true. Behind the last child it returns false,
    /// and the merge stands on its first entry.
    pub fn open_child(&mut self, index: usize) -> Result<bool> {
        self.heap.clear();
        self.reverse = FORWARD;
        if let Some(child) = self.children.get_mut(index) {
            child.seek_to_first()?;
            return Ok(true);
        }
        self.build_heap::<FORWARD>();
        Ok(false)
    }

    /// Builds the heap of the children that stand on an entry.
    fn build_heap<const REVERSED: bool>(&mut self) {
        self.heap.clear();
        self.runner_up = 0;
        for (index, child) in self.children.iter().enumerate() {
            if child.valid() {
                let prefix = ordered_prefix(&self.comparator, key::user_key(child.key()));
                self.heap.push(HeapSlot { prefix, child: index });
            }
        }
        // From the last parent up: the slots below are heaps already.
        for index in (0..self.heap.len() / 2).rev() {
            self.sift_down::<REVERSED>(index);
        }
    }

    /// Returns true if the entry of `a` comes before that of `b` in the given direction.
    #[inline]
    fn precedes<const REVERSED: bool>(&self, a: HeapSlot, b: HeapSlot) -> bool {
        if a.prefix != b.prefix {
            return (a.prefix < b.prefix) != REVERSED;
        }
        self.precedes_by_key(a, b) != REVERSED
    }

    /// Compares whole keys, forward: the rare case of [`Self::precedes`].
    fn precedes_by_key(&self, a: HeapSlot, b: HeapSlot) -> bool {
        match key::compare(
            &self.comparator,
            self.children[a.child].key(),
            self.children[b.child].key(),
        ) {
            Ordering::Less => true,
            Ordering::Equal => a.child < b.child,
            Ordering::Greater => false,
        }
    }

    /// Restores the heap below `start`, the only slot that may be out of place.
    fn sift_down<const REVERSED: bool>(&mut self, start: usize) {
        // The slots on the way move up one by one; `moving` is stored once, at the end.
        let moving = self.heap[start];
        let mut hole = start;
        loop {
            let left = 2 * hole + 1;
            let Some(&first) = self.heap.get(left) else { break };
            let (best, slot) = match self.heap.get(left + 1) {
                Some(&second) if self.precedes::<REVERSED>(second, first) => (left + 1, second),
                _ => (left, first),
            };
            if self.precedes::<REVERSED>(moving, slot) {
                break;
            }
            self.heap[hole] = slot;
            hole = best;
        }
        self.heap[hole] = moving;
    }

    /// Puts the top, whose child has moved, in its place.
    #[inline]
    fn replace_top<const REVERSED: bool>(&mut self, top: HeapSlot) {
        match self.heap.len() {
            0 | 1 => {}
            2 => {
                // Stores only what changes, because the next step loads the top again at once.
                let other = self.heap[1];
                if self.precedes::<REVERSED>(top, other) {
                    self.heap[0].prefix = top.prefix;
                } else {
                    self.heap[0] = other;
                    self.heap[1] = top;
                }
            }
            _ => {
                // With more slots, the top competes only with the better of slots 1 and 2. Which
                // one that is stays valid until the top changes places.
                self.heap[0].prefix = top.prefix;
                if self.runner_up == 0 {
                    let second_first = self.precedes::<REVERSED>(self.heap[2], self.heap[1]);
                    self.runner_up = 1 + usize::from(second_first);
                }
                let runner_up = self.heap[self.runner_up];
                if self.precedes::<REVERSED>(top, runner_up) {
                    return;
                }
                self.heap[0] = runner_up;
                self.heap[self.runner_up] = top;
                self.sift_down::<REVERSED>(self.runner_up);
                self.runner_up = 0;
            }
        }
    }

    /// Removes the top, whose child has ended, from the heap.
    fn remove_top<const REVERSED: bool>(&mut self) {
        self.heap.swap_remove(0);
        self.runner_up = 0;
        if self.heap.len() > 1 {
            // Only a heap of one has a stale prefix, and this heap had more slots.
            self.sift_down::<REVERSED>(0);
        }
    }

    /// Moves the current child by one entry, and finds the new current entry.
    #[inline]
    fn step<const REVERSED: bool>(&mut self) -> Result<()> {
        let Some(&top) = self.heap.first() else { return Ok(()) };
        let child = &mut self.children[top.child];
        // An error leaves no current entry: a failing child must not look as if it had ended.
        let moved = if REVERSED { child.prev() } else { child.next() };
        if let Err(error) = moved {
            self.heap.clear();
            return Err(error);
        }
        if !child.valid() {
            self.remove_top::<REVERSED>();
        } else if self.heap.len() > 1 {
            let prefix = ordered_prefix(&self.comparator, key::user_key(child.key()));
            self.replace_top::<REVERSED>(HeapSlot { prefix, child: top.child });
        }
        Ok(())
    }

    /// Lets every child on the near side of `target` leap.
    fn leap_all<const REVERSED: bool>(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        let near = if REVERSED { Ordering::Greater } else { Ordering::Less };
        let mut leapt = false;
        for at in 0..self.heap.len() {
            let child = &mut self.children[self.heap[at].child];
            if key::compare(&self.comparator, child.key(), target) != near {
                continue;
            }
            let moved = if REVERSED {
                child.leap_back(target, newer_than)
            } else {
                child.leap(target, newer_than)
            };
            leapt |= moved.inspect_err(|_| self.heap.clear())?;
        }
        if leapt {
            self.build_heap::<REVERSED>();
        }
        Ok(leapt)
    }

    /// Moves every child except the current one to the other side of the current entry, so that the
    /// next step goes in the other direction.
    #[cold]
    fn turn<const REVERSED: bool>(&mut self) -> Result<()> {
        let Some(&HeapSlot { child: current, .. }) = self.heap.first() else { return Ok(()) };
        self.heap.clear();
        self.reverse = REVERSED;
        // The current child stays in its place; its key is the target for all others.
        self.turning_key.clear();
        self.turning_key.extend_from_slice(self.children[current].key());
        let target = &self.turning_key;
        for (index, child) in self.children.iter_mut().enumerate() {
            if index == current {
                continue;
            }
            if REVERSED {
                child.seek_for_prev(target)?;
            } else {
                child.seek(target)?;
            }
            // An equal entry has been passed only if its child comes on the far side of the current
            // child.
            let passed = if REVERSED { index > current } else { index < current };
            if passed && child.valid() && child.key() == target.as_slice() {
                if REVERSED {
                    child.prev()?;
                } else {
                    child.next()?;
                }
            }
        }
        self.build_heap::<REVERSED>();
        Ok(())
    }
}

impl<I: InternalIterator> InternalIterator for MergingIter<I> {
    #[inline]
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.place_all::<FORWARD>(I::seek_to_first)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.place_all::<REVERSE>(I::seek_to_last)
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.place_all::<FORWARD>(|child| child.seek(target))
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.place_all::<REVERSE>(|child| child.seek_for_prev(target))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.reverse {
            self.turn::<FORWARD>()?;
        }
        self.step::<FORWARD>()
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if !self.reverse {
            self.turn::<REVERSE>()?;
        }
        self.step::<REVERSE>()
    }

    fn leap(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        if self.reverse { Ok(false) } else { self.leap_all::<FORWARD>(target, newer_than) }
    }

    fn leap_back(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        if self.reverse { self.leap_all::<REVERSE>(target, newer_than) } else { Ok(false) }
    }

    #[inline]
    fn load_value(&mut self) -> Result<()> {
        match self.heap.first() {
            Some(top) => self.children[top.child].load_value(),
            None => Ok(()),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.children[self.heap[0].child].key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.children[self.heap[0].child].value()
    }
}
