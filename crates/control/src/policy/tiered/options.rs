//! The options of the tiered policy, as RocksDB's `CompactionOptionsUniversal` has them.

use crate::policy::{CfOptions, CompactionStyle};

/// When a merge takes in no further run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopStyle {
    /// When the next run is larger than all runs taken so far together.
    #[default]
    TotalSize,
    /// When the next run is larger or smaller than the last run taken.
    SimilarSize,
}

/// How the tiered policy works.
#[derive(Clone, Debug, PartialEq)]
pub struct TieredOptions {
    /// How much larger, in percent, the next run may be than what it is compared with.
    pub size_ratio: u32,
    /// The fewest runs that one merge takes. At least 2.
    pub min_merge_width: u32,
    /// The most runs that one merge takes.
    pub max_merge_width: u32,
    /// The bytes of all other runs, in percent of the oldest run, at which everything is merged.
    pub max_size_amplification_percent: u32,
    /// When a merge takes in no further run.
    pub stop_style: StopStyle,
    /// True if runs whose tables share no keys move to their level unread.
    pub allow_trivial_move: bool,
}

impl Default for TieredOptions {
    fn default() -> TieredOptions {
        TieredOptions {
            size_ratio: 1,
            min_merge_width: 2,
            max_merge_width: u32::MAX,
            max_size_amplification_percent: 200,
            stop_style: StopStyle::TotalSize,
            allow_trivial_move: false,
        }
    }
}

impl CfOptions {
    /// RocksDB's defaults with universal compaction: the profile `rocksdb-universal`.
    #[must_use]
    pub fn universal() -> CfOptions {
        CfOptions { compaction_style: CompactionStyle::Tiered, ..CfOptions::rocksdb() }
    }
}
