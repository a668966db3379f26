//! Writes WALs and the records of manifests. One record is one `write_at` from one reused buffer:
//! copied once, hashed once.
//!
//! 1. [`WalWriter::create`] or [`WalWriter::begin`] opens the file, and [`RecordWriter::open`]
//!    writes its header block.
//! 2. [`WalWriter::follow`] or [`WalWriter::begin_anew`] stages the link to the WAL before, without
//!    I/O.
//! 3. [`WalWriter::append`] stages a commit group ([`RecordWriter::stage`]) and writes everything
//!    that is staged ([`RecordWriter::write_staged`]).
//! 4. After each `bytes_per_sync` bytes it starts writeback.
//! 5. [`WalWriter::append_mark`] records at a close how much is synced.
//! 6. [`WalWriter::finish`] returns the [`WalEnd`] that the next WAL follows.
//!
//! What must stay true:
//!
//! - The record at an offset is written once. After a failure nothing more is written (format rule
//!   F4).
//! - A `written` offset is published only after the write has returned.
//! - Nothing here waits for the disk except the write itself. [`WalSync`] does the syncs.

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
use crate::vfs::{IoClass, OpenOptions, Vfs, VfsFile};

/// Largest buffer that is kept after a write. A huge group may have made it larger.
const BUFFER_KEPT_BYTES_MAX: usize = 4 << 20;
/// More than a record takes besides its entries' keys and values.
const RECORD_ROOM_BYTES: u64 = 256;

/// Appends records to a WAL or manifest. Records are staged in a buffer, then written together.
#[derive(Debug)]
pub struct RecordWriter {
    file: Arc<dyn VfsFile>,
    sync: Arc<WalSync>,
    class: IoClass,
    /// Mixed into both checks of every record.
    seed: u64,
    /// Offset of the buffer's first byte in the file.
    offset: u64,
    /// Checksum of the last staged record.
    chain: u64,
    /// Records that are staged and not written.
    buffer: Vec<u8>,
}

impl RecordWriter {
    /// Creates the file, or opens an empty spare one, as `options` say, and writes its header
    /// block. The caller syncs the directory. If this fails, the caller also removes the file,
    /// whose number is used up.
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
    /// long is refused, and nothing changes.
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

