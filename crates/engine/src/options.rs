//! Every setting of the engine: what it means, its unit and default, RocksDB's name for it, and
//! whether a running database can change it. An option is defined once, in a macro; text
//! ([`Options::set`], the OPTIONS file, `--set` of the tool) and the struct cannot drift apart.
//!
//! What must stay true: a value that `get` prints, `set` takes back unchanged; an error names the
//! option, the value and what would have been accepted; `validate` passes for every profile.

mod calls;
mod choices;
mod column_family;
pub(crate) mod control;
mod define;
mod lookup;
mod profile;
mod regions;
mod sanitize;
mod stored;
mod text;
mod validate;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sateen_control::Comparator;

use self::choices::{ComparatorText, PrefixText, WalUnit};
use self::define::option_struct;
use self::lookup::{bad_value, entries, find, fixed};
use self::regions::RegionsText;
use self::text::{Bytes, Choice, ChoiceList, Count, Flag, Ratio, Span, Text, Unit};
use crate::background::state::HealthListener;
use crate::compaction_filter::Filtering;
use crate::error::Result;
use crate::events::Listeners;

pub use self::calls::{CompactRangeOptions, FlushOptions, ReadOptions, WriteOptions};
pub use self::choices::{
    CompactionPriority, CompactionStyle, Compression, Preemption, StatisticsLevel, Tuner, WalMode,
    WalRecovery, WriteController,
};
pub use self::define::OptionInfo;
pub use self::regions::Regions;
pub use self::stored::StoredOptions;
use crate::merge::Merging;
use crate::prefix::Prefixing;
use crate::read::block_cache::SharedBlockCache;
use crate::ttl::WallClock;
use crate::write_buffers::WriteBufferManager;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

