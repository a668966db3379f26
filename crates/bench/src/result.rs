//! What a run measured: the values behind every table, file and chart.
//!
//! Times are in nanoseconds and sizes in bytes unless a name says otherwise; arrays over kinds
//! are in the order of [`KINDS`].

use std::collections::BTreeMap;

use sateen_workload::{Histogram, OpKind};
use serde::{Deserialize, Serialize};

use crate::store::{LevelSize, StalledBy, StoreConfig};
use crate::system::{DiskBytes, Machine};

/// The kinds of operation that are told apart.
pub const KINDS: [&str; 3] = ["read", "write", "scan"];

/// The place of an operation in [`KINDS`].
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
    /// How many.
    pub count: u64,
    /// The mean.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// 99 of 100 are not above.
    pub p99: u64,
    /// 999 of 1000 are not above.
    pub p999: u64,
    /// 9999 of 10000 are not above.
    pub p9999: u64,
    /// The largest.
    pub max: u64,
}

impl Quantiles {
    /// Of several histograms together; `None` if all are empty.
    pub(crate) fn of_all<'a>(parts: impl IntoIterator<Item = &'a Histogram>) -> Option<Quantiles> {
        let mut sum = Histogram::new();
        parts.into_iter().for_each(|part| sum.merge(part));
        Quantiles::of(&sum)
    }

    /// Of a histogram; `None` if it is empty.
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

/// One second of the measured phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// Operations due in it (closed loop: done in it).
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
    /// Writes were stopped at its end.
    pub stopped: bool,
    /// Writes were limited to this many bytes a second at its end.
    pub delayed_rate: Option<u64>,
    /// Resident memory at its end.
    pub resident: u64,
    /// Bytes that compaction had still to move at its end.
    pub debt: Option<u64>,
    /// Bytes a second that the engine believed the device to read and to write at its end.
    #[serde(default)]
    pub believed: Option<[u64; 2]>,
    /// Compactions that would have to follow each other before a full level 0 has room, and the
    /// bytes that they would read, at its end.
    #[serde(default)]
    pub chain: Option<[u64; 2]>,
    /// Job slots, and bytes at which the next memtable is sealed, at its end.
    #[serde(default)]
    pub knobs: Option<[u64; 2]>,
    /// Milliseconds of processor time, of all processors, that the host gave to others.
    #[serde(default)]
    pub stolen_ms: u64,
    /// Milliseconds of processor time, of all processors, that other processes of this system used.
    #[serde(default)]
    pub others_ms: u64,
}

/// A background job of the measured phase. Seconds count from its begin; a job that was running
/// then began below zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobBar {
    /// "flush", "L0→L1".
    pub what: String,
    /// The class of its I/O, as in [`Measured::io_classes`].
    pub class: String,
    /// When it began.
    pub start: f64,
    /// When it ended, or the phase did.
    pub end: f64,
    /// Bytes that it read; 0 if it did not end.
    pub read: u64,
    /// Bytes that it wrote; 0 if it did not end.
    pub written: u64,
    /// Beginnings and ends of its pauses.
    pub pauses: Vec<[f64; 2]>,
}

/// A time of the measured phase in which writers waited to be admitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallBar {
    /// The engine's name for why.
    pub cause: String,
    /// When the first began to wait, in seconds.
    pub start: f64,
    /// When the last was admitted.
    pub end: f64,
    /// Waits that ended.
    pub waits: u32,
    /// Their lengths together, in nanoseconds.
    pub waited_ns: u64,
}

/// Something that the engine's tuner adjusted in the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Adjusted {
    /// When, in seconds.
    pub at: f64,
    /// "job slots" or "memtable size".
    pub what: String,
    /// So many jobs at a time, or at so many bytes, from then on.
    pub value: u64,
    /// What had overflowed; "options" if they changed.
    pub cause: String,
}

/// Processor time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Of the client threads (generating load included).
    pub client: u64,
    /// Of all other threads.
    pub background: u64,
    /// Of all threads while the engine came to rest afterwards.
    pub settling: u64,
}

/// The latencies of one kind over the whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KindSummary {
    /// From when the operation was due (closed loop: from its start).
    pub latency: Quantiles,
    /// From when it was begun; open loop only.
    pub service: Option<Quantiles>,
}

