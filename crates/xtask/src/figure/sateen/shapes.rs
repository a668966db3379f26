//! Shapes of the tree: sizes of tables and stripes of level 0, TRIAD and FLSM.

use super::{STANDARD, loaded};
use crate::figure::model::{
    Axis, Check, Figure, Job, Means, Mode, Panel, Paper, Plan, X, at, at_number, greatest, of,
};
use crate::figure::read;

const KOPS: Axis = Axis::linear("throughput, K/s");

pub(super) static FIGURES: &[Figure] = &[
    Figure::measured(
        Paper::Sateen,
        "tables",
        "sizes of tables, and level 0 in one piece",
        Plan {
            claim: "With logical tables small tables cost no throughput, and stripes of level 0 \
                    gain some.",
            setting: "Engine, 3 million keys from an empty database, 90 s on 200 MB/s.",
            means: Means::Real,
            minutes: 9,
            jobs: tables,
            panels: &[Panel::bars(KOPS, read::kops).checks(&[
                Check::at_least(of("1 MB"), 0.9, of("8 MB")),
                Check::at_least(of("as it is"), 1.0, of("one piece")),
            ])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Sateen,
        "triad",
        "TRIAD",
        Plan {
            claim: "TRIAD writes less than RocksDB with skewed keys (the paper: 0.7 times).",
            setting: "Engine, 6 million zipfian overwrites of 2 million keys on 200 MB/s; both are \
                      our policies.",
            means: Means::Real,
            minutes: 6,
            jobs: triad,
            panels: &[Panel::bars(Axis::linear("written, GB"), read::written_gb)
                .checks(&[Check::at_most(of("triad"), 0.9, of("rocksdb")).paper(0.7)])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Sateen,
        "triad-silk",
        "bursts under TRIAD with and without SILK",
        Plan {
            claim: "SILK's scheduler lowers TRIAD's p99 in bursts.",
            setting: "Engine, the standard case at 12 K/s.",
            means: Means::Real,
            minutes: 15,
            jobs: |mode| {
                let peak = mode.pick(("3k", "1k"), ("12k", "3k"));
                [("triad", "--profile triad"), ("triad-silk", "--profile triad-silk")]
                    .map(|(series, options)| loaded(series, options, &[peak], mode))
                    .into_iter()
                    .collect()
            },
            panels: &[Panel::curves(
                Axis::linear("time, s"),
                Axis::log("p99, ms"),
                read::p99_by_second,
            )
            .checks(&[Check::at_least(greatest("triad"), 1.0, greatest("triad-silk"))])],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Sateen,
        "flsm",
        "PebblesDB's levels",
        Plan {
            claim: "Levels of several runs write less and read slower than leveled ones.",
            setting: "Engine, 10 million keys of 1 KB on the machine's own disk; both are our \
                      policies.",
            means: Means::Real,
            minutes: 9,
            jobs: flsm,
            panels: &[
                Panel::groups(Axis::linear(""), KOPS, read::kops).checks(&[
                    Check::at_least(at("pebblesdb", "Load"), 1.0, at("rocksdb", "Load")),
                    Check::at_most(at("pebblesdb", "E"), 1.0, at("rocksdb", "E")),
                ]),
                Panel::groups(Axis::linear(""), Axis::linear("written, GB"), read::written_gb),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Sateen,
        "sweep",
        "fixed job slots and memtables beside the tuner",
        Plan {
            claim: "The tuner comes near the best of the fixed settings.",
            setting: "Engine, 4 million keys from an empty database on 200 MB/s.",
            means: Means::Real,
            minutes: 65,
            jobs: sweep,
            panels: &[Panel::points(Axis::log("memtable, MB"), KOPS, read::kops)
                .checks(&[Check::at_least(at_number("adoc", 64.0), 0.95, greatest("2 slots"))])],
            because: "",
        },
    ),
];

fn tables(mode: Mode) -> Vec<Job> {
    let one_piece = "--set level0_stripe_bytes=0 --set flush_table_bytes=0 \
                     --set cut_tables_at_gaps=false";
    let sized = |megabytes: u32| {
        format!("--set table_bytes={megabytes}M --set flush_table_bytes={megabytes}M")
    };
    let shapes = [
        ("1 MB", sized(1)),
        ("2 MB", sized(2)),
        ("8 MB", sized(8)),
        ("as it is", String::new()),
        ("one piece", one_piece.to_owned()),
    ];
    let job = |(series, options): &(&'static str, String)| {
        let (keys, seconds) = mode.pick(("300k", 4), ("3M", 90));
        let words = format!("-w fillrandom -n {keys} --ops 1G -d {seconds} {STANDARD} --wal off");
        Job::limited(mode.pick(4, 16), 1)
            .run(series, &format!("{words} {options}"))
            .mb_per_second(200)
    };
    shapes.iter().map(job).collect()
}

fn triad(mode: Mode) -> Vec<Job> {
    let one = |profile: &'static str| {
        let (keys, operations) = mode.pick(("200k", "400k"), ("2M", "6M"));
        let words = format!(
            "-w overwrite -n {keys} --ops {operations} {STANDARD} --set level_base_bytes=64M \
             --set table_bytes=16M --profile {profile} --distribution zipfian --wal buffered \
             --set wal_bytes_per_sync=1M"
        );
        Job::limited(mode.pick(4, 18), 1).run(profile, &words).mb_per_second(200)
    };
    vec![one("rocksdb"), one("triad")]
}

fn flsm(mode: Mode) -> Vec<Job> {
    let one = |profile: &'static str| {
        let (keys, seconds) = mode.pick(("300k", 3), ("10M", 20));
        let common = format!(
            "-n {keys} -t 4 {STANDARD} --wal off --set level_base_bytes=64M \
             --set table_bytes=16M --keep --profile {profile}"
        );
        let reads =
            |name: &str| format!("-w ycsb-{name} {common} --use-existing -d {seconds} --ops 1G");
        Job::disk()
            .run(profile, &format!("-w ycsb-load {common}"))
            .at(X::Is("Load"))
            .run(profile, &reads("c"))
            .at(X::Is("C"))
            .run(profile, &reads("e"))
            .at(X::Is("E"))
    };
    vec![one("rocksdb"), one("pebblesdb")]
}

fn sweep(mode: Mode) -> Vec<Job> {
    let fill = |series: &'static str, options: &str, megabytes: u32| {
        let (keys, seconds) = mode.pick(("300k", 4), ("4M", 300));
        let words = format!(
            "-w fillrandom -n {keys} --ops 1G -d {seconds} -t 4 --value-size 1000 \
             --compression none --wal buffered --direct --block-cache 64M {options}"
        );
        let job = Job::limited(mode.pick(6, 40), 8).run(series, &words);
        job.at(X::At(f64::from(megabytes))).mb_per_second(200)
    };
    let slots = [("2 slots", 2), ("4 slots", 4), ("8 slots", 8)];
    let batches = mode.pick(vec![64, 512], vec![64, 128, 256, 512]);
    let fixed = slots.into_iter().flat_map(|(series, slots): (&'static str, u32)| {
        batches.iter().map(move |megabytes| {
            let options = format!("--profile rocksdb --jobs {slots} --memtable-size {megabytes}M");
            fill(series, &options, *megabytes)
        })
    });
    std::iter::once(fill("adoc", "--profile adoc", 64)).chain(fixed).collect()
}
