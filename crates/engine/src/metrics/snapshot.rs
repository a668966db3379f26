//! The state of the engine and its totals at one moment, as a plain value.

use sateen_control::{Overflow, StallCause};
use sateen_store::base::histogram::HistogramSnapshot;
use sateen_store::vfs::ClassSnapshot;

use super::table;

/// A client operation whose latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A point read. One in eight is timed.
    Get,
    /// A read of several keys.
    MultiGet,
    /// A write batch, from the call to the return. One in four is timed.
    Write,
    /// A seek of an iterator.
    Seek,
}

impl Operation {
    /// All operations, ordered by index.
    pub const ALL: [Operation; 4] =
        [Operation::Get, Operation::MultiGet, Operation::Write, Operation::Seek];

    /// Returns the name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Get => "get",
            Operation::MultiGet => "multi_get",
            Operation::Write => "write",
            Operation::Seek => "seek",
        }
    }
}

/// Client operations and what they took since open. Exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Point reads, each key of a multi_get included.
    pub gets: u64,
    /// Point reads that found a value.
    pub get_hits: u64,
    /// Point reads that a memtable answered.
    pub memtable_hits: u64,
    /// Bytes of the values that point reads returned.
    pub get_bytes: u64,
    /// Calls of multi_get.
    pub multi_gets: u64,
    /// Write batches.
    pub writes: u64,
    /// Entries written: values and deletions.
    pub written_entries: u64,
    /// Bytes of keys and values written.
    pub write_bytes: u64,
    /// Commit groups: batches that were committed together.
    pub write_groups: u64,
    /// Iterator seeks.
    pub seeks: u64,
    /// Iterator steps.
    pub steps: u64,
    /// Entries that iterators skipped: deleted, hidden, or newer than their snapshot.
    pub iter_skipped: u64,
    /// Seeks of iterators that skipped many versions of one key.
    pub iter_reseeks: u64,
    /// Data blocks found in the block cache.
    pub data_block_hits: u64,
    /// Data blocks read from a file.
    pub data_block_misses: u64,
    /// Table filters that were asked.
    pub filter_checks: u64,
    /// Tables that a filter excluded.
    pub filter_negatives: u64,
    /// Tables that were searched without a hit although their filter allowed it.
    pub filter_false_positives: u64,
    /// Tables that had to be opened.
    pub table_opens: u64,
    /// Bytes appended to WALs.
    pub wal_bytes: u64,
    /// Syncs of WALs.
    pub wal_syncs: u64,
}

/// The latency of one operation, in nanoseconds.
#[derive(Clone, Debug)]
pub struct OperationLatency {
    /// The operation.
    pub operation: Operation,
    /// Latency since open.
    pub since_open: HistogramSnapshot,
    /// Latency in the last full second.
    pub last_second: HistogramSnapshot,
}

/// The waits of writers for one cause.
#[derive(Clone, Debug)]
pub struct StallTotals {
    /// The cause.
    pub cause: StallCause,
    /// Writers that wait now.
    pub waiting: u64,
    /// Finished waits in nanoseconds: count, sum, quantiles and exact maximum.
    pub waits_ns: HistogramSnapshot,
}

/// Flushes since open.
#[derive(Clone, Debug, Default)]
pub struct FlushTotals {
    /// Finished flushes.
    pub count: u64,
    /// Entries in the flushed memtables.
    pub entries_in: u64,
    /// Hot keys that stayed in memory: a flush moved them to the next memtable.
    pub keys_kept: u64,
    /// Bytes of keys and values in the flushed memtables.
    pub bytes_in: u64,
    /// Bytes of tables written.
    pub bytes_out: u64,
    /// Tables written.
    pub tables_out: u64,
    /// Durations in nanoseconds, from the start until the tables are installed.
    pub durations_ns: HistogramSnapshot,
}

