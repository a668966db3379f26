//! The shape of a version: which runs its levels may hold is up to the policy that it was made for.
//!
//! 1. [`Version::apply`] finds the policy by the style that the version, or the edit, records.
//! 2. An edit that adds a run which [`CompactionPolicy::admits`](super::CompactionPolicy::admits)
//!    not is refused.
//! 3. [`Version::validate`] checks all runs in the same way.
//! 4. [`CfOptions::admits_all`] tells before another style is chosen for a version that it cannot
//!    be: some of its runs would not be admitted.

use super::{CfOptions, CompactionStyle};
use crate::types::Epoch;
use crate::version::{EditError, Version, VersionEdit};

/// Returns true if a version that records `style` may have a run of `epoch` in `level`. A style
/// that is not known has the shape of the default one.
fn admits(style: Option<&str>, level: u8, epoch: Epoch) -> bool {
    let style = style.and_then(CompactionStyle::from_name).unwrap_or_default();
    style.policy().admits(level, epoch)
}

impl Version {
    /// Returns the version after `edit`: removals first, then additions. Costs O(log n) a table.
    ///
    /// # Errors
    /// If the edit contradicts this version, or its policy does not admit a run. This version is
    /// untouched in any case.
    pub fn apply(&self, edit: &VersionEdit) -> Result<Version, EditError> {
        self.apply_where(edit, admits)
    }

    /// Checks everything that must hold of a version: the order of runs, no shared key within a
    /// run, no table twice, bounds, sums, and that its policy admits each run. O(n log n): for
    /// tests, `check`, and recovery.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn validate(&self) -> Result<(), EditError> {
        self.validate_where(admits)
    }
}

impl CfOptions {
    /// Returns true if the policy of these options admits every run of `version`.
    #[must_use]
    pub fn admits_all(&self, version: &Version) -> bool {
        self.compaction_style.admits_all(version)
    }
}

impl CompactionStyle {
    /// Returns true if this style admits every run of `version`.
    #[must_use]
    pub fn admits_all(self, version: &Version) -> bool {
        let mut runs = (0u8..)
            .zip(version.levels())
            .flat_map(|(number, level)| level.runs().iter().map(move |run| (number, run.epoch())));
        runs.all(|(level, epoch)| self.policy().admits(level, epoch))
    }
}
