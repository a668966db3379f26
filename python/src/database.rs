//! `Database`: an open database. Its keys are those of its default column family.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sateen::vfs::PosixVfs;
use sateen::{DEFAULT_COLUMN_FAMILY, Db};

use crate::callbacks::Orders;
use crate::errors;
use crate::handle::{self, Shared};
use crate::input::FilePath;
use crate::options;
use crate::place::{Place, duration};
use crate::store::Store;

/// An open database.
#[pyclass(frozen, subclass, extends = Store, module = "sateen._native")]
pub(crate) struct Database;

#[pymethods]
impl Database {
    #[new]
    #[pyo3(signature = (path, *, read_only = false, secondary = false, column_families = None,
        **options))]
    fn new(
        py: Python<'_>,
        path: FilePath,
        read_only: bool,
        secondary: bool,
        column_families: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Database>> {
        let orders = Orders::default();
        let parsed = options::database(options, column_families, &orders)?;
        if read_only && secondary {
            let text = "read_only and secondary exclude each other";
            return Err(errors::bad_option(py, "secondary", text));
        }
        let db = handle::detached_result(py, || {
            let (vfs, families) = (Arc::new(PosixVfs::new()), parsed.families());
            let options = parsed.options.clone();
            match (read_only, secondary) {
                (true, _) => Db::open_read_only_families_with(vfs, &path, options, &families),
                (_, true) => Db::open_secondary_with(vfs, &path, options, &families),
                _ => Db::open_with(vfs, &path, options, &families),
            }
        });
        // A comparator that failed while the WAL was read makes the rest meaningless.
        if orders.have_failed() {
            if let Ok(db) = db {
                handle::drop_detached(db);
            }
            return Err(orders.failure(py));
        }
        let names = options.map(|options| options.keys());
        let names: Vec<String> =
            names.map(|names| names.extract()).transpose()?.unwrap_or_default();
        let db =
            db.map_err(|error| errors::with_option(py, error, names.iter().map(String::as_str)))?;
        let family = db.default_column_family();
        let order = parsed.orders.get(DEFAULT_COLUMN_FAMILY).cloned();
        let shared = Shared::new(db, orders, parsed.orders);
        let place = Place { shared, family, prefix: Arc::from([].as_slice()), order };
        Ok(PyClassInitializer::from(Store { place }).add_subclass(Database))
    }

    /// Closes the database; a second time does nothing. Iterators, snapshots and other handles fail
    /// from then on.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        shared(slf).close(slf.py())
    }

    /// The directory.
    #[getter]
    fn path(slf: &Bound<'_, Self>) -> PathBuf {
        shared(slf).db.path().to_owned()
    }

    /// Returns the names of the column families.
    fn column_families(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let shared = shared(slf);
        shared.run(slf.py(), || Ok(shared.db.column_families()))
    }

    #[pyo3(signature = (name, **options))]
    fn _create_column_family(
        slf: &Bound<'_, Self>,
        name: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let shared = shared(slf);
        let (options, order) = options::family(options, &shared.orders)?;
        shared.run(slf.py(), || shared.db.create_column_family(name, options).map(drop))?;
        shared.set_order(name, order);
        Ok(())
    }

    /// Drops a column family and everything in it.
    fn drop_column_family(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        let shared = shared(slf);
        shared.run(slf.py(), || {
            let family = shared.db.column_family(name);
            let missing = || sateen::Error::NoSuchColumnFamily(name.to_owned());
            shared.db.drop_column_family(&family.ok_or_else(missing)?)
        })?;
        shared.set_order(name, None);
        Ok(())
    }

    /// Flushes all column families.
    fn flush_all(slf: &Bound<'_, Self>) -> PyResult<()> {
        let shared = shared(slf);
        let db = shared.db.clone();
        shared.run_apart(slf.py(), move || db.flush_all(), |_| ())
    }

    /// Makes all writes so far durable.
    fn sync_wal(slf: &Bound<'_, Self>) -> PyResult<()> {
        let shared = shared(slf);
        shared.run(slf.py(), || shared.db.sync_wal())
    }

    /// Waits until there is no background work.
    fn wait_idle(slf: &Bound<'_, Self>) -> PyResult<()> {
        let shared = shared(slf);
        shared.wait(slf.py(), false, None)
    }

    /// Makes a database in `path` that has everything of now. It shares the tables.
    fn checkpoint(slf: &Bound<'_, Self>, path: FilePath) -> PyResult<()> {
        let shared = shared(slf);
        let db = shared.db.clone();
        shared.run_apart(slf.py(), move || db.checkpoint(&path), |_| ())
    }

    /// Reads what the primary has written since; true if there was something.
    fn try_catch_up_with_primary(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let shared = shared(slf);
        shared.run(slf.py(), || shared.db.try_catch_up_with_primary())
    }

    /// Verifies all checksums; returns what was found.
    #[pyo3(signature = (*, rate = None))]
    fn _scrub(slf: &Bound<'_, Self>, rate: Option<u64>) -> PyResult<String> {
        let shared = shared(slf);
        let db = shared.db.clone();
        let scrub = move || db.scrub(rate).map(|report| format!("{report:?}"));
        shared.run_apart(slf.py(), scrub, |_| ())
    }

    fn _metrics(slf: &Bound<'_, Self>) -> PyResult<String> {
        let shared = shared(slf);
        shared.run(slf.py(), || Ok(shared.db.metrics().to_prometheus_text()))
    }

    fn _timeline(slf: &Bound<'_, Self>) -> PyResult<String> {
        let shared = shared(slf);
        shared.run(slf.py(), || Ok(shared.db.timeline().to_json()))
    }

    /// Returns the timeline as a trace for Perfetto.
    fn chrome_trace(slf: &Bound<'_, Self>) -> PyResult<String> {
        let shared = shared(slf);
        shared.run(slf.py(), || Ok(shared.db.timeline().to_chrome_trace()))
    }

    /// Changes options of the database and of its default column family.
    #[pyo3(signature = (**changes))]
    fn set_options(slf: &Bound<'_, Self>, changes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let Some(changes) = changes else { return Ok(()) };
        let changes = options::changes(changes)?;
        let changes: Vec<(&str, &str)> =
            changes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (py, shared) = (slf.py(), shared(slf));
        let set = shared.run(py, || shared.db.set_options(&changes));
        set.map_err(|error| errors::with_option(py, error, changes.iter().map(|change| change.0)))
    }

    /// Returns the options in force, as text.
    fn options<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let shared = shared(slf);
        shared.check(slf.py())?;
        options::as_dict(slf.py(), &shared.db.options())
    }

    /// Returns the number of the newest write.
    fn latest_sequence_number(slf: &Bound<'_, Self>) -> PyResult<u64> {
        let shared = shared(slf);
        shared.run(slf.py(), || Ok(shared.db.latest_sequence_number()))
    }

    /// The identity of the database, which stays for its life.
    #[getter]
    fn identity(slf: &Bound<'_, Self>) -> PyResult<String> {
        let shared = shared(slf);
        shared.run(slf.py(), || Ok(shared.db.identity()))
    }

    /// Returns the state of the database, and the error that caused it.
    fn health<'py>(slf: &Bound<'py, Self>) -> PyResult<(String, Option<Bound<'py, PyAny>>)> {
        let py = slf.py();
        let shared = shared(slf);
        let (health, cause) = shared.run(py, || Ok(shared.db.health()))?;
        let cause = errors::problems(py, cause.iter().map(|cause| &**cause))?.pop();
        Ok((health.name().to_owned(), cause))
    }

    /// Takes writes again after a failure in the background, if its cause is gone.
    fn resume(slf: &Bound<'_, Self>) -> PyResult<()> {
        let shared = shared(slf);
        shared.run(slf.py(), || shared.db.resume())
    }

    /// Waits for compactions, at most `timeout` seconds.
    #[pyo3(signature = (*, flush = false, timeout = None))]
    fn wait_for_compact(slf: &Bound<'_, Self>, flush: bool, timeout: Option<f64>) -> PyResult<()> {
        let timeout = timeout.map(|seconds| duration("timeout", seconds)).transpose()?;
        shared(slf).wait(slf.py(), flush, timeout)
    }

    /// Begins no flushes and compactions until `continue_background_work`, and waits for those that
    /// run.
    fn pause_background_work(slf: &Bound<'_, Self>) -> PyResult<()> {
        let shared = shared(slf);
        shared.run(slf.py(), || shared.db.pause_background_work())
    }

    /// Ends a `pause_background_work`.
    fn continue_background_work(slf: &Bound<'_, Self>) -> PyResult<()> {
        let shared = shared(slf);
        shared.run(slf.py(), || shared.db.continue_background_work())
    }

    /// Returns the names of prepared transactions.
    fn list_prepared<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let shared = shared(slf);
        let names = shared.run(slf.py(), || shared.db.list_prepared())?;
        Ok(names.iter().map(|name| PyBytes::new(slf.py(), name)).collect())
    }

    /// Returns what is known about each table.
    fn live_tables<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let py = slf.py();
        let shared = shared(slf);
        let tables = shared.run(py, || Ok(shared.db.live_tables()))?;
        tables.iter().map(|table| crate::tools::live_table(py, table)).collect()
    }
}

/// Returns the database of an object of this class.
pub(crate) fn shared<'a>(database: &'a Bound<'_, Database>) -> &'a Arc<Shared> {
    &database.as_super().get().place.shared
}
