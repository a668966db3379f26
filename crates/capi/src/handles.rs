//! The handles that C has. A handle that is freed twice, or by the function of another type, is
//! detected and left alone.
//!
//! Invariant: no address of a handle is stored here as it is. Leak detectors would take such a copy
//! for a reference.

use std::any::TypeId;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use sateen::vfs::MemVfs;
use sateen::{Db, Options};

/// The number of shards, so that threads that make handles rarely wait for each other.
const SHARDS: usize = 64;
/// The number of closed databases whose handles are still recognized.
const CLOSED_KEPT: usize = 256;

/// A hasher that spreads the bits of addresses, which differ above those of alignment.
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
    // A panic cannot leave the map inconsistent.
    GIVEN[(address >> 4) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that C has a handle of type `T`.
pub(crate) fn given<T: 'static>(handle: *const T) {
    let address = handle.addr();
    shard(address).insert(!address, TypeId::of::<T>());
}

/// Returns true if C has the handle as one of type `T`.
pub(crate) fn is_given<T: 'static>(handle: *const T) -> bool {
    let address = handle.addr();
    shard(address).get(&!address) == Some(&TypeId::of::<T>())
}

/// Returns true if C had the handle as one of type `T`, and removes it.
pub(crate) fn taken_back<T: 'static>(handle: *const T) -> bool {
    let address = handle.addr();
    let mut shard = shard(address);
    let had = shard.get(&!address) == Some(&TypeId::of::<T>());
    if had {
        shard.remove(&!address);
    }
    had
}

/// Returns a closed database, whose calls fail.
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

/// Keeps the memory of closed databases' handles for a while, so that no other value gets their
/// addresses.
pub(crate) struct Graveyard<T>(Mutex<VecDeque<Box<T>>>);

impl<T> Graveyard<T> {
    pub(crate) const fn new() -> Graveyard<T> {
        Graveyard(Mutex::new(VecDeque::new()))
    }

    /// Keeps `handle`, and frees the oldest handle if there are too many.
    pub(crate) fn keep(&self, handle: Box<T>) {
        let oldest = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(handle);
            if kept.len() > CLOSED_KEPT { kept.pop_front() } else { None }
        };
        drop(oldest);
    }
}
