//! Detects that this process is a copy (`fork`) of the process that made an object.
//!
//! A copy has the memory and the descriptors of its parent, but none of its threads. The files
//! belong to the parent: a copy that unlocks, deletes or writes them destroys the database.
#![expect(unsafe_code, reason = "pthread_atfork has no safe binding")]

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);

/// How often this process and those that it is a copy of were copied since this was called first.
/// It differs between a process and its copy.
pub fn forks() -> u64 {
    #[cfg(not(miri))]
    {
        static COUNTING: Once = Once::new();
        COUNTING.call_once(|| {
            // SAFETY: the function does nothing but count, which a copy may do at once. Without
            // memory for it copies are not told apart, as if this were not there.
            let _no_memory = unsafe { libc::pthread_atfork(None, None, Some(copied)) };
        });
    }
    FORKS.load(Ordering::Relaxed)
}

#[cfg(not(miri))]
extern "C" fn copied() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
