//! The handle of a column family, with the methods that [`Db`] has for the default one.

use std::borrow::Cow;
use std::sync::Arc;

use sateen_store::base::error::Result;

use super::calls::{Reading, Writing};
use super::cursor::Cursor;
use super::iter::{Iter, KeyRange};
use super::{Db, check_family};
use crate::options::{ReadOptions, WriteOptions};
use crate::read::lookup::{Copy, Pin, PinnedSlice};
use crate::snapshot::Snapshot;
use crate::tree::families::ColumnFamilyData;

/// A handle of a column family: a separate set of keys in the same database, which shares batches
/// with the other column families. [`Db::create_column_family`] and [`Db::column_family`] return
/// it.
///
/// A handle is cheap to clone, `Send` and `Sync`, and keeps the database open. Once the column
/// family is dropped, its operations fail with `NoSuchColumnFamily`. Iterators that exist by then
/// go on.
///
/// ```
/// use sateen::{ColumnFamilyOptions, Db, Options, WriteBatch, WriteOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db = Db::open(directory.path(), Options::default())?;
/// let loans = db.create_column_family("loans", ColumnFamilyOptions::default())?;
/// loans.put("walden", "Ishmael")?;
/// assert_eq!(loans.get("walden")?.as_deref(), Some(&b"Ishmael"[..]));
/// assert_eq!(db.get("walden")?, None); // the default column family is another one
///
/// let mut batch = WriteBatch::new();
/// batch.put("walden", "returned")?;
/// batch.to(&loans).delete("walden")?;
/// db.write(&batch, &WriteOptions::default())?; // both or neither
/// assert_eq!(loans.iter()?.count(), 0);
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone)]
pub struct ColumnFamily {
    db: Db,
    pub(crate) data: Arc<ColumnFamilyData>,
}

impl ColumnFamily {
    pub(super) fn new(db: &Db, data: Arc<ColumnFamilyData>) -> ColumnFamily {
        ColumnFamily { db: db.clone(), data }
    }

    /// Returns its name.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert_eq!(db.default_column_family().name(), "default");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        self.data.name()
    }

    /// Returns its database.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let family = db.default_column_family();
    /// assert_eq!(family.db().path(), db.path());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Returns true if it is a column family of `db`. Another database may have one with its name
    /// and id.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path().join("a"), sateen::Options::default())?;
    /// # let other = sateen::Db::open(directory.path().join("b"), sateen::Options::default())?;
    /// let family = db.default_column_family();
    /// assert!(family.belongs_to(&db) && !family.belongs_to(&other));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn belongs_to(&self, db: &Db) -> bool {
        Arc::ptr_eq(self.db.core(), db.core())
    }

    /// Returns the comparator of its keys.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert!(db.default_column_family().comparator().is_bytewise());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn comparator(&self) -> &sateen_control::Comparator {
        self.data.comparator()
    }

    /// Returns its id, which no other column family ever gets.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert_eq!(db.default_column_family().id(), 0);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> u32 {
        self.data.id().0
    }
}

