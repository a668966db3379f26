//! The directories of tables besides the database's own (`paths` and `family_paths`).
//!
//! 1. [`Claimed::read`] reads which directories the database had, and checks that each is there,
//!    before anything is created. [`Claimed::check_free`] refuses those of other databases.
//! 2. [`layered`] puts a layer over the file system that finds tables in all directories.
//! 3. [`claim_all`] locks the directories, marks them as this database's, and lists them in the
//!    file DIRECTORIES.
//! 4. [`claim_for`] creates the directories of a column family that is created later, and does the
//!    same.
//! 5. [`missing_table`] says which directory is missing if a table is in none of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::FileId;
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::files::counters::Counters;
use sateen_store::files::paths::{Directories, Owner, claim, in_directories, whose};
use sateen_store::files::{FileName, LOST, table_file_name};
use sateen_store::manifest::read_current;
use sateen_store::vfs::{HeldVfs, MeteredVfs, PathsVfs, Vfs, VfsLock};

use super::{no_directory, sync_ancestors, take_lock};
use crate::core::DbCore;
use crate::options::{ColumnFamilyOptions, Options};

/// What a database's own directory says of the other ones.
#[derive(Default)]
pub(crate) struct Claimed {
    /// The uid of the database; `None` if there is none, or if it cannot be read.
    uid: Option<u64>,
    /// The directories in which the database had tables.
    list: Directories,
}

impl Claimed {
    /// Reads which directories the database in `home` had. Fails if one of them is not there, or
    /// has the tables of another database.
    pub(crate) fn read(vfs: &dyn Vfs, home: &Path) -> Result<Claimed> {
        let list = Directories::read(vfs, home).map_err(|error| no_directory(home, error))?;
        let current = match read_current(vfs, home) {
            Err(error @ Error::Io { .. }) => return Err(error),
            // What is wrong with it is found when it is needed.
            current => current,
        };
        let known = current.as_ref().ok().and_then(Option::as_ref);
        let known = known.map(|current| current.identity.uid);
        // A creation or a removal that was interrupted leaves the list of another database.
        let own = list.filter(|list| known.is_none_or(|uid| list.uid == uid));
        let uid = known.or(own.as_ref().map(|list| list.uid));
        let list = own.unwrap_or_default();
        // Without CURRENT nothing is read, and what an interrupted removal has left may be gone.
        if !matches!(current, Ok(None)) {
            list.check(vfs, home)?;
        }
        Ok(Claimed { uid, list })
    }

    /// Fails unless each listed directory is there, also if there is no CURRENT.
    pub(crate) fn check(&self, vfs: &dyn Vfs, home: &Path) -> Result<()> {
        self.list.check(vfs, home)
    }

    /// Fails if a directory has the tables of another database. Otherwise these would look like
    /// those of a database without a manifest.
    pub(crate) fn check_free(
        &self,
        vfs: &dyn Vfs,
        home: &Path,
        directories: &[PathBuf],
    ) -> Result<()> {
        refuse_lost(home, directories)?;
        directories.iter().try_for_each(|other| whose(vfs, other, self.uid, home).map(drop))
    }

    /// Returns the directories that the database had.
    pub(crate) fn others(&self) -> &BTreeSet<PathBuf> {
        &self.list.others
    }

    /// Returns a message about a directory that the database had and that is not among the known
    /// ones; `None` if there is none.
    pub(crate) fn unknown(&self, known: &[PathBuf]) -> Option<String> {
        let unknown = self.list.others.iter().find(|directory| !known.contains(directory))?;
        Some(format!(
            "the database also had tables in {}: name that directory in the option paths or \
             family_paths",
            shown_path(unknown)
        ))
    }
}

/// Refuses the directory in which a repair keeps files that the database does not use.
fn refuse_lost(home: &Path, directories: &[PathBuf]) -> Result<()> {
    let lost = home.join(LOST);
    if directories.contains(&lost) {
        let reason = "a repair puts files there that the database does not use, so it cannot have \
                      tables";
        return Err(Error::IncompatibleDirectory { path: lost, reason: reason.to_owned() });
    }
    Ok(())
}

/// Returns the file system of the database in `directory`, with tables in the directories that the
/// options name. All paths are absolute.
pub(crate) fn layered(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
) -> (Arc<MeteredVfs>, Arc<PathsVfs>) {
    let held = Arc::new(HeldVfs::new(vfs.clone()));
    let paths = Arc::new(layer(held, directory, options, families));
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
    in_directories(vfs, directory, options.table_directories(directory, families))
}

