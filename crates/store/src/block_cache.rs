//! The block cache: decompressed payloads of data blocks, by table and offset.
//!
//! 1. [`BlockCache::get`] looks a block up, and counts a hit or a miss in the thread's own
//!    counters.
//! 2. After a miss the reader loads the block and calls [`BlockCache::insert`].
//! 3. The cache evicts blocks beyond its capacity. `Pinned` remembers those that a reader still
//!    holds.
//!    An observer of the blocks that the database reads hears of the block afterwards
//!    ([`BlockObserver`]).
//! 4. [`SharedBlockCache::charge`] takes memory from the capacity for something else: memtables,
//!    and images of tables in L0.
//!
//! What must stay true: ids of tables are never reused and blocks never change (format rule F2), so
//! a cached block is never wrong. Databases that share a cache use different key spaces
//! ([`BlockCache::part_of`]).

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use sateen_control::{IoClass, SeqNo, TableId};

use crate::base::locks::leaf::lock_timed;
use crate::base::observed::Observed;
use crate::base::perf::{self, PerfMetric};
use crate::base::sync::leaf::lock;
use crate::base::waited;

/// Memory of a cached block beside its bytes: the reference count, the entry, its place in the hash
/// table, the allocator's header.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

/// The cost of a block is raised by 1/`ALLOCATOR_SLACK_PART` for what the allocator loses between
/// blocks of changing sizes. The process then grows by the capacity. Without it, a cache of 256 MiB
/// full of blocks of 4.2 KiB grew the process by 300 MiB.
const ALLOCATOR_SLACK_PART: u64 = 8;

/// Returns the memory that a block takes.
#[inline]
fn cost(block_bytes: u64) -> u64 {
    block_bytes + block_bytes / ALLOCATOR_SLACK_PART + ENTRY_OVERHEAD_BYTES
}
/// Capacity per shard, up to [`SHARDS_MAX`] shards.
const SHARD_BYTES_MIN: u64 = 2 << 20;
const SHARDS_MAX: u64 = 64;
/// Block size from which the number of entries is estimated. Only the length of the ghost list
/// depends on it.
const BLOCK_BYTES_TYPICAL: u64 = 4096;
/// Number of cache lines of counters, so that threads seldom share one.
const COUNTERS: usize = 16;

/// The key of a block: the table's id, combined with the database's base, and the block's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    table: TableId,
    offset: u64,
}

impl std::hash::Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.table.0);
        state.write_u64(self.offset);
    }
}

/// Mixes the two numbers of a key by two multiplications. Keys are the engine's own numbers, so no
/// one can choose colliding ones.
#[derive(Clone, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    #[inline]
    fn write_u64(&mut self, n: u64) {
        let mixed = u128::from(self.0 ^ n ^ 0x9E37_79B9_7F4A_7C15)
            .wrapping_mul(0xD6E8_FEB8_6659_FD93_A5A5_C3C3_9696_F0F1);
        let bytes = mixed.to_le_bytes();
        let low = bytes.first_chunk().map_or(0, |half| u64::from_le_bytes(*half));
        let high = bytes.last_chunk().map_or(0, |half| u64::from_le_bytes(*half));
        self.0 = low.rotate_left(32) ^ high;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Clone, Default)]
struct BuildKeyHasher;

impl BuildHasher for BuildKeyHasher {
    type Hasher = KeyHasher;
    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher::default()
    }
}

/// Weighs a block by its memory.
#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<[u8]>> for Bytes {
    #[inline]
    fn weight(&self, _: &Key, block: &Arc<[u8]>) -> u64 {
        cost(block.len() as u64)
    }
}

/// Hits and misses, in a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Blocks that the cache has evicted while readers held them.
#[derive(Clone, Default)]
struct Pinned(Arc<Mutex<Vec<Weak<[u8]>>>>);

impl Pinned {
    /// Remembers a block that was evicted while a reader held it.
    fn add(&self, block: &Arc<[u8]>) {
        let mut pinned = lock_timed(&self.0);
        // A weak reference keeps the memory allocated. References to freed blocks are removed
        // before the list grows.
        if pinned.len() == pinned.capacity() {
            pinned.retain(|block| block.strong_count() > 0);
            pinned.shrink_to(64);
        }
        pinned.push(Arc::downgrade(block));
    }