/// Reading, as [`Db`] does in the default column family.
impl ColumnFamily {
    /// Returns the value of `key`, or `None` if there is none.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// assert_eq!(loans.get("walden")?.as_deref(), Some(&b"Ishmael"[..]));
    /// assert_eq!(loans.get("typee")?, None);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` or `Corruption` if a table cannot be read. `NoSuchColumnFamily` if the family was
    /// dropped.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        check_family(&self.data)?;
        self.db.find(&self.data, key.as_ref(), &ReadOptions::default(), Copy)
    }

    /// Returns what [`ColumnFamily::get`] does, without copying a value that is in a block.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// assert_eq!(loans.get_pinned("walden")?.as_deref(), Some(&b"Ishmael"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedSlice>> {
        check_family(&self.data)?;
        self.db.find(&self.data, key.as_ref(), &ReadOptions::default(), Pin)
    }

    /// Returns true if `key` has a value.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// assert!(!loans.contains_key("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_pinned(key)?.is_some())
    }

    /// Returns the values of many keys at one moment, in the order of `keys`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// let values = loans.multi_get(&["typee", "walden"]);
    /// assert!(values[0].as_ref().unwrap().is_none());
    /// assert!(values[1].as_ref().unwrap().is_some());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::get`], each key for itself.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<PinnedSlice>>> {
        self.db.find_many(&self.data, keys, &ReadOptions::default())
    }

    /// Returns the entries of a range of keys, in order and from both ends, as [`Db::range`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("typee", "Queequeg")?;
    /// loans.put("walden", "Ishmael")?;
    /// for entry in loans.range("t"..)?.rev() {
    ///     let (book, reader) = entry?;
    ///     println!("{book:?} is lent to {reader:?}");
    /// }
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the range ends before it begins. `NoSuchColumnFamily` if the family was
    /// dropped.
    pub fn range(&self, range: impl KeyRange) -> Result<Iter> {
        check_family(&self.data)?;
        Iter::range(&self.db.core, &self.data, &ReadOptions::default(), &range)
    }

    /// Returns the entries whose keys begin with `prefix`, in order and from both ends, as
    /// [`Db::prefix`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden/1", "Ishmael")?;
    /// loans.put("walden/2", "Queequeg")?;
    /// assert_eq!(loans.prefix("walden/")?.count(), 2);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the keys are not compared as bytes. `NoSuchColumnFamily` if the family
    /// was dropped.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        check_family(&self.data)?;
        Iter::prefix(&self.db.core, &self.data, &ReadOptions::default(), prefix.as_ref())
    }

    /// Returns all entries, in order and from both ends.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// assert!(loans.iter()?.next().is_none());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::range`].
    pub fn iter(&self) -> Result<Iter> {
        self.range(..)
    }

    /// Returns a cursor, which lends keys and values instead of copying them. It must be moved to a
    /// key before use.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// let mut cursor = loans.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek("w");
    /// assert_eq!(cursor.key(), b"walden");
    /// cursor.status()?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::cursor`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn cursor(&self, options: &ReadOptions) -> Result<Cursor> {
        check_family(&self.data)?;
        Cursor::new(&self.db.core, &self.data, options)
    }

    /// Returns the column family as it was at `snapshot`, for reads such as
    /// `loans.at(&snapshot).range(..)`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let snapshot = db.snapshot();
    /// loans.put("walden", "Ishmael")?;
    /// assert!(!loans.at(&snapshot).contains_key("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn at(&self, snapshot: &Snapshot) -> Reading<'_> {
        self.reading(ReadOptions::at(snapshot))
    }

    /// Returns the column family, to be read with these options.
    ///
    /// ```
    /// use sateen::ReadOptions;
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let scan = loans.reading(ReadOptions { fill_cache: false, ..ReadOptions::default() });
    /// assert_eq!(scan.iter()?.count(), 0);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn reading<'a>(&'a self, options: impl Into<Cow<'a, ReadOptions>>) -> Reading<'a> {
        Reading::new(&self.db, &self.data, options.into())
    }

    /// Returns false if `key` certainly has no value. It does no I/O, as [`Db::may_contain`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// assert!(!loans.may_contain("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchColumnFamily` if the family was dropped.
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reading(ReadOptions::default()).may_contain(key)
    }

    /// Returns true if the value of `key` is in a memtable, as [`Db::has_in_memory`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// assert!(loans.has_in_memory("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn has_in_memory(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reading(ReadOptions::default()).has_in_memory(key)
    }
}

/// Writing, as [`Db`] does in the default column family. Each call is atomic. A
/// [`WriteBatch`](crate::WriteBatch) makes several writes atomic.
impl ColumnFamily {
    /// Sets `key` to `value`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if key or value are too large. `Background` if the database refuses
    /// writes. `NoSuchColumnFamily` if the family was dropped.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.writing(WriteOptions::default()).put(key, value)
    }

    /// Deletes `key`, whether it exists or not.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// loans.delete("walden")?;
    /// assert_eq!(loans.get("walden")?, None);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.writing(WriteOptions::default()).delete(key)
    }

    /// Merges `operand` into the value of `key`, with the merge operator of the column family.
    ///
    /// ```
    /// use sateen::{ColumnFamilyOptions, Merging};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let append = |_key: &[u8], before: Option<&[u8]>, operand: &[u8]| {
    ///     Some([before.unwrap_or_default(), operand].concat())
    /// };
    /// let options = ColumnFamilyOptions {
    ///     merge_operator: Some(Merging::associative("append", append)),
    ///     ..ColumnFamilyOptions::default()
    /// };
    /// let readers = db.create_column_family("readers", options)?;
    /// readers.merge("walden", "Ishmael;")?;
    /// readers.merge("walden", "Queequeg;")?;
    /// assert_eq!(readers.get("walden")?.as_deref(), Some(&b"Ishmael;Queequeg;"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::put`]; `NoMergeOperator` if the column family has none.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.writing(WriteOptions::default()).merge(key, operand)
    }

    /// Deletes `key`, as [`Db::single_delete`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// loans.single_delete("walden")?;
    /// assert_eq!(loans.get("walden")?, None);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::put`].
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.writing(WriteOptions::default()).single_delete(key)
    }

    /// Deletes all keys from `begin` (inclusive) to `end` (exclusive) with one write, as
    /// [`Db::delete_range`] does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("typee", "Queequeg")?;
    /// loans.put("walden", "Ishmael")?;
    /// loans.delete_range("a", "u")?;
    /// assert_eq!(loans.iter()?.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::put`]; `InvalidArgument` if `end` comes before `begin`.
    pub fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.writing(WriteOptions::default()).delete_range(begin, end)
    }

    /// Returns the column family, to be written with these options.
    ///
    /// ```
    /// use sateen::WriteOptions;
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.writing(WriteOptions::sync()).put("walden", "Ishmael")?; // durable when it returns
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn writing<'a>(&'a self, options: impl Into<Cow<'a, WriteOptions>>) -> Writing<'a> {
        Writing::new(&self.db, &self.data, options.into())
    }
}

impl std::fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ColumnFamily").field("name", &self.name()).field("id", &self.id()).finish()
    }
}
