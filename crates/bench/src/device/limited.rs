//! The engine's file system with a limited device below it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sateen::vfs::{IoClass, OpenOptions, Vfs, VfsFile};

use super::{Device, WrittenAt};

/// A file system whose files lie on a limited [`Device`].
#[derive(Debug)]
pub(crate) struct LimitedVfs {
    inner: Arc<dyn Vfs>,
    device: Arc<Device>,
}

impl LimitedVfs {
    /// Limits the reads, writes and syncs of the files of `inner`. Operations on names cost
    /// nothing.
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
            end: AtomicU64::new(0),
        }))
    }

    sateen::pass_on! {
        inner: rename remove hard_link clone_file list create_dir_all remove_dir sync_dir exists
        lock lock_holder mark free_space total_space open_files_limit
    }
}

#[derive(Debug)]
struct LimitedFile {
    inner: Arc<dyn VfsFile>,
    device: Arc<Device>,
    /// True if the caller asked for direct I/O. The device models it even where the disk below has
    /// none.
    direct: bool,
    written: WrittenAt,
    /// The end of what was written.
    end: AtomicU64,
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
        self.end.fetch_max(offset + bytes.len() as u64, Ordering::Relaxed);
        self.device.write(begun, bytes.len(), self.direct, &self.written);
        Ok(())
    }

    fn finish_writeback(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        self.inner.finish_writeback(offset, length, class)?;
        let behind = self.end.load(Ordering::Relaxed).saturating_sub(offset + length);
        self.device.written_back(&self.written, behind);
        Ok(())
    }

    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        self.inner.sync_data(class)?;
        self.device.sync(&self.written);
        Ok(())
    }

    sateen::pass_on! {
        inner: start_writeback punch_hole preallocate truncate len allocated links modified
        alignment poison
    }
}
