//! The public face of a database.

use std::path::Path;
use std::sync::{Arc, Weak};

use sateen_control::version::VersionEdit;
use sateen_control::{ColumnFamilyId, Comparator, Event, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::lock;
use sateen_store::batch::{BatchEntry, KEY_BYTES_MAX};
use sateen_store::vfs::{PosixVfs, Vfs};

use crate::core::DbCore;
use crate::open::create::create_family;
use crate::options::{ColumnFamilyOptions, Options, WriteOptions};
use crate::tree::families::ColumnFamilyData;
use crate::tree::handle::ColumnFamily;
use crate::write::Payload;
use crate::write::batch::WriteBatch;
use crate::{open, ttl};

pub(crate) mod behind;
pub(crate) mod checkpoint;
pub(crate) mod cursor;
pub(crate) mod held;
pub(crate) mod ingest;
pub(crate) mod listeners;
pub(crate) mod live_files;
pub(crate) mod observe;
mod present;
mod read;
mod secondary;
mod tables;
pub(crate) mod updates;
mod upkeep;

pub use tables::WaitForCompactOptions;

/// An open database. Cheap to clone; all clones and threads may use it at once. It closes when the
/// last clone is dropped, or by [`Db::close`], which tells whether that went well.
#[derive(Clone)]
pub struct Db {
    core: Arc<DbCore>,
    /// Closes when the last handle goes: threads and iterators hold `core`, not this.
    _closer: Option<Arc<Closer>>,
}

struct Closer(Arc<DbCore>);

impl Drop for Closer {
    fn drop(&mut self) {
        // Who wants to hear of it calls `Db::close`.
        let _unheard = self.0.close();
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("path", &self.core.env.directory).finish_non_exhaustive()
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
        Db::of(open::open(vfs, path.as_ref(), options, families)?)
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
        Db::open_read_only_families_with(vfs, path, options, &[])
    }

    /// The same, with options for the column families named in `families`.
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open_read_only_families_with(
        vfs: Arc<dyn Vfs>,
        path: impl AsRef<Path>,
        options: Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Db> {
        Db::of(open::open_read_only(vfs, path.as_ref(), options, families)?)
    }

    /// Makes the first handle of a database that was just opened, and starts its threads.
    pub(crate) fn of(core: Arc<DbCore>) -> Result<Db> {
        let db = Db { _closer: Some(Arc::new(Closer(core.clone()))), core };
        let announced: Weak<DbCore> = Arc::downgrade(&db.core);
        db.core.env.events.begin(announced);
        db.core.background.start_threads()?;
        Ok(db)
    }

    /// The names of the column families of the database in `path`, which may be open, in the order
    /// in which they were made. Needs none of their options.
    ///
    /// # Errors
    /// `IncompatibleDirectory` if there is no database of ours, `Corruption`, `Io`.
    pub fn list_column_families(path: impl AsRef<Path>) -> Result<Vec<String>> {
        Db::list_column_families_with(&PosixVfs::new(), path)
    }

    /// [`Db::list_column_families`] in a file system of the caller's.
    ///
    /// # Errors
    /// As [`Db::list_column_families`].
    pub fn list_column_families_with(vfs: &dyn Vfs, path: impl AsRef<Path>) -> Result<Vec<String>> {
        open::column_families(vfs, path.as_ref())
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
        &self.core.env.directory
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
        ColumnFamily { data: self.core.tree.default_family.clone() }
    }

    /// The column family of that name, if there is one.
    #[must_use]
    pub fn column_family(&self, name: &str) -> Option<ColumnFamily> {
        self.core.tree.families().by_name(name).map(|data| ColumnFamily { data: data.clone() })
    }

    /// The names of all column families, ascending.
    #[must_use]
    pub fn column_families(&self) -> Vec<String> {
        self.core.tree.families().names().cloned().collect()
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
        options.validate()?;
        let _catalogue = lock(&self.core.tree.changes);
        self.core.env.check_writable("making a column family")?;
        if self.core.tree.families().by_name(name).is_some() {
            return Err(Error::InvalidArgument(format!("the column family {name} exists")));
        }
        let data = create_family(&self.core, name, options)?;
        self.core.background.chores.store_options();
        Ok(ColumnFamily { data })
    }

    /// Drops a column family with all that is in it. The name may be used again at once.
    ///
    /// # Errors
    /// `InvalidArgument` for the default column family, `NoSuchColumnFamily` if it is dropped
    /// already.
    pub fn drop_column_family(&self, family: &ColumnFamily) -> Result<()> {
        let core = &self.core;
        core.env.check_writable("dropping a column family")?;
        if family.data.id() == ColumnFamilyId(0) {
            return Err(Error::InvalidArgument("the default column family stays".into()));
        }
        let _catalogue = lock(&core.tree.changes);
        check_family(family)?;
        let drop = |tree: &Arc<ColumnFamilyData>| {
            (VersionEdit { column_family: tree.id(), drop: true, ..VersionEdit::default() }, 0)
        };
        let edits = family.data.trees().map(drop).collect();
        core.background.chores.sync_kept_logs()?;
        let last_seqno = core.writes.pipeline.visible_seqno();
        // First the record of it, then no more writes: should it fail, nothing that was written
        // meanwhile is missing. What is written between the two came before the drop.
        let dropped = core.tree.versions.install_together(edits, last_seqno, &core.tree.reclaimer);
        if let Err(error) = dropped {
            core.background.driver.edit_failed(&error);
            return Err(error);
        }
        family.data.trees().for_each(|tree| tree.mark_dropped());
        let ids = family.data.trees().map(|tree| tree.id()).collect();
        core.writes.pipeline.exclusive(|stage| core.writes.pipeline.remove_families(stage, &ids));
        for tree in family.data.trees() {
            core.background
                .driver
                .report(core.env.now(), Event::ColumnFamilyDropped { cf: tree.id() });
        }
        let mut families = (**core.tree.families()).clone();
        families.remove(&family.data);
        core.tree.families.store(Arc::new(families));
        core.background.chores.store_options();
        Ok(())
    }
}

fn check_family(family: &ColumnFamily) -> Result<()> {
    if family.data.is_dropped() {
        return Err(Error::NoSuchColumnFamily(family.name().to_owned()));
    }
    Ok(())
}

fn check_merges(family: &ColumnFamilyData) -> Result<()> {
    if family.options().merge_operator.is_none() {
        return Err(Error::NoMergeOperator(family.name().to_owned()));
    }
    Ok(())
}

pub(crate) fn check_range(comparator: &Comparator, begin: &[u8], end: &[u8]) -> Result<()> {
    if comparator.compare(end, begin).is_lt() {
        let (begin, end) = (begin.escape_ascii(), end.escape_ascii());
        let text = format!("the end {end} of a range to delete comes before its begin {begin}");
        return Err(Error::InvalidArgument(text));
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
        let (family, key, value) = (&self.core.tree.default_family, key.as_ref(), value.as_ref());
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
        self.single_cf(family, ValueKind::Put, key.as_ref(), value.as_ref(), options)
    }

    /// Deletes `key` in the default column family. It need not exist.
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let family = &self.core.tree.default_family;
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
        self.single_cf(family, ValueKind::Delete, key.as_ref(), &[], options)
    }

    /// Merges `operand` into the value of `key` in the default column family, as the merge operator
    /// of its options says: a write that reads nothing.
    ///
    /// # Errors
    /// As [`Db::put`]; [`Error::NoMergeOperator`] if the column family has none.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let (family, key, operand) =
            (&self.core.tree.default_family, key.as_ref(), operand.as_ref());
        check_merges(family)?;
        self.single(family, ValueKind::Merge, key, operand, &WriteOptions::default())
    }

    /// Merges `operand` into the value of `key` in a column family.
    ///
    /// # Errors
    /// As [`Db::merge`] and [`Db::put_cf`].
    pub fn merge_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single_cf(family, ValueKind::Merge, key.as_ref(), operand.as_ref(), options)
    }

    /// Deletes `key` in the default column family. RocksDB's promise is asked for (the key was put
    /// at most once since it was deleted last, and not merged), but nothing depends on it: this
    /// does what [`Db::delete`] does, and is stored as what it is.
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let family = &self.core.tree.default_family;
        let options = WriteOptions::default();
        self.single(family, ValueKind::SingleDelete, key.as_ref(), &[], &options)
    }

    /// Deletes `key` in a column family, as [`Db::single_delete`] does.
    ///
    /// # Errors
    /// As [`Db::put_cf`].
    pub fn single_delete_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single_cf(family, ValueKind::SingleDelete, key.as_ref(), &[], options)
    }

    /// Deletes all keys of the default column family from `begin` up to, without, `end`, with one
    /// write however many they are. Tables that have nothing but them are not read any more.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("log/1", "old")?;
    /// db.put("log/2", "new")?;
    /// db.delete_range("log/", "log/2")?;
    /// assert_eq!(db.get("log/1")?, None);
    /// assert_eq!(db.get("log/2")?.as_deref(), Some(&b"new"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`]; `InvalidArgument` if `end` comes before `begin`. Nothing is deleted if they
    /// are equal.
    pub fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        let family = self.default_column_family();
        self.delete_range_cf(&family, begin, end, &WriteOptions::default())
    }

    /// Deletes a range of keys in a column family.
    ///
    /// # Errors
    /// As [`Db::delete_range`] and [`Db::put_cf`].
    pub fn delete_range_cf(
        &self,
        family: &ColumnFamily,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        if !options.ignore_missing_column_families {
            check_family(family)?;
        }
        let mut batch = WriteBatch::new();
        batch.delete_range_cf(family, begin, end)?;
        self.write(&batch, options)
    }

    /// Applies all of `batch`, or nothing of it: see [`Db::write`].
    fn write_all(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        let value_bytes_max = self.core.env.options.load().value_bytes_max;
        if batch.value_bytes_largest() as u64 > value_bytes_max {
            return Err(too_large("a value", batch.value_bytes_largest(), value_bytes_max));
        }
        let families = self.core.tree.families();
        let mut known = &self.core.tree.default_family;
        let (mut in_place, mut has_times) = (true, false);
        for entry in batch {
            if entry.column_family != known.id() {
                let family = families.by_id(entry.column_family);
                let family = family.filter(|family| family.region().is_none());
                let gone = || Error::NoSuchColumnFamily(entry.column_family.to_string());
                known = family.ok_or_else(gone)?;
            }
            if entry.kind == ValueKind::Merge {
                check_merges(known)?;
            }
            if entry.kind == ValueKind::RangeDelete {
                check_range(known.comparator(), entry.key, entry.value)?;
                in_place &= known.region_begins().len() == 0;
            }
            has_times |= known.has_times();
            in_place &= Arc::ptr_eq(known.tree(entry.key), known);
        }
        let timed;
        let batch = if has_times {
            let has_times = |id| families.by_id(id).is_some_and(|family| family.has_times());
            timed = ttl::timed_batch(batch, has_times, &self.core.env.options.load().wall_clock)?;
            &timed
        } else {
            batch
        };
        // Entries of other regions than the first go there.
        let region = |entry: &BatchEntry<'_>| {
            let Some(family) = families.by_id(entry.column_family) else {
                return vec![entry.column_family];
            };
            if entry.kind == ValueKind::RangeDelete {
                let trees = family.trees_between(Some(entry.key), Some(entry.value));
                return trees.map(|tree| tree.id()).collect();
            }
            vec![family.tree(entry.key).id()]
        };
        let moved = if in_place { None } else { Some(batch.moved(region)?) };
        let batch = moved.as_ref().unwrap_or(batch);
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
        let value_bytes_max = self.core.env.options.load().value_bytes_max;
        if value.len() as u64 > value_bytes_max {
            return Err(too_large("a value", value.len(), value_bytes_max));
        }
        let timed;
        let value = if family.has_times() && kind.has_value() {
            timed = ttl::timed(value, &self.core.env.options.load().wall_clock)?;
            &timed
        } else {
            value
        };
        let payload = Payload::Single { family: family.tree(key).id(), kind, key, value };
        self.core.write(&payload, (key.len() + value.len()) as u64, options)
    }

    /// Makes durable everything that was written so far, whatever it was written with.
    ///
    /// # Errors
    /// `Io` if the log cannot be synced: then it is not used any more and writes are refused until
    /// [`Db::resume`], or until there is space again if that is why.
    pub fn sync_wal(&self) -> Result<()> {
        self.core.env.check_writable("a sync")?;
        self.core.background.driver.sync_log().map(drop)
    }
}

#[cold]
fn too_large(what: &str, bytes: usize, limit: u64) -> Error {
    Error::InvalidArgument(format!("{what} of {bytes} bytes exceeds the limit of {limit} bytes"))
}
