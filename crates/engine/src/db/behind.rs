//! Tells damage from data that a writer in another process has replaced.
//!
//! What must stay true: an error is damage only if the manifest, read again after the error, still
//! names the data that could not be read. The writer removes only data that the manifest no longer
//! names, and such data never comes back.

use std::path::Path;
use std::sync::Arc;

use sateen_control::FileId;
use sateen_control::version::{Placement, TableMeta};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::files::{FileName, HEADER_BYTES};
use sateen_store::vfs::Vfs;

use crate::core::DbCore;
use crate::open::current_manifest;
use crate::tree::manifest_follower::{ManifestFollower, known_comparators};

/// Explains errors of a reader.
pub(crate) struct Explainer<'a> {
    pub(crate) core: &'a DbCore,
}

impl Explainer<'_> {
    /// Returns `error`, or [`Error::Behind`] if this database is read-only and the writer has
    /// replaced the data.
    #[inline]
    pub(crate) fn explain(&self, error: Error) -> Error {
        if self.core.env.read_only && error.may_be_given_up() {
            self.explain_to_reader(error)
        } else {
            error
        }
    }

    /// Reads the manifest again. Returns [`Error::Behind`] if it does not name the unreadable data
    /// any more.
    #[cold]
    fn explain_to_reader(&self, error: Error) -> Error {
        let (path, place) = match &error {
            Error::Corruption { path, offset, kind } => (path, Some((*offset, *kind))),
            Error::Io { path, .. } => (path, None),
            _ => return error,
        };
        let name = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
        let needs = |manifest: &ManifestFollower| match name {
            Some(FileName::Table(file)) => manifest.tables().any(|table| is_of(table, file, place)),
            // WALs that recovery does not need are kept for readers of the WAL, and may be removed.
            Some(FileName::Wal(log)) => {
                let missing = matches!(place, Some((_, CorruptionKind::MissingFile)));
                log >= manifest.oldest_log() || !missing
            }
            _ => true,
        };
        let given_up = match self.manifest_now() {
            Ok(Some(manifest)) if manifest.identity.uid == self.core.tree.versions.db_uid() => {
                !needs(&manifest)
            }
            // The directory now holds another database, or none.
            Ok(_) | Err(Error::IncompatibleDirectory { .. }) => true,
            Err(told @ (Error::Io { .. } | Error::Behind { .. })) => return told,
            Err(_) => false,
        };
        if !given_up {
            return error;
        }
        let path = path.display();
        let cause = match place {
            Some((offset, kind)) if kind != CorruptionKind::MissingFile => {
                format!("{path}: the data at offset {offset} was replaced")
            }
            _ => format!("{path}: its data was replaced"),
        };
        Error::Behind { cause }
    }

    /// Returns the manifest that CURRENT names now.
    fn manifest_now(&self) -> Result<Option<ManifestFollower>> {
        let families = self.core.tree.families();
        let whole = families.values().filter(|data| data.region().is_none());
        let known = whole.map(|data| (data.name().to_owned(), data.options().comparator.clone()));
        let others = self.core.env.options.load().column_family.comparator.clone();
        let comparators = known_comparators(known, others);
        let vfs: Arc<dyn Vfs> = self.core.env.vfs.clone();
        let read = |vfs| ManifestFollower::open(vfs, &self.core.env.directory, &comparators);
        current_manifest(&vfs, &self.core.env.directory, read)
    }
}

/// Returns true if damage at `place` of a file is damage of `table`. Without a place, the whole
/// file is meant.
fn is_of(table: &TableMeta, file: FileId, place: Option<(u64, CorruptionKind)>) -> bool {
    if table.placement.values() == Some(file) {
        return true;
    }
    if table.values.files.iter().any(|one| one.file == file) {
        // Which values of the file are the table's is not known. Live ones are never punched.
        return !matches!(place, Some((_, CorruptionKind::Hole)));
    }
    if table.placement.file() != file {
        return false;
    }
    let extent = match table.placement {
        Placement::Slice { offset, length, .. } | Placement::Log { offset, length, .. } => {
            offset..offset.saturating_add(length)
        }
        Placement::WholeFile(_) => return true,
    };
    match place {
        None | Some((_, CorruptionKind::MissingFile)) => true,
        Some((offset, _)) if offset < HEADER_BYTES => true,
        Some((offset, CorruptionKind::Truncated)) => offset < extent.end,
        Some((offset, _)) => extent.contains(&offset),
    }
}

/// Returns why a file cannot be dumped: `error`, or [`Error::Behind`] if its bytes are `gone` by
/// now.
pub(crate) fn of_file(path: &Path, error: Error, gone: Result<bool>) -> Error {
    match gone {
        Ok(true) if error.may_be_given_up() => {
            Error::Behind { cause: format!("{}: its data was replaced", path.display()) }
        }
        _ => error,
    }
}
