//! What a read sees: memtables and a version, pinned together by one pointer.
//!
//! What must stay true: a reader takes the super version first and its sequence number second. Then
//! nothing that it may see has been compacted away before it looked.

use std::ops::Deref;
use std::sync::Arc;

use sateen_control::version::Version;
use sateen_control::{IoClass, SeqNo};

use super::block_cache::BlockCache;
use super::db_iter::{Visible, malformed};
use super::table_cache::TableCache;
use crate::column_family::ColumnFamilyData;
use crate::error::Result;
use crate::memtable::MemTable;
use crate::merge::Operands;
use crate::metrics::{EngineMetrics, FiltersAsked};
use crate::table::{PinnedValue, Table, hash_key};

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
    pub(crate) family: &'a ColumnFamilyData,
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
            if let Some((seqno, kind, value)) = memtable.get(user_key, seqno) {
                lookup.metrics.record_memtable_hit();
                return match Visible::of(Some(kind))? {
                    Visible::Value => Ok(Some(sink.memory(value))),
                    Visible::Deleted => Ok(None),
                    Visible::Operand => self.get_merged(user_key, seqno, lookup, sink).map(Some),
                };
            }
        }
        let mut found = None;
        self.search_stored(user_key, lookup, |table| {
            let (blocks, fill_cache) = (Some(lookup.blocks), lookup.fill_cache);
            found = table.get_unfiltered(user_key, seqno, blocks, fill_cache)?;
            Ok(found.is_some())
        })?;
        let Some((seqno, kind, value)) = found else { return Ok(None) };
        match Visible::of(Some(kind))? {
            Visible::Value => Ok(Some(sink.block(value))),
            Visible::Deleted => Ok(None),
            Visible::Operand => self.get_merged(user_key, seqno, lookup, sink).map(Some),
        }
    }

    /// The value of `user_key`, whose newest entry is an operand, as of `seqno`.
    #[cold]
    fn get_merged<S: ValueSink>(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        lookup: &Lookup<'_>,
        sink: S,
    ) -> Result<S::Out> {
        let options = lookup.family.options();
        let operator = options.merge_operator.as_ref();
        let merged = |operands: &Operands, existing: Option<&[u8]>| {
            operands.merge(operator, user_key, existing).map(|value| sink.memory(&value))
        };
        let mut operands = Operands::default();
        // What is looked for next is this old, or older.
        let mut seqno = seqno;
        for memtable in std::iter::once(&self.active).chain(&self.sealed) {
            while let Some((found, kind, value)) = memtable.get(user_key, seqno) {
                match Visible::of(Some(kind))? {
                    Visible::Value => return merged(&operands, Some(value)),
                    Visible::Deleted => return merged(&operands, None),
                    Visible::Operand => operands.push_older(value),
                }
                seqno = before(found)?;
            }
        }
        let mut base = None;
        self.search_stored(user_key, lookup, |table| {
            let (blocks, fill_cache) = (Some(lookup.blocks), lookup.fill_cache);
            while let Some((found, kind, value)) =
                table.get_unfiltered(user_key, seqno, blocks, fill_cache)?
            {
                match Visible::of(Some(kind))? {
                    Visible::Value => {
                        base = Some(value);
                        return Ok(true);
                    }
                    Visible::Deleted => return Ok(true),
                    Visible::Operand => operands.push_older(&value),
                }
                seqno = before(found)?;
            }
            Ok(false)
        })?;
        merged(&operands, base.as_deref())
    }

    /// Hands `visit` the tables that may have `user_key`, newest first, until it has found enough.
    fn search_stored(
        &self,
        user_key: &[u8],
        lookup: &Lookup<'_>,
        visit: impl FnMut(&Table) -> Result<bool>,
    ) -> Result<()> {
        let mut asked = FiltersAsked::default();
        let searched = self.search_asking(user_key, lookup, &mut asked, visit);
        lookup.metrics.record_filters(&asked);
        searched
    }

    fn search_asking(
        &self,
        user_key: &[u8],
        lookup: &Lookup<'_>,
        asked: &mut FiltersAsked,
        mut visit: impl FnMut(&Table) -> Result<bool>,
    ) -> Result<()> {
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
                if visit(&table)? {
                    return Ok(());
                }
                asked.false_positives += u64::from(filtered.is_some());
            }
        }
        Ok(())
    }
}

/// The newest sequence number older than that of an operand.
fn before(operand: SeqNo) -> Result<SeqNo> {
    // Only values are ever given the number 0.
    let before = operand.0.checked_sub(1);
    before.map(SeqNo).ok_or_else(|| malformed("an operand without a sequence number"))
}
