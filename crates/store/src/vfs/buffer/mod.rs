//! A byte buffer whose address and capacity are multiples of the direct I/O alignment, for the
//! writer of compaction files and for sequential readers. What must stay true: the storage never
//! moves after it was made, so the aligned address found at birth stays aligned.
//!
//! Large buffers are mapped, and do not come from the allocator: they come and go with each table
//! that is merged, and between them the allocator would put indexes and filters that stay, so that
//! the holes that buffers leave cannot be given back (a third of the memory in a fill).

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use super::{IoClass, VfsFile};

/// What direct I/O asks of offsets, lengths and buffer addresses, in bytes.
pub const DIRECT_IO_ALIGNMENT: usize = 4096;

/// Buffers of this size and more are mapped.
const MAPPED_MIN: usize = 64 << 10;

/// Memory that is never resized.
enum Storage {
    Allocated(Box<[u8]>),
    Mapped(MmapMut),
}

impl Storage {
    fn new(bytes: usize) -> Storage {
        let mapped =
            if bytes >= MAPPED_MIN && !cfg!(miri) { MmapMut::map_anon(bytes).ok() } else { None };
        // Where no more mappings are to be had there may still be memory.
        mapped.map_or_else(|| Storage::Allocated(vec![0; bytes].into()), Storage::Mapped)
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
            Storage::Mapped(bytes) => bytes,
        }
    }
}

impl DerefMut for Storage {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Storage::Allocated(bytes) => bytes,
            Storage::Mapped(bytes) => bytes,
        }
    }
}

/// Bytes at an aligned address, up to a fixed capacity. The default has none.
#[derive(Default)]
pub struct AlignedBuffer {
    /// Longer than the capacity by one alignment.
    storage: Storage,
    start: usize,
    len: usize,
    capacity: usize,
}

impl AlignedBuffer {
    /// A buffer for `capacity` bytes, rounded up to a multiple of the alignment. The system hands
    /// out large buffers untouched: memory is used as far as the buffer is filled.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> AlignedBuffer {
        let capacity = capacity.next_multiple_of(DIRECT_IO_ALIGNMENT);
        if capacity == 0 {
            return AlignedBuffer::default();
        }
        let storage = Storage::new(capacity + DIRECT_IO_ALIGNMENT);
        // Not `align_offset`: an interpreter may answer that it does not know.
        let address = storage.as_ptr().addr();
        let start = address.next_multiple_of(DIRECT_IO_ALIGNMENT) - address;
        AlignedBuffer { storage, start, len: 0, capacity }
    }

    /// Makes it hold at least `capacity` bytes; what was in it is lost if it must grow.
    pub fn reserve(&mut self, capacity: usize) {
        if self.capacity < capacity {
            *self = AlignedBuffer::with_capacity(capacity);
        }
    }

    /// Gives the memory back, and what is in it, if it holds more than `most` bytes.
    pub fn shrink_to(&mut self, most: usize) {
        if self.capacity > most {
            *self = AlignedBuffer::default();
        }
    }

    /// All that it can hold, filled or not: for callers that keep count by themselves.
    #[inline]
    pub fn whole(&self) -> &[u8] {
        self.storage.get(self.start..self.start + self.capacity).unwrap_or_default()
    }

    /// All that it can hold, to be filled.
    #[inline]
    pub fn whole_mut(&mut self) -> &mut [u8] {
        self.storage.get_mut(self.start..self.start + self.capacity).unwrap_or_default()
    }

    /// How many bytes fit.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many bytes are in it.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if it holds nothing.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many more bytes fit.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.capacity - self.len
    }

    /// The bytes; the slice starts at an aligned address.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.len]
    }

    /// The bytes, to be changed in place.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }

    /// Empties it; the capacity stays.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends as much of `bytes` as fits and returns how much that was.
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
        assert!(bytes.len() <= self.remaining(), "an aligned buffer does not grow");
        self.extend_some(bytes);
    }

    /// Appends zeros until the length is a multiple of `unit`, and returns how many.
    ///
    /// # Panics
    /// If they do not fit, which cannot be while `unit` divides the capacity.
    pub fn pad_to(&mut self, unit: usize) -> usize {
        let padded = self.len.next_multiple_of(unit);
        assert!(padded <= self.capacity, "the padding goes beyond the capacity");
        let added = padded - self.len;
        let end = self.start + self.len;
        self.storage[end..end + added].fill(0);
        self.len = padded;
        added
    }

    /// Forgets the first `n` bytes and moves what is left of them to the front.
    ///
    /// # Panics
    /// If there are fewer than `n`.
    pub fn drain_front(&mut self, n: usize) {
        assert!(n <= self.len, "more to drain than there is");
        self.storage.copy_within(self.start + n..self.start + self.len, self.start);
        self.len -= n;
    }

    /// Sets the length. Bytes gained this way are whatever the buffer held before: for callers
    /// that fill them next.
    ///
    /// # Panics
    /// If `len` is beyond the capacity.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity, "an aligned buffer does not grow");
        self.len = len;
    }

    /// Replaces the contents by `length` bytes of `file` from `offset`, fewer at its end; returns
    /// how many. With `offset` and `length` aligned this costs no copy in direct I/O.
    ///
    /// # Panics
    /// If `length` is beyond the capacity.
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
