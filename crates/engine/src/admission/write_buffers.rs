//! One limit for the memtables of several databases.
//!
//! Memory is counted where memtables take it, by the chunk. A database whose write finds too much
//! of it in use has a memtable sealed and stored early: the largest of all that share the limit,
//! whoever's it is. It is the same sealing as that of a memtable that is full.
//!
//! What must stay true: every byte is given back once, when its memtable goes or its database is
//! closed, whichever comes first; a wait for memory ends when some is free, when nothing can be
//! expected any more, and at the latest a while after the last that was freed.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sateen_store::base::clock;
use sateen_store::base::error::Result;
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, lock};
use sateen_store::block_cache::SharedBlockCache;
use sateen_store::memtable::MemoryLedger;

/// A writer that waits looks again at least so often.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(10);
/// A writer goes on if nothing was freed for so long.
const PATIENCE: Duration = Duration::from_secs(1);
/// What is charged to a cache is a multiple of this.
const CHARGE_BYTES: u64 = 256 << 10;

/// A database whose memtables share a limit with others, as those see it.
pub(crate) trait SharesLimit: Send + Sync {
    /// True if threads of its own would store what is sealed.
    fn stores_by_itself(&self) -> bool;
    /// Has its largest memtable sealed, whether or not anybody writes.
    fn ask_to_seal_early(&self);
    /// True if it has failed: what it has may never be stored.
    fn has_failed(&self) -> bool;
}

/// A limit for the memory of the memtables of all databases that are opened with it. Clones are the
/// same limit. When it is reached the largest memtable of them is stored early; writers go on, or
/// wait if that is allowed.
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

/// A database, and what its memtables take.
type Member = (Weak<dyn SharesLimit>, Arc<Ledger>);

struct Manager {
    /// 0: there is none, and memory is only counted.
    limit: AtomicU64,
    used: AtomicU64,
    /// The part of it that takes writes.
    mutable: AtomicU64,
    allow_stall: AtomicBool,
    cache: Option<SharedBlockCache>,
    /// What the cache is charged with; changed with `turn` locked.
    charged: AtomicU64,
    turn: Mutex<()>,
    waiters: AtomicU64,
    waiting: Mutex<()>,
    changed: Condvar,
    members: Mutex<Vec<Member>>,
}

impl WriteBufferManager {
    /// A limit of so many bytes; 0 is none: then memory is only counted.
    #[must_use]
    pub fn new(limit_bytes: u64) -> WriteBufferManager {
        WriteBufferManager::made(limit_bytes, None)
    }

    /// The same; what memtables take is taken from what `cache` may hold.
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

    /// The limit; 0 if there is none.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit; 0 for none.
    pub fn set_limit_bytes(&self, bytes: u64) {
        self.0.limit.store(bytes, Ordering::Relaxed);
        self.wake();
    }

    /// Whether writers wait while the limit is exceeded; at first they do not.
    pub fn set_allow_stall(&self, allow: bool) {
        self.0.allow_stall.store(allow, Ordering::Relaxed);
        self.wake();
    }

    /// Bytes of all memtables, those that readers alone still hold included.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Bytes of the memtables that take writes.
    #[must_use]
    pub fn mutable_bytes(&self) -> u64 {
        self.0.mutable.load(Ordering::Relaxed)
    }

    /// Bytes that the cache is charged with: [`WriteBufferManager::memory_bytes`], rounded up to
    /// 256 KiB; 0 if there is none.
    #[must_use]
    pub fn charged_bytes(&self) -> u64 {
        self.0.charged.load(Ordering::Relaxed)
    }

    /// Whether what memtables take is taken from a cache.
    #[must_use]
    pub fn has_cache(&self) -> bool {
        self.0.cache.is_some()
    }

    fn wake(&self) {
        if self.0.waiters.load(Ordering::SeqCst) > 0 {
            // With the lock: who has looked and does not wait yet must not miss it.
            drop(lock(&self.0.waiting));
            self.0.changed.notify_all();
        }
    }

    /// A memtable should be stored: nearly all of the limit takes writes, or all of it is in use
    /// and not mostly about to be stored already.
    #[inline]
    pub(crate) fn wants_flush(&self) -> bool {
        let limit = self.limit_bytes();
        if limit == 0 {
            return false;
        }
        let mutable = self.mutable_bytes();
        mutable > limit / 8 * 7 || (self.memory_bytes() >= limit && mutable >= limit / 2)
    }

    #[inline]
    pub(crate) fn wants_stall(&self) -> bool {
        let limit = self.limit_bytes();
        limit > 0 && self.0.allow_stall.load(Ordering::Relaxed) && self.memory_bytes() >= limit
    }

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

    /// Asks the database with the largest memtable to seal it, unless that is the one with `own`:
    /// then false is returned. One without threads is asked only by itself.
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

    /// Waits until memory is free, or for nothing: see the module. `check` is asked each time
    /// before waiting on: an error from it ends the wait.
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

    /// Some database has failed: what it has may never be stored.
    fn is_hopeless(&self) -> bool {
        let members = lock(&self.0.members).clone();
        let mut members = members.iter().filter_map(|(db, _)| db.upgrade());
        members.any(|db| db.has_failed())
    }

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

/// What the memtables of one database take.
pub(crate) struct Ledger(Mutex<Entries>, WriteBufferManager);

struct Entries {
    used: u64,
    mutable: u64,
    /// The database is open: what it takes counts.
    open: bool,
}

impl Ledger {
    pub(crate) fn new(manager: WriteBufferManager) -> Ledger {
        Ledger(Mutex::new(Entries { used: 0, mutable: 0, open: true }), manager)
    }

    /// The database is closed.
    fn close(&self) {
        self.change(|_| (0, 0));
        lock(&self.0).open = false;
    }

    /// `to` makes what is used, and the mutable part of it.
    fn change(&self, to: impl FnOnce(&Entries) -> (u64, u64)) {
        let manager = &self.1.0;
        let mut entries = lock_timed(&self.0);
        if !entries.open {
            return;
        }
        let (used, mutable) = to(&entries);
        // What is added may be negative: sums wrap around and come back.
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

/// A database's part of a limit.
pub(crate) struct WriteBuffers {
    pub(crate) manager: WriteBufferManager,
    ledger: Arc<Ledger>,
    /// The chores are to seal the largest memtable.
    pub(crate) seal_wanted: AtomicBool,
}

impl WriteBuffers {
    pub(crate) fn new(ledger: Arc<Ledger>) -> WriteBuffers {
        let manager = ledger.1.clone();
        WriteBuffers { manager, ledger, seal_wanted: AtomicBool::new(false) }
    }

    /// `db` is open from now on.
    pub(crate) fn join(&self, db: Weak<dyn SharesLimit>) {
        let mut members = lock(&self.manager.0.members);
        members.retain(|(db, _)| db.strong_count() > 0);
        members.push((db, self.ledger.clone()));
    }

    /// The database is closed: what it has counts no longer.
    pub(crate) fn leave(&self) {
        let mut members = lock(&self.manager.0.members);
        members.retain(|(_, ledger)| !Arc::ptr_eq(ledger, &self.ledger));
        drop(members);
        self.ledger.close();
        self.manager.wake();
    }
}

struct Waiter<'a>(&'a WriteBufferManager);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.0.waiters.fetch_sub(1, Ordering::SeqCst);
    }
}