/// The measured phase of a run. Figures that an older file lacks read as zero.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Its length.
    pub seconds: f64,
    /// True if operations arrived on schedule.
    pub open_loop: bool,
    /// Operations that were due.
    pub offered: u64,
    /// Operations that were done.
    pub done: u64,
    /// Of them, by the threads whose work the workload counts (without an extra writer).
    pub counted: u64,
    /// Operations that were due and not begun when time was up.
    pub unserved: u64,
    /// Reads that found nothing.
    pub not_found: u64,
    /// Entries that scans met.
    pub scanned: u64,
    /// Bytes of keys and values written.
    pub user_bytes_written: u64,
    /// Counted operations a second.
    pub ops_per_second: f64,
    /// Latencies of all operations together.
    pub all: Option<Quantiles>,
    /// By kind; kinds that did not occur are absent.
    pub kinds: BTreeMap<String, KindSummary>,
    /// Processor time.
    pub cpu: Cpu,
    /// Processor microseconds an operation, all threads, without settling.
    pub cpu_us_per_op: f64,
    /// The same with settling: what the operations cost in the end.
    pub cpu_us_per_op_settled: f64,
    /// The highest resident memory.
    pub peak_memory: u64,
    /// True if that is of the measured phase alone.
    pub peak_memory_is_of_phase: bool,
    /// Storage traffic of the phase.
    pub disk: DiskBytes,
    /// Storage traffic while the engine came to rest afterwards.
    pub disk_settling: DiskBytes,
    /// Storage bytes written, settling included, for a byte of user data; `None` if none was.
    pub write_amplification: Option<f64>,
    /// Seconds that the engine needed to come to rest afterwards; `None` if it was not waited for.
    pub settle_seconds: Option<f64>,
    /// Bytes of the database's files after that.
    pub database_bytes: u64,
    /// Bytes of the keys and values that are in it; `None` if the benchmark cannot know them: if
    /// sizes differ, or not every key was loaded, or keys were added.
    pub live_bytes: Option<u64>,
    /// Slow-downs and stops of writes in the phase, by the engine's count.
    pub stall_count: Option<u64>,
    /// Nanoseconds of them.
    pub stall_ns: Option<u64>,
    /// The same by cause.
    #[serde(default)]
    pub stalled_by: Vec<StalledBy>,
    /// Barriers, settling included: syncs of files and directories.
    #[serde(default)]
    pub barriers: Option<u64>,
    /// The engine's classes of I/O.
    pub io_classes: Vec<String>,
    /// Processor nanoseconds that the benchmark itself spends on an operation (drawing it, two
    /// looks at the clock at most, recording it), measured against a store that does nothing.
    pub generator_ns: f64,
    /// How late sleeping client threads woke up: the load generator's own part of the latencies.
    pub wake_up: Option<Quantiles>,
    /// Second by second.
    pub timeline: Vec<Second>,
    /// The background jobs, if the engine tells.
    pub jobs: Vec<JobBar>,
    /// When writers waited, if the engine tells.
    pub stalls: Vec<StallBar>,
    /// What its tuner adjusted, if the engine tells.
    #[serde(default)]
    pub adjustments: Vec<Adjusted>,
}

/// The loading before a measured phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Loaded {
    /// Keys written; 0 if an existing database was used.
    pub operations: u64,
    /// Seconds to write them.
    pub seconds: f64,
    /// Seconds until the engine was at rest.
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
    /// Operations a second offered, the peak's where there are bursts, if the command said so.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Which repetition, from 1.
    pub round: u32,
    /// The settings.
    pub config: StoreConfig,
    /// The loading.
    pub load: Option<Loaded>,
    /// The measurement.
    pub measured: Measured,
}

/// Everything that one command measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The version of this form: 1.
    pub schema: u32,
    /// The command line.
    pub command: String,
    /// The outcome in a sentence, if there is one.
    #[serde(default)]
    pub headline: Option<String>,
    /// The p99 of a second, in nanoseconds, above which the headline counts it.
    #[serde(default)]
    pub wait_ns: Option<u64>,
    /// Keys, sizes and threads in a few words.
    pub setting: String,
    /// The machine.
    pub machine: Machine,
    /// The runs, in the order in which they ran.
    pub runs: Vec<RunResult>,
}
