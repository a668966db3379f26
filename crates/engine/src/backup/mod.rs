//! Backups of a database: copies in another place, which share what did not change.
//! `docs/backups.md` says how to use them, `docs/format/backup.md` what is stored.
//!
//! 1. `store.rs` is the interface of a place for backups; `directory.rs` is one in a directory.
//! 2. `record.rs` encodes the record of a backup: the objects that it consists of.
//! 3. `create.rs` copies a database. `source.rs` is what is copied, and `pacer.rs` says when.
//! 4. `restore.rs` verifies and restores.
//! 5. `ids.rs` keeps ids from being given twice.
//! 6. [`BackupEngine`] lists, deletes and purges, and removes what nothing names (`collect`).
//!
//! What must stay true:
//!
//! - An object that a record names is never deleted. While a record cannot be read, no shared one
//!   is deleted.
//! - A record is deleted, durably, before what it alone names.
//! - Only objects with the exact form of a key are deleted, and none before it is known that the
//!   place is one for backups.

mod create;
mod directory;
mod ids;
mod options;
mod pacer;
mod record;
mod restore;
mod source;
mod store;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::files::checked_text;
use sateen_store::vfs::{PosixVfs, Vfs};

pub use self::directory::DirectoryStore;
pub use self::options::{
    BackupInfo, BackupListener, BackupProgress, CreateBackupOptions, RestoreOptions,
    VerifyBackupOptions, VerifyBackupReport,
};
pub use self::store::{BackupReader, BackupStore, BackupWriter};

use self::create::{Known, create};
use self::ids::LAST;
#[cfg(any(test, feature = "test-support"))]
pub(crate) use self::record::fuzz::{fuzz, fuzz_seed};
use self::record::{
    ObjectKind, PRIVATE, RECORDS, Record, SHARED, backup_of_key, id_of_key, is_object_key,
    record_key,
};
use crate::db::Db;
use crate::options::paths::check_named;

/// The object that says what the place is for.
const FORMAT: &str = "FORMAT";
const FORMAT_LINE: &str = "sateen backups 1";
/// Largest record that is read.
const RECORD_BYTES_MAX: u64 = 8 << 30;

/// Makes backups of databases, and restores them. Backups in one place share the tables that did
/// not change between them.
///
/// One engine at a time may write to a place; its lock is held until the engine is dropped. Any
/// number of others may read ([`BackupEngine::open_read_only`]).
///
/// ```
/// use sateen::{BackupEngine, Db, Options};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, target) = (directory.path().join("db"), directory.path().join("backups"));
/// # let restored = directory.path().join("restored");
/// let db = Db::open(&path, Options::default())?;
/// db.put("fig", "1")?;
/// let mut backups = BackupEngine::open(&target)?;
/// let backup = backups.create(&db)?;
/// db.put("fig", "2")?;
///
/// backups.restore(backup.id, &restored)?;
/// let restored = Db::open(&restored, Options::default())?;
/// assert_eq!(restored.get("fig")?.as_deref(), Some(&b"1"[..]));
/// # Ok::<(), sateen::Error>(())
/// ```
pub struct BackupEngine {
    store: Arc<dyn BackupStore>,
    /// Keeps others from writing. `None` if this engine only reads.
    lock: Option<Box<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for BackupEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_writer = self.lock.is_some();
        f.debug_struct("BackupEngine")
            .field("store", &self.store)
            .field("is_writer", &is_writer)
            .finish()
    }
}

/// The records of a place, by id. One that cannot be read has the reason.
type Records = BTreeMap<u64, Result<Record>>;

