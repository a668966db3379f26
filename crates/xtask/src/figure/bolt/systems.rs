//! BoLT against the other stores in YCSB (§4.3): Figures 13 to 16.

use super::{
    BOLT, ENGINE, LEVELDB, REAL_LEVELDB, SETTING, SLOW_BARRIERS, SSD, common, load, model_ycsb,
    place, real_leveldb, ycsb,
};
use crate::figure::model::{
    Axis, Check, Figure, Job, Means, Mode, Output, Panel, Paper, Plan, Published, X, at, at_number,
};
use crate::figure::read;

const KOPS: Axis = Axis::linear("throughput, K/s");
const SLOWER: Axis = Axis::log("operations that are slower, %");
const LATENCY: Axis = Axis::log("latency, ms");
const LVL64: &str = "LVL64MB";
const HYPER: &str = "HyperLevelDB";
const HYPERBOLT: &str = "HyperBoLT";
const PEBBLES: &str = "PebblesDB";
const ROCKS: &str = "RocksDB";
const REAL_ROCKS: &str = "RocksDB 11.8.1";
pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Bolt,
        "13a",
        "YCSB of all stores, zipfian keys",
        Plan {
            claim: "BoLT loads 3.24 times as fast as LevelDB and 17 % faster than with tables of \
                    64 MB; HyperBoLT 1.44 times as fast as HyperLevelDB.",
            setting: ENGINE,
            means: Means::Real,
            minutes: 25,
            jobs: all,
            panels: &[ycsb_panel(&[
                Check::at_least(at(BOLT, "LA"), 1.5, at(LEVELDB, "LA")).paper(3.24),
                Check::at_least(at(LVL64, "LA"), 1.5, at(LEVELDB, "LA")).paper(2.75),
                Check::at_least(at(BOLT, "LA"), 1.05, at(LVL64, "LA")).paper(1.17),
                Check::at_least(at(HYPERBOLT, "LA"), 1.1, at(HYPER, "LA")).paper(1.44),
                Check::at_least(at(PEBBLES, "LA"), 1.3, at(BOLT, "LA")).paper(2.0),
                Check::at_least(at(BOLT, "C"), 1.0, at(PEBBLES, "C")),
            ])],
            because: "BoLT writes 46.3 GB for the 6 GB, LevelDB 40.7. LVL64MB, \
                      HyperLevelDB and PebblesDB are ahead of BoLT and HyperBoLT by more \
                      than in the paper; why was not found out",
        },
    ),
    Figure::measured(
        Paper::Bolt,
        "13b",
        "YCSB of all stores, uniform keys",
        Plan {
            claim: "The same with uniform keys.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: modelled,
            panels: &[ycsb_panel(&[
                Check::at_least(at(BOLT, "LA"), 1.5, at(LEVELDB, "LA")).paper(3.24),
                Check::at_least(at(HYPERBOLT, "LA"), 1.1, at(HYPER, "LA")).paper(1.44),
                Check::at_least(at(BOLT, "C"), 1.0, at(PEBBLES, "C")),
            ])],
            because: "HyperBoLT: as in Fig. 12b. Reads of BoLT and PebblesDB differ by 1 \
                      % in the model, which has a filter in each table",
        },
    ),
    Figure::measured(
        Paper::Bolt,
        "14",
        "tail latency of all stores",
        Plan {
            claim: "Insertions: BoLT is below LevelDB. Reads: RocksDB's jump at p98, the others \
                    stay together.",
            setting: "The runs of Fig. 13a.",
            means: Means::Real,
            minutes: 25,
            jobs: all,
            panels: &[
                Panel::curves(SLOWER, LATENCY, |it| of_workload(it, "LA", read::tail_of_writes))
                    .titled("(a) insertions, Load A")
                    .checks(&[Check::at_most(at_number(BOLT, 1.0), 1.0, at_number(LEVELDB, 1.0))]),
                Panel::curves(SLOWER, LATENCY, |it| of_workload(it, "C", read::tail_of_reads))
                    .titled("(b) reads, C")
                    .checks(&[Check::at_least(at_number(ROCKS, 1.0), 1.0, at_number(BOLT, 1.0))]),
            ],
            because: "Insertions agree. RocksDB's p99 of reads is 0.13 ms and BoLT's \
                      0.16: at 6 GB the jump of the paper does not come; Fig. 6 shows it \
                      with a table cache that is too small",
        },
    ),
    Figure::measured(
        Paper::Bolt,
        "15",
        "BoLT against RocksDB on a large database",
        Plan {
            claim: "BoLT loads up to 58 % faster than RocksDB with records of 1 KB; RocksDB writes \
                    small records faster; RocksDB scans faster.",
            setting: "Engine, 4 GB instead of 100 GB, on 520 MB/s, with BoLT on RocksDB's limits \
                      of level 0 and L1. One format of tables for both, so the paper's gain of \
                      RocksDB's format with small records can show only in RocksDB 11.8.1.",
            means: Means::Real,
            minutes: 10,
            jobs: large,
            panels: &[
                Panel::groups(Axis::linear(""), KOPS, |it| read::only(it, "1 KB", read::kops))
                    .titled("(a) records of 1 KB")
                    .published(&[Published {
                        name: BOLT,
                        source: "§4.3.3",
                        times: Some(ROCKS),
                        points: &[(X::Is("LA"), 1.58)],
                    }])
                    .checks(&[
                        Check::at_least(at(BOLT, "LA"), 1.1, at(ROCKS, "LA")).paper(1.58),
                        Check::at_most(at(BOLT, "E"), 1.0, at(ROCKS, "E")),
                    ]),
                Panel::groups(Axis::linear(""), KOPS, |it| read::only(it, "100 B", read::kops))
                    .titled("(c) records of 100 bytes")
                    .checks(&[Check::at_most(at(BOLT, "LA"), 1.0, at(REAL_ROCKS, "LA"))]),
            ],
            because: "At 4 GB BoLT loads 0.81 times as fast as our RocksDB, and 1.13 \
                      times as fast as RocksDB 11.8.1, which scans 1.9 times as fast as \
                      BoLT, as in the paper. RocksDB 11.8.1 loads small records at 0.44 \
                      of BoLT's rate",
        },
    ),
    Figure::measured(
        Paper::Bolt,
        "16",
        "tail latency on a large database",
        Plan {
            claim: "RocksDB has the higher tail in all workloads, because of large index blocks.",
            setting: "The runs of Fig. 15 with records of 1 KB.",
            means: Means::Real,
            minutes: 10,
            jobs: large,
            panels: &[
                Panel::curves(SLOWER, LATENCY, |it| one_kb(it, "LA", read::tail_of_writes))
                    .titled("insertions, Load A")
                    .checks(&[Check::at_least(at_number(ROCKS, 0.1), 1.0, at_number(BOLT, 0.1))]),
                Panel::curves(SLOWER, LATENCY, |it| one_kb(it, "C", read::tail_of_reads))
                    .titled("reads, C")
                    .checks(&[Check::at_least(at_number(ROCKS, 0.1), 1.0, at_number(BOLT, 0.1))]),
            ],
            because: "As in Fig. 14: at 4 GB the cost of large indexes does not come up",
        },
    ),
];

