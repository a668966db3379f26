//! The figures of BoLT (Middleware 2020): insertion and table sizes (§2), the parts of BoLT (§4.2),
//! and YCSB against the other stores (§4.3).

mod parts;
mod systems;

use super::model::{Figure, Job, Mode, X};

pub(super) static FIGURES: &[&[Figure]] = &[parts::FIGURES, systems::FIGURES];

const LEVELDB: &str = "LevelDB";
const REAL_LEVELDB: &str = "LevelDB 1.23";
const BOLT: &str = "BoLT";

/// Four clients, keys of 23 bytes, values of 1,000 bytes, filters of 10 bits, memtables of 64 MB,
/// no compression (§4.1). The quick form has memtables of 4 MB.
fn common(mode: Mode) -> String {
    let (keys, memtable) = mode.pick(("300k", "4M"), ("10M", "64M"));
    format!(
        "-n {keys} -t 4 --key-size 23 --value-size 1000 --compression none --bloom-bits 10 \
         --memtable-size {memtable} --wal buffered"
    )
}

/// What makes the barriers of this machine's disk as slow as those of the paper's SATA SSD. The
/// paper does not say how long one takes there: 5 ms is our choice.
const SLOW_BARRIERS: &str = "--barrier-cost 5";

/// LevelDB itself with its tables of 2 MB, on slow barriers.
fn real_leveldb() -> String {
    format!("--peer {{leveldb}} --peer-options max_file_size=2M {SLOW_BARRIERS}")
}

/// Load A, the write-only part of all comparisons.
fn load(series: &'static str, options: &str, mode: Mode) -> Job {
    let words = format!("-w ycsb-load {} --keep {options}", common(mode));
    Job::disk().run(series, &words).at(X::Is("LA"))
}

/// The whole sequence of §4.1: Load A, A, B, C, F, D, and on a new database Load E and E.
fn ycsb(series: &'static str, options: &str, distribution: &str, mode: Mode) -> [Job; 2] {
    let add = |job: Job, workload: &str, name: &'static str| {
        let keys = if workload == "d" { "latest" } else { distribution };
        let common = common(mode);
        let words = format!("-w ycsb-{workload} --distribution {keys} {common} --keep {options}");
        let seconds = mode.pick(2, 30);
        job.run(series, &format!("{words} -d {seconds} --ops 1G --use-existing")).at(X::Is(name))
    };
    let first = [("a", "A"), ("b", "B"), ("c", "C"), ("f", "F"), ("d", "D")]
        .into_iter()
        .fold(load(series, options, mode), |job, (workload, name)| add(job, workload, name));
    let again = load(series, options, mode).at(X::Is("LE"));
    [first, add(again, "e", "E")]
}
