//! Reads that may not go to the disk: what is not in memory fails them instead.
//!
//! What must stay true: only what an operation does itself is refused, on its own thread and until
//! it ends; the check stands where files are opened and read, behind all caches, so that what is in
//! memory pays nothing for it.

use std::cell::Cell;

use crate::base::error::{Error, Result};

thread_local! {
    static MEMORY_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Until this is dropped the thread reads no table from the disk.
pub struct MemoryOnly {
    outer: bool,
}

impl MemoryOnly {
    /// The guard, if it is wanted.
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

/// A table is about to be read from the disk.
pub fn check() -> Result<()> {
    if MEMORY_ONLY.get() { Err(Error::NotInMemory) } else { Ok(()) }
}
