//! Finds the directory with the WALs that a database needs: its `wal_dir`, or its own directory.
//! They are in its own directory if the option was not set when they were written, and after a
//! restore.
//!
//! What must stay true: the WALs of two directories are never taken for one sequence. Each
//! recovery begins a WAL that follows none in the other directory, so all that is needed is in one.

use std::path::{Path, PathBuf};

use sateen_control::{IoClass, LogNumber};

use super::frame::{FILE_HEADER_BYTES, FileHeader, FileKind};
use super::reader::WalReader;
use crate::base::error::{Error, Result};
use crate::base::names::shown_path;
use crate::files::{FileName, wal_file_name};
use crate::vfs::{OpenOptions, Vfs};

/// Where the WALs of a database are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlace {
    /// The directory with the WALs that are needed.
    pub directory: PathBuf,
    /// All WALs in it, ascending.
    pub logs: Vec<LogNumber>,
    /// WALs of the database in the other directory. They have no record that is needed.
    pub others: Vec<PathBuf>,
}

impl LogPlace {
    /// Lists `home`, the database's own directory, and `wal_directory`, and chooses between them.
    ///
    /// # Errors
    /// As [`LogPlace::choose`]; `Io` if a directory cannot be listed.
    pub fn find(
        vfs: &dyn Vfs,
        home: &Path,
        wal_directory: &Path,
        oldest: LogNumber,
        db_uid: u64,
    ) -> Result<LogPlace> {
        let (logs, own) = if home == wal_directory {
            (logs_in(vfs, home)?, Vec::new())
        } else {
            (logs_if_any(vfs, wal_directory)?, logs_in(vfs, home)?)
        };
        LogPlace::choose(vfs, (home, own), (wal_directory, logs), oldest, db_uid)
    }

    /// Chooses between `home`, the database's own directory, and `wal_directory`, each with its
    /// WALs. `oldest` is the oldest WAL that is needed. If no directory has it, the result is
    /// `wal_directory`.
    ///
    /// # Errors
    /// `IncompatibleDirectory` if both have WALs with records that may be needed; `Io`.
    pub fn choose(
        vfs: &dyn Vfs,
        home: (&Path, Vec<LogNumber>),
        wal_directory: (&Path, Vec<LogNumber>),
        oldest: LogNumber,
        db_uid: u64,
    ) -> Result<LogPlace> {
        let ((home, mut own), (wal_directory, mut logs)) = (home, wal_directory);
        logs.sort_unstable();
        if home == wal_directory || own.is_empty() {
            let directory = wal_directory.to_owned();
            return Ok(LogPlace { directory, logs, others: Vec::new() });
        }
        let mut own_of_other = Vec::new();
        for log in &own {
            if is_of_another(vfs, &wal_file_name(home, *log), db_uid)? {
                own_of_other.push(*log);
            }
        }
        own.retain(|log| !own_of_other.contains(log));
        own.sort_unstable();
        // An open that changed directories and was interrupted leaves WALs without records in
        // `wal_dir`, or older ones in `home` if its edit was durable.
        let is_home = own.contains(&oldest);
        let (at_home, there) = if is_home {
            (Some(oldest), first_with_records(vfs, wal_directory, &logs, db_uid)?)
        } else {
            let newer: Vec<_> = own.iter().copied().filter(|log| *log >= oldest).collect();
            let has_oldest = oldest == LogNumber(0) || logs.contains(&oldest);
            let there = has_oldest.then_some(oldest);
            (first_with_records(vfs, home, &newer, db_uid)?, there)
        };
        if let (Some(at_home), Some(there)) = (at_home, there) {
            return Err(two_places(home, at_home, wal_directory, there));
        }
        let paths = |directory: &Path, logs: Vec<LogNumber>| {
            logs.into_iter().map(|log| wal_file_name(directory, log)).collect()
        };
        Ok(if is_home {
            let others = paths(wal_directory, logs);
            LogPlace { directory: home.to_owned(), logs: own, others }
        } else {
            let others = paths(home, own);
            LogPlace { directory: wal_directory.to_owned(), logs, others }
        })
    }
}

/// Returns the WALs in a directory. If it is missing, there are none.
///
/// # Errors
/// `Io` if it cannot be listed.
pub fn logs_if_any(vfs: &dyn Vfs, directory: &Path) -> Result<Vec<LogNumber>> {
    match logs_in(vfs, directory) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(Vec::new())
        }
        logs => logs,
    }
}

/// Returns the WALs in a directory.
fn logs_in(vfs: &dyn Vfs, directory: &Path) -> Result<Vec<LogNumber>> {
    let listing = vfs.list(directory).map_err(|e| Error::io("list", directory, e))?;
    let names = listing.iter().filter_map(|path| path.file_name()?.to_str());
    let logs = names.filter_map(|name| match FileName::parse(name) {
        Some(FileName::Wal(log)) => Some(log),
        _ => None,
    });
    Ok(logs.collect())
}

/// Returns true if the header of a WAL says that it belongs to another database.
pub fn is_of_another(vfs: &dyn Vfs, path: &Path, db_uid: u64) -> Result<bool> {
    let mut block = [0; FILE_HEADER_BYTES];
    let file = vfs.open(path, OpenOptions::READ);
    let read = file.and_then(|file| file.read_all_at(&mut block, 0, IoClass::Wal));
    read.map_err(|error| Error::io("read", path, error))?;
    // A WAL without a readable header is reported as damaged later, if it is needed.
    let header = FileHeader::decode(FileKind::Wal, &block);
    Ok(header.is_some_and(|header| header.db_uid != db_uid))
}

/// Returns the first of `logs` that has a record, or may have one because it is damaged.
fn first_with_records(
    vfs: &dyn Vfs,
    directory: &Path,
    logs: &[LogNumber],
    db_uid: u64,
) -> Result<Option<LogNumber>> {
    for log in logs {
        match WalReader::open(vfs, &wal_file_name(directory, *log), *log, Some(db_uid), 0) {
            // The first record is the link. A recovery that was interrupted leaves none.
            Ok(reader) if reader.link().is_none() => {}
            Ok(_) => return Ok(Some(*log)),
            Err(error) if error.is_corruption() => return Ok(Some(*log)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Returns the error of WALs with records in both directories.
fn two_places(home: &Path, at_home: LogNumber, wal_directory: &Path, there: LogNumber) -> Error {
    let own = shown_path(wal_file_name(home, at_home));
    let other = shown_path(wal_file_name(wal_directory, there));
    Error::IncompatibleDirectory {
        path: home.to_owned(),
        reason: format!(
            "WALs are in its own directory ({own}) and in wal_dir ({other}), and only those of \
             one directory belong to it: move the others away (after a restore, those in wal_dir)"
        ),
    }
}
