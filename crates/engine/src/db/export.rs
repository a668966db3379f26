//! Exports: the entries of one column family in files of their own, which another database imports.
//!
//! 1. [`ColumnFamily::export`] takes a snapshot and writes what it shows to new files, in order.
//! 2. [`Db::import_column_family`] creates a column family and ingests them.
//!
//! What must stay true: a failed export leaves no directory, and a failed import no column family.

use std::path::Path;

use sateen_store::base::error::{Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::files::refuse_own_name;
use sateen_store::vfs::Vfs;

use super::Db;
use super::checkpoint::remove_all;
use super::family::ColumnFamily;
use super::ingest::{IngestOptions, SstFileInfo, SstFileWriter};
use crate::open::{check_parent, sync_ancestors};
use crate::options::paths::check_named;
use crate::options::{ColumnFamilyOptions, Options, ReadOptions};

/// A file of an export is ended behind the entry with which it reaches this size.
const FILE_BYTES: u64 = 256 << 20;

impl ColumnFamily {
    /// Writes all entries of this moment to files in `directory`, which must not exist. Its parent
    /// directory must exist. Each key
    /// has its newest value; deletions and older values are not there. RocksDB:
    /// `Checkpoint::ExportColumnFamily`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path().join("db"), sateen::Options::default())?;
    /// # let other = sateen::Db::open(directory.path().join("other"), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let files = db.default_column_family().export(directory.path().join("figs"))?;
    /// let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
    /// let figs = other.import_column_family("figs", Default::default(), &paths, false)?;
    /// assert_eq!(figs.get("fig")?.unwrap(), b"1");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::cursor`]. `InvalidArgument` if `directory` exists, if its parent directory is
    /// missing, and if values expire (`ttl`), because their ages would be lost. `Io` if it cannot
    /// be written; it is removed then.
    pub fn export(&self, directory: impl AsRef<Path>) -> Result<Vec<SstFileInfo>> {
        let (directory, core) = (directory.as_ref(), self.db().core());
        core.env.check_open()?;
        check_named("the export", directory)?;
        let vfs = &core.env.vfs;
        refuse_own_name(vfs.as_ref(), directory)?;
        if vfs.exists(directory).map_err(|e| Error::io("look for", directory, e))? {
            return Err(Error::InvalidArgument(format!(
                "{} exists already",
                shown_path(directory)
            )));
        }
        check_parent(vfs.as_ref(), directory)?;
        if self.data.has_times() {
            return Err(Error::InvalidArgument(format!(
                "the values of the column family {} expire: an export has no ages",
                self.name()
            )));
        }
        vfs.create_dir_all(directory).map_err(|e| Error::io("create", directory, e))?;
        let written = self.write_files(directory).and_then(|files| {
            sync_ancestors(vfs.as_ref(), directory)?;
            Ok(files)
        });
        if written.is_err() {
            remove_all(core, directory);
        }
        written
    }

    fn write_files(&self, directory: &Path) -> Result<Vec<SstFileInfo>> {
        let vfs = &self.db().core().env.vfs;
        let options = Options { column_family: self.options(), ..self.db().options() };
        let read = ReadOptions { fill_cache: false, ..ReadOptions::at(&self.db().snapshot()) };
        let mut cursor = self.cursor(&read)?;
        let (mut files, mut open) = (Vec::new(), None);
        cursor.seek_to_first();
        while cursor.valid() {
            let mut file: SstFileWriter = match open.take() {
                Some(file) => file,
                None => {
                    let path = directory.join(format!("{:06}.sst", files.len() + 1));
                    SstFileWriter::create_with(vfs.clone(), path, &options)?
                }
            };
            file.put(cursor.key(), cursor.value())?;
            if file.file_bytes() < FILE_BYTES {
                open = Some(file);
            } else {
                files.push(file.finish()?);
            }
            cursor.next();
        }
        cursor.status()?;
        if let Some(file) = open {
            files.push(file.finish()?);
        }
        Ok(files)
    }
}

impl Db {
    /// Creates a column family with the entries of `files`, which [`ColumnFamily::export`] or
    /// [`SstFileWriter`] wrote. `move_files` removes them. RocksDB:
    /// `CreateColumnFamilyWithImport`.
    ///
    /// # Errors
    /// As [`Db::create_column_family`] and [`Db::ingest`]. There is no new column family then.
    pub fn import_column_family<P: AsRef<Path>>(
        &self,
        name: &str,
        options: ColumnFamilyOptions,
        files: &[P],
        move_files: bool,
    ) -> Result<ColumnFamily> {
        let family = self.create_column_family(name, options)?;
        let options = IngestOptions { move_files, ..IngestOptions::default() };
        let ingested = if files.is_empty() { Ok(()) } else { family.ingest(files, &options) };
        match ingested {
            Ok(()) => Ok(family),
            Err(error) => self.drop_column_family(&family).and(Err(error)),
        }
    }
}