    /// Returns the bytes of the blocks that readers still hold.
    fn bytes(&self) -> u64 {
        let mut pinned = lock(&self.0);
        pinned.retain(|block| block.strong_count() > 0);
        pinned.iter().filter_map(Weak::upgrade).map(|block| block.len() as u64).sum()
    }
}

/// Evicted blocks are freed after the cache's lock is released. Those that readers hold are
/// remembered.
impl Lifecycle<Key, Arc<[u8]>> for Pinned {
    // Usually one or two blocks are evicted for one.
    type RequestState = [Option<Arc<[u8]>>; 2];

    fn on_evict(&self, state: &mut Self::RequestState, _: Key, block: Arc<[u8]>) {
        if Arc::strong_count(&block) > 1 {
            self.add(&block);
        }
        if let Some(free) = state.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(block);
        }
    }
}

type Blocks = Cache<Key, Arc<[u8]>, Bytes, BuildKeyHasher, Pinned>;

/// A block cache for several databases: memory that one of them does not need serves the others.
/// Clones share the cache. The options `block_cache_bytes` and `memory_budget` of the databases do
/// not change its size.
#[derive(Clone)]
pub struct SharedBlockCache(Arc<Shared>);

struct Shared {
    cache: Blocks,
    pinned: Pinned,
    /// Capacity for blocks and charges together.
    capacity: AtomicU64,
    /// Held while the capacity for blocks changes, so that the last change takes effect last.
    applying: Mutex<()>,
    /// Bytes of the capacity that are used for something else.
    charged: AtomicU64,
    /// Part of `charged` that images of whole tables take.
    table_images: AtomicU64,
    /// Number of databases that were opened with the cache.
    databases: AtomicU64,
}

impl SharedBlockCache {
    /// Returns a cache of at most `capacity_bytes`, overhead included.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> SharedBlockCache {
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let items = capacity_bytes / cost(BLOCK_BYTES_TYPICAL);
        // Everything required is set, so `build` cannot fail.
        let options = OptionsBuilder::new()
            .weight_capacity(capacity_bytes)
            .estimated_items_capacity(usize::try_from(items).unwrap_or(usize::MAX).max(1))
            .shards(usize::try_from(shards).unwrap_or(1))
            .build()
            .expect("capacity and estimate are set");
        let pinned = Pinned::default();
        SharedBlockCache(Arc::new(Shared {
            cache: Cache::with_options(options, Bytes, BuildKeyHasher, pinned.clone()),
            pinned,
            capacity: AtomicU64::new(capacity_bytes),
            charged: AtomicU64::new(0),
            applying: Mutex::default(),
            table_images: AtomicU64::new(0),
            databases: AtomicU64::new(0),
        }))
    }

    /// Returns the bytes in use, overhead included: blocks, images of L0 tables
    /// (`level0_cache_percent`), and what memtables charge (`WriteBufferManager::with_cache`).
    #[must_use]
    pub fn usage_bytes(&self) -> u64 {
        self.0.cache.weight() + self.0.charged.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the cache itself and of the tables that find blocks. They are not in
    /// [`usage_bytes`](SharedBlockCache::usage_bytes), and an empty cache has some.
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        (size_of::<Shared>() + self.0.cache.memory_used().total()) as u64
    }

    /// Returns the capacity in bytes.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.0.capacity.load(Ordering::Relaxed)
    }

    /// Changes the capacity, and evicts what no longer fits.
    pub fn set_capacity(&self, bytes: u64) {
        self.0.capacity.store(bytes, Ordering::Relaxed);
        self.apply_capacity();
    }

    /// Changes a charge for something else from `from` to `to` bytes.
    pub fn charge(&self, from: u64, to: u64) {
        // The difference may be negative. The sum then wraps around, and is right again.
        self.0.charged.fetch_add(to.wrapping_sub(from), Ordering::Relaxed);
        self.apply_capacity();
    }

    /// Returns the bytes that images of tables may take: `percent` of what nothing else takes.
    fn table_images_max(&self, percent: u32) -> u64 {
        let images = self.0.table_images.load(Ordering::Relaxed);
        let others = self.0.charged.load(Ordering::Relaxed).saturating_sub(images);
        self.capacity().saturating_sub(others) / 100 * u64::from(percent)
    }

    /// Gives the cache of blocks what nothing else charges.
    fn apply_capacity(&self) {
        let _one_at_a_time = lock(&self.0.applying);
        let charged = self.0.charged.load(Ordering::Relaxed);
        self.0.cache.set_capacity(self.capacity().saturating_sub(charged));
    }

    /// Returns the bytes of blocks that readers hold and the cache has evicted.
    #[must_use]
    pub fn pinned_bytes(&self) -> u64 {
        self.0.pinned.bytes()
    }

    /// Returns the bytes of blocks that readers hold, whether the cache still has them or not. It
    /// visits each block, so it is for reports. RocksDB: `GetPinnedUsage`.
    #[must_use]
    pub fn in_use_bytes(&self) -> u64 {
        // One reference is the cache's, another the iterator's.
        let held = self.0.cache.iter().filter(|(_, block)| Arc::strong_count(block) > 2);
        let held: u64 = held.map(|(_, block)| cost(block.len() as u64)).sum();
        held + self.pinned_bytes()
    }

    /// Returns the number of cached blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.0.cache.len()
    }
}

