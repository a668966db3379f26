//! The block cache: decompressed payloads of data blocks by table and offset. Tables' numbers are
//! never reused and blocks never change (format rule F2), so nothing here is ever wrong, only cold.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use sateen_control::TableId;

use crate::base::locks::leaf::lock_timed;
use crate::base::perf::{self, PerfMetric};
use crate::base::sync::leaf::lock;
use crate::base::waited;

/// What a cached block takes beside its bytes: the count in front of it, the entry, its place in
/// the hash table, the allocator's own.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

/// One part in so many is added for what the allocator loses between blocks of changing sizes, so
/// that the capacity is what the process grows by: without it, a cache of 256 MiB full of blocks of
/// 4.2 KiB made it grow by 300 MiB.
const ALLOCATOR_SLACK_PART: u64 = 8;

/// What a block costs.
#[inline]
fn cost(block_bytes: u64) -> u64 {
    block_bytes + block_bytes / ALLOCATOR_SLACK_PART + ENTRY_OVERHEAD_BYTES
}
/// By this much capacity there is another shard, up to the most.
const SHARD_BYTES_MIN: u64 = 2 << 20;
const SHARDS_MAX: u64 = 64;
/// From which the number of entries is estimated; only what ghosts remember depends on it.
const BLOCK_BYTES_TYPICAL: u64 = 4096;
/// Counters are spread over so many lines, so that threads seldom share one.
const COUNTERS: usize = 16;

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

