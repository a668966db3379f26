//! A sorted list of entries in arena memory. Many threads insert at once, and any number of threads
//! read meanwhile, without locks.
//!
//! It is a skip list (Pugh 1990) that only grows. Once a node is linked, it stays in its place and
//! only its links change, so readers need no protection from reclamation.
//!
//! Searches hardly ever read keys. Each link carries a [`Code`] in the bits that an address does
//! not need. It is the code of the next node's key relative to the key of the node with the link.
//! It says where they first differ, and how the next key continues there (offset-value coding,
//! Conner 1977). The search keeps the code of its target relative to its current node. The smaller
//! code belongs to the smaller key, and only equal codes read the keys. A step costs one cache
//! miss, and looking at a link costs none.
//!
//! A search (`before`):
//!
//! 1. It starts at the head on the highest level in use, with the target's code relative to zeros.
//! 2. `look` compares the target's code with the link's. A larger code means that the next node is
//!    before the target: step. A smaller code means that it is not: stay. Equal codes compare keys.
//! 3. `descend` steps on a level until it must stay, then goes down one level, until level 0.
//! 4. `seek` returns the node behind that place. `get` compares its user key with the target's.
//!
//! An insert:
//!
//! 1. [`SkipList::insert`] chooses a height ([`random_height`]) and writes the whole node
//!    (`Node::write`).
//! 2. `place_finger` finds the last place before the target on each level. It starts near the
//!    thread's previous insert, if the target is a little behind it (`near`), otherwise at the top.
//! 3. `link` puts the node on each level from 0 up with a compare-and-swap. If another thread was
//!    faster, the search continues from its place.
//!
//! What must stay true:
//!
//! - On every level the nodes ascend, and every level holds a part of the one below.
//! - A link's code is that of the next node relative to the node with the link. Both are in one
//!   atomic word, so no reader sees one without the other.
//! - A node is written completely before it is linked on level 0 (release). A reader reaches it
//!   only over a link (acquire).
//! - With a custom comparator all codes are equal, and keys are always compared.
//!
//! The models: `RUSTFLAGS="--cfg loom" cargo test -p sateen-store --release loom`.

#![expect(unsafe_code, reason = "nodes are laid out by hand in arena memory")]

mod cursor;
mod node;

use std::cmp::Ordering as Order;
use std::marker::PhantomData;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as IdCounter;

use sateen_control::Comparator;

use self::node::{Entry, HEIGHT_MAX, Head, Link, Node, Place, Word};
use super::arena::Arena;
use super::code::Code;
use super::pool::ArenaPool;
use crate::base::sync::loom_atomic::{AtomicUsize, Ordering};
// Not loom's, whose atomics cannot be static. Ids order nothing.

pub(super) use self::cursor::Cursor;
pub(super) use self::node::Target;

/// The next list's id. 0 is no list.
static NEXT_ID: IdCounter = IdCounter::new(1);

/// Number of levels on which an insert looks for its place near the last one before it starts at
/// the top.
const FINGER_LEVELS: usize = 5;

/// A search's position on a level: a place before the target, and the target's code relative to it.
#[derive(Clone, Copy)]
struct Position<'a> {
    at: Place<'a>,
    code: Code,
}

/// What lies behind a position on a level.
enum Ahead<'a> {
    /// A node that is before the target, too.
    Step(Position<'a>),
    /// The link to a node that is not before the target, or to none.
    Stay(Word),
}

/// Where a thread inserted last: on each level the last node that is not behind the inserted one.
/// It belongs to one thread or cursor, and may outlive its list.
pub(super) struct Finger {
    /// The list's unique id. The places are used only for this list.
    list: u64,
    /// The level-0 link of a node on each level.
    places: [*const Link; HEIGHT_MAX],
}

/// The skip list.
pub struct SkipList {
    id: u64,
    /// From `Box::leak`.
    head: NonNull<Head>,
    /// Number of levels in use: a hint where to start. It exceeds the linked levels only by nodes
    /// that are being inserted.
    height: AtomicUsize,
    arena: Arena,
    comparator: Comparator,
    /// In a cache line of its own, because every insert writes it.
    counts: Counts,
}

/// Counts, raised directly before an entry becomes visible.
#[repr(align(128))]
struct Counts {
    entries: AtomicUsize,
}

// SAFETY: nodes are written before they are published and constant afterwards, except for their
// links, which are atomic. The arena is `Send` and `Sync`.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

