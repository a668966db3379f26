//! Traces of I/O: the calls of a database on files and directories, in RocksDB's format
//! (docs/format/trace-blocks-io.md).
//!
//! 1. The file system tells a [`Tap`] of each call that is done.
//! 2. The tap encodes the record and gives it to the recorder.
//! 3. [`IoTraceReader`] decodes records, of Sateen and of RocksDB.
//!
//! What must stay true: writes of the trace's own file are not in the trace, so that it does not
//! feed itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_store::base::coding::{put_slice, take_slice, take_u64};
use sateen_store::base::error::Result;
use sateen_store::vfs::{IoEvent, IoObserver, IoOperation, PosixVfs, Vfs};

use super::FILE_BYTES_MAX_DEFAULT;
use super::format::Frame;
use super::plain::PlainReader;
use super::recorder::{Plan, TraceOf, Tracing};
use crate::trace::TraceKinds;

/// The kind of the records.
const IO: u8 = 12;

// The bits of the set of a record's numbers, which follow in this order.
const HAS_SIZE: u64 = 1;
const HAS_LENGTH: u64 = 1 << 1;
const HAS_OFFSET: u64 = 1 << 2;
/// The bit of the set of a record's texts.
const HAS_REQUEST: u64 = 1;

/// What [`Db::start_io_trace`](crate::Db::start_io_trace) records.
///
/// ```
/// use sateen::IoTraceOptions;
///
/// let options = IoTraceOptions { sampling_frequency: 10, ..IoTraceOptions::default() };
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoTraceOptions {
    /// Largest size of the file in bytes. A call that would exceed it is not recorded, nor any
    /// later one. RocksDB: `max_trace_file_size`.
    pub max_file_bytes: u64,
    /// Records one of so many calls; 0 and 1 record all. RocksDB records all.
    pub sampling_frequency: u64,
    /// Replaces a file of that name. Otherwise one is refused.
    pub replace: bool,
}

impl Default for IoTraceOptions {
    fn default() -> IoTraceOptions {
        let max_file_bytes = FILE_BYTES_MAX_DEFAULT;
        IoTraceOptions { max_file_bytes, sampling_frequency: 1, replace: false }
    }
}

impl From<&IoTraceOptions> for Plan {
    fn from(options: &IoTraceOptions) -> Plan {
        Plan {
            of: TraceOf::Io,
            max_file_bytes: options.max_file_bytes,
            sampling_frequency: options.sampling_frequency,
            kinds: TraceKinds::NONE,
        }
    }
}

/// A call on a file or directory, in a trace of I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoTraceRecord {
    /// When it was done, in nanoseconds since 1970. RocksDB's traces have the monotonic clock.
    pub at_ns: u64,
    /// What was called, by RocksDB's names where it has them: `Read`, `PositionedAppend`, `Sync`.
    pub operation: String,
    /// How long it took, in nanoseconds.
    pub latency_ns: u64,
    /// `OK`, or the error.
    pub status: String,
    /// The name of the file or directory, without its path.
    pub file: String,
    /// Offset in the file.
    pub offset: Option<u64>,
    /// Bytes to be read or written.
    pub bytes: Option<u64>,
    /// Size of the file.
    pub size: Option<u64>,
    /// In Sateen's traces the class of a call that reads or writes: `client`, `wal`, `flush`. In
    /// RocksDB's the id that the application has given a request.
    pub request: Option<String>,
}

/// Records the calls that the file system tells it of.
pub(crate) struct Tap {
    pub(crate) tracing: Arc<Tracing>,
    /// The file of the trace itself.
    pub(crate) own: PathBuf,
}

impl IoObserver for Tap {
    fn done(&self, event: &IoEvent<'_>) {
        let Some(recorder) = self.tracing.recorder() else { return };
        if event.path.as_os_str() != self.own.as_os_str() && recorder.is_sample() {
            recorder.offer(IO, &payload(event));
        }
    }
}

