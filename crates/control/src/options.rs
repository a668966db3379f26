//! What control can be told: plain values, every one of them changeable at run time through
//! [`Event::OptionsChanged`](crate::Event::OptionsChanged). A profile is nothing but such values.
//! Names are RocksDB's where RocksDB has the option.

use std::time::Duration;

use crate::version::LEVELS_MAX;

mod scheduler;
mod tuner;

pub use scheduler::{
    Preemption, RateLimiterMode, RateLimiterOptions, SchedulerOptions, ScrubOptions,
};
pub use tuner::{DebtLimit, TunerOptions};

const KIB: u64 = 1 << 10;
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

/// Which table of a level is compacted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionPri {
    /// The table with the fewest bytes below it for its size (RocksDB's default).
    #[default]
    MinOverlappingRatio,
    /// The one behind the table compacted last (LevelDB).
    RoundRobin,
    /// The largest, counting tombstones for more.
    ByCompensatedSize,
    /// The one whose newest entry is oldest.
    OldestLargestSeqFirst,
    /// The one whose oldest entry is oldest.
    OldestSmallestSeqFirst,
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

/// How tables are arranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionStyle {
    /// One run in each level but level 0.
    #[default]
    Leveled,
    /// Several runs in each level, cut at guards (PebblesDB).
    Guards,
}

impl CompactionStyle {
    /// The name in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CompactionStyle::Leveled => "leveled",
            CompactionStyle::Guards => "guards",
        }
    }
}

/// How a level is compressed: a number that means something to the engine only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompressionCode(pub u8);

/// What concerns one column family.
#[derive(Clone, Debug, PartialEq)]
pub struct CfOptions {
    /// How tables are arranged. Fixed while the database is open.
    pub compaction_style: CompactionStyle,
    /// With guards: runs of a level that share keys from which on they go down, or are merged in
    /// the deepest level. At least 2.
    pub guard_runs_max: u32,
    /// Levels, level 0 included: 2 to [`LEVELS_MAX`]. Fixed for the life of a version.
    pub num_levels: usize,
    /// The bytes at which a memtable is sealed. Control only reads it to judge fill rates.
    pub write_buffer_size: u64,
    /// Sealed memtables at which writers stop.
    pub max_write_buffer_number: u32,
    /// Sealed memtables that make a flush worth starting.
    pub min_write_buffer_number_to_merge: u32,
    /// Runs in level 0 that start a compaction.
    pub level0_file_num_compaction_trigger: u32,
    /// Runs in level 0 at which writers are slowed down.
    pub level0_slowdown_writes_trigger: u32,
    /// Runs in level 0 at which writers stop.
    pub level0_stop_writes_trigger: u32,
    /// Estimated bytes of pending compactions at which writers are slowed down; 0: never.
    pub soft_pending_compaction_bytes_limit: u64,
    /// Estimated bytes of pending compactions at which writers stop; 0: never.
    pub hard_pending_compaction_bytes_limit: u64,
    /// The target of the base level.
    pub max_bytes_for_level_base: u64,
    /// How many times larger the target of the level below is.
    pub max_bytes_for_level_multiplier: f64,
    /// How many times larger than that of the base level the target of the level below it may be
    /// (vLSM §4.2: Φ); 0: as many times as deeper levels.
    pub base_level_multiplier: f64,
    /// Level targets follow from the size of the largest level, and level 0 is compacted into the
    /// first level that the data needs.
    pub level_compaction_dynamic_level_bytes: bool,
    /// The size of a table in the base level.
    pub target_file_size_base: u64,
    /// The size at which a flush begins another table of its run; 0: it writes one table.
    pub level0_file_size: u64,
    /// Bytes of a stripe: flushes cut their runs at stripes of the base level, and level 0 goes
    /// down one stripe at a time; 0: as it hangs together.
    pub level0_stripe_bytes: u64,
    /// Tables may end early at gaps between keys that are far wider than what they span.
    pub cut_at_gaps: bool,
    /// How many times larger tables of the level below are.
    pub target_file_size_multiplier: u64,
    /// The most that one compaction takes in when it has a choice; 0: 25 times the table size, but
    /// at least four memtables and a group.
    pub max_compaction_bytes: u64,
    /// The most that a table may overlap with the level below its own, when it is written or
    /// changes level; 0: as `max_compaction_bytes`.
    pub max_grandparent_overlap_bytes: u64,
    /// Which table goes first.
    pub compaction_pri: CompactionPri,
    /// The most tables of a level that are weighed against each other for one compaction; in larger
    /// levels a window of so many moves round.
    pub victim_candidates_max: usize,
    /// Bytes of a level's tables that one compaction takes together, whether they are neighbours or
    /// not, with what they overlap below (BoLT §3.3); 0: one table, and what goes along with it.
    pub group_compaction_bytes: u64,
    /// Of such a group what overlaps nothing below changes level as it is (BoLT §3.4).
    pub settled_compaction: bool,
    /// The part of level 0's keys that are there more than once when it goes down (TRIAD); 0: any.
    pub level0_overlap_min: f64,
    /// With that: runs from which on it goes down all the same, or twice the trigger if less.
    pub level0_overlap_runs_max: u32,
    /// A compaction out of level 0 takes its oldest run and nothing else (vLSM §4.1).
    pub level0_fifo: bool,
    /// Tables of the base level are cut by what they overlap in the level below, between a
    /// `max_bytes_for_level_multiplier`th of the size of tables and all of it, and those that
    /// overlap no more than so many times their own size go down (vLSM §4.2).
    pub overlap_aware: bool,
    /// Level 0 may be compacted into itself when its way down is blocked or not worth it.
    pub intra_level0_compaction: bool,
    /// Output tables are cut at table boundaries of the level below the output.
    pub level_compaction_dynamic_file_size: bool,
    /// Nothing is compacted unless asked for.
    pub disable_auto_compactions: bool,
    /// Compression by level: the first for level 0, the following for the base level and deeper;
    /// the last for all further levels. Empty: code 0 everywhere.
    pub compression_per_level: Vec<CompressionCode>,
}

