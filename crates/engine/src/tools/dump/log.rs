//! Shows the records and entries of a WAL.

use std::ops::ControlFlow;
use std::path::Path;

use sateen_control::{ColumnFamilyId, LogNumber, ValueKind};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::batch::{BatchItem, BatchReader};
use sateen_store::vfs::Vfs;
use sateen_store::wal::WalReader;
use sateen_store::wal::frame::FileKind;

use super::{FileEnd, file_header, posix, show};

/// The header of a WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// The number of the WAL.
    pub number: u64,
    /// The unique id of its database.
    pub db_uid: u64,
    /// The version of its format.
    pub format_version: u32,
}

/// The first record of a WAL, which names the end of the WAL before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLink {
    /// The number of the previous WAL; 0 if there is none.
    pub number: u64,
    /// The offset at which it ended.
    pub end: u64,
    /// The offset up to which it was known to be durable.
    pub synced: u64,
}

/// One record of a WAL, which has one commit group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its offset in the file.
    pub offset: u64,
    /// The sequence number of its first entry.
    pub first_seqno: u64,
    /// The number of its entries.
    pub entries: u32,
    /// The bytes of its payload.
    pub bytes: u64,
}

/// One entry of the record that was shown last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry<'a> {
    /// Its sequence number.
    pub seqno: u64,
    /// Its column family.
    pub column_family: ColumnFamilyId,
    /// Its kind: what it does to the key.
    pub kind: ValueKind,
    /// The key.
    pub key: &'a [u8],
    /// The value; empty for a deletion.
    pub value: &'a [u8],
}

/// A piece of a WAL.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum LogItem<'a> {
    /// The header, which comes first.
    Header(LogHeader),
    /// The link, which comes second, unless the WAL has no record.
    Link(LogLink),
    /// A record. Its entries follow.
    Record(LogRecord),
    /// An entry.
    Entry(LogEntry<'a>),
    /// Log data of a batch, between its entries.
    LogData(&'a [u8]),
    /// The end, which comes last.
    End(FileEnd),
}

/// Calls `each` with every piece of the WAL at `path`, until it breaks.
///
/// # Errors
/// `Corruption` or `IncompatibleDirectory` of the file, after all pieces before it were shown;
/// `Io`.
pub fn wal(
    path: impl AsRef<Path>,
    each: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    wal_with(&posix(), path.as_ref(), each)
}

/// [`wal`] in the caller's file system.
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
            return Err(malformed(CorruptionKind::Inconsistent(
                "a record has not the number of entries in its header",
            )));
        }
    }
    show!(each, LogItem::End(FileEnd::of(reader.tail(), reader.position().end)));
    Ok(())
}
