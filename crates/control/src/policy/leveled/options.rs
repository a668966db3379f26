//! The options of the leveled policy. Guards keep level 0 in the same way and read its part of
//! them.

use crate::named_enum;

named_enum! {
    /// Which table of a level is compacted first.
    pub enum CompactionPriority, "min-overlapping-ratio, min-overlapping-range, round-robin, \
        by-compensated-size, oldest-largest-seq-first or oldest-smallest-seq-first" {
        /// The table that overlaps the fewest bytes of the next level for its size (RocksDB's
        /// default).
        #[default]
        MinOverlappingRatio = "min-overlapping-ratio",
        /// The neighbouring tables that together overlap the fewest bytes of the next level for
        /// their size (HyperLevelDB). Of a group the same as [`MinOverlappingRatio`].
        ///
        /// [`MinOverlappingRatio`]: CompactionPriority::MinOverlappingRatio
        MinOverlappingRange = "min-overlapping-range",
        /// The table behind the one compacted last, in key order (LevelDB).
        RoundRobin = "round-robin",
        /// The largest table. Tombstones make a table count as larger.
        ByCompensatedSize = "by-compensated-size",
        /// The table whose newest entry is oldest.
        OldestLargestSeqFirst = "oldest-largest-seq-first",
        /// The table whose oldest entry is oldest.
        OldestSmallestSeqFirst = "oldest-smallest-seq-first",
    }
}

/// How the leveled policy works: RocksDB's by default.
#[derive(Clone, Debug, PartialEq)]
pub struct LeveledOptions {
    // Level 0.
    /// Bytes of a stripe: flushes cut their runs at stripes of the base level, and level 0 goes
    /// down one stripe at a time; 0: as it hangs together.
    pub level0_stripe_bytes: u64,
    /// True if a compaction out of level 0 takes its oldest runs and nothing else (vLSM §4.1).
    pub level0_fifo: bool,
    /// The most runs that it takes then; 1 in the paper.
    pub level0_fifo_runs_max: u32,
    /// The part of level 0's keys that must be there more than once before it goes down (TRIAD);
    /// 0: any.
    pub level0_overlap_min: f64,
    /// Runs from which on level 0 goes down without that overlap, if they have as many bytes as
    /// that many memtables; otherwise at twice that number (TRIAD: 7).
    pub level0_overlap_runs_max: u32,
    /// True if the number of runs that start a compaction out of level 0 follows from what reads
    /// and writes cost.
    pub read_aware_compaction: bool,
    /// That number, as it is learned; 0: the trigger. It is no option of the database.
    pub level0_collects: u32,
    /// True if level 0 may be compacted into itself when its way down is blocked or not worth it.
    pub intra_level0_compaction: bool,

    // Deeper levels.
    /// How many times larger than that of the base level the target of the level below it may be
    /// (vLSM §4.2: Φ). With dynamic levels it follows from the largest level and this is the most.
    /// 0: as many times as deeper levels.
    pub base_level_multiplier: f64,
    /// Which table goes first.
    pub compaction_priority: CompactionPriority,
    /// The most tables of a level that are weighed against each other for one compaction. In larger
    /// levels a window of this size moves round.
    pub compaction_candidates_max: u32,
    /// Bytes of a level's tables that one compaction takes together, neighbours or not, with what
    /// they overlap below (BoLT §3.3); 0: one table, and those that go along with it.
    pub group_compaction_bytes: u64,
    /// Bytes of a table that are worth compacting for one read that looked into it in vain
    /// (LevelDB: 16 KiB); 0: tables are not compacted for reads.
    pub seek_compaction_bytes: u64,

    // Where tables end.
    /// The most that a table may overlap with the level below its own, when it is written or
    /// changes level; 0: as `compaction_bytes_max`.
    pub grandparent_bytes_max: u64,
    /// True if a table changes level as it is only within `grandparent_bytes_max`; false if it is
    /// enough that it overlaps nothing in the next level (BoLT §3.4).
    pub settle_checks_grandparents: bool,
    /// True if tables of the base level are cut by what they overlap in the level below, between a
    /// `level_multiplier`th of the table size and all of it. Only those go down that overlap no
    /// more than `level_multiplier` tables, or the bytes of as many full ones (vLSM §4.2).
    pub overlap_aware_tables: bool,
    /// True if output tables are cut at table boundaries of the level below the output.
    pub align_tables: bool,
}

impl Default for LeveledOptions {
    fn default() -> LeveledOptions {
        LeveledOptions {
            level0_stripe_bytes: 0,
            level0_fifo: false,
            level0_fifo_runs_max: 1,
            level0_overlap_min: 0.0,
            level0_overlap_runs_max: 7,
            read_aware_compaction: false,
            level0_collects: 0,
            intra_level0_compaction: true,
            base_level_multiplier: 0.0,
            compaction_priority: CompactionPriority::MinOverlappingRatio,
            compaction_candidates_max: 512,
            group_compaction_bytes: 0,
            seek_compaction_bytes: 0,
            grandparent_bytes_max: 0,
            settle_checks_grandparents: true,
            overlap_aware_tables: false,
            align_tables: true,
        }
    }
}
