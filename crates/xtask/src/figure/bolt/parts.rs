//! What BoLT's parts do (§2.4, §2.6, §4.2): Figures 4, 6, 11 and 12, and the diagrams.

use super::{BOLT, ENGINE, LEVELDB, SETTING, SLOW_BARRIERS, model_load, model_ycsb, ycsb};
use crate::figure::model::{
    Axis, Check, Figure, Job, Means, Mode, Output, Panel, Paper, Plan, Published, X, at, at_number,
    greatest,
};
use crate::figure::read;

const KOPS: Axis = Axis::linear("throughput, K/s");
const BARRIERS: Axis = Axis::log("barriers a GB of input");
const SLOWER: Axis = Axis::log("operations that are slower, %");
const LATENCY: Axis = Axis::log("latency, ms");
pub(super) static FIGURES: &[Figure] = &[
    Figure::diagram(Paper::Bolt, "1", "architecture of an LSM-tree in LevelDB"),
    Figure::diagram(Paper::Bolt, "2", "a compaction in LevelDB"),
    Figure::diagram(Paper::Bolt, "3", "barriers of a compaction"),
    Figure::measured(
        Paper::Bolt,
        "4",
        "insertion with tables of 2 to 64 MB",
        Plan {
            claim: "The number of fsync calls of LevelDB falls linearly with the size of tables, \
                    and insertions get faster.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: table_sizes,
            panels: &[
                Panel::points(Axis::log("table size, MB"), BARRIERS, read::barriers_per_gb)
                    .titled("(a) barriers")
                    .checks(&[Check::between(
                        at_number(LEVELDB, 2.0),
                        8.0,
                        64.0,
                        at_number(LEVELDB, 64.0),
                    )
                    .paper(32.0)]),
                Panel::curves(SLOWER, LATENCY, read::tail_of_writes).titled("(b) insertions"),
                Panel::points(Axis::log("table size, MB"), KOPS, read::kops)
                    .titled("throughput")
                    .checks(&[Check::at_least(
                        at_number(LEVELDB, 64.0),
                        1.5,
                        at_number(LEVELDB, 2.0),
                    )
                    .paper(2.75)]),
            ],
            because: "Flushes and the manifest need barriers too, which do not fall with \
                      the size of tables: with tables of 64 MB they are most of the 482 \
                      a GB",
        },
    ),
    Figure::diagram(Paper::Bolt, "5", "the table cache and the block cache of LevelDB"),
    Figure::measured(
        Paper::Bolt,
        "6",
        "point reads and the table cache",
        Plan {
            claim: "With a table cache that cannot hold all indexes the tail of reads is much \
                    higher with tables of 64 MB than with small ones.",
            setting: "Engine, 6 GB on 200 MB/s; tables of 1 and 64 MB, a table cache of 8 MB.",
            means: Means::Real,
            minutes: 8,
            jobs: table_cache,
            panels: &[Panel::curves(SLOWER, LATENCY, read::tail_of_reads)
                .checks(&[Check::at_least(at_number(LARGE, 1.0), 3.0, at_number(SMALL, 1.0))])],
            because: "",
        },
    ),
    Figure::diagram(Paper::Bolt, "7", "a compaction with logical tables"),
    Figure::diagram(Paper::Bolt, "8", "a group compaction"),
    Figure::diagram(Paper::Bolt, "9", "barriers of a group compaction"),
    Figure::diagram(Paper::Bolt, "10", "a settled compaction"),
    Figure::measured(
        Paper::Bolt,
        "11",
        "barriers by the size of groups",
        Plan {
            claim: "LevelDB has twice the barriers of groups of 2 MB; barriers fall linearly with \
                    the size of groups, and throughput rises.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: groups,
            panels: &[
                Panel::points(Axis::log("group size, MB"), BARRIERS, read::barriers_per_gb)
                    .titled("barriers")
                    .checks(&[
                        Check::between(greatest(LEVELDB), 1.3, 4.0, at_number(BOLT, 2.0))
                            .paper(2.0),
                        Check::at_least(at_number(BOLT, 2.0), 5.0, at_number(BOLT, 64.0)),
                    ]),
                Panel::points(Axis::log("group size, MB"), KOPS, read::kops)
                    .titled("throughput")
                    .checks(&[Check::at_least(at_number(BOLT, 64.0), 1.0, at_number(BOLT, 2.0))]),
            ],
            because: "",
        },
    ),
    Figure::measured(
        Paper::Bolt,
        "12a",
        "the parts of BoLT in LevelDB",
        Plan {
            claim: "Logical tables alone change little; groups give 2.5 times the writes; settling \
                    saves 9.5 % of the bytes.",
            setting: ENGINE,
            means: Means::Real,
            minutes: 14,
            jobs: in_leveldb,
            panels: &[
                Panel::groups(Axis::linear(""), KOPS, read::kops)
                    .published(&[Published {
                        name: "+GC",
                        source: "§4.2.2",
                        times: Some("stock"),
                        points: &[(X::Is("LA"), 2.5)],
                    }])
                    .checks(&[
                        Check::between(at("+LS", "LA"), 0.8, 1.3, at("stock", "LA")).paper(1.0),
                        Check::at_least(at("+GC", "LA"), 1.5, at("stock", "LA")).paper(2.5),
                        Check::at_least(at("+STL, +FC", "D"), 1.2, at("stock", "D")).paper(1.51),
                    ]),
                Panel::groups(Axis::linear(""), Axis::linear("written, GB"), written_by_load)
                    .checks(&[Check::between(at("+STL, +FC", "LA"), 0.8, 0.97, at("+GC", "LA"))
                        .paper(0.905)]),
            ],
            because: "Already in +LS all tables of a compaction share one file and one \
                      barrier. The rest agrees",
        },
    ),
    Figure::measured(
        Paper::Bolt,
        "12b",
        "the parts of BoLT in HyperLevelDB",
        Plan {
            claim: "HyperLevelDB loads four times as fast as LevelDB; with all parts it is up to \
                    33 % faster at writes and 56 % at reads.",
            setting: SETTING,
            means: Means::Virtual,
            minutes: 1,
            jobs: in_hyperleveldb,
            panels: &[Panel::groups(Axis::linear(""), KOPS, read::kops).checks(&[
                Check::at_least(at("stock", "LA"), 2.0, at(LEVELDB, "LA")).paper(4.0),
                Check::at_least(at("+STL, +FC", "LA"), 1.1, at("stock", "LA")).paper(1.33),
                Check::at_least(at("+STL, +FC", "C"), 1.1, at("stock", "C")).paper(1.56),
            ])],
            because: "Without limits of level 0 nothing but full memtables stops \
                      HyperLevelDB's writers in ten minutes, so that both load as fast \
                      as memtables are flushed; level 0 has 900 runs then",
        },
    ),
];

