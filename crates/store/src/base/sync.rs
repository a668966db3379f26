//! The synchronisation primitives of the engine: those of std, of loom or of shuttle
//! (docs/reliability-processes.md, sched).
//!
//! What must stay true:
//!
//! - Every primitive by which threads of the engine wait for each other comes from here.
//! - Shuttle runs all threads on one system thread. Code that holds a lock of [`leaf`], or borrows
//!   a thread-local, therefore uses no other primitive.
//! - Data under a lock changes in steps that leave it whole. A poisoned mutex is therefore locked
//!   as usual; the panic has reported the bug already.

/// Atomics that the memtable's loom models replace.
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

/// Waits for `condvar`, which belongs to `mutex`, at most for `most`. It may return early.
#[cfg(not(shuttle))]
pub fn wait_timeout<'a, T>(
    condvar: &Condvar,
    _mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    most: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner).0
}

/// The same under shuttle, which has no time and would wait for ever: each wait returns early.
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

/// Parks the thread for about `time`. The caller must check its condition again.
pub fn pause(time: Duration) {
    if cfg!(shuttle) { thread::yield_now() } else { thread::park_timeout(time) }
}

/// Yields to other threads for about `time`.
pub fn sleep(time: Duration) {
    if cfg!(shuttle) { thread::yield_now() } else { thread::sleep(time) }
}

/// Returns the number of threads that can run at once, as first measured.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Locks under which no thread waits for another. They are always std's, under shuttle, too.
pub mod leaf {
    #[cfg(not(shuttle))]
    pub use super::lock;

    /// Returns the lock if it is free.
    pub fn try_lock<T: ?Sized>(
        mutex: &std::sync::Mutex<T>,
    ) -> Option<std::sync::MutexGuard<'_, T>> {
        mutex.try_lock().ok()
    }

    #[cfg(shuttle)]
    pub fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
