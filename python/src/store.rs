//! `Store`: the keys of a column family, or those of them that begin with a prefix. `Database`,
//! column families and prefixed databases of the package are stores.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use sateen::{CompactRangeOptions, FlushOptions, IngestOptions, ReadOptions, WriteOptions};

use crate::errors;
use crate::handle;
use crate::input::{FilePath, Input};
use crate::iter::{Entries, Range};
use crate::options;
use crate::place::{Place, get, multi_get, read_options, value_or, write_options};
use crate::raw_iter::RawIterator;

/// Keys that are counted between two looks for signals.
const COUNT_STRIDE: usize = 1 << 17;
/// How long an interrupted call waits for the end of its compaction, which may wait itself for
/// background work that is paused.
const COMPACTION_END_MAX: Duration = Duration::from_secs(2);

/// What an interrupted compaction leaves to its thread.
#[derive(Default)]
struct Pause {
    is_over: bool,
    /// Manual compactions are paused until this one is over.
    is_paused: bool,
}

/// The keys and values of a column family, or of those of its keys that begin with a prefix.
#[pyclass(frozen, subclass, weakref, module = "sateen._native")]
pub(crate) struct Store {
    pub(crate) place: Place,
}

#[pymethods]
impl Store {
    /// Returns another store of the database of `store`: the column family of that name, or the
    /// keys that begin with `prefix`.
    #[new]
    #[pyo3(signature = (store, *, family = None, prefix = None))]
    fn new(
        py: Python<'_>,
        store: &Bound<'_, Store>,
        family: Option<&str>,
        prefix: Option<Input<'_>>,
    ) -> PyResult<Store> {
        let mut place = store.get().place.clone();
        if let Some(name) = family {
            let shared = place.shared.clone();
            let found = shared.run(py, || Ok(shared.db.column_family(name)))?;
            let missing = || sateen::Error::NoSuchColumnFamily(name.to_owned());
            place.family = found.ok_or_else(|| errors::raise(py, &missing()))?;
            place.order = shared.order_of(name);
            place.prefix = Arc::from([].as_slice());
        }
        if let Some(prefix) = prefix {
            place.prefix = Arc::from([&place.prefix[..], prefix.bytes()].concat());
        }
        Ok(Store { place })
    }

