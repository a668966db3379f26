//! Stripes: ranges of keys at whose ends the runs of level 0 and the base level are cut, so that
//! level 0 goes down one stripe at a time. What one such compaction moves is a part of level 0 as
//! small as a stripe, and its cost for each byte the same as that of all at once.
//!
//! Stripes are known to the control plane only, and need not be right: what hangs together across
//! their ends goes down together. They follow the data: one that has become large is parted, and
//! neighbours that have become small are put together.

use std::sync::Arc;

use crate::options::CfOptions;
use crate::types::UserKey;
use crate::version::{Run, Version};

/// A stripe of more than so many times the size aimed at is parted.
const PART: u64 = 2;
/// More stripes than this would cut what one flush writes into crumbs.
const STRIPES_MAX: u64 = 32;

/// The keys at which stripes begin, but for the first, which begins before all keys.
pub type Stripes = Arc<[UserKey]>;

/// The stripes of `version`, when they were `before`.
#[must_use]
pub fn stripes(
    before: &Stripes,
    version: &Version,
    base_level: u8,
    options: &CfOptions,
) -> Stripes {
    if options.level0_stripe_bytes == 0 {
        return Stripes::default();
    }
    let stripe_bytes = stripe_bytes(version, base_level, options);
    let base = version.level(base_level).sorted();
    let level0 = version.level(0).runs();
    let runs: Vec<_> = level0.iter().chain(base).collect();
    // At the tables of the base level, which everything that goes down is merged with. As long as
    // it is empty, at those of the oldest run: what goes down first is all there is, otherwise.
    let cut_at = base.or(level0.last());
    let bytes = |from: Option<&UserKey>, to: Option<&UserKey>| {
        runs.iter().map(|run| run.bytes_in(ranks(run, from, to))).sum::<u64>()
    };
    let mut starts: Vec<UserKey> = Vec::new();
    // What the stripe has that is open.
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

/// What one has in level 0 and in the base level, about.
fn stripe_bytes(version: &Version, base_level: u8, options: &CfOptions) -> u64 {
    let (level0, base) = (version.level(0).bytes(), version.level(base_level).bytes());
    // What goes down first is a trigger's worth of runs, of which there is one when it counts.
    let trigger = u64::from(options.level0_file_num_compaction_trigger.max(1));
    let runs = if base == 0 { trigger } else { 1 };
    (options.level0_stripe_bytes / runs).max((level0 + base) / STRIPES_MAX)
}

/// The tables of `run` that begin in `from..to`.
pub(super) fn ranks(
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

/// The most tables of level 0 that share a key, of those that `counts`.
pub(super) fn depth(version: &Version, counts: impl Fn(&crate::TableMeta) -> bool) -> usize {
    let tables = version.level(0).runs().iter().flat_map(Run::iter).filter(|table| counts(table));
    let mut ends: Vec<(&UserKey, bool)> =
        tables.flat_map(|table| [(&table.smallest, false), (&table.largest, true)]).collect();
    // Where one ends and another begins at the same key both count.
    ends.sort_unstable();
    let (mut now, mut most) = (0_usize, 0);
    for (_, end) in ends {
        now = if end { now - 1 } else { now + 1 };
        most = most.max(now);
    }
    most
}
