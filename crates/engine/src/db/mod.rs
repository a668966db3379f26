//! The public API: opening and closing a database, and its column families. Reads, writes,
//! iterators and upkeep are in the files beside this one.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sateen_control::version::VersionEdit;
use sateen_control::{ColumnFamilyId, Comparator, Event};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::lock;
use sateen_store::vfs::{PosixVfs, Vfs};

use crate::core::DbCore;
use crate::db::family::ColumnFamily;
use crate::open;
use crate::open::create::create_family;
use crate::options::{ColumnFamilyOptions, Options};
use crate::tree::families::{ColumnFamilyData, check_family_name};

pub(crate) mod batch;
pub(crate) mod behind;
pub(crate) mod bytes;
pub(crate) mod calls;
pub(crate) mod checkpoint;
pub(crate) mod cursor;
mod export;
pub(crate) mod family;
mod family_upkeep;
#[cfg(any(test, feature = "test-support"))]
mod held;
pub(crate) mod ingest;
pub(crate) mod inspect;
pub(crate) mod iter;
pub(crate) mod listeners;
pub(crate) mod live_files;
pub(crate) mod observe;
pub(crate) mod overlay;
pub(crate) mod properties;
mod read;
mod remote;
mod secondary;
pub(crate) mod sources;
mod tables;
mod trace;
mod trace_blocks;
pub(crate) mod updates;
mod upkeep;
mod write;

pub use tables::WaitForCompactOptions;

/// An open database. It is cheap to clone, `Send` and `Sync`: all clones and threads may use it at
/// once. It closes when the last clone and the last handle of a column family are dropped, or with
/// [`Db::close`], which reports errors. Iterators and snapshots do not keep it open.
///
/// A method without a [`ColumnFamily`] in its name or arguments works on the default column family
/// or on the whole database.
///
/// ```
/// use sateen::{Db, Options};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db = Db::open(directory.path(), Options::default())?;
/// let writer = db.clone();
/// std::thread::spawn(move || writer.put("fig", "1")).join().unwrap()?;
/// assert!(db.contains_key("fig")?);
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    core: Arc<DbCore>,
    /// Closes the database with its last handle. Threads and iterators hold `core` instead.
    _closer: Option<Arc<Closer>>,
}

/// Closes the database when dropped.
struct Closer(Arc<DbCore>);

impl Drop for Closer {
    fn drop(&mut self) {
        // `Db::close` reports the error; a drop cannot.
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
    /// Opens the database in the directory `path`. Creates it, and missing directories above it, if
    /// it does not exist and the options allow that. Copies are stricter: [`Db::checkpoint`] wants
    /// an existing parent directory. Existing column families are opened with the options of
    /// [`Options::column_family`]; [`Db::open_with`] gives each its own.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Db, Options};
    ///
    /// let db = Db::open(directory.path(), Options::default())?;
    /// db.put("fig", "1")?;
    /// db.close()?; // tells whether all went well; without it the last handle closes it
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Locked` if the database is open elsewhere, `IncompatibleDirectory` if the directory holds
    /// something else or a newer format, `Corruption` if files are damaged, `InvalidArgument` if an
    /// option is wrong.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_with(Arc::new(PosixVfs::new()), path, options, &[])
    }

    /// Opens a database in the file system `vfs`, with options for the column families in
    /// `families`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use sateen::vfs::MemVfs;
    /// use sateen::{ColumnFamilyOptions, Db, Options};
    ///
    /// // In memory, with a column family that has options of its own:
    /// let options = Options { create_missing_column_families: true, ..Options::default() };
    /// let mut small = ColumnFamilyOptions::default();
    /// small.memtable_bytes = 1 << 20;
    /// let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[("small", small)])?;
    /// assert_eq!(db.column_families(), ["default", "small"]);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open`]. `NoSuchColumnFamily` if one of `families` does not exist and
    /// `create_missing_column_families` is off.
    pub fn open_with(
        vfs: Arc<dyn Vfs>,
        path: impl AsRef<Path>,
        options: Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Db> {
        Db::of(open::open(vfs, path.as_ref(), options, families)?)
    }

    /// Opens the database for reading. Nothing in the directory is changed: recovery stays in
    /// memory. Any number of readers may do so, also while a writer has the database open. They see
    /// it as it was when they opened it. A read fails if it needs a table that the writer has
    /// removed since. For a lasting view, create a checkpoint and open that.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Db, Options};
    ///
    /// Db::open(directory.path(), Options::default())?.put("fig", "1")?;
    /// let db = Db::open_read_only(directory.path(), Options::default())?;
    /// assert!(db.contains_key("fig")? && db.put("fig", "2").is_err());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_read_only_with(Arc::new(PosixVfs::new()), path, options)
    }

