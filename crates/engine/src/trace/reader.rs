//! The reader of traces: Sateen's and RocksDB's.
//!
//! 1. [`TraceReader::open`] reads the first record and learns from it whether the others have
//!    checksums.
//! 2. [`TraceReader::next_encoded`] takes the next record's bytes out of a window of the file,
//!    which `fill` moves forward.
//! 3. [`TraceReader::next_record`] verifies and decodes them.
//!
//! What must stay true: a length is believed only if the file is that long. A trace without its
//! last record was not ended, which is no damage: the process may have been killed.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::IoClass;
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::vfs::{OpenOptions, PosixVfs, Vfs, VfsFile};

use super::format::{self, Frame, HEAD_BYTES, Header, payload_bytes};
use super::{TraceRecord, no_trace};

/// Bytes that are read at once, unless a record is longer.
const WINDOW_BYTES: usize = 256 << 10;
/// The place of the kind in a record's head.
const KIND_AT: usize = 8;

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
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    length: u64,
    header: Header,
    start_us: u64,
    /// Where the first call is.
    first: u64,
    /// The place in the file of the next record, and of the window's first byte.
    next: u64,
    window: Vec<u8>,
    window_at: u64,
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
        let path = path.as_ref().to_owned();
        let of_file = |error| Error::io("open", &path, error);
        let file = vfs.open(&path, OpenOptions::READ).map_err(of_file)?;
        let length = file.len().map_err(|error| Error::io("read", &path, error))?;
        let header = Header { has_fields: true, checksums: false };
        let mut reader = TraceReader {
            file,
            path,
            length,
            header,
            start_us: 0,
            first: 0,
            next: 0,
            window: Vec::new(),
            window_at: 0,
            end: None,
        };
        reader.read_header()?;
        Ok(reader)
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
        self.next = self.first;
        self.end = None;
    }

    /// Goes back to the first record, which is no call: [`TraceReader::next_encoded`] returns it.
    pub fn rewind_to_header(&mut self) {
        self.next = 0;
        self.end = None;
    }

    /// Returns the bytes of the next record, the last one included; `None` at the end.
    ///
    /// # Errors
    /// `Io`. `Corruption` if the record is not whole.
    pub fn next_encoded(&mut self) -> Result<Option<&[u8]>> {
        let at = self.next;
        if self.end.is_some() || at == self.length {
            return Ok(None);
        }
        let head = self.fill(at, HEAD_BYTES)?;
        let Some(head) = self.bytes(&head).first_chunk::<HEAD_BYTES>().copied() else {
            return Err(self.damage(at));
        };
        let whole = self.fill(at, HEAD_BYTES + payload_bytes(&head) as usize)?;
        self.next = at + whole.len() as u64;
        if head.get(KIND_AT) == Some(&format::END) {
            let checksums = self.header.checksums;
            let end = Frame::split(self.bytes(&whole), at, checksums);
            let end = end.ok_or_else(|| self.damage(at))?;
            let lost = end.payload.first_chunk().map(|lost| u64::from_le_bytes(*lost));
            self.end = Some(lost.filter(|_| checksums));
        }
        Ok(Some(self.bytes(&whole)))
    }

    /// Returns the next call; `None` at the end. Records that are no calls are passed over.
    ///
    /// # Errors
    /// As [`TraceReader::next_encoded`]. `InvalidArgument` if a record of RocksDB has what Sateen
    /// does not: an entry with wide columns, for example.
    pub fn next_record(&mut self) -> Result<Option<TraceRecord>> {
        loop {
            let (at, header) = (self.next, self.header);
            let Some(bytes) = self.next_encoded()? else { return Ok(None) };
            let Some(frame) = Frame::split(bytes, at, header.checksums) else {
                return Err(self.damage(at));
            };
            let at_us = frame.at_us;
            match format::decode(&frame, header) {
                Ok(Some(call)) => return Ok(Some(TraceRecord { at_us, call })),
                Ok(None) => {}
                Err(Error::InvalidArgument(why)) => return Err(self.unreadable(at, &why)),
                Err(error) => return Err(error),
            }
        }
    }

    fn read_header(&mut self) -> Result<()> {
        let short = |reader: &TraceReader| no_trace(&reader.path, "it does not begin as one");
        // The length is looked at before the window would read as much.
        if self.length < HEAD_BYTES as u64 {
            return Err(short(self));
        }
        let head = self.fill(0, HEAD_BYTES)?;
        let head = self.bytes(&head);
        let is_begin = head.get(KIND_AT) == Some(&format::BEGIN);
        let payload = head.first_chunk().map_or(0, payload_bytes);
        if !is_begin || u64::from(payload) > self.length - HEAD_BYTES as u64 {
            return Err(short(self));
        }
        let whole = self.fill(0, HEAD_BYTES + payload as usize)?;
        let bytes = self.bytes(&whole);
        let header = Header::decode(bytes.get(HEAD_BYTES..).unwrap_or_default());
        let header = header.map_err(|why| no_trace(&self.path, &why))?;
        let frame = Frame::split(bytes, 0, header.checksums);
        self.start_us = frame.ok_or_else(|| self.damage(0))?.at_us;
        self.header = header;
        self.first = whole.len() as u64;
        self.next = self.first;
        Ok(())
    }

    /// Has the window contain the `length` bytes at `at`, and returns their place in it. Fails if
    /// the file ends before.
    fn fill(&mut self, at: u64, length: usize) -> Result<Range<usize>> {
        let from = at.checked_sub(self.window_at).and_then(|from| usize::try_from(from).ok());
        let end = from.and_then(|from| from.checked_add(length));
        if let (Some(from), Some(end)) = (from, end)
            && end <= self.window.len()
        {
            return Ok(from..end);
        }
        let left = self.length.saturating_sub(at);
        if length as u64 > left {
            return Err(Error::corruption(&self.path, at, CorruptionKind::Truncated));
        }
        let wanted = length.max(usize::try_from(left).unwrap_or(usize::MAX).min(WINDOW_BYTES));
        self.window.clear();
        self.window.resize(wanted, 0);
        let read = self.file.read_exact_at(&mut self.window, at, IoClass::Client);
        if let Err(error) = read {
            self.window.clear();
            return Err(Error::io("read", &self.path, error));
        }
        self.window_at = at;
        Ok(0..length)
    }

    fn bytes(&self, place: &Range<usize>) -> &[u8] {
        self.window.get(place.clone()).unwrap_or_default()
    }

    fn damage(&self, at: u64) -> Error {
        Error::corruption(&self.path, at, CorruptionKind::Checksum)
    }

    /// Returns the error of a record that is whole, but cannot be replayed.
    fn unreadable(&self, at: u64, why: &str) -> Error {
        let path = sateen_store::base::names::shown_path(&self.path);
        Error::InvalidArgument(format!("{path}: the record at offset {at}: {why}"))
    }
}

/// The calls of the trace. It ends with the first error.
impl Iterator for TraceReader {
    type Item = Result<TraceRecord>;

    fn next(&mut self) -> Option<Result<TraceRecord>> {
        let next = self.next_record().transpose();
        if matches!(next, Some(Err(_))) {
            self.next = self.length;
        }
        next
    }
}
