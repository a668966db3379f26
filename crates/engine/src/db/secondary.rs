//! The public API of secondaries.

use std::path::Path;
use std::sync::Arc;

use sateen_store::base::error::Result;
use sateen_store::vfs::{PosixVfs, Vfs};

use super::Db;
use crate::open;
use crate::options::{ColumnFamilyOptions, Options};

/// Following a primary.
impl Db {
    /// Opens the database in `path` for reading, as a secondary of the process or handle that has
    /// it open for writing, the primary. It shows what the primary had written at that moment,
    /// flushed or not. [`Db::try_catch_up_with_primary`] adds what was written later. A secondary
    /// takes no lock, changes nothing, and starts no thread.
    ///
    /// The primary does not know about it, and removes tables that itself does not need.
    ///
    /// - A read of a removed table fails with [`Error::Behind`](crate::Error::Behind). After
    ///   catching up it succeeds again.
    /// - Writes that the primary did not log are visible once it has flushed them.
    /// - Snapshots are valid until a catch-up that applied something.
    /// - Column families that the primary creates later are not visible. Handles of one that it
    ///   drops fail after the next catch-up.
    /// - [`Db::list_prepared`] follows the primary. Locks of the primary's transactions are not
    ///   seen.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Db, Options};
    ///
    /// let primary = Db::open(directory.path(), Options::default())?;
    /// primary.put("fig", "1")?;
    /// let secondary = Db::open_secondary(directory.path(), Options::default())?;
    /// primary.put("fig", "2")?;
    /// assert_eq!(secondary.get("fig")?.as_deref(), Some(&b"1"[..]));
    /// assert!(secondary.try_catch_up_with_primary()?);
    /// assert_eq!(secondary.get("fig")?.as_deref(), Some(&b"2"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_read_only`]. `Behind` if the primary changes too fast to be followed.
    pub fn open_secondary(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_secondary_with(Arc::new(PosixVfs::new()), path, options, &[])
    }

    /// Opens a secondary in the file system `vfs`, with options for the column families in
    /// `families`.
    ///
    /// # Errors
    /// As [`Db::open_secondary`]. `NoSuchColumnFamily` if one of `families` does not exist.
    pub fn open_secondary_with(
        vfs: Arc<dyn Vfs>,
        path: impl AsRef<Path>,
        options: Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Db> {
        Db::of(open::open_secondary(vfs, path.as_ref(), options, families)?)
    }

    /// Applies what the primary has written since the last call or the opening, all of it at one
    /// moment. Returns true if there was anything. Otherwise it costs a few small reads. Iterators
    /// go on as they were. Writes that the primary makes during the call may be missing afterwards.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Db, Options};
    ///
    /// let primary = Db::open(directory.path(), Options::default())?;
    /// let secondary = Db::open_secondary(directory.path(), Options::default())?;
    /// primary.put("fig", "1")?;
    /// assert!(secondary.try_catch_up_with_primary()?);
    /// assert!(secondary.contains_key("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotSecondary`](crate::Error::NotSecondary) if it is no secondary. `Behind` if the
    /// primary changes too fast to be followed. `Io` and `Corruption` if its files cannot be read.
    /// After an error the secondary shows what it showed before.
    pub fn try_catch_up_with_primary(&self) -> Result<bool> {
        self.core.catch_up()
    }
}
