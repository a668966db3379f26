//! `Transaction`: reads and writes that take effect together at a commit, or not at all.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use sateen::Transaction as Engine;
use sateen::{ColumnFamily, Error, ReadOptions, TransactionOptions, WriteOptions};

use crate::database::{Database, shared};
use crate::errors;
use crate::handle::WAIT_SLICE;
use crate::input::Input;
use crate::iter::{Entries, Range};
use crate::place::{Place, duration, read_options, write_options};
use crate::store::Store;

/// A transaction of a database.
#[pyclass(frozen, subclass, weakref, module = "sateen._native")]
pub(crate) struct Transaction {
    place: Place,
    transaction: Mutex<Option<sateen::Transaction>>,
    /// How a commit writes.
    write: WriteOptions,
    /// Longest wait for a lock, if that is waited for in slices.
    lock_timeout: Option<Patience>,
}

/// How long a lock is waited for in all; `None` for as long as it takes.
type Patience = Option<Duration>;

impl Drop for Transaction {
    fn drop(&mut self) {
        self.place.shared.drop_part(&mut self.transaction);
    }
}

impl Transaction {
    fn place<'a>(&'a self, store: Option<&'a Bound<'_, Store>>) -> PyResult<&'a Place> {
        match store {
            None => Ok(&self.place),
            Some(store) if Arc::ptr_eq(&store.get().place.shared, &self.place.shared) => {
                Ok(&store.get().place)
            }
            Some(_) => Err(PyValueError::new_err("the store is of another database")),
        }
    }

    fn run<T: Send>(
        &self,
        py: Python<'_>,
        mut work: impl FnMut(&mut sateen::Transaction) -> sateen::Result<T> + Send,
    ) -> PyResult<T> {
        let mut guard = self.place.shared.locked(py, &self.transaction)?;
        let transaction = guard.as_mut().ok_or_else(|| errors::closed(py, "transaction"))?;
        let Some(patience) = self.lock_timeout else {
            return self.place.shared.run(py, || work(transaction));
        };
        // Each slice asks for the lock again, and looks for signals before.
        let begin = Instant::now();
        loop {
            let done = self.place.shared.run(py, || match work(transaction) {
                Err(Error::LockTimedOut { .. })
                    if patience.is_none_or(|time| begin.elapsed() < time) =>
                {
                    Ok(None)
                }
                Err(Error::LockTimedOut { column_family, key, holder, .. }) => {
                    let timeout = patience.unwrap_or_default();
                    Err(Error::LockTimedOut { column_family, key, holder, timeout })
                }
                done => done.map(Some),
            });
            match done? {
                Some(done) => return Ok(done),
                None => py.check_signals()?,
            }
        }
    }

    /// Commits. A commit that is held back looks for signals meanwhile.
    fn commit_by(&self, py: Python<'_>, write: WriteOptions) -> PyResult<()> {
        let mut guard = self.place.shared.locked(py, &self.transaction)?;
        let transaction = guard.as_mut().ok_or_else(|| errors::closed(py, "transaction"))?;
        let transaction = Mutex::new(transaction);
        self.place.shared.run_write(py, write, |options| {
            let mut transaction = transaction.lock().unwrap_or_else(PoisonError::into_inner);
            transaction.commit_with(options)
        })
    }

    /// Reads or writes one key of a store.
    fn with_key<'py, T: Send>(
        &self,
        py: Python<'py>,
        store: Option<&Bound<'py, Store>>,
        key: Input<'py>,
        mut work: impl FnMut(&mut Engine, &ColumnFamily, &[u8]) -> sateen::Result<T> + Send,
    ) -> PyResult<T> {
        let place = self.place(store)?;
        let key = place.key(py, key)?;
        let (key, family) = (key.bytes(), &place.family);
        self.run(py, |transaction| work(transaction, family, key))
    }
}

/// Returns true on the thread whose calls signals may end.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    Ok(threading.call_method0("current_thread")?.is(threading.call_method0("main_thread")?))
}

