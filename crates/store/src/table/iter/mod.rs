//! A cursor over a table, in both directions.
//!
//! 1. A seek finds the block in the index and makes it current (`load`); the block's own cursor
//!    then finds the entry.
//! 2. `load` takes the block from the cache. Otherwise it reads it alone from the file.
//! 3. Where [`Readahead`] expects a scan, `take_from_chunk` reads ahead instead: `read_chunk` reads
//!    a chunk forward or backward, but not beyond the bounds of the scan.
//! 4. In compaction mode (`chunk_bytes` above 0) the cursor reads the whole table in large chunks
//!    from the start, and does not use the cache.
//! 5. `next` and `prev` step within the block. At its end, `skip_forward` and `skip_backward` load
//!    the next block that has an entry.
//! 6. `join_value` reads the value if the table has separated values, at each move or only when it
//!    is asked for ([`ValueMode`]). A scan reads values ahead, too (`values`).
//!
//! What must stay true: after an error the cursor is invalid. A chunk that fails to verify is read
//! again once, because it may have been read long ago.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use sateen_control::{IoClass, UserKey};

use super::OnMiss;
use super::block::Cursor;
use super::format::BlockHandle;
use super::gathered::GatheredValues;
use super::readahead::{LevelScans, Readahead};
use super::reader::{Payload, Table, unpack};
use super::spare::Buffers;
use super::value_files::ValueScan;
use crate::base::error::{CorruptionKind, Result};
use crate::base::iterator::InternalIterator;
use crate::base::observed::Observed;
use crate::base::sync::atomic::AtomicUsize;
use crate::base::sync::atomic::Ordering::Relaxed;
use crate::base::{key, waited};
use crate::block_cache::{BlockAccess, BlockCache, BlockObserver};

mod values;

/// How a cursor shows the values of puts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueMode {
    /// Each value is read at each move, wherever it is.
    Join,
    /// A value that is in another file is read by [`InternalIterator::load_value`].
    OnDemand,
    /// Values are encoded by `Separated`, in every table. Those in value files are not read.
    Encoded,
}

/// How a cursor gets its blocks.
#[derive(Clone, Debug)]
pub struct TableIterOptions {
    /// The cache in which blocks are looked for first.
    pub cache: Option<Arc<BlockCache>>,
    /// What happens if a block is not in memory.
    pub on_miss: OnMiss,
    /// I/O class of the reads.
    pub class: IoClass,
    /// Who is told of the blocks, if not the observer of the cache.
    pub observed: Option<Arc<Observed<dyn BlockObserver>>>,
    /// Compaction mode: largest chunk that is read at once. 0 for a client's cursor.
    pub chunk_bytes: usize,
    /// A smaller limit for now, set by a job that clients wait for.
    pub chunk_bytes_now: Option<Arc<AtomicUsize>>,
    /// Readahead from the first miss on; 0 to read ahead where a scan is expected.
    pub readahead_bytes: u64,
    /// What is known of scans like this one.
    pub scans: Option<LevelScans>,
    /// The keys that a scan will show, from the first (inclusive) to the second (exclusive). No
    /// block is read ahead beyond them.
    pub bounds: (Option<UserKey>, Option<UserKey>),
    /// How values are shown.
    pub values: ValueMode,
}

impl TableIterOptions {
    /// Returns the options of a client's cursor.
    pub fn client(cache: Option<Arc<BlockCache>>, on_miss: OnMiss) -> TableIterOptions {
        TableIterOptions {
            cache,
            on_miss,
            class: IoClass::Client,
            observed: None,
            chunk_bytes: 0,
            chunk_bytes_now: None,
            readahead_bytes: 0,
            scans: None,
            bounds: (None, None),
            values: ValueMode::Join,
        }
    }

    /// Returns the options of a job's cursor, which reads the whole table once.
    pub fn compaction(class: IoClass, chunk_bytes: usize) -> TableIterOptions {
        TableIterOptions {
            cache: None,
            on_miss: OnMiss::Read,
            class,
            observed: None,
            chunk_bytes,
            chunk_bytes_now: None,
            readahead_bytes: 0,
            scans: None,
            bounds: (None, None),
            values: ValueMode::Join,
        }
    }

