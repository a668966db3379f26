//! What a read sees: memtables and a version, pinned together by one pointer.
//!
//! What must stay true: a reader takes the super version first and its sequence number second. Then
//! nothing that it may see has been compacted away before it looked.

use std::ops::Deref;
use std::sync::Arc;

use sateen_control::version::Version;
use sateen_control::{IoClass, SeqNo, ValueKind};

use super::block_cache::BlockCache;
use super::db_iter::unreadable_kind;
use super::table_cache::TableCache;
use crate::error::Result;
use crate::memtable::MemTable;
use crate::metrics::{EngineMetrics, FiltersAsked};
use crate::table::{PinnedValue, hash_key};

/// The memtables and the version of a column family at one moment. Never changes.
pub(crate) struct SuperVersion {
    pub(crate) active: Arc<MemTable>,
    /// Newest first.
    pub(crate) sealed: Vec<Arc<MemTable>>,
    pub(crate) version: Arc<Version>,
}

/// A value that was found, kept in memory for as long as this lives: a value from a table shares
/// the block it was read in and is not copied. It counts as pinned memory until dropped.
pub struct PinnedSlice(Inner);

enum Inner {
    Owned(Box<[u8]>),
    Block(PinnedValue),
}

impl Deref for PinnedSlice {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Inner::Owned(bytes) => bytes,
            Inner::Block(value) => value,
        }
    }
}

impl AsRef<[u8]> for PinnedSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for PinnedSlice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PinnedSlice").field(&&**self).finish()
    }
}

/// Receives a value where it was found: copied out of a memtable, or shared with a block.
pub(crate) trait ValueSink {
    type Out: AsRef<[u8]>;
    fn memory(self, value: &[u8]) -> Self::Out;
    fn block(self, value: PinnedValue) -> Self::Out;
}

/// Makes a [`PinnedSlice`].
pub(crate) struct Pin;

impl ValueSink for Pin {
    type Out = PinnedSlice;
    fn memory(self, value: &[u8]) -> PinnedSlice {
        PinnedSlice(Inner::Owned(value.into()))
    }
    fn block(self, value: PinnedValue) -> PinnedSlice {
        PinnedSlice(Inner::Block(value))
    }
}

/// Makes a `Vec`.
pub(crate) struct Copy;

impl ValueSink for Copy {
    type Out = Vec<u8>;
    fn memory(self, value: &[u8]) -> Vec<u8> {
        value.to_vec()
    }
    fn block(self, value: PinnedValue) -> Vec<u8> {
        value.to_vec()
    }
}

/// What a point read needs besides the super version.
pub(crate) struct Lookup<'a> {
    pub(crate) tables: &'a TableCache,
    pub(crate) blocks: &'a BlockCache,
    pub(crate) metrics: &'a EngineMetrics,
    pub(crate) fill_cache: bool,
}

impl SuperVersion {
    pub(crate) fn new(
        active: Arc<MemTable>,
        sealed: Vec<Arc<MemTable>>,
        version: Arc<Version>,
    ) -> SuperVersion {
        SuperVersion { active, sealed, version }
    }

    /// The newest value of `user_key` as of `seqno`.
    pub(crate) fn get<S: ValueSink>(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        lookup: &Lookup<'_>,
        sink: S,
    ) -> Result<Option<S::Out>> {
        for memtable in std::iter::once(&self.active).chain(&self.sealed) {
            if let Some((_, kind, value)) = memtable.get(user_key, seqno) {
                lookup.metrics.record_memtable_hit();
                return Ok(is_value(kind)?.then(|| sink.memory(value)));
            }
        }
        let mut asked = FiltersAsked::default();
        let found = self.get_stored(user_key, seqno, lookup, &mut asked);
        lookup.metrics.record_filters(&asked);
        match found? {
            Some((kind, value)) => Ok(is_value(kind)?.then(|| sink.block(value))),
            None => Ok(None),
        }
    }

    /// The newest entry of `user_key` in the tables.
    fn get_stored(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        lookup: &Lookup<'_>,
        asked: &mut FiltersAsked,
    ) -> Result<Option<(ValueKind, PinnedValue)>> {
        let hash = hash_key(user_key);
        for level in self.version.levels() {
            for run in level.runs() {
                let Some(meta) = run.get(run.lower_bound(user_key)) else { continue };
                if meta.smallest.as_ref() > user_key {
                    continue;
                }
                let table = lookup.tables.get(meta, IoClass::Client)?;
                let filtered = table.filter_says(hash);
                asked.checks += u64::from(filtered.is_some());
                if filtered == Some(false) {
                    asked.negatives += 1;
                    continue;
                }
                let found = table.get_unfiltered(
                    user_key,
                    seqno,
                    Some(lookup.blocks),
                    lookup.fill_cache,
                )?;
                if let Some((_, kind, value)) = found {
                    return Ok(Some((kind, value)));
                }
                asked.false_positives += u64::from(filtered.is_some());
            }
        }
        Ok(None)
    }
}

fn is_value(kind: ValueKind) -> Result<bool> {
    match kind {
        ValueKind::Put => Ok(true),
        ValueKind::Delete => Ok(false),
        ValueKind::Merge | ValueKind::SingleDelete | ValueKind::RangeDelete => {
            Err(unreadable_kind(Some(kind)))
        }
    }
}
