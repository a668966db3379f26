//! Backups of Sateen in an object store: S3, Google Cloud Storage, Azure, or whatever else has an
//! implementation of [`object_store::ObjectStore`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use sateen::{BackupEngine, Db, Options};
//! use sateen_object_store::ObjectBackupStore;
//!
//! # let directory = tempfile::tempdir().unwrap();
//! let db = Db::open(directory.path().join("db"), Options::default())?;
//! db.put("fig", "1")?;
//! // With the feature `aws`: object_store::aws::AmazonS3Builder::from_env()…
//! let bucket = Arc::new(object_store::memory::InMemory::new());
//! let store = ObjectBackupStore::new(bucket, "backups/library")?;
//! let mut engine = BackupEngine::open_with(Arc::new(store))?;
//! let backup = engine.create(&db)?;
//! engine.restore(backup.id, directory.path().join("restored"))?;
//! # Ok::<(), sateen::Error>(())
//! ```
//!
//! - An object of a backup is an object of the store, below a prefix. Larger ones are uploaded in
//!   parts, and appear with the last one.
//! - One handle at a time writes: it creates the object `LOCK`. See
//!   [`ObjectBackupStore::break_lock`] for what a crash leaves.
//! - The calls wait, on a runtime of the store's own. From a task of an async program, call them by
//!   `spawn_blocking`: otherwise other tasks wait, too.

mod lock;
mod objects;
mod waiting;

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use sateen::{BackupReader, BackupStore, BackupWriter, Error, Result};

use crate::lock::Lock;
use crate::objects::{Reader, Writer};
use crate::waiting::Waiting;

/// A place for backups in an object store.
#[derive(Clone, Debug)]
pub struct ObjectBackupStore {
    bucket: Bucket,
}

/// An object store and a prefix in it.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: Key,
    waiting: Waiting,
}

impl Bucket {
    pub(crate) fn key(&self, key: &str) -> Key {
        key.split('/').filter(|part| !part.is_empty()).fold(self.prefix.clone(), Key::join)
    }

    /// Returns a name for errors.
    pub(crate) fn location(&self, key: &str) -> PathBuf {
        PathBuf::from(format!("{}/{}", self.store, self.key(key)))
    }

    /// Waits for `work` on the object `key`.
    pub(crate) fn wait<T: Send>(
        &self,
        operation: &'static str,
        key: &str,
        work: impl Future<Output = object_store::Result<T>> + Send,
    ) -> Result<T> {
        self.waiting.wait(work).map_err(|error| Error::io(operation, &self.location(key), error))
    }
}

/// Returns true if there is no such object.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

impl ObjectBackupStore {
    /// Returns the place for backups below `prefix`, which may be empty. Nothing is written before
    /// the first lock.
    ///
    /// # Errors
    /// `Io` if the runtime cannot be started. `InvalidArgument` if `prefix` is none.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Result<ObjectBackupStore> {
        let prefix = Key::parse(prefix)
            .map_err(|error| Error::InvalidArgument(format!("the prefix {prefix:?}: {error}")))?;
        let waiting = Waiting::new()
            .map_err(|error| Error::io("start the runtime of", "/".as_ref(), error))?;
        Ok(ObjectBackupStore { bucket: Bucket { store, prefix, waiting } })
    }

    /// Removes the lock that a process left which was killed while it wrote. Object stores have no
    /// locks that end with their process, so somebody must know that it is gone: with two writers,
    /// objects that a backup needs may be removed. The error `Locked` says who has the lock.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use sateen::{BackupEngine, Error};
    /// # use sateen_object_store::ObjectBackupStore;
    /// # let bucket = Arc::new(object_store::memory::InMemory::new());
    /// let store = ObjectBackupStore::new(bucket, "")?;
    /// let killed = BackupEngine::open_with(Arc::new(store.clone()))?;
    /// std::mem::forget(killed);
    /// let refused = BackupEngine::open_with(Arc::new(store.clone()));
    /// assert!(matches!(refused, Err(Error::Locked { .. })));
    /// store.break_lock()?;
    /// BackupEngine::open_with(Arc::new(store))?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io`.
    pub fn break_lock(&self) -> Result<()> {
        self.delete(lock::NAME)
    }
}

impl BackupStore for ObjectBackupStore {
    fn create(&self, key: &str) -> Result<Box<dyn BackupWriter>> {
        Ok(Box::new(Writer::new(&self.bucket, key)))
    }

    fn open(&self, key: &str) -> Result<Box<dyn BackupReader>> {
        Ok(Box::new(Reader::open(&self.bucket, key)?))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        Ok(self.list_lengths(folder)?.into_iter().map(|(key, _)| key).collect())
    }

    fn list_lengths(&self, folder: &str) -> Result<Vec<(String, Option<u64>)>> {
        let bucket = &self.bucket;
        let prefix = bucket.key(folder);
        let listed = bucket.store.list_with_delimiter(Some(&prefix));
        let listed = bucket.wait("list", folder, listed)?;
        let named = listed.objects.iter().filter_map(|object| {
            let name = object.location.filename()?;
            Some((format!("{folder}/{name}"), Some(object.size)))
        });
        Ok(named.collect())
    }

    fn delete(&self, key: &str) -> Result<()> {
        let location = self.bucket.key(key);
        match self.bucket.wait("remove", key, self.bucket.store.delete(&location)) {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Does nothing: the store has answered, so the object is durable.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(Lock::take(&self.bucket)?))
    }

    /// Does nothing: an upload that was not completed is no object. Stores that charge for its
    /// parts can be told to remove them after some days.
    fn remove_unfinished(&self) -> Result<()> {
        Ok(())
    }

    fn strangers(&self, known: &[&str]) -> Result<Vec<String>> {
        let bucket = &self.bucket;
        let prefix = bucket.key("");
        // An empty prefix is the whole store.
        let prefix = Some(&prefix).filter(|prefix| prefix.parts().next().is_some());
        let listed = bucket.wait("list", "", bucket.store.list_with_delimiter(prefix))?;
        let folders = listed.common_prefixes.iter().filter_map(Key::filename);
        let objects = listed.objects.iter().filter_map(|object| object.location.filename());
        let names = folders.chain(objects).filter(|name| *name != lock::NAME);
        Ok(names.filter(|name| !known.contains(name)).map(str::to_owned).collect())
    }

    fn location(&self, key: &str) -> PathBuf {
        self.bucket.location(key)
    }
}
