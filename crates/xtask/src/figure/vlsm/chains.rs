//! Chains and amplification (§2.3, §3.2): Figures 1 to 4, and Figure 9 of §6.2.

use super::{ROCKSDB, SETTING, VLSM, at_rate, load, tiered, vlsm};
use crate::figure::model::{
    Axis, Check, Figure, Form, Job, Means, Mode, ONE, Output, Panel, Paper, Plan, X, at, at_number,
    of,
};
use crate::figure::read;

const SIZE: Axis = Axis::log("table size, MB");
const CHAIN: Axis = Axis::log("widest chain, GB");
const AMPLIFICATION: Axis = Axis::linear("I/O amplification");

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Vlsm,
        "1",
        "RocksDB stalls, and its tail",
        Plan {
            claim: "RocksDB stalls for 40 % of the time of Load A, and its p99 is in seconds below \
                    60 % of its greatest load.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: rocksdb,
            panels: &[
                Panel::curves(Axis::linear("time, s"), Axis::linear("throughput, K/s"), |it| {
                    if closed(it) { read::kops_by_second(it) } else { Vec::new() }
                })
                .titled("(a) Load A as fast as it goes"),
                Panel::bars(Axis::linear("time stalled, %"), |it| {
                    closed(it).then(|| read::stalled_percent(it)).flatten()
                })
                .titled("(a) time stalled")
                .checks(&[Check::between(of(ROCKSDB), 20.0, 60.0, ONE).paper(40.0)]),
                Panel::points(Axis::linear("offered, K/s"), Axis::log("p99, ms"), |it| {
                    if closed(it) { None } else { read::p99(it) }
                })
                .titled("(b) p99 against the rate")
                .checks(&[Check::at_least(at_number(ROCKSDB, 55.0), 1000.0, ONE).paper(1000.0)]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "2",
        "width and length of RocksDB's chains",
        Plan {
            claim: "The step from L0 is the widest, about the same for every table size; with five \
                    levels 10 GB must be compacted to free 64 MB.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: sizes,
            panels: &[
                Panel::whole(Axis::linear(""), Axis::log("GB a compaction"), |outputs| {
                    read::jobs::width_by_level(outputs)
                })
                .drawn_as(Form::Bars)
                .titled("(a) bytes that a compaction moves, in the mean")
                .checks(&[
                    Check::at_least(at("64 MB", "L0→L1"), 2.0, at("64 MB", "L1→L2")),
                    Check::between(at("64 MB", "L0→L1"), 0.5, 3.0, at("8 MB", "L0→L1")).paper(1.0),
                ]),
                Panel::bars(CHAIN, read::widest_chain_gb).titled("(b) the whole chain").checks(&[
                    Check::at_least(of("64 MB"), 0.5, of("8 MB")),
                    Check::at_least(of("64 MB"), 1.0, ONE).paper(10.0),
                ]),
            ],
            because: "",
        },
    ),
    Figure::diagram(Paper::Vlsm, "3", "LSMi, RocksDB, ADOC and vLSM"),
    Figure::measured(
        Paper::Vlsm,
        "4",
        "what small tables cost without vLSM",
        Plan {
            claim: "If one L0 table goes down alone and L1 stays, I/O amplification grows with L1 \
                    ÷ table, up to 128; if L1 shrinks instead, there are two more levels and 69 % \
                    more I/O.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: small_tables,
            panels: &[
                Panel::points(SIZE, AMPLIFICATION, |it| {
                    read::only(it, "a", read::io_amplification)
                })
                .titled("(a) L1 fixed")
                .checks(&[Check::at_least(
                    at_number("no tiering", 8.0),
                    2.0,
                    at_number("no tiering", 64.0),
                )]),
                Panel::bars(AMPLIFICATION, |it| read::only(it, "b", read::io_amplification))
                    .titled("(b) more levels")
                    .checks(&[
                        Check::at_least(of("LSMi 8 MB"), 1.2, of("RocksDB 64 MB")).paper(1.69)
                    ]),
            ],
            because: "",
        },
    ),
    Figure::diagram(Paper::Vlsm, "5", "the client in open loop"),
    Figure::measured(
        Paper::Vlsm,
        "9",
        "width and length of vLSM's chains",
        Plan {
            claim: "vLSM's chains are narrower the smaller its tables: 20 times with tables of 8 \
                    MB, 320 times with 4 MB.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: chains,
            panels: &[
                Panel::points(SIZE, CHAIN, read::widest_chain_gb).titled("width").checks(&[
                    Check::at_least(at_number(ROCKSDB, 64.0), 10.0, at_number(VLSM, 8.0))
                        .paper(20.0),
                    Check::at_least(at_number(ROCKSDB, 64.0), 20.0, at_number(VLSM, 4.0))
                        .paper(320.0),
                    Check::at_least(at_number(VLSM, 64.0), 2.0, at_number(VLSM, 8.0)),
                ]),
                Panel::points(SIZE, Axis::linear("longest chain, levels"), read::longest_chain)
                    .titled("length"),
            ],
            because: "",
        },
    ),
];

fn closed(output: &Output) -> bool {
    output.run.group == "closed"
}

fn rocksdb(mode: Mode) -> Vec<Job> {
    let options = tiered("rocksdb", 64);
    let offered = [20, 40, 55, 75, 85]
        .map(|rate| at_rate(ROCKSDB, &options, rate, mode).at(X::At(f64::from(rate))));
    std::iter::once(load(ROCKSDB, &options, mode).group("closed")).chain(offered).collect()
}

fn sizes(mode: Mode) -> Vec<Job> {
    const SIZES: [(&str, u32); 4] = [("8 MB", 8), ("16 MB", 16), ("32 MB", 32), ("64 MB", 64)];
    let one = |(series, size): (&'static str, u32)| load(series, &tiered("rocksdb", size), mode);
    SIZES.map(one).into_iter().collect()
}

fn small_tables(mode: Mode) -> Vec<Job> {
    let queue = |megabytes: u32| {
        let options = format!("{} --set level0_fifo=true", tiered("rocksdb", megabytes));
        load("no tiering", &options, mode).at(X::At(f64::from(megabytes))).group("a")
    };
    let lsmi = vlsm(8).replace("--policy vlsm", "--policy lsmi");
    let levels = [("RocksDB 64 MB", tiered("rocksdb", 64)), ("LSMi 8 MB", lsmi)];
    let levels = levels.map(|(series, options)| load(series, &options, mode).group("b"));
    [8, 16, 32, 64].map(queue).into_iter().chain(levels).collect()
}

fn chains(mode: Mode) -> Vec<Job> {
    let ours =
        [4, 8, 16, 32, 64].map(|size| load(VLSM, &vlsm(size), mode).at(X::At(f64::from(size))));
    let rocksdb = load(ROCKSDB, &tiered("rocksdb", 64), mode).at(X::At(64.0));
    std::iter::once(rocksdb).chain(ours).collect()
}