impl PartialEq for SharedBlockCache {
    fn eq(&self, other: &SharedBlockCache) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for SharedBlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedBlockCache")
            .field("capacity", &self.capacity())
            .field("usage_bytes", &self.usage_bytes())
            .finish_non_exhaustive()
    }
}

/// A database's block cache, used by all its column families. It is the database's own, or a part
/// of one that databases share.
pub struct BlockCache {
    shared: SharedBlockCache,
    /// Combined with the ids of tables, which are unique only within a database. Ids of tables are
    /// below its lowest bit.
    base: u64,
    /// Whether the cache is shared. If so, this database does not set its capacity.
    of_others: bool,
    counters: [Counters; COUNTERS],
    observed: Arc<Observed<dyn BlockObserver>>,
}

/// A data block that was needed.
#[derive(Clone, Copy, Debug)]
pub struct BlockAccess<'a> {
    pub table: TableId,
    /// Offset in the table.
    pub offset: u64,
    /// Bytes of the decompressed block.
    pub bytes: u64,
    pub class: IoClass,
    /// True if the block was in the cache.
    pub is_hit: bool,
    /// True if a block that is missing in the cache is added.
    pub fills_cache: bool,
    /// The key that a point read looks for.
    pub point: Option<PointAccess<'a>>,
    /// True if the block was read together with others for point reads, which ask for it later.
    pub is_ahead: bool,
}

/// What a point read has found in a block.
#[derive(Clone, Copy, Debug)]
pub struct PointAccess<'a> {
    pub user_key: &'a [u8],
    pub snapshot: SeqNo,
    /// Bytes of the entry's key and value; `None` if the block does not have it.
    pub entry_bytes: Option<u64>,
    /// Number of entries in the block.
    pub entries: u64,
}

/// Somebody who is told of each data block that is needed, on the thread that needs it.
pub trait BlockObserver: Send + Sync {
    /// Is told of a block. It must not wait.
    fn accessed(&self, access: &BlockAccess<'_>);
}

/// Ids of tables are below this power of two: more than a trillion.
const TABLE_BITS: u32 = 40;

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache")
            .field("capacity", &self.capacity())
            .field("usage_bytes", &self.usage_bytes())
            .finish_non_exhaustive()
    }
}

impl BlockCache {
    /// Returns a cache of at most `capacity` bytes, overhead included. With 0 it keeps nothing.
    pub fn new(capacity: u64) -> BlockCache {
        let shared = SharedBlockCache::new(capacity);
        BlockCache {
            shared,
            base: 0,
            of_others: false,
            counters: Default::default(),
            observed: Arc::default(),
        }
    }

