//! A sorted list of entries in arena memory into which many threads insert at once, and which any
//! number read meanwhile, without locks.
//!
//! It is a skip list (Pugh 1990) that only grows: a node, once linked, stays where it is and is not
//! changed but for its links, so readers need no protection from reclamation. Each link carries,
//! beside the address of the next node, a *bound*: a number not above the [`rank`] of that node,
//! which is its key's first bytes. A search whose key ranks below the bound goes down a level without
//! having touched the next node, and so misses the cache only for nodes that it steps on.
//!
//! What must stay true:
//! - On every level the nodes are in ascending order, and every level holds a part of the one below.
//! - A link's bound is never above the rank of the node that it leads to. An inserter lowers the
//!   bound before it swings the address, and the nodes behind a link only become smaller, so the
//!   bound only falls. A bound that is too low costs time, never an answer.
//! - All of a node is written before it is linked on level 0 (release), and is read only by those who
//!   came over a link (acquire).
//!
//! The models: `RUSTFLAGS="--cfg loom" cargo test -p sateen --release loom`.

#![expect(unsafe_code, reason = "nodes are laid out by hand in arena memory")]

use std::cmp::Ordering as Order;
use std::marker::PhantomData;
use std::mem;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use super::arena::{Arena, ArenaPool, Space};
use crate::key::TRAILER_BYTES;
use crate::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Levels of the list. A node reaches the next one with probability 1/2: with bounds in the links,
/// steps cost more than levels.
#[cfg(not(loom))]
pub(super) const HEIGHT_MAX: usize = 20;
#[cfg(loom)]
pub(super) const HEIGHT_MAX: usize = 2;

/// Values up to this size lie behind their key, larger ones apart from the nodes.
const VALUE_INSIDE_MAX: usize = 16;

/// The levels on which an insert looks for its place near the last one before it starts at the top.
const FINGER_LEVELS: usize = 5;

/// One level's pointer to the next node.
#[repr(C)]
struct Link {
    next: AtomicPtr<Node>,
    bound: AtomicU64,
}

impl Link {
    fn new(next: *mut Node, bound: u64) -> Link {
        Link { next: AtomicPtr::new(next), bound: AtomicU64::new(bound) }
    }
}

/// An entry. In memory, in this order: the links of its higher levels, the highest first; this
/// struct; the user key and its trailer; the value, or the address of the value.
#[repr(C)]
struct Node {
    link: Link,
    user_key_len: u32,
    value_len: u32,
    /// Makes the models fail if the bytes could be read before they are written.
    #[cfg(loom)]
    bytes: loom::cell::UnsafeCell<()>,
}

/// The links at which every search starts, laid out like a node without an entry.
#[repr(C)]
struct Head {
    higher: [Link; HEIGHT_MAX - 1],
    link: Link,
}

/// A place in a list: its head, or a node that was reached over a link. `'a` is the list's life.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Has the provenance of the whole head, or of the node's arena chunk.
    link: NonNull<Link>,
    list: PhantomData<&'a SkipList>,
}

/// An entry of a list that lives for `'a`.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    node: NonNull<Node>,
    list: PhantomData<&'a SkipList>,
}

/// What is searched for: an internal key whose parts need not lie together, and its rank.
#[derive(Clone, Copy)]
pub(super) struct Target<'k> {
    user_key: &'k [u8],
    trailer: u64,
    rank: u64,
}

/// Where an inserter last was in which list: the last node on each level that is not behind the
/// node that it inserted. Belongs to one thread (or to one iterator); survives its list.
pub(super) struct Finger {
    /// The list's `id`, which no other list has had; the places are used for this one only.
    list: u64,
    places: [*const Link; HEIGHT_MAX],
}

/// The list.
pub(super) struct SkipList {
    id: u64,
    /// From `Box::into_raw`.
    head: NonNull<Head>,
    /// Levels in use: a hint where to start, never too high by more than what is being inserted.
    height: AtomicUsize,
    entries: AtomicUsize,
    arena: Arena,
}

// SAFETY: nodes are written before they are published and constant afterwards, but for their links,
// which are atomic. The arena is `Send` and `Sync`.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

/// The first eight bytes of a key as a number: keys of lower rank are smaller.
#[inline]
fn rank(user_key: &[u8]) -> u64 {
    match user_key.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..user_key.len()].copy_from_slice(user_key);
            u64::from_be_bytes(first)
        }
    }
}

