//! The options of the whole database, as control knows them. They are plain values, and each of
//! them can change at run time with [`Event::OptionsChanged`](crate::Event::OptionsChanged). A
//! field has the name of the database's option, without the prefix of its group:
//! `scheduler.headroom` is `scheduler_headroom`. The engine's schema has units, limits and
//! profiles; the defaults here are those of RocksDB. Those of a column family, [`CfOptions`], stand
//! beside the compaction policies.

use std::time::Duration;

mod scheduler;
mod tuner;

use crate::named_enum;

pub use crate::policy::fifo::FifoOptions;
pub use crate::policy::guards::GuardsOptions;
pub use crate::policy::leveled::LeveledOptions;
pub use crate::policy::tiered::{StopStyle, TieredOptions};
pub use crate::policy::{CfOptions, CompactionPriority, CompactionStyle, ValueOptions};
pub use crate::types::CompressionCode;

pub use scheduler::{
    DeviceProfile, Preemption, RateLimitMode, RateLimiterOptions, SchedulerOptions, ScrubOptions,
};
pub use tuner::{Tuner, TunerBatch, TunerOptions};

const MIB: u64 = 1 << 20;

named_enum! {
    /// How writers are slowed down when background work falls behind.
    pub enum WriteController, "smooth, triggers or off" {
        /// One smooth rate for each column family, which follows from how far each resource is used
        /// up and how fast it drains.
        Smooth = "smooth",
        /// RocksDB's slowdown and stop conditions, for all column families together.
        #[default]
        Triggers = "triggers",
        /// Only full memtables stop writers. The other limits are lifted by whoever says this: for
        /// control it is the same as `Triggers`.
        Off = "off",
    }
}

/// The options of the whole database.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlOptions {
    /// Flushes that run at a time. At least 1.
    pub max_background_flushes: usize,
    /// Compactions that run at a time. At least 1.
    pub max_background_compactions: usize,
    /// True if more than one compaction runs only while writers are delayed, or near it (RocksDB's
    /// behaviour). It follows from the option `preemption`, so no option has its name.
    pub parallel_only_under_pressure: bool,
    /// How background work shares the device with clients.
    pub scheduler: SchedulerOptions,
    /// Which limits are adjusted while the database runs.
    pub tuner: TunerOptions,
    /// How writers are slowed down.
    pub write_controller: WriteController,
    /// When stored data is verified, and how fast.
    pub scrub: ScrubOptions,
    /// The most that one grant allows.
    pub slice_bytes_max: u64,
    /// The limit on background bytes.
    pub rate_limiter: RateLimiterOptions,
    /// The rate to which writers are first slowed down, and the most they get while slowed down.
    pub delayed_write_bytes_per_second: u64,
    /// How long no job like one that failed is started.
    pub retry_delay: Duration,
    /// True if one flush stores the sealed memtables of all column families.
    pub atomic_flush: bool,
    /// The share of the database in what several databases get together, relative to the others'.
    pub weight: u32,
    /// Bytes a second that its background work may move; `None`: no limit of its own.
    pub ceiling: Option<u64>,
}

/// RocksDB's defaults, with one job slot of each kind.
impl Default for ControlOptions {
    fn default() -> ControlOptions {
        ControlOptions {
            max_background_flushes: 1,
            max_background_compactions: 1,
            parallel_only_under_pressure: true,
            scheduler: SchedulerOptions::default(),
            tuner: TunerOptions::default(),
            write_controller: WriteController::default(),
            scrub: ScrubOptions::default(),
            slice_bytes_max: MIB,
            rate_limiter: RateLimiterOptions::default(),
            delayed_write_bytes_per_second: 16 * MIB,
            retry_delay: Duration::from_secs(1),
            atomic_flush: false,
            weight: 100,
            ceiling: None,
        }
    }
}

impl ControlOptions {
    /// Returns these options with `jobs` slots, divided as RocksDB's `max_background_jobs` does.
    #[must_use]
    pub fn with_max_background_jobs(mut self, jobs: usize) -> ControlOptions {
        let JobSlots { flushes, compactions } = JobSlots::divided(jobs);
        (self.max_background_flushes, self.max_background_compactions) = (flushes, compactions);
        self
    }

    /// Returns true if the I/O scheduler does the same with `other`.
    pub(crate) fn schedules_like(&self, other: &ControlOptions) -> bool {
        let hint = other.scheduler.hint;
        SchedulerOptions { hint, ..self.scheduler.clone() } == other.scheduler
            && self.rate_limiter == other.rate_limiter
            && self.slice_bytes_max == other.slice_bytes_max
    }

    /// Returns the configured job slots.
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
    /// Returns `jobs` slots divided as RocksDB does: a quarter is for flushes.
    #[must_use]
    pub fn divided(jobs: usize) -> JobSlots {
        let flushes = (jobs / 4).max(1);
        JobSlots { flushes, compactions: jobs.saturating_sub(flushes).max(1) }
    }

    /// Returns both together.
    #[must_use]
    pub fn total(self) -> usize {
        self.flushes.saturating_add(self.compactions)
    }
}

/// What a manual compaction does to the lowest level when it arrives there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BottommostLevelCompaction {
    /// Its tables stay as they are.
    Skip,
    /// Tables with tombstones are rewritten.
    #[default]
    IfTombstones,
    /// All tables are rewritten, except those that the same request has written.
    Force,
}
