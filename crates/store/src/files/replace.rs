//! Replaces small files as a whole, and makes names durable.
//!
//! What must stay true: at any moment either the old or the new file exists, whole. The new file is
//! synced before the rename, and the directory after it.

use std::io::ErrorKind;
use std::path::Path;

use super::FileName;
use crate::base::error::{Error, Result};
use crate::vfs::{IoClass, OpenOptions, Vfs};

/// Makes names that were created, renamed or removed in `directory` durable.
pub fn sync_directory(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    vfs.sync_dir(directory).map_err(|error| Error::io("sync directory", directory, error))
}

/// Replaces the content of the file `name` in `directory` by `bytes`, durably. While it is written,
/// the new file is called `temporary`.
pub fn replace_file(
    vfs: &dyn Vfs,
    directory: &Path,
    name: FileName,
    temporary: &str,
    bytes: &[u8],
) -> Result<()> {
    let (temporary, path) = (directory.join(temporary), name.path(directory));
    replace_path(vfs, directory, &path, &temporary, bytes)
}

/// Replaces the content of the file `path` in `directory`, as [`replace_file`] does.
pub(super) fn replace_path(
    vfs: &dyn Vfs,
    directory: &Path,
    path: &Path,
    temporary: &Path,
    bytes: &[u8],
) -> Result<()> {
    write_temporary(vfs, temporary, bytes)?;
    move_temporary(vfs, directory, path, temporary)
}

/// Writes a new file, durably, that [`move_temporary`] moves to its place. It is removed again if
/// that fails.
pub fn write_temporary(vfs: &dyn Vfs, temporary: &Path, bytes: &[u8]) -> Result<()> {
    // An earlier attempt may have been interrupted.
    match vfs.remove(temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::io("remove", temporary, error));
        }
        _ => {}
    }
    let write = || {
        let file = vfs
            .open(temporary, OpenOptions::CREATE)
            .map_err(|e| Error::io("create", temporary, e))?;
        file.write_at(bytes, 0, IoClass::Manifest).map_err(|e| Error::io("write", temporary, e))?;
        file.sync_data(IoClass::Manifest).map_err(|e| Error::io("sync", temporary, e))
    };
    write().inspect_err(|_| remove_temporary(vfs, temporary))
}

/// Replaces `path` in `directory` by the file `temporary`, durably.
pub fn move_temporary(
    vfs: &dyn Vfs,
    directory: &Path,
    path: &Path,
    temporary: &Path,
) -> Result<()> {
    vfs.rename(temporary, path).map_err(|e| {
        remove_temporary(vfs, temporary);
        Error::io("replace", path, e)
    })?;
    sync_directory(vfs, directory)
}

fn remove_temporary(vfs: &dyn Vfs, temporary: &Path) {
    // There may be no later attempt.
    let _orphan = vfs.remove(temporary);
}