/// Compactions into one level since open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionTotals {
    /// Finished compactions.
    pub count: u64,
    /// Bytes of input tables from other levels.
    pub bytes_in_above: u64,
    /// Bytes of input tables from the output level.
    pub bytes_in_level: u64,
    /// Bytes of tables written to the level.
    pub bytes_out: u64,
    /// Bytes of tables that moved to the level without being rewritten.
    pub bytes_moved: u64,
    /// Entries read.
    pub entries_in: u64,
    /// Entries dropped: hidden from every reader, or deletions with nothing left to hide.
    pub entries_dropped: u64,
    /// Nanoseconds from the start until the tables are installed, summed over all compactions.
    pub duration_ns: u64,
}

/// The shape of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelShape {
    /// Sorted runs; with regions, the most in one of them.
    pub runs: u64,
    /// Tables.
    pub tables: u64,
    /// Bytes of the tables.
    pub bytes: u64,
    /// Approximate bytes of tables that overlap at most `level_multiplier` tables of the next
    /// level, or the bytes of as many full ones (vLSM §4.2). 0 in level 0 and in the last level.
    pub good_bytes: u64,
    /// The size at which the level is compacted, in bytes. For the last level it is its size times
    /// the growth factor, which is the ratio of this value to that of the level above. 0 if there
    /// is no such limit, as in level 0.
    pub target_bytes: u64,
}

/// The state of one column family.
#[derive(Clone, Debug, Default)]
pub struct ColumnFamilyMetrics {
    /// Its name.
    pub name: String,
    /// Its levels, from level 0 on.
    pub levels: Vec<LevelShape>,
    /// Sealed memtables that wait for their flush.
    pub immutable_memtables: u64,
    /// Size in bytes at which the next memtable will be sealed; with regions, the largest.
    pub memtable_limit: u64,
    /// Bytes that compactions must still move until every level is within its target.
    pub compaction_debt_bytes: u64,
    /// Number of compactions that must run one after the other until a full level 0 has room for a
    /// flush (the length of a compaction chain, vLSM §2.3). With regions, the longest.
    pub chain_length: u64,
    /// Bytes that these compactions read; with regions, the most.
    pub chain_bytes: u64,
    /// Number of value files that its tables refer to.
    pub value_files: u64,
    /// Bytes of all values that were written to these files.
    pub value_file_bytes: u64,
    /// Bytes of the values in these files that no table refers to.
    pub value_garbage_bytes: u64,
    /// Its part of [`Metrics::obsolete_bytes`], in proportion to the bytes of its tables.
    pub obsolete_bytes: u64,
    /// Rate to which its writers are slowed down, in bytes per second; 0 if they are stopped,
    /// `None` if they are not slowed down.
    pub write_rate_limit: Option<u64>,
}

/// The state of the I/O scheduler, and its totals since open. Bandwidths are in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerMetrics {
    /// Read bandwidth of the device, measured or set.
    pub device_read_bandwidth: u64,
    /// Write bandwidth of the device, measured or set.
    pub device_write_bandwidth: u64,
    /// Average time of a barrier (fsync), in nanoseconds.
    pub device_barrier_ns: u64,
    /// Bandwidth that clients used when the limit of background work last changed.
    pub client_bandwidth: u64,
    /// Limit on the reads of background work.
    pub background_read_bandwidth: u64,
    /// Limit on the writes of background work.
    pub background_write_bandwidth: u64,
    /// Thousandths of the time of the machine's processors that other programs used lately. From
    /// 500 on, with less than 100 idle, the scheduler takes long requests for waits for a processor
    /// and not for the device.
    pub processors_others: u32,
    /// Whether the machine is short of processors: the scheduler does so now. It ends below 400, or
    /// from 200 idle on.
    pub short_of_processor: bool,
    /// Time that deep compactions need to catch up at their current bandwidth, in nanoseconds.
    pub debt_ns: u64,
    /// Jobs that are paused now.
    pub paused_jobs: u64,
    /// Deep compactions that were paused for a compaction out of level 0, since open.
    pub preemptions: u64,
    /// Deep compactions that were paused because clients needed the device, since open.
    pub peak_pauses: u64,
    /// Deep compactions that were paused because the number of job slots fell, since open.
    pub slot_pauses: u64,
    /// Compactions that had to end early for a compaction out of level 0, since open.
    pub early_ends: u64,
    /// Changes of the bandwidth limit of background work, since open.
    pub bandwidth_changes: u64,
    /// Limit on flushes that run at the same time.
    pub flush_slots: u64,
    /// Limit on compactions that run at the same time.
    pub compaction_slots: u64,
    /// Adjustments of job slots or memtable size by the tuner since open, by [`Overflow::index`].
    pub adjustments: [u64; Overflow::ALL.len()],
}

