//! Converts names and paths between bytes and text. File systems use bytes; the engine, its files
//! and its messages use text.
//!
//! What must stay true: UTF-8 without zero bytes is its own text, different bytes have different
//! texts, and [`bytes_of_text`] returns the original bytes.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Stands before the two hexadecimal digits of an escaped byte.
const MARK: char = '\0';

/// Returns the text for a name that is bytes, such as a column family's name in the C interface.
/// UTF-8 is unchanged. A byte that is not UTF-8, or is zero, becomes a zero byte and two
/// hexadecimal digits.
///
/// ```
/// # use sateen_store::base::names as sateen;
/// use sateen::{bytes_of_text, text_of_bytes};
///
/// assert_eq!(text_of_bytes("café".as_bytes()), "café");
/// assert_eq!(text_of_bytes(b"caf\xe9"), "caf\0e9");
/// assert_eq!(*bytes_of_text("caf\0e9"), *b"caf\xe9");
/// ```
#[must_use]
pub fn text_of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(MARK) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(bytes, |_, char| char == MARK)),
    }
}

/// Returns the bytes that `text` stands for: the reverse of [`text_of_bytes`]. Text that
/// [`text_of_bytes`] never returns stands for itself.
#[must_use]
pub fn bytes_of_text(text: &str) -> Cow<'_, [u8]> {
    match unescaped(text) {
        Some(bytes) if text.contains(MARK) && text_of_bytes(&bytes) == text => Cow::Owned(bytes),
        _ => Cow::Borrowed(text.as_bytes()),
    }
}

/// Returns text for people to read, with `\x` and two digits for each escaped byte of `text`.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    if text.contains(MARK) { Cow::Owned(text.replace(MARK, "\\x")) } else { Cow::Borrowed(text) }
}

/// Returns a path for people to read, with `\x` and two digits for each byte that is not UTF-8.
#[must_use]
pub fn shown_path(path: impl AsRef<Path>) -> String {
    shown(&text_of_bytes(path.as_ref().as_os_str().as_bytes())).into_owned()
}

/// Returns a path as the value of an option. Characters that would end the value, or give it
/// another meaning, are escaped, too.
pub fn option_of_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.len();
    let ambiguous = bytes.eq_ignore_ascii_case(b"none");
    escaped(bytes, |at, char| {
        let outer = at == 0 || at + char.len_utf8() == end;
        matches!(char, MARK | ';' | '\n' | '\r')
            || outer && char.is_whitespace()
            || at == 0 && ambiguous
    })
}

/// Returns the path that an option's value stands for; `None` if a zero byte is not followed by two
/// digits.
pub fn path_of_option(text: &str) -> Option<PathBuf> {
    Some(PathBuf::from(OsString::from_vec(unescaped(text)?)))
}

/// Escapes bytes that are not UTF-8, and characters for which `special` returns true. `special` is
/// given the offset and the character.
fn escaped(bytes: &[u8], special: impl Fn(usize, char) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    let push = |text: &mut String, bytes: &[u8]| {
        bytes.iter().for_each(|byte| text.push_str(&format!("{MARK}{byte:02x}")));
    };
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if special(at, char) {
                push(&mut text, char.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(char);
            }
            at += char.len_utf8();
        }
        push(&mut text, chunk.invalid());
        at += chunk.invalid().len();
    }
    text
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split(MARK);
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| plain)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All byte strings of up to three of these.
    fn strings() -> Vec<Vec<u8>> {
        let alphabet = b"\0e98a;\n \\N\xc3\xa9\xe9\xe8\xff";
        let mut all = vec![Vec::new()];
        let mut last = all.clone();
        for _ in 0..3 {
            let longer = |of: &Vec<u8>| {
                let of = of.clone();
                alphabet.iter().map(move |byte| [&of[..], &[*byte]].concat())
            };
            last = last.iter().flat_map(longer).collect();
            all.extend(last.clone());
        }
        all.extend([b"none".to_vec(), b"NONE".to_vec(), "\u{a0}x\u{a0}".as_bytes().to_vec()]);
        all
    }

    #[test]
    fn different_bytes_have_different_texts_that_lead_back() {
        let mut texts = std::collections::BTreeSet::new();
        for bytes in strings() {
            let text = text_of_bytes(&bytes).into_owned();
            assert_eq!(*bytes_of_text(&text), *bytes, "{text:?}");
            if !bytes.contains(&0) && std::str::from_utf8(&bytes).is_ok() {
                assert_eq!(text.as_bytes(), bytes, "UTF-8 stands for itself");
            }
            assert!(texts.insert(text), "{bytes:?}");
        }
    }

    #[test]
    fn text_that_no_bytes_have_stands_for_itself() {
        for text in ["\0", "a\0e", "\0zz", "\x0041", "\0c3\0a9", "\0E9", "\0+9", "caf\0é"] {
            assert_eq!(*bytes_of_text(text), *text.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn a_path_comes_back_as_the_value_of_an_option() {
        let mut values = std::collections::BTreeSet::new();
        for bytes in strings().into_iter().filter(|bytes| !bytes.is_empty()) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            let value = option_of_path(&path);
            assert!(value.trim() == value && !value.contains([';', '\n', '\r']), "{value:?}");
            assert!(!value.eq_ignore_ascii_case("none"));
            assert_eq!(path_of_option(&value), Some(path), "{value:?}");
            assert!(values.insert(value));
        }
        assert_eq!(path_of_option("/a\0x"), None);
        assert_eq!(option_of_path(Path::new("/var/lib/logs a")), "/var/lib/logs a");
    }

    #[test]
    fn people_read_digits() {
        assert_eq!(
            shown_path(Path::new(std::ffi::OsStr::from_bytes(b"/caf\xe9/d"))),
            "/caf\\xe9/d"
        );
        assert_eq!(shown("caf\0e9"), "caf\\xe9");
        assert_eq!(shown("café"), "café");
    }
}
