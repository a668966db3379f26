//! Tells from the first bytes of a file which program wrote it.

use std::io::ErrorKind;
use std::path::Path;

use sateen_store::base::error::{Error, Result};
use sateen_store::files::{FileName, is_temporary, uid_of_page};
use sateen_store::manifest::TEMPORARY_CURRENT;
use sateen_store::vfs::{IoClass, OpenOptions, Vfs};
use sateen_store::wal::frame::{FILE_HEADER_BYTES, FileHeader, FileKind};

/// Bytes that are read of each file: the header of a table file.
const HEAD_BYTES: usize = 4096;
/// The beginning of the text files CURRENT, OPTIONS, DIRECTORIES and DEVICE.
const TEXT_MAGIC: &[u8] = b"sateen ";
/// The beginning of their last line.
const TEXT_SEAL: &[u8] = b"\ncheck ";

/// A name that the engine gives to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnName {
    File(FileName),
    /// A text file that was to replace another one.
    Temporary,
}

/// Returns the meaning of `name`; `None` if the engine gives no such name.
pub(super) fn own_name(name: &str) -> Option<OwnName> {
    if name == TEMPORARY_CURRENT || is_temporary(name) {
        return Some(OwnName::Temporary);
    }
    FileName::parse(name).map(OwnName::File)
}

/// The writer of a file with one of the engine's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The engine: it begins as a file of that name does. The uid is present if the header
    /// verifies.
    Ours(Option<u64>),
    /// Unknown: the file is empty, or begins with zeros.
    Blank,
    /// Unknown: neither a readable file of the engine nor text.
    Damaged,
    /// Another program: the file is text, or it is a directory.
    Other,
}

/// Reads the head of the file `path`, whose name is `name`. Returns `None` if there is no such
/// file.
pub(super) fn look_at(vfs: &dyn Vfs, path: &Path, name: OwnName) -> Result<Option<Content>> {
    let mut head = vec![0; HEAD_BYTES];
    let read = vfs.open(path, OpenOptions::READ).map_err(|error| ("open", error));
    let read = read.and_then(|file| {
        let got = file.read_all_at(&mut head, 0, IoClass::Manifest);
        got.map_err(|error| ("read", error))
    });
    match read {
        Ok(got) => head.truncate(got),
        Err((_, error)) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err((_, error)) if error.kind() == ErrorKind::IsADirectory => {
            return Ok(Some(Content::Other));
        }
        Err(("open", error)) if is_socket(name, &error) => return Ok(Some(Content::Blank)),
        Err((operation, error)) => return Err(Error::io(operation, path, error)),
    }
    Ok(Some(content(&head, name)))
}

/// Returns true if a file of the socket's name could not be opened because it is a socket.
fn is_socket(name: OwnName, error: &std::io::Error) -> bool {
    let refusal = Some(rustix::io::Errno::NXIO);
    name == OwnName::File(FileName::Socket) && rustix::io::Errno::from_io_error(error) == refusal
}

/// Classifies the first bytes of a file.
fn content(head: &[u8], name: OwnName) -> Content {
    let may_be_blank = name != OwnName::File(FileName::Socket);
    if may_be_blank && head.iter().all(|byte| *byte == 0) {
        return Content::Blank;
    }
    let log = |kind| begins(head, &FileKind::magic(kind)).then(|| log_uid(head, kind));
    let known = match name {
        // A WAL with separated values also has the name of a table file.
        OwnName::File(FileName::Table(_)) => log(FileKind::Wal).or_else(|| uid_of_page(head)),
        OwnName::File(FileName::Wal(_)) => log(FileKind::Wal),
        OwnName::File(FileName::Manifest(_)) => log(FileKind::Manifest),
        OwnName::File(FileName::Lock) => return Content::Blank,
        // A socket cannot be read, so this is a file of somebody else.
        OwnName::File(FileName::Socket) => return Content::Other,
        // It ends in the middle of a line if the process died.
        OwnName::File(FileName::InfoLog | FileName::OldInfoLog(_)) => {
            begins(head, TEXT_MAGIC).then_some(None)
        }
        OwnName::File(
            FileName::Current | FileName::Device | FileName::Options | FileName::Directories,
        )
        | OwnName::Temporary => {
            let sealed = head.windows(TEXT_SEAL.len()).any(|part| part == TEXT_SEAL);
            (sealed || begins(head, TEXT_MAGIC)).then_some(None)
        }
    };
    match known {
        Some(uid) => Content::Ours(uid),
        None if is_text(head) => Content::Other,
        None => Content::Damaged,
    }
}

/// Returns true if `head` begins with `magic`, or is a prefix of it because it was cut off.
fn begins(head: &[u8], magic: &[u8]) -> bool {
    head.starts_with(magic) || magic.starts_with(head)
}

/// Returns the uid in the header of a WAL or manifest, if that verifies.
fn log_uid(head: &[u8], kind: FileKind) -> Option<u64> {
    let header = FileHeader::decode(kind, head.get(..FILE_HEADER_BYTES)?)?;
    Some(header.db_uid)
}

/// Returns true if the bytes are printable text.
fn is_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The end of the page may cut a character in two.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            std::str::from_utf8(head.get(..error.valid_up_to()).unwrap_or_default())
                .unwrap_or_default()
        }
        Err(_) => return false,
    };
    valid.chars().all(|char| !char.is_control() || char.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use sateen_control::{FileId, LogNumber};

    use super::*;

    #[test]
    fn what_a_file_begins_with_says_whose_it_is() {
        let log = OwnName::File(FileName::Wal(LogNumber(7)));
        let table = OwnName::File(FileName::Table(FileId(7)));
        let header = FileHeader { version: 1, db_uid: 3, number: 7 }.encode(FileKind::Wal);
        assert_eq!(content(&header, log), Content::Ours(Some(3)));
        assert_eq!(content(&header, table), Content::Ours(Some(3)), "values in a log");
        assert_eq!(content(&header[..20], log), Content::Ours(None), "cut short");
        assert_eq!(content(&header[..3], log), Content::Ours(None), "cut short");
        assert_eq!(content(b"", log), Content::Blank);
        assert_eq!(content(&[0; 100], table), Content::Blank);
        assert_eq!(content(b"shopping list:\n\tmilk, caf\xc3\xa9\n", log), Content::Other);
        assert_eq!(content(b"caf\xc3", table), Content::Other, "cut within a character");
        assert_eq!(content(b"\x01\x02\x03", table), Content::Damaged);
        assert_eq!(content(b"ATEENwl\xff", log), Content::Damaged);
        let current = OwnName::File(FileName::Current);
        assert_eq!(content(b"sateen 1\nmanifest 3\n", current), Content::Ours(None));
        assert_eq!(content(b"\xffateen 1\nuid 3\ncheck 12\n", current), Content::Ours(None));
        assert_eq!(content(b"sat", OwnName::Temporary), Content::Ours(None));
        assert_eq!(content(b"MANIFEST-000003\n", current), Content::Other);
    }

    #[test]
    fn only_names_that_are_given_are_own() {
        for name in ["CURRENT.tmp", "OPTIONS.tmp", "DEVICE.tmp"] {
            assert_eq!(own_name(name), Some(OwnName::Temporary), "{name}");
        }
        assert_eq!(own_name("LOCK"), Some(OwnName::File(FileName::Lock)));
        assert_eq!(own_name("INSPECT"), Some(OwnName::File(FileName::Socket)));
        for name in ["notes.txt", "000001.log", "7.wal", "LOG.old"] {
            assert_eq!(own_name(name), None, "{name}");
        }
    }
}
