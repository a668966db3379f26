//! An open table: index, filter and properties in memory, data blocks read as they are needed.
//!
//! Opening ([`Table::open`]):
//!
//! 1. One read of the table's end, of the length that the manifest knows, or else of a guessed
//!    length.
//! 2. The footer is verified. If the blocks behind the data begin before what was read, a second
//!    read fetches them.
//! 3. Index, filter and properties are verified and decoded, and the comparator is checked
//!    (`comparator_of`).
//!
//! A point read ([`Table::get`]):
//!
//! 1. [`Table::may_contain`] asks the filter.
//! 2. [`Table::get_unfiltered`] finds the block in the index and takes it from the cache, or from
//!    the file (`load_block`, `read_block`).
//! 3. [`block::get`] searches the block. If the block ends with versions of the key, the next one
//!    is searched, too.
//! 4. The value is returned as a [`PinnedValue`], which keeps the block alive. A separated value is
//!    read from its file first (`separated`).
//!
//! What must stay true: a point read takes no lock here, and copies no value that is in a cached
//! block. A block that fails to verify in an image is read again from the file.

use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::sync::{Arc, Weak};

use sateen_control::{Comparator, IoClass, SeqNo, TableId, ValueKind};

use super::OnMiss;
use super::block::{self, Found};
use super::compression::Decompressor;
use super::filter::Filter;
use super::format::{
    BLOCK_TRAILER_BYTES, BlockHandle, CUSTOM_ORDER, FOOTER_BYTES, Footer, PREFIXES_ONLY,
    SEPARATED_VALUES, VALUES_IN_FILES,
};
use super::index::Index;
use super::observed::ObservedRead;
use super::properties::Properties;
use super::separated::{Separated, ValuePlace};
use super::source::TableSource;
use super::value_files::{ValueFiles, ValuesFile};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::base::names::shown_path;
use crate::base::prefix::Prefixing;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{key, waited};
use crate::block_cache::BlockCache;
use crate::files::TableImage;
use crate::files::seal::Seed;
use crate::vfs::AlignedBuffer;

/// Largest buffer that a thread keeps between reads of single blocks.
const SCRATCH_BYTES_MAX: usize = 1 << 18;

/// A value and the block that contains it.
#[derive(Clone, Debug)]
pub struct PinnedValue {
    block: Arc<[u8]>,
    /// Range of the value in the block.
    range: Range<usize>,
}

impl PinnedValue {
    /// Removes the last `bytes` bytes.
    pub fn without_end(mut self, bytes: usize) -> PinnedValue {
        self.range.end = self.range.end.saturating_sub(bytes).max(self.range.start);
        self
    }
}