/// Opening.
impl BackupEngine {
    /// Opens the directory `path` for backups. Creates it if it does not exist, but not its parent
    /// directory, which may be a file system that is not mounted. Removes what an interrupted
    /// backup left.
    ///
    /// # Errors
    /// `Locked` if another process or handle makes backups there; `IncompatibleDirectory` if it
    /// holds something else or a newer format; `InvalidArgument` if its parent directory is
    /// missing; `Corruption`; `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<BackupEngine> {
        BackupEngine::open_with(Arc::new(DirectoryStore::new(Arc::new(PosixVfs::new()), path)))
    }

    /// Opens a place of the caller's for backups, as [`BackupEngine::open`] does.
    ///
    /// # Errors
    /// As [`BackupEngine::open`].
    pub fn open_with(store: Arc<dyn BackupStore>) -> Result<BackupEngine> {
        // Nothing is written to a place that holds something else.
        let is_new = !read_format(store.as_ref(), true)?;
        let lock = store.lock()?;
        if is_new && !read_format(store.as_ref(), true)? {
            let text = checked_text::seal(&format!("{FORMAT_LINE}\n"));
            let mut writer = store.create(FORMAT)?;
            writer.append(text.as_bytes())?;
            writer.finish()?;
            store.sync()?;
        }
        store.remove_unfinished()?;
        // The engine before this one may have deleted a record and ended before that was durable.
        store.sync()?;
        let engine = BackupEngine { store, lock: Some(lock) };
        engine.collect(&engine.records()?)?;
        Ok(engine)
    }

    /// Opens the directory `path` to list, verify and restore backups. Another process may make
    /// backups there meanwhile; if it deletes one that is being restored, the restore fails with
    /// `BackupDeleted`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (path, target) = (directory.path().join("db"), directory.path().join("backups"));
    /// # let db = sateen::Db::open(&path, sateen::Options::default())?;
    /// use sateen::BackupEngine;
    ///
    /// let mut writer = BackupEngine::open(&target)?;
    /// writer.create(&db)?;
    /// let reader = BackupEngine::open_read_only(&target)?;
    /// assert_eq!(reader.list()?.len(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `IncompatibleDirectory` if there are no backups, or those of a newer format; `Io`.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<BackupEngine> {
        let store = DirectoryStore::new(Arc::new(PosixVfs::new()), path);
        BackupEngine::open_read_only_with(Arc::new(store))
    }

    /// Opens a place of the caller's for reading, as [`BackupEngine::open_read_only`] does.
    ///
    /// # Errors
    /// As [`BackupEngine::open_read_only`].
    pub fn open_read_only_with(store: Arc<dyn BackupStore>) -> Result<BackupEngine> {
        if !read_format(store.as_ref(), false)? && !has_records(store.as_ref())? {
            return Err(Error::IncompatibleDirectory {
                path: store.location(""),
                reason: "there are no backups here".into(),
            });
        }
        Ok(BackupEngine { store, lock: None })
    }
}

/// Making and deleting.
impl BackupEngine {
    /// Makes a backup of an open database, which goes on meanwhile. All column families are from
    /// the same moment, which is close to the begin. Tables that an earlier backup has are not
    /// copied again.
    ///
    /// A database that is closed, or open in another process, is opened with
    /// [`Db::open_read_only`] for that.
    ///
    /// # Errors
    /// `Corruption` if a table of the database is damaged; `Io` if something cannot be read or
    /// written; `ReadOnly` for a secondary, and for an engine that only reads; `Behind` if the
    /// process that writes a database, which is opened read-only here, has replaced files. Earlier
    /// backups are whole after every error.
    pub fn create(&mut self, db: &Db) -> Result<BackupInfo> {
        self.create_with(db, &CreateBackupOptions::default())
    }

    /// Makes a backup as [`BackupEngine::create`] does, with options.
    ///
    /// # Errors
    /// As [`BackupEngine::create`]. `Cancelled` if the listener ends it.
    pub fn create_with(&mut self, db: &Db, options: &CreateBackupOptions) -> Result<BackupInfo> {
        self.check_writable("a backup")?;
        let mut records = self.records()?;
        let mut known = Known::default();
        records.values().flatten().for_each(|record| known.add(record));
        let id = ids::next(self.store.as_ref(), records.keys().next_back().copied())?;
        let record = create(self.store.as_ref(), &known, id, db, options)?;
        records.insert(id, Ok(record));
        infos(&records).pop().ok_or(Error::NoSuchBackup(id))
    }

    /// Deletes a backup, also a damaged one. What other backups share stays. No later backup gets
    /// its id.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (path, target) = (directory.path().join("db"), directory.path().join("backups"));
    /// # let db = sateen::Db::open(&path, sateen::Options::default())?;
    /// # let mut backups = sateen::BackupEngine::open(&target)?;
    /// let (first, second) = (backups.create(&db)?, backups.create(&db)?);
    /// backups.delete(first.id)?;
    /// assert_eq!(backups.list()?[0].id, second.id);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchBackup`; `ReadOnly` for an engine that only reads; `Io`.
    pub fn delete(&mut self, id: u64) -> Result<()> {
        self.check_writable("deleting a backup")?;
        let mut records = self.records()?;
        if !records.contains_key(&id) {
            return Err(Error::NoSuchBackup(id));
        }
        self.note_ids(&records, &[id])?;
        records.remove(&id);
        self.store.delete(&record_key(id))?;
        self.store.sync()?;
        self.collect(&records)
    }

