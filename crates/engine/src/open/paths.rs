//! The directories of tables besides the database's own (`paths` and `family_paths`).
//!
//! 1. [`layered`] puts a layer over the file system that finds tables in all directories.
//! 2. [`claim_all`] locks the directories, and marks them as this database's.
//! 3. [`claim_for`] creates the directories of a column family that is created later, and does the
//!    same.
//! 4. [`missing_table`] says which directory is missing if a table is in none of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::FileId;
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::files::paths::{Owner, claim, in_directories};
use sateen_store::files::{FileName, table_file_name};
use sateen_store::vfs::{MeteredVfs, PathsVfs, Vfs, VfsLock};

use super::{sync_ancestors, take_lock};
use crate::core::DbCore;
use crate::options::paths::absolute;
use crate::options::{ColumnFamilyOptions, Options, StoredOptions};

/// Returns the file system of the database in `directory`, with tables in the directories that the
/// options name.
pub(crate) fn layered(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
) -> (Arc<MeteredVfs>, Arc<PathsVfs>) {
    let paths = Arc::new(layer(vfs.clone(), directory, options, families));
    (Arc::new(MeteredVfs::over(&vfs, paths.clone())), paths)
}

/// Returns the layer of [`layered`] alone.
pub(crate) fn layer(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
) -> PathsVfs {
    let families = families.iter().map(|(_, family)| family);
    in_directories(vfs, &absolute(directory), options.table_directories(directory, families))
}

/// Fails if another database has its tables in one of the directories. Otherwise these would look
/// like those of a database without a manifest.
pub(super) fn check_owners(vfs: &dyn Vfs, paths: &PathsVfs, directory: &Path) -> Result<()> {
    paths.others().iter().try_for_each(|other| check_owner(vfs, other, directory))
}

/// Claims all directories of tables for the database `uid` in `directory`. Returns their locks.
pub(super) fn claim_all(
    vfs: &Arc<MeteredVfs>,
    paths: &PathsVfs,
    directory: &Path,
    uid: u64,
    options: &Options,
) -> Result<Vec<Arc<dyn VfsLock>>> {
    let owner = Owner { uid, home: absolute(directory) };
    let others = paths.others();
    let mut locks = Vec::new();
    for other in others {
        // The lock of `wal_dir` is already taken.
        let has_lock = options.wal_dir.as_ref().is_some_and(|logs| absolute(logs) == other);
        locks.extend(claim_one(vfs.as_ref(), &other, &owner, has_lock)?);
    }
    Ok(locks)
}

fn claim_one(
    vfs: &dyn Vfs,
    directory: &Path,
    owner: &Owner,
    has_lock: bool,
) -> Result<Option<Arc<dyn VfsLock>>> {
    let lock = if has_lock { None } else { Some(take_lock(vfs, directory)?) };
    claim(vfs, directory, owner)?;
    Ok(lock)
}

/// Claims the directories of a column family that is created in an open database.
pub(super) fn claim_for(core: &DbCore, family: &ColumnFamilyOptions) -> Result<()> {
    let options = core.env.options.load();
    options.check_paths(family)?;
    let known = core.env.paths.others();
    let wanted = options.table_directories(&core.env.directory, [family]);
    let owner = Owner { uid: core.tree.versions.db_uid(), home: core.env.directory.clone() };
    for other in wanted.into_iter().filter(|other| !known.contains(other)) {
        let vfs = core.env.vfs.as_ref();
        vfs.create_dir_all(&other).map_err(|error| Error::io("create", &other, error))?;
        sync_ancestors(vfs, &other)?;
        let has_lock = core.env.wal_directory() == other;
        let lock = claim_one(vfs, &other, &owner, has_lock)?;
        let listing = vfs.list(&other);
        for name in listing.map_err(|error| Error::io("list", &other, error))? {
            let name = name.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
            // Tables of an earlier time are removed by the next open.
            core.tree.versions.counters.file_seen(name.and_then(FileName::number).unwrap_or(0));
        }
        core.env.paths.add(&other);
        sateen_store::base::sync::lock(&core.locks).extend(lock);
    }
    Ok(())
}

/// Returns the error for a table that is in none of the directories. It names a directory that the
/// last open had and this one does not.
pub(super) fn missing_table(vfs: &dyn Vfs, home: &Path, known: &[PathBuf], file: FileId) -> Error {
    let path = table_file_name(home, file);
    let stored = Options::load_with(vfs, home, true).ok();
    match stored.and_then(|stored| unknown_directory(&stored, home, known)) {
        Some(reason) => Error::IncompatibleDirectory { path, reason },
        None => Error::corruption(&path, 0, CorruptionKind::MissingFile),
    }
}

/// Returns a message about a directory of tables that the last open had and that is not among the
/// known ones; `None` if there is none.
pub(crate) fn unknown_directory(
    stored: &StoredOptions,
    home: &Path,
    known: &[PathBuf],
) -> Option<String> {
    let directories = stored.table_directories(home);
    let unknown = directories.iter().find(|directory| !known.contains(directory))?;
    Some(format!(
        "the database also had tables in {}: name that directory in the option paths or \
         family_paths",
        shown_path(unknown)
    ))
}

/// Fails if another database has its tables in a directory that is not claimed here.
pub(crate) fn check_owner(vfs: &dyn Vfs, directory: &Path, home: &Path) -> Result<()> {
    match Owner::read(vfs, directory)? {
        Some(owner) if owner.home != absolute(home) => owner.refuse_if_there(vfs, directory),
        _ => Ok(()),
    }
}
