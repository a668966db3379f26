//! Traces of the data blocks that readers need, in the format of RocksDB's traces of the block
//! cache (docs/format/trace-blocks-io.md).
//!
//! 1. The reader of a table tells of each block that it needs. `db/trace_blocks.rs` hears of it,
//!    and adds the column family and the level of the table.
//! 2. [`Tracing::block`] encodes the record and gives it to the recorder. [`Tracing::point_reads`]
//!    says which call of this thread needs the block.
//! 3. [`BlockTraceReader`] decodes records, of Sateen and of RocksDB.
//!
//! What must stay true: sampling is by block. A trace has all reads of a block or none, so that
//! caches can be simulated from a sample.

use std::cell::Cell;
use std::path::Path;

use sateen_control::{ColumnFamilyId, IoClass, SeqNo};
use sateen_store::base::coding::{put_slice, put_varint, take_slice, take_u8, take_u32, take_u64};
use sateen_store::base::error::Result;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::xxh3::xxh3_64_with_seed;
use sateen_store::block_cache::{BlockAccess, PointAccess};
use sateen_store::vfs::{PosixVfs, Vfs};

use super::format::Frame;
use super::plain::PlainReader;
use super::recorder::{Plan, TraceOf, Tracing};
use super::{FILE_BYTES_MAX_DEFAULT, TraceKinds};

/// What [`Db::start_block_trace`](crate::Db::start_block_trace) records.
///
/// ```
/// use sateen::BlockTraceOptions;
///
/// // All reads of every hundredth block.
/// let options = BlockTraceOptions { sampling_frequency: 100, ..BlockTraceOptions::default() };
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTraceOptions {
    /// Largest size of the file in bytes. A read that would exceed it is not recorded, nor any
    /// later one. RocksDB: `max_trace_file_size`.
    pub max_file_bytes: u64,
    /// Records all reads of one of so many blocks; 0 and 1 record all. RocksDB:
    /// `sampling_frequency`.
    pub sampling_frequency: u64,
    /// Replaces a file of that name. Otherwise one is refused.
    pub replace: bool,
}

impl Default for BlockTraceOptions {
    fn default() -> BlockTraceOptions {
        let max_file_bytes = FILE_BYTES_MAX_DEFAULT;
        BlockTraceOptions { max_file_bytes, sampling_frequency: 1, replace: false }
    }
}

impl From<&BlockTraceOptions> for Plan {
    fn from(options: &BlockTraceOptions) -> Plan {
        Plan {
            of: TraceOf::Blocks,
            max_file_bytes: options.max_file_bytes,
            sampling_frequency: options.sampling_frequency,
            kinds: TraceKinds::NONE,
        }
    }
}

/// A read of a block, in a trace of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTraceRecord {
    /// When it was made, in microseconds since 1970.
    pub at_us: u64,
    /// What the block has. Sateen's traces have only data blocks.
    pub kind: BlockKind,
    /// Bytes that name the block. They end with its offset in the table, as a varint.
    pub block: Vec<u8>,
    /// Bytes of the decompressed block.
    pub block_bytes: u64,
    /// The id of the column family.
    pub family: u64,
    /// The name of the column family.
    pub family_name: String,
    /// The level of the table.
    pub level: u32,
    /// The number of the table; in RocksDB's traces of its file.
    pub table: u64,
    /// What needed the block.
    pub caller: BlockCaller,
    /// True if the block was in the cache.
    pub is_hit: bool,
    /// True if a missing block was added to the cache.
    pub fills_cache: bool,
    /// The read of a key that needed the block.
    pub point: Option<BlockPoint>,
}

/// A read of a key, in a trace of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPoint {
    /// A number that all blocks of one call have; 0 if it is not known.
    pub call: u64,
    /// True if the call read at a snapshot of the client.
    pub at_snapshot: bool,
    /// The key, with the sequence number at which it was read and a kind in the last 8 bytes.
    pub key: Vec<u8>,
    /// What the call found in a data block.
    pub found: Option<BlockFound>,
}

/// What a read of a key found in a data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFound {
    /// Bytes of key and value; 0 if the key is not there.
    pub entry_bytes: u64,
    /// Entries in the block.
    pub entries: u64,
    /// True if the block has the key.
    pub is_there: bool,
}

/// What a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockKind {
    /// The index of a table.
    Index,
    /// A filter.
    Filter,
    /// Entries.
    Data,
    /// A dictionary of compression.
    Dictionary,
    /// Range tombstones.
    RangeTombstones,
}

const KINDS: [(u8, BlockKind); 5] = [
    (7, BlockKind::Index),
    (8, BlockKind::Filter),
    (DATA, BlockKind::Data),
    (10, BlockKind::Dictionary),
    (11, BlockKind::RangeTombstones),
];
const DATA: u8 = 9;

