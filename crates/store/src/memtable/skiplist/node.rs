//! The pieces of a [`SkipList`](super::SkipList): nodes and how they lie in memory, links, and the
//! keys that are compared with them.
//!
//! What must stay true: a [`Place`] or [`Entry`] exists only while its list does, and only for a
//! node that was reached over a link, so that its bytes are all written.

use std::cmp::Ordering as Order;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::{mem, slice};

use sateen_control::Comparator;

use super::SkipList;
use crate::base::key::TRAILER_BYTES;
use crate::base::sync::loom_atomic::{AtomicPtr, Ordering};
use crate::memtable::arena::{ADDRESS_BITS, Arena, Space};
use crate::memtable::code::{Code, PREFIX_BYTES, Prefix};

/// Levels of the list. A node reaches the next one with probability 1/2: since only steps cost, and
/// not looks ahead, this needs fewer than the usual 1/4.
#[cfg(not(loom))]
pub(in crate::memtable) const HEIGHT_MAX: usize = 20;
#[cfg(loom)]
pub(in crate::memtable) const HEIGHT_MAX: usize = 2;

/// Values up to this size lie behind their key, larger ones apart from the nodes.
const VALUE_INSIDE_MAX: usize = 128;

/// The most that is fetched ahead of the next value.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const WRITE_AHEAD_BYTES_MAX: usize = 2 << 10;

/// Where a node leads on one level: a [`Word`].
#[repr(transparent)]
pub(super) struct Link(pub(super) AtomicPtr<Node>);

/// The address of a node, or of none, in the high 45 bits (it has 48 and is a multiple of 8) and
/// its code in the low 19.
#[derive(Clone, Copy)]
pub(super) struct Word(pub(super) *mut Node);

/// An entry. In memory, in this order: the links of its higher levels, the highest first; this
/// struct; the user key and its trailer; the value, or the address of the value.
#[repr(C)]
pub(super) struct Node {
    link: Link,
    user_key_len: u32,
    value_len: u32,
    /// Makes the models fail if the bytes could be read before they are written.
    #[cfg(loom)]
    bytes: loom::cell::UnsafeCell<()>,
}

/// The links at which every search starts, laid out like a node. It counts as having a key that
/// begins with zeros and is before every other.
#[repr(C)]
pub(super) struct Head {
    pub(super) higher: [Link; HEIGHT_MAX - 1],
    pub(super) link: Link,
}

/// A place in a list: its head, or a node that was reached over a link. `'a` is the list's life.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// Has the provenance of the whole head, or of the node's arena chunk.
    pub(super) link: NonNull<Link>,
    pub(super) list: PhantomData<&'a SkipList>,
}

/// An entry of a list that lives for `'a`.
#[derive(Clone, Copy)]
pub(in crate::memtable) struct Entry<'a> {
    pub(super) node: NonNull<Node>,
    pub(super) list: PhantomData<&'a SkipList>,
}

/// What is searched for: an internal key whose parts need not lie together.
pub(in crate::memtable) struct Target<'k> {
    pub(super) user_key: &'k [u8],
    trailer: u64,
    /// Of nothing where keys are not compared as bytes: then the codes of all keys are equal.
    pub(super) prefix: Prefix,
    /// None: as bytes.
    comparator: Option<&'k Comparator>,
}

impl<'k> Target<'k> {
    #[inline]
    pub(in crate::memtable) fn new(
        comparator: &'k Comparator,
        user_key: &'k [u8],
        trailer: u64,
    ) -> Target<'k> {
        if comparator.is_bytewise() {
            let prefix = Prefix::new(user_key);
            return Target { user_key, trailer, prefix, comparator: None };
        }
        let prefix = Prefix::new(&[]);
        Target { user_key, trailer, prefix, comparator: Some(comparator) }
    }

    /// Of an internal key.
    #[inline]
    pub(in crate::memtable) fn internal(comparator: &'k Comparator, key: &'k [u8]) -> Target<'k> {
        Target::new(comparator, crate::base::key::user_key(key), crate::base::key::trailer(key))
    }
}

impl Link {
    pub(super) fn new() -> Link {
        Link(AtomicPtr::new(Word::NONE.0))
    }

    /// Acquire: what is behind the word may be read.
    #[inline]
    pub(super) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }
}

