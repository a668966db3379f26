//! Memory that was freed, and that the allocator keeps.
#![expect(unsafe_code, reason = "malloc_trim has no safe binding")]

/// Gives what is free back to the operating system. The C library of most systems keeps what a
/// thread has freed for that thread's next wants, however much it is: memory that the cache gave
/// up for memtables would be taken twice. With other allocators nothing happens.
pub fn give_back_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        // SAFETY: it takes no pointers, and any thread may call it at any time.
        let _whether_any_was = unsafe { libc::malloc_trim(0) };
    }
}
