//! Reading log files back, and telling rot from a torn tail.
//!
//! A record that does not verify ends the file. Whether that is an error is decided by proof: if
//! any header that verifies further on, or the caller, says that the file was once durable beyond
//! that offset, then bytes that had been safe are damaged: corruption. Otherwise it is the tail
//! that was never synced, which a crash may leave in any state: missing, zero, or in pieces of
//! which later ones survived. Records behind the first bad one are dropped: what is left is a
//! prefix.
//!
//! What must stay true: memory is bounded by a chunk plus the largest record that verified; every
//! byte is hostile; a length is believed only after its header check and never beyond the file.

mod salvage;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::{LogNumber, SeqNo};

use super::frame::{
    BadHeader, FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader, FileKind, RECORD_HEADER_BYTES,
    RecordHeader, RecordKind,
};
use super::{WalLink, WalPosition};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::base::plant::planted;
use crate::batch::{BatchEntry, BatchReader};
use crate::files::wal_file_name;
use crate::vfs::{IoClass, OpenOptions, Vfs, VfsFile};

/// So much of a file is read at once.
pub const CHUNK_BYTES: usize = 1 << 20;
/// So much where only the beginning is looked at.
const LINK_CHUNK_BYTES: usize = 4 << 10;
const FILE_HEADER_END: u64 = FILE_HEADER_BYTES as u64;

/// Whether `bytes` are the beginning of a file of ours that is not of `kind`.
fn begins_another_kind(kind: FileKind, bytes: &[u8]) -> bool {
    let others: [&[u8]; 2] = [b"SATfile\n", b"sateen "];
    let records = [FileKind::Wal, FileKind::Manifest].into_iter().filter(|other| *other != kind);
    others.iter().any(|magic| bytes.starts_with(magic))
        || records.into_iter().any(|other| bytes.starts_with(&other.magic()))
}

/// How a file ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// Behind the last record comes nothing.
    #[default]
    Clean,
    /// Behind the last record come bytes that are none, and nothing proves that they ever were.
    Torn {
        /// Where they start.
        offset: u64,
        /// How many there are.
        bytes: u64,
    },
}

/// A verified record of either kind of file; its payload is [`RecordReader::payload`].
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub header: RecordHeader,
    pub offset: u64,
}

/// Reads the records of a file of either kind.
#[derive(Debug)]
pub struct RecordReader {
    path: PathBuf,
    /// `None` if there is no such file.
    file: Option<Arc<dyn VfsFile>>,
    class: IoClass,
    file_bytes: u64,
    header: Option<FileHeader>,
    seed: u64,
    chain: u64,
    /// Where the next record is.
    position: u64,
    /// Bytes of the payload of the record before `position`.
    payload_bytes: usize,
    buffer: Vec<u8>,
    /// The file offset of the buffer's first byte.
    buffer_at: u64,
    /// So much is read at once.
    chunk_bytes: usize,
    /// The caller knows that the file was durable up to here.
    synced_floor: u64,
    tail: Option<Tail>,
}