/// Memory by owner, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Active memtables.
    pub active_memtables: u64,
    /// Sealed memtables that wait for their flush, or that readers still use.
    pub immutable_memtables: u64,
    /// Blocks in the block cache.
    pub block_cache: u64,
    /// Blocks that readers hold and the cache has dropped.
    pub pinned_blocks: u64,
    /// Indexes and filters of open tables.
    pub indexes_and_filters: u64,
    /// Buffers of flushes and compactions.
    pub job_buffers: u64,
    /// Buffers of the WAL and of batches that are being committed.
    pub wal_buffers: u64,
    /// Versions and their descriptions of tables.
    pub versions: u64,
    /// Limit on all owners together; 0 if there is none.
    pub budget: u64,
}

impl MemoryUse {
    /// Returns the owners by their names in metrics.
    #[must_use]
    pub fn owners(&self) -> [(&'static str, u64); 8] {
        [
            ("active_memtables", self.active_memtables),
            ("immutable_memtables", self.immutable_memtables),
            ("block_cache", self.block_cache),
            ("pinned_blocks", self.pinned_blocks),
            ("indexes_and_filters", self.indexes_and_filters),
            ("job_buffers", self.job_buffers),
            ("wal_buffers", self.wal_buffers),
            ("versions", self.versions),
        ]
    }

    /// Returns the sum over all owners.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.owners().iter().map(|(_, bytes)| bytes).sum()
    }
}

/// A file of tables, by the state of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableFile {
    /// The number in its name.
    pub number: u64,
    /// Bytes of live tables.
    pub live_bytes: u64,
    /// Bytes of dead tables that are not freed yet.
    pub dead_bytes: u64,
    /// Bytes freed by punching holes.
    pub punched_bytes: u64,
    /// Number of these holes.
    pub holes: u32,
}

/// All table files together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableFileTotals {
    /// Number of files that hold tables.
    pub files: u64,
    /// Bytes of live tables.
    pub live_bytes: u64,
    /// Bytes of dead tables that are not freed yet.
    pub dead_bytes: u64,
    /// Bytes freed by punching holes.
    pub punched_bytes: u64,
    /// Number of these holes.
    pub holes: u64,
    /// Files removed since open.
    pub removed: u64,
    /// Open descriptors of table files.
    pub descriptors: u64,
    /// Limit on these descriptors: `max_open_files`, or half of the process's limit on open files
    /// if that is less.
    pub descriptors_max: u64,
    /// Whether the file system can punch holes, as far as is known. If it cannot, dead tables are
    /// freed only with their file.
    pub punching: bool,
}

