//! The super version: the memtables and the version of a column family, pinned together by one
//! pointer.
//!
//! What must stay true: a reader loads the super version first and the visible sequence number
//! second. In the other order a compaction could have dropped an entry that the reader's sequence
//! number still sees.

use std::sync::Arc;

use sateen_control::version::{RangeTombstones, Version};
use sateen_control::{SeqNo, TableId};
use sateen_store::base::error::Result;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::base::sync::atomic::{AtomicU64, Ordering};
use sateen_store::memtable::MemTable;

/// The memtables and the version of a column family at one moment. They never change.
pub(crate) struct SuperVersion {
    pub(crate) active: Arc<MemTable>,
    /// Newest first.
    pub(crate) sealed: Vec<Arc<MemTable>>,
    pub(crate) version: Arc<Version>,
    /// Every entry that was written since the open with a larger sequence number is in a memtable
    /// here, unless its file was ingested.
    pub(crate) stored_through: SeqNo,
    /// True if the version or a sealed memtable has range tombstones.
    pub(crate) has_stored_ranges: bool,
    /// The id of a table that should be compacted for what reads were charged to it; 0 if there is
    /// none.
    charged: AtomicU64,
}

impl SuperVersion {
    pub(crate) fn new(
        active: Arc<MemTable>,
        sealed: Vec<Arc<MemTable>>,
        version: Arc<Version>,
        stored_through: SeqNo,
    ) -> SuperVersion {
        let has_stored_ranges = !version.range_tombstones().is_empty()
            || sealed.iter().any(|memtable| memtable.has_ranges());
        SuperVersion {
            active,
            sealed,
            version,
            stored_through,
            has_stored_ranges,
            charged: AtomicU64::new(0),
        }
    }

    /// Notes that `table` should be compacted for what reads were charged to it, unless another one
    /// is noted. A later read of the table notes it again. Takes no lock.
    pub(crate) fn note_charged(&self, table: TableId) {
        // Loaded before it is stored, as all readers share it.
        if !self.has_charged() {
            self.charged.store(table.0, Ordering::Relaxed);
        }
    }

    /// Returns true if a table is noted.
    pub(crate) fn has_charged(&self) -> bool {
        self.charged.load(Ordering::Relaxed) != 0
    }

    /// Returns the table that was noted last, and forgets it.
    pub(crate) fn take_charged(&self) -> Option<TableId> {
        self.has_charged().then(|| TableId(self.charged.swap(0, Ordering::Relaxed)))
    }

    /// Returns the sequence number of the newest entry or range tombstone for `user_key` in the
    /// memtables, visible or not.
    pub(crate) fn newest_written(&self, user_key: &[u8]) -> Option<SeqNo> {
        let memtables = || std::iter::once(&self.active).chain(&self.sealed);
        let newest = memtables().find_map(|memtable| memtable.get(user_key, SeqNo::MAX));
        let range = memtables().filter_map(|table| table.range_over(user_key, SeqNo::MAX)).max();
        newest.map(|(seqno, ..)| seqno).max(range)
    }

    /// Returns the sequence number of the newest entry for any version of a key in the memtables,
    /// visible or not. `newest` is the key with the newest timestamp that there can be, of `bytes`.
    pub(crate) fn newest_version(&self, newest: &[u8], bytes: usize) -> Result<Option<SeqNo>> {
        let bare = newest.len().saturating_sub(bytes);
        let is_version =
            |key: &[u8]| key.len() == newest.len() && key.get(..bare) == newest.get(..bare);
        let from = key::seek_key(newest, SeqNo::MAX);
        let mut found = None;
        for memtable in std::iter::once(&self.active).chain(&self.sealed) {
            let mut entries = memtable.iter();
            entries.seek(&from)?;
            while entries.valid() && is_version(key::user_key(entries.key())) {
                found = found.max(Some(key::seqno(entries.key())));
                entries.next()?;
            }
        }
        Ok(found)
    }

    /// Returns all range tombstones, or `None` if there are none.
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
