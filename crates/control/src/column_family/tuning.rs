//! The size of memtables and of what belongs to the same batch, which the tuner may adjust, and the
//! overflows that the tuner sees.
//!
//! 1. [`ColumnFamily::take_overflows`] tells the tuner which stages have overflowed (ADOC §4).
//! 2. [`ColumnFamily::adjust_memtables`] sets the batch from the next memtable on.
//! 3. [`ColumnFamily::memtable_switched`] puts it in force when another memtable becomes active.
//! 4. [`ColumnFamily::reset_memtables`] restores the configured sizes.

use std::sync::Arc;

use super::ColumnFamily;
use crate::arithmetic::scale;
use crate::options::TunerBatch;
use crate::policy::CfOptions;
use crate::tuner::Overflows;

/// An adjusted batch: the size of memtables, and what follows it (ADOC §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    memtable_bytes: u64,
    kind: TunerBatch,
}

impl Batch {
    /// Returns `configured` with the sizes of this batch. The ratios of memtables, tables and the
    /// base level stay as they are configured, so the base level holds as many runs as before.
    fn applied(self, configured: &CfOptions) -> CfOptions {
        let mut options =
            CfOptions { memtable_bytes: self.memtable_bytes, ..CfOptions::clone(configured) };
        if self.kind == TunerBatch::Paper {
            let grown = |bytes| scale(bytes, self.memtable_bytes, configured.memtable_bytes);
            options.table_bytes = grown(configured.table_bytes);
            options.level_base_bytes = grown(configured.level_base_bytes);
        }
        options
    }
}

impl ColumnFamily {
    /// Returns the configured size of memtables.
    pub(crate) fn configured_memtable_bytes(&self) -> u64 {
        self.configured.memtable_bytes
    }

    /// Returns the size of memtables from the next one on.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.next_batch.map_or(self.configured.memtable_bytes, |batch| batch.memtable_bytes)
    }

    /// Sets the size of memtables from the next one on, and with it that of what follows.
    pub(crate) fn adjust_memtables(&mut self, bytes: u64, kind: TunerBatch) {
        self.next_batch = Some(Batch { memtable_bytes: bytes, kind });
    }

    /// Restores the configured sizes: that of memtables from the next one on, because the active
    /// one keeps its size, and the others at once. Returns true if memtables were adjusted.
    pub(crate) fn reset_memtables(&mut self) -> bool {
        if let Some(batch) = self.batch.as_mut().filter(|batch| batch.kind == TunerBatch::Paper) {
            batch.kind = TunerBatch::Memtable;
            self.apply_batch();
            self.shape_changed();
        }
        self.next_batch.take().is_some()
    }

    /// Puts the batch of a new active memtable in force. Returns true if it has changed.
    ///
    /// The memtable is sealed at `size_bytes`, which is less than what was adjusted if memory is
    /// short. Then tables and the base level follow the memtable that there is, but no further down
    /// than they are configured.
    pub(super) fn memtable_switched(&mut self, size_bytes: u64) -> bool {
        let configured = self.configured.memtable_bytes;
        let fitted = |batch: Batch| Batch {
            memtable_bytes: batch.memtable_bytes.min(size_bytes).max(configured),
            ..batch
        };
        let next = self.next_batch.map(fitted).filter(|batch| batch.memtable_bytes != configured);
        if next == self.batch {
            return false;
        }
        self.batch = next;
        self.apply_batch();
        self.shape_changed();
        true
    }

    /// Replaces the configured options. Returns true if a size has changed that belongs to the
    /// batch.
    pub(super) fn configure(&mut self, options: Arc<CfOptions>) -> bool {
        let resized = self.configured.memtable_bytes != options.memtable_bytes;
        let sizes = |options: &CfOptions| (options.table_bytes, options.level_base_bytes);
        let mut batches = [self.batch, self.next_batch].into_iter().flatten();
        let redone = batches.any(|batch| batch.kind == TunerBatch::Paper)
            && sizes(&self.configured) != sizes(&options);
        if resized {
            self.batch = None;
        }
        self.configured = options;
        self.apply_batch();
        resized || redone
    }

    /// Puts the configured options in force, with the sizes of the batch.
    fn apply_batch(&mut self) {
        self.options = match self.batch {
            Some(batch) => Arc::new(batch.applied(&self.configured)),
            None => self.configured.clone(),
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
