//! What ADOC gives (§6.2, §6.5): Figures 12 to 16, 20 and 21.

use super::{ADOC, AT, DF, SILK_O, SILK_P, fill};
use crate::figure::model::{
    Axis, Check, Figure, Form, Job, Means, Mode, Output, Panel, Paper, Plan, X, at, mean, of,
};
use crate::figure::read;

const SILK_D: &str = "SILK-D";
const ONLY_THREADS: &str = "ADOC-T";
const ONLY_BATCH: &str = "ADOC-B";
/// The devices that this machine can be: their names in panels, and MB/s.
const SLOW: &str = "HDD, 200 MB/s";
const MIDDLE: &str = "SATA SSD, 500 MB/s";
const FAST: &str = "NVMe SSD, 2,000 MB/s";
const DEVICES: [(&str, u32); 3] = [(SLOW, 200), (MIDDLE, 500), (FAST, 2000)];

const TIME: Axis = Axis::linear("time, s");
const SETTING: &str = "Engine, five minutes instead of an hour, 4 million keys; devices limited to \
                       200, 500 and 2,000 MB/s. All schemes are our policies.";

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Adoc,
        "12",
        "throughput of all schemes",
        Plan {
            claim: "ADOC is best on every device, 31 to 67 % above SILK-O, the next best; larger \
                    SILKs beat smaller ones.",
            setting: SETTING,
            means: Means::Real,
            minutes: 100,
            jobs: schemes,
            panels: &[
                kops(
                    SLOW,
                    |it| over_time(it, SLOW),
                    &[
                        Check::at_least(mean(ADOC), 1.2, mean(SILK_O)).paper(1.551),
                        Check::at_least(mean(ADOC), 1.5, mean(AT)),
                    ],
                ),
                kops(
                    MIDDLE,
                    |it| over_time(it, MIDDLE),
                    &[
                        Check::at_least(mean(ADOC), 1.1, mean(SILK_O)).paper(1.31),
                        Check::at_least(mean(ADOC), 1.5, mean(AT)).paper(4.228),
                        Check::at_least(mean(SILK_O), 1.0, mean(SILK_D)),
                    ],
                ),
                kops(
                    FAST,
                    |it| over_time(it, FAST),
                    &[Check::at_least(mean(ADOC), 1.1, mean(SILK_O)).paper(1.378)],
                ),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "13",
        "stalls of the schemes",
        Plan {
            claim: "ADOC stalls up to 87.9 % less than auto-tuned RocksDB, and about as much as \
                    SILK-O.",
            setting: SETTING,
            means: Means::Real,
            minutes: 100,
            jobs: schemes,
            panels: &[
                stalled(
                    SLOW,
                    |it| read::only(it, SLOW, read::stalled_seconds),
                    &[
                        Check::at_most(of(ADOC), 1.0, of(AT)).paper(0.72),
                        Check::between(of(ADOC), 0.5, 1.5, of(SILK_O)).paper(0.897),
                    ],
                ),
                stalled(
                    MIDDLE,
                    |it| read::only(it, MIDDLE, read::stalled_seconds),
                    &[
                        Check::at_most(of(ADOC), 0.5, of(AT)).paper(0.121),
                        Check::between(of(ADOC), 0.5, 1.5, of(SILK_O)).paper(0.913),
                    ],
                ),
                stalled(
                    FAST,
                    |it| read::only(it, FAST, read::stalled_seconds),
                    &[Check::at_most(of(ADOC), 0.5, of(AT)).paper(0.121)],
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
            means: Means::Real,
            minutes: 100,
            jobs: schemes,
            panels: &[
                Panel::bars(Axis::linear("input, GB"), |it| read::only(it, MIDDLE, read::input_gb))
                    .titled("input, SATA SSD")
                    .checks(&[Check::at_least(of(ADOC), 1.2, of(SILK_O)).paper(1.465)]),
                Panel::bars(Axis::linear("space, GB"), |it| {
                    read::only(it, MIDDLE, read::database_gb)
                })
                .titled("space, SATA SSD")
                .checks(&[Check::at_most(of(ADOC), 1.3, of(SILK_O)).paper(1.194)]),
                Panel::bars(Axis::linear("processor time, s"), |it| {
                    read::only(it, MIDDLE, read::cpu_seconds)
                })
                .titled("processor time, SATA SSD")
                .checks(&[Check::at_least(of(ADOC), 1.0, of(SILK_O)).paper(1.725)]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "15",
        "shares of background work",
        Plan {
            claim: "The shares of operations are the same for all schemes on a device; ADOC's \
                    totals are higher.",
            setting: "Engine, SATA SSD. Shares of the time of jobs by kind; the paper counts \
                      samples of functions of RocksDB, which we do not have.",
            means: Means::Real,
            minutes: 100,
            jobs: |mode| {
                let jobs = schemes(mode).into_iter();
                let own = jobs.filter(|job| job.runs[0].group == MIDDLE);
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
            means: Means::Real,
            minutes: 100,
            jobs: schemes,
            panels: &[
                tail(
                    SLOW,
                    |it| read::only(it, SLOW, read::mean_p99_of_writes),
                    &[Check::at_least(of(ADOC), 1.2, of(SILK_O)).paper(3.429)],
                ),
                tail(
                    MIDDLE,
                    |it| read::only(it, MIDDLE, read::mean_p99_of_writes),
                    &[Check::at_least(of(ADOC), 1.2, of(SILK_O)).paper(2.312)],
                ),
                tail(
                    FAST,
                    |it| read::only(it, FAST, read::mean_p99_of_writes),
                    &[Check::at_least(of(ADOC), 1.0, of(SILK_O)).paper(1.701)],
                ),
            ],
            because: "",
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
            means: Means::Real,
            minutes: 50,
            jobs: alone,
            panels: &[
                Panel::bars(Axis::linear("throughput, K/s"), |it| read::only(it, SLOW, read::kops))
                    .titled(SLOW)
                    .checks(&[Check::at_least(of(ONLY_BATCH), 1.0, of(ONLY_THREADS))]),
                Panel::bars(Axis::linear("throughput, K/s"), |it| read::only(it, FAST, read::kops))
                    .titled(FAST)
                    .checks(&[Check::at_least(of(ONLY_THREADS), 1.0, of(ONLY_BATCH))]),
                Panel::bars(Axis::linear("memory, MB"), |it| read::only(it, FAST, read::memory_mb))
                    .titled("memory")
                    .checks(&[Check::at_most(of(ONLY_THREADS), 1.0, of(ADOC))]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "21",
        "threads and batch over time",
        Plan {
            claim: "Both knobs together need fewer and smaller adjustments than either alone.",
            setting: SETTING,
            means: Means::Real,
            minutes: 50,
            jobs: |mode| {
                let jobs = alone(mode).into_iter();
                jobs.filter(|job| job.runs[0].group == MIDDLE).collect()
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
            because: "",
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

/// A scheme's options on a device: SILK reserves a quarter of it and has no limits of level 0.
fn silk(slots: (u32, u32), megabytes: u32, mb_per_second: u32) -> String {
    let (flushes, compactions) = slots;
    format!(
        "--profile silk --jobs {} --set max_background_flushes={flushes} \
         --set max_background_compactions={compactions} --memtable-size {megabytes}M \
         --set table_bytes={megabytes}M --set level_base_bytes={}M --set scheduler_floor={} \
         --set level0_slowdown=1000000 --set level0_stop=1000000",
        flushes + compactions,
        4 * megabytes,
        mb_per_second * 250_000
    )
}

fn schemes(mode: Mode) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (device, mb) in mode.pick(&DEVICES[1..2], &DEVICES[..]) {
        let tuned = format!(
            "--profile rocksdb-autotuned --set rate_limit_bytes_per_second={}",
            mb * 1_000_000
        );
        let schemes = [
            (DF, "--profile rocksdb".to_owned()),
            (AT, tuned),
            (SILK_D, silk((1, 1), 64, *mb)),
            (SILK_P, silk((1, 3), 128, *mb)),
            (SILK_O, silk((2, 6), 512, *mb)),
            (ADOC, "--profile adoc".to_owned()),
        ];
        let jobs_here =
            schemes.iter().map(|(series, options)| fill(series, options, *mb, mode).group(device));
        jobs.extend(jobs_here);
    }
    jobs
}

fn alone(mode: Mode) -> Vec<Job> {
    let schemes = [
        (ONLY_THREADS, "--profile adoc-threads"),
        (ONLY_BATCH, "--profile adoc-batch"),
        (ADOC, "--profile adoc"),
    ];
    let of_device = |(device, mb): (&'static str, u32)| {
        schemes.map(|(series, options)| fill(series, options, mb, mode).group(device))
    };
    DEVICES.into_iter().flat_map(of_device).collect()
}
