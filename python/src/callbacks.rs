//! Python functions that the engine calls: merge operators and comparators.
//!
//! - A merge operator that raises refuses the merge. The read fails with `MergeError`, whose cause
//!   is the exception; the operands stay as they are.
//! - A comparator must order all keys at all times. Each key is tried before it is written, so most
//!   exceptions refuse one write. If the comparator raises later, the order in memory is unknown:
//!   every further call fails with `ComparatorError`, and no background job may store what it
//!   sorted. The WAL has all writes, so nothing is lost: the next open sorts them again.
//! - A callback that calls its own database would wait for itself: for the commit queue, for a job,
//!   or for the iterator that called it. Such calls are refused (`Orders::is_in_callback`).
//! - A close drops the functions, so that a function that refers to its database is no cycle.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList};
use sateen::{Comparator, MergeOperator, Merging};

use crate::errors;
use crate::handle;

thread_local! {
    /// The exception of the last merge operator that failed on this thread.
    static MERGE_ERROR: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// The databases whose callbacks run on this thread, the innermost last.
    static RUNNING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// The length of `RUNNING`, for a quick look.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Returns true on a thread that runs a callback of some database.
#[inline]
pub(crate) fn is_in_any() -> bool {
    DEPTH.with(Cell::get) > 0
}

/// A callback that runs.
struct Running;

impl Running {
    fn begin(orders: &Arc<OrderState>) -> Running {
        RUNNING.with(|running| running.borrow_mut().push(Arc::as_ptr(orders) as usize));
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with(|running| running.borrow_mut().pop());
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// A Python function, until the database is closed.
struct Function(Mutex<Option<Py<PyAny>>>);

impl Function {
    fn new(function: Bound<'_, PyAny>) -> Arc<Function> {
        Arc::new(Function(Mutex::new(Some(function.unbind()))))
    }

    fn bind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let function = self.0.lock_py_attached(py).map_err(|_| errors::poisoned())?;
        let function = function.as_ref().map(|function| function.bind(py).clone());
        function.ok_or_else(|| errors::closed(py, "database"))
    }
}

/// Returns `error`, caused by the exception of a callback if there was one.
pub(crate) fn with_cause(py: Python<'_>, error: PyErr) -> PyErr {
    let cause = MERGE_ERROR.with(|slot| slot.borrow_mut().take());
    if cause.is_some() && error.cause(py).is_none() {
        error.set_cause(py, cause);
    }
    error
}

/// A Python function that merges, for any thread.
struct PyMerge {
    name: String,
    full: Arc<Function>,
    partial: Option<Arc<Function>>,
    state: Arc<OrderState>,
}

impl PyMerge {
    fn note(error: PyErr) {
        MERGE_ERROR.with(|slot| *slot.borrow_mut() = Some(error));
    }

    fn bytes_of(&self, result: PyResult<Bound<'_, PyAny>>) -> Option<Vec<u8>> {
        let bytes = result.and_then(|value| {
            if value.is_none() {
                return Ok(None);
            }
            let bytes = value.cast::<PyBytes>().map_err(|_| {
                PyTypeError::new_err(format!("the merge operator {} must return bytes", self.name))
            })?;
            Ok(Some(bytes.as_bytes().to_vec()))
        });
        bytes.unwrap_or_else(|error| {
            PyMerge::note(error);
            None
        })
    }
}

impl MergeOperator for PyMerge {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        Python::try_attach(|py| {
            let _running = Running::begin(&self.state);
            let existing = existing.map(|bytes| PyBytes::new(py, bytes));
            let operands = PyList::new(py, operands.iter().map(|bytes| PyBytes::new(py, bytes)));
            let merged = operands.and_then(|operands| {
                self.full.bind(py)?.call1((PyBytes::new(py, key), existing, operands))
            });
            self.bytes_of(merged)
        })
        .flatten()
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let partial = self.partial.as_ref()?;
        Python::try_attach(|py| {
            let _running = Running::begin(&self.state);
            let operands = PyList::new(py, operands.iter().map(|bytes| PyBytes::new(py, bytes)));
            let merged = operands
                .and_then(|operands| partial.bind(py)?.call1((PyBytes::new(py, key), operands)));
            self.bytes_of(merged)
        })
        .flatten()
    }
}

/// Returns the merge operator that `value` names or is.
pub(crate) fn merging(value: &Bound<'_, PyAny>, orders: &Orders) -> PyResult<Option<Merging>> {
    if value.is_none() {
        return Ok(None);
    }
    let py = value.py();
    if let Ok(name) = value.extract::<String>() {
        return match name.as_str() {
            "uint64add" => Ok(Some(Merging::associative("uint64add", add))),
            "append" => Ok(Some(Merging::associative("append", append))),
            _ => Err(errors::bad_option(
                py,
                "merge_operator",
                &format!("merge_operator: there is no {name:?}; uint64add, append or a callable"),
            )),
        };
    }
    if !value.is_callable() {
        let text = "merge_operator must be a name or a callable (key, existing, operands)";
        return Err(PyTypeError::new_err(text));
    }
    let partial = value.getattr_opt("partial_merge")?.filter(|partial| !partial.is_none());
    Ok(Some(Merging::new(PyMerge {
        name: name_of(value),
        full: orders.function(value.clone()),
        partial: partial.map(|partial| orders.function(partial)),
        state: orders.0.clone(),
    })))
}

/// Adds numbers of up to 64 bits, little-endian as RocksDB's `uint64add`; wraps around.
fn add(_key: &[u8], before: Option<&[u8]>, operand: &[u8]) -> Option<Vec<u8>> {
    let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    let before = before.map_or(Some(0), number)?;
    Some(before.wrapping_add(number(operand)?).to_le_bytes().to_vec())
}

fn append(_key: &[u8], before: Option<&[u8]>, operand: &[u8]) -> Option<Vec<u8>> {
    Some([before.unwrap_or_default(), operand].concat())
}

fn name_of(value: &Bound<'_, PyAny>) -> String {
    let named = |attribute| value.getattr(attribute).and_then(|name| name.extract::<String>());
    named("name").or_else(|_| named("__qualname__")).unwrap_or_else(|_| "python".to_owned())
}

/// A Python function that orders keys.
pub(crate) struct Order {
    name: String,
    compare: Arc<Function>,
    state: Arc<OrderState>,
}

/// The functions of a database, and whether a comparator failed.
#[derive(Default)]
struct OrderState {
    failed: AtomicBool,
    reported: AtomicBool,
    /// Whether the database has functions of Python.
    has_functions: AtomicBool,
    error: Mutex<Option<(String, PyErr)>>,
    functions: Mutex<Vec<Arc<Function>>>,
}

/// The comparators and merge operators of a database.
#[derive(Clone, Default)]
pub(crate) struct Orders(Arc<OrderState>);

impl Orders {
    fn function(&self, function: Bound<'_, PyAny>) -> Arc<Function> {
        let function = Function::new(function);
        self.0.has_functions.store(true, atomic::Ordering::Relaxed);
        if let Ok(mut functions) = self.0.functions.lock() {
            functions.push(function.clone());
        }
        function
    }

    /// Returns true if the engine may call Python.
    #[inline]
    pub(crate) fn has_functions(&self) -> bool {
        self.0.has_functions.load(atomic::Ordering::Relaxed)
    }

    /// Returns true on a thread that runs a callback of this database.
    #[inline]
    pub(crate) fn is_in_callback(&self) -> bool {
        is_in_any() && self.is_running()
    }

    #[cold]
    fn is_running(&self) -> bool {
        let this = Arc::as_ptr(&self.0) as usize;
        RUNNING.with(|running| running.borrow().contains(&this))
    }

    /// Drops the functions of a database that is closed.
    pub(crate) fn forget(&self, py: Python<'_>) {
        let functions =
            self.0.functions.lock_py_attached(py).map(|mut all| std::mem::take(&mut *all));
        for function in functions.unwrap_or_default() {
            let dropped = function.0.lock_py_attached(py).map(|mut one| one.take());
            // The lock is free by now: a drop may run any code.
            drop(dropped);
        }
    }

    #[inline]
    pub(crate) fn have_failed(&self) -> bool {
        self.0.failed.load(atomic::Ordering::Relaxed)
    }

    /// Returns true for the first caller.
    pub(crate) fn is_first_report(&self) -> bool {
        !self.0.reported.swap(true, atomic::Ordering::AcqRel)
    }

    #[cold]
    pub(crate) fn failure(&self, py: Python<'_>) -> PyErr {
        let stored = self.0.error.lock().ok().and_then(|error| {
            error.as_ref().map(|(name, error)| (name.clone(), error.clone_ref(py)))
        });
        let (name, cause) = stored.map_or_else(Default::default, |(name, e)| (name, Some(e)));
        let text = format!(
            "the comparator {name} failed while keys were sorted; close the database and open it \
             again with one that orders all its keys"
        );
        let error = errors::exception(py, "ComparatorError", &text);
        error.set_cause(py, cause);
        error
    }

    /// Returns the comparator that calls `compare`, and the order to try keys with.
    pub(crate) fn comparator(
        &self,
        compare: &Bound<'_, PyAny>,
        name: Option<String>,
    ) -> (Comparator, Arc<Order>) {
        let name = name.unwrap_or_else(|| name_of(compare));
        let order = Arc::new(Order {
            name: name.clone(),
            compare: self.function(compare.clone()),
            state: self.0.clone(),
        });
        let called = order.clone();
        (Comparator::custom(name, move |a, b| called.order(a, b)), order)
    }
}

impl Order {
    /// Compares in the engine.
    fn order(&self, a: &[u8], b: &[u8]) -> Ordering {
        match Python::try_attach(|py| self.call(py, a, b)) {
            Some(Ok(order)) => order,
            Some(Err(error)) => self.fail(error, a, b),
            None => self.fail(PyValueError::new_err("the interpreter is gone"), a, b),
        }
    }

    fn call(&self, py: Python<'_>, a: &[u8], b: &[u8]) -> PyResult<Ordering> {
        let _running = Running::begin(&self.state);
        let order = self.compare.bind(py)?.call1((PyBytes::new(py, a), PyBytes::new(py, b)))?;
        let number: i64 = order.extract().map_err(|_| {
            PyTypeError::new_err(format!("the comparator {} must return an int", self.name))
        })?;
        Ok(number.cmp(&0))
    }

    #[cold]
    fn fail(&self, error: PyErr, a: &[u8], b: &[u8]) -> Ordering {
        let text = error.to_string();
        if let Ok(mut slot) = self.state.error.lock() {
            slot.get_or_insert_with(|| (self.name.clone(), error));
        }
        self.state.failed.store(true, atomic::Ordering::Release);
        // A job must not store what was sorted so. The engine stops it and keeps its inputs.
        assert!(handle::is_calling(), "the comparator {} failed: {text}", self.name);
        a.cmp(b)
    }

    /// Tries whether the function takes `key`, before anything is written.
    pub(crate) fn try_key(&self, py: Python<'_>, key: &[u8]) -> PyResult<()> {
        let refused = match self.call(py, key, key) {
            Ok(Ordering::Equal) => return Ok(()),
            Ok(_) => {
                (format!("the comparator {} says that a key differs from itself", self.name), None)
            }
            Err(error) => {
                (format!("the comparator {} refused a key: {error}", self.name), Some(error))
            }
        };
        let error = errors::exception(py, "ComparatorError", &refused.0);
        error.value(py).setattr("key", PyBytes::new(py, key))?;
        error.set_cause(py, refused.1);
        Err(error)
    }
}
