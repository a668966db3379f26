//! Small text files with a checksum, readable by people.
//!
//! What must stay true: a file whose checksum is wrong is treated as absent, never as other
//! content.

use std::path::Path;

use crate::base::xxh3::xxh3_64;
use crate::vfs::{IoClass, OpenOptions, Vfs};

/// Largest file that is read.
pub const BYTES_MAX: usize = 64 << 10;

/// Returns `text`, which ends with a newline, followed by its checksum line.
pub fn seal(text: &str) -> String {
    format!("{text}check {:016x}\n", xxh3_64(text.as_bytes()))
}

/// Returns the text without its checksum line; `None` if the checksum is wrong.
pub fn unseal(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (covered, check) = text.split_at_checked(text.rfind("check ")?)?;
    let check = check.strip_prefix("check ")?.strip_suffix('\n')?;
    let right = check == format!("{:016x}", xxh3_64(covered.as_bytes()));
    // A fuzzer cannot guess checksums, so fuzzing builds accept every one.
    (right || cfg!(fuzzing)).then_some(covered)
}

/// Returns a message if `text` has a newer format than `first_line`: the same name in its first
/// line, and another version number.
pub fn newer(text: &str, first_line: &str) -> Option<String> {
    let (name, known) = first_line.rsplit_once(' ')?;
    let first = text.lines().next()?;
    let version = first.strip_prefix(name)?.strip_prefix(' ')?;
    if version == known || version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    Some(format!(
        "written in a newer format: format version {version}; this version reads format version \
         {known}"
    ))
}

/// Returns the bytes of a small file, or an error if it does not exist.
pub fn read(vfs: &dyn Vfs, path: &Path) -> std::io::Result<Vec<u8>> {
    let file = vfs.open(path, OpenOptions::READ)?;
    let mut bytes = vec![0; BYTES_MAX];
    let got = file.read_all_at(&mut bytes, 0, IoClass::Manifest)?;
    bytes.truncate(got);
    Ok(bytes)
}
