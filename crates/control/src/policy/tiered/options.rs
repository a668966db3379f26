//! The options of the tiered policy, as in RocksDB's `CompactionOptionsUniversal`: the options
//! `tiered_…` of a database without their prefix.

use crate::named_enum;

named_enum! {
    /// When a merge takes in no further run.
    pub enum StopStyle, "total-size or similar-size" {
        /// When the next run is larger than all runs taken so far together.
        #[default]
        TotalSize = "total-size",
        /// When the next run is larger or smaller than the last run taken.
        SimilarSize = "similar-size",
    }
}

/// How the tiered policy works.
#[derive(Clone, Debug, PartialEq)]
pub struct TieredOptions {
    /// How much larger, in percent, the next run may be than what it is compared with.
    pub size_ratio: u32,
    /// The fewest runs that one merge takes. At least 2.
    pub merge_width_min: u32,
    /// The most runs that one merge takes.
    pub merge_width_max: u32,
    /// The bytes of all other runs, in percent of the oldest run, at which everything is merged.
    pub size_amplification_max: u32,
    /// When a merge takes in no further run.
    pub stop_style: StopStyle,
    /// True if runs whose tables share no keys move to their level unread.
    pub trivial_move: bool,
}

impl Default for TieredOptions {
    fn default() -> TieredOptions {
        TieredOptions {
            size_ratio: 1,
            merge_width_min: 2,
            merge_width_max: u32::MAX,
            size_amplification_max: 200,
            stop_style: StopStyle::TotalSize,
            trivial_move: false,
        }
    }
}
