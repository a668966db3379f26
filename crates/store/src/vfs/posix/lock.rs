//! The lock of a database: `flock` keeps other processes out, and a claim other handles of this
//! process. On network file systems `flock` is a lock of the process, which does not see a second
//! open of the same process.
//!
//! What must stay true: a claim is for a file that this process has open. Once the handle of a
//! removed lock file is closed, the file system may give its inode number to another lock file, so
//! the handle is closed and the claim ends in one step.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{fork, lacks_call, marks, retry};
use crate::base::sync::leaf::lock;
use crate::vfs::VfsLock;

/// How often a lock file is taken that was removed or replaced meanwhile.
const TRIES: usize = 1000;

/// Device and inode of a file.
type FileIdentity = (u64, u64);

/// The lock files that this process holds, and their handles.
static CLAIMED: Mutex<BTreeMap<FileIdentity, Arc<OwnedFd>>> = Mutex::new(BTreeMap::new());

/// Returns who holds the lock file, if it is known for certain.
pub(super) fn holder(path: &Path) -> Option<String> {
    if is_claimed(identity_of(path)?) {
        return Some("this process".to_owned());
    }
    marks::holder(path)
}

/// A lock file that this process holds.
#[derive(Debug)]
pub(super) struct PosixLock {
    pub(super) fd: Arc<OwnedFd>,
    path: PathBuf,
    forks: u64,
    // Dropped last, so that it closes the file.
    claim: Claim,
}

impl VfsLock for PosixLock {
    fn marks(&self) -> io::Result<Vec<u64>> {
        marks::marks(&self.fd)
    }

    fn is_in_place(&self) -> io::Result<bool> {
        match retry(|| rustix::fs::stat(&self.path)) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == self.claim.0),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl PosixLock {
    /// Takes the lock. It tries again if the file was removed meanwhile.
    pub(super) fn take(path: &Path) -> io::Result<PosixLock> {
        for _ in 0..TRIES {
            if let Some(lock) = PosixLock::try_take(path)? {
                return Ok(lock);
            }
        }
        let text = "the lock file is replaced again and again, or the file system gives it another \
                    inode number each time";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    /// Returns `None` if the file was removed before it was locked, for example by `destroy`. A
    /// lock on a file without a name keeps no process out.
    fn try_take(path: &Path) -> io::Result<Option<PosixLock>> {
        // To open and close another handle would release the byte lock that names the holder.
        if identity_of(path).is_some_and(is_claimed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let fd = Arc::new(retry(|| rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)))?);
        let claim = Claim::take(&fd)?;
        let lock = PosixLock { fd, path: path.to_owned(), forks: fork::forks(), claim };
        match retry(|| rustix::fs::flock(&lock.fd, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => {
                let in_place = lock.is_in_place()?;
                if in_place {
                    marks::name_holder(&lock.fd);
                }
                Ok(in_place.then_some(lock))
            }
            Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::WouldBlock.into()),
            // Without a lock, two processes could write the same files.
            Err(errno) if lacks_call(errno) || errno == Errno::NOLCK => {
                let text = "the file system has no file locks, which a database needs";
                Err(io::Error::new(io::ErrorKind::Unsupported, format!("{text}: {errno}")))
            }
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for PosixLock {
    fn drop(&mut self) {
        // A forked child shares the lock with its parent, and must not release it.
        if self.forks != fork::forks() {
            return;
        }
        // Closing alone would leave the lock to a child that was forked and has not reached its
        // exec. If the unlock fails, the close is the best that can be done.
        let _closed_next = retry(|| rustix::fs::flock(&self.fd, FlockOperation::Unlock));
    }
}

/// This process's claim to a lock file. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Claim(FileIdentity);

impl Claim {
    /// Claims an open lock file, or fails with `WouldBlock`.
    pub(super) fn take(fd: &Arc<OwnedFd>) -> io::Result<Claim> {
        let stat = rustix::fs::fstat(fd)?;
        match lock(&CLAIMED).entry((stat.st_dev, stat.st_ino)) {
            Entry::Vacant(entry) => {
                let claim = Claim(*entry.key());
                entry.insert(fd.clone());
                Ok(claim)
            }
            Entry::Occupied(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = lock(&CLAIMED);
        // Closes the file, unless its owner still has it, while no other thread can look here.
        drop(claimed.remove(&self.0));
    }
}

/// Returns true if this process holds the lock file.
fn is_claimed(identity: FileIdentity) -> bool {
    lock(&CLAIMED).contains_key(&identity)
}

fn identity_of(path: &Path) -> Option<FileIdentity> {
    retry(|| rustix::fs::stat(path)).ok().map(|stat| (stat.st_dev, stat.st_ino))
}
