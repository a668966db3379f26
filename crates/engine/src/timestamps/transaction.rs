//! A pessimistic transaction as a place for reads and writes of a column family with timestamps.
//!
//! A write has no timestamp yet: `txn/transaction/timestamps.rs` says how it is kept, and
//! [`Transaction::commit_at`] gives it one. A read sees the transaction's own writes, whatever its
//! timestamp, and below them the versions of the database.

use sateen_store::base::error::{Error, Result};

use super::entry::{Version, is_before, split, value_of, version_of};
use super::{Timestamped, TimestampedFamily};
use crate::options::ReadOptions;
use crate::txn::{Transaction, placeholder};

/// A transaction as a place for reads and writes of a column family with timestamps. Made by
/// [`TimestampedFamily::within`].
#[derive(Debug)]
pub struct TimestampedTransaction<'a> {
    family: &'a TimestampedFamily,
    transaction: &'a mut Transaction,
}

impl TimestampedFamily {
    /// Returns the transaction as a place for reads and writes of this column family. The writes
    /// get their timestamp from [`Transaction::commit_at`].
    ///
    /// ```
    /// use sateen::{ColumnFamilyOptions, Comparator, ReadOptions, TransactionOptions};
    ///
    /// // By key, and newer versions of a key first. Timestamps are big-endian numbers.
    /// let comparator = Comparator::timestamped("by key", 8, |a, b| {
    ///     let ((a, a_time), (b, b_time)) = (a.split_at(a.len() - 8), b.split_at(b.len() - 8));
    ///     a.cmp(b).then_with(|| b_time.cmp(a_time))
    /// });
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let options = ColumnFamilyOptions { comparator, ..ColumnFamilyOptions::default() };
    /// let prices = db.create_column_family("prices", options)?.timestamped().unwrap();
    /// let (at, read) = (|time: u64| time.to_be_bytes(), ReadOptions::default());
    /// let mut transaction = db.transaction_with(&TransactionOptions::pessimistic());
    /// let seen = prices.within(&mut transaction)?.get_for_update("fig", at(4), &read)?;
    /// assert!(seen.is_none());
    /// prices.within(&mut transaction)?.put("fig", "10")?;
    /// transaction.commit_at(at(5))?;
    /// assert_eq!(prices.get("fig", at(9), &read)?.unwrap().timestamp, at(5));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the transaction is optimistic: it could not see that others wrote the
    /// key at another timestamp.
    pub fn within<'a>(
        &'a self,
        transaction: &'a mut Transaction,
    ) -> Result<TimestampedTransaction<'a>> {
        if transaction.id().is_none() {
            return Err(Error::InvalidArgument(format!(
                "the keys of the column family {} have timestamps: only pessimistic transactions \
                 can write them",
                self.family.name()
            )));
        }
        Ok(TimestampedTransaction { family: self, transaction })
    }

    /// Returns the timestamp of the newest version of `key`, deletions included.
    fn newest(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut cursor = self.family.cursor(&ReadOptions::default())?;
        cursor.seek(placeholder(self.comparator(), key));
        cursor.status()?;
        let found =
            cursor.valid().then(|| split(cursor.key(), self.comparator().timestamp_bytes()));
        Ok(found.flatten().filter(|(other, _)| *other == key).map(|(_, time)| time.to_vec()))
    }
}

impl TimestampedTransaction<'_> {
    /// Adds a version of `key` with this value, and locks the key.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write(key.as_ref(), Version::Value(value.as_ref()))
    }

    /// Adds a version of `key` without a value, and locks the key.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(key.as_ref(), Version::Deleted)
    }

    fn write(&mut self, key: &[u8], version: Version<'_>) -> Result<()> {
        let key = placeholder(self.family.comparator(), key);
        self.transaction.to(&self.family.family).put(key, value_of(version))
    }

    /// Returns what the transaction has written to `key`, or else the newest version that is not
    /// after `at`. The transaction's own value has an empty timestamp.
    ///
    /// # Errors
    /// As [`TimestampedFamily::get`]. `TransactionOver` after a commit or rollback.
    pub fn get(
        &self,
        key: impl AsRef<[u8]>,
        at: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Timestamped>> {
        let key = key.as_ref();
        let own = placeholder(self.family.comparator(), key);
        let written = self.transaction.get_own_in(&self.family.family, &own)?;
        match written.as_deref().map(version_of) {
            Some(Version::Value(value)) => {
                Ok(Some(Timestamped { value: value.to_vec(), timestamp: Vec::new() }))
            }
            Some(Version::Deleted) => Ok(None),
            None => self.family.get(key, at, options),
        }
    }

    /// Locks `key`, and returns its value as of `at`.
    ///
    /// # Errors
    /// As [`TimestampedTransaction::get`] and [`TimestampedTransaction::guard`].
    pub fn get_for_update(
        &mut self,
        key: impl AsRef<[u8]>,
        at: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Timestamped>> {
        self.guard(key.as_ref(), at.as_ref(), true)?;
        self.get(key, at, options)
    }

    /// Locks `key`, which must have no version after `at`. Unless `exclusive`, others may lock it
    /// in the same way.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`]. `Busy` if the key has a version after `at`.
    pub fn guard(
        &mut self,
        key: impl AsRef<[u8]>,
        at: impl AsRef<[u8]>,
        exclusive: bool,
    ) -> Result<()> {
        let (key, at, family) = (key.as_ref(), at.as_ref(), self.family);
        family.check_timestamp(at)?;
        let locked = placeholder(family.comparator(), key);
        let unchanged = || match family.newest(key)? {
            Some(newest) if is_before(family.comparator(), at, &newest) => Err(Error::Busy {
                column_family: family.family.name().to_owned(),
                key: key.to_vec(),
            }),
            _ => Ok(()),
        };
        self.transaction.lock_if(&family.family, &locked, exclusive, unchanged)
    }
}
