//! Transactions, optimistic or pessimistic.
//!
//! 1. A write goes into a batch with an index, and its key is tracked ([`Tracked`]). A pessimistic
//!    transaction locks it instead ([`Locks`]).
//! 2. A read sees the batch above the database, at the snapshot if there is one.
//! 3. [`Transaction::commit`] writes the batch if no tracked key was written by others since
//!    (`CommitPipeline::commit_validated`). Locks are released after that.
//!
//! `inner` has what these methods share, `family` the same methods for a column family, `ranges`
//! the locks of ranges, `rebuild`
//! what begins anew or takes over a batch, `timestamps` the commit of keys with timestamps,
//! `two_phase` the prepare.
//!
//! What must stay true: nothing of a transaction is in the database before its commit, and a failed
//! commit leaves both as they were.

mod family;
mod inner;
mod options;
mod ranges;
mod rebuild;
mod timestamps;
mod two_phase;

use std::borrow::Cow;

use sateen_control::ValueKind;
use sateen_store::base::error::{Error, Result};

pub use self::family::FamilyTransaction;
pub use self::options::TransactionOptions;
pub(crate) use self::timestamps::{placeholder, without_placeholder};

use super::batch_with_index::{BatchReading, WriteBatchWithIndex};
use super::locks::Locks;
use super::prepared;
use super::tracked::Tracked;
use crate::batch::WriteBatch;
use crate::db::Db;
use crate::db::family::ColumnFamily;
use crate::db::iter::{Iter, KeyRange};
use crate::options::{ReadOptions, WriteOptions};
use crate::snapshot::Snapshot;
use crate::write::prepared::Parked;

impl Db {
    /// Begins an optimistic transaction with a snapshot. See [`Transaction`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("fig", "1")?;
    /// assert!(transaction.contains_key("fig")? && !db.contains_key("fig")?);
    /// transaction.commit()?;
    /// assert!(db.contains_key("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use = "without a commit the transaction has no effect"]
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(&TransactionOptions::default())
    }

    /// Begins a transaction with these options.
    ///
    /// ```
    /// use sateen::TransactionOptions;
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let mut transaction = db.transaction_with(&TransactionOptions::pessimistic());
    /// let seen = transaction.get_for_update("fig")?; // nobody else gets the lock until the commit
    /// transaction.put("fig", if seen.is_some() { "again" } else { "first" })?;
    /// transaction.commit()?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use = "without a commit the transaction has no effect"]
    pub fn transaction_with(&self, options: &TransactionOptions) -> Transaction {
        // Before the snapshot, so that all writes after it are noted.
        self.core().writes.pipeline.note_conflicts();
        let default = self.default_column_family();
        let value_bytes_max = self.core().env.options.load().value_bytes_max;
        Transaction {
            batch: WriteBatchWithIndex::sized(default.comparator(), value_bytes_max),
            default,
            snapshot: options.set_snapshot.then(|| self.snapshot()),
            tracked: Tracked::default(),
            locks: options.pessimistic.then(|| {
                let locks = &self.core().writes.key_locks;
                Locks::new(locks, options.lock_timeout, options.locks_max)
            }),
            points: Vec::new(),
            write: options.write.clone(),
            write_bytes_max: options.write_bytes_max,
            name: None,
            is_prepared: false,
            has_versions: false,
            left: None,
            ended: None,
        }
    }
}

