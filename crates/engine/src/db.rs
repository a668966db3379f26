//! The public face of a database.

use std::path::Path;
use std::sync::Arc;

use sateen_control::version::VersionEdit;
use sateen_control::{ColumnFamilyId, Event, ValueKind};

use crate::background::state::Health;
use crate::column_family::ColumnFamilyData;
use crate::core::DbCore;
use crate::error::{Error, Result};
use crate::iter::Iter;
use crate::manifest::version_set::fresh_version;
use crate::metrics::Operation;
use crate::options::{ColumnFamilyOptions, Options, ReadOptions, WriteOptions, control};
use crate::read::super_version::{Copy, Pin, PinnedSlice, ValueSink};
use crate::recovery;
use crate::snapshot::Snapshot;
use crate::sync::lock;
use crate::vfs::{PosixVfs, Vfs};
use crate::write::Payload;
use crate::write::batch::{KEY_BYTES_MAX, WriteBatch};

mod upkeep;

/// The name of the column family that every database has.
pub const DEFAULT_COLUMN_FAMILY: &str = "default";

/// An open database. Cheap to clone; all clones and threads may use it at once. It closes when the
/// last clone is dropped, or by [`Db::close`], which tells whether that went well.
#[derive(Clone)]
pub struct Db {
    core: Arc<DbCore>,
    /// Closes when the last handle goes: threads and iterators hold `core`, not this.
    _closer: Arc<Closer>,
}

struct Closer(Arc<DbCore>);

impl Drop for Closer {
    fn drop(&mut self) {
        // Who wants to hear of it calls `Db::close`.
        let _unheard = self.0.close();
    }
}

/// A handle of a column family. Cheap to clone; valid until the family is dropped, after which
/// operations with it fail and iterators made before go on.
#[derive(Clone)]
pub struct ColumnFamily {
    pub(crate) data: Arc<ColumnFamilyData>,
}

impl ColumnFamily {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.data.name()
    }

    /// Its number; never used again for another.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.data.id().0
    }
}

impl std::fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ColumnFamily").field("name", &self.name()).field("id", &self.id()).finish()
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("path", &self.core.directory).finish_non_exhaustive()
    }
}

/// Opening and closing.
impl Db {
    /// Opens the database in the directory `path`, making it if it is not there and the options
    /// allow. Column families that exist are opened with the options of
    /// [`Options::column_family`]; [`Db::open_with`] gives each its own.
    ///
    /// # Errors
    /// `Locked` if it is open elsewhere, `IncompatibleDirectory` if the directory holds something
    /// else or a newer format, `Corruption` if it is damaged, `InvalidArgument` if options are.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_with(Arc::new(PosixVfs::new()), path, options, &[])
    }

    /// Opens a database in a file system of the caller's, column families with options of their
    /// own.
    ///
    /// # Errors
    /// As [`Db::open`]; `NoSuchColumnFamily` if one of `families` does not exist and
    /// `create_missing_column_families` is off.
    pub fn open_with(
        vfs: Arc<dyn Vfs>,
        path: impl AsRef<Path>,
        options: Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Db> {
        let core = recovery::open(vfs, path.as_ref(), options, families)?;
        Ok(Db { _closer: Arc::new(Closer(core.clone())), core })
    }

    /// Opens the database for reading: nothing in the directory is changed, not even by recovery,
    /// which stays in memory. Any number of readers may do so, also while a writer has it open:
    /// they see it as it was when they opened it, and reads fail that need what the writer has
    /// given back since. For a view that lasts make a checkpoint and open that.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_read_only_with(Arc::new(PosixVfs::new()), path, options)
    }

    /// [`Db::open_read_only`] in a file system of the caller's.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_read_only_with(
        vfs: Arc<dyn Vfs>,
        path: impl AsRef<Path>,
        options: Options,
    ) -> Result<Db> {
        let core = recovery::open_read_only(vfs, path.as_ref(), options)?;
        Ok(Db { _closer: Arc::new(Closer(core.clone())), core })
    }

    /// Closes the database: background work ends at its next step, the log is synced (without a
    /// log, memtables are flushed), the directory is free again. Other handles fail from then on.
    ///
    /// # Errors
    /// What kept the last writes from being stored. The database is closed all the same.
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.core.directory
    }

    pub(crate) fn core(&self) -> &Arc<DbCore> {
        &self.core
    }
}

