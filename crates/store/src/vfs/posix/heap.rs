//! Returns memory that the allocator has freed but keeps.
//!
//! What must stay true: it is only a hint. With other allocators than glibc's it does nothing.
#![expect(unsafe_code, reason = "malloc_trim has no safe binding")]

use crate::vfs::buffer::free_kept;

/// Returns free heap memory, and that of buffers, to the operating system. glibc keeps what a
/// thread freed for later allocations of the same thread, without a limit. Memory that the block
/// cache gave up for memtables would then be taken twice.
pub fn give_back_free_memory() {
    free_kept();
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        // SAFETY: it takes no pointers, and any thread may call it at any time.
        let _whether_any_was = unsafe { libc::malloc_trim(0) };
    }
}
