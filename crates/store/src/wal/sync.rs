//! The state that a WAL's writer shares with the threads that sync it: how far it is written, how
//! far it is durable, and whether it is dead. A sync never blocks an append.
//!
//! 1. [`WalSync::sync`] returns at once if everything written is durable.
//! 2. Otherwise it waits for its turn (`SyncTurn`). One thread syncs at a time, and the others
//!    usually find their bytes covered when it ends.
//! 3. `sync_now` syncs the WAL's predecessor first (`sync_predecessor`), then the file, and raises
//!    the synced offset.
//! 4. A failed write or sync kills the file (`kill`). Every later call returns that error.
//! 5. [`WalSync::retire`] ends it: everything in the file is durable in tables.
//!
//! What must stay true:
//!
//! - After a failed write or sync the file is dead: nothing is written, synced or acknowledged on
//!   it again (format rule F4). The kernel reports a failed writeback once, and would report
//!   success to the next sync.
//! - A WAL is durable only together with the WALs before it, unless everything in those is in
//!   tables.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError};

use sateen_control::SeqNo;

use super::frame::FILE_HEADER_BYTES;
use crate::base::error::{Error, Result};
use crate::base::locks::lock_timed;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Condvar, Mutex, lock};
use crate::base::waited::{self, Part};
use crate::vfs::{IoClass, VfsFile};

/// The sync state of a WAL or manifest, shared by its writer and the threads that sync it.
#[derive(Debug)]
pub struct WalSync {
    path: PathBuf,
    class: IoClass,
    /// Bytes that are written whole, records and header.
    written: AtomicU64,
    /// Bytes that are durable.
    synced: AtomicU64,
    /// The failure that made the file dead.
    dead: OnceLock<Error>,
    /// Whether a thread syncs. The kernel may report a failure to only one of two overlapping
    /// syncs, so only one runs at a time. The lock is not held during the sync.
    syncing: Mutex<bool>,
    /// Notified when a sync has ended.
    ended: Condvar,
    /// The file, and the WAL that must be durable before it.
    link: Mutex<SyncTarget>,
    /// This WAL and later ones have all writes to the WAL from this sequence number on.
    begins: AtomicU64,
    /// Space that was reserved ([`WalSync::reserved_bytes`]).
    pub(super) reserved: AtomicU64,
}

/// What a sync has to make durable.
#[derive(Debug)]
struct SyncTarget {
    /// `None` once the WAL is retired.
    file: Option<Arc<dyn VfsFile>>,
    /// The WAL that must be durable before this one.
    predecessor: Option<Arc<WalSync>>,
}

/// The right to sync. Dropping it passes the right on.
struct SyncTurn<'a>(&'a WalSync);

impl Drop for SyncTurn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.syncing) = false;
        self.0.ended.notify_all();
    }
}

impl WalSync {
    /// Returns the state of a file that is just opened.
    pub(super) fn new(path: &Path, file: Arc<dyn VfsFile>, class: IoClass) -> WalSync {
        WalSync {
            path: path.to_owned(),
            class,
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            dead: OnceLock::new(),
            syncing: Mutex::new(false),
            ended: Condvar::new(),
            link: Mutex::new(SyncTarget { file: Some(file), predecessor: None }),
            begins: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
        }
    }

    /// Returns the bytes from the file's start for which space was reserved; `u64::MAX` after a
    /// failure.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Returns the file and its path; `None` once the WAL is retired.
    pub(super) fn file(&self) -> Option<(Arc<dyn VfsFile>, &Path)> {
        lock(&self.link).file.clone().map(|file| (file, self.path.as_path()))
    }

    /// Makes everything durable that was written before this call, in this WAL and those before it.
    /// Returns the offset up to which this one is durable. It may run while the writer appends. An
    /// error of this file is final; an error of a predecessor lasts until that is retired.
    pub fn sync(&self) -> Result<u64> {
        let target = self.written();
        if target <= self.synced_offset() {
            self.check_alive()?;
            return Ok(self.synced_offset());
        }
        {
            let mut syncing = lock_timed(&self.syncing);
            loop {
                self.check_alive()?;
                if self.synced_offset() >= target {
                    return Ok(self.synced_offset());
                }
                if !*syncing {
                    break;
                }
                let _waits = waited::wait(Part::Sync);
                syncing = self.ended.wait(syncing).unwrap_or_else(PoisonError::into_inner);
            }
            *syncing = true;
        }
        let turn = SyncTurn(self);
        let synced = self.sync_now();
        drop(turn);
        synced
    }

    /// Syncs, in the caller's turn.
    fn sync_now(&self) -> Result<u64> {
        // Read again, so that writes made while this thread waited are covered, too.
        let target = self.written();
        if target > FILE_HEADER_BYTES as u64 {
            self.sync_predecessor()?;
        }
        let file = lock_timed(&self.link).file.clone();
        if let Some(file) = file {
            file.sync_data(self.class).map_err(|e| self.kill("sync", e))?;
            // A write that failed meanwhile does not undo this sync, but the file is dead and
            // nothing is acknowledged on it.
            self.check_alive()?;
        }
        self.synced.fetch_max(target, Ordering::Release);
        Ok(target)
    }

    /// Retires the WAL: everything in it and before it is durable in tables, and its writer is
    /// gone. It will never be synced, and its file can be deleted. A sync of a later WAL succeeds
    /// without it.
    pub fn retire(&self) {
        let mut link = lock(&self.link);
        link.file = None;
        link.predecessor = None;
    }

    /// Returns the bytes that are written whole.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Returns the bytes that are durable.
    #[inline]
    pub fn synced_offset(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Returns the failure that made the file dead, if there was one.
    #[inline]
    pub fn check_alive(&self) -> Result<()> {
        match self.dead.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Makes the file dead, and returns the error. The first failure stays the reason.
    #[cold]
    pub(super) fn kill(&self, operation: &'static str, error: std::io::Error) -> Error {
        let error = Error::io(operation, &self.path, error);
        self.dead.get_or_init(|| error.clone());
        error
    }

    /// Publishes how far the file is written.
    #[inline]
    pub(super) fn set_written(&self, offset: u64) {
        self.written.store(offset, Ordering::Release);
    }

    /// Sets the WAL that must be durable before this one, and the sequence number with which this
    /// one begins.
    pub(super) fn set_predecessor(&self, predecessor: Option<Arc<WalSync>>, begins: SeqNo) {
        lock(&self.link).predecessor = predecessor;
        self.begins.store(begins.0, Ordering::Release);
    }

    /// Returns the sequence number from which on this WAL and later ones have all writes to the
    /// WAL.
    pub fn begins(&self) -> SeqNo {
        SeqNo(self.begins.load(Ordering::Acquire))
    }

    /// Returns the WAL that must be durable before this one, if there is one.
    pub(super) fn predecessor(&self) -> Option<Arc<WalSync>> {
        lock(&self.link).predecessor.clone()
    }

    /// Syncs the WAL before this one, unless it is retired. Once that has succeeded, it is
    /// forgotten.
    fn sync_predecessor(&self) -> Result<()> {
        if let Some(predecessor) = self.predecessor() {
            if !predecessor.is_retired() {
                predecessor.sync()?;
            }
            lock(&self.link).predecessor = None;
        }
        Ok(())
    }

    /// Returns true if the WAL is retired.
    fn is_retired(&self) -> bool {
        lock(&self.link).file.is_none()
    }
}
