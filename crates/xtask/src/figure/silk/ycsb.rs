//! SILK's YCSB runs (§6.3): Figures 12 and 13, and Table 1, which defines the workloads.

use super::standard;
use crate::figure::model::{
    Axis, Check, Figure, Form, Job, Means, Mode, Panel, Paper, Plan, X, at,
};
use crate::figure::read;

const WORKLOAD: Axis = Axis::linear("");
const KOPS: Axis = Axis::linear("throughput, K/s");
const TRIAD: &str = "TRIAD";
const WITH_SILK: &str = "TRIAD-SILK";
const SETTING: &str = "Engine, 8 GB on 200 MB/s, 30 s a workload, A, B, C, F, D and E on one \
                       database; both are our policies.";

pub(super) static FIGURES: &[Figure] = &[
    Figure::diagram(Paper::Silk, "table-1", "the workloads of YCSB"),
    Figure::measured(
        Paper::Silk,
        "12",
        "throughput in YCSB",
        Plan {
            claim: "SILK costs at most 7 % of the throughput with uniform keys and 4 % with \
                    zipfian ones.",
            setting: SETTING,
            means: Means::Real,
            minutes: 25,
            jobs: both,
            panels: &[
                Panel::groups(WORKLOAD, KOPS, |it| read::only(it, "uniform", read::kops))
                    .titled("uniform")
                    .checks(&[
                        Check::at_least(at(WITH_SILK, "A"), 0.93, at(TRIAD, "A")),
                        Check::at_least(at(WITH_SILK, "B"), 0.95, at(TRIAD, "B")),
                        Check::at_least(at(WITH_SILK, "C"), 0.95, at(TRIAD, "C")),
                        Check::at_least(at(WITH_SILK, "D"), 0.95, at(TRIAD, "D")),
                        Check::at_least(at(WITH_SILK, "E"), 0.95, at(TRIAD, "E")),
                        Check::at_least(at(WITH_SILK, "F"), 0.93, at(TRIAD, "F")).paper(0.93),
                    ]),
                Panel::groups(WORKLOAD, KOPS, |it| read::only(it, "zipfian", read::kops))
                    .titled("zipfian")
                    .checks(&[
                        Check::at_least(at(WITH_SILK, "A"), 0.96, at(TRIAD, "A")),
                        Check::at_least(at(WITH_SILK, "C"), 0.96, at(TRIAD, "C")),
                        Check::at_least(at(WITH_SILK, "F"), 0.96, at(TRIAD, "F")),
                    ]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "13",
        "latency in YCSB",
        Plan {
            claim: "SILK's p99 is lower in all workloads, by two orders of magnitude in the \
                    write-heavy ones; the median is the same or a little lower.",
            setting: SETTING,
            means: Means::Real,
            minutes: 25,
            jobs: both,
            panels: &[
                Panel::groups(WORKLOAD, Axis::log("p99, ms"), |it| {
                    read::only(it, "uniform", read::p99)
                })
                .titled("p99, uniform")
                .checks(&[
                    Check::at_least(at(TRIAD, "A"), 10.0, at(WITH_SILK, "A")).paper(100.0),
                    Check::at_least(at(TRIAD, "F"), 1.0, at(WITH_SILK, "F")),
                    Check::at_least(at(TRIAD, "E"), 1.0, at(WITH_SILK, "E")).paper(1.05),
                ]),
                Panel::groups(WORKLOAD, Axis::log("p50, ms"), |it| {
                    read::only(it, "uniform", read::p50)
                })
                .titled("median, uniform")
                .drawn_as(Form::Bars)
                .checks(&[Check::at_most(
                    at(WITH_SILK, "A"),
                    1.05,
                    at(TRIAD, "A"),
                )]),
            ],
            because: "",
        },
    ),
];

/// The workloads in YCSB's order; those that insert come last.
const WORKLOADS: [(&str, &str); 6] =
    [("a", "A"), ("b", "B"), ("c", "C"), ("f", "F"), ("d", "D"), ("e", "E")];

fn both(mode: Mode) -> Vec<Job> {
    let systems = [(TRIAD, "triad"), (WITH_SILK, "triad-silk")];
    let keys = ["uniform", "zipfian"];
    let one = |distribution: &'static str| {
        systems.map(|(series, profile)| runs(series, profile, distribution, mode))
    };
    keys.into_iter().flat_map(one).collect()
}

fn runs(series: &'static str, profile: &str, distribution: &'static str, mode: Mode) -> Job {
    let common = format!("{} --keep --profile {profile}", standard(mode));
    let (seconds, limit) = (mode.pick(2, 30), mode.pick(60, 200));
    let overwrites = mode.pick("200k", "5M");
    let mut job = Job::limited(mode.pick(3, 20), 1)
        .load(&format!("-w ycsb-a {common} --load-overwrites {overwrites} -d 1 --ops 1G"));
    for (workload, name) in WORKLOADS {
        // D reads the latest keys, whatever the others do.
        let keys = if workload == "d" { "latest" } else { distribution };
        let words = format!("-w ycsb-{workload} --distribution {keys} {common} -d {seconds}");
        job = job.run(series, &format!("{words} --ops 1G --use-existing"));
        job = job.at(X::Is(name)).mb_per_second(limit).group(distribution);
    }
    job
}
