//! The size of memtables, which may be adjusted, and what has overflowed.

use std::sync::Arc;

use super::ColumnFamily;
use crate::policy::CfOptions;
use crate::tuner::Overflows;

impl ColumnFamily {
    /// The size of memtables that is configured.
    pub(crate) fn configured_memtable_bytes(&self) -> u64 {
        self.configured.write_buffer_size
    }

    /// The size of memtables from the next one on.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.adjusted_memtable_bytes.unwrap_or(self.configured.write_buffer_size)
    }

    /// From the next one on memtables have this size.
    pub(crate) fn adjust_memtables(&mut self, bytes: u64) {
        self.adjusted_memtable_bytes = Some(bytes);
    }

    /// From the next one on memtables are as configured again. Says whether they were adjusted.
    pub(crate) fn reset_memtables(&mut self) -> bool {
        self.adjusted_memtable_bytes.take().is_some()
    }

    /// Another memtable takes writes: it may have another size. Says whether it has.
    pub(super) fn memtable_switched(&mut self) -> bool {
        let bytes = self.memtable_bytes();
        if bytes == self.options.write_buffer_size {
            return false;
        }
        self.set_memtable_bytes(&self.configured.clone(), bytes);
        self.shape_changed();
        true
    }

    /// `configured`, but for the size of memtables, is in force.
    pub(super) fn set_memtable_bytes(&mut self, configured: &Arc<CfOptions>, bytes: u64) {
        self.options = if bytes == configured.write_buffer_size {
            configured.clone()
        } else {
            Arc::new(CfOptions { write_buffer_size: bytes, ..(**configured).clone() })
        };
    }

    /// What has overflowed since the last call. `debt`: more waits for compaction than may.
    pub(crate) fn take_overflows(&mut self, debt: bool) -> Overflows {
        let overflows = std::mem::take(&mut self.overflows);
        // It may go on.
        self.note_level0();
        let redundancy = debt && !self.options.disable_auto_compactions;
        Overflows { redundancy, ..overflows }
    }

    /// The same trigger as that of the write controller.
    pub(super) fn note_level0(&mut self) {
        let trigger = self.options.level0_slowdown_writes_trigger.max(1);
        self.overflows.level0 |=
            !self.options.disable_auto_compactions && self.level0_runs >= trigger;
    }
}
