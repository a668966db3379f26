//! The memory budget (`memory_budget`). The chores divide it between memtables and the block cache,
//! and return memory that nobody uses.
//!
//! 1. [`Chores::keep_memory_for_memtables`] keeps memory for the next memtable in the pool, and
//!    returns it after a while without seals.
//! 2. [`Chores::keep_memory_budget`] subtracts from the budget what jobs, open tables and readers
//!    take (`expected_other_memory`). Memtables may take half of the rest; the cache gets what they
//!    will not need.
//! 3. `give_back_free_memory` returns the allocator's free memory to the system after the cache has
//!    shrunk.
//! 4. [`Chores::look_at_table_images`] shrinks the images of tables that the cache is charged for.

use std::sync::Arc;
use std::time::Duration;

use sateen_control::Instant;
use sateen_store::base::sync::lock;
use sateen_store::vfs::give_back_free_memory;

use super::Chores;
use crate::tree::families::ColumnFamilyData;

/// How long after the last change of the memtables the pool's memory is returned.
const IDLE_MEMORY_AFTER: Duration = Duration::from_secs(2);
/// Number of rounds over which the memory of ended jobs fades from what is expected.
const OTHER_MEMORY_FADES_IN: u64 = 64;

/// The least that the memory budget leaves to the block cache, if it is not tiny.
const CACHE_BYTES_MIN: u64 = 8 << 20;
/// Free memory is returned to the system once the cache has given up this part of the budget, at
/// most once in `GIVE_BACK_PAUSE`.
const GIVE_BACK_PART: u64 = 1 << 5;
const GIVE_BACK_PAUSE: Duration = Duration::from_secs(1);
/// A memtable that has at most this much memory is not being filled.
const IDLE_MEMTABLE_BYTES: usize = 64 << 10;

impl Chores {
    /// Returns the bytes in memory besides the block cache and the memtables. Memtables that were
    /// flushed and are held only by readers are included.
    pub(crate) fn other_memory(&self) -> u64 {
        let held = self.tree.families().values().map(|family| family.held_bytes()).sum::<u64>();
        held + self.tree.tables.memory_bytes()
            + self.tree.blocks.pinned_bytes()
            + self.driver.buffer_bytes()
            + self.writes.pipeline.buffer_bytes()
    }

    /// Returns the bytes of memtables, and of the memory that is kept for the next ones.
    pub(crate) fn memtable_memory(&self) -> u64 {
        let families = self.tree.families();
        let memtables = families
            .values()
            .map(|family| family.active_memtable().memory_bytes() as u64 + family.sealed_usage().1);
        memtables.sum::<u64>() + self.writes.memtable_pool.bytes() as u64
    }

    /// Keeps enough memory in the pool for the largest of the next memtables, and prepares some
    /// while a memtable grows. Returns all of it if no memtable has needed any for a while.
    pub(crate) fn keep_memory_for_memtables(&self) {
        if self.writes.memtable_pool.bytes() > 0 {
            let now = self.env.now();
            let mut state = lock(&self.board.state);
            // A large memtable takes a while to fill, and needs memory meanwhile.
            let seen = (self.writes.pipeline.seals(), self.writes.memtable_pool.taken());
            if state.kept_seen.0 != seen {
                state.kept_seen = (seen, now.0);
            }
            let is_idle = now.since(Instant(state.kept_seen.1)) >= IDLE_MEMORY_AFTER;
            drop(state);
            if is_idle {
                self.writes.memtable_pool.set_bytes_max(0);
            }
        }
        let next = self.tree.families().values().map(|family| family.next_memtable_bytes()).max();
        let options = self.env.options.load();
        // Without a budget the pool keeps no less than at open. With one, memtables may be much
        // smaller than their options say, and would never take what is kept for larger ones.
        let least = match options.memory_budget {
            Some(_) => 0,
            None => options.column_family.memtable_bytes,
        };
        let next = next.unwrap_or(0).max(least);
        self.writes.memtable_pool.set_bytes_max(usize::try_from(next).unwrap_or(usize::MAX));
        self.writes.memtable_pool.prepare();
    }

    /// Drops images of tables if they take too much of the cache by now.
    pub(crate) fn look_at_table_images(&self) {
        if let Some(images) = self.tree.tables.images() {
            images.look(self.env.options.load().level0_cache_percent);
        }
    }

