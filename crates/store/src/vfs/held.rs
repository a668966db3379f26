//! A file system that changes names in a locked directory only while its lock file is in its place.
//!
//! Somebody may remove the directory of an open database, and another process may create a new one
//! at the same path. The files of both have the same names, so that the first process would replace
//! and remove those of the second.
//!
//! What must stay true: a lock keeps others out only as long as the file at its path is the one
//! that was locked. Between the look at it and the change there is a moment that no system call
//! closes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use super::{OpenOptions, Vfs, VfsFile, VfsLock};
use crate::base::sync::leaf::lock;

/// A file system that looks after the directories that were locked through it.
#[derive(Debug)]
pub struct HeldVfs {
    inner: Arc<dyn Vfs>,
    /// By directory.
    locks: Mutex<BTreeMap<PathBuf, Weak<dyn VfsLock>>>,
}

impl HeldVfs {
    /// Looks after the directories of `inner` that are locked through this value.
    pub fn new(inner: Arc<dyn Vfs>) -> HeldVfs {
        HeldVfs { inner, locks: Mutex::default() }
    }

    /// Fails if the directory of `path` was locked and its lock file is not there any more.
    fn look(&self, path: &Path) -> io::Result<()> {
        let held = path.parent().and_then(|directory| lock(&self.locks).get(directory).cloned());
        // Whoever unlocked the directory answers for what it does there.
        let Some(held) = held.and_then(|held| held.upgrade()) else { return Ok(()) };
        if held.is_in_place()? {
            return Ok(());
        }
        let text = "the directory was removed or replaced: its file LOCK is not the one that this \
                    process locked";
        Err(io::Error::other(text))
    }
}

impl Vfs for HeldVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        if options.write || options.create_new {
            self.look(path)?;
        }
        self.inner.open(path, options)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.look(from)?;
        self.look(to)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.look(path)?;
        self.inner.remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.look(from)?;
        self.look(to)?;
        self.inner.hard_link(from, to)
    }

    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.look(from)?;
        self.look(to)?;
        self.inner.clone_file(from, to)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        let held: Arc<dyn VfsLock> = Arc::from(self.inner.lock(path)?);
        if let Some(directory) = path.parent() {
            lock(&self.locks).insert(directory.to_owned(), Arc::downgrade(&held));
        }
        Ok(Box::new(Held(held)))
    }

    crate::pass_on! {
        inner: list create_dir_all remove_dir sync_dir exists lock_holder mark free_space
            total_space disk place_of open_files_limit
    }
}

/// A lock that the file system knows, too.
#[derive(Debug)]
struct Held(Arc<dyn VfsLock>);

impl VfsLock for Held {
    fn marks(&self) -> io::Result<Vec<u64>> {
        self.0.marks()
    }

    fn is_in_place(&self) -> io::Result<bool> {
        self.0.is_in_place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::PosixVfs;

    #[test]
    fn names_in_a_directory_that_was_replaced_stay() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("db");
        let (file, other) = (home.join("1"), place.path().join("2"));
        let posix: Arc<dyn Vfs> = Arc::new(PosixVfs::new());
        let held = HeldVfs::new(posix.clone());
        std::fs::create_dir(&home).unwrap();
        let own = held.lock(&home.join("LOCK")).unwrap();
        let create = |path: &Path| held.open(path, OpenOptions::CREATE).map(drop);
        create(&file).unwrap();
        held.rename(&file, &home.join("3")).unwrap();
        held.remove(&home.join("3")).unwrap();

        std::fs::remove_dir_all(&home).unwrap();
        create(&file).unwrap_err();
        std::fs::create_dir(&home).unwrap();
        let theirs = posix.lock(&home.join("LOCK")).unwrap();
        std::fs::write(&file, "theirs").unwrap();
        create(&home.join("4")).unwrap_err();
        let error = held.remove(&file).unwrap_err();
        assert!(error.to_string().contains("removed or replaced"), "{error}");
        held.hard_link(&file, &other).unwrap_err();
        held.rename(&other, &file).unwrap_err();
        held.open(&file, OpenOptions::READ).unwrap();
        create(&other).unwrap();
        drop(theirs);
        drop(own);
        held.remove(&file).unwrap();
    }
}
