//! The target size of each level: RocksDB's formulas, and what stripes and Φ
//! (`base_level_multiplier`) change.
//!
//! 1. [`fixed`] counts from level 1 on: the base level has its configured size, and each level
//!    below is a multiple of the one above.
//! 2. [`dynamic`] counts from the largest level upwards, so that the last level holds most of the
//!    data. The base level is the first one that the data needs.
//! 3. [`levels_to_lift`] is for a tree that was built with dynamic targets and gets fixed ones. It
//!    returns by how many levels the tree is lifted.

use super::super::levels::level_number;
use crate::policy::{CfOptions, LevelTargets};
use crate::version::{LEVELS_MAX, Version};

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "sizes are far below 2^53, and the casts saturate"
)]
/// Returns `bytes` times `by`.
pub(super) fn scale(bytes: u64, by: f64) -> u64 {
    (bytes as f64 * by) as u64
}

/// Returns the ratio of `bytes` to `of`.
#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
pub(super) fn ratio(bytes: u64, of: u64) -> f64 {
    bytes as f64 / of.max(1) as f64
}

/// Returns the size that the base level would have if the step to the next level were as wide as
/// those between deeper levels.
fn stretched(options: &CfOptions) -> u64 {
    let multiplier = options.level_multiplier.max(1.0);
    let stretch = (options.leveled.base_level_multiplier / multiplier).max(1.0);
    scale(options.level_base_bytes, stretch)
}

/// Returns targets that count from level 1 on.
pub(in crate::policy) fn fixed(options: &CfOptions) -> LevelTargets {
    let multiplier = options.level_multiplier.max(1.0);
    let mut bytes_max = [u64::MAX; LEVELS_MAX];
    let mut target = stretched(options);
    for bytes in bytes_max.iter_mut().skip(1) {
        *bytes = target;
        target = scale(target, multiplier);
    }
    bytes_max[1] = options.level_base_bytes;
    LevelTargets { base_level: 1, bytes_max, lowest_unneeded_level: None }
}

/// Returns targets that count from the largest level upwards.
pub(super) fn dynamic(version: &Version, options: &CfOptions) -> LevelTargets {
    let mut bytes_max = [u64::MAX; LEVELS_MAX];
    let last = level_number(version.levels().len() - 1);
    let sizes = || (1..=last).map(|level| version.level(level).bytes());
    let Some(first_used) = (1..=last).find(|level| !version.level(*level).is_empty()) else {
        return LevelTargets::unlimited(last);
    };
    let multiplier = options.level_multiplier.max(1.0);
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
        // No level below the base level may be smaller than level 0 can get. A level that is nearly
        // as large as the next one is of no use either: nearly all of it is space amplification.
        let raised = if options.leveled.level0_stripe_bytes == 0 || level == last {
            base_bytes_max
        } else {
            base_bytes_max.min(options.level0_bytes().max(next / 2))
        };
        bytes_max[usize::from(level)] = target.max(raised);
        target = next;
    }
    if options.leveled.base_level_multiplier > 0.0 && base_level < last {
        bytes_max[usize::from(base_level)] = options.level_base_bytes.max(1);
    }
    LevelTargets { base_level, bytes_max, lowest_unneeded_level }
}

/// Returns by how many levels everything below level 0 should be lifted for [`fixed`] targets. A
/// tree that was built from the last level upwards lies so deep that new data would not reach it
/// for long. It is lifted as far as the deepest level has room and the levels above are empty.
pub(in crate::policy) fn levels_to_lift(version: &Version, options: &CfOptions) -> usize {
    let mut used = (1..version.levels().len()).filter(|level| !version.levels()[*level].is_empty());
    let Some(first) = used.next() else { return 0 };
    let last = used.next_back().unwrap_or(first);
    let targets = fixed(options);
    let bytes = version.levels()[last].bytes();
    let room = |by: &usize| targets.bytes_max.get(last - by).is_some_and(|most| bytes <= *most);
    (0..first).rev().find(room).unwrap_or(0)
}
