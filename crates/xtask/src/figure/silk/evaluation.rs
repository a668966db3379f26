//! SILK's evaluation on bursts (§6.2, §6.4, §6.5): Figures 7 to 11.

use super::{KOPS, NO_LIMITS, P99, SILK, SPIKE, TIME, sim};
use crate::figure::model::{
    Axis, Check, Figure, HERE, Job, Means, Mode, ONE, Panel, Paper, Pick, Plan, Published, Term, X,
    above, first_above, greatest, mean, of,
};
use crate::figure::read;

const ROCKSDB: &str = "RocksDB";
const TUNED: &str = "RocksDB auto-tuned";
const OURS: &str = "SILK";

/// The first second of the detail of Figure 11, and the one after its last.
const DETAIL: (f64, f64) = (400.0, 600.0);

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Silk,
        "7",
        "real load is no flat line",
        Plan {
            claim: "Nutanix' load has peaks near 20 K/s and valleys of hundreds.",
            setting: "The generator `nutanix`, drawn from the distributions that §6.2 states.",
            means: Means::Virtual,
            minutes: 1,
            jobs: |mode| nutanix(&[(OURS, SILK)], mode.pick(1200, 3600)),
            panels: &[Panel::curves(TIME, Axis::linear("offered, K/s"), read::offered_by_second)
                .checks(&[
                    Check::between(greatest(OURS), 18.0, 25.0, ONE).paper(20.0),
                    Check::at_most(Term::Of(OURS, Pick::Min), 1.0, ONE),
                ])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "8a",
        "SILK against other stores on Nutanix' load",
        Plan {
            claim: "SILK's p99 is two orders of magnitude below auto-tuned RocksDB's and three \
                    below RocksDB's; its throughput follows the load.",
            setting: "Paper's sizes in virtual time; no TRIAD, whose sketch of keys the model \
                      lacks.",
            means: Means::Virtual,
            minutes: 4,
            jobs: systems,
            panels: &[
                Panel::curves(TIME, P99, read::p99_by_second).checks(&[
                    Check::at_least(greatest(ROCKSDB), 30.0, greatest(OURS)).paper(1000.0),
                    Check::at_least(greatest(TUNED), 10.0, greatest(OURS)).paper(100.0),
                    Check::at_most(above(OURS, SPIKE), 0.0, ONE),
                ]),
                Panel::curves(TIME, KOPS, read::kops_by_second).checks(&[Check::between(
                    mean(OURS),
                    0.98,
                    1.02,
                    mean(ROCKSDB),
                )]),
            ],
            because: "RocksDB's flush has a slot of its own in the model and no memtable waits for \
                      it, so only the shared device slows clients down. Without limits of debt \
                      auto-tuned RocksDB is at 7 times SILK, too",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "8b",
        "long peaks",
        Plan {
            claim: "Peaks of 10, 50 and 100 s with valleys of 10 s are sustained; one long peak \
                    degrades after 500 s, with 90 % writes after 300 s.",
            setting: "Paper's sizes in virtual time; RocksDB-SILK, since the model has no TRIAD. \
                      The long peak begins at 0.",
            means: Means::Virtual,
            minutes: 5,
            jobs: long_peaks,
            panels: &[
                Panel::curves(TIME, P99, read::p99_by_second).checks(&[
                    Check::at_most(above("peaks of 10 s", SPIKE), 0.0, ONE),
                    Check::at_most(above("peaks of 50 s", SPIKE), 0.0, ONE),
                    Check::at_most(above("peaks of 100 s", SPIKE), 0.0, ONE),
                    Check::between(first_above(HALF, SPIKE), 250.0, 1000.0, ONE).paper(500.0),
                    Check::between(first_above(MOST, SPIKE), 150.0, 600.0, ONE).paper(300.0),
                ]),
                Panel::curves(TIME, KOPS, read::kops_by_second),
                Panel::curves(TIME, Axis::linear("debt, GB"), read::debt_by_second),
            ],
            because: "Peaks are sustained, and so are the long ones: nothing in the model degrades \
                      while level 0 and the debt grow. With RocksDB's limit of 64 GB of debt the \
                      long ones degrade after 245 and 137 s, but peaks of 100 s do so after 266 s",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "8c",
        "what each technique gives",
        Plan {
            claim: "Neither the bandwidth rule alone nor priorities and preemption alone sustain \
                    peaks of 100 s; both together do.",
            setting: "Paper's sizes in virtual time.",
            means: Means::Virtual,
            minutes: 4,
            jobs: techniques,
            panels: &[
                Panel::curves(TIME, P99, read::p99_by_second).checks(&[
                    Check::at_least(above("bandwidth alone", SPIKE), 10.0, ONE),
                    Check::at_least(above("priorities alone", SPIKE), 10.0, ONE),
                    Check::at_most(above(OURS, SPIKE), 0.0, ONE),
                ]),
                Panel::curves(TIME, KOPS, read::kops_by_second),
            ],
            because: "The bandwidth rule alone is enough in the model. Priorities and preemption \
                      alone are not, and both together are, as in the paper",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "9",
        "delayed flushes and stalled time",
        Plan {
            claim: "SILK can always flush a full memtable and never stalls; auto-tuned RocksDB \
                    stalls 1 % of the time.",
            setting: "The runs of Fig. 8a. TRIAD, with 69 delayed flushes, is missing.",
            means: Means::Virtual,
            minutes: 4,
            jobs: systems,
            panels: &[
                Panel::bars(Axis::linear("delayed flushes"), read::stall_count)
                    .published(&[Published {
                        name: HERE,
                        source: "§6.2",
                        times: None,
                        points: &[(X::Is(OURS), 0.0)],
                    }])
                    .checks(&[Check::at_most(of(OURS), 0.0, ONE).paper(0.0)]),
                Panel::bars(Axis::linear("time stalled, %"), read::stalled_percent)
                    .published(&[Published {
                        name: HERE,
                        source: "§6.2",
                        times: None,
                        points: &[(X::Is(TUNED), 1.0), (X::Is(OURS), 0.0)],
                    }])
                    .checks(&[
                        Check::at_most(of(OURS), 0.0, ONE).paper(0.0),
                        Check::at_least(of(TUNED), 0.1, ONE).paper(1.0),
                    ]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "10",
        "24 hours of Nutanix' load",
        Plan {
            claim: "For 24 h SILK's p99 stays low and its throughput close to the load, without a \
                    write stall.",
            setting: "Paper's sizes in virtual time.",
            means: Means::Virtual,
            minutes: 10,
            jobs: day,
            panels: &[
                Panel::curves(TIME, P99, read::p99_by_second).checks(&[Check::at_most(
                    above(OURS, SPIKE),
                    0.0,
                    ONE,
                )]),
                Panel::curves(TIME, KOPS, read::kops_by_second),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Silk,
        "11",
        "200 s of bandwidth",
        Plan {
            claim: "Internal work gets more bandwidth when client load falls.",
            setting: "200 s of the run of Fig. 8a.",
            means: Means::Virtual,
            minutes: 2,
            jobs: |mode| nutanix(&[(OURS, SILK)], mode.pick(1200, 3600)),
            panels: &[Panel::whole(
                TIME.within(DETAIL.0, DETAIL.1),
                Axis::linear("bandwidth, MB/s"),
                |outputs| read::part(read::jobs::bandwidth(outputs), DETAIL),
            )
            .checks(&[Check::at_least(
                Term::Of("internal work", Pick::WhereLow("clients")),
                1.2,
                Term::Of("internal work", Pick::WhereHigh("clients")),
            )])],
            because: "",
        },
    ),
];

const HALF: &str = "long peak, 50 % writes";
const MOST: &str = "long peak, 90 % writes";

/// Runs of `nutanix` with level 0 without limits, as all stores of §6 have it.
fn nutanix(systems: &[(&'static str, &str)], seconds: u32) -> Vec<Job> {
    let one = |(series, system): &(&'static str, &str)| {
        sim(series, &format!("-w nutanix {NO_LIMITS} {system}"), seconds)
    };
    systems.iter().map(one).collect()
}

fn systems(mode: Mode) -> Vec<Job> {
    let all = [(ROCKSDB, "--policy rocksdb"), (TUNED, "--policy rocksdb-autotuned"), (OURS, SILK)];
    nutanix(&all, mode.pick(1200, 3600))
}

fn day(mode: Mode) -> Vec<Job> {
    nutanix(&[(OURS, SILK)], mode.pick(1800, 86_400))
}

/// The text does not name the limits of compaction debt. Long peaks would reach RocksDB's, and
/// they are lifted there as those of level 0 are, so that they do not interfere.
const NO_DEBT_LIMITS: &str =
    "--set soft_pending_compaction_bytes=0 --set hard_pending_compaction_bytes=0";

/// Peaks of 40 K/s and valleys of 10 s at 10 K/s.
fn peaks(series: &'static str, length: u32, system: &str, seconds: u32) -> Job {
    let bursts = format!("-w bursts --rate 40k --valley-rate 10k --peak-seconds {length}");
    let words = format!("{bursts} --valley-seconds 10 --value-size 1024 {NO_LIMITS} {system}");
    sim(series, &format!("{words} {NO_DEBT_LIMITS}"), seconds)
}

fn long_peaks(mode: Mode) -> Vec<Job> {
    let seconds = mode.pick(500, 1000);
    let mixed = format!("{SILK} --read-percent 10");
    vec![
        peaks("peaks of 10 s", 10, SILK, seconds),
        peaks("peaks of 50 s", 50, SILK, seconds),
        peaks("peaks of 100 s", 100, SILK, seconds),
        peaks(HALF, 10_000, SILK, seconds),
        peaks(MOST, 10_000, &mixed, seconds),
    ]
}

fn techniques(mode: Mode) -> Vec<Job> {
    let seconds = mode.pick(500, 1000);
    let alone = |off: &str| format!("{SILK} {off}");
    let bandwidth = alone("--set scheduler_priority=false --set preemption=off");
    vec![
        peaks("bandwidth alone", 100, &bandwidth, seconds),
        peaks("priorities alone", 100, &alone("--set scheduler_bandwidth=false"), seconds),
        peaks(OURS, 100, SILK, seconds),
    ]
}
