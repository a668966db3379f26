//! The files of a database directory: their names, the compaction files that hold the tables, and
//! the code that frees their space.
//!
//! What must stay true: [`FileName`] knows every name that the engine uses. Only the spelling that
//! it writes is understood, so no two names mean the same file.

pub mod checked_text;
mod compaction_file;
pub mod counters;
pub mod device_hint;
mod directory;
mod image;
pub mod leases;
pub mod options_file;
mod outline;
mod own_name;
pub mod paths;
pub mod reclaim;
pub mod replace;
pub mod seal;
mod space;
pub mod spare;

use std::path::{Path, PathBuf};

use sateen_control::{FileId, LogNumber};

pub use compaction_file::{CompactionFile, CompactionFileWriter};
pub use directory::DirectoryEntry;
pub use image::{SparePieces, TableImage};
pub use outline::{HEADER_BYTES, Outline, check_header, check_values_header, uid_of_page};
pub use own_name::{LOST, refuse_own_name};
pub use space::Extents;

/// Name of the file that is in a directory while a backup is restored into it.
pub const RESTORING: &str = "RESTORING";

/// Unit of direct I/O and hole punching. Tables start on multiples of it.
pub const PAGE_BYTES: usize = 4096;

/// The meaning of a file name in the database directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// A compaction file, `000123.sat`.
    Table(FileId),
    /// A WAL, `000123.wal`.
    Wal(LogNumber),
    /// A manifest, `MANIFEST-000123`.
    Manifest(FileId),
    /// The file that names the current manifest.
    Current,
    /// The speeds of the device as last measured.
    Device,
    /// The options of the last open.
    Options,
    /// The other directories that have tables.
    Directories,
    /// The file whose lock says that the database is open.
    Lock,
    /// What the background did, for people.
    InfoLog,
    /// A file like it of an earlier time, `LOG.old.1700000000000000`.
    OldInfoLog(u64),
    /// The socket on which an open database is served. Only a process that has died leaves it.
    Socket,
}

impl FileName {
    /// Returns the meaning of `name`, which has no directory; `None` if it is not a name of the
    /// engine.
    pub fn parse(name: &str) -> Option<FileName> {
        let parsed = match name {
            "CURRENT" => FileName::Current,
            "DEVICE" => FileName::Device,
            "OPTIONS" => FileName::Options,
            "DIRECTORIES" => FileName::Directories,
            "LOCK" => FileName::Lock,
            "INSPECT" => FileName::Socket,
            "LOG" => FileName::InfoLog,
            _ => {
                if let Some(digits) = name.strip_prefix("MANIFEST-") {
                    FileName::Manifest(FileId(digits.parse().ok()?))
                } else if let Some(digits) = name.strip_prefix("LOG.old.") {
                    FileName::OldInfoLog(digits.parse().ok()?)
                } else if let Some(digits) = name.strip_suffix(".sat") {
                    FileName::Table(FileId(digits.parse().ok()?))
                } else {
                    FileName::Wal(LogNumber(name.strip_suffix(".wal")?.parse().ok()?))
                }
            }
        };
        (parsed.text() == name).then_some(parsed)
    }

    /// Returns the number in the name, if it is one that the database counts.
    pub fn number(self) -> Option<u64> {
        match self {
            FileName::Table(file) | FileName::Manifest(file) => Some(file.0),
            FileName::Wal(log) => Some(log.0),
            FileName::Current
            | FileName::Device
            | FileName::Options
            | FileName::Directories
            | FileName::Lock
            | FileName::InfoLog
            | FileName::OldInfoLog(_)
            | FileName::Socket => None,
        }
    }

    /// Returns the name without its directory.
    pub fn text(self) -> String {
        match self {
            FileName::Table(FileId(n)) => format!("{n:06}.sat"),
            FileName::Wal(LogNumber(n)) => format!("{n:06}.wal"),
            FileName::Manifest(FileId(n)) => format!("MANIFEST-{n:06}"),
            FileName::Current => "CURRENT".to_owned(),
            FileName::Device => "DEVICE".to_owned(),
            FileName::Options => "OPTIONS".to_owned(),
            FileName::Directories => "DIRECTORIES".to_owned(),
            FileName::Lock => "LOCK".to_owned(),
            FileName::InfoLog => "LOG".to_owned(),
            FileName::OldInfoLog(micros) => format!("LOG.old.{micros}"),
            FileName::Socket => "INSPECT".to_owned(),
        }
    }

    /// Returns the path in `directory`.
    pub fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.text())
    }
}

/// Returns true if `name` is that of a file being written to replace another, or of the mark of a
/// restore. In a database neither is needed.
pub fn is_temporary(name: &str) -> bool {
    let replacing = [options_file::TEMPORARY, device_hint::TEMPORARY, paths::TEMPORARY_DIRECTORIES];
    replacing.contains(&name) || name == RESTORING
}

/// Returns the path of the compaction file `id`.
pub fn table_file_name(directory: &Path, id: FileId) -> PathBuf {
    FileName::Table(id).path(directory)
}

/// Returns the path of the WAL `number`.
pub fn wal_file_name(directory: &Path, number: LogNumber) -> PathBuf {
    FileName::Wal(number).path(directory)
}

/// Returns the path of the manifest `id`.
pub fn manifest_file_name(directory: &Path, id: FileId) -> PathBuf {
    FileName::Manifest(id).path(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_written_are_understood() {
        for name in [
            FileName::Table(FileId(1)),
            FileName::Table(FileId(u64::MAX)),
            FileName::Wal(LogNumber(1_234_567)),
            FileName::Manifest(FileId(42)),
            FileName::Current,
            FileName::Device,
            FileName::Socket,
            FileName::InfoLog,
            FileName::OldInfoLog(1_700_000_000_000_000),
            FileName::Options,
            FileName::Directories,
            FileName::Lock,
        ] {
            assert_eq!(FileName::parse(&name.text()), Some(name));
        }
        assert_eq!(FileName::Table(FileId(7)).text(), "000007.sat");
    }

    #[test]
    fn other_spellings_are_not_understood() {
        for name in ["", "7.sat", "+00007.sat", "0000007.sat", "000007.sst", "MANIFEST-7", "LOCKS"]
        {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
        assert_eq!(FileName::parse("99999999999999999999999.wal"), None);
    }
}