/// Returns RocksDB's name of an operation, or the system's if RocksDB traces none.
fn name_of(operation: IoOperation) -> &'static str {
    match operation {
        IoOperation::Open => "NewRandomAccessFile",
        IoOperation::Create => "NewWritableFile",
        IoOperation::Read => "Read",
        IoOperation::ReadWithOthers => "MultiRead",
        IoOperation::Write => "PositionedAppend",
        IoOperation::Sync => "Sync",
        IoOperation::FinishWriteback => "RangeSync",
        IoOperation::PunchHole => "PunchHole",
        IoOperation::Preallocate => "Allocate",
        IoOperation::Truncate => "Truncate",
        IoOperation::SyncDir => "SyncDirectory",
        IoOperation::Clone => "CloneFile",
        IoOperation::Rename => "RenameFile",
        IoOperation::Remove => "DeleteFile",
        IoOperation::Link => "LinkFile",
        IoOperation::List => "GetChildren",
    }
}

/// Returns the payload of a record.
fn payload(event: &IoEvent<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    let mut numbers = [None; 3];
    numbers[0] = event.size;
    if let Some((offset, length)) = event.place {
        (numbers[1], numbers[2]) = (Some(length), Some(offset));
    }
    let bits = [HAS_SIZE, HAS_LENGTH, HAS_OFFSET];
    let has = numbers.iter().zip(bits).filter(|(number, _)| number.is_some());
    let set = has.fold(0, |set, (_, bit)| set | bit);
    out.extend_from_slice(&set.to_le_bytes());
    put_slice(&mut out, name_of(event.operation).as_bytes());
    out.extend_from_slice(&event.ns.to_le_bytes());
    match event.error {
        None => put_slice(&mut out, b"OK"),
        Some(error) => put_slice(&mut out, format!("IO error: {error}").as_bytes()),
    }
    let name = event.path.file_name().unwrap_or(event.path.as_os_str());
    put_slice(&mut out, name.as_encoded_bytes());
    for number in numbers.into_iter().flatten() {
        out.extend_from_slice(&number.to_le_bytes());
    }
    match event.class {
        None => out.extend_from_slice(&[0; 8]),
        Some(class) => {
            out.extend_from_slice(&HAS_REQUEST.to_le_bytes());
            put_slice(&mut out, class.to_string().as_bytes());
        }
    }
    out
}

/// Decodes a record. Returns why it cannot.
pub(super) fn decode(frame: &Frame<'_>) -> std::result::Result<IoTraceRecord, &'static str> {
    if frame.kind != IO {
        return Err("it is no call of I/O");
    }
    let early = "its payload ends early";
    let rest = &mut { frame.payload };
    let set = take_u64(rest).ok_or(early)?;
    let operation = text(rest).ok_or(early)?;
    let latency_ns = take_u64(rest).ok_or(early)?;
    let (status, file) = (text(rest).ok_or(early)?, text(rest).ok_or(early)?);
    if set >= HAS_OFFSET << 1 {
        return Err("it has a number that is not known");
    }
    let mut number = |bit| match set & bit {
        0 => Ok(None),
        _ => take_u64(rest).map(Some).ok_or(early),
    };
    let (size, bytes, offset) = (number(HAS_SIZE)?, number(HAS_LENGTH)?, number(HAS_OFFSET)?);
    let texts = take_u64(rest).ok_or(early)?;
    let request = match texts {
        0 => None,
        HAS_REQUEST => Some(text(rest).ok_or(early)?),
        _ => return Err("it has a text that is not known"),
    };
    if !rest.is_empty() {
        return Err("its payload is longer than its fields");
    }
    let at_ns = frame.at;
    Ok(IoTraceRecord { at_ns, operation, latency_ns, status, file, offset, bytes, size, request })
}

fn text(rest: &mut &[u8]) -> Option<String> {
    Some(String::from_utf8_lossy(take_slice(rest)?).into_owned())
}

/// Reads a trace of I/O, of Sateen or of RocksDB, as an iterator of its calls. It ends with the
/// first error.
///
/// ```
/// use sateen::{Db, IoTraceOptions, IoTraceReader, Options};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, trace) = (directory.path().join("db"), directory.path().join("trace"));
/// let db = Db::open(path, Options::default())?;
/// db.start_io_trace(&trace, &IoTraceOptions::default())?;
/// db.put("fig", "1")?;
/// db.flush()?;
/// db.end_io_trace()?;
/// let calls: Vec<_> = IoTraceReader::open(&trace)?.collect::<sateen::Result<_>>()?;
/// assert!(calls.iter().any(|call| call.operation == "PositionedAppend"));
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Debug)]
pub struct IoTraceReader(PlainReader);

