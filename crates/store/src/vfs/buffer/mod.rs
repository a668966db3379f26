//! A byte buffer for direct I/O: its address and capacity are multiples of the alignment. The
//! writer of compaction files and sequential readers use it.
//!
//! Large buffers are mapped instead of allocated. They live as long as one table is merged. From
//! the allocator's heap they would lie between indexes and filters that stay, and the holes they
//! leave could not be returned (a third of the memory during a fill). A new mapping is a page fault
//! for each page, which costs more than what is read or written there. So a few MiB of mappings
//! serve again (`mappings`).
//!
//! What must stay true:
//!
//! - The storage never moves, so the aligned start that is computed once stays aligned.
//! - What a new buffer holds beyond its length is undefined: zeros, or what an earlier one held.

mod mappings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use super::{IoClass, VfsFile};

/// Required multiple of offsets, lengths and buffer addresses in direct I/O, in bytes.
pub const DIRECT_IO_ALIGNMENT: usize = 4096;

/// Smallest buffer that is mapped.
const MAPPED_MIN: usize = 64 << 10;

/// Frees the memory that is kept for the next buffers.
pub(super) fn free_kept() {
    mappings::KEPT.free();
}

/// Memory that is never resized.
enum Storage {
    Allocated(Box<[u8]>),
    /// It is there until it is dropped.
    Mapped(Option<MmapMut>),
}

impl Storage {
    fn new(bytes: usize) -> Storage {
        let mapped =
            if bytes >= MAPPED_MIN && !cfg!(miri) { mappings::KEPT.take(bytes) } else { None };
        // If no more mappings can be made, the heap may still have memory.
        match mapped {
            Some(mapped) => Storage::Mapped(Some(mapped)),
            None => Storage::Allocated(vec![0; bytes].into()),
        }
    }
}

impl Default for Storage {
    fn default() -> Storage {
        Storage::Allocated(Box::default())
    }
}

impl Deref for Storage {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Storage::Allocated(bytes) => bytes,
            Storage::Mapped(bytes) => bytes.as_deref().unwrap_or_default(),
        }
    }
}

impl DerefMut for Storage {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Storage::Allocated(bytes) => bytes,
            Storage::Mapped(bytes) => bytes.as_deref_mut().unwrap_or_default(),
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Storage::Mapped(bytes) = self
            && let Some(bytes) = bytes.take()
        {
            mappings::KEPT.give_back(bytes);
        }
    }
}

/// Bytes at an aligned address, up to a fixed capacity. The default buffer has capacity 0.
#[derive(Default)]
pub struct AlignedBuffer {
    /// Longer than the capacity by at least one alignment, so that an aligned start always fits.
    storage: Storage,
    start: usize,
    len: usize,
    capacity: usize,
}

impl AlignedBuffer {
    /// Returns a buffer for `capacity` bytes, rounded up to a multiple of the alignment. The system
    /// supplies a large buffer's pages only as they are filled.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> AlignedBuffer {
        let capacity = capacity.next_multiple_of(DIRECT_IO_ALIGNMENT);
        if capacity == 0 {
            return AlignedBuffer::default();
        }
        let storage = Storage::new(capacity + DIRECT_IO_ALIGNMENT);
        // Not `align_offset`: under Miri it may answer that it does not know.
        let address = storage.as_ptr().addr();
        let start = address.next_multiple_of(DIRECT_IO_ALIGNMENT) - address;
        AlignedBuffer { storage, start, len: 0, capacity }
    }

    /// Makes the capacity at least `capacity` bytes. If the buffer must grow, its content is lost.
    pub fn reserve(&mut self, capacity: usize) {
        if self.capacity < capacity {
            // Its memory may serve the larger one.
            *self = AlignedBuffer::default();
            *self = AlignedBuffer::with_capacity(capacity);
        }
    }

    /// Frees the memory and the content if the capacity exceeds `most` bytes.
    pub fn shrink_to(&mut self, most: usize) {
        if self.capacity > most {
            *self = AlignedBuffer::default();
        }
    }

    /// Returns the whole capacity, filled or not, for callers that keep the length themselves.
    #[inline]
    pub fn whole(&self) -> &[u8] {
        self.storage.get(self.start..self.start + self.capacity).unwrap_or_default()
    }

    /// Returns the whole capacity, to be filled.
    #[inline]
    pub fn whole_mut(&mut self) -> &mut [u8] {
        self.storage.get_mut(self.start..self.start + self.capacity).unwrap_or_default()
    }

    /// Returns the capacity in bytes.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that still fit.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.capacity - self.len
    }

    /// Returns the bytes. The slice starts at an aligned address.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.len]
    }

    /// Returns the bytes, to be changed in place.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }

    /// Sets the length to 0. The capacity stays.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends the part of `bytes` that fits, and returns its length.
    #[inline]
    pub fn extend_some(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.remaining());
        let end = self.start + self.len;
        self.storage[end..end + n].copy_from_slice(&bytes[..n]);
        self.len += n;
        n
    }

    /// Appends all of `bytes`.
    ///
    /// # Panics
    /// If they do not fit.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.remaining(), "the bytes do not fit into the aligned buffer");
        self.extend_some(bytes);
    }

    /// Appends zeros until the length is a multiple of `unit`, and returns their number.
    ///
    /// # Panics
    /// If they do not fit, which is impossible if `unit` divides the capacity.
    pub fn pad_to(&mut self, unit: usize) -> usize {
        let padded = self.len.next_multiple_of(unit);
        assert!(padded <= self.capacity, "the padding does not fit into the aligned buffer");
        let added = padded - self.len;
        let end = self.start + self.len;
        self.storage[end..end + added].fill(0);
        self.len = padded;
        added
    }

    /// Removes the first `n` bytes and moves the rest to the front.
    ///
    /// # Panics
    /// If there are fewer than `n`.
    pub fn drain_front(&mut self, n: usize) {
        assert!(n <= self.len, "cannot remove more bytes than the buffer holds");
        self.storage.copy_within(self.start + n..self.start + self.len, self.start);
        self.len -= n;
    }

    /// Sets the length. Bytes gained this way have their old content, and the caller fills them
    /// next.
    ///
    /// # Panics
    /// If `len` exceeds the capacity.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity, "the length exceeds the capacity of the aligned buffer");
        self.len = len;
    }

    /// Replaces the content by `length` bytes of `file` from `offset`, or fewer at the file's end.
    /// Returns their number. If `offset` and `length` are aligned, direct I/O needs no copy.
    ///
    /// # Panics
    /// If `length` exceeds the capacity.
    pub fn fill_from(
        &mut self,
        file: &dyn VfsFile,
        offset: u64,
        length: usize,
        class: IoClass,
    ) -> io::Result<usize> {
        self.set_len(length);
        let result = file.read_at(self.as_mut_slice(), offset, class);
        self.len = *result.as_ref().unwrap_or(&0);
        result
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer")
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
