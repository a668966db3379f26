//! Writes of a batch to column families, by the handles of clients.

use sateen_store::base::error::Result;

use super::family::ColumnFamily;
use crate::write::batch::WriteBatch;

/// Writes to column families.
impl WriteBatch {
    /// Sets `key` to `value` in a column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put_cf(&loans, "walden", "Ishmael")?;
    /// db.write(&batch, &sateen::WriteOptions::default())?;
    /// assert!(loans.contains_key("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn put_cf(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_cf_id(family.data.id(), key.as_ref(), value.as_ref())
    }

    /// Deletes `key` in a column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.delete_cf(&loans, "walden")?;
    /// assert_eq!(batch.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::delete`].
    pub fn delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_cf_id(family.data.id(), key.as_ref())
    }

    /// Merges `operand` into the value of `key` in a column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.merge_cf(&loans, "walden", "Ishmael")?;
    /// // The column family has no merge operator:
    /// assert!(db.write(&batch, &sateen::WriteOptions::default()).is_err());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn merge_cf(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_cf_id(family.data.id(), key.as_ref(), operand.as_ref())
    }

    /// Deletes `key` in a column family: see [`Db::single_delete`](crate::Db).
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.single_delete_cf(&loans, "walden")?;
    /// assert_eq!(batch.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::delete`].
    pub fn single_delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_cf_id(family.data.id(), key.as_ref())
    }

    /// Deletes a range of keys in a column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.delete_range_cf(&loans, "a", "z")?;
    /// db.write(&batch, &sateen::WriteOptions::default())?;
    /// assert_eq!(loans.iter()?.count(), 0);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::delete_range`].
    pub fn delete_range_cf(
        &mut self,
        family: &ColumnFamily,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.delete_range_cf_id(family.data.id(), begin.as_ref(), end.as_ref())
    }
}
