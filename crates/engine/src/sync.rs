//! The synchronisation primitives of the engine: std's, or loom's when models are checked, and the
//! mutex whose poisoning is not an error of ours (a panic in a holder is a bug that the panic
//! itself reports; the data under our locks is only changed in steps that leave it whole).

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;

use std::sync::{
    LockResult, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard,
    RwLockWriteGuard, TryLockError, TryLockResult,
};

use crate::perf::{self, PerfMetric};
use crate::timeline::local::{self, Part};

/// Locks `mutex`, poisoned or not.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same where clients may have to wait: then the timeline tells for how long.
#[inline]
pub(crate) fn lock_timed<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    timed(mutex.try_lock(), || mutex.lock())
}

/// Locks for reading, as [`lock_timed`] does.
#[inline]
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    timed(lock.try_read(), || lock.read())
}

/// Locks for writing, as [`lock_timed`] does.
#[inline]
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    timed(lock.try_write(), || lock.write())
}

#[inline]
fn timed<G>(tried: TryLockResult<G>, wait: impl FnOnce() -> LockResult<G>) -> G {
    match tried {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(error)) => error.into_inner(),
        Err(TryLockError::WouldBlock) => contended(wait),
    }
}

/// Only who must wait looks at the clock.
#[cold]
#[inline(never)]
fn contended<G>(wait: impl FnOnce() -> LockResult<G>) -> G {
    let _waits = local::wait(Part::Lock);
    let _timed = perf::time(PerfMetric::DbMutexLockNanos);
    wait().unwrap_or_else(PoisonError::into_inner)
}

/// How many threads can run at once, as it was at first sight.
pub(crate) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