    /// Keeps the newest `keep` backups and deletes the others. Returns the ids of those. Backups
    /// whose record is damaged do not count among those to keep, and are deleted if they are older.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (path, target) = (directory.path().join("db"), directory.path().join("backups"));
    /// # let db = sateen::Db::open(&path, sateen::Options::default())?;
    /// # let mut backups = sateen::BackupEngine::open(&target)?;
    /// for _ in 0..3 {
    ///     backups.create(&db)?;
    /// }
    /// assert_eq!(backups.purge(2)?, [1]);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ReadOnly` for an engine that only reads; `Io`.
    pub fn purge(&mut self, keep: usize) -> Result<Vec<u64>> {
        self.check_writable("purging backups")?;
        let mut records = self.records()?;
        let whole = records.iter().rev().filter(|(_, record)| record.is_ok());
        let oldest = match keep.checked_sub(1) {
            None => u64::MAX,
            Some(others) => whole.map(|(id, _)| *id).nth(others).unwrap_or(0),
        };
        let old: Vec<u64> = records.keys().copied().filter(|id| *id < oldest).collect();
        self.note_ids(&records, &old)?;
        for id in &old {
            self.store.delete(&record_key(*id))?;
            records.remove(id);
        }
        self.store.sync()?;
        self.collect(&records)?;
        Ok(old)
    }

    /// Notes the highest id of `records`, if its backup is among those that are about to go.
    fn note_ids(&self, records: &Records, going: &[u64]) -> Result<()> {
        let highest = records.keys().next_back().filter(|highest| going.contains(highest));
        highest.map_or(Ok(()), |highest| ids::note(self.store.as_ref(), *highest))
    }

    fn check_writable(&self, operation: &'static str) -> Result<()> {
        self.lock.as_ref().map(drop).ok_or(Error::ReadOnly(operation))
    }

    /// Deletes all objects that none of `records` names.
    fn collect(&self, records: &Records) -> Result<()> {
        let whole = || records.values().flatten();
        let named: BTreeSet<String> = whole()
            .flat_map(|record| record.objects.iter().map(|object| object.key(record.id)))
            .collect();
        let mut dead = self.store.list(PRIVATE)?;
        // The objects of a record that cannot be read are those with its number.
        dead.retain(|key| {
            !backup_of_key(key).is_some_and(|id| matches!(records.get(&id), Some(Err(_))))
        });
        if records.values().all(Result::is_ok) {
            dead.extend(self.store.list(SHARED)?);
        }
        // What else lies there was made by others.
        dead.retain(|key| !named.contains(key) && is_object_key(key));
        for key in &dead {
            self.store.delete(key)?;
        }
        if dead.is_empty() { Ok(()) } else { self.store.sync() }
    }
}

/// Reading.
impl BackupEngine {
    /// Returns all backups, the oldest first. One with a damaged record is listed with the damage.
    ///
    /// # Errors
    /// `Io`.
    pub fn list(&self) -> Result<Vec<BackupInfo>> {
        Ok(infos(&self.records()?))
    }

    /// Reads all bytes of a backup, and compares them with their checksums.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (path, target) = (directory.path().join("db"), directory.path().join("backups"));
    /// # let db = sateen::Db::open(&path, sateen::Options::default())?;
    /// # let mut backups = sateen::BackupEngine::open(&target)?;
    /// let backup = backups.create(&db)?;
    /// assert!(backups.verify(backup.id)?.is_sound());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchBackup`; `BackupDeleted` if that happens meanwhile; `Corruption` or `Io` if its
    /// record cannot be read. Damage of objects is in the report.
    pub fn verify(&self, id: u64) -> Result<VerifyBackupReport> {
        self.verify_with(id, &VerifyBackupOptions::default())
    }

    /// Verifies as [`BackupEngine::verify`] does, with options.
    ///
    /// # Errors
    /// As [`BackupEngine::verify`]. `Cancelled` if the listener ends it.
    pub fn verify_with(
        &self,
        id: u64,
        options: &VerifyBackupOptions,
    ) -> Result<VerifyBackupReport> {
        let report = restore::verify(self.store.as_ref(), &self.record(id)?, options)?;
        let deleted = report.problems.iter().any(|problem| self.is_deletion(id, problem));
        if deleted { Err(Error::BackupDeleted(id)) } else { Ok(report) }
    }

