//! `Typed`: a column family whose keys and values are Python's strings, numbers, booleans, bytes
//! and pickles, in RocksDict's encoding; or bytes as they are (raw mode).
//!
//! The first byte says the type: 1 bytes, 2 text in UTF-8, 3 a whole number (two's complement, most
//! significant byte first, as short as possible), 4 a float (IEEE 754, most significant byte
//! first),
//! 5 a boolean, 6 a pickle (values only). The order of keys is that of the bytes, but for whole
//! numbers, which are in the order of numbers.

use std::cmp::Ordering;
use std::sync::Mutex;

use pyo3::exceptions::{PyException, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString};
use sateen::{ReadOptions, WriteOptions};

use crate::errors;
use crate::handle;
use crate::store::{self, Place, Store};
use crate::typed_batch::TypedBatch;
use crate::typed_iter::TypedIterator;

const BYTES: u8 = 1;
const TEXT: u8 = 2;
const WHOLE: u8 = 3;
const FLOAT: u8 = 4;
const FLAG: u8 = 5;
const PICKLE: u8 = 6;

/// Compares encoded keys.
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    match (a.split_first(), b.split_first()) {
        (Some((&WHOLE, a)), Some((&WHOLE, b))) => compare_whole(a, b),
        _ => a.cmp(b),
    }
}

/// Compares numbers in two's complement.
fn compare_whole(a: &[u8], b: &[u8]) -> Ordering {
    let is_negative = |bytes: &[u8]| bytes.first().is_some_and(|first| first & 0x80 != 0);
    let negative = is_negative(a);
    if negative != is_negative(b) {
        return is_negative(b).cmp(&negative);
    }
    let fill = if negative { 0xff } else { 0 };
    let digits = |bytes: &[u8]| bytes.iter().position(|byte| *byte != fill).unwrap_or(bytes.len());
    let (a, b) = (a.get(digits(a)..).unwrap_or_default(), b.get(digits(b)..).unwrap_or_default());
    let by_length = a.len().cmp(&b.len());
    let by_length = if negative { by_length.reverse() } else { by_length };
    by_length.then_with(|| a.cmp(b))
}

/// How keys and values are encoded.
pub(crate) struct Codec {
    pub(crate) raw: bool,
    pub(crate) loads: Py<PyAny>,
    pub(crate) dumps: Py<PyAny>,
}

impl Codec {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Codec {
        Codec { raw: self.raw, loads: self.loads.clone_ref(py), dumps: self.dumps.clone_ref(py) }
    }

    /// Calls `work` with the encoded key.
    pub(crate) fn with_key<T>(
        &self,
        key: &Bound<'_, PyAny>,
        work: impl FnOnce(&[u8]) -> PyResult<T>,
    ) -> PyResult<T> {
        if self.raw {
            return match key.cast::<PyBytes>() {
                Ok(bytes) => work(bytes.as_bytes()),
                Err(_) => Err(PyKeyError::new_err("a key in raw mode must be bytes")),
            };
        }
        let mut encoded = Vec::with_capacity(32);
        if !encode(key, &mut encoded)? {
            let text = "a key must be a string, a number, a boolean or bytes";
            return Err(PyException::new_err(text));
        }
        work(&encoded)
    }

    /// Calls `work` with the encoded value.
    pub(crate) fn with_value<T>(
        &self,
        value: &Bound<'_, PyAny>,
        work: impl FnOnce(&[u8]) -> PyResult<T>,
    ) -> PyResult<T> {
        if self.raw {
            return match value.cast::<PyBytes>() {
                Ok(bytes) => work(bytes.as_bytes()),
                Err(_) => Err(PyValueError::new_err("a value in raw mode must be bytes")),
            };
        }
        let mut encoded = Vec::with_capacity(64);
        if !encode(value, &mut encoded)? {
            let pickle = self.dumps.bind(value.py()).call1((value,))?;
            encoded.push(PICKLE);
            encoded.extend_from_slice(pickle.cast::<PyBytes>()?.as_bytes());
        }
        work(&encoded)
    }

    /// Returns true if decoding a value may run Python code: a pickle may run any.
    #[inline]
    pub(crate) fn runs_code(&self, value: &[u8]) -> bool {
        !self.raw && value.first() == Some(&PICKLE)
    }

    pub(crate) fn decode<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if self.raw {
            return Ok(PyBytes::new(py, bytes).into_any());
        }
        let Some((kind, payload)) = bytes.split_first() else {
            return Ok(PyString::new(py, "").into_any());
        };
        let malformed = |what: &str| {
            errors::exception(py, "CorruptionError", &format!("a stored {what} is malformed"))
        };
        match *kind {
            BYTES => Ok(PyBytes::new(py, payload).into_any()),
            TEXT => {
                let text = std::str::from_utf8(payload).map_err(|_| malformed("text"))?;
                Ok(PyString::new(py, text).into_any())
            }
            WHOLE => decode_whole(py, payload),
            FLOAT => {
                let bytes = payload.try_into().map_err(|_| malformed("float"))?;
                Ok(PyFloat::new(py, f64::from_be_bytes(bytes)).into_any())
            }
            FLAG => {
                let flag = payload.first().ok_or_else(|| malformed("boolean"))?;
                Ok(PyBool::new(py, *flag != 0).to_owned().into_any())
            }
            PICKLE => self.loads.bind(py).call1((PyBytes::new(py, payload),)),
            other => {
                let text = format!("a stored value has the type {other}, which is not known");
                Err(errors::exception(py, "CorruptionError", &text))
            }
        }
    }
}

