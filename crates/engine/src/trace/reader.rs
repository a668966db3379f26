//! The reader of traces: Sateen's and RocksDB's.
//!
//! 1. [`TraceReader::open`] reads the first record and learns from it whether the others have
//!    checksums.
//! 2. [`TraceReader::next_encoded`] returns the next record's bytes ([`Records`]).
//! 3. [`TraceReader::next_record`] verifies and decodes them.
//!
//! What must stay true: a trace without its last record was not ended, which is no damage: the
//! process may have been killed.

use std::path::Path;

use sateen_store::base::error::{Error, Result};
use sateen_store::vfs::{PosixVfs, Vfs};

use super::format::{self, Frame, HEAD_BYTES, Header, kind_of};
use super::records::Records;
use super::{TraceRecord, no_trace};

/// Reads a trace, of Sateen or of RocksDB, as an iterator of its calls.
///
/// ```
/// use sateen::{Db, Options, TraceCall, TraceOptions, TraceReader};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, trace) = (directory.path().join("db"), directory.path().join("trace"));
/// let db = Db::open(path, Options::default())?;
/// db.start_trace(&trace, &TraceOptions::default())?;
/// db.put("fig", "1")?;
/// db.get("fig")?;
/// db.end_trace()?;
/// let calls: Vec<_> = TraceReader::open(&trace)?.collect::<sateen::Result<_>>()?;
/// assert!(matches!(calls[0].call, TraceCall::Write(_)));
/// assert!(matches!(&calls[1].call, TraceCall::Get { key, .. } if key == b"fig"));
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Debug)]
pub struct TraceReader {
    records: Records,
    header: Header,
    start_us: u64,
    /// Where the first call is.
    first: u64,
    /// The number of lost calls, once the last record was read.
    end: Option<Option<u64>>,
}

impl TraceReader {
    /// Opens a trace.
    ///
    /// # Errors
    /// `Io`. `InvalidArgument` if the file is no trace of calls, or one of a later version.
    pub fn open(path: impl AsRef<Path>) -> Result<TraceReader> {
        TraceReader::open_with(&PosixVfs::new(), path)
    }

    /// Opens a trace in the file system `vfs`.
    ///
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn open_with(vfs: &dyn Vfs, path: impl AsRef<Path>) -> Result<TraceReader> {
        let mut records = Records::open(vfs, path.as_ref())?;
        let no_calls = |path: &Path, why: &str| no_trace(path, "calls", why);
        let Some(whole) = records.first()? else {
            return Err(no_calls(records.path(), "it does not begin as one"));
        };
        let bytes = records.bytes(&whole);
        let header = Header::decode(bytes.get(HEAD_BYTES..).unwrap_or_default());
        let header = header.map_err(|why| no_calls(records.path(), &why))?;
        let frame = Frame::split(bytes, 0, header.checksums);
        let start_us = frame.ok_or_else(|| records.damage(0))?.at;
        let first = records.position();
        Ok(TraceReader { records, header, start_us, first, end: None })
    }

    /// Returns when the trace began, in microseconds since 1970.
    #[must_use]
    pub fn start_us(&self) -> u64 {
        self.start_us
    }

    /// Returns the number of calls that are missing in the trace, once its end was read; `None`
    /// before, if the trace was not ended, and for one of RocksDB.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        self.end.flatten()
    }

    /// Goes back to the first call.
    pub fn rewind(&mut self) {
        self.records.go_to(self.first);
        self.end = None;
    }

    /// Goes back to the first record, which is no call: [`TraceReader::next_encoded`] returns it.
    pub fn rewind_to_header(&mut self) {
        self.records.go_to(0);
        self.end = None;
    }

    /// Returns the bytes of the next record, the last one included; `None` at the end.
    ///
    /// # Errors
    /// `Io`. `Corruption` if the record is not whole.
    pub fn next_encoded(&mut self) -> Result<Option<&[u8]>> {
        if self.end.is_some() || self.records.is_at_end() {
            return Ok(None);
        }
        let (at, checksums) = (self.records.position(), self.header.checksums);
        let whole = self.records.next()?;
        let bytes = self.records.bytes(&whole);
        if kind_of(bytes) == Some(format::END) {
            let end = Frame::split(bytes, at, checksums);
            let end = end.ok_or_else(|| self.records.damage(at))?;
            let lost = end.payload.first_chunk().map(|lost| u64::from_le_bytes(*lost));
            self.end = Some(lost.filter(|_| checksums));
        }
        Ok(Some(self.records.bytes(&whole)))
    }

    /// Returns the next call; `None` at the end. Records that are no calls are passed over.
    ///
    /// # Errors
    /// As [`TraceReader::next_encoded`]. `InvalidArgument` if a record of RocksDB has what Sateen
    /// does not: an entry with wide columns, for example.
    pub fn next_record(&mut self) -> Result<Option<TraceRecord>> {
        loop {
            let (at, header) = (self.records.position(), self.header);
            let Some(bytes) = self.next_encoded()? else { return Ok(None) };
            let Some(frame) = Frame::split(bytes, at, header.checksums) else {
                return Err(self.records.damage(at));
            };
            let at_us = frame.at;
            match format::decode(&frame, header) {
                Ok(Some(call)) => return Ok(Some(TraceRecord { at_us, call })),
                Ok(None) => {}
                Err(Error::InvalidArgument(why)) => return Err(self.records.unreadable(at, &why)),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The calls of the trace. It ends with the first error.
impl Iterator for TraceReader {
    type Item = Result<TraceRecord>;

    fn next(&mut self) -> Option<Result<TraceRecord>> {
        let next = self.next_record().transpose();
        if matches!(next, Some(Err(_))) {
            self.records.go_to_end();
        }
        next
    }
}
