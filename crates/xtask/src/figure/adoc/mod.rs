//! The figures of ADOC (FAST 2023): why writes stall (§3, §4) and what the tuner gives (§6).

mod evaluation;
mod study;
mod sweep;
mod ycsb;

use super::model::{Figure, Job, Mode};

pub(super) static FIGURES: &[&[Figure]] =
    &[study::FIGURES, sweep::FIGURES, evaluation::FIGURES, ycsb::FIGURES];

const DF: &str = "RocksDB-DF";
const AT: &str = "RocksDB-AT";
const SILK_P: &str = "SILK-P";
const SILK_O: &str = "SILK-O";
const ADOC: &str = "ADOC";

/// The devices of Table 1: name and MB/s.
const PM: &str = "PM";
const NVME: &str = "NVMe SSD";
const SATA: &str = "SATA SSD";
const HDD: &str = "HDD";
const DEVICES: [(&str, u32); 4] = [(PM, 2300), (NVME, 2700), (SATA, 490), (HDD, 210)];

/// Writes faster than the device can take, in virtual time. The paper fills an empty database; the
/// model overwrites one of 20 GB.
fn overload(series: &'static str, mb_per_second: u32, words: &str, seconds: u32) -> Job {
    // More than any setting serves: a write costs the device five times its bytes at least.
    let rate = (mb_per_second * 1000 / 4).min(400_000);
    Job::sim(
        series,
        &format!(
            "-w overwrite --rate {rate} -t 4 --db-size 20G --wal buffered \
             --device-bandwidth {mb_per_second}M --set memtables_max=2 {words} -d {seconds}"
        ),
    )
}

/// Memtables and tables of this size, and L1 in proportion, as RocksDB's is to 64 MB.
fn batch(megabytes: u32) -> String {
    format!(
        "--set memtable_bytes={megabytes}MiB --set table_bytes={megabytes}MiB \
         --set level_base_bytes={}MiB",
        4 * megabytes
    )
}

/// This many threads, a quarter of them for flushes (§3.1).
fn threads(count: u32) -> String {
    let flushes = (count / 4).max(1);
    format!(
        "--set max_background_flushes={flushes} --set max_background_compactions={} \
         --workers {count}",
        (count - flushes).max(1)
    )
}

/// db_bench's `fillrandom` for an hour, as fast as one client goes, with the paper's limits (§3.1).
/// The model overwrites a database of 100 GB where the paper fills an empty one.
fn fill(series: &'static str, options: &str, mb_per_second: u32, mode: Mode) -> Job {
    let seconds = mode.pick(60, 3600);
    Job::sim(
        series,
        &format!(
            "-w overwrite -t 1 --db-size 100G --wal buffered --cache 64M \
             --device-bandwidth {mb_per_second}M {LIMITS} {options} -d {seconds}"
        ),
    )
}

const LIMITS: &str = "--set memtables_max=2 --set level0_slowdown=20 --set level0_stop=36 \
                      --set soft_pending_compaction_bytes=64GiB \
                      --set hard_pending_compaction_bytes=128GiB";

/// The paper's schemes (Table 3). SILK reserves a quarter of the device for compactions, and level
/// 0 does not hold its writers up.
fn auto_tuned(mb_per_second: u32) -> String {
    let rate = u64::from(mb_per_second) * 1_000_000;
    let limit = format!("--set rate_limit_bytes_per_second={rate}");
    format!("--policy rocksdb-autotuned {limit} {} {}", threads(2), batch(64))
}

fn silk(count: u32, megabytes: u32, mb_per_second: u32) -> String {
    let floor = u64::from(mb_per_second) * 250_000;
    format!(
        "--policy silk-paper {} {} --set scheduler_floor={floor} --set level0_slowdown=1000000 \
         --set level0_stop=1000000",
        threads(count),
        batch(megabytes)
    )
}

/// ADOC's tuner, or one of its halves. It begins as RocksDB does.
fn tuned(policy: &str) -> String {
    format!(
        "--policy {policy} --set max_background_flushes=1 \
             --set max_background_compactions=1 {}",
        batch(64)
    )
}
