//! The engine's file system with a limited device below it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen::vfs::{IoClass, OpenOptions, Vfs, VfsFile, VfsLock};

use super::{Device, WrittenAt};

/// A file system whose files lie on a limited [`Device`].
#[derive(Debug)]
pub(crate) struct LimitedVfs {
    inner: Arc<dyn Vfs>,
    device: Arc<Device>,
}

impl LimitedVfs {
    /// Limits the reads, writes and syncs of files of `inner`; names cost nothing.
    pub(crate) fn new(inner: Arc<dyn Vfs>, device: Arc<Device>) -> LimitedVfs {
        LimitedVfs { inner, device }
    }
}

impl Vfs for LimitedVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        Ok(Arc::new(LimitedFile {
            inner: self.inner.open(path, options)?,
            device: Arc::clone(&self.device),
            direct: options.direct,
            written: WrittenAt::default(),
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.hard_link(from, to)
    }

    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.clone_file(from, to)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(directory)
    }

    fn create_dir_all(&self, directory: &Path) -> io::Result<()> {
        self.inner.create_dir_all(directory)
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        self.inner.remove_dir(directory)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.inner.sync_dir(directory)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.inner.lock(path)
    }

    fn lock_holder(&self, path: &Path) -> Option<String> {
        self.inner.lock_holder(path)
    }

    fn mark(&self, path: &Path, at: u64) -> io::Result<Box<dyn VfsLock>> {
        self.inner.mark(path, at)
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        self.inner.free_space(path)
    }

    fn total_space(&self, path: &Path) -> io::Result<u64> {
        self.inner.total_space(path)
    }

    fn open_files_limit(&self) -> Option<u64> {
        self.inner.open_files_limit()
    }
}

#[derive(Debug)]
struct LimitedFile {
    inner: Arc<dyn VfsFile>,
    device: Arc<Device>,
    /// As it was asked for: where the disk has no direct I/O the device has it all the same.
    direct: bool,
    written: WrittenAt,
}

impl VfsFile for LimitedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        let begun = self.device.now_ns();
        let read = self.inner.read_at(buffer, offset, class)?;
        self.device.read(begun, read);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        let begun = self.device.now_ns();
        self.inner.write_at(bytes, offset, class)?;
        self.device.write(begun, bytes.len(), self.direct, &self.written);
        Ok(())
    }

    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        self.inner.sync_data(class)?;
        self.device.sync(&self.written);
        Ok(())
    }

    fn start_writeback(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.start_writeback(offset, length)
    }

    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        self.inner.punch_hole(offset, length, class)
    }

    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.preallocate(offset, length)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.inner.allocated()
    }

    fn links(&self) -> io::Result<u64> {
        self.inner.links()
    }

    fn modified(&self) -> io::Result<Option<u64>> {
        self.inner.modified()
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }

    fn poison(&self) {
        self.inner.poison();
    }
}
