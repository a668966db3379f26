//! Writing log files. One record is one `write_at` from one reused buffer: copied once, hashed
//! once.
//!
//! What must stay true:
//! - The record at an offset is written once. After a failure nothing more is written (F4).
//! - A `written` offset is published only after the write returned.
//! - Nothing here waits for the disk but the write itself; syncing is [`WalSync`]'s.

use std::path::Path;
use std::sync::Arc;

use sateen_control::{LogNumber, SeqNo};

use super::frame::{
    FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader, FileKind, RECORD_HEADER_BYTES, RecordHeader,
    RecordKind,
};
use super::sync::WalSync;
use super::{LINK_BYTES, WalPosition, space};
use crate::base::error::{Error, Result};
use crate::base::plant::planted;
use crate::vfs::{IoClass, OpenOptions, Vfs, VfsFile};

/// A buffer that one huge group made larger than this is given back after the write.
const BUFFER_KEPT_BYTES_MAX: usize = 4 << 20;

/// Appends records to a file of either kind. Records are staged in a buffer, then written together.
#[derive(Debug)]
pub struct RecordWriter {
    file: Arc<dyn VfsFile>,
    sync: Arc<WalSync>,
    class: IoClass,
    seed: u64,
    /// Where the buffer's first byte goes.
    offset: u64,
    chain: u64,
    buffer: Vec<u8>,
}

impl RecordWriter {
    /// Creates the file, or opens one that was made and is empty, as `options` say, and writes its
    /// header block. Syncing the directory is the caller's, and so is the file if this fails: its
    /// number is used up.
    pub fn open(
        vfs: &dyn Vfs,
        path: &Path,
        options: OpenOptions,
        kind: FileKind,
        header: FileHeader,
        preallocate_bytes: u64,
    ) -> Result<RecordWriter> {
        let what = if options.create_new { "create" } else { "open" };
        let file = vfs.open(path, options).map_err(|e| Error::io(what, path, e))?;
        let class = match kind {
            FileKind::Wal => IoClass::Wal,
            FileKind::Manifest => IoClass::Manifest,
        };
        let seed = header.seed(kind);
        let sync = Arc::new(WalSync::new(path, file.clone(), class));
        space::reserve(vfs, &sync, preallocate_bytes);
        let buffer = header.encode(kind).to_vec();
        let mut writer = RecordWriter { file, sync, class, seed, offset: 0, chain: seed, buffer };
        writer.write_staged()?;
        Ok(writer)
    }

    /// Adds a record to what the next [`RecordWriter::write_staged`] writes. A payload that is too
    /// long is refused and leaves everything as it was.
    #[inline]
    pub fn stage<'a>(
        &mut self,
        kind: RecordKind,
        first_seqno: SeqNo,
        count: u32,
        payload: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<()> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        for part in payload {
            self.buffer.extend_from_slice(part);
        }
        let bytes = self.buffer.len() - start - RECORD_HEADER_BYTES;
        let Ok(length) = u32::try_from(bytes) else {
            self.buffer.truncate(start);
            return Err(Error::InvalidArgument(format!(
                "a commit group of {bytes} bytes exceeds the limit of {} bytes",
                u32::MAX
            )));
        };
        let synced_offset = self.sync.synced_offset();
        let header = RecordHeader { kind, length, synced_offset, first_seqno, count };
        let offset = self.offset + start as u64;
        self.chain = header.seal(&mut self.buffer[start..], self.seed, offset, self.chain);
        Ok(())
    }

    /// Writes what is staged with one call and returns the offset behind it.
    #[inline]
    pub fn write_staged(&mut self) -> Result<u64> {
        self.sync.check_alive()?;
        if let Err(e) = self.file.write_at(&self.buffer, self.offset, self.class) {
            if planted("gap_after_failed_append") && self.class == IoClass::Manifest {
                self.offset = self.end();
                self.buffer.clear();
                return Err(Error::io("write", Path::new("gap"), e));
            }
            return Err(self.sync.kill("write", e));
        }
        self.offset += self.buffer.len() as u64;
        self.sync.set_written(self.offset);
        if self.buffer.capacity() > BUFFER_KEPT_BYTES_MAX {
            self.buffer = Vec::new();
        }
        self.buffer.clear();
        Ok(self.offset)
    }

    pub fn sync_handle(&self) -> &Arc<WalSync> {
        &self.sync
    }

    /// Where the next record goes.
    #[inline]
    pub fn end(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    pub fn chain(&self) -> u64 {
        self.chain
    }

    fn start_writeback(&self, offset: u64, length: u64) -> Result<()> {
        let started = self.file.start_writeback(offset, length);
        started.map_err(|e| self.sync.kill("start write-back of", e))
    }
}

