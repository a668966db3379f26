//! Builds a table from sorted entries, and writes its bytes to a compaction file as they become
//! ready.
//!
//! 1. [`TableBuilder::add`] checks the order and the length of an entry. The first entry begins the
//!    table in the file.
//! 2. If the current block is full (`block_is_full`), `separate` finds its separator and
//!    `write_block` compresses, seals and appends it. The index gets the separator and the length.
//! 3. For each new user key, `new_key` stores the hashes of the key and its prefix for the filter,
//!    and adds the key to the sketch.
//! 4. The entry goes into the block, and the counts are updated.
//! 5. [`TableBuilder::finish`] writes the last block, the filter, the index, the properties and the
//!    footer (`write`).
//! 6. `end` adds the table to the file's directory, resets the builder, and returns the
//!    [`TableSummary`].
//!
//! What must stay true: there is no allocation per entry. Memory holds one block, the index and the
//! hashes of the keys. The caller keeps all versions of a user key in one table of a run.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use sateen_control::version::KeySketch;
use sateen_control::{ColumnFamilyId, Comparator, FileId, SeqNo, TableId, UserKey, ValueKind};

use super::block::BlockBuilder;
use super::compression::Compressor;
use super::filter;
use super::format::{
    BLOCK_TRAILER_BYTES, BlockHandle, CUSTOM_ORDER, Footer, PREFIXES_ONLY, SEPARATED_VALUES,
    VALUES_IN_FILES,
};
use super::index::{self, IndexBuilder};
use super::properties::Properties;
use super::separated::Separated;
use super::summary::TableSummary;
use crate::base::decoder::{shared_prefix, to_usize};
use crate::base::error::{Error, Result};
use crate::base::key;
use crate::base::prefix::Prefixing;
use crate::files::seal::Seed;
use crate::files::{CompactionFileWriter, DirectoryEntry};
use crate::table::Compression;

/// Longest user key (format rule F11).
pub(super) const KEY_BYTES_MAX: usize = (1 << 16) - 1;
/// Longest value (format rule F11).
pub(super) const VALUE_BYTES_MAX: usize = 1 << 30;
const BLOCK_TARGET_MAX: usize = 1 << 24;
/// Bytes that the device or the page cache moves for the smallest read.
const PAGE_BYTES: usize = 4096;
/// Approximate size of an entry besides key and value: three lengths and its part of a restart.
const ENTRY_HEAD_BYTES: usize = 8;
/// Largest buffer that is kept for the next block or table.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// How a table is built.
#[derive(Clone, Debug)]
pub struct TableBuilderOptions {
    pub table: TableId,
    pub column_family: ColumnFamilyId,
    /// Level for which the table is written. Only the directory and the properties record it.
    pub level: u8,
    /// Length at which a block is full, before compression.
    pub block_bytes: usize,
    /// Number of keys after which prefix compression restarts.
    pub restart_interval: u32,
    /// Bits per key of the filter; 0 for no filter.
    pub filter_bits_per_key: u32,
    /// Whether the filter contains whole keys.
    pub whole_keys: bool,
    /// Comparator of the keys.
    pub comparator: Comparator,
    /// Prefixes that the filter contains, too.
    pub prefixing: Option<Prefixing>,
    pub compression: Compression,
    /// Compression level of Zstandard.
    pub compression_level: i32,
    /// Whether a sketch of the keys is made.
    pub sketch: bool,
    /// Where values are.
    pub values: ValuesApart,
    /// Whether values end with the times of their writes, if the properties are to record it.
    pub value_times: Option<bool>,
}

/// Where the values of a table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValuesApart {
    /// In the table.
    #[default]
    No,
    /// Each value that is added is encoded by [`Separated`], and may be in this WAL.
    InLog(FileId),
    /// Each value that is added is encoded by [`Separated`], and may be in any value file.
    InFiles,
}

impl TableBuilderOptions {
    /// Returns the default options for the table `table`.
    pub fn new(table: TableId, column_family: ColumnFamilyId) -> TableBuilderOptions {
        TableBuilderOptions {
            table,
            column_family,
            level: 0,
            block_bytes: 4096,
            restart_interval: 16,
            filter_bits_per_key: 10,
            whole_keys: true,
            comparator: Comparator::BYTEWISE,
            prefixing: None,
            compression: Compression::None,
            compression_level: 3,
            sketch: false,
            values: ValuesApart::No,
            value_times: None,
        }
    }
}

