//! Options of a transaction.

use std::time::Duration;

use crate::options::WriteOptions;

/// Options of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionOptions {
    /// The transaction takes a snapshot as it begins. Reads see it, and every key that the
    /// transaction writes must be unchanged since. Without it, a read sees the newest value, and a
    /// key must be unchanged since the transaction wrote it first, or read it by `get_for_update`.
    /// Default: true. RocksDB: `set_snapshot`, which is off by default.
    pub set_snapshot: bool,
    /// The transaction locks keys as it writes them or reads them by `get_for_update`, and waits
    /// for the locks of others. Its commit then meets no conflict with other pessimistic
    /// transactions. Default: false. RocksDB: a `TransactionDB` in place of an
    /// `OptimisticTransactionDB`.
    pub pessimistic: bool,
    /// Longest wait for the lock of a key; `None` waits until the lock is free. Deadlocks are found
    /// at once, whatever this says. Default: 1 s. RocksDB: `lock_timeout`.
    pub lock_timeout: Option<Duration>,
    /// Largest number of keys that the transaction may lock. Default: 1,048,576. RocksDB:
    /// `max_num_locks`, for each column family.
    pub locks_max: usize,
    /// Largest size of the transaction's batch in bytes, about that of its keys and values. A write
    /// that would make it larger fails with `TransactionSize`. Default: `None`, no limit but that
    /// of a batch. RocksDB: `max_write_batch_size`.
    pub write_bytes_max: Option<u64>,
    /// How the commit is written. Default: as any write. RocksDB: the `WriteOptions` of
    /// `BeginTransaction`.
    pub write: WriteOptions,
}

impl Default for TransactionOptions {
    fn default() -> TransactionOptions {
        TransactionOptions {
            set_snapshot: true,
            pessimistic: false,
            lock_timeout: Some(Duration::from_secs(1)),
            locks_max: 1 << 20,
            write_bytes_max: None,
            write: WriteOptions::default(),
        }
    }
}

impl TransactionOptions {
    /// Options of a pessimistic transaction without a snapshot: it locks keys and reads the newest
    /// values.
    #[must_use]
    pub fn pessimistic() -> TransactionOptions {
        TransactionOptions {
            set_snapshot: false,
            pessimistic: true,
            ..TransactionOptions::default()
        }
    }
}
