//! SILK's study of today's stores (§4): Figures 1 to 6, and §4.4, which has no figure.

use super::{P99, SPIKE, TIME, sim, standard};
use crate::figure::model::{
    Axis, Check, Figure, Job, Means, Mode, ONE, Panel, Paper, Plan, Published, X, above,
    first_above, greatest,
};
use crate::figure::read;

/// YCSB A with uniform keys at 18 K/s and ten internal operations at a time (§4.1).
const STUDY: &str = "-w ycsb-a --rate 18k --set background_threads=10";
const ROCKSDB: &str = "RocksDB";
const AROUND: Axis = Axis::linear("time, s; the worst second stands at 10");

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Silk,
        "1",
        "internal operations cause the spikes",
        Plan {
            claim: "RocksDB's p99 is two to four orders of magnitude above that of a store without \
                    flushes and compactions.",
            setting: "Paper's sizes in virtual time. \"No internal operations\" is a memtable \
                      larger than all writes of the run; the paper discards a full one.",
            means: Means::Virtual,
            minutes: 3,
            jobs: internal_operations,
            panels: &[Panel::curves(TIME, P99, read::p99_by_second).checks(&[Check::at_least(
                greatest(ROCKSDB),
                100.0,
                greatest("no internal operations"),
            )
            .paper(1000.0)])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "2",
        "a spike when L0 is full",
        Plan {
            claim: "L0 reaches its limit of 10 files, flushes pause, and one L0 compaction shares \
                    the device with several deeper ones.",
            setting: SPIKE_SETTING,
            means: Means::Real,
            minutes: 7,
            jobs: level0_spike,
            panels: &[
                jobs_panel(&[
                    Check::at_least(greatest("files in L0"), 9.0, ONE).paper(10.0),
                    Check::at_least(greatest("deeper compactions"), 2.0, ONE),
                ]),
                Panel::curves(AROUND, P99, read::jobs::p99_around_spike),
            ],
            because: "The worst second has four files in L0: it is not full when clients wait",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "3",
        "a spike when a flush is slow",
        Plan {
            claim: "A flush takes 5 s instead of 1 to 2 s because seven compactions run beside it; \
                    L0 is not full.",
            setting: SPIKE_SETTING,
            means: Means::Real,
            minutes: 7,
            jobs: flush_spike,
            panels: &[
                jobs_panel(&[
                    Check::at_most(greatest("files in L0"), 20.0, ONE).paper(7.0),
                    Check::at_least(greatest("deeper compactions"), 2.0, ONE).paper(7.0),
                ]),
                Panel::curves(AROUND, P99, read::jobs::p99_around_spike),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "4",
        "a fixed limit only postpones spikes",
        Plan {
            claim: "RocksDB with internal I/O limited to 50, 75 or 90 MB/s: the more bandwidth, \
                    the later the spikes, and they come.",
            setting: "Paper's sizes in virtual time.",
            means: Means::Virtual,
            minutes: 3,
            jobs: fixed_limits,
            panels: &[Panel::curves(TIME, P99, read::p99_by_second)
                .published(&[Published {
                    name: "50 MB/s",
                    source: "§4.3",
                    times: None,
                    points: &[(X::At(900.0), SPIKE)],
                }])
                .checks(&[
                    Check::at_least(above("50 MB/s", SPIKE), 1.0, ONE),
                    Check::at_least(
                        first_above("75 MB/s", SPIKE),
                        1.0,
                        first_above("50 MB/s", SPIKE),
                    ),
                    Check::at_least(
                        first_above("90 MB/s", SPIKE),
                        1.0,
                        first_above("75 MB/s", SPIKE),
                    ),
                ])],
            because: "50 and 75 MB/s are in the paper's order. With 90 MB/s spikes begin at 765 s, \
                      with 75 at 842 s, but they are fewer and lower",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "section-4.4",
        "larger memtables only postpone spikes",
        Plan {
            claim: "With 1 GB of memtables spikes come in all cases; ten of 100 MB and one flush \
                    thread put them off longest.",
            setting: "Paper's sizes in virtual time.",
            means: Means::Virtual,
            minutes: 4,
            jobs: large_memtables,
            panels: &[Panel::curves(TIME, P99, read::p99_by_second).checks(&[
                Check::at_least(above(TEN_BY_ONE, SPIKE), 1.0, ONE),
                Check::at_least(
                    first_above(TEN_BY_ONE, SPIKE),
                    1.0,
                    first_above("2 x 500 MB, 1 flush", SPIKE),
                ),
                Check::at_least(
                    first_above(TEN_BY_ONE, SPIKE),
                    1.0,
                    first_above("10 x 100 MB, 10 flushes", SPIKE),
                ),
            ])],
            because: "All have spikes, as in the paper, but they begin within 2 % of the same time",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "5",
        "TRIAD postpones spikes",
        Plan {
            claim: "TRIAD has no spikes for about 1,000 s, then frequent and significant ones.",
            setting: "Engine, an eighth of the memtables, 8 GB on 200 MB/s; TRIAD is our policy.",
            means: Means::Real,
            minutes: 25,
            jobs: triad,
            panels: &[Panel::curves(TIME, P99, read::p99_by_second).checks(&[
                Check::at_least(first_above("TRIAD", SPIKE), 1.0, first_above(ROCKSDB, SPIKE)),
                Check::at_least(above("TRIAD", SPIKE), 1.0, ONE),
            ])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "6",
        "PebblesDB has low latency while memory lasts",
        Plan {
            claim: "PebblesDB's p99 is very good because compactions are put off, until it runs \
                    out of memory after 10,500 s.",
            setting: "Paper's sizes in virtual time. Memory is not modelled, and our guards are \
                      computed from keys, not stored: it does not run out.",
            means: Means::Virtual,
            minutes: 5,
            jobs: pebblesdb,
            panels: &[Panel::curves(TIME, P99, read::p99_by_second).checks(&[Check::at_most(
                above("PebblesDB", SPIKE),
                0.1,
                above(ROCKSDB, SPIKE),
            )])],
            because: "",
        },
    ),
];

const TEN_BY_ONE: &str = "10 x 100 MB, 1 flush";

const SPIKE_SETTING: &str = "Engine, an eighth of the memtables, 8 GB on 200 MB/s.";

/// The jobs around the worst second of a run.
const fn jobs_panel(checks: &'static [Check]) -> Panel {
    Panel::whole(AROUND, Axis::linear("running, or files"), read::jobs::around_spike).checks(checks)
}

fn internal_operations(mode: Mode) -> Vec<Job> {
    let seconds = mode.pick(900, 3600);
    let idle = format!("{STUDY} --policy rocksdb --set memtable_bytes=1TiB");
    vec![
        sim(ROCKSDB, &format!("{STUDY} --policy rocksdb"), seconds),
        sim("no internal operations", &idle, seconds),
    ]
}

fn level0_spike(mode: Mode) -> Vec<Job> {
    let limits = "--profile rocksdb --set level0_slowdown=10 --set level0_stop=10";
    vec![steady(ROCKSDB, limits, mode.pick(20, 300), mode)]
}

fn flush_spike(mode: Mode) -> Vec<Job> {
    let lifted = "--profile rocksdb --set level0_slowdown=1000 --set level0_stop=1000 \
                  --set background_threads=10 --set max_background_flushes=2 \
                  --set max_background_compactions=8";
    vec![steady(ROCKSDB, lifted, mode.pick(20, 300), mode)]
}

/// A steady 18 K/s on the engine, after a load without a limit.
fn steady(series: &'static str, system: &str, seconds: u32, mode: Mode) -> Job {
    let common = format!("-w ycsb-a --distribution uniform {} --keep {system}", standard(mode));
    let overwrites = mode.pick("500k", "5M");
    let rate = mode.pick("6k", "18k");
    Job::limited(mode.pick(3, 18), 1)
        .load(&format!("{common} --load-overwrites {overwrites} --mode open --rate 1k -d 2"))
        .run(series, &format!("{common} --mode open --rate {rate} -d {seconds} --use-existing"))
        .mb_per_second(mode.pick(60, 200))
}

fn fixed_limits(mode: Mode) -> Vec<Job> {
    let limited = |series, mb: u32| {
        let limit = format!("--set rate_limit_bytes_per_second={}", u64::from(mb) * 1_000_000);
        let words = format!("{STUDY} --policy rocksdb-limited {limit}");
        sim(series, &words, mode.pick(900, 3600))
    };
    vec![limited("50 MB/s", 50), limited("75 MB/s", 75), limited("90 MB/s", 90)]
}

fn large_memtables(mode: Mode) -> Vec<Job> {
    let memtables = |series, count: u32, megabytes: u32, flushes: u32| {
        let sizes = format!("--set memtables_max={count} --set memtable_bytes={megabytes}MiB");
        let flushes = format!("--set max_background_flushes={flushes}");
        let words = format!("{STUDY} --policy rocksdb {sizes} {flushes}");
        sim(series, &words, mode.pick(900, 3600))
    };
    vec![
        memtables("2 x 500 MB, 1 flush", 2, 500, 1),
        memtables("2 x 500 MB, 10 flushes", 2, 500, 10),
        memtables(TEN_BY_ONE, 10, 100, 1),
        memtables("10 x 100 MB, 10 flushes", 10, 100, 10),
    ]
}

fn triad(mode: Mode) -> Vec<Job> {
    let seconds = mode.pick(20, 600);
    vec![
        steady(ROCKSDB, "--profile rocksdb", seconds, mode),
        steady("TRIAD", "--profile triad", seconds, mode),
    ]
}

fn pebblesdb(mode: Mode) -> Vec<Job> {
    let seconds = mode.pick(900, 10_500);
    vec![
        sim("PebblesDB", &format!("{STUDY} --policy pebblesdb"), seconds),
        sim(ROCKSDB, &format!("{STUDY} --policy rocksdb"), seconds),
    ]
}
