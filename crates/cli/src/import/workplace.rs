//! The directory of an import beside the target. It holds the new database and the files that the
//! other store's library writes. One rename makes the database the target; without it nothing
//! remains.
//!
//! Invariant: only files that [`Workplace::begin`] made are removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use sateen::shown_path;

use crate::failure::{Failure, Result};

/// The name of the workplace of `x` is `x.importing`.
const SUFFIX: &str = ".importing";

/// The directory of an import, removed on drop.
#[derive(Debug)]
pub(super) struct Workplace {
    target: PathBuf,
    directory: PathBuf,
}

impl Workplace {
    /// Makes a directory to build the database `target` in. The target must be missing or an empty
    /// directory.
    pub(super) fn begin(target: &Path) -> Result<Workplace> {
        check_target(target)?;
        let Some(name) = target.file_name() else {
            return Err(Failure::usage(format!(
                "{}: not the name of a directory",
                shown_path(target)
            )));
        };
        let mut beside = name.to_owned();
        beside.push(SUFFIX);
        let directory = target.with_file_name(beside);
        match fs::create_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let text = "is what an import left that did not end, or one is under way: if none \
                            is, remove it and import again";
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
    pub(super) fn database(&self) -> PathBuf {
        self.directory.join("database")
    }

    /// Returns the directory in which the other store's library may write.
    pub(super) fn scratch(&self) -> PathBuf {
        self.directory.join("scratch")
    }

    /// Renames the database to the target, durably.
    pub(super) fn publish(self) -> Result<()> {
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
        // The next import names a directory that stays.
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

/// Checks that a directory for WALs has none: a new database would take them for leftovers and
/// remove them.
pub(super) fn check_logs(directory: Option<&Path>) -> Result<()> {
    let Some(directory) = directory else { return Ok(()) };
    let named = |error| Failure::file(directory, &error);
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(named)?,
    };
    for entry in entries {
        let name = entry.map_err(named)?.file_name();
        if name.to_string_lossy().ends_with(".wal") {
            let place = directory.join(name);
            let text = "is a log of another database, or of an import that did not end: name a \
                        wal_dir of its own";
            return Err(Failure::failed(format!("{} {text}", shown_path(place))));
        }
    }
    Ok(())
}

/// Keeps writers out of a database of RocksDB or LevelDB during the import. Their lock is one of
/// `fcntl` on the file LOCK, for which RocksDB's readers do not ask.
#[derive(Debug)]
pub(super) struct SourceLock {
    _held: Option<File>,
}

impl SourceLock {
    /// Takes the lock in `directory`, which must be a database of `peer`. Holds nothing if there is
    /// no file LOCK or locks do not work, as on some network file systems.
    pub(super) fn take(directory: &Path, peer: &str) -> Result<SourceLock> {
        let named = |error| Failure::file(directory, &error);
        if !fs::metadata(directory).map_err(named)?.is_dir() {
            let text = format!("{}: a file, not a directory", shown_path(directory));
            return Err(Failure::failed(text));
        }
        match fs::read(directory.join("CURRENT")) {
            Ok(text) if text.starts_with(b"MANIFEST-") => {}
            Ok(_) => {
                let text = "it has a CURRENT that another program wrote";
                let text = format!("{}: not a database of {peer}: {text}", shown_path(directory));
                return Err(Failure::failed(text));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = "it has no file CURRENT";
                let text = format!("{}: not a database of {peer}: {text}", shown_path(directory));
                return Err(Failure::failed(text));
            }
            Err(error) => return Err(Failure::file(&directory.join("CURRENT"), &error)),
        }
        let lock = directory.join("LOCK");
        let file = match File::open(&lock) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(SourceLock { _held: None });
            }
            // Another process may be writing the database.
            Err(error) => return Err(Failure::file(&lock, &error)),
        };
        match fcntl_lock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::AGAIN | Errno::ACCESS) => {
                let text = "another program has it open: close it there first";
                Err(Failure::failed(format!("{}: {text}", shown_path(directory))))
            }
            Ok(()) | Err(_) => Ok(SourceLock { _held: Some(file) }),
        }
    }
}
