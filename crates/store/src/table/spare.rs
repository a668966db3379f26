//! Buffers that cursors leave to the next ones of their thread. A large buffer from the allocator
//! is new memory of the kernel each time, which costs more than the read into it.

use std::cell::RefCell;

use super::compression::Decompressor;
use crate::vfs::AlignedBuffer;

/// Number of cursors whose buffers a thread keeps, and the largest buffer kept.
const SPARE_BUFFERS_MAX: usize = 8;
const SPARE_BYTES_MAX: usize = 2 << 20;

thread_local! {
    static SPARE: RefCell<Vec<Buffers>> = const { RefCell::new(Vec::new()) };
}

/// The buffers of a cursor that reads in chunks. A job reads many small tables with one cursor
/// each. The thread passes the buffers on, so that they are not zeroed for every table.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) chunk: AlignedBuffer,
    pub(super) decompressed: Vec<u8>,
    pub(super) decompressor: Decompressor,
}

impl Buffers {
    /// Takes buffers that an earlier cursor of this thread left, or empty ones.
    pub(super) fn take() -> Buffers {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// Keeps the buffers for the thread's next cursor, unless they are too large or too many.
    pub(super) fn give_back(self) {
        let worth = self.chunk.capacity() > 0
            && self.chunk.capacity() <= SPARE_BYTES_MAX
            && self.decompressed.capacity() <= SPARE_BYTES_MAX;
        if worth {
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
