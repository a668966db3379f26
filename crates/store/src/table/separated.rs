//! Separated values: values of a table that are in another file, the WAL in which a flush left them
//! (TRIAD).
//!
//! 1. The flush writes each value as a [`Separated`]: the value itself, or its [`ValuePlace`] in
//!    the WAL. The table's properties name the WAL.
//! 2. A reader decodes it ([`Separated::decode`]) and reads the value ([`ValuesFile::read`]).
//!
//! What must stay true: callers of a table get values, and never see the difference. A value is
//! returned only if its checksum is right.

use std::path::Path;
use std::sync::Arc;

use sateen_control::{FileId, IoClass};

use crate::base::error::{CorruptionKind, Error, Result};
use crate::base::xxh3::xxh3_64;
use crate::files::table_file_name;
use crate::vfs::{OpenOptions, Vfs, VfsFile};

/// First byte of a stored value: the value follows, or its place.
const HERE: u8 = 0;
const ELSEWHERE: u8 = 1;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuePlace {
    pub offset: u64,
    pub length: u32,
    /// xxh3-64 of the value.
    pub checksum: u64,
}

/// A value as stored in a table with separated values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separated<'a> {
    Here(&'a [u8]),
    Elsewhere(ValuePlace),
}

impl<'a> Separated<'a> {
    /// Appends the encoding to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Separated::Here(value) => {
                out.push(HERE);
                out.extend_from_slice(value);
            }
            Separated::Elsewhere(place) => {
                out.push(ELSEWHERE);
                out.extend_from_slice(&place.offset.to_le_bytes());
                out.extend_from_slice(&place.length.to_le_bytes());
                out.extend_from_slice(&place.checksum.to_le_bytes());
            }
        }
    }

    /// Decodes what [`Self::encode`] wrote; `None` if the bytes are invalid.
    pub fn decode(stored: &'a [u8]) -> Option<Separated<'a>> {
        match stored.split_first()? {
            (&HERE, value) => Some(Separated::Here(value)),
            (&ELSEWHERE, place) => {
                let (offset, rest) = place.split_first_chunk()?;
                let (length, rest) = rest.split_first_chunk()?;
                let checksum = rest.try_into().ok()?;
                Some(Separated::Elsewhere(ValuePlace {
                    offset: u64::from_le_bytes(*offset),
                    length: u32::from_le_bytes(*length),
                    checksum: u64::from_le_bytes(checksum),
                }))
            }
            _ => None,
        }
    }
}

/// A file with values of tables.
#[derive(Clone, Debug)]
pub struct ValuesFile {
    file: Arc<dyn VfsFile>,
    path: Arc<Path>,
    /// Length at open. A WAL may grow later, by values that no table at hand needs.
    bytes: u64,
}

impl ValuesFile {
    pub fn open(vfs: &dyn Vfs, directory: &Path, id: FileId) -> Result<ValuesFile> {
        let path: Arc<Path> = table_file_name(directory, id).into();
        let file = vfs.open(&path, OpenOptions::READ);
        ValuesFile::on(file.map_err(|error| Error::of_pooled("open", &path, error))?, path)
    }

    /// Uses the file at `path`, which is open as `file`.
    pub fn on(file: Arc<dyn VfsFile>, path: Arc<Path>) -> Result<ValuesFile> {
        let bytes = file.len().map_err(|error| Error::of_pooled("stat", &path, error))?;
        Ok(ValuesFile { file, path, bytes })
    }

    /// Reads the value at `place`.
    pub fn read(&self, place: ValuePlace, class: IoClass) -> Result<Vec<u8>> {
        let corrupt = |kind| Error::corruption(&self.path, place.offset, kind);
        // A length is trusted only up to the end of the file.
        let end = place.offset.checked_add(u64::from(place.length));
        if end.is_none_or(|end| end > self.bytes) {
            return Err(corrupt(CorruptionKind::Truncated));
        }
        let mut value = vec![0; place.length as usize];
        let read = self.file.read_exact_at(&mut value, place.offset, class);
        read.map_err(|error| Error::of_pooled("read", &self.path, error))?;
        if xxh3_64(&value) != place.checksum {
            return Err(corrupt(CorruptionKind::Checksum));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separated_values_round_trip() {
        let place = ValuePlace { offset: 1 << 40, length: 7, checksum: u64::MAX - 1 };
        for separated in
            [Separated::Here(b""), Separated::Here(b"a value"), Separated::Elsewhere(place)]
        {
            let mut stored = Vec::new();
            separated.encode(&mut stored);
            assert_eq!(Separated::decode(&stored), Some(separated));
            if let Separated::Elsewhere(_) = separated {
                assert_eq!(Separated::decode(&stored[..stored.len() - 1]), None);
                stored.push(0);
                assert_eq!(Separated::decode(&stored), None);
            }
        }
        assert_eq!(Separated::decode(b""), None);
        assert_eq!(Separated::decode(&[2, 1]), None);
    }
}
