//! Directories of tables besides a database's own.
//!
//! - [`Owner`], a file in each such directory, says whose tables it has, so that no other database
//!   takes them for its own unused files.
//! - [`Directories`], a file in the database's own directory, names them. So a directory whose disk
//!   is not mounted is not taken for an empty one.
//!
//! What must stay true: both files are durable before the directory has a table, `OWNER` before the
//! list names its directory. A directory stays in the list while it has tables.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::replace::{replace_file, replace_path};
use super::{FileName, checked_text};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::base::names::{option_of_path, path_of_option, shown_path};
use crate::vfs::{PathsVfs, Vfs};

/// Name of the file that says whose tables are in a directory.
pub const OWNER: &str = "OWNER";
/// Name of that file while it is written.
pub const TEMPORARY_OWNER: &str = "OWNER.tmp";
const FIRST_LINE: &str = "sateen tables 1";
/// Name of the list of directories while it is written.
pub const TEMPORARY_DIRECTORIES: &str = "DIRECTORIES.tmp";
const FIRST_LINE_OF_LIST: &str = "sateen directories 1";

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
        read_text(vfs, directory.join(OWNER), FIRST_LINE, Owner::parse)
    }

    /// Reads whose tables are in `directory`, unless that is itself a database.
    ///
    /// # Errors
    /// As [`Owner::read`].
    pub fn of_tables(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Owner>> {
        let owner = Owner::read(vfs, directory)?;
        if owner.is_some() && is_database(vfs, directory)? { Ok(None) } else { Ok(owner) }
    }

    /// Returns the error of an open, as a database, of a directory that has tables of this one.
    pub fn no_database(&self, directory: &Path) -> Error {
        let reason = format!(
            "it is no database, but has tables of the database in {}: open that one",
            shown_path(&self.home)
        );
        Error::IncompatibleDirectory { path: directory.to_owned(), reason }
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
    fn refuse_if_there(&self, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        if is_database(vfs, &self.home)? { Err(self.refusal(directory)) } else { Ok(()) }
    }

    /// Writes the file, durably.
    fn write(&self, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        let (temporary, path) = (directory.join(TEMPORARY_OWNER), directory.join(OWNER));
        replace_path(vfs, directory, &path, &temporary, self.to_text().as_bytes())
    }
}

/// The directories in which a database has, or may have, tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directories {
    /// The uid of the database.
    pub uid: u64,
    /// The directories besides its own.
    pub others: BTreeSet<PathBuf>,
}

impl Directories {
    fn to_text(&self) -> String {
        let line = |other: &PathBuf| format!("directory {}\n", option_of_path(other));
        let others: String = self.others.iter().map(line).collect();
        checked_text::seal(&format!("{FIRST_LINE_OF_LIST}\nuid {:016x}\n{others}", self.uid))
    }

    fn parse(bytes: &[u8]) -> Option<Directories> {
        let text = checked_text::unseal(bytes)?;
        let mut lines = text.strip_prefix(FIRST_LINE_OF_LIST)?.strip_prefix('\n')?.lines();
        let uid = u64::from_str_radix(lines.next()?.strip_prefix("uid ")?, 16).ok()?;
        let other = |line: &str| path_of_option(line.strip_prefix("directory ")?);
        Some(Directories { uid, others: lines.map(other).collect::<Option<_>>()? })
    }

    /// Reads the list of the database in `home`; `None` if it has none.
    ///
    /// # Errors
    /// `Corruption`, `IncompatibleDirectory` if the file is of a newer format, `Io`.
    pub fn read(vfs: &dyn Vfs, home: &Path) -> Result<Option<Directories>> {
        let path = FileName::Directories.path(home);
        read_text(vfs, path, FIRST_LINE_OF_LIST, Directories::parse)
    }

    /// Writes the list, durably.
    ///
    /// # Errors
    /// `Io`, `InvalidArgument` if the list is longer than what is read.
    pub fn write(&self, vfs: &dyn Vfs, home: &Path) -> Result<()> {
        let text = self.to_text();
        if text.len() >= checked_text::BYTES_MAX {
            return Err(Error::InvalidArgument(format!(
                "paths, family_paths: {} directories have too long names together",
                self.others.len()
            )));
        }
        let (name, temporary) = (FileName::Directories, TEMPORARY_DIRECTORIES);
        replace_file(vfs, home, name, temporary, text.as_bytes())
    }

