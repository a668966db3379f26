//! The errors of every operation: what failed, on which file and where in it, and why.
//!
//! What must stay true: an error that the operating system caused is never taken for damage of a
//! file ([`refused_by_system`]).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::base::names::{shown, shown_path};
use crate::base::system::{error_number, is_out_of_descriptors, open_files_limit};

/// The result of every fallible operation of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is wrong with bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorruptionKind {
    /// The stored checksum differs from that of the bytes.
    #[error("checksum mismatch")]
    Checksum,
    /// Zeros stand where bytes of a table must be: a hole, or a write that was lost.
    #[error("a hole: zeros where a table's bytes must be")]
    Hole,
    /// The file or record ends early.
    #[error("truncated")]
    Truncated,
    /// The checksum is right, but the content is invalid.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// A file that the manifest names does not exist.
    #[error("missing file")]
    MissingFile,
    /// Entries are not in the order of their keys.
    #[error("keys out of order")]
    Order,
    /// Two records of the database contradict each other.
    #[error("inconsistent: {0}")]
    Inconsistent(&'static str),
}

/// A transaction that waits for the lock of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The number of the transaction.
    pub transaction: u64,
    /// The column family of the key.
    pub column_family: String,
    /// The user key.
    pub key: Vec<u8>,
}

/// Shown for the holder of a lock if the process is not known.
const SOMEBODY: &str = "another handle or process";

