//! Small files that are replaced as a whole, and names that have to be durable.

use std::io::ErrorKind;
use std::path::Path;

use super::FileName;
use crate::base::error::{Error, Result};
use crate::base::plant::planted;
use crate::vfs::{IoClass, OpenOptions, Vfs};

/// Makes the names in `directory` durable: those that were created, renamed or removed.
pub fn sync_directory(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    vfs.sync_dir(directory).map_err(|error| Error::io("sync directory", directory, error))
}

/// Makes `bytes` all that is in the file `name` of `directory`, durably: there is always the old
/// file or the new one, whole. It is called `temporary` before it counts.
pub fn replace_file(
    vfs: &dyn Vfs,
    directory: &Path,
    name: FileName,
    temporary: &str,
    bytes: &[u8],
) -> Result<()> {
    let (temporary, path) = (directory.join(temporary), name.path(directory));
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
        file.write_at(bytes, 0, IoClass::Manifest)
            .map_err(|e| Error::io("write", &temporary, e))?;
        file.sync_data(IoClass::Manifest).map_err(|e| Error::io("sync", &temporary, e))?;
        vfs.rename(&temporary, &path).map_err(|e| Error::io("replace", &path, e))
    };
    if let Err(error) = replace() {
        // There may be no other attempt.
        let _orphan = vfs.remove(&temporary);
        return Err(error);
    }
    if planted("rename_not_synced") {
        return Ok(());
    }
    sync_directory(vfs, directory)
}
