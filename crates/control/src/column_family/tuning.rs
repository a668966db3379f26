//! The size of memtables and of what belongs to the same batch, which the tuner may adjust, the
//! overflows that the tuner sees, and what is learned from samples.
//!
//! 1. [`ColumnFamily::take_overflows`] tells the tuner which stages have overflowed (ADOC §4).
//! 2. [`ColumnFamily::adjust_memtables`] sets the batch from the next memtable on.
//! 3. [`ColumnFamily::memtable_switched`] puts it in force when another memtable becomes active.
//! 4. [`ColumnFamily::reset_memtables`] restores the configured sizes.
//! 5. [`ColumnFamily::sampled`] follows the rate of writes. [`ColumnFamily::learn_reads`] fits the
//!    number of runs that collect in level 0 to it and to what reads cost.

use std::sync::Arc;

use super::ColumnFamily;
use crate::arithmetic::{part_of, scale};
use crate::options::{DeviceProfile, TunerBatch};
use crate::policy::CfOptions;
use crate::reads::{Collecting, ReadCosts};
use crate::tuner::Overflows;

/// The fill of a full memtable, in [`Window::fill`].
const FULL: u64 = 1_000_000;

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

/// What a window of the tuner has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// The most runs of level 0 while they were to be compacted.
    level0_runs: u32,
    /// Whether a memtable was full before the one before it was flushed.
    pub(super) memory: bool,
    /// The largest part of the active memtable that was full while another one waited for its
    /// flush, of [`FULL`].
    fill: u64,
}

impl ColumnFamily {
    /// Takes in the end of a sample.
    pub(crate) fn sampled(&mut self, over_ns: u64) {
        let filled = std::mem::take(&mut self.filled);
        self.fill.add(filled, over_ns);
        self.fill_long.add(filled, over_ns);
    }

    /// Fits the number of runs that start a compaction out of level 0 to what reads cost. Returns
    /// true if it has changed.
    pub(crate) fn learn_reads(&mut self, costs: &ReadCosts, device: DeviceProfile) -> bool {
        let levels = self.version.levels().iter().skip(1).filter(|level| !level.is_empty());
        let collecting = Collecting {
            fill: self.fill_long.per_second(),
            base_bytes: self.version.level(self.targets.base_level).bytes(),
            runs: u64::from(self.level0_runs) + levels.count() as u64,
            device,
        };
        let before = self.level0_collects;
        if self.policy.level0_collects_runs() {
            self.level0_collects = collecting.next(&self.options, costs, before);
        }
        if self.level0_collects == before {
            return false;
        }
        self.apply_batch();
        self.shape_changed();
        true
    }

    /// Returns the rate at which clients write into the memtables, in bytes per second.
    pub(crate) fn fill(&self) -> u64 {
        self.fill.per_second()
    }

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

    /// Puts the configured options in force, with the sizes of the batch and what is learned.
    pub(super) fn apply_batch(&mut self) {
        self.options = match self.batch {
            Some(batch) => Arc::new(batch.applied(&self.configured)),
            None => self.configured.clone(),
        };
        if self.level0_collects > 0 {
            Arc::make_mut(&mut self.options).leveled.level0_collects = self.level0_collects;
        }
    }

    /// Returns what has overflowed since the last call, if a stage overflows at `threshold` of its
    /// limit. `debt` is true if the compaction debt is too large.
    pub(crate) fn take_overflows(&mut self, debt: bool, threshold: f64) -> Overflows {
        let window = self.window;
        self.forget_overflows();
        let fill_limit = part_of(FULL, threshold);
        Overflows {
            level0: window.level0_runs >= level0_limit(&self.options, threshold),
            redundancy: debt && !self.options.disable_auto_compactions,
            memory: window.memory || fill_limit < FULL && window.fill >= fill_limit,
        }
    }

    /// Begins another window. Level 0 may still overflow.
    pub(crate) fn forget_overflows(&mut self) {
        self.window = Window::default();
        self.note_level0();
    }

    /// Notes the runs of level 0.
    pub(super) fn note_level0(&mut self) {
        if !self.options.disable_auto_compactions {
            self.window.level0_runs = self.window.level0_runs.max(self.level0_runs);
        }
    }

    /// Notes how full the active memtable is, which is sealed at `size_bytes`, while another one
    /// waits for its flush.
    pub(super) fn note_fill(&mut self, active_bytes: u64, size_bytes: u64) {
        let full = size_bytes.min(self.options.memtable_bytes);
        let fill = scale(active_bytes, FULL, full);
        self.window.fill = self.window.fill.max(fill);
    }
}

/// Returns the number of runs at which level 0 overflows: the given part of those at which the
/// write controller slows writers down, but no fewer than start a compaction.
fn level0_limit(options: &CfOptions, threshold: f64) -> u32 {
    let slowdown = options.level0_slowdown.max(1);
    let runs = part_of(slowdown.into(), threshold).max(options.level0_trigger.into());
    u32::try_from(runs).unwrap_or(u32::MAX).clamp(1, slowdown)
}
