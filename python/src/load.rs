//! Bulk load: columns of keys and values as a `BulkLoad` of the engine.
//!
//! 1. `load_columns` checks the columns, and plans parts of about `PART_BYTES`: ranges of rows if
//!    the rows are in order (`Plan::in_order`), else ranges of keys (`Plan::by_key`).
//! 2. Threads take parts. `write_part` sorts the rows of a part, keeps the last row of each key and
//!    writes it as a part of the load.
//! 3. Meanwhile the caller's thread reports progress and looks for signals (`watch`). An exception
//!    ends the threads at their next row, and the load leaves nothing behind.
//! 4. When all parts are written, their rows become visible together.
//!
//! What must stay true: the parts follow each other without overlap, and a key is in one part only.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sateen::{BulkLoad, Comparator};

use crate::columns::Columns;
use crate::handle::Calling;
use crate::input::Input;
use crate::store::Store;

const PART_BYTES: usize = 64 << 20;
/// Keys that are looked at, for each part, to find where parts begin.
const SAMPLES: usize = 256;
/// Rows between two looks at whether the load was given up.
const STRIDE: usize = 4096;
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// A chunk of rows: their number, and offsets and bytes of keys and of values.
type Chunk<'py> = (usize, Input<'py>, Input<'py>, Input<'py>, Input<'py>);

/// The rows of all chunks.
struct Rows<'a> {
    chunks: Vec<(Columns<'a>, Columns<'a>)>,
    bytes: usize,
    /// Number of rows.
    count: usize,
}

impl<'a> Rows<'a> {
    fn new(chunks: &'a [Chunk<'_>]) -> PyResult<Rows<'a>> {
        let mut rows = Rows { chunks: Vec::with_capacity(chunks.len()), bytes: 0, count: 0 };
        for (count, key_offsets, key_bytes, value_offsets, value_bytes) in chunks {
            let keys = Columns::of_slice("keys", *count, key_offsets.bytes(), key_bytes.bytes())?;
            let values =
                Columns::of_slice("values", *count, value_offsets.bytes(), value_bytes.bytes())?;
            rows.bytes += key_bytes.bytes().len() + value_bytes.bytes().len();
            rows.count += count;
            rows.chunks.push((keys, values));
        }
        if u32::try_from(rows.count).is_err() {
            let text = format!("{} rows are too many for one load; load batches", rows.count);
            return Err(PyValueError::new_err(text));
        }
        Ok(rows)
    }

    fn key(&self, row: &Row) -> &'a [u8] {
        self.chunks.get(row.chunk as usize).map_or(&[], |chunk| chunk.0.row(row.row as usize))
    }

    fn value(&self, row: &Row) -> &'a [u8] {
        self.chunks.get(row.chunk as usize).map_or(&[], |chunk| chunk.1.row(row.row as usize))
    }

    /// Returns all rows, with 8 bytes of each key from `skipped` on.
    fn all(&self, skipped: usize) -> impl Iterator<Item = Row> {
        self.chunks.iter().zip(0_u32..).flat_map(move |((keys, _), chunk)| {
            (0..keys.len()).zip(0_u32..).map(move |(at, row)| {
                let mut head = [0; 8];
                let tail = keys.row(at).get(skipped..).unwrap_or_default();
                head.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
                Row { head: u64::from_be_bytes(head), chunk, row }
            })
        })
    }

    /// Returns how many bytes all keys have in common at their begin.
    fn common(&self) -> usize {
        let mut keys =
            self.chunks.iter().flat_map(|(keys, _)| (0..keys.len()).map(|at| keys.row(at)));
        let Some(first) = keys.next() else { return 0 };
        let mut common = first.len();
        for key in keys {
            if first.get(..common) != key.get(..common) {
                common = first.iter().zip(key).take_while(|(a, b)| a == b).count();
            }
            if common == 0 {
                break;
            }
        }
        common
    }
}

/// Where a row is.
#[derive(Clone, Copy)]
struct Row {
    /// Bytes of the key that order most rows without a look at the key itself.
    head: u64,
    chunk: u32,
    row: u32,
}

/// The rows of each part.
struct Plan {
    parts: Vec<Vec<Row>>,
    /// The rows are in order, and no key is there twice.
    sorted: bool,
}

impl Plan {
    fn in_order(rows: &Rows<'_>, parts: usize) -> Plan {
        let each = rows.count.div_ceil(parts.max(1)).max(1);
        let all: Vec<Row> = rows.all(0).collect();
        Plan { parts: all.chunks(each).map(<[Row]>::to_vec).collect(), sorted: true }
    }

    fn by_key(rows: &Rows<'_>, parts: usize) -> Plan {
        let all: Vec<Row> = rows.all(rows.common()).collect();
        if parts < 2 {
            return Plan { parts: vec![all], sorted: false };
        }
        let step = (all.len() / (parts * SAMPLES)).max(1);
        let mut sample: Vec<u64> = all.iter().step_by(step).map(|row| row.head).collect();
        sample.sort_unstable();
        let each = sample.len().div_ceil(parts).max(1);
        let mut begins: Vec<u64> = sample.into_iter().step_by(each).skip(1).collect();
        begins.dedup();
        let mut split: Vec<Vec<Row>> = Vec::new();
        split.resize_with(begins.len() + 1, || Vec::with_capacity(all.len() / parts));
        for row in all {
            let part = begins.partition_point(|begin| *begin <= row.head);
            split.get_mut(part).into_iter().for_each(|part| part.push(row));
        }
        split.retain(|part| !part.is_empty());
        Plan { parts: split, sorted: false }
    }