fn or_default<'py>(
    py: Python<'py>,
    value: Option<Vec<u8>>,
    default: Option<Bound<'py, PyAny>>,
) -> Option<Bound<'py, PyAny>> {
    value.map(|value| PyBytes::new(py, &value).into_any()).or(default)
}

#[pymethods]
impl Transaction {
    #[new]
    #[pyo3(signature = (database, *, pessimistic = false, snapshot = None, lock_timeout = 1.0,
        locks_max = None, sync = None, disable_wal = false, deadline = None, prepared = None))]
    fn new(
        py: Python<'_>,
        database: &Bound<'_, Database>,
        pessimistic: bool,
        snapshot: Option<bool>,
        lock_timeout: Option<f64>,
        locks_max: Option<usize>,
        sync: Option<bool>,
        disable_wal: bool,
        deadline: Option<f64>,
        prepared: Option<Input<'_>>,
    ) -> PyResult<Transaction> {
        let place = database.as_super().get().place.clone();
        let shared = shared(database).clone();
        let write = write_options(sync, disable_wal, deadline, false)?;
        let mut patience = None;
        let transaction = match prepared {
            Some(name) => {
                let name = name.bytes();
                let found = shared.run(py, || shared.db.prepared_transaction(name))?;
                found.ok_or_else(|| PyKeyError::new_err(PyBytes::new(py, name).unbind()))?
            }
            None => {
                let mut options = match pessimistic {
                    true => TransactionOptions::pessimistic(),
                    false => TransactionOptions::default(),
                };
                options.set_snapshot = snapshot.unwrap_or(options.set_snapshot);
                options.lock_timeout =
                    lock_timeout.map(|seconds| duration("lock_timeout", seconds)).transpose()?;
                options.locks_max = locks_max.unwrap_or(options.locks_max);
                if pessimistic && is_main_thread(py)? {
                    patience = Some(options.lock_timeout);
                    let slice = options.lock_timeout.unwrap_or(WAIT_SLICE).min(WAIT_SLICE);
                    options.lock_timeout = Some(slice);
                }
                options.write = write.clone();
                shared.run(py, || Ok(shared.db.transaction_with(&options)))?
            }
        };
        let transaction = Mutex::new(Some(transaction));
        Ok(Transaction { place, transaction, write, lock_timeout: patience })
    }

    /// Reads a key: what the transaction wrote, or the snapshot.
    #[pyo3(signature = (key, default = None, *, store = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        default: Option<Bound<'py, PyAny>>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.with_key(py, store, key, |t, family, key| t.to(family).get(key))?;
        Ok(or_default(py, value, default))
    }

    /// Reads a key and guards it: the commit fails if others write it meanwhile.
    #[pyo3(signature = (key, default = None, *, store = None))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        default: Option<Bound<'py, PyAny>>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value =
            self.with_key(py, store, key, |t, family, key| t.to(family).get_for_update(key))?;
        Ok(or_default(py, value, default))
    }

    /// Reads a key and guards it, but shares its lock with others that read it so.
    #[pyo3(signature = (key, default = None, *, store = None))]
    fn get_for_share<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        default: Option<Bound<'py, PyAny>>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value =
            self.with_key(py, store, key, |t, family, key| t.to(family).get_for_share(key))?;
        Ok(or_default(py, value, default))
    }

    fn __contains__(&self, py: Python<'_>, key: Input<'_>) -> PyResult<bool> {
        self.with_key(py, None, key, |t, family, key| t.to(family).contains_key(key))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Input<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let shown = PyBytes::new(py, key.bytes());
        let value = self.with_key(py, None, key, |t, family, key| t.to(family).get(key))?;
        match value {
            Some(value) => Ok(PyBytes::new(py, &value)),
            None => Err(PyKeyError::new_err(shown.unbind())),
        }
    }

    /// Sets `key` to `value`. `store` is a column family or prefixed database of the same database.
    #[pyo3(signature = (key, value, *, store = None))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        value: Input<'py>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        let value = value.bytes();
        self.with_key(py, store, key, |t, family, key| t.to(family).put(key, value))
    }

    fn __setitem__<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        value: Input<'py>,
    ) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    /// Deletes `key`.
    #[pyo3(signature = (key, *, store = None))]
    fn delete<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        self.with_key(py, store, key, |t, family, key| t.to(family).delete(key))
    }

    fn __delitem__<'py>(&self, py: Python<'py>, key: Input<'py>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    /// Merges `operand` into the value of `key`.
    #[pyo3(signature = (key, operand, *, store = None))]
    fn merge<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        operand: Input<'py>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        let operand = operand.bytes();
        self.with_key(py, store, key, |t, family, key| t.to(family).merge(key, operand))
    }

    /// Returns an iterator over entries in order, with those that the transaction wrote.
    #[pyo3(signature = (*, reverse = false, start = None, stop = None, include_start = true,
        include_stop = false, prefix = None, include_key = true, include_value = true,
        fill_cache = None, store = None))]
    fn iterator(
        &self,
        py: Python<'_>,
        reverse: bool,
        start: Option<Input<'_>>,
        stop: Option<Input<'_>>,
        include_start: bool,
        include_stop: bool,
        prefix: Option<Input<'_>>,
        include_key: bool,
        include_value: bool,
        fill_cache: Option<bool>,
        store: Option<&Bound<'_, Store>>,
    ) -> PyResult<Entries> {
        let place = self.place(store)?.clone();
        let range = Range::new(py, &place, start, stop, include_start, include_stop, prefix)?;
        let snapshot = self.run(py, |transaction| Ok(transaction.snapshot().cloned()))?;
        let options: ReadOptions = read_options(fill_cache, snapshot.as_ref()).unwrap_or_default();
        let guard = self.place.shared.locked(py, &self.transaction)?;
        let transaction = guard.as_ref().ok_or_else(|| errors::closed(py, "transaction"))?;
        let family = place.family.clone();
        let shown = (include_key, include_value);
        Entries::over(py, place, range, options, reverse, shown, |options| {
            transaction.reading(&family, options).cursor()
        })
    }

    /// Notes the present state, for `rollback_to_save_point`.
    fn set_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |transaction| {
            transaction.set_save_point();
            Ok(())
        })
    }

    /// Undoes what was done since the last save point, and forgets that.
    fn rollback_to_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, sateen::Transaction::rollback_to_save_point)
    }

    /// Forgets the last save point.
    fn pop_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, sateen::Transaction::pop_save_point)
    }

    /// Makes the commit certain, under a name that survives a crash (two-phase commit).
    fn prepare(&self, py: Python<'_>, name: Input<'_>) -> PyResult<()> {
        let name = name.bytes();
        self.run(py, |transaction| transaction.prepare(name))
    }

    /// Applies the writes. Fails with `ConflictError` if others wrote a key of the transaction.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.commit_by(py, self.write.clone())
    }

    /// Commits, or fails with `StallError` after `deadline` seconds.
    fn _commit_within(&self, py: Python<'_>, deadline: f64) -> PyResult<()> {
        let deadline = Some(duration("deadline", deadline)?);
        self.commit_by(py, WriteOptions { deadline, ..self.write.clone() })
    }

    /// Undoes all, and releases the locks.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, sateen::Transaction::rollback)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.run(py, |transaction| Ok(transaction.count() as usize))
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Gives the transaction up.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.place.shared.close_part(py, &self.transaction)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Commits at the end of a `with` block, or rolls back if it failed.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let failed = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        if failed {
            return self.close(py);
        }
        let over =
            |error: &PyErr| error.get_type(py).name().is_ok_and(|name| name == "TransactionError");
        match self.commit(py) {
            // The block committed or rolled back by itself.
            Err(error) if over(&error) => Ok(()),
            other => other,
        }
    }
}
