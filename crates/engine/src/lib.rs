//! Sateen is an embedded, ordered, persistent key-value store: an LSM-tree like RocksDB, with a
//! flat latency tail. Flushes and compactions use the disk bandwidth that clients leave, so the
//! slowest requests stay fast. Keys and values are bytes.
//!
//! # Open, write, read
//!
//! ```
//! use sateen::{Db, Options};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path();
//! let db = Db::open(path, Options::default())?;
//! db.put("fig", "1")?;
//! assert_eq!(db.get("fig")?.as_deref(), Some(&b"1"[..]));
//! db.delete("fig")?;
//! db.close()?;
//! # Ok::<(), sateen::Error>(())
//! ```
//!
//! A [`Db`] is cheap to clone. All threads may use it at once: handles, snapshots, iterators,
//! batches and options are `Send` and `Sync`.
//!
//! # Iterate
//!
//! [`Db::range`], [`Db::prefix`] and [`Db::iter`] return an [`Iter`], an iterator of Rust that runs
//! from both ends. Its items are `Result<(key, value)>`.
//!
//! ```
//! # let directory = tempfile::tempdir().unwrap();
//! # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
//! # for key in ["user/1", "user/2", "user/3", "visit"] { db.put(key, "")?; }
//! for entry in db.range("user/2"..)? {
//!     let (key, value) = entry?;
//!     println!("{key:?} = {value:?}");
//! }
//! let newest = db.prefix("user/")?.next_back().transpose()?;
//! assert_eq!(newest.unwrap().0, b"user/3");
//!
//! let snapshot = db.snapshot(); // all column families at one moment
//! db.delete_range("user/", "user0")?;
//! assert_eq!(db.at(&snapshot).prefix("user/")?.rev().count(), 3);
//! # Ok::<(), sateen::Error>(())
//! ```
//!
//! An [`Iter`] copies each key and value once. A [`Cursor`] lends them without a copy, and seeks.
//!
//! # Column families and batches
//!
//! A [`ColumnFamily`] has keys, options and memtables of its own. Its handle has the methods of
//! [`Db`]. A [`WriteBatch`] is applied as a whole or not at all, across column families.
//!
//! ```
//! use sateen::{ColumnFamilyOptions, WriteBatch, WriteOptions};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
//! let loans = db.create_column_family("loans", ColumnFamilyOptions::default())?;
//! loans.put("walden", "Ishmael")?;
//!
//! let mut batch = WriteBatch::new();
//! batch.put("walden", "returned")?;
//! batch.to(&loans).delete("walden")?;
//! db.write(&batch, &WriteOptions::sync())?; // durable when it returns
//! # Ok::<(), sateen::Error>(())
//! ```
//!
//! Options of single calls: [`Db::reading`] and [`Db::writing`] take a [`ReadOptions`] or
//! [`WriteOptions`] and have the same methods again; so do those of a [`ColumnFamily`].
//!
//! # Options
//!
//! [`Options`] is a struct with public fields and a default for each. [`Options::profile`] starts
//! from the settings of another store, [`Options::set`] takes text, and [`Db::set_options`] changes
//! a running database.
//!
//! ```
//! use sateen::{Options, WalMode};
//!
//! let options = Options {
//!     block_cache_bytes: 256 << 20,
//!     wal: WalMode::SyncEachWrite,
//!     ..Options::default()
//! };
//! options.validate()?;
//! # Ok::<(), sateen::Error>(())
//! ```
//!
//! # Errors
//!
//! Every error is an [`Error`]: it names the file, option or key, and says why. [`Error::retry`]
//! says whether the same call may succeed later, [`Error::is_corruption`] whether bytes are
//! damaged, [`Error::is_environment`] whether the operating system refused something.
//!
//! # Features
//!
//! | feature | default | effect |
//! | --- | --- | --- |
//! | `zstd` | on | compression with zstd; it compiles C code. LZ4 is always there |
//!
//! Sateen runs on Linux on 64-bit machines. On other systems the build stops with an error.
//!
//! # Where to read on
//!
//! - [`Db`]: all operations; [`Db::metrics`] and [`Db::timeline`]: what happened, and why it was
//!   slow
//! - [`Db::transaction`], [`Transaction`], [`WriteBatchWithIndex`]: reads and writes that take
//!   effect together
//! - [`MergeOperator`], [`CompactionFilter`], [`Comparator`], [`EventListener`]: code of yours that
//!   the engine calls
//! - [`Db::checkpoint`], [`BackupEngine`], [`Db::ingest`], [`Db::bulk_load`],
//!   [`Db::updates_since`], [`Db::open_secondary`]: data in and out
//! - [`Db::start_trace`], [`Replayer`]: the calls of a service, recorded and made again
//! - [`Db::start_block_trace`], [`Db::start_io_trace`]: reads of blocks and calls on files,
//!   recorded
//! - [`check`], [`repair`], [`Db::scrub`]: damage
//! - [`vfs`]: file systems, one of them in memory for tests
//! - The pages of the repository: the command, the C interface, formats, decisions, benchmarks
#![deny(missing_docs)]

