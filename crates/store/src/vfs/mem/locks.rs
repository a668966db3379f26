//! Locks and readers' marks of the file system in memory.
//!
//! What must stay true: dropping a lock or mark releases it.

use std::sync::{Arc, Mutex};
use std::{fmt, io};

use super::MemVfs;
use super::live::Live;
use super::state::Inode;
use crate::base::sync::leaf::lock;
use crate::vfs::VfsLock;

/// The lock of an open database.
pub(super) struct MemLock {
    pub(super) live: Arc<Mutex<Live>>,
    pub(super) inode: Inode,
}

impl VfsLock for MemLock {
    fn marks(&self) -> io::Result<Vec<u64>> {
        let live = lock(&self.live);
        let marks = live.marks.range((self.inode, 0)..=(self.inode, u64::MAX));
        Ok(marks.map(|((_, at), _)| *at).collect())
    }
}

/// A reader's mark on a byte of the lock file.
#[derive(Debug)]
pub(super) struct MemMark {
    pub(super) vfs: MemVfs,
    pub(super) inode: Inode,
    pub(super) at: u64,
}

impl VfsLock for MemMark {}

impl Drop for MemMark {
    fn drop(&mut self) {
        let marks = &mut lock(&self.vfs.live).marks;
        if let Some(count) = marks.get_mut(&(self.inode, self.at)) {
            *count -= 1;
            if *count == 0 {
                marks.remove(&(self.inode, self.at));
            }
        }
    }
}

impl Drop for MemLock {
    fn drop(&mut self) {
        lock(&self.live).locked.remove(&self.inode);
    }
}

impl fmt::Debug for MemLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemLock").field("inode", &self.inode).finish_non_exhaustive()
    }
}
