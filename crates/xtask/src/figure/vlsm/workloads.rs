//! Workloads by table size (§6.1, §6.3): Figures 6, 12 and 13.

use super::{SETTING, VLSM, adoc, load, of_workload, regions, tiered, vlsm, vlsm_with};
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
            means: Means::Virtual,
            minutes: 1,
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
            because: "Smaller tables help RocksDB-IO more than in the paper: its stalls \
                      end when a chain does, and chains are shorter. ADOC's tuner adds \
                      threads up to its limit at once, and the device, not threads, is \
                      what is short",
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
            means: Means::Virtual,
            minutes: 1,
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
            because: "Runs C and Load A are as in the paper but for the processor time. \
                      In A as fast as it goes the I/O of vLSM (Fig. 7) takes the device \
                      from reads, and its merges take processor time",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "13a",
        "I/O amplification by Φ",
        Plan {
            claim: "I/O amplification stays low up to Φ = 32 (tables of 8 MB) and jumps at 64 (4 \
                    MB).",
            setting: "As Fig. 7, as fast as it goes. Level sizes are fixed: L1 has eight tables, \
                      and L2 is Φ times as large, whether the tree needs it or not; Φ is 256 MB by \
                      the size of tables, but at least 8.",
            means: Means::Virtual,
            minutes: 1,
            jobs: |mode| {
                let sizes = [(64, 4), (32, 8), (16, 16), (8, 32), (8, 64)];
                let job = |(phi, size): (u32, u32)| {
                    load(VLSM, &vlsm_with(phi, size), mode).at(X::At(f64::from(size)))
                };
                sizes.map(job).into_iter().collect()
            },
            panels: &[Panel::points(Axis::log("table size, MB"), AMPLIFICATION, |it| {
                read::io_amplification(it)
            })
            .checks(&[
                Check::between(at_number(VLSM, 8.0), 0.7, 1.3, at_number(VLSM, 16.0)),
                Check::at_least(at_number(VLSM, 4.0), 1.3, at_number(VLSM, 8.0)),
            ])],
            because: "With uniform keys L2 has Φ bytes for each byte of L1 wherever one \
                      looks, so a merge into it moves Φ bytes for each, and I/O grows \
                      with Φ. Smaller tables cannot change that",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "13b",
        "good and poor tables of L1",
        Plan {
            claim: "With tables of 8 MB (Φ = 32) 90 % of L1 is good; with 4 MB (Φ = 64) 6 %.",
            setting: "As Fig. 13a. The share is of the tables in L1 after each flush.",
            means: Means::Virtual,
            minutes: 1,
            jobs: |mode| {
                let systems = [("8 MB", vlsm_with(32, 8)), ("4 MB", vlsm_with(64, 4))];
                systems.map(|(series, options)| load(series, &options, mode)).into_iter().collect()
            },
            panels: &[Panel::bars(Axis::linear("good tables of L1, %"), read::good_percent)
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
            because: "The share falls from 86 to 37 %. At Φ = 64 the smallest tables \
                      overlap 8 tables in the mean, which is the limit, so that many are \
                      below it",
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
            because: "Skewed keys repeat within a memtable and a level, and merges drop \
                      the older ones: RocksDB-IO, too, has 0.48 of the amplification",
        },
    ),
];

const WORKLOADS: [(&str, &str); 5] =
    [("ycsb-load", "Load A"), ("ycsb-a", "A"), ("ycsb-b", "B"), ("ycsb-c", "C"), ("ycsb-d", "D")];

/// The rate of the open loop, below 95 % of what each of them serves, in thousands a second.
const OPEN: u32 = 55;

/// The workloads, each as fast as it goes and at a rate.
fn suite(series: &'static str, options: &str, mode: Mode) -> Vec<Job> {
    let options = format!("{} {options}", regions(4));
    let one = |(workload, name): (&str, &'static str)| {
        [("closed", 400), ("open", OPEN)].map(|(group, rate)| {
            of_workload(series, workload, &options, rate, mode).at(X::Is(name)).group(group)
        })
    };
    WORKLOADS.into_iter().flat_map(one).collect()
}

fn others(mode: Mode) -> Vec<Job> {
    let named = [
        (IO8, tiered("rocksdb-io", 8)),
        ("RocksDB-IO 16 MB", tiered("rocksdb-io", 16)),
        ("RocksDB-IO 32 MB", tiered("rocksdb-io", 32)),
        (IO64, tiered("rocksdb-io", 64)),
        ("ADOC 8 MB", adoc(8)),
        (ADOC64, adoc(64)),
    ];
    named.into_iter().flat_map(|(series, options)| suite(series, &options, mode)).collect()
}

fn all(mode: Mode) -> Vec<Job> {
    let systems = [
        (VLSM8, vlsm(8)),
        ("vLSM 16 MB", vlsm(16)),
        ("vLSM 64 MB", vlsm(64)),
        (IO64, tiered("rocksdb-io", 64)),
        (ADOC64, adoc(64)),
    ];
    systems.into_iter().flat_map(|(series, options)| suite(series, &options, mode)).collect()
}

/// Overwrites on the engine: the model draws keys uniformly.
fn distributions(mode: Mode) -> Vec<Job> {
    let (records, seconds, limit) = mode.pick(("300k", 4, 60), ("3M", 90, 200));
    let size = mode.pick(8, 1);
    let sized = |profile: &str, megabytes: u32, base: u32| {
        format!(
            "--profile {profile} --memtable-size {table} --set table_bytes={table} \
             --set level_base_bytes={}",
            (base << 20) / size,
            table = (megabytes << 20) / size,
        )
    };
    let one = |series: &'static str, options: String| {
        ["uniform", "zipfian"].map(|keys| {
            let words = format!(
                "-w overwrite -n {records} -t 8 --value-size 1000 --compression none \
                 --wal buffered --direct --keep {options} --distribution {keys} --ops 100M \
                 -d {seconds}"
            );
            let job = Job::limited(mode.pick(3, 16), mode.pick(1, 2));
            job.run(series, &words).at(X::Is(keys)).mb_per_second(limit)
        })
    };
    let rocksdb = sized("rocksdb-io", 64, 256);
    one(VLSM8, sized("vlsm", 8, 64)).into_iter().chain(one(IO64, rocksdb)).collect()
}
