//! The lower half of the engine: file formats, files, memtables, WAL and caches. Nothing here knows
//! a database.
//!
//! Only the crate `sateen` uses this crate, and its interface may change at any time. From the
//! bottom up:
//!
//! 1. [`base`]: keys, errors, clocks, locks, encodings.
//! 2. [`vfs`]: the file system interface; all I/O passes it.
//! 3. [`files`]: file names, compaction files, reclaiming space.
//! 4. [`block_cache`], [`table`], [`iter`]: sorted tables, and iterators made of them.
//! 5. [`batch`], [`memtable`], [`wal`]: the path of a write.
//! 6. [`manifest`]: the durable list of version edits.
//!
//! What must stay true: a module uses only those above it in this list, or beside it.
//! ARCHITECTURE.md has the exact table, which `cargo xtask tidy` checks.

#![expect(
    clippy::should_implement_trait,
    reason = "cursors whose `next` can fail or lends its item are no `Iterator`s"
)]

pub mod base;
pub mod batch;
pub mod block_cache;
pub mod files;
pub mod iter;
pub mod manifest;
pub mod memtable;
pub mod table;
pub mod vfs;
pub mod wal;
