//! The reader of traces whose header has no text: those of blocks and of I/O, Sateen's and
//! RocksDB's.
//!
//! 1. [`PlainReader::open`] reads the first record.
//! 2. [`PlainReader::next`] verifies the next one and has it decoded.
//!
//! What must stay true: RocksDB's records have no checksums, and its header has no room to promise
//! them. So the first record behind the header decides: if its checksum verifies, all must. Without
//! one a record must consist of its fields alone, which a record of Sateen never does.

use std::path::Path;

use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::vfs::Vfs;

use super::format::{self, Frame, HEAD_BYTES, kind_of};
use super::no_trace;
use super::records::Records;

/// Reads a trace of blocks or of I/O.
#[derive(Debug)]
pub(super) struct PlainReader {
    records: Records,
    start_us: u64,
    seed: u64,
    /// True if records have checksums, false if they have none. `None` before the first one.
    checksums: Option<bool>,
    /// The number of lost records, once the last one was read.
    lost: Option<u64>,
}

impl PlainReader {
    /// Opens a trace of `what` in the file system `vfs`.
    pub(super) fn open(vfs: &dyn Vfs, path: &Path, what: &str) -> Result<PlainReader> {
        let mut records = Records::open(vfs, path)?;
        let none = |path: &Path| no_trace(path, what, "it does not begin as one");
        let Some(first) = records.first()? else { return Err(none(records.path())) };
        let bytes = records.bytes(&first);
        if !format::is_plain_header(bytes.get(HEAD_BYTES..).unwrap_or_default()) {
            return Err(none(records.path()));
        }
        let start_us = Frame::split(bytes, 0, false).map_or(0, |frame| frame.at);
        let seed = format::plain_seed(bytes);
        Ok(PlainReader { records, start_us, seed, checksums: None, lost: None })
    }

    pub(super) fn start_us(&self) -> u64 {
        self.start_us
    }

    pub(super) fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// Returns what `decode` makes of the next record, or `None` at the end. `decode` takes all
    /// fields, or returns why it cannot. After an error this is the end.
    pub(super) fn next<T>(
        &mut self,
        decode: impl FnOnce(&Frame<'_>) -> std::result::Result<T, &'static str>,
    ) -> Option<Result<T>> {
        let next = self.next_record(decode).transpose();
        if matches!(next, Some(Err(_))) {
            self.records.go_to_end();
        }
        next
    }

    fn next_record<T>(
        &mut self,
        decode: impl FnOnce(&Frame<'_>) -> std::result::Result<T, &'static str>,
    ) -> Result<Option<T>> {
        if self.lost.is_some() || self.records.is_at_end() {
            return Ok(None);
        }
        let at = self.records.position();
        let whole = self.records.next()?;
        let bytes = self.records.bytes(&whole);
        let verified = Frame::split(bytes, self.seed.wrapping_add(at), true);
        let is_end = kind_of(bytes) == Some(format::END);
        let frame = match (verified, self.checksums) {
            (Some(frame), None | Some(true)) => Some(frame),
            (None, None | Some(false)) if !is_end => Frame::split(bytes, 0, false),
            _ => None,
        };
        let frame = frame.ok_or_else(|| self.records.damage(at))?;
        let has_checksum = verified.is_some();
        if is_end {
            let lost = frame.payload.first_chunk().map(|lost| u64::from_le_bytes(*lost));
            self.lost = Some(lost.unwrap_or(0));
            return Ok(None);
        }
        match decode(&frame) {
            Ok(record) => {
                self.checksums = Some(has_checksum);
                Ok(Some(record))
            }
            Err(why) if has_checksum => Err(self.records.unreadable(at, why)),
            Err(why) => {
                let kind = CorruptionKind::Malformed(why);
                Err(Error::corruption(self.records.path(), at, kind))
            }
        }
    }
}