impl Default for CfOptions {
    fn default() -> CfOptions {
        CfOptions::rocksdb()
    }
}

impl CfOptions {
    /// RocksDB's defaults: the profile `rocksdb`.
    #[must_use]
    pub fn rocksdb() -> CfOptions {
        CfOptions {
            compaction_style: CompactionStyle::Leveled,
            guard_runs_max: 8,
            num_levels: 7,
            write_buffer_size: 64 * MIB,
            max_write_buffer_number: 2,
            min_write_buffer_number_to_merge: 1,
            level0_file_num_compaction_trigger: 4,
            level0_slowdown_writes_trigger: 20,
            level0_stop_writes_trigger: 36,
            soft_pending_compaction_bytes_limit: 64 * GIB,
            hard_pending_compaction_bytes_limit: 256 * GIB,
            max_bytes_for_level_base: 256 * MIB,
            max_bytes_for_level_multiplier: 10.0,
            base_level_multiplier: 0.0,
            level_compaction_dynamic_level_bytes: true,
            target_file_size_base: 64 * MIB,
            level0_file_size: 0,
            level0_stripe_bytes: 0,
            cut_at_gaps: false,
            target_file_size_multiplier: 1,
            max_compaction_bytes: 0,
            max_grandparent_overlap_bytes: 0,
            compaction_pri: CompactionPri::MinOverlappingRatio,
            victim_candidates_max: 512,
            group_compaction_bytes: 0,
            settled_compaction: true,
            level0_overlap_min: 0.0,
            level0_overlap_runs_max: 6,
            level0_fifo: false,
            overlap_aware: false,
            intra_level0_compaction: true,
            level_compaction_dynamic_file_size: true,
            disable_auto_compactions: false,
            compression_per_level: Vec::new(),
        }
    }

    /// Runs of small logical tables that go down a stripe at a time, deeper levels in groups: the
    /// profile `sateen`.
    #[must_use]
    pub fn sateen() -> CfOptions {
        let options = CfOptions {
            target_file_size_base: 2 * MIB,
            level0_file_size: 2 * MIB,
            level0_stripe_bytes: 8 * MIB,
            max_bytes_for_level_multiplier: 8.0,
            group_compaction_bytes: 64 * MIB,
            cut_at_gaps: true,
            ..CfOptions::rocksdb()
        };
        options.with_base_for_level0()
    }

    /// LevelDB's shape: the profile `leveldb` (with [`ControlOptions::leveldb`]).
    #[must_use]
    pub fn leveldb() -> CfOptions {
        CfOptions {
            write_buffer_size: 4 * MIB,
            max_write_buffer_number: 2,
            level0_file_num_compaction_trigger: 4,
            level0_slowdown_writes_trigger: 8,
            level0_stop_writes_trigger: 12,
            soft_pending_compaction_bytes_limit: 0,
            hard_pending_compaction_bytes_limit: 0,
            max_bytes_for_level_base: 10 * MIB,
            level_compaction_dynamic_level_bytes: false,
            target_file_size_base: 2 * MIB,
            max_compaction_bytes: 25 * 2 * MIB,
            max_grandparent_overlap_bytes: 10 * 2 * MIB,
            compaction_pri: CompactionPri::RoundRobin,
            intra_level0_compaction: false,
            level_compaction_dynamic_file_size: false,
            ..CfOptions::rocksdb()
        }
    }

    /// BoLT on LevelDB's shape (§3, §4.2): small logical tables, groups of 64 MB, least overlap
    /// first: the profile `bolt` (with [`ControlOptions::leveldb`]).
    #[must_use]
    pub fn bolt() -> CfOptions {
        CfOptions {
            target_file_size_base: MIB,
            level0_file_size: MIB,
            group_compaction_bytes: 64 * MIB,
            compaction_pri: CompactionPri::MinOverlappingRatio,
            ..CfOptions::leveldb()
        }
    }

    /// PebblesDB's fragmented levels on RocksDB's sizes: the profile `pebblesdb`.
    #[must_use]
    pub fn pebblesdb() -> CfOptions {
        CfOptions {
            compaction_style: CompactionStyle::Guards,
            level_compaction_dynamic_level_bytes: false,
            soft_pending_compaction_bytes_limit: 0,
            hard_pending_compaction_bytes_limit: 0,
            intra_level0_compaction: false,
            ..CfOptions::rocksdb()
        }
    }

