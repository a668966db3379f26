//! The pool of large chunks that all memtables of a database share.
//!
//! 1. A memtable takes a chunk ([`ArenaPool::take`]), or maps one if there is none
//!    ([`MappedChunk::new`]). When it is dropped it gives its chunks back ([`ArenaPool::give`]).
//! 2. A thread of the background calls [`ArenaPool::prepare`], so that the chunks of the pool have
//!    huge pages, and that there are some while memtables grow.
//!
//! What must stay true: a chunk belongs to the pool or to one arena, never to both.

#![expect(unsafe_code, reason = "chunks are mapped and given pages by address")]

use std::alloc::Layout;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex};

use crate::base::locks::leaf::lock_timed;
use crate::base::sync::leaf::lock;

/// Size of a full chunk, and of everything in an [`ArenaPool`]: that of a huge page. Searches then
/// need few address translations.
pub(super) const CHUNK_BYTES: usize = 2 << 20;

/// The most free chunks that [`ArenaPool::prepare`] adds to.
const PREPARED_MAX: usize = 16;

/// Counts the memory of memtables.
pub trait MemoryLedger: Send + Sync {
    /// A mutable memtable has grown by `bytes`.
    fn grew(&self, bytes: usize);
    /// A memtable of `bytes` was sealed.
    fn sealed(&self, bytes: usize);
    /// A memtable of `bytes` was freed.
    fn freed(&self, bytes: usize, was_sealed: bool);
}

/// Free chunks of 2 MiB, kept for the next memtable.
pub struct ArenaPool {
    free: Mutex<FreeChunks>,
    /// Counts the memory of memtables, if it is shared with something else.
    pub(super) ledger: Option<Arc<dyn MemoryLedger>>,
}

/// The free chunks and their limit.
struct FreeChunks {
    chunks: Vec<MappedChunk>,
    bytes_max: usize,
    /// Number of chunks that memtables have needed, free or not.
    taken: u64,
    /// `taken` at the last [`ArenaPool::prepare`].
    taken_before: u64,
}

impl FreeChunks {
    fn have_room(&self) -> bool {
        (self.chunks.len() + 1) * CHUNK_BYTES <= self.bytes_max
    }
}

impl ArenaPool {
    /// Returns a pool that keeps at most `bytes_max` bytes of free chunks. They count as the
    /// database's memory ([`ArenaPool::bytes`]).
    pub fn new(bytes_max: usize) -> ArenaPool {
        let free = FreeChunks { chunks: Vec::new(), bytes_max, taken: 0, taken_before: 0 };
        ArenaPool { free: Mutex::new(free), ledger: None }
    }

    /// Returns a pool that keeps nothing. `ledger` counts the memory of memtables, and what they
    /// free is available to others.
    pub fn counted(ledger: Arc<dyn MemoryLedger>) -> ArenaPool {
        ArenaPool { ledger: Some(ledger), ..ArenaPool::new(0) }
    }

    /// Returns the bytes of free chunks.
    pub fn bytes(&self) -> usize {
        lock(&self.free).chunks.len() * CHUNK_BYTES
    }

    /// Changes the limit, and returns chunks above it to the system.
    pub fn set_bytes_max(&self, bytes_max: usize) {
        let mut free = lock(&self.free);
        let bytes_max = if self.ledger.is_some() { 0 } else { bytes_max };
        free.bytes_max = bytes_max;
        let keep = (bytes_max / CHUNK_BYTES).min(free.chunks.len());
        let surplus = free.chunks.split_off(keep);
        drop(free);
        drop(surplus);
    }

    /// Returns the number of chunks that memtables have needed.
    pub fn taken(&self) -> u64 {
        lock(&self.free).taken
    }

    /// Gives free chunks huge pages, and adds chunks until there is one more than memtables needed
    /// since the last call.
    ///
    /// The first page fault of a huge page fills 2 MiB with zeros, which can take milliseconds, in
    /// a virtual machine above all. So writers do not pay for it, but the thread that calls this.
    pub fn prepare(&self) {
        let next = || {
            let mut free = lock(&self.free);
            let at = free.chunks.iter().position(|chunk| chunk.pages == Pages::Small)?;
            Some(free.chunks.swap_remove(at))
        };
        while let Some(mut chunk) = next() {
            chunk.make_huge();
            drop(self.give(chunk));
        }
        let mut free = lock(&self.free);
        let needed = free.taken - free.taken_before;
        free.taken_before = free.taken;
        if needed == 0 {
            return;
        }
        let ahead = usize::try_from(needed).map_or(PREPARED_MAX, |n| PREPARED_MAX.min(n + 1));
        let missing = ahead.saturating_sub(free.chunks.len());
        drop(free);
        for _ in 0..missing {
            if !lock(&self.free).have_room() {
                return;
            }
            // Without memory, the writer that needs it says so.
            let Some(mut chunk) = MappedChunk::try_new() else { return };
            chunk.make_huge();
            drop(self.give(chunk));
        }
    }

