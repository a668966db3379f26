//! The options of `sateen bench`, and what they mean.

mod plan;
mod value_size;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sateen_workload::{KeyFormat, KeyStyle};
use serde::{Deserialize, Serialize};

use crate::store::{Compression, PeerCache, StoreConfig, Wal};
use crate::units::{check_bursts, parse_bytes, parse_count};
use crate::{Error, Result};
pub(crate) use plan::Plan;
use value_size::parse_value_size;

/// The loop: whether operations wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Operations arrive on schedule. A latency counts from the moment at which the operation was
    /// due.
    Open,
    /// The next operation begins when the last one ends.
    Closed,
}

/// The distribution of keys, for workloads that prescribe none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Every key equally often.
    Uniform,
    /// YCSB's scrambled zipfian.
    Zipfian,
    /// YCSB's latest.
    Latest,
}

/// How arrivals spread within the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// At equal intervals.
    Even,
    /// Independently of each other.
    Poisson,
}

/// The order in which keys are loaded before a workload that reads or overwrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadOrder {
    /// In the order of the keys.
    Sequential,
    /// Every key once, shuffled.
    Random,
}

/// The groups of `sateen bench --help`.
const LOAD: &str = "Workload";
const BEFORE: &str = "Before the measurement";
const STORE: &str = "Store (all engines)";
const SATEEN: &str = "Sateen alone";
const PEER: &str = "Comparison with RocksDB or LevelDB";
const REPORT: &str = "Report";

