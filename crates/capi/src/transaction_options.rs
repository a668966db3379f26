//! The options of transactions and of databases with transactions. The functions that use a handle
//! read its values. `docs/c_abi/transactions.md` says what becomes of each.

use std::time::Duration;

use sateen::{Error, TransactionOptions, WriteOptions};

use crate::abi::{free, give};
use crate::settings::{Setting, Settings, keeps, made};

macro_rules! options {
    ($($(#[$doc:meta])* $handle:ident: $create:ident, $destroy:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Default)]
        #[expect(non_camel_case_types, reason = "RocksDB's name")]
        pub struct $handle(Settings);

        keeps!($handle: 0);
        made!($handle: $create, $destroy);
    )* };
}

options! {
    /// Options of a database with pessimistic transactions.
    rocksdb_transactiondb_options_t:
        rocksdb_transactiondb_options_create, rocksdb_transactiondb_options_destroy;
    /// Options of a pessimistic transaction.
    rocksdb_transaction_options_t:
        rocksdb_transaction_options_create, rocksdb_transaction_options_destroy;
    /// Options of an optimistic transaction.
    rocksdb_optimistictransaction_options_t:
        rocksdb_optimistictransaction_options_create,
        rocksdb_optimistictransaction_options_destroy;
}

/// How long the transactions of a database wait for locks, and its writes outside of transactions.
#[derive(Clone, Debug)]
pub(crate) struct LockTimeouts {
    transactions: Option<Duration>,
    writes: Option<Duration>,
}

/// Returns a timeout of so many milliseconds. Below 0 there is none.
fn timeout(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

impl LockTimeouts {
    /// Returns those in `options`, or an error if these promise what is not kept.
    ///
    /// # Safety
    /// The contract of the crate.
    pub(crate) unsafe fn of(
        options: *const rocksdb_transactiondb_options_t,
    ) -> sateen::Result<LockTimeouts> {
        let none = Settings::default();
        // SAFETY: the caller's promise.
        let settings = unsafe { options.as_ref() }.map_or(&none, |options| &options.0);
        let value = |key, default| i64::get(settings, key).unwrap_or(default);
        let locks = value("max_num_locks", -1);
        if locks > 0 {
            return Err(Error::InvalidArgument(format!(
                "max_num_locks={locks} is not implemented: there is no limit for all transactions \
                 together"
            )));
        }
        Ok(LockTimeouts {
            transactions: timeout(value("transaction_lock_timeout", 1000)),
            writes: timeout(value("default_lock_timeout", 1000)),
        })
    }

    /// Returns the options of a write outside of transactions.
    pub(crate) fn of_write(&self, write: WriteOptions) -> TransactionOptions {
        let lock_timeout = self.writes;
        TransactionOptions { lock_timeout, write, ..TransactionOptions::pessimistic() }
    }

    /// Returns what `options` say of a pessimistic transaction.
    ///
    /// # Safety
    /// The contract of the crate.
    pub(crate) unsafe fn of_transaction(
        &self,
        options: *const rocksdb_transaction_options_t,
        write: WriteOptions,
    ) -> sateen::Result<(TransactionOptions, Commits)> {
        let none = Settings::default();
        // SAFETY: the caller's promise.
        let settings = unsafe { options.as_ref() }.map_or(&none, |options| &options.0);
        let expiration = i64::get(settings, "expiration").unwrap_or(-1);
        if expiration >= 0 {
            return Err(Error::InvalidArgument(format!(
                "expiration={expiration} is not implemented: a transaction keeps its locks \
                 until it ends"
            )));
        }
        let lock_timeout = i64::get(settings, "lock_timeout").filter(|timeout| *timeout >= 0);
        let write_bytes_max = u64::get(settings, "max_write_batch_size").filter(|max| *max > 0);
        let prepared_only = !bool::get(settings, "skip_prepare").unwrap_or(true);
        let options = TransactionOptions {
            set_snapshot: bool::get(settings, "set_snapshot").unwrap_or(false),
            lock_timeout: lock_timeout.map_or(self.transactions, timeout),
            write_bytes_max,
            write,
            ..TransactionOptions::pessimistic()
        };
        Ok((options, if prepared_only { Commits::Prepared } else { Commits::All }))
    }
}

/// Which transactions can be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commits {
    All,
    /// Those that are prepared.
    Prepared,
}

/// Returns what `options` say of an optimistic transaction.
///
/// # Safety
/// The contract of the crate.
pub(crate) unsafe fn optimistic(
    options: *const rocksdb_optimistictransaction_options_t,
    write: WriteOptions,
) -> TransactionOptions {
    // SAFETY: the caller's promise.
    let options = unsafe { options.as_ref() };
    let set_snapshot = options.and_then(|options| bool::get(&options.0, "set_snapshot"));
    let set_snapshot = set_snapshot.unwrap_or(false);
    TransactionOptions { set_snapshot, write, ..TransactionOptions::default() }
}

/// Buckets of locks that databases share. Sateen's databases have their own; this has only what it
/// was asked for.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_optimistictransactiondb_lock_buckets_t {
    _count: usize,
}

/// Makes the handle. The parameters have no effect.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_lock_buckets_create(
    count: usize,
    _cache_aligned: std::ffi::c_uchar,
) -> *mut rocksdb_optimistictransactiondb_lock_buckets_t {
    give(rocksdb_optimistictransactiondb_lock_buckets_t { _count: count })
}

/// Returns the bytes of the handle, because there are no buckets; 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(
    buckets: *mut rocksdb_optimistictransactiondb_lock_buckets_t,
) -> usize {
    // SAFETY: the contract of the crate.
    unsafe { buckets.as_ref() }.map_or(0, size_of_val)
}

/// Frees the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_lock_buckets_destroy(
    buckets: *mut rocksdb_optimistictransactiondb_lock_buckets_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(buckets) };
}
