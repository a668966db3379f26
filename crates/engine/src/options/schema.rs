//! The schema of options: each row defines one option, everything about it, once. The order is that
//! of lists and of the OPTIONS file.

use std::path::PathBuf;
use std::time::Duration;

use sateen_control::Comparator;
use sateen_store::base::error::Result;
use sateen_store::base::prefix::Prefixing;
use sateen_store::block_cache::SharedBlockCache;
use sateen_store::table::Compression;

use super::choices::{
    CompactionPriority, CompactionStyle, ComparatorText, LogLevel, Preemption, PrefixText,
    RateLimitMode, StatisticsLevel, StopStyle, Tuner, TunerBatch, WalMode, WalRecovery, WalUnit,
    WriteController,
};
use super::define::{OptionInfo, option_struct};
use super::limits::{Above, Any, Growing, Limits, Told};
use super::logger::Logger;
use super::lookup::out_of_limits;
use super::paths::{PathList, TablePath};
use super::profile;
use super::regions::{Regions, RegionsText};
use super::text::{Bytes, Choice, ChoiceList, Count, Flag, Ratio, Span, Text, Unit};
use super::{GIB, KIB, MIB};
use crate::admission::space::SpaceManager;
use crate::admission::write_buffers::WriteBufferManager;
use crate::events::Listeners;
use crate::health::HealthListener;
use crate::operators::compaction_filter::Filtering;
use crate::operators::compaction_service::RemoteCompactions;
use crate::operators::merge::Merging;
use crate::operators::wal_filter::WalFiltering;
use crate::operators::wall_clock::WallClock;
use crate::runtime::Runtime;

