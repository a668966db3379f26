//! Transactions: begin, commit, two-phase commit, save points, snapshots. `transaction_data` has
//! their reads and writes.

use std::ffi::c_char;
use std::ptr::null_mut;

use sateen::{ColumnFamily, Db, Error, TimestampedFamily, Transaction, TransactionOptions};

use crate::abi::{ErrPtr, bytes, free, give, guard, malloc_copy, missing, quiet};
use crate::batch::rocksdb_writebatch_t;
use crate::calls::{TransactionSnapshot, rocksdb_snapshot_t, rocksdb_writeoptions_t};
use crate::database::{check_untimed, of, rocksdb_column_family_handle_t};
use crate::db::write_options;
use crate::families::list_of;
use crate::transaction_dbs::{rocksdb_optimistictransactiondb_t, rocksdb_transactiondb_t};
use crate::transaction_options::{
    Commits, optimistic, rocksdb_optimistictransaction_options_t, rocksdb_transaction_options_t,
};

/// A transaction, and how it was begun.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_transaction_t {
    pub(crate) inner: Transaction,
    db: Db,
    options: TransactionOptions,
    commits: Commits,
    /// What is wrong with the options that it was begun with. All calls report it.
    refused: Option<Error>,
    /// The first error of a call that could not report it. The commit does.
    spoilt: Option<Error>,
    /// The snapshot, for `rocksdb_transaction_get_snapshot`; until this handle is freed.
    snapshot: *mut TransactionSnapshot,
    /// The timestamp that its writes to column families with timestamps get.
    commit_timestamp: Option<u64>,
    /// The timestamp after which the keys that it reads for update must have no version.
    read_timestamp: Option<u64>,
    /// The bytes that `rocksdb_writebatch_wi_data` returned to C.
    pub(crate) shown: Vec<u8>,
}

impl rocksdb_transaction_t {
    fn new(
        db: &Db,
        inner: Transaction,
        options: TransactionOptions,
        commits: Commits,
    ) -> rocksdb_transaction_t {
        let snapshot = give(TransactionSnapshot(inner.snapshot().cloned()));
        rocksdb_transaction_t {
            inner,
            db: db.clone(),
            options,
            commits,
            refused: None,
            spoilt: None,
            snapshot,
            commit_timestamp: None,
            read_timestamp: None,
            shown: Vec::new(),
        }
    }

    /// Begins a transaction. Without options that are kept, it reports their error.
    fn begin(
        db: &Db,
        options: sateen::Result<(TransactionOptions, Commits)>,
    ) -> rocksdb_transaction_t {
        let (options, commits, refused) = match options {
            Ok((options, commits)) => (options, commits, None),
            Err(error) => (TransactionOptions::default(), Commits::All, Some(error)),
        };
        let inner = db.transaction_with(&options);
        let mut begun = rocksdb_transaction_t::new(db, inner, options, commits);
        begun.refused = refused;
        begun
    }

    /// Fails if the transaction cannot be used.
    pub(crate) fn check(&self) -> sateen::Result<()> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    /// Has the commit fail with `error`, unless another error came first.
    pub(crate) fn spoil(&mut self, error: Error) {
        self.spoilt.get_or_insert(error);
    }

    /// Returns the column family of a handle, whose keys must have no timestamps.
    pub(crate) unsafe fn family(
        &self,
        family: *mut rocksdb_column_family_handle_t,
    ) -> sateen::Result<ColumnFamily> {
        // SAFETY: the contract of the crate.
        let family = unsafe { of(&self.db, family)? };
        check_untimed(&family).map(|()| family)
    }

    /// Returns the column family of a handle if its keys have timestamps; `None` if they have none.
    pub(crate) unsafe fn timestamped(
        &self,
        family: *mut rocksdb_column_family_handle_t,
    ) -> sateen::Result<Option<TimestampedFamily>> {
        // SAFETY: the contract of the crate.
        let family = unsafe { of(&self.db, family)? };
        let bytes = family.comparator().timestamp_bytes();
        if bytes == 0 || bytes == size_of::<u64>() {
            return Ok(family.timestamped());
        }
        let name = family.name();
        let text = format!(
            "the keys of the column family {name} have timestamps of {bytes} bytes: those of \
             transactions have 8"
        );
        Err(Error::InvalidArgument(text))
    }

    /// Returns the timestamp as of which a key is read for update. `at` is that of the read's
    /// options, if they have one.
    pub(crate) fn validated_at(&self, at: Option<Vec<u8>>) -> sateen::Result<Vec<u8>> {
        let wrong = |text: &str| Err(Error::InvalidArgument(text.into()));
        let Some(read) = self.read_timestamp.map(u64::to_le_bytes) else {
            return wrong(
                "a key with timestamps is read for update after \
                 rocksdb_transaction_set_read_timestamp_for_validation",
            );
        };
        if at.is_some_and(|at| at != read) {
            return wrong(
                "the timestamp of the read is another one than that of \
                 rocksdb_transaction_set_read_timestamp_for_validation",
            );
        }
        Ok(read.to_vec())
    }

