//! Two-phase commit: transactions that survive a crash between their prepare and their commit.
//!
//! A prepared transaction is stored as entries of a column family of its own, which clients do not
//! see ([`PREPARED`]). A key is the length of the name, the name, and the number of the part; the
//! values, one after the other, are the batch. One more entry, the [`MARK`], tells a repair without
//! a manifest which column family this is.
//!
//! 1. [`Transaction::prepare`] writes these entries with one batch.
//! 2. [`Transaction::commit`] writes the transaction's batch and deletes the entries, with one
//!    batch. A rollback deletes them.
//! 3. After an open, the first lock or list reads all entries ([`load`]): each transaction has its
//!    locks again before anybody else gets one, and waits for [`Db::prepared_transaction`].
//!
//! So WAL, flushes, checkpoints and repairs treat a prepared transaction as they treat all data.
//!
//! What must stay true: the entries of a transaction are there exactly from its prepare to its
//! commit or rollback; the mark stays. A prepare that failed may have stored them all the same: the
//! transaction, or the next one of its name, removes them with its next write.

use std::sync::Arc;
use std::time::Duration;

use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::sync::lock;

use super::batch_with_index::WriteBatchWithIndex;
use super::locks::Locks;
use super::transaction::{Transaction, TransactionOptions};
use crate::admission::key_locks::{Acquired, LockTarget, Wanted};
use crate::batch::WriteBatch;
use crate::core::DbCore;
use crate::db::Db;
use crate::db::cursor::Cursor;
use crate::open::create::create_family;
use crate::options::{ColumnFamilyOptions, ReadOptions, WalMode, WriteOptions};
use crate::tree::families::{ColumnFamilyData, PREPARED};
use crate::write::Payload;
use crate::write::prepared::Parked;

/// Longest name.
const NAME_BYTES_MAX: usize = 255;
/// Size of the parts of a batch.
const PART_BYTES: usize = 1 << 20;
/// Key and value of an entry that only the column family of prepared transactions has. Each prepare
/// writes it. No transaction has such a key, because no name is empty.
const MARK: (&[u8], &[u8]) =
    (b"\0prepared transactions", b"\x8e\x1f\xb3\x62sateen\xd9\x04\x77\xc5");

/// Returns true if this entry shows that it is in the column family of prepared transactions.
pub(crate) fn is_mark(key: &[u8], value: &[u8]) -> bool {
    (key, value) == MARK
}

impl Db {
    /// Returns the names of the prepared transactions, those from before the open included. A
    /// secondary lists those of its primary, as of the last catch-up. RocksDB:
    /// `GetAllPreparedTransactions`.
    ///
    /// # Errors
    /// `Closed`; `Io`; `Corruption`. On a secondary `Behind`.
    pub fn list_prepared(&self) -> Result<Vec<Vec<u8>>> {
        if self.core().secondary.is_some() {
            let stored = read_all(self.core())?;
            return Ok(stored.into_iter().map(|(name, _)| name).collect());
        }
        load(self.core())?;
        Ok(self.core().writes.prepared.names())
    }