option_struct! {
    /// Options of a whole database, and through [`Options::column_family`] those of its column
    /// families. Start from [`Options::default`] or [`Options::profile`] and change fields. Options
    /// that come as text are set by [`Options::set`].
    ///
    /// ```
    /// use sateen::{ColumnFamilyOptions, Options, WalMode};
    ///
    /// let mut options = Options {
    ///     block_cache_bytes: 256 << 20,
    ///     wal: WalMode::SyncEachWrite,
    ///     column_family: ColumnFamilyOptions {
    ///         memtable_bytes: 32 << 20,
    ///         ..ColumnFamilyOptions::default()
    ///     },
    ///     ..Options::default()
    /// };
    /// options.set("memtable_bytes", "128MiB")?;
    /// assert_eq!(options.get("memtable_bytes")?, "128MiB");
    /// assert!(Options { background_thread_nice: 99, ..options }.validate().is_err());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub struct Options, column_family = false {
        "Opening":
        /// The profile that the values started from. Setting it replaces all options by those of
        /// the profile, so it comes first in a list.
        profile: String = profile::DEFAULT.to_owned(), Text, fixed, none;
        /// Create the database if the directory has none. Without it such an open fails.
        create_if_missing: bool = true, Flag, fixed, "create_if_missing";
        /// Fail if the directory already has a database.
        error_if_exists: bool = false, Flag, fixed, "error_if_exists";
        /// Create the column families that the open names and that do not exist.
        create_missing_column_families: bool = false, Flag, fixed,
            "create_missing_column_families";

        "Threads":
        /// Threads for flushes and compactions together. If `tuner` is on at open, there is at
        /// least one for each slot that it may add. 0: no threads; the caller runs the steps, as
        /// tests and simulations do.
        background_threads: u32 = 2, Count, fixed, "max_background_jobs", ..=1024;
        /// Flushes that run at the same time, at most.
        max_background_flushes: u32 = 1, Count, mutable, "max_background_flushes", 1..;
        /// Compactions that run at the same time, at most. One that frees level 0 always gets a
        /// slot.
        max_background_compactions: u32 = 2, Count, mutable, "max_background_compactions", 1..;
        /// How far the CPU priority of background threads is below that of the thread that opens
        /// the database, as a nice value from 0 to 19.
        background_thread_nice: u32 = 5, Count, fixed, none, ..=19;
        /// The share of the database in what databases that share a device may move in the
        /// background, relative to the `runtime_weight` of the others.
        runtime_weight: u32 = 100, Count, mutable, none, 1..=10_000;
        /// Limit on the bytes a second that the background work of this database moves, flushes
        /// included, whatever the device has left. 0: none.
        bandwidth_ceiling: u64 = 0, Bytes, mutable, none;
        /// Bytes that a background job moves between two checks for more urgent work. Urgent work
        /// waits at most as long as one slice takes.
        slice_bytes_max: u64 = MIB, Bytes, mutable, none, 4 * KIB..=64 * MIB;
        /// Time after a failed flush or compaction for which no job like it is started.
        retry_delay: Duration = Duration::from_secs(1), Span, mutable, none,
            Duration::from_millis(1)..;

        "Memory":
        /// One number for all memory of the database: memtables, block cache, filters and indexes,
        /// pinned blocks, compaction buffers. The block cache gets what the others leave, at most
        /// `block_cache_bytes`. `none`: only the limits of each count.
        memory_budget: Option<u64> = None, Bytes, mutable, none, MIB..;
        /// Bytes of blocks, indexes and filters kept uncompressed in memory.
        block_cache_bytes: u64 = 64 * MIB, Bytes, mutable, none;
        /// Percentage of the block cache that may hold whole tables of level 0. They stay from
        /// their creation until they leave the level, so that compactions and clients need not read
        /// them. Used only if flushes bypass the page cache, which holds them otherwise.
        level0_cache_percent: u32 = 33, Count, mutable, none, ..=90;
        /// Limit on the memory of filters and indexes of open tables; half of `memory_budget` if
        /// that is less. `none`: all tables stay open.
        table_cache_bytes: Option<u64> = None, Bytes, mutable, none;
        /// Limit on the memtables of all column families together. Above it the largest memtable is
        /// flushed early. 0: no limit.
        all_memtables_bytes: u64 = 0, Bytes, fixed, "db_write_buffer_size";
        /// Limit on open descriptors of table files. It is never above half of the process's limit
        /// (`ulimit -n`); the other half is left to the application. The tables of one compaction
        /// share a file. Any number of files can be read: a closed one is opened again on demand.
        max_open_files: u32 = 4096, Count, mutable, "max_open_files", 16..;

        "WAL and commits":
        /// How writes reach the WAL: `off`, `buffered` (the operating system writes it back later),
        /// `sync` (each write is durable before it returns) or `interval:<duration>` (a write is
        /// durable after that time at the latest). A single write can ask for more.
        wal: WalMode = WalMode::Buffered, WalUnit, fixed, none,
            Told("an interval above 0, or sync", |wal: &WalMode| {
                *wal != WalMode::SyncInterval(Duration::ZERO)
            });
        /// The directory of the WALs. `none`: the directory of the database.
        wal_dir: Option<PathBuf> = None, Text, fixed, "wal_dir";
        /// Start writing a WAL back after each this many bytes, so that a later sync has little to
        /// do. 0: leave it to the operating system.
        wal_bytes_per_sync: u64 = 512 * KIB, Bytes, mutable, "wal_bytes_per_sync";
        /// When all WALs together are larger, the memtables that need the oldest WAL are flushed.
        /// 0: four times the memtables of all column families.
        max_total_wal_bytes: u64 = 0, Bytes, mutable, "max_total_wal_size";
        /// Seconds for which an unneeded WAL is kept for
        /// [`Db::updates_since`](crate::Db::updates_since). 0: no limit in time.
        wal_ttl_seconds: u64 = 0, Count, fixed, "WAL_ttl_seconds";
        /// Limit on the bytes of unneeded WALs that are kept; the oldest go first. 0: no limit in
        /// size. If `wal_ttl_seconds` is 0 too, none are kept.
        wal_size_limit_bytes: u64 = 0, Bytes, fixed, none;
        /// How recovery treats a WAL that ends in damage. `prefix` keeps all records before an
        /// unfinished last write; damage before the synced end is an error. `absolute` fails on any
        /// damage.
        wal_recovery: WalRecovery = WalRecovery::Prefix, Choice, fixed, none;
        /// A flush stores the memtables of all column families up to one sequence number and
        /// installs their tables together. After a crash all column families have the same prefix
        /// of the writes, even of writes without a WAL.
        atomic_flush: bool = false, Flag, fixed, "atomic_flush";
        /// A checkpoint keeps the identity ([`Db::identity`](crate::Db::identity)) of its database
        /// instead of getting its own.
        checkpoint_keeps_identity: bool = false, Flag, mutable, "write_dbid_to_manifest";
        /// Bytes of writes that one leader appends to the WAL together, at most.
        commit_group_bytes_max: u64 = MIB, Bytes, fixed, "max_write_batch_group_size_bytes", 1..;
        /// The largest value that a write may have; at most 1 GiB.
        value_bytes_max: u64 = 64 * MIB, Bytes, mutable, none, 1..=GIB;

        "Readers and scrubs":
        /// Seconds for which files are kept for a reader in another handle or process that opened
        /// the database for reading. After that its reads may fail with
        /// [`Error::Behind`](crate::Error::Behind). 0: files are not kept for readers.
        reader_lease_seconds: u64 = 3600, Count, mutable, none;
        /// Bytes of obsolete tables kept for such readers, at most as many as are free in the file
        /// system. 0: files are not kept for readers.
        reader_lease_bytes: u64 = 8 * GIB, Bytes, mutable, none;
        /// Seconds after the last scrub, or after the open, until all tables and WALs are verified
        /// again. 0: only [`Db::scrub`](crate::Db::scrub) verifies them.
        scrub_interval_seconds: u64 = 0, Count, mutable, none;
        /// Bytes a second that a scrub reads, at most. 0: no limit of its own.
        scrub_rate: u64 = 16 * MIB, Bytes, mutable, none;

        "Files":
        /// Directories for the tables of column families without `family_paths`, and the bytes that
        /// each should have. Upper levels, which have the newest data, are in the first ones. The
        /// last one takes what has no room elsewhere. `none`: the directory of the database.
        paths: Vec<TablePath> = Vec::new(), PathList, fixed, "db_paths";
        /// Reads of clients bypass the page cache. The block cache is then the only cache, and
        /// flushes and compactions bypass the page cache, too.
        direct_reads: bool = false, Flag, fixed, "use_direct_reads";
        /// Flushes and compactions bypass the page cache if the file system can. Otherwise what
        /// they write stays in the page cache for readers, and is written back at the device's
        /// pace.
        direct_io_for_flush_and_compaction: bool = false, Flag, fixed,
            "use_direct_io_for_flush_and_compaction";
        /// Bytes that a compaction reads from an input at a time, at most. While clients wait for
        /// the device it reads what takes the device about half a millisecond.
        compaction_readahead_bytes: u64 = 2 * MIB, Bytes, mutable, "compaction_readahead_size",
            ..=64 * MIB;
        /// A new manifest is started, in the background, when this much was appended to the current
        /// one.
        manifest_bytes_max: u64 = 64 * MIB, Bytes, mutable, "max_manifest_file_size", 1..;

        "Rate limit":
        /// Bytes a second that flushes and compactions write, at most. With `rate_limit_auto_tune`
        /// the upper end of the tuned limit. 0: no limit.
        rate_limit_bytes_per_second: u64 = 0, Bytes, mutable, "rate_limiter_bytes_per_sec";
        /// The limit follows demand: it rises when background work often waits for it, and falls
        /// when it rarely does.
        rate_limit_auto_tune: bool = false, Flag, mutable, none;
        /// Which bytes of flushes and compactions the limit counts: `reads-only`, `writes-only` or
        /// `all-io`. RocksDB's rate limiters have the same modes.
        rate_limit_mode: RateLimitMode = RateLimitMode::WritesOnly, Choice, mutable, none;
        /// Time between two refills of the limit's bucket. A longer period lets background work
        /// move more at once.
        rate_limit_refill_period: Duration = Duration::from_millis(100), Span, mutable, none,
            Duration::from_millis(1)..;
        /// Every refill of this number lets low priorities go first, so that flushes do not starve
        /// compactions under the limit. 0: never.
        rate_limit_fairness: u32 = 10, Count, mutable, none;

        "Scheduler":
        /// Flushes and compactions get the bandwidth that clients leave, measured every 10 ms, and
        /// all of it while no client waits for the device. Without it they take as much as they
        /// can.
        scheduler_bandwidth: bool = true, Flag, mutable, none;
        /// Flushes run before compactions out of level 0, and these before deeper ones, which take
        /// turns: the more urgent, the longer. Without it all jobs share the bandwidth as equals,
        /// and `scheduler_floor` does not count. The rate limit serves flushes first in any case.
        scheduler_priority: bool = true, Flag, mutable, none;
        /// Which deep compaction is paused when a compaction out of level 0 needs its slot: `off`
        /// (none, level 0 waits), `least-loss` or `random`. A compaction that holds tables which
        /// level 0 needs ends early.
        preemption: Preemption = Preemption::LeastLoss, Choice, mutable, none;
        /// A compaction that ends early for level 0 discards its output. Without it finished tables
        /// are kept.
        preempt_discard: bool = false, Flag, mutable, none;
        /// Bytes a second that the device reads, and as many that it writes. `none`: measured while
        /// running.
        device_bandwidth: Option<u64> = None, Bytes, mutable, none, MIB..;
        /// Bytes a second that flushes and compactions out of level 0 always get. `none`: the rate
        /// at which memtables fill.
        scheduler_floor: Option<u64> = None, Bytes, mutable, none;
        /// The limit of background work changes only if it would change by more than this many
        /// bytes a second. `none`: a twentieth of the device's bandwidth.
        scheduler_change_threshold: Option<u64> = None, Bytes, mutable, none;
        /// While clients wait for the device, background work takes only the bandwidth that it
        /// needs to remove the compaction debt in this time; in a quarter of it while other
        /// programs have the processors. `0`: all bandwidth that clients leave, as in the paper.
        scheduler_drain_time: Duration = Duration::from_secs(10), Span, mutable, none;
        /// Learn how long the peaks and valleys of clients last. In a peak deep compactions are
        /// then held if the next valley has room for them, and a valley removes the debt before it
        /// ends. Without a regular pattern nothing changes.
        scheduler_peak_forecast: bool = false, Flag, mutable, none;
        /// Bytes a second of the device for each flush and compaction that run at a time. No more
        /// compactions run than its bandwidth, which is learned, allows, and at most
        /// `max_background_compactions` (SILK: 50 MB/s). 0: as many as that.
        scheduler_slot_bandwidth: u64 = 0, Bytes, mutable, none;
        /// Thousandths of the device's bandwidth that stay unused (SILK's ε).
        scheduler_headroom: u32 = 100, Count, mutable, none, ..=999;
        /// Deep compactions get a share in proportion to the bytes written if clients leave no
        /// bandwidth for long.
        debt_floor: bool = true, Flag, mutable, none;

        "Tuner":
        /// Settings that the tuner adjusts when memtables, level 0 or the debt overflow: `off`
        /// (nothing), `adoc` (job slots and memtable size), `adoc-threads` (job slots) or
        /// `adoc-batch` (memtable size).
        tuner: Tuner = Tuner::Off, Choice, mutable, none;
        /// Sizes that an adjustment of the memtable size changes: `memtable` (memtables alone) or
        /// `paper` (also `table_bytes` and `level_base_bytes`, in the same proportion).
        tuner_batch: TunerBatch = TunerBatch::Memtable, Choice, mutable, none;
        /// The part of a limit at which a stage overflows: of `level0_slowdown` (but no fewer runs
        /// than `level0_trigger`), of the debt that is allowed, and of the active memtable while
        /// another one waits for its flush. 1: at the limit itself, as in the paper.
        tuner_threshold: f64 = 1.0, Ratio, mutable, none, 0.1..=1.0;
        /// Time between two looks for an overflow, and so between two adjustments.
        tuner_interval: Duration = Duration::from_secs(1), Span, mutable, none,
            Above(Duration::ZERO);
        /// Time for which an adjustment is not reversed. `0`: it may be reversed at the next look,
        /// as in the paper.
        tuner_hold_time: Duration = Duration::from_secs(60), Span, mutable, none;
        /// Limit on the slots for flushes and compactions together, up to which slots are added. 0:
        /// twice the number of processors.
        tuner_slots_max: u32 = 0, Count, mutable, none, ..=1024;
        /// Size up to which memtables grow; at most eight times `memtable_bytes`, and at most what
        /// `memory_budget` leaves.
        tuner_memtable_bytes_max: u64 = 512 * MIB, Bytes, mutable, none, 1..;
        /// The debt overflows when its urgent part would take this long to remove.
        tuner_debt_time: Duration = Duration::from_secs(30), Span, mutable, none,
            Above(Duration::ZERO);
        /// The debt of a column family overflows at this many bytes, whatever time they need.
        /// `none`: only `tuner_debt_time` counts.
        tuner_debt_bytes: Option<u64> = None, Bytes, mutable, none, 1..;

        "Writers and statistics":
        /// How writers are slowed down when background work falls behind: `smooth` (one rate for
        /// each column family, which falls as a limit comes nearer), `triggers` (RocksDB's slowdown
        /// and stop conditions) or `off` (only full memtables stop them).
        write_controller: WriteController = WriteController::Smooth, Choice, mutable, none;
        /// The rate at which writers start when they are slowed down.
        delayed_write_bytes_per_second: u64 = 16 * MIB, Bytes, mutable, "delayed_write_rate", 1..;
        /// Metrics to keep: `counters` (bytes, operations, stalls), `latencies` (also histograms,
        /// with a sample of point reads and writes) or `all-latencies` (with every operation).
        statistics: StatisticsLevel = StatisticsLevel::Latencies, Choice, mutable, none;
        /// Serve the database on the Unix socket `INSPECT` in its directory, for `sateen top`,
        /// `sateen why` and other programs of the same user. The program must have installed an
        /// inspector, as the C interface and the command do; without one an open fails. A database
        /// that is open for reading only has no socket.
        inspect: bool = false, Flag, fixed, none;
        /// Lowest level of the lines in the file `LOG` of the directory, one line an event: `off`
        /// (there is no file), `error`, `warn`, `info` or `debug`. `sateen log` prints it.
        /// RocksDB's `info_log_level`; there `info` is the default.
        log_level: LogLevel = LogLevel::Off, Choice, mutable, none;
        /// When `LOG` has this size, it is renamed and another one begins. 0: only at open.
        /// RocksDB's `max_log_file_size`.
        log_file_bytes_max: u64 = 16 * MIB, Bytes, mutable, none;
        /// Number of files `LOG` that are kept, the current one included. RocksDB's
        /// `keep_log_file_num`.
        log_files_max: u32 = 10, Count, mutable, none, 1..=1000;
    }
    plus {
        /// Options of the default column family, and of those that are made without their own.
        column_family: ColumnFamilyOptions,
        /// The clock for column families with the option `ttl`.
        wall_clock: WallClock,
        /// Decides at an open what becomes of the writes that only the WAL has.
        wal_filter: Option<WalFiltering>,
        /// The service that has other processes carry out compactions.
        compaction_service: Option<RemoteCompactions>,
        /// A block cache that other databases have, too; `block_cache_bytes` does not count then.
        shared_block_cache: Option<SharedBlockCache>,
        /// The runtime that the database shares with others of the process.
        runtime: Option<Runtime>,
        /// A limit for memtables of several databases; `all_memtables_bytes` does not count then.
        write_buffer_manager: Option<WriteBufferManager>,
        /// A limit for the space of tables, which other databases may have, too.
        space_manager: Option<SpaceManager>,
        /// Hears when something goes wrong in the background, and when all is well again.
        health_listener: Option<HealthListener>,
        /// Hear what the database does.
        listeners: Listeners,
        /// Gets the lines that would be in the file `LOG`, which is not written then.
        logger: Option<Logger>,
        /// Lines that each file `LOG`, and the logger, get first.
        log_head: String,
    }
}