    /// Returns the part of `shared` for a database that is being opened.
    pub fn part_of(shared: SharedBlockCache) -> BlockCache {
        // Each open gets a base of its own.
        let base = shared.0.databases.fetch_add(1, Ordering::Relaxed) << TABLE_BITS;
        BlockCache {
            shared,
            base,
            of_others: true,
            counters: Default::default(),
            observed: Arc::default(),
        }
    }

    /// Returns the cache key of a block.
    #[inline]
    fn key(&self, table: TableId, offset: u64) -> Key {
        debug_assert!(table.0 >> TABLE_BITS == 0, "a table of that number");
        Key { table: TableId(self.base ^ table.0), offset }
    }

    /// Returns the block at `offset` of `table`, if it is cached.
    #[inline]
    pub fn get(&self, table: TableId, offset: u64) -> Option<Arc<[u8]>> {
        let found = self.shared.0.cache.get(&self.key(table, offset));
        let counters = self.counters();
        match found.is_some() {
            true => {
                perf::add(PerfMetric::BlockCacheHitCount, 1);
                counters.hits.fetch_add(1, Ordering::Relaxed)
            }
            false => {
                waited::cache_missed();
                counters.misses.fetch_add(1, Ordering::Relaxed)
            }
        };
        found
    }

    /// Returns true if the block at `offset` of `table` is cached. It counts as no use of it.
    pub fn has(&self, table: TableId, offset: u64) -> bool {
        self.shared.0.cache.peek(&self.key(table, offset)).is_some()
    }

    /// Returns the observer of the blocks that the database needs.
    #[inline]
    pub fn observed(&self) -> &Arc<Observed<dyn BlockObserver>> {
        &self.observed
    }

    /// Adds a block.
    pub fn insert(&self, table: TableId, offset: u64, block: Arc<[u8]>) {
        self.shared.0.cache.insert(self.key(table, offset), block);
    }

    /// Returns the bytes in use, overhead included.
    pub fn usage_bytes(&self) -> u64 {
        self.shared.usage_bytes()
    }

    /// Returns the capacity in bytes.
    pub fn capacity(&self) -> u64 {
        self.shared.capacity()
    }

    /// Changes the capacity unless the cache is shared. Evicts what no longer fits.
    pub fn set_capacity(&self, capacity: u64) {
        if !self.of_others {
            self.shared.set_capacity(capacity);
        }
    }

    /// Returns true if the cache is shared.
    pub fn is_of_others(&self) -> bool {
        self.of_others
    }

    /// Returns the bytes that images of tables may still take, of the `percent` that they may take.
    pub fn table_images_room(&self, percent: u32) -> u64 {
        self.shared.table_images_max(percent).saturating_sub(self.table_images_bytes())
    }

    /// Returns the bytes by which images of tables exceed that limit.
    pub fn table_images_excess(&self, percent: u32) -> u64 {
        self.table_images_bytes().saturating_sub(self.shared.table_images_max(percent))
    }

    /// Returns the bytes of images of tables, of all databases with this cache.
    pub fn table_images_bytes(&self) -> u64 {
        self.shared.0.table_images.load(Ordering::Relaxed)
    }

    /// Charges up to `bytes` for images of tables. Returns the bytes granted.
    pub fn charge_table_images(&self, bytes: u64, percent: u32) -> u64 {
        let max = self.shared.table_images_max(percent);
        let granted = |taken: u64| bytes.min(max.saturating_sub(taken));
        let order = Ordering::Relaxed;
        let more = |taken| Some(taken + granted(taken));
        let taken = self.shared.0.table_images.fetch_update(order, order, more);
        let granted = granted(taken.unwrap_or(max));
        if granted > 0 {
            self.shared.charge(0, granted);
        }
        granted
    }

    /// Returns a charge of `bytes` for images of tables.
    pub fn discharge_table_images(&self, bytes: u64) {
        self.shared.0.table_images.fetch_sub(bytes, Ordering::Relaxed);
        self.shared.charge(bytes, 0);
    }

