//! How large levels may be, how urgent each is, and how many bytes wait for compaction: RocksDB's
//! formulas, and what stripes, Φ and waiting for overlap change of them. That costs O(levels): the
//! sums are kept by the version and by the claims. Stripes look at all tables of level 0,
//! overlap-aware tables at those of the base level.

use super::guards;
use super::in_flight::InFlight;
use super::stripes::depth;
use crate::options::{CfOptions, CompactionStyle};
use crate::version::{KeySketch, LEVELS_MAX, Run, TableMeta, Version};

/// Dynamic levels multiply scores above 1 by this, so that what lies between 1 and it can be said
/// of levels that are urgent but less so.
const SCORE_SCALE: f64 = 10.0;

/// What a level has that is over its target and keeps its tables all the same.
const KEPT_SCORE: f64 = 0.99;

/// A level that has so many times its target gives away what it would rather keep, too.
const CROWDED: u64 = 2;

/// The levels' targets for one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelTargets {
    /// Where level 0 is compacted to.
    pub base_level: u8,
    /// The bytes a level may have; `u64::MAX` where nothing is compacted for its size.
    pub bytes_max: [u64; LEVELS_MAX],
    /// Levels from the base level down to this one hold data that the level below could hold.
    pub lowest_unneeded_level: Option<u8>,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "sizes are far below 2^53, and the casts saturate"
)]
fn scale(bytes: u64, by: f64) -> u64 {
    (bytes as f64 * by) as u64
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
fn ratio(bytes: u64, of: u64) -> f64 {
    bytes as f64 / of.max(1) as f64
}

/// What the base level would have to have if it grew to the next one like deeper levels.
fn stretched(options: &CfOptions) -> u64 {
    let multiplier = options.max_bytes_for_level_multiplier.max(1.0);
    let stretch = (options.base_level_multiplier / multiplier).max(1.0);
    scale(options.max_bytes_for_level_base, stretch)
}

impl LevelTargets {
    /// The targets for `version` under `options`.
    #[must_use]
    pub fn new(version: &Version, options: &CfOptions) -> LevelTargets {
        if options.level_compaction_dynamic_level_bytes {
            LevelTargets::dynamic(version, options)
        } else {
            LevelTargets::fixed(options)
        }
    }

    fn fixed(options: &CfOptions) -> LevelTargets {
        let multiplier = options.max_bytes_for_level_multiplier.max(1.0);
        let mut bytes_max = [u64::MAX; LEVELS_MAX];
        let mut target = stretched(options);
        for bytes in bytes_max.iter_mut().skip(1) {
            *bytes = target;
            target = scale(target, multiplier);
        }
        bytes_max[1] = options.max_bytes_for_level_base;
        LevelTargets { base_level: 1, bytes_max, lowest_unneeded_level: None }
    }

    /// From the largest level upwards, so that the last level holds by far the most of all data.
    fn dynamic(version: &Version, options: &CfOptions) -> LevelTargets {
        let mut bytes_max = [u64::MAX; LEVELS_MAX];
        let last = level_number(version.levels().len() - 1);
        let sizes = || (1..=last).map(|level| version.level(level).bytes());
        let Some(first_used) = (1..=last).find(|level| !version.level(*level).is_empty()) else {
            return LevelTargets { base_level: last, bytes_max, lowest_unneeded_level: None };
        };
        let multiplier = options.max_bytes_for_level_multiplier.max(1.0);
        let base_bytes_max = stretched(options).max(1);
        let base_bytes_min = scale(base_bytes_max, multiplier.recip());

        let mut lowest_unneeded_level = None;
        let mut size = sizes().max().unwrap_or(0);
        for level in (first_used..last).rev() {
            size = scale(size, multiplier.recip());
            if lowest_unneeded_level.is_none() && size <= base_bytes_min {
                lowest_unneeded_level = Some(level);
            }
        }
        let mut base_level = first_used;
        let base_size = if size <= base_bytes_min {
            base_bytes_min + 1
        } else {
            while base_level > 1 && size > base_bytes_max {
                base_level -= 1;
                size = scale(size, multiplier.recip());
            }
            size.clamp(1, base_bytes_max)
        };
        let mut target = base_size;
        for level in base_level..=last {
            let next = scale(target, multiplier);
            // No level below the base may be smaller than level 0 may get. Nor is it of any use if
            // it is nearly as large as the next one, and nearly all of it space that is lost.
            let raised = if options.level0_stripe_bytes == 0 || level == last {
                base_bytes_max
            } else {
                base_bytes_max.min(options.level0_bytes().max(next / 2))
            };
            bytes_max[usize::from(level)] = target.max(raised);
            target = next;
        }
        if options.base_level_multiplier > 0.0 && base_level < last {
            bytes_max[usize::from(base_level)] = options.max_bytes_for_level_base.max(1);
        }
        LevelTargets { base_level, bytes_max, lowest_unneeded_level }
    }

    /// The bytes from which on `level` gives away tables that overlap more than they should, if it
    /// looks at that.
    #[must_use]
    pub fn crowded(&self, level: u8) -> u64 {
        self.bytes_max(level).saturating_mul(CROWDED)
    }

    /// The bytes that `level` may have.
    #[must_use]
    pub fn bytes_max(&self, level: u8) -> u64 {
        self.bytes_max.get(usize::from(level)).copied().unwrap_or(u64::MAX)
    }
}

/// By how many levels all below level 0 should be lifted when a database is opened with these
/// options. With targets that count from level 1 on, what was arranged from the last level up lies
/// so deep that it would meet nothing new for long: it goes as high as the deepest level has room
/// and as the levels above are empty.
#[must_use]
pub fn levels_to_lift(version: &Version, options: &CfOptions) -> usize {
    let mut used = (1..version.levels().len()).filter(|level| !version.levels()[*level].is_empty());
    let Some(first) = used.next() else { return 0 };
    let last = used.next_back().unwrap_or(first);
    if options.level_compaction_dynamic_level_bytes {
        return 0;
    }
    let targets = LevelTargets::fixed(options);
    let bytes = version.levels()[last].bytes();
    let room = |by: &usize| targets.bytes_max.get(last - by).is_some_and(|most| bytes <= *most);
    (0..first).rev().find(room).unwrap_or(0)
}

/// How urgent a level is: from 1 on it is compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelScore {
    /// The level.
    pub level: u8,
    /// Its score.
    pub score: f64,
}

