//! Everything that the engine can tell about itself at one moment, as a plain value.

use sateen_control::{Overflow, StallCause};
use sateen_store::base::histogram::HistogramSnapshot;
use sateen_store::vfs::ClassSnapshot;

use super::table;

/// An operation whose latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A point read. Sampled: one in eight.
    Get,
    /// A read of many keys at once.
    MultiGet,
    /// A write batch, from the call to the return. Sampled: one in four.
    Write,
    /// An iterator's seek.
    Seek,
}

impl Operation {
    /// All operations, in the order of their indices.
    pub const ALL: [Operation; 4] =
        [Operation::Get, Operation::MultiGet, Operation::Write, Operation::Seek];

    /// Its name in metrics.
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

/// What clients did, and what it took, since open. Exact.
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
    /// Groups of batches that were committed together.
    pub write_groups: u64,
    /// Iterator seeks.
    pub seeks: u64,
    /// Iterator steps.
    pub steps: u64,
    /// Entries that iterators passed over: deleted, hidden, or newer than their snapshot.
    pub iter_skipped: u64,
    /// Seeks that iterators made to go past many versions of a key.
    pub iter_reseeks: u64,
    /// Data blocks found in the block cache.
    pub data_block_hits: u64,
    /// Data blocks read from a file.
    pub data_block_misses: u64,
    /// Table filters asked.
    pub filter_checks: u64,
    /// Tables that a filter spared.
    pub filter_negatives: u64,
    /// Tables searched in vain although their filter said yes.
    pub filter_false_positives: u64,
    /// Tables that had to be opened.
    pub table_opens: u64,
    /// Bytes appended to write-ahead logs.
    pub wal_bytes: u64,
    /// Syncs of write-ahead logs.
    pub wal_syncs: u64,
}

/// The latency of one operation in nanoseconds.
#[derive(Clone, Debug)]
pub struct OperationLatency {
    /// Which operation.
    pub operation: Operation,
    /// Since open.
    pub since_open: HistogramSnapshot,
    /// In the last second that is over.
    pub last_second: HistogramSnapshot,
}

/// The waiting of writers for one cause.
#[derive(Clone, Debug)]
pub struct StallTotals {
    /// Which cause.
    pub cause: StallCause,
    /// Writers waiting at this moment.
    pub waiting: u64,
    /// Waits that are over, in nanoseconds: their count, sum, quantiles and exact maximum.
    pub waits_ns: HistogramSnapshot,
}

/// Flushes since open.
#[derive(Clone, Debug, Default)]
pub struct FlushTotals {
    /// Flushes done.
    pub count: u64,
    /// Entries in the flushed memtables.
    pub entries_in: u64,
    /// Keys that were written again and stayed in memory for being hot.
    pub keys_kept: u64,
    /// Bytes of keys and values in them.
    pub bytes_in: u64,
    /// Bytes of tables written.
    pub bytes_out: u64,
    /// Tables written.
    pub tables_out: u64,
    /// Durations in nanoseconds, from start to installed.
    pub durations_ns: HistogramSnapshot,
}

/// Compactions into one level since open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionTotals {
    /// Compactions done.
    pub count: u64,
    /// Bytes of input tables from the levels above.
    pub bytes_in_above: u64,
    /// Bytes of input tables of the level itself.
    pub bytes_in_level: u64,
    /// Bytes of tables written to the level.
    pub bytes_out: u64,
    /// Bytes of tables that came to the level without being rewritten.
    pub bytes_moved: u64,
    /// Entries read.
    pub entries_in: u64,
    /// Entries dropped: hidden from everybody, or deletions with nothing left to hide.
    pub entries_dropped: u64,
    /// Nanoseconds from start to installed, of all together.
    pub duration_ns: u64,
}

/// The shape of one level at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelShape {
    /// Sorted runs; of regions the most that one has.
    pub runs: u64,
    /// Tables.
    pub tables: u64,
    /// Bytes of the tables.
    pub bytes: u64,
    /// Of those, about, in tables that overlap no more than `level_multiplier` times their size of
    /// the next level: they are good to go down (vLSM §4.2). 0 in level 0 and in the last one.
    pub good_bytes: u64,
    /// The bytes that it may have before compaction takes some of them down, of the last one what
    /// it has by the growth factor, which is this over that of the level above. 0 where there is no
    /// such limit, as in level 0.
    pub target_bytes: u64,
}