/// Builds one table after the other in the same memory. Buffers that were freed with each table
/// would leave holes between the indexes and filters that stay. After an error the builder and its
/// file are abandoned.
pub struct TableBuilder {
    options: TableBuilderOptions,
    /// The current data block.
    block: BlockBuilder,
    compressor: Compressor,
    compressed: Vec<u8>,
    index: IndexBuilder,
    /// Hashes of the keys and prefixes that go into the filter.
    hashes: Vec<u64>,
    /// Hash of the last prefix.
    prefix_hash: Option<u64>,
    sketch: Option<KeySketch>,
    /// Separator of the block that is being written.
    separator: Vec<u8>,
    /// Buffer for the blocks behind the data.
    tail: Vec<u8>,
    /// User key and trailer of the last entry.
    last_key: Vec<u8>,
    last_trailer: u64,
    /// Smallest user key of the table, which is its first.
    smallest: Vec<u8>,
    /// Seed of the table's checksums. `None` before the first entry.
    seed: Option<Seed>,
    /// Length of the blocks written so far.
    written: u64,
    entries: u64,
    tombstones: u64,
    merges: u64,
    raw_bytes: u64,
    /// Bytes of values that are in the WAL.
    separated_bytes: u64,
    /// The value files that were referred to, and the bytes in each.
    value_files: BTreeMap<FileId, u64>,
    seqno_min: u64,
    seqno_max: u64,
}

impl TableBuilder {
    /// Returns a builder that has written nothing. Fails if the compression level does not exist.
    pub fn new(options: TableBuilderOptions) -> Result<TableBuilder> {
        let mut options = options;
        options.block_bytes = options.block_bytes.clamp(1, BLOCK_TARGET_MAX);
        Ok(TableBuilder {
            block: BlockBuilder::new(options.restart_interval, options.block_bytes),
            compressor: Compressor::new(options.compression, options.compression_level)?,
            compressed: Vec::new(),
            index: IndexBuilder::default(),
            hashes: Vec::new(),
            prefix_hash: None,
            sketch: options.sketch.then(KeySketch::default),
            separator: Vec::new(),
            tail: Vec::new(),
            last_key: Vec::new(),
            last_trailer: 0,
            smallest: Vec::new(),
            seed: None,
            written: 0,
            entries: 0,
            tombstones: 0,
            merges: 0,
            raw_bytes: 0,
            separated_bytes: 0,
            value_files: BTreeMap::new(),
            seqno_min: u64::MAX,
            seqno_max: 0,
            options,
        })
    }

