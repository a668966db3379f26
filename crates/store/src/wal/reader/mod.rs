//! Reads records of WALs and manifests, and tells damage from a torn tail.
//!
//! 1. [`RecordReader::open`] reads and checks the header block (`read_header`).
//! 2. [`RecordReader::next`] fills the buffer (`fill`, `refill`) and verifies the record's header.
//!    Only then does it trust the length, and verify the whole record.
//! 3. A record that does not verify ends the file (`end`). `proves_synced_beyond` searches the rest
//!    of the file for a header which proves that this place was once durable.
//! 4. With such a proof, or one from the caller, bytes that had been safe are damaged: corruption.
//!    Otherwise it is the tail that was never synced, which a crash may leave in any state:
//!    missing, zero, or in pieces of which later ones survived.
//! 5. Records behind the first bad one are dropped, so a prefix remains.
//!
//! `wal_reader` reads the commit groups of a WAL on top of this, and `salvage` reads what is left
//! of a damaged file.
//!
//! What must stay true: memory is bounded by a chunk plus the largest record that verified. Every
//! byte is hostile. A length is trusted only after its header check, and never beyond the end of
//! the file.

mod salvage;
mod wal_reader;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::frame::{
    BadHeader, FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader, FileKind, RECORD_HEADER_BYTES,
    RecordHeader,
};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::vfs::{IoClass, OpenOptions, Vfs, VfsFile};

pub use wal_reader::{WalReader, WalRecord};

/// Bytes that are read at once.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Bytes that are read at once if only the beginning is needed.
const LINK_CHUNK_BYTES: usize = 4 << 10;
const FILE_HEADER_END: u64 = FILE_HEADER_BYTES as u64;

/// Returns true if `bytes` begin a file of this engine that is not of `kind`.
fn begins_another_kind(kind: FileKind, bytes: &[u8]) -> bool {
    let others: [&[u8]; 2] = [b"SATfile\n", b"sateen "];
    let records = [FileKind::Wal, FileKind::Manifest].into_iter().filter(|other| *other != kind);
    others.iter().any(|magic| bytes.starts_with(magic))
        || records.into_iter().any(|other| bytes.starts_with(&other.magic()))
}

/// How a file ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// Behind the last record there is nothing.
    #[default]
    Clean,
    /// Behind the last record are bytes that are no record, and nothing proves that they ever were
    /// one.
    Torn {
        /// Start of these bytes.
        offset: u64,
        /// Number of these bytes.
        bytes: u64,
    },
}

/// A verified record. Its payload is [`RecordReader::payload`].
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub header: RecordHeader,
    pub offset: u64,
}

/// Reads the records of a WAL or manifest.
#[derive(Debug)]
pub struct RecordReader {
    path: PathBuf,
    /// `None` if the file does not exist.
    file: Option<Arc<dyn VfsFile>>,
    class: IoClass,
    /// Length of the file, as far as it is read.
    file_bytes: u64,
    /// `None` if the file has no valid header.
    header: Option<FileHeader>,
    /// Mixed into both checks of every record.
    seed: u64,
    /// Checksum of the last record that was read.
    chain: u64,
    /// Offset of the next record.
    position: u64,
    /// Length of the payload of the record before `position`.
    payload_bytes: usize,
    buffer: Vec<u8>,
    /// Offset in the file of the buffer's first byte.
    buffer_at: u64,
    /// Bytes that are read at once.
    chunk_bytes: usize,
    /// Offset up to which the caller knows that the file was durable.
    synced_floor: u64,
    /// Set once the file has ended.
    tail: Option<Tail>,
}

impl RecordReader {
    /// Opens a file that must have number `number` and belong to the database `db_uid`; with `None`
    /// the header's uid is trusted. A file that is missing, or too short or torn to have a header,
    /// reads as empty unless something proves that it was more.
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

    /// Like [`RecordReader::open`], for a file that is open; `None` if it does not exist.
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

    /// Reads the header block, and prepares the checks of the records.
    fn read_header(&mut self, kind: FileKind, number: u64, db_uid: Option<u64>) -> Result<()> {
        self.fill(FILE_HEADER_BYTES)?;
        let header = FileHeader::decode(kind, self.unread());
        let expected = db_uid.or(header.map(|header| header.db_uid)).unwrap_or(0);
        self.seed = FileHeader { version: FORMAT_VERSION, db_uid: expected, number }.seed(kind);
        self.chain = self.seed;
        let Some(header) = header else {
            // A crash never leaves the whole beginning of another kind of file here, so files were
            // exchanged.
            if begins_another_kind(kind, self.unread()) {
                let kind = CorruptionKind::Malformed("another kind of file");
                return Err(self.corruption(0, kind));
            }
            // Without a header nothing behind it is read, except as a proof that it was there.
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
            return Err(self.corruption(
                0,
                CorruptionKind::Inconsistent("the file belongs to another database"),
            ));
        }
        if header.number != number {
            return Err(self.corruption(
                0,
                CorruptionKind::Inconsistent("the file has another number in its header"),
            ));
        }
        self.header = Some(header);
        self.position = FILE_HEADER_END;
        Ok(())
    }