/// One column family at this moment.
#[derive(Clone, Debug, Default)]
pub struct ColumnFamilyMetrics {
    /// Its name.
    pub name: String,
    /// Its levels, from 0.
    pub levels: Vec<LevelShape>,
    /// Memtables that wait for their flush.
    pub immutable_memtables: u64,
    /// Bytes at which a memtable is sealed, from the next one on. Of regions the largest.
    pub memtable_limit: u64,
    /// Bytes that compaction has yet to move before every level is within its target.
    pub compaction_debt_bytes: u64,
    /// Compactions that depend on each other, level after level, before a flush into a full level 0
    /// has room, and the bytes that they read: how long and how wide a compaction chain is (vLSM
    /// §2.3). Of regions the longest and the widest.
    pub chain_length: u64,
    /// See `chain_length`.
    pub chain_bytes: u64,
    /// Bytes a second that its writers are slowed down to, 0 if they are stopped; `None`: they go
    /// on as fast as they can.
    pub write_rate_limit: Option<u64>,
}

/// What the I/O scheduler believes, gives and has done. Bandwidths are in bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerMetrics {
    /// What the device is believed to read.
    pub device_read_bandwidth: u64,
    /// What it is believed to write.
    pub device_write_bandwidth: u64,
    /// What a barrier takes, in nanoseconds.
    pub device_barrier_ns: u64,
    /// What clients used of it when background work was given another bandwidth last.
    pub client_bandwidth: u64,
    /// What background work may read.
    pub background_read_bandwidth: u64,
    /// What background work may write.
    pub background_write_bandwidth: u64,
    /// How long deep compactions would take to catch up with what they get, in nanoseconds.
    pub debt_ns: u64,
    /// Jobs that are paused at this moment.
    pub paused_jobs: u64,
    /// Deep compactions that were paused for one out of level 0, since open.
    pub preemptions: u64,
    /// Deep compactions that were paused because clients needed the device, since open.
    pub peak_pauses: u64,
    /// Deep compactions that were paused because there were fewer job slots, since open.
    pub slot_pauses: u64,
    /// Compactions that were told to end early for one out of level 0, since open.
    pub early_ends: u64,
    /// How often background work was given another bandwidth, since open.
    pub bandwidth_changes: u64,
    /// Flushes that may run at a time.
    pub flush_slots: u64,
    /// Compactions that may run at a time.
    pub compaction_slots: u64,
    /// How often job slots or the size of memtables were adjusted, since open, by
    /// [`Overflow::index`].
    pub adjustments: [u64; Overflow::ALL.len()],
}

/// Memory by owner at this moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Memtables that are written to.
    pub active_memtables: u64,
    /// Memtables that wait for their flush or for readers to let go of them.
    pub immutable_memtables: u64,
    /// Blocks in the cache.
    pub block_cache: u64,
    /// Blocks that readers hold and the cache does not.
    pub pinned_blocks: u64,
    /// Indexes and filters of open tables.
    pub indexes_and_filters: u64,
    /// Buffers of flushes and compactions.
    pub job_buffers: u64,
    /// Buffers of the write-ahead log and of batches being committed.
    pub wal_buffers: u64,
    /// The catalogue: versions and table descriptions.
    pub versions: u64,
    /// What all of it together may take; 0 if not limited.
    pub budget: u64,
}

impl MemoryUse {
    /// The owners by name, as metrics print them.
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

    /// All owners together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.owners().iter().map(|(_, bytes)| bytes).sum()
    }
}

/// What a file of tables holds, and what it does not hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableFile {
    /// The number in its name.
    pub number: u64,
    /// Bytes of tables that are needed.
    pub live_bytes: u64,
    /// Bytes of others that it still takes.
    pub dead_bytes: u64,
    /// Bytes given back to the file system.
    pub punched_bytes: u64,
    /// The holes that those are.
    pub holes: u32,
}