/// Compares as bytes. Keys are short: eight bytes at a time beats a call.
#[inline]
fn compare_bytes(a: &[u8], b: &[u8]) -> Order {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    for (x, y) in a_words.iter().zip(b_words) {
        if x != y {
            return u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y));
        }
    }
    if a_words.len() == b_words.len() {
        return a_rest.cmp(b_rest);
    }
    let common = a_words.len().min(b_words.len()) * 8;
    a[common..].cmp(&b[common..])
}

impl<'k> Target<'k> {
    #[inline]
    pub(super) fn new(user_key: &'k [u8], trailer: u64) -> Target<'k> {
        Target { user_key, trailer, rank: rank(user_key) }
    }

    /// Of an internal key.
    #[inline]
    pub(super) fn internal(key: &'k [u8]) -> Target<'k> {
        Target::new(crate::key::user_key(key), crate::key::trailer(key))
    }
}

impl<'a> Place<'a> {
    /// # Safety
    /// `link` is the level-0 link of a head or node that lives for `'a`, and the place is one that
    /// was reached on `level` at least once if it will be asked for that level's link.
    #[inline]
    unsafe fn from_raw(link: *const Link) -> Option<Place<'a>> {
        NonNull::new(link.cast_mut()).map(|link| Place { link, list: PhantomData })
    }

    /// # Safety
    /// The place was reached on `level` or above (the head: any level below [`HEIGHT_MAX`]).
    #[inline]
    unsafe fn link(self, level: usize) -> &'a Link {
        // SAFETY: a node that is reached on `level` has links up to it, which lie before the one of
        // level 0, within the provenance that `self.link` has.
        unsafe { self.link.sub(level).as_ref() }
    }

}

impl<'a> Entry<'a> {
    /// # Safety
    /// `node` is null or was read from a link (acquire) of a list that lives for `'a`.
    #[inline]
    unsafe fn from_raw(node: *mut Node) -> Option<Entry<'a>> {
        NonNull::new(node).map(|node| Entry { node, list: PhantomData })
    }

    #[inline]
    fn place(self) -> Place<'a> {
        Place { link: self.node.cast(), list: PhantomData }
    }

    #[inline]
    fn header(self) -> &'a Node {
        // SAFETY: an entry's node is initialised and lives for `'a`.
        let node = unsafe { self.node.as_ref() };
        #[cfg(loom)]
        node.bytes.with(|_| ());
        node
    }

    /// The bytes behind the header.
    #[inline]
    fn bytes(self) -> *const u8 {
        // SAFETY: the key is there, in the same piece of memory.
        unsafe { self.node.as_ptr().cast::<u8>().add(mem::size_of::<Node>()) }
    }

    #[inline]
    fn user_key(self) -> &'a [u8] {
        let len = self.header().user_key_len as usize;
        // SAFETY: `insert` wrote as many bytes there before it published the node.
        unsafe { slice::from_raw_parts(self.bytes(), len) }
    }

    /// The internal key.
    #[inline]
    pub(super) fn key(self) -> &'a [u8] {
        let len = self.header().user_key_len as usize + TRAILER_BYTES;
        // SAFETY: as for `user_key`; the trailer is behind it.
        unsafe { slice::from_raw_parts(self.bytes(), len) }
    }

    #[inline]
    pub(super) fn trailer(self) -> u64 {
        let at = self.header().user_key_len as usize;
        // SAFETY: the trailer's eight bytes are behind the user key.
        u64::from_le_bytes(unsafe { self.bytes().add(at).cast::<[u8; 8]>().read() })
    }

    /// The value.
    #[inline]
    pub(super) fn value(self) -> &'a [u8] {
        let header = self.header();
        let len = header.value_len as usize;
        // SAFETY: `insert` wrote the value, or its address, behind the trailer; a value apart lies
        // in the same arena.
        unsafe {
            let behind = self.bytes().add(header.user_key_len as usize + TRAILER_BYTES);
            let start =
                if len <= VALUE_INSIDE_MAX { behind } else { behind.cast::<*const u8>().read_unaligned() };
            slice::from_raw_parts(start, len)
        }
    }

    #[inline]
    fn compare(self, target: &Target<'_>) -> Order {
        match compare_bytes(self.user_key(), target.user_key) {
            Order::Equal => target.trailer.cmp(&self.trailer()),
            unequal => unequal,
        }
    }

    #[inline]
    pub(super) fn user_key_is(self, user_key: &[u8]) -> bool {
        self.user_key() == user_key
    }

    /// Asks for the memory that a reader of this entry will touch first.
    #[inline]
    fn prefetch(self) {
        prefetch(self.node.as_ptr().cast());
    }
}

