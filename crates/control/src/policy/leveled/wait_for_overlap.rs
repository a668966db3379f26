//! Lets level 0 wait until its runs repeat keys (TRIAD): merging runs that repeat no key drops
//! nothing, but rewrites the base level nevertheless.
//!
//! 1. Each table of level 0 has a sketch of its keys. [`repeated_part`] estimates from the sketches
//!    which part of the keys occurs more than once.
//! 2. [`waits_for_overlap`] lets level 0 wait while that part is below `level0_overlap_min`.
//! 3. The wait ends at `level0_overlap_runs_max` runs if they have as many bytes as that many
//!    memtables. A run is smaller than its memtable where keys are overwritten within it, and
//!    smaller runs would end the wait too early. It ends in any case before the number of runs
//!    slows writers down, which also limits the runs that a reader looks into.

use crate::geometry::repeated_part;
use crate::policy::CfOptions;
use crate::version::Version;

/// Returns true if level 0, with `runs` of `bytes` together that lie on top of each other, waits
/// for more overlap.
pub(super) fn waits_for_overlap(
    version: &Version,
    options: &CfOptions,
    runs: u64,
    bytes: u64,
) -> bool {
    let leveled = &options.leveled;
    let runs_max = u64::from(leveled.level0_overlap_runs_max);
    let few = runs < runs_max || bytes < runs_max.saturating_mul(options.memtable_bytes);
    leveled.level0_overlap_min > 0.0
        && few
        && runs < options.level0_runs_unfelt()
        && repeated_part(version.level(0).runs()) < leveled.level0_overlap_min
}
