//! An open database that Python objects share, and the way of all calls into the engine.
//!
//! 1. `Shared::run` refuses a closed database, or one whose comparator failed.
//! 2. It releases the interpreter lock and calls the engine.
//! 3. It turns the error into an exception, with that of a callback as its cause.
//!
//! A write of one small entry and a read of one key first try whether they can be done without a
//! wait (`run_small_write`, `run_read`). Then they keep the interpreter lock: to release it and to
//! win it back from other threads takes longer than such a call.
//!
//! Calls that may wait for long look for signals, so that Ctrl-C ends them: `run_write`, `wait`,
//! `watched`, and `run_apart` for those that the engine cannot end.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use sateen::{Db, Error, WaitForCompactOptions, WriteOptions};

use crate::callbacks::{self, Order, Orders};
use crate::errors;

/// How long a call waits before it looks for signals.
pub(crate) const WAIT_SLICE: Duration = Duration::from_millis(100);
/// Largest entry that is written with the interpreter lock held: some microseconds of work.
const SMALL_BYTES_MAX: usize = 16 << 10;
/// Reads that are not tried in memory after one whose value was not there: others are probably not
/// there, either.
const COLD_READS: u32 = 16;

/// A database that is open, or was.
pub(crate) struct Shared {
    pub(crate) db: Db,
    closed: AtomicBool,
    /// Reads that are not to be tried in memory.
    cold_reads: AtomicU32,
    /// Whether a comparator failed.
    pub(crate) orders: Orders,
    /// The comparators that are Python's, by column family.
    families: Mutex<HashMap<String, Arc<Order>>>,
}

/// Databases to close before the interpreter ends: their threads may call it.
static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

thread_local! {
    /// Number of calls of this thread that are inside the engine.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Returns true on a thread that called the engine from Python, false on those of the engine.
pub(crate) fn is_calling() -> bool {
    CALLS.with(Cell::get) > 0
}

/// Marks this thread as one that called the engine from Python, or that works for one.
pub(crate) struct Calling;

impl Calling {
    pub(crate) fn begin() -> Calling {
        CALLS.with(|calls| calls.set(calls.get() + 1));
        Calling
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        CALLS.with(|calls| calls.set(calls.get() - 1));
    }
}

/// Calls `work` without the interpreter lock.
#[inline]
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _calling = Calling::begin();
        work()
    })
}

/// As [`detached`], with the engine's error as an exception.
pub(crate) fn detached_result<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> sateen::Result<T> + Send,
) -> PyResult<T> {
    detached(py, work).map_err(|error| raised(py, &error))
}

#[cold]
fn raised(py: Python<'_>, error: &Error) -> PyErr {
    callbacks::with_cause(py, errors::raise(py, error))
}

/// Calls the engine in another thread, and looks for signals meanwhile. An exception from one calls
/// `stop`, after which `work` must end soon.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> sateen::Result<T> + Send,
    stop: impl FnOnce() + Send,
) -> PyResult<T> {
    let done = detached(py, || {
        std::thread::scope(|scope| {
            let caller = std::thread::current();
            let worker = scope.spawn(move || {
                let _calling = Calling::begin();
                let result = work();
                caller.unpark();
                result
            });
            let mut interrupted = Ok(());
            while !worker.is_finished() && interrupted.is_ok() {
                std::thread::park_timeout(WAIT_SLICE);
                interrupted = Python::attach(|py| py.check_signals());
            }
            if interrupted.is_err() {
                stop();
            }
            let result = match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            interrupted.and(Ok(result))
        })
    });
    done?.map_err(|error| raised(py, &error))
}

/// Takes a lock that is never held while its owner waits for the interpreter lock only. A callback
/// does not wait for it: the call that runs the callback may hold it.
pub(crate) fn locked<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> PyResult<MutexGuard<'a, T>> {
    if callbacks::is_in_any() {
        return match mutex.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::WouldBlock) => Err(errors::in_callback(py)),
            Err(TryLockError::Poisoned(_)) => Err(errors::poisoned()),
        };
    }
    mutex.lock_py_attached(py).map_err(|_| errors::poisoned())
}

/// Drops something whose drop may wait, without the interpreter lock.
pub(crate) fn drop_detached<T: Send>(value: T) {
    let mut value = Some(value);
    let done = Python::try_attach(|py| detached(py, || drop(value.take())));
    if done.is_none() {
        // The interpreter is gone, so nobody waits for its lock.
        drop(value);
    }
}

