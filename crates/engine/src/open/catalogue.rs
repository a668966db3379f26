//! Reads what a directory and its manifest say about the database, before tables and WALs are
//! opened.
//!
//! - [`read_catalogue`] replays the manifest that CURRENT names.
//! - [`new_catalogue`] describes an empty database.
//! - `refuse_other_than_new` keeps part of a damaged database, or another store's files, from being
//!   taken for an empty directory.
//!
//! What must stay true: nothing is written here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::{ColumnFamilyId, FileId, LogNumber, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::files::counters::Counters;
use sateen_store::files::paths::{Owner, TEMPORARY_DIRECTORIES};
use sateen_store::files::{FileName, RESTORING};
use sateen_store::manifest::{
    Identity, ManifestReader, TEMPORARY_CURRENT, foreign_reason, read_current, recognise_foreign,
};
use sateen_store::vfs::{IoClass, OpenOptions, Vfs};
use sateen_store::wal::frame::{FILE_HEADER_BYTES, FileKind};

use super::no_directory;
use crate::open::create::regions_of;
use crate::options::paths::check_named;
use crate::options::{ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY, Options};
use crate::tree::families::PREPARED;
use crate::tree::version_set::{FamilyState, FindComparator, Replay, fresh_version};

/// The state of a database according to its manifest.
pub(super) struct Catalogue {
    pub(super) identity: Identity,
    pub(super) counters: Counters,
    pub(super) families: BTreeMap<ColumnFamilyId, FamilyState>,
    pub(super) shared_files: BTreeSet<FileId>,
    pub(super) last_seqno: SeqNo,
}

impl Catalogue {
    /// Returns false if the database was being created and has no WAL yet. Then it never accepted a
    /// write.
    pub(super) fn is_whole(&self) -> bool {
        let has_log_or_tables = |family: &FamilyState| {
            let version = &family.version;
            version.log_number() > LogNumber(0) || version.tables().next().is_some()
        };
        self.last_seqno > SeqNo(0) || self.families.values().any(has_log_or_tables)
    }
}

/// Returns the state of a new database. Fails if the directory is not a place for one.
pub(super) fn new_catalogue(
    vfs: &dyn Vfs,
    directory: &Path,
    options: &Options,
    default: &ColumnFamilyOptions,
) -> Result<Catalogue> {
    let listing = vfs.list(directory).map_err(|e| Error::io("list", directory, e))?;
    refuse_other_than_new(vfs, directory, &listing, options)?;
    let counters = Counters::default();
    let of = ColumnFamilyId(0);
    let number = || counters.family();
    let regions = regions_of(of, DEFAULT_COLUMN_FAMILY, default, number);
    let whole = (of, DEFAULT_COLUMN_FAMILY.to_owned(), None);
    let trees = regions.into_iter().map(|(id, name, region)| (id, name, Some(region)));
    let families = std::iter::once(whole).chain(trees).map(|(id, name, region)| {
        let version = Arc::new(fresh_version(id, default));
        (id, FamilyState { name, region, version, stored: SeqNo(0), durable_log: None, data: None })
    });
    let families = families.collect();
    // A crash before the first manifest may have left files, whose numbers are used up.
    for path in &listing {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
        counters.file_seen(name.and_then(|name| name.number()).unwrap_or(0));
    }
    Ok(Catalogue {
        identity: Identity::random(),
        counters,
        families,
        shared_files: BTreeSet::new(),
        last_seqno: SeqNo(0),
    })
}

