//! Looks at the directories of a database that is being opened, before any file is read.

use std::collections::BTreeSet;
use std::path::Path;

use sateen_control::{FileId, LogNumber};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::files::{FileName, is_temporary, wal_file_name};
use sateen_store::vfs::{IoClass, OpenOptions, Vfs};
use sateen_store::wal::frame::{FILE_HEADER_BYTES, FileHeader, FileKind};

use std::io::ErrorKind::NotFound;

use super::Opening;
use super::paths::missing_table;
use crate::options::Options;

/// Returns the error for a directory of WALs, `logs`, without any WAL, of a database that needs the
/// WAL `needed`. The WALs are elsewhere if the file OPTIONS names another directory, or if the one
/// that the caller named is apart from the database, and may be on a disk that is not mounted.
/// `None` if they were in the directory of the database: then they are lost.
pub(crate) fn logs_elsewhere(
    vfs: &dyn Vfs,
    home: &Path,
    logs: &Path,
    needed: LogNumber,
) -> Option<Error> {
    let stored = Options::load_with(vfs, home, true).ok();
    let stored = stored.map(|stored| stored.options.wal_directory(home));
    let other = stored.filter(|stored| stored != logs);
    if other.is_none() && logs == home {
        return None;
    }
    let name = wal_file_name(Path::new(""), needed);
    let what = match other {
        Some(other) => format!(
            "OPTIONS names the directory {} for the WALs: set the option wal_dir to it",
            shown_path(other)
        ),
        None => "it is the directory wal_dir: bring the WALs back, or mount their disk".to_owned(),
    };
    Some(Error::IncompatibleDirectory {
        path: logs.to_owned(),
        reason: format!("there is no WAL here, and {} is needed; {what}", shown_path(name)),
    })
}

impl Opening {
    /// Lists the directories, and collects WALs and orphans. Fails if a file that the manifest
    /// names is missing.
    pub(super) fn check_files(&mut self) -> Result<()> {
        let live: BTreeSet<FileId> = self.reclaimer.live_files().into_iter().collect();
        let mut seen = BTreeSet::new();
        let mut directories = vec![self.directory.clone()];
        if self.wal_directory() != self.directory {
            directories.push(self.wal_directory());
        }
        for directory in directories {
            let listing = match self.vfs.list(&directory) {
                // The error about the WALs says more.
                Err(error) if error.kind() == NotFound && directory != self.directory => Vec::new(),
                listing => listing.map_err(|e| Error::io("list", &directory, e))?,
            };
            for path in listing {
                let name = path.file_name().and_then(|name| name.to_str());
                if directory == self.directory && name.is_some_and(is_temporary) {
                    self.orphans.push(directory.join(&path));
                }
                let Some(name) = name.and_then(FileName::parse) else { continue };
                self.versions.counters.file_seen(name.number().unwrap_or(0));
                match name {
                    FileName::Table(file) if live.contains(&file) => {
                        seen.insert(file);
                    }
                    FileName::Wal(log) => {
                        if directory != self.directory {
                            self.check_owner(&directory, log)?;
                        }
                        self.logs.push(log);
                    }
                    FileName::Table(_) | FileName::Manifest(_) => {
                        self.orphans.push(directory.join(path.file_name().unwrap_or_default()));
                    }
                    _ => {}
                }
            }
        }
        self.logs.sort_unstable();
        if let Some(missing) = live.difference(&seen).next() {
            let (vfs, known) = (self.vfs.as_ref(), self.paths.others());
            return Err(missing_table(vfs, &self.directory, &known, *missing));
        }
        // The name of a WAL is durable before an edit says that it is the oldest one that is
        // needed.
        let needed = self.versions.oldest_log();
        if needed > LogNumber(0) && !self.logs.contains(&needed) {
            let (vfs, logs) = (self.vfs.as_ref(), self.wal_directory());
            let elsewhere =
                self.logs.is_empty().then(|| logs_elsewhere(vfs, &self.directory, &logs, needed));
            let path = wal_file_name(&logs, needed);
            let missing = || Error::corruption(&path, 0, CorruptionKind::MissingFile);
            return Err(elsewhere.flatten().unwrap_or_else(missing));
        }
        Ok(())
    }

    /// Fails if a WAL in a separate `wal_dir` belongs to another database. This one removes WALs
    /// that it does not need.
    fn check_owner(&self, directory: &Path, log: LogNumber) -> Result<()> {
        let path = wal_file_name(directory, log);
        let mut block = [0; FILE_HEADER_BYTES];
        let file = self.vfs.open(&path, OpenOptions::READ);
        let read = file.and_then(|file| file.read_all_at(&mut block, 0, IoClass::Wal));
        read.map_err(|error| Error::io("read", &path, error))?;
        // A WAL without a readable header is reported as damaged later, if it is needed.
        match FileHeader::decode(FileKind::Wal, &block) {
            Some(header) if header.db_uid != self.versions.db_uid() => {
                Err(Error::IncompatibleDirectory {
                    path: directory.to_owned(),
                    reason: format!(
                        "WAL {log} in it belongs to another database: each needs its own wal_dir"
                    ),
                })
            }
            _ => Ok(()),
        }
    }
}
