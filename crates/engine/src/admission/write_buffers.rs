//! One limit for the memtables of several databases.
//!
//! 1. Each memtable reports its memory to the database's [`Ledger`], chunk by chunk. The ledger
//!    adds it to the sums of the [`WriteBufferManager`], and charges a block cache if there is one.
//! 2. A write that finds too much in use ([`WriteBufferManager::wants_flush`]) has the largest
//!    memtable of all databases sealed early ([`WriteBufferManager::ask_largest`]). It is then
//!    flushed like a full one.
//! 3. If the limit is exceeded and writers may be stalled, the write waits in
//!    [`WriteBufferManager::wait_for_memory`].
//!
//! What must stay true:
//!
//! - Every byte is returned once: when its memtable is freed or its database is closed, whichever
//!   comes first.
//! - A wait for memory ends when memory is free, when a database has failed, or when nothing was
//!   freed for `PATIENCE`.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sateen_store::base::clock;
use sateen_store::base::error::Result;
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, lock};
use sateen_store::block_cache::SharedBlockCache;
use sateen_store::memtable::MemoryLedger;

/// Longest sleep of a waiting writer before it looks again.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(10);
/// A waiting writer goes on if nothing was freed for this long.
const PATIENCE: Duration = Duration::from_secs(1);
/// The charge to a block cache is a multiple of this.
const CHARGE_BYTES: u64 = 256 << 10;

/// A database whose memtables share a limit, as the other databases see it.
pub(crate) trait SharesLimit: Send + Sync {
    /// Returns true if it has threads of its own that flush sealed memtables.
    fn stores_by_itself(&self) -> bool;
    /// Has its largest memtable sealed soon, even without a write to it.
    fn ask_to_seal_early(&self);
    /// Returns true if it has failed, so that its memtables may never be flushed.
    fn has_failed(&self) -> bool;
}

/// A limit for the memory of the memtables of all databases that are opened with it. Clones are the
/// same limit. When it is reached, the largest memtable of all these databases is flushed early.
/// Writers go on meanwhile, or wait if [`WriteBufferManager::set_allow_stall`] lets them.
///
/// ```
/// use sateen::{Db, Options, WriteBufferManager};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let memtables = WriteBufferManager::new(32 << 20);
/// let options =
///     Options { write_buffer_manager: Some(memtables.clone()), ..Options::default() };
/// let users = Db::open(directory.path().join("users"), options.clone())?;
/// let orders = Db::open(directory.path().join("orders"), options)?;
/// users.put("ishmael", "sailor")?;
/// orders.put("1", "a harpoon")?;
/// assert!(memtables.memory_bytes() > 0);
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone)]
pub struct WriteBufferManager(Arc<Manager>);

/// A database, and the memory of its memtables.
type Member = (Weak<dyn SharesLimit>, Arc<Ledger>);

struct Manager {
    /// The limit in bytes. 0 for none: memory is then only counted.
    limit: AtomicU64,
    /// Bytes of all memtables.
    used: AtomicU64,
    /// The part of `used` that belongs to memtables which take writes.
    mutable: AtomicU64,
    /// True if writers wait while the limit is exceeded.
    allow_stall: AtomicBool,
    /// The block cache that is charged with the memory of the memtables.
    cache: Option<SharedBlockCache>,
    /// The charge to the cache. Changed only with `turn` locked.
    charged: AtomicU64,
    turn: Mutex<()>,
    /// Number of writers in [`WriteBufferManager::wait_for_memory`].
    waiters: AtomicU64,
    waiting: Mutex<()>,
    changed: Condvar,
    members: Mutex<Vec<Member>>,
}

impl WriteBufferManager {
    /// Creates a limit of `limit_bytes`. With 0 there is no limit, and memory is only counted.
    #[must_use]
    pub fn new(limit_bytes: u64) -> WriteBufferManager {
        WriteBufferManager::made(limit_bytes, None)
    }

    /// Creates a limit of `limit_bytes`, and charges the memory of memtables to `cache`, which then
    /// holds fewer blocks.
    #[must_use]
    pub fn with_cache(limit_bytes: u64, cache: &SharedBlockCache) -> WriteBufferManager {
        WriteBufferManager::made(limit_bytes, Some(cache.clone()))
    }

    fn made(limit_bytes: u64, cache: Option<SharedBlockCache>) -> WriteBufferManager {
        WriteBufferManager(Arc::new(Manager {
            limit: AtomicU64::new(limit_bytes),
            used: AtomicU64::new(0),
            mutable: AtomicU64::new(0),
            allow_stall: AtomicBool::new(false),
            cache,
            charged: AtomicU64::new(0),
            turn: Mutex::default(),
            waiters: AtomicU64::new(0),
            waiting: Mutex::default(),
            changed: Condvar::new(),
            members: Mutex::default(),
        }))
    }

