//! Separated values: values of a table that are in another file.
//!
//! 1. A flush or compaction writes each value as a [`Separated`]: the value itself, its
//!    [`ValuePlace`] in the WAL in which a flush left it (TRIAD), or its place in a value file. The
//!    table's properties name these files.
//! 2. A reader decodes it ([`Separated::decode`]) and reads the value
//!    ([`ValueFiles`](super::ValueFiles)).
//!
//! What must stay true: callers of a table get values, and never see the difference, unless they
//! ask for encoded ones.

use sateen_control::FileId;

use crate::base::coding::{put_varint, take_varint, take_varint_u32};

/// First byte of a stored value: the value follows, or its place in the table's WAL, or its place
/// in a value file.
const HERE: u8 = 0;
const IN_LOG: u8 = 1;
const IN_FILE: u8 = 2;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuePlace {
    pub offset: u64,
    pub length: u32,
    /// Checksum of the value: xxh3-64 in a WAL; in a value file also mixed with its place.
    pub checksum: u64,
}

impl ValuePlace {
    /// Returns the offset behind the value.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }
}

/// A value as stored in a table with separated values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separated<'a> {
    Here(&'a [u8]),
    /// In the WAL that the table's properties name.
    InLog(ValuePlace),
    /// In this value file.
    InFile(FileId, ValuePlace),
}

impl<'a> Separated<'a> {
    /// Appends the encoding to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Separated::Here(value) => {
                out.push(HERE);
                out.extend_from_slice(value);
            }
            Separated::InLog(place) => {
                out.push(IN_LOG);
                out.extend_from_slice(&place.offset.to_le_bytes());
                out.extend_from_slice(&place.length.to_le_bytes());
                out.extend_from_slice(&place.checksum.to_le_bytes());
            }
            Separated::InFile(file, place) => {
                out.push(IN_FILE);
                for number in [file.0, place.offset, u64::from(place.length)] {
                    put_varint(out, number);
                }
                out.extend_from_slice(&place.checksum.to_le_bytes());
            }
        }
    }

    /// Decodes what [`Self::encode`] wrote; `None` if the bytes are invalid.
    pub fn decode(stored: &'a [u8]) -> Option<Separated<'a>> {
        match stored.split_first()? {
            (&HERE, value) => Some(Separated::Here(value)),
            (&IN_LOG, place) => {
                let (offset, rest) = place.split_first_chunk()?;
                let (length, rest) = rest.split_first_chunk()?;
                let checksum = rest.try_into().ok()?;
                Some(Separated::InLog(ValuePlace {
                    offset: u64::from_le_bytes(*offset),
                    length: u32::from_le_bytes(*length),
                    checksum: u64::from_le_bytes(checksum),
                }))
            }
            (&IN_FILE, mut rest) => {
                let file = FileId(take_varint(&mut rest)?);
                let offset = take_varint(&mut rest)?;
                let length = take_varint_u32(&mut rest)?;
                let checksum = u64::from_le_bytes(rest.try_into().ok()?);
                Some(Separated::InFile(file, ValuePlace { offset, length, checksum }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separated_values_round_trip() {
        let place = ValuePlace { offset: 1 << 40, length: 7, checksum: u64::MAX - 1 };
        for separated in [
            Separated::Here(b""),
            Separated::Here(b"a value"),
            Separated::InLog(place),
            Separated::InFile(FileId(300), place),
            Separated::InFile(FileId(0), ValuePlace { offset: 0, length: u32::MAX, checksum: 1 }),
        ] {
            let mut stored = Vec::new();
            separated.encode(&mut stored);
            assert_eq!(Separated::decode(&stored), Some(separated));
            if !matches!(separated, Separated::Here(_)) {
                assert_eq!(Separated::decode(&stored[..stored.len() - 1]), None);
                stored.push(0);
                assert_eq!(Separated::decode(&stored), None);
            }
        }
        assert_eq!(Separated::decode(b""), None);
        assert_eq!(Separated::decode(&[3, 1]), None);
    }
}
