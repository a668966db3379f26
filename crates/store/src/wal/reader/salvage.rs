//! Reads what can be read of a damaged WAL or manifest.
//!
//! 1. `open_damaged` opens the file without trusting its header.
//! 2. [`RecordReader::next`] reads records until one does not verify.
//! 3. [`RecordReader::skip_damage`] searches for a header that verifies, from the bad record on. If
//!    its record verifies behind the checksum that the bad record stored, reading continues with
//!    it. Otherwise that record is skipped, and supplies the checksum for the one behind it.
//!
//! What must stay true: a record is returned only if it verifies. It must follow the record before
//! it or, if that is damaged, the checksum that it stored.

use std::path::Path;

use sateen_control::{LogNumber, SeqNo};

use super::{CHUNK_BYTES, FILE_HEADER_END, RecordReader, WalReader};
use crate::base::error::{Error, Result};
use crate::vfs::{IoClass, OpenOptions, Vfs};
use crate::wal::frame::{FORMAT_VERSION, FileHeader, FileKind, RECORD_HEADER_BYTES, RecordHeader};

impl RecordReader {
    /// Opens a file whose header may be damaged. The caller knows what the header must contain.
    pub fn open_damaged(
        vfs: &dyn Vfs,
        path: &Path,
        kind: FileKind,
        number: u64,
        db_uid: u64,
    ) -> Result<RecordReader> {
        let file = vfs.open(path, OpenOptions::READ).map_err(|e| Error::io("open", path, e))?;
        let file_bytes = file.len().map_err(|e| Error::io("read the length of", path, e))?;
        let header = FileHeader { version: FORMAT_VERSION, db_uid, number };
        let seed = header.seed(kind);
        Ok(RecordReader {
            path: path.to_owned(),
            file: Some(file),
            class: IoClass::Wal,
            file_bytes,
            header: Some(header),
            seed,
            chain: seed,
            position: FILE_HEADER_END.min(file_bytes),
            payload_bytes: 0,
            buffer: Vec::new(),
            buffer_at: FILE_HEADER_END.min(file_bytes),
            chunk_bytes: CHUNK_BYTES,
            synced_floor: 0,
            tail: None,
        })
    }

    /// Continues behind damage, after [`RecordReader::next`] has reported it. Continues with the
    /// first record that can be found. If too little is known of what stands before that record to
    /// verify it, continues with the one behind it. Returns false if there is none.
    pub fn skip_damage(&mut self) -> Result<bool> {
        self.tail = None;
        self.fill(RECORD_HEADER_BYTES)?;
        let chain = self.unread().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        while self.fill(RECORD_HEADER_BYTES)? {
            let (seed, start) = (self.seed, self.position);
            let found = (start..).zip(self.unread().windows(RECORD_HEADER_BYTES)).find_map(
                |(offset, bytes)| {
                    let header = RecordHeader::open(bytes, seed, offset).ok()?;
                    let end = offset + RECORD_HEADER_BYTES as u64 + u64::from(header.length);
                    (end <= self.file_bytes).then_some((offset, end))
                },
            );
            let Some((offset, end)) = found else {
                self.position += (self.unread().len() - RECORD_HEADER_BYTES + 1) as u64;
                continue;
            };
            self.position = offset;
            let needed = usize::try_from(end - offset).unwrap_or(usize::MAX);
            self.fill(needed)?;
            let record = self.unread().get(..needed).unwrap_or_default();
            if offset > start && RecordHeader::verify(record, chain).is_some() {
                self.chain = chain;
                return Ok(true);
            }
            // This record cannot be verified. The one behind it can: with the stored checksum if
            // that is intact, or with the computed one if only the stored one is damaged.
            let stored = record.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let computed = RecordHeader::chain_behind(record, self.chain);
            self.position = end;
            self.chain = if self.verifies_behind(computed)? { computed } else { stored };
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns true if the record at `position` verifies behind `chain`.
    fn verifies_behind(&mut self, chain: u64) -> Result<bool> {
        if !self.fill(RECORD_HEADER_BYTES)? {
            return Ok(false);
        }
        let Ok(header) = RecordHeader::open(self.unread(), self.seed, self.position) else {
            return Ok(false);
        };
        let bytes = RECORD_HEADER_BYTES as u64 + u64::from(header.length);
        let Some(needed) = usize::try_from(bytes)
            .ok()
            .filter(|_| bytes <= self.file_bytes.saturating_sub(self.position))
        else {
            return Ok(false);
        };
        self.fill(needed)?;
        let record = self.unread().get(..needed).unwrap_or_default();
        Ok(RecordHeader::verify(record, chain).is_some())
    }
}

impl WalReader {
    /// Opens WAL `number`, which may be damaged anywhere, to read what is left.
    pub fn open_damaged(
        vfs: &dyn Vfs,
        path: &Path,
        number: LogNumber,
        db_uid: u64,
    ) -> Result<WalReader> {
        let kind = FileKind::Wal;
        let records = RecordReader::open_damaged(vfs, path, kind, number.0, db_uid)?;
        Ok(WalReader { records, number, link: None, current: None, next_seqno: SeqNo(0) })
    }

    /// Continues behind damage ([`RecordReader::skip_damage`]).
    pub fn skip_damage(&mut self) -> Result<bool> {
        self.records.skip_damage()
    }
}
