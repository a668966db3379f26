//! Stripes: key ranges at whose ends the runs of level 0 and the base level are cut, so that level
//! 0 can be compacted one stripe at a time. Such a compaction moves a small part of level 0, at the
//! same cost for each byte as a compaction of all of level 0.
//!
//! 1. [`stripes`] walks over the old stripes, and measures each in level 0 and the base level.
//! 2. Neighbours that together are no larger than the target size become one.
//! 3. A stripe of more than [`PART`] times the target is cut at tables of the base level. While the
//!    base level is empty, it is cut at tables of the oldest run of level 0.
//!
//! Only the control plane knows stripes, and they need not be exact: tables that cross the end of a
//! stripe are compacted together with those that they overlap.

use std::sync::Arc;

use crate::types::UserKey;
use crate::version::{Run, Version};

/// A stripe of more than this many times the target size is cut.
const PART: u64 = 2;
/// The most stripes. With more of them a flush would write very small tables.
const STRIPES_MAX: u64 = 32;

/// The keys at which stripes begin. The first stripe, which begins before all keys, has none.
pub type Stripes = Arc<[UserKey]>;

/// Returns the stripes of `version`, after those of `before`. `bytes` is the size of a stripe, 0
/// for no stripes. `trigger` is the number of runs in level 0 that starts a compaction.
#[must_use]
pub fn stripes(
    before: &Stripes,
    version: &Version,
    base_level: u8,
    bytes: u64,
    trigger: u32,
) -> Stripes {
    if bytes == 0 {
        return Stripes::default();
    }
    let stripe_bytes = stripe_bytes(version, base_level, bytes, trigger);
    let base = version.level(base_level).sorted();
    let level0 = version.level(0).runs();
    let runs: Vec<_> = level0.iter().chain(base).collect();
    // Everything out of level 0 is merged with tables of the base level, so cuts at their
    // boundaries cost nothing. While the base level is empty, the first compaction would otherwise
    // take all of level 0.
    let cut_at = base.or(level0.last());
    let bytes = |from: Option<&UserKey>, to: Option<&UserKey>| {
        runs.iter().map(|run| run.bytes_in(ranks(run, from, to))).sum::<u64>()
    };
    let mut starts: Vec<UserKey> = Vec::new();
    // Bytes of the open stripe.
    let mut open = 0;
    for nth in 0..=before.len() {
        let from = nth.checked_sub(1).and_then(|at| before.get(at));
        let to = before.get(nth);
        let size = bytes(from, to);
        if let Some(from) = from
            && open + size > stripe_bytes
        {
            starts.push(from.clone());
            open = 0;
        }
        open += size;
        if size <= stripe_bytes.saturating_mul(PART) {
            continue;
        }
        let Some(cut_at) = cut_at else { continue };
        let mut reached = from;
        for table in cut_at.range(ranks(cut_at, from, to)) {
            let behind = Some(&table.smallest);
            let inside = reached.is_none_or(|reached| *reached < table.smallest);
            if inside
                && bytes(reached, behind) >= stripe_bytes
                && bytes(behind, to) >= stripe_bytes / 2
            {
                starts.push(table.smallest.clone());
                reached = behind;
            }
        }
        open = bytes(reached, to);
    }
    if *starts == **before { before.clone() } else { starts.into() }
}

/// Returns the target size of a stripe, in level 0 and the base level together.
fn stripe_bytes(version: &Version, base_level: u8, bytes: u64, trigger: u32) -> u64 {
    let (level0, base) = (version.level(0).bytes(), version.level(base_level).bytes());
    // While the base level is empty, the first compaction takes a whole trigger's worth of runs.
    let runs = if base == 0 { u64::from(trigger.max(1)) } else { 1 };
    (bytes / runs).max((level0 + base) / STRIPES_MAX)
}

/// Returns the ranks of the tables of `run` that begin in `from..to`.
pub(crate) fn ranks(
    run: &Run,
    from: Option<&UserKey>,
    to: Option<&UserKey>,
) -> std::ops::Range<usize> {
    let begins_at = |key: Option<&UserKey>, otherwise: usize| {
        let Some(key) = key else { return otherwise };
        let at = run.lower_bound(key.bytes());
        at + usize::from(run.get(at).is_some_and(|table| table.smallest < *key))
    };
    let start = begins_at(from, 0);
    start..begins_at(to, run.len()).max(start)
}