impl Finger {
    /// Returns a finger for no list.
    pub(super) const fn new() -> Finger {
        Finger { list: 0, places: [ptr::null(); HEIGHT_MAX] }
    }

    /// Puts the finger at the head of `list` on all levels.
    fn start(&mut self, list: &SkipList) {
        self.list = list.id;
        self.places.fill(list.head().link.as_ptr());
    }
}

impl SkipList {
    /// Returns an empty list for about `capacity_bytes`.
    pub(super) fn new(
        capacity_bytes: usize,
        pool: Option<Arc<ArenaPool>>,
        comparator: Comparator,
    ) -> SkipList {
        let head =
            Box::new(Head { higher: std::array::from_fn(|_| Link::new()), link: Link::new() });
        SkipList {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            head: NonNull::from(Box::leak(head)),
            height: AtomicUsize::new(1),
            arena: Arena::new(capacity_bytes, pool),
            comparator,
            counts: Counts { entries: AtomicUsize::new(0) },
        }
    }

    /// Returns the comparator of the user keys.
    pub(super) fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// Returns the search target for an internal key, given in its parts.
    #[inline]
    pub(super) fn target<'k>(&'k self, user_key: &'k [u8], trailer: u64) -> Target<'k> {
        Target::new(&self.comparator, user_key, trailer)
    }

    /// Returns the number of entries, counted directly before they become visible.
    pub(super) fn entries(&self) -> usize {
        self.counts.entries.load(Ordering::Relaxed)
    }

    /// Marks that nothing more will be inserted.
    pub(super) fn seal(&self) {
        self.arena.seal();
    }

    /// Returns every byte that the list holds.
    pub(super) fn reserved_bytes(&self) -> usize {
        self.arena.reserved_bytes() + mem::size_of::<Head>()
    }

    /// Returns the bytes that the list holds, without those not handed out yet.
    pub(super) fn used_bytes(&self) -> usize {
        self.arena.used_bytes() + mem::size_of::<Head>()
    }

