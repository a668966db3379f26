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

const SETTING: &str = "Virtual time: 350 million records of 200 bytes are overwritten in four \
                       regions, behind 500 MB/s each way, with 16 background threads. A \
                       client of the model writes 167 K/s at most; the paper's 15 reach 200 K/s.";

/// What all runs share. The paper's device is not limited to 500 MB/s, but with it RocksDB's
/// greatest rate is the paper's 100 K/s, about. A client of the model writes 167 K/s at most,
/// and the paper's 15 together 200 K/s (§5).
const COMMON: &str = "--value-size 200 --db-size 70G --device-bandwidth 500M --wal buffered \
                      --cache 256M";

/// The paper's limit of compaction debt, for all stores (§5).
const DEBT: &str = "--set soft_pending_compaction_bytes=64MiB \
                    --set hard_pending_compaction_bytes=64MiB";

/// Regions, each with four threads (§5).
fn regions(count: u32) -> String {
    let threads = 4 * count;
    format!("--set regions={count} --set background_threads={threads} --workers {threads}")
}

/// RocksDB or RocksDB-IO with this size of tables and memtables; L1 stays.
fn tiered(profile: &str, megabytes: u32) -> String {
    format!(
        "--policy {profile} --set memtable_bytes={megabytes}MiB --set table_bytes={megabytes}MiB \
         --set level_base_bytes=256MiB --set level_multiplier=8 --set dynamic_level_bytes=false \
         {DEBT}"
    )
}

/// RocksDB with ADOC's tuner, which sees an overflow where writers do.
fn adoc(megabytes: u32) -> String {
    format!("{} --set tuner_debt_bytes=64MiB", tiered("adoc", megabytes))
}

/// vLSM with this size: L1 has as many tables as a level is larger than the one above it.
fn vlsm(megabytes: u32) -> String {
    format!(
        "--policy vlsm --set memtable_bytes={megabytes}MiB --set table_bytes={megabytes}MiB \
         --set level_base_bytes={}MiB",
        8 * megabytes
    )
}

/// vLSM whose second level is so many times as large as its first, whatever the tree needs.
fn vlsm_with(phi: u32, megabytes: u32) -> String {
    let fixed = format!("--set base_level_multiplier={phi} --set dynamic_level_bytes=false");
    format!("{} {fixed}", vlsm(megabytes))
}

/// Load A, as fast as it goes: more is offered than any of them takes.
fn load(series: &'static str, options: &str, mode: Mode) -> Job {
    at_rate(series, options, 400, mode)
}

/// Load A at a rate, in thousand operations a second.
fn at_rate(series: &'static str, options: &str, kops: u32, mode: Mode) -> Job {
    of_workload(series, "ycsb-load", &format!("{} {options}", regions(4)), kops, mode)
}

fn of_workload(series: &'static str, workload: &str, options: &str, kops: u32, mode: Mode) -> Job {
    // A client that reads waits for the device most of the time.
    let clients = if workload == "ycsb-load" { 1 } else { 15 };
    let seconds = mode.pick(60, 900);
    let words = format!("-w {workload} -t {clients} --rate {kops}k {COMMON} {options}");
    Job::sim(series, &format!("{words} -d {seconds}"))
}
