//! The parent directory of a copy: of a checkpoint, an export, a place of backups, or a restored
//! database. It must exist. A missing one is often a file system that is not mounted, and a copy
//! that creates it fills the disk below.

use std::path::Path;

use sateen_store::base::error::{Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::vfs::Vfs;

/// Fails if the directory that is to have `path` is missing.
pub(crate) fn check_parent(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    // A relative path without a parent is in the current directory.
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    if vfs.exists(parent).map_err(|error| Error::io("look for", parent, error))? {
        return Ok(());
    }
    let (path, parent) = (shown_path(path), shown_path(parent));
    Err(Error::InvalidArgument(format!(
        "{path}: the parent directory {parent} is missing: create it, or mount its file system"
    )))
}

#[cfg(test)]
mod tests {
    use sateen_store::vfs::MemVfs;

    use super::*;

    #[test]
    fn a_missing_parent_is_refused_by_name() {
        let vfs = MemVfs::new();
        vfs.create_dir_all(Path::new("/mnt")).unwrap();
        for path in ["/copy", "copy", "/", "/mnt/copy", "/mnt"] {
            check_parent(&vfs, Path::new(path)).unwrap();
        }
        for path in ["/mnt/backups/copy", "backups/copy"] {
            let error = check_parent(&vfs, Path::new(path)).unwrap_err();
            let parent = path.strip_suffix("/copy").unwrap();
            let text = error.to_string();
            assert!(matches!(error, Error::InvalidArgument(_)), "{error:?}");
            assert!(
                text.contains(path) && text.contains(&format!("{parent} is missing")),
                "{text}"
            );
        }
    }
}
