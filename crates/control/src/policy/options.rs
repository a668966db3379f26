//! The options of one column family, as control knows them: those that serve every policy, and one
//! struct for each policy. A field has the name of the database's option, without the prefix of its
//! group: `tiered.size_ratio` is `tiered_size_ratio`. The engine's schema has units, limits and
//! profiles; the defaults here are those of RocksDB.

use super::fifo::FifoOptions;
use super::guards::GuardsOptions;
use super::leveled::LeveledOptions;
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
    pub levels: usize,
    /// The bytes at which a memtable is sealed. Control only reads it to judge fill rates.
    pub memtable_bytes: u64,
    /// Sealed memtables at which writers stop.
    pub memtables_max: u32,
    /// Sealed memtables that make a flush worth starting.
    pub memtables_to_flush_min: u32,
    /// Runs in level 0 that start a compaction.
    pub level0_trigger: u32,
    /// Runs in level 0 at which writers are slowed down.
    pub level0_slowdown: u32,
    /// Runs in level 0 at which writers stop.
    pub level0_stop: u32,
    /// Estimated bytes of pending compactions at which writers are slowed down; 0: never.
    pub soft_pending_compaction_bytes: u64,
    /// Estimated bytes of pending compactions at which writers stop; 0: never.
    pub hard_pending_compaction_bytes: u64,
    /// How many times the bytes of the largest level all may take because of levels beyond their
    /// targets; 0: no limit.
    pub space_amplification_max: f64,
    /// The target of the base level.
    pub level_base_bytes: u64,
    /// How many times larger the target of the level below is.
    pub level_multiplier: f64,
    /// True if level targets follow from the size of the largest level, and level 0 is compacted
    /// into the first level that the data needs. Policies whose levels fill from above ignore it.
    pub dynamic_level_bytes: bool,
    /// The size of a table in the base level.
    pub table_bytes: u64,
    /// How many times larger tables of the level below are.
    pub table_multiplier: u64,
    /// The size at which a flush begins another table of its run; 0: it writes one table.
    pub flush_table_bytes: u64,
    /// True if tables may end early at gaps between keys that are far wider than their key range.
    pub cut_tables_at_gaps: bool,
    /// The most that one compaction takes in when it has a choice; 0: 25 times the table size, but
    /// at least four memtables and a group.
    pub compaction_bytes_max: u64,
    /// True if tables of a group that overlap nothing below change level as they are (BoLT §3.4).
    pub settled_compaction: bool,
    /// True if nothing is compacted unless a client asks.
    pub disable_auto_compactions: bool,
    /// Compression by level: the first for level 0, the following for the base level and deeper,
    /// the last for all further levels. Empty: code 0 everywhere.
    pub compression: Vec<CompressionCode>,
    /// The bytes that each directory for tables should have; the last one takes the rest. With one
    /// or none all tables are in one directory.
    pub path_bytes: Vec<u64>,
    /// What happens to garbage in value files.
    pub values: ValueOptions,
}

/// What happens to garbage in value files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueOptions {
    /// True if compactions copy values out of old files that have garbage.
    pub garbage_collection: bool,
    /// The part of the files that is old, from 0 to 1.
    pub garbage_age_cutoff: f64,
    /// The part of the bytes of old files at which tables are compacted only to collect garbage.
    pub garbage_force_threshold: f64,
}

/// RocksDB's defaults.
impl Default for ValueOptions {
    fn default() -> ValueOptions {
        ValueOptions {
            garbage_collection: false,
            garbage_age_cutoff: 0.25,
            garbage_force_threshold: 1.0,
        }
    }
}

/// RocksDB's defaults.
impl Default for CfOptions {
    fn default() -> CfOptions {
        CfOptions {
            compaction_style: CompactionStyle::Leveled,
            leveled: LeveledOptions::default(),
            guards: GuardsOptions::default(),
            tiered: TieredOptions::default(),
            fifo: FifoOptions::default(),
            levels: 7,
            memtable_bytes: 64 * MIB,
            memtables_max: 2,
            memtables_to_flush_min: 1,
            level0_trigger: 4,
            level0_slowdown: 20,
            level0_stop: 36,
            soft_pending_compaction_bytes: 64 * GIB,
            hard_pending_compaction_bytes: 256 * GIB,
            space_amplification_max: 3.0,
            level_base_bytes: 256 * MIB,
            level_multiplier: 10.0,
            dynamic_level_bytes: true,
            table_bytes: 64 * MIB,
            table_multiplier: 1,
            flush_table_bytes: 0,
            cut_tables_at_gaps: false,
            compaction_bytes_max: 0,
            settled_compaction: true,
            disable_auto_compactions: false,
            compression: Vec::new(),
            path_bytes: Vec::new(),
            values: ValueOptions::default(),
        }
    }
}