/// An error of the engine. It is cheap to clone: the cause of a background failure is reported by
/// every write that it refuses.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file.
    #[error("{operation} {}: {source}{}", shown_path(path), advice(source))]
    Io {
        /// What was attempted ("read", "sync", …).
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: Arc<io::Error>,
    },
    /// Bytes that were read are not what was written.
    #[error("{}: corruption at offset {offset}: {kind}", shown_path(path))]
    Corruption {
        /// The file.
        path: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// What is wrong.
        kind: CorruptionKind,
    },
    /// The manifest contradicts itself.
    #[error("{}: corruption: {reason}", shown_path(path))]
    InconsistentEdit {
        /// The manifest.
        path: PathBuf,
        /// What contradicts what.
        reason: String,
    },
    /// The caller asked for something that cannot be done. The text names the argument.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// The directory or file is not one of this engine, or its format version cannot be read.
    #[error("{}: {reason}", shown_path(path))]
    IncompatibleDirectory {
        /// The directory or file.
        path: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// Another process, or another handle of this one, has the database open.
    #[error("{}: already open in {}", shown_path(path), holder.as_deref().unwrap_or(SOMEBODY))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process, by command and id, if it is known for certain.
        holder: Option<String>,
    },
    /// The merge operands of a key could not be merged. Either the column family was opened without
    /// a merge operator, or its operator refused them. The operands are kept.
    #[error("the operands of key \"{}\" cannot be merged: {reason}", key.escape_ascii())]
    MergeFailed {
        /// The user key.
        key: Vec<u8>,
        /// Why.
        reason: String,
    },
    /// A compaction filter panicked or returned an invalid value. Its compaction is abandoned.
    #[error("the compaction filter {filter} failed: {reason}")]
    FilterFailed {
        /// The filter's name.
        filter: String,
        /// What happened.
        reason: String,
    },
    /// No column family has that name, or it was dropped.
    #[error("no such column family: {}", shown(.0))]
    NoSuchColumnFamily(String),
    /// The column family has no merge operator, so it accepts no merge operands.
    #[error("the column family {} has no merge operator", shown(.0))]
    NoMergeOperator(String),
    /// The WAL has no writes from a sequence number on: they are not written yet, or no longer
    /// kept.
    #[error("{0}")]
    NotInLog(String),
    /// The operation needs a secondary database.
    #[error("the database was not opened as a secondary, so there is no primary to catch up with")]
    NotSecondary,
    /// The process that writes the database has replaced files that this reader needs, or changes
    /// them faster than the reader can follow. Nothing is damaged. Open the database again; on a
    /// secondary, `Db::try_catch_up_with_primary` is enough.
    #[error("{cause}: the reader is behind the writer; open the database again, or catch up")]
    Behind {
        /// What was replaced, or what changes too fast.
        cause: String,
    },
    /// The data may be on the disk, and `ReadOptions::memory_only` forbids reading it.
    #[error("the data is not in memory, and the read may not use the disk")]
    NotInMemory,
    /// A step of an iterator passed over more entries than `ReadOptions::skipped_max` allows.
    #[error("the iterator passed over more than {0} deleted or hidden entries")]
    TooManySkipped(u64),
    /// A file cannot be ingested into the last level, which
    /// `IngestOptions::fail_if_not_bottommost_level` demands.
    #[error("{} cannot be ingested into the last level: {reason}", path.display())]
    NotBottommost {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// A batch has no save point to return to.
    #[error("the batch has no save point")]
    NoSavePoint,
    /// Another write changed a key that a transaction tracks or wants. Nothing of the transaction
    /// was written. Begin a new transaction.
    #[error(
        "the key \"{}\" of the column family {} was written by others since the transaction read \
         it",
        key.escape_ascii(), shown(column_family)
    )]
    Busy {
        /// The column family.
        column_family: String,
        /// The user key.
        key: Vec<u8>,
    },
    /// Nobody can tell any more whether others wrote a key since the transaction tracked it,
    /// because memtables were flushed since. Nothing was written. Begin a new transaction.
    #[error(
        "whether the key \"{}\" of the column family {} was written since the transaction read it \
         cannot be told: {reason}; begin a new transaction",
        key.escape_ascii(), shown(column_family)
    )]
    TryAgain {
        /// The column family.
        column_family: String,
        /// The user key.
        key: Vec<u8>,
        /// Why it cannot be told.
        reason: &'static str,
    },
    /// Another transaction held the lock of a key for longer than `lock_timeout` allows.
    #[error(
        "the lock of the key \"{}\" of the column family {} was not free within {timeout:?}: \
         transaction {holder} holds it",
        key.escape_ascii(), shown(column_family)
    )]
    LockTimedOut {
        /// The column family.
        column_family: String,
        /// The user key.
        key: Vec<u8>,
        /// The longest wait that was allowed.
        timeout: Duration,
        /// The number of a transaction that holds the lock.
        holder: u64,
    },
    /// A transaction would wait for ever: transactions wait for each other's locks in a cycle.
    /// Roll it back and begin a new one.
    #[error("deadlock: {}", shown_cycle(cycle))]
    Deadlock {
        /// Each transaction waits for the next one, and the last one for the first.
        cycle: Vec<LockWait>,
    },
    /// A transaction would hold more locks than its `locks_max` allows.
    #[error("the transaction holds {0} locks, which is the limit of `locks_max`")]
    LockLimit(usize),
    /// A write would make a transaction larger than its `write_bytes_max` allows.
    #[error("the transaction would have {bytes} bytes, above the limit `write_bytes_max`={max}")]
    TransactionSize {
        /// Its size with that write, in bytes.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// A transaction was used after its commit or rollback.
    #[error("the transaction is over: it was {0}")]
    TransactionOver(&'static str),
    /// The write would have waited longer than its options allow.
    #[error("write would stall ({cause}); retry after {retry_after:?}")]
    WouldStall {
        /// Expected time until the same write passes.
        retry_after: Duration,
        /// Reason for the stall.
        cause: &'static str,
    },
    /// Manual compactions are paused (`Db::pause_manual_compactions`).
    #[error("manual compactions are paused")]
    ManualCompactionPaused,
    /// Background work is paused (`Db::pause_background_work`).
    #[error("background work is paused")]
    BackgroundPaused,
    /// An operation did not finish within its time limit.
    #[error("{0} did not finish in time")]
    TimedOut(&'static str),
    /// The database accepts no writes because of an earlier failure in the background.
    #[error("the database is {state}: {cause}")]
    Background {
        /// "degraded" or "read-only".
        state: &'static str,
        /// The failure.
        cause: Arc<Error>,
    },
    /// A thread of the database panicked. This is a bug of Sateen or of a file system that was
    /// passed in.
    #[error("the thread {thread} panicked: {message}")]
    Panicked {
        /// The thread's name.
        thread: String,
        /// The panic's message.
        message: String,
    },
    /// There is no backup of this number; 0 if there is none at all.
    #[error("there is no backup{}", number_of(*.0))]
    NoSuchBackup(u64),
    /// The backup of this number was deleted while it was restored or verified.
    #[error("backup {0} was deleted while it was being read")]
    BackupDeleted(u64),
    /// The caller ended an operation early.
    #[error("{0} was cancelled")]
    Cancelled(&'static str),
    /// The database was opened read-only.
    #[error("the database was opened read-only: {0} is not possible")]
    ReadOnly(&'static str),
    /// The database is closing. The operation was not done.
    #[error("the database is closed")]
    Closed,
    /// The process is a fork of the one that opened the database, which cannot be used here. The
    /// operation was not done.
    #[error("the database belongs to the parent process: open one in this process after the fork")]
    OfParentProcess,
}

/// Returns the number of a backup behind a space, if there is one.
fn number_of(backup: u64) -> String {
    if backup == 0 { String::new() } else { format!(" {backup}") }
}

/// Returns the text of a cycle of transactions that wait for each other.
fn shown_cycle(cycle: &[LockWait]) -> String {
    let next = cycle.iter().skip(1).chain(cycle.first());
    let waits = cycle.iter().zip(next).map(|(wait, holder)| {
        format!(
            "transaction {} waits for \"{}\" of {}, held by {}",
            wait.transaction,
            wait.key.escape_ascii(),
            shown(&wait.column_family),
            holder.transaction
        )
    });
    waits.collect::<Vec<_>>().join("; ")
}

/// Returns what to do about an error of the operating system, if that is known.
fn advice(source: &io::Error) -> String {
    if !is_out_of_descriptors(source) {
        return String::new();
    }
    let limit = open_files_limit();
    // The option takes half of the limit at most, and not less than 16.
    let also = if limit.is_none_or(|limit| limit >= 64) { ", or lower max_open_files" } else { "" };
    let limit = limit.map_or("no limit".to_owned(), |limit| limit.to_string());
    format!(" (limit of the process: {limit}; raise it with ulimit -n{also})")
}

impl Error {
    /// Returns the error for a range whose lower bound is above its upper bound.
    pub fn reversed_bounds(lower: &[u8], upper: &[u8]) -> Error {
        Error::InvalidArgument(format!(
            "the lower bound \"{}\" is above the upper bound \"{}\"",
            lower.escape_ascii(),
            upper.escape_ascii()
        ))
    }

    /// Returns an I/O error of `operation` on the file `path`.
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { operation, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Returns the error of an operation on a file of the descriptor pool, which may have to open
    /// it again by name. There, `NotFound` means that the file is missing.
    pub fn of_pooled(operation: &'static str, path: &Path, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::NotFound => Error::corruption(path, 0, CorruptionKind::MissingFile),
            _ => Error::io(operation, path, source),
        }
    }

    /// Returns the error for corruption of `path` at `offset`.
    pub fn corruption(path: &Path, offset: u64, kind: CorruptionKind) -> Error {
        Error::Corruption { path: path.to_owned(), offset, kind }
    }

    /// Returns true if a writer that replaced the file could have caused the error, as well as
    /// damage.
    pub fn may_be_given_up(&self) -> bool {
        match self {
            Error::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
            }
            _ => self.is_corruption(),
        }
    }

    /// Returns true if the disk or the quota is full. Such an error ends once there is space.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        match self {
            Error::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Error::Background { cause, .. } => cause.is_no_space(),
            _ => false,
        }
    }

    /// Returns true if the operating system refused an operation on a file: no permission, too many
    /// open files, no memory, an I/O error of the device. Such an error says nothing about the
    /// bytes of the file or about whether it exists, so it is never taken for damage.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        match self {
            Error::Io { source, .. } => refused_by_system(source),
            Error::Background { cause, .. } => cause.is_environment(),
            _ => false,
        }
    }

    /// Returns true if the device or the file system cannot return what was stored, for example
    /// EIO. Unlike the other errors for which [`Error::is_environment`] is true, this one may be
    /// permanent.
    #[must_use]
    pub fn is_device_failure(&self) -> bool {
        match self {
            Error::Io { source, .. } => failed_in_device(source),
            Error::Background { cause, .. } => cause.is_device_failure(),
            _ => false,
        }
    }

    /// Returns true if bytes were read that differ from what was written.
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        match self {
            Error::Corruption { .. } | Error::InconsistentEdit { .. } => true,
            Error::Background { cause, .. } => cause.is_corruption(),
            _ => false,
        }
    }
}

