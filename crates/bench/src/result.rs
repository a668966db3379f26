//! The results of a run: the values behind every table, file and chart.
//!
//! Times are in nanoseconds and sizes in bytes unless a name says otherwise. Arrays over kinds are
//! in the order of [`KINDS`].

use std::collections::BTreeMap;

use sateen_workload::{Histogram, OpKind};
use serde::{Deserialize, Serialize};

use crate::store::{LevelSize, StalledBy, StoreConfig};
use crate::system::{DiskBytes, Machine};

/// The kinds of operations.
pub const KINDS: [&str; 3] = ["read", "write", "scan"];

/// Returns the index of an operation in [`KINDS`].
pub(crate) fn kind_index(kind: OpKind) -> usize {
    match kind {
        OpKind::Read => 0,
        OpKind::Write | OpKind::ReadModifyWrite | OpKind::Delete => 1,
        OpKind::Scan => 2,
    }
}

/// A latency distribution in six numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The number of values.
    pub count: u64,
    /// The mean.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// 99 of 100 values are not above this.
    pub p99: u64,
    /// 999 of 1000 values are not above this.
    pub p999: u64,
    /// 9999 of 10000 values are not above this.
    pub p9999: u64,
    /// The largest.
    pub max: u64,
}

impl Quantiles {
    /// Summarizes several histograms together; `None` if all are empty.
    pub(crate) fn of_all<'a>(parts: impl IntoIterator<Item = &'a Histogram>) -> Option<Quantiles> {
        let mut sum = Histogram::new();
        parts.into_iter().for_each(|part| sum.merge(part));
        Quantiles::of(&sum)
    }

    /// Summarizes a histogram; `None` if it is empty.
    pub(crate) fn of(histogram: &Histogram) -> Option<Quantiles> {
        (histogram.count() > 0).then(|| Quantiles {
            count: histogram.count(),
            mean: histogram.mean() as u64,
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            p999: histogram.quantile(0.999),
            p9999: histogram.quantile(0.9999),
            max: histogram.max(),
        })
    }
}

/// The operations that ended in a second, by kind and of all kinds together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) done: [u64; 3],
    pub(crate) latency: [Option<Quantiles>; 3],
    pub(crate) all: Option<Quantiles>,
}

impl Latencies {
    pub(crate) fn of(kinds: &[Histogram; 3]) -> Latencies {
        Latencies {
            done: std::array::from_fn(|kind| kinds[kind].count()),
            latency: std::array::from_fn(|kind| Quantiles::of(&kinds[kind])),
            all: Quantiles::of_all(kinds),
        }
    }
}

/// One second of the measured phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// Operations that were due in the second; in a closed loop, operations that ended in it.
    pub offered: u64,
    /// Operations that ended in it.
    pub done: [u64; 3],
    /// Latencies of the operations that ended in it.
    pub latency: [Option<Quantiles>; 3],
    /// The same of all kinds together.
    #[serde(default)]
    pub all: Option<Quantiles>,
    /// Bytes of the process to and from storage.
    pub disk: DiskBytes,
    /// Bytes read and written by class, in the order of [`Measured::io_classes`].
    pub io: Vec<[u64; 2]>,
    /// The levels at its end.
    pub levels: Vec<LevelSize>,
    /// Nanoseconds for which writes were slowed or stopped, by the engine's count.
    pub stall_ns: u64,
    /// True if writes were stopped at its end.
    pub stopped: bool,
    /// Bytes a second to which writes were limited at its end.
    pub delayed_rate: Option<u64>,
    /// Resident memory at its end.
    pub resident: u64,
    /// Compaction debt in bytes at its end.
    pub debt: Option<u64>,
    /// Bandwidths of the device for reads and writes in the engine's estimate, in bytes a second,
    /// at its end.
    #[serde(default)]
    pub believed: Option<[u64; 2]>,
    /// Compactions that would have to follow each other before a full level 0 has room, and the
    /// bytes that they would read, at its end.
    #[serde(default)]
    pub chain: Option<[u64; 2]>,
    /// Job slots, and bytes at which the next memtable is sealed, at its end.
    #[serde(default)]
    pub knobs: Option<[u64; 2]>,
    /// Milliseconds of processor time of all processors that the host gave to other guests.
    #[serde(default)]
    pub stolen_ms: u64,
    /// Milliseconds of processor time of all processors that other processes of this system used.
    #[serde(default)]
    pub others_ms: u64,
}

/// A background job of the measured phase. Seconds count from the beginning of the phase. A job
/// that was already running has a negative beginning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobBar {
    /// The kind of job: "flush", "L0→L1".
    pub what: String,
    /// The class of its I/O, as in [`Measured::io_classes`].
    pub class: String,
    /// When it began.
    pub start: f64,
    /// When it ended, or the end of the phase.
    pub end: f64,
    /// Bytes that it read; 0 if it has not ended.
    pub read: u64,
    /// Bytes that it wrote; 0 if it has not ended.
    pub written: u64,
    /// Beginnings and ends of its pauses.
    pub pauses: Vec<[f64; 2]>,
}

/// A period of the measured phase in which writers waited for admission.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallBar {
    /// The engine's name of the cause.
    pub cause: String,
    /// When the first writer began to wait, in seconds.
    pub start: f64,
    /// When the last writer was admitted.
    pub end: f64,
    /// The number of waits that ended.
    pub waits: u32,
    /// The sum of their lengths, in nanoseconds.
    pub waited_ns: u64,
}

