//! What cursors leave to the next ones of their thread: the decompressor, which is large, and the
//! buffer that it fills. Chunks serve again by themselves (`vfs::buffer`).

use std::cell::RefCell;

use super::compression::Decompressor;
use crate::vfs::AlignedBuffer;

/// Number of cursors whose decompressors a thread keeps, and the largest buffer kept.
const SPARE_BUFFERS_MAX: usize = 8;
const SPARE_BYTES_MAX: usize = 2 << 20;

thread_local! {
    static SPARE: RefCell<Vec<Buffers>> = const { RefCell::new(Vec::new()) };
}

/// The buffers of a cursor that reads in chunks. A job reads many small tables with one cursor
/// each.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) chunk: AlignedBuffer,
    pub(super) decompressed: Vec<u8>,
    pub(super) decompressor: Decompressor,
}

impl Buffers {
    /// Takes what an earlier cursor of this thread left, or empty buffers.
    pub(super) fn take() -> Buffers {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// Keeps the decompressor for the thread's next cursor if it was used, unless its buffer is too
    /// large or there are too many.
    pub(super) fn give_back(mut self) {
        self.chunk = AlignedBuffer::default();
        if (1..=SPARE_BYTES_MAX).contains(&self.decompressed.capacity()) {
            // A thread that is ending cannot keep the buffers, and frees them.
            let _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < SPARE_BUFFERS_MAX {
                    spare.push(self);
                }
            });
        }
    }
}