    /// Commits at the timestamp that was set, if one was.
    fn commit_writes(&mut self) -> sateen::Result<()> {
        let Some(at) = self.commit_timestamp else { return self.inner.commit() };
        if let Some(read) = self.read_timestamp.filter(|read| at <= *read) {
            let text = format!(
                "the timestamp of the commit, {at}, must be after that of validated reads, {read}"
            );
            return Err(Error::InvalidArgument(text));
        }
        self.inner.commit_at(at.to_le_bytes())
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    fn commit(&mut self) -> sateen::Result<()> {
        self.check()?;
        if let Some(error) = &self.spoilt {
            return Err(error.clone());
        }
        if self.commits == Commits::Prepared && !self.inner.is_prepared() {
            let text = "the transaction is not prepared, and skip_prepare is off";
            return Err(Error::InvalidArgument(text.into()));
        }
        self.commit_writes()?;
        if !self.options.pessimistic {
            // RocksDB's can be used again.
            self.inner = self.db.transaction_with(&self.options);
            self.note_snapshot();
        }
        Ok(())
    }

    fn note_snapshot(&mut self) {
        // SAFETY: it is freed with this handle.
        if let Some(snapshot) = unsafe { self.snapshot.as_mut() } {
            snapshot.0 = self.inner.snapshot().cloned();
        }
    }

    fn rollback(&mut self) -> sateen::Result<()> {
        self.check()?;
        self.spoilt = None;
        if self.inner.is_prepared() { self.inner.rollback() } else { self.inner.undo() }
    }
}

impl Drop for rocksdb_transaction_t {
    fn drop(&mut self) {
        // SAFETY: from `give`, and not used any more.
        unsafe { free(self.snapshot) };
    }
}

/// Calls `act` with the transaction.
pub(crate) unsafe fn with<T>(
    transaction: *mut rocksdb_transaction_t,
    errptr: ErrPtr,
    default: T,
    act: impl FnOnce(&mut rocksdb_transaction_t) -> sateen::Result<T>,
) -> T {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, default, || {
            act(transaction.as_mut().ok_or_else(|| missing("the transaction"))?)
        })
    }
}

/// Puts a new transaction into `old`, or into a new handle if there is none.
unsafe fn place(
    old: *mut rocksdb_transaction_t,
    new: rocksdb_transaction_t,
) -> *mut rocksdb_transaction_t {
    // SAFETY: the contract of the crate.
    match unsafe { old.as_mut() } {
        Some(place) => {
            *place = new;
            old
        }
        None => give(new),
    }
}

/// Begins a pessimistic transaction, in the place of `old` unless that is null. The first call that
/// can report an error reports that of options that are not kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_begin(
    db: *mut rocksdb_transactiondb_t,
    write: *const rocksdb_writeoptions_t,
    options: *const rocksdb_transaction_options_t,
    old: *mut rocksdb_transaction_t,
) -> *mut rocksdb_transaction_t {
    // SAFETY: the contract of the crate.
    quiet(null_mut(), || unsafe {
        let Some(db) = db.as_ref() else { return null_mut() };
        let write = write_options(write);
        let options = write.and_then(|write| db.timeouts.of_transaction(options, write));
        place(old, rocksdb_transaction_t::begin(&db.base.db, options))
    })
}

/// Begins an optimistic transaction, in the place of `old` unless that is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransaction_begin(
    db: *mut rocksdb_optimistictransactiondb_t,
    write: *const rocksdb_writeoptions_t,
    options: *const rocksdb_optimistictransaction_options_t,
    old: *mut rocksdb_transaction_t,
) -> *mut rocksdb_transaction_t {
    // SAFETY: the contract of the crate.
    quiet(null_mut(), || unsafe {
        let Some(db) = db.as_ref() else { return null_mut() };
        let options = write_options(write).map(|write| (optimistic(options, write), Commits::All));
        place(old, rocksdb_transaction_t::begin(&db.base.db, options))
    })
}

/// Frees a transaction. One that is not committed has no effect; a prepared one stays prepared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_destroy(transaction: *mut rocksdb_transaction_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(transaction) };
}

/// Returns the prepared transactions that no handle has, in a list to be freed; null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_get_prepared_transactions(
    db: *mut rocksdb_transactiondb_t,
    count: *mut usize,
) -> *mut *mut rocksdb_transaction_t {
    // SAFETY: the contract of the crate.
    let (db, count) = unsafe { (db.as_ref(), count.as_mut()) };
    let found = quiet(Vec::new(), || {
        let Some(db) = db.map(|db| &db.base.db) else { return Vec::new() };
        let names = db.list_prepared().unwrap_or_default();
        let free = names.iter().filter_map(|name| db.prepared_transaction(name).ok()?);
        let handles = free.map(|inner| {
            let options = TransactionOptions::pessimistic();
            give(rocksdb_transaction_t::new(db, inner, options, Commits::All))
        });
        handles.collect()
    });
    if let Some(count) = count {
        *count = found.len();
    }
    if found.is_empty() { null_mut() } else { list_of(&found) }
}