option_struct! {
    /// Options of one column family.
    pub struct ColumnFamilyOptions, column_family = true {
        "Memtables":
        /// A memtable of this size is sealed and flushed.
        memtable_bytes: u64 = 64 * MIB, Bytes, mutable, "write_buffer_size", 1..;
        /// Memtables in memory: the active one and those that wait for their flush. Writers wait
        /// when there would be more.
        memtables_max: u32 = 2, Count, mutable, "max_write_buffer_number", 2..;
        /// Sealed memtables that are flushed together as one run, at least.
        memtables_to_flush_min: u32 = 1, Count, fixed, "min_write_buffer_number_to_merge", 1..;

        "Level 0":
        /// Runs in level 0 at which they are compacted into the next level.
        level0_trigger: u32 = 4, Count, mutable, "level0_file_num_compaction_trigger", 1..;
        /// Runs in level 0 at which writers are slowed down.
        level0_slowdown: u32 = 20, Count, mutable, "level0_slowdown_writes_trigger";
        /// Runs in level 0 at which writers stop. With the `smooth` write controller they continue
        /// very slowly there, and stop at `memtables_max` runs more.
        level0_stop: u32 = 36, Count, mutable, "level0_stop_writes_trigger";
        /// Keys are divided into stripes with about this many bytes in level 0 and the next level.
        /// A flush starts a new table at each stripe, and level 0 is compacted one stripe at a
        /// time. 0: no stripes; tables that overlap are compacted together.
        level0_stripe_bytes: u64 = 32 * MIB, Bytes, mutable, none;
        /// The number of runs that start a compaction out of level 0 follows from the load, between
        /// half of `level0_trigger` and three times as many, and at most half of `level0_slowdown`.
        /// Where reads look into many runs, scan much or miss the cache, level 0 goes down sooner.
        /// Where clients mostly write it collects more, so that less is rewritten. Other styles
        /// than `leveled` ignore it.
        read_aware_compaction: bool = false, Flag, mutable, none;
        /// Compact level 0 into itself if the next level is busy or too expensive to compact into.
        intra_level0_compaction: bool = true, Flag, mutable, none;

        "Levels":
        /// Number of levels, level 0 included; 2 to 16.
        levels: u32 = 7, Count, fixed, "num_levels", 2..=16;
        /// Target size of level 1, or with `dynamic_level_bytes` of the first level in use. 0: 2.75
        /// times what level 0 holds at its trigger (`level0_trigger` memtables), at most half of
        /// the target of the next level.
        level_base_bytes: u64 = 0, Bytes, mutable, "max_bytes_for_level_base";
        /// How many times larger the target of each level is than that of the level above it.
        level_multiplier: f64 = 8.0, Ratio, mutable, "max_bytes_for_level_multiplier",
            Growing { above: 1.0, to: 1000.0, instead: 2.0 };
        /// How many times larger the second level in use is than the first (vLSM's Φ). With
        /// `dynamic_level_bytes` at most that: as many times as the size of the last level needs,
        /// so that there are as few levels as with the largest step. 0: as `level_multiplier`.
        base_level_multiplier: f64 = 0.0, Ratio, mutable, none, 0.0..=1000.0;
        /// Targets of levels follow from the size of the last level. It then holds most of the
        /// data, and old versions take little space.
        dynamic_level_bytes: bool = true, Flag, fixed, "level_compaction_dynamic_level_bytes";

        "Tables":
        /// Size at which a compaction starts another table in level 1. The tables of one compaction
        /// share a file, so small tables cost no extra fsync.
        table_bytes: u64 = 2 * MIB, Bytes, mutable, "target_file_size_base", 1..;
        /// How many times larger the tables of each deeper level are.
        table_multiplier: u32 = 1, Count, mutable, "target_file_size_multiplier", 1..;
        /// Size at which a flush starts another table of its run, if below `table_bytes`. Smaller
        /// tables overlap less, so that less is rewritten when they leave level 0. 0: a flush
        /// writes one table.
        flush_table_bytes: u64 = 2 * MIB, Bytes, mutable, none;
        /// Tables may end early at a gap between keys that is far wider than the table, as several
        /// ascending streams leave it. Keys written into the gap later then overlap no table.
        cut_tables_at_gaps: bool = true, Flag, mutable, none;
        /// Tables end where tables of the next level end, unless that is too early. They may be
        /// twice as large for that.
        align_tables: bool = true, Flag, mutable, "level_compaction_dynamic_file_size";
        /// Bytes of the next level that a table may overlap, when it is written and when it is
        /// moved without rewriting. 0: as `compaction_bytes_max`.
        grandparent_bytes_max: u64 = 0, Bytes, mutable, none;
        /// The tables of one flush or compaction share a file and need one fsync. Without it each
        /// table has a file and an fsync of its own.
        compaction_files: bool = true, Flag, mutable, none;

        /// Directories for the tables of this column family, as `paths`. `none`: those of `paths`.
        family_paths: Vec<TablePath> = Vec::new(), PathList, fixed, "cf_paths";

        "Compactions":
        /// Approximate limit on the input bytes of one compaction. 0: 25 tables, but at least four
        /// memtables and `group_compaction_bytes`.
        compaction_bytes_max: u64 = 0, Bytes, mutable, "max_compaction_bytes";
        /// Which table of a level is compacted first: the one that overlaps least of the next level
        /// for its size (`min-overlapping-ratio`), the neighbouring ones that do so together, up to
        /// `compaction_bytes_max` (`min-overlapping-range`), the next one in key order
        /// (`round-robin`), the largest (`by-compensated-size`, where tombstones count more), or
        /// the one whose newest or oldest entry is oldest (`oldest-largest-seq-first`,
        /// `oldest-smallest-seq-first`).
        compaction_priority: CompactionPriority = CompactionPriority::MinOverlappingRatio,
            Choice, mutable, "compaction_pri";
        /// Tables of a level that are weighed by `compaction_priority` for one compaction, at most.
        /// In larger levels a window of this size moves through the level.
        compaction_candidates_max: u32 = 512, Count, mutable, none, 1..;
        /// Compaction debt in bytes at which writers are slowed down. 0: never.
        soft_pending_compaction_bytes: u64 = 64 * GIB, Bytes, mutable,
            "soft_pending_compaction_bytes_limit";
        /// Compaction debt in bytes at which writers stop. 0: never.
        hard_pending_compaction_bytes: u64 = 256 * GIB, Bytes, mutable,
            "hard_pending_compaction_bytes_limit";
        /// How many times the bytes of its largest level a column family may take because
        /// compactions fall behind. Levels within their targets and level 0 do not count, and
        /// neither does an excess below 4 GiB. Dead tables count until they are freed, unless a
        /// reader keeps them. From half of the way on they are freed faster, and writers are slowed
        /// down, at most to half of what compactions really drain. 0: no limit. For leveled
        /// compaction with the smooth write controller.
        space_amplification_max: f64 = 3.0, Ratio, mutable, none, 0.0..=1000.0;
        /// Bytes of a level's tables, adjacent or not, that one compaction takes together, which
        /// saves fsyncs. While clients are active, at most what a second suffices for, and with
        /// what they overlap about a 64th of all tables or 32 MiB. 0: one at a time.
        group_compaction_bytes: u64 = 64 * MIB, Bytes, mutable, none;
        /// Tables of such a group that overlap nothing in the next level move there without being
        /// rewritten.
        settled_compaction: bool = true, Flag, mutable, none;
        /// A table moves or settles without rewriting only if it overlaps at most
        /// `grandparent_bytes_max` of the level below its new one: it must be compacted with that
        /// later. Without it a table need only overlap nothing in its new level (BoLT §3.4).
        settle_checks_grandparents: bool = true, Flag, mutable, none;
        /// A point read that looks into several tables is charged to the first of them, and an
        /// iterator charges one read a MiB. A table with a charge for each this many of its bytes
        /// (of 1600 KiB at least) is compacted when no level is due: LevelDB's seek compaction,
        /// with `16KiB`. 0: nothing is compacted for reads.
        seek_compaction_bytes: u64 = 0, Bytes, mutable, none;
        /// Compact only in `compact_range`.
        disable_auto_compactions: bool = false, Flag, mutable, "disable_auto_compactions";

        "Values apart":
        /// A value of at least this many bytes is written once, to a value file, by a flush or by
        /// the first compaction that meets it. Tables hold its place, so compactions do not move
        /// it. `values_stay_in_log` comes first at a flush. 0: values stay in tables. RocksDB's
        /// `enable_blob_files` with `min_blob_size`.
        value_separation_bytes: u64 = 0, Bytes, mutable, none, ..=GIB;
        /// The first level whose outputs write larger values to value files. 0: flushes do.
        value_starting_level: u32 = 0, Count, mutable, "blob_file_starting_level";
        /// Size at which a job ends a value file and begins another one.
        value_file_bytes: u64 = 256 * MIB, Bytes, mutable, "blob_file_size", 1..;
        /// Compactions copy the values that they meet out of old value files that have garbage, so
        /// that these files can be removed. Without it only whole pages of dead values are freed,
        /// by punching holes, and files without a live value.
        value_garbage_collection: bool = false, Flag, mutable, "enable_blob_garbage_collection";
        /// With `value_garbage_collection`: the part of all value files that is old.
        value_garbage_age_cutoff: f64 = 0.25, Ratio, mutable,
            "blob_garbage_collection_age_cutoff", 0.0..=1.0;
        /// With `value_garbage_collection`: the part of the bytes of old value files that must be
        /// garbage for tables below level 0 to be compacted only to collect it. 1: they are not.
        value_garbage_force_threshold: f64 = 1.0, Ratio, mutable,
            "blob_garbage_collection_force_threshold", 0.0..=1.0;

        "Parts of TRIAD and vLSM":
        /// Fraction of a memtable that may stay in memory at a flush: keys that are written more
        /// than once, and at least as often as the mean. They are written to the WAL and to the
        /// next memtable once more (TRIAD). Nothing stays without a WAL, or where
        /// `values_stay_in_log` saves these writes already. 0: everything is flushed.
        memtable_hot_part: f64 = 0.0, Ratio, mutable, none, 0.0..=0.5;
        /// A flush leaves values in the WAL, and its table holds only their places until it is
        /// compacted (TRIAD). Without effect if there is no WAL, if it is on another file system,
        /// or if the first directory of `paths` is not the database's own.
        values_stay_in_log: bool = false, Flag, mutable, none;
        /// Level 0 is compacted down only if this fraction of its keys is there more than once,
        /// estimated by a sketch for each table (TRIAD: 0.4). 0: it is always compacted at its
        /// trigger.
        level0_overlap_min: f64 = 0.0, Ratio, mutable, none, 0.0..=1.0;
        /// With `level0_overlap_min`: number of runs at which level 0 is compacted anyway, if they
        /// have as many bytes as that many memtables. It is compacted at twice that number (or
        /// twice `level0_trigger` if that is more), or when writers would be slowed down.
        level0_overlap_runs_max: u32 = 7, Count, mutable, none;
        /// A compaction out of level 0 takes only the oldest runs, so it is small. Level 1 makes
        /// room for them first (vLSM).
        level0_fifo: bool = false, Flag, mutable, none;
        /// With `level0_fifo`: the most runs that one compaction takes. More than one rewrite level
        /// 1 less often. 1: as in the paper.
        level0_fifo_runs_max: u32 = 1, Count, mutable, none, 1..;
        /// Tables of level 1 are cut by their overlap with the next level: at `level_multiplier`
        /// tables of it, or the bytes of as many full ones. Tables that overlap more stay until
        /// they are cut again (vLSM).
        overlap_aware_tables: bool = false, Flag, mutable, none;

        "Blocks and filters":
        /// Approximate size of a data block before compression; at most 16 MiB.
        block_bytes: u64 = 4 * KIB, Bytes, mutable, "block_size", 1..=16 * MIB;
        /// Entries between two uncompressed keys in a block. A smaller number makes searches faster
        /// and blocks larger.
        restart_interval: u32 = 16, Count, mutable, "block_restart_interval", 1..=65_535;
        /// Bits per key in the filters, which save reads of tables that do not have a key. 10 bits
        /// let about 1 % of such reads through. 0: no filters.
        bloom_bits_per_key: u32 = 10, Count, mutable, none, ..=64;
        /// Filters hold whole keys. Without it they hold only prefixes.
        whole_key_filter: bool = true, Flag, mutable, "whole_key_filtering";
        /// The prefix of a key: `none`, `fixed:<bytes>` (shorter keys have none),
        /// `capped:<bytes>` (a shorter key is its own) or `noop` (the whole key). Filters also hold
        /// prefixes. They save an iterator that stays within a prefix (`prefix_same_as_start`, or
        /// by its bounds) from reading tables without it. The order of keys and what iterators show
        /// do not change.
        prefix_extractor: Option<Prefixing> = None, PrefixText, mutable, "prefix_extractor";
        /// Compression of blocks for each level, separated by commas: `none`, `lz4` or `zstd`. The
        /// last one also holds for deeper levels. By default levels 0 and 1 are not compressed:
        /// they hold little data, and their compression would take CPU when writers need it.
        compression: Vec<Compression> = vec![
            Compression::None, Compression::None, Compression::Lz4,
        ], ChoiceList, mutable, "compression_per_level",
            Told("at least one name", |names: &Vec<_>| !names.is_empty());
        /// Compression level of zstd: 1 to 22.
        zstd_level: i32 = 3, Count, mutable, none, 1..=22;

        "Compaction styles":
        /// How tables are arranged and picked. `leveled`: one run a level. `guards`: several runs a
        /// level. `tiered`: sorted runs by age (RocksDB's universal compaction). `fifo`: all tables
        /// in level 0, of which the oldest are dropped. A column family opens with another style,
        /// but one with guards must be compacted first, and `fifo` takes none with deeper tables.
        compaction_style: CompactionStyle = CompactionStyle::Leveled, Choice, fixed,
            "compaction_style";
        /// With `guards`: runs that share keys at which they go down or are merged. At least 2.
        guard_runs: u32 = 8, Count, mutable, none, 2..;
        /// With `tiered`: percent by which the next run may be larger than those that a merge has.
        tiered_size_ratio: u32 = 1, Count, mutable, none;
        /// With `tiered`: the fewest runs that one merge takes, at least 2.
        tiered_merge_width_min: u32 = 2, Count, mutable, none, 2..;
        /// With `tiered`: the most runs that one merge takes.
        tiered_merge_width_max: u32 = u32::MAX, Count, mutable, none, 2..;
        /// With `tiered`: bytes of all newer runs, in percent of the oldest, at which all merge.
        tiered_size_amplification_max: u32 = 200, Count, mutable, none;
        /// With `tiered`: a merge takes no run larger than all it has taken (`total-size`), or much
        /// larger or smaller than the last one (`similar-size`).
        tiered_stop_style: StopStyle = StopStyle::TotalSize, Choice, mutable, none;
        /// With `tiered`: runs whose tables share no keys change level unread.
        tiered_trivial_move: bool = false, Flag, mutable, none;
        /// With `fifo`: bytes of all tables and of their values in value files above which the
        /// oldest tables are dropped.
        fifo_bytes_max: u64 = GIB, Bytes, mutable, none;
        /// With `fifo`: small runs are merged.
        fifo_compaction: bool = false, Flag, mutable, none;

        "Keys and values":
        /// The order of keys. A comparator of the caller is set as [`Comparator::custom`]; its name
        /// is stored, and the column family opens with no other. Prefix bounds and regions need
        /// `bytewise`.
        comparator: Comparator = Comparator::BYTEWISE, ComparatorText, fixed, "comparator";
        /// How keys are divided among trees of their own, which share the scheduler, the WAL and
        /// the memory budget. Fixed when the column family is created; 1 opens it as it is. Each
        /// region has memtables of `memtable_bytes`.
        regions: Regions = Regions::default(), RegionsText, fixed, none;
        /// Lifetime of a value, in whole seconds of the system clock. After that reads hide it (see
        /// `ttl_hide_expired`), and a later compaction drops it. `0`: forever; `none`: values have
        /// no timestamp, which takes four bytes. A column family with values keeps its form: the
        /// open in the other one is refused. RocksDB's `DBWithTTL` has the same form.
        ttl: Option<Duration> = None, Span, mutable, none,
            Told("a number of whole seconds", |ttl: &Option<Duration>| {
                ttl.is_none_or(|ttl| ttl.subsec_nanos() == 0)
            });
        /// Reads hide expired values, whatever their snapshot, as of the start of a point read or
        /// multi-get, or the creation of an iterator. Merges leave out what had expired. `false`: a
        /// value counts until a compaction drops it, as with RocksDB's `DBWithTTL`.
        ttl_hide_expired: bool = true, Flag, mutable, none;
    }
    plus {
        /// The operator that makes a value of merge operands ([`Db::merge`](crate::Db::merge)). A
        /// column family that holds operands is opened with the operator that they were written
        /// for; without one, reads of their keys fail.
        merge_operator: Option<Merging>,
        /// The filter that removes or replaces entries as they are compacted.
        compaction_filter: Option<Filtering>,
    }
}