    /// Opens a database for reading in the file system `vfs`, as [`Db::open_read_only`] does.
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

    /// Opens a database for reading in the file system `vfs`, with options for the column families
    /// in `families`.
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

    /// Returns the first handle of a database that was just opened, and starts its threads.
    pub(crate) fn of(core: Arc<DbCore>) -> Result<Db> {
        let db = Db { _closer: Some(Arc::new(Closer(core.clone()))), core };
        let announced: Weak<DbCore> = Arc::downgrade(&db.core);
        db.core.env.events.begin(announced);
        db.core.background.start_threads()?;
        db.begin_inspection()?;
        Ok(db)
    }

    /// Returns the names of the column families of the database in `path`, in the order of their
    /// creation. The database may be open, and no options are needed.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Db, Options};
    ///
    /// drop(Db::open(directory.path(), Options::default())?);
    /// assert_eq!(Db::list_column_families(directory.path())?, ["default"]);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `IncompatibleDirectory` if there is no database of ours; `Corruption`; `Io`.
    pub fn list_column_families(path: impl AsRef<Path>) -> Result<Vec<String>> {
        Db::list_column_families_with(&PosixVfs::new(), path)
    }

    /// Returns the names of column families in the file system `vfs`, as
    /// [`Db::list_column_families`] does.
    ///
    /// # Errors
    /// As [`Db::list_column_families`].
    pub fn list_column_families_with(vfs: &dyn Vfs, path: impl AsRef<Path>) -> Result<Vec<String>> {
        open::column_families(vfs, path.as_ref())
    }

    /// Returns the names of the column families in a directory, each with a `ttl` that opens it:
    /// `None` if its values are stored without the times of their writes, and otherwise the one
    /// that it was opened with last, or 0 if that is not known.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use std::time::Duration;
    ///
    /// use sateen::{Db, Options};
    ///
    /// let mut options = Options::default();
    /// options.column_family.ttl = Some(Duration::from_secs(60));
    /// Db::open(directory.path(), options)?.close()?;
    /// let [(name, ttl)] = &Db::list_ttls(directory.path())?[..] else { panic!("one family") };
    /// assert_eq!((name.as_str(), *ttl), ("default", Some(Duration::from_secs(60))));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::list_column_families`].
    pub fn list_ttls(path: impl AsRef<Path>) -> Result<Vec<(String, Option<Duration>)>> {
        Db::list_ttls_with(&PosixVfs::new(), path)
    }

    /// Returns what [`Db::list_ttls`] does, in the file system `vfs`.
    ///
    /// # Errors
    /// As [`Db::list_column_families`].
    pub fn list_ttls_with(
        vfs: &dyn Vfs,
        path: impl AsRef<Path>,
    ) -> Result<Vec<(String, Option<Duration>)>> {
        open::forms::fitting_ttls(vfs, path.as_ref())
    }

