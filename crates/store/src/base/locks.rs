//! Locks that a client may have to wait for. A wait is counted for the operation that waits.
//!
//! What must stay true: an uncontended lock costs one attempt. Only a wait reads the clock.

use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use super::perf::{self, PerfMetric};
use super::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use super::waited::{self, Part};

/// Locks `mutex`, poisoned or not. A wait is counted for this thread's operation.
#[inline]
pub fn lock_timed<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    timed(mutex.try_lock(), || mutex.lock())
}

/// Locks for reading, and counts a wait as [`lock_timed`] does.
#[inline]
pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    timed(lock.try_read(), || lock.read())
}

/// Locks for writing, and counts a wait as [`lock_timed`] does.
#[inline]
pub fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
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

/// Reads the clock, so it is called only when another thread holds the lock.
#[cold]
#[inline(never)]
fn contended<G>(wait: impl FnOnce() -> LockResult<G>) -> G {
    let _waits = waited::wait(Part::Lock);
    let _timed = perf::time(PerfMetric::DbMutexLockNanos);
    wait().unwrap_or_else(PoisonError::into_inner)
}

/// The same for locks that interleaving tests do not schedule ([`super::sync::leaf`]).
pub mod leaf {
    #[cfg(not(shuttle))]
    pub use super::lock_timed;

    #[cfg(shuttle)]
    pub use crate::base::sync::leaf::lock as lock_timed;
}