    /// Restores a backup into the directory `path`, which must not exist or be empty. Its parent
    /// directory must exist. Everything is
    /// verified before it is written, and the directory becomes a database in the last step. What
    /// an interrupted restore left there is removed first.
    ///
    /// # Errors
    /// `NoSuchBackup`; `Corruption` if anything of the backup is damaged, with the file and the
    /// offset, and `BackupDeleted` if it is deleted meanwhile: nothing is restored then.
    /// `InvalidArgument` if `path` is not empty, or if its parent is missing; `Locked` if another
    /// restore writes there; `Io`.
    pub fn restore(&self, id: u64, path: impl AsRef<Path>) -> Result<()> {
        self.restore_with(Arc::new(PosixVfs::new()), id, path, &RestoreOptions::default())
    }

    /// Restores the newest backup, as [`BackupEngine::restore`] does. Returns its id.
    ///
    /// # Errors
    /// As [`BackupEngine::restore`]. A damaged newest backup is an error, not a reason to restore
    /// an older one.
    pub fn restore_latest(&self, path: impl AsRef<Path>) -> Result<u64> {
        let id = self.latest()?;
        self.restore(id, path)?;
        Ok(id)
    }

    /// Returns the id of the newest backup.
    ///
    /// # Errors
    /// `NoSuchBackup` if there is none; `Io`.
    pub fn latest(&self) -> Result<u64> {
        let ids = self.store.list(RECORDS)?;
        ids.iter().filter_map(|key| id_of_key(key)).max().ok_or(Error::NoSuchBackup(0))
    }

    /// Restores into a directory of the file system `vfs`, with options.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (path, target) = (directory.path().join("db"), directory.path().join("backups"));
    /// # let db = sateen::Db::open(&path, sateen::Options::default())?;
    /// # let mut backups = sateen::BackupEngine::open(&target)?;
    /// # let backup = backups.create(&db)?;
    /// use std::sync::Arc;
    ///
    /// use sateen::vfs::MemVfs;
    /// use sateen::{Db, Options, RestoreOptions};
    ///
    /// // A look into the backup, in memory.
    /// let memory = Arc::new(MemVfs::new());
    /// backups.restore_with(memory.clone(), backup.id, "/db", &RestoreOptions::default())?;
    /// let db = Db::open_with(memory, "/db", Options::default(), &[])?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`BackupEngine::restore`]. `Cancelled` if the listener ends it.
    pub fn restore_with(
        &self,
        vfs: Arc<dyn Vfs>,
        id: u64,
        path: impl AsRef<Path>,
        options: &RestoreOptions,
    ) -> Result<()> {
        check_named("the restored database", path.as_ref())?;
        if let Some(logs) = &options.wal_dir {
            check_named("wal_dir", logs)?;
        }
        let record = self.record(id)?;
        let (store, vfs) = (self.store.as_ref(), vfs.as_ref());
        let restored = restore::restore(store, &record, vfs, path.as_ref(), options);
        restored.map_err(|error| match self.is_deletion(id, &error) {
            true => Error::BackupDeleted(id),
            false => error,
        })
    }

    /// Returns true if `error` of reading a backup came from its deletion: an object is missing,
    /// and so is the record, which goes first.
    fn is_deletion(&self, id: u64, error: &Error) -> bool {
        let is_missing = match error {
            Error::Corruption { kind, .. } => *kind == CorruptionKind::MissingFile,
            Error::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
            _ => false,
        };
        is_missing && matches!(self.record(id), Err(Error::NoSuchBackup(_)))
    }

    /// Reads all records.
    fn records(&self) -> Result<Records> {
        let keys = self.store.list(RECORDS)?;
        let mut records = Records::new();
        for id in keys.iter().filter_map(|key| id_of_key(key)) {
            match self.record(id) {
                // What cannot be read now may be whole, and is an error of every operation.
                Err(error) if error.is_environment() && !error.is_device_failure() => {
                    return Err(error);
                }
                // Another process has deleted it since it was listed.
                Err(Error::NoSuchBackup(_)) if self.lock.is_none() => {}
                read => drop(records.insert(id, read)),
            }
        }
        Ok(records)
    }

