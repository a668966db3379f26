//! The configuration of a simulation: a policy, a device, a load and a database, as plain values.

use sateen_control::options::{AdmissionPolicy, SchedulerOptions, TunerOptions};
use sateen_control::{CfOptions, ControlOptions, DeviceProfile};
use sateen_workload::{ArrivalSpec, Process, Rng, ScanLength, Spec, ValueSize};

use crate::device::DeviceConfig;
use crate::error::{Error, Result};

/// Names that [`Policy::named`] knows.
pub const POLICY_NAMES: &[&str] = &[
    "sateen",
    "silk",
    "bolt",
    "vlsm",
    "adoc",
    "adoc-threads",
    "adoc-batch",
    "rocksdb",
    "rocksdb-limited",
    "rocksdb-autotuned",
    "leveldb",
    "pebblesdb",
    "rocksdb-universal",
];

/// The percentage of the device's bandwidth that the fixed limiter of `rocksdb-limited` gives to
/// background writes: 90 MB/s of 200, the best of the fixed rates that SILK tries (§4.3).
const LIMITED_PERCENT: u64 = 45;

/// A named set of options for the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The name that the report shows.
    pub name: String,
    /// The options of the whole database.
    pub control: ControlOptions,
    /// The options of its column family.
    pub family: CfOptions,
    /// The most bytes that a compaction reads at once.
    pub read_request_bytes: u64,
    /// The most bytes that a flush or compaction writes at once.
    pub write_request_bytes: u64,
    /// The percentage of the cache that holds tables of level 0, which compactions need not read.
    pub level0_cache_percent: u64,
}

impl Policy {
    /// Returns the policy with an initial belief about the device.
    #[must_use]
    pub fn believing(mut self, device: DeviceProfile) -> Policy {
        self.control.scheduler.hint = device;
        self
    }

    /// Returns the policy with this name. `told_bandwidth` is the device's bandwidth in bytes a
    /// second, as the user states it; most policies ignore it.
    ///
    /// # Errors
    /// If no policy has this name.
    pub fn named(name: &str, told_bandwidth: u64) -> Result<Policy> {
        let mut control = ControlOptions::rocksdb();
        control.tuner.slots_max = SLOTS_MAX;
        let mut family = CfOptions::rocksdb();
        let mut read_request_bytes = 2 << 20;
        match name {
            "sateen" | "silk" => {
                control = control.with_max_background_jobs(4);
                control.scheduler = SchedulerOptions::silk();
                control.admission = AdmissionPolicy::Smooth;
                control.parallel_only_under_pressure = false;
                read_request_bytes = 256 << 10;
                if name == "sateen" {
                    family = CfOptions::sateen();
                }
            }
            "rocksdb" => {}
            "adoc" | "adoc-threads" | "adoc-batch" => {
                let both = TunerOptions::adoc(SLOTS_MAX);
                let (slots, memtables) = (name != "adoc-batch", name != "adoc-threads");
                control.tuner = TunerOptions { slots, memtables, ..both };
            }
            "rocksdb-limited" => {
                let limit = told_bandwidth / 100 * LIMITED_PERCENT;
                control.rate_limiter.bytes_per_second = Some(limit.max(1));
            }
            "rocksdb-autotuned" => {
                control.rate_limiter.bytes_per_second = Some(told_bandwidth.max(1));
                control.rate_limiter.auto_tuned = true;
            }
            "leveldb" => {
                control = ControlOptions::leveldb();
                family = CfOptions::leveldb();
            }
            "bolt" => {
                control = ControlOptions::leveldb();
                family = CfOptions::bolt();
            }
            "vlsm" => family = CfOptions::vlsm(VLSM_TABLE_BYTES),
            "pebblesdb" => family = CfOptions::pebblesdb(),
            "rocksdb-universal" => family = CfOptions::universal(),
            other => {
                return Err(Error::usage(format!(
                    "no policy is named {other:?}; there are: {}",
                    POLICY_NAMES.join(", ")
                )));
            }
        }
        let name = name.to_owned();
        Ok(Policy {
            level0_cache_percent: if name == "sateen" { 33 } else { 0 },
            name,
            control,
            family,
            read_request_bytes,
            write_request_bytes: 256 << 10,
        })
    }

    /// Sets the sizes of the standard case: memtables of 16 MB, tables of 16 MB, a base level of 64
    /// MB, four job slots. A policy whose point is its sizes keeps them.
    #[must_use]
    pub fn standard_sizes(mut self) -> Policy {
        self.control = self.control.with_max_background_jobs(4);
        if self.family.leveled.level0_fifo {
            return self;
        }
        self.family.write_buffer_size = 16 << 20;
        self.family.max_bytes_for_level_base = 64 << 20;
        if self.family.leveled.level0_stripe_bytes > 0 {
            self.family = self.family.with_base_for_level0();
        }
        if self.family.leveled.group_compaction_bytes == 0 {
            self.family.target_file_size_base = 16 << 20;
        }
        self
    }
}

/// The largest number of job slots that ADOC sets: that of a machine with eight processors.
const SLOTS_MAX: usize = 16;

/// The size of tables in vLSM's evaluation (§6).
const VLSM_TABLE_BYTES: u64 = 8 << 20;

/// How writes are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wal {
    /// Writes are not logged.
    #[default]
    Off,
    /// The WAL goes to the page cache, which is written back in the background. No writer waits for
    /// it.
    Buffered,
}