/// The options of `sateen bench`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// Run these workloads, separated by commas: fillseq, fillrandom, overwrite, readrandom,
    /// readmissing, seekrandom, readwhilewriting, mixgraph, ycsb-load, ycsb-a … ycsb-f, bursts,
    /// nutanix, replay=FILE
    #[arg(
        long,
        short = 'w',
        default_value = "fillrandom",
        value_delimiter = ',',
        help_heading = LOAD,
    )]
    pub workload: Vec<String>,

    /// Put this many keys into the database
    #[arg(long, short = 'n', default_value = "1M", value_parser = parse_count, help_heading = LOAD)]
    pub num: u64,

    /// Measure this many operations [default: --num, or until --duration is over]
    #[arg(long, value_parser = parse_count, help_heading = LOAD)]
    pub ops: Option<u64>,

    /// Measure for this many seconds [default: 60 where operations arrive on a schedule]
    #[arg(long, short = 'd', help_heading = LOAD)]
    pub duration: Option<f64>,

    /// Set the bytes of a key
    #[arg(long, default_value_t = 16, help_heading = LOAD)]
    pub key_size: usize,

    /// Set the bytes of a value: a number, LOW-HIGH, `nutanix`, or `mixgraph` [default: 1000, or
    /// the workload's own]
    #[arg(long, value_parser = parse_value_size, help_heading = LOAD)]
    pub value_size: Option<String>,

    /// Make values that compress to this fraction of their size
    #[arg(long, default_value_t = 0.5, help_heading = LOAD)]
    pub compression_ratio: f64,

    /// Run this many client threads
    #[arg(long, short = 't', default_value_t = 2, help_heading = LOAD)]
    pub threads: usize,

    /// Read this many entries in a scan [default: 50, or the workload's own]
    #[arg(long, help_heading = LOAD)]
    pub scan_length: Option<u32>,

    /// Read this many keys in a call (multi_get); needs a closed loop that only reads
    #[arg(long, value_name = "KEYS", default_value_t = 1, help_heading = LOAD)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub multi_get: u32,

    /// Choose the distribution of keys, instead of the workload's
    #[arg(long, help_heading = LOAD)]
    pub distribution: Option<Distribution>,

    /// Set the percentage of reads, instead of the workload's mix
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100), help_heading = LOAD)]
    pub read_percent: Option<u32>,

    /// Choose the loop: open (arrivals on schedule) or closed [default: the workload's, or open if
    /// a --rate is given]
    #[arg(long, help_heading = LOAD)]
    pub mode: Option<Mode>,

    /// Offer this many operations a second, all threads together; with bursts, in the peak. Each of
    /// several rates, separated by commas, gets a run of its own
    #[arg(long, value_parser = parse_count, value_delimiter = ',', help_heading = LOAD)]
    pub rate: Vec<u64>,

    /// Replay a recording this many times as fast as it was made
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, help_heading = LOAD)]
    pub replay_speed: f64,

    /// Offer this many operations a second in a valley [default: the workload's share of the peak]
    #[arg(long, value_parser = parse_count, help_heading = LOAD)]
    pub valley_rate: Option<u64>,

    /// Set the seconds of a peak of `bursts`
    #[arg(long, default_value_t = 10.0, help_heading = LOAD)]
    pub peak_seconds: f64,

    /// Set the seconds of a valley of `bursts`
    #[arg(long, default_value_t = 10.0, help_heading = LOAD)]
    pub valley_seconds: f64,

    /// Choose how arrivals spread within the rate
    #[arg(long, default_value = "poisson", help_heading = LOAD)]
    pub arrivals: Arrivals,

    /// Limit the extra writer of readwhilewriting to this many writes a second [default: no limit]
    #[arg(long, value_parser = parse_count, help_heading = LOAD)]
    pub write_rate: Option<u64>,

    /// Load the keys in this order before measuring
    #[arg(long, default_value = "sequential", help_heading = BEFORE)]
    pub load: LoadOrder,

    /// Overwrite this many random keys after loading, before measuring
    #[arg(long, default_value = "0", value_parser = parse_count, help_heading = BEFORE)]
    pub load_overwrites: u64,

    /// Run this many operations of the workload before measuring, for instance to fill the cache
    #[arg(long, default_value = "0", value_parser = parse_count, help_heading = BEFORE)]
    pub warm_up: u64,

    /// Use the database that an earlier run left in --db, if it has the same keys
    #[arg(long, requires = "db", help_heading = BEFORE)]
    pub use_existing: bool,

    /// Keep the database in --db at the end
    #[arg(long, requires = "db", help_heading = BEFORE)]
    pub keep: bool,

    /// Start measuring writes right after loading, without waiting for compactions
    #[arg(long, help_heading = BEFORE)]
    pub no_settle: bool,

    /// Set the bytes of a memtable [default: 64M, or the --profile's]
    #[arg(long, value_parser = parse_bytes, help_heading = STORE)]
    pub memtable_size: Option<u64>,

    /// Allow this many memtables [default: 2, or the --profile's]
    #[arg(long, help_heading = STORE)]
    pub memtables: Option<u32>,

    /// Set the bytes of the block cache [default: 256M, or the --profile's]
    #[arg(long, value_parser = parse_bytes, help_heading = STORE)]
    pub block_cache: Option<u64>,

    /// Set the Bloom filters' bits a key; 0 for no filters [default: 10, or the --profile's]
    #[arg(long, help_heading = STORE)]
    pub bloom_bits: Option<f64>,

    /// Compress all levels in this way [default: none, or the --profile's]
    #[arg(long, help_heading = STORE)]
    pub compression: Option<Compression>,

    /// Choose how writes reach the WAL [default: off, or the --profile's]
    #[arg(long, help_heading = STORE)]
    pub wal: Option<Wal>,

    /// Use direct I/O for reads, flushes and compactions [default: no, or as the --profile does]
    #[arg(long, help_heading = STORE)]
    pub direct: bool,

    /// Run this many flushes and compactions at a time [default: 4, or the --profile's]
    #[arg(long, help_heading = STORE)]
    pub jobs: Option<u32>,

    /// Divide the keys among this many databases of an engine, by their hashes. They share threads,
    /// a scheduler and a block cache; RocksDB's share the Env, the block cache and the rate limiter
    #[arg(
        long,
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=4096),
        help_heading = STORE,
    )]
    pub databases: u32,

    /// Limit the memtables of all --databases together to this many bytes (RocksDB: a write-buffer
    /// manager)
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = STORE)]
    pub all_memtables: Option<u64>,

    /// Give the first of the --databases no key, and overload it by a thread that writes random
    /// keys without a pause. Its operations are reported apart
    #[arg(long, help_heading = LOAD)]
    pub overload: bool,

    /// Put the databases into this directory, one below it for each engine [default: a temporary
    /// one]
    #[arg(long, help_heading = STORE)]
    pub db: Option<PathBuf>,

    /// Limit reads and writes to this many bytes a second each, by a file system below the engine;
    /// the peer's calls are limited likewise. Use it with --direct
    #[arg(long, value_name = "BYTES", value_parser = parse_count, help_heading = STORE)]
    pub device_limit: Option<u64>,

    /// Read the device's limit from this file every tenth of a second, so that it can be changed
    /// while the load runs
    #[arg(long, value_name = "FILE", requires = "device_limit", help_heading = STORE)]
    pub device_limit_file: Option<PathBuf>,

    /// Add this many milliseconds to each barrier (sync of a file or directory), as on a device
    /// that flushes its cache more slowly; the peer's are slowed down likewise
    #[arg(long, value_name = "MS", default_value_t = 0.0, help_heading = STORE)]
    pub barrier_cost: f64,

    /// Start from this profile of Sateen's; options that are given override its values
    #[arg(long, help_heading = SATEEN)]
    pub profile: Option<String>,

    /// Give each of the --databases threads and a scheduler of its own
    #[arg(long, help_heading = SATEEN)]
    pub apart: bool,

    /// Divide Sateen's column family into this many regions with equally many keys (4096 at most)
    #[arg(
        long,
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=4096),
        help_heading = SATEEN,
    )]
    pub regions: u32,

    /// Set one of Sateen's options, after the profile; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", help_heading = SATEEN)]
    pub set: Vec<String>,

    /// Run another store from this shared library instead of Sateen, or beside it with --compare:
    /// RocksDB (`cargo xtask fetch-rocksdb` fetches its library), LevelDB (Debian's package
    /// libleveldb1d has it), or one of the folder peers. Its functions tell which it is
    #[arg(long, value_name = "LIB.so", help_heading = PEER)]
    pub peer: Option<PathBuf>,

    /// Set the peer's own options, applied last: a RocksDB options string, names and values of
    /// LevelDB's Options (max_file_size, block_size, max_open_files, compression=snappy, …), or
    /// those that another peer has
    #[arg(long, requires = "peer", value_name = "\"A=B;C=D\"", help_heading = PEER)]
    pub peer_options: Option<String>,

    /// Give RocksDB an auto-tuned rate limiter for flushes and compactions, which allows at most
    /// this many bytes a second
    #[arg(
        long,
        requires = "peer",
        value_name = "SIZE",
        value_parser = parse_bytes,
        help_heading = PEER,
    )]
    pub peer_rate_limit: Option<u64>,

    /// Choose the peer's block cache [default: hyper-clock; LevelDB has lru only]
    #[arg(long, help_heading = PEER)]
    pub peer_cache: Option<PeerCache>,

    /// Compare Sateen with the peer: run them in turn
    #[arg(long, requires = "peer", help_heading = PEER)]
    pub compare: bool,

    /// Repeat the measurement this many times [default: 3 with --compare, otherwise 1]
    #[arg(long, help_heading = PEER)]
    pub rounds: Option<u32>,

    /// Write all figures as JSON
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub json: Option<PathBuf>,

    /// Write the figures of every second as CSV
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub csv: Option<PathBuf>,

    /// Write a report with charts, one file
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub html: Option<PathBuf>,

    /// Write Sateen's flight recorder for the measured phase as a Chrome trace, which
    /// ui.perfetto.dev opens. Each of several runs gets a file with its name added
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub timeline: Option<PathBuf>,

    /// Name the engine in tables and charts, to compare settings or versions of one engine
    #[arg(long, conflicts_with = "compare", help_heading = REPORT)]
    pub label: Option<String>,

    /// Report the figures of earlier --json files together, and measure nothing
    #[arg(long, value_name = "FILE,…", value_delimiter = ',', help_heading = REPORT)]
    #[serde(skip)]
    pub from_json: Vec<PathBuf>,

    /// Seed the random numbers
    #[arg(long, default_value_t = 1, help_heading = REPORT)]
    pub seed: u64,

    /// Print progress every this many seconds; 0 for never
    #[arg(long, default_value_t = 1, help_heading = REPORT)]
    pub report_interval: u64,

    /// Run the measurement that this file describes and print its result (for internal use)
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub run_child: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  sateen bench                                     fill one million keys at random
  sateen bench -w readrandom -n 8M --direct        read eight million keys at random
  sateen bench -w bursts --rate 20k -d 60 --html report.html --timeline trace.json
  sateen bench -w bursts --rate 5k,10k,20k --html rates.html
                                                   draw p99 against rate, a run for each
  sateen bench -w fillseq,readrandom --compare --peer \"$(cargo xtask fetch-rocksdb)\"";

