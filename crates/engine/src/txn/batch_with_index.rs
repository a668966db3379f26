//! A batch whose own entries can be read, alone or together with the database.
//!
//! Every write goes to the batch and to its index ([`BatchIndex`]). A read asks the index first. If
//! that does not decide, it asks the database, and merges operands of the batch into what it finds.

use std::borrow::Cow;

use sateen_control::{ColumnFamilyId, Comparator, ValueKind};
use sateen_store::base::error::Result;
use sateen_store::batch::{BatchEntry, BatchItem};

use super::index::{self, Base, BatchIndex, OwnRead};
use crate::batch::WriteBatch;
use crate::db::cursor::Cursor;
use crate::db::family::ColumnFamily;
use crate::db::iter::{Iter, KeyRange};
use crate::db::overlay::Overlay;
use crate::db::{check_family, check_range};
use crate::operators::merge::Merging;
use crate::options::ReadOptions;

/// A batch whose entries can be read before it is written. RocksDB: `WriteBatchWithIndex`.
///
/// - All entries of a key are kept, and the newest one counts, as in the database. Operands are
///   merged, and [`delete_range`](WriteBatchWithIndex::delete_range) hides what is below it.
/// - An iterator shows the batch as it was when the iterator was created.
/// - [`WriteBatchWithIndex::batch`] is what [`Db::write`](crate::Db::write) takes.
///
/// ```
/// use sateen::{ReadOptions, WriteBatchWithIndex, WriteOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// db.put("fig", "1")?;
/// db.put("plum", "2")?;
/// let mut batch = WriteBatchWithIndex::new();
/// batch.put("quince", "3")?;
/// batch.delete("fig")?;
/// let family = db.default_column_family();
/// let both = batch.reading(&family, ReadOptions::default());
/// assert_eq!(both.get("quince")?.as_deref(), Some(&b"3"[..]));
/// let keys: Vec<_> = both.iter()?.map(|entry| entry.unwrap().0).collect();
/// assert_eq!(keys, ["plum", "quince"]);
/// db.write(batch.batch(), &WriteOptions::default())?;
/// assert!(!db.contains_key("fig")?);
/// # Ok::<(), sateen::Error>(())
/// ```
pub struct WriteBatchWithIndex {
    batch: WriteBatch,
    index: BatchIndex,
    /// Orders the keys of the default column family, for the methods that take no handle.
    comparator: Comparator,
}

/// What a batch alone says about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchValue {
    /// The batch sets the key to this value.
    Value(Vec<u8>),
    /// The batch deletes the key.
    Deleted,
    /// The batch merges these operands, oldest first, into a value that it does not have.
    Merge(Vec<Vec<u8>>),
    /// The batch does not write the key.
    Missing,
}

impl Default for WriteBatchWithIndex {
    fn default() -> WriteBatchWithIndex {
        WriteBatchWithIndex::with_comparator(&Comparator::BYTEWISE)
    }
}

impl WriteBatchWithIndex {
    /// Returns an empty batch. Keys of the default column family are compared bytewise.
    #[must_use]
    pub fn new() -> WriteBatchWithIndex {
        WriteBatchWithIndex::default()
    }

    /// Returns an empty batch for a database whose default column family has this comparator. The
    /// limit for values is that of the database.
    #[must_use]
    pub fn with_comparator(comparator: &Comparator) -> WriteBatchWithIndex {
        WriteBatchWithIndex::sized(comparator, u64::MAX)
    }

    /// Returns `batch` with an index. The keys of all column families are compared bytewise.
    ///
    /// # Errors
    /// As [`WriteBatchWithIndex::put`].
    pub fn of_bytewise(batch: &WriteBatch) -> Result<WriteBatchWithIndex> {
        let mut indexed = WriteBatchWithIndex::sized(&Comparator::BYTEWISE, u64::MAX);
        batch.items().try_for_each(|item| match item {
            BatchItem::Write(entry) => indexed.add(&Comparator::BYTEWISE, &entry),
            BatchItem::LogData(data) => indexed.put_log_data(data),
        })?;
        Ok(indexed)
    }

    /// Returns an empty batch with this comparator, and with this limit for values in bytes.
    pub(super) fn sized(comparator: &Comparator, value_bytes_max: u64) -> WriteBatchWithIndex {
        let value_bytes_max = usize::try_from(value_bytes_max).unwrap_or(usize::MAX);
        WriteBatchWithIndex {
            batch: WriteBatch::with_value_bytes_max(value_bytes_max),
            index: BatchIndex::default(),
            comparator: comparator.clone(),
        }
    }