    /// Returns the prepared transaction `name`, to be committed or rolled back; `None` if there is
    /// none. It is one from before the open, or one whose handle was dropped. RocksDB:
    /// `GetTransactionByName`.
    ///
    /// ```
    /// use sateen::{Db, Options, TransactionOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path(), Options::default())?;
    /// let mut transaction = db.transaction_with(&TransactionOptions::pessimistic());
    /// transaction.put("fig", "1")?;
    /// transaction.prepare("order 7")?;
    /// drop((transaction, db)); // as a crash would
    ///
    /// let db = Db::open(directory.path(), Options::default())?;
    /// assert_eq!(db.list_prepared()?, [b"order 7"]);
    /// db.prepared_transaction("order 7")?.unwrap().commit()?;
    /// assert!(db.contains_key("fig")? && db.list_prepared()?.is_empty());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::list_prepared`]. `InvalidArgument` if another handle has the transaction.
    /// `ReadOnly` on a secondary, whose primary ends it.
    pub fn prepared_transaction(&self, name: impl AsRef<[u8]>) -> Result<Option<Transaction>> {
        let name = name.as_ref();
        if self.core().secondary.is_some() {
            return Err(Error::ReadOnly("to end a prepared transaction of the primary"));
        }
        load(self.core())?;
        let parked = self.core().writes.prepared.take(name).map_err(|()| {
            let name = name.escape_ascii();
            Error::InvalidArgument(format!("another handle has the prepared transaction {name}"))
        })?;
        let Some(parked) = parked else { return Ok(None) };
        let indexed = match indexed(self.core(), &parked.batch) {
            Ok(indexed) => indexed,
            Err(error) => {
                self.core().writes.prepared.park(name.to_vec(), parked);
                return Err(error);
            }
        };
        let options = TransactionOptions::pessimistic();
        let locks = &self.core().writes.key_locks;
        let locks = Locks::adopt(locks, parked.owner, parked.locks, &options);
        Ok(Some(Transaction::prepared(self, &options, indexed, locks, name.to_vec())))
    }
}

/// Returns `batch` with an index.
fn indexed(core: &DbCore, batch: &WriteBatch) -> Result<WriteBatchWithIndex> {
    let default = core.tree.default_family.comparator();
    let mut indexed = WriteBatchWithIndex::sized(default, u64::MAX);
    let families = core.tree.families();
    for entry in batch {
        // A family that was dropped since cannot be read.
        let family = families.by_id(entry.column_family);
        indexed.add(family.map_or(default, |family| family.comparator()), &entry)?;
    }
    Ok(indexed)
}

/// Has all prepared transactions from before the open hold their locks, unless they do. Called
/// before any lock is taken. On a secondary they are those of another process, and their locks are
/// there.
pub(super) fn load(core: &Arc<DbCore>) -> Result<()> {
    let prepared = &core.writes.prepared;
    if prepared.is_loaded() || core.secondary.is_some() {
        return Ok(());
    }
    let _turn = lock(&core.tree.changes);
    if prepared.is_loaded() {
        return Ok(());
    }
    let batches = read_all(core)?;
    let mut found = Vec::with_capacity(batches.len());
    for (name, batch) in batches {
        let owner = core.writes.key_locks.new_owner();
        let mut locks: Vec<LockTarget> = Vec::new();
        for entry in &batch {
            let what = LockTarget::Key((entry.column_family, entry.key.into()));
            let acquired = core.writes.key_locks.acquire(&Wanted {
                owner,
                what: &what,
                family: "",
                exclusive: true,
                timeout: Some(Duration::ZERO),
                metrics: &core.env.metrics,
                give_up: &|| core.env.check_open(),
            });
            match acquired {
                Ok(Acquired::New) => locks.push(what),
                Ok(Acquired::Before) => {}
                // What a failed prepare left has the same key as a later one (`Place::Left`).
                Err(Error::LockTimedOut { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        found.push((name, Parked { batch, owner, locks }));
    }
    prepared.load(found.into_iter());
    Ok(())
}

/// Reads all prepared transactions.
fn read_all(core: &Arc<DbCore>) -> Result<Vec<(Vec<u8>, WriteBatch)>> {
    let Some(family) = core.tree.families().prepared().cloned() else { return Ok(Vec::new()) };
    let wrong = |what| Error::corruption(&core.env.directory, 0, CorruptionKind::Malformed(what));
    let mut cursor = Cursor::new(core, &family, &ReadOptions::default())?;
    let mut stored: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        if cursor.key() == MARK.0 {
            cursor.next();
            continue;
        }
        let (name, part) = split_key(cursor.key())
            .ok_or_else(|| wrong("a key of a prepared transaction that is none"))?;
        match stored.last_mut() {
            Some((last, data)) if last == name => data.extend_from_slice(cursor.value()),
            _ if part == 0 => stored.push((name.to_vec(), cursor.value().to_vec())),
            _ => return Err(wrong("a prepared transaction without its first part")),
        }
        cursor.next();
    }
    cursor.status()?;
    let batch = |(name, data)| {
        let batch = WriteBatch::from_data(data);
        Ok((name, batch.map_err(|_| wrong("a prepared transaction that is not a batch"))?))
    };
    stored.into_iter().map(batch).collect()
}

/// Returns the key of a part.
fn key(name: &[u8], part: u32) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
    [&[length], name, &part.to_be_bytes()].concat()
}

/// Returns the name and the part of a key.
fn split_key(key: &[u8]) -> Option<(&[u8], u32)> {
    let (length, rest) = key.split_first()?;
    let (name, part) = rest.split_at_checked(usize::from(*length))?;
    Some((name, u32::from_be_bytes(part.try_into().ok()?)))
}

/// Adds the deletion of the entries of `name`, of a batch of `bytes`, to `batch`.
pub(super) fn add_removal(
    batch: &mut WriteBatch,
    core: &DbCore,
    name: &[u8],
    bytes: usize,
) -> Result<()> {
    let Some(family) = core.tree.families().prepared().cloned() else { return Ok(()) };
    for part in 0..parts(bytes) {
        batch.delete_in(family.id(), &key(name, part))?;
    }
    Ok(())
}

/// Returns the number of entries for a batch of `bytes`.
fn parts(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PART_BYTES).max(1)).unwrap_or(u32::MAX)
}