    /// Fails if a part of sorted rows does not begin behind the part before it.
    fn check_order(&self, rows: &Rows<'_>, order: &Comparator) -> sateen::Result<()> {
        let mut last: Option<&[u8]> = None;
        for part in self.parts.iter().filter(|_| self.sorted) {
            let first = part.first().map(|row| rows.key(row));
            if last.zip(first).is_some_and(|(last, first)| order.compare(last, first).is_ge()) {
                let text = "sorted=True, but keys do not ascend";
                return Err(sateen::Error::InvalidArgument(text.into()));
            }
            last = part.last().map(|row| rows.key(row));
        }
        Ok(())
    }
}

/// What the threads of a load share.
struct Load<'a> {
    rows: &'a Rows<'a>,
    sorted: bool,
    order: &'a Comparator,
    load: &'a BulkLoad<'a>,
    /// The parts that no thread took.
    waiting: Mutex<Vec<Vec<Row>>>,
    done: AtomicUsize,
    given_up: AtomicBool,
    failed: Mutex<Option<sateen::Error>>,
}

impl Load<'_> {
    fn write_part(&self, mut part: Vec<Row>) -> sateen::Result<()> {
        let rows = self.rows;
        if !self.sorted {
            let bytewise = self.order.is_bytewise();
            part.sort_unstable_by(|a, b| {
                let by_head =
                    if bytewise { a.head.cmp(&b.head) } else { std::cmp::Ordering::Equal };
                by_head
                    .then_with(|| self.order.compare(rows.key(a), rows.key(b)))
                    .then_with(|| (a.chunk, a.row).cmp(&(b.chunk, b.row)))
            });
        }
        let mut writer = self.load.part();
        for stride in 0..part.len().div_ceil(STRIDE) {
            if self.given_up.load(Ordering::Relaxed) {
                return Ok(());
            }
            let range = stride * STRIDE..part.len().min((stride + 1) * STRIDE);
            let count = range.len();
            for (at, row) in range.clone().zip(part.get(range).unwrap_or_default()) {
                let key = rows.key(row);
                let next = part.get(at + 1).filter(|next| !self.sorted && next.head == row.head);
                if next.is_some_and(|next| self.order.compare(key, rows.key(next)).is_eq()) {
                    continue;
                }
                writer.put(key, rows.value(row))?;
            }
            self.done.fetch_add(count, Ordering::Relaxed);
        }
        writer.finish()
    }

    /// Writes parts until there are none.
    fn work(&self) {
        loop {
            let part = self.waiting.lock().ok().and_then(|mut waiting| waiting.pop());
            let Some(part) = part else { return };
            if let Err(error) = self.write_part(part) {
                if let Ok(mut failed) = self.failed.lock() {
                    failed.get_or_insert(error);
                }
                self.given_up.store(true, Ordering::Relaxed);
            }
            if self.given_up.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Writes all parts, `count` of them. Returns the exception that ended it, and what a thread
    /// panicked with, if there was one.
    fn run(&self, count: usize, progress: &Py<PyAny>) -> (PyResult<()>, std::thread::Result<()>) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let caller = std::thread::current();
            let threads: Vec<_> = (0..cores.min(count))
                .map(|_| {
                    let caller = caller.clone();
                    scope.spawn(move || {
                        let _calling = Calling::begin();
                        self.work();
                        caller.unpark();
                    })
                })
                .collect();
            let watched = self.watch(&threads, progress);
            if watched.is_err() {
                self.given_up.store(true, Ordering::Relaxed);
            }
            let ends = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            (watched, ends.fold(Ok(()), Result::and))
        })
    }

    /// Reports progress until the threads end.
    fn watch(
        &self,
        threads: &[std::thread::ScopedJoinHandle<'_, ()>],
        progress: &Py<PyAny>,
    ) -> PyResult<()> {
        let mut told = 0;
        while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::park_timeout(REPORT_EVERY);
            let done = self.done.load(Ordering::Relaxed);
            Python::attach(|py| {
                py.check_signals()?;
                if done > told { progress.call1(py, (done,)).map(drop) } else { Ok(()) }
            })?;
            told = done;
        }
        Ok(())
    }
}

/// Loads the rows of `chunks`, all or none. Later rows of a key win. `progress` is called with the
/// number of rows so far.
#[pyfunction]
#[pyo3(name = "_load_columns")]
pub(crate) fn load_columns(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    chunks: Vec<Chunk<'_>>,
    sorted: bool,
    progress: Py<PyAny>,
) -> PyResult<()> {
    let place = &store.get().place;
    let rows = Rows::new(&chunks)?;
    let order = place.family.comparator();
    // A comparator in Python is called by one thread at a time anyway.
    let parts = if order.is_bytewise() { rows.bytes / PART_BYTES + 1 } else { 1 };
    place.shared.run(py, || {
        let plan = match sorted {
            true => Plan::in_order(&rows, parts),
            false => Plan::by_key(&rows, parts),
        };
        plan.check_order(&rows, order)?;
        let bulk = place.family.bulk_load()?;
        let count = plan.parts.len();
        let load = Load {
            rows: &rows,
            sorted,
            order,
            load: &bulk,
            waiting: Mutex::new(plan.parts.into_iter().rev().collect()),
            done: AtomicUsize::new(0),
            given_up: AtomicBool::new(false),
            failed: Mutex::new(None),
        };
        let (watched, ended) = load.run(count, &progress);
        // `run` raises the exception of an order that failed. Its tables must not join, and the
        // sort may have panicked on it.
        if place.shared.orders.have_failed() {
            return Err(sateen::Error::Closed);
        }
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
        if watched.is_err() {
            return Ok(watched);
        }
        if let Some(error) = load.failed.into_inner().ok().flatten() {
            return Err(error);
        }
        bulk.finish().map(Ok)
    })?
}
