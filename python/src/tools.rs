//! Functions on closed databases: list, check, repair, destroy.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use sateen::{Db, LiveTable};

use crate::callbacks::Orders;
use crate::errors;
use crate::handle;
use crate::input::FilePath;
use crate::options;

/// Returns the names of the column families of the database in `path`, which may be open.
#[pyfunction]
pub(crate) fn list_column_families(py: Python<'_>, path: FilePath) -> PyResult<Vec<String>> {
    handle::detached_result(py, || Db::list_column_families(&path))
}

/// Removes the database in `path` and all its files.
#[pyfunction]
#[pyo3(signature = (path, **options))]
pub(crate) fn destroy(
    py: Python<'_>,
    path: FilePath,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let parsed = options::database(options, None, &Orders::default())?;
    handle::detached_result(py, || sateen::destroy(&path, &parsed.options).map(drop))
}

/// Makes a database of what is readable in `path`. Returns a description of what was done.
#[pyfunction]
#[pyo3(signature = (path, *, column_families = None, **options))]
pub(crate) fn repair(
    py: Python<'_>,
    path: FilePath,
    column_families: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<String> {
    let orders = Orders::default();
    let parsed = options::database(options, column_families, &orders)?;
    let vfs = std::sync::Arc::new(sateen::vfs::PosixVfs::new());
    let report = handle::detached_result(py, || {
        sateen::repair_families_with(vfs, &path, &parsed.options, &parsed.families())
    });
    if orders.have_failed() { Err(orders.failure(py)) } else { Ok(format!("{:?}", report?)) }
}

/// Reads every byte of the database in `path`. Returns the problems as exceptions.
#[pyfunction]
#[pyo3(signature = (path, *, column_families = None, **options))]
pub(crate) fn check<'py>(
    py: Python<'py>,
    path: FilePath,
    column_families: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyList>> {
    let orders = Orders::default();
    let parsed = options::database(options, column_families, &orders)?;
    let vfs = std::sync::Arc::new(sateen::vfs::PosixVfs::new());
    let report = handle::detached_result(py, || {
        sateen::check_with(vfs, &path, &parsed.options, &parsed.families(), &mut |_, _| {})
    })?;
    if orders.have_failed() {
        return Err(orders.failure(py));
    }
    let found = report.problems.iter().chain(&report.unreadable);
    PyList::new(py, errors::problems(py, found)?)
}

/// Returns the options that the database in `path` was opened with last, by column family.
#[pyfunction]
#[pyo3(name = "_stored_options")]
pub(crate) fn stored_options<'py>(
    py: Python<'py>,
    path: FilePath,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let stored = handle::detached_result(py, || sateen::Options::load(&path))?;
    let families = PyDict::new(py);
    for (name, family) in &stored.families {
        families.set_item(name, options::family_as_dict(py, family)?)?;
    }
    Ok((options::as_dict(py, &stored.options)?, families))
}

/// Returns what is known about a table.
pub(crate) fn live_table<'py>(py: Python<'py>, table: &LiveTable) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("column_family", &table.column_family)?;
    dict.set_item("level", table.level)?;
    dict.set_item("file", table.file.as_os_str())?;
    dict.set_item("offset", table.offset)?;
    dict.set_item("size_bytes", table.size_bytes)?;
    dict.set_item("smallest", PyBytes::new(py, &table.smallest))?;
    dict.set_item("largest", PyBytes::new(py, &table.largest))?;
    dict.set_item("entries", table.entries)?;
    dict.set_item("deletions", table.deletions)?;
    Ok(dict)
}