/// Column families.
impl Db {
    /// The column family that every database has.
    #[must_use]
    pub fn default_column_family(&self) -> ColumnFamily {
        ColumnFamily { data: self.core.default_family.clone() }
    }

    /// The column family of that name, if there is one.
    #[must_use]
    pub fn column_family(&self, name: &str) -> Option<ColumnFamily> {
        self.core.families().get(name).map(|data| ColumnFamily { data: data.clone() })
    }

    /// The names of all column families, ascending.
    #[must_use]
    pub fn column_families(&self) -> Vec<String> {
        self.core.families().keys().cloned().collect()
    }

    /// Makes a column family.
    ///
    /// # Errors
    /// `InvalidArgument` if there is one of that name.
    pub fn create_column_family(
        &self,
        name: &str,
        options: ColumnFamilyOptions,
    ) -> Result<ColumnFamily> {
        self.core.check_writable("making a column family")?;
        options.validate()?;
        let _catalogue = lock(&self.core.catalogue);
        if self.core.families().contains_key(name) {
            return Err(Error::InvalidArgument(format!("the column family {name} exists")));
        }
        let data = create_family(&self.core, name, options)?;
        Ok(ColumnFamily { data })
    }

    /// Drops a column family with all that is in it. The name may be used again at once.
    ///
    /// # Errors
    /// `InvalidArgument` for the default column family, `NoSuchColumnFamily` if it is dropped
    /// already.
    pub fn drop_column_family(&self, family: &ColumnFamily) -> Result<()> {
        let core = &self.core;
        core.check_writable("dropping a column family")?;
        if family.data.id() == ColumnFamilyId(0) {
            return Err(Error::InvalidArgument("the default column family stays".into()));
        }
        let _catalogue = lock(&core.catalogue);
        check_family(family)?;
        let edit =
            VersionEdit { column_family: family.data.id(), drop: true, ..VersionEdit::default() };
        let last_seqno = core.pipeline.visible_seqno();
        // First the record of it, then no more writes: should it fail, nothing that was written
        // meanwhile is missing. What is written between the two came before the drop.
        let dropped = core.versions.install(edit, 0, last_seqno, &core.reclaimer);
        if let Err(error) = dropped {
            core.driver.chores.after_roll(&[]);
            core.job_failed(&error);
            return Err(error);
        }
        family.data.mark_dropped();
        core.pipeline.exclusive(|stage| core.pipeline.remove_family(stage, family.data.id()));
        core.driver.report(core.now(), Event::ColumnFamilyDropped { cf: family.data.id() });
        let mut families = (**core.families()).clone();
        families.remove(family.name());
        core.families.store(Arc::new(families));
        Ok(())
    }
}

/// Makes a column family's durable record and its engine side. The catalogue is locked.
pub(crate) fn create_family(
    core: &Arc<DbCore>,
    name: &str,
    options: ColumnFamilyOptions,
) -> Result<Arc<ColumnFamilyData>> {
    let id = core.versions.counters.family();
    let version = fresh_version(id, &options);
    let data = Arc::new(core.new_family_data(id, name.to_owned(), options, Arc::new(version)));
    let edit = VersionEdit {
        column_family: id,
        create: Some(name.to_owned()),
        style: Some(data.options().compaction_style.to_string()),
        // Its first entry goes to the log in use or a later one.
        log_number: Some(core.pipeline.exclusive(|stage| stage.wal_number())),
        ..VersionEdit::default()
    };
    let last_seqno = core.pipeline.visible_seqno();
    let installed = core.versions.install_new(edit, &data, last_seqno, &core.reclaimer);
    let version = match installed {
        Ok(version) => version,
        Err(error) => {
            core.driver.chores.after_roll(&[]);
            core.job_failed(&error);
            return Err(error);
        }
    };
    core.pipeline.exclusive(|stage| core.pipeline.add_family(stage, data.clone()));
    let mut families = (**core.families()).clone();
    families.insert(name.to_owned(), data.clone());
    core.families.store(Arc::new(families));
    let options = Arc::new(control::column_family(&core.options.load(), &data.options()));
    core.driver.report(core.now(), Event::ColumnFamilyAdded { options, version });
    Ok(data)
}

