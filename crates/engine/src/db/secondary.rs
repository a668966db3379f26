//! The public face of a database that follows another one.

use std::path::Path;
use std::sync::Arc;

use sateen_store::base::error::Result;
use sateen_store::vfs::{PosixVfs, Vfs};

use super::Db;
use crate::open;
use crate::options::{ColumnFamilyOptions, Options};

/// Following another database.
impl Db {
    /// Opens the database in `path` for reading beside whoever has it open for writing, the
    /// primary, in this process or another. It shows what the primary had written when it was
    /// opened, flushed or not, and later what [`Db::try_catch_up_with_primary`] takes in. It takes
    /// no lock, changes nothing, and starts no thread.
    ///
    /// The primary knows nothing of it and gives up tables that it needs no more: a read that comes
    /// to one fails with [`Error::Behind`](crate::Error::Behind) and is possible again after
    /// catching up. Writes that the primary made without the log are seen once it has flushed
    /// them. Snapshots hold until the next catching up that took in something. Column families
    /// that the primary makes later are not seen; of one that it drops handles fail from the next
    /// catching up on.
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
    /// As [`Db::open_read_only`]; `Behind` if the primary goes on too fast to be followed.
    pub fn open_secondary(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_secondary_with(Arc::new(PosixVfs::new()), path, options, &[])
    }

    /// [`Db::open_secondary`] in a file system of the caller's, column families with options of
    /// their own.
    ///
    /// # Errors
    /// As [`Db::open_secondary`]; `NoSuchColumnFamily` if one of `families` does not exist.
    pub fn open_secondary_with(
        vfs: Arc<dyn Vfs>,
        path: impl AsRef<Path>,
        options: Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Db> {
        Db::of(open::open_secondary(vfs, path.as_ref(), options, families)?)
    }

    /// Takes in what the primary has written since this was last called or the secondary was
    /// opened: all of it at one moment. Returns whether there was anything; if not that costs a
    /// few small reads. Iterators go on as they were. What only catching up could tell, such as
    /// the newest writes, may be a moment old when it returns.
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
    /// [`Error::NotSecondary`](crate::Error::NotSecondary) if it is no secondary; `Behind` if the
    /// primary goes on too fast to be followed; `Io` and `Corruption` if its files cannot be read.
    /// What was seen before is seen still.
    pub fn try_catch_up_with_primary(&self) -> Result<bool> {
        self.core.catch_up()
    }
}
