//! What all policies say of levels: targets, scores, chains. The values are computed by the
//! policies.

use super::CfOptions;
use crate::version::{LEVELS_MAX, Version};

/// The levels' targets for one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelTargets {
    /// The level that level 0 is compacted into.
    pub base_level: u8,
    /// The bytes that each level may have; `u64::MAX` where nothing is compacted for its size.
    pub bytes_max: [u64; LEVELS_MAX],
    /// The deepest level whose data the level below could hold. The same is true of the levels from
    /// the base level down to it.
    pub lowest_unneeded_level: Option<u8>,
}

impl LevelTargets {
    /// Returns the targets for `version` under `options`.
    #[must_use]
    pub fn new(version: &Version, options: &CfOptions) -> LevelTargets {
        options.policy().targets(version, options)
    }

    /// Returns targets without limits, for policies that compact no level for its size.
    #[must_use]
    pub fn unlimited(base_level: u8) -> LevelTargets {
        LevelTargets { base_level, bytes_max: [u64::MAX; LEVELS_MAX], lowest_unneeded_level: None }
    }

    /// Returns the bytes by which levels below level 0 are beyond their targets, and the bytes of
    /// the largest level without what is beyond its target.
    pub(crate) fn excess(&self, version: &Version) -> (u64, u64) {
        let levels = version.levels().iter().map(|level| level.bytes()).zip(self.bytes_max).skip(1);
        levels.fold((0, 0), |(excess, largest), (bytes, most)| {
            (excess + bytes.saturating_sub(most), largest.max(bytes.min(most)))
        })
    }

    /// Returns true if any level is compacted for its size.
    pub(crate) fn are_limited(&self) -> bool {
        self.bytes_max.iter().any(|most| *most < u64::MAX)
    }

    /// Returns the bytes that `level` may have.
    #[must_use]
    pub fn bytes_max(&self, level: u8) -> u64 {
        self.bytes_max.get(usize::from(level)).copied().unwrap_or(u64::MAX)
    }
}

/// Returns by how many levels everything below level 0 should be lifted when a database is opened
/// with these options.
#[must_use]
pub fn levels_to_lift(version: &Version, options: &CfOptions) -> usize {
    options.policy().levels_to_lift(version, options)
}

/// How urgent a level is: from 1 on it is compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelScore {
    /// The level.
    pub level: u8,
    /// Its score.
    pub score: f64,
}

/// Sorts scores, most urgent first. Of equals the upper level goes first.
pub(super) fn most_urgent_first(mut scores: Vec<LevelScore>) -> Vec<LevelScore> {
    scores.sort_by(|a, b| b.score.total_cmp(&a.score));
    scores
}

/// A chain of compactions, each of which makes room for the one before it (vLSM §2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionChain {
    /// Compactions that depend on each other, one a level.
    pub length: u32,
    /// Bytes that they read: the chain's width.
    pub bytes: u64,
}

/// Returns `index` as a level's number; there are at most [`LEVELS_MAX`].
pub(super) fn level_number(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}
