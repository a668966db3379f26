//! Which handles C has: so that one that is freed twice, or by the function of another kind, is
//! told and left alone.
//!
//! What must stay true: nothing here has the address of a handle as it is, or tools that look for
//! what nobody has any more would find it here.

use std::any::TypeId;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use sateen::vfs::MemVfs;
use sateen::{Db, Options};

/// Threads that make handles at once seldom meet.
const SHARDS: usize = 64;
/// Databases that were closed and whose handles are still told from others.
const CLOSED_KEPT: usize = 256;

/// Addresses differ in the bits above those of alignment: these are spread.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize((*byte).into()));
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

type Shard = HashMap<usize, TypeId, BuildHasherDefault<Spread>>;

static GIVEN: [Mutex<Shard>; SHARDS] =
    [const { Mutex::new(HashMap::with_hasher(BuildHasherDefault::new())) }; SHARDS];

fn shard(address: usize) -> MutexGuard<'static, Shard> {
    // Whatever panicked there left a map that is one.
    GIVEN[(address >> 4) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes note that C has a handle of type `T`.
pub(crate) fn given<T: 'static>(handle: *const T) {
    let address = handle.addr();
    shard(address).insert(!address, TypeId::of::<T>());
}

/// Whether C had the handle, as one of type `T`; it has not any more.
pub(crate) fn taken_back<T: 'static>(handle: *const T) -> bool {
    let address = handle.addr();
    let mut shard = shard(address);
    let had = shard.get(&!address) == Some(&TypeId::of::<T>());
    if had {
        shard.remove(&!address);
    }
    had
}

/// A database that is closed: what it is asked fails with that.
pub(crate) fn closed_database() -> Option<Db> {
    static CLOSED: OnceLock<Option<Db>> = OnceLock::new();
    let make = || {
        let options = Options { background_threads: 0, ..Options::default() };
        let vfs = std::sync::Arc::new(MemVfs::new());
        let db = Db::open_with(vfs, "/closed", options, &[]).ok()?;
        db.close().ok()?;
        Some(db)
    };
    CLOSED.get_or_init(make).clone()
}

/// Keeps the memory of the handles of closed databases for a while, so that nothing else is where
/// they were.
pub(crate) struct Graveyard<T>(Mutex<VecDeque<Box<T>>>);

impl<T> Graveyard<T> {
    pub(crate) const fn new() -> Graveyard<T> {
        Graveyard(Mutex::new(VecDeque::new()))
    }

    /// Keeps `handle`, and frees the one that was kept longest if there are too many.
    pub(crate) fn keep(&self, handle: Box<T>) {
        let oldest = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(handle);
            if kept.len() > CLOSED_KEPT { kept.pop_front() } else { None }
        };
        drop(oldest);
    }
}