    /// Takes a free chunk, if there is one.
    pub(super) fn take(&self) -> Option<MappedChunk> {
        let mut free = lock_timed(&self.free);
        free.taken += 1;
        free.chunks.pop()
    }

    /// Keeps `chunk`, or returns it to the caller to drop outside the lock.
    pub(super) fn give(&self, chunk: MappedChunk) -> Option<MappedChunk> {
        let mut free = lock(&self.free);
        if free.have_room() {
            free.chunks.push(chunk);
            return None;
        }
        Some(chunk)
    }
}

/// The pages of a mapped chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    Small,
    /// Of 2 MiB if the system had them.
    Huge,
}

/// Owns [`CHUNK_BYTES`] of page-aligned memory from the system.
pub(super) struct MappedChunk {
    address: NonNull<u8>,
    pages: Pages,
}

// SAFETY: it owns the memory that it points to, and shares it with no other value.
unsafe impl Send for MappedChunk {}

impl MappedChunk {
    pub(super) fn new() -> MappedChunk {
        MappedChunk::try_new().unwrap_or_else(|| std::alloc::handle_alloc_error(chunk_layout()))
    }

    /// Returns `None` if the system has no memory.
    fn try_new() -> Option<MappedChunk> {
        #[cfg(not(miri))]
        let address = map_aligned()?;
        #[cfg(miri)]
        // SAFETY: the size is not 0.
        let address = NonNull::new(unsafe { std::alloc::alloc(chunk_layout()) })?;
        Some(MappedChunk { address, pages: Pages::Small })
    }

    /// Replaces the pages by huge ones, whose content is zero.
    fn make_huge(&mut self) {
        self.pages = Pages::Huge;
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            use rustix::mm::{Advice, madvise};
            // The pages go first, because a range with small pages gets no huge one.
            for advice in [Advice::LinuxDontNeed, Advice::LinuxHugepage] {
                // SAFETY: the bytes are mapped and belong to this value alone, which promises
                // nothing about their content. If the advice is refused, the pages are small.
                let _ = unsafe { madvise(self.address.as_ptr().cast(), CHUNK_BYTES, advice) };
            }
            // SAFETY: the byte belongs to this value.
            unsafe { self.address.as_ptr().write_volatile(0) };
        }
    }

    /// Gives up ownership; [`MappedChunk::from_raw`] takes it back.
    pub(super) fn into_raw(self) -> (NonNull<u8>, Pages) {
        let parts = (self.address, self.pages);
        mem::forget(self);
        parts
    }

    /// Takes ownership of a chunk.
    ///
    /// # Safety
    /// Both are from [`MappedChunk::into_raw`], and nothing refers to the memory.
    pub(super) unsafe fn from_raw(address: NonNull<u8>, pages: Pages) -> MappedChunk {
        MappedChunk { address, pages }
    }
}

impl Drop for MappedChunk {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly these bytes, and no other value has the address.
        #[cfg(not(miri))]
        unsafe {
            unmap(self.address, CHUNK_BYTES);
        }
        // SAFETY: `new` allocated it with this layout.
        #[cfg(miri)]
        unsafe {
            std::alloc::dealloc(self.address.as_ptr(), chunk_layout());
        }
    }
}

/// Maps [`CHUNK_BYTES`] at an address that is a multiple of them.
#[cfg(not(miri))]
fn map_aligned() -> Option<NonNull<u8>> {
    let address = map(CHUNK_BYTES)?;
    if address.addr().get().is_multiple_of(CHUNK_BYTES) {
        return Some(address);
    }
    // SAFETY: it was just mapped, and nothing refers to it.
    unsafe { unmap(address, CHUNK_BYTES) };
    // Twice the size contains an aligned chunk. The memory before and behind it is unmapped.
    let double = map(2 * CHUNK_BYTES)?;
    let before = double.addr().get().next_multiple_of(CHUNK_BYTES) - double.addr().get();
    // SAFETY: the three parts make up the mapping, and only the middle one is kept.
    unsafe {
        let chunk = double.add(before);
        if before > 0 {
            unmap(double, before);
        }
        unmap(chunk.add(CHUNK_BYTES), CHUNK_BYTES - before);
        Some(chunk)
    }
}

/// Maps memory that is filled with zeros.
#[cfg(not(miri))]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a private anonymous mapping at an address of the system's choice touches no memory of
    // this process.
    let mapped = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) };
    NonNull::new(mapped.ok()?.cast())
}

/// Unmaps memory.
///
/// # Safety
/// The bytes were mapped by [`map`], and nothing refers to them.
#[cfg(not(miri))]
unsafe fn unmap(address: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise. After an error the memory stays mapped, and nothing can be done
    // about it.
    let _ = unsafe { rustix::mm::munmap(address.as_ptr().cast(), bytes) };
}

fn chunk_layout() -> Layout {
    Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES).expect("both are a power of two")
}