/// The log that is being written.
#[derive(Debug)]
pub struct WalWriter {
    records: RecordWriter,
    number: LogNumber,
    /// Start write-back after this many bytes; 0 leaves it to the kernel.
    bytes_per_sync: u64,
    /// Everything below this was given to write-back.
    written_back: u64,
    pub(super) next_seqno: SeqNo,
    /// Where the log before this one ended; once this log has records it is of no more use.
    predecessor: Option<WalPosition>,
    linked: bool,
}

/// A log that takes no more records, and where it ended: what its successor must follow.
#[derive(Clone, Debug)]
pub struct WalEnd {
    /// Where the last log with records ended; `None` if no log had any.
    pub position: Option<WalPosition>,
    /// Makes it durable; `None` if it is.
    pub sync: Option<Arc<WalSync>>,
    /// The logs up to here have all writes that are older and went to a log.
    pub next_seqno: SeqNo,
}

impl WalWriter {
    /// Creates the log and writes its header block. No record of it may be acknowledged before the
    /// directory is synced, which is the caller's, as is [`WalWriter::follow`].
    pub fn create(
        vfs: &dyn Vfs,
        path: &Path,
        number: LogNumber,
        db_uid: u64,
        preallocate_bytes: u64,
    ) -> Result<WalWriter> {
        WalWriter::open(vfs, path, OpenOptions::CREATE, number, db_uid, preallocate_bytes)
    }

    /// The same with a file that was made in advance, empty, and whose name is durable.
    pub fn begin(
        vfs: &dyn Vfs,
        path: &Path,
        number: LogNumber,
        db_uid: u64,
        preallocate_bytes: u64,
    ) -> Result<WalWriter> {
        WalWriter::open(vfs, path, OpenOptions::WRITE, number, db_uid, preallocate_bytes)
    }

    fn open(
        vfs: &dyn Vfs,
        path: &Path,
        options: OpenOptions,
        number: LogNumber,
        db_uid: u64,
        preallocate_bytes: u64,
    ) -> Result<WalWriter> {
        let header = FileHeader { version: FORMAT_VERSION, db_uid, number: number.0 };
        let kind = FileKind::Wal;
        let records = RecordWriter::open(vfs, path, options, kind, header, preallocate_bytes)?;
        Ok(WalWriter {
            records,
            number,
            bytes_per_sync: 0,
            written_back: 0,
            next_seqno: SeqNo(0),
            predecessor: None,
            linked: false,
        })
    }

    /// Starts write-back each time this many bytes have been written; 0 never.
    pub fn set_bytes_per_sync(&mut self, bytes: u64) {
        self.bytes_per_sync = bytes;
    }

    /// Makes this log the successor of `previous`, before its first record. Does no I/O: the link
    /// is written with the first group, or by [`WalWriter::write_link`]. After a recovery that
    /// found no record `previous` has no position: older logs may lie there, but nothing of them
    /// counts.
    pub fn follow(&mut self, previous: WalEnd) -> Result<()> {
        self.link(Some(previous.position.unwrap_or(WalPosition::NOTHING)), previous)
    }

    /// Makes this log the first, before its first record, with writes from `next_seqno` on: no
    /// older log is needed any more, everything in them is in tables, durably, and so is the edit
    /// that says so.
    pub fn begin_anew(&mut self, next_seqno: SeqNo) -> Result<()> {
        self.link(None, WalEnd { position: None, sync: None, next_seqno })
    }