    /// Writes everything that is staged with one call, and returns the offset behind it.
    #[inline]
    pub fn write_staged(&mut self) -> Result<u64> {
        self.sync.check_alive()?;
        if let Err(e) = self.file.write_at(&self.buffer, self.offset, self.class) {
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

    /// Returns the state that is shared with the threads that sync.
    pub fn sync_handle(&self) -> &Arc<WalSync> {
        &self.sync
    }

    /// Returns the offset of the next record.
    #[inline]
    pub fn end(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    /// Returns the checksum of the last record.
    pub fn chain(&self) -> u64 {
        self.chain
    }

    /// Starts writeback of a range. A failure makes the file dead, because it says that bytes
    /// cannot be stored.
    fn start_writeback(&self, offset: u64, length: u64) -> Result<()> {
        let started = self.file.start_writeback(offset, length);
        started.map_err(|e| self.sync.kill("start write-back of", e))
    }
}

/// The WAL that is being written.
#[derive(Debug)]
pub struct WalWriter {
    records: RecordWriter,
    number: LogNumber,
    /// Number of bytes after which writeback is started; 0 leaves it to the kernel.
    bytes_per_sync: u64,
    /// Offset below which writeback was started.
    written_back: u64,
    /// Larger than every sequence number in this WAL and those before it.
    pub(super) next_seqno: SeqNo,
    /// Where the WAL before this one ended. Not needed once this one has records.
    predecessor: Option<WalPosition>,
    /// Whether the link is staged or written.
    linked: bool,
}

/// A WAL that takes no more records, and where it ended: what its successor must follow.
#[derive(Clone, Debug)]
pub struct WalEnd {
    /// Where the last WAL with records ended; `None` if no WAL had any.
    pub position: Option<WalPosition>,
    /// Makes it durable; `None` if it is.
    pub sync: Option<Arc<WalSync>>,
    /// All older writes to the WAL are in the WALs up to here.
    pub next_seqno: SeqNo,
}

impl WalWriter {
    /// Creates the WAL and writes its header block. The caller calls [`WalWriter::follow`], and
    /// syncs the directory before any record is acknowledged.
    pub fn create(
        vfs: &dyn Vfs,
        path: &Path,
        number: LogNumber,
        db_uid: u64,
        preallocate_bytes: u64,
    ) -> Result<WalWriter> {
        WalWriter::open(vfs, path, OpenOptions::CREATE, number, db_uid, preallocate_bytes)
    }

    /// Like `create`, with an empty spare file whose name is durable.
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

    /// Sets the number of bytes after which writeback is started; 0 means never.
    pub fn set_bytes_per_sync(&mut self, bytes: u64) {
        self.bytes_per_sync = bytes;
    }

    /// Makes this WAL the successor of `previous`, before its first record. It does no I/O: the
    /// link is written with the first group, or by [`WalWriter::write_link`]. After a recovery that
    /// found no record, `previous` has no position: older WALs may exist, but nothing in them
    /// counts.
    pub fn follow(&mut self, previous: WalEnd) -> Result<()> {
        self.link(Some(previous.position.unwrap_or(WalPosition::NOTHING)), previous)
    }

    /// Makes this WAL the first, before its first record, with writes from `next_seqno` on. No
    /// older WAL is needed: everything in them is durable in tables, and so is the edit that says
    /// so.
    pub fn begin_anew(&mut self, next_seqno: SeqNo) -> Result<()> {
        self.link(None, WalEnd { position: None, sync: None, next_seqno })
    }

    /// Stages the link to `place`, and remembers what must be durable before this WAL.
    fn link(&mut self, place: Option<WalPosition>, previous: WalEnd) -> Result<()> {
        assert!(!self.linked, "a WAL is linked once, before its first record");
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

    /// Writes the link before there is a group, so that a reader of the WALs finds the way back.
    pub fn write_link(&mut self) -> Result<()> {
        assert!(self.linked, "link a WAL to another one, or to none, before its first record");
        self.records.write_staged().map(drop)
    }

    /// Writes one commit group: `count` entries with sequence numbers from `first_seqno` on, as
    /// encoded by the batches in `payload`. Returns the offset up to which the WAL must be synced
    /// to make the group durable. After an error of the file the WAL is dead.
    #[inline]
    pub fn append<'a>(
        &mut self,
        first_seqno: SeqNo,
        count: u32,
        payload: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<u64> {
        assert!(self.linked, "link a WAL to another one, or to none, before its first record");
        // Checked first, because the sequence numbers of a failed group are given out again.
        self.records.sync_handle().check_alive()?;
        assert!(first_seqno >= self.next_seqno, "groups are appended in commit order");
        self.records.stage(RecordKind::Data, first_seqno, count, payload)?;
        self.next_seqno = SeqNo(first_seqno.0 + u64::from(count));
        let end = self.records.write_staged()?;
        if self.bytes_per_sync > 0 && end - self.written_back >= self.bytes_per_sync {
            self.records.start_writeback(self.written_back, end - self.written_back)?;
            self.written_back = end;
        }
        Ok(end)
    }

    /// Returns true if an append of so many bytes would start write-back.
    pub fn starts_writeback_with(&self, bytes: u64) -> bool {
        let end = self.size_bytes().saturating_add(bytes).saturating_add(RECORD_ROOM_BYTES);
        self.bytes_per_sync > 0 && end.saturating_sub(self.written_back) >= self.bytes_per_sync
    }

    /// Writes an empty record that says how much of this WAL is synced, at a close. With this
    /// record, a reader can tell damage below that offset from a torn tail.
    pub fn append_mark(&mut self) -> Result<u64> {
        let sync = self.records.sync_handle();
        sync.check_alive()?;
        if self.is_empty() || sync.synced_offset() <= FILE_HEADER_BYTES as u64 {
            return Ok(sync.written());
        }
        self.records.stage(RecordKind::Mark, self.next_seqno, 0, [])?;
        self.records.write_staged()
    }

    /// Frees the space beyond the last record. No other thread may append.
    pub fn trim(&self) {
        space::trim(&self.sync_handle());
    }

    /// Ends the writer. Returns what the next WAL follows.
    pub fn finish(self) -> WalEnd {
        if self.is_empty() {
            // No reader will look into this WAL. Its successor follows its predecessor.
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

    /// Returns the handle that makes the WAL durable while others append ([`WalSync::sync`]).
    pub fn sync_handle(&self) -> Arc<WalSync> {
        self.records.sync_handle().clone()
    }

    /// Returns the WAL's number.
    pub fn number(&self) -> LogNumber {
        self.number
    }

    /// Returns the bytes written, header included.
    pub fn size_bytes(&self) -> u64 {
        self.records.sync_handle().written()
    }

    /// Returns true if no record was written.
    pub fn is_empty(&self) -> bool {
        self.size_bytes() <= FILE_HEADER_BYTES as u64
    }
}
