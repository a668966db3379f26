//! A column family together with the options of its reads or writes.

use std::borrow::Cow;
use std::sync::Arc;

use sateen_control::ValueKind;
use sateen_store::base::error::Result;

use super::cursor::Cursor;
use super::iter::{Iter, KeyRange};
use super::{Db, check_family};
use crate::options::{ReadOptions, WriteOptions};
use crate::read::lookup::{Copy, Pin, PinnedSlice};
use crate::tree::families::ColumnFamilyData;

/// A column family to be read with options other than the default ones, such as a snapshot.
/// [`Db::at`], [`Db::reading`] and the same methods of [`ColumnFamily`](crate::ColumnFamily) return
/// it.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// db.put("fig", "1")?;
/// let snapshot = db.snapshot();
/// db.delete("fig")?;
/// let before = db.at(&snapshot);
/// assert_eq!(before.get("fig")?.as_deref(), Some(&b"1"[..]));
/// assert_eq!(before.range(.."g")?.count(), 1);
/// assert_eq!(db.range(.."g")?.count(), 0);
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone)]
pub struct Reading<'a> {
    db: &'a Db,
    family: &'a Arc<ColumnFamilyData>,
    options: Cow<'a, ReadOptions>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        db: &'a Db,
        family: &'a Arc<ColumnFamilyData>,
        options: Cow<'a, ReadOptions>,
    ) -> Reading<'a> {
        Reading { db, family, options }
    }

    /// Returns the value of `key`, or `None` if there is none.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// assert_eq!(reading.get("fig")?.as_deref(), Some(&b"1"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        check_family(self.family)?;
        self.db.find(self.family, key.as_ref(), &self.options, Copy)
    }

    /// Returns what [`Reading::get`] does, without copying a value that is in a block.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// assert_eq!(reading.get_pinned("fig")?.as_deref(), Some(&b"1"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reading::get`].
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedSlice>> {
        check_family(self.family)?;
        self.db.find(self.family, key.as_ref(), &self.options, Pin)
    }

    /// Returns true if `key` has a value.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// assert!(!reading.contains_key("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reading::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_pinned(key)?.is_some())
    }

    /// Returns true if `key` was written or deleted after the snapshot of the options. Without a
    /// snapshot nothing is newer than what a read sees. RocksDB: `newer_version_present`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let snapshot = db.snapshot();
    /// assert!(!db.at(&snapshot).is_superseded("fig")?);
    /// db.put("fig", "1")?;
    /// assert!(db.at(&snapshot).is_superseded("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reading::get`].
    pub fn is_superseded(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.db.is_superseded_in(self.family, key.as_ref(), &self.options)
    }

    /// Returns the values of many keys at one moment, in the order of `keys`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// let values = reading.multi_get(&["date", "fig"]);
    /// assert!(values[0].as_ref().unwrap().is_none() && values[1].as_ref().unwrap().is_some());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reading::get`], each key for itself.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<PinnedSlice>>> {
        self.db.find_many(self.family, keys, &self.options)
    }

    /// Returns false if `key` certainly has no value. It does no I/O, as [`Db::may_contain`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// assert!(!reading.may_contain("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchColumnFamily` if the family was dropped.
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.db.may_contain_in(self.family, key.as_ref(), &self.options)
    }

    /// Returns true if the value of `key` is in a memtable, as [`Db::has_in_memory`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// assert!(reading.has_in_memory("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reading::get`].
    pub fn has_in_memory(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.db.has_in_memory_in(self.family, key.as_ref(), &self.options)
    }

    /// Returns the entries of a range of keys in order, as [`Db::range`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// assert_eq!(reading.range("f"..)?.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::range`]. `InvalidArgument` if the options have bounds, which are for cursors.
    pub fn range(&self, range: impl KeyRange) -> Result<Iter> {
        check_family(self.family)?;
        Iter::range(&self.db.core, self.family, &self.options, &range)
    }

    /// Returns the entries whose keys begin with `prefix` in order, as [`Db::prefix`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// assert_eq!(reading.prefix("f")?.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::prefix`] and [`Reading::range`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        check_family(self.family)?;
        Iter::prefix(&self.db.core, self.family, &self.options, prefix.as_ref())
    }

    /// Returns all entries in order.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// assert_eq!(reading.iter()?.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reading::range`].
    pub fn iter(&self) -> Result<Iter> {
        self.range(..)
    }

    /// Returns a cursor. It must be moved to a key before use.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let reading = db.reading(sateen::ReadOptions::default());
    /// let mut cursor = reading.cursor()?;
    /// cursor.seek_to_first();
    /// assert_eq!(cursor.key(), b"fig");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::cursor`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn cursor(&self) -> Result<Cursor> {
        check_family(self.family)?;
        Cursor::new(&self.db.core, self.family, &self.options)
    }
}

