//! The memory of a memtable. It consists of chunks that one atomic addition fills from both ends,
//! values from the bottom and nodes from the top. All of it is freed at once.
//!
//! 1. [`Arena::allocate`] takes memory for a node and a value. Large ones get a block of their own
//!    (`allocate_large`, `own_block`).
//! 2. `allocate_small` calls [`fill`] on the current chunk, whose single `fetch_add` makes the
//!    ranges disjoint.
//! 3. If the chunk is full, `grow` puts a new one in its place with one compare-and-swap. A chunk
//!    is as large as all before it together, up to the maximum.
//! 4. Chunks of full size are mapped ([`MappedChunk`]) or come from the [`ArenaPool`], which all
//!    memtables of a database share. A page fault for every 4 KiB costs more than the insert that
//!    causes it, and so do address translations for small pages. A memtable therefore reuses the
//!    pages of a flushed one, or takes new ones that a thread of the background has prepared. Both
//!    are huge by then ([`ArenaPool::prepare`]).
//! 5. [`Arena::seal`] reports the final size to the [`MemoryLedger`], if there is one.
//! 6. Dropping the arena frees both lists of chunks (`free_list`) or returns them to the pool.
//!
//! Nodes lie together so that a search touches few pages. Values, which are read only once a key is
//! found, lie apart from them.
//!
//! What must stay true:
//!
//! - Two calls never return overlapping memory.
//! - Memory stays in its place until the arena is dropped.
//! - `reserved_bytes` counts every byte that the arena holds, used or not.

#![expect(unsafe_code, reason = "memory is handed out by address; see the file's first lines")]

use std::alloc::Layout;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::pool::{ArenaPool, CHUNK_BYTES, MappedChunk, MemoryLedger, Pages};
use crate::base::sync::loom_atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Size of the first chunk, so that a column family that is hardly used costs little.
const CHUNK_BYTES_MIN: usize = 16 << 10;
/// A memtable with at least this number of full chunks has full chunks, which serve again.
const FULL_CHUNKS_MIN: usize = 8;
/// A smaller memtable has about this number of chunks at least, so that the unused part of the last
/// one is a small part of the whole.
const CHUNKS_MIN: usize = 32;
/// A node or value above 1/`OWN_BLOCK_DIVISOR` of a chunk gets a block of its own.
const OWN_BLOCK_DIVISOR: usize = 16;

/// Alignment of all nodes and blocks.
const ALIGN: usize = mem::align_of::<Chunk>();

/// All addresses that are returned are below 2 to this power.
pub(super) const ADDRESS_BITS: u32 = 48;

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN).expect("a memtable's block is far below isize::MAX")
}

/// Allocates memory. `layout` must not be empty.
fn allocate(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0);
    // SAFETY: the size is not 0.
    match NonNull::new(unsafe { std::alloc::alloc(layout) }) {
        Some(address) => address,
        None => std::alloc::handle_alloc_error(layout),
    }
}

/// The header at the start of the memory that it describes: a chunk to be filled, or a block with
/// one node or value.
struct Chunk {
    /// Used bytes: from the bottom, this header included, in the low half; from the top in the high
    /// half. A sum above `bytes` means that the chunk is full.
    used: AtomicU64,
    /// Size of the memory.
    bytes: usize,
    /// If the memory came from [`MappedChunk::into_raw`].
    mapped: Option<Pages>,
    /// The chunk before this one in its list.
    before: *mut Chunk,
}

/// Memory for nodes and values that many threads allocate at once without locks.
pub(super) struct Arena {
    /// The chunk that is being filled, linked to those before it. Null at first.
    current: AtomicPtr<Chunk>,
    /// Blocks with one node or value each, newest first.
    own_blocks: AtomicPtr<Chunk>,
    /// Size of all chunks and blocks.
    reserved_bytes: AtomicUsize,
    /// Largest size of a chunk in this arena.
    chunk_bytes_max: usize,
    pool: Option<Arc<ArenaPool>>,
    /// Whether the memtable was sealed.
    sealed: AtomicBool,
}

// SAFETY: the pointers lead to memory that the arena owns. All shared state is atomic, and memory
// is returned only once.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

/// Memory for a node and its value.
pub(super) struct Space {
    /// `node_bytes` of memory, aligned to [`ALIGN`].
    pub(super) node: NonNull<u8>,
    /// `value_bytes` of memory, not aligned.
    pub(super) value: NonNull<u8>,
}

