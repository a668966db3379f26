//! The memory budget, looked at now and then: what caches and memtables may take of it, and what is
//! given back when nobody uses it.

use std::sync::Arc;
use std::time::Duration;

use sateen_control::Instant;

use crate::column_family::ColumnFamilyData;
use crate::core::DbCore;
use crate::sync::lock;
use crate::vfs::give_back_free_memory;

/// How long after the last memtable was sealed the memory kept for the next is given back.
const IDLE_MEMORY_AFTER: Duration = Duration::from_secs(2);
/// Memory of jobs that are over is expected for about so many looks more.
const OTHER_MEMORY_FADES_IN: u64 = 64;

/// What the memory budget leaves the cache in any case, if it is not tiny.
const CACHE_BYTES_MIN: u64 = 8 << 20;
/// When the cache has given up this part of the budget, that is given back to the system; not more
/// often than that.
const GIVE_BACK_PART: u64 = 1 << 5;
const GIVE_BACK_PAUSE: Duration = Duration::from_secs(1);
/// A memtable that holds no more is not being filled.
const IDLE_MEMTABLE_BYTES: usize = 64 << 10;

impl DbCore {
    /// Memory kept for the next memtable is given back when none was needed for a while.
    pub(super) fn give_back_idle_memory(&self) {
        if self.pool_memory.bytes() == 0 {
            return;
        }
        let now = self.now();
        let seals = self.pipeline.seals();
        {
            let mut state = lock(&self.driver.chores.state);
            if state.seals_seen.0 != seals {
                state.seals_seen = (seals, now.0);
            }
            if now.since(Instant(state.seals_seen.1)) < IDLE_MEMORY_AFTER {
                return;
            }
        }
        let bytes = usize::try_from(self.options.load().column_family.memtable_bytes);
        self.pool_memory.set_bytes_max(0);
        self.pool_memory.set_bytes_max(bytes.unwrap_or(usize::MAX));
    }

    /// What whole tables take of the cache may be too much by now.
    pub(super) fn look_at_table_images(&self) {
        if let Some(images) = self.tables.images() {
            images.look(self.options.load().level0_cache_percent);
        }
    }

    /// Divides the budget between two looks at it. What is open and under way takes what it takes;
    /// of the rest the memtables may grow to a half, which is theirs whether or not they have grown
    /// to it yet, and the cache has the other half and what the memtables will not need.
    pub(super) fn keep_memory_budget(&self) {
        let options = self.options.load();
        let Some(budget) = options.memory_budget else { return };
        let families = self.families();
        let cache_min = (budget / 16).min(CACHE_BYTES_MIN);
        let left = budget.saturating_sub(self.expected_other_memory());
        let half = (left / 2).max(budget / 8);
        let in_use = |family: &&Arc<ColumnFamilyData>| {
            family.active_memtable().memory_bytes() > IDLE_MEMTABLE_BYTES
                || family.sealed_usage().0 > 0
        };
        // One is written while as many as may be wait for their flush.
        let memtables =
            |family: &Arc<ColumnFamilyData>| u64::from(family.options().memtables_max) + 1;
        let count: u64 = families.values().filter(in_use).map(memtables).sum();
        let mut growth = 0;
        for family in families.values() {
            let used = in_use(&family);
            // One that begins to be written shares with those that are.
            let sharers = if used { count } else { count + memtables(family) };
            family.limit_memtable(half / sharers);
            if used {
                growth += family.memtable_bytes_ahead() * memtables(family);
            }
        }
        let memtables = self.memtable_memory().max(growth);
        let cache = left.saturating_sub(memtables).max(cache_min);
        let before = self.blocks.usage_bytes();
        self.blocks.set_capacity(cache.min(options.block_cache_bytes.max(cache_min)));
        self.give_back_free_memory(before.saturating_sub(self.blocks.usage_bytes()), budget);
    }

    /// The cache has given up so many bytes for others, who do not find them in what the allocator
    /// keeps for the threads that had them.
    fn give_back_free_memory(&self, given_up: u64, budget: u64) {
        let now = self.now();
        {
            let mut state = lock(&self.driver.chores.state);
            state.given_up.0 += given_up;
            let (bytes, last) = state.given_up;
            if bytes < budget / GIVE_BACK_PART || now.since(Instant(last)) < GIVE_BACK_PAUSE {
                return;
            }
            state.given_up = (0, now.0);
        }
        give_back_free_memory();
    }

    /// What is open and under way takes so much, or will again soon: jobs come and go between two
    /// looks, and the cache must not take their memory in the meantime.
    fn expected_other_memory(&self) -> u64 {
        let now = self.other_memory();
        let mut state = lock(&self.driver.chores.state);
        let fading = state.other_memory - state.other_memory / OTHER_MEMORY_FADES_IN;
        state.other_memory = now.max(fading);
        state.other_memory
    }
}