/// Refuses a directory that holds something else than a database of ours, before anything is
/// written to it. Damage is found later, under the lock.
pub(super) fn look_first(vfs: &dyn Vfs, directory: &Path, options: &Options) -> Result<()> {
    match read_current(vfs, directory) {
        Err(error @ Error::IncompatibleDirectory { .. }) => Err(error),
        Ok(None) => match vfs.list(directory) {
            Ok(listing) => refuse_other_than_new(vfs, directory, &listing, options),
            Err(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns the error for reading a directory without CURRENT.
pub(super) fn no_catalogue(vfs: &dyn Vfs, directory: &Path) -> Error {
    let listing = match vfs.list(directory) {
        Ok(listing) => listing,
        Err(error) => return Error::io("list", directory, error),
    };
    let options = Options { create_if_missing: true, ..Options::default() };
    let refused = refuse_other_than_new(vfs, directory, &listing, &options);
    refused.err().unwrap_or_else(|| Error::IncompatibleDirectory {
        path: directory.to_owned(),
        reason: "there is no database here".into(),
    })
}

/// Fails unless a directory without CURRENT is a place for a new database.
fn refuse_other_than_new(
    vfs: &dyn Vfs,
    directory: &Path,
    listing: &[PathBuf],
    options: &Options,
) -> Result<()> {
    // WALs or tables without a manifest are a damaged database, not an empty directory.
    let leftover = listing.iter().filter_map(|path| path.file_name()?.to_str()).find(|name| {
        matches!(
            FileName::parse(name),
            Some(FileName::Table(_) | FileName::Wal(_) | FileName::Current)
        )
    });
    let refused = |reason| Err(Error::IncompatibleDirectory { path: directory.to_owned(), reason });
    if let Some(reason) = interrupted_restore(listing) {
        return refused(reason);
    }
    if let Some(owner) = Owner::of_tables(vfs, directory)? {
        return Err(owner.no_database(directory));
    }
    if let Some(name) = leftover {
        return refused(format!(
            "CURRENT is missing, but {name} exists: try to repair the database"
        ));
    }
    if let Some(what) = recognise_foreign(listing, None)
        && !has_unfinished_manifest(vfs, directory, listing)?
    {
        return refused(foreign_reason(what, directory));
    }
    if !options.create_if_missing {
        return Err(missing(directory));
    }
    Ok(())
}

/// Returns why the directory is no database, and what to do, if a restore into it was interrupted
/// before it was complete.
pub(crate) fn interrupted_restore(listing: &[PathBuf]) -> Option<String> {
    let has = |wanted: &str| {
        listing.iter().filter_map(|path| path.file_name()).any(|name| name == wanted)
    };
    let reason = "the restore of a backup into it is under way, or was interrupted, and nothing of \
                  it can be used: restore the backup again";
    (has(RESTORING) && !has(&FileName::Current.text())).then(|| reason.to_owned())
}

/// Returns true if the first open was interrupted: there is a manifest of ours, or the beginning of
/// one, that no CURRENT names yet.
fn has_unfinished_manifest(vfs: &dyn Vfs, directory: &Path, listing: &[PathBuf]) -> Result<bool> {
    for name in listing.iter().filter_map(|path| path.file_name()?.to_str()) {
        let known = match FileName::parse(name) {
            Some(manifest @ FileName::Manifest(_)) => {
                begins_manifest(vfs, &manifest.path(directory))?
            }
            Some(FileName::Lock | FileName::Directories) => true,
            _ => name == TEMPORARY_CURRENT || name == TEMPORARY_DIRECTORIES,
        };
        if !known {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if a file is empty, holds zeros, or begins as our manifests do.
fn begins_manifest(vfs: &dyn Vfs, path: &Path) -> Result<bool> {
    let mut bytes = [0; FILE_HEADER_BYTES];
    let file = vfs.open(path, OpenOptions::READ).map_err(|e| Error::io("open", path, e))?;
    let read = file.read_all_at(&mut bytes, 0, IoClass::Manifest);
    let read = read.map_err(|e| Error::io("read", path, e))?;
    let begun = bytes.get(..read).unwrap_or_default();
    let magic = FileKind::Manifest.magic();
    Ok(begun.iter().all(|byte| *byte == 0)
        || begun.starts_with(magic.get(..begun.len().min(8)).unwrap_or(&magic)))
}

/// Reads CURRENT and the manifest that it names. Returns `None` if there is no CURRENT.
pub(super) fn read_catalogue(
    vfs: &dyn Vfs,
    directory: &Path,
    comparators: &FindComparator,
) -> Result<Option<Catalogue>> {
    let exists = vfs.exists(directory).map_err(|e| Error::io("look for", directory, e))?;
    if !exists {
        return Err(missing(directory));
    }
    let Some(current) = read_current(vfs, directory)? else { return Ok(None) };
    let (path, mut reader) = ManifestReader::of_current(vfs, directory, &current)?;
    let counters = Counters::default();
    counters.file_seen(current.manifest);
    let mut replay = Replay::new(&path, comparators);
    let mut shared_files = BTreeSet::new();
    let mut last_seqno = SeqNo(0);
    while let Some(edits) = reader.next()? {
        for edit in edits {
            counters.absorb(&edit);
            last_seqno = last_seqno.max(edit.last_seqno.unwrap_or_default());
            shared_files.extend(edit.shared_files.iter().copied());
            replay.apply(edit)?;
        }
    }
    replay.check(reader.position())?;
    let families = replay.families().clone();
    let identity = current.identity;
    Ok(Some(Catalogue { identity, counters, families, shared_files, last_seqno }))
}

/// Returns the names of the column families in the order of their creation, without reading
/// options.
pub(crate) fn column_families(vfs: &dyn Vfs, directory: &Path) -> Result<Vec<String>> {
    Ok(recorded_forms(vfs, directory)?.into_iter().map(|(name, _)| name).collect())
}

/// Returns the names of the column families in the order of their creation, each with the record
/// whether its values have times.
pub(super) fn recorded_forms(
    vfs: &dyn Vfs,
    directory: &Path,
) -> Result<Vec<(String, Option<bool>)>> {
    check_named("the database", directory)?;
    let current = read_current(vfs, directory).map_err(|error| no_directory(directory, error))?;
    let Some(current) = current else {
        return Err(no_catalogue(vfs, directory));
    };
    let (_, mut reader) = ManifestReader::of_current(vfs, directory, &current)?;
    let mut names = BTreeMap::new();
    while let Some(edits) = reader.next()? {
        for edit in edits {
            let id = edit.column_family;
            if edit.drop {
                names.remove(&id);
            } else if let (Some(name), None) = (edit.create, edit.region) {
                names.insert(id, (name, edit.value_times));
            } else if let (Some(known), Some(_)) = (names.get_mut(&id), edit.value_times) {
                known.1 = edit.value_times;
            }
        }
    }
    Ok(names.into_values().filter(|(name, _)| name != PREPARED).collect())
}

/// Returns the error for a directory without a database.
pub(super) fn missing(directory: &Path) -> Error {
    Error::IncompatibleDirectory {
        path: directory.to_owned(),
        reason: "there is no database here, and create_if_missing is off".into(),
    }
}