impl IoTraceReader {
    /// Opens a trace.
    ///
    /// # Errors
    /// `Io`. `InvalidArgument` if the file is no trace of I/O. An iteration also fails with
    /// `Corruption`.
    pub fn open(path: impl AsRef<Path>) -> Result<IoTraceReader> {
        IoTraceReader::open_with(&PosixVfs::new(), path)
    }

    /// Opens a trace in the file system `vfs`.
    ///
    /// # Errors
    /// As [`IoTraceReader::open`].
    pub fn open_with(vfs: &dyn Vfs, path: impl AsRef<Path>) -> Result<IoTraceReader> {
        PlainReader::open(vfs, path.as_ref(), "I/O").map(IoTraceReader)
    }

    /// Returns when the trace began, in microseconds since 1970.
    #[must_use]
    pub fn start_us(&self) -> u64 {
        self.0.start_us()
    }

    /// Returns the number of calls that are missing in the trace, once its end was read; `None`
    /// before, if the trace was not ended, and for one of RocksDB.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        self.0.lost()
    }
}

impl Iterator for IoTraceReader {
    type Item = Result<IoTraceRecord>;

    fn next(&mut self) -> Option<Result<IoTraceRecord>> {
        self.0.next(decode)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use sateen_store::vfs::IoClass;

    use super::*;

    fn event(operation: IoOperation) -> IoEvent<'static> {
        IoEvent {
            operation,
            path: Path::new("/db/000007.sst"),
            class: Some(IoClass::Client),
            place: Some((4096, 100)),
            size: None,
            ns: 9,
            error: None,
        }
    }

    /// The bytes that RocksDB's tracer writes for such calls.
    #[test]
    fn calls_have_the_bytes_of_rocksdb() {
        let read = IoEvent { class: None, ..event(IoOperation::Read) };
        let bytes = b"\x06\0\0\0\0\0\0\0\x04Read\x09\0\0\0\0\0\0\0\x02OK\x0a000007.sst\
                      \x64\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(payload(&read), bytes);
        let cut =
            IoEvent { class: None, place: None, size: Some(5), ..event(IoOperation::Truncate) };
        let bytes = b"\x01\0\0\0\0\0\0\0\x08Truncate\x09\0\0\0\0\0\0\0\x02OK\x0a000007.sst\
                      \x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(payload(&cut), bytes);
        let bytes = payload(&event(IoOperation::Read));
        assert!(bytes.ends_with(b"\x01\0\0\0\0\0\0\0\x06client"));
    }

    #[test]
    fn calls_come_back_and_shorter_ones_are_refused() {
        let error = io::Error::from(io::ErrorKind::StorageFull);
        let failed = IoEvent { error: Some(&error), ..event(IoOperation::Write) };
        let bytes = payload(&failed);
        let record = decode(&Frame { at: 3, kind: IO, payload: &bytes }).unwrap();
        let expected = IoTraceRecord {
            at_ns: 3,
            operation: "PositionedAppend".to_owned(),
            latency_ns: 9,
            status: format!("IO error: {error}"),
            file: "000007.sst".to_owned(),
            offset: Some(4096),
            bytes: Some(100),
            size: None,
            request: Some("client".to_owned()),
        };
        assert_eq!(record, expected);
        for length in 0..bytes.len() {
            let payload = &bytes[..length];
            assert!(decode(&Frame { at: 3, kind: IO, payload }).is_err(), "{length}");
        }
        let longer = [&bytes[..], b"1"].concat();
        assert!(decode(&Frame { at: 3, kind: IO, payload: &longer }).is_err());
        assert!(decode(&Frame { at: 3, kind: 9, payload: &bytes }).is_err());
    }
}
