//! The parts of a [`SkipList`](super::SkipList): nodes and their layout in memory, links, and the
//! targets that are compared with them.
//!
//! 1. [`Node::write`] lays a node out in arena memory: links of the higher levels, header, user
//!    key, trailer, value.
//! 2. A [`Link`] is a [`Word`]: an address and a code.
//! 3. A [`Place`] is a position in the list, and an [`Entry`] is a node whose key and value can be
//!    read.
//! 4. [`Entry::compare`] compares a node with a [`Target`], eight bytes at a time.
//!
//! What must stay true: a [`Place`] or [`Entry`] exists only while its list does. Its node was
//! reached over a link, so that all of its bytes are written.

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

/// Levels of the list. A node reaches the next level with probability 1/2. Only steps cost a cache
/// miss, and looks do not, so 1/2 needs fewer misses than the usual 1/4.
#[cfg(not(loom))]
pub(in crate::memtable) const HEIGHT_MAX: usize = 20;
#[cfg(loom)]
pub(in crate::memtable) const HEIGHT_MAX: usize = 2;

/// Largest value that lies behind its key. Larger ones lie apart from the nodes.
const VALUE_INSIDE_MAX: usize = 128;

/// The most of a value that is prefetched for a scan. The processor goes on by itself.
const VALUE_AHEAD_BYTES_MAX: usize = 1 << 10;

/// Largest memory that is prefetched for the next value.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const WRITE_AHEAD_BYTES_MAX: usize = 2 << 10;

/// The link of a node on one level: a [`Word`].
#[repr(transparent)]
pub(super) struct Link(pub(super) AtomicPtr<Node>);

/// The address of a node, or of none, in the high 45 bits (it has 48 bits and is a multiple of 8),
/// and the code in the low 19.
#[derive(Clone, Copy)]
pub(super) struct Word(pub(super) *mut Node);

/// A node. Memory contains, in this order: the links of its higher levels, the highest first; this
/// struct; the user key and its trailer; the value or its address.
#[repr(C)]
pub(super) struct Node {
    link: Link,
    user_key_len: u32,
    value_len: u32,
    /// Makes the models fail if the bytes could be read before they are written.
    #[cfg(loom)]
    bytes: loom::cell::UnsafeCell<()>,
}

/// The links at which every search starts, laid out like a node. Its key counts as zeros that are
/// before every other key.
#[repr(C)]
pub(super) struct Head {
    pub(super) higher: [Link; HEIGHT_MAX - 1],
    pub(super) link: Link,
}

/// A place in a list: its head, or a node that was reached over a link. `'a` is the list's
/// lifetime.
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

/// What is searched for: an internal key whose parts need not be adjacent.
pub(in crate::memtable) struct Target<'k> {
    pub(super) user_key: &'k [u8],
    trailer: u64,
    /// The prefix of the empty key with a custom comparator, so that the codes of all keys are
    /// equal.
    pub(super) prefix: Prefix,
    /// `None` for byte order.
    comparator: Option<&'k Comparator>,
}

impl<'k> Target<'k> {
    /// Returns the target for the parts of an internal key.
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

    /// Returns the target for an internal key.
    #[inline]
    pub(in crate::memtable) fn internal(comparator: &'k Comparator, key: &'k [u8]) -> Target<'k> {
        Target::new(comparator, crate::base::key::user_key(key), crate::base::key::trailer(key))
    }
}

impl Link {
    /// Returns a link to no node.
    pub(super) fn new() -> Link {
        Link(AtomicPtr::new(Word::NONE.0))
    }

    /// Loads the word. Acquire: what it leads to may be read.
    #[inline]
    pub(super) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }
}

impl Word {
    /// Leads to no node. Its code is the largest.
    pub(super) const NONE: Word = Word(ptr::without_provenance_mut(Code::MAX.bits()));

    /// Packs an address and a code.
    #[inline]
    pub(super) fn new(node: NonNull<Node>, code: Code) -> Word {
        Word(node.as_ptr().map_addr(|address| address << (64 - ADDRESS_BITS) | code.bits()))
    }

    /// Returns the code.
    #[inline]
    pub(super) fn code(self) -> Code {
        Code::from_bits(self.0.addr())
    }

    /// Returns the address, which is null for no node.
    #[inline]
    fn node(self) -> *mut Node {
        self.0.map_addr(|word| word >> (64 - ADDRESS_BITS) & !7)
    }
}

impl<'a> Place<'a> {
    /// Returns a place for a link.
    ///
    /// # Safety
    /// `link` is the level-0 link of a head or node that lives for `'a`. If the place will be asked
    /// for its link on `level`, it was reached on that level at least once.
    #[inline]
    pub(super) unsafe fn from_raw(link: *const Link) -> Option<Place<'a>> {
        NonNull::new(link.cast_mut()).map(|link| Place { link, list: PhantomData })
    }

    /// Returns the link on `level`.
    ///
    /// # Safety
    /// The place was reached on `level` or above (the head: any level below [`HEIGHT_MAX`]).
    #[inline]
    pub(super) unsafe fn link(self, level: usize) -> &'a Link {
        // SAFETY: a node that is reached on `level` has links up to it, which lie before the one of
        // level 0, within the provenance of `self.link`.
        unsafe { self.link.sub(level).as_ref() }
    }
}

