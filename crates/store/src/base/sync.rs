//! The synchronisation primitives of the engine: std's, or those of whoever tries interleavings
//! (docs/reliability-processes.md, sched), and the mutex whose poisoning is not an error of ours
//! (a panic in a holder is a bug that the panic itself reports; the data under our locks is only
//! changed in steps that leave it whole).
//!
//! What must stay true: what threads of the engine wait for, or tell each other by, comes from
//! here. Under shuttle all its threads are one of the system's, so whoever holds a primitive of
//! [`leaf`], or a borrow of a thread's own memory, uses none of the others.

/// What loom's models of the memtable replace.
#[cfg(loom)]
pub use loom::sync::atomic as loom_atomic;
#[cfg(not(loom))]
pub use std::sync::atomic as loom_atomic;

#[cfg(shuttle)]
pub use shuttle::{hint, thread, thread_local};
#[cfg(not(shuttle))]
pub use std::{hint, thread, thread_local};

#[cfg(shuttle)]
use shuttle::sync as primitives;
#[cfg(not(shuttle))]
use std::sync as primitives;

pub use primitives::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic,
};

use std::sync::{OnceLock, PoisonError};
use std::time::Duration;

/// Locks `mutex`, poisoned or not.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `condvar`, which goes with `mutex`, for `most` at most. It may end early.
#[cfg(not(shuttle))]
pub fn wait_timeout<'a, T>(
    condvar: &Condvar,
    _mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    most: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner).0
}

/// The same. Shuttle has no time, so that it would wait for ever: each wait ends early.
#[cfg(shuttle)]
pub fn wait_timeout<'a, T>(
    _condvar: &Condvar,
    mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    _most: Duration,
) -> MutexGuard<'a, T> {
    drop(guard);
    thread::yield_now();
    lock(mutex)
}

/// Parks the thread for about so long: it looks for itself whether it may go on.
pub fn pause(time: Duration) {
    if cfg!(shuttle) { thread::yield_now() } else { thread::park_timeout(time) }
}

/// Lets others run for about so long.
pub fn sleep(time: Duration) {
    if cfg!(shuttle) { thread::yield_now() } else { thread::sleep(time) }
}

/// How many threads can run at once, as it was at first sight.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// For what nobody waits for another's doing under, whoever tries interleavings: std's.
pub mod leaf {
    #[cfg(not(shuttle))]
    pub use super::lock;

    #[cfg(shuttle)]
    pub fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
