//! The space that a column family takes, and whether it has a limit
//! (`space_amplification_max`).

use super::ColumnFamily;

impl ColumnFamily {
    /// Returns true if levels beyond their targets and dead tables have a limit. Without targets
    /// there is none.
    pub(crate) fn is_limited_in_space(&self) -> bool {
        self.options.space_amplification_max > 0.0 && self.targets.are_limited()
    }

    /// Returns the bytes of its tables.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.version.bytes()
    }

    /// Returns the bytes of levels beyond their targets, and of the largest level within its
    /// target.
    pub(crate) fn excess(&self) -> (u64, u64) {
        self.targets.excess(&self.version)
    }
}
