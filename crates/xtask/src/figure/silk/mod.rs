//! The figures of SILK (USENIX ATC 2019): the study of §4, the evaluation of §6, and its YCSB runs.

mod evaluation;
mod study;
mod ycsb;

use super::model::{Axis, Figure, Job, Mode};

pub(super) static FIGURES: &[&[Figure]] = &[study::FIGURES, evaluation::FIGURES, ycsb::FIGURES];

/// The p99 of each second, on a logarithmic axis as in the paper.
const P99: Axis = Axis::log("p99, ms");
const TIME: Axis = Axis::linear("time, s");
const KOPS: Axis = Axis::linear("throughput, K/s");

/// The paper's sizes in virtual time: 500 GB, two memtables of 128 MB, RocksDB's tables and levels,
/// 200 MB/s, no WAL (§6.1).
const SIZES: &str = "-t 8 --db-size 500G --device-bandwidth 200M --set memtable_bytes=128MiB --set \
                     memtables_max=2 --set table_bytes=64MiB --set level_base_bytes=256MiB";

/// The limits of level 0 as all stores of §6 have them: very large.
const NO_LIMITS: &str = "--set level0_slowdown=1000 --set level0_stop=1000";

/// SILK as its paper sets it up (§5.2).
const SILK: &str = "--policy silk-paper";

/// One run in virtual time at the paper's sizes.
fn sim(series: &'static str, words: &str, seconds: u32) -> Job {
    Job::sim(series, &format!("{SIZES} {words} -d {seconds}"))
}

/// A p99 above this is a spike, in milliseconds.
const SPIKE: f64 = 100.0;

/// The standard case on the limited device: 8 million keys of 1 KB, memtables of 16 MB. The quick
/// form has a tenth of it.
fn standard(mode: Mode) -> &'static str {
    mode.pick(
        "-t 4 -n 800k --value-size 1024 --memtable-size 2M --memtables 2 --block-cache 32M \
         --bloom-bits 10 --compression none --direct --jobs 4 --wal off \
         --set level_base_bytes=8M --set table_bytes=2M",
        "-t 8 -n 8M --value-size 1024 --memtable-size 16M --memtables 2 --block-cache 256M \
         --bloom-bits 10 --compression none --direct --jobs 4 --wal off \
         --set level_base_bytes=64M --set table_bytes=16M",
    )
}
