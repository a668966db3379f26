//! The size of memtables, which the tuner may adjust, and the overflows that the tuner sees.
//!
//! 1. [`ColumnFamily::take_overflows`] tells the tuner which stages have overflowed (ADOC §4).
//! 2. [`ColumnFamily::adjust_memtables`] sets the size of memtables from the next one on.
//! 3. [`ColumnFamily::memtable_switched`] puts it in force when another memtable becomes active.

use std::sync::Arc;

use super::ColumnFamily;
use crate::policy::CfOptions;
use crate::tuner::Overflows;

impl ColumnFamily {
    /// Returns the configured size of memtables.
    pub(crate) fn configured_memtable_bytes(&self) -> u64 {
        self.configured.memtable_bytes
    }

    /// Returns the size of memtables from the next one on.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.adjusted_memtable_bytes.unwrap_or(self.configured.memtable_bytes)
    }

    /// Sets the size of memtables from the next one on.
    pub(crate) fn adjust_memtables(&mut self, bytes: u64) {
        self.adjusted_memtable_bytes = Some(bytes);
    }

    /// Restores the configured size from the next memtable on. Returns true if it was adjusted.
    pub(crate) fn reset_memtables(&mut self) -> bool {
        self.adjusted_memtable_bytes.take().is_some()
    }

    /// Puts the size of a new active memtable in force. Returns true if it has changed.
    pub(super) fn memtable_switched(&mut self) -> bool {
        let bytes = self.memtable_bytes();
        if bytes == self.options.memtable_bytes {
            return false;
        }
        self.set_memtable_bytes(&self.configured.clone(), bytes);
        self.shape_changed();
        true
    }

    /// Puts `configured` in force, with this size of memtables.
    pub(super) fn set_memtable_bytes(&mut self, configured: &Arc<CfOptions>, bytes: u64) {
        self.options = if bytes == configured.memtable_bytes {
            configured.clone()
        } else {
            Arc::new(CfOptions { memtable_bytes: bytes, ..(**configured).clone() })
        };
    }

    /// Returns what has overflowed since the last call. `debt` is true if the compaction debt is
    /// too large.
    pub(crate) fn take_overflows(&mut self, debt: bool) -> Overflows {
        let overflows = std::mem::take(&mut self.overflows);
        // Level 0 may still overflow.
        self.note_level0();
        let redundancy = debt && !self.options.disable_auto_compactions;
        Overflows { redundancy, ..overflows }
    }

    /// Notes an overflow of level 0, by the trigger of the write controller.
    pub(super) fn note_level0(&mut self) {
        let trigger = self.options.level0_slowdown.max(1);
        self.overflows.level0 |=
            !self.options.disable_auto_compactions && self.level0_runs >= trigger;
    }
}
