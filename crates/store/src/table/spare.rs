//! Buffers that cursors leave to the next ones of their thread. A large buffer from the allocator
//! is new memory of the kernel each time, which costs more than the read into it.

use std::cell::RefCell;

use crate::vfs::AlignedBuffer;

/// Number of buffers that a thread keeps, and the largest one kept.
const BUFFERS_MAX: usize = 8;
const BYTES_MAX: usize = 1 << 20;

thread_local! {
    static SPARE: RefCell<Vec<AlignedBuffer>> = const { RefCell::new(Vec::new()) };
}

/// Returns a buffer that an earlier cursor of this thread left, or an empty one.
pub(super) fn take() -> AlignedBuffer {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Keeps a buffer for the thread's next cursor, unless it is too large or there are too many.
pub(super) fn give_back(buffer: AlignedBuffer) {
    if !(1..=BYTES_MAX).contains(&buffer.capacity()) {
        return;
    }
    // A thread that is ending cannot keep it, and frees it.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < BUFFERS_MAX {
            spare.push(buffer);
        }
    });
}
