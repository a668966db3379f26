//! The figures of a run that the tables show, and what each of them means.

use sateen::metrics::StallCause;

use super::figure::Unit;
use super::rows::BENCHMARK_CPU;
use crate::result::{KINDS, Measured, Quantiles, RunResult};
use crate::seconds;

/// The causes of stalls, and their names in the reports (ADOC: MT, L0, PS).
const CAUSES: [(&str, StallCause); 4] = [
    ("memtables", StallCause::MemtableLimit),
    ("level 0", StallCause::Level0Runs),
    ("debt", StallCause::PendingCompactionBytes),
    ("shared memory", StallCause::WriteBuffers),
];

/// A second counts as bad if its p99 is above this.
const BAD_NS: u64 = 10_000_000;

pub(super) type Get = Box<dyn Fn(&RunResult) -> Option<f64>>;

pub(super) struct Metric {
    pub(super) label: String,
    pub(super) unit: Unit,
    /// True if the row is left out when it is zero for all engines.
    pub(super) unless_zero: bool,
    pub(super) get: Get,
}

fn metric(label: &str, unit: Unit, get: impl Fn(&RunResult) -> Option<f64> + 'static) -> Metric {
    Metric { label: label.to_owned(), unit, unless_zero: false, get: Box::new(get) }
}

pub(super) fn metrics() -> Vec<Metric> {
    let mut all = vec![metric("throughput", Unit::Rate, |run| Some(run.measured.ops_per_second))];
    type Pick = fn(&Quantiles) -> u64;
    let quantiles: [(&str, Pick); 5] = [
        ("p50", |q| q.p50),
        ("p99", |q| q.p99),
        ("p99.9", |q| q.p999),
        ("p99.99", |q| q.p9999),
        ("max", |q| q.max),
    ];
    for kind in KINDS {
        for (name, pick) in quantiles {
            all.push(metric(&format!("{kind} {name}"), Unit::Time, move |run| {
                run.measured.kinds.get(kind).map(|kind| pick(&kind.latency) as f64)
            }));
        }
        if kind == "write" {
            all.push(metric("worst second's write p99", Unit::Time, |run| worst_of_kind(run, 1)));
        } else if kind == "read" {
            all.push(metric("worst second's read p99", Unit::Time, |run| worst_of_kind(run, 0)));
        }
    }
    for (name, pick) in quantiles.into_iter().skip(1) {
        all.push(metric(&format!("all {name}"), Unit::Time, move |run| {
            run.measured.all.as_ref().map(|all| pick(all) as f64)
        }));
    }
    all.push(metric("worst second's p99", Unit::Time, worst_second));
    all.push(metric("seconds with a p99 above 10 ms", Unit::Count, bad_seconds));
    let count = |label, get: fn(&Measured) -> u64| Metric {
        unless_zero: true,
        ..metric(label, Unit::Count, move |run| Some(get(&run.measured) as f64))
    };
    all.extend([
        count("not served in time", |measured| measured.unserved),
        count("reads that found nothing", |measured| measured.not_found),
        metric("CPU per operation", Unit::Micros, |run| Some(run.measured.cpu_us_per_op)),
        metric("CPU with settling", Unit::Micros, |run| {
            run.measured.settle_seconds.map(|_| run.measured.cpu_us_per_op_settled)
        }),
        metric(BENCHMARK_CPU, Unit::Time, |run| Some(run.measured.generator_ns)),
        metric("peak memory", Unit::Bytes, |run| Some(run.measured.peak_memory as f64)),
        metric("disk read", Unit::Bytes, |run| {
            Some((run.measured.disk.read + run.measured.disk_settling.read) as f64)
        }),
        metric("disk written", Unit::Bytes, |run| {
            Some((run.measured.disk.written + run.measured.disk_settling.written) as f64)
        }),
        metric("write amplification", Unit::Factor, |run| run.measured.write_amplification),
        metric("I/O amplification", Unit::Factor, |run| {
            let (phase, settling) = (run.measured.disk, run.measured.disk_settling);
            let moved = phase.read + phase.written + settling.read + settling.written;
            let user = run.measured.user_bytes_written;
            (user > 0).then(|| moved as f64 / user as f64)
        }),
        metric("barriers", Unit::Count, |run| run.measured.barriers.map(|count| count as f64)),
        metric("compaction debt at the end", Unit::Bytes, |run| {
            crate::notes::debt_bytes(run).map(|bytes| bytes as f64)
        }),
        metric("database size at the end", Unit::Bytes, |run| {
            Some(run.measured.database_bytes as f64)
        }),
        metric("space amplification", Unit::Factor, |run| {
            run.measured.live_bytes.map(|live| run.measured.database_bytes as f64 / live as f64)
        }),
        metric("longest job out of level 0", Unit::Time, |run| {
            let jobs = run.measured.jobs.iter().filter(|job| job.class == "l0");
            jobs.map(|job| (job.end - job.start.max(0.0)) * 1e9).reduce(f64::max)
        }),
        metric("longest compaction chain", Unit::Count, |run| widest_chain(run, 0)),
        metric("widest compaction chain", Unit::Bytes, |run| widest_chain(run, 1)),
        metric("stalls", Unit::Count, |run| run.measured.stall_count.map(|count| count as f64)),
        metric("time stalled", Unit::Time, |run| run.measured.stall_ns.map(|ns| ns as f64)),
    ]);
    for (what, cause) in CAUSES {
        let by = move |run: &RunResult| {
            run.measured.stalled_by.iter().find(|by| by.cause == cause.name()).cloned()
        };
        let count = move |run: &RunResult| by(run).map(|by| by.count as f64);
        let ns = move |run: &RunResult| by(run)?.ns.map(|ns| ns as f64);
        let rows = [
            metric(&format!("stalls for {what}"), Unit::Count, count),
            metric(&format!("time stalled for {what}"), Unit::Time, ns),
        ];
        all.extend(rows.map(|row| Metric { unless_zero: true, ..row }));
    }
    all.extend([metric("time to settle", Unit::Time, |run| {
        run.measured.settle_seconds.map(|seconds| seconds * 1e9)
    })]);
    all
}