/// A transaction: reads and writes that take effect together at its commit, or not at all.
/// RocksDB: `Transaction`. [`Db::transaction`] begins an optimistic one:
///
/// - It takes no locks. [`commit`](Transaction::commit) fails with [`Error::Busy`] if another write
///   changed a key that the transaction wrote or read by
///   [`get_for_update`](Transaction::get_for_update). Other writes may be plain ones.
/// - Reads see the transaction's own writes, and below them its snapshot. This is snapshot
///   isolation: a key that is only read by [`get`](Transaction::get) may change before the commit
///   (write skew). Use `get_for_update` where that matters.
/// - If memtables were flushed since, the commit may fail with [`Error::TryAgain`]. After both
///   errors begin anew: [`Error::retry`] is [`Retry::NewTransaction`](crate::Retry).
/// - Dropping it without a commit discards it. It keeps the database open, and its snapshot keeps
///   old entries on disk.
/// - Its writes are in memory until the commit.
///
/// A *pessimistic* transaction ([`TransactionOptions::pessimistic`]) locks the keys that it writes
/// or reads by `get_for_update`, until it ends, and waits for the locks of others. A wait that
/// would never end fails with [`Error::Deadlock`], which names the cycle. Only pessimistic
/// transactions respect the locks: plain writes and optimistic transactions do not.
///
/// ```
/// use sateen::{Db, Options, Result, Retry};
///
/// /// Moves one coin.
/// fn pay(db: &Db, from: &str, to: &str) -> Result<()> {
///     loop {
///         let mut transaction = db.transaction();
///         let count = |value: Option<Vec<u8>>| value.map_or(0, |value| value[0]);
///         let left = count(transaction.get(from)?).checked_sub(1).expect("a coin is left");
///         let got = count(transaction.get(to)?) + 1;
///         transaction.put(from, [left])?;
///         transaction.put(to, [got])?;
///         match transaction.commit() {
///             Err(error) if error.retry() == Retry::NewTransaction => continue,
///             done => return done,
///         }
///     }
/// }
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db = Db::open(directory.path(), Options::default())?;
/// db.put("ishmael", [20])?;
/// std::thread::scope(|scope| {
///     (0..4).for_each(|_| drop(scope.spawn(|| pay(&db, "ishmael", "queequeg").unwrap())));
/// });
/// assert_eq!(db.get("queequeg")?.unwrap(), [4]);
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Debug)]
pub struct Transaction {
    default: ColumnFamily,
    batch: WriteBatchWithIndex,
    snapshot: Option<Snapshot>,
    tracked: Tracked,
    /// The locks, if the transaction is pessimistic.
    locks: Option<Locks>,
    /// What each save point returns to, besides the batch.
    points: Vec<Point>,
    write: WriteOptions,
    /// Largest size of the batch in bytes.
    write_bytes_max: Option<u64>,
    /// The name that it has reserved, or under which it is prepared.
    name: Option<Vec<u8>>,
    is_prepared: bool,
    /// Whether it may have written to column families with timestamps.
    has_versions: bool,
    /// Bytes of a batch that a failed prepare may have stored under the name.
    left: Option<usize>,
    /// How the transaction ended, if it did.
    ended: Option<&'static str>,
}

/// The state of a transaction at a save point.
#[derive(Debug)]
struct Point {
    /// Number of tracked keys.
    tracked: usize,
    /// Number of locks.
    locks: usize,
    snapshot: Option<Snapshot>,
}

