//! `Iterator`: entries in order, in plyvel's shape. It stands in a gap between two entries; `next`
//! and `prev` return the entry behind and before the gap.
//!
//! 1. `Entries::step` takes the next entry out of the chunk that was read ahead.
//! 2. If there is none in that direction, `Walk::fill` reads a chunk without the interpreter lock:
//!    one entry at first, then more each time.
//! 3. A change of direction drops the chunk, and the cursor seeks the gap again.
//!
//! What must stay true: an iterator sees the moment of its creation, so that reading ahead cannot
//! be noticed. After a close of the database or of the iterator every move fails.

use std::sync::Mutex;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use sateen::{Comparator, Cursor, ReadOptions};

use crate::errors;
use crate::input::Input;
use crate::place::Place;

const CHUNK_ENTRIES_MAX: usize = 256;
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// The keys that an iterator shows.
pub(crate) struct Range {
    /// Lower bound, and whether a key equal to it is shown.
    lower: Option<(Vec<u8>, bool)>,
    /// Upper bound, and whether a key equal to it is shown.
    upper: Option<(Vec<u8>, bool)>,
    prefix: Vec<u8>,
}

impl Range {
    pub(crate) fn new(
        py: Python<'_>,
        place: &Place,
        start: Option<Input<'_>>,
        stop: Option<Input<'_>>,
        include_start: bool,
        include_stop: bool,
        prefix: Option<Input<'_>>,
    ) -> PyResult<Range> {
        if prefix.is_some() && (start.is_some() || stop.is_some()) {
            return Err(PyTypeError::new_err("prefix excludes start and stop"));
        }
        let bound = |key: Option<Input<'_>>, with| {
            key.map(|key| place.key(py, key).map(|key| (key.into_vec(), with))).transpose()
        };
        // A prefix is no key. The engine refuses one for an order that is not bytewise.
        let prefix = match prefix {
            Some(prefix) => prefix.behind(&place.prefix).into_vec(),
            None => place.prefix.to_vec(),
        };
        let (lower, upper) = (bound(start, include_start)?, bound(stop, include_stop)?);
        Ok(Range { lower, upper, prefix })
    }

    /// Returns true if no key can be in it.
    fn is_empty(&self, order: &Comparator) -> bool {
        let (Some((lower, with)), Some((upper, and_with))) = (&self.lower, &self.upper) else {
            return false;
        };
        match order.compare(lower, upper) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => !(*with && *and_with),
            std::cmp::Ordering::Greater => true,
        }
    }

    /// Puts the bounds into the options of a read. A custom comparator has no "next key", so those
    /// of its bounds that are the other way round are checked for each entry instead.
    fn bound(&mut self, options: &mut ReadOptions, order: &Comparator) {
        let next = |key: &[u8]| [key, &[0]].concat();
        let bytewise = order.is_bytewise();
        options.lower_bound = self
            .lower
            .as_ref()
            .map(|(key, with)| if *with || !bytewise { key.clone() } else { next(key) });
        options.upper_bound = match &self.upper {
            Some((key, false)) => Some(key.clone()),
            Some((key, true)) if bytewise => Some(next(key)),
            _ => None,
        };
        if !self.prefix.is_empty() {
            options.prefix = Some(self.prefix.clone());
        }
        if bytewise {
            (self.lower, self.upper) = (None, None);
        } else {
            self.lower = self.lower.take().filter(|(_, with)| !with);
            self.upper = self.upper.take().filter(|(_, with)| *with);
        }
    }
}

/// Where the iterator stands, if no chunk says it.
enum Gap {
    Start,
    Stop,
    Before(Vec<u8>),
    After(Vec<u8>),
}

/// Entries that were read ahead.
#[derive(Default)]
struct Chunk {
    data: Vec<u8>,
    /// The ends of key and value of each entry in `data`.
    ends: Vec<(usize, usize)>,
    /// Number of entries that were returned.
    taken: usize,
}

impl Chunk {
    fn entry(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let (key_end, end) = *self.ends.get(at)?;
        let begin = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |e| e.1);
        Some((self.data.get(begin..key_end)?, self.data.get(key_end..end)?))
    }

    fn clear(&mut self) {
        self.data.clear();
        self.ends.clear();
        self.taken = 0;
    }
}

/// The moving part of an iterator.
struct Walk {
    cursor: Cursor,
    order: Comparator,
    /// Bounds that the cursor does not know.
    range: Range,
    with_values: bool,
    gap: Gap,
    chunk: Chunk,
    /// The direction of the chunk.
    forward: bool,
    /// The cursor stands on the entry behind the chunk, in its direction.
    continues: bool,
    /// Entries of the next chunk.
    ahead: usize,
}