/// The state of the engine at one moment, and its totals since open.
///
/// Counts, flushes, compactions, stalls and I/O are totals: subtract two snapshots to get an
/// interval.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Client operations.
    pub counts: Counts,
    /// Latencies, one for each of [`Operation::ALL`].
    pub latencies: Vec<OperationLatency>,
    /// Waits of writers, one for each cause.
    pub stalls: Vec<StallTotals>,
    /// CPU time of each step of a flush or compaction, in nanoseconds.
    pub steps_cpu_ns: HistogramSnapshot,
    /// Durations of compactions in nanoseconds, from the start until the tables are installed.
    pub compactions_ns: HistogramSnapshot,
    /// Flushes.
    pub flushes: FlushTotals,
    /// Compactions by output level, from level 0 on.
    pub compactions: Vec<CompactionTotals>,
    /// Failures of flushes, compactions and other background work.
    pub background_errors: u64,
    /// Bytes, operations and latencies of I/O by [`IoClass::index`](crate::vfs::IoClass::index).
    pub io: Vec<ClassSnapshot>,
    /// The column families.
    pub column_families: Vec<ColumnFamilyMetrics>,
    /// The I/O scheduler.
    pub scheduler: SchedulerMetrics,
    /// Memory by owner.
    pub memory: MemoryUse,
    /// The health after failures of background work: "ok", "degraded" (writes are refused until the
    /// cause, such as a full disk, is gone) or "read-only" (writes are refused until the database
    /// is resumed).
    pub health: &'static str,
    /// The failure, if the health is not "ok".
    pub health_cause: Option<String>,
    /// Flushes that run now.
    pub running_flushes: u64,
    /// Compactions that run now, paused ones included.
    pub running_compactions: u64,
    /// Snapshots that are held.
    pub snapshots: u64,
    /// Bytes that no version needs and that are not freed yet.
    pub obsolete_bytes: u64,
    /// The table files.
    pub table_files: TableFileTotals,
    /// Bytes of WALs that recovery would read.
    pub live_wal_bytes: u64,
    /// The scrub.
    pub scrub: ScrubMetrics,
}

/// The verification of all stored data ([`Db::scrub`](crate::Db::scrub)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubMetrics {
    /// Whether a scrub runs.
    pub running: bool,
    /// Finished scrubs.
    pub runs: u64,
    /// Bytes of tables and WALs that were verified.
    pub bytes: u64,
    /// Number of findings of damage.
    pub problems: u64,
    /// Number of the table that is being verified, or was last; 0 during WALs. It ascends.
    pub position: u64,
}

impl ColumnFamilyMetrics {
    /// Returns the bytes of all levels, and of dead tables that are not freed yet, for each byte of
    /// the deepest level that has any: about how many times the space of the live data they take. 0
    /// without tables below level 0.
    #[must_use]
    pub fn space_amplification(&self) -> f64 {
        let bytes = || self.levels.iter().map(|level| level.bytes);
        let deepest = bytes().skip(1).rev().find(|bytes| *bytes > 0).unwrap_or(0);
        ratio(bytes().sum::<u64>() + self.obsolete_bytes, deepest)
    }
}

impl Metrics {
    /// Divides the obsolete bytes among the column families, in proportion to their tables.
    pub(crate) fn divide_obsolete_bytes(&mut self) {
        let bytes = |family: &ColumnFamilyMetrics| -> u64 {
            family.levels.iter().map(|level| level.bytes).sum()
        };
        let all = self.column_families.iter().map(bytes).sum::<u64>().max(1);
        for family in &mut self.column_families {
            let part = u128::from(self.obsolete_bytes) * u128::from(bytes(family));
            family.obsolete_bytes = u64::try_from(part / u128::from(all)).unwrap_or(u64::MAX);
        }
    }

    /// Returns the bytes written to tables for each byte of keys and values that clients wrote,
    /// since open; 0 before the first write. The WAL is not counted.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        let compacted: u64 = self.compactions.iter().map(|level| level.bytes_out).sum();
        ratio(self.flushes.bytes_out + compacted, self.counts.write_bytes)
    }

    /// Returns the share of data blocks that were found in the block cache, from 0 to 1.
    #[must_use]
    pub fn block_cache_hit_rate(&self) -> f64 {
        let hits = self.counts.data_block_hits;
        ratio(hits, hits + self.counts.data_block_misses)
    }

    /// Returns the latency of one operation.
    #[must_use]
    pub fn latency(&self, operation: Operation) -> Option<&OperationLatency> {
        self.latencies.iter().find(|latency| latency.operation == operation)
    }

    /// Returns the metrics in Prometheus' text format (version 0.0.4). docs/metrics.md lists them.
    #[must_use]
    pub fn to_prometheus_text(&self) -> String {
        table::prometheus_text(self)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
