//! What a file of tables says of itself where no manifest tells.

use std::path::Path;

use sateen_control::{FileId, IoClass};
use sateen_store::base::error::{Error, Result};
use sateen_store::files::{CompactionFile, DirectoryEntry, table_file_name};
use sateen_store::vfs::{OpenOptions, Vfs};
use sateen_store::wal::frame::FileKind;

/// Bytes that say that a table was given back.
const TAIL_BYTES: usize = 64;

/// Whether the file is a log that has values of tables, under its second name.
pub(crate) fn is_log(vfs: &dyn Vfs, directory: &Path, file: FileId) -> bool {
    let magic = FileKind::Wal.magic();
    let mut begin = vec![0; magic.len()];
    let handle = vfs.open(&table_file_name(directory, file), OpenOptions::READ);
    handle.and_then(|handle| handle.read_at(&mut begin, 0, IoClass::Client)).is_ok()
        && begin == magic
}

/// Whether nothing was ever written to the file, or nothing of it reached the disk: files are made
/// in advance.
pub(crate) fn is_empty(vfs: &dyn Vfs, directory: &Path, file: FileId) -> bool {
    let handle = vfs.open(&table_file_name(directory, file), OpenOptions::READ);
    handle.and_then(|handle| handle.len()).is_ok_and(|length| length == 0)
}

/// The tables that the file says it has.
pub(crate) fn described(vfs: &dyn Vfs, directory: &Path, file: FileId) -> Result<CompactionFile> {
    let path = table_file_name(directory, file);
    let handle = vfs.open(&path, OpenOptions::READ);
    let handle = handle.map_err(|error| Error::io("open", &path, error))?;
    CompactionFile::open(&handle, &path, file)
}

/// Whether a table was dead, and its place in the file was given back: nothing is lost with it.
pub(crate) fn was_given_back(
    vfs: &dyn Vfs,
    directory: &Path,
    file: FileId,
    entry: &DirectoryEntry,
) -> bool {
    let mut tail = [1; TAIL_BYTES];
    let from = (entry.offset + entry.length).saturating_sub(TAIL_BYTES as u64);
    let handle = vfs.open(&table_file_name(directory, file), OpenOptions::READ);
    handle.and_then(|handle| handle.read_at(&mut tail, from, IoClass::Client)).is_ok()
        && tail.iter().all(|byte| *byte == 0)
}