impl<'a> Entry<'a> {
    /// Returns the entry that a word leads to.
    ///
    /// # Safety
    /// `word` was loaded from a link of a list that lives for `'a`.
    #[inline]
    pub(super) unsafe fn from_word(word: Word) -> Option<Entry<'a>> {
        NonNull::new(word.node()).map(|node| Entry { node, list: PhantomData })
    }

    /// Returns the node as a place.
    #[inline]
    pub(super) fn place(self) -> Place<'a> {
        Place { link: self.node.cast(), list: PhantomData }
    }

    /// Returns the node's header.
    #[inline]
    fn header(self) -> &'a Node {
        // SAFETY: an entry's node is initialised and lives for `'a`.
        let node = unsafe { self.node.as_ref() };
        #[cfg(loom)]
        node.bytes.with(|_| ());
        node
    }

    /// Returns the address of the bytes behind the header.
    #[inline]
    fn bytes(self) -> *const u8 {
        // SAFETY: the key is there, in the same allocation.
        unsafe { self.node.as_ptr().cast::<u8>().add(mem::size_of::<Node>()) }
    }

    /// Returns the user key.
    #[inline]
    pub(super) fn user_key(self) -> &'a [u8] {
        let len = self.header().user_key_len as usize;
        // SAFETY: `Node::write` wrote that number of bytes before the node was published.
        unsafe { slice::from_raw_parts(self.bytes(), len) }
    }

    /// Returns the internal key.
    #[inline]
    pub(in crate::memtable) fn key(self) -> &'a [u8] {
        let len = self.header().user_key_len as usize + TRAILER_BYTES;
        // SAFETY: as for `user_key`, and the trailer is behind it.
        unsafe { slice::from_raw_parts(self.bytes(), len) }
    }

    /// Returns the trailer: sequence number and kind.
    #[inline]
    pub(in crate::memtable) fn trailer(self) -> u64 {
        let at = self.header().user_key_len as usize;
        // SAFETY: the trailer's eight bytes are behind the user key.
        u64::from_le_bytes(unsafe { self.bytes().add(at).cast::<[u8; 8]>().read() })
    }

    /// Returns the value.
    #[inline]
    pub(in crate::memtable) fn value(self) -> &'a [u8] {
        let header = self.header();
        let len = header.value_len as usize;
        // SAFETY: `Node::write` wrote the value, or its address, behind the trailer. A value that
        // lies apart is in the same arena.
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

    /// Returns eight bytes of the user key, padded with zeros, as a number. `index` is below
    /// [`PREFIX_BYTES`] / 8.
    #[inline]
    fn prefix_word(self, index: usize) -> u64 {
        let len = self.header().user_key_len as usize;
        let start = index * 8;
        if len <= start {
            return 0;
        }
        // SAFETY: `start` is within the user key, behind which the trailer has eight more bytes.
        let bytes = unsafe { self.bytes().add(start).cast::<[u8; 8]>().read() };
        let word = u64::from_be_bytes(bytes);
        let present = len - start;
        if present >= 8 { word } else { word & !(u64::MAX >> (present * 8)) }
    }

    /// Compares this entry's key with `target`. Also returns the first bit in which their prefixes
    /// differ, or a number beyond the prefix if they are equal.
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
            // Equal except for zeros at the end of the longer key.
            (self.header().user_key_len as usize).cmp(&target.user_key.len())
        } else {
            self.user_key().cmp(target.user_key)
        };
        // Among equal user keys the newest comes first.
        (order.then_with(|| target.trailer.cmp(&self.trailer())), PREFIX_BYTES * 8)
    }

    /// Compares with a custom comparator.
    #[cold]
    fn compare_by(self, comparator: &Comparator, target: &Target<'_>) -> Order {
        let order = comparator.compare(self.user_key(), target.user_key);
        order.then_with(|| target.trailer.cmp(&self.trailer()))
    }

    /// Returns the code of this entry's key relative to `target`, which is before it.
    #[inline]
    pub(super) fn code_after(self, target: &Target<'_>) -> Code {
        let (_, bit) = self.compare(target);
        let index = (bit + 1) / 64;
        let word =
            |index: usize| if index < PREFIX_BYTES / 8 { self.prefix_word(index) } else { 0 };
        Code::new(bit, word(index), word(index + 1))
    }

    /// Prefetches the memory that a reader of this entry touches first.
    #[inline]
    pub(super) fn prefetch(self) {
        prefetch(self.node.as_ptr().cast());
    }

    /// Prefetches the value. The header should be in the processor's cache.
    #[inline]
    pub(super) fn prefetch_value(self) {
        let value = self.value();
        for offset in (0..value.len().min(VALUE_AHEAD_BYTES_MAX)).step_by(64) {
            prefetch(value.as_ptr().wrapping_add(offset));
        }
    }
}

/// Prefetches the cache line at `address`, which need not be valid.
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint, and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Returns the length of a key or value. The engine's limits (format rule F11) are far below 4 GiB.
#[inline]
fn len_u32(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("keys and values are checked against their limits at the API")
}

/// Prefetches `bytes` from `address` for writing; `address` need not be valid. The next value
/// probably goes there, and copying it would wait for each line.
#[inline]
fn prefetch_to_write(address: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for offset in (0..bytes.min(WRITE_AHEAD_BYTES_MAX)).step_by(64) {
        use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch is a hint, and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.wrapping_add(offset).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (address, bytes);
}

impl Node {
    /// Writes a node with `height` links, which is in no list yet.
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
        // SAFETY: the arena returned `node_bytes`, aligned for the links, which is the sum of the
        // pieces below, and a place for a value that lies apart. No other thread has the addresses.
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
