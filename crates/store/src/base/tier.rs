//! Reads that may not use the disk: they fail if the data is not in memory.
//!
//! What must stay true: only reads of the thread's own operation are refused, and only until it
//! ends. The check stands where files are opened and read, behind all caches. Data in memory
//! therefore pays nothing for it.

use std::cell::Cell;

use crate::base::error::{Error, Result};

thread_local! {
    static MEMORY_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Forbids this thread to read tables from the disk until it is dropped.
pub struct MemoryOnly {
    outer: bool,
}

impl MemoryOnly {
    /// Returns the guard if it is `wanted`.
    #[inline]
    pub fn when(wanted: bool) -> Option<MemoryOnly> {
        if wanted { Some(MemoryOnly::enter()) } else { None }
    }

    #[cold]
    fn enter() -> MemoryOnly {
        MemoryOnly { outer: MEMORY_ONLY.replace(true) }
    }
}

impl Drop for MemoryOnly {
    fn drop(&mut self) {
        MEMORY_ONLY.set(self.outer);
    }
}

/// Checks that this thread may read a table from the disk.
pub fn check() -> Result<()> {
    if MEMORY_ONLY.get() { Err(Error::NotInMemory) } else { Ok(()) }
}
