//! `Backups`: a place with backups of databases.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sateen::vfs::PosixVfs;
use sateen::{
    BackupEngine, BackupInfo, BackupListener, CreateBackupOptions, RestoreOptions,
    VerifyBackupOptions,
};

use crate::database::{Database, shared};
use crate::errors;
use crate::handle;
use crate::input::FilePath;

/// A directory with backups, which share the tables that did not change.
#[pyclass(frozen, weakref, module = "sateen._native")]
pub(crate) struct Backups {
    engine: Mutex<BackupEngine>,
    path: PathBuf,
}

#[pymethods]
impl Backups {
    #[new]
    #[pyo3(signature = (path, *, read_only = false))]
    fn new(py: Python<'_>, path: FilePath, read_only: bool) -> PyResult<Backups> {
        let engine = handle::detached_result(py, || match read_only {
            true => BackupEngine::open_read_only(&path),
            false => BackupEngine::open(&path),
        })?;
        Ok(Backups { engine: Mutex::new(engine), path: path.0 })
    }

    /// The directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Makes a backup of an open database; returns what is known about it. `rate` limits the bytes
    /// a second; 0 does not.
    #[pyo3(signature = (database, *, flush = false, rate = 0, note = String::new()))]
    fn create<'py>(
        &self,
        py: Python<'py>,
        database: &Bound<'py, Database>,
        flush: bool,
        rate: u64,
        note: String,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (stop, listener) = Stop::new();
        let options =
            CreateBackupOptions { rate, note, listener, ..CreateBackupOptions::default() };
        let mut engine = handle::locked(py, &self.engine)?;
        let (engine, shared) = (&mut *engine, shared(database));
        if flush {
            let db = shared.db.clone();
            shared.run_apart(py, move || db.flush_all(), |_| ())?;
        }
        shared.check(py)?;
        let create = || engine.create_with(&shared.db, &options);
        let info = handle::watched(py, create, || stop.end());
        if shared.orders.have_failed() {
            return Err(shared.orders.failure(py));
        }
        described(py, &info?)
    }

    /// Returns the backups, oldest first.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let engine = handle::locked(py, &self.engine)?;
        let engine = &*engine;
        let infos = handle::detached_result(py, || engine.list())?;
        let infos: Vec<_> =
            infos.iter().map(|info| described(py, info)).collect::<PyResult<_>>()?;
        PyList::new(py, infos)
    }

    /// Reads every byte of a backup; returns what is wrong with it.
    #[pyo3(signature = (id, *, rate = 0))]
    fn verify<'py>(&self, py: Python<'py>, id: u64, rate: u64) -> PyResult<Bound<'py, PyList>> {
        let (stop, listener) = Stop::new();
        let options = VerifyBackupOptions { rate, listener };
        let engine = handle::locked(py, &self.engine)?;
        let engine = &*engine;
        let report = handle::watched(py, || engine.verify_with(id, &options), || stop.end())?;
        let found = report.problems.iter().chain(&report.unreadable);
        PyList::new(py, errors::problems(py, found)?)
    }

    /// Makes a database in `path` of a backup, by default the newest; returns its number.
    #[pyo3(signature = (path, id = None, *, wal = true, rate = 0))]
    fn restore(
        &self,
        py: Python<'_>,
        path: FilePath,
        id: Option<u64>,
        wal: bool,
        rate: u64,
    ) -> PyResult<u64> {
        let (stop, listener) = Stop::new();
        let options = RestoreOptions { wal, rate, listener, ..RestoreOptions::default() };
        let engine = handle::locked(py, &self.engine)?;
        let engine = &*engine;
        let restore = || {
            let id = id.map_or_else(|| engine.latest(), Ok)?;
            engine.restore_with(Arc::new(PosixVfs::new()), id, &path, &options).map(|()| id)
        };
        handle::watched(py, restore, || stop.end())
    }

    /// Deletes a backup.
    fn delete(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        let mut engine = handle::locked(py, &self.engine)?;
        let engine = &mut *engine;
        handle::detached_result(py, || engine.delete(id))
    }

    /// Deletes all but the newest `keep` backups; returns the numbers of those deleted.
    fn purge(&self, py: Python<'_>, keep: usize) -> PyResult<Vec<u64>> {
        let mut engine = handle::locked(py, &self.engine)?;
        let engine = &mut *engine;
        handle::detached_result(py, || engine.purge(keep))
    }
}

/// Ends an operation whose caller was interrupted.
struct Stop(AtomicBool);

impl Stop {
    fn new() -> (Arc<Stop>, Option<Arc<dyn BackupListener>>) {
        let stop = Arc::new(Stop(AtomicBool::new(false)));
        (stop.clone(), Some(stop))
    }

    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl BackupListener for Stop {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn described<'py>(py: Python<'py>, info: &BackupInfo) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("id", info.id)?;
    dict.set_item("created", info.created)?;
    dict.set_item("sequence_number", info.seqno)?;
    dict.set_item("bytes", info.bytes)?;
    dict.set_item("own_bytes", info.own_bytes)?;
    dict.set_item("tables", info.tables)?;
    dict.set_item("files", info.files)?;
    dict.set_item("note", &info.note)?;
    let damage = info.damage.as_ref().map(|error| errors::raise(py, error).into_value(py));
    dict.set_item("damage", damage)?;
    Ok(dict)
}