    /// Returns the largest chunk that may be read now.
    fn chunk_bytes(&self) -> usize {
        let now = self.chunk_bytes_now.as_ref().map(|now| now.load(Relaxed));
        now.map_or(self.chunk_bytes, |now| now.min(self.chunk_bytes))
    }
}

/// Where the payload of the current block is.
#[derive(Debug)]
enum Data {
    None,
    /// A block of its own, which may also be in the cache.
    Shared(Arc<[u8]>),
    /// Range in the chunk.
    Chunk(Range<usize>),
    /// Length in the decompression buffer.
    Decompressed(usize),
}

/// Where the current value is, in a table whose values are separated or shown encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// In the block, as it is stored.
    Stored,
    /// In the block, behind the first byte of what is stored.
    BehindByte,
    /// In `separated`.
    Made,
    /// In another file, from which it was not read yet.
    Elsewhere,
}

impl Drop for TableIter {
    fn drop(&mut self) {
        std::mem::take(&mut self.buffers).give_back();
    }
}

/// A cursor over a table.
pub struct TableIter {
    table: Arc<Table>,
    options: TableIterOptions,
    /// Position in the current block.
    cursor: Cursor,
    data: Data,
    /// Index of the current block.
    block: usize,
    /// Whether the table has separated values, or values are shown encoded.
    separates: bool,
    /// The current value, if it is not shown as it is stored.
    separated: Vec<u8>,
    shown: Shown,
    scan: ValueScan,
    gathered: GatheredValues,
    buffers: Buffers,
    /// The part of the table in the chunk, and where it starts in the buffer.
    chunk_from: u64,
    chunk_end: u64,
    chunk_start: usize,
    readahead: Readahead,
}

impl Table {
    /// Returns a cursor that is invalid until the first seek.
    pub fn iter(self: &Arc<Self>, options: TableIterOptions) -> TableIter {
        let readahead = Readahead::new(options.scans.clone(), options.readahead_bytes);
        TableIter {
            table: self.clone(),
            cursor: Cursor::numbered(self.source().global_seqno),
            data: Data::None,
            block: 0,
            separates: self.separates_values() || options.values == ValueMode::Encoded,
            separated: Vec::new(),
            shown: Shown::Stored,
            scan: ValueScan::default(),
            gathered: GatheredValues::new(options.scans.clone()),
            buffers: Buffers::default(),
            chunk_from: 0,
            chunk_end: 0,
            chunk_start: 0,
            readahead,
            options,
        }
    }
}

/// Returns the payload of the current block.
#[inline]
fn payload<'a>(data: &'a Data, buffers: &'a Buffers) -> &'a [u8] {
    match data {
        Data::None => &[],
        Data::Shared(block) => block,
        Data::Chunk(range) => buffers.chunk.whole().get(range.clone()).unwrap_or_default(),
        Data::Decompressed(length) => buffers.decompressed.get(..*length).unwrap_or_default(),
    }
}

impl TableIter {
    /// Returns the bytes that the next read of a scan takes.
    #[cfg(test)]
    pub fn readahead_bytes(&self) -> u64 {
        self.readahead.doubling()
    }

    /// Runs a step of the block's cursor. An error gets the place in the file.
    #[inline]
    fn on_block(
        &mut self,
        step: impl FnOnce(&mut Cursor, &[u8]) -> Result<(), CorruptionKind>,
    ) -> Result<()> {
        let block = payload(&self.data, &self.buffers);
        match step(&mut self.cursor, block) {
            Ok(()) => Ok(()),
            Err(kind) => Err(self.corruption(kind)),
        }
    }

    /// Returns corruption of the current block.
    #[cold]
    fn corruption(&self, kind: CorruptionKind) -> crate::base::error::Error {
        let offset = self.table.index.handle(self.block).map_or(0, |handle| handle.offset);
        self.table.source().corruption(offset, kind)
    }

