//! Traces of calls: what clients asked of a database, and when. A trace is a file that
//! [`Replayer`](crate::Replayer) plays into another database, and RocksDB's tools read. Traces of
//! blocks (`blocks`) and of I/O (`io`) have the same recorder and other records.
//!
//! 1. Each call looks whether a trace is recorded ([`Tracing::is_on`]). Otherwise that is all.
//! 2. The call encodes its record, and puts it into a bounded buffer (`Recorder::offer`). Writes do
//!    this as leaders of commit groups, so that their order is that of the commits.
//! 3. A thread of its own writes the buffer to the file (`Recorder::run`).
//! 4. The end writes the last record, waits for the thread, and tells its error.
//!
//! What must stay true: no call waits for the file of a trace, or fails because of it. A record for
//! which the buffer has no room is lost, and counted.

mod blocks;
mod format;
#[cfg(any(test, feature = "test-support"))]
pub(crate) mod fuzz;
pub(crate) mod io;
mod plain;
mod reader;
mod recorder;
mod records;

use std::fmt;

use sateen_control::ColumnFamilyId;
use sateen_store::base::error::{Error, Result};

use crate::batch::WriteBatch;

pub use blocks::{
    BlockCaller, BlockFound, BlockKind, BlockPoint, BlockTraceOptions, BlockTraceReader,
    BlockTraceRecord,
};
pub(crate) use blocks::{PointReadsGuard, TablePlace};
pub use io::{IoTraceOptions, IoTraceReader, IoTraceRecord};
pub use reader::TraceReader;
pub(crate) use recorder::{FileWriter, Plan, Recorder, Tracing};

/// Largest size of a trace by default, as in RocksDB.
const FILE_BYTES_MAX_DEFAULT: u64 = 64 << 30;

/// What [`Db::start_trace`](crate::Db::start_trace) records.
///
/// ```
/// use sateen::{TraceKinds, TraceOptions};
///
/// // Every tenth write.
/// let kinds = TraceKinds { writes: true, ..TraceKinds::NONE };
/// let options = TraceOptions { kinds, sampling_frequency: 10, ..TraceOptions::default() };
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Largest size of the file in bytes. A call that would exceed it is not recorded, nor any
    /// later one. RocksDB: `max_trace_file_size`.
    pub max_file_bytes: u64,
    /// Records one of so many calls of the recorded kinds; 0 and 1 record all. RocksDB:
    /// `sampling_frequency`.
    pub sampling_frequency: u64,
    /// The kinds of calls that are recorded. RocksDB: `filter`, which has the others.
    pub kinds: TraceKinds,
    /// Replaces a file of that name. Otherwise one is refused.
    pub replace: bool,
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions {
            max_file_bytes: FILE_BYTES_MAX_DEFAULT,
            sampling_frequency: 1,
            kinds: TraceKinds::ALL,
            replace: false,
        }
    }
}

/// Kinds of calls in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a set, whose members have names")]
pub struct TraceKinds {
    /// Reads of one key.
    pub gets: bool,
    /// Reads of many keys.
    pub multi_gets: bool,
    /// Writes, each with its whole batch.
    pub writes: bool,
    /// Seeks of cursors and iterators to a key or the one after it.
    pub seeks: bool,
    /// Seeks to a key or the one before it.
    pub seeks_for_prev: bool,
}

impl TraceKinds {
    /// Every kind.
    pub const ALL: TraceKinds = TraceKinds {
        gets: true,
        multi_gets: true,
        writes: true,
        seeks: true,
        seeks_for_prev: true,
    };
    /// No kind.
    pub const NONE: TraceKinds = TraceKinds {
        gets: false,
        multi_gets: false,
        writes: false,
        seeks: false,
        seeks_for_prev: false,
    };

    fn has(self, kind: u8) -> bool {
        match kind {
            format::WRITE => self.writes,
            format::GET => self.gets,
            format::MULTI_GET => self.multi_gets,
            format::SEEK => self.seeks,
            _ => self.seeks_for_prev,
        }
    }
}

/// Where the bytes of a trace go, if not to a file. One thread calls it.
///
/// ```
/// use std::sync::mpsc::{Sender, channel};
///
/// struct Sent(Sender<Vec<u8>>);
///
/// impl sateen::TraceWriter for Sent {
///     fn write(&mut self, bytes: &[u8]) -> sateen::Result<()> {
///         self.0.send(bytes.to_vec()).map_err(|_| sateen::Error::Closed)
///     }
/// }
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// let (sender, receiver) = channel();
/// db.start_trace_to(Box::new(Sent(sender)), &Default::default())?;
/// db.put("fig", "1")?;
/// let summary = db.end_trace()?;
/// let bytes: Vec<u8> = receiver.iter().flatten().collect();
/// assert_eq!((summary.records, summary.bytes), (1, bytes.len() as u64));
/// # Ok::<(), sateen::Error>(())
/// ```
pub trait TraceWriter: Send {
    /// Writes the next bytes. An error ends the trace.
    ///
    /// # Errors
    /// Any that [`Db::end_trace`](crate::Db::end_trace) shall return.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
}

/// What became of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSummary {
    /// Calls in the trace, or reads of blocks.
    pub records: u64,
    /// Those that are missing because the file was written too slowly.
    pub lost: u64,
    /// Bytes of the trace.
    pub bytes: u64,
    /// True if the trace has reached the largest size of its file.
    pub is_full: bool,
}

/// A call of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// When it was made, in microseconds since 1970.
    pub at_us: u64,
    /// The call.
    pub call: TraceCall,
}

/// What was called. Column families have the ids that they had in the traced database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceCall {
    /// A write of a batch. Writes of one entry are batches, too.
    Write(WriteBatch),
    /// A read of one key.
    Get {
        /// Its column family.
        family: ColumnFamilyId,
        /// The key.
        key: Vec<u8>,
    },
    /// A read of many keys, each with its column family.
    MultiGet(Vec<(ColumnFamilyId, Vec<u8>)>),
    /// A seek of a cursor or iterator.
    Seek(TraceSeek),
}

/// A seek of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSeek {
    /// The column family.
    pub family: ColumnFamilyId,
    /// The key that was sought.
    pub key: Vec<u8>,
    /// The iterator's inclusive lower bound.
    pub lower: Option<Vec<u8>>,
    /// The iterator's exclusive upper bound.
    pub upper: Option<Vec<u8>>,
    /// True if the key or the one before it was sought: `seek_for_prev`.
    pub backwards: bool,
}

impl fmt::Debug for dyn TraceWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceWriter")
    }
}

fn no_trace(path: &std::path::Path, what: &str, why: &str) -> Error {
    let path = sateen_store::base::names::shown_path(path);
    Error::InvalidArgument(format!("{path} is not a trace of {what}: {why}"))
}
