//! A file system in memory that fails or waits when a test tells it to.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::base::sync::leaf::lock;
use crate::vfs::{IoClass, MemVfs, OpenOptions, Vfs, VfsFile};

/// What the files of a [`TestVfs`] do.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    pub(crate) fail_writes: AtomicBool,
    pub(crate) fail_syncs: AtomicBool,
    /// Calls that reached the files.
    pub(crate) writes: AtomicUsize,
    pub(crate) syncs: AtomicUsize,
    /// While a test holds this lock, syncs wait.
    pub(crate) gate: Mutex<()>,
    /// The ranges whose writeback was started.
    pub(crate) written_back: Mutex<Vec<(u64, u64)>>,
}

#[derive(Clone, Debug)]
pub(crate) struct TestVfs {
    pub(crate) inner: MemVfs,
    pub(crate) switches: Arc<Switches>,
}

impl Default for TestVfs {
    /// Contains the directory that the tests use.
    fn default() -> TestVfs {
        let inner = MemVfs::new();
        inner.create_dir_all(Path::new("/db")).unwrap();
        TestVfs { inner, switches: Arc::default() }
    }
}

#[derive(Debug)]
struct TestFile(Arc<dyn VfsFile>, Arc<Switches>);

impl TestVfs {
    /// Returns all bytes of a file.
    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        let file = self.inner.open(path, OpenOptions::READ).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_exact_at(&mut bytes, 0, IoClass::Wal).unwrap();
        bytes
    }

    /// Removes a file.
    pub(crate) fn inner_remove(&self, path: &Path) {
        self.inner.remove(path).unwrap();
    }

    /// Replaces the content of a file by `bytes`.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) {
        if self.inner.exists(path).unwrap() {
            self.inner.remove(path).unwrap();
        }
        let file = self.inner.open(path, OpenOptions::CREATE).unwrap();
        file.write_at(bytes, 0, IoClass::Wal).unwrap();
    }
}

impl VfsFile for TestFile {
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        self.1.writes.fetch_add(1, Ordering::SeqCst);
        if self.1.fail_writes.load(Ordering::SeqCst) {
            self.0.write_at(&bytes[..bytes.len() / 2], offset, class)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write_at(bytes, offset, class)
    }
    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        self.1.syncs.fetch_add(1, Ordering::SeqCst);
        drop(lock(&self.1.gate));
        if self.1.fail_syncs.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        self.0.sync_data(class)
    }
    fn start_writeback(&self, offset: u64, length: u64) -> io::Result<()> {
        lock(&self.1.written_back).push((offset, length));
        Ok(())
    }
    crate::pass_on! { 0: read_at finish_writeback punch_hole preallocate truncate len }
}

impl Vfs for TestVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        Ok(Arc::new(TestFile(self.inner.open(path, options)?, self.switches.clone())))
    }
    crate::pass_on! {
        inner: rename remove hard_link clone_file list create_dir_all remove_dir sync_dir exists
            lock free_space
    }
}
