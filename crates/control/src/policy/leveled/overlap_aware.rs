//! Overlap-aware tables in the base level (vLSM §4.2): small ones where the next level is dense, so
//! that what goes down rewrites little.
//!
//! 1. [`split`] cuts outputs of the base level by what they overlap in the next one.
//! 2. A table is good if its overlap is within [`CfOptions::overlap_limit`]. [`keeps_all`] holds
//!    the base level back while it has no good table: the next merge from level 0 cuts it anew
//!    (§4.2.1). The denser the base level becomes, the fewer tables its smallest ones overlap, so
//!    it has good tables at the latest when it has one of them for each two tables below.
//! 3. [`lacks_room`] tells whether the base level has no room for the next runs of level 0. Good
//!    tables go down first then, as a group of [`pick_group`](super::group::pick_group).

use super::queue::{is_queue, oldest};
use super::targets::{ratio, scale};
use crate::geometry::{OutputSplit, OverlapLimit, overlap_below};
use crate::policy::{CfOptions, PickContext, TreeView};
use crate::version::{Run, TableMeta};

impl CfOptions {
    /// Returns what a table of `level` may overlap in the level below, if it is good to go down:
    /// as many full tables as the level below has for each of its own (vLSM §4.2.1: f). At least
    /// two, because a table that begins in one and ends in the next is not poor for that.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a multiplier of at least 2, and the cast saturates"
    )]
    pub fn overlap_limit(&self, level: u8, base_level: u8) -> OverlapLimit {
        let tables = self.level_multiplier.max(2.0) as u64;
        let bytes = self.target_file_size(level, base_level).saturating_mul(tables);
        OverlapLimit { tables, bytes }
    }
}

/// Returns the rule by which tables of the base level end.
pub(super) fn split(options: &CfOptions, base_level: u8) -> OutputSplit {
    let bytes_max = options.target_file_size(base_level, base_level);
    let limit = options.overlap_limit(base_level, base_level);
    OutputSplit::ByOverlap { bytes_min: bytes_max / limit.tables, bytes_max, limit }
}

/// Returns true if `level` is an overlap-aware base level without a table that should go down: its
/// tables wait for the next merge from above, which cuts them anew (§4.2.1).
pub(super) fn keeps_all(view: &TreeView<'_>, level: u8) -> bool {
    if !view.options.leveled.overlap_aware_tables || level != view.targets.base_level {
        return false;
    }
    let mut tables = view.version.level(level).sorted().into_iter().flat_map(Run::iter);
    !tables.any(|table| is_good(view, level, table))
}

/// Returns true if `table` of `level` overlaps so little that it is good to go down.
fn is_good(view: &TreeView<'_>, level: u8, table: &TableMeta) -> bool {
    let (tables, bytes) = overlap_below(table, view.version.level(level + 1).sorted());
    view.options.overlap_limit(level, view.targets.base_level).allows(tables, bytes)
}

/// Returns true if the base level is overlap-aware or below a queue, and has no room for the runs
/// of level 0 that go down next.
pub(super) fn lacks_room(context: &PickContext<'_>) -> bool {
    let PickContext { version, options, targets, .. } = *context;
    let base = targets.base_level;
    let next = oldest(options, version.level(0).runs());
    let bytes = version.level(base).bytes() + next.iter().map(Run::bytes).sum::<u64>();
    (options.leveled.overlap_aware_tables || is_queue(options))
        && !next.is_empty()
        && base < context.last_level()
        && bytes > targets.bytes_max(base)
}

/// Returns the bytes of `level` in good tables; 0 where nothing lies below. In a level of many
/// tables it is an estimate from a sample of them.
#[must_use]
pub fn good_bytes(view: &TreeView<'_>, level: u8) -> u64 {
    let looked_at = looked_at(view, level);
    scale(view.version.level(level).bytes(), ratio(looked_at.good_bytes, looked_at.bytes))
}

/// The same as the number of good tables.
#[must_use]
pub fn good_tables(view: &TreeView<'_>, level: u8) -> u64 {
    let looked_at = looked_at(view, level);
    let tables = view.version.level(level).tables() as u64;
    scale(tables, ratio(looked_at.good, looked_at.tables))
}

/// The tables of a level that were looked at.
#[derive(Clone, Copy, Debug, Default)]
struct LookedAt {
    tables: u64,
    bytes: u64,
    good: u64,
    good_bytes: u64,
}

/// Looks at a level, or at a sample of its tables; at none where nothing lies below.
fn looked_at(view: &TreeView<'_>, level: u8) -> LookedAt {
    const TABLES_MAX: usize = 256;
    let version = view.version;
    let lowest = version.levels().iter().skip(usize::from(level) + 1).all(|below| below.is_empty());
    let run = version.level(level).sorted().filter(|_| level > 0 && !lowest);
    let mut looked_at = LookedAt::default();
    let Some(run) = run else { return looked_at };
    let each = run.len().div_ceil(TABLES_MAX).max(1);
    for table in (0..run.len()).step_by(each).filter_map(|rank| run.get(rank)) {
        looked_at.tables += 1;
        looked_at.bytes += table.size_bytes;
        if is_good(view, level, table) {
            looked_at.good += 1;
            looked_at.good_bytes += table.size_bytes;
        }
    }
    looked_at
}