    /// Makes `block` current, with the block's cursor invalid. Returns false behind the last block.
    fn load(&mut self, block: usize) -> Result<bool> {
        self.cursor.reset();
        let Some(handle) = self.table.index.handle(block) else {
            return Ok(false);
        };
        if block == self.block && !matches!(self.data, Data::None) {
            return Ok(true);
        }
        self.data = Data::None;
        self.block = block;
        if self.options.chunk_bytes > 0 {
            let bytes = self.options.chunk_bytes() as u64;
            self.data = self.take_from_chunk(handle, bytes, true)?;
            self.observe(handle, false);
            return Ok(true);
        }
        let table = self.table.id();
        let cache = self.options.cache.as_deref();
        if let Some(block) = cache.and_then(|cache| cache.get(table, handle.offset)) {
            self.data = Data::Shared(block);
            self.observe(handle, true);
            return Ok(true);
        }
        let _loads = waited::load();
        let on_miss = self.options.on_miss;
        let backward = self.readahead.is_backward(block);
        let is_at_end = block == 0 || block + 1 == self.table.index.blocks();
        let stored = handle.end() - handle.offset;
        let is_read = self.is_in_chunk(handle);
        self.readahead.note(block, stored, is_at_end, is_read);
        let ahead = match on_miss {
            OnMiss::Refuse => 0,
            _ if is_read => stored,
            _ => self.readahead.next_read(stored),
        };
        if ahead == 0 {
            self.data = Data::Shared(self.table.block(handle, None, on_miss)?);
        } else {
            self.data = self.take_from_chunk(handle, ahead, !backward)?;
        }
        self.fill_cache(handle);
        self.observe(handle, false);
        Ok(true)
    }

    /// Tells the observer of the block that became current, if there is one.
    #[inline]
    fn observe(&self, handle: BlockHandle, is_hit: bool) {
        let of_cache = || self.options.cache.as_ref().map(|cache| cache.observed());
        if let Some(observed) = self.options.observed.as_ref().or_else(of_cache)
            && observed.is_on()
        {
            self.tell(observed, handle, is_hit);
        }
    }

    #[cold]
    fn tell(&self, observed: &Observed<dyn BlockObserver>, handle: BlockHandle, is_hit: bool) {
        let bytes = payload(&self.data, &self.buffers).len();
        let fills = self.options.cache.is_some() && self.options.on_miss == OnMiss::ReadAndCache;
        let access = self.table.access(handle, bytes, is_hit, fills);
        let access = BlockAccess { class: self.options.class, ..access };
        observed.tell(|observer| observer.accessed(&access));
    }

    /// Adds a block that was read to the cache, if wanted.
    fn fill_cache(&mut self, handle: BlockHandle) {
        let Some(cache) =
            self.options.cache.as_deref().filter(|_| self.options.on_miss == OnMiss::ReadAndCache)
        else {
            return;
        };
        let block = match &self.data {
            Data::Shared(block) => block.clone(),
            other => Arc::from(payload(other, &self.buffers)),
        };
        cache.insert(self.table.id(), handle.offset, block);
    }

    /// Returns true if the chunk contains the block.
    fn is_in_chunk(&self, handle: BlockHandle) -> bool {
        self.chunk_from <= handle.offset && handle.end() <= self.chunk_end
    }

    /// Takes the block from the chunk. If it is not there, reads a chunk of about `bytes` that
    /// begins with the block, or ends with it if the scan goes backward.
    fn take_from_chunk(&mut self, handle: BlockHandle, bytes: u64, forward: bool) -> Result<Data> {
        if self.is_in_chunk(handle)
            && let Ok(data) = self.unpack_from_chunk(handle)
        {
            return Ok(data);
        }
        // The chunk may have been read wrongly long ago, so it is read again.
        self.read_chunk(handle, bytes, forward)?;
        let mut data = self.unpack_from_chunk(handle);
        if data.is_err() && self.table.source().give_up_image() {
            self.read_chunk(handle, bytes, forward)?;
            data = self.unpack_from_chunk(handle);
        }
        data.map_err(|kind| self.table.source().corruption(handle.offset, kind))
    }

    /// Verifies a block in the chunk, and decompresses it if needed.
    fn unpack_from_chunk(&mut self, handle: BlockHandle) -> Result<Data, CorruptionKind> {
        let distance = |to: u64| usize::try_from(to - self.chunk_from).unwrap_or(usize::MAX);
        let start = self.chunk_start.saturating_add(distance(handle.offset));
        let end = self.chunk_start.saturating_add(distance(handle.end()));
        let Buffers { chunk, decompressed, decompressor } = &mut self.buffers;
        let stored = chunk.whole().get(start..end).unwrap_or_default();
        match unpack(self.table.seed, stored, handle.offset, decompressor, decompressed)? {
            Payload::Decompressed(length) => Ok(Data::Decompressed(length)),
            payload => Ok(Data::Chunk(start..start + payload.of(stored, &[]).len())),
        }
    }

