//! The rows of every table: medians over rounds, and ratios between engines.

mod comparison;
mod figure;
mod headline;
mod metrics;
mod rows;

use serde::Serialize;

pub use self::comparison::Comparison;
use self::figure::ratio;
pub use self::figure::{Spread, Unit};
use self::metrics::{Metric, metrics, worst_second};
pub use self::rows::{Row, Section};
use crate::result::{Report, RunResult};

/// Returns the tables of a report, one for each workload and rate.
pub(crate) fn sections(report: &Report) -> Vec<Section> {
    let parts = distinct(report.runs.iter().map(|run| (run.workload.as_str(), run.rate)));
    parts.into_iter().map(|(workload, rate)| section(report, workload, rate)).collect()
}

/// Returns the name of a workload at a rate.
pub(crate) fn workload_at(workload: &str, rate: Option<u64>) -> String {
    match rate {
        Some(rate) => format!("{workload} {}", Unit::Rate.write(rate as f64)),
        None => workload.to_owned(),
    }
}

/// Returns the different values in the order of their first occurrence.
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
    /// The rates in ascending order.
    pub(crate) rates: Vec<u64>,
    /// The p99 of all operations, by engine and rate.
    pub(crate) p99: Vec<Vec<Option<f64>>>,
    /// The worst second's p99, by engine and rate.
    pub(crate) worst: Vec<Vec<Option<f64>>>,
}

/// Returns a sweep for each workload that ran at several rates.
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
    let worst = curves(worst_second);
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
    let open_loop = runs.iter().any(|run| run.measured.open_loop);
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
        let about = metrics::about(&metric.label);
        shown.then(|| Row::new(&metric.label, about, metric.unit, cells, ratio, open_loop))
    });
    let rows = rows.collect();
    let rounds = runs.iter().map(|run| run.round as usize).max().unwrap_or(0);
    let title = workload_at(workload, rate);
    let workload = workload.to_owned();
    let mut section =
        Section { title, headline: String::new(), workload, rate, engines, rounds, rows };
    section.headline = headline::headline(&section, report);
    section
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::args::tests::parse;
    use crate::result::{KindSummary, Measured, Quantiles, Second};
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
            levels: vec![LevelSize { files: number, bytes: number << 20, good: 0 }],
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
            notes: Vec::new(),
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
            // The part of a second at the end does not count.
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
