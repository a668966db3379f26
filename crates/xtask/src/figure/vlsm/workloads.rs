//! Workloads by table size (§6.1, §6.3): Figures 6, 12 and 13.

use super::{SETTING, VLSM, common, device, limit, load, tiered, vlsm};
use crate::figure::model::{
    Axis, Check, Figure, HERE, Job, Means, Mode, ONE, Panel, Paper, Plan, Published, X, at,
    at_number, of,
};
use crate::figure::read;

const WORKLOAD: Axis = Axis::linear("");
const P99: Axis = Axis::log("p99, ms");
const KOPS: Axis = Axis::linear("throughput, K/s");
const CPU: Axis = Axis::linear("processor time, µs an operation");
const AMPLIFICATION: Axis = Axis::linear("I/O amplification");
const IO64: &str = "RocksDB-IO 64 MB";
const IO8: &str = "RocksDB-IO 8 MB";
const ADOC64: &str = "ADOC 64 MB";
const VLSM8: &str = "vLSM 8 MB";

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Vlsm,
        "6",
        "table size of RocksDB and ADOC",
        Plan {
            claim: "Smaller tables improve RocksDB's p99 by 1.4 to 1.8 times and leave it in \
                    seconds; ADOC needs twice the processor time.",
            setting: SETTING,
            means: Means::Real,
            minutes: 50,
            jobs: others,
            panels: &[
                Panel::groups(WORKLOAD, P99, |it| read::only(it, "open", read::p99))
                    .titled("(a) p99")
                    .checks(&[
                        Check::between(at(IO64, "Load A"), 0.7, 3.0, at(IO8, "Load A")).paper(1.4)
                    ]),
                Panel::groups(WORKLOAD, KOPS, |it| read::only(it, "closed", read::kops))
                    .titled("(b) throughput"),
                Panel::groups(WORKLOAD, CPU, |it| read::only(it, "closed", read::cpu_us_per_op))
                    .titled("(c) processor time")
                    .checks(&[
                        Check::at_least(at(ADOC64, "Load A"), 1.3, at(IO64, "Load A")).paper(2.2)
                    ]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "12",
        "workloads under vLSM, RocksDB-IO and ADOC",
        Plan {
            claim: "vLSM's p99 is up to 5.2 times better than RocksDB's in Load A and 12.5 times \
                    in the reads of A, its throughput up to twice, its processor time 4 % worse at \
                    most.",
            setting: SETTING,
            means: Means::Real,
            minutes: 40,
            jobs: all,
            panels: &[
                Panel::groups(WORKLOAD, P99, |it| read::only(it, "open", read::p99))
                    .titled("(a) p99")
                    .checks(&[
                        Check::at_least(at(IO64, "Load A"), 2.0, at(VLSM8, "Load A")).paper(5.2),
                        Check::at_least(at(ADOC64, "Load A"), 1.2, at(VLSM8, "Load A")).paper(1.99),
                        Check::at_least(at(IO64, "A"), 2.0, at(VLSM8, "A")).paper(4.8),
                    ]),
                Panel::groups(WORKLOAD, KOPS, |it| read::only(it, "closed", read::kops))
                    .titled("(b) throughput")
                    .checks(&[
                        Check::at_least(at(VLSM8, "A"), 1.0, at(IO64, "A")).paper(2.0),
                        Check::between(at(VLSM8, "C"), 0.9, 1.2, at(IO64, "C")).paper(1.0),
                    ]),
                Panel::groups(WORKLOAD, CPU, |it| read::only(it, "closed", read::cpu_us_per_op))
                    .titled("(c) processor time")
                    .checks(&[
                        Check::at_most(at(VLSM8, "Load A"), 1.1, at(IO64, "Load A")).paper(1.04)
                    ]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "13a",
        "I/O amplification by Φ",
        Plan {
            claim: "I/O amplification stays low up to Φ = 32 (tables of 8 MB) and jumps at 64 (4 \
                    MB).",
            setting: "Engine, 3 million records of 1 KB on 200 MB/s. L2 is smaller than the \
                      paper's 2 GB, so that Φ is the profile's for every size.",
            means: Means::Real,
            minutes: 9,
            jobs: |mode| {
                let sizes = mode.pick(vec![4, 8], vec![4, 8, 16, 32, 64]);
                let job =
                    |size: u32| load(VLSM, &vlsm(size, mode), mode).at(X::At(f64::from(size)));
                sizes.into_iter().map(job).collect()
            },
            panels: &[Panel::points(Axis::log("table size, MB"), AMPLIFICATION, |it| {
                read::io_amplification(it)
            })
            .checks(&[
                Check::between(at_number(VLSM, 8.0), 0.7, 1.3, at_number(VLSM, 16.0)),
                Check::at_least(at_number(VLSM, 4.0), 1.3, at_number(VLSM, 8.0)),
            ])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "13b",
        "good and poor tables of L1",
        Plan {
            claim: "With tables of 8 MB (Φ = 32) 90 % of L1 is good; with 4 MB (Φ = 64) 6 %.",
            setting: "Engine, 3 million records of 1 KB on 200 MB/s. The share is of L1's bytes, \
                      in the mean of all seconds; the paper's is of tables over all compactions.",
            means: Means::Real,
            minutes: 4,
            jobs: |mode| {
                let one = |series, megabytes: u32, factor: u32| {
                    let wide = format!("--set base_level_multiplier={factor}");
                    load(series, &format!("{} {wide}", vlsm(megabytes, mode)), mode)
                };
                vec![one("8 MB", 8, 32), one("4 MB", 4, 64)]
            },
            panels: &[Panel::bars(Axis::linear("good part of L1, %"), read::good_percent)
                .published(&[Published {
                    name: HERE,
                    source: "§6.3",
                    times: None,
                    points: &[(X::Is("8 MB"), 90.0), (X::Is("4 MB"), 6.0)],
                }])
                .checks(&[
                    Check::at_least(of("8 MB"), 50.0, ONE).paper(90.0),
                    Check::at_most(of("4 MB"), 30.0, ONE).paper(6.0),
                ])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "13c",
        "I/O amplification by the distribution of keys",
        Plan {
            claim: "vLSM's I/O amplification is the same for uniform and skewed keys.",
            setting: "Engine, 3 million records of 1 KB on 200 MB/s: overwrites with YCSB's keys; \
                      db_bench's Pareto is `mixgraph`, which reads most of the time, and is left \
                      out.",
            means: Means::Real,
            minutes: 10,
            jobs: distributions,
            panels: &[Panel::groups(WORKLOAD, AMPLIFICATION, read::io_amplification).checks(&[
                Check::between(at(VLSM8, "zipfian"), 0.8, 1.2, at(VLSM8, "uniform")).paper(1.0),
            ])],
            because: "",
        },
    ),
];

/// The workloads, each as fast as it goes and at a rate.
const WORKLOADS: [(&str, &str); 4] = [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")];

/// Load A and the runs on what it leaves.
fn suite(series: &'static str, options: &str, mode: Mode) -> [Job; 2] {
    let (seconds, rate) = mode.pick((2, "2k"), (20, "8k"));
    let load = format!("-w ycsb-load {} {options}", common(mode));
    let one = |group: &'static str, open: &str| {
        let job = device(mode).run(series, &format!("{load} {open}"));
        let mut job = job.at(X::Is("Load A")).group(group).mb_per_second(limit(mode));
        for (workload, name) in WORKLOADS {
            let words = format!("-w ycsb-{workload} {} {options} --use-existing", common(mode));
            let words = format!("{words} {open} --ops 100M -d {seconds}");
            job = job.run(series, &words).at(X::Is(name)).group(group).mb_per_second(limit(mode));
        }
        job
    };
    [one("closed", ""), one("open", &format!("--mode open --rate {rate}"))]
}

fn others(mode: Mode) -> Vec<Job> {
    let named = [
        (IO8, "rocksdb-io", 8),
        ("RocksDB-IO 16 MB", "rocksdb-io", 16),
        ("RocksDB-IO 32 MB", "rocksdb-io", 32),
        (IO64, "rocksdb-io", 64),
        ("ADOC 8 MB", "adoc", 8),
        (ADOC64, "adoc", 64),
    ];
    let quick = [named[0], named[3], named[5]];
    let systems = mode.pick(&quick[..], &named[..]);
    let jobs = systems
        .iter()
        .flat_map(|(series, profile, size)| suite(series, &tiered(profile, *size, mode), mode));
    jobs.collect()
}

fn all(mode: Mode) -> Vec<Job> {
    let systems = [
        (VLSM8, vlsm(8, mode)),
        ("vLSM 16 MB", vlsm(16, mode)),
        ("vLSM 64 MB", vlsm(64, mode)),
        (IO64, tiered("rocksdb-io", 64, mode)),
        (ADOC64, tiered("adoc", 64, mode)),
    ];
    let jobs = systems
        .iter()
        .filter(|(series, _)| mode == Mode::Full || [VLSM8, IO64, ADOC64].contains(series));
    jobs.flat_map(|(series, options)| suite(series, options, mode)).collect()
}

fn distributions(mode: Mode) -> Vec<Job> {
    let one = |series: &'static str, options: String| {
        ["uniform", "zipfian"].map(|keys| {
            let common = common(mode);
            let words = format!("-w overwrite {common} {options} --distribution {keys}");
            let words = format!("{words} --ops 100M -d {}", mode.pick(4, 90));
            device(mode).run(series, &words).at(X::Is(keys)).mb_per_second(limit(mode))
        })
    };
    one(VLSM8, vlsm(8, mode)).into_iter().chain(one(IO64, tiered("rocksdb-io", 64, mode))).collect()
}
