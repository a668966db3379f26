//! Entry points for fuzzers of this module's decoders. Each takes hostile bytes, opens them and
//! walks through everything in them.
//!
//! What must stay true: nothing here panics, or reserves memory out of proportion to the input.
//! Under `--cfg fuzzing` every checksum passes, so that the bytes behind it are reached.

use std::path::Path;
use std::sync::{Arc, Weak};

use sateen_control::{ColumnFamilyId, Comparator, FileId, IoClass, SeqNo, TableId};

use super::OnMiss;
use super::block::{self, Cursor};
use super::filter::Filter;
use super::{Table, TableIterOptions, TableSource, hash_key};
use crate::base::iterator::InternalIterator;
use crate::files::{CompactionFile, DirectoryEntry};
use crate::vfs::{MemVfs, OpenOptions, Vfs, VfsFile};

const DB_UID: u64 = 1;
const FILE: FileId = FileId(1);
const TABLE: TableId = TableId(1);
/// Offset of the file's number in its header.
const NUMBER_AT: usize = 24;

/// Walks through the payload of a data block.
pub fn block(bytes: &[u8]) {
    let target = bytes.get(..bytes.len().min(24)).unwrap_or_default();
    drop(block::get(&Comparator::BYTEWISE, bytes, target, u64::MAX));
    drop(block::get(&Comparator::BYTEWISE, bytes, b"", 0));
    let mut cursor = Cursor::default();
    let mut internal = target.to_vec();
    internal.extend_from_slice(&[0xff; 8]);
    let mut seen = 0usize;
    let steps = bytes.len();
    if cursor.seek_to_first(bytes).is_ok() {
        while cursor.valid() && cursor.next(bytes).is_ok() && seen <= steps {
            seen += 1;
        }
    }
    // A step back costs a restart interval, which hostile bytes can make as long as the block.
    if cursor.seek_to_last(bytes).is_ok() {
        for _ in 0..64 {
            if !cursor.valid() || cursor.prev(bytes).is_err() {
                break;
            }
        }
    }
    let _ = cursor.seek(&Comparator::BYTEWISE, bytes, &internal);
}

/// Decodes a filter and asks it.
pub fn filter(bytes: &[u8]) {
    if let Ok(filter) = Filter::decode(bytes) {
        for hash in [0, 1, u64::MAX, hash_key(bytes)] {
            filter.may_contain(hash);
        }
    }
}

/// Opens a table that is all of `bytes`, and scans it.
pub fn table(bytes: &[u8]) {
    if let Some(file) = in_memory(bytes) {
        let length = bytes.len() as u64;
        walk(TableSource { table: TABLE, offset: 0, length, ..anywhere(&file) });
    }
}

/// Opens a compaction file, and scans every table of its directory.
pub fn compaction_file(bytes: &[u8]) {
    let Some(file) = in_memory(bytes) else { return };
    let Ok(directory) = CompactionFile::open(&file, Path::new("fuzz"), FILE) else { return };
    for entry in directory.tables.iter().take(16) {
        walk(source(&file, entry));
    }
}

/// Returns the extents of a compaction file's data blocks with checksums, or none for any other
/// file. For tests that exchange blocks.
#[must_use]
pub fn blocks(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let number = bytes.get(NUMBER_AT..).and_then(|bytes| bytes.first_chunk());
    let (Some(number), Some(file)) = (number, in_memory(bytes)) else { return Vec::new() };
    let id = FileId(u64::from_le_bytes(*number));
    let Ok(directory) = CompactionFile::open(&file, Path::new("file"), id) else {
        return Vec::new();
    };
    let mut blocks = Vec::new();
    for entry in &directory.tables {
        let place = TableSource { file_id: id, db_uid: directory.db_uid, ..source(&file, entry) };
        let Ok(table) = Table::open(place, IoClass::Client) else { continue };
        blocks.extend((0..table.blocks()).filter_map(|nth| table.handle(nth)).filter_map(
            |block| {
                let at = |offset: u64| usize::try_from(entry.offset + offset).ok();
                Some(at(block.offset)?..at(block.end())?)
            },
        ));
    }
    blocks
}