impl BenchArgs {
    /// Returns the settings of the store: those that all engines share and those of one engine.
    pub(crate) fn store_config(&self) -> Result<StoreConfig> {
        let config = self.given_config()?;
        // Without a profile the command compares engines, which therefore get the same settings.
        Ok(if self.profile.is_some() { config } else { config.filled() })
    }

    /// Returns the settings that the user gave, without defaults.
    pub(crate) fn given_config(&self) -> Result<StoreConfig> {
        let set = self.set.iter().map(|assignment| {
            let (name, value) = assignment.split_once('=').ok_or_else(|| {
                Error::Usage(format!("--set {assignment}: not of the form NAME=VALUE"))
            })?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        });
        Ok(StoreConfig {
            memtable_bytes: self.memtable_size,
            memtables: self.memtables,
            block_cache_bytes: self.block_cache,
            bloom_bits: self.bloom_bits,
            compression: self.compression,
            wal: self.wal,
            direct: self.direct.then_some(true),
            jobs: self.jobs,
            profile: self.profile.clone(),
            regions: self.region_begins(),
            set: set.collect::<Result<_>>()?,
            device_limit: self.device_limit,
            device_limit_file: self.device_limit_file.clone(),
            databases: (self.databases > 1).then_some(self.databases),
            overload: self.overload,
            all_memtables_bytes: self.all_memtables,
            apart: self.apart,
            barrier_cost_ns: (self.barrier_cost.max(0.0) * 1e6) as u64,
            peer_options: self.peer_options.clone(),
            peer_rate_limit: self.peer_rate_limit,
            peer_cache: self.peer_cache,
        })
    }