/// Asks for the cache line at `address`, of which nothing need be true.
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint; it faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

impl Finger {
    /// A finger that is nowhere.
    pub(super) const fn new() -> Finger {
        Finger { list: 0, places: [ptr::null(); HEIGHT_MAX] }
    }

    /// Puts it at the head of `list` on all levels.
    fn start(&mut self, list: &SkipList) {
        self.list = list.id;
        self.places.fill(list.head().link.as_ptr());
    }
}

impl SkipList {
    /// An empty list; `id` is not 0 and was never given to another one.
    pub(super) fn new(id: u64, capacity_bytes: usize, pool: Option<Arc<ArenaPool>>) -> SkipList {
        let empty = || Link::new(ptr::null_mut(), u64::MAX);
        let head = Box::new(Head { higher: std::array::from_fn(|_| empty()), link: empty() });
        SkipList {
            id,
            head: NonNull::from(Box::leak(head)),
            height: AtomicUsize::new(1),
            entries: AtomicUsize::new(0),
            arena: Arena::new(capacity_bytes, pool),
        }
    }

    /// Entries, counted just before they can be seen.
    pub(super) fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Every byte that the list holds.
    pub(super) fn reserved_bytes(&self) -> usize {
        self.arena.reserved_bytes() + mem::size_of::<Head>()
    }

