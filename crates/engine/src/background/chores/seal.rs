//! Early seals of the largest memtable, if several databases share a limit on their memtables.

use std::sync::Arc;

use sateen_store::base::sync::atomic::Ordering;

use super::Chores;
use crate::tree::families::ColumnFamilyData;

impl Chores {
    /// Seals the largest memtable, if another database has asked for it and the limit still demands
    /// it. A chore.
    pub(crate) fn seal_early_if_asked(&self) -> bool {
        let Some(buffers) = &self.writes.write_buffers else { return false };
        if !buffers.seal_wanted.swap(false, Ordering::Relaxed) {
            return false;
        }
        let manager = &buffers.manager;
        (manager.wants_flush() || manager.wants_stall()) && self.seal_largest_now()
    }

    /// Seals the largest memtable now. Returns false if all are empty.
    pub(crate) fn seal_largest_now(&self) -> bool {
        let Some(family) = self.largest() else { return false };
        family.seal_early();
        self.writes.pipeline.exclusive(|stage| self.writes.pipeline.seal(stage, &[family.id()]))
    }

    /// Returns the column family with the largest memtable; `None` if all are empty.
    pub(crate) fn largest(&self) -> Option<Arc<ColumnFamilyData>> {
        let families = self.tree.families();
        let filled = families.values().map(|family| (family, family.active_memtable()));
        let filled = filled.filter(|(_, memtable)| !memtable.is_empty());
        let largest = filled.max_by_key(|(_, memtable)| memtable.memory_bytes());
        largest.map(|(family, _)| family.clone())
    }
}