    /// Reads a record.
    fn record(&self, id: u64) -> Result<Record> {
        let key = record_key(id);
        let bytes = match read(self.store.as_ref(), &key, RECORD_BYTES_MAX) {
            Err(Error::Corruption { kind: CorruptionKind::MissingFile, .. }) => {
                return Err(Error::NoSuchBackup(id));
            }
            read => read?,
        };
        Record::decode(&bytes, id, &self.store.location(&key))
    }
}

/// Reads an object of at most `bytes_max` bytes.
fn read(store: &dyn BackupStore, key: &str, bytes_max: u64) -> Result<Vec<u8>> {
    let mut reader = store.open(key)?;
    let length = reader.bytes()?;
    if length > bytes_max {
        let kind = CorruptionKind::Malformed("an object that is too large");
        return Err(Error::corruption(&store.location(key), 0, kind));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let got = reader.read_at(&mut bytes, 0)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// Returns true if there is the record of a backup, whole or damaged.
fn has_records(store: &dyn BackupStore) -> Result<bool> {
    Ok(store.list(RECORDS)?.iter().any(|key| id_of_key(key).is_some()))
}

/// Returns true if the place has backups of a format that is known, false if it is new. Fails if it
/// holds something else, or if what it says is damaged and it is to be written.
fn read_format(store: &dyn BackupStore, to_write: bool) -> Result<bool> {
    let refused = |reason| Error::IncompatibleDirectory { path: store.location(""), reason };
    let bytes = match read(store, FORMAT, 4096) {
        Ok(bytes) => bytes,
        Err(Error::Corruption { kind: CorruptionKind::MissingFile, .. }) => {
            // A record tells whose place it is, so FORMAT can be written again.
            if has_records(store)? {
                return Ok(false);
            }
            let strangers = store.strangers(&[FORMAT, LAST, RECORDS, SHARED, PRIVATE])?;
            if let Some(stranger) = strangers.first() {
                let what = shown_path(Path::new(stranger));
                return Err(refused(format!("it holds {what}, and is no place for backups")));
            }
            for folder in [RECORDS, SHARED, PRIVATE] {
                if let Some(key) = store.list(folder)?.first() {
                    let key = shown_path(Path::new(key));
                    return Err(refused(format!(
                        "it holds {key}, but no file {FORMAT} and no record of a backup, so \
                         nothing in it is removed: if backups were here, bring back the folder \
                         {RECORDS}; if nothing in it is needed, remove it"
                    )));
                }
            }
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let text = checked_text::unseal(&bytes);
    if text == Some(&format!("{FORMAT_LINE}\n")) {
        return Ok(true);
    }
    let newer = |text| checked_text::newer(text, FORMAT_LINE);
    if let Some(reason) = std::str::from_utf8(&bytes).ok().and_then(newer) {
        return Err(refused(reason));
    }
    // Each record has its own format and checksum, so that reading needs nothing of this.
    if to_write {
        let advice = "the text of a place for backups, which says nothing about the backups: \
                      they can be listed, verified and restored. Remove this file, and the next \
                      backup writes it again";
        let kind = CorruptionKind::Malformed(advice);
        return Err(Error::corruption(&store.location(FORMAT), 0, kind));
    }
    Ok(true)
}

/// Describes the backups.
fn infos(records: &Records) -> Vec<BackupInfo> {
    let mut users: BTreeMap<u64, u64> = BTreeMap::new();
    let objects = || records.values().flatten().flat_map(|record| &record.objects);
    objects().for_each(|object| *users.entry(object.nonce).or_default() += 1);
    let info = |(id, record): (&u64, &Result<Record>)| match record {
        Ok(record) => {
            let own = record.objects.iter().filter(|object| users.get(&object.nonce) == Some(&1));
            let kinds = record.objects.iter().map(|object| object.identity.kind);
            BackupInfo {
                id: *id,
                created: record.created,
                seqno: record.seqno,
                bytes: record.bytes(),
                own_bytes: own.map(|object| object.identity.length).sum(),
                tables: kinds.filter(|kind| *kind == ObjectKind::Table).count() as u64,
                files: record.files.len() as u64,
                note: record.note.clone(),
                damage: None,
            }
        }
        Err(damage) => BackupInfo {
            id: *id,
            created: 0,
            seqno: 0,
            bytes: 0,
            own_bytes: 0,
            tables: 0,
            files: 0,
            note: String::new(),
            damage: Some(damage.clone()),
        },
    };
    records.iter().map(info).collect()
}