    /// Returns the limit in bytes, 0 if there is none.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit in bytes, 0 for none.
    pub fn set_limit_bytes(&self, bytes: u64) {
        self.0.limit.store(bytes, Ordering::Relaxed);
        self.wake();
    }

    /// Sets whether writers wait while the limit is exceeded. By default they do not.
    pub fn set_allow_stall(&self, allow: bool) {
        self.0.allow_stall.store(allow, Ordering::Relaxed);
        self.wake();
    }

    /// Returns the bytes of all memtables, including those that only readers still hold.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the memtables that take writes.
    #[must_use]
    pub fn mutable_bytes(&self) -> u64 {
        self.0.mutable.load(Ordering::Relaxed)
    }

    /// Returns the bytes that the cache is charged with: [`WriteBufferManager::memory_bytes`],
    /// rounded up to a multiple of 256 KiB. 0 without a cache.
    #[must_use]
    pub fn charged_bytes(&self) -> u64 {
        self.0.charged.load(Ordering::Relaxed)
    }

    /// Returns true if the memory of memtables is charged to a block cache.
    #[must_use]
    pub fn has_cache(&self) -> bool {
        self.0.cache.is_some()
    }

    /// Wakes the writers that wait for memory.
    fn wake(&self) {
        if self.0.waiters.load(Ordering::SeqCst) > 0 {
            // The lock is taken so that a writer that has looked, but does not sleep yet, misses no
            // wake-up.
            drop(lock(&self.0.waiting));
            self.0.changed.notify_all();
        }
    }

    /// Returns true if a memtable should be flushed early. That is so if memtables that take writes
    /// use more than 7/8 of the limit. It is also so if all memtables together reach the limit and
    /// at least half of it takes writes: otherwise enough is being flushed already.
    #[inline]
    pub(crate) fn wants_flush(&self) -> bool {
        let limit = self.limit_bytes();
        if limit == 0 {
            return false;
        }
        let mutable = self.mutable_bytes();
        mutable > limit / 8 * 7 || (self.memory_bytes() >= limit && mutable >= limit / 2)
    }

    /// Returns true if writers must wait for memory.
    #[inline]
    pub(crate) fn wants_stall(&self) -> bool {
        let limit = self.limit_bytes();
        limit > 0 && self.0.allow_stall.load(Ordering::Relaxed) && self.memory_bytes() >= limit
    }

    /// Adjusts the charge to the block cache to the memory in use.
    fn charge_cache(&self) {
        let manager = &*self.0;
        let Some(cache) = &manager.cache else { return };
        let wanted = || self.memory_bytes().div_ceil(CHARGE_BYTES) * CHARGE_BYTES;
        if wanted() == self.charged_bytes() {
            return;
        }
        let _turn = lock_timed(&manager.turn);
        let to = wanted();
        cache.charge(manager.charged.swap(to, Ordering::Relaxed), to);
    }

    /// Asks the database with the most mutable memory to seal its largest memtable. Returns false
    /// without asking if that is the database of `own`, which then seals by itself. A database
    /// without threads is asked only by itself.
    pub(crate) fn ask_largest(&self, own: &WriteBuffers) -> bool {
        let members = lock_timed(&self.0.members).clone();
        let is_own = |ledger: &Arc<Ledger>| Arc::ptr_eq(ledger, &own.ledger);
        let members = members.iter().filter_map(|(db, ledger)| Some((db.upgrade()?, ledger)));
        let able = members.filter(|(db, ledger)| is_own(ledger) || db.stores_by_itself());
        match able.max_by_key(|(_, ledger)| lock_timed(&ledger.0).mutable) {
            Some((db, ledger)) if !is_own(ledger) => {
                db.ask_to_seal_early();
                true
            }
            _ => false,
        }
    }

    /// Waits until memory is free, a database has failed, or nothing was freed for `PATIENCE`.
    /// Before each sleep it calls `check`, whose error ends the wait, and asks every database to
    /// seal early.
    pub(crate) fn wait_for_memory(
        &self,
        deadline: Option<Instant>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        self.0.waiters.fetch_add(1, Ordering::SeqCst);
        let _waiter = Waiter(self);
        let (mut used, mut since) = (self.memory_bytes(), clock::now());
        while self.wants_stall() {
            check()?;
            if self.is_hopeless() || clock::since(since) > PATIENCE {
                break;
            }
            let members = lock(&self.0.members).clone();
            members.iter().filter_map(|(db, _)| db.upgrade()).for_each(|db| db.ask_to_seal_early());
            let left = deadline.map_or(WAIT_MAX, |deadline| {
                deadline.saturating_duration_since(clock::now()).min(WAIT_MAX)
            });
            self.wait(left);
            let now = self.memory_bytes();
            if now < used {
                since = clock::now();
            }
            used = now;
        }
        Ok(())
    }