impl Shared {
    pub(crate) fn new(
        db: Db,
        orders: Orders,
        families: HashMap<String, Arc<Order>>,
    ) -> Arc<Shared> {
        let families = Mutex::new(families);
        let (closed, cold_reads) = (AtomicBool::new(false), AtomicU32::new(0));
        let shared = Arc::new(Shared { db, closed, cold_reads, orders, families });
        if let Ok(mut open) = OPEN.lock() {
            open.retain(|other| other.strong_count() > 0);
            open.push(Arc::downgrade(&shared));
        }
        shared
    }

    /// Returns the comparator of a column family, if it is Python's.
    pub(crate) fn order_of(&self, family: &str) -> Option<Arc<Order>> {
        self.families.lock().ok()?.get(family).cloned()
    }

    /// Notes the comparator of a new column family.
    pub(crate) fn set_order(&self, family: &str, order: Option<Arc<Order>>) {
        if let Ok(mut families) = self.families.lock() {
            families.remove(family);
            families.extend(order.map(|order| (family.to_owned(), order)));
        }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Fails if the database can no longer be used.
    #[inline]
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_closed() {
            return Err(errors::closed(py, "database"));
        }
        if self.db.is_of_parent_process() {
            return Err(errors::forked(py));
        }
        if self.orders.have_failed() {
            return Err(self.orders.failure(py));
        }
        if self.orders.is_in_callback() {
            return Err(errors::in_callback(py));
        }
        Ok(())
    }

