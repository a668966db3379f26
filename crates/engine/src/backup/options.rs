//! What a caller may choose for a backup, a verification and a restore, and what it is told.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use sateen_store::base::error::Error;

/// How far an operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Bytes that are done: copied, verified, or found to be in an earlier backup.
    pub bytes: u64,
    /// Bytes of the whole operation, about; 0 while that is not known.
    pub total_bytes: u64,
}

/// Is told of the progress of an operation, and can end it.
pub trait BackupListener: Send + Sync {
    /// Called after each step of at most 64 KiB, on the thread of the operation.
    fn progress(&self, progress: &BackupProgress) {
        let _ignored = progress;
    }

    /// Returns true if the operation is to end early, with [`Error::Cancelled`].
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Options of [`BackupEngine::create_with`](crate::BackupEngine::create_with).
#[derive(Clone, Default)]
pub struct CreateBackupOptions {
    /// Flush all memtables first. Otherwise their entries are restored from the WAL, which is part
    /// of the backup. Entries that are in no WAL are always flushed. Default: false. RocksDB:
    /// `flush_before_backup`.
    pub flush: bool,
    /// Bytes a second that are copied, at most. 0: no limit besides what the scheduler leaves.
    /// Default: 0. RocksDB: `backup_rate_limit`.
    pub rate: u64,
    /// A text that is kept with the backup. Default: empty. RocksDB: `app_metadata`.
    pub note: String,
    /// Is told of the progress.
    pub listener: Option<Arc<dyn BackupListener>>,
}

/// Options of [`BackupEngine::restore_with`](crate::BackupEngine::restore_with).
#[derive(Clone)]
pub struct RestoreOptions {
    /// Restore the WALs. Without them the database has what was in tables when the backup was
    /// made; each column family then stands at its own last flush. Default: true.
    pub wal: bool,
    /// The directory for the WALs, in which there must be none. `None`: that of the database. The
    /// database has to be opened with this directory as its `wal_dir`. Default: `None`.
    pub wal_dir: Option<PathBuf>,
    /// Bytes a second that are copied, at most. 0: no limit. Default: 0. RocksDB:
    /// `restore_rate_limit`.
    pub rate: u64,
    /// Is told of the progress.
    pub listener: Option<Arc<dyn BackupListener>>,
}

impl Default for RestoreOptions {
    fn default() -> RestoreOptions {
        RestoreOptions { wal: true, wal_dir: None, rate: 0, listener: None }
    }
}

/// Options of [`BackupEngine::verify_with`](crate::BackupEngine::verify_with).
#[derive(Clone, Default)]
pub struct VerifyBackupOptions {
    /// Bytes a second that are read, at most. 0: no limit. Default: 0.
    pub rate: u64,
    /// Is told of the progress.
    pub listener: Option<Arc<dyn BackupListener>>,
}

impl fmt::Debug for CreateBackupOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CreateBackupOptions { flush, rate, note, .. } = self;
        f.debug_struct("CreateBackupOptions")
            .field("flush", flush)
            .field("rate", rate)
            .field("note", note)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RestoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RestoreOptions { wal, wal_dir, rate, .. } = self;
        f.debug_struct("RestoreOptions")
            .field("wal", wal)
            .field("wal_dir", wal_dir)
            .field("rate", rate)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for VerifyBackupOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyBackupOptions").field("rate", &self.rate).finish_non_exhaustive()
    }
}

/// A backup, as [`BackupEngine::list`](crate::BackupEngine::list) shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Its number. Later backups have larger ones.
    pub id: u64,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// The newest sequence number that was visible when it was begun.
    pub seqno: u64,
    /// Bytes of everything that it consists of.
    pub bytes: u64,
    /// The part of these bytes that no other backup uses: what deleting it frees.
    pub own_bytes: u64,
    /// Number of its tables.
    pub tables: u64,
    /// Number of files that a restore makes.
    pub files: u64,
    /// The text that was given when it was made.
    pub note: String,
    /// Why it cannot be read. The other fields are then empty.
    pub damage: Option<Error>,
}

/// What a verification found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyBackupReport {
    /// Objects whose every byte was verified.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Damage that was found. Each names a file and the offset.
    pub problems: Vec<Error>,
    /// Reads that the operating system refused. The data may be whole.
    pub unreadable: Vec<Error>,
}

impl VerifyBackupReport {
    /// Returns true if everything could be read and nothing is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.unreadable.is_empty()
    }
}
