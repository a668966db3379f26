//! Files in memory. (first form: not yet strict)

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::{IoClass, OpenOptions, Vfs, VfsFile, VfsLock};
use crate::sync::lock;

type Contents = Arc<Mutex<Vec<u8>>>;

/// A file system in memory.
#[derive(Clone, Debug, Default)]
pub struct MemVfs {
    files: Arc<Mutex<BTreeMap<PathBuf, Contents>>>,
}

impl MemVfs {
    /// An empty file system.
    #[must_use]
    pub fn new() -> MemVfs {
        MemVfs::default()
    }
}

#[derive(Debug)]
struct MemFile(Contents);

#[derive(Debug)]
struct MemLock;
impl VfsLock for MemLock {}

impl VfsFile for MemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, _: IoClass) -> io::Result<usize> {
        let data = lock(&self.0);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(data.len());
        let n = buffer.len().min(data.len() - start);
        buffer[..n].copy_from_slice(&data[start..start + n]);
        Ok(n)
    }
    fn write_at(&self, bytes: &[u8], offset: u64, _: IoClass) -> io::Result<()> {
        let mut data = lock(&self.0);
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        if data.len() < start + bytes.len() {
            data.resize(start + bytes.len(), 0);
        }
        data[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    fn sync_data(&self, _: IoClass) -> io::Result<()> {
        Ok(())
    }
    fn start_writeback(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn punch_hole(&self, offset: u64, length: u64, _: IoClass) -> io::Result<()> {
        let mut data = lock(&self.0);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(data.len());
        let end = usize::try_from(offset + length).unwrap_or(usize::MAX).min(data.len());
        data[start..end].fill(0);
        Ok(())
    }
    fn preallocate(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        lock(&self.0).resize(usize::try_from(length).map_err(io::Error::other)?, 0);
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.0).len() as u64)
    }
}

impl Vfs for MemVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let mut files = lock(&self.files);
        match (files.get(path), options.create_new) {
            (Some(_), true) => Err(io::ErrorKind::AlreadyExists.into()),
            (None, false) => Err(io::ErrorKind::NotFound.into()),
            (Some(contents), false) => Ok(Arc::new(MemFile(contents.clone()))),
            (None, true) => {
                let contents = Contents::default();
                files.insert(path.to_owned(), contents.clone());
                Ok(Arc::new(MemFile(contents)))
            }
        }
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = lock(&self.files);
        let contents = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), contents);
        Ok(())
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        lock(&self.files).remove(path).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = lock(&self.files);
        let contents = files.get(from).ok_or(io::ErrorKind::NotFound)?.clone();
        files.insert(to.to_owned(), contents);
        Ok(())
    }
    fn clone_file(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let files = lock(&self.files);
        let within = files.keys().filter(|path| path.parent() == Some(directory));
        Ok(within.filter_map(|path| path.file_name()).map(PathBuf::from).collect())
    }
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(lock(&self.files).contains_key(path))
    }
    fn lock(&self, _: &Path) -> io::Result<Box<dyn VfsLock>> {
        Ok(Box::new(MemLock))
    }
    fn free_space(&self, _: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}
