//! How near our profiles are to the stores that they emulate.
//!
//! 1. [`jobs`] runs each profile and its original with the same sizes on the same device: a fill of
//!    random keys, overwrites, and half reads and half writes at a rate.
//! 2. The panels show what clients see and what reaches the device. A stall is measured by clients,
//!    because each engine counts its own in another way.
//! 3. [`nearness`] divides each emulation by its original.

use super::ROCKSDB;
use crate::figure::model::{
    Axis, Check, Figure, Form, Job, Means, Mode, Output, Panel, Paper, Plan, Series, X, at,
};
use crate::figure::read;

const AUTOTUNED: &str = "RocksDB, auto-tuned";
const LEVELDB: &str = "LevelDB 1.23";

/// The profiles, with their originals.
const PAIRS: [(&str, &str); 3] =
    [("rocksdb", ROCKSDB), ("rocksdb-autotuned", AUTOTUNED), ("leveldb", LEVELDB)];

const FILL: &str = "fill";
const OVERWRITE: &str = "overwrite";
const MIXED: &str = "half reads";

const NONE: Axis = Axis::linear("");

/// A throughput or write amplification within this factor of the original's is near.
const NEAR: f64 = 1.5;

/// The checks that each emulation is near its original in a workload.
macro_rules! near {
    ($($workload:expr),*) => {
        &[$(
            near(PAIRS[0], $workload),
            near(PAIRS[1], $workload),
            near(PAIRS[2], $workload),
        )*]
    };
}

const fn near((ours, theirs): (&'static str, &'static str), workload: &'static str) -> Check {
    Check::between(at(ours, workload), 1.0 / NEAR, NEAR, at(theirs, workload))
}

pub(super) static FIGURES: &[Figure] = &[Figure::measured(
    Paper::Sateen,
    "emulations",
    "how near our emulations are to the originals",
    Plan {
        claim: "A profile has the throughput and the write amplification of the store that it \
                emulates, within a factor of 1.5.",
        setting: "Engine, 800 thousand keys of 1 KB on 200 MB/s, with 1 GB of memory and a \
                  buffered WAL; RocksDB with direct I/O and tables of 16 MB, LevelDB (a build with \
                  assertions) with buffered I/O and its own sizes.",
        means: Means::Real,
        minutes: 12,
        jobs,
        panels: &[
            Panel::groups(NONE, Axis::linear("throughput, K/s"), read::kops)
                .titled("throughput")
                .checks(near!(FILL, OVERWRITE)),
            Panel::groups(NONE, Axis::linear("write amplification"), read::write_amplification)
                .titled("write amplification")
                .checks(near!(FILL, OVERWRITE, MIXED)),
            Panel::groups(NONE, Axis::linear("seconds with waits"), read::seconds_with_waits)
                .titled("seconds in which a client waited for more than 100 ms"),
            Panel::groups(NONE, Axis::log("p99.9, ms"), read::p999).titled("p99.9 of clients"),
            Panel::groups(NONE, Axis::log("longest operation, ms"), read::longest_wait)
                .titled("longest operation"),
            Panel::whole(NONE, Axis::linear("quotient"), nearness)
                .titled("emulation ÷ original")
                .drawn_as(Form::Table),
        ],
        because: "With half reads at 12 K/s the profile `rocksdb` writes 0.65 of what RocksDB \
                  11.8.1 does, just below the limit",
    },
)];

/// The sizes that all have.
const SIZES: &str = "--key-size 16 --value-size 1000 --compression none --bloom-bits 10 \
                     --block-cache 64M --wal buffered";

/// The settings of RocksDB and of its emulations.
const OF_ROCKSDB: &str = "--memtable-size 16M --memtables 2 --direct --jobs 4";
const OUR_LEVELS: &str = "--set level_base_bytes=64MiB --set table_bytes=16MiB";
const ITS_LEVELS: &str = "--peer {rocksdb} --peer-options \
                          max_bytes_for_level_base=67108864;target_file_size_base=16777216";

/// The upper end of both self-tuning limiters.
const OUR_LIMITER: &str = "--set rate_limit_bytes_per_second=200MiB";
const ITS_LIMITER: &str = "--peer-rate-limit 200M";

fn jobs(mode: Mode) -> Vec<Job> {
    let options = [
        format!("{OF_ROCKSDB} --profile rocksdb {OUR_LEVELS}"),
        format!("{OF_ROCKSDB} {ITS_LEVELS}"),
        format!("{OF_ROCKSDB} --profile rocksdb-autotuned {OUR_LEVELS} {OUR_LIMITER}"),
        format!("{OF_ROCKSDB} {ITS_LEVELS} {ITS_LIMITER}"),
        "--memtable-size 4M --profile leveldb".to_owned(),
        "--memtable-size 4M --peer {leveldb}".to_owned(),
    ];
    let systems = PAIRS.iter().flat_map(|(ours, theirs)| [*ours, *theirs]);
    systems.zip(&options).map(|(series, options)| job(series, options, mode)).collect()
}

