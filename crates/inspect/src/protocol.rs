//! The values that the protocol carries, as JSON. docs/inspect.md lists the requests.
//!
//! What must stay true: fields are added, never renamed or given another meaning, while
//! [`PROTOCOL`] stays the same. A field that a peer does not send has its default.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of the protocol, which stands in every path (`/v1/status`).
pub const PROTOCOL: u32 = 1;

/// The name of the socket in the database's directory.
pub const SOCKET: &str = "INSPECT";

/// The state of a database at one moment. Times are in nanoseconds, sizes in bytes. Totals count
/// from open: two states and the time between them give rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The version of the protocol.
    pub protocol: u32,
    /// The version of Sateen.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// The directory of the database.
    pub path: String,
    /// Directories of all databases that this process serves, this one included.
    pub databases: Vec<String>,
    /// Time since it was opened.
    pub uptime_ns: u64,
    /// "ok", "degraded" or "read-only".
    pub health: String,
    /// The failure, if the health is not "ok".
    pub health_cause: Option<String>,
    /// Whether other programs have most of the machine's processors.
    pub short_of_processor: bool,
    /// The part of their time that other programs used lately, from 0 to 1.
    pub processors_others: f64,
    /// CPU time of the whole process.
    pub process_cpu_ns: u64,
    /// Processors that the process may use.
    pub processors: u64,
    /// Operations of clients, by kind.
    pub operations: Vec<OperationStatus>,
    /// Bytes of keys and values written by clients.
    pub written_bytes: u64,
    /// Bytes of values read by clients.
    pub read_bytes: u64,
    /// Waits of writers, by cause.
    pub stalls: Vec<StallStatus>,
    /// Time until writes stop if all goes on as now, if that is known and they will.
    pub time_to_stall_ns: Option<u64>,
    /// Bytes a second that the background keeps up with, if that is known.
    pub sustainable_write_rate: Option<u64>,
    /// Column families.
    pub families: Vec<FamilyStatus>,
    /// I/O by class.
    pub io: Vec<ClassTraffic>,
    /// Bytes a second that the device is believed to read.
    pub device_read_bandwidth: u64,
    /// Bytes a second that the device is believed to write.
    pub device_write_bandwidth: u64,
    /// Average time of a sync.
    pub device_barrier_ns: u64,
    /// Limit on the reads of background work in bytes a second; 0 if there is none.
    pub background_read_limit: u64,
    /// Limit on the writes of background work in bytes a second; 0 if there is none.
    pub background_write_limit: u64,
    /// Flushes and compactions that run, paused ones included.
    pub jobs: Vec<JobStatus>,
    /// Flushes that may run at the same time.
    pub flush_slots: u64,
    /// Compactions that may run at the same time.
    pub compaction_slots: u64,
    /// Time that deep compactions need to catch up.
    pub debt_ns: u64,
    /// Memory by owner.
    pub memory: BTreeMap<String, u64>,
    /// Limit on all owners together; 0 if there is none.
    pub memory_budget: u64,
    /// Part of blocks that were in the block cache, from 0 to 1, since open.
    pub cache_hit_rate: f64,
    /// Bytes written to tables for each byte that clients wrote, since open.
    pub write_amplification: f64,
    /// Bytes of write-ahead logs that recovery would read.
    pub live_wal_bytes: u64,
    /// Bytes of files that hold tables.
    pub table_file_bytes: u64,
    /// The slowest operations of the last seconds, slowest first.
    pub slow: Vec<SlowStatus>,
    /// Bytes of garbage of value files and dead tables that are not freed yet.
    pub obsolete_bytes: u64,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationStatus {
    /// "get", "multi_get", "write" or "seek".
    pub name: String,
    /// Number since open.
    pub count: u64,
    /// Latency in the last full second.
    pub last_second: Quantiles,
    /// Latency since open.
    pub since_open: Quantiles,
}

/// Quantiles of latencies, in nanoseconds. All are 0 if nothing was timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quantiles {
    /// Number of operations that were timed.
    pub timed: u64,
    /// The median.
    pub p50_ns: u64,
    /// One in a hundred takes longer.
    pub p99_ns: u64,
    /// One in a thousand takes longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Waits of writers for one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StallStatus {
    /// The cause, in the words of the metrics.
    pub cause: String,
    /// Writers that wait now.
    pub waiting: u64,
    /// Finished waits.
    pub waits: u64,
    /// Their sum.
    pub waited_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// A column family.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FamilyStatus {
    /// Its name.
    pub name: String,
    /// Its levels, from level 0 on.
    pub levels: Vec<LevelStatus>,
    /// Sealed memtables that wait for their flush.
    pub immutable_memtables: u64,
    /// Bytes that compactions must still move.
    pub debt_bytes: u64,
    /// Rate to which its writers are slowed down; 0 if they are stopped, none if they are not.
    pub write_limit: Option<u64>,
}

/// A level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelStatus {
    /// Sorted runs.
    pub runs: u64,
    /// Tables.
    pub tables: u64,
    /// Bytes of the tables.
    pub bytes: u64,
    /// The size at which it is compacted; 0 if there is none.
    pub target_bytes: u64,
}

/// I/O of one class since open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassTraffic {
    /// The class: client, wal, manifest, flush, l0, deep or reclaim.
    pub class: String,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Syncs.
    pub syncs: u64,
}

/// A running job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobStatus {
    /// Its number, unique since open.
    pub job: u64,
    /// What it does: "flush", "L0→L1".
    pub what: String,
    /// The column family.
    pub family: String,
    /// Why it was picked; none for a flush.
    pub reason: Option<String>,
    /// How long it has run.
    pub age_ns: u64,
    /// Bytes that it has to read.
    pub input_bytes: u64,
    /// Bytes that it has read.
    pub read_bytes: u64,
    /// Bytes that it has written.
    pub written_bytes: u64,
    /// Why it is paused; none if it is not.
    pub paused: Option<String>,
}

/// A slow operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowStatus {
    /// "read", "write" or "scan".
    pub kind: String,
    /// How long ago it ended.
    pub ago_ns: u64,
    /// How long it took.
    pub total_ns: u64,
    /// Where its time went, without parts of 0.
    pub parts: BTreeMap<String, u64>,
    /// Background work in the second in which it ended, longest first.
    pub beside: Vec<String>,
}

/// Why slow seconds were slow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplanationReport {
    /// The same as `episodes`, in sentences.
    pub text: String,
    /// Length of the period that is known, in seconds.
    pub known_seconds: u64,
    /// The slow periods, worst first.
    pub episodes: Vec<EpisodeReport>,
}

/// Slow seconds of one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpisodeReport {
    /// How many seconds ago it began.
    pub began_seconds_ago: u64,
    /// How many seconds ago it ended.
    pub ended_seconds_ago: u64,
    /// Number of slow seconds.
    pub slow_seconds: u64,
    /// The cause, in a word.
    pub cause: String,
    /// The cause, in a sentence.
    pub sentence: String,
    /// Sentences with the figures on which it rests.
    pub evidence: Vec<String>,
    /// What would have helped.
    pub remedy: String,
    /// The longest operation.
    pub longest_ns: u64,
    /// Where the time of the slowest operations went.
    pub waited_for: BTreeMap<String, u64>,
    /// Waits of writers by cause, in nanoseconds.
    pub stalled: BTreeMap<String, u64>,
    /// Time of background work, by its name.
    pub work: BTreeMap<String, u64>,
}
