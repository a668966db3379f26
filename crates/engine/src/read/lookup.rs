//! Point reads on a super version.
//!
//! 1. `range_floor` finds the newest range tombstone over the key. Entries below its sequence
//!    number are deleted.
//! 2. `newest_in_memory` asks the active memtable, then the sealed ones, newest first. The first
//!    one that has the key decides.
//! 3. `search_stored` visits the tables that may have the key, newest first. It checks the key
//!    range, then the filter, then reads a block. A read that looks into several tables is charged
//!    to the first one ([`Charging`]).
//! 4. A value ends the search, and so does a tombstone. From a merge operand on, `get_merged`
//!    collects older operands until a value, a tombstone or the end, and merges them.

use std::ops::Deref;
use std::sync::Arc;

use sateen_control::{SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::perf::{self, PerfMetric};
use sateen_store::block_cache::BlockCache;
use sateen_store::table::OnMiss;
use sateen_store::table::table_cache::TableCache;
use sateen_store::table::{NeededBlock, PinnedValue, Table, hash_key};

use crate::entry::{Visible, malformed};
use crate::metrics::{EngineMetrics, FiltersAsked};
use crate::operators::merge::Operands;
use crate::read::charging::Charging;
use crate::tree::families::ColumnFamilyData;
use crate::tree::super_version::SuperVersion;
use crate::ttl::TIME_BYTES;

/// A value that a read found. A value from a table shares the block that it was read in, and is not
/// copied. It counts as pinned memory until it is dropped.
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

impl From<Vec<u8>> for PinnedSlice {
    /// Returns the bytes as a value that holds nothing else.
    fn from(bytes: Vec<u8>) -> PinnedSlice {
        PinnedSlice(Inner::Owned(bytes.into()))
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

/// Receives a value where it was found: in a memtable, which it must copy, or in a block, which it
/// may share.
pub(crate) trait ValueSink {
    type Out: AsRef<[u8]>;
    fn memory(self, value: &[u8]) -> Self::Out;
    fn block(self, value: PinnedValue) -> Self::Out;
    /// Removes the time from the end of a stored value.
    fn without_time(made: Self::Out) -> Self::Out;
}

/// Returns a [`PinnedSlice`].
pub(crate) struct Pin;

impl ValueSink for Pin {
    type Out = PinnedSlice;
    fn memory(self, value: &[u8]) -> PinnedSlice {
        PinnedSlice(Inner::Owned(value.into()))
    }
    fn block(self, value: PinnedValue) -> PinnedSlice {
        PinnedSlice(Inner::Block(value))
    }
    fn without_time(made: PinnedSlice) -> PinnedSlice {
        PinnedSlice(match made.0 {
            Inner::Owned(bytes) => Inner::Owned(Copy::without_time(bytes.into_vec()).into()),
            Inner::Block(value) => Inner::Block(value.without_end(TIME_BYTES)),
        })
    }
}

/// Returns a `Vec`.
pub(crate) struct Copy;

impl ValueSink for Copy {
    type Out = Vec<u8>;
    fn memory(self, value: &[u8]) -> Vec<u8> {
        value.to_vec()
    }
    fn block(self, value: PinnedValue) -> Vec<u8> {
        value.to_vec()
    }
    fn without_time(mut made: Vec<u8>) -> Vec<u8> {
        made.truncate(made.len().saturating_sub(TIME_BYTES));
        made
    }
}

/// What a point read needs besides the super version.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) family: &'a ColumnFamilyData,
    pub(crate) tables: &'a TableCache,
    pub(crate) blocks: &'a BlockCache,
    pub(crate) metrics: &'a EngineMetrics,
    pub(crate) on_miss: OnMiss,
    /// True if range tombstones do not count.
    pub(crate) ignore_ranges: bool,
}

impl SuperVersion {
    /// Returns the sequence number of the newest range tombstone over `user_key` that a reader at
    /// `as_of` sees, or 0. Entries below it are deleted.
    #[inline]
    fn range_floor(&self, user_key: &[u8], as_of: SeqNo, lookup: &Lookup<'_>) -> SeqNo {
        if !self.has_stored_ranges && !self.active.has_ranges() {
            return SeqNo(0);
        }
        if lookup.ignore_ranges { SeqNo(0) } else { self.newest_range(user_key, as_of) }
    }

    /// Returns the newest range tombstone over `user_key` that a reader at `as_of` sees; 0 if there
    /// is none.
    #[cold]
    fn newest_range(&self, user_key: &[u8], as_of: SeqNo) -> SeqNo {
        let memtables = std::iter::once(&self.active).chain(&self.sealed);
        let in_memory = memtables.filter_map(|memtable| memtable.range_over(user_key, as_of)).max();
        let stored = self.version.range_tombstones().over(user_key, as_of);
        in_memory.max(stored).unwrap_or_default()
    }

    /// Returns the value of `user_key` as of `seqno`.
    pub(crate) fn get<S: ValueSink>(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        lookup: &Lookup<'_>,
        sink: S,
    ) -> Result<Option<S::Out>> {
        let floor = self.range_floor(user_key, seqno, lookup);
        // Tables hold only older entries than memtables, so an entry in memory decides.
        if let Some((seqno, kind, value)) = self.newest_in_memory(user_key, seqno) {
            lookup.metrics.record_memtable_hit();
            if seqno < floor {
                return Ok(None);
            }
            return match Visible::of(Some(kind))? {
                Visible::Value => Ok(Some(sink.memory(value))),
                Visible::Deleted => Ok(None),
                Visible::Operand => self.get_merged(user_key, seqno, lookup, sink).map(Some),
            };
        }
        let _timed = perf::time(PerfMetric::GetFromOutputFilesTime);
        let mut found = None;
        self.search_stored(user_key, floor, lookup, |table| {
            let (blocks, on_miss) = (Some(lookup.blocks), lookup.on_miss);
            found = table.get_unfiltered(user_key, seqno, blocks, on_miss)?;
            Ok(found.is_some())
        })?;
        let Some((seqno, kind, value)) = found else { return Ok(None) };
        if seqno < floor {
            return Ok(None);
        }
        match Visible::of(Some(kind))? {
            Visible::Value => Ok(Some(sink.block(value))),
            Visible::Deleted => Ok(None),
            Visible::Operand => self.get_merged(user_key, seqno, lookup, sink).map(Some),
        }
    }

    /// Returns the sequence number of the newest entry of `user_key` or range tombstone over it, as
    /// of `seqno`; 0 if there is none, and for what every snapshot sees.
    pub(crate) fn newest_seqno(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        lookup: &Lookup<'_>,
    ) -> Result<SeqNo> {
        let floor = self.range_floor(user_key, seqno, lookup);
        if let Some((found, ..)) = self.newest_in_memory(user_key, seqno) {
            return Ok(found.max(floor));
        }
        let mut newest = floor;
        self.search_stored(user_key, floor, lookup, |table| {
            let (blocks, on_miss) = (Some(lookup.blocks), lookup.on_miss);
            let found = table.get_unfiltered(user_key, seqno, blocks, on_miss)?;
            newest = found.as_ref().map_or(newest, |(found, ..)| newest.max(*found));
            Ok(found.is_some())
        })?;
        Ok(newest)
    }

    /// Returns true if a memtable holds the value of `user_key` as of `seqno`. A merge operand does
    /// not count.
    pub(crate) fn has_in_memory(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        lookup: &Lookup<'_>,
    ) -> Result<bool> {
        let Some((found, kind, _)) = self.newest_in_memory(user_key, seqno) else {
            return Ok(false);
        };
        let floor = self.range_floor(user_key, seqno, lookup);
        Ok(found >= floor && Visible::of(Some(kind))? == Visible::Value)
    }

    /// Returns the newest entry of `user_key` as of `seqno` in the memtables.
    #[inline]
    fn newest_in_memory(&self, user_key: &[u8], seqno: SeqNo) -> Option<(SeqNo, ValueKind, &[u8])> {
        let _timed = perf::time(PerfMetric::GetFromMemtableTime);
        let mut memtables = std::iter::once(&self.active).chain(&self.sealed);
        let found = memtables.by_ref().find_map(|memtable| memtable.get(user_key, seqno));
        if perf::is_on() {
            let searched = 1 + self.sealed.len() - memtables.count();
            let all = std::iter::once(&self.active).chain(&self.sealed).take(searched);
            let searched = all.filter(|memtable| !memtable.is_empty()).count();
            perf::add(PerfMetric::GetFromMemtableCount, searched as u64);
        }
        found
    }

    /// Returns false if `user_key` has no value as of `seqno`, as far as memtables, key ranges and
    /// the filters of open tables tell. It does no I/O.
    pub(crate) fn may_contain(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        lookup: &Lookup<'_>,
    ) -> Result<bool> {
        let floor = self.range_floor(user_key, seqno, lookup);
        for memtable in std::iter::once(&self.active).chain(&self.sealed) {
            if let Some((found, kind, _)) = memtable.get(user_key, seqno) {
                return Ok(found >= floor && Visible::of(Some(kind))? != Visible::Deleted);
            }
        }
        let hash = hash_key(user_key);
        let mut runs = self.version.levels().iter().flat_map(|level| level.runs());
        Ok(runs.any(|run| {
            run.find(user_key).filter(|meta| meta.seqno_max >= floor).is_some_and(|meta| {
                let open = lookup.tables.get_open(meta.id);
                open.and_then(|table| table.filter_says(hash)) != Some(false)
            })
        }))
    }

    /// Returns the value of `user_key` as of `seqno`, where its newest entry is a merge operand.
    #[cold]
    fn get_merged<S: ValueSink>(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        lookup: &Lookup<'_>,
        sink: S,
    ) -> Result<S::Out> {
        let options = lookup.family.options();
        let operator = options.stored_merging();
        let merged = |operands: &Operands, existing: Option<&[u8]>| {
            perf::add(PerfMetric::InternalMergePointLookupCount, operands.len() as u64);
            operands.merge(operator.as_ref(), user_key, existing).map(|value| sink.memory(&value))
        };
        let mut operands = Operands::default();
        let floor = self.range_floor(user_key, seqno, lookup);
        // The next entry to look for is this old or older.
        let mut seqno = seqno;
        for memtable in std::iter::once(&self.active).chain(&self.sealed) {
            while let Some((found, kind, value)) = memtable.get(user_key, seqno) {
                if found < floor {
                    return merged(&operands, None);
                }
                match Visible::of(Some(kind))? {
                    Visible::Value => return merged(&operands, Some(value)),
                    Visible::Deleted => return merged(&operands, None),
                    Visible::Operand => operands.push_older(value),
                }
                seqno = before(found)?;
            }
        }
        let mut base = None;
        self.search_stored(user_key, floor, lookup, |table| {
            let (blocks, on_miss) = (Some(lookup.blocks), lookup.on_miss);
            while let Some((found, kind, value)) =
                table.get_unfiltered(user_key, seqno, blocks, on_miss)?
            {
                if found < floor {
                    return Ok(true);
                }
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

    /// Calls `visit` with the tables that may have `user_key` at or above `floor`, newest first,
    /// until it returns true. Counts the filters that were asked.
    fn search_stored(
        &self,
        user_key: &[u8],
        floor: SeqNo,
        lookup: &Lookup<'_>,
        visit: impl FnMut(&Arc<Table>) -> Result<bool>,
    ) -> Result<()> {
        let mut asked = FiltersAsked::default();
        let charging = Charging::new(lookup.family);
        let searched = self.search_asking(user_key, floor, lookup, &mut asked, charging, visit);
        // A read that had to stop for a block begins again, and counts then.
        if !matches!(searched, Err(Error::NotInMemory)) {
            lookup.metrics.record_filters(&asked);
            perf::filters_asked(asked.checks, asked.negatives);
        }
        searched
    }

    /// Returns the block that a read of `user_key` as of `seqno` waits for first; `None` if that
    /// cannot be said without the device.
    pub(crate) fn needs(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        lookup: &Lookup<'_>,
    ) -> Option<NeededBlock> {
        let floor = self.range_floor(user_key, seqno, lookup);
        let mut asked = FiltersAsked::default();
        let mut needed = None;
        let visit = |table: &Arc<Table>| {
            needed = table.needs(user_key, seqno, lookup.blocks);
            let is_here = needed.is_none()
                && table
                    .get_unfiltered(user_key, seqno, Some(lookup.blocks), OnMiss::Refuse)?
                    .is_some();
            Ok(needed.is_some() || is_here)
        };
        // An error is met by the read itself.
        let _met_again =
            self.search_asking(user_key, floor, lookup, &mut asked, Charging::none(), visit);
        needed
    }

    /// Searches as [`SuperVersion::search_stored`] does, and counts the filters in `asked`.
    fn search_asking(
        &self,
        user_key: &[u8],
        floor: SeqNo,
        lookup: &Lookup<'_>,
        asked: &mut FiltersAsked,
        mut charging: Charging,
        mut visit: impl FnMut(&Arc<Table>) -> Result<bool>,
    ) -> Result<()> {
        let hash = hash_key(user_key);
        for level in self.version.levels() {
            for run in level.runs() {
                // The tables of a run do not overlap: only the first one that ends at or behind the
                // key can have it.
                let Some(meta) = run.find(user_key).filter(|meta| meta.seqno_max >= floor) else {
                    continue;
                };
                asked.runs += 1;
                let table = lookup.tables.get_for_client(meta, lookup.on_miss)?;
                charging.looks_further(self);
                // Whole keys first; a filter may hold prefixes only.
                let mut filtered = table.filter_says(hash);
                if filtered.is_none() && table.filters_prefixes_only() {
                    filtered = prefix_says(&table, user_key, lookup);
                }
                asked.checks += u64::from(filtered.is_some());
                if filtered == Some(false) {
                    asked.negatives += 1;
                    charging.missed(table, meta);
                    continue;
                }
                if visit(&table)? {
                    return Ok(());
                }
                asked.false_positives += u64::from(filtered.is_some());
                charging.missed(table, meta);
            }
        }
        Ok(())
    }
}

/// Returns what the filter of `table`, which holds only prefixes, says about the prefix of
/// `user_key`.
#[cold]
fn prefix_says(table: &Table, user_key: &[u8], lookup: &Lookup<'_>) -> Option<bool> {
    let options = lookup.family.options();
    let prefixing = options.prefix_extractor.as_ref()?;
    table.prefix_filter_says(prefixing, hash_key(prefixing.of(user_key)?))
}

/// Returns the sequence number before that of an operand.
fn before(operand: SeqNo) -> Result<SeqNo> {
    // Only values may have the sequence number 0.
    let before = operand.0.checked_sub(1);
    before.map(SeqNo).ok_or_else(|| malformed("an operand without a sequence number"))
}
