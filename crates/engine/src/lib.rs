//! Sateen: an embedded, ordered, persistent key-value store with a flat latency tail.
#![deny(missing_docs)]

mod background;
mod error;
mod files;
mod key;
mod manifest;
mod memtable;
mod options;
mod read;
mod sync;
mod table;
pub mod vfs;
mod wal;
mod write;

pub use error::{CorruptionKind, Error, Result};
pub use sateen_control::{ColumnFamilyId, ValueKind};
pub use write::batch::{
    BATCH_BYTES_MAX, BatchEntry, KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_BYTES_MAX_DEFAULT,
    WriteBatch, WriteBatchIter,
};