/// Mixes the two numbers of a key by two multiplications. The keys are the engine's own numbers,
/// which nobody chooses against it.
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

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<[u8]>> for Bytes {
    #[inline]
    fn weight(&self, _: &Key, block: &Arc<[u8]>) -> u64 {
        cost(block.len() as u64)
    }
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Blocks that the cache gave up while readers held them.
#[derive(Clone, Default)]
struct Pinned(Arc<Mutex<Vec<Weak<[u8]>>>>);

impl Pinned {
    fn add(&self, block: &Arc<[u8]>) {
        let mut pinned = lock_timed(&self.0);
        // A weak reference keeps the memory: those to blocks that are free go before the list
        // grows.
        if pinned.len() == pinned.capacity() {
            pinned.retain(|block| block.strong_count() > 0);
            pinned.shrink_to(64);
        }
        pinned.push(Arc::downgrade(block));
    }

    fn bytes(&self) -> u64 {
        let mut pinned = lock(&self.0);
        pinned.retain(|block| block.strong_count() > 0);
        pinned.iter().filter_map(Weak::upgrade).map(|block| block.len() as u64).sum()
    }
}

/// What the cache gives up is freed after its lock is; what readers hold is remembered.
impl Lifecycle<Key, Arc<[u8]>> for Pinned {
    // As a rule one or two blocks make room for one.
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

/// A block cache for several databases: what one of them does not need the others have. Clones are
/// the same cache. Its size is its own: `block_cache_bytes` and `memory_budget` of the databases
/// do not change it.
#[derive(Clone)]
pub struct SharedBlockCache(Arc<Shared>);

struct Shared {
    cache: Blocks,
    pinned: Pinned,
    capacity: AtomicU64,
    /// Held while what blocks may take is changed, so that the last to do so has the last number.
    applying: Mutex<()>,
    /// The part of it that is used for something else.
    charged: AtomicU64,
    /// Of that, what tables take that are in memory as a whole.
    table_images: AtomicU64,
    /// How many databases were opened with it.
    databases: AtomicU64,
}

impl SharedBlockCache {
    /// A cache of at most so many bytes, overhead included.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> SharedBlockCache {
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let items = capacity_bytes / cost(BLOCK_BYTES_TYPICAL);
        // All that is required is set, so the only failure of `build` cannot happen.
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

    /// Bytes in use, overhead included: blocks, tables of level 0 that are kept
    /// (`level0_cache_percent`), and what memtables take of it
    /// ([`WriteBufferManager::with_cache`](crate::WriteBufferManager::with_cache)).
    #[must_use]
    pub fn usage_bytes(&self) -> u64 {
        self.0.cache.weight() + self.0.charged.load(Ordering::Relaxed)
    }

    /// Bytes that it may use.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.0.capacity.load(Ordering::Relaxed)
    }

    /// Changes how many bytes it may use; drops what no longer fits.
    pub fn set_capacity(&self, bytes: u64) {
        self.0.capacity.store(bytes, Ordering::Relaxed);
        self.apply_capacity();
    }

    /// Something else that took `from` of the bytes takes `to` of them now.
    pub fn charge(&self, from: u64, to: u64) {
        // The difference may be negative: the sum wraps around and comes back.
        self.0.charged.fetch_add(to.wrapping_sub(from), Ordering::Relaxed);
        self.apply_capacity();
    }

    /// What tables may take that are in memory as a whole, of what nothing else takes.
    fn table_images_max(&self, percent: u32) -> u64 {
        let images = self.0.table_images.load(Ordering::Relaxed);
        let others = self.0.charged.load(Ordering::Relaxed).saturating_sub(images);
        self.capacity().saturating_sub(others) / 100 * u64::from(percent)
    }

    fn apply_capacity(&self) {
        let _one_at_a_time = lock(&self.0.applying);
        let charged = self.0.charged.load(Ordering::Relaxed);
        self.0.cache.set_capacity(self.capacity().saturating_sub(charged));
    }

    /// Bytes of blocks that readers hold and the cache no longer does.
    #[must_use]
    pub fn pinned_bytes(&self) -> u64 {
        self.0.pinned.bytes()
    }

    /// Bytes of blocks that readers hold, whether the cache still has them or not. It looks at each
    /// block: for reports, not for every operation. RocksDB: `GetPinnedUsage`.
    #[must_use]
    pub fn in_use_bytes(&self) -> u64 {
        // The cache holds a block once, and so does the item at hand.
        let held = self.0.cache.iter().filter(|(_, block)| Arc::strong_count(block) > 2);
        let held: u64 = held.map(|(_, block)| cost(block.len() as u64)).sum();
        held + self.pinned_bytes()
    }

    /// How many blocks it has.
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

/// A database's cache of data blocks, shared by all column families: one of its own, or its part
/// of one that others have, too.
pub struct BlockCache {
    shared: SharedBlockCache,
    /// Added to the numbers of tables, which only within a database are different from each other:
    /// tables have numbers below the lowest bit of it.
    base: u64,
    /// Others have it, too: nothing here says how large it is.
    of_others: bool,
    counters: [Counters; COUNTERS],
}

/// Numbers of tables are below this power of two, which is more than a trillion.
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
    /// A cache of at most `capacity` bytes, overhead included. With 0 it keeps nothing.
    pub fn new(capacity: u64) -> BlockCache {
        let shared = SharedBlockCache::new(capacity);
        BlockCache { shared, base: 0, of_others: false, counters: Default::default() }
    }

    /// The part of `shared` of a database that is opened with it now.
    pub fn part_of(shared: SharedBlockCache) -> BlockCache {
        // No two that are open have the same one, nor has one that was opened since.
        let base = shared.0.databases.fetch_add(1, Ordering::Relaxed) << TABLE_BITS;
        BlockCache { shared, base, of_others: true, counters: Default::default() }
    }

    #[inline]
    fn key(&self, table: TableId, offset: u64) -> Key {
        debug_assert!(table.0 >> TABLE_BITS == 0, "a table of that number");
        Key { table: TableId(self.base ^ table.0), offset }
    }

    /// The block at `offset` of `table`, if it is here.
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

    /// Keeps a block, for a while.
    pub fn insert(&self, table: TableId, offset: u64, block: Arc<[u8]>) {
        self.shared.0.cache.insert(self.key(table, offset), block);
    }

    /// Bytes in use, overhead included.
    pub fn usage_bytes(&self) -> u64 {
        self.shared.usage_bytes()
    }

    /// Bytes that it may use.
    pub fn capacity(&self) -> u64 {
        self.shared.capacity()
    }

    /// Changes how much it may use, if it is nobody else's; drops what no longer fits.
    pub fn set_capacity(&self, capacity: u64) {
        if !self.of_others {
            self.shared.set_capacity(capacity);
        }
    }

    /// Whether others have it, too.
    pub fn is_of_others(&self) -> bool {
        self.of_others
    }

    /// What is left of the `percent` that tables may take that are in memory as a whole.
    pub fn table_images_room(&self, percent: u32) -> u64 {
        self.shared.table_images_max(percent).saturating_sub(self.table_images_bytes())
    }

    /// By how much they take more than that.
    pub fn table_images_excess(&self, percent: u32) -> u64 {
        self.table_images_bytes().saturating_sub(self.shared.table_images_max(percent))
    }

    /// What they take, of all databases that have this cache.
    pub fn table_images_bytes(&self) -> u64 {
        self.shared.0.table_images.load(Ordering::Relaxed)
    }

    /// Others want `bytes`; returns what of that is left for them, and charged.
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

    /// Some that took `bytes` are gone.
    pub fn discharge_table_images(&self, bytes: u64) {
        self.shared.0.table_images.fetch_sub(bytes, Ordering::Relaxed);
        self.shared.charge(bytes, 0);
    }

    /// How many lookups found their block.
    pub fn hits(&self) -> u64 {
        self.counters.iter().map(|c| c.hits.load(Ordering::Relaxed)).sum()
    }

    /// How many lookups did not.
    pub fn misses(&self) -> u64 {
        self.counters.iter().map(|c| c.misses.load(Ordering::Relaxed)).sum()
    }

    /// Bytes of blocks that readers hold and the cache no longer does.
    pub fn pinned_bytes(&self) -> u64 {
        self.shared.pinned_bytes()
    }

    /// The counters of the calling thread.
    #[inline]
    fn counters(&self) -> &Counters {
        THREAD.with(|thread| &self.counters[thread % COUNTERS])
    }
}

/// Numbers the threads that use a cache.
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
        assert_eq!(cache.pinned_bytes(), 0, "nobody held those");
        assert_eq!(cache.shared.in_use_bytes(), 0);
        cache.insert(TableId(9), 0, block(100));
        let held = cache.get(TableId(9), 0).unwrap();
        assert_eq!(cache.shared.in_use_bytes(), cost(100), "a reader holds it, and the cache, too");
        drop(held);
        assert_eq!(cache.shared.in_use_bytes(), 0);
    }
}
