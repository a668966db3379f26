//! Stalls and latency of Load A (§6.1, §6.2): Figures 7, 8, 10 and 11, and Table 1 of §6.3.

use super::{
    ADOC, ROCKSDB, ROCKSDB_IO, SETTING, VLSM, adoc, at_rate, load, of_workload, regions, tiered,
    vlsm,
};
use crate::figure::model::{
    Axis, Check, Figure, Form, Job, Means, Mode, Output, Panel, Paper, Plan, Published, Series, X,
    at, at_number,
};
use crate::figure::read;

const SIZE: Axis = Axis::log("table size, MB");
const P99: Axis = Axis::log("p99, ms");
const VLSM8: &str = "vLSM 8 MB";
const VLSM4: &str = "vLSM 4 MB";

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Vlsm,
        "7",
        "stalls and I/O amplification by table size",
        Plan {
            claim: "vLSM with tables of 8 MB stalls 60 % less than RocksDB-IO and its longest \
                    stall is a fifth; table size changes nothing for RocksDB; ADOC needs 1.8 times \
                    the I/O.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: by_size,
            panels: &[
                Panel::points(SIZE, Axis::linear("stalled, s"), read::stalled_seconds)
                    .titled("(a) all stalls")
                    .checks(&[Check::at_most(
                        at_number(VLSM, 8.0),
                        0.6,
                        at_number(ROCKSDB_IO, 8.0),
                    )
                    .paper(0.4)]),
                Panel::points(SIZE, Axis::log("longest stall, s"), read::longest_stall)
                    .titled("(b) longest stall")
                    .checks(&[Check::at_most(
                        at_number(VLSM, 8.0),
                        0.4,
                        at_number(ROCKSDB_IO, 64.0),
                    )
                    .paper(0.2)]),
                Panel::points(SIZE, Axis::linear("I/O amplification"), read::io_amplification)
                    .titled("(c) I/O amplification")
                    .checks(&[
                        Check::at_most(at_number(VLSM, 8.0), 1.1, at_number(ROCKSDB_IO, 64.0))
                            .paper(1.0),
                        Check::at_least(at_number(ADOC, 64.0), 1.3, at_number(ROCKSDB_IO, 64.0))
                            .paper(1.8),
                    ]),
            ],
            because: "vLSM merges 8 MB with the 64 MB of L1, RocksDB-IO 256 MB with 256 \
                      MB: 7 bytes more are written and read for each byte. ADOC does \
                      what RocksDB-IO does (Fig. 6)",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "8",
        "p99 against the rate",
        Plan {
            claim: "RocksDB's p99 is above a second from 60 % of its greatest rate on; vLSM's is \
                    below at every rate.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: by_rate,
            panels: &[Panel::points(Axis::linear("offered, K/s"), P99, read::p99).checks(&[
                Check::at_most(at_number(VLSM8, 20.0), 1.0, at_number(ROCKSDB, 20.0)),
                Check::at_most(at_number(VLSM8, 40.0), 1.0, at_number(ROCKSDB, 40.0)),
                Check::at_most(at_number(VLSM8, 60.0), 0.5, at_number(ROCKSDB, 60.0)).paper(0.23),
            ])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "10",
        "more regions",
        Plan {
            claim: "vLSM's p99 is a quarter (tables of 8 MB) or a fifth (4 MB) of RocksDB's with 4 \
                    regions; RocksDB's improves 1.4 times with 16.",
            setting: "Virtual time: 350 million records of 200 bytes are overwritten in 4, 16 and \
                      64 regions, behind 500 MB/s each way; 55 K/s.",
            means: Means::Virtual,
            minutes: 1,
            jobs: by_regions,
            panels: &[
                Panel::points(Axis::log("regions"), P99, |it| read::only(it, "open", read::p99))
                    .titled("(a) p99")
                    .checks(&[
                        Check::at_most(at_number(VLSM8, 4.0), 0.5, at_number(ROCKSDB, 4.0))
                            .paper(0.236),
                        Check::at_most(at_number(VLSM4, 4.0), 0.5, at_number(ROCKSDB, 4.0))
                            .paper(0.2),
                        Check::at_most(at_number(ROCKSDB, 16.0), 1.0, at_number(ROCKSDB, 4.0))
                            .paper(0.71),
                    ]),
                Panel::points(Axis::log("regions"), Axis::linear("throughput, K/s"), |it| {
                    read::only(it, "closed", read::kops)
                })
                .titled("(b) throughput")
                .checks(&[Check::at_least(
                    at_number(VLSM8, 4.0),
                    1.0,
                    at_number(ROCKSDB, 4.0),
                )]),
            ],
            because: "With 16 regions RocksDB's chains are narrower, but those of \
                      several regions run at the same time and share the device. With 64 \
                      regions there are no stalls",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "11",
        "the distribution of latency",
        Plan {
            claim: "vLSM with tables of 8 MB has a p50 up to 4 times and a p90 up to 4.88 times \
                    better than RocksDB-IO; smaller tables are better.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: distribution,
            panels: &[Panel::curves(
                Axis::log("operations that are slower, %"),
                Axis::log("latency, ms"),
                read::tail_of_writes,
            )
            .checks(&[
                Check::at_most(at_number(VLSM8, 1.0), 0.5, at_number(ROCKSDB_IO, 1.0)),
                Check::at_most(at_number(VLSM8, 1.0), 1.0, at_number("vLSM 64 MB", 1.0)),
            ])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Vlsm,
        "table-1",
        "tables of 2 to 8 MB",
        Plan {
            claim: "Below 8 MB p99 falls and throughput falls with it.",
            setting: "As Fig. 7. Latency at 40 K/s; the paper's Kcycles are µs of 2.4 GHz here, \
                      and ours come from the model's costs.",
            means: Means::Virtual,
            minutes: 1,
            jobs: small_tables,
            panels: &[Panel::whole(Axis::linear("table size"), Axis::linear("value"), table)
                .drawn_as(Form::Table)
                .published(&[
                    Published {
                        name: MS,
                        source: "§6.3",
                        times: None,
                        points: &[
                            (X::Is("2 MB"), 421.0),
                            (X::Is("4 MB"), 502.0),
                            (X::Is("8 MB"), 860.0),
                        ],
                    },
                    Published {
                        name: KOPS,
                        source: "§6.3",
                        times: None,
                        points: &[
                            (X::Is("2 MB"), 39.0),
                            (X::Is("4 MB"), 161.0),
                            (X::Is("8 MB"), 194.0),
                        ],
                    },
                    Published {
                        name: CPU,
                        source: "§6.3",
                        times: None,
                        points: &[
                            (X::Is("2 MB"), 133.0),
                            (X::Is("4 MB"), 81.7),
                            (X::Is("8 MB"), 58.3),
                        ],
                    },
                ])
                .checks(&[
                    Check::at_most(at(MS, "4 MB"), 1.0, at(MS, "8 MB")).paper(0.58),
                    Check::at_most(at(KOPS, "2 MB"), 0.9, at(KOPS, "8 MB")).paper(0.2),
                    Check::at_least(at(CPU, "2 MB"), 1.0, at(CPU, "8 MB")).paper(2.29),
                ])],
            because: "",
        },
    ),
];

const MS: &str = "p99, ms";
const KOPS: &str = "K/s";
const CPU: &str = "µs an operation";

/// Below 95 % of what each of them serves with every size.
const COMMON_RATE: u32 = 55;

fn by_size(mode: Mode) -> Vec<Job> {
    let of_size = |size: u32| {
        let systems =
            [(ROCKSDB_IO, tiered("rocksdb-io", size)), (ADOC, adoc(size)), (VLSM, vlsm(size))];
        systems.map(|(series, options)| {
            at_rate(series, &options, COMMON_RATE, mode).at(X::At(f64::from(size)))
        })
    };
    [8, 16, 32, 64].into_iter().flat_map(of_size).collect()
}

fn by_rate(mode: Mode) -> Vec<Job> {
    let of_rate = |rate: u32| {
        let systems = [(ROCKSDB, tiered("rocksdb", 64)), (VLSM8, vlsm(8))];
        systems
            .map(|(series, options)| at_rate(series, &options, rate, mode).at(X::At(rate.into())))
    };
    [20, 40, 55, 60, 70, 80, 85].into_iter().flat_map(of_rate).collect()
}

fn by_regions(mode: Mode) -> Vec<Job> {
    let of_regions = |count: u32| {
        let systems = [(ROCKSDB, tiered("rocksdb", 64)), (VLSM8, vlsm(8)), (VLSM4, vlsm(4))];
        systems.into_iter().flat_map(move |(series, options)| {
            let options = format!("{} {options}", regions(count));
            [("closed", 400), ("open", COMMON_RATE)].map(|(group, rate)| {
                of_workload(series, "ycsb-load", &options, rate, mode)
                    .at(X::At(count.into()))
                    .group(group)
            })
        })
    };
    [4, 16, 64].into_iter().flat_map(of_regions).collect()
}

fn distribution(mode: Mode) -> Vec<Job> {
    let named = [(VLSM8, 8), ("vLSM 16 MB", 16), ("vLSM 32 MB", 32), ("vLSM 64 MB", 64)];
    let rocksdb = at_rate(ROCKSDB_IO, &tiered("rocksdb-io", 64), COMMON_RATE, mode);
    let ours = named.map(|(series, size)| at_rate(series, &vlsm(size), COMMON_RATE, mode));
    std::iter::once(rocksdb).chain(ours).collect()
}

fn small_tables(mode: Mode) -> Vec<Job> {
    let of_size = |(name, size): (&'static str, u32)| {
        let options = vlsm(size);
        [
            load(name, &options, mode).group("closed"),
            at_rate(name, &options, 40, mode).group("open"),
        ]
    };
    [("2 MB", 2), ("4 MB", 4), ("8 MB", 8)].into_iter().flat_map(of_size).collect()
}

fn table(outputs: &[Output]) -> Vec<Series> {
    let column = |name: &str, group: &str, value: fn(&Output) -> Option<f64>| {
        let point =
            |output: &Output| Some((X::Is(output.run.series), read::only(output, group, value)?));
        Series { name: name.to_owned(), points: outputs.iter().filter_map(point).collect() }
    };
    vec![
        column(MS, "open", read::p99),
        column(KOPS, "closed", read::kops),
        column(CPU, "closed", read::cpu_us_per_op),
    ]
}
