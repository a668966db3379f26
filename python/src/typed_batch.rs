//! `TypedBatch`: writes with typed keys and values, which belong to no database until they are
//! written. Writes without a column family go to the default one.

use std::sync::Mutex;

use pyo3::prelude::*;
use sateen::WriteOptions;

use crate::codec::Codec;
use crate::errors;
use crate::handle;
use crate::store::Store;

/// A batch, and where its writes go by default.
struct Writes {
    batch: sateen::WriteBatch,
    store: Option<Py<Store>>,
}

/// Writes that take effect together.
#[pyclass(frozen, subclass, weakref, module = "sateen._native")]
pub(crate) struct TypedBatch {
    codec: Mutex<Codec>,
    writes: Mutex<Writes>,
}

/// One write of a batch.
enum Write<'a> {
    Put(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
    DeleteRange(&'a [u8], &'a [u8]),
}

impl TypedBatch {
    fn codec(&self, py: Python<'_>) -> PyResult<Codec> {
        Ok(handle::locked(py, &self.codec)?.clone_ref(py))
    }

    fn add(
        &self,
        py: Python<'_>,
        store: Option<&Bound<'_, Store>>,
        write: Write<'_>,
    ) -> PyResult<()> {
        let mut writes = handle::locked(py, &self.writes)?;
        let Writes { batch, store: default } = &mut *writes;
        let store = store.map(Bound::get).or(default.as_ref().map(Py::get));
        let added = match store {
            Some(store) => {
                let mut batch = batch.to(&store.place.family);
                match write {
                    Write::Put(key, value) => batch.put(key, value),
                    Write::Delete(key) => batch.delete(key),
                    Write::DeleteRange(begin, end) => batch.delete_range(begin, end),
                }
            }
            None => match write {
                Write::Put(key, value) => batch.put(key, value),
                Write::Delete(key) => batch.delete(key),
                Write::DeleteRange(begin, end) => batch.delete_range(begin, end),
            },
        };
        added.map_err(|error| errors::raise(py, &error))
    }

    /// Writes the batch to the database of a store.
    pub(crate) fn write_to(
        &self,
        py: Python<'_>,
        shared: &handle::Shared,
        options: &WriteOptions,
    ) -> PyResult<()> {
        let writes = handle::locked(py, &self.writes)?;
        let batch = &writes.batch;
        shared.run_write(py, options.clone(), |options| shared.db.write(batch, options))
    }
}

#[pymethods]
impl TypedBatch {
    #[new]
    fn new(raw: bool, dumps: Py<PyAny>, loads: Py<PyAny>) -> TypedBatch {
        let codec = Mutex::new(Codec { raw, loads, dumps });
        // The database has the limit. A smaller one of the batch would refuse what it accepts.
        let batch = sateen::WriteBatch::with_value_bytes_max(usize::MAX);
        TypedBatch { codec, writes: Mutex::new(Writes { batch, store: None }) }
    }

    fn set_dumps(&self, py: Python<'_>, dumps: Py<PyAny>) -> PyResult<()> {
        handle::locked(py, &self.codec)?.dumps = dumps;
        Ok(())
    }

    /// Sets the column family of writes that name none.
    #[pyo3(signature = (column_family))]
    fn set_default_column_family(
        &self,
        py: Python<'_>,
        column_family: Option<Py<Store>>,
    ) -> PyResult<()> {
        handle::locked(py, &self.writes)?.store = column_family;
        Ok(())
    }

    #[pyo3(signature = (key, value, column_family = None))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
        column_family: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        let codec = self.codec(py)?;
        codec.with_key(key, |key| {
            codec.with_value(value, |value| self.add(py, column_family, Write::Put(key, value)))
        })
    }

    /// Puts a value with named columns.
    fn put_entity<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        names: Vec<Bound<'py, PyAny>>,
        values: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let codec = self.codec(py)?;
        codec.with_key(key, |key| {
            codec.with_entity(&names, &values, |value| self.add(py, None, Write::Put(key, value)))
        })
    }

    #[pyo3(signature = (key, column_family = None))]
    fn delete<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        column_family: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        self.codec(py)?.with_key(key, |key| self.add(py, column_family, Write::Delete(key)))
    }

    #[pyo3(signature = (begin, end, column_family = None))]
    fn delete_range<'py>(
        &self,
        py: Python<'py>,
        begin: &Bound<'py, PyAny>,
        end: &Bound<'py, PyAny>,
        column_family: Option<&Bound<'py, Store>>,
    ) -> PyResult<()> {
        let codec = self.codec(py)?;
        codec.with_key(begin, |begin| {
            codec.with_key(end, |end| self.add(py, column_family, Write::DeleteRange(begin, end)))
        })
    }

    fn __setitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(handle::locked(py, &self.writes)?.batch.count() as usize)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn len(&self, py: Python<'_>) -> PyResult<usize> {
        self.__len__(py)
    }

    fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.__len__(py)? == 0)
    }

    fn size_in_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(handle::locked(py, &self.writes)?.batch.len_bytes())
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        handle::locked(py, &self.writes)?.batch.clear();
        Ok(())
    }
}
