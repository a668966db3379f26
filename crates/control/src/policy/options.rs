//! The options of one column family, as control knows them: those that serve every policy, and one
//! struct for each policy. Names are RocksDB's where RocksDB has the option. The functions named
//! after profiles return what these profiles set.

use super::fifo::FifoOptions;
use super::guards::GuardsOptions;
use super::leveled::{CompactionPri, LeveledOptions};
use super::tiered::TieredOptions;
use super::{CompactionPolicy, CompactionStyle};
use crate::geometry::OutputCutter;
use crate::types::{CompressionCode, UserKey};
use crate::version::LEVELS_MAX;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The options of one column family.
#[derive(Clone, Debug, PartialEq)]
pub struct CfOptions {
    /// How tables are arranged. Fixed while the database is open.
    pub compaction_style: CompactionStyle,
    /// Options of the leveled policy.
    pub leveled: LeveledOptions,
    /// Options of the policy with guards.
    pub guards: GuardsOptions,
    /// Options of the tiered policy.
    pub tiered: TieredOptions,
    /// Options of the FIFO policy.
    pub fifo: FifoOptions,

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
    /// True if level targets follow from the size of the largest level, and level 0 is compacted
    /// into the first level that the data needs. Policies whose levels fill from above ignore it.
    pub level_compaction_dynamic_level_bytes: bool,
    /// The size of a table in the base level.
    pub target_file_size_base: u64,
    /// How many times larger tables of the level below are.
    pub target_file_size_multiplier: u64,
    /// The size at which a flush begins another table of its run; 0: it writes one table.
    pub level0_file_size: u64,
    /// True if tables may end early at gaps between keys that are far wider than their key range.
    pub cut_at_gaps: bool,
    /// The most that one compaction takes in when it has a choice; 0: 25 times the table size, but
    /// at least four memtables and a group.
    pub max_compaction_bytes: u64,
    /// True if tables of a group that overlap nothing below change level as they are (BoLT §3.4).
    pub settled_compaction: bool,
    /// True if nothing is compacted unless a client asks.
    pub disable_auto_compactions: bool,
    /// Compression by level: the first for level 0, the following for the base level and deeper,
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
            leveled: LeveledOptions::default(),
            guards: GuardsOptions::default(),
            tiered: TieredOptions::default(),
            fifo: FifoOptions::default(),
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
            level_compaction_dynamic_level_bytes: true,
            target_file_size_base: 64 * MIB,
            target_file_size_multiplier: 1,
            level0_file_size: 0,
            cut_at_gaps: false,
            max_compaction_bytes: 0,
            settled_compaction: true,
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
            max_bytes_for_level_multiplier: 8.0,
            cut_at_gaps: true,
            leveled: LeveledOptions {
                level0_stripe_bytes: 8 * MIB,
                group_compaction_bytes: 64 * MIB,
                ..LeveledOptions::default()
            },
            ..CfOptions::rocksdb()
        };
        options.with_base_for_level0()
    }

    /// LevelDB's shape: the profile `leveldb`, with
    /// [`ControlOptions::leveldb`](crate::ControlOptions::leveldb).
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
            leveled: LeveledOptions {
                max_grandparent_overlap_bytes: 10 * 2 * MIB,
                compaction_pri: CompactionPri::RoundRobin,
                intra_level0_compaction: false,
                level_compaction_dynamic_file_size: false,
                ..LeveledOptions::default()
            },
            ..CfOptions::rocksdb()
        }
    }

    /// BoLT on LevelDB's shape (§3, §4.2), with small logical tables, groups of 64 MB, least
    /// overlap first: the profile `bolt`, with
    /// [`ControlOptions::leveldb`](crate::ControlOptions::leveldb).
    #[must_use]
    pub fn bolt() -> CfOptions {
        let leveldb = CfOptions::leveldb();
        CfOptions {
            target_file_size_base: MIB,
            level0_file_size: MIB,
            leveled: LeveledOptions {
                group_compaction_bytes: 64 * MIB,
                compaction_pri: CompactionPri::MinOverlappingRatio,
                ..leveldb.leveled
            },
            ..leveldb
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
            leveled: LeveledOptions { intra_level0_compaction: false, ..LeveledOptions::default() },
            ..CfOptions::rocksdb()
        }
    }

    /// RocksDB's defaults with a level 0 that waits for overlap: the profiles `triad` and
    /// `triad-silk`.
    #[must_use]
    pub fn triad() -> CfOptions {
        CfOptions {
            leveled: LeveledOptions { level0_overlap_min: 0.4, ..LeveledOptions::default() },
            ..CfOptions::rocksdb()
        }
    }

    /// vLSM (§4), with memtables and tables of `table_bytes`, a queue as level 0, a narrow level 1,
    /// and a level 2 as large as a tiered level 0 would make it: the profile `vlsm`.
    #[must_use]
    pub fn vlsm(table_bytes: u64) -> CfOptions {
        CfOptions {
            write_buffer_size: table_bytes,
            level0_file_num_compaction_trigger: 1,
            max_bytes_for_level_base: 8 * table_bytes,
            max_bytes_for_level_multiplier: 8.0,
            level_compaction_dynamic_level_bytes: false,
            target_file_size_base: table_bytes,
            leveled: LeveledOptions {
                base_level_multiplier: 32.0,
                level0_fifo: true,
                overlap_aware: true,
                intra_level0_compaction: false,
                ..LeveledOptions::default()
            },
            ..CfOptions::rocksdb()
        }
    }

    /// Returns the policy that these options choose.
    #[must_use]
    pub fn policy(&self) -> &'static dyn CompactionPolicy {
        self.compaction_style.policy()
    }

    /// Returns what decides where the tables of a flush end that is cut at `stripes`.
    #[must_use]
    pub fn flush_cutter(&self, stripes: &[UserKey]) -> OutputCutter {
        OutputCutter::of_flush(self.flush_file_size(), self.cut_at_gaps, stripes)
    }

    /// Returns the bytes at which a flush begins another table of its run; `u64::MAX`: it writes
    /// one.
    #[must_use]
    pub fn flush_file_size(&self) -> u64 {
        match self.level0_file_size {
            0 => u64::MAX,
            bytes => bytes.min(self.target_file_size_base).max(1),
        }
    }

    /// Returns the bytes of level 0 at its trigger.
    #[must_use]
    pub fn level0_bytes(&self) -> u64 {
        let trigger = self.level0_file_num_compaction_trigger.max(1);
        self.write_buffer_size.saturating_mul(trigger.into())
    }

    /// Returns the options with the base level's target that follows from level 0 where nobody has
    /// set one. Level 0 goes down a stripe at a time, so that a wider step from it to the base
    /// level costs nobody anything, and spares a step below.
    #[must_use]
    pub fn with_base_for_level0(self) -> CfOptions {
        let level0 = self.level0_bytes();
        CfOptions { max_bytes_for_level_base: level0.saturating_mul(11) / 4, ..self }
    }

    /// Returns the size of a table in `level`, when level 0 is compacted into `base_level`.
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

    /// Returns the runs of level 0 that writers never feel: twice the trigger, or the number at
    /// which RocksDB slows writers down if that is smaller.
    #[must_use]
    pub fn level0_runs_unfelt(&self) -> u64 {
        let trigger = u64::from(self.level0_file_num_compaction_trigger);
        let stop = u64::from(self.level0_stop_writes_trigger.max(1));
        (2 * trigger).min(u64::from(self.level0_slowdown_writes_trigger)).min(stop - 1)
    }

    /// Returns the most that a compaction takes in when it has a choice.
    #[must_use]
    pub fn compaction_bytes_max(&self) -> u64 {
        match self.max_compaction_bytes {
            // Small tables do not make it small: flushes bring at least this much.
            0 => self
                .target_file_size_base
                .saturating_mul(25)
                .max(self.write_buffer_size.saturating_mul(4))
                .max(self.leveled.group_compaction_bytes),
            bytes => bytes,
        }
    }

    /// Returns how tables of `level` are compressed, when level 0 is compacted into `base_level`.
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

    /// Returns the number of levels within what is possible.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.num_levels.clamp(2, LEVELS_MAX)
    }
}