    /// Returns the place of the head.
    #[inline]
    fn head(&self) -> Place<'_> {
        // SAFETY: this is the last of the head's links, in the head's memory.
        let link = unsafe { self.head.cast::<Link>().add(HEIGHT_MAX - 1) };
        Place { link, list: PhantomData }
    }

    /// Returns the node behind `at` on `level`.
    ///
    /// # Safety
    /// As for [`Place::link`].
    #[inline]
    unsafe fn next_of<'a>(&'a self, at: Place<'a>, level: usize) -> Option<Entry<'a>> {
        // SAFETY: the caller's promise; links lead to nodes of this list.
        unsafe { Entry::from_word(at.link(level).load()) }
    }

    /// Looks at the link behind `position` on `level`.
    ///
    /// # Safety
    /// The place is before `target` and was reached on `level` or above.
    #[inline(always)]
    unsafe fn look<'a>(
        &'a self,
        position: Position<'a>,
        level: usize,
        target: &Target<'_>,
    ) -> Ahead<'a> {
        // SAFETY: the caller's promise.
        let word = unsafe { position.at.link(level).load() };
        let code = word.code();
        if position.code < code {
            return Ahead::Stay(word);
        }
        // SAFETY: links lead to nodes of this list. The code of a link to none is the largest, so
        // it is not passed.
        let Some(next) = (unsafe { Entry::from_word(word) }) else { return Ahead::Stay(word) };
        if position.code > code {
            let code = target.prefix.code_after_next(position.code, code);
            return Ahead::Step(Position { at: next.place(), code });
        }
        let (order, bit) = next.compare(target);
        if order == Order::Less {
            return Ahead::Step(Position { at: next.place(), code: target.prefix.code(bit) });
        }
        Ahead::Stay(word)
    }

    /// Goes from `position` on `level` to the last place before `target` on level 0, and calls
    /// `record` where it leaves each level. Returns that place and its link.
    ///
    /// # Safety
    /// As for [`SkipList::look`].
    #[inline(always)]
    unsafe fn descend<'a>(
        &'a self,
        mut position: Position<'a>,
        mut level: usize,
        target: &Target<'_>,
        mut record: impl FnMut(usize, Position<'a>),
    ) -> (Position<'a>, Word) {
        loop {
            // SAFETY: the place was reached on this level: from the level above, or by a step on
            // it.
            match unsafe { self.look(position, level, target) } {
                Ahead::Step(next) => position = next,
                Ahead::Stay(word) => {
                    record(level, position);
                    if level == 0 {
                        return (position, word);
                    }
                    level -= 1;
                }
            }
        }
    }

    /// Returns the last place before `target`, and its link.
    #[inline(always)]
    fn before<'a>(
        &'a self,
        target: &Target<'_>,
        record: impl FnMut(usize, Position<'a>),
    ) -> (Position<'a>, Word) {
        let top = self.height.load(Ordering::Relaxed) - 1;
        let start = Position { at: self.head(), code: target.prefix.code_after_zeros() };
        // SAFETY: the head is before everything and has all levels.
        unsafe { self.descend(start, top, target, record) }
    }

    /// Returns the first entry at or after `target`.
    #[inline]
    pub(super) fn seek(&self, target: &Target<'_>) -> Option<Entry<'_>> {
        let (_, word) = self.before(target, |_, _| ());
        // SAFETY: links lead to nodes of this list.
        unsafe { Entry::from_word(word) }
    }

    /// Returns the first entry of `target`'s user key at or after `target`.
    #[inline]
    pub(super) fn get(&self, target: &Target<'_>) -> Option<Entry<'_>> {
        let (position, word) = self.before(target, |_, _| ());
        if position.code != word.code() {
            // The keys differ within the prefix: the common case of a key that is not in the list.
            return None;
        }
        // SAFETY: links lead to nodes of this list.
        unsafe { Entry::from_word(word) }.filter(|entry| entry.user_key() == target.user_key)
    }

    /// Returns the entry at `at`; `None` for the head.
    #[inline]
    fn entry_at<'a>(&'a self, at: Place<'a>) -> Option<Entry<'a>> {
        (at.link != self.head().link).then(|| Entry { node: at.link.cast(), list: PhantomData })
    }

    /// Returns the first entry.
    pub(super) fn first(&self) -> Option<Entry<'_>> {
        // SAFETY: the head has level 0.
        unsafe { self.next_of(self.head(), 0) }
    }

    /// Returns the entry behind `entry`, which must be of this list.
    #[inline]
    pub(super) fn next<'a>(&'a self, entry: Entry<'a>) -> Option<Entry<'a>> {
        // SAFETY: every node has level 0.
        let next = unsafe { self.next_of(entry.place(), 0) }?;
        // SAFETY: every node has level 0.
        if let Some(after) = unsafe { self.next_of(next.place(), 0) } {
            after.prefetch();
        }
        Some(next)
    }

    /// Does what `next` does in the middle of a scan: also prefetches the value of the entry after
    /// that, whose header the last step prefetched.
    #[inline]
    pub(super) fn next_of_scan<'a>(&'a self, entry: Entry<'a>) -> Option<Entry<'a>> {
        // SAFETY: every node has level 0.
        let next = unsafe { self.next_of(entry.place(), 0) }?;
        // SAFETY: every node has level 0.
        if let Some(after) = unsafe { self.next_of(next.place(), 0) } {
            // SAFETY: every node has level 0.
            if let Some(later) = unsafe { self.next_of(after.place(), 0) } {
                later.prefetch();
            }
            after.prefetch_value();
        }
        Some(next)
    }

    /// Inserts an entry. The list must not contain its internal key `target`. `finger` is the
    /// caller's, ideally that of its last insert.
    #[inline]
    pub(super) fn insert(&self, target: &Target<'_>, value: &[u8], finger: &mut Finger) {
        let number = self.counts.entries.fetch_add(1, Ordering::Relaxed);
        let height = random_height(number);
        let node = Node::write(&self.arena, target, value, height);
        let mut codes = [Code::MAX; HEIGHT_MAX];
        let known = self.place_finger(target, finger, &mut codes);
        if height > self.height.load(Ordering::Relaxed) {
            self.height.fetch_max(height, Ordering::Relaxed);
        }
        let places = finger.places.iter_mut().zip(codes).take(height);
        for (level, (place, code)) in places.enumerate() {
            // SAFETY: the finger's places belong to this list, which is alive.
            let Some(at) = (unsafe { Place::from_raw(*place) }) else { return };
            let code = if level < known { code } else { self.code_at(at, target) };
            // SAFETY: `place_finger` left places that are before `target` and were each reached on
            // their level. `node` is `target`'s, has `height` links, and is not on this level yet.
            unsafe { self.link(node, level, Position { at, code }, target) };
            *place = node.as_ptr().cast_const().cast();
        }
    }

    /// Returns the code of `target` relative to `at`, which is before it.
    fn code_at(&self, at: Place<'_>, target: &Target<'_>) -> Code {
        match self.entry_at(at) {
            Some(entry) => target.prefix.code(entry.compare(target).1),
            None => target.prefix.code_after_zeros(),
        }
    }

    /// Moves `finger` to the last places before `target`. Returns the number of levels, from the
    /// lowest, whose codes relative to these places are now in `codes`.
    #[inline]
    fn place_finger(
        &self,
        target: &Target<'_>,
        finger: &mut Finger,
        codes: &mut [Code; HEIGHT_MAX],
    ) -> usize {
        if finger.list == self.id {
            if let Some((near, level)) = self.near(target, finger) {
                // SAFETY: `near` is before `target` and was reached on `level`.
                unsafe {
                    self.descend(near, level, target, |level, position| {
                        finger.places[level] = position.at.link.as_ptr();
                        codes[level] = position.code;
                    })
                };
                return level + 1;
            }
        } else {
            finger.start(self);
        }
        let mut known = 1;
        self.before(target, |level, position| {
            known = known.max(level + 1);
            finger.places[level] = position.at.link.as_ptr();
            codes[level] = position.code;
        });
        known
    }

    /// Returns a position of `finger` from which `target` is near, and its level. Returns `None` if
    /// `target` is before the finger or far behind it.
    #[inline]
    fn near(&self, target: &Target<'_>, finger: &Finger) -> Option<(Position<'_>, usize)> {
        // SAFETY: the finger's places belong to this list, which is alive.
        let mut at = unsafe { Place::from_raw(finger.places[0]) }?;
        let (order, bit) = self.entry_at(at)?.compare(target);
        if order != Order::Less {
            return None;
        }
        let mut code = target.prefix.code(bit);
        for (level, place) in finger.places.iter().take(FINGER_LEVELS).enumerate() {
            // SAFETY: as above.
            let place = unsafe { Place::from_raw(*place) }?;
            if place.link != at.link {
                at = place;
                code = self.code_at(at, target);
            }
            let position = Position { at, code };
            // SAFETY: all places are at or before the last node, and each was reached on its level.
            if let Ahead::Stay(_) = unsafe { self.look(position, level, target) } {
                return Some((position, level));
            }
        }
        None
    }

    /// Links `node` on `level`, somewhere behind `position`.
    ///
    /// # Safety
    /// The place belongs to this list, is before `target` and was reached on `level`. `node` has
    /// the key `target` and a link for `level`. It is linked on all levels below, but not on this
    /// one.
    #[inline]
    unsafe fn link<'a>(
        &'a self,
        node: NonNull<Node>,
        level: usize,
        mut position: Position<'a>,
        target: &Target<'_>,
    ) {
        // SAFETY: the node's own link of this level, which no other thread can have reached.
        let own = unsafe { node.cast::<Link>().sub(level).as_ref() };
        loop {
            // SAFETY: the caller's promise, and steps are made on this level.
            let word = match unsafe { self.look(position, level, target) } {
                Ahead::Stay(word) => word,
                Ahead::Step(next) => {
                    position = next;
                    continue;
                }
            };
            // SAFETY: links lead to nodes of this list.
            let behind = match unsafe { Entry::from_word(word) } {
                // The next node differs from this place earlier than `target` does. So it differs
                // from `target` in the same bit, and its code stays.
                _ if word.code().differs_before(position.code) => word,
                Some(next) => Word::new(next.node, next.code_after(target)),
                None => Word::NONE,
            };
            own.0.store(behind.0, Ordering::Relaxed);
            // SAFETY: a place's link.
            let link = unsafe { position.at.link(level) };
            let ahead = Word::new(node, position.code);
            // Release: publishes the node. Relaxed: after a failure everything is read again.
            if link
                .0
                .compare_exchange(word.0, ahead.0, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }
}

impl Drop for SkipList {
    fn drop(&mut self) {
        // SAFETY: from `Box::leak` in `new`, and no user of the list is left.
        drop(unsafe { Box::from_raw(self.head.as_ptr()) });
    }
}

/// Returns the height of the `number`-th node: random, but the same in every run, so that a
/// memtable's size does not differ between two runs of a simulation.
#[inline]
fn random_height(number: usize) -> usize {
    let mut mixed = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^= mixed >> 32;
    (mixed.trailing_zeros() as usize + 1).min(HEIGHT_MAX)
}