/// The scores of all levels but the last, most urgent first. What is being compacted does not
/// count.
#[must_use]
pub fn scores(
    version: &Version,
    options: &CfOptions,
    targets: &LevelTargets,
    in_flight: &InFlight,
) -> Vec<LevelScore> {
    let level0 = level0_score(version, options, targets, in_flight);
    if options.compaction_style == CompactionStyle::Guards {
        return guards::scores(version, options, targets, in_flight, level0);
    }
    let last = level_number(version.levels().len() - 1);
    let mut scores = Vec::with_capacity(version.levels().len());
    scores.push(LevelScore { level: 0, score: level0 });
    // Bytes that are about to arrive from above: a level they dwarf waits for them.
    let mut arriving = version.level(0).bytes();
    for level in 1..last {
        let total = version.level(level).bytes();
        let bytes = total.saturating_sub(in_flight.bytes(version.column_family(), level));
        let target = targets.bytes_max(level);
        let unneeded = targets.lowest_unneeded_level.filter(|lowest| level <= *lowest);
        let mut score = ratio(bytes, target);
        if options.level_compaction_dynamic_level_bytes {
            if bytes >= target {
                score = ratio(bytes, target.saturating_add(arriving)) * SCORE_SCALE;
            }
            if let Some(lowest) = unneeded.filter(|_| bytes > 0) {
                let above = f64::from(lowest - level);
                score = score.max(SCORE_SCALE * (1.001 + 0.001 * above));
            }
        }
        if unneeded.is_none() && score >= 1.0 && keeps_all(version, options, targets, level) {
            score = KEPT_SCORE;
        }
        arriving += if unneeded.is_some() { total } else { total.saturating_sub(target) };
        scores.push(LevelScore { level, score });
    }
    // Stable: of equals the upper level goes first.
    scores.sort_by(|a, b| b.score.total_cmp(&a.score));
    scores
}

/// Whether `level`, whose tables are cut by what they overlap, has none that should go down: they
/// wait for the next merge from above, which cuts them anew (vLSM §4.2.1).
fn keeps_all(version: &Version, options: &CfOptions, targets: &LevelTargets, level: u8) -> bool {
    if !options.overlap_aware || level != targets.base_level {
        return false;
    }
    let mut tables = version.level(level).sorted().into_iter().flat_map(Run::iter);
    version.level(level).bytes() < targets.crowded(level)
        && !tables.any(|table| is_good(version, options, level, table))
}

/// Whether `table` of `level` overlaps so little for its size that it is good to go down.
fn is_good(version: &Version, options: &CfOptions, level: u8, table: &TableMeta) -> bool {
    let below = version.level(level + 1).sorted();
    let overlap = below
        .map_or(0, |run| run.bytes_in(run.overlap(table.smallest.bytes(), table.largest.bytes())));
    options.is_good_overlap(table.size_bytes, overlap)
}