impl Word {
    /// Leads to no node. No code is above its.
    pub(super) const NONE: Word = Word(ptr::without_provenance_mut(Code::MAX.bits()));

    #[inline]
    pub(super) fn new(node: NonNull<Node>, code: Code) -> Word {
        Word(node.as_ptr().map_addr(|address| address << (64 - ADDRESS_BITS) | code.bits()))
    }

    #[inline]
    pub(super) fn code(self) -> Code {
        Code::from_bits(self.0.addr())
    }

    #[inline]
    fn node(self) -> *mut Node {
        self.0.map_addr(|word| word >> (64 - ADDRESS_BITS) & !7)
    }
}

impl<'a> Place<'a> {
    /// # Safety
    /// `link` is the level-0 link of a head or node that lives for `'a`, and the place is one that
    /// was reached on `level` at least once if it will be asked for that level's link.
    #[inline]
    pub(super) unsafe fn from_raw(link: *const Link) -> Option<Place<'a>> {
        NonNull::new(link.cast_mut()).map(|link| Place { link, list: PhantomData })
    }

    /// # Safety
    /// The place was reached on `level` or above (the head: any level below [`HEIGHT_MAX`]).
    #[inline]
    pub(super) unsafe fn link(self, level: usize) -> &'a Link {
        // SAFETY: a node that is reached on `level` has links up to it, which lie before the one of
        // level 0, within the provenance that `self.link` has.
        unsafe { self.link.sub(level).as_ref() }
    }
}

