//! Every way in which an operation can fail, as a type: which file, where in it, and why.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::base::names::{shown, shown_path};
use crate::base::system::{is_out_of_descriptors, open_files_limit};
use crate::vfs::Vfs;

/// The result of every fallible operation of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is wrong with bytes that were read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorruptionKind {
    /// The stored checksum differs from that of the bytes.
    #[error("checksum mismatch")]
    Checksum,
    /// Zeros stand where bytes of a table must be: a hole, or a write that was lost.
    #[error("a hole: zeros where a table is")]
    Hole,
    /// The file or record ends early.
    #[error("truncated")]
    Truncated,
    /// The bytes verify but do not say what they must.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// A file that the catalogue names is not there.
    #[error("missing file")]
    MissingFile,
    /// Entries that must be in order are not.
    #[error("keys out of order")]
    Order,
    /// Two records of the database contradict each other.
    #[error("inconsistent: {0}")]
    Inconsistent(&'static str),
}

/// Stands for a process that is not known.
const SOMEBODY: &str = "another handle or process";

/// An error of the engine. Cheap to clone: the cause of a background failure is reported on every
/// write that it refuses.
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
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong.
        kind: CorruptionKind,
    },
    /// The catalogue contradicts itself.
    #[error("{}: corruption: {reason}", shown_path(path))]
    InconsistentEdit {
        /// The manifest.
        path: PathBuf,
        /// What contradicts what.
        reason: String,
    },
    /// The caller asked for something that cannot be done; the text names it.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// The directory is not a database of this engine, or of a version it can read; the text says
    /// what.
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
        /// The process, by its command and number, where that is certain.
        holder: Option<String>,
    },
    /// The operands of a key could not be made a value: the column family was opened without a
    /// merge operator, or its operator refused them. They are still there.
    #[error("the operands of key \"{}\" cannot be merged: {reason}", key.escape_ascii())]
    MergeFailed {
        /// The user key.
        key: Vec<u8>,
        /// Why.
        reason: String,
    },
    /// A compaction filter panicked, or made a value that cannot be. Its compaction is given up.
    #[error("the compaction filter {filter} failed: {reason}")]
    FilterFailed {
        /// Its name.
        filter: String,
        /// What happened.
        reason: String,
    },
    /// There is no column family of that name, or it was dropped.
    #[error("no such column family: {}", shown(.0))]
    NoSuchColumnFamily(String),
    /// Operands cannot be merged in the column family of that name: its options have no operator.
    #[error("the column family {} has no merge operator", shown(.0))]
    NoMergeOperator(String),
    /// The log has no writes of a sequence number: they are not written yet, or not kept.
    #[error("{0}")]
    NotInLog(String),
    /// Only a secondary catches up with a primary.
    #[error("the database was not opened as a secondary")]
    NotSecondary,
    /// The process that writes the database has replaced what was to be read, or changes it faster
    /// than it can be followed. Nothing is damaged. The same is possible once the database is
    /// opened again, or after [`crate::Db::try_catch_up_with_primary`] for a secondary.
    #[error("{cause}: the reader is behind the writer; open the database again, or catch up")]
    Behind {
        /// What was replaced, or what is too fast.
        cause: String,
    },
    /// What was asked for may be on the disk, and [`ReadOptions::memory_only`] does not let it be
    /// read.
    ///
    /// [`ReadOptions::memory_only`]: crate::ReadOptions::memory_only
    #[error("it is not in memory, and the disk may not be read for it")]
    NotInMemory,
    /// A move of an iterator passed over more entries than [`ReadOptions::skipped_max`] allows.
    ///
    /// [`ReadOptions::skipped_max`]: crate::ReadOptions::skipped_max
    #[error("the iterator passed over more than {0} deleted or hidden entries")]
    TooManySkipped(u64),
    /// A file cannot be ingested into the last level, and `fail_if_not_bottommost_level` of
    /// [`IngestOptions`](crate::IngestOptions) asks for that.
    #[error("{} cannot be ingested into the last level: {reason}", path.display())]
    NotBottommost {
        /// The file.
        path: PathBuf,
        /// What is in its way.
        reason: &'static str,
    },
    /// A batch has no save point to go back to.
    #[error("the batch has no save point")]
    NoSavePoint,
    /// The write would have waited longer than its options allow.
    #[error("write would stall ({cause}); retry after {retry_after:?}")]
    WouldStall {
        /// When the same write is expected to pass.
        retry_after: Duration,
        /// Why it would wait.
        cause: &'static str,
    },
    /// Compactions by hand are paused ([`crate::Db::pause_manual_compactions`]).
    #[error("compactions by hand are paused")]
    ManualCompactionPaused,
    /// Background work is paused ([`crate::Db::pause_background_work`]).
    #[error("background work is paused")]
    BackgroundPaused,
    /// It was not over in time.
    #[error("{0} was not over in time")]
    TimedOut(&'static str),
    /// The database accepts no writes because of an earlier failure in the background.
    #[error("the database is {state}: {cause}")]
    Background {
        /// "degraded" or "read-only".
        state: &'static str,
        /// The failure.
        cause: Arc<Error>,
    },
    /// A thread of the database panicked: a bug, of ours or of a file system that was passed in.
    #[error("the thread {thread} panicked: {message}")]
    Panicked {
        /// Its name.
        thread: String,
        /// What it said.
        message: String,
    },
    /// The database was opened read-only.
    #[error("the database was opened read-only: {0} is not possible")]
    ReadOnly(&'static str),
    /// The database is closing; the operation was not done.
    #[error("the database is closed")]
    Closed,
}

/// What to do about an error of the operating system, where that is known.
fn advice(source: &io::Error) -> String {
    if !is_out_of_descriptors(source) {
        return String::new();
    }
    let limit = open_files_limit().map_or("no limit".to_owned(), |limit| limit.to_string());
    format!(" (limit of the process: {limit}; raise it with ulimit -n, or lower max_open_files)")
}

impl Error {
    /// The error for a range that ends before it begins.
    pub fn reversed_bounds(lower: &[u8], upper: &[u8]) -> Error {
        Error::InvalidArgument(format!(
            "the lower bound \"{}\" is above the upper bound \"{}\"",
            lower.escape_ascii(),
            upper.escape_ascii()
        ))
    }

    /// An I/O error with the operation and file that it belongs to.
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { operation, path: path.to_owned(), source: Arc::new(source) }
    }

    /// The error of an operation on a file that is opened again by its name when it has to be: a
    /// name that is gone is a file that is missing.
    pub fn of_pooled(operation: &'static str, path: &Path, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::NotFound => Error::corruption(path, 0, CorruptionKind::MissingFile),
            _ => Error::io(operation, path, source),
        }
    }

    /// Corruption of `path` at `offset`.
    pub fn corruption(path: &Path, offset: u64, kind: CorruptionKind) -> Error {
        Error::Corruption { path: path.to_owned(), offset, kind }
    }

    /// The lock at `path` is taken.
    pub fn locked(vfs: &dyn Vfs, path: PathBuf) -> Error {
        let holder = vfs.lock_holder(&path);
        Error::Locked { path, holder }
    }

    /// True if a writer that replaced what was to be read explains the error, and so may damage.
    pub fn may_be_given_up(&self) -> bool {
        match self {
            Error::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
            }
            _ => self.is_corruption(),
        }
    }

    /// True if the disk or the quota is full: an error that goes away by itself.
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

    /// True if the operating system refused an operation on a file: no permission, too many open
    /// files, no memory, an I/O error of the device. Such an error says nothing about the bytes of
    /// the file or about whether it exists, so it is never taken for damage.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        match self {
            Error::Io { source, .. } => refused_by_system(source),
            Error::Background { cause, .. } => cause.is_environment(),
            _ => false,
        }
    }

    /// True if the device or the file system cannot give back what was stored: EIO and its like.
    /// Unlike the other errors for which [`Error::is_environment`] is true, this one may stay.
    #[must_use]
    pub fn is_device_failure(&self) -> bool {
        match self {
            Error::Io { source, .. } => failed_in_device(source),
            Error::Background { cause, .. } => cause.is_device_failure(),
            _ => false,
        }
    }

    /// True if bytes were found that are not what was written.
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        match self {
            Error::Corruption { .. } | Error::InconsistentEdit { .. } => true,
            Error::Background { cause, .. } => cause.is_corruption(),
            _ => false,
        }
    }
}

/// The one place that tells an error of the environment from a fact about a file. `NotFound` says
/// that there is no such file, `UnexpectedEof` that the file is too short; every other error of the
/// operating system says only that it refused the operation.
pub fn refused_by_system(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
}

/// Whether a read failed in the device or in the structures of the file system.
pub fn failed_in_device(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let failures = [Errno::IO, Errno::NODATA, Errno::BADMSG, Errno::UCLEAN, Errno::ILSEQ];
    failures.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
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
