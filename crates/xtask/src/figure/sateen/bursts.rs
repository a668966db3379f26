//! Bursts on the limited device: the standard case, growth, and the tuner.

use super::{OURS, REAL_ROCKSDB, ROCKSDB, STANDARD, bursts, loaded};
use crate::figure::model::{
    Axis, Check, Figure, Job, Means, Mode, Output, Panel, Paper, Plan, X, at_number, greatest,
};
use crate::figure::read;

const TIME: Axis = Axis::linear("time, s");
const P99: Axis = Axis::log("p99, ms");

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Sateen,
        "standard",
        "bursts beside RocksDB",
        Plan {
            claim: "Every second's p99 stays low at 20 K/s on 200 MB/s.",
            setting: "Engine, the standard case: 8 million keys of 1 KB, 1 GB of memory.",
            means: Means::Real,
            minutes: 20,
            jobs: standard,
            panels: &[
                Panel::curves(TIME, P99, |it| group(it, "12k")).titled("12 K/s in the peaks"),
                Panel::curves(TIME, P99, |it| group(it, "20k"))
                    .titled("20 K/s in the peaks")
                    .checks(&[Check::at_least(greatest(ROCKSDB), 2.0, greatest(OURS))]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Sateen,
        "growth",
        "bursts on a database that grows",
        Plan {
            claim: "The worst second does not grow with the database.",
            setting: "Engine, 1, 4 and 16 million keys, a minute at 12 K/s on 200 MB/s. The device \
                      has 44 GB: more than memory holds, so set --disk.",
            means: Means::Real,
            minutes: 25,
            jobs: growth,
            panels: &[Panel::points(Axis::log("million keys"), P99, read::worst_p99)
                .checks(&[Check::at_most(at_number(OURS, 16.0), 5.0, at_number(OURS, 1.0))])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Sateen,
        "tuner",
        "the default profile with and without the tuner",
        Plan {
            claim: "At 20 K/s the tuner changes nothing.",
            setting: "Engine, the standard case.",
            means: Means::Real,
            minutes: 15,
            jobs: |mode| {
                let peak = mode.pick(("4k", "1k"), ("20k", "5k"));
                ["off", "adoc"]
                    .map(|tuner| loaded(tuner, &format!("--set tuner={tuner}"), &[peak], mode))
                    .into_iter()
                    .collect()
            },
            panels: &[Panel::curves(TIME, P99, read::p99_by_second).checks(&[Check::between(
                greatest("adoc"),
                0.2,
                5.0,
                greatest("off"),
            )])],
            because: "",
        },
    ),
];

fn group(output: &Output, name: &str) -> Vec<(f64, f64)> {
    if output.run.group == name { read::p99_by_second(output) } else { Vec::new() }
}

fn standard(mode: Mode) -> Vec<Job> {
    let peaks = mode.pick([("3k", "1k"), ("5k", "2k")], [("12k", "3k"), ("20k", "5k")]);
    let both = [(OURS, ""), (ROCKSDB, REAL_ROCKSDB)].map(|(series, options)| {
        let mut job = loaded(series, options, &peaks, mode);
        let shown = job.runs.iter_mut().filter(|run| !run.series.is_empty());
        for (run, name) in shown.zip(["12k", "20k"]) {
            run.group = name;
        }
        job
    });
    both.into_iter().collect()
}

fn growth(mode: Mode) -> Vec<Job> {
    let sizes = mode.pick(vec![("100k", 1.0)], vec![("1M", 1.0), ("4M", 4.0), ("16M", 16.0)]);
    let of_size = |(keys, x): (&'static str, f64)| {
        [(OURS, ""), (ROCKSDB, REAL_ROCKSDB)].map(|(series, options)| {
            let load = format!("-w ycsb-load -t 2 -n {keys} {STANDARD} --wal off --keep {options}");
            let (peak, valley, seconds) = mode.pick(("2k", "1k", 5), ("12k", "3k", 60));
            let words = bursts(options, keys, peak, valley);
            Job::limited(mode.pick(4, 44), 1)
                .load(&load)
                .run(series, &format!("{words} -d {seconds} --use-existing"))
                .at(X::At(x))
                .mb_per_second(200)
        })
    };
    sizes.into_iter().flat_map(of_size).collect()
}
