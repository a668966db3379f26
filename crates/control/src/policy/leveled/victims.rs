//! Which tables of a level are tried first.
//!
//! 1. [`window_start`] begins at the level's cursor, with round robin or if the level has more
//!    tables than are weighed at once; otherwise at the first table.
//! 2. [`victims`] weighs the tables of the window that are not in flight ([`weight`]), and sorts
//!    them.
//! 3. [`fn@pointer`] moves the cursor when a plan has been made.

use std::ops::Range;

use crate::policy::{CompactionPriority, PickContext};
use crate::types::UserKey;
use crate::version::{Run, TableMeta};

/// The most tables tried before a level is left alone until something changes.
const TRIES_MAX: usize = 64;
/// How many times the bytes of surplus tombstones count, when tables are weighed.
const TOMBSTONE_WEIGHT: u64 = 2;

/// Returns the most tables of a level that are weighed for one compaction.
pub(super) fn candidates_max(context: &PickContext<'_>) -> usize {
    context.options.leveled.compaction_candidates_max.max(1) as usize
}

/// Returns true if the level's cursor decides which tables are looked at.
fn uses_cursor(context: &PickContext<'_>, run: &Run) -> bool {
    context.options.leveled.compaction_priority == CompactionPriority::RoundRobin
        || run.len() > candidates_max(context)
}

/// Returns the rank of the first table to look at.
fn window_start(context: &PickContext<'_>, level: u8, run: &Run) -> usize {
    let start = match context.version.compact_pointer(level) {
        Some(pointer) if uses_cursor(context, run) => {
            let at = run.lower_bound(pointer.bytes());
            at + usize::from(run.get(at).is_some_and(|table| table.largest == *pointer))
        }
        _ => 0,
    };
    if start < run.len() { start } else { 0 }
}

/// Returns the level's cursor after a plan whose last table has the rank `last`. Round robin goes
/// on behind that table. A window of weighed tables makes place for the next window, or the tables
/// that overlap most would be weighed again and again.
pub(super) fn pointer(
    context: &PickContext<'_>,
    level: u8,
    run: &Run,
    last: usize,
) -> Option<(u8, UserKey)> {
    if !uses_cursor(context, run) {
        return None;
    }
    let rank = match context.options.leveled.compaction_priority {
        CompactionPriority::RoundRobin => last,
        _ => {
            let window = run.len().min(candidates_max(context));
            (window_start(context, level, run) + window - 1) % run.len()
        }
    };
    Some((level, run.get(rank)?.largest.clone()))
}

/// Returns the ranks of neighbouring tables that are weighed: from the window's start on, without
/// going round.
pub(super) fn window(context: &PickContext<'_>, level: u8, run: &Run) -> Range<usize> {
    let start = window_start(context, level, run);
    start..run.len().min(start + candidates_max(context))
}

/// Returns the ranks of the tables to try, best first, of `candidates_max` that are looked at.
pub(super) fn victims(
    context: &PickContext<'_>,
    level: u8,
    run: &Run,
    candidates_max: usize,
) -> Vec<usize> {
    let start = window_start(context, level, run);
    let window = run.len().min(candidates_max.max(1));
    let end = run.len().min(start + window);
    let wrapped = window - (end - start);
    let candidates = (start..end)
        .zip(run.range(start..end))
        .chain((0..wrapped).zip(run.range(0..wrapped)))
        .filter(|(_, table)| !context.in_flight.is_claimed(table));
    let groups = context.options.leveled.overlap_aware_tables
        || context.options.leveled.group_compaction_bytes > 0;
    let tables_max = if groups { window } else { TRIES_MAX };
    if context.options.leveled.compaction_priority == CompactionPriority::RoundRobin {
        return candidates.map(|(rank, _)| rank).take(tables_max).collect();
    }
    let mut weighed: Vec<(u64, usize)> =
        candidates.map(|(rank, table)| (weight(context, level, table), rank)).collect();
    // Of equals the smallest key goes first.
    weighed.sort_unstable();
    weighed.into_iter().map(|(_, rank)| rank).take(tables_max).collect()
}

/// Returns the weight of a table: the smallest goes first.
fn weight(context: &PickContext<'_>, level: u8, table: &TableMeta) -> u64 {
    match context.options.leveled.compaction_priority {
        CompactionPriority::RoundRobin => 0,
        CompactionPriority::MinOverlappingRatio | CompactionPriority::MinOverlappingRange => {
            let below = context.overlap(level + 1, (&table.smallest, &table.largest));
            let bytes = below.map_or(0, |span| span.bytes());
            bytes.saturating_mul(1024) / compensated_bytes(table).max(1)
        }
        CompactionPriority::ByCompensatedSize => u64::MAX - compensated_bytes(table),
        CompactionPriority::OldestLargestSeqFirst => table.seqno_max.0,
        CompactionPriority::OldestSmallestSeqFirst => table.seqno_min.0,
    }
}

/// Returns the table's size, and more if most of it is tombstones: a compaction frees what they
/// hide.
fn compensated_bytes(table: &TableMeta) -> u64 {
    let surplus = table.tombstones.saturating_mul(2).saturating_sub(table.entries);
    let entry_bytes = table.raw_bytes / table.entries.max(1);
    let freed = surplus.saturating_mul(entry_bytes).saturating_mul(TOMBSTONE_WEIGHT);
    table.size_bytes.saturating_add(freed)
}