/// Reads and writes of the default column family.
impl Transaction {
    /// Returns the value of `key`: the transaction's own, or else that of the snapshot. Without a
    /// snapshot it reads the newest value.
    ///
    /// # Errors
    /// As [`Db::get`]. `TransactionOver` after a commit or rollback.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_in(&self.default, key.as_ref())
    }

    /// Returns true if `key` has a value.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Returns the value of `key`, and has the commit fail if others write the key before it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.get_for_update("fig")?;
    /// transaction.put("plum", "1")?;
    /// db.put("fig", "2")?;
    /// let refused = transaction.commit().unwrap_err();
    /// assert!(matches!(refused, sateen::Error::Busy { key, .. } if key == b"fig"));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`]. A pessimistic transaction locks the key: `LockTimedOut`,
    /// `Deadlock`, `LockLimit`. With a snapshot, also `Busy` if the key was written since, or
    /// `TryAgain`.
    pub fn get_for_update(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let family = self.default.clone();
        self.get_for_update_in(&family, key.as_ref(), true)
    }

    /// Returns the value of `key`, and takes a lock that others can share: they may read the key in
    /// the same way, but not write it. An optimistic transaction does the same as by
    /// [`get_for_update`](Transaction::get_for_update).
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    pub fn get_for_share(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let family = self.default.clone();
        self.get_for_update_in(&family, key.as_ref(), false)
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`](crate::WriteBatch::put). `TransactionOver` after a commit or
    /// rollback. Whether the database takes the write is decided at the commit. A pessimistic
    /// transaction locks the key, with the errors of [`Transaction::get_for_update`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::Put, key.as_ref(), value.as_ref(), true)
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::Delete, key.as_ref(), &[], true)
    }

    /// Merges `operand` into the value of `key`.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::Merge, key.as_ref(), operand.as_ref(), true)
    }

    /// Deletes `key`: see [`Db::single_delete`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::SingleDelete, key.as_ref(), &[], true)
    }

    /// Sets `key` to `value`, whatever others wrote to it since the snapshot. The key is not
    /// tracked, but a pessimistic transaction locks it. What guards the key later compares it with
    /// the snapshot. RocksDB: `PutUntracked`.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put_untracked(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::Put, key.as_ref(), value.as_ref(), false)
    }

    /// Deletes `key`, whatever others write to it before the commit.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete_untracked(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.own(ValueKind::Delete, key.as_ref(), &[], false)
    }

    /// Merges `operand` into the value of `key`, whatever others write to it before the commit.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn merge_untracked(
        &mut self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.own(ValueKind::Merge, key.as_ref(), operand.as_ref(), false)
    }

    /// Returns the entries of a range of keys, the transaction's writes so far included.
    ///
    /// # Errors
    /// As [`Db::range`]. `TransactionOver` after a commit or rollback.
    pub fn range(&self, range: impl KeyRange) -> Result<Iter> {
        self.check()?;
        self.seeing(&self.default).range(range)
    }

    /// Returns the entries whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`Transaction::range`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.check()?;
        self.seeing(&self.default).prefix(prefix)
    }

    /// Returns all entries.
    ///
    /// # Errors
    /// As [`Transaction::range`].
    pub fn iter(&self) -> Result<Iter> {
        self.range(..)
    }
}

/// The transaction as a whole.
impl Transaction {
    /// Returns the transaction as a place for reads and writes of a column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("walden", "lent")?;
    /// transaction.to(&loans).put("walden", "Ishmael")?;
    /// transaction.commit()?; // both or neither
    /// assert!(loans.contains_key("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn to<'a>(&'a mut self, family: &'a ColumnFamily) -> FamilyTransaction<'a> {
        FamilyTransaction { transaction: self, family }
    }

    /// Returns a column family to be read with exactly these options, below the transaction's
    /// writes. The snapshot of the transaction does not count; `options` may have it.
    pub fn reading<'a>(
        &'a self,
        family: &'a ColumnFamily,
        options: impl Into<Cow<'a, ReadOptions>>,
    ) -> BatchReading<'a> {
        self.batch.reading(family, options)
    }

    /// Takes a snapshot now, in place of the one that the transaction has. Keys that are tracked
    /// already must be unchanged since they were tracked.
    pub fn set_snapshot(&mut self) {
        self.snapshot = Some(self.default.db().snapshot());
    }

    /// Gives up the snapshot: reads see the newest values from now on.
    pub fn clear_snapshot(&mut self) {
        self.snapshot = None;
    }

    /// Returns the snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Returns the number of writes.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.batch.count()
    }

    /// Returns the number of keys that are tracked or locked.
    #[must_use]
    pub fn tracked_keys(&self) -> usize {
        self.tracked.len() + self.locks.as_ref().map_or(0, Locks::len)
    }

    /// Returns the number by which errors name this transaction if it holds a lock; `None` if it is
    /// optimistic. Numbers count from 1 since the open.
    #[must_use]
    pub fn id(&self) -> Option<u64> {
        self.locks.as_ref().map(Locks::owner)
    }

    /// Returns the writes so far, as a batch that can be read.
    #[must_use]
    pub fn batch(&self) -> &WriteBatchWithIndex {
        &self.batch
    }

    /// Remembers the present state for [`Transaction::rollback_to_save_point`].
    pub fn set_save_point(&mut self) {
        self.batch.set_save_point();
        let locks = self.locks.as_ref().map_or(0, Locks::len);
        let (tracked, snapshot) = (self.tracked.len(), self.snapshot.clone());
        self.points.push(Point { tracked, locks, snapshot });
    }

    /// Returns to the last save point, and forgets it: writes since are discarded, keys that were
    /// tracked or locked first since are so no more, and the snapshot is the one of then.
    ///
    /// # Errors
    /// `NoSavePoint` if there is none. `TransactionOver` after a commit or rollback.
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        self.check_change()?;
        self.batch.rollback_to_save_point()?;
        let Some(point) = self.points.pop() else { return Err(Error::NoSavePoint) };
        self.tracked.truncate(point.tracked);
        self.locks.iter_mut().for_each(|locks| locks.truncate(point.locks));
        self.snapshot = point.snapshot;
        Ok(())
    }

    /// Forgets the last save point and keeps everything else.
    ///
    /// # Errors
    /// `NoSavePoint` if there is none.
    pub fn pop_save_point(&mut self) -> Result<()> {
        self.batch.pop_save_point()?;
        self.points.pop().map(drop).ok_or(Error::NoSavePoint)
    }

    /// Discards the transaction. It cannot be used any more.
    ///
    /// # Errors
    /// `TransactionOver` after a commit or rollback. One that is prepared, or whose prepare failed:
    /// as [`Db::write`]. Then it is as it was before.
    pub fn rollback(&mut self) -> Result<()> {
        self.check()?;
        if let Some((name, bytes)) = self.stored() {
            let core = self.default.db().core();
            prepared::check_logged(core, &self.write)?;
            let mut removal = WriteBatch::new();
            prepared::add_removal(&mut removal, core, name, bytes)?;
            self.default.db().write(&removal, &self.write)?;
        }
        self.end("rolled back");
        Ok(())
    }

    /// Writes what the transaction wrote, if no tracked key was written by others since it was
    /// tracked. After that the transaction cannot be used any more. A transaction without writes is
    /// validated, too.
    ///
    /// # Errors
    /// - `Busy` if a tracked key was written; `TryAgain` if nobody can tell. Begin anew.
    /// - As [`Db::write`], for example `WouldStall`. Then the same commit may be tried again.
    /// - `InvalidArgument` if it is prepared, and the write would not go to the WAL.
    /// - `TransactionOver` after a commit or rollback.
    ///
    /// After an error the transaction is as it was before. After `Io`, as after any failed write,
    /// its writes may have taken effect nevertheless: if so, a second commit merges again what it
    /// merges, and a rollback undoes nothing. Read first.
    pub fn commit(&mut self) -> Result<()> {
        let write = self.write.clone();
        self.commit_with(&write)
    }

    /// Commits with these options in place of those that the transaction began with.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_with(&mut self, options: &WriteOptions) -> Result<()> {
        self.commit_stamped(None, options)
    }

    /// Writes `batch`, which is that of the transaction, if no tracked key was written by others.
    fn write_commit(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        let db = self.default.db();
        if let Some((name, bytes)) = self.stored() {
            prepared::check_logged(db.core(), options)?;
            let mut whole = batch.clone();
            prepared::add_removal(&mut whole, db.core(), name, bytes)?;
            return db.write_accepted(&whole, options);
        }
        let validate = || self.tracked.validate(db.core().writes.pipeline.conflicts());
        if self.tracked.len() == 0 {
            return db.write(batch, options);
        }
        if batch.len_bytes() == 0 {
            return validate();
        }
        let buckets = self.tracked.buckets();
        db.write_by(batch, options, |pipeline, batch, logging| {
            pipeline.commit_validated(batch, logging, &buckets, validate)
        })
    }
}

impl Drop for Transaction {
    /// A prepared transaction stays, with its locks. Any other one releases them.
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let prepared = &self.default.db().core().writes.prepared;
        match self.locks.take() {
            Some(locks) if self.is_prepared => {
                let batch = self.batch.batch().clone();
                let (owner, locks) = locks.into_kept();
                prepared.park(name, Parked { batch, owner, locks });
            }
            _ => match self.left {
                Some(bytes) => prepared.leave(name, bytes),
                None => prepared.forget(&name),
            },
        }
    }
}
