//! Sateen: an embedded, ordered, persistent key-value store with a flat latency tail.
#![deny(missing_docs)]

mod background;
mod error;
mod files;
mod key;
mod manifest;
mod memtable;
pub mod metrics;
mod options;
mod read;
mod sync;
mod table;
pub mod vfs;
mod wal;
mod write;

pub use error::{CorruptionKind, Error, Result};
pub use options::{
    ColumnFamilyOptions, CompactRangeOptions, CompactionPriority, CompactionStyle, Compression,
    FlushOptions, OptionInfo, Options, ReadOptions, StatisticsLevel, WalMode, WalRecovery,
    WriteController, WriteOptions,
};