    /// Calls the engine.
    #[inline]
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> sateen::Result<T> + Send,
    ) -> PyResult<T> {
        self.check(py)?;
        let result = detached(py, work);
        if self.orders.have_failed() {
            return Err(self.order_failed(py));
        }
        result.map_err(|error| raised(py, &error))
    }

    /// Takes the lock of an object of this database. In a child of fork nobody might release it.
    pub(crate) fn locked<'a, T>(
        &self,
        py: Python<'_>,
        mutex: &'a Mutex<T>,
    ) -> PyResult<MutexGuard<'a, T>> {
        if self.db.is_of_parent_process() {
            return Err(errors::forked(py));
        }
        locked(py, mutex)
    }

    /// Closes an object of this database. In a child of fork it does nothing: another thread of the
    /// parent may have been at work with the object.
    pub(crate) fn close_part<T: Send>(
        &self,
        py: Python<'_>,
        part: &Mutex<Option<T>>,
    ) -> PyResult<()> {
        if !self.db.is_of_parent_process() {
            let part = locked(py, part)?.take();
            part.into_iter().for_each(drop_detached);
        }
        Ok(())
    }

    /// As `close_part`, in a drop.
    pub(crate) fn drop_part<T: Send>(&self, part: &mut Mutex<Option<T>>) {
        if let Some(part) = part.get_mut().ok().and_then(Option::take) {
            match self.db.is_of_parent_process() {
                true => std::mem::forget(part),
                false => drop_detached(part),
            }
        }
    }

    /// Calls the engine with a write that may be held back. Without a deadline of its own it looks
    /// for signals every `WAIT_SLICE`. If the gate expects a longer wait, it waits that long.
    #[inline]
    pub(crate) fn run_write<T: Send>(
        &self,
        py: Python<'_>,
        mut options: WriteOptions,
        work: impl Fn(&WriteOptions) -> sateen::Result<T> + Send + Sync,
    ) -> PyResult<T> {
        let patient = options.deadline.is_none() && !options.no_slowdown;
        if patient {
            options.deadline = Some(WAIT_SLICE);
        }
        loop {
            self.check(py)?;
            let result = detached(py, || work(&options));
            if self.orders.have_failed() {
                return Err(self.order_failed(py));
            }
            match result {
                Err(Error::WouldStall { retry_after, .. }) if patient => {
                    py.check_signals()?;
                    // The gate refuses at once a wait that would exceed the deadline.
                    options.deadline = Some(WAIT_SLICE.max(retry_after.saturating_mul(2)));
                }
                other => return other.map_err(|error| raised(py, &error)),
            }
        }
    }

    /// Calls the engine with a write of `bytes` bytes. `attempt` writes only if nothing has to be
    /// waited for, and is called with the interpreter lock held; `work` may wait.
    #[inline]
    pub(crate) fn run_small_write(
        &self,
        py: Python<'_>,
        bytes: usize,
        options: WriteOptions,
        attempt: impl Fn(&WriteOptions) -> sateen::Result<bool>,
        work: impl Fn(&WriteOptions) -> sateen::Result<()> + Send + Sync,
    ) -> PyResult<()> {
        // Another thread may hold a lock of the engine and wait for the interpreter lock, if the
        // engine calls Python.
        if bytes <= SMALL_BYTES_MAX && !self.orders.has_functions() {
            self.check(py)?;
            match attempt(&options) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => return Err(raised(py, &error)),
            }
        }
        self.run_write(py, options, work)
    }

    /// Calls the engine with a read. `attempt` fails with `NotInMemory` if it would have to read
    /// from the device, and is called with the interpreter lock held; `work` may wait.
    #[inline]
    pub(crate) fn run_read<T: Send>(
        &self,
        py: Python<'_>,
        attempt: impl FnOnce() -> sateen::Result<T>,
        work: impl FnOnce() -> sateen::Result<T> + Send,
    ) -> PyResult<T> {
        // A merge operator or comparator of Python may run for long.
        if !self.orders.has_functions() {
            let cold = self.cold_reads.load(Ordering::Relaxed);
            if cold == 0 {
                self.check(py)?;
                match attempt() {
                    Err(Error::NotInMemory) => {
                        self.cold_reads.store(COLD_READS, Ordering::Relaxed);
                    }
                    other => return other.map_err(|error| raised(py, &error)),
                }
            } else {
                // Two threads may count as one: it is only an estimate.
                self.cold_reads.store(cold - 1, Ordering::Relaxed);
            }
        }
        self.run(py, work)
    }

    /// Waits for background work in slices, between which it looks for signals.
    pub(crate) fn wait(
        &self,
        py: Python<'_>,
        mut flush: bool,
        timeout: Option<Duration>,
    ) -> PyResult<()> {
        let begin = Instant::now();
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
            let slice = left.map_or(WAIT_SLICE, |left| left.min(WAIT_SLICE));
            self.check(py)?;
            let options =
                WaitForCompactOptions { flush, timeout: Some(slice), ..Default::default() };
            match detached(py, || self.db.wait_for_compact(&options)) {
                Err(Error::TimedOut(_)) if left.is_none_or(|left| left > slice) => {
                    py.check_signals()?;
                    flush = false;
                }
                other => {
                    self.check(py)?;
                    return other.map_err(|error| raised(py, &error));
                }
            }
        }
    }

    /// Calls the engine in a thread of its own, and looks for signals meanwhile. After an exception
    /// from one that thread goes on alone. `interrupted` gets a function that returns true once it
    /// has ended.
    pub(crate) fn run_apart<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> sateen::Result<T> + Send + 'static,
        interrupted: impl FnOnce(&dyn Fn() -> bool) + Send,
    ) -> PyResult<T> {
        self.run(py, || {
            // The thread may end before anybody asks.
            let (sender, receiver) = sync_channel(1);
            let worker = std::thread::spawn(move || {
                let _calling = Calling::begin();
                let _nobody_asks = sender.send(work());
            });
            loop {
                match receiver.recv_timeout(WAIT_SLICE) {
                    Ok(result) => return result.map(Ok),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => match worker.join() {
                        Err(panic) => std::panic::resume_unwind(panic),
                        Ok(()) => return Err(Error::Closed),
                    },
                }
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    interrupted(&|| worker.is_finished());
                    return Ok(Err(error));
                }
            }
        })?
    }

    /// Stops background work, whose order of keys cannot be trusted any more, and returns the
    /// error.
    #[cold]
    fn order_failed(&self, py: Python<'_>) -> PyErr {
        if self.orders.is_first_report() {
            // It may fail, because the database is closed or read-only; then nothing runs anyway.
            let _nothing_runs = detached(py, || self.db.pause_background_work());
        }
        self.orders.failure(py)
    }

    /// Closes the database; a second time does nothing.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.orders.is_in_callback() {
            return Err(errors::in_callback(py));
        }
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let closed = detached(py, || self.db.close());
        self.orders.forget(py);
        match closed {
            Ok(()) => Ok(()),
            Err(Error::Closed) => Ok(()),
            Err(error) => Err(raised(py, &error)),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // `close` reports the error; a drop cannot.
        if self.orders.is_in_callback() {
            // A collection of garbage within a callback, which the close would wait for.
            let db = self.db.clone();
            std::thread::spawn(move || drop(db.close()));
            return;
        }
        let db = &self.db;
        let close = || drop(db.close());
        if Python::try_attach(|py| detached(py, close)).is_none() {
            close();
        }
    }
}

/// Returns the first key after all that begin with `prefix`; `None` if there is none.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut next = prefix.to_vec();
    while let Some(last) = next.pop() {
        if last < u8::MAX {
            next.push(last + 1);
            return Some(next);
        }
    }
    None
}

/// Closes all databases of this process, before the interpreter ends.
#[pyfunction]
#[pyo3(name = "_close_all")]
pub(crate) fn close_all(py: Python<'_>) {
    let open = OPEN.lock().map(|mut open| std::mem::take(&mut *open)).unwrap_or_default();
    for shared in open.iter().filter_map(Weak::upgrade) {
        // Nobody is left to hear of the error.
        let _unheard = shared.close(py);
    }
}
