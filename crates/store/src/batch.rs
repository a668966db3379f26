//! The encoding of a batch: the entries that a WAL stores, one after the other.
//!
//! An entry is: kind (one byte), column family (varint), key length (varint) and key. Kinds that
//! have a value add value length (varint) and value. Log data may stand between entries and is not
//! an entry.
//!
//! 1. [`encode_entry`] and [`encode_log_data`] append to a batch. The caller has checked the sizes.
//! 2. [`BatchReader::next`] returns the entries and skips log data.
//! 3. [`BatchReader::next_item`] returns both.
//!
//! What must stay true: encoded entries keep the limits (format rule F11). Decoding hostile bytes
//! never panics.

use sateen_control::{ColumnFamilyId, ValueKind};

use crate::base::coding;

/// Longest key: 64 KiB less one byte.
pub const KEY_BYTES_MAX: usize = (64 << 10) - 1;
/// Longest value that a batch can be configured to accept.
pub const VALUE_BYTES_MAX: usize = 1 << 30;
/// Longest value that a batch accepts by default.
pub const VALUE_BYTES_MAX_DEFAULT: usize = 64 << 20;
/// Largest batch: below 4 GiB, with room for the record's framing.
pub const BATCH_BYTES_MAX: usize = u32::MAX as usize - 4096;

/// The kind byte of log data. It is far from every [`ValueKind`].
const LOG_DATA: u8 = 0xff;

/// One write of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchEntry<'a> {
    /// Column family of the key.
    pub column_family: ColumnFamilyId,
    /// Kind of the write.
    pub kind: ValueKind,
    /// User key.
    pub key: &'a [u8],
    /// Value, merge operand, or end of a range; empty for a delete.
    pub value: &'a [u8],
}

/// An item of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchItem<'a> {
    /// A write.
    Write(BatchEntry<'a>),
    /// Data that `WriteBatch::put_log_data` was given.
    LogData(&'a [u8]),
}

/// Why bytes cannot be decoded as a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// An entry ends early, or a length is impossible.
    #[error("a truncated entry")]
    Truncated,
    /// The kind byte is not a kind.
    #[error("an entry of an unknown kind")]
    UnknownKind,
    /// A key or value exceeds the limits.
    #[error("a key or value beyond the limits")]
    TooLarge,
}

impl BatchError {
    /// Returns the text for [`crate::base::error::CorruptionKind::Malformed`].
    pub fn as_text(self) -> &'static str {
        match self {
            BatchError::Truncated => "a truncated batch entry",
            BatchError::UnknownKind => "a batch entry of an unknown kind",
            BatchError::TooLarge => "a batch entry beyond the limits",
        }
    }
}

/// Reads entries from bytes that may be anything, such as a WAL record.
#[derive(Clone, Debug)]
pub struct BatchReader<'a> {
    rest: &'a [u8],
}

impl<'a> BatchReader<'a> {
    /// Starts at the first entry of `data`.
    #[inline]
    pub fn new(data: &'a [u8]) -> BatchReader<'a> {
        BatchReader { rest: data }
    }

    /// Returns the number of bytes that were not read yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns the next entry; `None` at the end. It skips log data.
    #[inline]
    pub fn next(&mut self) -> Result<Option<BatchEntry<'a>>, BatchError> {
        let kind = loop {
            let Some(byte) = coding::take_u8(&mut self.rest) else { return Ok(None) };
            match ValueKind::from_byte(byte) {
                Some(kind) => break kind,
                None => {
                    let _passed_by = self.take_log_data(byte)?;
                }
            }
        };
        let (column_family, key) = self.take_key().ok_or(BatchError::Truncated)?;
        let value = if kind.has_value() {
            coding::take_slice(&mut self.rest).ok_or(BatchError::Truncated)?
        } else {
            &[]
        };
        let value_bytes_max =
            if kind == ValueKind::RangeDelete { KEY_BYTES_MAX } else { VALUE_BYTES_MAX };
        if key.len() > KEY_BYTES_MAX || value.len() > value_bytes_max {
            return Err(BatchError::TooLarge);
        }
        Ok(Some(BatchEntry { column_family, kind, key, value }))
    }

    /// Returns the next entry or log data; `None` at the end.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<BatchItem<'a>>, BatchError> {
        if self.rest.first() == Some(&LOG_DATA) {
            coding::take_u8(&mut self.rest);
            return Ok(Some(BatchItem::LogData(self.take_log_data(LOG_DATA)?)));
        }
        Ok(self.next()?.map(BatchItem::Write))
    }

    /// Takes the content of log data, whose kind byte was read. Any other `kind` is unknown.
    #[cold]
    fn take_log_data(&mut self, kind: u8) -> Result<&'a [u8], BatchError> {
        if kind != LOG_DATA {
            return Err(BatchError::UnknownKind);
        }
        let data = coding::take_slice(&mut self.rest).ok_or(BatchError::Truncated)?;
        if data.len() > VALUE_BYTES_MAX { Err(BatchError::TooLarge) } else { Ok(data) }
    }

    #[inline]
    fn take_key(&mut self) -> Option<(ColumnFamilyId, &'a [u8])> {
        let column_family = ColumnFamilyId(coding::take_varint_u32(&mut self.rest)?);
        Some((column_family, coding::take_slice(&mut self.rest)?))
    }
}

/// Appends the encoding of one entry to `out`. The caller has checked the sizes.
#[inline]
pub fn encode_entry(
    out: &mut Vec<u8>,
    column_family: ColumnFamilyId,
    kind: ValueKind,
    key: &[u8],
    value: &[u8],
) {
    out.reserve(14 + key.len() + value.len());
    out.push(kind as u8);
    coding::put_varint(out, column_family.0.into());
    coding::put_slice(out, key);
    if kind.has_value() {
        coding::put_slice(out, value);
    }
}

/// Appends the encoding of log data to `out`. The caller has checked the size.
pub fn encode_log_data(out: &mut Vec<u8>, data: &[u8]) {
    out.reserve(6 + data.len());
    out.push(LOG_DATA);
    coding::put_slice(out, data);
}