/// Returns the largest compaction chain of any second, in levels (0) or bytes (1).
fn widest_chain(run: &RunResult, which: usize) -> Option<f64> {
    let chains = run.measured.timeline.iter().filter_map(|second| second.chain);
    chains.map(|chain| chain[which] as f64).reduce(f64::max)
}

fn worst_of_kind(run: &RunResult, kind: usize) -> Option<f64> {
    seconds::worst_of_kind(&run.measured, kind).map(|ns| ns as f64)
}

/// Returns the worst second's p99 of all operations.
pub(super) fn worst_second(run: &RunResult) -> Option<f64> {
    seconds::worst(seconds::p99s(&run.measured)).map(|ns| ns as f64)
}

/// Returns the number of seconds in which clients waited. A closed loop hides them.
fn bad_seconds(run: &RunResult) -> Option<f64> {
    let bad = seconds::above(seconds::p99s(&run.measured), BAD_NS);
    run.measured.open_loop.then_some(bad as f64)
}

/// Returns the meaning of a table's row in one or two sentences; empty for an unknown label.
pub(super) fn about(label: &str) -> &'static str {
    match label {
        "throughput" => "Operations that ended, divided by the seconds measured.",
        "worst second's write p99" | "worst second's read p99" | "worst second's p99" => {
            "The p99 of each second, and of these the largest. Seconds with fewer than 100 \
             operations do not count."
        }
        "seconds with a p99 above 10 ms" => {
            "Seconds in which more than one operation in a hundred took longer than 10 ms. If \
             operations were due in a second and none ended, the p99 of the next second counts. \
             Seconds with fewer than 100 operations do not count."
        }
        "not served in time" => "Operations that were due and not begun when time was up.",
        "reads that found nothing" => "Reads of keys that are not in the database.",
        "CPU per operation" => {
            "Processor time of all threads, clients and background, divided by the operations."
        }
        "CPU with settling" => {
            "The same with the work that was left at the end of the measured time: what the \
             operations cost in the end."
        }
        BENCHMARK_CPU => {
            "The part of the CPU per operation that the benchmark itself needs to draw an \
             operation and to record it."
        }
        "peak memory" => "The largest resident memory of the process.",
        "disk read" => "Bytes that the process read from storage, settling included.",
        "disk written" => "Bytes that the process wrote to storage, settling included.",
        "write amplification" => {
            "Bytes written to storage for each byte of keys and values that clients wrote, \
             settling included."
        }
        "I/O amplification" => {
            "Bytes read from and written to storage for each byte of keys and values that clients \
             wrote, settling included."
        }
        "barriers" => "Syncs of files and directories (fsync), settling included.",
        "compaction debt at the end" => {
            "Bytes that compaction must still move at the end of the measured time, by each \
             engine's own estimate. That work is for later, and its cost is not in the latencies."
        }
        "database size at the end" => {
            "Bytes of the database's files at the end, or after settling if the benchmark waited \
             for it."
        }
        "space amplification" => "The size of the files divided by the keys and values in them.",
        "longest job out of level 0" => "The longest compaction whose input was in level 0.",
        "longest compaction chain" => {
            "The most compactions that had to follow each other before a full level 0 had room."
        }
        "widest compaction chain" => "The most bytes that such a chain of compactions had to read.",
        "time to settle" => "From the end of the measured time until no background work was left.",
        _ if label.starts_with("stalls") => {
            "How often writes were slowed down or stopped, by the engine's own count. Waits for \
             the device and in RocksDB's write queue are not in it."
        }
        _ if label.starts_with("time stalled") => {
            "For how long writes were slowed down or stopped, by the engine's own count. Waits \
             for the device and in RocksDB's write queue are not in it."
        }
        _ if label.ends_with(" p50") => "Half of the operations took no longer than this.",
        _ if label.ends_with(" p99") => "99 of 100 operations took no longer than this.",
        _ if label.ends_with(" p99.9") => "999 of 1000 operations took no longer than this.",
        _ if label.ends_with(" p99.99") => "9999 of 10000 operations took no longer than this.",
        _ if label.ends_with(" max") => "The longest of all operations.",
        _ => "",
    }
}
