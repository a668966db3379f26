//! Arguments that are bytes. `bytes` objects never change, so their memory is lent to the engine.
//! Other buffers (bytearray, memoryview, numpy) may change while the interpreter lock is released;
//! they are copied once.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::errors;

/// The path of a file or directory: `str`, `bytes` or an object with `__fspath__`.
pub(crate) struct FilePath(pub(crate) PathBuf);

impl AsRef<Path> for FilePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for FilePath {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let path = py.import("os")?.call_method1("fspath", (object,))?;
        let path = match path.cast::<PyBytes>() {
            Ok(bytes) => PathBuf::from(OsStr::from_bytes(bytes.as_bytes())),
            Err(_) => path.extract()?,
        };
        if path.as_os_str().is_empty() {
            return Err(errors::exception(py, "InvalidArgumentError", "the path is empty"));
        }
        Ok(FilePath(path))
    }
}

/// Bytes that a caller passed.
pub(crate) enum Input<'py> {
    /// A `bytes` object, which stays alive as long as this.
    Lent(Bound<'py, PyBytes>),
    /// A copy of another buffer.
    Copied(Vec<u8>),
}

impl Input<'_> {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Input::Lent(bytes) => bytes.as_bytes(),
            Input::Copied(bytes) => bytes,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            Input::Lent(bytes) => bytes.as_bytes().to_vec(),
            Input::Copied(bytes) => bytes,
        }
    }

    /// Returns the bytes behind `prefix`, without a copy if there is none.
    pub(crate) fn behind(self, prefix: &[u8]) -> Self {
        if prefix.is_empty() { self } else { Input::Copied([prefix, self.bytes()].concat()) }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Input<'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Input::Lent(bytes.to_owned()));
        }
        other_buffer(&object)
    }
}

#[cold]
fn other_buffer<'py>(object: &Bound<'py, PyAny>) -> PyResult<Input<'py>> {
    let Ok(view) = PyMemoryView::from(object) else {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("bytes or another buffer is needed, not {kind}")));
    };
    let copy = view.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    Ok(Input::Lent(copy))
}
