//! What an observer of data blocks is told of the blocks that readers need.

use sateen_control::{IoClass, SeqNo};

use super::OnMiss;
use super::block::{Cursor, Found};
use super::format::BlockHandle;
use super::reader::Table;
use crate::base::key::TRAILER_BYTES;
use crate::block_cache::{BlockAccess, BlockCache, PointAccess};

impl Table {
    /// Returns what an observer is told of the block at `handle`, which a client needs.
    pub(super) fn access(
        &self,
        handle: BlockHandle,
        bytes: usize,
        is_hit: bool,
        fills_cache: bool,
    ) -> BlockAccess<'static> {
        BlockAccess {
            table: self.id(),
            offset: handle.offset,
            bytes: bytes as u64,
            class: IoClass::Client,
            is_hit,
            fills_cache,
            point: None,
            is_ahead: false,
        }
    }
}

/// A point read in a table, whose blocks are observed.
#[derive(Clone, Copy)]
pub(super) struct ObservedRead<'a> {
    pub(super) cache: &'a BlockCache,
    pub(super) user_key: &'a [u8],
    pub(super) snapshot: SeqNo,
    pub(super) on_miss: OnMiss,
}

impl ObservedRead<'_> {
    /// Returns true if the block at `handle` is in the cache.
    #[cold]
    pub(super) fn is_cached(&self, table: &Table, handle: BlockHandle) -> bool {
        self.cache.has(table.id(), handle.offset)
    }

    /// Tells the observer of a block that was searched, and what was `found` in it.
    #[cold]
    pub(super) fn tell(
        &self,
        table: &Table,
        handle: BlockHandle,
        is_hit: bool,
        (block, found): (&[u8], &Found),
    ) {
        let bytes = |value| (self.user_key.len() + TRAILER_BYTES + value) as u64;
        let entry_bytes = match found {
            Found::Entry(_, range) => Some(bytes(range.len())),
            Found::Absent | Found::End => None,
        };
        let (user_key, snapshot) = (self.user_key, self.snapshot);
        let point = PointAccess { user_key, snapshot, entry_bytes, entries: entries(block) };
        let fills_cache = self.on_miss == OnMiss::ReadAndCache;
        let access = table.access(handle, block.len(), is_hit, fills_cache);
        let access = BlockAccess { point: Some(point), ..access };
        self.cache.observed().tell(|observer| observer.accessed(&access));
    }
}

/// Returns the number of entries of a block.
fn entries(block: &[u8]) -> u64 {
    let mut cursor = Cursor::numbered(SeqNo(0));
    let mut entries = 0;
    let mut moved = cursor.seek_to_first(block);
    while moved.is_ok() && cursor.valid() {
        entries += 1;
        moved = cursor.next(block);
    }
    entries
}