impl Deref for PinnedValue {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.block.get(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for PinnedValue {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// An open table.
#[derive(Debug)]
pub struct Table {
    source: TableSource,
    comparator: Comparator,
    /// Seed of the table's checksums.
    pub(super) seed: Seed,
    pub(super) index: Index,
    /// The filter, if it contains whole keys.
    filter: Option<Filter>,
    /// A filter that contains only prefixes.
    prefixes: Option<Filter>,
    properties: Properties,
    /// The files with the separated values.
    values: Option<Arc<ValueFiles>>,
    /// Number of reads that were charged to the table since it was opened.
    charges: AtomicU64,
}

impl Table {
    /// Opens a table. Usually this takes one read of its end, otherwise two.
    pub fn open(source: TableSource, class: IoClass) -> Result<Table> {
        let seed = Seed::of_table(source.db_uid, source.file_id, source.table);
        let corrupt = |at, kind| Err(source.corruption(at, kind));
        let file_bytes = source.file.len().map_err(|e| Error::io("stat", &source.path, e))?;
        let end = source.offset.checked_add(source.length);
        let Some(footer_at) = source.length.checked_sub(FOOTER_BYTES as u64) else {
            return corrupt(0, CorruptionKind::Truncated);
        };
        if end.is_none_or(|end| end > file_bytes) {
            return corrupt(file_bytes.saturating_sub(source.offset), CorruptionKind::Truncated);
        }
        // One read usually covers everything behind the data blocks.
        let mut buffer = AlignedBuffer::default();
        let guess = match source.tail_bytes {
            0 => (source.length / 64).clamp(8 << 10, 1 << 20),
            bytes => bytes.max(FOOTER_BYTES as u64),
        };
        let guess = guess.min(source.length);
        let mut tail_at = source.length - guess;
        let mut tail = source.read(tail_at, guess, &mut buffer, class)?;
        let footer = slice(tail, footer_at - tail_at, FOOTER_BYTES as u64);
        let footer = Footer::decode(footer, seed, footer_at)
            .map_err(|error| source.footer_error(error, footer_at))?;
        if footer.table != source.table {
            return corrupt(
                footer_at,
                CorruptionKind::Inconsistent("the footer is another table's"),
            );
        }
        // The guess was too small: read everything behind the data blocks.
        if footer.data_end < tail_at {
            tail_at = footer.data_end;
            tail = source.read(tail_at, footer_at - tail_at, &mut buffer, class)?;
        }
        let mut decompressed = Vec::new();
        let mut decompressor = Decompressor::default();
        let mut block = |handle: BlockHandle, decode: &mut dyn FnMut(&[u8]) -> Result<(), _>| {
            let stored = slice(tail, handle.offset - tail_at, handle.end() - handle.offset);
            unpack(seed, stored, handle.offset, &mut decompressor, &mut decompressed)
                .and_then(|payload| decode(payload.of(stored, &decompressed)))
                .map_err(|kind| source.corruption(handle.offset, kind))
        };
        // The blocks behind the data are verified before they are decoded.
        let bytewise = footer.features & CUSTOM_ORDER == 0;
        let mut index = Index::default();
        block(footer.index, &mut |payload| {
            index = Index::decode(payload, footer.data_end, bytewise)?;
            Ok(())
        })?;
        let mut filter = None;
        if !footer.filter.is_absent() {
            block(footer.filter, &mut |payload| {
                filter = Some(Filter::decode(payload)?);
                Ok(())
            })?;
        }
        let mut properties = Properties::default();
        block(footer.properties, &mut |payload| {
            properties = Properties::decode(payload)?;
            Ok(())
        })?;
        if (footer.features & SEPARATED_VALUES != 0) != properties.values.is_some() {
            let kind = CorruptionKind::Inconsistent(
                "footer and properties disagree about separated values",
            );
            return corrupt(footer_at, kind);
        }
        if (footer.features & VALUES_IN_FILES != 0) != properties.value_files.is_some() {
            let kind =
                CorruptionKind::Inconsistent("footer and properties disagree about value files");
            return corrupt(footer_at, kind);
        }
        if bytewise != properties.comparator.is_empty() {
            let kind = CorruptionKind::Inconsistent(
                "footer and properties disagree about the order of keys",
            );
            return corrupt(footer_at, kind);
        }
        // A wrong comparator would silently miss keys.
        let comparator = comparator_of(&source, &properties)?;
        let mut prefixes = None;
        if footer.features & PREFIXES_ONLY != 0 {
            prefixes = filter.take();
        }
        Ok(Table {
            seed,
            index,
            filter,
            prefixes,
            properties,
            source,
            comparator,
            values: None,
            charges: AtomicU64::new(0),
        })
    }

    /// Returns the comparator of the keys.
    #[inline]
    pub(super) fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// Makes the table read from `image`, while that is kept.
    pub fn with_image(mut self, image: Weak<TableImage>) -> Table {
        self.source.image = image;
        self
    }

    /// Sets the files in which the table's separated values are. A WAL is opened now, so that a
    /// missing one is noticed.
    pub fn with_values(mut self, files: &Arc<ValueFiles>) -> Result<Table> {
        if let Some(log) = self.properties.values {
            files.get_log(log)?;
        }
        if self.separates_values() {
            self.values = Some(files.clone());
        }
        Ok(self)
    }

    /// Returns true if the table has separated values.
    #[inline]
    pub fn separates_values(&self) -> bool {
        self.properties.values.is_some() || self.properties.value_files.is_some()
    }

    /// Decodes `stored`, the value of a put in a table with separated values. `at` is the offset of
    /// the block that contains it.
    pub(super) fn decode<'a>(&self, stored: &'a [u8], at: u64) -> Result<Separated<'a>> {
        let decoded = Separated::decode(stored);
        decoded.ok_or_else(|| {
            self.source.corruption(at, CorruptionKind::Malformed("invalid separated value"))
        })
    }

    /// Returns the open file that has the value `stored` of a table with separated values, and its
    /// place there; `None` if `stored` is the value itself. `at` is the offset of the block that
    /// contains it.
    pub(super) fn place_of(
        &self,
        stored: &Separated<'_>,
        at: u64,
        class: IoClass,
    ) -> Result<Option<(ValuesFile, ValuePlace)>> {
        let missing = || self.source.corruption(at, CorruptionKind::MissingFile);
        let files = || self.values.as_ref().ok_or_else(missing);
        Ok(match *stored {
            Separated::Here(_) => None,
            Separated::InLog(place) => {
                let log = self.properties.values.ok_or_else(missing)?;
                Some((files()?.get_log(log)?, place))
            }
            Separated::InFile(file, place) => Some((files()?.get(file, class)?, place)),
        })
    }

    /// Returns the value that `stored` represents in a table with separated values, and reads it if
    /// it is in another file. `at` is the offset of the block that contains `stored`.
    #[cold]
    fn separated(&self, stored: &[u8], at: u64, on_miss: OnMiss) -> Result<Vec<u8>> {
        let decoded = self.decode(stored, at)?;
        match decoded {
            Separated::Here(value) => return Ok(value.to_vec()),
            _ if on_miss == OnMiss::Refuse => return Err(Error::NotInMemory),
            _ => {}
        }
        let _loads = waited::load();
        match self.place_of(&decoded, at, IoClass::Client)? {
            Some((file, place)) => file.read(place, IoClass::Client),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the newest entry of `user_key` at or below `snapshot`, tombstones included. `hash`
    /// is [`super::hash_key`] of the key. `on_miss` says
    /// what happens if a block is not in memory.
    #[inline]
    pub fn get(
        &self,
        user_key: &[u8],
        snapshot: SeqNo,
        hash: u64,
        cache: Option<&BlockCache>,
        on_miss: OnMiss,
    ) -> Result<Option<(SeqNo, ValueKind, PinnedValue)>> {
        if !self.may_contain(hash) {
            return Ok(None);
        }
        self.get_unfiltered(user_key, snapshot, cache, on_miss)
    }

    /// Returns false if no entry has a user key with this hash.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.filter_says(hash).unwrap_or(true)
    }

    /// Returns the filter's answer for a user key; `None` if there is no filter for whole keys.
    #[inline]
    pub fn filter_says(&self, hash: u64) -> Option<bool> {
        Some(self.filter.as_ref()?.may_contain(hash))
    }

    /// Returns the filter's answer for a prefix with this hash; `None` if the filter has no
    /// prefixes of `prefixing`.
    pub fn prefix_filter_says(&self, prefixing: &Prefixing, hash: u64) -> Option<bool> {
        let known = &self.properties.prefixes;
        if known.is_empty() || *known != prefixing.to_string() {
            return None;
        }
        Some(self.prefixes.as_ref().or(self.filter.as_ref())?.may_contain(hash))
    }

    /// Returns true if the filter contains only prefixes.
    #[inline]
    pub fn filters_prefixes_only(&self) -> bool {
        self.prefixes.is_some()
    }

    /// Like [`Table::get`], for a caller that has asked the filter.
    #[inline]
    pub fn get_unfiltered(
        &self,
        user_key: &[u8],
        snapshot: SeqNo,
        cache: Option<&BlockCache>,
        on_miss: OnMiss,
    ) -> Result<Option<(SeqNo, ValueKind, PinnedValue)>> {
        // An ingested table is as new as its global sequence number. An older snapshot sees nothing
        // of it.
        let global = self.source.global_seqno;
        if snapshot < global {
            return Ok(None);
        }
        let trailer = key::pack(snapshot, ValueKind::MAX);
        let comparator = &self.comparator;
        let mut at = self.index.find(comparator, user_key);
        let observed = cache.filter(|cache| cache.observed().is_on());
        let observed = observed.map(|cache| ObservedRead { cache, user_key, snapshot, on_miss });
        while let Some(handle) = self.index.handle(at) {
            let is_hit = observed.is_some_and(|read| read.is_cached(self, handle));
            let block = self.block(handle, cache, on_miss)?;
            let corrupt = |kind| self.source.corruption(handle.offset, kind);
            let found = block::get(comparator, &block, user_key, trailer).map_err(corrupt)?;
            if let Some(read) = observed {
                read.tell(self, handle, is_hit, (&block, &found));
            }
            match found {
                Found::Entry(trailer, range) => {
                    let kind = ValueKind::from_byte(trailer.to_le_bytes()[0]).ok_or_else(|| {
                        corrupt(CorruptionKind::Malformed("unknown kind of an entry"))
                    })?;
                    let mut value = PinnedValue { block, range };
                    if self.separates_values() && kind == ValueKind::Put {
                        value = match Separated::decode(&value) {
                            // The value stays in its block.
                            Some(Separated::Here(_)) => PinnedValue {
                                range: value.range.start + 1..value.range.end,
                                block: value.block,
                            },
                            _ => {
                                let read = self.separated(&value, handle.offset, on_miss)?;
                                PinnedValue { range: 0..read.len(), block: read.into() }
                            }
                        };
                    }
                    // One of the two is 0.
                    return Ok(Some((SeqNo(trailer >> 8 | global.0), kind, value)));
                }
                Found::Absent => return Ok(None),
                // Versions of one key may continue in the next block.
                Found::End if self.index.is_separator(at, user_key) => at += 1,
                Found::End => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Returns where the table is.
    pub fn source(&self) -> &TableSource {
        &self.source
    }

    /// Charges a read to the table. Returns the number of its charges since it was opened.
    #[inline]
    pub fn charge(&self) -> u64 {
        self.charges.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the table's id.
    #[inline]
    pub fn id(&self) -> TableId {
        self.source.table
    }

    /// Returns the table's properties.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Returns the number of data blocks.
    pub fn blocks(&self) -> usize {
        self.index.blocks()
    }

    /// Returns where the first data block is that may have `user_key`; `None` behind the last.
    pub(super) fn handle_of(&self, user_key: &[u8]) -> Option<BlockHandle> {
        self.index.handle(self.index.find(&self.comparator, user_key))
    }

    /// Returns where data block `nth` is; `None` behind the last.
    pub(super) fn handle(&self, nth: usize) -> Option<BlockHandle> {
        self.index.handle(nth)
    }

    /// Returns the bytes of memory that the open table takes.
    pub fn memory_bytes(&self) -> usize {
        let filters = self.filter.iter().chain(&self.prefixes);
        let filter: usize = filters.map(Filter::memory_bytes).sum();
        size_of::<Table>() + self.index.memory_bytes() + filter + self.properties.memory_bytes()
    }

    /// Returns the payload of a data block from the cache or the file.
    #[inline]
    pub(super) fn block(
        &self,
        handle: BlockHandle,
        cache: Option<&BlockCache>,
        on_miss: OnMiss,
    ) -> Result<Arc<[u8]>> {
        if let Some(block) = cache.and_then(|cache| cache.get(self.source.table, handle.offset)) {
            return Ok(block);
        }
        self.load_block(handle, cache, on_miss)
    }

    /// A function of its own, so that a cached block does not pay for the code that loads one.
    #[cold]
    #[inline(never)]
    fn load_block(
        &self,
        handle: BlockHandle,
        cache: Option<&BlockCache>,
        on_miss: OnMiss,
    ) -> Result<Arc<[u8]>> {
        let _loads = waited::load();
        let block = self.read_block(handle, on_miss)?;
        if let Some(cache) = cache.filter(|_| on_miss == OnMiss::ReadAndCache) {
            cache.insert(self.source.table, handle.offset, block.clone());
        }
        Ok(block)
    }

    /// Reads a block from the file through a buffer that the thread keeps. The result is one
    /// allocation of the right size that is never zeroed, and direct I/O gets an aligned address.
    fn read_block(&self, handle: BlockHandle, on_miss: OnMiss) -> Result<Arc<[u8]>> {
        match self.try_read_block(handle, on_miss) {
            Err(Error::Corruption { .. }) if self.source.give_up_image() => {
                self.try_read_block(handle, on_miss)
            }
            read => read,
        }
    }

    /// Reads, verifies and decompresses a block in the thread's buffers.
    fn try_read_block(&self, handle: BlockHandle, on_miss: OnMiss) -> Result<Arc<[u8]>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let length = handle.end() - handle.offset;
            let read = &mut scratch.read;
            let stored = if on_miss == OnMiss::Refuse {
                self.source.read_image(handle.offset, length, read)?
            } else {
                self.source.read(handle.offset, length, read, IoClass::Client)?
            };
            let block = unpack(
                self.seed,
                stored,
                handle.offset,
                &mut scratch.decompressor,
                &mut scratch.decompressed,
            )
            .map(|payload| Arc::from(payload.of(stored, &scratch.decompressed)))
            .map_err(|kind| self.source.corruption(handle.offset, kind));
            scratch.read.shrink_to(SCRATCH_BYTES_MAX);
            if scratch.decompressed.len() > SCRATCH_BYTES_MAX {
                scratch.decompressed = Vec::new();
            }
            block
        })
    }
}

/// Returns the comparator of a table's keys, which must be the one that it was written with.
fn comparator_of(source: &TableSource, properties: &Properties) -> Result<Comparator> {
    let written = match properties.comparator.as_str() {
        "" => Comparator::BYTEWISE_NAME,
        name => name,
    };
    match &source.comparator {
        Some(comparator) if comparator.name() == written => Ok(comparator.clone()),
        Some(other) => Err(Error::InvalidArgument(format!(
            "comparator {}: {} was written with {written}; open the column family with that one",
            other.name(),
            shown_path(&source.path)
        ))),
        None if properties.comparator.is_empty() => Ok(Comparator::BYTEWISE),
        // No caller compares keys.
        None => Ok(Comparator::custom(written, |a, b| a.cmp(b))),
    }
}

/// The payload of a verified block: as it was stored, or in the decompression buffer.
pub(super) enum Payload {
    Stored,
    Decompressed(usize),
}

impl Payload {
    /// Returns the bytes of the payload.
    #[inline]
    pub(super) fn of<'a>(&self, stored: &'a [u8], decompressed: &'a [u8]) -> &'a [u8] {
        match *self {
            Payload::Stored => {
                let length = stored.len().saturating_sub(BLOCK_TRAILER_BYTES);
                stored.get(..length).unwrap_or_default()
            }
            Payload::Decompressed(length) => decompressed.get(..length).unwrap_or_default(),
        }
    }
}

/// Verifies the block `stored`, and decompresses it if needed.
#[inline]
pub(super) fn unpack(
    seed: Seed,
    stored: &[u8],
    offset: u64,
    decompressor: &mut Decompressor,
    decompressed: &mut Vec<u8>,
) -> Result<Payload, CorruptionKind> {
    match seed.open(stored, offset)? {
        (_, 0) => Ok(Payload::Stored),
        (payload, compression) => {
            let length = decompressor.decompress(compression, payload, decompressed)?;
            Ok(Payload::Decompressed(length))
        }
    }
}

/// Buffers of a thread for reads of single blocks.
#[derive(Default)]
struct Scratch {
    read: AlignedBuffer,
    decompressed: Vec<u8>,
    decompressor: Decompressor,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Returns `length` bytes at `offset`, or nothing if they are not all there.
fn slice(bytes: &[u8], offset: u64, length: u64) -> &[u8] {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    bytes.get(start..).and_then(|rest| rest.get(..length)).unwrap_or_default()
}