/// What needed a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockCaller {
    /// A read of one key.
    Get,
    /// A read of many keys.
    MultiGet,
    /// An iterator or cursor.
    Iterator,
    /// An estimate of the size of a range.
    ApproximateSize,
    /// A verification of checksums.
    VerifyChecksum,
    /// A tool.
    Dump,
    /// An ingestion of files.
    Ingestion,
    /// A repair.
    Repair,
    /// A read before the block is asked for.
    Prefetch,
    /// A compaction.
    Compaction,
    /// A compaction that reads its outputs.
    CompactionRefill,
    /// A flush.
    Flush,
    /// A reader of a file.
    FileReader,
    /// Anything else.
    Other,
}

/// The callers, from the number 1 on.
const CALLERS: [BlockCaller; 14] = [
    BlockCaller::Get,
    BlockCaller::MultiGet,
    BlockCaller::Iterator,
    BlockCaller::ApproximateSize,
    BlockCaller::VerifyChecksum,
    BlockCaller::Dump,
    BlockCaller::Ingestion,
    BlockCaller::Repair,
    BlockCaller::Prefetch,
    BlockCaller::Compaction,
    BlockCaller::CompactionRefill,
    BlockCaller::Flush,
    BlockCaller::FileReader,
    BlockCaller::Other,
];

impl BlockCaller {
    fn number(self) -> u8 {
        let at = CALLERS.iter().position(|caller| *caller == self);
        at.and_then(|at| u8::try_from(at + 1).ok()).unwrap_or(14)
    }

    fn of(number: u8) -> Option<BlockCaller> {
        CALLERS.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns true if records of this caller have a key.
    fn has_key(self) -> bool {
        matches!(self, BlockCaller::Get | BlockCaller::MultiGet)
    }
}

/// Which call of a thread reads keys.
#[derive(Clone, Copy, Debug, Default)]
struct PointReads {
    is_many: bool,
    call: u64,
    at_snapshot: bool,
}

thread_local! {
    static READS: Cell<PointReads> = const {
        Cell::new(PointReads { is_many: false, call: 0, at_snapshot: false })
    };
}

/// A call of this thread that reads keys, until it is dropped.
pub(crate) struct PointReadsGuard(PointReads);

impl Drop for PointReadsGuard {
    fn drop(&mut self) {
        READS.set(self.0);
    }
}

/// Where a table is.
#[derive(Clone, Debug)]
pub(crate) struct TablePlace<'a> {
    pub(crate) family: ColumnFamilyId,
    pub(crate) name: &'a str,
    pub(crate) level: u32,
}

/// Returns the name of a block.
fn block_key(access: &BlockAccess<'_>) -> Vec<u8> {
    let mut key = Vec::with_capacity(16);
    put_varint(&mut key, access.table.0);
    put_varint(&mut key, access.offset);
    key
}

impl Tracing {
    /// Notes that this thread reads one key or many from now on, for the blocks that it needs.
    #[cold]
    pub(crate) fn point_reads(&self, is_many: bool, at_snapshot: bool) -> PointReadsGuard {
        let call = self.point_calls.fetch_add(1, Ordering::Relaxed) + 1;
        PointReadsGuard(READS.replace(PointReads { is_many, call, at_snapshot }))
    }