    /// Fails unless each directory says that it has tables of this database.
    ///
    /// # Errors
    /// `IncompatibleDirectory`, `Corruption`, `Io`.
    pub fn check(&self, vfs: &dyn Vfs, home: &Path) -> Result<()> {
        self.others.iter().try_for_each(|other| match Owner::read(vfs, other)? {
            Some(owner) if owner.uid == self.uid => Ok(()),
            Some(owner) => Err(owner.refusal(other)),
            None => Err(Error::IncompatibleDirectory {
                path: other.clone(),
                reason: format!(
                    "the database in {} has tables in it, but it has no file OWNER: is its disk \
                     mounted?",
                    shown_path(home)
                ),
            }),
        })
    }
}

/// Reads a small text; `None` if it does not exist.
fn read_text<T>(
    vfs: &dyn Vfs,
    path: PathBuf,
    first_line: &str,
    parse: impl Fn(&[u8]) -> Option<T>,
) -> Result<Option<T>> {
    let bytes = match checked_text::read(vfs, &path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", &path, error)),
    };
    if let Some(read) = parse(&bytes) {
        return Ok(Some(read));
    }
    let newer = checked_text::unseal(&bytes);
    match newer.and_then(|text| checked_text::newer(text, first_line)) {
        Some(reason) => Err(Error::IncompatibleDirectory { path, reason }),
        None => Err(Error::corruption(&path, 0, CorruptionKind::Checksum)),
    }
}

fn is_database(vfs: &dyn Vfs, directory: &Path) -> Result<bool> {
    let current = FileName::Current.path(directory);
    vfs.exists(&current).map_err(|error| Error::io("look for", &current, error))
}

/// Says whose `directory` is: returns its owner if that is the database `uid` in `home`, and `None`
/// if it is nobody's. A database without a known uid is known by its place.
///
/// # Errors
/// `IncompatibleDirectory` if another database has its tables in it, or the directory is itself a
/// database; `Corruption`, `Io`.
pub fn whose(
    vfs: &dyn Vfs,
    directory: &Path,
    uid: Option<u64>,
    home: &Path,
) -> Result<Option<Owner>> {
    let refuse = |reason| Err(Error::IncompatibleDirectory { path: directory.to_owned(), reason });
    if is_database(vfs, directory)? {
        return refuse("it is a database, so it cannot have the tables of another one".to_owned());
    }
    let whose = match Owner::read(vfs, directory)? {
        Some(known) => {
            // A database that was moved takes its tables along. A copy of one does not.
            if known.home != home {
                known.refuse_if_there(vfs, directory)?;
            }
            if uid.map_or(known.home == home, |uid| known.uid == uid) {
                return Ok(Some(known));
            }
            "a database that is gone"
        }
        None => "a database that is not named: there is no file OWNER",
    };
    let names = match vfs.list(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        names => names.map_err(|error| Error::io("list", directory, error))?,
    };
    let names = names.iter().filter_map(|name| name.file_name()?.to_str());
    let part = |name: &&str| {
        matches!(FileName::parse(name), Some(FileName::Table(_) | FileName::Manifest(_)))
    };
    match names.into_iter().find(part) {
        Some(name) => {
            refuse(format!("it has {name} of {whose}; move the tables away, or remove them"))
        }
        None => Ok(None),
    }
}

/// Makes `directory`, of which the caller has the lock, one of `owner`'s.
///
/// # Errors
/// As [`whose`].
pub fn claim(vfs: &dyn Vfs, directory: &Path, owner: &Owner) -> Result<()> {
    match whose(vfs, directory, Some(owner.uid), &owner.home)? {
        Some(known) if known == *owner => Ok(()),
        _ => owner.write(vfs, directory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::MemVfs;

    #[test]
    fn what_is_written_is_read() {
        let mem = MemVfs::new();
        let home = Path::new("/db");
        mem.create_dir_all(home).unwrap();
        assert_eq!(Directories::read(&mem, home).unwrap(), None);
        let long = PathBuf::from(format!("/{}", "n".repeat(5000)));
        for others in [vec![], vec!["/a".into(), "/b c\nd".into(), long.clone()]] {
            let list = Directories { uid: 7, others: others.into_iter().collect() };
            list.write(&mem, home).unwrap();
            assert_eq!(Directories::read(&mem, home).unwrap(), Some(list));
        }
        let owner = Owner { uid: 3, home: long };
        owner.write(&mem, home).unwrap();
        assert_eq!(Owner::read(&mem, home).unwrap(), Some(owner));
        let many = (0..400).map(|n| PathBuf::from(format!("/{n}{}", "n".repeat(4000)))).collect();
        let error = Directories { uid: 7, others: many }.write(&mem, home).unwrap_err();
        assert!(error.to_string().contains("400 directories"), "{error}");
    }
}
