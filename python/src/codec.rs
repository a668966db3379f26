//! The encoding of keys and values: RocksDict's, or bytes as they are (raw mode).
//!
//! The first byte says the type: 1 bytes, 2 text in UTF-8, 3 a whole number (two's complement, most
//! significant byte first, as short as possible), 4 a float (IEEE 754, most significant byte
//! first), 5 a boolean, 6 a pickle (values only), 7 named columns (values only; `entity.rs`). The
//! order of keys is that of the bytes, but for whole numbers, which are in the order of numbers.

use std::cmp::Ordering;

use pyo3::exceptions::{PyException, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::entity::{self, ENTITY, Stored};
use crate::errors;

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

    /// Calls `work` with the stored bytes of a value.
    pub(crate) fn with_value<T>(
        &self,
        value: &Bound<'_, PyAny>,
        work: impl FnOnce(&[u8]) -> PyResult<T>,
    ) -> PyResult<T> {
        self.with_encoded(value, |value| match entity::escaped(value).filter(|_| self.raw) {
            Some(escaped) => work(&escaped),
            None => work(value),
        })
    }

    /// Calls `work` with the stored bytes of an entity.
    pub(crate) fn with_entity<T>(
        &self,
        names: &[Bound<'_, PyAny>],
        values: &[Bound<'_, PyAny>],
        work: impl FnOnce(&[u8]) -> PyResult<T>,
    ) -> PyResult<T> {
        if names.len() != values.len() {
            let text = format!("{} names, but {} values", names.len(), values.len());
            return Err(PyValueError::new_err(text));
        }
        let encoded = |all: &[Bound<'_, PyAny>]| -> PyResult<Vec<Vec<u8>>> {
            all.iter().map(|one| self.with_encoded(one, |bytes| Ok(bytes.to_vec()))).collect()
        };
        let (names, values) = (encoded(names)?, encoded(values)?);
        let columns = names.iter().map(Vec::as_slice).zip(values.iter().map(Vec::as_slice));
        let stored = entity::encode(self.raw, columns.collect());
        work(&stored.map_err(PyValueError::new_err)?)
    }

    /// Calls `work` with the encoded value, a plain one or that of a column.
    fn with_encoded<T>(
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
        !self.raw && matches!(value.first(), Some(&(PICKLE | ENTITY)))
    }

    /// Returns a stored value; of an entity, that of the column without a name.
    #[inline]
    pub(crate) fn value<'py>(&self, py: Python<'py>, stored: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.decode(py, self.stored(py, stored)?.plain())
    }

    /// Returns the names and values of an entity. A plain value is one column without a name.
    pub(crate) fn columns<'py>(
        &self,
        py: Python<'py>,
        stored: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let pair = |(name, value): entity::Column<'_>| {
            PyTuple::new(py, [self.decode(py, name)?, self.decode(py, value)?])
        };
        let columns: Vec<_> = match self.stored(py, stored)? {
            Stored::Plain(value) => vec![pair((b"", value))?],
            Stored::Columns(columns) => columns.into_iter().map(pair).collect::<PyResult<_>>()?,
        };
        Ok(PyList::new(py, columns)?.into_any())
    }

    #[inline]
    fn stored<'a>(&self, py: Python<'_>, stored: &'a [u8]) -> PyResult<Stored<'a>> {
        let malformed =
            || errors::exception(py, "CorruptionError", "a stored value with columns is malformed");
        Stored::read(self.raw, stored).ok_or_else(malformed)
    }

    /// Returns what `bytes` encode: a key, a plain value, or the name or value of a column.
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
    let arguments = PyDict::new(py);
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
    let arguments = PyDict::new(py);
    arguments.set_item("signed", true)?;
    let class = py.get_type::<PyInt>();
    class.call_method("from_bytes", (PyBytes::new(py, payload), "big"), Some(&arguments))
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
