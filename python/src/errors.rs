//! Errors of the engine as exceptions of `sateen.errors`, with the file, key or column family that
//! they name as attributes.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use sateen::{Error, Retry};

static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let module =
        MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("sateen.errors")?.into()))?;
    Ok(module.bind(py))
}

/// Returns an exception of the class `name` of `sateen.errors`.
pub(crate) fn exception(py: Python<'_>, name: &str, message: &str) -> PyErr {
    instance(py, name, message).map_or_else(|error| error, with_context)
}

/// Returns an error that is raised as `raise value` in Python: the exception that the caller is
/// handling becomes its context.
fn with_context(value: Bound<'_, PyAny>) -> PyErr {
    PyErr::from_type(value.get_type(), value.unbind())
}

fn instance<'py>(py: Python<'py>, name: &str, message: &str) -> PyResult<Bound<'py, PyAny>> {
    module(py)?.getattr(name)?.call1((message,))
}

/// Returns the exception for a wrong option.
pub(crate) fn bad_option(py: Python<'_>, option: &str, message: &str) -> PyErr {
    let made = instance(py, "InvalidArgumentError", message).and_then(|value| {
        value.setattr("option", option)?;
        Ok(value)
    });
    made.map_or_else(|error| error, with_context)
}

/// Notes on an exception which of `names` it is about.
pub(crate) fn with_option<'a>(
    py: Python<'_>,
    error: PyErr,
    mut names: impl Iterator<Item = &'a str>,
) -> PyErr {
    let text = error.value(py).to_string();
    if let Some(name) = names.find(|name| text.contains(&format!("option {name} "))) {
        return error.value(py).setattr("option", name).map_or_else(|failed| failed, |()| error);
    }
    error
}

pub(crate) fn closed(py: Python<'_>, what: &str) -> PyErr {
    exception(py, "ClosedError", &format!("the {what} is closed"))
}

pub(crate) fn forked(py: Python<'_>) -> PyErr {
    let text = "the database was opened by the parent process; a child of fork must open it \
                itself, after the parent has closed it";
    exception(py, "ForkedError", text)
}

/// Returns the exception for a call of a database from its own callback.
#[cold]
pub(crate) fn in_callback(py: Python<'_>) -> PyErr {
    let text = "a merge operator or comparator called its own database, which would wait for \
                itself; it may use its arguments only";
    exception(py, "CallbackError", text)
}

/// Returns the exception for `error`.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    raised(py, error).map_or_else(|error| error, with_context)
}

/// Returns the exceptions for what a check found. Nobody raises them, so they have no context.
pub(crate) fn problems<'a>(
    py: Python<'_>,
    found: impl Iterator<Item = &'a Error>,
) -> PyResult<Vec<Bound<'_, PyAny>>> {
    found.map(|error| raised(py, error)).collect()
}

fn raised<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let value = instance(py, class(error), &error.to_string())?;
    let bytes = |key: &[u8]| PyBytes::new(py, key);
    match error {
        Error::Io { path, source, .. } => {
            value.setattr("path", path.as_os_str())?;
            value.setattr("filename", path.as_os_str())?;
            if let Some(number) = source.raw_os_error() {
                value.setattr("errno", number)?;
                let text = py.import("os")?.call_method1("strerror", (number,))?;
                value.setattr("strerror", text)?;
            }
        }
        Error::Corruption { path, offset, .. } => {
            value.setattr("path", path.as_os_str())?;
            value.setattr("offset", *offset)?;
        }
        Error::InconsistentEdit { path, .. }
        | Error::IncompatibleDirectory { path, .. }
        | Error::Locked { path, .. }
        | Error::NotBottommost { path, .. } => value.setattr("path", path.as_os_str())?,
        Error::MergeFailed { key, .. } => value.setattr("key", bytes(key))?,
        Error::NoSuchColumnFamily(name) | Error::NoMergeOperator(name) => {
            value.setattr("column_family", name)?;
        }
        Error::Busy { column_family, key }
        | Error::TryAgain { column_family, key, .. }
        | Error::LockTimedOut { column_family, key, .. } => {
            value.setattr("column_family", column_family)?;
            value.setattr("key", bytes(key))?;
        }
        Error::Background { cause, .. } => {
            let cause = raised(py, cause)?;
            value.setattr("path", cause.getattr("path")?)?;
            value.setattr("__cause__", cause)?;
        }
        _ => {}
    }
    match error.retry() {
        Retry::Never => {}
        Retry::After(time) => {
            value.setattr("retryable", true)?;
            value.setattr("retry_after", time.as_secs_f64())?;
        }
        _ => value.setattr("retryable", true)?,
    }
    Ok(value)
}

/// Returns the name of the class of `error` in `sateen.errors`.
fn class(error: &Error) -> &'static str {
    match error {
        Error::Io { .. } => "IoError",
        Error::Corruption { .. } | Error::InconsistentEdit { .. } => "CorruptionError",
        Error::InvalidArgument(_) | Error::NotBottommost { .. } | Error::NoSavePoint => {
            "InvalidArgumentError"
        }
        Error::IncompatibleDirectory { .. } => "IncompatibleError",
        Error::Locked { .. } => "LockedError",
        Error::MergeFailed { .. } | Error::NoMergeOperator(_) => "MergeError",
        Error::NoSuchColumnFamily(_) => "NoSuchColumnFamilyError",
        Error::Busy { .. } | Error::TryAgain { .. } | Error::Deadlock { .. } => "ConflictError",
        Error::LockTimedOut { .. } => "LockTimeoutError",
        Error::LockLimit(_) | Error::TransactionOver(_) => "TransactionError",
        Error::WouldStall { .. } => "StallError",
        Error::TimedOut(_) => "TimedOutError",
        Error::Background { .. } | Error::Panicked { .. } => "BackgroundError",
        Error::ReadOnly(_) => "ReadOnlyError",
        Error::Behind { .. } => "BehindError",
        Error::NoSuchBackup(_) | Error::BackupDeleted(_) => "NoSuchBackupError",
        Error::Closed | Error::OfParentProcess => "ClosedError",
        _ => "Error",
    }
}

/// Returns the exception for a lock that a panic left behind.
pub(crate) fn poisoned() -> PyErr {
    PyRuntimeError::new_err("an earlier call on this object failed in the middle; make a new one")
}
