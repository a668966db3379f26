//! ADOC on other workloads (§6.3, §6.4): Figures 17, 18 and 19.

use super::{ADOC, AT, LIMITS, SILK_O, auto_tuned, silk, tuned};
use crate::figure::model::{Axis, Check, Figure, Job, Means, Mode, Panel, Paper, Plan, X, at, of};
use crate::figure::read;

const SETTING: &str = "Virtual time: 50 million records of 1 KB on the SATA SSD, four clients, ten \
                       minutes a workload instead of an hour; keys are uniform. All schemes are \
                       our policies.";

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Adoc,
        "17",
        "throughput in YCSB",
        Plan {
            claim: "ADOC is 8 to 11 % above auto-tuned RocksDB; it loads faster than SILK-O, which \
                    is ahead in A, B, C and F.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 2,
            jobs: ycsb,
            panels: &[Panel::groups(Axis::linear(""), Axis::linear("throughput, K/s"), read::kops)
                .checks(&[
                    Check::at_least(at(ADOC, "Load"), 1.03, at(AT, "Load")).paper(1.1),
                    Check::at_least(at(ADOC, "Load"), 1.0, at(SILK_O, "Load")),
                    Check::at_most(at(ADOC, "A"), 1.0, at(SILK_O, "A")),
                    Check::at_most(at(ADOC, "C"), 1.05, at(SILK_O, "C")),
                ])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "18",
        "memory in YCSB",
        Plan {
            claim: "SILK-O has up to 76.8 % more memory than ADOC, 22.2 % in the mean.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 2,
            jobs: ycsb,
            panels: &[Panel::groups(
                Axis::linear(""),
                Axis::linear("memory of memtables, MB"),
                read::memory_mb,
            )
            .checks(&[
                Check::at_least(at(SILK_O, "Load"), 1.0, at(ADOC, "Load")).paper(1.222),
                Check::at_least(at(SILK_O, "A"), 1.0, at(ADOC, "A")).paper(1.222),
            ])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Adoc,
        "19",
        "reading while writing",
        Plan {
            claim: "ADOC's throughput is 5 to 45 % above SILK-O's and about twice auto-tuned \
                    RocksDB's.",
            setting: "Engine, one reader beside one writer, 60 s on 500 MB/s instead of 50 million \
                      operations. Every key is loaded, so that every read finds its key.",
            means: Means::Real,
            minutes: 8,
            jobs: reading,
            panels: &[
                Panel::bars(Axis::linear("written, GB"), read::input_gb)
                    .titled("input of the writer")
                    .checks(&[
                        Check::at_least(of(ADOC), 1.0, of(SILK_O)).paper(1.05),
                        Check::at_least(of(ADOC), 1.5, of(AT)).paper(1.95),
                    ]),
                Panel::bars(Axis::linear("reads, K/s"), read::kops).titled("reads"),
                Panel::bars(Axis::linear("keys found, %"), read::found_percent).titled("found"),
            ],
            because: "",
        },
    ),
];

const SYSTEMS: [(&str, &str); 3] = [
    (AT, "--profile rocksdb-autotuned --set rate_limit_bytes_per_second=500000000"),
    (
        SILK_O,
        "--profile silk --jobs 8 --set max_background_flushes=2 --set max_background_compactions=6 \
         --memtable-size 512M --set table_bytes=512M --set level_base_bytes=2G \
         --set scheduler_floor=125000000 --set level0_slowdown=1000000 --set level0_stop=1000000",
    ),
    (ADOC, "--profile adoc"),
];

fn ycsb(mode: Mode) -> Vec<Job> {
    const WORKLOADS: [(&str, &str); 7] = [
        ("ycsb-load", "Load"),
        ("ycsb-a", "A"),
        ("ycsb-b", "B"),
        ("ycsb-c", "C"),
        ("ycsb-f", "F"),
        ("ycsb-d", "D"),
        ("ycsb-e", "E"),
    ];
    let seconds = mode.pick(20, 600);
    let of_workload = |(workload, name): (&str, &'static str)| {
        let systems = [(AT, auto_tuned(490)), (SILK_O, silk(8, 512, 490)), (ADOC, tuned("adoc"))];
        systems.map(|(series, options)| {
            let words = format!(
                "-w {workload} -t 4 --db-size 50G --wal buffered --cache 64M \
                 --device-bandwidth 490M {LIMITS} {options} -d {seconds}"
            );
            Job::sim(series, &words).at(X::Is(name))
        })
    };
    WORKLOADS.into_iter().flat_map(of_workload).collect()
}

fn reading(mode: Mode) -> Vec<Job> {
    let one = |(series, options): (&'static str, &str)| {
        let keys = mode.pick("200k", "4M");
        let words = format!(
            "-w readwhilewriting -n {keys} -t 1 --value-size 1000 --compression none \
             --wal buffered --direct --block-cache 64M {options} -d {} --ops 1G",
            mode.pick(4, 60)
        );
        Job::limited(mode.pick(4, 30), 8).run(series, &words).mb_per_second(500)
    };
    SYSTEMS.map(one).into_iter().collect()
}
