//! Medians over rounds and ratios between engines: the rows of every table.

use sateen::metrics::StallCause;
use serde::Serialize;

use crate::comparison::{self, Comparison};
use crate::result::{KINDS, Quantiles, Report, RunResult};
use crate::units;

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A count a second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// A plain factor.
    Factor,
    /// A plain count.
    Count,
}

impl Unit {
    /// The value with its unit.
    #[must_use]
    pub fn write(self, value: f64) -> String {
        match self {
            Unit::Rate => format!("{}/s", units::count(value)),
            Unit::Time => units::time(value as u64),
            Unit::Micros => format!("{} us", units::three_digits(value)),
            Unit::Bytes => units::bytes(value as u64),
            Unit::Factor => units::three_digits(value),
            Unit::Count if value < 1000.0 => format!("{value:.0}"),
            Unit::Count => units::count(value),
        }
    }
}

/// A figure over the rounds of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Spread { median, min, max })
    }
}

/// One line of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub label: String,
    /// What that means, in a sentence.
    pub about: String,
    /// How its figures are written.
    pub unit: Unit,
    /// True for a throughput.
    pub higher_is_better: bool,
    /// For each engine.
    pub cells: Vec<Option<Spread>>,
    /// Of the first engine to the second: of the medians, and the extremes round by round.
    pub ratio: Option<Spread>,
    /// The ratio in words.
    pub compared: Option<Comparison>,
}

impl Row {
    /// A row of one figure for each engine.
    #[must_use]
    pub fn of_figures(label: &str, about: &str, unit: Unit, figures: &[f64]) -> Row {
        let ratio = match figures {
            [ours, theirs] => ratio(&[*ours], &[*theirs]),
            _ => None,
        };
        let cells = figures.iter().map(|figure| Spread::of(vec![*figure])).collect();
        Row::new(label, about, unit, cells, ratio)
    }

    fn new(
        label: &str,
        about: &str,
        unit: Unit,
        cells: Vec<Option<Spread>>,
        ratio: Option<Spread>,
    ) -> Row {
        let higher_is_better = unit == Unit::Rate;
        Row {
            label: label.to_owned(),
            about: about.to_owned(),
            unit,
            higher_is_better,
            cells,
            ratio,
            compared: ratio.map(|ratio| Comparison::of(ratio, label, unit, higher_is_better)),
        }
    }
}

/// The table of one workload, at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// The workload and its rate.
    pub title: String,
    /// The outcome in a sentence or two.
    pub headline: String,
    /// The workload.
    pub workload: String,
    /// Operations a second offered, if the command said so.
    pub rate: Option<u64>,
    /// The engines that ran it.
    pub engines: Vec<String>,
    /// Repetitions.
    pub rounds: usize,
    /// The figures.
    pub rows: Vec<Row>,
}

/// Why writes are slowed or stopped: what the reports call it (ADOC: MT, L0, PS).
const CAUSES: [(&str, StallCause); 4] = [
    ("memtables", StallCause::MemtableLimit),
    ("level 0", StallCause::Level0Runs),
    ("debt", StallCause::PendingCompactionBytes),
    ("shared memory", StallCause::WriteBuffers),
];

/// A second whose 99th percentile is above this is counted.
const BAD_NS: f64 = 10e6;

type Get = Box<dyn Fn(&RunResult) -> Option<f64>>;

struct Metric {
    label: String,
    unit: Unit,
    /// Where it is nothing for anybody it is left out.
    unless_zero: bool,
    get: Get,
}

fn metric(label: &str, unit: Unit, get: impl Fn(&RunResult) -> Option<f64> + 'static) -> Metric {
    Metric { label: label.to_owned(), unit, unless_zero: false, get: Box::new(get) }
}