    fn link(&mut self, place: Option<WalPosition>, previous: WalEnd) -> Result<()> {
        assert!(!self.linked, "a log is linked once, before its first record");
        let WalEnd { position, sync, next_seqno } = previous;
        let synced = match (&sync, position) {
            (Some(sync), _) => sync.synced_offset(),
            (None, position) => position.map_or(0, |position| position.end),
        };
        let place = place.unwrap_or(WalPosition::ANEW);
        let mut link = Vec::with_capacity(LINK_BYTES);
        place.encode(synced, &mut link);
        self.next_seqno = next_seqno;
        self.records.stage(RecordKind::Link, self.next_seqno, 0, [link.as_slice()])?;
        self.records.sync_handle().set_predecessor(sync, next_seqno);
        self.predecessor = position;
        self.linked = true;
        Ok(())
    }

    /// Writes the link before there is a group: a reader of the logs finds the way back.
    pub fn write_link(&mut self) -> Result<()> {
        assert!(self.linked, "a log follows another, or none, before its first record");
        self.records.write_staged().map(drop)
    }

    /// Writes one commit group: `count` entries whose sequence numbers start at `first_seqno`,
    /// encoded as the records of the batches in `payload`, one behind the other. Returns the offset
    /// up to which the log must be synced to make it durable. After an error of the file the log is
    /// dead.
    #[inline]
    pub fn append<'a>(
        &mut self,
        first_seqno: SeqNo,
        count: u32,
        payload: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<u64> {
        assert!(self.linked, "a log follows another, or none, before its first record");
        // First: of a group that failed the numbers are given out again.
        self.records.sync_handle().check_alive()?;
        assert!(first_seqno >= self.next_seqno, "groups are appended in the commit order");
        self.records.stage(RecordKind::Data, first_seqno, count, payload)?;
        self.next_seqno = SeqNo(first_seqno.0 + u64::from(count));
        let end = self.records.write_staged()?;
        if self.bytes_per_sync > 0 && end - self.written_back >= self.bytes_per_sync {
            self.records.start_writeback(self.written_back, end - self.written_back)?;
            self.written_back = end;
        }
        Ok(end)
    }

    /// Writes an empty record that says how much of this log is synced. After it, damage of any
    /// record below that is told from a torn tail: for a close.
    pub fn append_mark(&mut self) -> Result<u64> {
        let sync = self.records.sync_handle();
        sync.check_alive()?;
        if self.is_empty() || sync.synced_offset() <= FILE_HEADER_BYTES as u64 {
            return Ok(sync.written());
        }
        self.records.stage(RecordKind::Mark, self.next_seqno, 0, [])?;
        self.records.write_staged()
    }

    /// Gives back the space beyond the last record. The caller may be the only one to append.
    pub fn trim(&self) {
        space::trim(&self.sync_handle());
    }

    /// Gives up the right to append; the result is what the next log follows.
    pub fn finish(self) -> WalEnd {
        if self.is_empty() {
            // Nobody will ever look into this log: its successor follows its predecessor.
            let sync = self.records.sync_handle().predecessor();
            let next_seqno = self.next_seqno;
            return WalEnd { position: self.predecessor, sync, next_seqno };
        }
        let position = WalPosition {
            number: self.number,
            end: self.records.end(),
            chain: self.records.chain(),
            next_seqno: self.next_seqno,
        };
        let sync = Some(self.sync_handle());
        WalEnd { position: Some(position), sync, next_seqno: self.next_seqno }
    }

    /// Makes the log durable while others append; see [`WalSync::sync`].
    pub fn sync_handle(&self) -> Arc<WalSync> {
        self.records.sync_handle().clone()
    }

    /// The log's number.
    pub fn number(&self) -> LogNumber {
        self.number
    }

    /// Bytes written, header included.
    pub fn size_bytes(&self) -> u64 {
        self.records.sync_handle().written()
    }

    /// True if no record was written.
    pub fn is_empty(&self) -> bool {
        self.size_bytes() <= FILE_HEADER_BYTES as u64
    }
}