    /// Adds an entry, which must follow the one before in the order of [`key::compare`]. The first
    /// entry begins the table in `file`, which must be the same in all calls.
    pub fn add(
        &mut self,
        file: &mut CompactionFileWriter,
        internal_key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let user_key = key::user_key(internal_key);
        let trailer = key::trailer(internal_key);
        if user_key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(too_long(user_key, value));
        }
        // The common prefix with the key before serves the order, the block and the separator.
        let mut shared = 0;
        if self.entries == 0 {
            file.begin_table(self.options.table)?;
            self.seed = Some(file.seed(self.options.table));
            self.smallest.extend_from_slice(user_key);
            self.new_key(user_key, 0);
        } else {
            shared = shared_prefix(&self.last_key, user_key);
            match self.order(shared, user_key) {
                Ordering::Less => {
                    // A new user key: the separator may be any key from the last one up to before
                    // this one.
                    if self.block_is_full(internal_key.len() + value.len()) {
                        self.separate(user_key);
                        self.write_block(file)?;
                    }
                    self.new_key(user_key, shared);
                }
                Ordering::Equal if trailer < self.last_trailer => {
                    // Another version of the same key. If the block ends between versions, the key
                    // itself is the separator, which tells readers to look into the next block,
                    // too.
                    if self.block_is_full(internal_key.len() + value.len()) {
                        self.separator.clear();
                        self.separator.extend_from_slice(user_key);
                        self.write_block(file)?;
                    }
                }
                _ => return Err(self.out_of_order(user_key)),
            }
        }
        self.last_trailer = trailer;
        self.block.add(shared, internal_key, value);
        self.entries += 1;
        self.raw_bytes += (user_key.len() + value.len()) as u64;
        let kind = trailer.to_le_bytes()[0];
        if self.options.values != ValuesApart::No && kind == ValueKind::Put as u8 {
            self.count_separated(value);
        }
        let seqno = trailer >> 8;
        self.seqno_min = self.seqno_min.min(seqno);
        self.seqno_max = self.seqno_max.max(seqno);
        let is_merge = kind == ValueKind::Merge as u8;
        self.merges += u64::from(is_merge);
        self.tombstones += u64::from(kind != ValueKind::Put as u8 && !is_merge);
        Ok(())
    }

    /// Counts a value that was added as `stored`, if it is elsewhere: with its own length, not with
    /// that of its place.
    fn count_separated(&mut self, stored: &[u8]) {
        let length = match Separated::decode(stored) {
            Some(Separated::InLog(place)) => {
                self.separated_bytes += u64::from(place.length);
                place.length
            }
            Some(Separated::InFile(file, place)) => {
                *self.value_files.entry(file).or_default() += u64::from(place.length);
                place.length
            }
            Some(Separated::Here(_)) | None => return,
        };
        self.raw_bytes += u64::from(length);
        self.raw_bytes -= stored.len() as u64;
    }

    /// Compares the last user key with `user_key`. They share `shared` bytes.
    #[inline]
    fn order(&self, shared: usize, user_key: &[u8]) -> Ordering {
        let comparator = &self.options.comparator;
        if comparator.is_bytewise() {
            self.last_key.get(shared).cmp(&user_key.get(shared))
        } else {
            comparator.compare(&self.last_key, user_key)
        }
    }

    /// Finds the separator of a block that ends before `user_key`.
    fn separate(&mut self, user_key: &[u8]) {
        if self.options.comparator.is_bytewise() {
            index::separator(&self.last_key, user_key, &mut self.separator);
        } else {
            // In another order no shorter separator can be made, so the last key serves.
            self.separator.clone_from(&self.last_key);
        }
    }

    /// Returns the length of the table if it were finished now. Without compression it is right
    /// within a few percent.
    #[inline]
    pub fn estimated_size(&self) -> u64 {
        let block = self.block.size_bytes() + self.index.size_bytes();
        // Like `filter::size_bytes` without its rounding, because this is called for every entry.
        let filter = self.hashes.len() * to_usize(self.options.filter_bits_per_key) / 8;
        self.written + (block + filter) as u64
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Starts the table `table`. The one before must be finished.
    pub fn begin(&mut self, table: TableId) {
        debug_assert_eq!(self.entries, 0, "the table before is not finished");
        self.options.table = table;
    }

    /// Writes the rest of the table and ends it in `file`. A table must have at least one entry.
    pub fn finish(&mut self, file: &mut CompactionFileWriter) -> Result<TableSummary> {
        let Some(seed) = self.seed else {
            return Err(Error::InvalidArgument("a table needs at least one entry".to_owned()));
        };
        self.separator.clone_from(&self.last_key);
        self.write_block(file)?;
        let data_end = self.written;
        let mut block = std::mem::take(&mut self.tail);
        block.clear();
        // The filter is never compressed: its bits look random.
        let mut filter = BlockHandle::default();
        if self.options.filter_bits_per_key > 0 {
            filter::build(&self.hashes, self.options.filter_bits_per_key, &mut block);
            filter = self.write(file, seed, &mut block, Compression::None)?;
        }
        block.clear();
        self.index.encode(&self.options.comparator, &mut block);
        let method = self.compressor.compress(&block, &mut self.compressed);
        if method.is_some() {
            std::mem::swap(&mut block, &mut self.compressed);
        }
        let index = self.write(file, seed, &mut block, method.unwrap_or(Compression::None))?;
        block.clear();
        self.properties().encode(&mut block);
        let properties = self.write(file, seed, &mut block, Compression::None)?;
        let table = self.options.table;
        // A reader that does not know one of these features must refuse the table.
        let mut features = match self.options.values {
            ValuesApart::No => 0,
            ValuesApart::InLog(_) => SEPARATED_VALUES,
            ValuesApart::InFiles => VALUES_IN_FILES,
        };
        if !self.options.whole_keys && !filter.is_absent() {
            features |= PREFIXES_ONLY;
        }
        if !self.options.comparator.is_bytewise() {
            features |= CUSTOM_ORDER;
        }
        let footer = Footer { table, data_end, index, filter, properties, features };
        file.append(&footer.encode(seed, self.written))?;
        block.shrink_to(BUFFER_KEPT_MAX);
        self.tail = block;
        self.end(file, data_end)
    }

    /// Adds the finished table to the file's directory, and resets the builder for the next one.
    fn end(&mut self, file: &mut CompactionFileWriter, data_end: u64) -> Result<TableSummary> {
        let entry = DirectoryEntry {
            table: self.options.table,
            offset: 0,
            length: 0,
            column_family: self.options.column_family,
            level: self.options.level,
            smallest: std::mem::take(&mut self.smallest),
            largest: std::mem::take(&mut self.last_key),
            seqno_min: SeqNo(self.seqno_min),
            seqno_max: SeqNo(self.seqno_max),
            entries: self.entries,
            tombstones: self.tombstones,
            raw_bytes: self.raw_bytes,
        };
        let (offset, size_bytes) = file.finish_table(&entry)?;
        self.index.clear();
        self.hashes.clear();
        self.prefix_hash = None;
        self.hashes.shrink_to(BUFFER_KEPT_MAX / size_of::<u64>());
        self.seed = None;
        (self.written, self.entries, self.tombstones, self.raw_bytes) = (0, 0, 0, 0);
        (self.seqno_min, self.seqno_max) = (u64::MAX, 0);
        Ok(TableSummary {
            id: entry.table,
            offset,
            size_bytes,
            separated_bytes: std::mem::take(&mut self.separated_bytes),
            smallest: UserKey::new(entry.smallest, &self.options.comparator),
            largest: UserKey::new(entry.largest, &self.options.comparator),
            seqno_min: entry.seqno_min,
            seqno_max: entry.seqno_max,
            entries: entry.entries,
            tombstones: entry.tombstones,
            merges: std::mem::take(&mut self.merges),
            raw_bytes: entry.raw_bytes,
            tail_bytes: size_bytes - data_end,
            sketch: self.sketch.as_mut().map(std::mem::take),
            values: self.options.values,
            value_files: std::mem::take(&mut self.value_files).into_iter().collect(),
        })
    }

    /// Returns the properties of the table.
    fn properties(&self) -> Properties {
        Properties {
            table: self.options.table,
            column_family: self.options.column_family,
            level: self.options.level,
            entries: self.entries,
            tombstones: self.tombstones,
            merges: self.merges,
            raw_bytes: self.raw_bytes,
            seqno_min: SeqNo(self.seqno_min),
            seqno_max: SeqNo(self.seqno_max),
            data_blocks: self.index.blocks(),
            compression: self.options.compression as u8,
            filter_bits_per_key: self.options.filter_bits_per_key,
            block_bytes: u32::try_from(self.options.block_bytes).unwrap_or(u32::MAX),
            smallest: self.smallest.clone(),
            largest: self.last_key.clone(),
            values: match self.options.values {
                ValuesApart::InLog(file) => Some(file),
                ValuesApart::No | ValuesApart::InFiles => None,
            },
            value_files: (self.options.values == ValuesApart::InFiles)
                .then(|| self.value_files.iter().map(|(file, bytes)| (*file, *bytes)).collect()),
            value_times: self.options.value_times,
            comparator: match &self.options.comparator {
                bytewise if bytewise.is_bytewise() => String::new(),
                custom => custom.name().to_owned(),
            },
            prefixes: self.options.prefixing.as_ref().map_or(String::new(), Prefixing::to_string),
        }
    }

    /// Records a new user key that shares `shared` bytes with the last one.
    #[inline]
    fn new_key(&mut self, user_key: &[u8], shared: usize) {
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&user_key[shared..]);
        let has_filter = self.options.filter_bits_per_key > 0;
        if !has_filter && self.sketch.is_none() {
            return;
        }
        let hash = filter::hash_key(user_key);
        if has_filter {
            if self.options.whole_keys {
                self.hashes.push(hash);
            }
            if let Some(prefixing) = &self.options.prefixing
                && let Some(prefix) = prefixing.of(user_key)
            {
                let hash = filter::hash_key(prefix);
                if self.prefix_hash.replace(hash) != Some(hash) {
                    self.hashes.push(hash);
                }
            }
        }
        if let Some(sketch) = &mut self.sketch {
            sketch.add(hash);
        }
    }

    /// Returns true if the block must end before an entry of `more` bytes:
    ///
    /// - it has the target length, or is within a tenth of it and would exceed it;
    /// - or it has a quarter of the target length and lies in two pages, or would with the entry.
    #[inline]
    fn block_is_full(&self, more: usize) -> bool {
        let size = self.block.size_bytes();
        let target = self.options.block_bytes;
        size >= target
            || (size >= target - target / 10 && size + more > target)
            || (size >= target / 4 && self.cuts_at_pages() && self.crosses_page(size, more))
    }

    /// Returns true if blocks are cut at pages: they are about a page long, and not compressed, so
    /// that their length is known while they grow.
    #[inline]
    fn cuts_at_pages(&self) -> bool {
        let target = self.options.block_bytes;
        self.options.compression == Compression::None
            && target <= PAGE_BYTES
            && target > PAGE_BYTES / 2
    }

    /// Returns true if the current block of `size` bytes leaves the page that it begins in, or
    /// would with an entry of `more` bytes. Tables begin with a page.
    #[inline]
    fn crosses_page(&self, size: usize, more: usize) -> bool {
        let begin = (self.written % PAGE_BYTES as u64) as usize;
        begin + size + more + ENTRY_HEAD_BYTES + BLOCK_TRAILER_BYTES > PAGE_BYTES
    }

    /// Writes the current block with the current separator.
    fn write_block(&mut self, file: &mut CompactionFileWriter) -> Result<()> {
        let Some(seed) = self.seed else { return Ok(()) };
        if self.block.is_empty() {
            return Ok(());
        }
        let raw = self.block.finish();
        let (block, method) = match self.compressor.compress(raw, &mut self.compressed) {
            Some(method) => (&mut self.compressed, method),
            None => (raw, Compression::None),
        };
        let payload = u32::try_from(block.len()).map_err(|_| too_long(&self.last_key, &[]))?;
        seed.seal(block, method as u8, self.written);
        file.append(block)?;
        self.written += block.len() as u64;
        self.index.add(&self.separator, payload);
        self.block.clear();
        self.compressed.shrink_to(BUFFER_KEPT_MAX);
        Ok(())
    }

    /// Writes one of the blocks behind the data.
    fn write(
        &mut self,
        file: &mut CompactionFileWriter,
        seed: Seed,
        block: &mut Vec<u8>,
        method: Compression,
    ) -> Result<BlockHandle> {
        let handle = BlockHandle { offset: self.written, size: block.len() as u64 };
        seed.seal(block, method as u8, self.written);
        file.append(block)?;
        self.written = handle.end();
        debug_assert_eq!(block.len() as u64, handle.size + BLOCK_TRAILER_BYTES as u64);
        Ok(handle)
    }

    /// Returns the error for an entry that does not follow the one before.
    #[cold]
    fn out_of_order(&self, user_key: &[u8]) -> Error {
        Error::InvalidArgument(format!(
            "table {}: entry {} of {} bytes is not greater than the entry before it",
            self.options.table,
            self.entries,
            user_key.len()
        ))
    }
}

/// Returns the error for an entry that exceeds the format's limits.
#[cold]
fn too_long(user_key: &[u8], value: &[u8]) -> Error {
    Error::InvalidArgument(format!(
        "entry too long for a table: key of {} bytes (at most {KEY_BYTES_MAX}), value of {} bytes \
         (at most {VALUE_BYTES_MAX})",
        user_key.len(),
        value.len()
    ))
}
