//! Directories of tables besides a database's own: the file in each that says whose tables it has,
//! so that no other database takes them for its own unused files.
//!
//! What must stay true: the file is durable before the directory has a table.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::replace::sync_directory;
use super::{FileName, checked_text};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::base::names::{option_of_path, path_of_option, shown_path};
use crate::vfs::{IoClass, OpenOptions, PathsVfs, Vfs};

/// Name of the file that says whose tables are in a directory.
pub const OWNER: &str = "OWNER";
const TEMPORARY_OWNER: &str = "OWNER.tmp";
const FIRST_LINE: &str = "sateen tables 1";

/// Returns `vfs` with tables of the database in `home` also in `others`. The paths are absolute.
pub fn in_directories(
    vfs: Arc<dyn Vfs>,
    home: &Path,
    others: impl IntoIterator<Item = PathBuf>,
) -> PathsVfs {
    PathsVfs::new(vfs, home, others, |name| match FileName::parse(name)? {
        FileName::Table(file) => Some(file.0),
        _ => None,
    })
}

/// Whose tables are in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The uid of the database.
    pub uid: u64,
    /// The database's own directory.
    pub home: PathBuf,
}

impl Owner {
    fn to_text(&self) -> String {
        let home = option_of_path(&self.home);
        checked_text::seal(&format!("{FIRST_LINE}\nuid {:016x}\nhome {home}\n", self.uid))
    }

    fn parse(bytes: &[u8]) -> Option<Owner> {
        let text = checked_text::unseal(bytes)?;
        let mut lines = text.strip_prefix(FIRST_LINE)?.strip_prefix('\n')?.lines();
        let uid = u64::from_str_radix(lines.next()?.strip_prefix("uid ")?, 16).ok()?;
        let home = path_of_option(lines.next()?.strip_prefix("home ")?)?;
        Some(Owner { uid, home })
    }

    /// Reads whose tables are in `directory`; `None` if it has no such file.
    ///
    /// # Errors
    /// `Corruption`, `IncompatibleDirectory` if the file is of a newer format, `Io`.
    pub fn read(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Owner>> {
        let path = directory.join(OWNER);
        let bytes = match checked_text::read(vfs, &path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        if let Some(owner) = Owner::parse(&bytes) {
            return Ok(Some(owner));
        }
        let newer = checked_text::unseal(&bytes);
        match newer.and_then(|text| checked_text::newer(text, FIRST_LINE)) {
            Some(reason) => Err(Error::IncompatibleDirectory { path, reason }),
            None => Err(Error::corruption(&path, 0, CorruptionKind::Checksum)),
        }
    }

    /// Returns the error of another database that wants `directory`.
    fn refusal(&self, directory: &Path) -> Error {
        let reason = format!(
            "it has the tables of the database in {}: each database needs its own directories for \
             tables",
            shown_path(&self.home)
        );
        Error::IncompatibleDirectory { path: directory.to_owned(), reason }
    }

    /// Fails for a database in another place that wants `directory`, unless this owner is gone.
    ///
    /// # Errors
    /// `IncompatibleDirectory`, `Io`.
    pub fn refuse_if_there(&self, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        if is_database(vfs, &self.home)? { Err(self.refusal(directory)) } else { Ok(()) }
    }

    /// Writes the file, durably.
    fn write(&self, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        let (temporary, path) = (directory.join(TEMPORARY_OWNER), directory.join(OWNER));
        match vfs.remove(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &temporary, error));
            }
            _ => {}
        }
        let file = vfs.open(&temporary, OpenOptions::CREATE);
        let file = file.map_err(|error| Error::io("create", &temporary, error))?;
        let text = self.to_text();
        let written = file.write_at(text.as_bytes(), 0, IoClass::Manifest);
        written.map_err(|error| Error::io("write", &temporary, error))?;
        let synced = file.sync_data(IoClass::Manifest);
        synced.map_err(|error| Error::io("sync", &temporary, error))?;
        vfs.rename(&temporary, &path).map_err(|error| Error::io("replace", &path, error))?;
        sync_directory(vfs, directory)
    }
}

fn is_database(vfs: &dyn Vfs, directory: &Path) -> Result<bool> {
    let current = FileName::Current.path(directory);
    vfs.exists(&current).map_err(|error| Error::io("look for", &current, error))
}

/// Makes `directory`, of which the caller has the lock, one of `owner`'s.
///
/// # Errors
/// `IncompatibleDirectory` if another database has its tables in it, or the directory is itself a
/// database; `Corruption`, `Io`.
pub fn claim(vfs: &dyn Vfs, directory: &Path, owner: &Owner) -> Result<()> {
    let refuse = |reason| Err(Error::IncompatibleDirectory { path: directory.to_owned(), reason });
    if is_database(vfs, directory)? {
        return refuse("it is a database, so it cannot have the tables of another one".to_owned());
    }
    let whose = match Owner::read(vfs, directory)? {
        Some(known) if known == *owner => return Ok(()),
        Some(known) => {
            // A database that was moved takes its tables along. A copy of one does not.
            if known.home != owner.home {
                known.refuse_if_there(vfs, directory)?;
            }
            (known.uid != owner.uid).then_some("a database that is gone")
        }
        None => Some("a database that is not named: there is no file OWNER"),
    };
    if let Some(whose) = whose {
        let names = vfs.list(directory).map_err(|e| Error::io("list", directory, e))?;
        let names = names.iter().filter_map(|name| name.file_name()?.to_str());
        let table = |name: &&str| matches!(FileName::parse(name), Some(FileName::Table(_)));
        if let Some(name) = names.into_iter().find(table) {
            return refuse(format!(
                "it has {name} of {whose}; move the tables away, or remove them"
            ));
        }
    }
    owner.write(vfs, directory)
}
