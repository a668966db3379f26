//! Seek compaction (LevelDB): a read that looks into several tables is charged to the first one,
//! which did not have the key. Compacting that table down saves the look.
//!
//! 1. [`CfOptions::charges_max`] says how many charges are worth a compaction: a look costs about
//!    as much as to compact 40 KB, and LevelDB counts it as 16 KiB.
//! 2. [`pick_charged`] compacts a table of level 0 with all that share keys with it; a deeper one
//!    as `deeper` compacts a victim, or as the first of a group.

use super::deeper::compact_first;
use super::group::group_from;
use super::level0::level0_around;
use super::queue::is_queue;
use crate::geometry::Span;
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::{CfOptions, PickContext};

/// Smaller tables have as many charges as one of this size: LevelDB's 100, at 16 KiB each.
const CHARGED_BYTES_MIN: u64 = 100 * (16 << 10);

impl CfOptions {
    /// Returns the number of charges at which a table of `table_bytes` is compacted; `u64::MAX` if
    /// tables are not compacted for that (`seek_compaction_bytes`).
    #[must_use]
    pub fn charges_max(&self, table_bytes: u64) -> u64 {
        charges_max(table_bytes, self.leveled.seek_compaction_bytes)
    }
}

/// Returns the number of charges at which a table of `table_bytes` is compacted, if each counts as
/// `seek_compaction_bytes`; `u64::MAX` if that is 0.
#[must_use]
pub fn charges_max(table_bytes: u64, seek_compaction_bytes: u64) -> u64 {
    let charges = table_bytes.max(CHARGED_BYTES_MIN).checked_div(seek_compaction_bytes);
    charges.map_or(u64::MAX, |charges| charges.max(1))
}

/// Returns a plan that compacts `charged`, one table, into the next level.
pub(super) fn pick_charged<'a>(
    context: &PickContext<'a>,
    charged: Span<'a>,
) -> Option<CompactionPlan> {
    // A queue goes down one run at a time, oldest first.
    let queued = charged.level == 0 && is_queue(context.options);
    if queued || charged.level >= context.last_level() {
        return None;
    }
    if charged.level == 0 {
        return level0_around(context, CompactionReason::Charged, &charged);
    }
    if context.options.leveled.group_compaction_bytes > 0 {
        return group_from(context, CompactionReason::Charged, charged);
    }
    let Span { level, run, ranks } = charged;
    compact_first(context, CompactionReason::Charged, (level, run), ranks)
}
