//! ADOC's study of stalls over time (§2.3, §3.3, §4): Figures 1, 2, 6, 9, 10 and 11, and the
//! tables.

use super::{DEVICES, DF, HDD, NVME, SATA, batch, overload, threads};
use crate::figure::model::{
    Axis, Check, Figure, Job, Means, Mode, ONE, Panel, Paper, Pick, Plan, Term, X, at, greatest,
};
use crate::figure::read;

const TIME: Axis = Axis::linear("time, s");
const KOPS: Axis = Axis::linear("throughput, K/s");
const SETTING: &str = "Virtual time, on a database of 20 GB that is overwritten; the paper fills \
                       an empty one.";

pub(super) static FIGURES: &[Figure] = &[
    Figure::diagram(Paper::Adoc, "table-1", "the devices"),
    Figure::diagram(Paper::Adoc, "table-2", "the conclusions of §3"),
    Figure::diagram(Paper::Adoc, "table-3", "the schemes"),
    Figure::diagram(Paper::Adoc, "table-4", "the workloads of YCSB"),
    Figure::measured(
        Paper::Adoc,
        "1",
        "stalls under rising pressure",
        Plan {
            claim: "Every device stalls above some pressure; the slower the device, the lower the \
                    pressure and the longer the stall.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 3,
            jobs: pressure,
            panels: &[Panel::groups(
                Axis::linear("pressure, K/s"),
                Axis::linear("time stalled, %"),
                read::stalled_percent,
            )
            .checks(&[
                Check::at_least(at(HDD, "20"), 1.0, at(SATA, "20")),
                Check::at_least(at(SATA, "40"), 1.0, at(NVME, "40")),
                Check::at_least(at(HDD, "40"), 10.0, ONE),
                Check::at_most(at(NVME, "5"), 5.0, ONE),
            ])],
            because: "",
        },
    ),
    Figure::diagram(Paper::Adoc, "2", "architecture of RocksDB"),
    compactions_and_throughput("6a", "L0 compactions and throughput with 2 threads", |mode| {
        vec![overload(DF, 2700, &two_threads(), mode.pick(120, 600))]
    }),
    compactions_and_throughput("6b", "L0 compactions and throughput with 20 threads", |mode| {
        vec![overload(DF, 2700, &twenty_threads(), mode.pick(120, 600))]
    }),
    Figure::diagram(Paper::Adoc, "9", "the three overflows"),
    Figure::measured(
        Paper::Adoc,
        "10",
        "level 0, debt and the device beside stalls",
        Plan {
            claim: "Stalls come at the peaks of L0's files; debt grows to its limit of 64 GB and \
                    is held there; the device is not saturated at those points.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 2,
            jobs: first_minutes,
            panels: &[
                Panel::curves(TIME, Axis::linear("files in L0"), read::level0_by_second)
                    .titled("(a) L0")
                    .checks(&[Check::at_least(greatest(DF), 20.0, ONE).paper(20.0)]),
                Panel::curves(TIME, Axis::linear("time stalled, %"), read::stalled_by_second)
                    .titled("stalls"),
                Panel::curves(TIME, Axis::linear("debt, GB"), read::debt_by_second)
                    .titled("(b) debt"),
                Panel::curves(TIME, Axis::linear("bandwidth, MB/s"), read::all_bandwidth)
                    .titled("(c) bandwidth")
                    .checks(&[Check::at_most(Term::Of(DF, Pick::Mean), 0.9, Term::Value(5400.0))]),
            ],
            because: "",
        },
    ),
    Figure::diagram(Paper::Adoc, "11", "the control flow of ADOC"),
];

/// Figure 6: the bytes of L0 compactions and the throughput of each second.
const fn compactions_and_throughput(
    number: &'static str,
    title: &'static str,
    jobs: fn(Mode) -> Vec<Job>,
) -> Figure {
    Figure::measured(
        Paper::Adoc,
        number,
        title,
        Plan {
            claim: "The first troughs of throughput coincide with L0 compactions, later ones do \
                    not; with 20 threads there are far more L0 compactions and no relation.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 2,
            jobs,
            panels: L0_PANELS,
            because: "",
        },
    )
}

const L0_PANELS: &[Panel] = &[
    Panel::curves(TIME, KOPS, read::kops_by_second).titled("throughput"),
    Panel::curves(TIME, Axis::linear("L0 compactions, MB/s"), read::level0_bandwidth)
        .titled("bytes of L0 compactions")
        .checks(&[Check::at_least(greatest(DF), 1.0, ONE)]),
];

fn two_threads() -> String {
    format!("--policy rocksdb {} {}", threads(2), batch(64))
}

fn twenty_threads() -> String {
    format!("--policy rocksdb {} {}", threads(20), batch(64))
}

fn pressure(mode: Mode) -> Vec<Job> {
    const PRESSURES: [(&str, u32); 4] = [("5", 5), ("20", 20), ("40", 40), ("80", 80)];
    let seconds = mode.pick(60, 600);
    let of_device = |(series, mb): (&'static str, u32)| {
        PRESSURES.map(|(name, rate)| {
            let words = format!(
                "-w overwrite --rate {rate}k -t 4 --db-size 20G --wal buffered \
                 --device-bandwidth {mb}M -d {seconds} {}",
                two_threads()
            );
            Job::sim(series, &words).at(X::Is(name))
        })
    };
    DEVICES.into_iter().flat_map(of_device).collect()
}

fn first_minutes(mode: Mode) -> Vec<Job> {
    let words = format!("--policy rocksdb {} {}", threads(4), batch(64));
    vec![overload(DF, 2700, &words, mode.pick(120, 600))]
}
