//! Sateen: an embedded, ordered, persistent key-value store with a flat latency tail.
#![deny(missing_docs)]

mod background;
mod behind;
mod check;
mod checkpoint;
mod column_family;
mod compaction_filter;
mod core;
mod db;
mod destroy;
pub mod dump;
mod events;
mod found;
#[doc(hidden)]
pub mod fuzz;
mod held;
mod ingest;
mod iter;
mod live_files;
mod merge;
pub mod metrics;
mod observe;
mod options;
mod read;
mod recovery;
mod repair;
mod secondary;
mod snapshot;
pub mod timeline;
mod tree;
mod ttl;
mod updates;
mod write;
mod write_buffers;

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
pub use observe::PROPERTIES;
pub use options::{
    ColumnFamilyOptions, CompactRangeOptions, CompactionPriority, CompactionStyle, FlushOptions,
    OptionInfo, Options, Preemption, ReadOptions, Regions, StatisticsLevel, StoredOptions, Tuner,
    WalMode, WalRecovery, WriteController, WriteOptions,
};
pub use read::super_version::PinnedSlice;
pub use read::table_filter::TableFilter;
pub use repair::{
    LostRange, RepairReport, repair, repair_families_with, repair_giving_up_unreadable, repair_with,
};
pub use sateen_control::{ColumnFamilyId, Comparator, ValueKind};
#[doc(hidden)]
pub use sateen_store::base::clock;
pub use sateen_store::base::error::{CorruptionKind, Error, Result};
pub use sateen_store::base::names::{bytes_of_text, shown, shown_path, text_of_bytes};
pub use sateen_store::base::perf::{PerfContext, PerfLevel, PerfMetric};
pub use sateen_store::base::prefix::{PrefixExtractor, Prefixing};
pub use sateen_store::batch::{
    BATCH_BYTES_MAX, BatchEntry, BatchItem, KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_BYTES_MAX_DEFAULT,
};
pub use sateen_store::block_cache::SharedBlockCache;
#[doc(hidden)]
pub use sateen_store::pass_on;
pub use sateen_store::table::Compression;
pub use sateen_store::vfs;
pub use snapshot::Snapshot;
pub use ttl::WallClock;
pub use updates::Updates;
pub use write::batch::{BatchItems, WriteBatch, WriteBatchIter};
pub use write_buffers::WriteBufferManager;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