impl RecordReader {
    /// Opens a file that should be number `number` of the database `db_uid`; with `None` the header
    /// is believed. A file that is missing, or so short or torn that it has no header, reads as
    /// empty unless something proves that it was more.
    pub fn open(
        vfs: &dyn Vfs,
        path: &Path,
        kind: FileKind,
        number: u64,
        db_uid: Option<u64>,
        synced_floor: u64,
        chunk_bytes: usize,
    ) -> Result<RecordReader> {
        let file = match vfs.open(path, OpenOptions::READ) {
            Ok(file) => Some(file),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::io("open", path, e)),
        };
        RecordReader::of_file(file, path, (kind, number, db_uid), synced_floor, chunk_bytes)
    }

    /// [`RecordReader::open`] of a file that is open; `None` if there is none.
    fn of_file(
        file: Option<Arc<dyn VfsFile>>,
        path: &Path,
        (kind, number, db_uid): (FileKind, u64, Option<u64>),
        synced_floor: u64,
        chunk_bytes: usize,
    ) -> Result<RecordReader> {
        let length = file.as_ref().map_or(Ok(0), |file| file.len());
        let mut reader = RecordReader {
            path: path.to_owned(),
            file,
            class: match kind {
                FileKind::Wal => IoClass::Wal,
                FileKind::Manifest => IoClass::Manifest,
            },
            file_bytes: length.map_err(|e| Error::io("read the length of", path, e))?,
            header: None,
            seed: 0,
            chain: 0,
            position: 0,
            payload_bytes: 0,
            buffer: Vec::new(),
            buffer_at: 0,
            chunk_bytes,
            synced_floor,
            tail: None,
        };
        reader.read_header(kind, number, db_uid)?;
        Ok(reader)
    }

    fn read_header(&mut self, kind: FileKind, number: u64, db_uid: Option<u64>) -> Result<()> {
        self.fill(FILE_HEADER_BYTES)?;
        let header = FileHeader::decode(kind, self.unread());
        let expected = db_uid.or(header.map(|header| header.db_uid)).unwrap_or(0);
        self.seed = FileHeader { version: FORMAT_VERSION, db_uid: expected, number }.seed(kind);
        self.chain = self.seed;
        let Some(header) = header else {
            // A crash leaves no whole beginning of another file here: files were exchanged.
            if begins_another_kind(kind, self.unread()) {
                let kind = CorruptionKind::Malformed("another kind of file");
                return Err(self.corruption(0, kind));
            }
            // Without a header nothing that follows is read, except as a proof that it was there.
            return self.end(CorruptionKind::Checksum);
        };
        if header.version > FORMAT_VERSION {
            return Err(Error::IncompatibleDirectory {
                path: self.path.clone(),
                reason: format!(
                    "written in a newer format: format version {}; this version reads format \
                     version {FORMAT_VERSION}",
                    header.version
                ),
            });
        }
        if header.db_uid != expected {
            return Err(self.corruption(0, CorruptionKind::Inconsistent("of another database")));
        }
        if header.number != number {
            return Err(self.corruption(0, CorruptionKind::Inconsistent("of another file number")));
        }
        self.header = Some(header);
        self.position = FILE_HEADER_END;
        Ok(())
    }

    /// The next record; `None` at the end, and then for ever.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Record>> {
        if self.tail.is_some() {
            return Ok(None);
        }
        if self.position == self.file_bytes {
            self.end(CorruptionKind::Truncated)?;
            return Ok(None);
        }
        self.fill(RECORD_HEADER_BYTES)?;
        let header = match RecordHeader::open(self.unread(), self.seed, self.position) {
            Ok(header) => header,
            Err(BadHeader::Checksum) => {
                self.end(CorruptionKind::Checksum)?;
                return Ok(None);
            }
            Err(BadHeader::UnknownKind(kind)) => {
                return Err(self.newer(format!("the record kind {kind}")));
            }
            Err(BadHeader::SyncedAhead) => {
                let kind = CorruptionKind::Malformed("more is synced than was written");
                return Err(self.corruption(self.position, kind));
            }
        };
        let record_bytes = RECORD_HEADER_BYTES as u64 + u64::from(header.length);
        let trusted = planted("length_trusted");
        let in_file = record_bytes <= self.file_bytes - self.position || trusted;
        let Some(needed) = usize::try_from(record_bytes).ok().filter(|_| in_file) else {
            self.end(CorruptionKind::Truncated)?;
            return Ok(None);
        };
        self.fill(needed)?;
        if trusted {
            let _record = &self.unread()[..needed];
        }
        let record = self.unread().get(..needed).unwrap_or_default();
        let Some(chain) = RecordHeader::verify(record, self.chain) else {
            self.end(CorruptionKind::Checksum)?;
            return Ok(None);
        };
        let offset = self.position;
        self.chain = chain;
        self.position += record_bytes;
        self.payload_bytes = needed - RECORD_HEADER_BYTES;
        Ok(Some(Record { header, offset }))
    }

    /// The payload of the record that [`RecordReader::next`] just returned.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let end = usize::try_from(self.position - self.buffer_at).unwrap_or(usize::MAX);
        self.buffer.get(end.saturating_sub(self.payload_bytes)..end).unwrap_or_default()
    }

    /// Goes on behind the last record that was read, as if the file ended at `end`: what was found
    /// there before may have been written since, or only be looked at from now on.
    pub fn go_on(&mut self, end: u64) {
        self.tail = None;
        self.buffer.clear();
        self.buffer_at = self.position;
        self.file_bytes = end;
    }

    /// Goes on behind the last record that was read, to the end of the file as it is now.
    pub fn grow(&mut self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let end = file.len().map_err(|e| Error::io("read the length of", &self.path, e))?;
        self.go_on(end);
        Ok(())
    }

    /// How the file ended, once [`RecordReader::next`] returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }

    /// The file's header; `None` if it has none.
    pub fn header(&self) -> Option<FileHeader> {
        self.header
    }

    /// The offset behind the last record that was read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The checksum of the last record that was read.
    pub fn chain(&self) -> u64 {
        self.chain
    }

    /// Corruption of this file at `offset`.
    pub fn corruption(&self, offset: u64, kind: CorruptionKind) -> Error {
        Error::corruption(&self.path, offset, kind)
    }

    /// This file was written by a newer version, as `what` shows.
    pub fn newer(&self, what: String) -> Error {
        Error::IncompatibleDirectory {
            path: self.path.clone(),
            reason: format!("written in a newer format: {what} is not known to this version"),
        }
    }

    /// True if a header from `position` on proves that the file was durable beyond `floor`.
    pub fn proves_synced_beyond(&mut self, floor: u64) -> Result<bool> {
        let resume = self.position;
        let mut found = self.synced_floor > floor;
        while !found && self.fill(RECORD_HEADER_BYTES)? {
            let window = self.unread();
            let candidates = window.len() - RECORD_HEADER_BYTES + 1;
            let (seed, start) = (self.seed, self.position);
            found = (start..)
                .zip(window.windows(RECORD_HEADER_BYTES))
                .any(|(offset, bytes)| RecordHeader::proves_synced(bytes, seed, offset, floor));
            self.position += candidates as u64;
        }
        self.position = resume;
        self.buffer.clear();
        self.buffer_at = resume;
        Ok(found)
    }

    /// Ends the file at `position`, as a torn tail or as corruption of `kind`.
    #[cold]
    fn end(&mut self, kind: CorruptionKind) -> Result<()> {
        let offset = self.position;
        let refused = planted("torn_tail_refused") && offset < self.file_bytes;
        if refused || !planted("damaged_log_cut") && self.proves_synced_beyond(offset)? {
            return Err(self.corruption(offset, kind));
        }
        let bytes = self.file_bytes - offset;
        self.tail = Some(if bytes == 0 { Tail::Clean } else { Tail::Torn { offset, bytes } });
        Ok(())
    }

    /// The bytes in the buffer from `position` on.
    #[inline]
    fn unread(&self) -> &[u8] {
        let start = usize::try_from(self.position - self.buffer_at).unwrap_or(usize::MAX);
        self.buffer.get(start..).unwrap_or_default()
    }

    /// Makes [`RecordReader::unread`] at least `needed` bytes long; false if the file ends before.
    #[inline]
    fn fill(&mut self, needed: usize) -> Result<bool> {
        if self.unread().len() >= needed {
            return Ok(true);
        }
        self.refill(needed)
    }

    #[cold]
    fn refill(&mut self, needed: usize) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let consumed = usize::try_from(self.position - self.buffer_at).unwrap_or(usize::MAX);
        self.buffer.drain(..consumed.min(self.buffer.len()));
        self.buffer_at = self.position;
        if needed <= self.chunk_bytes && self.buffer.capacity() > 4 * self.chunk_bytes {
            self.buffer.shrink_to(self.chunk_bytes);
        }
        let have = self.buffer.len();
        let left = usize::try_from(self.file_bytes - self.position).unwrap_or(usize::MAX);
        let wanted = needed.max(self.chunk_bytes).min(left);
        if wanted <= have {
            return Ok(have >= needed);
        }
        self.buffer.resize(wanted, 0);
        let read_at = self.position + have as u64;
        let room = self.buffer.get_mut(have..).unwrap_or_default();
        let read = file.read_all_at(room, read_at, self.class);
        let got = *read.as_ref().unwrap_or(&0);
        self.buffer.truncate(have + got);
        read.map_err(|e| Error::io("read", &self.path, e))?;
        if have + got < wanted {
            // The file was cut while it was read: it ends here.
            self.file_bytes = read_at + got as u64;
        }
        Ok(self.buffer.len() >= needed)
    }
}

