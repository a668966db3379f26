//! The file CURRENT, which names the current manifest. It is text with a checksum.
//!
//! 1. [`write_current`] replaces the file, in the two steps [`prepare_current`] and
//!    [`replace_current`].
//! 2. [`read_current`] reads it. If it is not valid, it finds out why: another program's database
//!    ([`recognise_foreign`]), a newer format, or damage.
//!
//! What must stay true: CURRENT is replaced by renaming a synced file over it, so either the old or
//! the new file exists, whole.

use std::path::{Path, PathBuf};

use super::identity::Identity;
use crate::base::error::{CorruptionKind, Error, Result};
use crate::base::names::shown_path;
use crate::files::replace::{move_temporary, write_temporary};
use crate::files::{FileName, checked_text};
use crate::vfs::Vfs;

/// Name of the file while it is written.
pub const TEMPORARY_CURRENT: &str = "CURRENT.tmp";
const FIRST_LINE: &str = "sateen 1";

/// The content of CURRENT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// Number of the current manifest.
    pub manifest: u64,
    /// Identity of the database.
    pub identity: Identity,
    /// Length up to which the manifest was durable when CURRENT was written: the `synced_floor` of
    /// its reader.
    pub synced: u64,
}

impl Current {
    /// Returns the content of the file, with its checksum line.
    fn to_text(self) -> String {
        let Current { manifest, identity: Identity { uid, copy }, synced } = self;
        let mut text =
            format!("{FIRST_LINE}\nmanifest {manifest}\nuid {uid:016x}\nsynced {synced}\n");
        if copy != 0 {
            text.push_str(&format!("copy {copy:016x}\n"));
        }
        checked_text::seal(&text)
    }

    /// Parses the content of the file; `None` if it is invalid in any way.
    fn parse(bytes: &[u8]) -> Option<Current> {
        let covered = checked_text::unseal(bytes)?;
        let mut lines = covered.strip_prefix(FIRST_LINE)?.strip_prefix('\n')?.lines();
        let mut line = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let manifest = line("manifest")?.parse().ok()?;
        let uid = u64::from_str_radix(line("uid")?, 16).ok()?;
        let synced = line("synced")?.parse().ok()?;
        let copy = match line("copy") {
            Some(copy) => u64::from_str_radix(copy, 16).ok()?,
            None => 0,
        };
        Some(Current { manifest, identity: Identity { uid, copy }, synced })
    }
}

/// Makes `current` the content of CURRENT, durably. The manifest that it names must be durable, and
/// its name too.
pub fn write_current(vfs: &dyn Vfs, directory: &Path, current: &Current) -> Result<()> {
    prepare_current(vfs, directory, current)?;
    replace_current(vfs, directory)
}

/// Writes `current` to the file that [`replace_current`] makes CURRENT. A failure changes nothing.
pub fn prepare_current(vfs: &dyn Vfs, directory: &Path, current: &Current) -> Result<()> {
    write_temporary(vfs, &directory.join(TEMPORARY_CURRENT), current.to_text().as_bytes())
}

/// Makes what [`prepare_current`] has written the content of CURRENT, durably. After a failure
/// CURRENT may be the old or the new one.
pub fn replace_current(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    let (path, temporary) = (FileName::Current.path(directory), directory.join(TEMPORARY_CURRENT));
    move_temporary(vfs, directory, &path, &temporary)
}