impl CfOptions {
    /// Returns the policy that these options choose.
    #[must_use]
    pub fn policy(&self) -> &'static dyn CompactionPolicy {
        self.compaction_style.policy()
    }

    /// Returns what decides where the tables of a flush end that is cut at `stripes`.
    #[must_use]
    pub fn flush_cutter(&self, stripes: &[UserKey]) -> OutputCutter {
        OutputCutter::of_flush(self.flush_file_size(), self.cut_tables_at_gaps, stripes)
    }

    /// Returns the bytes at which a flush begins another table of its run; `u64::MAX`: it writes
    /// one.
    #[must_use]
    pub fn flush_file_size(&self) -> u64 {
        match self.flush_table_bytes {
            0 => u64::MAX,
            bytes => bytes.min(self.table_bytes).max(1),
        }
    }

    /// Returns the bytes of level 0 at its trigger.
    #[must_use]
    pub fn level0_bytes(&self) -> u64 {
        let trigger = self.level0_trigger.max(1);
        self.memtable_bytes.saturating_mul(trigger.into())
    }

    /// Returns the options with a target of the base level that follows from the size of level 0,
    /// for options that do not set one. Level 0 is compacted one stripe at a time, so a wider step
    /// from it to the base level costs nothing, and saves one of the steps below.
    #[must_use]
    pub fn with_base_for_level0(self) -> CfOptions {
        let level0 = self.level0_bytes();
        CfOptions { level_base_bytes: level0.saturating_mul(11) / 4, ..self }
    }

    /// Returns the size of a table in `level`, when level 0 is compacted into `base_level`.
    #[must_use]
    pub fn target_file_size(&self, level: u8, base_level: u8) -> u64 {
        let steps = if self.dynamic_level_bytes {
            level.saturating_sub(base_level)
        } else {
            level.saturating_sub(1)
        };
        let multiplier = self.table_multiplier.max(1).saturating_pow(steps.into());
        self.table_bytes.max(4 * KIB).saturating_mul(multiplier)
    }

    /// Returns the number of runs on top of each other that start a compaction out of level 0: its
    /// trigger, or what is learned.
    #[must_use]
    pub fn level0_runs_to_collect(&self) -> u32 {
        match self.leveled.level0_collects {
            0 => self.level0_trigger,
            runs => runs,
        }
    }

    /// Returns the number of runs that level 0 has before a compaction: its trigger, or more if it
    /// waits for overlap.
    #[must_use]
    pub fn level0_runs_due(&self) -> u64 {
        let waits = self.leveled.level0_overlap_min > 0.0;
        let waiting = if waits { self.leveled.level0_overlap_runs_max } else { 0 };
        self.level0_trigger.max(self.level0_runs_to_collect()).max(waiting).max(1).into()
    }

    /// Returns the number of runs in level 0 up to which writers are not slowed down: twice those
    /// before a compaction, or the number at which RocksDB slows writers down if that is smaller.
    #[must_use]
    pub fn level0_runs_unfelt(&self) -> u64 {
        let stop = u64::from(self.level0_stop.max(1));
        (2 * self.level0_runs_due()).min(u64::from(self.level0_slowdown)).min(stop - 1)
    }

    /// Returns the most that a compaction takes in when it has a choice.
    #[must_use]
    pub fn compaction_input_max(&self) -> u64 {
        match self.compaction_bytes_max {
            // Small tables do not make it small: flushes bring at least this much.
            0 => self
                .table_bytes
                .saturating_mul(25)
                .max(self.memtable_bytes.saturating_mul(4))
                .max(self.leveled.group_compaction_bytes),
            bytes => bytes,
        }
    }

    /// Returns how tables of `level` are compressed, when level 0 is compacted into `base_level`.
    #[must_use]
    pub fn compression_at(&self, level: u8, base_level: u8) -> CompressionCode {
        let index = match (level, self.dynamic_level_bytes) {
            (0, _) => 0,
            (level, true) => usize::from(level.saturating_sub(base_level)) + 1,
            (level, false) => usize::from(level),
        };
        let last = self.compression.len().saturating_sub(1);
        self.compression.get(index.min(last)).copied().unwrap_or_default()
    }

    /// Returns the number of levels within what is possible.
    #[must_use]
    pub fn level_count(&self) -> usize {
        self.levels.clamp(2, LEVELS_MAX)
    }
}
