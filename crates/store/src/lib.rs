//! The bytes of Sateen: formats, files, memtables and caches. Nothing here knows a database.
//!
//! This crate is the lower half of the engine `sateen`, which is its only user: its interface has
//! no promise of stability. From the bottom up:
//!
//! 1. [`base`]: keys, errors, clocks, locks, encodings.
//! 2. [`vfs`]: the one door to the disk.
//! 3. [`files`]: names, compaction files, giving bytes back.
//! 4. [`block_cache`], [`table`], [`iter`]: sorted tables, and iterators made of them.
//! 5. [`batch`], [`memtable`], [`wal`]: what a write passes on its way.
//! 6. [`manifest`]: the durable list of version edits.

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