option_struct! {
    /// Options of a whole database, and through [`Options::column_family`] those of its column
    /// families. Start from [`Options::default`] or [`Options::profile`] and change fields:
    ///
    /// ```
    /// use sateen::Options;
    ///
    /// let mut options = Options { block_cache_bytes: 256 << 20, ..Options::default() };
    /// options.set("memtable_bytes", "128MiB")?;
    /// options.set("wal", "interval:10ms")?;
    /// assert_eq!(options.get("memtable_bytes")?, "128MiB");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub struct Options, column_family = false {
        /// The profile that the values started from. Setting it replaces every option by that
        /// profile's value, so it comes first in a list.
        profile: String = profile::DEFAULT.to_owned(), Text, fixed, none;
        /// Make the database if the directory has none; otherwise opening one is an error.
        create_if_missing: bool = true, Flag, fixed, "create_if_missing";
        /// Opening a directory that already has a database is an error.
        error_if_exists: bool = false, Flag, fixed, "error_if_exists";
        /// Make the column families that are named at open and do not exist.
        create_missing_column_families: bool = false, Flag, fixed,
            "create_missing_column_families";

        /// Threads for flushes and compactions together; one for each slot that `tuner` may make,
        /// if it is on at open and these are more. 0: none are started and the caller steps the
        /// work, as tests and simulations do.
        background_threads: u32 = 2, Count, fixed, "max_background_jobs";
        /// Flushes at the same time, at most.
        max_background_flushes: u32 = 1, Count, mutable, "max_background_flushes";
        /// Compactions at the same time, at most. One that frees level 0 always finds a place.
        max_background_compactions: u32 = 2, Count, mutable, "max_background_compactions";
        /// How much lower than the clients' the CPU priority of background threads is: their nice
        /// value, 0 to 19.
        background_thread_nice: u32 = 5, Count, fixed, none;
        /// Bytes that a background job moves before it looks up: the unit of preemption and
        /// pacing, and so the longest that anything more urgent waits behind it.
        slice_bytes_max: u64 = MIB, Bytes, mutable, none;

        /// One number for all memory of the database: memtables, block cache, filters and indexes,
        /// pinned blocks, compaction buffers. The cache gets what the others leave. `none`: the
        /// single limits alone count.
        memory_budget: Option<u64> = None, Bytes, mutable, none;
        /// Bytes of blocks, indexes and filters kept uncompressed in memory.
        block_cache_bytes: u64 = 64 * MIB, Bytes, mutable, none;
        /// Up to this percentage of the block cache is for whole tables of level 0, which are kept
        /// from when they are written until they leave the level: compactions need not read them,
        /// nor need clients. It counts where the page cache is bypassed
        /// (`direct_io_for_flush_and_compaction`), which has them otherwise.
        level0_cache_percent: u32 = 33, Count, mutable, none;
        /// Bytes of filters and indexes of tables kept open, at most; half of `memory_budget` if
        /// that is less. `none`: of all tables.
        table_cache_bytes: Option<u64> = None, Bytes, mutable, none;
        /// Memtables of all column families together: when they take more, the largest is stored
        /// early. 0: no limit.
        all_memtables_bytes: u64 = 0, Bytes, fixed, "db_write_buffer_size";
        /// Descriptors of table files kept open, at most. A compaction's tables share one file. The
        /// limit is never above half of the process's limit on open files (`ulimit -n`), which
        /// leaves the other half to the application. Reads, iterators and compactions work with any
        /// number of files: a descriptor that was closed is opened again when it is needed.
        max_open_files: u32 = 4096, Count, mutable, "max_open_files";

        /// How writes reach the log: `off`, `buffered` (the operating system writes it back),
        /// `sync` (each write is durable before it returns) or `interval:<duration>` (durable at
        /// the latest so much later). A write's own options can ask for more.
        wal: WalMode = WalMode::Buffered, WalUnit, fixed, none;
        /// The directory of the logs; `none`: the database's own.
        wal_dir: Option<PathBuf> = None, Text, fixed, "wal_dir";
        /// Start writing a log back every so many bytes, so that a later sync finds little to do.
        /// 0: leave it to the operating system.
        wal_bytes_per_sync: u64 = 512 * KIB, Bytes, mutable, "wal_bytes_per_sync";
        /// When the logs together are larger, the memtables that keep the oldest alive are
        /// flushed. 0: four times the memtables of all column families.
        max_total_wal_bytes: u64 = 0, Bytes, mutable, "max_total_wal_size";
        /// So long a log is kept for [`Db::updates_since`](crate::Db::updates_since) that nothing
        /// else needs any more, in seconds. 0: however old it is.
        wal_ttl_seconds: u64 = 0, Count, fixed, "WAL_ttl_seconds";
        /// Such logs together take no more; the oldest go first. 0: whatever they take. If both
        /// limits are 0 none is kept.
        wal_size_limit_bytes: u64 = 0, Bytes, fixed, none;
        /// What recovery makes of a log that ends in damage: `prefix` takes everything before an
        /// unfinished last write, and reports damage that is not at the end of what was synced as
        /// corruption; `absolute` takes only a log without any.
        wal_recovery: WalRecovery = WalRecovery::Prefix, Choice, fixed, none;
        /// A flush stores the memtables of all column families, up to one sequence number, and
        /// installs all of their tables at once. After a crash all column families show one and
        /// the same prefix of the writes, also of those that went past the log.
        atomic_flush: bool = false, Flag, fixed, "atomic_flush";
        /// A checkpoint has the identity of the database that it is made of
        /// ([`Db::identity`](crate::Db::identity)) instead of its own.
        checkpoint_keeps_identity: bool = false, Flag, mutable, "write_dbid_to_manifest";
        /// Bytes of writes that one leader puts into the log together, at most.
        commit_group_bytes_max: u64 = MIB, Bytes, fixed, "max_write_batch_group_size_bytes";
        /// The largest value that a write takes; at most 1 GiB.
        value_bytes_max: u64 = 64 * MIB, Bytes, mutable, none;

        /// How long a reader in another handle or process, one that was opened for reading alone,
        /// keeps what it reads from being given back, in seconds. After that its reads fail with
        /// [`Error::Behind`](crate::Error::Behind) where something is gone. 0: such readers are not
        /// waited for.
        reader_lease_seconds: u64 = 3600, Count, mutable, none;
        /// How many bytes of obsolete tables such readers may keep together, at most as many as
        /// are free in the file system. 0: such readers are not waited for.
        reader_lease_bytes: u64 = 8 * GIB, Bytes, mutable, none;
        /// All tables and logs are verified so many seconds after that was done last, or the
        /// database was opened. 0: only when [`Db::scrub`](crate::Db::scrub) is called.
        scrub_interval_seconds: u64 = 0, Count, mutable, none;
        /// Bytes a second that are verified at most. 0: as fast as there is room.
        scrub_rate: u64 = 16 * MIB, Bytes, mutable, none;

        /// Clients' reads bypass the page cache; then the block cache is all the cache there is.
        direct_reads: bool = false, Flag, fixed, "use_direct_reads";
        /// Flushes and compactions bypass the page cache, where the file system can; otherwise
        /// they are buffered, with paced write-back.
        direct_io_for_flush_and_compaction: bool = true, Flag, fixed,
            "use_direct_io_for_flush_and_compaction";
        /// How much a compaction reads of an input at once.
        compaction_readahead_bytes: u64 = 256 * KIB, Bytes, mutable, "compaction_readahead_size";
        /// A new manifest is begun, in the background, when so much was appended to the one in use.
        manifest_bytes_max: u64 = 64 * MIB, Bytes, mutable, "max_manifest_file_size";

        /// Flushes and compactions write no more than this in a second; with
        /// `rate_limit_auto_tune`, the upper end of what tuning may choose. 0: no limit.
        rate_limit_bytes_per_second: u64 = 0, Bytes, mutable, "rate_limiter_bytes_per_sec";
        /// The limit follows the demand: up when background work waits for it often, down when it
        /// rarely does.
        rate_limit_auto_tune: bool = false, Flag, mutable, none;
        /// Flushes and compactions get the bandwidth that clients leave of the device, measured
        /// every 10 ms; otherwise as much as they can take.
        scheduler_bandwidth: bool = true, Flag, mutable, none;
        /// Flushes go before compactions out of level 0, these before deeper ones by urgency;
        /// otherwise all compactions are alike.
        scheduler_priority: bool = true, Flag, mutable, none;
        /// Which deep compaction is paused when one out of level 0 needs its slot: `off` (it
        /// waits), `least-loss` or `random`. One that holds what level 0 needs ends early.
        preemption: Preemption = Preemption::LeastLoss, Choice, mutable, none;
        /// A compaction that ends early for level 0 throws away all that it has done, instead of
        /// keeping what can stand by itself.
        preempt_discard: bool = false, Flag, mutable, none;
        /// Bytes a second of the device, for reads as for writes. `none`: learned while running.
        device_bandwidth: Option<u64> = None, Bytes, mutable, none;
        /// Bytes a second that flushes and compactions out of level 0 get whatever clients need.
        /// `none`: what the memtables fill up with.
        scheduler_floor: Option<u64> = None, Bytes, mutable, none;
        /// What flushes and compactions get is changed when it would be by more than so many bytes
        /// a second. `none`: by more than a twentieth of the device's bandwidth.
        scheduler_change_threshold: Option<u64> = None, Bytes, mutable, none;
        /// While clients use the device, flushes and compactions take no more of what they leave
        /// than it takes to work off the debt in this time. `0`: all of it, as in the paper.
        scheduler_drain_time: Duration = Duration::from_secs(10), Span, mutable, none;
        /// Thousandths of the device's bandwidth that stay unused (SILK's ε).
        scheduler_headroom: u32 = 100, Count, mutable, none;
        /// Where clients leave nothing for long, what they write earns deep compactions a share.
        debt_floor: bool = true, Flag, mutable, none;

        /// What is adjusted while memtables, level 0 or the debt overflow: `off` (nothing), `adoc`
        /// (job slots and the size of memtables), `adoc-threads` or `adoc-batch` (one of these).
        tuner: Tuner = Tuner::Off, Choice, mutable, none;
        /// How often it is looked for an overflow, and the most often that anything is adjusted.
        tuner_interval: Duration = Duration::from_secs(1), Span, mutable, none;
        /// What has changed its direction does not change it again for so long. `0`: it may
        /// whenever it is looked, as in the paper.
        tuner_hold_time: Duration = Duration::from_secs(60), Span, mutable, none;
        /// Flushes and compactions at the same time, together, up to which slots are added. 0:
        /// twice as many as there are processors.
        tuner_slots_max: u32 = 0, Count, mutable, none;
        /// Bytes up to which memtables grow; to no more than eight times `memtable_bytes` in any
        /// case, nor than `memory_budget` leaves them.
        tuner_memtable_bytes_max: u64 = 512 * MIB, Bytes, mutable, none;
        /// The debt has overflowed if, less what may wait, it would take so long to work off.
        tuner_debt_time: Duration = Duration::from_secs(30), Span, mutable, none;
        /// The debt of a column family has overflowed at so many bytes, however long they take.
        /// `none`: `tuner_debt_time` counts.
        tuner_debt_bytes: Option<u64> = None, Bytes, mutable, none;

        /// What delays writers when background work falls behind: `smooth` (one rate for each
        /// column family, which falls as a limit comes nearer), `triggers` (RocksDB's slowdown and
        /// stop conditions) or `off` (only the hard limits of memory stop them).
        write_controller: WriteController = WriteController::Smooth, Choice, mutable, none;
        /// The rate at which writers start when they are slowed down.
        delayed_write_bytes_per_second: u64 = 16 * MIB, Bytes, mutable, "delayed_write_rate";

        /// What is measured: `counters` (bytes, operations, stalls), `latencies` (also histograms,
        /// of point reads and writes by a sample) or `all-latencies` (of each operation).
        statistics: StatisticsLevel = StatisticsLevel::Latencies, Choice, mutable, none;
    }
    plus {
        /// Options of the default column family, and of those that are made without their own.
        column_family: ColumnFamilyOptions,
        /// What tells the time to column families with the option `ttl`.
        wall_clock: WallClock,
        /// A block cache that other databases have, too; `block_cache_bytes` does not count then.
        shared_block_cache: Option<SharedBlockCache>,
        /// A limit for memtables that other databases have, too; `all_memtables_bytes` does not
        /// count then.
        write_buffer_manager: Option<WriteBufferManager>,
        /// Hears when something goes wrong in the background, and when all is well again.
        health_listener: Option<HealthListener>,
        /// Hear what the database does.
        listeners: Listeners,
    }
}