fn check_family(family: &ColumnFamily) -> Result<()> {
    if family.data.is_dropped() {
        return Err(Error::NoSuchColumnFamily(family.name().to_owned()));
    }
    Ok(())
}

/// Writing. Each of these is atomic; [`WriteOptions::default`] does as the `wal` option says.
impl Db {
    /// Sets `key` to `value` in the default column family.
    ///
    /// # Errors
    /// `InvalidArgument` if key or value are too large; `Background` if the database refuses
    /// writes.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (family, key, value) = (&self.core.default_family, key.as_ref(), value.as_ref());
        self.single(family, ValueKind::Put, key, value, &WriteOptions::default())
    }

    /// Sets `key` to `value` in a column family.
    ///
    /// # Errors
    /// As [`Db::put`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn put_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        check_family(family)?;
        self.single(&family.data, ValueKind::Put, key.as_ref(), value.as_ref(), options)
    }

    /// Deletes `key` in the default column family. It need not exist.
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let family = &self.core.default_family;
        self.single(family, ValueKind::Delete, key.as_ref(), &[], &WriteOptions::default())
    }

    /// Deletes `key` in a column family.
    ///
    /// # Errors
    /// As [`Db::put_cf`].
    pub fn delete_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        check_family(family)?;
        self.single(&family.data, ValueKind::Delete, key.as_ref(), &[], options)
    }

    /// Applies all of `batch`, or nothing of it.
    ///
    /// # Errors
    /// As [`Db::put_cf`]. On `InvalidArgument` and `NoSuchColumnFamily` nothing was done.
    pub fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        let value_bytes_max = self.core.options.load().value_bytes_max;
        if batch.value_bytes_largest() as u64 > value_bytes_max {
            return Err(too_large("a value", batch.value_bytes_largest(), value_bytes_max));
        }
        let families = self.core.families();
        let mut known = ColumnFamilyId(0);
        for entry in batch {
            if entry.column_family != known {
                known = entry.column_family;
                if !families.values().any(|family| family.id() == known) {
                    return Err(Error::NoSuchColumnFamily(known.to_string()));
                }
            }
        }
        self.core.write(&Payload::Batch(batch), batch.len_bytes() as u64, options)
    }

    #[inline]
    fn single(
        &self,
        family: &Arc<ColumnFamilyData>,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        if key.len() > KEY_BYTES_MAX {
            return Err(too_large("a key", key.len(), KEY_BYTES_MAX as u64));
        }
        let value_bytes_max = self.core.options.load().value_bytes_max;
        if value.len() as u64 > value_bytes_max {
            return Err(too_large("a value", value.len(), value_bytes_max));
        }
        let payload = Payload::Single { family: family.id(), kind, key, value };
        self.core.write(&payload, (key.len() + value.len()) as u64, options)
    }

    /// Makes durable everything that was written so far, whatever it was written with.
    ///
    /// # Errors
    /// `Io` if the log cannot be synced: then it is not used any more and writes are refused until
    /// [`Db::resume`].
    pub fn sync_wal(&self) -> Result<()> {
        self.core.check_writable("a sync")?;
        let synced = self.core.pipeline.sync_wal();
        if let Err(error) = &synced {
            self.core.health.raise(Health::ReadOnly, error);
        }
        synced
    }
}

