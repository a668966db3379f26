//! The file OPTIONS: the options of the last open, as text with a checksum.
//!
//! What must stay true: it is replaced by renaming a synced file over it, so either the old or the
//! new file exists, whole. A database opens without it, and with a damaged one.

use std::io::ErrorKind;
use std::path::Path;

use super::FileName;
use super::replace::replace_file;
use crate::base::error::{Error, Result};
use crate::vfs::{IoClass, OpenOptions, Vfs};

/// Name of the file while it is written.
pub const TEMPORARY: &str = "OPTIONS.tmp";
/// Longest content that is read as options.
const BYTES_MAX: u64 = 64 << 20;

/// Returns the bytes of the file, if it exists.
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

/// Replaces the file durably, unless it has this content already.
pub fn write(vfs: &dyn Vfs, directory: &Path, text: &str) -> Result<()> {
    if read(vfs, directory).ok().flatten().as_deref() == Some(text.as_bytes()) {
        return Ok(());
    }
    replace_file(vfs, directory, FileName::Options, TEMPORARY, text.as_bytes())
}
