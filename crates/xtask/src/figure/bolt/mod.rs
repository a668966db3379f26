//! The figures of BoLT (Middleware 2020): insertion and table sizes (§2), the parts of BoLT (§4.2),
//! and YCSB against the other stores (§4.3).

mod parts;
mod systems;

use super::model::{Figure, Job, Mode, X};

pub(super) static FIGURES: &[&[Figure]] = &[parts::FIGURES, systems::FIGURES];

const LEVELDB: &str = "LevelDB";
const REAL_LEVELDB: &str = "LevelDB 1.23";
const BOLT: &str = "BoLT";

const SETTING: &str = "Virtual time: 50 million records are overwritten behind 520 MB/s each way, \
                       ten minutes a load; a barrier takes 25 ms. All stores are our policies.";

const ENGINE: &str = "Engine, 6 GB instead of 50 GB, on 520 MB/s; each barrier takes 5 ms longer \
                      than here. All stores but those with a version are our policies. E runs on \
                      the database of the others, so there is no Load E.";

/// The paper's setting (§4.1) in virtual time: four clients as fast as they go, memtables of 64 MB,
/// 8 GB of memory that caches. The paper does not say how long a barrier takes. With 25 ms tables
/// of 64 MB load about as many times faster than those of 2 MB as in the paper.
const MODEL: &str = "-t 4 --value-size 1000 --db-size 50G --device-bandwidth 520M --barrier 25000 \
                     --wal buffered --cache 8G --set memtable_bytes=64MiB";

/// A policy with the threads and sizes of its profile, which the model changes otherwise. What
/// follows the name sets more.
fn model_policy(policy: &str) -> String {
    let (name, more) = policy.split_once(' ').unwrap_or((policy, ""));
    let (threads, base, table) = match name {
        "leveldb" => (1, 10, 2),
        "bolt" => (1, 10, 1),
        "hyperleveldb" => (2, 64, 32),
        "hyperbolt" => (2, 64, 1),
        _ => (2, 256, 64),
    };
    format!(
        "--policy {name} --workers {threads} --set background_threads={threads} \
         --set level_base_bytes={base}MiB --set table_bytes={table}MiB {more}"
    )
}

/// Load A in virtual time.
fn model_load(series: &'static str, policy: &str, mode: Mode) -> Job {
    let (policy, seconds) = (model_policy(policy), mode.pick(60, 600));
    Job::sim(series, &format!("-w ycsb-load {MODEL} {policy} -d {seconds}")).at(X::Is("LA"))
}

/// Load A and the workloads in virtual time.
fn model_ycsb(series: &'static str, policy: &str, mode: Mode) -> Vec<Job> {
    let workloads = [("a", "A"), ("b", "B"), ("c", "C"), ("f", "F"), ("d", "D"), ("e", "E")];
    let runs = workloads.map(|(workload, name)| {
        let (policy, seconds) = (model_policy(policy), mode.pick(20, 120));
        let words = format!("-w ycsb-{workload} {MODEL} {policy} -d {seconds}");
        Job::sim(series, &words).at(X::Is(name))
    });
    std::iter::once(model_load(series, policy, mode)).chain(runs).collect()
}

/// Four clients, keys of 23 bytes, values of 1,000 bytes, filters of 10 bits, memtables of 64 MB,
/// no compression (§4.1); 6 GB instead of 50. The quick form
/// has memtables of 4 MB.
fn common(mode: Mode) -> String {
    let (keys, memtable) = mode.pick(("300k", "4M"), ("6M", "64M"));
    format!(
        "-n {keys} -t 4 --key-size 23 --value-size 1000 --compression none --bloom-bits 10 \
         --memtable-size {memtable} --wal buffered"
    )
}

/// What makes the barriers of this machine's disk slow, as those of the paper's SATA SSD are. The
/// paper does not say how long one takes: 5 ms is our choice.
const SLOW_BARRIERS: &str = "--barrier-cost 5";

/// LevelDB itself with its tables of 2 MB, on slow barriers.
fn real_leveldb() -> String {
    format!("--peer {{leveldb}} --peer-options max_file_size=2M {SLOW_BARRIERS}")
}

/// The paper's SATA SSD, in MB/s.
const SSD: u32 = 520;

/// The paper's machine has memory for a sixth of the data, and so has this one.
fn place(mode: Mode) -> Job {
    Job::limited(mode.pick(3, 18), 1)
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