/// One commit group of a log.
#[derive(Clone, Copy, Debug)]
pub struct WalRecord<'a> {
    /// The log that it is from.
    pub log: LogNumber,
    /// Where in it.
    pub offset: u64,
    /// The sequence number of its first entry.
    pub first_seqno: SeqNo,
    /// How many entries it has.
    pub count: u32,
    /// The entries, as a batch encodes them.
    pub payload: &'a [u8],
}

impl WalRecord<'_> {
    /// Where its entries begin in the log.
    pub fn payload_offset(&self) -> u64 {
        self.offset + RECORD_HEADER_BYTES as u64
    }

    /// Gives out its entries with their sequence numbers. An error names the log in `directory`.
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

/// Reads one log.
#[derive(Debug)]
pub struct WalReader {
    records: RecordReader,
    number: LogNumber,
    link: Option<WalLink>,
    current: Option<Record>,
    next_seqno: SeqNo,
}

impl WalReader {
    /// Opens log `number` of the database `db_uid` (`None`: whichever the file says) and reads its
    /// link. The caller knows that the log was durable up to `synced_floor` (0 if it does not).
    pub fn open(
        vfs: &dyn Vfs,
        path: &Path,
        number: LogNumber,
        db_uid: Option<u64>,
        synced_floor: u64,
    ) -> Result<WalReader> {
        WalReader::open_in_chunks(vfs, path, number, db_uid, synced_floor, CHUNK_BYTES)
    }

