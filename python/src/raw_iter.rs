//! `RawIterator`: a cursor that stands on an entry, as LevelDB's and RocksDB's iterators do.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use sateen::{Cursor, ReadOptions};

use crate::errors;
use crate::input::Input;
use crate::place::Place;

/// A cursor over the keys of a store. It stands on no entry until the first seek.
#[pyclass(frozen, weakref, module = "sateen._native")]
pub(crate) struct RawIterator {
    place: Place,
    cursor: Mutex<Option<Cursor>>,
}

impl Drop for RawIterator {
    fn drop(&mut self) {
        self.place.shared.drop_part(&mut self.cursor);
    }
}

impl RawIterator {
    pub(crate) fn new(
        py: Python<'_>,
        place: &Place,
        mut options: ReadOptions,
    ) -> PyResult<RawIterator> {
        if !place.prefix.is_empty() {
            options.prefix = Some(place.prefix.to_vec());
        }
        let cursor = place.shared.run(py, || place.family.cursor(&options))?;
        Ok(RawIterator { place: place.clone(), cursor: Mutex::new(Some(cursor)) })
    }

    /// Moves the cursor; fails with the error that the move met.
    fn moved(&self, py: Python<'_>, move_it: impl FnOnce(&mut Cursor) + Send) -> PyResult<()> {
        let mut guard = self.place.shared.locked(py, &self.cursor)?;
        let cursor = guard.as_mut().ok_or_else(|| errors::closed(py, "iterator"))?;
        self.place.shared.run(py, || {
            move_it(cursor);
            cursor.status()
        })
    }

    /// Reads the entry under the cursor, whose value may have to be read from the disk.
    fn entry<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&Cursor) -> T + Send,
    ) -> PyResult<T> {
        let guard = self.place.shared.locked(py, &self.cursor)?;
        let cursor = guard.as_ref().ok_or_else(|| errors::closed(py, "iterator"))?;
        let read = self.place.shared.run(py, || {
            if !cursor.valid() {
                return Ok(None);
            }
            let read = read(cursor);
            cursor.status().map(|()| Some(read))
        })?;
        let text = "the iterator stands on no entry";
        read.ok_or_else(|| errors::exception(py, "IteratorInvalidError", text))
    }

    fn shown(&self, key: &[u8]) -> Vec<u8> {
        key.get(self.place.prefix.len()..).unwrap_or_default().to_vec()
    }
}

#[pymethods]
impl RawIterator {
    /// Returns true if it stands on an entry.
    fn valid(&self, py: Python<'_>) -> PyResult<bool> {
        self.place.shared.check(py)?;
        let guard = self.place.shared.locked(py, &self.cursor)?;
        let cursor = guard.as_ref().ok_or_else(|| errors::closed(py, "iterator"))?;
        Ok(cursor.valid())
    }

    /// Moves to the first entry.
    fn seek_to_first(&self, py: Python<'_>) -> PyResult<()> {
        self.moved(py, Cursor::seek_to_first)
    }

    /// Moves to the last entry.
    fn seek_to_last(&self, py: Python<'_>) -> PyResult<()> {
        self.moved(py, Cursor::seek_to_last)
    }

    /// Moves to the first key that is not before `target`.
    fn seek(&self, py: Python<'_>, target: Input<'_>) -> PyResult<()> {
        let key = self.place.key(py, target)?;
        let key = key.bytes();
        self.moved(py, |cursor| cursor.seek(key))
    }

    /// Moves to the last key that is not behind `target`.
    fn seek_for_prev(&self, py: Python<'_>, target: Input<'_>) -> PyResult<()> {
        let key = self.place.key(py, target)?;
        let key = key.bytes();
        self.moved(py, |cursor| cursor.seek_for_prev(key))
    }

    /// Moves to the next entry; does nothing if it stands on none.
    fn next(&self, py: Python<'_>) -> PyResult<()> {
        self.moved(py, |cursor| {
            if cursor.valid() {
                cursor.next();
            }
        })
    }

    /// Moves to the entry before; does nothing if it stands on none.
    fn prev(&self, py: Python<'_>) -> PyResult<()> {
        self.moved(py, |cursor| {
            if cursor.valid() {
                cursor.prev();
            }
        })
    }

    /// Returns the key under it.
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let key = self.entry(py, |cursor| self.shown(cursor.key()))?;
        Ok(PyBytes::new(py, &key))
    }

    /// Returns the value under it.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let value = self.entry(py, |cursor| cursor.value().to_vec())?;
        Ok(PyBytes::new(py, &value))
    }

    /// Returns the key and the value under it.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (key, value) =
            self.entry(py, |cursor| (self.shown(cursor.key()), cursor.value().to_vec()))?;
        Ok((PyBytes::new(py, &key), PyBytes::new(py, &value)))
    }

    /// Gives up what it holds; a second time does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.place.shared.close_part(py, &self.cursor)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
