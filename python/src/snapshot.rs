//! `Snapshot`: a store as of one moment.

use std::sync::Mutex;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::errors;
use crate::input::Input;
use crate::iter::{Entries, Range};
use crate::place::{self, Place, read_options, value_or};
use crate::raw_iter::RawIterator;
use crate::store::Store;

/// The keys and values of a store at the moment of its creation.
#[pyclass(frozen, subclass, weakref, module = "sateen._native")]
pub(crate) struct Snapshot {
    place: Place,
    snapshot: Mutex<Option<sateen::Snapshot>>,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.place.shared.drop_part(&mut self.snapshot);
    }
}

impl Snapshot {
    pub(crate) fn taken(&self, py: Python<'_>) -> PyResult<sateen::Snapshot> {
        self.place.shared.check(py)?;
        let snapshot = self.place.shared.locked(py, &self.snapshot)?.clone();
        snapshot.ok_or_else(|| errors::closed(py, "snapshot"))
    }
}

#[pymethods]
impl Snapshot {
    /// Takes a snapshot of the database of `store`; with `of`, shows another store at the moment of
    /// that snapshot.
    #[new]
    #[pyo3(signature = (store, *, of = None))]
    fn new(
        py: Python<'_>,
        store: &Bound<'_, Store>,
        of: Option<&Bound<'_, Snapshot>>,
    ) -> PyResult<Snapshot> {
        let place = store.get().place.clone();
        let snapshot = match of {
            None => place.shared.run(py, || Ok(place.shared.db.snapshot()))?,
            Some(of) if std::sync::Arc::ptr_eq(&of.get().place.shared, &place.shared) => {
                of.get().taken(py)?
            }
            Some(_) => {
                let text = "the snapshot is of another database";
                return Err(errors::exception(py, "InvalidArgumentError", text));
            }
        };
        Ok(Snapshot { place, snapshot: Mutex::new(Some(snapshot)) })
    }

    /// Returns the value of `key`, or `default`.
    #[pyo3(signature = (key, default = None, *, verify_checksums = None, fill_cache = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        default: Option<Bound<'py, PyAny>>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let _always = verify_checksums;
        let options = read_options(fill_cache, Some(&self.taken(py)?));
        let key = self.place.key(py, key)?;
        Ok(value_or(py, place::get(py, &self.place, key.bytes(), options.as_ref())?, default))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Input<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let options = read_options(None, Some(&self.taken(py)?));
        let whole = self.place.key(py, key)?;
        match place::get(py, &self.place, whole.bytes(), options.as_ref())? {
            Some(value) => Ok(PyBytes::new(py, &value)),
            None => {
                let key = whole.bytes().get(self.place.prefix.len()..).unwrap_or_default();
                Err(PyKeyError::new_err(PyBytes::new(py, key).unbind()))
            }
        }
    }

    fn __contains__(&self, py: Python<'_>, key: Input<'_>) -> PyResult<bool> {
        let snapshot = self.taken(py)?;
        let key = self.place.key(py, key)?;
        let (place, key) = (&self.place, key.bytes());
        place.shared.run(py, || place.family.at(&snapshot).contains_key(key))
    }

    /// Returns the values of several keys, `None` for those that have none.
    #[pyo3(signature = (keys, *, fill_cache = None))]
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Input<'py>>,
        fill_cache: Option<bool>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = read_options(fill_cache, Some(&self.taken(py)?));
        place::multi_get(py, &self.place, keys, options.as_ref())
    }

    /// Returns an iterator over entries in order.
    #[pyo3(signature = (*, reverse = false, start = None, stop = None, include_start = true,
        include_stop = false, prefix = None, include_key = true, include_value = true,
        verify_checksums = None, fill_cache = None))]
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
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Entries> {
        let _always = verify_checksums;
        let range = Range::new(py, &self.place, start, stop, include_start, include_stop, prefix)?;
        let options = read_options(fill_cache, Some(&self.taken(py)?)).unwrap_or_default();
        Entries::new(py, self.place.clone(), range, options, reverse, (include_key, include_value))
    }

    /// Returns a cursor that stands on an entry.
    #[pyo3(signature = (*, verify_checksums = None, fill_cache = None))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<RawIterator> {
        let _always = verify_checksums;
        let options = read_options(fill_cache, Some(&self.taken(py)?)).unwrap_or_default();
        RawIterator::new(py, &self.place, options)
    }

    /// The number of the newest write that it shows.
    #[getter]
    fn sequence_number(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.taken(py)?.sequence_number())
    }

    /// True after a close of the snapshot or of the database.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.place.shared.is_closed() || self.place.shared.locked(py, &self.snapshot)?.is_none())
    }

    /// Gives the snapshot up; a second time does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.place.shared.close_part(py, &self.snapshot)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