/// An adjustment of the engine's tuner in the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Adjusted {
    /// When, in seconds.
    pub at: f64,
    /// "job slots" or "memtable size".
    pub what: String,
    /// The new number of job slots, or the new memtable size in bytes.
    pub value: u64,
    /// The overflow that caused it, or "options" after a change of options.
    pub cause: String,
}

/// Processor time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Time of the client threads, load generation included.
    pub client: u64,
    /// Time of all other threads.
    pub background: u64,
    /// Time of all threads while the engine settled afterwards.
    pub settling: u64,
}

/// The latencies of one kind over the whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KindSummary {
    /// Counted from when the operation was due; in a closed loop, from its beginning.
    pub latency: Quantiles,
    /// Counted from its beginning. Open loop only.
    pub service: Option<Quantiles>,
}

/// The measured phase of a run. A figure that is missing in an older file becomes zero.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Its length in seconds.
    pub seconds: f64,
    /// True if operations arrived on schedule.
    pub open_loop: bool,
    /// Operations that were due.
    pub offered: u64,
    /// Operations that ended.
    pub done: u64,
    /// Operations that ended, without those of the extra writer.
    pub counted: u64,
    /// Operations that were due and had not begun when the time was up.
    pub unserved: u64,
    /// Reads that found nothing.
    pub not_found: u64,
    /// Entries that scans returned.
    pub scanned: u64,
    /// Bytes of keys and values written.
    pub user_bytes_written: u64,
    /// Counted operations a second.
    pub ops_per_second: f64,
    /// Latencies of all operations together.
    pub all: Option<Quantiles>,
    /// Latencies of all operations by database, if there are several. The first one may be in
    /// overload, and then counts nowhere else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<Option<Quantiles>>,
    /// Latencies by kind, without kinds that did not occur.
    pub kinds: BTreeMap<String, KindSummary>,
    /// Processor time.
    pub cpu: Cpu,
    /// Processor time of all threads for an operation in microseconds, without settling.
    pub cpu_us_per_op: f64,
    /// The same with settling, which is the full cost of an operation.
    pub cpu_us_per_op_settled: f64,
    /// The peak of the resident memory.
    pub peak_memory: u64,
    /// True if this peak is that of the measured phase alone.
    pub peak_memory_is_of_phase: bool,
    /// Storage traffic of the phase.
    pub disk: DiskBytes,
    /// Storage traffic while the engine settled afterwards.
    pub disk_settling: DiskBytes,
    /// Bytes written to storage, settling included, for each byte of user data; `None` without user
    /// data.
    pub write_amplification: Option<f64>,
    /// Seconds until the engine settled: until no flush or compaction was left to do. `None` if the
    /// benchmark did not wait for it.
    pub settle_seconds: Option<f64>,
    /// Bytes of the database's files after that.
    pub database_bytes: u64,
    /// Bytes of the keys and values in it. `None` if the benchmark cannot know them: sizes differ,
    /// not every key was loaded, or keys were added.
    pub live_bytes: Option<u64>,
    /// Delays and stops of writes in the phase, by the engine's count.
    pub stall_count: Option<u64>,
    /// The length of these in nanoseconds.
    pub stall_ns: Option<u64>,
    /// The same by cause.
    #[serde(default)]
    pub stalled_by: Vec<StalledBy>,
    /// Barriers: syncs of files and directories, settling included.
    #[serde(default)]
    pub barriers: Option<u64>,
    /// The engine's classes of I/O.
    pub io_classes: Vec<String>,
    /// Processor time of the benchmark itself for an operation, in nanoseconds: drawing it, reading
    /// the clock at most twice, recording it. Measured against a store that does nothing.
    pub generator_ns: f64,
    /// How late client threads woke up for an operation. This part of the latencies is due to the
    /// load generator, not to the engine.
    pub wake_up: Option<Quantiles>,
    /// Second by second.
    pub timeline: Vec<Second>,
    /// The background jobs, if the engine tells.
    pub jobs: Vec<JobBar>,
    /// The periods in which writers waited, if the engine tells.
    pub stalls: Vec<StallBar>,
    /// The adjustments of the engine's tuner, if the engine tells.
    #[serde(default)]
    pub adjustments: Vec<Adjusted>,
    /// Why the slow seconds were slow, in the engine's sentences, if it tells. Their seconds count
    /// back from the end.
    #[serde(default)]
    pub why: Option<String>,
}

/// The loading before a measured phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Loaded {
    /// Keys written; 0 if an existing database was used.
    pub operations: u64,
    /// Seconds to write them.
    pub seconds: f64,
    /// Seconds until the engine had settled.
    pub settle_seconds: f64,
}

/// One run of one engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// The engine's short name.
    pub engine: String,
    /// Its name and version.
    pub version: String,
    /// The workload.
    pub workload: String,
    /// Operations a second offered (in bursts, those of the peak), if the command said so.
    #[serde(default)]
    pub rate: Option<u64>,
    /// The number of the repetition, from 1.
    pub round: u32,
    /// The settings.
    pub config: StoreConfig,
    /// What a reader of the figures must know of the engine, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The loading.
    pub load: Option<Loaded>,
    /// The measurement.
    pub measured: Measured,
}

/// Everything that one command measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The version of this document: 1.
    pub schema: u32,
    /// The command line.
    pub command: String,
    /// The outcome in a sentence, if there is one.
    #[serde(default)]
    pub headline: Option<String>,
    /// The headline counts the seconds whose p99 is above this, in nanoseconds.
    #[serde(default)]
    pub wait_ns: Option<u64>,
    /// Keys, sizes and threads in a few words.
    pub setting: String,
    /// The machine.
    pub machine: Machine,
    /// The runs, in the order in which they ran.
    pub runs: Vec<RunResult>,
}