    /// Reads the part of the table that begins with the block, or ends with it, into the chunk.
    fn read_chunk(&mut self, handle: BlockHandle, bytes: u64, forward: bool) -> Result<()> {
        let (lower, upper) = self.table.part_within(&self.options.bounds);
        // A job's chunks may end anywhere.
        let is_scan = self.options.chunk_bytes == 0;
        let blocks_of = |bytes| self.table.blocks_of(bytes, self.block, forward);
        let bytes = if is_scan { blocks_of(bytes) } else { bytes };
        let (from, end) = if forward {
            (handle.offset, handle.offset.saturating_add(bytes).min(upper).max(handle.end()))
        } else {
            (handle.end().saturating_sub(bytes).max(lower).min(handle.offset), handle.end())
        };
        // While the chunk is read it has no valid bounds, so that an error does not leave old ones.
        (self.chunk_from, self.chunk_end) = (0, 0);
        if self.buffers.chunk.capacity() == 0 {
            self.buffers = Buffers::take();
        }
        let source = self.table.source();
        let range =
            source.read_range(from, end - from, &mut self.buffers.chunk, self.options.class)?;
        self.chunk_start = range.start;
        (self.chunk_from, self.chunk_end) = (from, end);
        Ok(())
    }

    /// Moves to the first entry behind the current block, which may be unreadable. After an error,
    /// another call tries the block after that. Returns false behind the last block.
    pub fn skip_block(&mut self) -> Result<bool> {
        if !self.load(self.block + 1)? {
            return Ok(false);
        }
        self.on_block(Cursor::seek_to_first)?;
        self.skip_forward()?;
        Ok(true)
    }

    /// If the cursor has left its block, moves to the first entry of the next block that has one.
    fn skip_forward(&mut self) -> Result<()> {
        while !self.cursor.valid() && self.load(self.block + 1)? {
            self.on_block(Cursor::seek_to_first)?;
        }
        self.join_value()
    }

    /// If the cursor has left its block, moves to the last entry of the previous block that has
    /// one.
    fn skip_backward(&mut self) -> Result<()> {
        while !self.cursor.valid() {
            let Some(before) = self.block.checked_sub(1) else { return Ok(()) };
            if !self.load(before)? {
                return Ok(());
            }
            self.on_block(Cursor::seek_to_last)?;
        }
        self.join_value()
    }
}

impl InternalIterator for TableIter {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.gathered.end_stretch();
        if self.load(0)? {
            self.on_block(Cursor::seek_to_first)?;
            self.skip_forward()?;
        }
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.gathered.end_stretch();
        let last = self.table.index.blocks().wrapping_sub(1);
        if self.load(last)? {
            self.on_block(Cursor::seek_to_last)?;
            self.skip_backward()?;
        }
        Ok(())
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.gathered.end_stretch();
        let user_key = key::user_key(target);
        let mut block = self.table.index.find(self.table.comparator(), user_key);
        while self.load(block)? {
            let table = self.table.clone();
            self.on_block(|cursor, block| cursor.seek(table.comparator(), block, target))?;
            // The next block has entries before the target only if versions of the key continue
            // there.
            if self.cursor.valid() || !self.table.index.is_separator(block, user_key) {
                return self.skip_forward();
            }
            block += 1;
        }
        Ok(())
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.seek(target)?;
        if !self.valid() {
            return self.seek_to_last();
        }
        if key::compare(self.table.comparator(), self.key(), target) == Ordering::Greater {
            return self.prev();
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.on_block(Cursor::next)?;
        if self.cursor.valid() {
            return self.join_value();
        }
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        self.gathered.end_stretch();
        self.on_block(Cursor::prev)?;
        self.skip_backward()
    }

    #[inline]
    fn load_value(&mut self) -> Result<()> {
        if self.separates && self.shown == Shown::Elsewhere { self.fetch() } else { Ok(()) }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        let block = payload(&self.data, &self.buffers);
        let stored = block.get(self.cursor.value()).unwrap_or_default();
        if !self.separates {
            return stored;
        }
        match self.shown {
            Shown::Stored => stored,
            Shown::BehindByte => stored.get(1..).unwrap_or_default(),
            Shown::Made => &self.separated,
            Shown::Elsewhere => {
                debug_assert!(false, "the value was not loaded");
                &[]
            }
        }
    }
}