#[cold]
fn too_large(what: &str, bytes: usize, limit: u64) -> Error {
    Error::InvalidArgument(format!("{what} of {bytes} bytes exceeds the limit of {limit} bytes"))
}

/// Reading.
impl Db {
    /// The value of `key` in the default column family.
    ///
    /// # Errors
    /// `Io` or `Corruption` if a table cannot be read: never a wrong answer.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.find(&self.core.default_family, key.as_ref(), &ReadOptions::default(), Copy)
    }

    /// The value of `key` in a column family, as of the options' snapshot.
    ///
    /// # Errors
    /// As [`Db::get`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn get_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        check_family(family)?;
        self.find(&family.data, key.as_ref(), options, Copy)
    }

    /// As [`Db::get`], without copying a value that is in a block.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedSlice>> {
        self.find(&self.core.default_family, key.as_ref(), &ReadOptions::default(), Pin)
    }

    /// As [`Db::get_cf`], without copying a value that is in a block.
    ///
    /// # Errors
    /// As [`Db::get_cf`].
    pub fn get_pinned_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedSlice>> {
        check_family(family)?;
        self.find(&family.data, key.as_ref(), options, Pin)
    }

    /// The values of many keys at one moment, in the order of the keys.
    ///
    /// # Errors
    /// As [`Db::get_cf`], each key for itself.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily,
        keys: &[K],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedSlice>>> {
        let core = &self.core;
        let timer = core.metrics.start(Operation::MultiGet);
        let (mut hits, mut value_bytes) = (0, 0);
        let checked = core.check_open().and_then(|()| check_family(family));
        let super_version = family.data.super_version();
        let seqno = options.seqno().unwrap_or_else(|| core.pipeline.visible_seqno());
        let lookup = core.lookup(options.fill_cache);
        // In key order neighbours share blocks; the answers go back to where they were asked for.
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by(|a, b| keys[*a].as_ref().cmp(keys[*b].as_ref()));
        let mut answers: Vec<Result<Option<PinnedSlice>>> = Vec::new();
        answers.resize_with(keys.len(), || Ok(None));
        for at in order {
            let answer = match &checked {
                Ok(()) => super_version.get(keys[at].as_ref(), seqno, &lookup, Pin),
                Err(error) => Err(error.clone()),
            };
            if let Ok(Some(value)) = &answer {
                hits += 1;
                value_bytes += value.len() as u64;
            }
            answers[at] = answer;
        }
        core.metrics.record_multi_get(timer, keys.len() as u64, hits, value_bytes);
        answers
    }

    #[inline]
    fn find<S: ValueSink>(
        &self,
        family: &ColumnFamilyData,
        key: &[u8],
        options: &ReadOptions,
        sink: S,
    ) -> Result<Option<S::Out>> {
        let core = &self.core;
        core.check_open()?;
        let timer = core.metrics.start(Operation::Get);
        // The order matters: see `SuperVersion`.
        let super_version = family.super_version();
        let seqno = options.seqno().unwrap_or_else(|| core.pipeline.visible_seqno());
        let found = super_version.get(key, seqno, &core.lookup(options.fill_cache), sink)?;
        core.metrics.record_get(timer, found.as_ref().map(|value| value.as_ref().len()));
        Ok(found)
    }

    /// An iterator over the default column family. Seek before use.
    ///
    /// # Errors
    /// `InvalidArgument` if the options' bounds are reversed.
    pub fn iter(&self, options: &ReadOptions) -> Result<Iter> {
        Iter::new(&self.core, &self.core.default_family, options)
    }

    /// An iterator over a column family. Seek before use.
    ///
    /// # Errors
    /// As [`Db::iter`]; `NoSuchColumnFamily` if the family was dropped.
    pub fn iter_cf(&self, family: &ColumnFamily, options: &ReadOptions) -> Result<Iter> {
        check_family(family)?;
        Iter::new(&self.core, &family.data, options)
    }

    /// A consistent view of all column families as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.core.snapshot()
    }
}