/// Claims all directories of tables for the database `uid` in `home`, and lists them. Returns their
/// locks. Numbers of files in directories that are not named any more are noted in `counters`.
pub(super) fn claim_all(
    vfs: &dyn Vfs,
    others: &[PathBuf],
    home: &Path,
    uid: u64,
    options: &Options,
    counters: &Counters,
) -> Result<Vec<Arc<dyn VfsLock>>> {
    let known = Directories::read(vfs, home)?;
    let own = known.iter().filter(|known| known.uid == uid);
    // Once more, now that nobody else writes the list.
    own.clone().try_for_each(|known| known.check(vfs, home))?;
    let owner = Owner { uid, home: home.to_owned() };
    let mut locks = Vec::new();
    for other in others {
        // The lock of `wal_dir` is already taken.
        let has_lock = options.wal_dir.as_ref().is_some_and(|logs| logs == other);
        locks.extend(claim_one(vfs, other, &owner, has_lock)?);
    }
    let mut list = Directories { uid, others: others.iter().cloned().collect() };
    for other in own.flat_map(|known| &known.others).filter(|other| !others.contains(other)) {
        if note_numbers(vfs, other, counters)? {
            list.others.insert(other.clone());
        }
    }
    if known.as_ref() != Some(&list) && (known.is_some() || !list.others.is_empty()) {
        list.write(vfs, home)?;
    }
    Ok(locks)
}

/// Notes the numbers of the files in `directory`. Returns true if it has tables.
fn note_numbers(vfs: &dyn Vfs, directory: &Path, counters: &Counters) -> Result<bool> {
    let listing = vfs.list(directory).map_err(|error| Error::io("list", directory, error))?;
    let names = listing.iter().filter_map(|name| FileName::parse(name.file_name()?.to_str()?));
    let mut tables = false;
    for name in names {
        counters.file_seen(name.number().unwrap_or(0));
        tables |= matches!(name, FileName::Table(_));
    }
    Ok(tables)
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

/// Claims the directories of a column family that is created in an open database. The caller holds
/// `Tree::changes`.
pub(super) fn claim_for(core: &DbCore, family: &ColumnFamilyOptions) -> Result<()> {
    let options = core.env.options.load();
    options.check_paths(family)?;
    let known = core.env.paths.others();
    let (vfs, home) = (core.env.vfs.as_ref(), &core.env.directory);
    let wanted = options.table_directories(home, [family]);
    let fresh: Vec<_> = wanted.into_iter().filter(|other| !known.contains(other)).collect();
    if fresh.is_empty() {
        return Ok(());
    }
    refuse_lost(home, &fresh)?;
    let uid = core.tree.versions.db_uid();
    let owner = Owner { uid, home: home.clone() };
    let mut list = Directories::read(vfs, home)?.unwrap_or_default();
    // Before it is created: its disk may not be mounted.
    list.check(vfs, home)?;
    let mut locks = Vec::new();
    for other in &fresh {
        vfs.create_dir_all(other).map_err(|error| Error::io("create", other, error))?;
        sync_ancestors(vfs, other)?;
        let has_lock = core.env.wal_directory() == *other;
        locks.extend(claim_one(vfs, other, &owner, has_lock)?);
        // Tables of an earlier time are removed by the next open.
        note_numbers(vfs, other, &core.tree.versions.counters)?;
    }
    list.uid = uid;
    list.others.extend(fresh.iter().cloned());
    list.write(vfs, home)?;
    fresh.iter().for_each(|other| core.env.paths.add(other));
    sateen_store::base::sync::lock(&core.locks).extend(locks);
    Ok(())
}

/// Returns the error for a table that is in none of the directories. It names a directory that the
/// database had and that this open does not name.
pub(super) fn missing_table(vfs: &dyn Vfs, home: &Path, known: &[PathBuf], file: FileId) -> Error {
    let path = table_file_name(home, file);
    match Claimed::read(vfs, home) {
        Ok(claimed) => match claimed.unknown(known) {
            Some(reason) => Error::IncompatibleDirectory { path, reason },
            None => Error::corruption(&path, 0, CorruptionKind::MissingFile),
        },
        Err(error) => error,
    }
}
