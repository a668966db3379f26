//! Series of our own, which show no figure of the four papers: bursts beside RocksDB, growth,
//! shapes of level 0, the two smaller papers, and our emulations beside their originals.

mod bursts;
mod emulations;
mod shapes;
mod vlsm;

use super::model::{Figure, Job, Mode};

pub(super) static FIGURES: &[&[Figure]] =
    &[bursts::FIGURES, shapes::FIGURES, vlsm::FIGURES, emulations::FIGURES];

const OURS: &str = "Sateen";
const ROCKSDB: &str = "RocksDB 11.8.1";

/// The sizes of the standard case.
const STANDARD: &str = "--value-size 1024 --memtable-size 16M --memtables 2 --block-cache 256M \
                        --bloom-bits 10 --compression none --direct --jobs 4";

/// RocksDB with the sizes of the standard case, and its auto-tuned limiter.
const REAL_ROCKSDB: &str = "--peer {rocksdb} --peer-rate-limit 200M --peer-options \
                            max_bytes_for_level_base=67108864;target_file_size_base=16777216";

/// Bursts of 10 s at a rate and 10 s at a quarter of it, half reads, uniform keys.
fn bursts(options: &str, keys: &str, peak: &str, valley: &str) -> String {
    format!(
        "-w bursts -t 8 -n {keys} {STANDARD} --wal off --read-percent 50 --distribution uniform \
         --rate {peak} --valley-rate {valley} --keep {options}"
    )
}

/// A load without a limit, and then bursts on 200 MB/s.
fn loaded(series: &'static str, options: &str, peaks: &[(&str, &str)], mode: Mode) -> Job {
    let (keys, overwrites) = mode.pick(("800k", "500k"), ("8M", "5M"));
    let seconds = mode.pick(20, 300);
    let load = bursts(options, keys, "1k", "1k");
    let job = Job::limited(mode.pick(4, 18), 1);
    let job = job.load(&format!("{load} --load-overwrites {overwrites} -d 2"));
    peaks.iter().fold(job, |job, (peak, valley)| {
        let words = bursts(options, keys, peak, valley);
        job.run(series, &format!("{words} -d {seconds} --use-existing")).mb_per_second(200)
    })
}
