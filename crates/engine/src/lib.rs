//! Sateen: an embedded, ordered, persistent key-value store with a flat latency tail.
#![deny(missing_docs)]

mod background;
mod behind;
mod check;
mod checkpoint;
#[doc(hidden)]
pub mod clock;
mod column_family;
mod compaction_filter;
mod core;
mod db;
mod destroy;
pub mod dump;
mod error;
mod events;
mod files;
#[doc(hidden)]
pub mod fuzz;
mod held;
mod ingest;
mod iter;
mod key;
mod live_files;
mod manifest;
mod memtable;
mod merge;
pub mod metrics;
mod names;
mod observe;
mod options;
mod perf;
mod plant;
mod prefix;
mod read;
mod recovery;
mod repair;
mod secondary;
mod snapshot;
mod sync;
mod table;
pub mod timeline;
mod ttl;
mod updates;
pub mod vfs;
mod wal;
mod write;
mod write_buffers;
mod xxh3;

#[doc(hidden)]
pub use background::interfere::Interference;
pub use background::scrub::ScrubReport;
pub use background::state::{Health, HealthListener};
pub use check::{CheckReport, check, check_with};
pub use compaction_filter::{
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, Decision, Filtering,
};
pub use core::compact_files::CompactFilesOptions;
pub use db::{ColumnFamily, DEFAULT_COLUMN_FAMILY, Db, LiveTable, WaitForCompactOptions};
pub use destroy::{DestroyReport, destroy, destroy_with};
pub use error::{CorruptionKind, Error, Result};
pub use events::{
    CompactionInfo, ErrorReason, EventListener, FlushInfo, IngestInfo, Listeners, SealInfo,
    StallInfo, StallState,
};
#[doc(hidden)]
pub use held::Held;
pub use ingest::{IngestOptions, SstFileInfo, SstFileWriter};
pub use iter::Iter;
pub use live_files::{LiveFile, LiveFileKind, LiveFilesOptions};
pub use merge::{MergeOperator, Merging};
pub use names::{bytes_of_text, shown, shown_path, text_of_bytes};
pub use observe::PROPERTIES;
pub use options::{
    ColumnFamilyOptions, CompactRangeOptions, CompactionPriority, CompactionStyle, Compression,
    FlushOptions, OptionInfo, Options, Preemption, ReadOptions, Regions, StatisticsLevel,
    StoredOptions, Tuner, WalMode, WalRecovery, WriteController, WriteOptions,
};
pub use perf::{PerfContext, PerfLevel, PerfMetric};
pub use prefix::{PrefixExtractor, Prefixing};
pub use read::block_cache::SharedBlockCache;
pub use read::super_version::PinnedSlice;
pub use read::table_filter::TableFilter;
pub use repair::{
    LostRange, RepairReport, repair, repair_families_with, repair_giving_up_unreadable, repair_with,
};
pub use sateen_control::{ColumnFamilyId, Comparator, ValueKind};
pub use snapshot::Snapshot;
pub use ttl::WallClock;
pub use updates::Updates;
pub use write::batch::{
    BATCH_BYTES_MAX, BatchEntry, BatchItem, BatchItems, KEY_BYTES_MAX, VALUE_BYTES_MAX,
    VALUE_BYTES_MAX_DEFAULT, WriteBatch, WriteBatchIter,
};
pub use write_buffers::WriteBufferManager;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
