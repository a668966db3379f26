//! Opens a database for reading, beside another process that may write it.
//!
//! 1. [`mark_as_reader`] marks a byte of the lock file. From then on the writer keeps the files of
//!    every manifest that is read after the mark ([`sateen_store::files::leases`]).
//! 2. [`read_all`] reads the manifest, checks the files that it names, and replays the WALs. It
//!    opens all WALs first (`hold_logs`), because the writer may remove them meanwhile.
//! 3. If something is missing or does not verify, the writer may have replaced it, so step 2 is
//!    repeated. The same failure twice is damage: the second manifest was read after the first
//!    failure, and a file that a manifest no longer needs never comes back.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use sateen_control::LogNumber;
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::random::random_uid;
use sateen_store::base::retry::Retry;
use sateen_store::files::wal_file_name;
use sateen_store::vfs::{MeteredVfs, OpenOptions, PathsVfs, Vfs, VfsFile, VfsLock};

use super::catalogue::{no_catalogue, read_catalogue};
use super::paths::Claimed;
use super::{LOCK_FILE, Opening, families, paths, prepare_options};
use crate::core::DbCore;
use crate::options::paths::{absolute, check_named};
use crate::options::{ColumnFamilyOptions, Options};

/// Number of attempts beside a writer that replaces what is being read.
const TRIES_MAX: u32 = 50;

/// Opens a database for reading only.
pub(crate) fn open_read_only(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    options: Options,
    family_options: &[(&str, ColumnFamilyOptions)],
) -> Result<Arc<DbCore>> {
    let (options, family_options) = prepare_options(options, family_options)?;
    check_named("the database", directory)?;
    let (directory, family_options) = (&absolute(directory), family_options.as_slice());
    let vfs = paths::layered(vfs, directory, &options, family_options);
    let mark = mark_as_reader(vfs.0.as_ref(), directory)?;
    let mut failed = None;
    for _ in 0..TRIES_MAX {
        match read_all(&vfs, directory, options.clone(), family_options) {
            Ok(opening) => return opening.finish(mark.into_iter().collect()),
            Err(error) if error.may_be_given_up() => {
                let text = error.to_string();
                if failed.as_ref() == Some(&text) {
                    return Err(error);
                }
                failed = Some(text);
            }
            Err(error) => return Err(error),
        }
    }
    let cause = format!("{}: it changes faster than it can be opened", directory.display());
    Err(Error::Behind { cause })
}

/// Tells the writer of a database that it is being read. Returns `None` if that is not possible.
/// The reader then notices by itself that a file is gone. Fails if it would be possible later.
fn mark_as_reader(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Arc<dyn VfsLock>>> {
    let path = directory.join(LOCK_FILE);
    match vfs.mark(&path, random_uid()).map_err(|error| Error::io("mark", &path, error)) {
        Ok(mark) => Ok(Some(Arc::from(mark))),
        Err(error) if error.retry() == Retry::Later => Err(error),
        Err(_) => Ok(None),
    }
}

/// Reads manifest, files and WALs once.
fn read_all(
    vfs: &(Arc<MeteredVfs>, Arc<PathsVfs>),
    directory: &Path,
    options: Options,
    family_options: &[(&str, ColumnFamilyOptions)],
) -> Result<Opening> {
    Claimed::read(vfs.0.as_ref(), directory)?;
    let comparators = families::comparators(&options, family_options);
    let Some(catalogue) = read_catalogue(vfs.0.as_ref(), directory, &comparators)? else {
        return Err(no_catalogue(vfs.0.as_ref(), directory));
    };
    let vfs = vfs.clone();
    let mut opening = Opening::new(vfs, directory, options, catalogue, family_options, true)?;
    opening.check_files()?;
    opening.attach_families(family_options)?;
    opening.replay()?;
    opening.change_forms()?;
    Ok(opening)
}

impl Opening {
    /// Opens the WALs from `first` on, before any of them is read.
    pub(super) fn hold_logs(
        &self,
        first: LogNumber,
    ) -> Result<BTreeMap<LogNumber, Arc<dyn VfsFile>>> {
        let held = self.logs.iter().filter(|log| **log >= first).map(|log| {
            let path = wal_file_name(&self.old_logs, *log);
            match self.vfs.open(&path, OpenOptions::READ) {
                Ok(file) => Ok((*log, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Err(Error::corruption(&path, 0, CorruptionKind::MissingFile))
                }
                Err(error) => Err(Error::io("open", &path, error)),
            }
        });
        held.collect()
    }
}