    /// Records that a block was needed. `record` is called with a function that takes the table's
    /// place, if the block is one of the sample.
    pub(crate) fn block(
        &self,
        access: &BlockAccess<'_>,
        record: impl FnOnce(&dyn Fn(&TablePlace<'_>)),
    ) {
        let Some(recorder) = self.recorder() else { return };
        let key = block_key(access);
        let every = recorder.sampling_frequency();
        if every > 1 && !xxh3_64_with_seed(&key, 0).is_multiple_of(every) {
            return;
        }
        let reads = READS.get();
        record(&|place| recorder.offer(DATA, &payload(access, &key, place, reads)));
    }
}

/// Returns what needed a block.
fn caller(access: &BlockAccess<'_>, reads: PointReads) -> BlockCaller {
    match access.class {
        _ if access.is_ahead => BlockCaller::Prefetch,
        _ if access.point.is_some() && reads.is_many => BlockCaller::MultiGet,
        _ if access.point.is_some() => BlockCaller::Get,
        IoClass::Client => BlockCaller::Iterator,
        IoClass::Flush => BlockCaller::Flush,
        IoClass::L0 | IoClass::Deep(_) => BlockCaller::Compaction,
        IoClass::Wal | IoClass::Manifest | IoClass::Reclaim => BlockCaller::Other,
    }
}

/// Returns the payload of a record.
fn payload(
    access: &BlockAccess<'_>,
    key: &[u8],
    place: &TablePlace<'_>,
    reads: PointReads,
) -> Vec<u8> {
    let caller = caller(access, reads);
    let mut out = Vec::with_capacity(96 + place.name.len());
    put_slice(&mut out, key);
    out.extend_from_slice(&access.bytes.to_le_bytes());
    out.extend_from_slice(&u64::from(place.family.0).to_le_bytes());
    put_slice(&mut out, place.name.as_bytes());
    out.extend_from_slice(&place.level.to_le_bytes());
    out.extend_from_slice(&access.table.0.to_le_bytes());
    out.push(caller.number());
    out.push(access.is_hit.into());
    out.push((!access.fills_cache).into());
    if let Some(point) = access.point.filter(|_| caller.has_key()) {
        out.extend_from_slice(&reads.call.to_le_bytes());
        out.push(reads.at_snapshot.into());
        put_slice(&mut out, &internal_key(&point));
        out.extend_from_slice(&point.entry_bytes.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&point.entries.to_le_bytes());
        out.push(point.entry_bytes.is_some().into());
    }
    out
}

/// Returns the key of a point read as RocksDB's tables have keys: with the sequence number and the
/// kind of a value behind it.
fn internal_key(point: &PointAccess<'_>) -> Vec<u8> {
    let mut key = point.user_key.to_vec();
    let seqno = point.snapshot.min(SeqNo::MAX).0;
    key.extend_from_slice(&(seqno << 8 | 1).to_le_bytes());
    key
}

/// Decodes a record. Returns why it cannot.
pub(super) fn decode(frame: &Frame<'_>) -> std::result::Result<BlockTraceRecord, &'static str> {
    let kind = KINDS.into_iter().find(|(number, _)| *number == frame.kind);
    let kind = kind.ok_or("it is no read of a block")?.1;
    let early = "its payload ends early";
    let rest = &mut { frame.payload };
    let block = take_slice(rest).ok_or(early)?.to_vec();
    let block_bytes = take_u64(rest).ok_or(early)?;
    let family = take_u64(rest).ok_or(early)?;
    let family_name = String::from_utf8_lossy(take_slice(rest).ok_or(early)?).into_owned();
    let level = take_u32(rest).ok_or(early)?;
    let table = take_u64(rest).ok_or(early)?;
    let caller = BlockCaller::of(take_u8(rest).ok_or(early)?);
    let caller = caller.ok_or("its caller is not known")?;
    let is_hit = take_u8(rest).ok_or(early)? != 0;
    let fills_cache = take_u8(rest).ok_or(early)? == 0;
    let mut point = None;
    if caller.has_key() {
        let call = take_u64(rest).ok_or(early)?;
        let at_snapshot = take_u8(rest).ok_or(early)? != 0;
        let key = take_slice(rest).ok_or(early)?.to_vec();
        let mut found = None;
        if kind == BlockKind::Data {
            let entry_bytes = take_u64(rest).ok_or(early)?;
            let entries = take_u64(rest).ok_or(early)?;
            let is_there = take_u8(rest).ok_or(early)? != 0;
            found = Some(BlockFound { entry_bytes, entries, is_there });
        }
        point = Some(BlockPoint { call, at_snapshot, key, found });
    }
    if !rest.is_empty() {
        return Err("its payload is longer than its fields");
    }
    Ok(BlockTraceRecord {
        at_us: frame.at,
        kind,
        block,
        block_bytes,
        family,
        family_name,
        level,
        table,
        caller,
        is_hit,
        fills_cache,
        point,
    })
}

/// Reads a trace of blocks, of Sateen or of RocksDB, as an iterator of the reads. It ends with the
/// first error.
///
/// ```
/// use sateen::{BlockTraceOptions, BlockTraceReader, Db, Options};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, trace) = (directory.path().join("db"), directory.path().join("trace"));
/// let db = Db::open(path, Options::default())?;
/// db.put("fig", "1")?;
/// db.flush()?;
/// db.start_block_trace(&trace, &BlockTraceOptions::default())?;
/// db.get("fig")?;
/// db.end_block_trace()?;
/// let reads: Vec<_> = BlockTraceReader::open(&trace)?.collect::<sateen::Result<_>>()?;
/// assert_eq!((reads[0].level, reads[0].family_name.as_str()), (0, "default"));
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Debug)]
pub struct BlockTraceReader(PlainReader);

impl BlockTraceReader {
    /// Opens a trace.
    ///
    /// # Errors
    /// `Io`. `InvalidArgument` if the file is no trace of blocks. An iteration also fails with
    /// `Corruption`.
    pub fn open(path: impl AsRef<Path>) -> Result<BlockTraceReader> {
        BlockTraceReader::open_with(&PosixVfs::new(), path)
    }

    /// Opens a trace in the file system `vfs`.
    ///
    /// # Errors
    /// As [`BlockTraceReader::open`].
    pub fn open_with(vfs: &dyn Vfs, path: impl AsRef<Path>) -> Result<BlockTraceReader> {
        PlainReader::open(vfs, path.as_ref(), "blocks").map(BlockTraceReader)
    }