fn job(series: &'static str, options: &str, mode: Mode) -> Job {
    let (keys, rate, seconds) = mode.pick(("100k", "4k", 4), ("800k", "12k", 30));
    let words = |workload: &str| format!("-w {workload} -n {keys} -t 4 {SIZES} --keep {options}");
    let mixed = format!("--distribution uniform --rate {rate} -d {seconds} --use-existing");
    let runs = [
        (FILL, words("ycsb-load")),
        (OVERWRITE, words("overwrite") + " --use-existing"),
        (MIXED, format!("{} {mixed}", words("ycsb-a"))),
    ];
    runs.into_iter().fold(Job::limited(mode.pick(4, 10), 1), |job, (name, words)| {
        job.run(series, &words).at(X::Is(name)).mb_per_second(200)
    })
}

/// What is compared, with the names of its rows.
type Measure = (fn(&Output) -> Option<f64>, [(&'static str, &'static str); 3]);

const MEASURES: [Measure; 5] = [
    (
        read::kops,
        [
            (FILL, "throughput, fill"),
            (OVERWRITE, "throughput, overwrite"),
            (MIXED, "throughput, half reads"),
        ],
    ),
    (
        read::write_amplification,
        [
            (FILL, "written, fill"),
            (OVERWRITE, "written, overwrite"),
            (MIXED, "written, half reads"),
        ],
    ),
    (
        read::seconds_with_waits,
        [(FILL, "waits, fill"), (OVERWRITE, "waits, overwrite"), (MIXED, "waits, half reads")],
    ),
    (
        read::p999,
        [(FILL, "p99.9, fill"), (OVERWRITE, "p99.9, overwrite"), (MIXED, "p99.9, half reads")],
    ),
    (
        read::longest_wait,
        [
            (FILL, "longest, fill"),
            (OVERWRITE, "longest, overwrite"),
            (MIXED, "longest, half reads"),
        ],
    ),
];

/// The values of each emulation in multiples of those of its original: a series for each pair.
fn nearness(outputs: &[Output]) -> Vec<Series> {
    let value = |read: fn(&Output) -> Option<f64>, series: &str, workload: &'static str| {
        let is_it = |it: &&Output| it.run.series == series && it.run.x == Some(X::Is(workload));
        read(outputs.iter().find(is_it)?)
    };
    let of_pair = |(ours, theirs): (&str, &str)| {
        let rows = MEASURES.iter().flat_map(|(read, rows)| rows.map(|row| (*read, row)));
        let points = rows.filter_map(|(read, (workload, row))| {
            let pair = (value(read, ours, workload)?, value(read, theirs, workload)?);
            Some((X::Is(row), quotient(pair)))
        });
        Series { name: ours.to_owned(), points: points.collect() }
    };
    PAIRS.map(of_pair).into()
}

/// Nothing divided by nothing is the same.
fn quotient((ours, theirs): (f64, f64)) -> f64 {
    if ours == 0.0 && theirs == 0.0 { 1.0 } else { ours / theirs }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_emulation_is_divided_by_its_original() {
        let outputs: Vec<Output> = jobs(Mode::Quick)
            .into_iter()
            .flat_map(|job| job.runs)
            .map(|run| {
                let of_ours = PAIRS.iter().any(|(ours, _)| *ours == run.series);
                let (rate, waits) = if of_ours { (3000.0, 2e8) } else { (2000.0, 1e6) };
                let json = json!({ "measured": {
                    "seconds": 2.0,
                    "ops_per_second": rate,
                    "write_amplification": 4.0,
                    "all": { "max": waits, "p999": 1e6 },
                    "timeline": [{ "all": { "max": waits } }, { "all": { "max": 1 } }],
                }});
                Output { run, json }
            })
            .collect();
        assert_eq!(outputs.len(), 18);
        let series = nearness(&outputs);
        let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["rocksdb", "rocksdb-autotuned", "leveldb"]);
        for one in &series {
            assert_eq!(one.points.len(), 15);
            let values: Vec<f64> = one.points.iter().step_by(3).map(|(_, value)| *value).collect();
            assert_eq!(values, [1.5, 1.0, f64::INFINITY, 1.0, 200.0]);
        }
        assert!((quotient((0.0, 0.0)) - 1.0).abs() < 1e-9);
    }
}