    /// Divides the memory budget. Jobs, open tables and readers take what they need. Half of the
    /// rest is reserved for memtables, used or not. The cache gets the other half and what the
    /// memtables will not need.
    pub(crate) fn keep_memory_budget(&self) {
        let options = self.env.options.load();
        let Some(budget) = options.memory_budget else { return };
        let families = self.tree.families();
        let cache_min = (budget / 16).min(CACHE_BYTES_MIN);
        let left = budget.saturating_sub(self.expected_other_memory());
        let half = (left / 2).max(budget / 8);
        let in_use = |family: &&Arc<ColumnFamilyData>| {
            family.active_memtable().memory_bytes() > IDLE_MEMTABLE_BYTES
                || family.sealed_usage().0 > 0
        };
        // One memtable is written while at most `memtables_max` wait for their flush.
        let memtables =
            |family: &Arc<ColumnFamilyData>| u64::from(family.options().memtables_max) + 1;
        let count: u64 = families.values().filter(in_use).map(memtables).sum();
        let mut growth = 0_u64;
        for family in families.values() {
            let used = in_use(&family);
            // An idle column family that begins to be written shares with those that are.
            let sharers = if used { count } else { count + memtables(family) };
            family.limit_memtable(half / sharers);
            if used {
                let most = family.memtable_bytes_ahead().saturating_mul(memtables(family));
                growth = growth.saturating_add(most);
            }
        }
        let memtables = self.memtable_memory().max(growth);
        let cache = left.saturating_sub(memtables).max(cache_min);
        let before = self.tree.blocks.usage_bytes();
        self.tree.blocks.set_capacity(cache.min(options.block_cache_bytes.max(cache_min)));
        self.give_back_free_memory(before.saturating_sub(self.tree.blocks.usage_bytes()), budget);
    }

    /// Returns free memory of the allocator to the system, once the cache has given up enough. The
    /// allocator keeps freed memory for the threads that had it, so other threads would not get it.
    fn give_back_free_memory(&self, given_up: u64, budget: u64) {
        let now = self.env.now();
        {
            let mut state = lock(&self.board.state);
            state.given_up.0 += given_up;
            let (bytes, last) = state.given_up;
            if bytes < budget / GIVE_BACK_PART || now.since(Instant(last)) < GIVE_BACK_PAUSE {
                return;
            }
            state.given_up = (0, now.0);
        }
        give_back_free_memory();
    }

    /// Returns the bytes of jobs, open tables and readers, now or recently. Jobs come and go
    /// between two rounds, and the cache must not take their memory meanwhile.
    fn expected_other_memory(&self) -> u64 {
        let now = self.other_memory();
        let mut state = lock(&self.board.state);
        let fading = state.other_memory - state.other_memory / OTHER_MEMORY_FADES_IN;
        state.other_memory = now.max(fading);
        state.other_memory
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Db, Options};
    use sateen_store::base::clock::{self, VirtualTime};
    use sateen_store::vfs::MemVfs;

    const CHUNK: usize = 2 << 20;

    fn write(db: &Db, bytes: usize) {
        for n in 0..bytes / 10_000 {
            db.put(n.to_be_bytes(), [7; 10_000]).unwrap();
        }
    }

    #[test]
    fn what_the_next_memtable_takes_is_kept_while_memtables_grow() {
        let _time = VirtualTime::begin(0);
        let mut options = Options { background_threads: 0, ..Options::default() };
        options.column_family.memtable_bytes = 32 * CHUNK as u64;
        let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
        let core = db.core();
        let kept = || {
            core.background.chores.keep_memory_for_memtables();
            core.writes.memtable_pool.bytes() / CHUNK
        };
        let family = &db.default_column_family().data;
        family.adjust_memtables(64 * CHUNK as u64);
        let after_flush = |chunks: usize| {
            write(&db, chunks * CHUNK);
            db.flush().unwrap();
            db.wait_idle().unwrap();
            kept()
        };
        // The memory of the first memtable may be as large as configured when it is sealed.
        after_flush(31);
        let all = after_flush(63);
        assert!(all > 40, "{all} of 64 chunks");
        for round in 1..=10 {
            clock::sleep(IDLE_MEMORY_AFTER / 2);
            write(&db, 2 * CHUNK);
            let left = kept();
            assert!((1..all).contains(&left), "{left} chunks, round {round}");
        }
        clock::sleep(IDLE_MEMORY_AFTER / 2);
        assert!(kept() > 0);
        clock::sleep(IDLE_MEMORY_AFTER);
        assert_eq!(kept(), 0);
    }
}
