//! ADOC's sweep of threads and batches (§3.2): Figures 3, 4, 5, 7 and 8.

use super::{DEVICES, HDD, NVME, PM, SATA, batch, overload, threads};
use crate::figure::model::{
    Axis, Check, Figure, Job, Means, Mode, ONE, Output, Panel, Paper, Plan, Series, X, at_number,
    greatest,
};
use crate::figure::read;

const THREADS: Axis = Axis::linear("threads");
const SMALL: &str = "64 MB";
const LARGE: &str = "512 MB";
const SETTING: &str = "Virtual time, on a database of 20 GB that is overwritten; a flush or \
                       compaction has a processor for itself.";
pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Adoc,
        "3",
        "stalls against threads and batch",
        Plan {
            claim: "Stalls get shorter up to six threads; with a batch of 512 MB they are shorter \
                    and fewer than with 64 MB on SSDs.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 2,
            jobs: sweep,
            panels: &[
                stalled(PM, |it| read::only(it, PM, read::stalled_percent), &[]),
                stalled(
                    NVME,
                    |it| read::only(it, NVME, read::stalled_percent),
                    &[
                        Check::at_most(at_number(SMALL, 6.0), 1.0, at_number(SMALL, 2.0)),
                        Check::at_most(at_number(LARGE, 2.0), 1.0, at_number(SMALL, 2.0)),
                    ],
                ),
                stalled(
                    SATA,
                    |it| read::only(it, SATA, read::stalled_percent),
                    &[Check::at_most(at_number(LARGE, 4.0), 1.0, at_number(SMALL, 4.0))],
                ),
                stalled(HDD, |it| read::only(it, HDD, read::stalled_percent), &[]),
                Panel::points(THREADS, Axis::linear("stalls"), |it| {
                    read::only(it, NVME, read::stall_count)
                })
                .titled("occurrences on the NVMe SSD")
                .checks(&[Check::at_most(
                    at_number(LARGE, 4.0),
                    1.0,
                    at_number(SMALL, 4.0),
                )]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "4",
        "processor use for each thread",
        Plan {
            claim: "The use of each thread is high up to six threads and falls beyond; the batch \
                    makes little difference.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 2,
            jobs: on_nvme,
            panels: &[Panel::points(
                THREADS,
                Axis::linear("processor time of a thread, %"),
                read::cpu_percent_per_slot,
            )
            .checks(&[Check::at_most(
                at_number(SMALL, 20.0),
                0.7,
                at_number(SMALL, 2.0),
            )])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "5",
        "bandwidth against threads",
        Plan {
            claim: "The peak reaches the device's limit on the HDD and the SATA SSD and stays far \
                    below on the others; the mean is far below everywhere.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 2,
            jobs: sweep,
            panels: &[
                bandwidth(PM, |all| used(all, PM), &[]),
                bandwidth(
                    NVME,
                    |all| used(all, NVME),
                    &[Check::at_most(greatest("peak, 64 MB"), 0.8, greatest("limit"))],
                ),
                bandwidth(
                    SATA,
                    |all| used(all, SATA),
                    &[Check::at_least(greatest("peak, 64 MB"), 0.8, greatest("limit"))],
                ),
                bandwidth(
                    HDD,
                    |all| used(all, HDD),
                    &[
                        Check::at_least(greatest("peak, 64 MB"), 0.8, greatest("limit")),
                        Check::at_most(greatest("mean, 64 MB"), 0.8, greatest("limit")),
                    ],
                ),
            ],
            because: "A thread of the model moves 900 MB/s, so that twelve reach the limit of an \
                      NVMe device in single seconds. The mean stays below 0.4 of it there, and is \
                      0.86 on a HDD",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "7",
        "background jobs against threads",
        Plan {
            claim: "More threads, more compactions; each job gets slower.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 2,
            jobs: |mode| {
                let jobs = on_nvme(mode).into_iter();
                jobs.filter(|job| job.runs[0].series == SMALL).collect()
            },
            panels: &[
                Panel::whole(THREADS, Axis::log("jobs"), read::jobs::counts)
                    .titled("(a) number of jobs, batch 64 MB")
                    .checks(&[Check::at_least(
                        at_number("compactions of L0", 4.0),
                        1.0,
                        at_number("compactions of L0", 2.0),
                    )]),
                Panel::whole(THREADS, Axis::log("MB/s"), read::jobs::rates)
                    .titled("(b) rate of a job, batch 64 MB")
                    .checks(&[Check::at_most(
                        at_number("deeper compactions", 20.0),
                        1.0,
                        at_number("deeper compactions", 2.0),
                    )]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "8",
        "stalls by cause",
        Plan {
            claim: "Debt stalls rise up to four threads and fall beyond; with 20 threads memtables \
                    cause most; a larger batch has fewer debt stalls.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 2,
            jobs: sweep,
            panels: &[
                Panel::whole(THREADS, Axis::linear("stalls"), |all| causes(all, SMALL))
                    .titled("(a) batch 64 MB, NVMe SSD")
                    .checks(&[Check::at_least(
                        at_number("memtables", 20.0),
                        1.0,
                        at_number("L0", 20.0),
                    )]),
                Panel::whole(THREADS, Axis::linear("stalls"), |all| causes(all, LARGE))
                    .titled("(b) batch 512 MB, NVMe SSD")
                    .checks(&[Check::at_least(greatest("memtables"), 1.0, ONE)]),
            ],
            because: "",
        },
    ),
];

const fn stalled(
    title: &'static str,
    read: fn(&Output) -> Option<f64>,
    checks: &'static [Check],
) -> Panel {
    Panel::points(THREADS, Axis::linear("time stalled, %"), read).titled(title).checks(checks)
}

const fn bandwidth(
    title: &'static str,
    read: fn(&[Output]) -> Vec<Series>,
    checks: &'static [Check],
) -> Panel {
    Panel::whole(THREADS, Axis::log("bandwidth, MB/s"), read).titled(title).checks(checks)
}

fn sweep(mode: Mode) -> Vec<Job> {
    let counts = mode.pick(vec![2, 6, 20], vec![2, 4, 6, 8, 12, 16, 20]);
    let seconds = mode.pick(20, 300);
    let mut jobs = Vec::new();
    for (device, mb) in DEVICES {
        for (series, size) in [(SMALL, 64), (LARGE, 512)] {
            for count in &counts {
                let words = format!("--policy rocksdb {} {}", threads(*count), batch(size));
                let job = overload(series, mb, &words, seconds).at(X::At(f64::from(*count)));
                jobs.push(job.group(device));
            }
        }
    }
    jobs
}

fn on_nvme(mode: Mode) -> Vec<Job> {
    sweep(mode).into_iter().filter(|job| job.runs[0].group == NVME).collect()
}

/// The mean and the peak of the bandwidth on a device, and the limit of reads and writes together.
fn used(outputs: &[Output], device: &str) -> Vec<Series> {
    let here = || outputs.iter().filter(|output| output.run.group == device);
    let line = |name: &str, batch: &'static str, value: fn(&Output) -> Option<f64>| {
        let own = here().filter(|output| output.run.series == batch);
        let points = own.filter_map(|output| Some((output.run.x?, value(output)?)));
        Series { name: format!("{name}, {batch}"), points: points.collect() }
    };
    let both = DEVICES.iter().find(|(name, _)| *name == device).map_or(0, |(_, mb)| 2 * mb);
    let own = here().filter(|output| output.run.series == SMALL);
    let limit = own.filter_map(|output| Some((output.run.x?, f64::from(both))));
    vec![
        line("peak", SMALL, read::peak_bandwidth),
        line("peak", LARGE, read::peak_bandwidth),
        line("mean", SMALL, read::mean_bandwidth),
        line("mean", LARGE, read::mean_bandwidth),
        Series { name: "limit".to_owned(), points: limit.collect() },
    ]
}

/// The stalls of each cause on the NVMe SSD.
fn causes(outputs: &[Output], batch: &str) -> Vec<Series> {
    const CAUSES: [(&str, &str); 3] = [
        ("memtables", "memtable-limit"),
        ("L0", "level0-runs"),
        ("debt", "pending-compaction-bytes"),
    ];
    let of_cause = |(name, cause): (&str, &str)| {
        let own =
            outputs.iter().filter(|output| output.run.group == NVME && output.run.series == batch);
        let points =
            own.filter_map(|output| Some((output.run.x?, read::stalls_for(output, cause)?)));
        Series { name: name.to_owned(), points: points.collect() }
    };
    CAUSES.into_iter().map(of_cause).collect()
}