const SMALL: &str = "tables of 1 MB";
const LARGE: &str = "tables of 64 MB";

fn written_by_load(output: &Output) -> Option<f64> {
    let loads = output.run.x == Some(X::Is("LA"));
    loads.then(|| read::written_gb(output)).flatten()
}

fn table_sizes(mode: Mode) -> Vec<Job> {
    let one = |megabytes: u32| {
        let options = format!("leveldb --set table_bytes={megabytes}MiB");
        model_load(LEVELDB, &options, mode).at(X::At(f64::from(megabytes)))
    };
    [2, 4, 8, 16, 32, 64].into_iter().map(one).collect()
}

fn table_cache(mode: Mode) -> Vec<Job> {
    let (keys, seconds, cache) = mode.pick(("400k", 3, "1M"), ("6M", 25, "8M"));
    let one = |series, megabytes: u32| {
        let size = format!("{megabytes}MiB");
        let tables = format!(
            "--set table_bytes={size} --set flush_table_bytes={size} \
             --set grandparent_bytes_max={}MiB",
            10 * megabytes
        );
        let common = format!(
            "-n {keys} -t 2 --value-size 1000 --compression none --profile bolt \
             --memtable-size 64M --set level_base_bytes=256M {tables} --bloom-bits 10 \
             --block-cache 64M --wal off --direct --keep"
        );
        let reads = format!("-w readrandom {common} --set table_cache_bytes={cache}");
        Job::limited(mode.pick(3, 18), 1)
            .load(&format!("-w ycsb-load {common}"))
            .run(series, &format!("{reads} --use-existing -d {seconds}"))
            .mb_per_second(200)
    };
    vec![one(SMALL, 1), one(LARGE, 64)]
}

fn groups(mode: Mode) -> Vec<Job> {
    let one = |megabytes: u32| {
        let options = format!("bolt --set group_compaction_bytes={megabytes}MiB");
        model_load(BOLT, &options, mode).at(X::At(f64::from(megabytes)))
    };
    let stock = model_load(LEVELDB, "leveldb", mode).at(X::At(1.0));
    std::iter::once(stock).chain([2, 4, 8, 16, 32, 64].map(one)).collect()
}

/// The steps from a store to BoLT in it: profiles, with what is set. Descriptors are always cached
/// by file, so that the last two steps are one.
fn parts(stock: &str, whole: &str, priority: &str) -> [(&'static str, String); 4] {
    let with_parts = |group: &str| {
        format!(
            "{whole} --set group_compaction_bytes={group} --set settled_compaction=false \
             --set compaction_priority={priority}"
        )
    };
    [
        ("stock", stock.to_owned()),
        ("+LS", with_parts("0")),
        ("+GC", with_parts("64MiB")),
        ("+STL, +FC", whole.to_owned()),
    ]
}

fn in_leveldb(mode: Mode) -> Vec<Job> {
    let steps = parts("leveldb", "bolt", "round-robin");
    let one = |(series, profile): &(&'static str, String)| {
        ycsb(series, &format!("--profile {profile} {SLOW_BARRIERS}"), "zipfian", mode)
    };
    steps.iter().map(one).collect()
}

fn in_hyperleveldb(mode: Mode) -> Vec<Job> {
    let steps = parts("hyperleveldb", "hyperbolt", "min-overlapping-ratio");
    let jobs = steps.iter().flat_map(|(series, policy)| model_ycsb(series, policy, mode));
    std::iter::once(model_load(LEVELDB, "leveldb", mode)).chain(jobs).collect()
}
