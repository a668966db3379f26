//! `WriteBatch`: writes that take effect together.

use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sateen::WriteOptions;

use crate::errors;
use crate::input::Input;
use crate::place::{Place, write_options};
use crate::store::Store;

/// Writes that take effect together, or not at all.
#[pyclass(frozen, subclass, weakref, module = "sateen._native")]
pub(crate) struct WriteBatch {
    place: Place,
    batch: Mutex<sateen::WriteBatch>,
    options: WriteOptions,
    /// A `with` block that fails writes nothing.
    transaction: bool,
}

impl WriteBatch {
    /// Adds a write to the column family of `store`, or of the batch.
    fn add(
        &self,
        py: Python<'_>,
        store: Option<&Bound<'_, Store>>,
        keys: &[&Input<'_>],
        add: impl FnOnce(sateen::FamilyBatch<'_>, &[&[u8]]) -> sateen::Result<()>,
    ) -> PyResult<()> {
        self.place.shared.check(py)?;
        let place = match store {
            None => &self.place,
            Some(store) if Arc::ptr_eq(&store.get().place.shared, &self.place.shared) => {
                &store.get().place
            }
            Some(_) => return Err(PyValueError::new_err("the store is of another database")),
        };
        let whole: Vec<Vec<u8>> = match place.prefix.is_empty() {
            true => Vec::new(),
            false => keys.iter().map(|key| [&place.prefix[..], key.bytes()].concat()).collect(),
        };
        let lent: Vec<&[u8]> = match place.prefix.is_empty() {
            true => keys.iter().map(|key| key.bytes()).collect(),
            false => whole.iter().map(Vec::as_slice).collect(),
        };
        if let Some(order) = &place.order {
            lent.iter().try_for_each(|key| order.try_key(py, key))?;
        }
        let mut batch = self.place.shared.locked(py, &self.batch)?;
        add(batch.to(&place.family), &lent).map_err(|error| errors::raise(py, &error))
    }
}

impl WriteBatch {
    /// Applies the writes, and returns the batch as it was applied.
    fn write_locked(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, sateen::WriteBatch>> {
        let batch = self.place.shared.locked(py, &self.batch)?;
        let shared = &self.place.shared;
        let write = |options: &WriteOptions| shared.db.write(&batch, options);
        shared.run_write(py, self.options.clone(), write)?;
        Ok(batch)
    }
}

#[pymethods]
impl WriteBatch {
    #[new]
    #[pyo3(signature = (store, *, transaction = false, sync = None, disable_wal = false,
        deadline = None, low_priority = false))]
    fn new(
        py: Python<'_>,
        store: &Bound<'_, Store>,
        transaction: bool,
        sync: Option<bool>,
        disable_wal: bool,
        deadline: Option<f64>,
        low_priority: bool,
    ) -> PyResult<WriteBatch> {
        let place = store.get().place.clone();
        place.shared.check(py)?;
        let options = write_options(sync, disable_wal, deadline, low_priority)?;
        // The database has the limit. A smaller one of the batch would refuse what it accepts.
        let batch = Mutex::new(sateen::WriteBatch::with_value_bytes_max(usize::MAX));
        Ok(WriteBatch { place, batch, options, transaction })
    }

    /// Adds a put. `store` is a column family or prefixed database of the same database.
    #[pyo3(signature = (key, value, *, store = None))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        value: Input<'py>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        // The usual case, without a list of keys.
        if store.is_none() && self.place.prefix.is_empty() && self.place.order.is_none() {
            self.place.shared.check(py)?;
            let mut batch = self.place.shared.locked(py, &self.batch)?;
            let put = batch.to(&self.place.family).put(key.bytes(), value.bytes());
            return put.map_err(|error| errors::raise(py, &error));
        }
        self.add(py, store, &[&key], |mut batch, keys| batch.put(keys[0], value.bytes()))
    }

    /// Adds a deletion.
    #[pyo3(signature = (key, *, store = None))]
    fn delete<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        self.add(py, store, &[&key], |mut batch, keys| batch.delete(keys[0]))
    }

    /// Adds a deletion of a key that was put once since it was deleted last.
    #[pyo3(signature = (key, *, store = None))]
    fn single_delete<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        self.add(py, store, &[&key], |mut batch, keys| batch.single_delete(keys[0]))
    }

    /// Adds a merge.
    #[pyo3(signature = (key, operand, *, store = None))]
    fn merge<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        operand: Input<'py>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        self.add(py, store, &[&key], |mut batch, keys| batch.merge(keys[0], operand.bytes()))
    }

    /// Adds a deletion of the keys from `begin` up to `end`, without `end`.
    #[pyo3(signature = (begin, end, *, store = None))]
    fn delete_range<'py>(
        &self,
        py: Python<'py>,
        begin: Input<'py>,
        end: Input<'py>,
        store: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        self.add(py, store, &[&begin, &end], |mut batch, keys| batch.delete_range(keys[0], keys[1]))
    }

    fn __setitem__<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        value: Input<'py>,
    ) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__<'py>(&self, py: Python<'py>, key: Input<'py>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    /// Appends the writes of another batch.
    fn append(&self, py: Python<'_>, other: &Bound<'_, WriteBatch>) -> PyResult<()> {
        let other = other.get().place.shared.locked(py, &other.get().batch)?.clone();
        let mut batch = self.place.shared.locked(py, &self.batch)?;
        batch.append(&other).map_err(|error| errors::raise(py, &error))
    }

    /// Forgets what was added.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.place.shared.locked(py, &self.batch)?.clear();
        Ok(())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.place.shared.locked(py, &self.batch)?.count() as usize)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Returns the bytes of the batch, as they go into the WAL.
    fn approximate_size(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.place.shared.locked(py, &self.batch)?.len_bytes())
    }

    /// Applies the writes. The batch keeps them.
    fn write(&self, py: Python<'_>) -> PyResult<()> {
        self.write_locked(py).map(drop)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let failed = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        if self.transaction && failed {
            return self.clear(py);
        }
        // Under one lock: what another thread adds meanwhile belongs to the next write.
        self.write_locked(py)?.clear();
        Ok(())
    }
}
