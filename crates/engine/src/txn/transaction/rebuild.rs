//! A transaction that begins anew, that takes over a batch, or that is only the locks around one
//! batch.

use sateen_control::{ColumnFamilyId, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::{BatchEntry, BatchItem};

use super::{Transaction, TransactionOptions};
use crate::batch::WriteBatch;
use crate::db::Db;
use crate::db::family::ColumnFamily;

/// What keeps track of no key.
const NO_RANGES: &str = "a transaction has no range deletions, because it guards single keys";

impl Transaction {
    /// Discards all writes and save points, tracks no key any more and releases all locks. The
    /// transaction goes on, with the snapshot that it has. RocksDB: `Rollback`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("fig", "1")?;
    /// transaction.undo()?;
    /// transaction.put("plum", "2")?;
    /// transaction.commit()?;
    /// assert!(db.contains_key("plum")? && !db.contains_key("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TransactionOver` after a commit or rollback. `InvalidArgument` if it is prepared.
    pub fn undo(&mut self) -> Result<()> {
        self.check_change()?;
        self.forget_writes();
        Ok(())
    }

    /// Adds log data, which goes to the WAL with the commit: see [`WriteBatch::put_log_data`].
    ///
    /// # Errors
    /// As [`WriteBatch::put_log_data`]. `TransactionOver`; `TransactionSize`; `InvalidArgument` if
    /// it is prepared.
    pub fn put_log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        self.check_change()?;
        self.check_size(data.as_ref().len())?;
        self.batch.put_log_data(data)
    }

    /// Does all writes of `batch` in the transaction, one after the other, as its methods would.
    /// After an error none of them is there. RocksDB: `RebuildFromWriteBatch`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// let mut transaction = db.transaction();
    /// transaction.rebuild_from(&batch)?;
    /// db.put("fig", "2")?;
    /// assert!(matches!(transaction.commit(), Err(sateen::Error::Busy { .. })));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`]. `InvalidArgument` if the batch has range deletions, or keys of a
    /// column family with timestamps.
    /// `NoSuchColumnFamily`.
    pub fn rebuild_from(&mut self, batch: &WriteBatch) -> Result<()> {
        self.check_change()?;
        self.set_save_point();
        let done = batch.items().try_for_each(|item| match item {
            BatchItem::Write(entry) => self.redo(&entry),
            BatchItem::LogData(data) => self.put_log_data(data),
        });
        match done {
            Ok(()) => self.pop_save_point(),
            Err(error) => self.rollback_to_save_point().and(Err(error)),
        }
    }

    fn redo(&mut self, entry: &BatchEntry<'_>) -> Result<()> {
        let BatchEntry { column_family, kind, key, value } = *entry;
        if kind == ValueKind::RangeDelete {
            return Err(Error::InvalidArgument(NO_RANGES.into()));
        }
        let family = self.default.db().column_family_by_id(column_family);
        let family = family.ok_or_else(|| no_such_family(self.default.db(), column_family))?;
        if family.comparator().timestamp_bytes() > 0 {
            return Err(has_timestamps(&family));
        }
        self.write(&family, kind, key, value, true)
    }
}

/// Returns the error of a batch with keys that got their timestamp before their lock.
fn has_timestamps(family: &ColumnFamily) -> Error {
    let name = family.name();
    Error::InvalidArgument(format!("the keys of the column family {name} have timestamps"))
}

fn no_such_family(db: &Db, id: ColumnFamilyId) -> Error {
    Error::NoSuchColumnFamily(db.core().tree.families().name_of(id))
}

impl Db {
    /// Writes `batch` as a pessimistic transaction of its own. It locks the keys in their order, so
    /// that two such writes cannot block each other, and waits for transactions that hold them.
    /// RocksDB: the writes of a `TransactionDB`.
    ///
    /// ```
    /// use sateen::{Error, TransactionOptions, WriteBatch};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let lock_timeout = Some(std::time::Duration::from_millis(10));
    /// let options = TransactionOptions { lock_timeout, ..TransactionOptions::pessimistic() };
    /// let mut batch = WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// let mut transaction = db.transaction_with(&TransactionOptions::pessimistic());
    /// transaction.get_for_update("fig")?;
    /// assert!(matches!(db.write_locked(&batch, &options), Err(Error::LockTimedOut { .. })));
    /// transaction.rollback()?;
    /// db.write_locked(&batch, &options)?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::write`] and [`Transaction::get_for_update`]. `InvalidArgument` if the batch has
    /// range deletions, and if `options` are not pessimistic.
    pub fn write_locked(&self, batch: &WriteBatch, options: &TransactionOptions) -> Result<()> {
        if !options.pessimistic {
            let text = "write_locked takes locks: its options must be pessimistic";
            return Err(Error::InvalidArgument(text.into()));
        }
        let mut keys = Vec::with_capacity(batch.count() as usize);
        for entry in batch {
            if entry.kind == ValueKind::RangeDelete {
                return Err(Error::InvalidArgument(NO_RANGES.into()));
            }
            keys.push((entry.column_family, entry.key));
        }
        keys.sort_unstable();
        keys.dedup();
        let mut transaction = self.transaction_with(options);
        for (family, key) in keys {
            match self.column_family_by_id(family) {
                Some(family) if family.comparator().timestamp_bytes() > 0 => {
                    return Err(has_timestamps(&family));
                }
                Some(family) => transaction.track(&family, key, true, true)?,
                None if options.write.ignore_missing_column_families => {}
                None => return Err(no_such_family(self, family)),
            }
        }
        self.write(batch, &options.write)
    }
}
