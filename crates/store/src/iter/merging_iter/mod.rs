//! Merges any number of sorted children into one sorted stream, in both directions.
//!
//! What must stay true:
//! - every child that stands on an entry is in the heap, and the heap's top is the current entry;
//! - forwards every other child stands at or behind the current entry, backwards at or before it;
//! - entries of equal internal keys (there should be none) come in the order of their children;
//! - a child's error empties the heap: a failing child is never taken for an exhausted one.
//!
//! Most comparisons are of one number: each slot of the heap holds the first eight bytes of its
//! child's user key. Runs of entries from one child, the common case in a tree whose last level
//! holds most of the data, cost one comparison an entry, because the runner-up is remembered.

use std::cmp::Ordering;

use sateen_control::{Comparator, SeqNo};

use crate::base::error::Result;
use crate::base::iterator::InternalIterator;
use crate::base::key::{self, ordered_prefix};
use crate::base::plant::planted;

#[cfg(test)]
mod tests;

/// A child that stands on an entry.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// [`ordered_prefix`] of the entry's user key; stale in a heap of one, where nobody looks.
    prefix: u64,
    /// The child's index.
    child: usize,
}

const FORWARD: bool = false;
const REVERSE: bool = true;

/// The union of its children, sorted.
pub struct MergingIter<I> {
    children: Vec<I>,
    heap: Vec<Slot>,
    /// Which of the heap's slots 1 and 2 comes first; 0 if not known.
    runner_up: usize,
    reverse: bool,
    /// The current key while the other children are turned round.
    turning_key: Vec<u8>,
    comparator: Comparator,
}

impl<I: InternalIterator> MergingIter<I> {
    /// A merge of `children`, newest data first, compared by `comparator`. Not valid until the
    /// first seek.
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

    /// Brings every child into position with `place` and makes the heap of those that have one.
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

    /// Seeks to the first entry child by child: stands `index` on its first one; false behind the
    /// last child, and then the merge stands on its first entry. To be called for 0 and up.
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

    fn build_heap<const REVERSED: bool>(&mut self) {
        self.heap.clear();
        self.runner_up = 0;
        for (index, child) in self.children.iter().enumerate() {
            if child.valid() {
                let prefix = ordered_prefix(&self.comparator, key::user_key(child.key()));
                self.heap.push(Slot { prefix, child: index });
            }
        }
        for index in (0..self.heap.len() / 2).rev() {
            self.sift_down::<REVERSED>(index);
        }
    }

    /// True if the entry of `a` comes before that of `b` in the given direction.
    #[inline]
    fn precedes<const REVERSED: bool>(&self, a: Slot, b: Slot) -> bool {
        if a.prefix != b.prefix {
            return (a.prefix < b.prefix) != REVERSED;
        }
        self.precedes_by_key(a, b) != REVERSED
    }

    /// The rare part of [`Self::precedes`], forwards: the whole keys decide.
    fn precedes_by_key(&self, a: Slot, b: Slot) -> bool {
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
    fn replace_top<const REVERSED: bool>(&mut self, top: Slot) {
        match self.heap.len() {
            0 | 1 => {}
            2 => {
                // Stores only what changes: the next step loads the top again at once.
                let other = self.heap[1];
                if self.precedes::<REVERSED>(top, other) {
                    self.heap[0].prefix = top.prefix;
                } else {
                    self.heap[0] = other;
                    self.heap[1] = top;
                }
            }
            _ => {
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

    /// Takes the top, whose child is exhausted, out of the heap.
    fn remove_top<const REVERSED: bool>(&mut self) {
        self.heap.swap_remove(0);
        self.runner_up = 0;
        if self.heap.len() > 1 {
            // In a heap of one the prefix is not kept; here it always was.
            self.sift_down::<REVERSED>(0);
        }
    }

    /// Moves the current child by one and finds the new current one.
    #[inline]
    fn step<const REVERSED: bool>(&mut self) -> Result<()> {
        let Some(&top) = self.heap.first() else { return Ok(()) };
        let child = &mut self.children[top.child];
        let moved = if REVERSED { child.prev() } else { child.next() };
        if let Err(error) = moved {
            self.heap.clear();
            return if planted("read_error_ends_iterator") { Ok(()) } else { Err(error) };
        }
        if !child.valid() {
            self.remove_top::<REVERSED>();
        } else if self.heap.len() > 1 {
            let prefix = ordered_prefix(&self.comparator, key::user_key(child.key()));
            self.replace_top::<REVERSED>(Slot { prefix, child: top.child });
        }
        Ok(())
    }

    /// Lets every child leap that is on this side of `target`.
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

    /// Moves every child but the current one to the other side of the current entry, so that the
    /// next step goes the other way.
    #[cold]
    fn turn<const REVERSED: bool>(&mut self) -> Result<()> {
        let Some(&Slot { child: current, .. }) = self.heap.first() else { return Ok(()) };
        self.heap.clear();
        self.reverse = REVERSED;
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
            // An equal entry is behind us only if it comes on the far side of the current child.
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
    fn key(&self) -> &[u8] {
        self.children[self.heap[0].child].key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.children[self.heap[0].child].value()
    }
}