    #[inline]
    fn head(&self) -> Place<'_> {
        // SAFETY: the last of the head's links, in the head's memory.
        let link = unsafe { self.head.cast::<Link>().add(HEIGHT_MAX - 1) };
        Place { link, list: PhantomData }
    }

    /// The node behind `at` on `level`.
    ///
    /// # Safety
    /// As for [`Place::link`].
    #[inline]
    unsafe fn next_of<'a>(&'a self, at: Place<'a>, level: usize) -> Option<Entry<'a>> {
        // SAFETY: the caller's promise; links lead to nodes of this list.
        unsafe { Entry::from_raw(at.link(level).next.load(Ordering::Acquire)) }
    }

    /// The next place on `level` if it is before `target`.
    ///
    /// # Safety
    /// As for [`Place::link`].
    #[inline]
    unsafe fn step<'a>(&'a self, at: Place<'a>, level: usize, target: &Target<'_>) -> Option<Place<'a>> {
        // SAFETY: the caller's promise.
        let link = unsafe { at.link(level) };
        // Relaxed: a bound is only compared. One that was lowered before this search began is seen.
        if target.rank < link.bound.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: links lead to nodes of this list.
        let next = unsafe { Entry::from_raw(link.next.load(Ordering::Acquire)) }?;
        (next.compare(target) == Order::Less).then(|| next.place())
    }

    /// Goes from `at` on `level` to the last place before `target` on level 0, and tells `record`
    /// where it left each level.
    ///
    /// # Safety
    /// `at` is before `target`, and was reached on `level` or above.
    #[inline]
    unsafe fn descend<'a>(
        &'a self,
        mut at: Place<'a>,
        mut level: usize,
        target: &Target<'_>,
        mut record: impl FnMut(usize, Place<'a>),
    ) -> Place<'a> {
        loop {
            // SAFETY: `at` was reached on this level: from the level above, or by a step on it.
            while let Some(next) = unsafe { self.step(at, level, target) } {
                at = next;
            }
            record(level, at);
            if level == 0 {
                return at;
            }
            level -= 1;
        }
    }

    /// The last place before `target`.
    #[inline]
    fn before<'a>(&'a self, target: &Target<'_>, record: impl FnMut(usize, Place<'a>)) -> Place<'a> {
        let top = self.height.load(Ordering::Relaxed) - 1;
        // SAFETY: the head is before everything and has all levels.
        unsafe { self.descend(self.head(), top, target, record) }
    }

    /// The first entry at or after `target`.
    #[inline]
    pub(super) fn seek(&self, target: &Target<'_>) -> Option<Entry<'_>> {
        let mut at = self.before(target, |_, _| ());
        loop {
            // SAFETY: every place has level 0.
            let next = unsafe { self.next_of(at, 0) }?;
            // Again, because the place may have got a new neighbour since.
            if next.compare(target) != Order::Less {
                return Some(next);
            }
            at = next.place();
        }
    }

    /// The first entry of `target`'s user key at or after `target`.
    #[inline]
    pub(super) fn get(&self, target: &Target<'_>) -> Option<Entry<'_>> {
        let at = self.before(target, |_, _| ());
        // SAFETY: every place has level 0.
        let link = unsafe { at.link(0) };
        // Behind `at` comes a key of a higher rank: the common case of a key that is not here.
        if target.rank < link.bound.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: links lead to nodes of this list.
        let mut next = unsafe { Entry::from_raw(link.next.load(Ordering::Acquire)) }?;
        while next.compare(target) == Order::Less {
            next = self.next(next)?;
        }
        next.user_key_is(target.user_key).then_some(next)
    }

    /// The entry at `at`, `None` if that is the head.
    #[inline]
    fn entry_at<'a>(&'a self, at: Place<'a>) -> Option<Entry<'a>> {
        (at.link != self.head().link).then(|| Entry { node: at.link.cast(), list: PhantomData })
    }

    /// The first entry.
    pub(super) fn first(&self) -> Option<Entry<'_>> {
        // SAFETY: the head has level 0.
        unsafe { self.next_of(self.head(), 0) }
    }

    /// The entry behind `entry`, which is of this list.
    #[inline]
    pub(super) fn next<'a>(&'a self, entry: Entry<'a>) -> Option<Entry<'a>> {
        // SAFETY: every node has level 0.
        let next = unsafe { self.next_of(entry.place(), 0) }?;
        // SAFETY: links lead to nodes of this list.
        if let Some(after) = unsafe { Entry::from_raw(next.place().link(0).next.load(Ordering::Acquire)) } {
            after.prefetch();
        }
        Some(next)
    }

    /// Inserts an entry. `target` is its internal key, of which the list has no other; `finger` is
    /// the caller's, best the one of its insert before.
    #[inline]
    pub(super) fn insert(&self, target: &Target<'_>, value: &[u8], finger: &mut Finger) {
        let number = self.entries.fetch_add(1, Ordering::Relaxed);
        let height = random_height(number);
        let node = self.write_node(target, value, height);
        self.place_finger(target, finger);
        if height > self.height.load(Ordering::Relaxed) {
            self.height.fetch_max(height, Ordering::Relaxed);
        }
        for (level, place) in finger.places.iter_mut().take(height).enumerate() {
            // SAFETY: `place_finger` left places of this list, each before `target` and reached on
            // its level; `node` is `target`'s, with `height` links and seen by nobody on this level.
            unsafe { self.link(node, level, *place, target) };
            *place = node.as_ptr().cast_const().cast();
        }
    }

    /// Moves `finger` to the last places before `target`.
    #[inline]
    fn place_finger(&self, target: &Target<'_>, finger: &mut Finger) {
        if finger.list == self.id {
            let places = &mut finger.places;
            // SAFETY: the finger's places are of this list, which is alive.
            let last = unsafe { Place::from_raw(places[0]) }.and_then(|place| self.entry_at(place));
            if last.is_some_and(|last| last.compare(target) == Order::Less) {
                for level in 0..FINGER_LEVELS.min(HEIGHT_MAX) {
                    // SAFETY: all places are at or before the last node, each reached on its level.
                    let found = unsafe {
                        Place::from_raw(places[level])
                            .filter(|place| self.step(*place, level, target).is_none())
                    };
                    if let Some(place) = found {
                        // SAFETY: as above.
                        unsafe {
                            self.descend(place, level, target, |level, place| {
                                places[level] = place.link.as_ptr();
                            })
                        };
                        return;
                    }
                }
            }
        } else {
            finger.start(self);
        }
        let places = &mut finger.places;
        self.before(target, |level, place| places[level] = place.link.as_ptr());
    }

    /// Puts `node` on `level`, somewhere behind `place`.
    ///
    /// # Safety
    /// `place` is of this list, before `target` and was reached on `level`; `node` has `target` as
    /// its key and a link on `level`, and is linked on all levels below but not on this one.
    #[inline]
    unsafe fn link(&self, node: NonNull<Node>, level: usize, place: *const Link, target: &Target<'_>) {
        // SAFETY: the caller's promise.
        let Some(mut at) = (unsafe { Place::from_raw(place) }) else { return };
        loop {
            // SAFETY: `at` is reached on this level.
            let link = unsafe { at.link(level) };
            let next = link.next.load(Ordering::Acquire);
            // Not above the rank of `next`: whoever linked it had lowered the bound before. (Of an
            // inserter that is about to link something else it may already be lower.)
            let bound = link.bound.load(Ordering::Relaxed);
            if target.rank >= bound {
                // SAFETY: links lead to nodes of this list.
                let entry: Option<Entry<'_>> = unsafe { Entry::from_raw(next) };
                if let Some(entry) = entry
                    && entry.compare(target) == Order::Less
                {
                    at = entry.place();
                    continue;
                }
            }
            // SAFETY: the node's own link of this level, which nobody else can have reached.
            let own = unsafe { node.cast::<Link>().sub(level).as_ref() };
            own.next.store(next, Ordering::Relaxed);
            // What follows is not before this node either, so its rank is not below.
            own.bound.store(bound.max(target.rank), Ordering::Relaxed);
            if bound > target.rank {
                link.bound.fetch_min(target.rank, Ordering::Relaxed);
            }
            // Release: publishes the node, and the bound with it.
            if link
                .next
                .compare_exchange(next, node.as_ptr(), Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }

    /// A node with `height` links that is in no list yet.
    #[inline]
    fn write_node(&self, target: &Target<'_>, value: &[u8], height: usize) -> NonNull<Node> {
        let key_len = target.user_key.len() + TRAILER_BYTES;
        let inside = value.len() <= VALUE_INSIDE_MAX;
        let links_bytes = (height - 1) * mem::size_of::<Link>();
        let behind_bytes = if inside { value.len() } else { mem::size_of::<*const u8>() };
        let node_bytes = links_bytes + mem::size_of::<Node>() + key_len + behind_bytes;
        let Space { node, value: apart } =
            self.arena.allocate(node_bytes, if inside { 0 } else { value.len() });
        let header = Node {
            link: Link::new(ptr::null_mut(), u64::MAX),
            user_key_len: len_u32(target.user_key),
            value_len: len_u32(value),
            #[cfg(loom)]
            bytes: loom::cell::UnsafeCell::new(()),
        };
        // SAFETY: the arena gave `node_bytes`, aligned for the links, which are what the pieces
        // below add up to, and a place for the value if it lies apart. Nobody else has the addresses.
        unsafe {
            for level in 1..height {
                node.cast::<Link>().add(level - 1).write(Link::new(ptr::null_mut(), u64::MAX));
            }
            let node = node.add(links_bytes);
            node.cast::<Node>().write(header);
            let key = node.add(mem::size_of::<Node>());
            key.copy_from_nonoverlapping(NonNull::from(target.user_key).cast(), target.user_key.len());
            let trailer = key.add(target.user_key.len());
            trailer.cast::<[u8; 8]>().write(target.trailer.to_le_bytes());
            let behind = trailer.add(TRAILER_BYTES);
            if inside {
                behind.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
            } else {
                apart.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
                behind.cast::<*const u8>().write_unaligned(apart.as_ptr());
            }
            node.cast()
        }
    }
}

/// Holds a list, so that a [`Cursor`] can point into it.
///
/// # Safety
/// `list` returns the same list in every call, which stays where it is while the owner lives.
pub(super) unsafe trait Owner {
    fn list(&self) -> &SkipList;
}

// SAFETY: a memtable's list is one of its fields, which is never replaced; the cursor's pointers go
// to memory that the list owns, not to the list.
unsafe impl Owner for Arc<super::MemTable> {
    #[inline]
    fn list(&self) -> &SkipList {
        &self.list
    }
}

/// A position in a list that it keeps alive.
pub(crate) struct Cursor<O> {
    /// The entry; `None` if the cursor is not valid.
    node: Option<NonNull<Node>>,
    /// While it is on the list: on each level a place at or before the entry, near enough for a step
    /// back that does not start at the top.
    path: Finger,
    owner: O,
}

// SAFETY: the pointers are to nodes of the owner's list, which any thread may read.
unsafe impl<O: Send> Send for Cursor<O> {}
// SAFETY: as above.
unsafe impl<O: Sync> Sync for Cursor<O> {}

impl<O: Owner> Cursor<O> {
    pub(super) fn new(owner: O) -> Cursor<O> {
        Cursor { node: None, path: Finger::new(), owner }
    }

    /// The entry on which it stands.
    #[inline]
    pub(super) fn entry(&self) -> Option<Entry<'_>> {
        // The owner keeps the list, and with it the node, at least as long as `&self`.
        self.node.map(|node| Entry { node, list: PhantomData })
    }

    pub(super) fn seek_to_first(&mut self) {
        self.path.list = 0;
        self.node = self.owner.list().first().map(|entry| entry.node);
    }

    #[inline]
    pub(super) fn seek(&mut self, target: &Target<'_>) {
        self.path.list = 0;
        self.node = self.owner.list().seek(target).map(|entry| entry.node);
    }

    /// Moves on by one; stays invalid if it is.
    #[inline]
    pub(super) fn next(&mut self) {
        self.path.list = 0;
        let list = self.owner.list();
        self.node = self.entry().and_then(|entry| list.next(entry)).map(|entry| entry.node);
    }

    pub(super) fn seek_to_last(&mut self) {
        let list = self.owner.list();
        self.path.start(list);
        let mut at = list.head();
        for level in (0..list.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: the head has all levels; other places are reached on this one or above.
            while let Some(next) = unsafe { list.next_of(at, level) } {
                at = next.place();
            }
            self.path.places[level] = at.link.as_ptr();
        }
        self.node = list.entry_at(at).map(|entry| entry.node);
    }

    pub(super) fn seek_for_prev(&mut self, target: &Target<'_>) {
        let list = self.owner.list();
        self.path.start(list);
        let places = &mut self.path.places;
        let mut at = list.before(target, |level, place| places[level] = place.link.as_ptr());
        // SAFETY: every place has level 0.
        while let Some(next) = unsafe { list.next_of(at, 0) } {
            if next.compare(target) == Order::Greater {
                break;
            }
            at = next.place();
        }
        self.node = list.entry_at(at).map(|entry| entry.node);
    }

    /// Moves back by one; stays invalid if it is.
    pub(super) fn prev(&mut self) {
        let Some(entry) = self.node.map(|node| Entry { node, list: PhantomData }) else { return };
        let list = self.owner.list();
        let target = Target::internal(entry.key());
        let places = &mut self.path.places;
        // On the levels below this one the path stands on the entry itself.
        let level = places.iter().position(|place| !ptr::eq(*place, entry.place().link.as_ptr()));
        let start = match level {
            // SAFETY: the path's places are of the owner's list.
            Some(level) if self.path.list == list.id => unsafe {
                Place::from_raw(places[level]).map(|place| (place, level))
            },
            _ => None,
        };
        let record = |level: usize, place: Place<'_>| places[level] = place.link.as_ptr();
        let at = match start {
            // SAFETY: the place is before the entry (at or before it, and not on it), and was
            // reached on this level.
            Some((place, level)) => unsafe { list.descend(place, level, &target, record) },
            None => {
                self.path.list = list.id;
                places.fill(list.head().link.as_ptr());
                list.before(&target, |level, place| places[level] = place.link.as_ptr())
            }
        };
        self.node = list.entry_at(at).map(|entry| entry.node);
    }
}

impl Drop for SkipList {
    fn drop(&mut self) {
        // SAFETY: from `Box::leak` in `new`; nobody has the list any more.
        drop(unsafe { Box::from_raw(self.head.as_ptr()) });
    }
}

/// The length of a key or value: the engine's limits (format rule F11) are far below.
#[inline]
fn len_u32(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("keys and values are checked against their limits at the API")
}

/// The height of the `number`-th node: random, but the same in every run, so that the size of a
/// memtable does not differ between two runs of a simulation.
#[inline]
fn random_height(number: usize) -> usize {
    let mut mixed = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^= mixed >> 32;
    (mixed.trailing_zeros() as usize + 1).min(HEIGHT_MAX)
}