    /// Returns the next record; `None` at the end, and in all later calls.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Record>> {
        if self.tail.is_some() {
            return Ok(None);
        }
        // 1. At the end of the file.
        if self.position == self.file_bytes {
            self.end(CorruptionKind::Truncated)?;
            return Ok(None);
        }
        // 2. The header alone. Nothing in it is used before its check.
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
                let kind =
                    CorruptionKind::Malformed("a record claims that more was synced than written");
                return Err(self.corruption(self.position, kind));
            }
        };
        // 3. The length is now verified. The record must still fit into the file, which may have
        // been cut.
        let record_bytes = RECORD_HEADER_BYTES as u64 + u64::from(header.length);
        let in_file = record_bytes <= self.file_bytes - self.position;
        let Some(needed) = usize::try_from(record_bytes).ok().filter(|_| in_file) else {
            self.end(CorruptionKind::Truncated)?;
            return Ok(None);
        };
        self.fill(needed)?;
        // 4. The whole record, chained to the one before.
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

    /// Returns the payload of the record that [`RecordReader::next`] just returned.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let end = usize::try_from(self.position - self.buffer_at).unwrap_or(usize::MAX);
        self.buffer.get(end.saturating_sub(self.payload_bytes)..end).unwrap_or_default()
    }

    /// Continues behind the last record that was read, as if the file ended at `end`. What was
    /// there before may have been written since, or may only count from now on.
    pub fn go_on(&mut self, end: u64) {
        self.tail = None;
        self.buffer.clear();
        self.buffer_at = self.position;
        self.file_bytes = end;
    }

    /// Continues behind the last record that was read, up to the current end of the file.
    pub fn grow(&mut self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let end = file.len().map_err(|e| Error::io("read the length of", &self.path, e))?;
        self.go_on(end);
        Ok(())
    }

    /// Returns how the file ended, once [`RecordReader::next`] has returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }

    /// Returns the file's header; `None` if it has none.
    pub fn header(&self) -> Option<FileHeader> {
        self.header
    }

    /// Returns the offset behind the last record that was read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the checksum of the last record that was read.
    pub fn chain(&self) -> u64 {
        self.chain
    }

    /// Returns corruption of this file at `offset`.
    pub fn corruption(&self, offset: u64, kind: CorruptionKind) -> Error {
        Error::corruption(&self.path, offset, kind)
    }

    /// Returns the error for a file of a newer version, as `what` shows.
    pub fn newer(&self, what: String) -> Error {
        Error::IncompatibleDirectory {
            path: self.path.clone(),
            reason: format!("written in a newer format: {what} is not known to this version"),
        }
    }

    /// Returns true if a header from `position` on proves that the file was durable beyond `floor`.
    pub fn proves_synced_beyond(&mut self, floor: u64) -> Result<bool> {
        // A header may start at any byte behind the damage, so every offset is tried.
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
        if self.proves_synced_beyond(offset)? {
            return Err(self.corruption(offset, kind));
        }
        let bytes = self.file_bytes - offset;
        self.tail = Some(if bytes == 0 { Tail::Clean } else { Tail::Torn { offset, bytes } });
        Ok(())
    }

    /// Returns the bytes in the buffer from `position` on.
    #[inline]
    fn unread(&self) -> &[u8] {
        let start = usize::try_from(self.position - self.buffer_at).unwrap_or(usize::MAX);
        self.buffer.get(start..).unwrap_or_default()
    }

    /// Makes [`RecordReader::unread`] at least `needed` bytes long. Returns false if the file ends
    /// before.
    #[inline]
    fn fill(&mut self, needed: usize) -> Result<bool> {
        if self.unread().len() >= needed {
            return Ok(true);
        }
        self.refill(needed)
    }

    /// Moves the unread bytes to the front of the buffer, and reads at least a chunk behind them.
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
            // The file was cut while it was read, and ends here.
            self.file_bytes = read_at + got as u64;
        }
        Ok(self.buffer.len() >= needed)
    }
}