option_struct! {
    /// Options of one column family.
    pub struct ColumnFamilyOptions, column_family = true {
        /// A memtable that has grown to this size is sealed and flushed.
        memtable_bytes: u64 = 64 * MIB, Bytes, mutable, "write_buffer_size";
        /// Memtables in memory, the one being written and those waiting for their flush; when
        /// there are more, writers wait.
        memtables_max: u32 = 2, Count, mutable, "max_write_buffer_number";
        /// Sealed memtables that must have come together before they are flushed as one run.
        memtables_to_flush_min: u32 = 1, Count, fixed, "min_write_buffer_number_to_merge";

        /// Runs in level 0 at which they are compacted into the next level.
        level0_trigger: u32 = 4, Count, mutable, "level0_file_num_compaction_trigger";
        /// Runs in level 0 at which writers are slowed down.
        level0_slowdown: u32 = 20, Count, mutable, "level0_slowdown_writes_trigger";
        /// Runs in level 0 at which writers wait. Under smooth admission they go on at next to
        /// nothing there, and wait at `memtables_max` more.
        level0_stop: u32 = 36, Count, mutable, "level0_stop_writes_trigger";
        /// Levels, level 0 included; 2 to 16.
        levels: u32 = 7, Count, fixed, "num_levels";
        /// The size that level 1 (with `dynamic_level_bytes`, the first level in use) may reach. 0:
        /// eleven quarters of what level 0 has at its trigger, `level0_trigger` memtables, and at
        /// most half of what the next level may have.
        level_base_bytes: u64 = 0, Bytes, mutable, "max_bytes_for_level_base";
        /// How many times larger each level may be than the one above it.
        level_multiplier: f64 = 8.0, Ratio, mutable, "max_bytes_for_level_multiplier";
        /// How many times larger than the first level in use the one below it may be (vLSM's Φ).
        /// 0: as many times as deeper levels.
        base_level_multiplier: f64 = 0.0, Ratio, mutable, none;
        /// The levels' sizes follow from that of the last one, so that it holds by far the most
        /// of the data and little space is lost to old versions.
        dynamic_level_bytes: bool = true, Flag, fixed, "level_compaction_dynamic_level_bytes";
        /// The size at which a compaction begins another table in level 1. The tables of one
        /// compaction share a file, so small ones cost no barriers.
        table_bytes: u64 = 2 * MIB, Bytes, mutable, "target_file_size_base";
        /// The size at which a flush begins another table of its run, if less than `table_bytes`:
        /// what is smaller hangs together with less when it leaves level 0, and what hangs together
        /// with nothing is not rewritten. 0: a flush writes one table.
        flush_table_bytes: u64 = 2 * MIB, Bytes, mutable, none;
        /// The keys are parted into stripes, each with about so many bytes in level 0 and the level
        /// it goes to; flushes begin another table at each, and level 0 goes down one stripe at a
        /// time, little at once and no dearer. 0: as it hangs together.
        level0_stripe_bytes: u64 = 8 * MIB, Bytes, mutable, none;
        /// Tables may end early at gaps between keys that are far wider than what they span, as
        /// several streams of ascending keys leave them, so that they do not overlap what is
        /// written between them later.
        cut_tables_at_gaps: bool = true, Flag, mutable, none;
        /// How many times larger the tables of each deeper level are.
        table_multiplier: u32 = 1, Count, mutable, "target_file_size_multiplier";
        /// Bytes that one compaction takes in, about. 0: twenty-five tables, but at least four
        /// memtables and `group_compaction_bytes`.
        compaction_bytes_max: u64 = 0, Bytes, mutable, "max_compaction_bytes";
        /// Bytes of the level below its own that a table overlaps at most, where it is written and
        /// where it changes level as it is. 0: as `compaction_bytes_max`.
        grandparent_bytes_max: u64 = 0, Bytes, mutable, none;
        /// Tables end where tables of the level below end, where that is not too early, and may be
        /// up to twice as large for it.
        align_tables: bool = true, Flag, mutable, "level_compaction_dynamic_file_size";
        /// Level 0 is compacted into itself when its way down is taken, or not worth it.
        intra_level0_compaction: bool = true, Flag, mutable, none;
        /// Which table of a level goes down first: `min-overlapping-ratio` or `round-robin`.
        compaction_priority: CompactionPriority = CompactionPriority::MinOverlappingRatio,
            Choice, mutable, "compaction_pri";
        /// Bytes that compaction is behind at which writers are slowed down. 0: never.
        soft_pending_compaction_bytes: u64 = 64 * GIB, Bytes, mutable,
            "soft_pending_compaction_bytes_limit";
        /// Bytes that compaction is behind at which writers wait. 0: never.
        hard_pending_compaction_bytes: u64 = 256 * GIB, Bytes, mutable,
            "hard_pending_compaction_bytes_limit";
        /// Bytes of a level's tables that one compaction takes together, whether they are
        /// neighbours or not: fewer barriers for the same bytes. 0: one table at a time, and what
        /// goes along with it. Beside clients no more than what is done in a second.
        group_compaction_bytes: u64 = 64 * MIB, Bytes, mutable, none;
        /// Of such a group the tables that overlap nothing in the level below change level as they
        /// are.
        settled_compaction: bool = true, Flag, mutable, none;
        /// What part of a memtable may stay in memory when it is flushed: keys that were written
        /// again and again, which are written to the log and to the next memtable once more
        /// (TRIAD). Nothing stays without a log. 0: all is flushed.
        memtable_hot_part: f64 = 0.0, Ratio, mutable, none;
        /// Values of a memtable that are in the log stay there when it is flushed, and the table
        /// has but their places until it is compacted (TRIAD). Nothing stays where there is no log,
        /// or the log is on another file system.
        values_stay_in_log: bool = false, Flag, mutable, none;
        /// The part of the keys in level 0 that must be there more than once before it goes down,
        /// as a sketch of each table's keys estimates it. 0: it goes down whatever it is (TRIAD:
        /// 0.4).
        level0_overlap_min: f64 = 0.0, Ratio, mutable, none;
        /// With that: runs of level 0 from which on it goes down all the same. It does with twice
        /// `level0_trigger`, and where writers are slowed down, if that is earlier.
        level0_overlap_runs_max: u32 = 6, Count, mutable, none;
        /// A compaction out of level 0 takes its oldest run and nothing else: little at a time.
        level0_fifo: bool = false, Flag, mutable, none;
        /// Tables of the first level below 0 are cut by what they overlap in the next one, and
        /// those that overlap much for their size stay until they are cut anew (vLSM).
        overlap_aware_tables: bool = false, Flag, mutable, none;
        /// The tables of one flush or compaction share one file, which takes one barrier. Without
        /// it each has its own file and barrier, as in stores without logical tables.
        compaction_files: bool = true, Flag, mutable, none;
        /// How the keys are divided among trees of their own, under one scheduler, one log and one
        /// memory budget. Decided when the column family is made; 1 takes it as it is. Each region
        /// has memtables of `memtable_bytes`.
        regions: Regions = Regions::default(), RegionsText, fixed, none;
        /// Compact only when asked to by `compact_range`.
        disable_auto_compactions: bool = false, Flag, mutable, "disable_auto_compactions";

        /// The size of a data block before compression, about; at most 16 MiB.
        block_bytes: u64 = 4 * KIB, Bytes, mutable, "block_size";
        /// Entries between two whole keys in a block: fewer make a search faster and blocks
        /// larger.
        restart_interval: u32 = 16, Count, mutable, "block_restart_interval";
        /// Bits for each key in the filters, which spare a read of tables that do not have it.
        /// 0: no filters. 10 leave about one needless read in a hundred.
        bloom_bits_per_key: u32 = 10, Count, mutable, none;
        /// The filter holds whole keys. Without it there is none but of prefixes.
        whole_key_filter: bool = true, Flag, mutable, "whole_key_filtering";
        /// What the prefixes of keys are: `none`, `fixed:<bytes>` (shorter keys have none),
        /// `capped:<bytes>` (shorter keys are their own) or `noop` (whole keys). Filters hold them,
        /// too, and spare iterators that stay within one (by `prefix_same_as_start` or by their
        /// bounds) tables that have none of its keys. Order and what is shown do not depend on it.
        prefix_extractor: Option<Prefixing> = None, PrefixText, mutable, "prefix_extractor";
        /// How blocks are compressed, for each level: `none`, `lz4` or `zstd`, separated by
        /// commas; the last one counts for all deeper levels. By default levels 0 and 1 are not:
        /// they hold a small part of the data for a short time, and compressing them would take
        /// CPU where writers feel it most.
        compression: Vec<Compression> = vec![
            Compression::None, Compression::None, Compression::Lz4,
        ], ChoiceList, mutable, "compression_per_level";
        /// How hard zstd tries: 1 to 22.
        zstd_level: i32 = 3, Count, mutable, none;

        /// How tables are arranged and picked: `leveled`, or `guards`. A leveled column family can
        /// be opened with guards at any time, the other way round once it was compacted.
        compaction_style: CompactionStyle = CompactionStyle::Leveled, Choice, fixed,
            "compaction_style";
        /// With guards: runs of a level that share keys from which on they go down together, or are
        /// merged where nothing is deeper. At least 2.
        guard_runs: u32 = 8, Count, mutable, none;
        /// What keys are compared by: their order. One of the caller's is set as
        /// [`Comparator::custom`]; its name is recorded, and the column family opens with no other.
        /// Prefix bounds and regions need `bytewise`.
        comparator: Comparator = Comparator::BYTEWISE, ComparatorText, fixed, "comparator";
        /// How long a value lives, in whole seconds of the system's clock. After that reads hide it
        /// (see `ttl_hide_expired`), and some compaction drops it later. `0`: for ever. `none`:
        /// values are stored without the time of their write, which otherwise takes four bytes
        /// behind each; what was written one way cannot be read the other way (RocksDB:
        /// `DBWithTTL`, whose values look the same).
        ttl: Option<Duration> = None, Span, mutable, none;
        /// Reads hide a value whose `ttl` is over, whatever its snapshot. A point read or multi-get
        /// compares with the time at which it begins, an iterator with the time at which it was
        /// made. `false`: the value is read until a compaction drops it, as RocksDB's `DBWithTTL`
        /// does.
        ttl_hide_expired: bool = true, Flag, mutable, none;
    }
    plus {
        /// What makes a value of merge operands ([`Db::merge`](crate::Db::merge)). A column family
        /// that holds operands is opened with the operator that they were written for; without
        /// one, reads of their keys fail.
        merge_operator: Option<Merging>,
        /// What removes or replaces entries as they are compacted.
        compaction_filter: Option<Filtering>,
    }
}