    /// RocksDB's, but level 0 waits for overlap: the profiles `triad` and `triad-silk`.
    #[must_use]
    pub fn triad() -> CfOptions {
        CfOptions { level0_overlap_min: 0.4, ..CfOptions::rocksdb() }
    }

    /// vLSM (§4): memtables and tables of `table_bytes`, level 0 a queue, a narrow level 1, and
    /// level 2 as large as a tiered level 0 would make it: the profile `vlsm`.
    #[must_use]
    pub fn vlsm(table_bytes: u64) -> CfOptions {
        CfOptions {
            write_buffer_size: table_bytes,
            level0_file_num_compaction_trigger: 1,
            max_bytes_for_level_base: 8 * table_bytes,
            max_bytes_for_level_multiplier: 8.0,
            base_level_multiplier: 32.0,
            level_compaction_dynamic_level_bytes: false,
            target_file_size_base: table_bytes,
            level0_fifo: true,
            overlap_aware: true,
            intra_level0_compaction: false,
            ..CfOptions::rocksdb()
        }
    }

    /// The bytes at which a flush begins another table of its run; `u64::MAX`: it writes one.
    #[must_use]
    pub fn flush_file_size(&self) -> u64 {
        match self.level0_file_size {
            0 => u64::MAX,
            bytes => bytes.min(self.target_file_size_base).max(1),
        }
    }

    /// What level 0 has at its trigger.
    #[must_use]
    pub fn level0_bytes(&self) -> u64 {
        let trigger = self.level0_file_num_compaction_trigger.max(1);
        self.write_buffer_size.saturating_mul(trigger.into())
    }

    /// The base level's target where nobody has set one: what level 0 has at its trigger goes down
    /// a stripe at a time, so that a wider step costs nobody anything, and spares one below.
    #[must_use]
    pub fn with_base_for_level0(self) -> CfOptions {
        let level0 = self.level0_bytes();
        CfOptions { max_bytes_for_level_base: level0.saturating_mul(11) / 4, ..self }
    }

    /// The size of a table in `level`, when level 0 is compacted into `base_level`.
    #[must_use]
    pub fn target_file_size(&self, level: u8, base_level: u8) -> u64 {
        let steps = if self.level_compaction_dynamic_level_bytes {
            level.saturating_sub(base_level)
        } else {
            level.saturating_sub(1)
        };
        let multiplier = self.target_file_size_multiplier.max(1).saturating_pow(steps.into());
        self.target_file_size_base.max(4 * KIB).saturating_mul(multiplier)
    }

    /// How many times its size a table of the base level overlaps the level below at most, if it is
    /// good to go down (vLSM §4.2.1).
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a multiplier of at least 1, and the cast saturates"
    )]
    pub fn good_overlap(&self) -> u64 {
        self.max_bytes_for_level_multiplier.max(1.0) as u64
    }

    /// Whether a table of so many bytes that overlaps so many below is.
    #[must_use]
    pub fn is_good_overlap(&self, bytes: u64, overlap_bytes: u64) -> bool {
        overlap_bytes <= bytes.saturating_mul(self.good_overlap())
    }

    /// Runs of level 0 that nobody feels: twice the trigger, or where RocksDB slows writers down if
    /// that is earlier.
    #[must_use]
    pub fn level0_runs_unfelt(&self) -> u64 {
        let trigger = u64::from(self.level0_file_num_compaction_trigger);
        let stop = u64::from(self.level0_stop_writes_trigger.max(1));
        (2 * trigger).min(u64::from(self.level0_slowdown_writes_trigger)).min(stop - 1)
    }

    /// The most a compaction takes in when it has a choice.
    #[must_use]
    pub fn compaction_bytes_max(&self) -> u64 {
        match self.max_compaction_bytes {
            // Small tables do not make it small: it is what flushes bring at least.
            0 => self
                .target_file_size_base
                .saturating_mul(25)
                .max(self.write_buffer_size.saturating_mul(4))
                .max(self.group_compaction_bytes),
            bytes => bytes,
        }
    }

    /// The most that a table may overlap with the level below its own.
    #[must_use]
    pub fn grandparent_overlap_bytes_max(&self) -> u64 {
        match self.max_grandparent_overlap_bytes {
            0 => self.compaction_bytes_max(),
            bytes => bytes,
        }
    }

    /// How tables of `level` are compressed, when level 0 is compacted into `base_level`.
    #[must_use]
    pub fn compression(&self, level: u8, base_level: u8) -> CompressionCode {
        let index = match (level, self.level_compaction_dynamic_level_bytes) {
            (0, _) => 0,
            (level, true) => usize::from(level.saturating_sub(base_level)) + 1,
            (level, false) => usize::from(level),
        };
        let last = self.compression_per_level.len().saturating_sub(1);
        self.compression_per_level.get(index.min(last)).copied().unwrap_or_default()
    }

    /// The number of levels within what is possible.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.num_levels.clamp(2, LEVELS_MAX)
    }
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
