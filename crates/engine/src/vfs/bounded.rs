//! A file system in which few files are open at a time: a file that is open for reading gives its
//! descriptor back when others need one, and opens again by its name when it is read next. Checks
//! and repairs read many files at once, and run where the limit of open files may be low.
//!
//! What must stay true: at most `open_max` descriptors are open for files that are read; no call of
//! the file system below is made under the lock; a name is never used twice for different tables,
//! logs or manifests (format rule F2), so that opening again gives the same file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::{IoClass, OpenOptions, Vfs, VfsFile, VfsLock, pass_on};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::leaf::lock;

/// A file system in which few files are open at a time.
#[derive(Debug)]
pub(crate) struct BoundedVfs {
    inner: Arc<dyn Vfs>,
    opened: Arc<Opened>,
}

/// The open descriptors, the one that was used last at the end.
struct Opened {
    open_max: usize,
    next_id: AtomicU64,
    files: Mutex<Vec<(u64, Arc<dyn VfsFile>)>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("open_max", &self.open_max).finish_non_exhaustive()
    }
}

impl BoundedVfs {
    /// At most `open_max` files of `inner`, at least one, are open for reading at a time.
    pub(crate) fn new(inner: Arc<dyn Vfs>, open_max: usize) -> BoundedVfs {
        let opened = Opened {
            open_max: open_max.max(1),
            next_id: AtomicU64::new(0),
            files: Mutex::default(),
        };
        BoundedVfs { inner, opened: Arc::new(opened) }
    }
}

impl Opened {
    /// The descriptor with this number, if it is open.
    fn get(&self, id: u64) -> Option<Arc<dyn VfsFile>> {
        let mut files = lock(&self.files);
        let at = files.iter().position(|(of, _)| *of == id)?;
        let found = files.remove(at);
        files.push(found.clone());
        Some(found.1)
    }

    /// Closes what was not used lately, so that one more can be opened.
    fn make_room(&self) {
        let mut files = lock(&self.files);
        let surplus = (files.len() + 1).saturating_sub(self.open_max);
        let closed: Vec<_> = files.drain(..surplus).collect();
        drop(files);
        drop(closed);
    }

    fn close(&self, id: u64) {
        let mut files = lock(&self.files);
        let at = files.iter().position(|(of, _)| *of == id);
        let closed = at.map(|at| files.remove(at));
        drop(files);
        drop(closed);
    }
}

/// A file that is open for reading, whether or not it has a descriptor now.
#[derive(Debug)]
struct BoundedFile {
    inner: Arc<dyn Vfs>,
    opened: Arc<Opened>,
    path: PathBuf,
    options: OpenOptions,
    id: u64,
    alignment: usize,
}

impl BoundedFile {
    fn file(&self) -> io::Result<Arc<dyn VfsFile>> {
        if let Some(file) = self.opened.get(self.id) {
            return Ok(file);
        }
        self.opened.make_room();
        let file = self.inner.open(&self.path, self.options)?;
        lock(&self.opened.files).push((self.id, file.clone()));
        Ok(file)
    }
}

impl Drop for BoundedFile {
    fn drop(&mut self) {
        self.opened.close(self.id);
    }
}

impl VfsFile for BoundedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        self.file()?.read_at(buffer, offset, class)
    }
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        self.file()?.write_at(bytes, offset, class)
    }
    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        self.file()?.sync_data(class)
    }
    fn start_writeback(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file()?.start_writeback(offset, length)
    }
    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        self.file()?.punch_hole(offset, length, class)
    }
    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file()?.preallocate(offset, length)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file()?.truncate(length)
    }
    fn len(&self) -> io::Result<u64> {
        self.file()?.len()
    }
    fn allocated(&self) -> io::Result<u64> {
        self.file()?.allocated()
    }
    fn links(&self) -> io::Result<u64> {
        self.file()?.links()
    }
    fn modified(&self) -> io::Result<Option<u64>> {
        self.file()?.modified()
    }
    fn alignment(&self) -> usize {
        self.alignment
    }
}

impl Vfs for BoundedVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        // What is written is open as long as it is written: there is one such file, or two.
        if options.write || options.create_new {
            return self.inner.open(path, options);
        }
        let id = self.opened.next_id.fetch_add(1, Ordering::Relaxed);
        self.opened.make_room();
        let file = self.inner.open(path, options)?;
        let alignment = file.alignment();
        lock(&self.opened.files).push((id, file));
        let (inner, opened, path) = (self.inner.clone(), self.opened.clone(), path.to_owned());
        Ok(Arc::new(BoundedFile { inner, opened, path, options, id, alignment }))
    }

    pass_on! {
        inner: rename remove hard_link clone_file list create_dir_all remove_dir sync_dir exists
            lock lock_holder mark free_space total_space open_files_limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{FaultVfs, MemVfs, VfsOperation};

    #[test]
    fn a_file_that_gave_its_descriptor_back_is_read_all_the_same() {
        let mem: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let counted = FaultVfs::new(mem.clone());
        let names: Vec<PathBuf> = (0..5).map(|n| PathBuf::from(format!("{n}"))).collect();
        for (n, name) in names.iter().enumerate() {
            let file = mem.open(name, OpenOptions::CREATE).unwrap();
            file.write_at(&[n as u8; 8], 0, IoClass::Client).unwrap();
        }
        let bounded = BoundedVfs::new(Arc::new(counted.clone()), 2);
        let open = |name: &PathBuf| bounded.open(name, OpenOptions::READ).unwrap();
        let files: Vec<_> = names.iter().map(open).collect();
        assert_eq!(lock(&bounded.opened.files).len(), 2);
        for (n, file) in files.iter().enumerate().chain(files.iter().enumerate()) {
            let mut bytes = [0xFF; 8];
            assert_eq!(file.read_at(&mut bytes, 0, IoClass::Client).unwrap(), 8);
            assert_eq!(bytes, [n as u8; 8]);
            assert_eq!(file.len().unwrap(), 8);
            assert!(lock(&bounded.opened.files).len() <= 2);
        }
        // Five at first, and each of the five again in both rounds.
        assert_eq!(counted.calls(VfsOperation::Open), 15);
        drop(files);
        assert!(lock(&bounded.opened.files).is_empty(), "closed with the last handle");
    }
}