    /// Returns true if a database has failed, so that its memtables may never be flushed.
    fn is_hopeless(&self) -> bool {
        let members = lock(&self.0.members).clone();
        let mut members = members.iter().filter_map(|(db, _)| db.upgrade());
        members.any(|db| db.has_failed())
    }

    /// Sleeps until memory is freed, for `most` at most.
    fn wait(&self, most: Duration) {
        let waiting = lock(&self.0.waiting);
        if self.wants_stall() {
            clock::wait(&self.0.changed, &self.0.waiting, waiting, most);
        }
    }
}

impl PartialEq for WriteBufferManager {
    fn eq(&self, other: &WriteBufferManager) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for WriteBufferManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteBufferManager")
            .field("limit_bytes", &self.limit_bytes())
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}

/// The memory of the memtables of one database.
pub(crate) struct Ledger(Mutex<Entries>, WriteBufferManager);

struct Entries {
    used: u64,
    mutable: u64,
    /// True until the database is closed. Later changes do not count.
    open: bool,
}

impl Ledger {
    pub(crate) fn new(manager: WriteBufferManager) -> Ledger {
        Ledger(Mutex::new(Entries { used: 0, mutable: 0, open: true }), manager)
    }

    /// Returns all memory of the database and ends the counting.
    fn close(&self) {
        self.change(|entries| {
            entries.open = false;
            (0, 0)
        });
    }

    /// Sets the used bytes and the mutable bytes to what `to` returns.
    fn change(&self, to: impl FnOnce(&mut Entries) -> (u64, u64)) {
        let manager = &self.1.0;
        let mut entries = lock_timed(&self.0);
        if !entries.open {
            return;
        }
        let (used, mutable) = to(&mut entries);
        // The difference may be negative; wrapping addition subtracts it.
        manager.used.fetch_add(used.wrapping_sub(entries.used), Ordering::Relaxed);
        manager.mutable.fetch_add(mutable.wrapping_sub(entries.mutable), Ordering::Relaxed);
        let less = used < entries.used;
        (entries.used, entries.mutable) = (used, mutable);
        drop(entries);
        self.1.charge_cache();
        if less {
            self.1.wake();
        }
    }
}

impl MemoryLedger for Ledger {
    fn grew(&self, bytes: usize) {
        self.change(|entries| (entries.used + bytes as u64, entries.mutable + bytes as u64));
    }

    fn sealed(&self, bytes: usize) {
        self.change(|entries| (entries.used, entries.mutable.saturating_sub(bytes as u64)));
    }

    fn freed(&self, bytes: usize, was_sealed: bool) {
        let bytes = bytes as u64;
        self.change(|entries| {
            let mutable = if was_sealed { 0 } else { bytes };
            (entries.used.saturating_sub(bytes), entries.mutable.saturating_sub(mutable))
        });
    }
}

/// One database's membership in a limit.
pub(crate) struct WriteBuffers {
    pub(crate) manager: WriteBufferManager,
    ledger: Arc<Ledger>,
    /// True if the chores should seal the largest memtable.
    pub(crate) seal_wanted: AtomicBool,
}

impl WriteBuffers {
    pub(crate) fn new(ledger: Arc<Ledger>) -> WriteBuffers {
        let manager = ledger.1.clone();
        WriteBuffers { manager, ledger, seal_wanted: AtomicBool::new(false) }
    }

    /// Adds `db` to the databases that share the limit.
    pub(crate) fn join(&self, db: Weak<dyn SharesLimit>) {
        let mut members = lock(&self.manager.0.members);
        members.retain(|(db, _)| db.strong_count() > 0);
        members.push((db, self.ledger.clone()));
    }

    /// Removes the database from the limit: its memory does not count any more.
    pub(crate) fn leave(&self) {
        let mut members = lock(&self.manager.0.members);
        members.retain(|(_, ledger)| !Arc::ptr_eq(ledger, &self.ledger));
        drop(members);
        self.ledger.close();
        self.manager.wake();
    }
}

/// Counts a waiting writer until dropped.
struct Waiter<'a>(&'a WriteBufferManager);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.0.waiters.fetch_sub(1, Ordering::SeqCst);
    }
}