/// Returns the entries that make `batch` the prepared transaction `name`. A failed prepare may have
/// stored a batch of `left` bytes under that name.
pub(super) fn entries(
    core: &Arc<DbCore>,
    name: &[u8],
    batch: &WriteBatch,
    left: Option<usize>,
    options: &WriteOptions,
) -> Result<WriteBatch> {
    check_logged(core, options)?;
    let family = family(core)?;
    let mut entries = WriteBatch::with_value_bytes_max(PART_BYTES);
    entries.put_in(family.id(), MARK.0, MARK.1)?;
    let empty: &[u8] = &[];
    let chunks = batch.data().chunks(PART_BYTES);
    let chunks = chunks.chain(batch.data().is_empty().then_some(empty));
    for (part, data) in (0..).zip(chunks) {
        entries.put_in(family.id(), &key(name, part), data)?;
    }
    for part in parts(batch.data().len())..left.map_or(0, parts) {
        entries.delete_in(family.id(), &key(name, part))?;
    }
    Ok(entries)
}

/// Writes the entries of a prepared transaction.
pub(super) fn store(
    core: &Arc<DbCore>,
    entries: &WriteBatch,
    options: &WriteOptions,
) -> Result<()> {
    // Without the checks of clients' writes: the parts are larger than clients may allow values.
    core.write(&Payload::Batch(entries), entries.len_bytes() as u64, options)
}

/// Fails if a write with these options would not go to the WAL. Column families are flushed one
/// after the other, so without the WAL a crash could tear the commit.
pub(super) fn check_logged(core: &DbCore, options: &WriteOptions) -> Result<()> {
    if options.disable_wal || core.env.options.load().wal == WalMode::Off {
        let text = "a prepared transaction needs the WAL, which is switched off";
        return Err(Error::InvalidArgument(text.into()));
    }
    Ok(())
}

/// Fails if `name` cannot be one.
pub(super) fn check_name(name: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::InvalidArgument(format!(
            "the name of a prepared transaction has {} bytes: it must have 1 to {NAME_BYTES_MAX}",
            name.len()
        )));
    }
    Ok(())
}

/// Returns the column family of prepared transactions. Creates it if it does not exist.
fn family(core: &Arc<DbCore>) -> Result<Arc<ColumnFamilyData>> {
    core.env.check_writable("preparing a transaction")?;
    let _catalogue = lock(&core.tree.changes);
    if let Some(family) = core.tree.families().prepared() {
        return Ok(family.clone());
    }
    create_family(core, PREPARED, ColumnFamilyOptions::default())
}
