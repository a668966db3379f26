//! What a table file says of itself, for the check and repair of a database without a manifest.

use std::path::{Path, PathBuf};

use sateen_control::{FileId, IoClass};
use sateen_store::base::error::{Error, Result};
use sateen_store::files::{CompactionFile, DirectoryEntry, FileName, table_file_name};
use sateen_store::vfs::{OpenOptions, Vfs};
use sateen_store::wal::frame::FileKind;

/// Bytes at the end of a table whose being zero shows that it was reclaimed.
const TAIL_BYTES: usize = 64;

/// Returns true if the file is a WAL with separated values, under its second name.
pub(crate) fn is_log(vfs: &dyn Vfs, directory: &Path, file: FileId) -> bool {
    let magic = FileKind::Wal.magic();
    let mut begin = vec![0; magic.len()];
    let handle = vfs.open(&table_file_name(directory, file), OpenOptions::READ);
    handle.and_then(|handle| handle.read_at(&mut begin, 0, IoClass::Client)).is_ok()
        && begin == magic
}

/// Returns true if the file is empty: it was preallocated, or nothing of it reached the disk.
pub(crate) fn is_empty(vfs: &dyn Vfs, directory: &Path, file: FileId) -> bool {
    let handle = vfs.open(&table_file_name(directory, file), OpenOptions::READ);
    handle.and_then(|handle| handle.len()).is_ok_and(|length| length == 0)
}

/// Returns the tables that are listed in the file's directory.
pub(crate) fn described(vfs: &dyn Vfs, directory: &Path, file: FileId) -> Result<CompactionFile> {
    let path = table_file_name(directory, file);
    let handle = vfs.open(&path, OpenOptions::READ);
    let handle = handle.map_err(|error| Error::io("open", &path, error))?;
    CompactionFile::open(&handle, &path, file)
}

/// Returns true if the table was dead and its bytes were reclaimed, so that nothing is lost with
/// it.
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

/// Returns true if a directory with these files is that of a database.
pub(super) fn holds_a_database(listing: &[PathBuf]) -> bool {
    let mut names = listing.iter().filter_map(|path| path.file_name()?.to_str());
    names.any(|name| {
        matches!(
            FileName::parse(name),
            Some(FileName::Table(_) | FileName::Manifest(_) | FileName::Wal(_))
        )
    })
}
