//! Writes of a batch to column families, by the handles of clients.

use sateen_control::ColumnFamilyId;
use sateen_store::base::error::Result;

use super::family::ColumnFamily;
use crate::batch::WriteBatch;

impl WriteBatch {
    /// Returns the batch as a place for writes to a column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("walden", "lent")?; // to the default column family
    /// batch.to(&loans).put("walden", "Ishmael")?;
    /// db.write(&batch, &sateen::WriteOptions::default())?; // both or neither
    /// assert!(loans.contains_key("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn to(&mut self, family: &ColumnFamily) -> FamilyBatch<'_> {
        FamilyBatch { batch: self, column_family: family.data.id() }
    }
}

/// A batch as a place for writes to one column family. Made by [`WriteBatch::to`].
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// # let loans = db.create_column_family("loans", Default::default())?;
/// let mut batch = sateen::WriteBatch::new();
/// let mut of_loans = batch.to(&loans);
/// for (book, reader) in [("walden", "Ishmael"), ("typee", "Queequeg")] {
///     of_loans.put(book, reader)?;
/// }
/// assert_eq!(batch.count(), 2);
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Debug)]
pub struct FamilyBatch<'a> {
    batch: &'a mut WriteBatch,
    column_family: ColumnFamilyId,
}

impl FamilyBatch<'_> {
    /// Sets `key` to `value`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.to(&loans).put("walden", "Ishmael")?;
    /// db.write(&batch, &sateen::WriteOptions::default())?;
    /// assert!(loans.contains_key("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.batch.put_in(self.column_family, key.as_ref(), value.as_ref())
    }

    /// Deletes `key`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.to(&loans).delete("walden")?;
    /// assert_eq!(batch.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::delete`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.batch.delete_in(self.column_family, key.as_ref())
    }

    /// Merges `operand` into the value of `key`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.to(&loans).merge("walden", "Ishmael")?;
    /// // The column family has no merge operator:
    /// assert!(db.write(&batch, &sateen::WriteOptions::default()).is_err());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.batch.merge_in(self.column_family, key.as_ref(), operand.as_ref())
    }

    /// Deletes `key`: see [`Db::single_delete`](crate::Db::single_delete).
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.to(&loans).single_delete("walden")?;
    /// assert_eq!(batch.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::delete`].
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.batch.single_delete_in(self.column_family, key.as_ref())
    }

    /// Deletes the keys from `begin` up to, not including, `end`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.to(&loans).delete_range("a", "z")?;
    /// db.write(&batch, &sateen::WriteOptions::default())?;
    /// assert_eq!(loans.iter()?.count(), 0);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::delete_range`].
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.batch.delete_range_in(self.column_family, begin.as_ref(), end.as_ref())
    }
}
