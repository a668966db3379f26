//! Reads one WAL: its link and its commit groups, on top of the records of [`RecordReader`].
//!
//! 1. [`WalReader::open`] reads the first record, which must be the link.
//! 2. [`WalReader::next`] returns the commit groups in order and skips marks (`advance`, `record`).
//! 3. [`WalRecord::for_each_entry`] decodes the entries of a group.
//!
//! What must stay true: sequence numbers of the groups ascend. Anything else is corruption.

use std::path::Path;
use std::sync::Arc;

use sateen_control::{LogNumber, SeqNo};

use super::{CHUNK_BYTES, FILE_HEADER_END, LINK_CHUNK_BYTES, Record, RecordReader, Tail};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::batch::{BatchEntry, BatchReader};
use crate::files::wal_file_name;
use crate::vfs::{Vfs, VfsFile};
use crate::wal::frame::{FileKind, RECORD_HEADER_BYTES, RecordHeader, RecordKind};
use crate::wal::{WalLink, WalPosition};

/// One commit group of a WAL.
#[derive(Clone, Copy, Debug)]
pub struct WalRecord<'a> {
    /// The WAL that contains it.
    pub log: LogNumber,
    /// Offset in the WAL.
    pub offset: u64,
    /// Sequence number of the first entry.
    pub first_seqno: SeqNo,
    /// Number of entries.
    pub count: u32,
    /// The entries, as a batch encodes them.
    pub payload: &'a [u8],
}

impl WalRecord<'_> {
    /// Returns the offset of its entries in the WAL.
    pub fn payload_offset(&self) -> u64 {
        self.offset + RECORD_HEADER_BYTES as u64
    }

    /// Passes its entries with their sequence numbers to `act`. An error names the WAL in
    /// `directory`.
    pub fn for_each_entry(
        &self,
        directory: &Path,
        mut act: impl FnMut(SeqNo, BatchEntry<'_>),
    ) -> Result<()> {
        let mut reader = BatchReader::new(self.payload);
        let mut seqno = self.first_seqno;
        loop {
            let entry = reader.next().map_err(|error| {
                let kind = CorruptionKind::Malformed(error.as_text());
                Error::corruption(&wal_file_name(directory, self.log), self.offset, kind)
            })?;
            let Some(entry) = entry else { return Ok(()) };
            act(seqno, entry);
            seqno = SeqNo(seqno.0 + 1);
        }
    }
}

/// Reads one WAL.
#[derive(Debug)]
pub struct WalReader {
    pub(super) records: RecordReader,
    pub(super) number: LogNumber,
    pub(super) link: Option<WalLink>,
    /// The record that `advance` moved to.
    pub(super) current: Option<Record>,
    /// Larger than every sequence number that was read.
    pub(super) next_seqno: SeqNo,
}

impl WalReader {
    /// Opens WAL `number` of the database `db_uid` (`None`: any database), and reads its link. The
    /// caller knows that the WAL was durable up to `synced_floor`, or passes 0.
    pub fn open(
        vfs: &dyn Vfs,
        path: &Path,
        number: LogNumber,
        db_uid: Option<u64>,
        synced_floor: u64,
    ) -> Result<WalReader> {
        WalReader::open_in_chunks(vfs, path, number, db_uid, synced_floor, CHUNK_BYTES)
    }

    /// Returns the link of WAL `number`, and the sequence number from which on it and later WALs
    /// have all writes to the WAL. Returns `None` if it has no link. Reads only a little more than
    /// that.
    pub fn look(
        vfs: &dyn Vfs,
        path: &Path,
        number: LogNumber,
        db_uid: u64,
    ) -> Result<Option<(WalLink, SeqNo)>> {
        let mut reader =
            WalReader::open_in_chunks(vfs, path, number, Some(db_uid), 0, LINK_CHUNK_BYTES)?;
        let Some(link) = reader.link else { return Ok(None) };
        // A WAL that began anew without the sequence number.
        if reader.next_seqno == SeqNo(0) {
            let first = reader.next()?.map(|record| record.first_seqno);
            return Ok(first.map(|first| (link, first)));
        }
        Ok(Some((link, reader.next_seqno)))
    }

    /// Opens a WAL that is read in chunks of this size.
    fn open_in_chunks(
        vfs: &dyn Vfs,
        path: &Path,
        number: LogNumber,
        db_uid: Option<u64>,
        synced_floor: u64,
        chunk_bytes: usize,
    ) -> Result<WalReader> {
        let kind = FileKind::Wal;
        let records =
            RecordReader::open(vfs, path, kind, number.0, db_uid, synced_floor, chunk_bytes)?;
        WalReader::of_records(records, number)
    }