fn metrics() -> Vec<Metric> {
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
            all.push(metric("worst second's write p99", Unit::Time, |run| worst_second(run, 1)));
        } else if kind == "read" {
            all.push(metric("worst second's read p99", Unit::Time, |run| worst_second(run, 0)));
        }
    }
    for (name, pick) in quantiles.into_iter().skip(1) {
        all.push(metric(&format!("all {name}"), Unit::Time, move |run| {
            run.measured.all.as_ref().map(|all| pick(all) as f64)
        }));
    }
    all.push(metric("worst second's p99", Unit::Time, |run| seconds_p99(run).reduce(f64::max)));
    all.push(metric("seconds with a p99 above 10 ms", Unit::Count, bad_seconds));
    let nonzero = |value: u64| (value > 0).then_some(value as f64);
    all.extend([
        metric("not served in time", Unit::Count, move |run| nonzero(run.measured.unserved)),
        metric("reads that found nothing", Unit::Count, move |run| nonzero(run.measured.not_found)),
        metric("CPU per operation", Unit::Micros, |run| Some(run.measured.cpu_us_per_op)),
        metric("CPU with settling", Unit::Micros, |run| {
            run.measured.settle_seconds.map(|_| run.measured.cpu_us_per_op_settled)
        }),
        metric("of it the benchmark's own", Unit::Time, |run| Some(run.measured.generator_ns)),
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
        metric("database size", Unit::Bytes, |run| Some(run.measured.database_bytes as f64)),
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

/// The largest of any second: levels (0) or bytes (1).
fn widest_chain(run: &RunResult, which: usize) -> Option<f64> {
    let chains = run.measured.timeline.iter().filter_map(|second| second.chain);
    chains.map(|chain| chain[which] as f64).reduce(f64::max)
}

/// With enough operations for a 99th percentile; the broken second at the end of a run often has
/// a handful.
const COUNT_MIN: u64 = 100;

fn worst_second(run: &RunResult, kind: usize) -> Option<f64> {
    let seconds = run.measured.timeline.iter().filter_map(|second| second.latency[kind]);
    seconds.filter(|q| q.count >= COUNT_MIN).map(|q| q.p99 as f64).reduce(f64::max)
}

/// Of every second the 99th percentile of all its operations.
fn seconds_p99(run: &RunResult) -> impl Iterator<Item = f64> {
    let seconds = run.measured.timeline.iter().filter_map(|second| second.all);
    seconds.filter(|q| q.count >= COUNT_MIN).map(|q| q.p99 as f64)
}

/// Seconds in which clients were harmed: a 99th percentile above 10 ms.
fn bad_seconds(run: &RunResult) -> Option<f64> {
    let bad = seconds_p99(run).filter(|p99| *p99 > BAD_NS).count();
    run.measured.open_loop.then_some(bad as f64)
}

/// The tables of a report, one for each workload.
pub(crate) fn sections(report: &Report) -> Vec<Section> {
    let parts = distinct(report.runs.iter().map(|run| (run.workload.as_str(), run.rate)));
    parts.into_iter().map(|(workload, rate)| section(report, workload, rate)).collect()
}

/// How a workload at a rate is called.
pub(crate) fn workload_at(workload: &str, rate: Option<u64>) -> String {
    match rate {
        Some(rate) => format!("{workload} {}", Unit::Rate.write(rate as f64)),
        None => workload.to_owned(),
    }
}

/// In the order in which they first come.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// The latencies of one workload against the rate at which operations arrive (vLSM's Fig. 8).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sweep {
    pub(crate) workload: String,
    pub(crate) engines: Vec<String>,
    /// Ascending.
    pub(crate) rates: Vec<u64>,
    /// The 99th percentile of all operations, by engine and rate.
    pub(crate) p99: Vec<Vec<Option<f64>>>,
    /// The worst second's, by engine and rate.
    pub(crate) worst: Vec<Vec<Option<f64>>>,
}

/// A sweep for each workload that ran at several rates.
pub(crate) fn sweeps(report: &Report) -> Vec<Sweep> {
    let workloads = distinct(report.runs.iter().map(|run| run.workload.as_str()));
    workloads.into_iter().filter_map(|workload| sweep(report, workload)).collect()
}

fn sweep(report: &Report, workload: &str) -> Option<Sweep> {
    let runs: Vec<_> = report.runs.iter().filter(|run| run.workload == workload).collect();
    let engines = distinct(runs.iter().map(|run| run.engine.clone()));
    let mut rates = distinct(runs.iter().filter_map(|run| run.rate));
    rates.sort_unstable();
    let curves = |get: fn(&RunResult) -> Option<f64>| -> Vec<Vec<Option<f64>>> {
        let point = |engine: &str, rate| {
            let of = runs.iter().filter(|run| run.engine == engine && run.rate == Some(rate));
            Spread::of(of.filter_map(|run| get(run)).collect()).map(|spread| spread.median)
        };
        let curve =
            |engine: &String| rates.iter().map(|rate| point(engine.as_str(), *rate)).collect();
        engines.iter().map(curve).collect()
    };
    let p99 = curves(|run| run.measured.all.map(|all| all.p99 as f64));
    let worst = curves(|run| seconds_p99(run).reduce(f64::max));
    (rates.len() > 1).then_some(Sweep { workload: workload.to_owned(), engines, rates, p99, worst })
}

fn section(report: &Report, workload: &str, rate: Option<u64>) -> Section {
    let of = |run: &&RunResult| run.workload == workload && run.rate == rate;
    let runs: Vec<&RunResult> = report.runs.iter().filter(of).collect();
    let engines = distinct(runs.iter().map(|run| run.engine.clone()));
    let values = |engine: &str, metric: &Metric| -> Vec<f64> {
        let of_engine = runs.iter().filter(|run| run.engine == engine);
        of_engine.filter_map(|run| (metric.get)(run)).collect()
    };
    let rows = metrics().into_iter().filter_map(|metric| {
        let by_engine: Vec<Vec<f64>> =
            engines.iter().map(|engine| values(engine, &metric)).collect();
        let ratio = match by_engine.as_slice() {
            [ours, theirs] => ratio(ours, theirs),
            _ => None,
        };
        let cells: Vec<_> = by_engine.into_iter().map(Spread::of).collect();
        let shows = |spread: &Spread| !metric.unless_zero || spread.max > 0.0;
        let shown = cells.iter().flatten().any(shows);
        let about = comparison::about(&metric.label);
        shown.then(|| Row::new(&metric.label, about, metric.unit, cells, ratio))
    });
    let rows = rows.collect();
    let rounds = runs.iter().map(|run| run.round as usize).max().unwrap_or(0);
    let title = workload_at(workload, rate);
    let workload = workload.to_owned();
    let mut section =
        Section { title, headline: String::new(), workload, rate, engines, rounds, rows };
    section.headline = comparison::headline(&section, report);
    section
}

/// The ratio of the medians, with the extremes of the ratios round by round.
fn ratio(ours: &[f64], theirs: &[f64]) -> Option<Spread> {
    let by_round: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .filter(|(_, theirs)| **theirs > 0.0)
        .map(|(ours, theirs)| ours / theirs)
        .collect();
    let spread = Spread::of(by_round)?;
    let median = Spread::of(ours.to_vec())?.median / Spread::of(theirs.to_vec())?.median;
    median.is_finite().then_some(Spread { median, ..spread })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::args::tests::parse;
    use crate::result::{KindSummary, Measured, Second};
    use crate::store::LevelSize;

    pub(crate) fn run(engine: &str, workload: &str, round: u32, rate: f64) -> RunResult {
        let quantiles = Quantiles {
            count: 200,
            mean: 1_000,
            p50: 900,
            p99: 5_000,
            p999: 70_000,
            p9999: 90_000,
            max: 2_000_000,
        };
        // The last second has few operations, and slow ones.
        let rare = Quantiles { count: 3, p99: 2_000_000, ..quantiles };
        let second = |number: u64| Second {
            offered: 100,
            done: [50, 50, 0],
            latency: match number {
                3 => [Some(rare), Some(rare), None],
                _ => [Some(quantiles), Some(Quantiles { p99: 5_000 + number, ..quantiles }), None],
            },
            io: vec![[0, 1 << 20], [1 << 20, 2 << 20]],
            levels: vec![LevelSize { files: number, bytes: number << 20 }],
            resident: 1 << 20,
            stall_ns: if number == 2 { 300_000_000 } else { 0 },
            ..Second::default()
        };
        let kind = KindSummary { latency: quantiles, service: None };
        RunResult {
            engine: engine.to_owned(),
            version: format!("{engine} 1.0 </script><b>"),
            workload: workload.to_owned(),
            rate: None,
            round,
            config: parse("").store_config().unwrap(),
            load: None,
            measured: Measured {
                seconds: 4.0,
                done: 400,
                ops_per_second: rate,
                kinds: [("read".to_owned(), kind.clone()), ("write".to_owned(), kind)].into(),
                cpu_us_per_op: 4.0,
                peak_memory: 100 << 20,
                io_classes: vec!["flush".to_owned(), "compaction".to_owned()],
                timeline: (0..4).map(second).collect(),
                ..Measured::default()
            },
        }
    }

    pub(crate) fn report(runs: Vec<RunResult>) -> Report {
        Report {
            schema: 1,
            command: "sateen bench".to_owned(),
            setting: "1M keys".to_owned(),
            machine: crate::Machine::default(),
            runs,
            headline: None,
            wait_ns: None,
        }
    }

    #[test]
    fn a_section_has_medians_and_ratios_of_medians() {
        let runs = [(90.0, 100.0), (120.0, 80.0), (110.0, 110.0)];
        let runs = (1u32..).zip(runs).flat_map(|(round, (ours, theirs))| {
            [run("sateen", "overwrite", round, ours), run("rocksdb", "overwrite", round, theirs)]
        });
        let sections = sections(&report(runs.collect()));
        assert_eq!(sections.len(), 1);
        let row = &sections[0].rows[0];
        assert_eq!(row.cells[0], Some(Spread { median: 110.0, min: 90.0, max: 120.0 }));
        assert_eq!(row.cells[1], Some(Spread { median: 100.0, min: 80.0, max: 110.0 }));
        assert_eq!(row.ratio, Some(Spread { median: 1.1, min: 0.9, max: 1.5 }));
        assert!(row.higher_is_better);
        let worst = sections[0].rows.iter().find(|row| row.label.starts_with("worst")).unwrap();
        assert_eq!(worst.cells[0].unwrap().median, 5_000.0);
    }

    #[test]
    fn latencies_stand_against_the_rate() {
        let mut runs = vec![run("sateen", "fillseq", 1, 5.0)];
        for (rate, p99) in [(12_000, 7_000), (6_000, 900), (12_000, 9_000), (12_000, 8_000)] {
            let mut run = run("sateen", "bursts", 1, rate as f64);
            run.rate = Some(rate);
            run.measured.open_loop = true;
            let all = |count, p99| Some(Quantiles { count, p99, ..Quantiles::default() });
            run.measured.all = all(1_000_000, p99);
            // The broken second at the end does not count.
            let seconds = [all(100, 100), all(100, 1_000 * p99 + 2_000_001), all(99, 1 << 40)];
            run.measured.timeline = seconds.map(|all| Second { all, ..Second::default() }).into();
            runs.push(run);
        }
        let report = report(runs);
        let sweeps = sweeps(&report);
        assert_eq!(sweeps.len(), 1);
        assert_eq!(sweeps[0].rates, [6_000, 12_000]);
        assert_eq!(sweeps[0].p99, [[Some(900.0), Some(8_000.0)]]);
        assert_eq!(sweeps[0].worst, [[Some(2_900_001.0), Some(10_000_001.0)]]);
        let sections = sections(&report);
        let titles: Vec<_> = sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["fillseq", "bursts 12.0k/s", "bursts 6.00k/s"]);
        let bad = |n: usize| sections[n].rows.iter().find(|row| row.label.contains("above 10 ms"));
        assert!(bad(0).is_none(), "a closed loop hides them");
        assert_eq!(
            bad(1).unwrap().cells[0].map(|spread| (spread.min, spread.max)),
            Some((0.0, 1.0))
        );
    }

    #[test]
    fn workloads_and_single_engines_have_tables_of_their_own() {
        let runs = vec![run("rocksdb", "fillseq", 1, 5.0), run("rocksdb", "readrandom", 1, 9.0)];
        let sections = sections(&report(runs));
        assert_eq!(sections.len(), 2);
        assert!(sections.iter().all(|s| s.rows.iter().all(|row| row.ratio.is_none())));
    }
}