/// Returns a small compaction file as a seed. `compression` is taken modulo the number of methods.
#[must_use]
pub fn seed(compression: u8) -> Vec<u8> {
    use super::{TableBuilder, TableBuilderOptions};
    use crate::files::CompactionFileWriter;
    use crate::table::Compression;
    let build = || -> crate::base::error::Result<Vec<u8>> {
        let vfs = MemVfs::new();
        let path = Path::new("seed");
        let class = IoClass::Flush;
        let mut file = CompactionFileWriter::create(&vfs, path, FILE, DB_UID, false, class)?;
        let mut options = TableBuilderOptions::new(TABLE, ColumnFamilyId(0));
        options.block_bytes = 128;
        options.compression = match compression % 2 {
            0 => Compression::None,
            _ => Compression::Lz4,
        };
        let mut builder = TableBuilder::new(options)?;
        for i in 0..40u8 {
            let key = crate::base::key::seek_key(&[b'k', i, i], SeqNo(u64::from(i)));
            builder.add(&mut file, &key, &[i; 20])?;
        }
        builder.finish(&mut file)?;
        let length = file.finish()?;
        let file = vfs
            .open(path, OpenOptions::READ)
            .map_err(|e| crate::base::error::Error::io("open", path, e))?;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0, class)
            .map_err(|e| crate::base::error::Error::io("read", path, e))?;
        Ok(bytes)
    };
    build().unwrap_or_default()
}

/// Returns seeds: a block, filters, and a table.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut builder = block::BlockBuilder::new(4, 512);
    let mut last: Vec<u8> = Vec::new();
    for i in 0..20u8 {
        let user_key = format!("key{:03}", i * 3);
        let shared = user_key.bytes().zip(&last).take_while(|(a, b)| a == *b).count();
        let internal = crate::base::key::seek_key(user_key.as_bytes(), SeqNo(u64::from(i)));
        builder.add(shared, &internal, &[i; 9]);
        last = user_key.into_bytes();
    }
    let mut seeds = vec![("block", builder.finish().clone())];
    for keys in [1, 100] {
        let hashes: Vec<u64> = (0..keys).map(|i: u64| hash_key(&i.to_le_bytes())).collect();
        let mut bytes = Vec::new();
        super::filter::build(&hashes, 10, &mut bytes);
        seeds.push(("filter", bytes));
    }
    for compression in 0..2 {
        let file = seed(compression);
        let opened =
            in_memory(&file).map(|memory| CompactionFile::open(&memory, Path::new("seed"), FILE));
        let Some(Ok(directory)) = opened else { continue };
        for entry in directory.tables {
            let range = usize::try_from(entry.offset).ok().zip(usize::try_from(entry.length).ok());
            let bytes = range.and_then(|(start, length)| file.get(start..start + length));
            seeds.push(("table", bytes.unwrap_or_default().to_vec()));
        }
    }
    seeds
}

fn in_memory(bytes: &[u8]) -> Option<Arc<dyn VfsFile>> {
    let file = MemVfs::new().open(Path::new("fuzz"), OpenOptions::CREATE).ok()?;
    file.write_at(bytes, 0, IoClass::Client).ok()?;
    Some(file)
}

fn anywhere(file: &Arc<dyn VfsFile>) -> TableSource {
    TableSource {
        file: file.clone(),
        path: Path::new("fuzz").into(),
        table: TABLE,
        file_id: FILE,
        db_uid: DB_UID,
        offset: 0,
        length: 0,
        tail_bytes: 0,
        global_seqno: SeqNo(0),
        comparator: Some(Comparator::BYTEWISE),
        image: Weak::new(),
    }
}

fn source(file: &Arc<dyn VfsFile>, entry: &DirectoryEntry) -> TableSource {
    let DirectoryEntry { table, offset, length, .. } = *entry;
    TableSource { table, offset, length, ..anywhere(file) }
}

fn walk(source: TableSource) {
    let length = source.length;
    let Ok(table) = Table::open(source, IoClass::Client).map(Arc::new) else { return };
    let mut key = Vec::new();
    for options in [
        TableIterOptions::client(None, OnMiss::Read),
        TableIterOptions::compaction(IoClass::L0, 4096),
    ] {
        let mut iter = table.iter(options);
        let mut steps = 0u64;
        let mut moved = iter.seek_to_first();
        while moved.is_ok() && iter.valid() && steps <= length {
            key.clear();
            key.extend_from_slice(iter.key());
            steps += 1;
            moved = iter.next();
        }
        let mut moved = iter.seek_to_last();
        for _ in 0..64 {
            if moved.is_err() || !iter.valid() {
                break;
            }
            moved = iter.prev();
        }
        drop(iter.seek_for_prev(&key));
    }
    let user_key = crate::base::key::user_key(&key);
    drop(table.get(user_key, SeqNo::MAX, hash_key(user_key), None, OnMiss::Read));
}
