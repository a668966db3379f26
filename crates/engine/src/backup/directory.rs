//! Backups in a directory: each object is a file, which is written under another name, synced and
//! renamed.
//!
//! What must stay true: a directory that got or lost a name is in `unsynced` until its sync has
//! succeeded.

use std::any::Any;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::IoClass;
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::files::replace::sync_directory;
use sateen_store::files::{FileName, refuse_own_name};
use sateen_store::vfs::{OpenOptions, Vfs, VfsFile};

use super::FORMAT;
use super::ids::LAST;
use super::record::{PRIVATE, RECORDS, SHARED, id_of_key, is_object_key};
use super::store::{BackupReader, BackupStore, BackupWriter};
use crate::open::{check_parent, sync_ancestors, take_lock};
use crate::options::paths::check_named;

/// The I/O class of everything that is read and written there, the lowest of all.
const CLASS: IoClass = IoClass::Deep(u8::MAX);
/// The folders of objects.
const FOLDERS: [&str; 3] = [RECORDS, SHARED, PRIVATE];
/// Ends the name of a file that is being written.
const UNFINISHED: &str = ".tmp";

/// A directory with backups, in any file system.
///
/// ```
/// use std::sync::Arc;
///
/// use sateen::vfs::MemVfs;
/// use sateen::{BackupEngine, DirectoryStore};
///
/// let store = DirectoryStore::new(Arc::new(MemVfs::new()), "/backups");
/// let engine = BackupEngine::open_with(Arc::new(store))?;
/// assert!(engine.list()?.is_empty());
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Debug)]
pub struct DirectoryStore {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    /// Directories with names that are not durable yet.
    unsynced: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl DirectoryStore {
    /// Returns the store in `directory` of `vfs`. Nothing is created before the first lock.
    pub fn new(vfs: Arc<dyn Vfs>, directory: impl AsRef<Path>) -> DirectoryStore {
        let directory = directory.as_ref();
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        DirectoryStore { vfs, directory, unsynced: Arc::default() }
    }

    /// Returns the names in the directory `path`, which may be missing.
    fn names(&self, path: &Path) -> Result<Vec<String>> {
        let listing = match self.vfs.list(path) {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("list", path, error)),
        };
        // The keys are ASCII, so a name that is no text is no object.
        let names = listing.iter().filter_map(|path| path.file_name()?.to_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// Returns the path of the object `key`. Creates its folder if it is missing.
    fn place(&self, key: &str) -> Result<PathBuf> {
        let path = self.directory.join(key);
        let folder = path.parent().unwrap_or(&self.directory);
        if !self.vfs.exists(folder).map_err(|e| Error::io("look for", folder, e))? {
            self.vfs.create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
            lock(&self.unsynced).insert(self.directory.clone());
        }
        Ok(path)
    }
}

impl BackupStore for DirectoryStore {
    fn create(&self, key: &str) -> Result<Box<dyn BackupWriter>> {
        let path = self.place(key)?;
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        match self.vfs.remove(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io("remove", &unfinished, error));
            }
            _ => {}
        }
        let file = self.vfs.open(&unfinished, OpenOptions::CREATE);
        let file = file.map_err(|error| Error::io("create", &unfinished, error))?;
        Ok(Box::new(FileWriter {
            vfs: self.vfs.clone(),
            file,
            unfinished,
            path,
            written: 0,
            is_finished: false,
            unsynced: self.unsynced.clone(),
        }))
    }

