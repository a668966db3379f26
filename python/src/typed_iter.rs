//! `TypedIterator`: the entries of a `Typed`, in one direction.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sateen::{Cursor, ReadOptions};

use crate::codec::Codec;
use crate::errors;
use crate::place::Place;

const CHUNK_ENTRIES_MAX: usize = 256;
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// Entries that were read ahead, without the interpreter lock.
struct Ahead {
    cursor: Cursor,
    data: Vec<u8>,
    ends: Vec<(usize, usize)>,
    taken: usize,
    /// Entries of the next chunk.
    wanted: usize,
}

impl Ahead {
    fn fill(&mut self, backwards: bool, with_values: bool) -> sateen::Result<()> {
        self.data.clear();
        self.ends.clear();
        self.taken = 0;
        while self.ends.len() < self.wanted
            && self.data.len() < CHUNK_BYTES_MAX
            && self.cursor.valid()
        {
            self.data.extend_from_slice(self.cursor.key());
            let key_end = self.data.len();
            if with_values {
                self.data.extend_from_slice(self.cursor.value());
            }
            self.ends.push((key_end, self.data.len()));
            if backwards { self.cursor.prev() } else { self.cursor.next() }
        }
        self.wanted = (self.wanted * 4).min(CHUNK_ENTRIES_MAX);
        if self.ends.is_empty() { self.cursor.status() } else { Ok(()) }
    }
}

/// Entries, keys, values or columns in order; `what` says which (`Typed::_entries`).
#[pyclass(frozen, weakref, module = "sateen._native")]
pub(crate) struct TypedIterator {
    place: Place,
    codec: Codec,
    ahead: Mutex<Option<Ahead>>,
    what: u8,
    backwards: bool,
}

impl Drop for TypedIterator {
    fn drop(&mut self) {
        self.place.shared.drop_part(&mut self.ahead);
    }
}

impl TypedIterator {
    pub(crate) fn new(
        py: Python<'_>,
        place: &Place,
        codec: Codec,
        read: ReadOptions,
        what: u8,
        backwards: bool,
        from_key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TypedIterator> {
        let open = |from: Option<&[u8]>| {
            place.shared.run(py, || {
                let mut cursor = place.family.cursor(&read)?;
                match (from, backwards) {
                    (Some(key), false) => cursor.seek(key),
                    (Some(key), true) => cursor.seek_for_prev(key),
                    (None, false) => cursor.seek_to_first(),
                    (None, true) => cursor.seek_to_last(),
                }
                cursor.status().map(|()| cursor)
            })
        };
        let cursor = match from_key.filter(|key| !key.is_none()) {
            None => open(None)?,
            Some(key) => codec.with_key(key, |key| open(Some(key)))?,
        };
        let ahead = Ahead { cursor, data: Vec::new(), ends: Vec::new(), taken: 0, wanted: 1 };
        let ahead = Mutex::new(Some(ahead));
        Ok(TypedIterator { place: place.clone(), codec, ahead, what, backwards })
    }

    fn shown<'py>(&self, py: Python<'py>, key: &[u8], value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self.what {
            1 => self.codec.decode(py, key),
            2 => self.codec.value(py, value),
            3 => {
                let entry = [self.codec.decode(py, key)?, self.codec.columns(py, value)?];
                Ok(PyTuple::new(py, entry)?.into_any())
            }
            4 => self.codec.columns(py, value),
            _ => {
                let entry = [self.codec.decode(py, key)?, self.codec.value(py, value)?];
                Ok(PyTuple::new(py, entry)?.into_any())
            }
        }
    }
}

#[pymethods]
impl TypedIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.place.shared.is_closed() {
            return Err(errors::exception(py, "DbClosedError", "the database is closed"));
        }
        let mut guard = self.place.shared.locked(py, &self.ahead)?;
        let ahead = guard.as_mut().ok_or_else(|| errors::closed(py, "iterator"))?;
        if ahead.taken == ahead.ends.len() {
            self.place.shared.run(py, || ahead.fill(self.backwards, self.what != 1))?;
        }
        let Some(&(key_end, end)) = ahead.ends.get(ahead.taken) else { return Ok(None) };
        let before = ahead.taken.checked_sub(1).and_then(|at| ahead.ends.get(at));
        let begin = before.map_or(0, |entry| entry.1);
        ahead.taken += 1;
        let key = ahead.data.get(begin..key_end).unwrap_or_default();
        let value = ahead.data.get(key_end..end).unwrap_or_default();
        if self.codec.runs_code(value) {
            // It must not wait for this lock.
            let (key, value) = (key.to_vec(), value.to_vec());
            drop(guard);
            return self.shown(py, &key, &value).map(Some);
        }
        self.shown(py, key, value).map(Some)
    }
}