impl Arena {
    /// Returns an arena for about `capacity_bytes`, which determines the size of its chunks. It
    /// holds no memory before the first [`Arena::allocate`].
    pub(super) fn new(capacity_bytes: usize, pool: Option<Arc<ArenaPool>>) -> Arena {
        let part = match capacity_bytes / FULL_CHUNKS_MIN {
            CHUNK_BYTES.. => CHUNK_BYTES,
            _ => (capacity_bytes / CHUNKS_MIN).next_power_of_two(),
        };
        Arena {
            current: AtomicPtr::new(ptr::null_mut()),
            own_blocks: AtomicPtr::new(ptr::null_mut()),
            reserved_bytes: AtomicUsize::new(0),
            chunk_bytes_max: part.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES),
            pool,
            sealed: AtomicBool::new(false),
        }
    }

    /// Returns the ledger, if there is one.
    fn ledger(&self) -> Option<&dyn MemoryLedger> {
        self.pool.as_ref()?.ledger.as_deref()
    }

    /// Counts new memory in the arena and in the ledger.
    fn grew(&self, bytes: usize) {
        self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(ledger) = self.ledger() {
            ledger.grew(bytes);
        }
    }

    /// Marks that nothing more will be allocated.
    pub(super) fn seal(&self) {
        if !self.sealed.swap(true, Ordering::Relaxed)
            && let Some(ledger) = self.ledger()
        {
            ledger.sealed(self.reserved_bytes());
        }
    }

    /// Returns every byte that the arena holds.
    pub(super) fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes that the arena holds, without the free rest of the newest chunk.
    pub(super) fn used_bytes(&self) -> usize {
        let chunk = self.current.load(Ordering::Acquire);
        if chunk.is_null() {
            return self.reserved_bytes();
        }
        // SAFETY: chunks in the list live as long as the arena.
        let (used, bytes) = unsafe { ((*chunk).used.load(Ordering::Relaxed), (*chunk).bytes) };
        let used = (used & u64::from(u32::MAX)) as usize + (used >> 32) as usize;
        self.reserved_bytes().saturating_sub(bytes.saturating_sub(used))
    }

    /// Returns memory for a node and a value, whose size may be 0. It belongs to the caller alone,
    /// is uninitialised, and lives as long as the arena.
    #[inline]
    pub(super) fn allocate(&self, node_bytes: usize, value_bytes: usize) -> Space {
        let own_above = self.chunk_bytes_max / OWN_BLOCK_DIVISOR;
        if node_bytes > own_above || value_bytes > own_above {
            return self.allocate_large(node_bytes, value_bytes, own_above);
        }
        self.allocate_small(node_bytes, value_bytes)
    }

    /// Takes memory from the current chunk, and grows until it fits.
    #[inline]
    fn allocate_small(&self, node_bytes: usize, value_bytes: usize) -> Space {
        let node_bytes = node_bytes.next_multiple_of(ALIGN);
        loop {
            let chunk = self.current.load(Ordering::Acquire);
            if !chunk.is_null() {
                // SAFETY: chunks in the list live as long as the arena.
                if let Some(space) = unsafe { fill(chunk, node_bytes, value_bytes) } {
                    return space;
                }
            }
            self.grow(chunk, node_bytes + value_bytes);
        }
    }

    /// Gives the node, the value or both a block of their own, and takes the rest from a chunk.
    #[cold]
    fn allocate_large(&self, node_bytes: usize, value_bytes: usize, own_above: usize) -> Space {
        let (node_inside, node_own) =
            if node_bytes > own_above { (0, node_bytes) } else { (node_bytes, 0) };
        let (value_inside, value_own) =
            if value_bytes > own_above { (0, value_bytes) } else { (value_bytes, 0) };
        let mut space = self.allocate_small(node_inside, value_inside);
        if node_own > 0 {
            space.node = self.own_block(node_own);
        }
        if value_own > 0 {
            space.value = self.own_block(value_own);
        }
        space
    }

    /// Replaces the chunk `full` by an empty one, unless another thread has done so.
    #[cold]
    fn grow(&self, full: *mut Chunk, needed_bytes: usize) {
        // Each chunk is as large as all before it, up to the maximum.
        let doubled = self.reserved_bytes().clamp(CHUNK_BYTES_MIN, self.chunk_bytes_max);
        let least = (needed_bytes + mem::size_of::<Chunk>()).max(doubled).next_power_of_two();
        let bytes = least.min(CHUNK_BYTES);
        let (address, mapped) = if bytes == CHUNK_BYTES {
            let pooled = self.pool.as_ref().and_then(|pool| pool.take());
            let (address, pages) = pooled.unwrap_or_else(MappedChunk::new).into_raw();
            (address, Some(pages))
        } else {
            (allocate(layout(bytes)), None)
        };
        let chunk = Chunk::place(address, bytes, mapped, full);
        match self.current.compare_exchange(full, chunk, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => self.grew(bytes),
            // SAFETY: no other thread has seen it.
            Err(_) => unsafe { self.free(chunk) },
        }
    }

    /// Allocates a block for one node or value of `bytes`.
    fn own_block(&self, bytes: usize) -> NonNull<u8> {
        let total = bytes + mem::size_of::<Chunk>();
        let address = allocate(layout(total));
        let mut before = self.own_blocks.load(Ordering::Relaxed);
        let block = Chunk::place(address, total, None, before);
        // The list is read only in drop, which is ordered after everything. The release is for the
        // next thread that pushes, whose block's `before` will be followed then.
        while let Err(now) =
            self.own_blocks.compare_exchange(before, block, Ordering::Release, Ordering::Relaxed)
        {
            before = now;
            // SAFETY: the block belongs to this thread until it is in the list.
            unsafe { (*block).before = before };
        }
        self.grew(total);
        // SAFETY: the header's size is within the block.
        unsafe { address.add(mem::size_of::<Chunk>()) }
    }

    /// Frees a chunk.
    ///
    /// # Safety
    /// `chunk` is from [`Chunk::place`], and nothing refers to its memory.
    unsafe fn free(&self, chunk: *mut Chunk) {
        // SAFETY: the caller's promise.
        let (bytes, mapped) = unsafe { ((*chunk).bytes, (*chunk).mapped) };
        let Some(address) = NonNull::new(chunk.cast::<u8>()) else { return };
        let Some(pages) = mapped else {
            // SAFETY: `place` was given memory of this layout.
            unsafe { std::alloc::dealloc(address.as_ptr(), layout(bytes)) };
            return;
        };
        // SAFETY: `mapped` says that both are from `into_raw`.
        let chunk = unsafe { MappedChunk::from_raw(address, pages) };
        if let Some(pool) = &self.pool {
            drop(pool.give(chunk));
        }
    }

    /// Frees a list of chunks.
    ///
    /// # Safety
    /// Nothing refers to the memory of the list.
    unsafe fn free_list(&self, mut chunk: *mut Chunk) {
        while !chunk.is_null() {
            // SAFETY: what is in a list is valid until it is freed here.
            let before = unsafe { (*chunk).before };
            // SAFETY: the caller's promise.
            unsafe { self.free(chunk) };
            chunk = before;
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: with `&mut self`, no user of the memory is left.
        unsafe {
            self.free_list(self.current.load(Ordering::Acquire));
            self.free_list(self.own_blocks.load(Ordering::Acquire));
        }
        if let Some(ledger) = self.ledger() {
            ledger.freed(self.reserved_bytes(), self.sealed.load(Ordering::Relaxed));
        }
    }
}

