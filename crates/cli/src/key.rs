//! Keys and values that the command line gives, in one of the encodings of [`crate::text`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use sateen::shown_path;

use crate::failure::{Failure, Result};
use crate::text::Encoding;

/// Returns the bytes that a key or value of the command line stands for.
pub(crate) fn argument_bytes(text: &OsStr, encoding: Encoding) -> Result<Vec<u8>> {
    decoded(text.as_bytes(), encoding)
        .map_err(|what| Failure::usage(format!("{}: {what}", shown_path(text))))
}

/// Returns the bytes of a bound, if the command line gives one.
pub(crate) fn bound(text: Option<&OsStr>, encoding: Encoding) -> Result<Option<Vec<u8>>> {
    text.map(|text| argument_bytes(text, encoding)).transpose()
}

/// Returns the bytes that a text in an encoding stands for.
pub(crate) fn decoded(text: &[u8], encoding: Encoding) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    encoding.decode(text, &mut bytes)?;
    Ok(bytes)
}
