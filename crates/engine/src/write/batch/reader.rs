//! Reads the entries of a batch from bytes that may be anything: a record of the log.

use sateen_control::{ColumnFamilyId, ValueKind};

use super::{BatchEntry, BatchItem, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::wal::coding;

/// The kind byte of log data, which is no [`ValueKind`]: as far from those as can be.
pub(super) const LOG_DATA: u8 = 0xff;

/// Why bytes are not the entries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BatchError {
    /// An entry ends early, or a length makes no sense.
    #[error("a truncated entry")]
    Truncated,
    /// No kind has that number.
    #[error("an entry of an unknown kind")]
    UnknownKind,
    /// A key or value beyond the limits.
    #[error("a key or value beyond the limits")]
    TooLarge,
}

impl BatchError {
    /// The same for [`crate::CorruptionKind::Malformed`].
    pub(crate) fn as_text(self) -> &'static str {
        match self {
            BatchError::Truncated => "a truncated batch entry",
            BatchError::UnknownKind => "a batch entry of an unknown kind",
            BatchError::TooLarge => "a batch entry beyond the limits",
        }
    }
}

/// Reads entries from bytes that may be anything: a record of the log.
#[derive(Clone, Debug)]
pub(crate) struct BatchReader<'a> {
    rest: &'a [u8],
}

impl<'a> BatchReader<'a> {
    /// Starts at the first entry of `data`.
    #[inline]
    pub(crate) fn new(data: &'a [u8]) -> BatchReader<'a> {
        BatchReader { rest: data }
    }

    /// Bytes that have not been read.
    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next entry; `None` at the end. Log data is passed by.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<BatchEntry<'a>>, BatchError> {
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

    /// The next entry or log data; `None` at the end.
    #[inline]
    pub(crate) fn next_item(&mut self) -> Result<Option<BatchItem<'a>>, BatchError> {
        if self.rest.first() == Some(&LOG_DATA) {
            coding::take_u8(&mut self.rest);
            return Ok(Some(BatchItem::LogData(self.take_log_data(LOG_DATA)?)));
        }
        Ok(self.next()?.map(BatchItem::Write))
    }

    /// What is behind `kind`, which is of no entry.
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