    /// Sets `key` to `value` in the default column family.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// Deletes `key` from the default column family.
    ///
    /// # Errors
    /// As [`WriteBatch::delete`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::Delete, key.as_ref(), &[])
    }

    /// Merges `operand` into the value of `key` in the default column family.
    ///
    /// # Errors
    /// As [`WriteBatch::merge`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::Merge, key.as_ref(), operand.as_ref())
    }

    /// Deletes `key` from the default column family: see
    /// [`Db::single_delete`](crate::Db::single_delete).
    ///
    /// # Errors
    /// As [`WriteBatch::single_delete`].
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::SingleDelete, key.as_ref(), &[])
    }

    /// Deletes the keys from `begin` up to, not including, `end` from the default column family.
    ///
    /// # Errors
    /// As [`WriteBatch::delete_range`]. `InvalidArgument` if `end` comes before `begin`.
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::RangeDelete, begin.as_ref(), end.as_ref())
    }

    /// Adds log data: see [`WriteBatch::put_log_data`].
    ///
    /// # Errors
    /// As [`WriteBatch::put_log_data`].
    pub fn put_log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        self.batch.put_log_data(data)
    }

    fn own(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        let comparator = self.comparator.clone();
        let column_family = ColumnFamilyId(0);
        self.add(&comparator, &BatchEntry { column_family, kind, key, value })
    }

    /// Adds an entry to the batch and to its index.
    pub(crate) fn add(&mut self, comparator: &Comparator, entry: &BatchEntry<'_>) -> Result<()> {
        if entry.kind == ValueKind::RangeDelete {
            check_range(comparator, entry.key, entry.value)?;
        }
        let place = self.batch.count();
        self.batch.add_entry(entry)?;
        self.index.add(comparator, place, entry);
        Ok(())
    }

    /// Returns the batch as a place for writes to a column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatchWithIndex::new();
    /// batch.to(&loans).put("walden", "Ishmael")?;
    /// assert!(batch.reading(&loans, sateen::ReadOptions::default()).contains_key("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn to<'a>(&'a mut self, family: &'a ColumnFamily) -> FamilyBatchWithIndex<'a> {
        FamilyBatchWithIndex { batch: self, family }
    }

    /// Returns the column family, to be read with `options` as if the batch were written.
    pub fn reading<'a>(
        &'a self,
        family: &'a ColumnFamily,
        options: impl Into<Cow<'a, ReadOptions>>,
    ) -> BatchReading<'a> {
        BatchReading { batch: self, family, options: options.into() }
    }

    /// Returns what the batch alone says about a key of `family`.
    ///
    /// # Errors
    /// `MergeFailed` if operands cannot be merged into a value of the batch. `InvalidArgument` if
    /// the batch compares keys otherwise than the column family.
    pub fn get_from_batch(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<BatchValue> {
        let own = index::read(self.overlay(family)?.as_ref(), key.as_ref())?;
        own.alone(key.as_ref(), family.data.options().merge_operator.as_ref())
    }

    /// Returns what the batch alone says about a key of the default column family, of whatever
    /// database. `operator` merges operands into values of the batch.
    ///
    /// ```
    /// use sateen::{BatchValue, WriteBatchWithIndex};
    ///
    /// let mut batch = WriteBatchWithIndex::new();
    /// batch.delete("fig")?;
    /// assert_eq!(batch.get_own("fig", None)?, BatchValue::Deleted);
    /// assert_eq!(batch.get_own("plum", None)?, BatchValue::Missing);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `MergeFailed` and `NoMergeOperator` if operands cannot be merged into a value of the batch.
    pub fn get_own(&self, key: impl AsRef<[u8]>, operator: Option<&Merging>) -> Result<BatchValue> {
        let own = self.index.overlay_of_default(self.batch.count());
        index::read(own.as_ref(), key.as_ref())?.alone(key.as_ref(), operator)
    }

    /// Returns the batch, to be written.
    #[must_use]
    pub fn batch(&self) -> &WriteBatch {
        &self.batch
    }

    /// Returns the batch without its index.
    #[must_use]
    pub fn into_batch(self) -> WriteBatch {
        self.batch
    }

    /// Returns the number of writes.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.batch.count()
    }

    /// Returns true if there is no write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Removes all writes and save points.
    pub fn clear(&mut self) {
        self.batch.clear();
        self.index.clear();
    }

    /// Remembers the present state: see [`WriteBatch::set_save_point`].
    pub fn set_save_point(&mut self) {
        self.batch.set_save_point();
    }

    /// Removes the writes since the last save point, and that save point. The index is built again
    /// from the writes that remain.
    ///
    /// # Errors
    /// `NoSavePoint` if there is none.
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        let before = self.batch.count();
        self.batch.rollback_to_save_point()?;
        if self.batch.count() != before {
            self.index.rebuild(&self.batch);
        }
        Ok(())
    }

    /// Writes `timestamp` over the ends of keys: see [`WriteBatch::update_timestamps`]. The index
    /// is built again.
    ///
    /// # Errors
    /// As [`WriteBatch::update_timestamps`].
    pub fn update_timestamps(
        &mut self,
        timestamp: impl AsRef<[u8]>,
        bytes_of: impl FnMut(ColumnFamilyId) -> usize,
    ) -> Result<()> {
        self.batch.update_timestamps(timestamp, bytes_of)?;
        self.index.rebuild(&self.batch);
        Ok(())
    }

    /// Forgets the last save point and keeps the writes.
    ///
    /// # Errors
    /// `NoSavePoint` if there is none.
    pub fn pop_save_point(&mut self) -> Result<()> {
        self.batch.pop_save_point()
    }

    /// Returns the writes to `family` so far.
    pub(crate) fn overlay(&self, family: &ColumnFamily) -> Result<Option<Overlay>> {
        check_family(&family.data)?;
        self.index.overlay(&family.data, &self.batch)
    }

    /// Returns the value of `key` as if the batch were written. `below` reads the database.
    pub(crate) fn get_over(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        below: impl FnOnce() -> Result<Option<Vec<u8>>>,
    ) -> Result<Option<Vec<u8>>> {
        let OwnRead { operands, base } = index::read(self.overlay(family)?.as_ref(), key)?;
        let existing = match base {
            Base::Below => below()?,
            Base::Deleted => None,
            Base::Value(value) => Some(value),
        };
        if operands.is_empty() {
            return Ok(existing);
        }
        let operator = family.data.options().merge_operator.clone();
        operands.merge(operator.as_ref(), key, existing.as_deref()).map(Some)
    }
}

