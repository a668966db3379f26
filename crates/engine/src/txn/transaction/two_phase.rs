//! The first phase of a two-phase commit, and names.
//!
//! What must stay true: while a failed prepare may have stored the batch (`left`), the transaction
//! keeps its name, so that what ends it removes the entries.

use sateen_store::base::error::{Error, Result};

use super::Transaction;
use crate::txn::prepared;

impl Transaction {
    /// Makes the transaction survive a crash under this name, of 1 to 255 bytes. After that it can
    /// only be read, committed or rolled back. It is as durable as a write with its options: synced
    /// if they say so. Dropping it does not roll it back:
    /// [`Db::prepared_transaction`](crate::Db::prepared_transaction) returns it again, also after
    /// the database was closed or has crashed. Until then the keys that it writes stay locked.
    /// Locks of ranges, and of keys that it only read, end with the close. RocksDB: `SetName`,
    /// `Prepare`.
    ///
    /// # Errors
    /// `InvalidArgument` if the transaction is optimistic, if it is prepared, if a prepared one has
    /// the name, and if the write would not go to the WAL. `TransactionOver`. As
    /// [`Db::write`](crate::Db::write): after such an error the transaction goes on and keeps the
    /// name, but the next open may find it prepared. A commit or rollback that succeeds removes it;
    /// so does the next transaction that is prepared under the name.
    pub fn prepare(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let name = name.as_ref();
        let had_it = self.name.is_some();
        self.check_change()?;
        if self.name.as_deref() != Some(name) {
            self.reserve_name(name)?;
        }
        let core = self.default.db().core();
        let names = &core.writes.prepared;
        let batch = self.batch.batch();
        let bytes = batch.len_bytes();
        let entries = match prepared::entries(core, name, batch, self.left, &self.write) {
            Ok(entries) => entries,
            Err(error) => {
                // Nothing was written.
                if !had_it && self.left.is_none() {
                    names.forget(name);
                    self.name = None;
                }
                return Err(error);
            }
        };
        if let Err(error) = prepared::store(core, &entries, &self.write) {
            if !matches!(error, Error::WouldStall { .. }) {
                self.left = self.left.max(Some(bytes));
            }
            return Err(error);
        }
        names.prepared(name);
        self.is_prepared = true;
        self.left = None;
        Ok(())
    }

    /// Reserves the name for [`Transaction::prepare`], so that no other transaction gets it. It is
    /// free again once the transaction is over, unless it is prepared. RocksDB: `SetName`.
    ///
    /// ```
    /// # use sateen::TransactionOptions;
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let mut transaction = db.transaction_with(&TransactionOptions::pessimistic());
    /// transaction.reserve_name("order 7")?;
    /// let mut other = db.transaction_with(&TransactionOptions::pessimistic());
    /// assert!(other.reserve_name("order 7").is_err());
    /// drop(transaction);
    /// other.prepare("order 7")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the transaction is optimistic, if it has a name, if another one has
    /// this name, and if the name has not 1 to 255 bytes. `TransactionOver`. As
    /// [`Db::list_prepared`](crate::Db::list_prepared).
    pub fn reserve_name(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let name = name.as_ref();
        self.check_change()?;
        if self.locks.is_none() {
            let text = "only a pessimistic transaction can be prepared";
            return Err(Error::InvalidArgument(text.into()));
        }
        prepared::check_name(name)?;
        if let Some(has) = &self.name {
            let text = format!("the transaction has the name {} already", has.escape_ascii());
            return Err(Error::InvalidArgument(text));
        }
        let core = self.default.db().core();
        prepared::load(core)?;
        self.left = core.writes.prepared.reserve(name).map_err(|()| {
            let name = name.escape_ascii();
            Error::InvalidArgument(format!("another transaction has the name {name}"))
        })?;
        self.name = Some(name.to_vec());
        Ok(())
    }

    /// Returns the name that the transaction has reserved, or under which it is prepared.
    #[must_use]
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Returns true if the transaction is prepared.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// Returns the name under which the batch is stored, or may be after a failed prepare, and the
    /// size of that batch.
    pub(super) fn stored(&self) -> Option<(&[u8], usize)> {
        let prepared = self.is_prepared.then(|| self.batch.batch().len_bytes());
        Some((self.name.as_deref()?, prepared.or(self.left)?))
    }
}
