//! Entries for the fuzzers in `/fuzz`: every decoder, given hostile bytes. Each must return: no
//! panic, no large allocation. Not part of the interface.

pub use crate::table::fuzz::{block, compaction_file, filter, seed, table};

/// A log.
pub fn wal(bytes: &[u8]) {
    crate::wal::fuzz(bytes);
}

/// A batch.
pub fn batch(bytes: &[u8]) {
    crate::write::batch::fuzz(bytes);
}

/// A manifest.
pub fn manifest(bytes: &[u8]) {
    crate::manifest::fuzz(bytes);
}

/// A version edit.
pub fn edit(bytes: &[u8]) {
    crate::manifest::fuzz_edit(bytes);
}
