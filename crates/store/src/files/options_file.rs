//! The file OPTIONS: the options that the database was opened with last. Text with a checksum.
//!
//! What must stay true: it is replaced by an atomic rename of a synced file, so that there is
//! always an old one or a new one, whole. Nothing depends on it: a database opens without it, and
//! with a damaged one.

use std::io::ErrorKind;
use std::path::Path;

use super::FileName;
use super::replace::replace_file;
use crate::base::error::{Error, Result};
use crate::vfs::{IoClass, OpenOptions, Vfs};

/// Its name before it counts.
pub const TEMPORARY: &str = "OPTIONS.tmp";
/// More is not believed to be options.
const BYTES_MAX: u64 = 64 << 20;

/// The bytes of the file, if there is one.
pub fn read(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Vec<u8>>> {
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
pub fn write(vfs: &dyn Vfs, directory: &Path, text: &str) -> Result<()> {
    if read(vfs, directory).ok().flatten().as_deref() == Some(text.as_bytes()) {
        return Ok(());
    }
    replace_file(vfs, directory, FileName::Options, TEMPORARY, text.as_bytes())
}
