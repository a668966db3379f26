//! Locks of ranges of keys.

use std::ops::Bound;
use std::sync::Arc;

use sateen_store::base::error::{Error, Result};

use super::{FamilyTransaction, Transaction};
use crate::admission::key_locks::LockRange;
use crate::db::family::ColumnFamily;
use crate::db::iter::KeyRange;
use crate::txn::prepared;

impl Transaction {
    /// Locks a range of keys, those included that do not exist: until this transaction ends, no
    /// other pessimistic transaction locks or writes a key of it. So an iterator over the range
    /// shows the same until the commit. RocksDB: `GetRangeLock`.
    ///
    /// - It waits until no other transaction has a lock in the range. Others may take keys of the
    ///   range while it waits.
    /// - It counts as one lock, whatever its size. Each key of it that the transaction writes is
    ///   locked, too.
    /// - The range is not compared with the snapshot. To read what was locked, read without one, or
    ///   call [`set_snapshot`](Transaction::set_snapshot) afterwards.
    /// - A prepared transaction that an open finds again has locks on the keys that it writes, and
    ///   none on ranges.
    ///
    /// ```
    /// use sateen::{Error, TransactionOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let lock_timeout = Some(std::time::Duration::from_millis(10));
    /// let options = TransactionOptions { lock_timeout, ..TransactionOptions::pessimistic() };
    /// let mut transaction = db.transaction_with(&options);
    /// transaction.lock_range("seat 1"..="seat 9")?;
    /// if transaction.range("seat 1"..="seat 9")?.count() < 9 {
    ///     transaction.put("seat 5", "taken")?;
    /// }
    /// let mut other = db.transaction_with(&options);
    /// assert!(matches!(other.put("seat 6", "taken"), Err(Error::LockTimedOut { .. })));
    /// transaction.commit()?;
    /// other.put("seat 6", "taken")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LockTimedOut` and `Deadlock`, which name a key of the range that others have locked;
    /// `LockLimit`. `InvalidArgument` if the transaction is optimistic or prepared, and if the
    /// range ends before it begins. `TransactionOver` after a commit or rollback.
    pub fn lock_range(&mut self, range: impl KeyRange) -> Result<()> {
        let family = self.default.clone();
        self.lock_range_in(&family, &range, true)
    }

    /// Locks a range of keys as [`lock_range`](Transaction::lock_range) does, but shares it with
    /// others that only read: they may lock it or keys of it in the same way
    /// ([`get_for_share`](Transaction::get_for_share)), and not write.
    ///
    /// # Errors
    /// As [`Transaction::lock_range`].
    pub fn lock_range_shared(&mut self, range: impl KeyRange) -> Result<()> {
        let family = self.default.clone();
        self.lock_range_in(&family, &range, false)
    }

    fn lock_range_in(
        &mut self,
        family: &ColumnFamily,
        range: &impl KeyRange,
        exclusive: bool,
    ) -> Result<()> {
        self.check_use(family)?;
        self.check_change()?;
        let Some(locks) = &mut self.locks else {
            let text = "only a pessimistic transaction can lock a range of keys";
            return Err(Error::InvalidArgument(text.into()));
        };
        let owned = |end: Bound<&[u8]>| end.map(Arc::from);
        let range = LockRange {
            family: family.data.id(),
            comparator: family.comparator().clone(),
            lower: owned(range.lower()),
            upper: owned(range.upper()),
        };
        if range.is_reversed() {
            let text = "a range to be locked ends before it begins";
            return Err(Error::InvalidArgument(text.into()));
        }
        let core = self.default.db().core();
        prepared::load(core)?;
        locks.take_range(&family.data, range, exclusive, &core.env)
    }
}

impl FamilyTransaction<'_> {
    /// Locks a range of keys: see [`Transaction::lock_range`].
    ///
    /// # Errors
    /// As [`Transaction::lock_range`] and [`FamilyTransaction::get`].
    pub fn lock_range(&mut self, range: impl KeyRange) -> Result<()> {
        self.transaction.lock_range_in(self.family, &range, true)
    }

    /// Locks a range of keys that others may read: see [`Transaction::lock_range_shared`].
    ///
    /// # Errors
    /// As [`FamilyTransaction::lock_range`].
    pub fn lock_range_shared(&mut self, range: impl KeyRange) -> Result<()> {
        self.transaction.lock_range_in(self.family, &range, false)
    }
}
