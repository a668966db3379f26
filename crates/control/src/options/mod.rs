//! The options of the whole database, as control knows them. They are plain values, and each of
//! them can change at run time with [`Event::OptionsChanged`](crate::Event::OptionsChanged). A
//! profile is nothing but such values. Names are RocksDB's where RocksDB has the option. Those of a
//! column family, [`CfOptions`], stand beside the compaction policies.

use std::time::Duration;

mod scheduler;
mod tuner;

pub use crate::policy::fifo::FifoOptions;
pub use crate::policy::guards::GuardsOptions;
pub use crate::policy::leveled::LeveledOptions;
pub use crate::policy::tiered::{StopStyle, TieredOptions};
pub use crate::policy::{CfOptions, CompactionPri, CompactionStyle};
pub use crate::types::CompressionCode;

pub use scheduler::{
    DeviceProfile, Preemption, RateLimiterMode, RateLimiterOptions, SchedulerOptions, ScrubOptions,
};
pub use tuner::{DebtLimit, TunerOptions};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// How writers are slowed down when background work falls behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdmissionPolicy {
    /// RocksDB's triggers, for all column families together.
    #[default]
    Triggers,
    /// One smooth rate for each column family, from how far each resource is used up and how fast
    /// it drains.
    Smooth,
}

/// What concerns the whole database.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlOptions {
    /// Flushes that run at a time. At least 1.
    pub max_background_flushes: usize,
    /// Compactions that run at a time. At least 1.
    pub max_background_compactions: usize,
    /// How many of those only compactions out of level 0 may take.
    pub l0_slots_reserved: usize,
    /// More than one compaction only while writers are delayed, or near it (RocksDB's behaviour).
    pub parallel_only_under_pressure: bool,
    /// Who gets the device, and how much of it.
    pub scheduler: SchedulerOptions,
    /// What is adjusted while the database runs.
    pub tuner: TunerOptions,
    /// How writers are slowed down.
    pub admission: AdmissionPolicy,
    /// When what is stored is verified, and how fast.
    pub scrub: ScrubOptions,
    /// The most that one grant allows.
    pub slice_bytes_max: u64,
    /// The limit on background bytes.
    pub rate_limiter: RateLimiterOptions,
    /// The rate writers are first slowed down to, and the most they are given while slowed down.
    pub delayed_write_rate: u64,
    /// How long nothing like a failed job is started again.
    pub retry_delay: Duration,
    /// One flush stores the sealed memtables of all column families.
    pub atomic_flush: bool,
}

impl Default for ControlOptions {
    fn default() -> ControlOptions {
        ControlOptions {
            max_background_flushes: 1,
            max_background_compactions: 1,
            l0_slots_reserved: 0,
            parallel_only_under_pressure: true,
            scheduler: SchedulerOptions::default(),
            tuner: TunerOptions::default(),
            admission: AdmissionPolicy::default(),
            scrub: ScrubOptions::default(),
            slice_bytes_max: MIB,
            rate_limiter: RateLimiterOptions::default(),
            delayed_write_rate: 16 * MIB,
            retry_delay: Duration::from_secs(1),
            atomic_flush: false,
        }
    }
}

impl ControlOptions {
    /// Divides `jobs` slots as RocksDB's `max_background_jobs` does.
    #[must_use]
    pub fn with_max_background_jobs(mut self, jobs: usize) -> ControlOptions {
        let JobSlots { flushes, compactions } = JobSlots::divided(jobs);
        (self.max_background_flushes, self.max_background_compactions) = (flushes, compactions);
        self
    }

    /// The job slots that are configured.
    #[must_use]
    pub fn slots(&self) -> JobSlots {
        JobSlots {
            flushes: self.max_background_flushes.max(1),
            compactions: self.max_background_compactions.max(1),
        }
    }
}

/// How many jobs run at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSlots {
    /// Flushes. At least 1.
    pub flushes: usize,
    /// Compactions. At least 1.
    pub compactions: usize,
}

impl JobSlots {
    /// Divides `jobs` slots as RocksDB does: a quarter is for flushes.
    #[must_use]
    pub fn divided(jobs: usize) -> JobSlots {
        let flushes = (jobs / 4).max(1);
        JobSlots { flushes, compactions: jobs.saturating_sub(flushes).max(1) }
    }

    /// Both together.
    #[must_use]
    pub fn total(self) -> usize {
        self.flushes.saturating_add(self.compactions)
    }
}

/// What the tables of the lowest level undergo in a manual compaction that arrives there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BottommostLevelCompaction {
    /// They stay as they are.
    Skip,
    /// Those with tombstones are rewritten.
    #[default]
    IfTombstones,
    /// All are rewritten, except what the same request has just written.
    Force,
}

impl ControlOptions {
    /// RocksDB's defaults for the whole database: the profile `rocksdb`.
    #[must_use]
    pub fn rocksdb() -> ControlOptions {
        ControlOptions::default().with_max_background_jobs(2)
    }

    /// One background thread, no limits (the profile `leveldb`): flushes go first.
    #[must_use]
    pub fn leveldb() -> ControlOptions {
        ControlOptions { delayed_write_rate: MIB, ..ControlOptions::default() }
    }
}
