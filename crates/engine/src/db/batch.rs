//! Writes of a batch to column families, by the handles of clients.

use sateen_store::base::error::Result;

use super::family::ColumnFamily;
use crate::write::batch::WriteBatch;

/// Writes to column families.
impl WriteBatch {
    /// Sets `key` to `value` in a column family.
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
    /// # Errors
    /// As [`WriteBatch::delete`].
    pub fn delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_cf_id(family.data.id(), key.as_ref())
    }

    /// Merges `operand` into the value of `key` in a column family.
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
    /// # Errors
    /// As [`WriteBatch::delete`].
    pub fn single_delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_cf_id(family.data.id(), key.as_ref())
    }

    /// Deletes a range of keys in a column family.
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
