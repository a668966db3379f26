//! The file OPTIONS: the options that the database was opened with last. Text with a checksum.
//!
//! What must stay true: it is replaced by an atomic rename of a synced file, so that there is
//! always an old one or a new one, whole. Nothing depends on it: a database opens without it, and
//! with a damaged one.

use std::io::ErrorKind;
use std::path::Path;

use super::FileName;
use crate::error::{Error, Result};
use crate::vfs::{IoClass, OpenOptions, Vfs};

/// Its name before it counts.
pub(crate) const TEMPORARY: &str = "OPTIONS.tmp";
/// More is not believed to be options.
const BYTES_MAX: u64 = 64 << 20;

/// The bytes of the file, if there is one.
pub(crate) fn read(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Vec<u8>>> {
    let path = FileName::Options.path(directory);
    let file = match vfs.open(&path, OpenOptions::READ) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", &path, error)),
    };
    let length = file.len().map_err(|e| Error::io("stat", &path, e))?.min(BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let got = file.read_all_at(&mut bytes, 0, IoClass::Manifest);
    bytes.truncate(got.map_err(|e| Error::io("read", &path, e))?);
    Ok(Some(bytes))
}

/// Replaces it durably, unless it says the same already.
pub(crate) fn write(vfs: &dyn Vfs, directory: &Path, text: &str) -> Result<()> {
    if read(vfs, directory).ok().flatten().as_deref() == Some(text.as_bytes()) {
        return Ok(());
    }
    let (temporary, path) = (directory.join(TEMPORARY), FileName::Options.path(directory));
    // An earlier attempt may have been cut short.
    match vfs.remove(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::io("remove", &temporary, error));
        }
        _ => {}
    }
    let replace = || {
        let file = vfs
            .open(&temporary, OpenOptions::CREATE)
            .map_err(|e| Error::io("create", &temporary, e))?;
        file.write_at(text.as_bytes(), 0, IoClass::Manifest)
            .map_err(|e| Error::io("write", &temporary, e))?;
        file.sync_data(IoClass::Manifest).map_err(|e| Error::io("sync", &temporary, e))?;
        vfs.rename(&temporary, &path).map_err(|e| Error::io("replace", &path, e))
    };
    if let Err(error) = replace() {
        // There may be no other attempt: options can go back to what the file says.
        let _orphan = vfs.remove(&temporary);
        return Err(error);
    }
    vfs.sync_dir(directory).map_err(|e| Error::io("sync", directory, e))
}
