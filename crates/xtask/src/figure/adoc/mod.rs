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

/// db_bench's `fillrandom` on the engine, as fast as it goes, from an empty database.
fn fill(series: &'static str, options: &str, limit: u32, mode: Mode) -> Job {
    let (keys, seconds) = mode.pick(("400k", 8), ("4M", 300));
    let words = format!(
        "-w fillrandom -n {keys} --ops 1G -d {seconds} -t 4 --value-size 1000 --compression none \
         --wal buffered --direct --block-cache 64M {options}"
    );
    Job::limited(mode.pick(6, 40), 8).run(series, &words).mb_per_second(limit)
}
