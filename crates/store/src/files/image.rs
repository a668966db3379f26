//! The image of a table: a copy of its bytes, kept in memory, from which the table is read.
//!
//! What must stay true: an image does not change once its writer has finished. It consists of large
//! pieces that are mapped one by one, so that their memory returns to the system with the table.

use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::vfs::AlignedBuffer;

const PIECE_BYTES: usize = 1 << 20;

/// A copy of a table's bytes. Its writer appends to it, and then it never changes.
#[derive(Debug, Default)]
pub struct TableImage {
    pieces: Vec<AlignedBuffer>,
    length: usize,
    /// Whether a block of it failed its checksum.
    damaged: AtomicBool,
}

impl TableImage {
    pub fn append(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = self.length % PIECE_BYTES;
            if at == 0 {
                self.pieces.push(AlignedBuffer::with_capacity(PIECE_BYTES));
            }
            let (now, later) = rest.split_at(rest.len().min(PIECE_BYTES - at));
            let piece = self.pieces.last_mut().map(AlignedBuffer::whole_mut).unwrap_or_default();
            if let Some(target) = piece.get_mut(at..at + now.len()) {
                target.copy_from_slice(now);
            }
            self.length += now.len();
            rest = later;
        }
    }

    /// Marks the image as damaged, so that it is not read again. Returns false if it was marked
    /// before.
    pub fn give_up(&self) -> bool {
        !self.damaged.swap(true, Ordering::Relaxed)
    }

    /// Copies the bytes at `offset` to `target`. Returns false if the image does not have all of
    /// them.
    pub fn read(&self, offset: u64, target: &mut [u8]) -> bool {
        if self.damaged.load(Ordering::Relaxed) {
            return false;
        }
        let Ok(mut offset) = usize::try_from(offset) else { return false };
        if offset.checked_add(target.len()).is_none_or(|end| end > self.length) {
            return false;
        }
        let mut rest = target;
        while !rest.is_empty() {
            let at = offset % PIECE_BYTES;
            let (now, later) = rest.split_at_mut(rest.len().min(PIECE_BYTES - at));
            let piece = self.pieces.get(offset / PIECE_BYTES).map(AlignedBuffer::whole);
            match piece.and_then(|piece| piece.get(at..at + now.len())) {
                Some(bytes) => now.copy_from_slice(bytes),
                None => return false,
            }
            offset += now.len();
            rest = later;
        }
        true
    }

    /// Returns the memory in use. The last piece counts only as far as it is filled.
    pub fn memory_bytes(&self) -> u64 {
        (self.length.next_multiple_of(crate::files::PAGE_BYTES) + size_of::<TableImage>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_bytes_are_read_at_any_place() {
        let bytes: Vec<u8> = (0..PIECE_BYTES * 2 + 5000).map(|n| (n % 251) as u8).collect();
        let mut image = TableImage::default();
        for part in bytes.chunks(70_001) {
            image.append(part);
        }
        for (from, length) in [
            (0, 1),
            (PIECE_BYTES - 3, 7),
            (5, PIECE_BYTES + 9),
            (bytes.len() - 4, 4),
            (bytes.len(), 0),
        ] {
            let mut read = vec![0; length];
            assert!(image.read(from as u64, &mut read), "{from}, {length}");
            assert_eq!(read, bytes[from..from + length], "{from}, {length}");
        }
        for (from, length) in [(bytes.len() - 4, 5), (bytes.len() + 1, 0), (usize::MAX, 2)] {
            assert!(!image.read(from as u64, &mut vec![0; length]), "{from}, {length}");
        }
        let beyond = image.memory_bytes() - bytes.len() as u64;
        assert!(beyond < 5000, "{beyond}");
        assert!(image.give_up() && !image.give_up() && !image.read(0, &mut [0]));
    }
}
