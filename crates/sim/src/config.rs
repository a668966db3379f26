//! The configuration of a simulation: a policy, a device, a load and a database, as plain values.

use sateen::{Compression, Options, Preemption, control_options};
use sateen_control::{CfOptions, ControlOptions, DeviceProfile};
use sateen_workload::{Process, Rng, ScanLength, Spec, ValueSize};

use crate::device::DeviceConfig;
use crate::error::{Error, Result};

/// Names that [`Policy::named`] knows: the profiles of the engine whose ways the model has.
pub const POLICY_NAMES: &[&str] = &[
    "sateen",
    "silk",
    "silk-paper",
    "bolt",
    "hyperbolt",
    "vlsm",
    "lsmi",
    "adoc",
    "adoc-threads",
    "adoc-batch",
    "rocksdb",
    "rocksdb-io",
    "rocksdb-limited",
    "rocksdb-autotuned",
    "leveldb",
    "hyperleveldb",
    "pebblesdb",
    "rocksdb-universal",
];

/// The percentage of the device's bandwidth that the fixed limiter of `rocksdb-limited` gives to
/// background writes: 90 MB/s of 200, the best of the fixed rates that SILK tries (§4.3).
const LIMITED_PERCENT: u64 = 45;

/// Names that [`Policy::named`] knows: the profiles of the engine whose ways the model has.
/// A profile of the engine, as it is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The name that the report shows.
    pub name: String,
    /// The options of the database and of its column family.
    pub options: Options,
    /// What is believed of the device at first, if anything.
    pub believed: Option<DeviceProfile>,
    /// True if more than one compaction runs only while writers are delayed, or near it.
    pub parallel_only_under_pressure: bool,
    /// The most bytes that a flush or compaction writes at once. A compaction reads
    /// `compaction_readahead_bytes` at once.
    pub write_request_bytes: u64,
}

impl Policy {
    /// Returns the policy with an initial belief about the device.
    #[must_use]
    pub fn believing(mut self, device: DeviceProfile) -> Policy {
        self.believed = Some(device);
        self
    }

    /// Returns the profile with this name as it is simulated. `told_bandwidth` is the device's
    /// bandwidth in bytes a second, as the user states it; most policies ignore it.
    ///
    /// # Errors
    /// If no policy has this name.
    pub fn named(name: &str, told_bandwidth: u64) -> Result<Policy> {
        if !POLICY_NAMES.contains(&name) {
            return Err(Error::usage(format!(
                "no policy is named {name:?}; there are: {}",
                POLICY_NAMES.join(", ")
            )));
        }
        let mut options = Options::profile(name)?;
        // The model's bytes are those on the device.
        options.column_family.compression = vec![Compression::None];
        options.tuner_slots_max = SLOTS_MAX;
        match name {
            "silk" => options.compaction_readahead_bytes = READAHEAD_BYTES,
            "silk-paper" => {
                options.compaction_readahead_bytes = READAHEAD_BYTES;
                options.device_bandwidth = Some(told_bandwidth.max(1 << 20));
            }
            "rocksdb-limited" => {
                let limit = told_bandwidth / 100 * LIMITED_PERCENT;
                options.rate_limit_bytes_per_second = limit.max(1);
            }
            "rocksdb-autotuned" => options.rate_limit_bytes_per_second = told_bandwidth.max(1),
            _ => {}
        }
        Ok(Policy {
            name: name.to_owned(),
            parallel_only_under_pressure: options.preemption == Preemption::Off,
            options,
            believed: None,
            write_request_bytes: 256 << 10,
        })
    }

    /// Sets the sizes of the standard case: memtables of 16 MB, tables of 16 MB, a base level of 64
    /// MB, four job slots. A policy whose point is its sizes keeps them.
    #[must_use]
    pub fn standard_sizes(mut self) -> Policy {
        self.options.background_threads = 4;
        self.divide_jobs();
        let family = &mut self.options.column_family;
        if family.level0_fifo {
            return self;
        }
        family.memtable_bytes = 16 << 20;
        // With stripes the base level follows from level 0.
        family.level_base_bytes = if family.level0_stripe_bytes > 0 { 0 } else { 64 << 20 };
        if family.group_compaction_bytes == 0 {
            family.table_bytes = 16 << 20;
        }
        self
    }

    /// Returns what the control plane is told of the whole database.
    #[must_use]
    pub fn control(&self) -> ControlOptions {
        let mut control = control_options::database(&self.options);
        control.parallel_only_under_pressure = self.parallel_only_under_pressure;
        if let Some(device) = self.believed {
            control.scheduler.hint = device;
        }
        control
    }

    /// Returns what the control plane is told of the column family.
    #[must_use]
    pub fn family(&self) -> CfOptions {
        control_options::column_family(&self.options, &self.options.column_family)
    }
}

/// The largest number of job slots that ADOC sets: that of a machine with eight processors.
const SLOTS_MAX: u32 = 16;

/// What a compaction under SILK's scheduler reads at once, as in the profile `sateen`.
const READAHEAD_BYTES: u64 = 256 << 10;

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
        let options = &self.policy.options;
        options.validate()?;
        if options.compaction_readahead_bytes < 4096 || self.policy.write_request_bytes < 4096 {
            return usage(
                "compaction_readahead_bytes and write_request_bytes must be at least 4096",
            );
        }
        if self.block_bytes == 0 {
            return usage("a block must have at least one byte");
        }
        if options.column_family.memtable_bytes < 1 << 16 {
            return usage("memtable_bytes must be at least 64KiB in a simulation");
        }
        if options.column_family.table_bytes < 1 << 16 {
            return usage("table_bytes must be at least 64KiB in a simulation");
        }
        if self.duration_ns == 0 || self.duration_ns > 1 << 56 {
            return usage("the duration must be above zero and at most two years");
        }
        Ok(())
    }

    /// The number of regions, each with a tree of its own. Keys are spread over them evenly.
    pub(crate) fn regions(&self) -> usize {
        self.policy.options.column_family.regions.count()
    }

    /// The largest number of job slots that the policy may use.
    pub(crate) fn slots(&self) -> usize {
        let control = self.policy.control();
        let configured = control.slots().total();
        let adjusts = control.tuner.kind.adjusts_slots();
        if adjusts { configured.max(control.tuner.slots_max) } else { configured }
    }
}