/// Bytes of `level` in tables that overlap no more of the next level than they should, for their
/// size (vLSM §4.2.1: good ones); none where nothing lies below. About, where it has many tables:
/// so many of them are looked at.
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

fn level0_score(
    version: &Version,
    options: &CfOptions,
    targets: &LevelTargets,
    in_flight: &InFlight,
) -> f64 {
    let cf = version.column_family();
    let level0 = version.level(0);
    let runs = match options.level0_stripe_bytes {
        0 => level0.runs().len().saturating_sub(in_flight.level0_runs(cf)),
        _ => depth(version, |table| !in_flight.is_claimed(table)),
    } as u64;
    if waits_for_overlap(version, options, runs) {
        return KEPT_SCORE;
    }
    let bytes = level0.bytes().saturating_sub(in_flight.bytes(cf, 0));
    let base = options.max_bytes_for_level_base;
    let mut score = ratio(runs, u64::from(options.level0_file_num_compaction_trigger));
    if !options.level_compaction_dynamic_level_bytes {
        return score.max(ratio(bytes, base));
    }
    if bytes >= base {
        // The debt counts level 0 from here on: then it must be compacted, too.
        score = score.max(1.01);
    }
    let base_max = targets.bytes_max(targets.base_level);
    if bytes > base_max {
        // Larger than the base level: that goes before compacting the base level.
        let base_bytes = version.level(targets.base_level).bytes();
        score = score.max(ratio(bytes, base_bytes.max(base_max)));
    }
    if score > 1.0 { score * SCORE_SCALE } else { score }
}

/// Whether so many `runs` of level 0 wait until more of their keys are there more than once: not
/// so many that writers would be slowed down for them.
fn waits_for_overlap(version: &Version, options: &CfOptions, runs: u64) -> bool {
    options.level0_overlap_min > 0.0
        && runs < u64::from(options.level0_overlap_runs_max).min(options.level0_runs_unfelt())
        && level0_overlap(version) < options.level0_overlap_min
}

/// The part of the keys in level 0 that is there more than once: what merging its tables would
/// drop. An estimate, of tables that have a sketch of their keys; 0 if none has.
fn level0_overlap(version: &Version) -> f64 {
    let (mut all, mut union) = (0, KeySketch::default());
    for table in version.level(0).runs().iter().flat_map(Run::iter) {
        if let Some(sketch) = &table.sketch {
            all += sketch.estimate();
            union.merge(sketch);
        }
    }
    if all == 0 { 0.0 } else { 1.0 - ratio(union.estimate().min(all), all) }
}

/// How many runs of level 0 a reader may have to look into for one key.
#[must_use]
pub fn level0_runs(version: &Version, options: &CfOptions) -> usize {
    match options.level0_stripe_bytes {
        0 => version.level(0).runs().len(),
        _ => depth(version, |_| true),
    }
}

/// The bytes that compactions will have to move until every level is within its target.
#[must_use]
pub fn pending_compaction_bytes(
    version: &Version,
    options: &CfOptions,
    targets: &LevelTargets,
) -> u64 {
    if options.compaction_style == CompactionStyle::Guards {
        return guards::pending_bytes(version, options, targets);
    }
    let levels = version.levels().len();
    let level0 = version.level(0);
    let runs = level0_runs(version, options) as u64;
    let due = runs >= u64::from(options.level0_file_num_compaction_trigger)
        || level0.bytes() >= options.max_bytes_for_level_base;
    // What waits of its own will is no debt: nobody would ever work it off.
    let triggered = due && !waits_for_overlap(version, options, runs);
    // Each run of a queue is merged with all of the base level by itself.
    let merges = if options.level0_fifo { level0.runs().len() as u64 } else { 1 };
    let mut pending = if triggered { level0.bytes() } else { 0 };
    let mut moving = pending;
    for level in targets.base_level..level_number(levels - 1) {
        let own = version.level(level).bytes();
        if level == targets.base_level && triggered {
            pending += own.saturating_mul(merges);
        }
        let size = own + moving;
        let keeps = options.overlap_aware && level == targets.base_level;
        let kept = if keeps { targets.crowded(level) } else { targets.bytes_max(level) };
        moving = size.saturating_sub(kept);
        if moving > 0 {
            let below = version.level(level + 1).bytes();
            if below > 0 {
                pending += scale(moving, ratio(below, size) + 1.0);
            }
        }
    }
    if targets.base_level == level_number(levels - 1) && triggered {
        pending += version.level(targets.base_level).bytes().saturating_mul(merges);
    }
    pending
}

/// `index` as a level's number; there are at most [`LEVELS_MAX`].
fn level_number(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}
