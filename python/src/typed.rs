//! `Typed`: a column family whose keys and values are Python's strings, numbers, booleans, bytes
//! and pickles, or bytes as they are (`codec.rs`).

use std::sync::Mutex;

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sateen::{ReadOptions, WriteOptions};

use crate::codec::Codec;
use crate::errors;
use crate::handle;
use crate::place::{self, Place};
use crate::raw_iter::RawIterator;
use crate::store::Store;
use crate::typed_batch::TypedBatch;
use crate::typed_iter::TypedIterator;

/// What can be changed after a `Typed` was made.
struct Settings {
    codec: Codec,
    read: ReadOptions,
    write: WriteOptions,
}

/// A column family with typed keys and values.
#[pyclass(frozen, subclass, weakref, module = "sateen._native")]
pub(crate) struct Typed {
    pub(crate) place: Place,
    settings: Mutex<Settings>,
    closed: std::sync::atomic::AtomicBool,
}

impl Typed {
    /// Returns the codec and the options of a call.
    fn settings(&self, py: Python<'_>) -> PyResult<(Codec, ReadOptions, WriteOptions)> {
        let text = "the database or the handle of its column family is closed";
        if self.closed.load(std::sync::atomic::Ordering::Acquire) || self.place.shared.is_closed() {
            return Err(errors::exception(py, "DbClosedError", text));
        }
        let settings = handle::locked(py, &self.settings)?;
        Ok((settings.codec.clone_ref(py), settings.read.clone(), settings.write.clone()))
    }

    /// Reads a key, or each of a list of keys, as `show` shows what is stored.
    fn find<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        read_opt: Option<&Bound<'py, PyAny>>,
        show: impl Fn(&Codec, Python<'py>, &[u8]) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (codec, read, _) = self.settings(py)?;
        let read = read_of(read_opt, read, &codec)?;
        if let Ok(keys) = key.cast::<PyList>() {
            let values = keys.iter().map(|key| {
                let value =
                    codec.with_key(&key, |key| place::get(py, &self.place, key, Some(&read)))?;
                value.map_or_else(
                    || Ok(default.clone().unwrap_or_else(|| py.None().into_bound(py))),
                    |value| show(&codec, py, &value),
                )
            });
            let values: Vec<_> = values.collect::<PyResult<_>>()?;
            return Ok(Some(PyList::new(py, values)?.into_any()));
        }
        let value = codec.with_key(key, |key| place::get(py, &self.place, key, Some(&read)))?;
        match value {
            Some(value) => show(&codec, py, &value).map(Some),
            None => Ok(default),
        }
    }
}

/// Options of a read, from a dict of `sateen.rdict.ReadOptions`.
pub(crate) fn read_of(
    options: Option<&Bound<'_, PyAny>>,
    default: ReadOptions,
    codec: &Codec,
) -> PyResult<ReadOptions> {
    let Some(options) = options.filter(|options| !options.is_none()) else { return Ok(default) };
    let mut read = ReadOptions { snapshot: default.snapshot, ..ReadOptions::default() };
    let of = |name: &str| options.getattr(name);
    read.fill_cache = of("_fill_cache")?.extract()?;
    read.readahead_bytes = of("_readahead_bytes")?.extract()?;
    read.ignore_range_deletions = of("_ignore_range_deletions")?.extract()?;
    read.skipped_max = of("_skipped_max")?.extract()?;
    read.prefix_same_as_start = of("_prefix_same_as_start")?.extract()?;
    let bound = |name: &str| -> PyResult<Option<Vec<u8>>> {
        let key = of(name)?;
        if key.is_none() {
            return Ok(None);
        }
        codec.with_key(&key, |bytes| Ok(Some(bytes.to_vec())))
    };
    read.lower_bound = bound("_lower")?;
    read.upper_bound = bound("_upper")?;
    Ok(read)
}

/// Options of a write, from an object of `sateen.rdict.WriteOptions`.
fn write_of(options: Option<&Bound<'_, PyAny>>, default: WriteOptions) -> PyResult<WriteOptions> {
    let Some(options) = options.filter(|options| !options.is_none()) else { return Ok(default) };
    let of = |name: &str| options.getattr(name)?.extract::<bool>();
    Ok(WriteOptions {
        sync: of("sync")?,
        disable_wal: of("_disable_wal")?,
        no_slowdown: of("no_slowdown")?,
        low_priority: of("low_pri")?,
        ignore_missing_column_families: of("ignore_missing_column_families")?,
        ..WriteOptions::default()
    })
}

#[pymethods]
impl Typed {
    #[new]
    #[pyo3(signature = (store, raw, dumps, loads, snapshot = None))]
    fn new(
        py: Python<'_>,
        store: &Bound<'_, Store>,
        raw: bool,
        dumps: Py<PyAny>,
        loads: Py<PyAny>,
        snapshot: Option<&Bound<'_, crate::snapshot::Snapshot>>,
    ) -> PyResult<Typed> {
        let place = store.get().place.clone();
        let snapshot = snapshot.map(|snapshot| snapshot.get().taken(py)).transpose()?;
        let settings = Settings {
            codec: Codec { raw, loads, dumps },
            read: ReadOptions { snapshot, ..ReadOptions::default() },
            write: WriteOptions::default(),
        };
        Ok(Typed { place, settings: Mutex::new(settings), closed: false.into() })
    }

    fn set_dumps(&self, py: Python<'_>, dumps: Py<PyAny>) -> PyResult<()> {
        handle::locked(py, &self.settings)?.codec.dumps = dumps;
        Ok(())
    }

    fn set_loads(&self, py: Python<'_>, loads: Py<PyAny>) -> PyResult<()> {
        handle::locked(py, &self.settings)?.codec.loads = loads;
        Ok(())
    }

