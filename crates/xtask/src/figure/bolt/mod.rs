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
/// no compression (§4.1); 2 GB with memtables of 16 MB instead of 50 GB with 64 MB. The quick form
/// has memtables of 4 MB.
fn common(mode: Mode) -> String {
    let (keys, memtable) = mode.pick(("300k", "4M"), ("2M", "16M"));
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

/// The paper's SATA SSD, in MB/s.
const SSD: u32 = 520;

/// The paper's machine has memory for a sixth of the data. Here it is for half of it, because the
/// process itself needs some.
fn place(mode: Mode) -> Job {
    Job::limited(mode.pick(3, 14), 1)
}

/// Load A, the write-only part of all comparisons.
fn load(series: &'static str, options: &str, mode: Mode) -> Job {
    let words = format!("-w ycsb-load {} --keep {options}", common(mode));
    place(mode).run(series, &words).at(X::Is("LA")).mb_per_second(SSD)
}

/// The sequence of §4.1: Load A, A, B, C, F and D, and then E, on the same database.
fn ycsb(series: &'static str, options: &str, distribution: &str, mode: Mode) -> Job {
    let workloads = [("a", "A"), ("b", "B"), ("c", "C"), ("f", "F"), ("d", "D"), ("e", "E")];
    workloads.into_iter().fold(load(series, options, mode), |job, (workload, name)| {
        let keys = if workload == "d" { "latest" } else { distribution };
        let common = common(mode);
        let words = format!("-w ycsb-{workload} --distribution {keys} {common} --keep {options}");
        let words = format!("{words} -d {} --ops 1G --use-existing", mode.pick(2, 10));
        job.run(series, &words).at(X::Is(name)).mb_per_second(SSD)
    })
}