mod admission;
mod background;
mod backup;
mod batch;
mod core;
mod db;
mod entry;
mod environment;
mod events;
pub mod explain;
#[cfg(any(test, feature = "test-support"))]
#[doc(hidden)]
pub mod fuzz;
mod health;
mod inspection;
mod live_table;
pub mod metrics;
mod open;
mod operators;
mod options;
mod read;
mod replay;
mod runtime;
mod secondary;
mod snapshot;
pub mod timeline;
mod timestamps;
mod tools;
mod trace;
mod tree;
mod ttl;
mod txn;
mod write;

pub use admission::space::SpaceManager;
pub use admission::write_buffers::WriteBufferManager;
pub use background::compaction::chosen::CompactFilesOptions;
pub use background::scrub::ScrubReport;
pub use backup::{
    BackupEngine, BackupInfo, BackupListener, BackupProgress, BackupReader, BackupStore,
    BackupWriter, CreateBackupOptions, DirectoryStore, RestoreOptions, VerifyBackupOptions,
    VerifyBackupReport,
};
pub use batch::{BatchItems, WriteBatch, WriteBatchIter};
pub use db::batch::FamilyBatch;
pub use db::bytes::Bytes;
pub use db::calls::{Reading, Writing};
pub use db::cursor::Cursor;
pub use db::family::ColumnFamily;
pub use db::ingest::{BulkLoad, BulkPart, IngestOptions, SstFileInfo, SstFileWriter};
pub use db::inspect::{Inspector, set_inspector};
pub use db::iter::{Iter, KeyRange};
pub use db::listeners::EventListener;
pub use db::live_files::{LiveFile, LiveFileKind, LiveFilesOptions};
pub use db::properties::PROPERTIES;
pub use db::updates::Updates;
pub use db::{Db, WaitForCompactOptions};
pub use events::{
    CompactionInfo, ErrorReason, FlushInfo, IngestInfo, Listeners, SealInfo, StallInfo, StallState,
    ValueFileInfo,
};
pub use health::{Health, HealthListener};
pub use inspection::Inspection;
pub use live_table::LiveTable;
pub use open::OpenAndCompactOptions;
pub use operators::compaction_filter::{
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, Decision, Filtering,
};
pub use operators::compaction_service::{
    CompactionService, RemoteCompaction, RemoteCompactionEnd, RemoteCompactionInfo,
    RemoteCompactions,
};
pub use operators::merge::{MergeOperator, Merging};
pub use operators::wal_filter::{WalDecision, WalFamily, WalFilter, WalFiltering, WalRecord};
pub use operators::wall_clock::WallClock;
pub use options::logger::Logger;
pub use options::table_filter::TableFilter;
pub use options::{
    ColumnFamilyOptions, CompactRangeOptions, CompactionPriority, CompactionStyle,
    DEFAULT_COLUMN_FAMILY, FlushOptions, LogLevel, OptionInfo, Options, Preemption, RateLimitMode,
    ReadOptions, Regions, StatisticsLevel, StopStyle, StoredOptions, TablePath, Tuner, TunerBatch,
    WalMode, WalRecovery, WriteController, WriteOptions,
};
pub use read::lookup::PinnedSlice;
pub use replay::{ReplayOptions, ReplaySummary, Replayed, Replayer};
pub use runtime::{DatabaseTotals, DeviceMetrics, Runtime, RuntimeBuilder, RuntimeMetrics};
pub use sateen_control::{ColumnFamilyId, Comparator, ValueKind};
pub use sateen_store::base::error::{CorruptionKind, Error, LockWait, Result};
pub use sateen_store::base::names::{bytes_of_text, shown, shown_path, text_of_bytes};
/// ```
/// use sateen::{PerfContext, PerfLevel, PerfMetric};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// PerfLevel::Counts.set();
/// PerfContext::reset();
/// db.put("key", "value")?;
/// db.get("key")?;
/// let did = PerfContext::of_thread();
/// assert_eq!(did.get(PerfMetric::GetFromMemtableCount), 1);
/// assert_eq!(did.get(PerfMetric::GetReadBytes), 5);
/// println!("{did}");
/// PerfLevel::Off.set();
/// # Ok::<(), sateen::Error>(())
/// ```
pub use sateen_store::base::perf::PerfContext;
pub use sateen_store::base::perf::{PerfLevel, PerfMetric};
pub use sateen_store::base::prefix::{PrefixExtractor, Prefixing};
/// A loop that retries a call while the error says that this may help:
///
/// ```
/// use std::time::Duration;
///
/// use sateen::{Db, Error, Options, Result, Retry, WriteOptions};
///
/// fn with_retries<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
///     for _ in 0..10 {
///         match call().map_err(|error| (error.retry(), error)) {
///             Ok(done) => return Ok(done),
///             Err((Retry::After(wait), _)) => std::thread::sleep(wait),
///             Err((Retry::Later, _)) => std::thread::sleep(Duration::from_millis(50)),
///             Err((_, error)) => return Err(error),
///         }
///     }
///     call()
/// }
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = Db::open(directory.path(), Options::default())?;
/// let at_once = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
/// with_retries(|| db.writing(at_once.clone()).put("fig", "1"))?;
/// assert!(Error::TimedOut("the flush").is_retryable());
/// assert!(!Error::Closed.is_retryable());
/// # Ok::<(), Error>(())
/// ```
pub use sateen_store::base::retry::Retry;
pub use sateen_store::batch::{
    BATCH_BYTES_MAX, BatchEntry, BatchItem, KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_BYTES_MAX_DEFAULT,
};
/// ```
/// use sateen::{Db, Options, SharedBlockCache};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let cache = SharedBlockCache::new(64 << 20);
/// let options = Options { shared_block_cache: Some(cache.clone()), ..Options::default() };
/// let users = Db::open(directory.path().join("users"), options.clone())?;
/// let orders = Db::open(directory.path().join("orders"), options)?;
/// assert_eq!(cache.capacity(), 64 << 20);
/// # Ok::<(), sateen::Error>(())
/// ```
pub use sateen_store::block_cache::SharedBlockCache;
#[doc(hidden)]
pub use sateen_store::pass_on;
pub use sateen_store::table::Compression;
pub use sateen_store::vfs;
pub use snapshot::Snapshot;
pub use timestamps::entry::timestamped_entry;
pub use timestamps::{Timestamped, TimestampedCursor, TimestampedFamily, TimestampedTransaction};
pub use tools::check::{CheckReport, check, check_with};
pub use tools::destroy::{DestroyReport, destroy, destroy_with};
pub use tools::dump;
pub use tools::repair::{
    LostRange, RepairListener, RepairOptions, RepairReport, repair, repair_as,
    repair_families_with, repair_with,
};
pub use trace::{
    BlockCaller, BlockFound, BlockKind, BlockPoint, BlockTraceOptions, BlockTraceReader,
    BlockTraceRecord, IoTraceOptions, IoTraceReader, IoTraceRecord, TraceCall, TraceKinds,
    TraceOptions, TraceReader, TraceRecord, TraceSeek, TraceSummary, TraceWriter,
};
pub use txn::batch_with_index::{
    BatchReading, BatchValue, FamilyBatchWithIndex, WriteBatchWithIndex,
};
pub use txn::transaction::{FamilyTransaction, Transaction, TransactionOptions};

/// For simulators: what the control plane (`sateen-control`) is told of the options of a database.
/// A simulator that drives the control plane by itself starts from [`Options`] and converts them
/// here, so that options, limits and profiles are the engine's.
///
/// ```
/// use sateen::{Options, control_options};
///
/// let options = Options::profile("vlsm")?;
/// let told = control_options::column_family(&options, &options.column_family);
/// assert!(told.leveled.level0_fifo);
/// # Ok::<(), sateen::Error>(())
/// ```
pub mod control_options {
    pub use crate::options::control::{column_family, database};
}

/// Items for tests of the engine, behind the feature `test-support`. They carry no promise of
/// stability.
#[cfg(any(test, feature = "test-support"))]
pub mod test_support {
    pub use sateen_store::base::clock;

    pub use crate::background::driver::interfere::Interference;
    pub use crate::background::held::Held;
    pub use crate::fuzz;
}

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of the page about transactions run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/transactions.md")]
struct Transactions;

/// The examples of the page about replaying run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/replaying.md")]
struct Replaying;

/// The examples of the page about traces of blocks run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/block-traces.md")]
struct BlockTraces;

/// The examples of the page about the Rust interface run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust_api.md")]
struct RustApi;
