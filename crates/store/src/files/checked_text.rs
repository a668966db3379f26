//! Small files of text with a checksum, so that a person can read them and a program need not
//! guess.

use std::path::Path;

use crate::base::xxh3::xxh3_64;
use crate::vfs::{IoClass, OpenOptions, Vfs};

const BYTES_MAX: usize = 4096;

/// The text, whose last line ends, with its checksum.
pub fn seal(text: &str) -> String {
    format!("{text}check {:016x}\n", xxh3_64(text.as_bytes()))
}

/// The text without its checksum; `None` if that is not right.
pub fn unseal(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (covered, check) = text.split_at_checked(text.rfind("check ")?)?;
    let check = check.strip_prefix("check ")?.strip_suffix('\n')?;
    let right = check == format!("{:016x}", xxh3_64(covered.as_bytes()));
    // A fuzzer cannot guess checksums, so builds for it let every one pass.
    (right || cfg!(fuzzing)).then_some(covered)
}

/// That a whole text which does not begin with `first_line` is of a newer format: the name in that
/// line, and a larger number.
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

/// The bytes of a small file; an error if there is none.
pub fn read(vfs: &dyn Vfs, path: &Path) -> std::io::Result<Vec<u8>> {
    let file = vfs.open(path, OpenOptions::READ)?;
    let mut bytes = vec![0; BYTES_MAX];
    let got = file.read_all_at(&mut bytes, 0, IoClass::Manifest)?;
    bytes.truncate(got);
    Ok(bytes)
}
