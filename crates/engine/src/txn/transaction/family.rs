//! A transaction as a place for reads and writes of one column family.

use sateen_control::ValueKind;
use sateen_store::base::error::Result;

use super::Transaction;
use crate::db::cursor::Cursor;
use crate::db::family::ColumnFamily;
use crate::db::iter::{Iter, KeyRange};

/// A transaction as a place for reads and writes of one column family. Made by
/// [`Transaction::to`].
#[derive(Debug)]
pub struct FamilyTransaction<'a> {
    pub(super) transaction: &'a mut Transaction,
    pub(super) family: &'a ColumnFamily,
}

impl FamilyTransaction<'_> {
    /// Returns the value of `key`: see [`Transaction::get`].
    ///
    /// # Errors
    /// As [`Transaction::get`]. `InvalidArgument` for a column family of another database.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.transaction.get_in(self.family, key.as_ref())
    }

    /// Returns true if `key` has a value.
    ///
    /// # Errors
    /// As [`FamilyTransaction::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Returns the value of `key` and tracks it: see [`Transaction::get_for_update`].
    ///
    /// # Errors
    /// As [`FamilyTransaction::get`].
    pub fn get_for_update(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.transaction.get_for_update_in(self.family, key.as_ref(), true)
    }

    /// Returns the value of `key` and takes a lock that others can share: see
    /// [`Transaction::get_for_share`].
    ///
    /// # Errors
    /// As [`FamilyTransaction::get`] and [`Transaction::get_for_update`].
    pub fn get_for_share(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.transaction.get_for_update_in(self.family, key.as_ref(), false)
    }

    /// Tracks `key` as [`Transaction::get_for_update`] does, without reading it. RocksDB:
    /// `GetForUpdate` without a place for the value.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let family = db.default_column_family();
    /// let mut transaction = db.transaction();
    /// transaction.to(&family).guard("fig")?;
    /// db.put("fig", "1")?;
    /// assert!(matches!(transaction.commit(), Err(sateen::Error::Busy { .. })));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`FamilyTransaction::get_for_update`].
    pub fn guard(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.transaction.track(self.family, key.as_ref(), true, true)
    }

    /// Tracks `key` as [`Transaction::get_for_share`] does, without reading it.
    ///
    /// # Errors
    /// As [`FamilyTransaction::get_for_share`].
    pub fn guard_shared(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.transaction.track(self.family, key.as_ref(), false, true)
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`Transaction::put`]. `InvalidArgument` for a column family of another database.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write(ValueKind::Put, key.as_ref(), value.as_ref(), true)
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`FamilyTransaction::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(ValueKind::Delete, key.as_ref(), &[], true)
    }

    /// Merges `operand` into the value of `key`.
    ///
    /// # Errors
    /// As [`FamilyTransaction::put`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.write(ValueKind::Merge, key.as_ref(), operand.as_ref(), true)
    }

    /// Deletes `key`: see [`Db::single_delete`](crate::Db::single_delete).
    ///
    /// # Errors
    /// As [`FamilyTransaction::put`].
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(ValueKind::SingleDelete, key.as_ref(), &[], true)
    }

    /// Sets `key` to `value`, whatever others write to it before the commit.
    ///
    /// # Errors
    /// As [`FamilyTransaction::put`].
    pub fn put_untracked(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write(ValueKind::Put, key.as_ref(), value.as_ref(), false)
    }

    /// Deletes `key`, whatever others write to it before the commit.
    ///
    /// # Errors
    /// As [`FamilyTransaction::put`].
    pub fn delete_untracked(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(ValueKind::Delete, key.as_ref(), &[], false)
    }

    /// Merges `operand` into the value of `key`, whatever others write to it before the commit.
    ///
    /// # Errors
    /// As [`FamilyTransaction::put`].
    pub fn merge_untracked(
        &mut self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write(ValueKind::Merge, key.as_ref(), operand.as_ref(), false)
    }

    /// Returns the entries of a range of keys: see [`Transaction::range`].
    ///
    /// # Errors
    /// As [`Transaction::range`] and [`FamilyTransaction::get`].
    pub fn range(&self, range: impl KeyRange) -> Result<Iter> {
        self.transaction.check_use(self.family)?;
        self.transaction.seeing(self.family).range(range)
    }

    /// Returns the entries whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`FamilyTransaction::range`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.transaction.check_use(self.family)?;
        self.transaction.seeing(self.family).prefix(prefix)
    }

    /// Returns all entries.
    ///
    /// # Errors
    /// As [`FamilyTransaction::range`].
    pub fn iter(&self) -> Result<Iter> {
        self.range(..)
    }

    /// Returns a cursor, which must be moved to a key before use.
    ///
    /// # Errors
    /// As [`FamilyTransaction::range`].
    pub fn cursor(&self) -> Result<Cursor> {
        self.transaction.check_use(self.family)?;
        self.transaction.seeing(self.family).cursor()
    }

    fn write(&mut self, kind: ValueKind, key: &[u8], value: &[u8], tracked: bool) -> Result<()> {
        self.transaction.write(self.family, kind, key, value, tracked)
    }
}
