//! The image of a table: a copy of its bytes, kept in memory, from which the table is read.
//!
//! What must stay true: an image does not change once its writer has finished. It consists of large
//! pieces that are mapped one by one, so that their memory returns to the system with the table, or
//! to [`SparePieces`]: a new mapping is a page fault for each page, which costs more than the copy
//! into it.

use std::sync::Arc;

use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Mutex, lock};
use crate::vfs::AlignedBuffer;

const PIECE_BYTES: usize = 1 << 20;

/// A copy of a table's bytes. Its writer appends to it, and then it never changes.
#[derive(Debug, Default)]
pub struct TableImage {
    pieces: Vec<AlignedBuffer>,
    length: usize,
    /// Whether the last piece was used before, so that all its memory exists.
    last_used_before: bool,
    spare: Arc<SparePieces>,
    /// Whether a block of it failed its checksum.
    damaged: AtomicBool,
}

/// Pieces of images that are gone, for the next images. At first it keeps none.
#[derive(Debug, Default)]
pub struct SparePieces(Mutex<Spare>);

#[derive(Debug, Default)]
struct Spare {
    pieces: Vec<AlignedBuffer>,
    /// Most pieces to keep.
    most: usize,
}

impl SparePieces {
    /// Keeps at most `bytes` from now on.
    pub fn limit(&self, bytes: u64) {
        let mut spare = lock(&self.0);
        spare.most = usize::try_from(bytes).unwrap_or(usize::MAX) / PIECE_BYTES;
        let kept = spare.pieces.len().min(spare.most);
        let freed = spare.pieces.split_off(kept);
        drop(spare);
        drop(freed);
    }

    fn take(&self) -> Option<AlignedBuffer> {
        lock(&self.0).pieces.pop()
    }

    /// Keeps as many of `pieces` as there is room for. The others are freed.
    fn give(&self, pieces: &mut Vec<AlignedBuffer>) {
        let mut spare = lock(&self.0);
        let room = spare.most.saturating_sub(spare.pieces.len());
        let freed = pieces.len().saturating_sub(room);
        spare.pieces.extend(pieces.drain(freed..));
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        lock(&self.0).pieces.len()
    }
}

impl Drop for TableImage {
    fn drop(&mut self) {
        self.spare.give(&mut self.pieces);
    }
}

impl TableImage {
    /// Returns an empty image, which takes pieces from `spare` and leaves its pieces there.
    pub fn of_spare(spare: Arc<SparePieces>) -> TableImage {
        TableImage {
            pieces: Vec::new(),
            length: 0,
            last_used_before: false,
            spare,
            damaged: AtomicBool::new(false),
        }
    }

    pub fn append(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = self.length % PIECE_BYTES;
            if at == 0 {
                let used = self.spare.take();
                self.last_used_before = used.is_some();
                let piece = used.unwrap_or_else(|| AlignedBuffer::with_capacity(PIECE_BYTES));
                self.pieces.push(piece);
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

    /// Returns the memory in use. The last piece counts only as far as it ever was filled.
    pub fn memory_bytes(&self) -> u64 {
        let page = if self.last_used_before { PIECE_BYTES } else { crate::files::PAGE_BYTES };
        (self.length.next_multiple_of(page) + size_of::<TableImage>()) as u64
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

    #[test]
    fn pieces_are_used_again_up_to_the_limit() {
        let spare = Arc::new(SparePieces::default());
        let image = |byte: u8, bytes: usize| {
            let mut image = TableImage::of_spare(spare.clone());
            image.append(&vec![byte; bytes]);
            image
        };
        drop(image(1, 3 * PIECE_BYTES));
        assert_eq!(spare.count(), 0, "at first none are kept");
        spare.limit(2 * PIECE_BYTES as u64 + 5);
        drop(image(1, 3 * PIECE_BYTES));
        assert_eq!(spare.count(), 2);

        let small = image(2, 5);
        assert_eq!(spare.count(), 1);
        assert!(small.memory_bytes() >= PIECE_BYTES as u64, "all of the piece exists");
        let (mut read, mut beyond) = ([0; 5], [0; 6]);
        assert!(small.read(0, &mut read) && read == [2; 5]);
        assert!(!small.read(0, &mut beyond), "what was there before is not part of it");
        let fresh = image(3, 2 * PIECE_BYTES);
        assert!(fresh.read(PIECE_BYTES as u64, &mut read) && read == [3; 5]);
        drop((small, fresh));
        assert_eq!(spare.count(), 2);
        spare.limit(PIECE_BYTES as u64);
        assert_eq!(spare.count(), 1);
    }
}
