//! Blocks of several tables that are read at the same time, for a read of many keys.
//!
//! What must stay true: this fills the cache and decides nothing. A block that cannot be read or is
//! damaged is left, and the reader that needs it meets the error itself.

use std::sync::Arc;

use sateen_control::{IoClass, SeqNo};

use super::compression::Decompressor;
use super::format::BlockHandle;
use super::reader::{Table, unpack};
use crate::base::perf::{self, PerfMetric};
use crate::base::waited;
use crate::block_cache::{BlockAccess, BlockCache};
use crate::vfs::{AlignedBuffer, PlacedRead, read_many};

/// Most bytes of buffers for reads under way.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// A block that a read needs.
#[derive(Debug)]
pub struct NeededBlock {
    table: Arc<Table>,
    handle: BlockHandle,
}

impl Table {
    /// Returns the first block that a read of `user_key` at `snapshot` needs, if it is neither in
    /// `cache` nor in the table's image.
    pub fn needs(
        self: &Arc<Table>,
        user_key: &[u8],
        snapshot: SeqNo,
        cache: &BlockCache,
    ) -> Option<NeededBlock> {
        if snapshot < self.source().global_seqno || self.source().image.strong_count() > 0 {
            return None;
        }
        let handle = self.handle_of(user_key)?;
        let is_cached = cache.has(self.id(), handle.offset);
        (!is_cached).then(|| NeededBlock { table: self.clone(), handle })
    }
}

/// Reads blocks into `cache`, each once.
pub fn load_blocks(mut blocks: Vec<NeededBlock>, cache: &BlockCache) {
    let place = |block: &NeededBlock| (block.table.id(), block.handle.offset);
    blocks.sort_unstable_by_key(place);
    blocks.dedup_by_key(|block| place(block));
    let _loads = waited::load();
    let mut buffer = AlignedBuffer::default();
    let mut decompressor = Decompressor::default();
    let mut decompressed = Vec::new();
    let mut rest = blocks.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |block: &&NeededBlock| {
            bytes += block.read_bytes();
            bytes <= BUFFER_BYTES_MAX
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (now, later) = rest.split_at(count.min(rest.len()));
        rest = later;
        // A single block is left to its reader.
        if now.len() < 2 {
            continue;
        }
        buffer.reserve(now.iter().map(NeededBlock::read_bytes).sum());
        let mut target = buffer.whole_mut();
        let mut reads = Vec::with_capacity(now.len());
        for block in now {
            let Some((buffer, behind)) = target.split_at_mut_checked(block.read_bytes()) else {
                break;
            };
            target = behind;
            let file = &*block.table.source().file;
            reads.push(PlacedRead { file, buffer, offset: block.read_from() });
        }
        let results = {
            let _timed = perf::time(PerfMetric::BlockReadTime);
            read_many(&mut reads, IoClass::Client)
        };
        for ((block, read), result) in now.iter().zip(&reads).zip(results) {
            let Ok(got) = result else { continue };
            perf::add(PerfMetric::BlockReadCount, 1);
            perf::add(PerfMetric::BlockReadByte, got as u64);
            let Some(stored) = block.within(read.buffer.get(..got).unwrap_or_default()) else {
                continue;
            };
            let (seed, offset) = (block.table.seed, block.handle.offset);
            let unpacked = unpack(seed, stored, offset, &mut decompressor, &mut decompressed);
            if let Ok(payload) = unpacked {
                let payload: Arc<[u8]> = Arc::from(payload.of(stored, &decompressed));
                if cache.observed().is_on() {
                    let access = block.table.access(block.handle, payload.len(), false, true);
                    let access = BlockAccess { is_ahead: true, ..access };
                    cache.observed().tell(|observer| observer.accessed(&access));
                }
                cache.insert(block.table.id(), offset, payload);
            }
        }
    }
}

impl NeededBlock {
    /// Returns where in the file the read begins.
    fn read_from(&self) -> u64 {
        let start = self.table.source().offset + self.handle.offset;
        start - start % self.alignment()
    }

    /// Returns the length of the read, in whole units of the file.
    fn read_bytes(&self) -> usize {
        let end = self.table.source().offset + self.handle.end();
        let bytes = end.next_multiple_of(self.alignment()) - self.read_from();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Returns the block's bytes of what was read; `None` if they are not all there.
    fn within<'a>(&self, read: &'a [u8]) -> Option<&'a [u8]> {
        let start = self.table.source().offset + self.handle.offset;
        let first = usize::try_from(start - self.read_from()).ok()?;
        let length = usize::try_from(self.handle.end() - self.handle.offset).ok()?;
        read.get(first..)?.get(..length)
    }

    fn alignment(&self) -> u64 {
        self.table.source().file.alignment().max(1) as u64
    }
}
