//! Looks at the directories of a database that is being opened, before any file is read.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use sateen_control::{FileId, LogNumber};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::files::{FileName, is_temporary, wal_file_name};
use sateen_store::vfs::Vfs;
use sateen_store::wal::{self, LogPlace};

use std::io::ErrorKind::NotFound;

use super::Opening;
use super::paths::missing_table;
use crate::options::Options;

/// Returns the error for a directory of WALs, `logs`, without any WAL, of a database that needs the
/// WAL `needed`. The WALs are elsewhere if the file OPTIONS names another directory, or if the one
/// that the caller named is apart from the database, and may be on a disk that is not mounted.
/// `None` if they were in the directory of the database: then they are lost. Fails if OPTIONS
/// cannot be read, because nobody knows then.
pub(crate) fn logs_elsewhere(
    vfs: &dyn Vfs,
    home: &Path,
    logs: &Path,
    needed: LogNumber,
) -> Result<Option<Error>> {
    let stored = stored_wal_directory(vfs, home, logs)?;
    if stored.is_none() && logs == home {
        return Ok(None);
    }
    let name = wal_file_name(Path::new(""), needed);
    let what = stored.unwrap_or_else(|| {
        "it is the directory wal_dir: bring the WALs back, or mount their disk".to_owned()
    });
    Ok(Some(Error::IncompatibleDirectory {
        path: logs.to_owned(),
        reason: format!("there is no WAL here, and {} is needed; {what}", shown_path(name)),
    }))
}

/// Returns what to do if the file OPTIONS names another directory than `home` and `logs` for the
/// WALs. Fails if the operating system refuses to read the file.
pub(crate) fn stored_wal_directory(
    vfs: &dyn Vfs,
    home: &Path,
    logs: &Path,
) -> Result<Option<String>> {
    let stored = Options::load_if_sound(vfs, home)?;
    let stored = stored.map(|stored| stored.options.wal_directory(home));
    Ok(stored.filter(|stored| stored != logs && stored != home).map(|stored| {
        format!(
            "OPTIONS names the directory {} for the WALs: set the option wal_dir to it",
            shown_path(stored)
        )
    }))
}

/// Fails if the file `name` of a separate `wal_dir` says that this is the directory of a database.
fn refuse_database(wal_directory: &Path, name: &FileName) -> Result<()> {
    if !matches!(name, FileName::Current) {
        return Ok(());
    }
    let reason = "it is the directory of another database, and each needs its own wal_dir".into();
    Err(Error::IncompatibleDirectory { path: wal_directory.to_owned(), reason })
}

impl Opening {
    /// Lists the directories, and collects WALs and orphans. Fails if a file that the manifest
    /// names is missing.
    pub(super) fn check_files(&mut self) -> Result<()> {
        let live: BTreeSet<FileId> = self.reclaimer.live_files().into_iter().collect();
        let mut seen = BTreeSet::new();
        let wal_directory = self.wal_directory();
        let (mut own, mut logs) = (Vec::new(), Vec::new());
        let mut directories = vec![self.directory.clone()];
        if wal_directory != self.directory {
            directories.push(wal_directory.clone());
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
                if directory != self.directory && !matches!(name, FileName::Wal(_)) {
                    refuse_database(&directory, &name)?;
                    continue;
                }
                self.versions.counters.file_seen(name.number().unwrap_or(0));
                match name {
                    FileName::Table(file) if live.contains(&file) => {
                        seen.insert(file);
                    }
                    FileName::Wal(log) if directory == self.directory => own.push(log),
                    FileName::Wal(log) => {
                        self.check_owner(&directory, log)?;
                        logs.push(log);
                    }
                    FileName::Table(_) | FileName::Manifest(_) => {
                        self.orphans.push(directory.join(path.file_name().unwrap_or_default()));
                    }
                    _ => {}
                }
            }
        }
        self.find_logs(own, logs)?;
        if let Some(missing) = live.difference(&seen).next() {
            let (vfs, known) = (self.vfs.as_ref(), self.paths.others());
            return Err(missing_table(vfs, &self.directory, &known, *missing));
        }
        // The name of a WAL is durable before an edit says that it is the oldest one that is
        // needed.
        let needed = self.versions.oldest_log();
        if needed > LogNumber(0) && !self.logs.contains(&needed) {
            let (vfs, logs) = (self.vfs.as_ref(), &wal_directory);
            if self.logs.is_empty()
                && let Some(error) = logs_elsewhere(vfs, &self.directory, logs, needed)?
            {
                return Err(error);
            }
            let path = wal_file_name(logs, needed);
            return Err(Error::corruption(&path, 0, CorruptionKind::MissingFile));
        }
        Ok(())
    }

    /// Chooses the directory with the WALs that are needed: `own` are in the database's own
    /// directory, `logs` in a separate `wal_dir`.
    fn find_logs(&mut self, own: Vec<LogNumber>, logs: Vec<LogNumber>) -> Result<()> {
        let wal_directory = self.wal_directory();
        let is_separate = wal_directory != self.directory;
        let (own, logs) = if is_separate { (own, logs) } else { (Vec::new(), own) };
        let (oldest, uid) = (self.versions.oldest_log(), self.versions.db_uid());
        let (home, others) = ((self.directory.as_path(), own), (wal_directory.as_path(), logs));
        let place = LogPlace::choose(self.vfs.as_ref(), home, others, oldest, uid)?;
        if self.read_only && place.directory != wal_directory {
            // Everything that reads WALs looks there.
            Arc::make_mut(&mut self.options).wal_dir = None;
        }
        self.old_logs = place.directory;
        (self.logs, self.other_logs) = (place.logs, place.others);
        Ok(())
    }

    /// Fails if a WAL in a separate `wal_dir` belongs to another database. This one removes WALs
    /// that it does not need.
    fn check_owner(&self, directory: &Path, log: LogNumber) -> Result<()> {
        let path = wal_file_name(directory, log);
        if !wal::is_of_another(self.vfs.as_ref(), &path, self.versions.db_uid())? {
            return Ok(());
        }
        Err(Error::IncompatibleDirectory {
            path: directory.to_owned(),
            reason: format!(
                "WAL {log} in it belongs to another database: each needs its own wal_dir"
            ),
        })
    }
}