    /// What log `number` says of the one before it, and from where on it and later logs have all
    /// that was logged. `None` if it does not say so. Reads little more than that.
    pub fn look(
        vfs: &dyn Vfs,
        path: &Path,
        number: LogNumber,
        db_uid: u64,
    ) -> Result<Option<(WalLink, SeqNo)>> {
        let mut reader =
            WalReader::open_in_chunks(vfs, path, number, Some(db_uid), 0, LINK_CHUNK_BYTES)?;
        let Some(link) = reader.link else { return Ok(None) };
        // A log that began anew and did not say from where on.
        if reader.next_seqno == SeqNo(0) {
            let first = reader.next()?.map(|record| record.first_seqno);
            return Ok(first.map(|first| (link, first)));
        }
        Ok(Some((link, reader.next_seqno)))
    }

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

    /// [`WalReader::open`] of a file that is open already.
    pub(super) fn of_file(
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

    fn of_records(mut records: RecordReader, number: LogNumber) -> Result<WalReader> {
        let (mut link, mut next_seqno) = (None, SeqNo(0));
        if let Some(first) = records.next()? {
            let malformed =
                |what| records.corruption(first.offset, CorruptionKind::Malformed(what));
            if first.header.kind != RecordKind::Link {
                return Err(malformed("a log that does not start with a link"));
            }
            let decoded = WalLink::decode(records.payload());
            link = Some(decoded.ok_or_else(|| malformed("a link of another size"))?);
            next_seqno = first.header.first_seqno;
        }
        Ok(WalReader { records, number, link, current: None, next_seqno })
    }

    /// The next commit group; `None` at the end.
    #[inline]
    pub fn next(&mut self) -> Result<Option<WalRecord<'_>>> {
        Ok(if self.advance()? { self.record() } else { None })
    }

    /// [`WalReader::advance`] in a log that may be written meanwhile: a record that does not verify
    /// is read once more, since it may have been read while it was written.
    pub fn advance_beside_writer(&mut self) -> Result<bool> {
        match self.advance() {
            Err(error) if error.is_corruption() => {
                self.grow()?;
                self.advance()
            }
            moved => moved,
        }
    }

    /// Moves to the next commit group, which [`WalReader::record`] then is; false at the end.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.current = None;
        let record = loop {
            let Some(record) = self.records.next()? else { return Ok(false) };
            match record.header.kind {
                RecordKind::Data => break record,
                RecordKind::Mark => {}
                RecordKind::Link if record.offset == FILE_HEADER_END => {}
                _ => return Err(self.malformed(record, "a record that is of no log")),
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

    /// The commit group that [`WalReader::advance`] moved to.
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

    /// Goes on behind the last group that was read, as if the log ended at `end`.
    pub fn go_on(&mut self, end: u64) {
        self.records.go_on(end);
    }

    /// Goes on behind the last group that was read, to the end of the log as it is now.
    pub(super) fn grow(&mut self) -> Result<()> {
        self.records.grow()
    }

    /// Where the log before this one ended; `None` if this one has no record.
    pub fn link(&self) -> Option<WalLink> {
        self.link
    }

    /// How the log ended, once [`WalReader::next`] returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.records.tail()
    }

    /// The place behind what has been read.
    pub fn position(&self) -> WalPosition {
        WalPosition {
            number: self.number,
            end: self.records.position(),
            chain: self.records.chain(),
            next_seqno: self.next_seqno,
        }
    }

    /// True if a record of this log that has not been read yet, or the link before it, proves that
    /// the file was durable beyond `floor`.
    pub(super) fn proves_synced_beyond(&mut self, floor: u64) -> Result<bool> {
        self.records.proves_synced_beyond(floor)
    }

    /// Corruption of this log at `offset`.
    pub(super) fn corruption(&self, offset: u64, kind: CorruptionKind) -> Error {
        self.records.corruption(offset, kind)
    }

    fn malformed(&self, record: Record, what: &'static str) -> Error {
        self.corruption(record.offset, CorruptionKind::Malformed(what))
    }
}
