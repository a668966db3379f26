//! Overlap-aware tables in the base level (vLSM §4.2): small ones where the next level is dense, so
//! that what goes down rewrites little.
//!
//! 1. [`split`] cuts outputs of the base level by what they overlap in the next one.
//! 2. A table is good if it overlaps no more than [`CfOptions::good_overlap`] times its own size.
//!    [`keeps_all`] holds the base level back while it has no good table: the next merge from level
//!    0 cuts it anew (§4.2.1).
//! 3. [`lacks_room`] tells whether the base level has no room for the next run of level 0. Good
//!    tables go down first then, as a group of [`pick_group`](super::group::pick_group).

use super::targets::{ratio, scale};
use crate::geometry::{OutputSplit, overlap_bytes};
use crate::policy::{CfOptions, PickContext, TreeView};
use crate::version::{Run, TableMeta, Version};

impl CfOptions {
    /// Returns how many times its own size a table of the base level may overlap the level below,
    /// if it is good to go down (vLSM §4.2.1).
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a multiplier of at least 1, and the cast saturates"
    )]
    pub fn good_overlap(&self) -> u64 {
        self.level_multiplier.max(1.0) as u64
    }

    /// Returns true if a table of `bytes` that overlaps `overlap_bytes` below is good to go down.
    #[must_use]
    pub fn is_good_overlap(&self, bytes: u64, overlap_bytes: u64) -> bool {
        overlap_bytes <= bytes.saturating_mul(self.good_overlap())
    }
}

/// Returns the rule by which tables of `target_bytes` in the base level end.
pub(super) fn split(options: &CfOptions, target_bytes: u64) -> OutputSplit {
    let times = options.good_overlap();
    OutputSplit::ByOverlap { bytes_min: target_bytes / times, bytes_max: target_bytes, times }
}

/// Returns true if `level` is an overlap-aware base level without a table that should go down: its
/// tables wait for the next merge from above, which cuts them anew (§4.2.1).
pub(super) fn keeps_all(view: &TreeView<'_>, level: u8) -> bool {
    let TreeView { version, options, targets } = *view;
    if !options.leveled.overlap_aware_tables || level != targets.base_level {
        return false;
    }
    let mut tables = version.level(level).sorted().into_iter().flat_map(Run::iter);
    version.level(level).bytes() < targets.crowded(level)
        && !tables.any(|table| is_good(version, options, level, table))
}

/// Returns true if `table` of `level` overlaps so little for its size that it is good to go down.
fn is_good(version: &Version, options: &CfOptions, level: u8, table: &TableMeta) -> bool {
    let overlap = overlap_bytes(table, version.level(level + 1).sorted());
    options.is_good_overlap(table.size_bytes, overlap)
}

/// Returns true if the base level is overlap-aware and has no room for the next run of level 0.
pub(super) fn lacks_room(context: &PickContext<'_>) -> bool {
    let base = context.targets.base_level;
    let Some(next) = context.version.level(0).runs().last() else { return false };
    let bytes = context.version.level(base).bytes() + next.bytes();
    context.options.leveled.overlap_aware_tables
        && base < context.last_level()
        && bytes > context.targets.bytes_max(base)
}

/// Returns the bytes of `level` in good tables; 0 where nothing lies below. In a level of many
/// tables it is an estimate from a sample of them.
#[must_use]
pub fn good_bytes(version: &Version, options: &CfOptions, level: u8) -> u64 {
    const LOOKED_AT_MAX: usize = 256;
    let lowest = version.levels().iter().skip(usize::from(level) + 1).all(|below| below.is_empty());
    let run = version.level(level).sorted().filter(|_| level > 0 && !lowest);
    let Some(run) = run else { return 0 };
    let each = run.len().div_ceil(LOOKED_AT_MAX).max(1);
    let tables = (0..run.len()).step_by(each).filter_map(|rank| run.get(rank));
    let (mut all, mut good) = (0_u64, 0_u64);
    for table in tables {
        all += table.size_bytes;
        good += if is_good(version, options, level, table) { table.size_bytes } else { 0 };
    }
    scale(run.bytes(), ratio(good, all))
}