impl Walk {
    /// Drops the chunk, and says where the iterator stands.
    fn settle(&mut self) {
        if let Some(last) = self.chunk.taken.checked_sub(1)
            && let Some((key, _)) = self.chunk.entry(last)
        {
            let key = key.to_vec();
            self.gap = if self.forward { Gap::After(key) } else { Gap::Before(key) };
        }
        self.chunk.clear();
        self.continues = false;
        self.ahead = 1;
    }

    fn go_to(&mut self, gap: Gap) {
        self.settle();
        self.gap = gap;
    }

    /// Moves the cursor to the entry behind the gap.
    fn seek(&mut self) {
        let cursor = &mut self.cursor;
        // An inclusive stop of a custom comparator, which the cursor does not know.
        let stop = self.range.upper.as_ref().map(|(stop, _)| &stop[..]);
        match (&self.gap, self.forward) {
            (Gap::Start, true) => cursor.seek_to_first(),
            (Gap::Stop, false) => match stop {
                Some(stop) => cursor.seek_for_prev(stop),
                None => cursor.seek_to_last(),
            },
            (Gap::Before(key), true) => cursor.seek(key),
            (Gap::After(key), false) => cursor.seek_for_prev(key),
            (Gap::After(key), true) => {
                cursor.seek(key);
                if cursor.valid() && cursor.key() == &key[..] {
                    cursor.next();
                }
            }
            (Gap::Before(key), false) => {
                let stop = stop.filter(|stop| self.order.compare(key, stop).is_gt());
                cursor.seek_for_prev(stop.unwrap_or(key));
                if cursor.valid() && cursor.key() == &key[..] {
                    cursor.prev();
                }
            }
            // There is nothing before the first or behind the last entry.
            (Gap::Start, false) | (Gap::Stop, true) => return,
        }
        self.continues = true;
    }

    /// Returns true if the cursor stands on an entry of the range.
    fn is_inside(&self) -> bool {
        if !self.cursor.valid() {
            return false;
        }
        let key = self.cursor.key();
        let below = self.range.lower.as_ref().is_some_and(|(lower, _)| key == &lower[..]);
        let above = self
            .range
            .upper
            .as_ref()
            .is_some_and(|(upper, _)| self.order.compare(key, upper).is_gt());
        !below && !above
    }

    /// Reads entries in direction `forward` until there is one to take. Nothing to take means that
    /// the iterator is at an end.
    fn fill(&mut self, forward: bool) -> sateen::Result<()> {
        if self.forward != forward {
            self.settle();
            self.forward = forward;
        }
        if !self.continues {
            self.settle();
            self.seek();
            if !self.continues {
                return Ok(());
            }
        } else if self.chunk.taken > 0 {
            let ahead = self.ahead;
            self.settle();
            (self.continues, self.ahead) = (true, ahead);
        }
        // An exclusive start of a custom comparator is passed by on the way up.
        if forward && self.cursor.valid() && !self.is_inside() && self.range.lower.is_some() {
            self.cursor.next();
        }
        while self.chunk.ends.len() < self.ahead
            && self.chunk.data.len() < CHUNK_BYTES_MAX
            && self.is_inside()
        {
            self.chunk.data.extend_from_slice(self.cursor.key());
            let key_end = self.chunk.data.len();
            if self.with_values {
                self.chunk.data.extend_from_slice(self.cursor.value());
            }
            self.chunk.ends.push((key_end, self.chunk.data.len()));
            if forward { self.cursor.next() } else { self.cursor.prev() }
        }
        self.ahead = (self.ahead * 4).min(CHUNK_ENTRIES_MAX);
        if !self.cursor.valid() && self.chunk.ends.is_empty() {
            self.continues = false;
            self.cursor.status()?;
        }
        Ok(())
    }
}

/// Entries of a store, in order, in both directions.
#[pyclass(name = "Iterator", frozen, weakref, module = "sateen._native")]
pub(crate) struct Entries {
    place: Place,
    walk: Mutex<Option<Walk>>,
    reverse: bool,
    with_key: bool,
    with_value: bool,
    /// True if its bounds are the wrong way round.
    empty: bool,
}

impl Drop for Entries {
    fn drop(&mut self) {
        self.place.shared.drop_part(&mut self.walk);
    }
}

impl Entries {
    pub(crate) fn new(
        py: Python<'_>,
        place: Place,
        range: Range,
        options: ReadOptions,
        reverse: bool,
        shown: (bool, bool),
    ) -> PyResult<Entries> {
        let family = place.family.clone();
        Entries::over(py, place, range, options, reverse, shown, move |options| {
            family.cursor(options)
        })
    }