impl OwnRead {
    /// Returns what the batch alone says about `key`.
    fn alone(self, key: &[u8], operator: Option<&Merging>) -> Result<BatchValue> {
        let OwnRead { operands, base } = self;
        let existing = match &base {
            Base::Below if operands.is_empty() => return Ok(BatchValue::Missing),
            Base::Below => {
                let operands = operands.in_order().into_iter().map(<[u8]>::to_vec);
                return Ok(BatchValue::Merge(operands.collect()));
            }
            Base::Deleted => None,
            Base::Value(value) => Some(value.as_slice()),
        };
        if operands.is_empty() {
            return Ok(existing.map_or(BatchValue::Deleted, |v| BatchValue::Value(v.to_vec())));
        }
        operands.merge(operator, key, existing).map(BatchValue::Value)
    }
}

impl std::fmt::Debug for WriteBatchWithIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteBatchWithIndex").field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// A batch as a place for writes to one column family. Made by [`WriteBatchWithIndex::to`].
#[derive(Debug)]
pub struct FamilyBatchWithIndex<'a> {
    batch: &'a mut WriteBatchWithIndex,
    family: &'a ColumnFamily,
}

impl FamilyBatchWithIndex<'_> {
    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`WriteBatch::delete`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(ValueKind::Delete, key.as_ref(), &[])
    }

    /// Merges `operand` into the value of `key`.
    ///
    /// # Errors
    /// As [`WriteBatch::merge`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.add(ValueKind::Merge, key.as_ref(), operand.as_ref())
    }

    /// Deletes `key`: see [`Db::single_delete`](crate::Db::single_delete).
    ///
    /// # Errors
    /// As [`WriteBatch::single_delete`].
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(ValueKind::SingleDelete, key.as_ref(), &[])
    }

    /// Deletes the keys from `begin` up to, not including, `end`.
    ///
    /// # Errors
    /// As [`WriteBatchWithIndex::delete_range`].
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.add(ValueKind::RangeDelete, begin.as_ref(), end.as_ref())
    }

    fn add(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        let column_family = self.family.data.id();
        let entry = BatchEntry { column_family, kind, key, value };
        self.batch.add(self.family.comparator(), &entry)
    }
}

/// A column family as it would be if a batch were written. Made by
/// [`WriteBatchWithIndex::reading`].
#[derive(Debug)]
pub struct BatchReading<'a> {
    batch: &'a WriteBatchWithIndex,
    family: &'a ColumnFamily,
    options: Cow<'a, ReadOptions>,
}

impl BatchReading<'_> {
    /// Returns the value of `key`, or `None` if it has none.
    ///
    /// # Errors
    /// As [`Db::get`](crate::Db::get). `InvalidArgument` if the batch compares keys otherwise than
    /// the column family.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.batch.get_over(self.family, key, || self.family.reading(&*self.options).get(key))
    }

    /// Returns true if `key` has a value.
    ///
    /// # Errors
    /// As [`BatchReading::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Returns the entries of a range of keys.
    ///
    /// # Errors
    /// As [`Db::range`](crate::Db::range) and [`BatchReading::get`].
    pub fn range(&self, range: impl KeyRange) -> Result<Iter> {
        let own = self.batch.overlay(self.family)?;
        let core = self.family.db().core();
        Iter::range_over(core, &self.family.data, &self.options, &range, own.as_ref())
    }

    /// Returns the entries whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`Db::prefix`](crate::Db::prefix) and [`BatchReading::get`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        let own = self.batch.overlay(self.family)?;
        let core = self.family.db().core();
        Iter::prefix_over(core, &self.family.data, &self.options, prefix.as_ref(), own.as_ref())
    }

    /// Returns all entries.
    ///
    /// # Errors
    /// As [`BatchReading::range`].
    pub fn iter(&self) -> Result<Iter> {
        self.range(..)
    }

    /// Returns a cursor. It must be moved to a key before use.
    ///
    /// # Errors
    /// As [`Db::cursor`](crate::Db::cursor) and [`BatchReading::get`].
    pub fn cursor(&self) -> Result<Cursor> {
        let own = self.batch.overlay(self.family)?;
        Cursor::over(self.family.db().core(), &self.family.data, &self.options, own.as_ref())
    }
}