impl<'a> Entry<'a> {
    /// # Safety
    /// `word` was loaded from a link of a list that lives for `'a`.
    #[inline]
    pub(super) unsafe fn from_word(word: Word) -> Option<Entry<'a>> {
        NonNull::new(word.node()).map(|node| Entry { node, list: PhantomData })
    }

    #[inline]
    pub(super) fn place(self) -> Place<'a> {
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
    pub(super) fn user_key(self) -> &'a [u8] {
        let len = self.header().user_key_len as usize;
        // SAFETY: `insert` wrote as many bytes there before it published the node.
        unsafe { slice::from_raw_parts(self.bytes(), len) }
    }

    /// The internal key.
    #[inline]
    pub(in crate::memtable) fn key(self) -> &'a [u8] {
        let len = self.header().user_key_len as usize + TRAILER_BYTES;
        // SAFETY: as for `user_key`; the trailer is behind it.
        unsafe { slice::from_raw_parts(self.bytes(), len) }
    }

    #[inline]
    pub(in crate::memtable) fn trailer(self) -> u64 {
        let at = self.header().user_key_len as usize;
        // SAFETY: the trailer's eight bytes are behind the user key.
        u64::from_le_bytes(unsafe { self.bytes().add(at).cast::<[u8; 8]>().read() })
    }

    /// The value.
    #[inline]
    pub(in crate::memtable) fn value(self) -> &'a [u8] {
        let header = self.header();
        let len = header.value_len as usize;
        // SAFETY: `insert` wrote the value, or its address, behind the trailer; a value apart lies
        // in the same arena.
        unsafe {
            let behind = self.bytes().add(header.user_key_len as usize + TRAILER_BYTES);
            let start = if len <= VALUE_INSIDE_MAX {
                behind
            } else {
                behind.cast::<*const u8>().read_unaligned()
            };
            slice::from_raw_parts(start, len)
        }
    }

    /// Eight bytes of the user key, filled up with zeros, as a number. Only for `index` below
    /// [`PREFIX_BYTES`] / 8.
    #[inline]
    fn prefix_word(self, index: usize) -> u64 {
        let len = self.header().user_key_len as usize;
        let start = index * 8;
        if len <= start {
            return 0;
        }
        // SAFETY: `start` is within the user key, behind which eight more bytes are the trailer.
        let bytes = unsafe { self.bytes().add(start).cast::<[u8; 8]>().read() };
        let word = u64::from_be_bytes(bytes);
        let present = len - start;
        if present >= 8 { word } else { word & !(u64::MAX >> (present * 8)) }
    }

    /// The order of this entry's key and `target`, and the first bit in which their prefixes differ
    /// (a number beyond the prefix if they do not).
    #[inline]
    pub(super) fn compare(self, target: &Target<'_>) -> (Order, usize) {
        if let Some(comparator) = target.comparator {
            return (self.compare_by(comparator, target), PREFIX_BYTES * 8);
        }
        let len = (self.header().user_key_len as usize).max(target.user_key.len());
        for index in 0..len.min(PREFIX_BYTES).div_ceil(8) {
            let (own, other) = (self.prefix_word(index), target.prefix.word(index));
            if own != other {
                return (own.cmp(&other), index * 64 + (own ^ other).leading_zeros() as usize);
            }
        }
        let order = if len <= PREFIX_BYTES {
            // Equal but for zeros at the end of the longer one.
            (self.header().user_key_len as usize).cmp(&target.user_key.len())
        } else {
            self.user_key().cmp(target.user_key)
        };
        // Among equal user keys the newest first.
        (order.then_with(|| target.trailer.cmp(&self.trailer())), PREFIX_BYTES * 8)
    }

    #[cold]
    fn compare_by(self, comparator: &Comparator, target: &Target<'_>) -> Order {
        let order = comparator.compare(self.user_key(), target.user_key);
        order.then_with(|| target.trailer.cmp(&self.trailer()))
    }

    /// The code of this entry's key relative to `target`, which is before it.
    #[inline]
    pub(super) fn code_after(self, target: &Target<'_>) -> Code {
        let (_, bit) = self.compare(target);
        let index = (bit + 1) / 64;
        let word =
            |index: usize| if index < PREFIX_BYTES / 8 { self.prefix_word(index) } else { 0 };
        Code::new(bit, word(index), word(index + 1))
    }

    /// Asks for the memory that a reader of this entry will touch first.
    #[inline]
    pub(super) fn prefetch(self) {
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

/// The length of a key or value: the engine's limits (format rule F11) are far below.
#[inline]
fn len_u32(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("keys and values are checked against their limits at the API")
}

/// Asks for the right to write `bytes` from `address` on, of which nothing need be true: the next
/// value is likely to go there, and its copying would wait for that line by line.
#[inline]
fn prefetch_to_write(address: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for offset in (0..bytes.min(WRITE_AHEAD_BYTES_MAX)).step_by(64) {
        use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch is a hint; it faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.wrapping_add(offset).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (address, bytes);
}

impl Node {
    /// A node with `height` links that is in no list yet.
    #[inline]
    pub(super) fn write(
        arena: &Arena,
        target: &Target<'_>,
        value: &[u8],
        height: usize,
    ) -> NonNull<Node> {
        let key_len = target.user_key.len() + TRAILER_BYTES;
        let inside = value.len() <= VALUE_INSIDE_MAX;
        let links_bytes = (height - 1) * mem::size_of::<Link>();
        let behind_bytes = if inside { value.len() } else { mem::size_of::<*const u8>() };
        let node_bytes = links_bytes + mem::size_of::<Node>() + key_len + behind_bytes;
        let Space { node, value: apart } =
            arena.allocate(node_bytes, if inside { 0 } else { value.len() });
        let header = Node {
            link: Link::new(),
            user_key_len: len_u32(target.user_key),
            value_len: len_u32(value),
            #[cfg(loom)]
            bytes: loom::cell::UnsafeCell::new(()),
        };
        // SAFETY: the arena gave `node_bytes`, aligned for the links, which are what the pieces
        // below add up to, and a place for the value if it lies apart. Nobody else has the
        // addresses.
        unsafe {
            for level in 1..height {
                node.cast::<Link>().add(level - 1).write(Link::new());
            }
            let node = node.add(links_bytes);
            node.cast::<Node>().write(header);
            let key = node.add(mem::size_of::<Node>());
            key.copy_from_nonoverlapping(
                NonNull::from(target.user_key).cast(),
                target.user_key.len(),
            );
            let trailer = key.add(target.user_key.len());
            trailer.cast::<[u8; 8]>().write(target.trailer.to_le_bytes());
            let behind = trailer.add(TRAILER_BYTES);
            if inside {
                behind.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
            } else {
                apart.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
                behind.cast::<*const u8>().write_unaligned(apart.as_ptr());
                prefetch_to_write(apart.as_ptr().wrapping_add(value.len()), value.len());
            }
            node.cast()
        }
    }
}