    /// Returns an iterator over the cursor that `open` makes.
    pub(crate) fn over(
        py: Python<'_>,
        place: Place,
        mut range: Range,
        mut options: ReadOptions,
        reverse: bool,
        shown: (bool, bool),
        open: impl FnOnce(&ReadOptions) -> sateen::Result<Cursor> + Send,
    ) -> PyResult<Entries> {
        let order = place.family.comparator().clone();
        let (cursor, empty, range) = place.shared.run(py, || {
            let empty = range.is_empty(&order);
            if !empty {
                range.bound(&mut options, &order);
            }
            Ok((open(&options)?, empty, range))
        })?;
        let walk = Walk {
            cursor,
            order,
            range,
            with_values: shown.1,
            gap: if reverse { Gap::Stop } else { Gap::Start },
            chunk: Chunk::default(),
            forward: !reverse,
            continues: false,
            ahead: 1,
        };
        Ok(Entries {
            place,
            walk: Mutex::new(Some(walk)),
            reverse,
            with_key: shown.0,
            with_value: shown.1,
            empty,
        })
    }

    /// Moves the gap over one entry and returns that.
    fn step<'py>(&self, py: Python<'py>, forward: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.place.shared.check(py)?;
        let mut guard = self.place.shared.locked(py, &self.walk)?;
        let walk = guard.as_mut().ok_or_else(|| errors::closed(py, "iterator"))?;
        if self.empty {
            return Ok(None);
        }
        if walk.forward != forward || walk.chunk.taken == walk.chunk.ends.len() {
            self.place.shared.run(py, || walk.fill(forward))?;
        }
        let Some((key, value)) = walk.chunk.entry(walk.chunk.taken) else { return Ok(None) };
        let key = || PyBytes::new(py, key.get(self.place.prefix.len()..).unwrap_or_default());
        let shown = match (self.with_key, self.with_value) {
            (true, true) => PyTuple::new(py, [key(), PyBytes::new(py, value)])?.into_any(),
            (true, false) => key().into_any(),
            (false, true) => PyBytes::new(py, value).into_any(),
            (false, false) => py.None().into_bound(py),
        };
        walk.chunk.taken += 1;
        Ok(Some(shown))
    }

    fn go_to(&self, py: Python<'_>, gap: Gap) -> PyResult<()> {
        self.place.shared.check(py)?;
        let mut guard = self.place.shared.locked(py, &self.walk)?;
        let walk = guard.as_mut().ok_or_else(|| errors::closed(py, "iterator"))?;
        walk.go_to(gap);
        Ok(())
    }

    /// Takes up to `entries` entries that follow, in the direction of the iterator, into `take`.
    pub(crate) fn each(
        &self,
        py: Python<'_>,
        entries: usize,
        bytes: usize,
        mut take: impl FnMut(&[u8], &[u8]) + Send,
    ) -> PyResult<usize> {
        let mut guard = self.place.shared.locked(py, &self.walk)?;
        let walk = guard.as_mut().ok_or_else(|| errors::closed(py, "iterator"))?;
        let (cut, forward, empty) = (self.place.prefix.len(), !self.reverse, self.empty);
        self.place.shared.run(py, || {
            let (mut count, mut taken_bytes) = (0, 0);
            while !empty && count < entries && taken_bytes < bytes {
                if walk.forward != forward || walk.chunk.taken == walk.chunk.ends.len() {
                    walk.fill(forward)?;
                }
                let Some((key, value)) = walk.chunk.entry(walk.chunk.taken) else { break };
                take(key.get(cut..).unwrap_or_default(), value);
                taken_bytes += key.len() + value.len();
                count += 1;
                walk.chunk.taken += 1;
            }
            Ok(count)
        })
    }
}

#[pymethods]
impl Entries {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.step(py, !self.reverse)
    }

    /// Returns the entry before, and moves back over it. Raises `StopIteration` at the end.
    fn prev<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let entry = self.step(py, self.reverse)?;
        entry.ok_or_else(|| pyo3::exceptions::PyStopIteration::new_err(()))
    }

    /// Moves before the first entry, also if it is reversed.
    fn seek_to_start(&self, py: Python<'_>) -> PyResult<()> {
        self.go_to(py, Gap::Start)
    }

    /// Moves behind the last entry, also if it is reversed.
    fn seek_to_stop(&self, py: Python<'_>) -> PyResult<()> {
        self.go_to(py, Gap::Stop)
    }

    /// Moves before the first key that is not before `target`.
    fn seek(&self, py: Python<'_>, target: Input<'_>) -> PyResult<()> {
        let key = self.place.key(py, target)?.into_vec();
        self.go_to(py, Gap::Before(key))
    }

    /// Gives up what it holds; a second time does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.place.shared.close_part(py, &self.walk)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// True after a close of the iterator or of the database.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.place.shared.is_closed() || self.place.shared.locked(py, &self.walk)?.is_none())
    }
}