    fn set_read_options(&self, py: Python<'_>, read_opt: &Bound<'_, PyAny>) -> PyResult<()> {
        let (codec, read, _) = self.settings(py)?;
        let read = read_of(Some(read_opt), read, &codec)?;
        handle::locked(py, &self.settings)?.read = read;
        Ok(())
    }

    fn set_write_options(&self, py: Python<'_>, write_opt: &Bound<'_, PyAny>) -> PyResult<()> {
        let (_, _, write) = self.settings(py)?;
        let write = write_of(Some(write_opt), write)?;
        handle::locked(py, &self.settings)?.write = write;
        Ok(())
    }

    #[pyo3(signature = (key, default = None, read_opt = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        read_opt: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.find(py, key, default, read_opt, Codec::value)
    }

    /// The columns of an entity. A plain value is one column without a name.
    #[pyo3(signature = (key, default = None, read_opt = None))]
    fn get_entity<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        read_opt: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.find(py, key, default, read_opt, Codec::columns)
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = self.get(py, key, None, None)?;
        let missing = || PyKeyError::new_err(key.clone().unbind());
        value.ok_or_else(missing)
    }

    #[pyo3(signature = (key, value, write_opt = None))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
        write_opt: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (codec, _, write) = self.settings(py)?;
        let write = write_of(write_opt, write)?;
        let place = &self.place;
        codec.with_key(key, |key| {
            codec.with_value(value, |value| place.put(py, (key, value), write))
        })
    }

    /// Writes a value with named columns.
    #[pyo3(signature = (key, names, values, write_opt = None))]
    fn put_entity<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        names: Vec<Bound<'py, PyAny>>,
        values: Vec<Bound<'py, PyAny>>,
        write_opt: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (codec, _, write) = self.settings(py)?;
        let write = write_of(write_opt, write)?;
        let place = &self.place;
        codec.with_key(key, |key| {
            codec.with_entity(&names, &values, |value| place.put(py, (key, value), write))
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

    #[pyo3(signature = (key, write_opt = None))]
    fn delete<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        write_opt: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (codec, _, write) = self.settings(py)?;
        let write = write_of(write_opt, write)?;
        let place = &self.place;
        codec.with_key(key, |key| place.delete(py, key, write))
    }

    fn __delitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    #[pyo3(signature = (begin, end, write_opt = None))]
    fn delete_range<'py>(
        &self,
        py: Python<'py>,
        begin: &Bound<'py, PyAny>,
        end: &Bound<'py, PyAny>,
        write_opt: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (codec, _, write) = self.settings(py)?;
        let write = write_of(write_opt, write)?;
        let place = &self.place;
        codec.with_key(begin, |begin| {
            codec.with_key(end, |end| {
                let delete =
                    |write: &WriteOptions| place.family.writing(write).delete_range(begin, end);
                place.shared.run_write(py, write, delete)
            })
        })
    }

    #[pyo3(signature = (write_batch, write_opt = None))]
    fn write(
        &self,
        py: Python<'_>,
        write_batch: &Bound<'_, TypedBatch>,
        write_opt: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (_, _, write) = self.settings(py)?;
        let write = write_of(write_opt, write)?;
        write_batch.get().write_to(py, &self.place.shared, &write)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (codec, read, _) = self.settings(py)?;
        let place = &self.place;
        codec.with_key(key, |key| {
            place.shared.run(py, || place.family.reading(&read).contains_key(key))
        })
    }

    /// The entries from `from_key` on; `what` is 0 for entries, 1 for keys, 2 for values, 3 for
    /// keys with columns, 4 for columns.
    #[pyo3(signature = (what, backwards = false, from_key = None, read_opt = None))]
    fn _entries(
        &self,
        py: Python<'_>,
        what: u8,
        backwards: bool,
        from_key: Option<&Bound<'_, PyAny>>,
        read_opt: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TypedIterator> {
        let (codec, read, _) = self.settings(py)?;
        let read = read_of(read_opt, read, &codec)?;
        TypedIterator::new(py, &self.place, codec, read, what, backwards, from_key)
    }

    /// Returns a cursor with the options of `read_opt`, or with those of `set_read_options`.
    #[pyo3(signature = (read_opt = None))]
    fn _raw_iterator(
        &self,
        py: Python<'_>,
        read_opt: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<RawIterator> {
        let (codec, read, _) = self.settings(py)?;
        RawIterator::new(py, &self.place, read_of(read_opt, read, &codec)?)
    }

    /// Encodes a key, or a value.
    fn _encode<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        is_key: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (codec, ..) = self.settings(py)?;
        let bytes = |bytes: &[u8]| Ok(PyBytes::new(py, bytes));
        if is_key { codec.with_key(value, bytes) } else { codec.with_value(value, bytes) }
    }

    /// Decodes what an iterator shows: a key, or a value as `what` says in `_entries`.
    fn _decode<'py>(&self, py: Python<'py>, bytes: &[u8], what: u8) -> PyResult<Bound<'py, PyAny>> {
        let (codec, ..) = self.settings(py)?;
        match what {
            1 => codec.decode(py, bytes),
            2 => codec.value(py, bytes),
            4 => codec.columns(py, bytes),
            _ => Err(PyTypeError::new_err(format!("there is no decoding {what}"))),
        }
    }

    /// Closes this handle, not the database.
    fn _close_handle(&self) {
        self.closed.store(true, std::sync::atomic::Ordering::Release);
    }

    #[getter]
    fn _is_closed(&self) -> bool {
        self.closed.load(std::sync::atomic::Ordering::Acquire) || self.place.shared.is_closed()
    }

    #[getter]
    fn _raw(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(handle::locked(py, &self.settings)?.codec.raw)
    }
}
