//! Which of several directories a table is written to, as RocksDB does with `cf_paths`: newer data
//! goes to earlier directories, older data to later ones.
//!
//! What must stay true: where levels have targets, a deeper level never has an earlier directory.

use super::{CfOptions, LevelTargets};

/// Returns the directory for tables of `level`: for level 0, to which flushes write, the first one,
/// and for other levels the first one in which the level has room behind the levels above it.
/// Directories hold the levels in order, each whole; what is left of a directory that is too small
/// for the next level stays unused. Level 0 counts as large as the base level. The last directory
/// takes what has no room elsewhere.
pub(super) fn path_of_level(options: &CfOptions, targets: &LevelTargets, level: u8) -> usize {
    let last = options.path_bytes.len().saturating_sub(1);
    if level == 0 {
        return 0;
    }
    let mut path = 0;
    let mut room = options.path_bytes.first().copied().unwrap_or_default();
    for above in 0..=level {
        let bytes = level_bytes(options, targets, above);
        while path < last && bytes > room {
            path += 1;
            room = options.path_bytes.get(path).copied().unwrap_or_default();
        }
        room = room.saturating_sub(bytes);
    }
    path
}

/// Returns the bytes that a level is expected to have. Levels between level 0 and the base level
/// are empty.
fn level_bytes(options: &CfOptions, targets: &LevelTargets, level: u8) -> u64 {
    if level > 0 && level < targets.base_level {
        return 0;
    }
    match targets.bytes_max(level) {
        // Level 0, and the last level of an empty tree.
        u64::MAX => options.level_base_bytes,
        bytes => bytes,
    }
}

/// Returns the directory for a run of `bytes`, where runs have no targets: the first one that has
/// room for the run, and, with the directories before it, for the newer runs that will collect
/// until it is merged. These grow to about its own size, less `size_ratio` percent.
pub(super) fn path_of_run(options: &CfOptions, bytes: u64) -> usize {
    let last = options.path_bytes.len().saturating_sub(1);
    let percent = 100_u64.saturating_sub(options.tiered.size_ratio.into());
    let newer = bytes.saturating_mul(percent) / 100;
    let mut before = 0_u64;
    for (path, room) in options.path_bytes.iter().enumerate().take(last) {
        if *room > bytes && before.saturating_add(room - bytes) > newer {
            return path;
        }
        before = before.saturating_add(*room);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::leveled::fixed_targets;

    const GIB: u64 = 1 << 30;

    fn with(path_bytes: &[u64]) -> CfOptions {
        CfOptions {
            path_bytes: path_bytes.to_vec(),
            level_base_bytes: GIB,
            level_multiplier: 10.0,
            ..CfOptions::default()
        }
    }

    fn paths(path_bytes: &[u64]) -> Vec<usize> {
        let options = with(path_bytes);
        let targets = fixed_targets(&options);
        (0..7).map(|level| path_of_level(&options, &targets, level)).collect()
    }

    #[test]
    fn levels_fill_the_directories_in_order() {
        assert_eq!(paths(&[]), [0; 7]);
        assert_eq!(paths(&[0]), [0; 7], "a single directory takes everything");
        assert_eq!(paths(&[2 * GIB, 0]), [0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(paths(&[12 * GIB, 0]), [0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(paths(&[GIB, 11 * GIB, 0]), [0, 1, 1, 2, 2, 2, 2]);
        // A directory without room for any level is passed over.
        assert_eq!(paths(&[GIB / 2, GIB / 2, 2 * GIB, GIB]), [0, 2, 3, 3, 3, 3, 3]);
        // What is left behind level 1 is not used for level 3.
        assert_eq!(paths(&[5 * GIB, 10 * GIB, GIB]), [0, 0, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn levels_above_the_base_level_take_no_room() {
        let options = with(&[2 * GIB, GIB]);
        let mut targets = LevelTargets::unlimited(5);
        targets.bytes_max[5] = GIB;
        targets.bytes_max[6] = 10 * GIB;
        let path = |level| path_of_level(&options, &targets, level);
        assert_eq!([0, 5, 6].map(path), [0, 0, 1]);
        // The last level of an empty tree counts like a base level.
        assert_eq!(path_of_level(&options, &LevelTargets::unlimited(6), 6), 0);
    }

    #[test]
    fn a_deeper_level_is_never_earlier() {
        for first in 1..30 {
            for second in 1..30 {
                let paths = paths(&[first * GIB, second * GIB, 0]);
                assert!(paths.is_sorted(), "{first} {second}: {paths:?}");
            }
        }
    }

    #[test]
    fn runs_leave_room_for_newer_ones() {
        let options = with(&[32, 64, 1]);
        let path = |bytes| path_of_run(&options, bytes);
        assert_eq!([1, 10, 17, 40, 63, 64, 1000].map(path), [0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(path_of_run(&with(&[]), 1000), 0);
        assert_eq!(path_of_run(&with(&[1]), 1000), 0);
    }
}
