//! Detects that this process is a copy (`fork`) of the process that made an object.
//!
//! What must stay true: a copy has the memory and descriptors of its parent, but none of its
//! threads. The files belong to the parent, and a copy that unlocks, deletes or writes them
//! destroys the database.
#![expect(unsafe_code, reason = "pthread_atfork has no safe binding")]

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of forks between the first process that called this and this process. A
/// process and its copy get different numbers.
pub fn forks() -> u64 {
    #[cfg(not(miri))]
    {
        static COUNTING: Once = Once::new();
        COUNTING.call_once(|| {
            // SAFETY: the handler only counts, which is allowed directly after a fork. If memory
            // runs out, copies are not detected.
            let _no_memory = unsafe { libc::pthread_atfork(None, None, Some(copied)) };
        });
    }
    FORKS.load(Ordering::Relaxed)
}

#[cfg(not(miri))]
extern "C" fn copied() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