    /// Returns the value of `key`, or `default`. With `fill_cache=False` what is read from the disk
    /// does not stay in the block cache. Checksums are always verified.
    #[pyo3(signature = (key, default = None, *, verify_checksums = None, fill_cache = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        default: Option<Bound<'py, PyAny>>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        // Every read verifies checksums.
        let _always = verify_checksums;
        let key = self.place.key(py, key)?;
        let options = read_options(fill_cache, None);
        let value = get(py, &self.place, key.bytes(), options.as_ref())?;
        Ok(value_or(py, value, default))
    }

    /// Returns the values of several keys, `None` for those that have none.
    #[pyo3(signature = (keys, *, fill_cache = None))]
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Input<'py>>,
        fill_cache: Option<bool>,
    ) -> PyResult<Bound<'py, PyList>> {
        multi_get(py, &self.place, keys, read_options(fill_cache, None).as_ref())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Input<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let whole = self.place.key(py, key)?;
        match get(py, &self.place, whole.bytes(), None)? {
            Some(value) => Ok(PyBytes::new(py, &value)),
            None => Err(self.missing(py, whole.bytes())),
        }
    }

    fn __setitem__<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        value: Input<'py>,
    ) -> PyResult<()> {
        let key = self.place.key(py, key)?;
        self.place.put(py, (key.bytes(), value.bytes()), WriteOptions::default())
    }

    fn __delitem__<'py>(&self, py: Python<'py>, key: Input<'py>) -> PyResult<()> {
        let whole = self.place.key(py, key)?;
        let (place, key) = (&self.place, whole.bytes());
        let found = place.shared.run_write(py, WriteOptions::default(), |options| {
            let found = place.family.contains_key(key)?;
            if found {
                place.family.writing(options).delete(key)?;
            }
            Ok(found)
        })?;
        if found { Ok(()) } else { Err(self.missing(py, key)) }
    }

    fn __contains__(&self, py: Python<'_>, key: Input<'_>) -> PyResult<bool> {
        let key = self.place.key(py, key)?;
        let (place, key) = (&self.place, key.bytes());
        place.shared.run(py, || place.family.contains_key(key))
    }

    /// Sets `key` to `value`. With `sync` it is durable when this returns. With `disable_wal` a
    /// crash may lose it until it is flushed. With `deadline` it fails with `StallError` if it
    /// would be held back for longer than that many seconds.
    #[pyo3(signature = (key, value, *, sync = None, disable_wal = false, deadline = None,
        low_priority = false))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        value: Input<'py>,
        sync: Option<bool>,
        disable_wal: bool,
        deadline: Option<f64>,
        low_priority: bool,
    ) -> PyResult<()> {
        let options = write_options(sync, disable_wal, deadline, low_priority)?;
        let key = self.place.key(py, key)?;
        self.place.put(py, (key.bytes(), value.bytes()), options)
    }

    /// Deletes `key`, whether it exists or not. `del store[key]` fails if it does not.
    #[pyo3(signature = (key, *, sync = None, disable_wal = false, deadline = None,
        low_priority = false))]
    fn delete<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        sync: Option<bool>,
        disable_wal: bool,
        deadline: Option<f64>,
        low_priority: bool,
    ) -> PyResult<()> {
        let options = write_options(sync, disable_wal, deadline, low_priority)?;
        let key = self.place.key(py, key)?;
        self.place.delete(py, key.bytes(), options)
    }

    /// Deletes a key that was put once since it was deleted last: cheaper than `delete`.
    #[pyo3(signature = (key, *, sync = None, disable_wal = false, deadline = None,
        low_priority = false))]
    fn single_delete<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        sync: Option<bool>,
        disable_wal: bool,
        deadline: Option<f64>,
        low_priority: bool,
    ) -> PyResult<()> {
        let options = write_options(sync, disable_wal, deadline, low_priority)?;
        let key = self.place.key(py, key)?;
        let (place, key) = (&self.place, key.bytes());
        let write = |options: &WriteOptions| place.family.writing(options).single_delete(key);
        place.shared.run_write(py, options, write)
    }

    /// Merges `operand` into the value of `key` by the merge operator of the column family.
    #[pyo3(signature = (key, operand, *, sync = None, disable_wal = false, deadline = None,
        low_priority = false))]
    fn merge<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        operand: Input<'py>,
        sync: Option<bool>,
        disable_wal: bool,
        deadline: Option<f64>,
        low_priority: bool,
    ) -> PyResult<()> {
        let options = write_options(sync, disable_wal, deadline, low_priority)?;
        let key = self.place.key(py, key)?;
        let (place, key, operand) = (&self.place, key.bytes(), operand.bytes());
        place.shared.run_small_write(
            py,
            key.len() + operand.len(),
            options,
            |options| place.family.writing(options).try_merge(key, operand),
            |options| place.family.writing(options).merge(key, operand),
        )
    }

    /// Deletes all keys from `begin` up to `end`, without `end`, by one write.
    #[pyo3(signature = (begin, end, *, sync = None, disable_wal = false, deadline = None,
        low_priority = false))]
    fn delete_range<'py>(
        &self,
        py: Python<'py>,
        begin: Input<'py>,
        end: Input<'py>,
        sync: Option<bool>,
        disable_wal: bool,
        deadline: Option<f64>,
        low_priority: bool,
    ) -> PyResult<()> {
        let options = write_options(sync, disable_wal, deadline, low_priority)?;
        let begin = self.place.key(py, begin)?;
        let end = self.place.key(py, end)?;
        let (place, begin, end) = (&self.place, begin.bytes(), end.bytes());
        let write = |options: &WriteOptions| place.family.writing(options).delete_range(begin, end);
        place.shared.run_write(py, options, write)
    }

    /// Returns an iterator over entries in order, as they are now. `start` and `stop` are the lower
    /// and the upper bound also if `reverse`.
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
        let options = read_options(fill_cache, None).unwrap_or_default();
        Entries::new(py, self.place.clone(), range, options, reverse, (include_key, include_value))
    }

    /// Returns a cursor that stands on an entry, as LevelDB's and RocksDB's iterators.
    #[pyo3(signature = (*, verify_checksums = None, fill_cache = None))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> PyResult<RawIterator> {
        let _always = verify_checksums;
        RawIterator::new(py, &self.place, read_options(fill_cache, None).unwrap_or_default())
    }

    /// Counts the keys, by reading them.
    fn count(&self, py: Python<'_>) -> PyResult<usize> {
        let options = ReadOptions {
            fill_cache: false,
            prefix: (!self.place.prefix.is_empty()).then(|| self.place.prefix.to_vec()),
            ..ReadOptions::default()
        };
        let place = &self.place;
        let mut cursor = place.shared.run(py, || {
            let mut cursor = place.family.cursor(&options)?;
            cursor.seek_to_first();
            Ok(cursor)
        })?;
        let mut count = 0;
        let counted = loop {
            let stride = place.shared.run(py, || {
                let mut stride = 0;
                while stride < COUNT_STRIDE && cursor.valid() {
                    stride += 1;
                    cursor.next();
                }
                cursor.status().map(|()| stride)
            });
            count += stride.as_ref().map_or(0, |stride| *stride);
            match stride.and_then(|stride| py.check_signals().map(|()| stride)) {
                Ok(COUNT_STRIDE) => {}
                other => break other.map(|_| count),
            }
        };
        handle::drop_detached(cursor);
        counted
    }

    /// Returns true if there is a key.
    fn has_keys(&self, py: Python<'_>) -> PyResult<bool> {
        let options = ReadOptions {
            prefix: (!self.place.prefix.is_empty()).then(|| self.place.prefix.to_vec()),
            ..ReadOptions::default()
        };
        let place = &self.place;
        place.shared.run(py, || {
            let mut cursor = place.family.cursor(&options)?;
            cursor.seek_to_first();
            cursor.status().map(|()| cursor.valid())
        })
    }

    /// What the keys of this store begin with.
    #[getter]
    fn prefix<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.place.prefix)
    }

    /// The name of the column family.
    #[getter]
    fn family_name(&self) -> &str {
        self.place.family.name()
    }

    /// True after a close of the database.
    #[getter]
    fn closed(&self) -> bool {
        self.place.shared.is_closed()
    }

    /// Returns true if `other` is a store of the same open database.
    fn same_database(&self, other: &Bound<'_, Store>) -> bool {
        Arc::ptr_eq(&self.place.shared, &other.get().place.shared)
    }

    /// Writes the memtables to tables.
    #[pyo3(signature = (*, wait = true))]
    fn flush(&self, py: Python<'_>, wait: bool) -> PyResult<()> {
        let place = &self.place;
        let family = place.family.clone();
        place.shared.run_apart(py, move || family.flush_with(&FlushOptions { wait }), |_| ())
    }

    /// Compacts the keys of a range, all if there are no bounds, and waits for it.
    #[pyo3(signature = (start = None, stop = None, *, rewrite_last_level = false))]
    fn compact_range(
        &self,
        py: Python<'_>,
        start: Option<Input<'_>>,
        stop: Option<Input<'_>>,
        rewrite_last_level: bool,
    ) -> PyResult<()> {
        let (start, stop) = self.bounds(py, start, stop)?;
        let options = CompactRangeOptions { rewrite_last_level, ..CompactRangeOptions::default() };
        let (place, db) = (&self.place, self.place.shared.db.clone());
        let family = place.family.clone();
        // Pauses only what has not ended, and the end of that ends the pause.
        let pause = Arc::new(Mutex::new(Pause::default()));
        let (paused, paused_db) = (pause.clone(), db.clone());
        let compact = move || {
            let done = family.compact_range(start.as_deref(), stop.as_deref(), &options);
            let mut pause = paused.lock().unwrap_or_else(PoisonError::into_inner);
            pause.is_over = true;
            if pause.is_paused {
                paused_db.resume_manual_compactions();
            }
            done
        };
        place.shared.run_apart(py, compact, |is_over| {
            let mut pause = pause.lock().unwrap_or_else(PoisonError::into_inner);
            if !pause.is_over {
                pause.is_paused = true;
                db.pause_manual_compactions();
            }
            drop(pause);
            let begin = Instant::now();
            while !is_over() && begin.elapsed() < COMPACTION_END_MAX {
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    }

    /// Returns about how many bytes of tables the keys of a range take.
    fn approximate_size(&self, py: Python<'_>, start: Input<'_>, stop: Input<'_>) -> PyResult<u64> {
        let (start, stop) = (self.place.key(py, start)?, self.place.key(py, stop)?);
        let (place, start, stop) = (&self.place, start.bytes(), stop.bytes());
        place.shared.run(py, || Ok(place.family.approximate_size(start, stop)))
    }

    /// Takes over files that `SstFileWriter` made. Their entries are newer than all others.
    #[pyo3(signature = (paths, *, move_files = false, allow_flush = true))]
    fn ingest(
        &self,
        py: Python<'_>,
        paths: Vec<FilePath>,
        move_files: bool,
        allow_flush: bool,
    ) -> PyResult<()> {
        if !self.place.prefix.is_empty() {
            return Err(PyTypeError::new_err("files are ingested into a whole column family"));
        }
        let options = IngestOptions { move_files, allow_flush, ..IngestOptions::default() };
        let place = &self.place;
        let paths: Vec<_> = paths.into_iter().map(|path| path.0).collect();
        place.shared.run(py, || place.family.ingest(&paths, &options))
    }

    /// Returns a property such as `"sateen.stats"`, by its name here or RocksDB's.
    fn property(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        let place = &self.place;
        place.shared.run(py, || Ok(place.family.property(name)))
    }

    /// Returns the options of the column family, as text.
    fn family_options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.place.shared.check(py)?;
        options::family_as_dict(py, &self.place.family.options())
    }

    /// Changes options of the open database: those that are `mutable`. All or none.
    #[pyo3(signature = (**changes))]
    fn set_options(&self, py: Python<'_>, changes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let Some(changes) = changes else { return Ok(()) };
        let changes = options::changes(changes)?;
        let changes: Vec<(&str, &str)> =
            changes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let place = &self.place;
        let set = place.shared.run(py, || place.family.set_options(&changes));
        set.map_err(|error| errors::with_option(py, error, changes.iter().map(|change| change.0)))
    }

    /// Returns the seconds until writes would be slowed down at the present rate.
    fn time_to_stall(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let place = &self.place;
        let time = place.shared.run(py, || Ok(place.family.time_to_stall()))?;
        Ok(time.map(|time| time.as_secs_f64()))
    }
}

/// The first key of a range and the first one behind it.
type Bounds = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Store {
    fn missing(&self, py: Python<'_>, whole: &[u8]) -> PyErr {
        let key = whole.get(self.place.prefix.len()..).unwrap_or_default();
        PyKeyError::new_err(PyBytes::new(py, key).unbind())
    }

    /// Returns the whole keys of a range; those of the prefix where there is none.
    fn bounds(
        &self,
        py: Python<'_>,
        start: Option<Input<'_>>,
        stop: Option<Input<'_>>,
    ) -> PyResult<Bounds> {
        let prefix = &self.place.prefix;
        let whole = |key: Option<Input<'_>>| {
            key.map(|key| self.place.key(py, key).map(Input::into_vec)).transpose()
        };
        let (start, stop) = (whole(start)?, whole(stop)?);
        if prefix.is_empty() {
            return Ok((start, stop));
        }
        Ok((start.or_else(|| Some(prefix.to_vec())), stop.or_else(|| handle::successor(prefix))))
    }
}