const fn ycsb_panel(checks: &'static [Check]) -> Panel {
    Panel::groups(Axis::linear(""), KOPS, read::kops).published(LOADS).checks(checks)
}

/// Throughput in Load A, in multiples of LevelDB's.
const LOADS: &[Published] = &[
    Published {
        name: LVL64,
        source: "§4.3.1",
        times: Some(LEVELDB),
        points: &[(X::Is("LA"), 2.75)],
    },
    Published {
        name: BOLT,
        source: "§4.3.1",
        times: Some(LEVELDB),
        points: &[(X::Is("LA"), 3.24)],
    },
];

fn of_workload(output: &Output, name: &'static str, read: Curve) -> Vec<(f64, f64)> {
    if output.run.x == Some(X::Is(name)) { read(output) } else { Vec::new() }
}

fn one_kb(output: &Output, name: &'static str, read: Curve) -> Vec<(f64, f64)> {
    if output.run.group == "1 KB" { of_workload(output, name, read) } else { Vec::new() }
}

type Curve = fn(&Output) -> Vec<(f64, f64)>;

/// The stores, with their profiles.
const STORES: [(&str, &str); 7] = [
    (LEVELDB, "leveldb"),
    (LVL64, "leveldb --set table_bytes=64MiB"),
    (HYPER, "hyperleveldb"),
    (PEBBLES, "pebblesdb"),
    (ROCKS, "rocksdb"),
    (BOLT, "bolt"),
    (HYPERBOLT, "hyperbolt"),
];

