//! The names that a database gives to what is in its directory. Under another name, other things
//! may be there: a database neither reads nor removes them.

use std::io::ErrorKind;
use std::path::Path;

use super::{FileName, is_temporary};
use crate::base::error::{Error, Result};
use crate::base::names::shown_path;
use crate::vfs::Vfs;

/// The directory in which a repair keeps files that the repaired database does not use.
pub const LOST: &str = "lost";

/// Fails if `path` is to be made in the directory of a database, under a name that this database
/// gives itself: what is there would be in its way, or would be removed with it.
pub fn refuse_own_name(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    if name != LOST && FileName::parse(name).is_none() && !is_temporary(name) {
        return Ok(());
    }
    let directory = path.parent().filter(|above| !above.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let listing = match vfs.list(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("list", directory, error)),
    };
    let is_of_database = |name: &str| {
        let own = FileName::parse(name);
        matches!(
            own,
            Some(FileName::Current | FileName::Manifest(_) | FileName::Wal(_) | FileName::Table(_))
        )
    };
    let others = listing.iter().filter_map(|path| path.file_name()?.to_str());
    if !others.filter(|other| *other != name).any(is_of_database) {
        return Ok(());
    }
    let (path, directory) = (shown_path(path), shown_path(directory));
    Err(Error::InvalidArgument(format!(
        "{path}: the database in {directory} gives this name to files of its own: take another \
         name, or a directory elsewhere"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{MemVfs, OpenOptions};

    fn file(vfs: &MemVfs, path: &str) {
        let path = Path::new(path);
        vfs.create_dir_all(path.parent().unwrap()).unwrap();
        vfs.open(path, OpenOptions::CREATE).unwrap();
    }

    #[test]
    fn names_of_a_database_are_refused_in_its_directory_alone() {
        let vfs = MemVfs::new();
        file(&vfs, "/db/CURRENT");
        file(&vfs, "/else/notes.txt");
        for name in ["lost", "CURRENT", "000012.sat", "000012.wal", "MANIFEST-000001", "INSPECT"] {
            let inside = Path::new("/db").join(name);
            let allowed = refuse_own_name(&vfs, &inside);
            // What is there alone is told by its reader: it exists.
            assert_eq!(allowed.is_ok(), name == "CURRENT", "{name}");
            if let Err(error) = allowed {
                let text = error.to_string();
                assert!(text.contains(inside.to_str().unwrap()), "{text}");
            }
            for outside in ["/else", "/nowhere"] {
                refuse_own_name(&vfs, &Path::new(outside).join(name)).unwrap();
            }
        }
        for free in ["/db/copy", "/db/backups", "/db/copy/lost", "/db/12.sat", "/"] {
            refuse_own_name(&vfs, Path::new(free)).unwrap();
        }
        // An error of the disk is none of the name.
        file(&vfs, "/file");
        let error = refuse_own_name(&vfs, Path::new("/file/lost")).unwrap_err();
        assert!(error.is_environment(), "{error}");
    }
}