    /// Returns when the trace began, in microseconds since 1970.
    #[must_use]
    pub fn start_us(&self) -> u64 {
        self.0.start_us()
    }

    /// Returns the number of reads that are missing in the trace, once its end was read; `None`
    /// before, if the trace was not ended, and for one of RocksDB.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        self.0.lost()
    }
}

impl Iterator for BlockTraceReader {
    type Item = Result<BlockTraceRecord>;

    fn next(&mut self) -> Option<Result<BlockTraceRecord>> {
        self.0.next(decode)
    }
}

#[cfg(test)]
mod tests {
    use sateen_control::TableId;

    use super::*;

    fn access(point: Option<PointAccess<'_>>) -> BlockAccess<'_> {
        BlockAccess {
            table: TableId(7),
            offset: 300,
            bytes: 4000,
            class: IoClass::Client,
            is_hit: true,
            fills_cache: false,
            point,
            is_ahead: false,
        }
    }

    fn point() -> PointAccess<'static> {
        PointAccess { user_key: b"key", snapshot: SeqNo(5), entry_bytes: Some(20), entries: 9 }
    }

    const PLACE: TablePlace<'_> = TablePlace { family: ColumnFamilyId(3), name: "cf", level: 2 };
    const READS: PointReads = PointReads { is_many: false, call: 11, at_snapshot: true };

    fn encoded(access: &BlockAccess<'_>) -> Vec<u8> {
        payload(access, &block_key(access), &PLACE, READS)
    }

    /// The bytes that RocksDB's tracer writes for such reads.
    #[test]
    fn reads_have_the_bytes_of_rocksdb() {
        let head = b"\x03\x07\xac\x02\xa0\x0f\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x02cf\x02\0\0\0\
                     \x07\0\0\0\0\0\0\0";
        let scan = encoded(&access(None));
        assert_eq!(scan, [&head[..], b"\x03\x01\x01"].concat());
        let get = b"\x01\x01\x01\x0b\0\0\0\0\0\0\0\x01\x0bkey\x01\x05\0\0\0\0\0\0\
                    \x14\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x01";
        assert_eq!(encoded(&access(Some(point()))), [&head[..], &get[..]].concat());
    }

    #[test]
    fn reads_come_back_and_shorter_ones_are_refused() {
        let absent = PointAccess { entry_bytes: None, ..point() };
        for (access, caller) in [
            (access(Some(point())), BlockCaller::Get),
            (access(Some(absent)), BlockCaller::Get),
            (access(None), BlockCaller::Iterator),
            (BlockAccess { is_ahead: true, ..access(None) }, BlockCaller::Prefetch),
            (BlockAccess { class: IoClass::Deep(3), ..access(None) }, BlockCaller::Compaction),
        ] {
            let payload = encoded(&access);
            let record = decode(&Frame { at: 1, kind: DATA, payload: &payload }).unwrap();
            assert_eq!((record.caller, record.kind), (caller, BlockKind::Data));
            assert_eq!((record.table, record.level, record.family), (7, 2, 3));
            assert!(record.is_hit && !record.fills_cache);
            let there = record.point.map(|point| point.found.unwrap().is_there);
            assert_eq!(there, access.point.map(|point| point.entry_bytes.is_some()));
            for length in 0..payload.len() {
                let payload = &payload[..length];
                assert!(decode(&Frame { at: 1, kind: DATA, payload }).is_err(), "{length}");
            }
            let longer = [&payload[..], b"1"].concat();
            assert!(decode(&Frame { at: 1, kind: DATA, payload: &longer }).is_err());
            assert!(decode(&Frame { at: 1, kind: 12, payload: &payload }).is_err());
        }
    }

    /// A read of a filter by a get, as RocksDB writes it.
    #[test]
    fn other_blocks_of_rocksdb_are_read() {
        let bytes = b"\x03\x07\xac\x02\xa0\x0f\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x02cf\x02\0\0\0\
                      \x07\0\0\0\0\0\0\0\x02\0\0\x0b\0\0\0\0\0\0\0\0\0";
        let record = decode(&Frame { at: 1, kind: 8, payload: bytes }).unwrap();
        assert_eq!((record.kind, record.caller), (BlockKind::Filter, BlockCaller::MultiGet));
        assert_eq!(record.point.unwrap().found, None);
        assert!(!record.is_hit && record.fills_cache);
    }

    #[test]
    fn callers_have_the_numbers_of_rocksdb() {
        assert_eq!(BlockCaller::Get.number(), 1);
        assert_eq!(BlockCaller::Compaction.number(), 10);
        assert_eq!(BlockCaller::of(14), Some(BlockCaller::Other));
        assert_eq!([BlockCaller::of(0), BlockCaller::of(15)], [None, None]);
    }
}