/// Returns the content of CURRENT in `directory`; `None` if the file does not exist. Fails if it is
/// damaged, was written by a newer version, or belongs to another program.
pub fn read_current(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Current>> {
    let path = FileName::Current.path(directory);
    let bytes = match checked_text::read(vfs, &path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read", &path, e)),
    };
    if let Some(current) = Current::parse(&bytes) {
        return Ok(Some(current));
    }
    let listing = vfs.list(directory).map_err(|e| Error::io("list", directory, e))?;
    if let Some(what) = recognise_foreign(&listing, Some(&bytes)) {
        let reason = foreign_reason(what, directory);
        return Err(Error::IncompatibleDirectory { path: directory.to_owned(), reason });
    }
    let newer = checked_text::unseal(&bytes).and_then(|text| checked_text::newer(text, FIRST_LINE));
    if let Some(reason) = newer {
        return Err(Error::IncompatibleDirectory { path, reason });
    }
    // A newer version may compute its checksum differently.
    let first_line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if let Ok(text) = std::str::from_utf8(first_line)
        && checked_text::newer(text, FIRST_LINE).is_some()
    {
        let reason = format!("written in a newer format, or damaged: it begins with {text:?}");
        return Err(Error::IncompatibleDirectory { path, reason });
    }
    if !bytes.is_empty()
        && !bytes.starts_with(b"sateen ")
        && !listing.iter().any(|path| is_ours(path))
    {
        let begins = String::from_utf8_lossy(bytes.get(..20).unwrap_or(&bytes)).into_owned();
        let reason = format!(
            "it is no database of Sateen: its file CURRENT begins with {begins:?}, and there is no \
             manifest, table or WAL"
        );
        return Err(Error::IncompatibleDirectory { path: directory.to_owned(), reason });
    }
    Err(Error::corruption(&path, 0, CorruptionKind::Checksum))
}

/// Returns true if the name of a file is one that Sateen gives to a manifest, a table or a WAL.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
    matches!(name, Some(FileName::Manifest(_) | FileName::Table(_) | FileName::Wal(_)))
}

/// Returns which other program made the database in a directory whose CURRENT can be read.
pub fn foreign(vfs: &dyn Vfs, directory: &Path, listing: &[PathBuf]) -> Option<&'static str> {
    let bytes = checked_text::read(vfs, &FileName::Current.path(directory)).ok()?;
    recognise_foreign(listing, Some(&bytes))
}

/// Returns why `directory`, recognised as `what` by [`recognise_foreign`], cannot be opened, and
/// what to do.
pub fn foreign_reason(what: &str, directory: &Path) -> String {
    let peer = match (what.contains("RocksDB"), what.contains("LevelDB")) {
        (true, false) => "rocksdb",
        (false, true) => "leveldb",
        (true, true) => "rocksdb|leveldb",
        (false, false) => return format!("it is {what}"),
    };
    let from = shown_path(directory);
    format!(
        "it is {what}; `sateen db import {peer} {from} NEW --library FILE` imports it into a new \
         database NEW"
    )
}

/// Recognises another program's database by its file names and the content of its CURRENT.
pub fn recognise_foreign(listing: &[PathBuf], current: Option<&[u8]>) -> Option<&'static str> {
    let any = |matches: &dyn Fn(&str) -> bool| {
        listing.iter().filter_map(|path| path.file_name()?.to_str()).any(matches)
    };
    let numbered = |name: &str, prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let names_manifest = current
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .is_some_and(|text| numbered(text.trim_end_matches('\n'), "MANIFEST-"));
    let has_manifest = any(&|name| numbered(name, "MANIFEST-"));
    if any(&|name| name.starts_with("marker.manifest.") || name.starts_with("marker.format-")) {
        return Some("a Pebble database");
    }
    // A CURRENT that does not name a manifest in the other programs' way is a damaged one of
    // Sateen.
    let theirs = names_manifest || (has_manifest && current.is_none());
    if !theirs {
        return None;
    }
    if any(&|name| name == "IDENTITY" || numbered(name, "OPTIONS-") || name.ends_with(".blob")) {
        return Some("a RocksDB database");
    }
    if any(&|name| name.ends_with(".ldb")) {
        return Some("a LevelDB database");
    }
    if any(&|name| name.ends_with(".sst")) {
        return Some("a RocksDB database");
    }
    Some("a LevelDB or RocksDB database")
}
