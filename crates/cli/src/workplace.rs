//! The directory of an import or export beside the target. It holds the new database and the files
//! that the other store's library writes. One rename makes the database the target; without it
//! nothing remains.
//!
//! Invariant: only files that [`Workplace::begin`] made are removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sateen::shown_path;

use crate::failure::{Failure, Result};

/// The directory of the work, removed on drop.
#[derive(Debug)]
pub(crate) struct Workplace {
    target: PathBuf,
    directory: PathBuf,
}

impl Workplace {
    /// Makes a directory to build the database `target` in. The target must be missing or an empty
    /// directory. `work` is the verb for messages; the workplace of `import` for `x` is
    /// `x.importing`.
    pub(crate) fn begin(target: &Path, work: &str) -> Result<Workplace> {
        check_target(target)?;
        let Some(name) = target.file_name() else {
            return Err(Failure::usage(format!(
                "{}: not the name of a directory",
                shown_path(target)
            )));
        };
        let mut beside = name.to_owned();
        beside.push(format!(".{work}ing"));
        let directory = target.with_file_name(beside);
        match fs::create_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let text = format!(
                    "is what an {work} left that did not end, or one is under way: if none is, \
                     remove it and {work} again"
                );
                return Err(Failure::failed(format!("{} {text}", shown_path(directory))));
            }
            Err(error) => return Err(Failure::file(&directory, &error)),
        }
        let workplace = Workplace { target: target.to_owned(), directory };
        let scratch = workplace.scratch();
        fs::create_dir(&scratch).map_err(|error| Failure::file(&scratch, &error))?;
        Ok(workplace)
    }

    /// Returns the directory of the new database.
    pub(crate) fn database(&self) -> PathBuf {
        self.directory.join("database")
    }

    /// Returns the directory in which the other store's library may write.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.directory.join("scratch")
    }

    /// Renames the database to the target, durably.
    pub(crate) fn publish(self) -> Result<()> {
        let failed = |error| Failure::file(&self.target, &error);
        // The rename replaces an empty directory.
        fs::rename(self.database(), &self.target).map_err(failed)?;
        let above = self.target.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        File::open(above)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| Failure::file(above, &error))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // The next one names a directory that stays.
        let _stays = fs::remove_dir_all(&self.directory);
    }
}

/// Checks that the target is empty and that a rename can replace it.
fn check_target(target: &Path) -> Result<()> {
    let metadata = match fs::symlink_metadata(target) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::file(target, &error)),
    };
    let refused = |what: &str| Err(Failure::failed(format!("{}: {what}", shown_path(target))));
    if !metadata.is_dir() {
        return refused("is not a directory: name one that does not exist");
    }
    let mut entries = fs::read_dir(target).map_err(|error| Failure::file(target, &error))?;
    if entries.next().is_some() {
        return refused("is not empty: name a directory that does not exist");
    }
    if is_mount_point(target, &metadata) {
        return refused("is a mount point: name a directory in it");
    }
    Ok(())
}

fn is_mount_point(directory: &Path, metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let above = fs::metadata(directory.join(".."));
    above.is_ok_and(|above| above.dev() != metadata.dev() || above.ino() == metadata.ino())
}