    /// Closes the database. Background work ends at its next step, the WAL is synced, entries that
    /// are in no WAL are flushed, and the directory is unlocked. Other handles fail from then on.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.close()?;
    /// assert!(matches!(db.get("fig"), Err(sateen::Error::Closed)));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The reason why the last writes could not be stored. The database is closed nevertheless.
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// Returns the directory of the database.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert_eq!(db.path(), directory.path());
    /// # Ok::<(), sateen::Error>(())
    /// ```
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
    /// Returns the default column family, which every database has.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// assert!(db.default_column_family().contains_key("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn default_column_family(&self) -> ColumnFamily {
        ColumnFamily::new(self, self.core.tree.default_family.clone())
    }

    /// Returns the column family of that name, if there is one.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert!(db.column_family("default").is_some() && db.column_family("loans").is_none());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn column_family(&self, name: &str) -> Option<ColumnFamily> {
        self.core.tree.families().by_name(name).map(|data| ColumnFamily::new(self, data.clone()))
    }

    /// Returns the column family with this id, or `None`.
    pub(crate) fn column_family_by_id(&self, id: ColumnFamilyId) -> Option<ColumnFamily> {
        let families = self.core.tree.families();
        let data = families.by_id(id).filter(|data| data.region().is_none());
        data.map(|data| ColumnFamily::new(self, data.clone()))
    }

    /// Returns the names of all column families, ascending.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// assert_eq!(db.column_families(), ["default", "loans"]);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn column_families(&self) -> Vec<String> {
        self.core.tree.families().names().cloned().collect()
    }

    /// Creates a column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// use sateen::ColumnFamilyOptions;
    ///
    /// let loans = db.create_column_family("loans", ColumnFamilyOptions::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if a column family has this name.
    pub fn create_column_family(
        &self,
        name: &str,
        options: ColumnFamilyOptions,
    ) -> Result<ColumnFamily> {
        options.validate()?;
        check_family_name(name)?;
        let _catalogue = lock(&self.core.tree.changes);
        self.core.env.check_writable("creating a column family")?;
        if self.core.tree.families().by_name(name).is_some() {
            return Err(Error::InvalidArgument(format!("the column family {name} exists already")));
        }
        let data = create_family(&self.core, name, options)?;
        self.core.background.chores.store_options();
        Ok(ColumnFamily::new(self, data))
    }

    /// Drops a column family and everything in it. The name may be used again at once.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// db.drop_column_family(&loans)?;
    /// assert!(matches!(loans.get("walden"), Err(sateen::Error::NoSuchColumnFamily(_))));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for the default column family, and for one of another database.
    /// `NoSuchColumnFamily` if the family was dropped before.
    pub fn drop_column_family(&self, family: &ColumnFamily) -> Result<()> {
        let core = &self.core;
        core.env.check_writable("dropping a column family")?;
        // Its number may be that of a family here.
        if !family.belongs_to(self) {
            return Err(Error::InvalidArgument(format!(
                "the column family {} belongs to another database, {}",
                family.name(),
                family.db().path().display()
            )));
        }
        if family.data.id() == ColumnFamilyId(0) {
            return Err(Error::InvalidArgument(
                "the default column family cannot be dropped".into(),
            ));
        }
        let _catalogue = lock(&core.tree.changes);
        check_family(&family.data)?;
        let drop = |tree: &Arc<ColumnFamilyData>| {
            (VersionEdit { column_family: tree.id(), drop: true, ..VersionEdit::default() }, 0)
        };
        let edits = family.data.trees().map(drop).collect();
        core.background.chores.sync_kept_logs()?;
        let last_seqno = core.writes.pipeline.visible_seqno();
        // The edit comes first, and writes end after it. If the edit fails, no write was refused in
        // between. A write between the two counts as made before the drop.
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

/// Fails if the column family was dropped.
pub(crate) fn check_family(family: &ColumnFamilyData) -> Result<()> {
    if family.is_dropped() {
        return Err(Error::NoSuchColumnFamily(family.name().to_owned()));
    }
    Ok(())
}

/// Fails if the column family has no merge operator.
fn check_merges(family: &ColumnFamilyData) -> Result<()> {
    if family.options().merge_operator.is_none() {
        return Err(Error::NoMergeOperator(family.name().to_owned()));
    }
    Ok(())
}

/// Fails if the end of a range comes before its begin.
pub(crate) fn check_range(comparator: &Comparator, begin: &[u8], end: &[u8]) -> Result<()> {
    if comparator.compare(end, begin).is_lt() {
        let (begin, end) = (begin.escape_ascii(), end.escape_ascii());
        let text = format!("the end {end} of a range to delete comes before its begin {begin}");
        return Err(Error::InvalidArgument(text));
    }
    Ok(())
}