impl Chunk {
    /// Writes the header at `address`, the start of `bytes` of memory that the caller owns.
    fn place(
        address: NonNull<u8>,
        bytes: usize,
        mapped: Option<Pages>,
        before: *mut Chunk,
    ) -> *mut Chunk {
        assert!(bytes >= mem::size_of::<Chunk>());
        // Links have room for 48 bits.
        assert!((address.addr().get() + bytes) >> ADDRESS_BITS == 0);
        let used = AtomicU64::new(mem::size_of::<Chunk>() as u64);
        let chunk = address.cast::<Chunk>().as_ptr();
        // SAFETY: the memory is large enough, aligned to `ALIGN`, and belongs to the caller.
        unsafe { chunk.write(Chunk { used, bytes, mapped, before }) };
        chunk
    }
}

/// Takes `value_bytes` from the bottom and `node_bytes` from the top. Returns `None` if they do not
/// fit.
///
/// On a full chunk a call changes nothing that matters: `used` only grows further above `bytes`. It
/// cannot grow into the high half, because each thread asks a full chunk once, for less than 2^17
/// bytes.
///
/// # Safety
/// `chunk` is from [`Chunk::place`] and not freed.
#[inline]
unsafe fn fill(chunk: *mut Chunk, node_bytes: usize, value_bytes: usize) -> Option<Space> {
    // SAFETY: the caller's promise. Only `used` changes after `place`, and it is atomic.
    let (used, bytes) = unsafe { (&(*chunk).used, (*chunk).bytes) };
    let taken = value_bytes as u64 | (node_bytes as u64) << 32;
    // Relaxed: the addition alone makes the ranges disjoint.
    let before = used.fetch_add(taken, Ordering::Relaxed);
    let bottom = (before & u64::from(u32::MAX)) as usize;
    let top = (before >> 32) as usize + node_bytes;
    if bottom + value_bytes + top > bytes {
        return None;
    }
    // SAFETY: the comparison shows that both ranges are within the chunk's `bytes`, which are a
    // multiple of `ALIGN` like all `node_bytes`. `add` keeps the provenance of the whole chunk,
    // which `chunk` has from `place`.
    unsafe {
        let start = NonNull::new_unchecked(chunk.cast::<u8>());
        Some(Space { node: start.add(bytes - top), value: start.add(bottom) })
    }
}
