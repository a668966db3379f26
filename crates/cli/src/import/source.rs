//! What an import needs of the source's directory and of the directories that the user names.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use sateen::shown_path;

use crate::failure::{Failure, Result};

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
