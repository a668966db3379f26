//! What a reader pins with one pointer: the memtables and the version of a column family.
//!
//! What must stay true: a reader takes the super version first and its sequence number second. Then
//! no compaction can have removed what it may see.

use std::sync::Arc;

use sateen_control::version::{RangeTombstones, Version};
use sateen_store::memtable::MemTable;

/// The memtables and the version of a column family at one moment. Never changes.
pub(crate) struct SuperVersion {
    pub(crate) active: Arc<MemTable>,
    /// Newest first.
    pub(crate) sealed: Vec<Arc<MemTable>>,
    pub(crate) version: Arc<Version>,
    /// Whether ranges are deleted by any of it but the active memtable.
    pub(crate) has_stored_ranges: bool,
}

impl SuperVersion {
    pub(crate) fn new(
        active: Arc<MemTable>,
        sealed: Vec<Arc<MemTable>>,
        version: Arc<Version>,
    ) -> SuperVersion {
        let has_stored_ranges = !version.range_tombstones().is_empty()
            || sealed.iter().any(|memtable| memtable.has_ranges());
        SuperVersion { active, sealed, version, has_stored_ranges }
    }

    /// All deletions of ranges; `None` if there are none.
    pub(crate) fn ranges(&self) -> Option<RangeTombstones> {
        if !self.has_stored_ranges && !self.active.has_ranges() {
            return None;
        }
        let memtables = std::iter::once(&self.active).chain(&self.sealed);
        let in_memory: Vec<_> = memtables.filter_map(|memtable| memtable.ranges()).collect();
        let in_memory: Vec<_> =
            in_memory.iter().flat_map(|ranges| ranges.iter()).cloned().collect();
        Some(self.version.range_tombstones().changed(&in_memory, &[]))
    }
}