impl Options {
    /// The options of a named profile. A profile is nothing but option values.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such profile; the text lists those there are.
    pub fn profile(name: &str) -> Result<Options> {
        profile::options(name)
    }

    /// These options, and so many regions of the default column family and of those that are made
    /// with its options: see [`Regions::even`].
    ///
    /// # Errors
    /// As [`Regions::even`].
    pub fn regions(mut self, count: u32) -> Result<Options> {
        self.column_family.regions = Regions::even(count)?;
        Ok(self)
    }

    /// The names that [`Options::profile`] takes.
    #[must_use]
    pub fn profiles() -> &'static [&'static str] {
        profile::AVAILABLE
    }

    /// Every option of the database and of its column families.
    pub fn all() -> impl Iterator<Item = &'static OptionInfo> + Clone {
        Options::INFO.iter().chain(ColumnFamilyOptions::INFO)
    }

    /// The names of all options.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Options::all().map(|info| info.name)
    }

    /// What is known about an option, by our name or RocksDB's.
    ///
    /// # Errors
    /// `InvalidArgument` if there is none of that name; the text has the nearest one.
    pub fn info(name: &str) -> Result<&'static OptionInfo> {
        find(Options::all(), name)
    }

    /// True if a running database can change the option.
    ///
    /// # Errors
    /// As [`Options::info`].
    pub fn is_mutable(name: &str) -> Result<bool> {
        Ok(Options::info(name)?.mutable)
    }

    /// The options in a list such as `memtable_bytes=128MiB;wal=sync`, the others by default.
    ///
    /// # Errors
    /// As [`Options::set`].
    pub fn from_str_list(list: &str) -> Result<Options> {
        let mut options = Options::default();
        options.apply_str_list(list)?;
        Ok(options)
    }

    /// Sets the options in a list such as `memtable_bytes=128MiB;wal=sync`. Entries are separated
    /// by semicolons or line ends; lines that begin with `#` or `[` are skipped. On an error
    /// nothing is changed.
    ///
    /// # Errors
    /// As [`Options::set`].
    pub fn apply_str_list(&mut self, list: &str) -> Result<()> {
        let mut changed = self.clone();
        for (name, value) in entries(list) {
            changed.set(name, value?)?;
        }
        *self = changed;
        Ok(())
    }

    /// Sets an option from text. Sizes are as `4096`, `64KiB` or `1G`, durations as `10ms`.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such option (the text has the nearest name) or the value is
    /// none of its (the text says what it takes).
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let info = Options::info(name)?;
        if info.name == "profile" {
            *self = Options::profile(value.trim())?;
            return Ok(());
        }
        if info.column_family {
            return self.column_family.set(name, value);
        }
        if self.set_field(info, value.trim()) { Ok(()) } else { Err(bad_value(info, value)) }
    }

    /// Sets options of a running database: names and values, all or none of them.
    ///
    /// # Errors
    /// As [`Options::set`]; also if an option is fixed when a database is opened, or the result
    /// contradicts itself. Then nothing is changed.
    pub fn set_at_run_time(&mut self, changes: &[(&str, &str)]) -> Result<()> {
        let mut changed = self.clone();
        for (name, value) in changes {
            let info = Options::info(name)?;
            if !info.mutable {
                return Err(fixed(info));
            }
            changed.set(name, value)?;
        }
        changed.validate()?;
        *self = changed;
        Ok(())
    }

    /// An option as text; `set` takes it back unchanged.
    ///
    /// # Errors
    /// As [`Options::info`].
    pub fn get(&self, name: &str) -> Result<String> {
        let info = Options::info(name)?;
        if info.column_family { self.column_family.get(name) } else { Ok(self.get_field(info)) }
    }

    /// All options, one a line; [`Options::from_str_list`] reads them back.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from("[database]\n");
        for info in Options::INFO {
            text.push_str(&format!("{} = {}\n", info.name, self.get_field(info)));
        }
        text.push_str("\n[column family]\n");
        text.push_str(&self.column_family.to_text());
        text
    }

    /// Checks that the values are possible and do not contradict each other.
    ///
    /// # Errors
    /// `InvalidArgument` that names the option, its value and what it must be.
    pub fn validate(&self) -> Result<()> {
        validate::database(self)
    }

    /// Where the logs of a database in `directory` are.
    pub(crate) fn wal_directory(&self, directory: &Path) -> PathBuf {
        self.wal_dir.clone().unwrap_or_else(|| directory.to_owned())
    }

    /// The most that is reserved for a log: what a memtable holds, or none if no log is written.
    pub(crate) fn wal_preallocation(&self) -> u64 {
        if self.wal == WalMode::Off { 0 } else { self.column_family.memtable_bytes }
    }

    pub(crate) fn keeps_logs(&self) -> bool {
        self.wal_ttl_seconds > 0 || self.wal_size_limit_bytes > 0
    }
}
