//! `Place`: where the keys of a store are, and reads and writes of whole keys there.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sateen::{ColumnFamily, ReadOptions, Snapshot, WriteOptions};

use crate::callbacks::Order;
use crate::handle::Shared;
use crate::input::Input;

/// Where a store is, and what its keys begin with. The database comes first: its drop closes it
/// without the interpreter lock, before the other handles are dropped.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) shared: Arc<Shared>,
    pub(crate) family: ColumnFamily,
    pub(crate) prefix: Arc<[u8]>,
    /// The comparator, if it is Python's.
    pub(crate) order: Option<Arc<Order>>,
}

impl Place {
    /// Returns the whole key of `key`, which is tried with the comparator: one that raises in the
    /// engine would leave the order of keys unknown.
    #[inline]
    pub(crate) fn key<'py>(&self, py: Python<'py>, key: Input<'py>) -> PyResult<Input<'py>> {
        let key = key.behind(&self.prefix);
        if let Some(order) = &self.order {
            self.shared.check(py)?;
            order.try_key(py, key.bytes())?;
        }
        Ok(key)
    }

    /// Sets a whole key to a value.
    pub(crate) fn put(
        &self,
        py: Python<'_>,
        (key, value): (&[u8], &[u8]),
        options: WriteOptions,
    ) -> PyResult<()> {
        self.shared.run_small_write(
            py,
            key.len() + value.len(),
            options,
            |options| self.family.writing(options).try_put(key, value),
            |options| self.family.writing(options).put(key, value),
        )
    }

    /// Deletes a whole key.
    pub(crate) fn delete(&self, py: Python<'_>, key: &[u8], options: WriteOptions) -> PyResult<()> {
        self.shared.run_small_write(
            py,
            key.len(),
            options,
            |options| self.family.writing(options).try_delete(key),
            |options| self.family.writing(options).delete(key),
        )
    }
}

/// Options of a read that are no default; `None` if all are.
pub(crate) fn read_options(
    fill_cache: Option<bool>,
    snapshot: Option<&Snapshot>,
) -> Option<ReadOptions> {
    if fill_cache != Some(false) && snapshot.is_none() {
        return None;
    }
    Some(ReadOptions {
        fill_cache: fill_cache != Some(false),
        snapshot: snapshot.cloned(),
        ..ReadOptions::default()
    })
}

/// Options of a write.
#[inline]
pub(crate) fn write_options(
    sync: Option<bool>,
    disable_wal: bool,
    deadline: Option<f64>,
    low_priority: bool,
) -> PyResult<WriteOptions> {
    let sync = sync.unwrap_or(false);
    let deadline = deadline.map(|seconds| duration("deadline", seconds)).transpose()?;
    Ok(WriteOptions { sync, disable_wal, deadline, low_priority, ..WriteOptions::default() })
}

/// Returns a time in seconds as the engine's.
pub(crate) fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        pyo3::exceptions::PyValueError::new_err(format!(
            "{name} must be a number of seconds from 0, not {seconds}"
        ))
    })
}

/// The value of a read as `bytes`, or the default.
#[inline]
pub(crate) fn value_or<'py>(
    py: Python<'py>,
    value: Option<sateen::PinnedSlice>,
    default: Option<Bound<'py, PyAny>>,
) -> Option<Bound<'py, PyAny>> {
    match value {
        Some(value) => Some(PyBytes::new(py, &value).into_any()),
        None => default,
    }
}

/// The options of a read that finds what is in memory.
static IN_MEMORY: LazyLock<ReadOptions> =
    LazyLock::new(|| ReadOptions { memory_only: true, ..ReadOptions::default() });

/// Reads a key at a place.
#[inline]
pub(crate) fn get(
    py: Python<'_>,
    place: &Place,
    key: &[u8],
    options: Option<&ReadOptions>,
) -> PyResult<Option<sateen::PinnedSlice>> {
    let attempt = || match options {
        None => place.family.reading(&*IN_MEMORY).get_pinned(key),
        Some(options) => {
            let options = ReadOptions { memory_only: true, ..options.clone() };
            place.family.reading(options).get_pinned(key)
        }
    };
    let work = || match options {
        None => place.family.get_pinned(key),
        Some(options) => place.family.reading(options).get_pinned(key),
    };
    place.shared.run_read(py, attempt, work)
}

/// Reads several keys, in their order.
pub(crate) fn multi_get<'py>(
    py: Python<'py>,
    place: &Place,
    keys: Vec<Input<'py>>,
    options: Option<&ReadOptions>,
) -> PyResult<Bound<'py, PyList>> {
    let keys = keys.into_iter().map(|key| place.key(py, key));
    let keys: Vec<Input<'py>> = keys.collect::<PyResult<_>>()?;
    let slices: Vec<&[u8]> = keys.iter().map(Input::bytes).collect();
    let values = place.shared.run(py, || {
        let values = match options {
            None => place.family.multi_get(&slices),
            Some(options) => place.family.reading(options).multi_get(&slices),
        };
        values.into_iter().collect::<sateen::Result<Vec<_>>>()
    })?;
    PyList::new(py, values.into_iter().map(|value| value.map(|value| PyBytes::new(py, &value))))
}