    fn open(&self, key: &str) -> Result<Box<dyn BackupReader>> {
        check_named("the backups", &self.directory)?;
        let path = self.directory.join(key);
        match self.vfs.open(&path, OpenOptions::READ) {
            Ok(file) => Ok(Box::new(FileReader { file, path })),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Error::corruption(&path, 0, CorruptionKind::MissingFile))
            }
            Err(error) => Err(Error::io("open", &path, error)),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let names = self.names(&self.directory.join(folder))?;
        let finished = names.into_iter().filter(|name| !name.ends_with(UNFINISHED));
        Ok(finished.map(|name| format!("{folder}/{name}")).collect())
    }

    fn delete(&self, key: &str) -> Result<()> {
        let path = self.directory.join(key);
        match self.vfs.remove(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io("remove", &path, error)),
        }
        lock(&self.unsynced).extend(path.parent().map(Path::to_owned));
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        // The directory comes before the folders in it. A power loss between the two loses names
        // that nobody was told about.
        let unsynced = lock(&self.unsynced).clone();
        for directory in unsynced {
            sync_directory(self.vfs.as_ref(), &directory)?;
            lock(&self.unsynced).remove(&directory);
        }
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn Any + Send + Sync>> {
        let directory = &self.directory;
        check_named("the backups", directory)?;
        refuse_own_name(self.vfs.as_ref(), directory)?;
        if !self.vfs.exists(directory).map_err(|e| Error::io("look for", directory, e))? {
            check_parent(self.vfs.as_ref(), directory)?;
            self.vfs.create_dir_all(directory).map_err(|e| Error::io("create", directory, e))?;
            sync_ancestors(self.vfs.as_ref(), directory)?;
        }
        let taken = take_lock(self.vfs.as_ref(), directory)?;
        // What was written before may not be durable.
        let mut unsynced = vec![directory.clone()];
        for folder in FOLDERS.map(|folder| directory.join(folder)) {
            if self.vfs.exists(&folder).map_err(|e| Error::io("look for", &folder, e))? {
                unsynced.push(folder);
            }
        }
        lock(&self.unsynced).extend(unsynced);
        Ok(Box::new(taken))
    }

    fn remove_unfinished(&self) -> Result<()> {
        let mut keys = self.names(&self.directory)?;
        let folders = FOLDERS.into_iter().filter(|folder| keys.iter().any(|name| name == folder));
        for folder in folders.collect::<Vec<_>>() {
            let names = self.names(&self.directory.join(folder))?;
            keys.extend(names.iter().map(|name| format!("{folder}/{name}")));
        }
        // Another file of such an ending is not ours.
        let is_unfinished = |key: &&String| {
            key.strip_suffix(UNFINISHED).is_some_and(|key| {
                key == FORMAT || key == LAST || id_of_key(key).is_some() || is_object_key(key)
            })
        };
        for path in keys.iter().filter(is_unfinished).map(|key| self.directory.join(key)) {
            self.vfs.remove(&path).map_err(|e| Error::io("remove", &path, e))?;
        }
        Ok(())
    }

    fn strangers(&self, known: &[&str]) -> Result<Vec<String>> {
        let own = |name: &String| {
            let unfinished = name.strip_suffix(UNFINISHED);
            known.contains(&name.as_str())
                || unfinished.is_some_and(|key| known.contains(&key) && !FOLDERS.contains(&key))
                || FileName::parse(name) == Some(FileName::Lock)
        };
        let mut names = self.names(&self.directory)?;
        names.retain(|name| !own(name));
        Ok(names)
    }

    fn location(&self, key: &str) -> PathBuf {
        if key.is_empty() { self.directory.clone() } else { self.directory.join(key) }
    }
}

/// A file that is being written.
struct FileWriter {
    vfs: Arc<dyn Vfs>,
    file: Arc<dyn VfsFile>,
    unfinished: PathBuf,
    path: PathBuf,
    written: u64,
    is_finished: bool,
    unsynced: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl BackupWriter for FileWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_at(bytes, self.written, CLASS);
        written.map_err(|error| Error::io("write", &self.unfinished, error))?;
        // A hint. Otherwise all pages would go to the device together, at the sync.
        drop(self.file.start_writeback(self.written, bytes.len() as u64));
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let synced = self.file.sync_data(CLASS);
        synced.map_err(|error| Error::io("sync", &self.unfinished, error))?;
        let renamed = self.vfs.rename(&self.unfinished, &self.path);
        renamed.map_err(|error| Error::io("rename", &self.unfinished, error))?;
        self.is_finished = true;
        lock(&self.unsynced).extend(self.path.parent().map(Path::to_owned));
        Ok(())
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // Best effort: the next open removes what stays.
            let _stays = self.vfs.remove(&self.unfinished);
        }
    }
}

/// A file that is being read.
struct FileReader {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
}

impl BackupReader for FileReader {
    fn bytes(&self) -> Result<u64> {
        self.file.len().map_err(|error| Error::io("read the length of", &self.path, error))
    }

    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.file.read_all_at(buffer, offset, CLASS);
        read.map_err(|error| Error::io("read", &self.path, error))
    }
}