/// A column family to be written with options other than the default ones, such as a sync.
/// [`Db::writing`] and [`ColumnFamily::writing`](crate::ColumnFamily::writing) return it. The
/// options of a batch are passed to [`Db::write`].
///
/// ```
/// use sateen::WriteOptions;
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// let durable = db.writing(WriteOptions::sync());
/// durable.put("fig", "1")?; // survives a loss of power from here on
/// durable.delete("fig")?;
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone)]
pub struct Writing<'a> {
    db: &'a Db,
    family: &'a Arc<ColumnFamilyData>,
    options: Cow<'a, WriteOptions>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(
        db: &'a Db,
        family: &'a Arc<ColumnFamilyData>,
        options: Cow<'a, WriteOptions>,
    ) -> Writing<'a> {
        Writing { db, family, options }
    }

    /// Sets `key` to `value`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let writing = db.writing(sateen::WriteOptions::sync());
    /// writing.put("fig", "1")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.single(ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// Deletes `key`, whether it exists or not.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let writing = db.writing(sateen::WriteOptions::sync());
    /// writing.delete("fig")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single(ValueKind::Delete, key.as_ref(), &[])
    }

    /// Merges `operand` into the value of `key`, as [`Db::merge`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let writing = db.writing(sateen::WriteOptions::sync());
    /// assert!(writing.merge("fig", "1").is_err(), "there is no merge operator");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::merge`] and [`Db::put`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.single(ValueKind::Merge, key.as_ref(), operand.as_ref())
    }

    /// Deletes `key`, as [`Db::single_delete`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let writing = db.writing(sateen::WriteOptions::sync());
    /// writing.single_delete("fig")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single(ValueKind::SingleDelete, key.as_ref(), &[])
    }

    /// Deletes the keys from `begin` (inclusive) to `end` (exclusive), as [`Db::delete_range`]
    /// does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let writing = db.writing(sateen::WriteOptions::sync());
    /// writing.delete_range("a", "z")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::delete_range`] and [`Db::put`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.db.delete_keys(self.family, begin.as_ref(), end.as_ref(), &self.options)
    }

    /// Sets `key` to `value` if nothing has to be waited for, and returns true. It returns false
    /// and does nothing if the write is to be synced, is held back, has to wait for another write,
    /// for a full memtable, or for a part of the WAL on its way to the device. To write its record
    /// to the page cache is no wait. Made for callers that hold a lock which others need: they try
    /// first, and repeat the write with [`Writing::put`] when they have released it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let writing = db.writing(sateen::WriteOptions::default());
    /// if !writing.try_put("fig", "1")? {
    ///     writing.put("fig", "1")?;
    /// }
    /// assert!(!db.writing(sateen::WriteOptions::sync()).try_put("fig", "2")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Writing::put`].
    pub fn try_put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.try_single(ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// Deletes `key` if nothing has to be waited for, as [`Writing::try_put`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let writing = db.writing(sateen::WriteOptions::default());
    /// if !writing.try_delete("fig")? {
    ///     writing.delete("fig")?;
    /// }
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Writing::delete`].
    pub fn try_delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.try_single(ValueKind::Delete, key.as_ref(), &[])
    }

    /// Merges `operand` if nothing has to be waited for, as [`Writing::try_put`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let writing = db.writing(sateen::WriteOptions::default());
    /// assert!(writing.try_merge("fig", "1").is_err(), "there is no merge operator");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Writing::merge`].
    pub fn try_merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<bool> {
        self.try_single(ValueKind::Merge, key.as_ref(), operand.as_ref())
    }

    fn try_single(&self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<bool> {
        self.db.try_single_in(self.family, kind, key, value, &self.options)
    }

    fn single(&self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.single_in(self.family, kind, key, value, &self.options)
    }
}

impl std::fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let family = self.family.name();
        f.debug_struct("Reading").field("family", &family).field("options", &self.options).finish()
    }
}

impl std::fmt::Debug for Writing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let family = self.family.name();
        f.debug_struct("Writing").field("family", &family).field("options", &self.options).finish()
    }
}