/// The load of the clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The operations, and when they are due. Keys are drawn uniformly, whatever the workload says.
    pub spec: Spec,
    /// How arrivals spread within the rate.
    pub process: Process,
    /// Client threads.
    pub threads: usize,
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of values, if the workload prescribes none.
    pub sizes: ValueSize,
    /// Entries of a scan, if the workload prescribes none.
    pub scan: ScanLength,
    /// The seed of every arrival and every draw.
    pub seed: u64,
}

impl Load {
    /// The mean bytes of a value.
    pub(crate) fn value_bytes(&self) -> u64 {
        const DRAWS: u64 = 100_000;
        let sizes = self.spec.sizes.unwrap_or(self.sizes);
        let mut rng = Rng::new(1);
        (0..DRAWS).map(|_| u64::from(sizes.draw(&mut rng))).sum::<u64>() / DRAWS
    }
}

/// Processor times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A read, without its device reads.
    pub read_ns: u64,
    /// Each run of level 0 that a read looks into.
    pub read_run_ns: u64,
    /// A write, without its waiting.
    pub write_ns: u64,
    /// The WAL record of a write.
    pub wal_ns: u64,
    /// Each entry of a scan.
    pub scan_entry_ns: u64,
    /// 1024 bytes of a flush.
    pub flush_kib_ns: u64,
    /// 1024 bytes that a compaction reads.
    pub compaction_kib_ns: u64,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            read_ns: 6_000,
            read_run_ns: 200,
            write_ns: 4_000,
            wal_ns: 2_000,
            scan_entry_ns: 300,
            flush_kib_ns: 1_500,
            compaction_kib_ns: 2_500,
        }
    }
}

/// The configuration of one simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct SimConfig {
    /// The policy of the control plane.
    pub policy: Policy,
    /// The device as it is, whatever the policy believes.
    pub device: DeviceConfig,
    /// The clients.
    pub load: Load,
    /// Bytes of the database at the start.
    pub db_bytes: u64,
    /// Bytes of the block cache. Reads of cached blocks need no device.
    pub cache_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes that a block read moves on the device. With direct I/O these are whole pages.
    pub read_bytes: u64,
    /// How writes are logged.
    pub wal: Wal,
    /// Threads for background work; `None` for as many as there are job slots.
    pub workers: Option<usize>,
    /// The processor times.
    pub costs: Costs,
    /// Virtual time, in nanoseconds.
    pub duration_ns: u64,
}

impl SimConfig {
    /// The standard case: bursts of 10 s at `peak_rate` and valleys of 10 s at a quarter of it;
    /// half reads, half writes of 1 KB; a database of 8 GB on a device of 200 MB/s.
    ///
    /// # Errors
    /// If no policy has this name.
    pub fn standard(policy: &str, peak_rate: f64) -> Result<SimConfig> {
        let device = DeviceConfig::default();
        let mut spec = Spec::named("bursts").map_err(|error| Error::usage(error.to_string()))?;
        spec.arrivals = spec.arrivals.scaled_to(peak_rate);
        Ok(SimConfig {
            policy: Policy::named(policy, device.bandwidth.write)?.standard_sizes(),
            device,
            load: Load {
                spec,
                process: Process::Poisson,
                threads: 2,
                key_bytes: 16,
                sizes: ValueSize::Fixed(1000),
                scan: ScanLength::Fixed(50),
                seed: 1,
            },
            db_bytes: 8_000_000_000,
            cache_bytes: 256 << 20,
            block_bytes: 4096,
            read_bytes: 4096,
            wal: Wal::Off,
            workers: None,
            costs: Costs::default(),
            duration_ns: 150_000_000_000,
        })
    }

    /// Checks that the configuration can be simulated.
    ///
    /// # Errors
    /// If a setting is invalid. The text names it.
    pub fn check(&self) -> Result<()> {
        let usage = |text: &str| Err(Error::usage(text));
        if self.load.threads == 0 || self.load.threads > 1024 {
            return usage("threads must be between 1 and 1024");
        }
        if self.load.spec.arrivals == ArrivalSpec::Closed {
            return usage("arrivals must be on schedule: give a rate");
        }
        if self.load.key_bytes == 0 || self.load.key_bytes > 1 << 15 {
            return usage("a key must have between 1 and 32768 bytes");
        }
        if self.workers == Some(0) {
            return usage("workers must be at least 1");
        }
        if self.db_bytes < 1 << 20 || self.db_bytes > 1 << 50 {
            return usage("the database must have between 1 MB and 1 PB");
        }
        let bandwidths = self.device.changes.iter().map(|c| c.1).chain([self.device.bandwidth]);
        if bandwidths.into_iter().any(|b| b.read < 1 << 10 || b.write < 1 << 10) {
            return usage("the device's bandwidth must be at least 1 KB a second");
        }
        if !self.device.changes.is_sorted_by_key(|change| change.0) {
            return usage("changes of the device must be in the order of time");
        }
        let Policy { read_request_bytes, write_request_bytes, .. } = self.policy;
        if read_request_bytes.min(write_request_bytes) < 4096 || self.block_bytes == 0 {
            return usage("requests of background work must have at least 4096 bytes");
        }
        if self.policy.family.write_buffer_size < 1 << 16 {
            return usage("write_buffer_size must be at least 64K");
        }
        if self.policy.family.target_file_size_base < 1 << 16 {
            return usage("target_file_size_base must be at least 64K");
        }
        if self.duration_ns == 0 || self.duration_ns > 1 << 56 {
            return usage("the duration must be above zero and at most two years");
        }
        Ok(())
    }

    /// The largest number of job slots that the policy may use.
    pub(crate) fn slots(&self) -> usize {
        let control = &self.policy.control;
        let configured = control.slots().total();
        if control.tuner.slots { configured.max(control.tuner.slots_max) } else { configured }
    }
}
