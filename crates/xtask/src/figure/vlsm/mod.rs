//! The figures of vLSM (2024): chains and amplification (§2, §3), latency and stalls (§6.1, §6.2),
//! workloads and the parts of vLSM (§6.3).

mod chains;
mod latency;
mod workloads;

use super::model::{Figure, Job, Mode};

pub(super) static FIGURES: &[&[Figure]] = &[chains::FIGURES, latency::FIGURES, workloads::FIGURES];

const ROCKSDB: &str = "RocksDB";
const ROCKSDB_IO: &str = "RocksDB-IO";
const ADOC: &str = "ADOC";
const VLSM: &str = "vLSM";

const SETTING: &str = "Engine, 3 million records of 1 KB on 200 MB/s instead of 350 million of 240 \
                       bytes on NVMe; one region. All stores are our policies.";

/// What all runs share: eight clients, no compression, direct I/O. The quick form has a tenth of
/// the records and tables of an eighth.
fn common(mode: Mode) -> String {
    let keys = mode.pick("300k", "3M");
    format!("-n {keys} -t 8 --value-size 1000 --compression none --wal buffered --direct --keep")
}

/// Memtables and tables of this many megabytes; an eighth of it in the quick form.
fn bytes(megabytes: u32, mode: Mode) -> u32 {
    (megabytes << 20) / mode.pick(8, 1)
}

/// RocksDB, RocksDB-IO or ADOC with this size of tables and memtables; L1 stays.
fn tiered(profile: &str, megabytes: u32, mode: Mode) -> String {
    let (size, base) = (bytes(megabytes, mode), bytes(256, mode));
    format!(
        "--profile {profile} --memtable-size {size} --set table_bytes={size} \
         --set level_base_bytes={base} --set dynamic_level_bytes=false"
    )
}

/// vLSM with this size: L1 has as many tables as a level is larger than the one above it.
fn vlsm(megabytes: u32, mode: Mode) -> String {
    let size = bytes(megabytes, mode);
    format!(
        "--profile vlsm --memtable-size {size} --set table_bytes={size} \
         --set level_base_bytes={}",
        8 * size
    )
}

/// Load A as fast as it goes.
fn load(series: &'static str, options: &str, mode: Mode) -> Job {
    let words = format!("-w ycsb-load {} {options} -d {}", common(mode), mode.pick(4, 90));
    device(mode).run(series, &words).mb_per_second(limit(mode))
}

/// Load A at a rate, in operations a second.
fn load_at(series: &'static str, options: &str, rate: u32, mode: Mode) -> Job {
    let rate = rate / mode.pick(4, 1);
    let words = format!("-w ycsb-load {} {options} --mode open --rate {rate}", common(mode));
    let words = format!("{words} --ops 100M -d {}", mode.pick(4, 60));
    device(mode).run(series, &words).mb_per_second(limit(mode))
}

fn device(mode: Mode) -> Job {
    Job::limited(mode.pick(3, 16), mode.pick(1, 2))
}

fn limit(mode: Mode) -> u32 {
    mode.pick(60, 200)
}
