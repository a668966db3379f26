//! Where backups are kept: a small interface that a directory, and an object store, can implement.
//!
//! What must stay true for every implementation:
//!
//! - An object exists whole or not at all, from [`BackupWriter::finish`] on. It never changes.
//! - After [`BackupStore::sync`], what was finished or deleted before stays so after a power loss.
//! - Nothing else writes there while a lock is held.

use std::any::Any;
use std::fmt::Debug;
use std::path::PathBuf;

use sateen_store::base::error::Result;

/// A place for backups: objects under keys. A key consists of ASCII letters, digits, dots, hyphens
/// and at most one slash.
pub trait BackupStore: Send + Sync + Debug {
    /// Begins an object. It replaces an object of that key when it is finished. Dropping the writer
    /// gives it up.
    ///
    /// # Errors
    /// `Io` if it cannot be created.
    fn create(&self, key: &str) -> Result<Box<dyn BackupWriter>>;

    /// Opens an object.
    ///
    /// # Errors
    /// `Corruption` with `MissingFile` if there is none; `Io` if it cannot be opened.
    fn open(&self, key: &str) -> Result<Box<dyn BackupReader>>;

    /// Returns the keys of the finished objects in a folder. A folder that does not exist is empty.
    ///
    /// # Errors
    /// `Io`.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Returns what [`BackupStore::list`] does, each key with the length of the object in bytes if
    /// the listing tells it. A new backup asks single objects for their length otherwise, before
    /// it shares them.
    ///
    /// # Errors
    /// `Io`.
    fn list_lengths(&self, folder: &str) -> Result<Vec<(String, Option<u64>)>> {
        Ok(self.list(folder)?.into_iter().map(|key| (key, None)).collect())
    }

    /// Deletes an object. It is no error if there is none.
    ///
    /// # Errors
    /// `Io`.
    fn delete(&self, key: &str) -> Result<()>;

    /// Makes everything that was finished or deleted durable.
    ///
    /// # Errors
    /// `Io`; the next call tries again.
    fn sync(&self) -> Result<()>;

    /// Keeps all others from writing until the result is dropped. Creates the place if there is
    /// none.
    ///
    /// # Errors
    /// `Locked` if another handle or process writes there; `Io`.
    fn lock(&self) -> Result<Box<dyn Any + Send + Sync>>;

    /// Removes what writers left that never finished, and nothing else. The caller has the lock.
    ///
    /// # Errors
    /// `Io`.
    fn remove_unfinished(&self) -> Result<()>;

    /// Returns the names of what is there besides these folders and objects, to tell a place for
    /// backups from another one.
    ///
    /// # Errors
    /// `Io`.
    fn strangers(&self, known: &[&str]) -> Result<Vec<String>>;

    /// Returns a name of the object for errors, or of the whole place for the empty key.
    fn location(&self, key: &str) -> PathBuf;
}

/// An object that is being written.
pub trait BackupWriter: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// `Io`. Then the writer can only be dropped.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the object appear, with durable contents. [`BackupStore::sync`] makes its name
    /// durable.
    ///
    /// # Errors
    /// `Io`. The object may exist nevertheless.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// An object that can be read.
pub trait BackupReader: Send {
    /// Returns its length in bytes.
    ///
    /// # Errors
    /// `Io`.
    fn bytes(&self) -> Result<u64>;

    /// Fills `buffer` from `offset`. Returns fewer bytes only at the end.
    ///
    /// # Errors
    /// `Io`.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize>;
}