/// Tells an error of the environment from a fact about a file; no other code decides this.
/// `NotFound` says that the file does not exist, `UnexpectedEof` that it is too short. Every other
/// error of the operating system says only that the operation was refused.
pub fn refused_by_system(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
}

/// Returns true if a read failed in the device or in the file system's own structures.
pub fn failed_in_device(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let failures = [Errno::IO, Errno::NODATA, Errno::BADMSG, Errno::UCLEAN, Errno::ILSEQ];
    failures.iter().any(|errno| error_number(error) == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn only_a_missing_name_and_an_early_end_are_facts_about_a_file() {
        let told = |source: io::Error| Error::io("open", Path::new("000001.sat"), source);
        for errno in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::ACCESS,
            Errno::PERM,
            Errno::NOMEM,
            Errno::IO,
            Errno::INTR,
            Errno::STALE,
        ] {
            let error = told(errno.into());
            assert!(error.is_environment() && !error.is_corruption(), "{error}");
            assert_eq!(error.is_device_failure(), errno == Errno::IO, "{error}");
        }
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::UnexpectedEof] {
            assert!(!told(kind.into()).is_environment(), "{kind}");
        }
        let damage = Error::corruption(Path::new("1"), 0, CorruptionKind::Checksum);
        assert!(!damage.is_environment() && !damage.is_device_failure());
    }
}
