//! The synchronisation primitives of the engine: std's, or those of whoever tries interleavings
//! (docs/reliability.md, sched), and the mutex whose poisoning is not an error of ours (a panic in
//! a holder is a bug that the panic itself reports; the data under our locks is only changed in
//! steps that leave it whole).
//!
//! What must stay true: what threads of the engine wait for, or tell each other by, comes from
//! here. Under shuttle all its threads are one of the system's, so whoever holds a primitive of
//! [`leaf`], or a borrow of a thread's own memory, uses none of the others.

/// What loom's models of the memtable replace.
#[cfg(loom)]
pub(crate) use loom::sync::atomic as loom_atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic as loom_atomic;

#[cfg(shuttle)]
pub(crate) use shuttle::{hint, thread, thread_local};
#[cfg(not(shuttle))]
pub(crate) use std::{hint, thread, thread_local};

#[cfg(shuttle)]
use shuttle::sync as primitives;
#[cfg(not(shuttle))]
use std::sync as primitives;

pub(crate) use primitives::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic,
};

use std::sync::{LockResult, OnceLock, PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

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

/// Waits for `condvar`, which goes with `mutex`, for `most` at most. It may end early.
#[cfg(not(shuttle))]
pub(crate) fn wait_timeout<'a, T>(
    condvar: &Condvar,
    _mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    most: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner).0
}

/// The same. Shuttle has no time, so that it would wait for ever: each wait ends early.
#[cfg(shuttle)]
pub(crate) fn wait_timeout<'a, T>(
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
pub(crate) fn pause(time: Duration) {
    if cfg!(shuttle) { thread::yield_now() } else { thread::park_timeout(time) }
}

/// Lets others run for about so long.
pub(crate) fn sleep(time: Duration) {
    if cfg!(shuttle) { thread::yield_now() } else { thread::sleep(time) }
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

/// For what nobody waits for another's doing under, whoever tries interleavings: std's.
pub(crate) mod leaf {
    #[cfg(not(shuttle))]
    pub(crate) use super::{lock, lock_timed};

    #[cfg(shuttle)]
    pub(crate) fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[cfg(shuttle)]
    pub(crate) use lock as lock_timed;
}