/// Appends the encoding of `value`; false if it has none but a pickle.
fn encode(value: &Bound<'_, PyAny>, to: &mut Vec<u8>) -> PyResult<bool> {
    if let Ok(flag) = value.cast::<PyBool>() {
        to.extend_from_slice(&[FLAG, u8::from(flag.is_true())]);
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        to.push(BYTES);
        to.extend_from_slice(bytes.as_bytes());
    } else if let Ok(text) = value.cast::<PyString>() {
        to.push(TEXT);
        to.extend_from_slice(text.to_cow()?.as_bytes());
    } else if let Ok(number) = value.cast::<PyInt>() {
        to.push(WHOLE);
        encode_whole(number, to)?;
    } else if let Ok(number) = value.cast::<PyFloat>() {
        to.push(FLOAT);
        to.extend_from_slice(&number.value().to_be_bytes());
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn encode_whole(number: &Bound<'_, PyInt>, to: &mut Vec<u8>) -> PyResult<()> {
    let shortest = |bytes: &[u8]| -> usize {
        let redundant = |pair: &[u8]| {
            matches!(pair, [0, next, ..] if next & 0x80 == 0)
                || matches!(pair, [0xff, next, ..] if next & 0x80 != 0)
        };
        bytes.windows(2).take_while(|pair| redundant(pair)).count()
    };
    if let Ok(small) = number.extract::<i64>() {
        let bytes = small.to_be_bytes();
        to.extend_from_slice(bytes.get(shortest(&bytes)..).unwrap_or_default());
        return Ok(());
    }
    let py = number.py();
    let bits: usize = number.call_method0("bit_length")?.extract()?;
    let arguments = pyo3::types::PyDict::new(py);
    arguments.set_item("signed", true)?;
    let bytes = number.call_method("to_bytes", (bits / 8 + 1, "big"), Some(&arguments))?;
    let bytes = bytes.cast_into::<PyBytes>()?;
    let bytes = bytes.as_bytes();
    to.extend_from_slice(bytes.get(shortest(bytes)..).unwrap_or_default());
    Ok(())
}

fn decode_whole<'py>(py: Python<'py>, payload: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if payload.len() <= 8 {
        let fill = if payload.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
        let mut bytes = [fill; 8];
        let free = bytes.len() - payload.len();
        bytes.iter_mut().skip(free).zip(payload).for_each(|(to, from)| *to = *from);
        return Ok(i64::from_be_bytes(bytes).into_pyobject(py)?.into_any());
    }
    let arguments = pyo3::types::PyDict::new(py);
    arguments.set_item("signed", true)?;
    let class = py.get_type::<PyInt>();
    class.call_method("from_bytes", (PyBytes::new(py, payload), "big"), Some(&arguments))
}

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
        let (codec, read, _) = self.settings(py)?;
        let read = read_of(read_opt, read, &codec)?;
        if let Ok(keys) = key.cast::<PyList>() {
            let values = keys.iter().map(|key| {
                let value =
                    codec.with_key(&key, |key| store::get(py, &self.place, key, Some(&read)))?;
                value.map_or_else(
                    || Ok(default.clone().unwrap_or_else(|| py.None().into_bound(py))),
                    |value| codec.decode(py, &value),
                )
            });
            let values: Vec<_> = values.collect::<PyResult<_>>()?;
            return Ok(Some(PyList::new(py, values)?.into_any()));
        }
        let value = codec.with_key(key, |key| store::get(py, &self.place, key, Some(&read)))?;
        match value {
            Some(value) => codec.decode(py, &value).map(Some),
            None => Ok(default),
        }
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
            codec.with_value(value, |value| {
                place
                    .shared
                    .run_write(py, write, |write| place.family.writing(write).put(key, value))
            })
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
        codec.with_key(key, |key| {
            place.shared.run_write(py, write, |write| place.family.writing(write).delete(key))
        })
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

    /// The entries from `from_key` on; `what` is 0 for entries, 1 for keys, 2 for values.
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

    fn _decode<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.settings(py)?.0.decode(py, bytes)
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

/// Encodes a key, or a value.
#[pyfunction]
#[pyo3(name = "_encode")]
pub(crate) fn encoded<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    is_key: bool,
    raw: bool,
    dumps: Py<PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let codec = Codec { raw, loads: py.None(), dumps };
    let bytes = |bytes: &[u8]| Ok(PyBytes::new(py, bytes));
    if is_key { codec.with_key(value, bytes) } else { codec.with_value(value, bytes) }
}
