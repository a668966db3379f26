//! A position in a [`SkipList`] that moves in both directions.
//!
//! 1. Forward, the cursor follows the links of level 0 ([`Cursor::move_on`]).
//! 2. Backward, it searches the last entry before its own ([`Cursor::move_back`]). It starts from
//!    the path of its last search, on the lowest level where the path is before the entry.
//!
//! What must stay true: the path's places are at or before the entry, and each was reached on its
//! level.

use std::cmp::Ordering as Order;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::node::{Entry, Node, Place, Target};
use super::{Finger, Position, SkipList};
use crate::base::sync::loom_atomic::Ordering;

/// Owns a list, so that a [`Cursor`] can point into it.
///
/// # Safety
/// `list` returns the same list in every call, and the list stays in its place while the owner
/// lives.
pub unsafe trait Owner {
    /// Returns the list.
    fn list(&self) -> &SkipList;
}

// SAFETY: a memtable's list is one of its fields, which is never replaced. The cursor's pointers
// lead to memory that the list owns, not to the list.
unsafe impl Owner for Arc<crate::memtable::MemTable> {
    #[inline]
    fn list(&self) -> &SkipList {
        &self.list
    }
}

// SAFETY: the content of an `Arc` stays in its place.
#[cfg(loom)]
unsafe impl Owner for loom::sync::Arc<SkipList> {
    fn list(&self) -> &SkipList {
        self
    }
}

/// A position in a list that it keeps alive.
pub struct Cursor<O> {
    /// The entry; `None` if the cursor is invalid.
    node: Option<NonNull<Node>>,
    /// The path of the last search in this list: on each level a place at or before the entry. A
    /// step back starts there instead of at the top.
    path: Finger,
    /// Steps forward since the last search, up to [`SCAN_STEPS`].
    steps: u8,
    owner: O,
}

/// Number of steps forward after which many more are expected.
const SCAN_STEPS: u8 = 4;

// SAFETY: the pointers lead to nodes of the owner's list, which any thread may read.
unsafe impl<O: Send> Send for Cursor<O> {}
// SAFETY: as above.
unsafe impl<O: Sync> Sync for Cursor<O> {}

impl<O: Owner> Cursor<O> {
    /// Returns an invalid cursor.
    pub(in crate::memtable) fn new(owner: O) -> Cursor<O> {
        Cursor { node: None, path: Finger::new(), steps: 0, owner }
    }

    /// Returns the current entry.
    #[inline]
    pub(in crate::memtable) fn entry(&self) -> Option<Entry<'_>> {
        // The owner keeps the list, and with it the node, at least as long as `&self`.
        self.node.map(|node| Entry { node, list: PhantomData })
    }

    /// Moves to the first entry.
    pub(in crate::memtable) fn move_to_first(&mut self) {
        self.steps = 0;
        self.path.list = 0;
        self.node = self.owner.list().first().map(|entry| entry.node);
    }

    /// Moves to the first entry at or after an internal key.
    #[inline]
    pub(in crate::memtable) fn move_to(&mut self, internal: &[u8]) {
        self.steps = 0;
        self.path.list = 0;
        let list = self.owner.list();
        let target = Target::internal(list.comparator(), internal);
        self.node = list.seek(&target).map(|entry| entry.node);
    }

    /// Moves to the next entry. An invalid cursor stays invalid.
    #[inline]
    pub(in crate::memtable) fn move_on(&mut self) {
        self.path.list = 0;
        let list = self.owner.list();
        let Some(entry) = self.entry() else { return };
        let next =
            if self.steps < SCAN_STEPS { list.next(entry) } else { list.next_of_scan(entry) };
        self.node = next.map(|entry| entry.node);
        self.steps = (self.steps + 1).min(SCAN_STEPS);
    }

    /// Moves to the last entry.
    pub(in crate::memtable) fn move_to_last(&mut self) {
        let list = self.owner.list();
        self.path.start(list);
        let mut at = list.head();
        for level in (0..list.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: the head has all levels. Other places are reached on this level or above.
            while let Some(next) = unsafe { list.next_of(at, level) } {
                at = next.place();
            }
            self.path.places[level] = at.link.as_ptr();
        }
        self.node = list.entry_at(at).map(|entry| entry.node);
    }

    /// Moves to the last entry at or before an internal key.
    pub(in crate::memtable) fn move_to_last_by(&mut self, internal: &[u8]) {
        let list = self.owner.list();
        let target = &Target::internal(list.comparator(), internal);
        self.path.start(list);
        let places = &mut self.path.places;
        let (Position { mut at, .. }, _) =
            list.before(target, |level, position| places[level] = position.at.link.as_ptr());
        // SAFETY: every place has level 0.
        while let Some(next) = unsafe { list.next_of(at, 0) } {
            if next.compare(target).0 == Order::Greater {
                break;
            }
            at = next.place();
        }
        self.node = list.entry_at(at).map(|entry| entry.node);
    }

    /// Moves to the previous entry. An invalid cursor stays invalid.
    pub(in crate::memtable) fn move_back(&mut self) {
        let Some(entry) = self.node.map(|node| Entry { node, list: PhantomData }) else { return };
        let list = self.owner.list();
        let target = Target::internal(list.comparator(), entry.key());
        let places = &mut self.path.places;
        // On the levels below this one, the path stands on the entry itself.
        let level = places.iter().position(|place| !ptr::eq(*place, entry.place().link.as_ptr()));
        let start = match level {
            // SAFETY: the path's places belong to the owner's list.
            Some(level) if self.path.list == list.id => unsafe {
                Place::from_raw(places[level]).map(|place| (place, level))
            },
            _ => None,
        };
        let (Position { at, .. }, _) = match start {
            Some((at, level)) => {
                let position = Position { at, code: list.code_at(at, &target) };
                let record = |level: usize, position: Position<'_>| {
                    places[level] = position.at.link.as_ptr()
                };
                // SAFETY: the place is at or before the entry and not the entry itself, so it is
                // before it. It was reached on this level.
                unsafe { list.descend(position, level, &target, record) }
            }
            None => {
                self.path.list = list.id;
                places.fill(list.head().link.as_ptr());
                list.before(&target, |level, position| places[level] = position.at.link.as_ptr())
            }
        };
        self.node = list.entry_at(at).map(|entry| entry.node);
    }
}
