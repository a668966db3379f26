//! Memory whose address is a multiple of the page size, as direct I/O wants it, without unsafe
//! code: a longer allocation of which the part behind the first page boundary is used.

use super::PAGE_BYTES;

/// A growable buffer on a page boundary. Growing gives up the contents.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedBuffer {
    /// A buffer of `capacity` bytes.
    pub(crate) fn with_capacity(capacity: usize) -> AlignedBuffer {
        let bytes = vec![0; capacity + PAGE_BYTES - 1];
        let start = bytes.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES - 1);
        AlignedBuffer { bytes, start }
    }

    /// How many bytes it holds.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len().saturating_sub(PAGE_BYTES - 1)
    }

    /// Makes it hold at least `capacity` bytes; the contents are lost if it must grow.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        if self.capacity() < capacity {
            *self = AlignedBuffer::with_capacity(capacity.next_multiple_of(PAGE_BYTES));
        }
    }

    /// Gives the memory back if it holds more than `most` bytes.
    pub(crate) fn shrink_to(&mut self, most: usize) {
        if self.capacity() > most {
            *self = AlignedBuffer::default();
        }
    }

    /// All of it: `capacity` bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..self.start + self.capacity()).unwrap_or_default()
    }

    /// All of it, to be filled.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let end = self.start + self.capacity();
        self.bytes.get_mut(self.start..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_page_and_holds_what_was_asked() {
        let mut buffer = AlignedBuffer::default();
        assert_eq!(buffer.capacity(), 0);
        assert!(buffer.bytes().is_empty());
        for capacity in [1, 4095, 4096, 4097, 1 << 20] {
            buffer.reserve(capacity);
            assert!(buffer.bytes().len() >= capacity);
            assert_eq!(buffer.bytes().len(), buffer.capacity());
            assert_eq!(AlignedBuffer::with_capacity(capacity).bytes().len(), capacity);
            assert_eq!(buffer.bytes_mut().as_ptr().align_offset(PAGE_BYTES), 0);
        }
        buffer.shrink_to(1 << 20);
        assert!(buffer.capacity() >= 1 << 20);
        buffer.shrink_to(4096);
        assert_eq!(buffer.capacity(), 0);
    }
}