macro_rules! acts {
    ($($(#[$doc:meta])* $function:ident |$transaction:ident| $act:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            transaction: *mut rocksdb_transaction_t,
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe { with(transaction, errptr, (), |$transaction| $act) };
        }
    )* };
}

acts! {
    /// Writes what the transaction wrote, all or nothing. After an error it is as before.
    rocksdb_transaction_commit |transaction| transaction.commit();
    /// Discards what the transaction wrote, and releases its locks. It can be used again, unless it
    /// was prepared.
    rocksdb_transaction_rollback |transaction| transaction.rollback();
    /// Returns to the newest save point, and removes it.
    rocksdb_transaction_rollback_to_savepoint |transaction| {
        transaction.check()?;
        transaction.inner.rollback_to_save_point()
    };
    /// Makes the transaction survive a crash, under the name that it has.
    rocksdb_transaction_prepare |transaction| {
        transaction.check()?;
        let name = transaction.inner.name().map(<[u8]>::to_vec);
        let unnamed = "the transaction has no name, which rocksdb_transaction_set_name sets";
        let name = name.ok_or_else(|| Error::InvalidArgument(unnamed.into()))?;
        match &transaction.spoilt {
            Some(error) => Err(error.clone()),
            None => transaction.inner.prepare(name),
        }
    };
}

/// Sets a save point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_set_savepoint(
    transaction: *mut rocksdb_transaction_t,
) {
    // SAFETY: the contract of the crate.
    if let Some(transaction) = unsafe { transaction.as_mut() } {
        quiet((), || transaction.inner.set_save_point());
    }
}

/// Gives the transaction a name of 1 to 255 bytes, which no other one has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_set_name(
    transaction: *mut rocksdb_transaction_t,
    name: *const c_char,
    length: usize,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        with(transaction, errptr, (), |transaction| {
            transaction.check()?;
            transaction.inner.reserve_name(bytes(name, length)?)
        });
    }
}

/// Returns the name, to be freed. It is empty if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_get_name(
    transaction: *mut rocksdb_transaction_t,
    length: *mut usize,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    let (transaction, length) = unsafe { (transaction.as_ref(), length.as_mut()) };
    let name = transaction.and_then(|transaction| transaction.inner.name()).unwrap_or_default();
    if let Some(length) = length {
        *length = name.len();
    }
    malloc_copy(name)
}

/// Returns the snapshot of the transaction, to be freed by `rocksdb_free`. Without a snapshot it
/// stands for the newest state. Reading at it fails once the transaction is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_get_snapshot(
    transaction: *mut rocksdb_transaction_t,
) -> *const rocksdb_snapshot_t {
    // SAFETY: the contract of the crate.
    match unsafe { transaction.as_ref() } {
        Some(transaction) => rocksdb_snapshot_t::lent(transaction.snapshot),
        None => std::ptr::null(),
    }
}

/// Does all writes of a batch in the transaction, or none of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_rebuild_from_writebatch(
    transaction: *mut rocksdb_transaction_t,
    batch: *mut rocksdb_writebatch_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        with(transaction, errptr, (), |transaction| {
            transaction.check()?;
            let batch = batch.as_ref().ok_or_else(|| missing("the batch"))?;
            transaction.inner.rebuild_from(batch.complete_for(transaction.db())?)
        });
    }
}

macro_rules! timestamps {
    ($($(#[$doc:meta])* $function:ident |$transaction:ident, $timestamp:ident| $act:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            transaction: *mut rocksdb_transaction_t,
            timestamp: u64,
        ) {
            // The largest number stands for none, as in RocksDB.
            let $timestamp = Some(timestamp).filter(|timestamp| *timestamp < u64::MAX);
            // SAFETY: the contract of the crate.
            let Some($transaction) = (unsafe { transaction.as_mut() }) else { return };
            if $transaction.options.pessimistic {
                $act
            } else {
                let text = concat!(stringify!($function), " is for pessimistic transactions");
                $transaction.spoil(Error::InvalidArgument(text.into()));
            }
        }
    )* };
}

timestamps! {
    /// Sets the timestamp of all writes to column families with timestamps. The commit needs it if
    /// there are such writes, and ignores it if there are none.
    rocksdb_transaction_set_commit_timestamp |transaction, timestamp| {
        transaction.commit_timestamp = timestamp;
    };
    /// Sets the timestamp as of which keys with timestamps are read for update: a newer version is
    /// a conflict. A smaller one than before has the commit fail.
    rocksdb_transaction_set_read_timestamp_for_validation |transaction, timestamp| {
        match transaction.read_timestamp {
            Some(before) if timestamp.is_some_and(|timestamp| timestamp < before) => {
                let text = "the timestamp of validated reads cannot become smaller";
                transaction.spoil(Error::InvalidArgument(text.into()));
            }
            _ => transaction.read_timestamp = timestamp,
        }
    };
}