    /// Returns the number of lookups that found their block.
    pub fn hits(&self) -> u64 {
        self.counters.iter().map(|c| c.hits.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of lookups that did not find their block.
    pub fn misses(&self) -> u64 {
        self.counters.iter().map(|c| c.misses.load(Ordering::Relaxed)).sum()
    }

    /// Returns the bytes of blocks that readers hold and the cache has evicted.
    pub fn pinned_bytes(&self) -> u64 {
        self.shared.pinned_bytes()
    }

    /// Returns the counters of the calling thread.
    #[inline]
    fn counters(&self) -> &Counters {
        THREAD.with(|thread| &self.counters[thread % COUNTERS])
    }
}

/// Number of threads that have used a cache.
static THREADS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(n: usize) -> Arc<[u8]> {
        vec![7; n].into()
    }

    #[test]
    fn finds_what_was_inserted_and_counts() {
        let cache = BlockCache::new(1 << 20);
        cache.insert(TableId(1), 0, block(10));
        cache.insert(TableId(1), 4096, block(11));
        cache.insert(TableId(2), 0, block(12));
        assert_eq!(cache.get(TableId(1), 0).unwrap().len(), 10);
        assert_eq!(cache.get(TableId(1), 4096).unwrap().len(), 11);
        assert_eq!(cache.get(TableId(2), 0).unwrap().len(), 12);
        assert!(cache.get(TableId(2), 4096).is_none());
        assert_eq!((cache.hits(), cache.misses()), (3, 1));
        assert_eq!(cache.usage_bytes(), cost(10) + cost(11) + cost(12));
    }

    #[test]
    fn databases_that_share_a_cache_do_not_see_each_other() {
        let shared = SharedBlockCache::new(1 << 20);
        let (one, two) = (BlockCache::part_of(shared.clone()), BlockCache::part_of(shared.clone()));
        one.insert(TableId(1), 0, block(10));
        assert!(two.get(TableId(1), 0).is_none());
        two.insert(TableId(1), 0, block(20));
        assert_eq!(one.get(TableId(1), 0).unwrap().len(), 10);
        assert_eq!(two.get(TableId(1), 0).unwrap().len(), 20);
        assert_eq!((one.hits(), one.misses()), (1, 0));
        assert_eq!((two.hits(), two.misses()), (1, 1));
        assert_eq!(shared.usage_bytes(), cost(10) + cost(20));
        one.set_capacity(1);
        assert_eq!(two.capacity(), 1 << 20, "no database says how large it is");
        shared.set_capacity(0);
        assert_eq!(shared.usage_bytes(), 0);
    }

    #[test]
    fn never_uses_more_than_its_capacity() {
        for capacity in [0, 1, 1000, 1 << 20, 16 << 20] {
            let cache = BlockCache::new(capacity);
            for i in 0..10_000u64 {
                cache.insert(TableId(i % 7), i * 4096, block(4096));
                assert!(cache.usage_bytes() <= capacity + capacity / 8, "{capacity}");
            }
            cache.set_capacity(capacity / 2);
            assert!(cache.usage_bytes() <= capacity / 2 + 64);
            assert_eq!(cache.capacity(), capacity / 2);
        }
    }

    #[test]
    fn pinned_blocks_are_those_that_outlive_their_place() {
        let cache = BlockCache::new(1 << 20);
        let held: Vec<_> = (0..300).map(|_| block(4000)).collect();
        for (i, block) in held.iter().enumerate() {
            cache.insert(TableId(1), i as u64, block.clone());
        }
        let cached = held.iter().filter(|block| Arc::strong_count(block) > 1).count();
        assert!(cached < 300);
        assert_eq!(cache.pinned_bytes(), (300 - cached as u64) * 4000);
        drop(held);
        assert_eq!(cache.pinned_bytes(), 0);
        for i in 0..10_000 {
            cache.insert(TableId(2), i, block(4000));
        }
        assert_eq!(cache.pinned_bytes(), 0, "no reader held those");
        assert_eq!(cache.shared.in_use_bytes(), 0);
        cache.insert(TableId(9), 0, block(100));
        let held = cache.get(TableId(9), 0).unwrap();
        assert_eq!(cache.shared.in_use_bytes(), cost(100), "a reader holds it, and the cache, too");
        drop(held);
        assert_eq!(cache.shared.in_use_bytes(), 0);
    }
}
