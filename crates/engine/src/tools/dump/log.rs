//! What a write-ahead log says.

use std::ops::ControlFlow;
use std::path::Path;

use sateen_control::{ColumnFamilyId, LogNumber, ValueKind};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::batch::{BatchItem, BatchReader};
use sateen_store::vfs::Vfs;
use sateen_store::wal::WalReader;
use sateen_store::wal::frame::FileKind;

use super::{FileEnd, file_header, posix, show};

/// What the header of a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// The number of the log.
    pub number: u64,
    /// What tells its database from all others.
    pub db_uid: u64,
    /// The version of its format.
    pub format_version: u32,
}

/// What a log says of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLink {
    /// Its number; 0 if there is none.
    pub number: u64,
    /// Where it ended.
    pub end: u64,
    /// How much of it was known to be durable.
    pub synced: u64,
}

/// One commit group of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Where in the file it starts.
    pub offset: u64,
    /// The sequence number of its first entry.
    pub first_seqno: u64,
    /// How many entries follow.
    pub entries: u32,
    /// Bytes of its payload.
    pub bytes: u64,
}

/// One entry of the record before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry<'a> {
    /// Its sequence number.
    pub seqno: u64,
    /// The column family that it is for.
    pub column_family: ColumnFamilyId,
    /// What it does.
    pub kind: ValueKind,
    /// The key.
    pub key: &'a [u8],
    /// The value; empty for a deletion.
    pub value: &'a [u8],
}

/// A piece of a log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum LogItem<'a> {
    /// First of all.
    Header(LogHeader),
    /// Second, unless the log has no record.
    Link(LogLink),
    /// A record; its entries follow.
    Record(LogRecord),
    /// An entry.
    Entry(LogEntry<'a>),
    /// Log data, between the entries of its batch.
    LogData(&'a [u8]),
    /// Last of all.
    End(FileEnd),
}

/// Shows what the log at `path` says to `each`, until that breaks.
///
/// # Errors
/// `Corruption` or `IncompatibleDirectory` of the file, after what stands before it was shown;
/// `Io`.
pub fn wal(
    path: impl AsRef<Path>,
    each: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    wal_with(&posix(), path.as_ref(), each)
}

/// [`wal`] in a file system of the caller's.
///
/// # Errors
/// As [`wal`].
pub fn wal_with(
    vfs: &dyn Vfs,
    path: &Path,
    each: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let header = file_header(vfs, path, FileKind::Wal)?;
    let (number, db_uid, format_version) = (header.number, header.db_uid, header.version);
    show!(each, LogItem::Header(LogHeader { number, db_uid, format_version }));
    let mut reader = WalReader::open(vfs, path, LogNumber(number), Some(db_uid), 0)?;
    if let Some(link) = reader.link() {
        let link = LogLink { number: link.number.0, end: link.end, synced: link.synced };
        show!(each, LogItem::Link(link));
    }
    while reader.advance_beside_writer()? {
        let Some(record) = reader.record() else { break };
        let first_seqno = record.first_seqno.0;
        show!(
            each,
            LogItem::Record(LogRecord {
                offset: record.offset,
                first_seqno,
                entries: record.count,
                bytes: record.payload.len() as u64,
            })
        );
        let malformed = |what| Error::corruption(path, record.offset, what);
        let mut entries = BatchReader::new(record.payload);
        let mut seqno = first_seqno;
        loop {
            let item = entries
                .next_item()
                .map_err(|error| malformed(CorruptionKind::Malformed(error.as_text())))?;
            let entry = match item {
                None => break,
                Some(BatchItem::Write(entry)) => entry,
                Some(BatchItem::LogData(data)) => {
                    show!(each, LogItem::LogData(data));
                    continue;
                }
            };
            let sateen_store::batch::BatchEntry { column_family, kind, key, value } = entry;
            show!(each, LogItem::Entry(LogEntry { seqno, column_family, kind, key, value }));
            seqno += 1;
        }
        if seqno - first_seqno != u64::from(record.count) {
            return Err(malformed(CorruptionKind::Inconsistent("another number of entries")));
        }
    }
    show!(each, LogItem::End(FileEnd::of(reader.tail(), reader.position().end)));
    Ok(())
}