fn modelled(mode: Mode) -> Vec<Job> {
    STORES.iter().flat_map(|(series, policy)| model_ycsb(series, policy, mode)).collect()
}

fn all(mode: Mode) -> Vec<Job> {
    let some = [LEVELDB, ROCKS, BOLT];
    let systems = STORES.iter().filter(|(series, _)| mode == Mode::Full || some.contains(series));
    let jobs = systems.map(|(series, profile)| {
        ycsb(series, &format!("--profile {profile} {SLOW_BARRIERS}"), "zipfian", mode)
    });
    // The originals show the load only.
    let real_rocksdb = format!("{REAL} {SLOW_BARRIERS}");
    let originals = [(REAL_LEVELDB, real_leveldb()), (REAL_ROCKS, real_rocksdb)];
    jobs.chain(originals.map(|(series, options)| load(series, &options, mode))).collect()
}

/// BoLT with RocksDB's limits of level 0 and RocksDB's L1.
const ON_ROCKSDB: &str = "--profile bolt --set level0_slowdown=20 --set level0_stop=36 --set \
                          level_base_bytes=256M";

/// RocksDB with the threads and the cache of the profile.
const REAL: &str = "--peer {rocksdb} --jobs 2 --block-cache 32M";

fn large(mode: Mode) -> Vec<Job> {
    let systems = [(ROCKS, "--profile rocksdb"), (BOLT, ON_ROCKSDB), (REAL_ROCKS, REAL)];
    let ours = mode.pick(&systems[..2], &systems[..]);
    let sized = |options: &str, keys: &str, value: u32| {
        let words = common(mode).replace("--value-size 1000", &format!("--value-size {value}"));
        let words = words.split_whitespace().skip(2).collect::<Vec<_>>().join(" ");
        format!("-n {keys} {words} --keep {options}")
    };
    let mut jobs: Vec<Job> = Vec::new();
    for (series, options) in ours {
        let words = sized(options, mode.pick("300k", "4M"), 1000);
        let job = place(mode).run(series, &format!("-w ycsb-load {words}")).at(X::Is("LA"));
        let workloads = [("a", "A"), ("c", "C"), ("d", "D"), ("e", "E")];
        let job = workloads.into_iter().fold(job.mb_per_second(SSD), |job, (workload, name)| {
            let seconds = mode.pick(2, 15);
            let words = format!("-w ycsb-{workload} {words} -d {seconds} --ops 1G --use-existing");
            job.run(series, &words).at(X::Is(name)).mb_per_second(SSD)
        });
        jobs.push(grouped(job, "1 KB"));
        let load = format!("-w ycsb-load {}", sized(options, mode.pick("1M", "20M"), 77));
        let job = place(mode).run(series, &load).at(X::Is("LA")).mb_per_second(SSD);
        jobs.push(grouped(job, "100 B"));
    }
    jobs
}

/// Puts all runs of a job into a group.
fn grouped(mut job: Job, group: &'static str) -> Job {
    for run in &mut job.runs {
        run.group = group;
    }
    job
}
