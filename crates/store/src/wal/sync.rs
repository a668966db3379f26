//! What a log's writer and those who sync it share: how far it is written, how far it is durable,
//! and whether it is dead. Syncing never blocks appending.
//!
//! What must stay true:
//! - After a failed write or sync the file is dead: nothing is written, synced or acknowledged on
//!   it any more (format rule F4). The kernel reports a failed write-back once; whoever syncs next
//!   would be told that all is well.
//! - A log is durable only with the logs before it: syncing one first syncs its predecessor, unless
//!   everything in that is already in tables.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError};

use sateen_control::SeqNo;

use super::frame::FILE_HEADER_BYTES;
use crate::base::error::{Error, Result};
use crate::base::locks::lock_timed;
use crate::base::plant::planted;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Condvar, Mutex, lock};
use crate::base::waited::{self, Part};
use crate::vfs::{IoClass, VfsFile};

/// The durable side of a log file, shared between its writer and everybody who wants it synced.
#[derive(Debug)]
pub struct WalSync {
    path: PathBuf,
    class: IoClass,
    /// Bytes that are written whole, records and header.
    written: AtomicU64,
    /// Bytes that are durable.
    synced: AtomicU64,
    /// The failure that ended the file's life.
    dead: OnceLock<Error>,
    /// Whether somebody syncs. Of two overlapping syncs the kernel may tell only one that it
    /// failed, so there is one at a time; whoever waits for it finds its bytes covered, all of them
    /// at once. Never held over the sync itself.
    syncing: Mutex<bool>,
    /// A sync has ended.
    ended: Condvar,
    link: Mutex<Link>,
    /// All writes from this sequence number on that went to a log are in this one or later ones.
    begins: AtomicU64,
    /// See [`WalSync::reserved_bytes`].
    pub(super) reserved: AtomicU64,
}

#[derive(Debug)]
struct Link {
    /// `None` once the log is retired.
    file: Option<Arc<dyn VfsFile>>,
    /// The log that must be durable before this one.
    predecessor: Option<Arc<WalSync>>,
}

/// The right to sync, given back on drop.
struct Turn<'a>(&'a WalSync);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.syncing) = false;
        self.0.ended.notify_all();
    }
}

impl WalSync {
    pub(super) fn new(path: &Path, file: Arc<dyn VfsFile>, class: IoClass) -> WalSync {
        WalSync {
            path: path.to_owned(),
            class,
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            dead: OnceLock::new(),
            syncing: Mutex::new(false),
            ended: Condvar::new(),
            link: Mutex::new(Link { file: Some(file), predecessor: None }),
            begins: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
        }
    }

    /// Bytes from the file's start for which space was reserved; `u64::MAX` after a failure.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// The file and its path; `None` once the log is retired.
    pub(super) fn file(&self) -> Option<(Arc<dyn VfsFile>, &Path)> {
        lock(&self.link).file.clone().map(|file| (file, self.path.as_path()))
    }

    /// Makes durable everything that was written when this was called, in this log and those before
    /// it, and returns the offset up to which this one is. May run while the writer appends. An
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
        let turn = Turn(self);
        let synced = self.sync_now();
        drop(turn);
        synced
    }

    /// The sync itself; it is the caller's turn.
    fn sync_now(&self) -> Result<u64> {
        // Read again: what others wrote while this caller waited rides along.
        let target = self.written();
        if target > FILE_HEADER_BYTES as u64 {
            self.sync_predecessor()?;
        }
        let file = lock_timed(&self.link).file.clone();
        if let Some(file) = file {
            file.sync_data(self.class).map_err(|e| self.kill("sync", e))?;
            // A write that failed meanwhile does not undo what this sync covered, but the file is
            // dead and nothing is acknowledged on it.
            self.check_alive()?;
        }
        self.synced.fetch_max(target, Ordering::Release);
        Ok(target)
    }

    /// Everything in this log and those before it is durable in tables and its writer is gone: it
    /// need never be synced, and its file can go. A sync of a log after it succeeds without it.
    pub fn retire(&self) {
        let mut link = lock(&self.link);
        link.file = None;
        link.predecessor = None;
    }

    /// Bytes that are written whole.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Bytes that are durable.
    #[inline]
    pub fn synced_offset(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// The failure that ended the file's life, as an error, if there was one.
    #[inline]
    pub fn check_alive(&self) -> Result<()> {
        match self.dead.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Ends the file's life and returns why; the first failure stays the reason.
    #[cold]
    pub(super) fn kill(&self, operation: &'static str, error: std::io::Error) -> Error {
        let error = Error::io(operation, &self.path, error);
        if !(planted("sync_retried") && operation == "sync") {
            self.dead.get_or_init(|| error.clone());
        }
        error
    }

    #[inline]
    pub(super) fn set_written(&self, offset: u64) {
        self.written.store(offset, Ordering::Release);
    }

    pub(super) fn set_predecessor(&self, predecessor: Option<Arc<WalSync>>, begins: SeqNo) {
        lock(&self.link).predecessor = predecessor;
        self.begins.store(begins.0, Ordering::Release);
    }

    /// All writes from this sequence number on that went to a log are in this one or later ones.
    pub fn begins(&self) -> SeqNo {
        SeqNo(self.begins.load(Ordering::Acquire))
    }

    pub(super) fn predecessor(&self) -> Option<Arc<WalSync>> {
        lock(&self.link).predecessor.clone()
    }

    fn sync_predecessor(&self) -> Result<()> {
        if let Some(predecessor) = self.predecessor() {
            if !predecessor.is_retired() {
                predecessor.sync()?;
            }
            lock(&self.link).predecessor = None;
        }
        Ok(())
    }

    fn is_retired(&self) -> bool {
        lock(&self.link).file.is_none()
    }
}