    /// Checks the options before anything runs.
    pub(crate) fn check(&self) -> Result<()> {
        let usage = |text: &str| Err(Error::Usage(text.to_owned()));
        if self.threads == 0 || self.threads > 1024 {
            return usage("--threads must be between 1 and 1024");
        }
        if self.num == 0 {
            return usage("--num must be at least 1");
        }
        if self.rounds == Some(0) {
            return usage("--rounds must be at least 1");
        }
        for (given, name) in [
            (self.overload, "--overload"),
            (self.apart, "--apart"),
            (self.all_memtables.is_some(), "--all-memtables"),
        ] {
            if given && self.databases == 1 {
                return usage(&format!("{name}: add --databases with 2 or more"));
            }
        }
        if self.databases > 1 && self.timeline.is_some() {
            return usage("--timeline: not with several --databases");
        }
        if self.databases > 1 && self.regions > 1 {
            return usage("--regions: not with several --databases");
        }
        if u64::from(self.regions) > self.num {
            return usage("--regions must not be more than --num");
        }
        if self.key_size == 0 || self.key_size > 1 << 15 {
            return usage("--key-size must be between 1 and 32768");
        }
        if self.key_format().capacity() < self.num.saturating_mul(2) {
            return usage("--key-size is too small for --num different keys");
        }
        if self.duration.is_some_and(|seconds| !(seconds > 0.0 && seconds < 1e7)) {
            return usage("--duration must be a positive number of seconds");
        }
        if !(0.0..=1.0).contains(&self.compression_ratio) {
            return usage("--compression-ratio must be between 0 and 1");
        }
        if !self.bloom_bits.is_none_or(|bits| (0.0..=100.0).contains(&bits)) {
            return usage("--bloom-bits must be between 0 and 100");
        }
        check_bursts(self.peak_seconds, self.valley_seconds).map_err(Error::Usage)?;
        if !(0.0..=60_000.0).contains(&self.barrier_cost) {
            return usage("--barrier-cost must be between 0 and 60000 milliseconds");
        }
        if self.device_limit == Some(0) {
            return usage("--device-limit must be at least 1");
        }
        if self.rate.contains(&0) {
            return usage("--rate must be at least 1");
        }
        if self.mode == Some(Mode::Closed) && !self.rate.is_empty() {
            return usage("--rate has no meaning with --mode closed");
        }
        for name in &self.workload {
            self.plan(name)?;
        }
        self.store_config().map(|_| ())
    }

    /// Returns the keys at which all regions but the first begin.
    fn region_begins(&self) -> Vec<Vec<u8>> {
        let format = self.key_format();
        let begin = |nth: u32| {
            let mut key = Vec::new();
            let index = u128::from(self.num) * u128::from(nth) / u128::from(self.regions);
            format.write(u64::try_from(index).unwrap_or(u64::MAX), &mut key);
            key
        };
        (1..self.regions).map(begin).collect()
    }

    pub(crate) fn key_format(&self) -> KeyFormat {
        KeyFormat { size: self.key_size, style: KeyStyle::BigEndian }
    }
}

#[cfg(test)]
pub(crate) mod tests;
