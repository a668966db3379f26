//! What ADOC gives (§6.2, §6.5): Figures 12 to 16, 20 and 21.

use super::{
    ADOC, AT, DEVICES, DF, HDD, NVME, PM, SATA, SILK_O, SILK_P, auto_tuned, batch, fill, silk,
    threads, tuned,
};
use crate::figure::model::{
    Axis, Check, Figure, Form, Job, Means, Mode, Output, Panel, Paper, Plan, X, at, mean, of,
};
use crate::figure::read;

const SILK_D: &str = "SILK-D";
const ONLY_THREADS: &str = "ADOC-T";
const ONLY_BATCH: &str = "ADOC-B";
const TIME: Axis = Axis::linear("time, s");
const SETTING: &str = "Virtual time: one client overwrites a database of 100 GB for an hour; the \
                       paper fills an empty one. All schemes are our policies.";

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Adoc,
        "12",
        "throughput of all schemes",
        Plan {
            claim: "ADOC is best on every device, 31 to 67 % above SILK-O, the next best; larger \
                    SILKs beat smaller ones.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 12,
            jobs: schemes,
            panels: &[
                kops(
                    PM,
                    |it| over_time(it, PM),
                    &[Check::at_least(mean(ADOC), 1.1, mean(SILK_O)).paper(1.667)],
                ),
                kops(
                    HDD,
                    |it| over_time(it, HDD),
                    &[
                        Check::at_least(mean(ADOC), 1.2, mean(SILK_O)).paper(1.551),
                        Check::at_least(mean(ADOC), 1.5, mean(AT)),
                    ],
                ),
                kops(
                    SATA,
                    |it| over_time(it, SATA),
                    &[
                        Check::at_least(mean(ADOC), 1.1, mean(SILK_O)).paper(1.31),
                        Check::at_least(mean(ADOC), 1.5, mean(AT)),
                        Check::at_least(mean(SILK_O), 1.0, mean(SILK_D)),
                    ],
                ),
                kops(
                    NVME,
                    |it| over_time(it, NVME),
                    &[Check::at_least(mean(ADOC), 1.1, mean(SILK_O)).paper(1.378)],
                ),
            ],
            because: "ADOC is first on every device, by 7 to 107 %; on the HDD by 9 %",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "13",
        "stalls of the schemes",
        Plan {
            claim: "ADOC stalls up to 87.9 % less than auto-tuned RocksDB (the text does not say \
                    on which device), and about as much as SILK-O.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 12,
            jobs: schemes,
            panels: &[
                stalled(
                    PM,
                    |it| read::only(it, PM, read::stalled_seconds),
                    &[Check::at_most(of(ADOC), 0.5, of(AT))],
                ),
                stalled(
                    HDD,
                    |it| read::only(it, HDD, read::stalled_seconds),
                    &[
                        Check::at_most(of(ADOC), 1.0, of(AT)),
                        Check::between(of(ADOC), 0.5, 1.5, of(SILK_O)).paper(0.897),
                    ],
                ),
                stalled(
                    SATA,
                    |it| read::only(it, SATA, read::stalled_seconds),
                    &[
                        Check::at_most(of(ADOC), 1.0, of(AT)),
                        Check::between(of(ADOC), 0.5, 1.5, of(SILK_O)).paper(0.913),
                    ],
                ),
                stalled(
                    NVME,
                    |it| read::only(it, NVME, read::stalled_seconds),
                    &[Check::at_most(of(ADOC), 0.5, of(AT))],
                ),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "14",
        "processor time, space and input",
        Plan {
            claim: "ADOC takes in 47 to 67 % more than SILK-O for little more space, and more \
                    processor time.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 12,
            jobs: schemes,
            panels: &[
                Panel::bars(Axis::linear("input, GB"), |it| read::only(it, SATA, read::input_gb))
                    .titled("input, SATA SSD")
                    .checks(&[Check::at_least(of(ADOC), 1.2, of(SILK_O)).paper(1.465)]),
                Panel::bars(Axis::linear("space, GB"), |it| {
                    read::only(it, SATA, read::database_gb)
                })
                .titled("space, SATA SSD")
                .checks(&[Check::at_most(of(ADOC), 1.3, of(SILK_O)).paper(1.194)]),
                Panel::bars(Axis::linear("processor time, s"), |it| {
                    read::only(it, SATA, read::cpu_seconds)
                })
                .titled("processor time, SATA SSD")
                .checks(&[Check::at_least(of(ADOC), 1.0, of(SILK_O)).paper(1.725)]),
            ],
            because: "ADOC takes in 7 % more than SILK-O on the SATA SSD, and 107 % on \
                      the NVMe SSD (Fig. 12)",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "15",
        "shares of background work",
        Plan {
            claim: "The shares of operations are the same for all schemes on a device; ADOC's \
                    totals are higher.",
            setting: "As Fig. 12, SATA SSD. Shares of the time of jobs by kind; the paper counts \
                      samples of functions of RocksDB, which we do not have.",
            means: Means::Virtual,
            minutes: 12,
            jobs: |mode| {
                let jobs = schemes(mode).into_iter();
                let own = jobs.filter(|job| job.runs[0].group == SATA);
                own.map(|job| {
                    let name = job.runs[0].series;
                    job.at(X::Is(name))
                })
                .collect()
            },
            panels: &[Panel::whole(
                Axis::linear(""),
                Axis::linear("share of job time, %"),
                read::jobs::shares,
            )
            .drawn_as(Form::Bars)
            .checks(&[Check::between(
                at("deeper compactions", ADOC),
                0.5,
                2.0,
                at("deeper compactions", SILK_O),
            )
            .paper(1.0)])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "16",
        "p99 of writes",
        Plan {
            claim: "SILK-O's mean p99 of writes is lower than ADOC's except on the fastest device.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 12,
            jobs: schemes,
            panels: &[
                tail(
                    HDD,
                    |it| read::only(it, HDD, read::mean_p99_of_writes),
                    &[Check::at_least(of(ADOC), 1.2, of(SILK_O)).paper(3.429)],
                ),
                tail(
                    SATA,
                    |it| read::only(it, SATA, read::mean_p99_of_writes),
                    &[Check::at_least(of(ADOC), 1.2, of(SILK_O)).paper(2.312)],
                ),
                tail(
                    NVME,
                    |it| read::only(it, NVME, read::mean_p99_of_writes),
                    &[Check::at_least(of(ADOC), 1.0, of(SILK_O)).paper(1.701)],
                ),
            ],
            because: "On the NVMe SSD, where ADOC has twice the throughput of SILK-O, \
                      its p99 is half of SILK-O's, as the paper finds on PM",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "20",
        "threads alone and batches alone",
        Plan {
            claim: "Threads alone come near ADOC on the fastest device and fall behind on slower \
                    ones; batches alone are good on the HDD and fall behind on faster ones.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 12,
            jobs: alone,
            panels: &[
                Panel::bars(Axis::linear("throughput, K/s"), |it| read::only(it, HDD, read::kops))
                    .titled(HDD)
                    .checks(&[Check::at_least(of(ONLY_BATCH), 1.0, of(ONLY_THREADS))]),
                Panel::bars(Axis::linear("throughput, K/s"), |it| read::only(it, NVME, read::kops))
                    .titled(NVME)
                    .checks(&[Check::at_least(of(ONLY_THREADS), 1.0, of(ONLY_BATCH))]),
                Panel::bars(Axis::linear("memory, MB"), |it| read::only(it, NVME, read::memory_mb))
                    .titled("memory")
                    .checks(&[Check::at_most(of(ONLY_THREADS), 1.0, of(ADOC))]),
            ],
            because: "On the HDD neither half of the tuner does much: 17.8 and 16.3 K/s, \
                      both together 20.9",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "21",
        "threads and batch over time",
        Plan {
            claim: "Both knobs together need fewer and smaller adjustments than either alone.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 12,
            jobs: |mode| {
                let jobs = alone(mode).into_iter();
                jobs.filter(|job| job.runs[0].group == SATA).collect()
            },
            panels: &[
                Panel::curves(TIME, Axis::linear("job slots"), read::slots_by_second)
                    .titled("threads"),
                Panel::curves(TIME, Axis::linear("memtable, MB"), read::memtable_by_second)
                    .titled("batch"),
                Panel::bars(Axis::linear("adjustments"), read::adjustments)
                    .titled("adjustments")
                    .checks(&[Check::at_most(of(ADOC), 1.0, of(ONLY_THREADS))]),
            ],
            because: "ADOC turns its knobs 147 times in the hour, ADOC-T 90 times and \
                      ADOC-B 10 times",
        },
    ),
];

const fn kops(
    title: &'static str,
    read: fn(&Output) -> Vec<(f64, f64)>,
    checks: &'static [Check],
) -> Panel {
    Panel::curves(TIME, Axis::linear("throughput, K/s"), read).titled(title).checks(checks)
}

const fn stalled(
    title: &'static str,
    read: fn(&Output) -> Option<f64>,
    checks: &'static [Check],
) -> Panel {
    Panel::bars(Axis::linear("stalled, s"), read).titled(title).checks(checks)
}

const fn tail(
    title: &'static str,
    read: fn(&Output) -> Option<f64>,
    checks: &'static [Check],
) -> Panel {
    Panel::bars(Axis::log("p99, ms"), read).titled(title).checks(checks)
}

fn over_time(output: &Output, device: &str) -> Vec<(f64, f64)> {
    if output.run.group == device { read::kops_by_second(output) } else { Vec::new() }
}

fn schemes(mode: Mode) -> Vec<Job> {
    let of_device = |(device, mb): (&'static str, u32)| {
        let schemes = [
            (DF, format!("--policy rocksdb {} {}", threads(2), batch(64))),
            (AT, auto_tuned(mb)),
            (SILK_D, silk(2, 64, mb)),
            (SILK_P, silk(4, 128, mb)),
            (SILK_O, silk(8, 512, mb)),
            (ADOC, tuned("adoc")),
        ];
        schemes.map(|(series, options)| fill(series, &options, mb, mode).group(device))
    };
    DEVICES.into_iter().flat_map(of_device).collect()
}

fn alone(mode: Mode) -> Vec<Job> {
    let schemes = [(ONLY_THREADS, "adoc-threads"), (ONLY_BATCH, "adoc-batch"), (ADOC, "adoc")];
    let of_device = |(device, mb): (&'static str, u32)| {
        schemes.map(|(series, policy)| fill(series, &tuned(policy), mb, mode).group(device))
    };
    DEVICES.into_iter().flat_map(of_device).collect()
}
