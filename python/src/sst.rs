//! `SstFileWriter`: a file of sorted entries for `Store.ingest`.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sateen::Options;

use crate::callbacks::Orders;
use crate::columns::Columns;
use crate::errors;
use crate::handle;
use crate::input::{FilePath, Input};
use crate::options;
use crate::store::Store;

/// Writes a file of entries, whose keys are added in ascending order.
#[pyclass(frozen, weakref, module = "sateen._native")]
pub(crate) struct SstFileWriter {
    writer: Mutex<Option<sateen::SstFileWriter>>,
    orders: Orders,
}

impl SstFileWriter {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut sateen::SstFileWriter) -> sateen::Result<T> + Send,
    ) -> PyResult<T> {
        let mut guard = handle::locked(py, &self.writer)?;
        let writer = guard.as_mut().ok_or_else(|| errors::closed(py, "file"))?;
        let done = handle::detached_result(py, || work(writer));
        if self.orders.have_failed() { Err(self.orders.failure(py)) } else { done }
    }
}

impl Drop for SstFileWriter {
    fn drop(&mut self) {
        if let Ok(writer) = self.writer.get_mut() {
            writer.take().into_iter().for_each(handle::drop_detached);
        }
    }
}

#[pymethods]
impl SstFileWriter {
    /// Creates the file `path` with the options of the column family of `store`, or with options of
    /// its own.
    #[new]
    #[pyo3(signature = (path, store = None, **options))]
    fn new(
        py: Python<'_>,
        path: FilePath,
        store: Option<&Bound<'_, Store>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<SstFileWriter> {
        let orders = Orders::default();
        let mut parsed = options::database(options, None, &orders)?;
        if let Some(store) = store {
            parsed.options.column_family = store.get().place.family.options();
        }
        let options: Options = parsed.options;
        let writer =
            handle::detached_result(py, || sateen::SstFileWriter::create(&path, &options))?;
        let orders = store.map_or(orders, |store| store.get().place.shared.orders.clone());
        Ok(SstFileWriter { writer: Mutex::new(Some(writer)), orders })
    }

    /// Adds a put.
    fn put<'py>(&self, py: Python<'py>, key: Input<'py>, value: Input<'py>) -> PyResult<()> {
        let (key, value) = (key.bytes(), value.bytes());
        self.run(py, |writer| writer.put(key, value))
    }

    /// Adds a deletion.
    fn delete(&self, py: Python<'_>, key: Input<'_>) -> PyResult<()> {
        let key = key.bytes();
        self.run(py, |writer| writer.delete(key))
    }

    /// Adds a merge.
    fn merge<'py>(&self, py: Python<'py>, key: Input<'py>, operand: Input<'py>) -> PyResult<()> {
        let (key, operand) = (key.bytes(), operand.bytes());
        self.run(py, |writer| writer.merge(key, operand))
    }

    /// Adds a deletion of the keys from `begin` up to `end`, without `end`.
    fn delete_range<'py>(
        &self,
        py: Python<'py>,
        begin: Input<'py>,
        end: Input<'py>,
    ) -> PyResult<()> {
        let (begin, end) = (begin.bytes(), end.bytes());
        self.run(py, |writer| writer.delete_range(begin, end))
    }

    /// Adds rows of two columns in Arrow's layout: 64-bit offsets and bytes of each.
    fn put_columns<'py>(
        &self,
        py: Python<'py>,
        rows: usize,
        key_offsets: Input<'py>,
        key_bytes: Input<'py>,
        value_offsets: Input<'py>,
        value_bytes: Input<'py>,
    ) -> PyResult<()> {
        let keys = Columns::new("keys", rows, key_offsets.bytes(), key_bytes.bytes())?;
        let values = Columns::new("values", rows, value_offsets.bytes(), value_bytes.bytes())?;
        self.run(py, |writer| {
            (0..rows).try_for_each(|row| writer.put(keys.row(row), values.row(row)))
        })
    }

    /// Returns the bytes that were written so far.
    fn file_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, |writer| Ok(writer.file_bytes()))
    }

    /// Ends the file; returns what is in it.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let writer = handle::locked(py, &self.writer)?.take();
        let writer = writer.ok_or_else(|| errors::closed(py, "file"))?;
        let info = handle::detached_result(py, || writer.finish())?;
        let dict = PyDict::new(py);
        dict.set_item("path", info.path.as_os_str())?;
        dict.set_item("file_bytes", info.file_bytes)?;
        dict.set_item("entries", info.entries)?;
        dict.set_item("ranges", info.ranges)?;
        dict.set_item("smallest", PyBytes::new(py, &info.smallest))?;
        dict.set_item("largest", PyBytes::new(py, &info.largest))?;
        Ok(dict)
    }
}
