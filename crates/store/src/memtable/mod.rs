//! The memtable: the newest entries of a column family, sorted, in memory. Any number of threads
//! insert and read at once without a lock. Nothing is removed until the whole memtable is dropped.
//!
//! 1. [`MemTable::insert`] puts a range tombstone into `ranges`, and every other entry into the
//!    skip list. The thread's finger says where it inserted last.
//! 2. [`MemTable::get`] seeks the newest entry of a key that a snapshot sees. The caller compares
//!    it with [`MemTable::range_over`].
//! 3. [`MemTable::iter`] returns a cursor that keeps the memtable alive.
//! 4. [`MemTable::used_bytes`] tells the writer when to seal it.
//!
//! `skiplist`, `arena` and `pool` are the engine's one unsafe data structure; this file is its
//! interface.
//!
//! What must stay true: no two entries have the same user key and sequence number.

mod arena;
#[cfg(test)]
#[cfg(not(loom))]
mod bench;
mod code;
#[cfg(test)]
#[cfg(loom)]
mod models;
mod pool;
mod ranges;
mod skiplist;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use sateen_control::version::{RangeTombstone, RangeTombstones};
use sateen_control::{Comparator, SeqNo, ValueKind};

use self::ranges::Ranges;
use self::skiplist::{Cursor, Finger, SkipList};
use crate::base::error::Result;
use crate::base::iterator::InternalIterator;
use crate::base::key::pack;
use crate::base::perf::{self, PerfMetric};
use crate::base::sync::loom_atomic::{AtomicUsize, Ordering};

pub use self::pool::{ArenaPool, MemoryLedger};

thread_local! {
    /// Where this thread inserted last. An insert directly behind it does not search from the top.
    static FINGER: RefCell<Finger> = const { RefCell::new(Finger::new()) };
}

/// The newest entries of a column family, in the order of [`crate::base::key::compare`].
pub struct MemTable {
    list: SkipList,
    /// Number of tombstones of all kinds.
    tombstones: AtomicUsize,
    /// Set at the first range tombstone.
    ranges: OnceLock<Box<Ranges>>,
}

/// A cursor over a memtable, which it keeps alive. It may or may not see entries that are inserted
/// meanwhile; the caller's snapshot decides which entries count.
pub type MemTableIter = Cursor<Arc<MemTable>>;

impl MemTable {
    /// Returns an empty memtable for about `capacity_bytes`. It takes memory from `pool` if that
    /// has any. `comparator` orders its keys.
    pub fn new(
        capacity_bytes: usize,
        pool: Option<Arc<ArenaPool>>,
        comparator: &Comparator,
    ) -> MemTable {
        MemTable {
            list: SkipList::new(capacity_bytes, pool, comparator.clone()),
            tombstones: AtomicUsize::new(0),
            ranges: OnceLock::new(),
        }
    }

    /// Inserts an entry. The value of a range tombstone is its end. No two entries may have the
    /// same user key and `seqno`. Any number of threads may insert at once; each is fastest in
    /// ascending order.
    #[inline]
    pub fn insert(&self, user_key: &[u8], seqno: SeqNo, kind: ValueKind, value: &[u8]) {
        // Relaxed: the count guards no other memory.
        if matches!(kind, ValueKind::Delete | ValueKind::SingleDelete | ValueKind::RangeDelete) {
            self.tombstones.fetch_add(1, Ordering::Relaxed);
            if kind == ValueKind::RangeDelete {
                let comparator = self.list.comparator();
                let (begin, end) = (comparator.key(user_key), comparator.key(value));
                let ranges = self.ranges.get_or_init(Box::default);
                return ranges.insert(RangeTombstone { begin, end, seqno });
            }
        }
        let target = self.list.target(user_key, pack(seqno, kind));
        FINGER.with_borrow_mut(|finger| self.list.insert(&target, value, finger));
    }

    /// Returns the newest entry of `user_key` as of `snapshot`.
    #[inline]
    pub fn get(&self, user_key: &[u8], snapshot: SeqNo) -> Option<(SeqNo, ValueKind, &[u8])> {
        let entry = self.list.get(&self.list.target(user_key, pack(snapshot, ValueKind::MAX)))?;
        let [kind, ..] = entry.trailer().to_le_bytes();
        let kind = ValueKind::from_byte(kind).expect("`insert` packed a kind");
        Some((SeqNo(entry.trailer() >> 8), kind, entry.value()))
    }

    /// Returns true if there are range tombstones.
    #[inline]
    pub fn has_ranges(&self) -> bool {
        self.ranges.get().is_some()
    }

    /// Returns the sequence number of the newest range tombstone over `user_key` that a reader at
    /// `as_of` sees.
    #[inline]
    pub fn range_over(&self, user_key: &[u8], as_of: SeqNo) -> Option<SeqNo> {
        self.ranges.get()?.over(user_key, as_of)
    }

    /// Returns the range tombstones.
    pub fn ranges(&self) -> Option<Arc<RangeTombstones>> {
        Some(self.ranges.get()?.all())
    }

    /// Returns a cursor, which is invalid until it is moved.
    pub fn iter(self: &Arc<Self>) -> MemTableIter {
        Cursor::new(Arc::clone(self))
    }

    /// Marks that no more entries will be inserted.
    pub fn seal(&self) {
        self.list.seal();
    }

    /// Returns all memory that the memtable holds, used or not.
    pub fn memory_bytes(&self) -> usize {
        size_of::<MemTable>() + self.list.reserved_bytes() + self.range_bytes()
    }

    /// Returns the used part of [`MemTable::memory_bytes`], which decides when to seal. It is at
    /// most one chunk smaller, and grows with each entry.
    pub fn used_bytes(&self) -> usize {
        size_of::<MemTable>() + self.list.used_bytes() + self.range_bytes()
    }

    #[inline]
    fn range_bytes(&self) -> usize {
        self.ranges.get().map_or(0, |ranges| ranges.bytes())
    }

    /// Returns the bytes of the internal keys and values.
    #[cfg(all(test, not(loom)))]
    pub fn data_bytes(self: &Arc<MemTable>) -> usize {
        let mut iter = self.iter();
        let mut bytes = 0;
        let mut moved = iter.seek_to_first();
        while moved.is_ok() && iter.valid() {
            bytes += iter.key().len() + iter.value().len();
            moved = iter.next();
        }
        bytes
    }

    /// Returns the number of entries, including those being inserted. Range tombstones do not
    /// count.
    pub fn entries(&self) -> usize {
        self.list.entries()
    }

    /// Returns the number of tombstones of all kinds.
    pub fn tombstones(&self) -> usize {
        self.tombstones.load(Ordering::Relaxed)
    }

    /// Returns true if nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.entries() == 0 && !self.has_ranges()
    }
}

impl InternalIterator for MemTableIter {
    #[inline]
    fn valid(&self) -> bool {
        self.entry().is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.move_to_first();
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.move_to_last();
        Ok(())
    }

    #[inline]
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        perf::add(PerfMetric::SeekOnMemtableCount, 1);
        self.move_to(target);
        Ok(())
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        perf::add(PerfMetric::SeekOnMemtableCount, 1);
        self.move_to_last_by(target);
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        perf::add(PerfMetric::NextOnMemtableCount, 1);
        self.move_on();
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        perf::add(PerfMetric::PrevOnMemtableCount, 1);
        self.move_back();
        Ok(())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.entry().map_or(&[], |entry| entry.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.entry().map_or(&[], |entry| entry.value())
    }
}