    /// Like [`WalReader::open`], for a file that is open.
    pub(in crate::wal) fn of_file(
        file: Arc<dyn VfsFile>,
        path: &Path,
        number: LogNumber,
        db_uid: Option<u64>,
        synced_floor: u64,
    ) -> Result<WalReader> {
        let what = (FileKind::Wal, number.0, db_uid);
        let records = RecordReader::of_file(Some(file), path, what, synced_floor, CHUNK_BYTES)?;
        WalReader::of_records(records, number)
    }

    /// Reads the link, which must be the first record if there is one.
    fn of_records(mut records: RecordReader, number: LogNumber) -> Result<WalReader> {
        let (mut link, mut next_seqno) = (None, SeqNo(0));
        if let Some(first) = records.next()? {
            let malformed =
                |what| records.corruption(first.offset, CorruptionKind::Malformed(what));
            if first.header.kind != RecordKind::Link {
                return Err(malformed("a WAL that does not start with a link"));
            }
            let decoded = WalLink::decode(records.payload());
            link = Some(decoded.ok_or_else(|| malformed("a link of the wrong length"))?);
            next_seqno = first.header.first_seqno;
        }
        Ok(WalReader { records, number, link, current: None, next_seqno })
    }

    /// Returns the next commit group; `None` at the end.
    #[inline]
    pub fn next(&mut self) -> Result<Option<WalRecord<'_>>> {
        Ok(if self.advance()? { self.record() } else { None })
    }

    /// Like `WalReader::advance`, in a WAL that may be written meanwhile. A record that does not
    /// verify is read once more, because it may have been read while it was written.
    pub fn advance_beside_writer(&mut self) -> Result<bool> {
        match self.advance() {
            Err(error) if error.is_corruption() => {
                self.grow()?;
                self.advance()
            }
            moved => moved,
        }
    }

    /// Moves to the next commit group, which [`WalReader::record`] then returns. Returns false at
    /// the end.
    #[inline]
    pub(in crate::wal) fn advance(&mut self) -> Result<bool> {
        self.current = None;
        let record = loop {
            let Some(record) = self.records.next()? else { return Ok(false) };
            match record.header.kind {
                RecordKind::Data => break record,
                RecordKind::Mark => {}
                RecordKind::Link if record.offset == FILE_HEADER_END => {}
                _ => return Err(self.malformed(record, "a record of a kind that no WAL has")),
            }
        };
        let RecordHeader { first_seqno, count, .. } = record.header;
        if first_seqno < self.next_seqno {
            return Err(self.malformed(record, "sequence numbers run backwards"));
        }
        self.next_seqno = SeqNo(first_seqno.0 + u64::from(count));
        self.current = Some(record);
        Ok(true)
    }

    /// Returns the commit group that `WalReader::advance` moved to.
    #[inline]
    pub fn record(&self) -> Option<WalRecord<'_>> {
        self.current.map(|record| WalRecord {
            log: self.number,
            offset: record.offset,
            first_seqno: record.header.first_seqno,
            count: record.header.count,
            payload: self.records.payload(),
        })
    }

    /// Continues behind the last group that was read, as if the WAL ended at `end`.
    pub fn go_on(&mut self, end: u64) {
        self.records.go_on(end);
    }

    /// Continues behind the last group that was read, up to the current end of the WAL.
    pub(in crate::wal) fn grow(&mut self) -> Result<()> {
        self.records.grow()
    }

    /// Returns where the WAL before this one ended; `None` if this one has no record.
    pub fn link(&self) -> Option<WalLink> {
        self.link
    }

    /// Returns how the WAL ended, once [`WalReader::next`] has returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.records.tail()
    }

    /// Returns the place behind what has been read.
    pub fn position(&self) -> WalPosition {
        WalPosition {
            number: self.number,
            end: self.records.position(),
            chain: self.records.chain(),
            next_seqno: self.next_seqno,
        }
    }

    /// Returns true if an unread record of this WAL, or the caller's knowledge, proves that the
    /// file was durable beyond `floor`.
    pub(in crate::wal) fn proves_synced_beyond(&mut self, floor: u64) -> Result<bool> {
        self.records.proves_synced_beyond(floor)
    }

    /// Returns corruption of this WAL at `offset`.
    pub(in crate::wal) fn corruption(&self, offset: u64, kind: CorruptionKind) -> Error {
        self.records.corruption(offset, kind)
    }

    /// Returns corruption of this WAL at a record.
    fn malformed(&self, record: Record, what: &'static str) -> Error {
        self.corruption(record.offset, CorruptionKind::Malformed(what))
    }
}