/// The files of tables that hold anything, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableFileTotals {
    /// How many.
    pub files: u64,
    /// Bytes of tables that are needed.
    pub live_bytes: u64,
    /// Bytes of others that they still take.
    pub dead_bytes: u64,
    /// Bytes that they gave back to the file system.
    pub punched_bytes: u64,
    /// The holes that those are.
    pub holes: u64,
    /// Files removed since open.
    pub removed: u64,
    /// Descriptors of them that are open.
    pub descriptors: u64,
    /// How many of these may be open: `max_open_files`, or half of the process's limit on open
    /// files if that is less.
    pub descriptors_max: u64,
    /// Whether the file system gives back parts of files, as far as is known. Where it does not,
    /// what is dead goes with its file.
    pub punching: bool,
}

/// Everything that the engine can tell about itself at one moment.
///
/// Counts, flushes, compactions, stalls and I/O are totals since open: two snapshots subtract.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// What clients did, and what it took.
    pub counts: Counts,
    /// Latencies, one entry for each of [`Operation::ALL`].
    pub latencies: Vec<OperationLatency>,
    /// Waiting writers, one entry for each cause.
    pub stalls: Vec<StallTotals>,
    /// Nanoseconds that steps of flushes and compactions took a processor, each.
    pub steps_cpu_ns: HistogramSnapshot,
    /// Flushes.
    pub flushes: FlushTotals,
    /// Compactions by the level that they wrote to, from 0.
    pub compactions: Vec<CompactionTotals>,
    /// Failures of flushes, compactions and other work in the background.
    pub background_errors: u64,
    /// Bytes, operations and latencies of I/O by [`IoClass::index`](crate::vfs::IoClass::index).
    pub io: Vec<ClassSnapshot>,
    /// The column families.
    pub column_families: Vec<ColumnFamilyMetrics>,
    /// The I/O scheduler.
    pub scheduler: SchedulerMetrics,
    /// Memory by owner.
    pub memory: MemoryUse,
    /// What the last failures in the background left working: "ok", "degraded" (writes are refused
    /// until the cause, say a full disk, goes away) or "read-only" (until the database is resumed).
    pub health: &'static str,
    /// The failure, if not everything works.
    pub health_cause: Option<String>,
    /// Flushes running at this moment.
    pub running_flushes: u64,
    /// Compactions running at this moment, paused ones included.
    pub running_compactions: u64,
    /// Snapshots that are held.
    pub snapshots: u64,
    /// Bytes in files that no version needs and that are not given back yet.
    pub obsolete_bytes: u64,
    /// The files that hold tables.
    pub table_files: TableFileTotals,
    /// Bytes of write-ahead logs that recovery would read.
    pub live_wal_bytes: u64,
    /// The verification of what is stored.
    pub scrub: ScrubMetrics,
}

/// The verification of what is stored ([`Db::scrub`](crate::Db::scrub)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubMetrics {
    /// One runs.
    pub running: bool,
    /// How many have come to their end.
    pub runs: u64,
    /// Bytes of tables and logs that were verified.
    pub bytes: u64,
    /// How often damage was found.
    pub problems: u64,
    /// The number of the table that is verified, or was last; 0 while logs are. They ascend.
    pub position: u64,
}

impl Metrics {
    /// Bytes written to tables for each byte of keys and values that clients wrote, since open; 0
    /// before the first write. The write-ahead log is not counted.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        let compacted: u64 = self.compactions.iter().map(|level| level.bytes_out).sum();
        ratio(self.flushes.bytes_out + compacted, self.counts.write_bytes)
    }

    /// The share of data blocks that were found in the block cache, 0 to 1.
    #[must_use]
    pub fn block_cache_hit_rate(&self) -> f64 {
        let hits = self.counts.data_block_hits;
        ratio(hits, hits + self.counts.data_block_misses)
    }

    /// The latency of one operation.
    #[must_use]
    pub fn latency(&self, operation: Operation) -> Option<&OperationLatency> {
        self.latencies.iter().find(|latency| latency.operation == operation)
    }

    /// All of it in the text format that Prometheus scrapes (version 0.0.4). docs/metrics.md lists
    /// the metrics.
    #[must_use]
    pub fn to_prometheus_text(&self) -> String {
        table::prometheus_text(self)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
