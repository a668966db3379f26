//! The synchronisation primitives of the engine: std's, or loom's when models are checked, and the
//! mutex whose poisoning is not an error of ours (a panic in a holder is a bug that the panic
//! itself reports; the data under our locks is only changed in steps that leave it whole).

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Locks `mutex`, poisoned or not.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many threads can run at once, as it was at first sight.
pub(crate) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
