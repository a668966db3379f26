//! What crosses the boundary: bytes, texts, errors and panics.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use sateen::Error;

use crate::handles::{given, taken_back};

/// Where a function leaves its error: null, or a place that is null or has a text from `malloc`.
pub type ErrPtr = *mut *mut c_char;

/// Bytes that something else owns, as some functions return them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Where they begin; may be null if there are none.
    pub data: *const c_char,
    /// How many there are.
    pub size: usize,
}

impl Default for Slice {
    fn default() -> Slice {
        Slice { data: std::ptr::null(), size: 0 }
    }
}

/// The bytes at `data`; none if it is null.
///
/// # Safety
/// `data` is null or points to `length` bytes that live as long as the answer is used.
#[must_use]
pub unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// The bytes at `data`, which may be left out; `None` if it is null.
///
/// # Safety
/// As [`bytes`].
#[must_use]
pub unsafe fn optional_bytes<'a>(data: *const c_char, length: usize) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    (!data.is_null()).then(|| unsafe { bytes(data, length) })
}

/// The byte strings of parallel arrays of beginnings and lengths.
///
/// # Safety
/// Both arrays have `count` members, which [`bytes`] takes.
#[must_use]
pub unsafe fn byte_strings<'a>(
    count: usize,
    data: *const *const c_char,
    lengths: *const usize,
) -> Vec<&'a [u8]> {
    // SAFETY: the caller's promise.
    (0..count).map(|nth| unsafe { bytes(*data.add(nth), *lengths.add(nth)) }).collect()
}

/// The number of members of an array, which C may count with a negative number: then there is none.
#[must_use]
pub fn count_of(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Returns where `found` begins, and leaves its length at `length` if that is not null. Returns
/// null and leaves 0 for `None`.
///
/// # Safety
/// `length` is null or a place for a length.
pub unsafe fn lend(found: Option<&[u8]>, length: *mut usize) -> *const c_char {
    // SAFETY: the caller's promise.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = found.map_or(0, <[u8]>::len);
    }
    found.map_or(std::ptr::null(), |found| found.as_ptr().cast())
}

/// The text at `text`: different bytes are different texts, also where they are no UTF-8
/// ([`sateen::text_of_bytes`]).
///
/// # Safety
/// `text` is null or ends with a zero.
#[must_use]
pub unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    sateen::text_of_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).into_owned()
}

/// The path at `path`, whatever its bytes are.
///
/// # Safety
/// As [`text`].
#[must_use]
pub unsafe fn path(path: *const c_char) -> PathBuf {
    if path.is_null() {
        return PathBuf::new();
    }
    // SAFETY: the caller's promise.
    OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()).into()
}

/// A copy of the bytes that a name stands for, as [`malloc_copy`] makes it.
#[must_use]
pub fn malloc_name(name: &str) -> *mut c_char {
    malloc_copy(&sateen::bytes_of_text(name))
}

/// A copy of `bytes` in memory from `malloc`, one byte longer and ended by a zero. Null if there is
/// no memory.
#[must_use]
pub fn malloc_copy(bytes: &[u8]) -> *mut c_char {
    // SAFETY: any size may be asked for.
    let copy = unsafe { libc::malloc(bytes.len() + 1) }.cast::<u8>();
    if !copy.is_null() {
        // SAFETY: `copy` is new and has room for the bytes and one more.
        unsafe {
            copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            copy.add(bytes.len()).write(0);
        }
    }
    copy.cast()
}

/// Leaves `message` at `errptr`, if there is one.
///
/// # Safety
/// `errptr` is what [`ErrPtr`] says.
pub unsafe fn set_error(errptr: ErrPtr, message: &str) {
    if errptr.is_null() {
        return;
    }
    // SAFETY: the caller's promise: what is there is null or from `malloc`.
    unsafe {
        libc::free((*errptr).cast());
        *errptr = malloc_copy(sateen::shown(message).as_bytes());
    }
}

/// The text of an error as users of RocksDB know it: its kind, then what happened.
#[must_use]
pub fn status(error: &Error) -> String {
    let kind = match error {
        Error::Io { .. } | Error::Locked { .. } => "IO error",
        Error::Corruption { .. } | Error::InconsistentEdit { .. } => "Corruption",
        // Clients look for these words.
        Error::MergeFailed { .. } => "Corruption: Merge operator failed",
        Error::WouldStall { .. }
        | Error::ManualCompactionPaused
        | Error::NotInMemory
        | Error::TooManySkipped(_) => "Result incomplete",
        Error::TimedOut(_) => "Operation timed out",
        Error::ReadOnly(_) | Error::NoMergeOperator(_) | Error::NotSecondary => "Not implemented",
        Error::Behind { .. } | Error::NotBottommost { .. } => "Operation failed. Try again.",
        Error::NoSavePoint | Error::NotInLog(_) => "NotFound",
        Error::Closed => "Shutdown in progress",
        Error::BackgroundPaused => "Operation aborted",
        Error::Background { cause, .. } => return status(cause),
        Error::InvalidArgument(text) => return format!("Invalid argument: {text}"),
        _ => "Invalid argument",
    };
    format!("{kind}: {error}")
}

/// Runs `act`. Its error, or that it panicked, is left at `errptr`, and `default` returned.
///
/// # Safety
/// `errptr` is what [`ErrPtr`] says.
pub unsafe fn guard<T>(errptr: ErrPtr, default: T, act: impl FnOnce() -> sateen::Result<T>) -> T {
    // What a panic leaves half done is the engine's to mend: it says so itself at the next call.
    let message = match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => status(&error),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            format!("Aborted: a panic: {}", text.unwrap_or("of no text"))
        }
    };
    // SAFETY: the caller's promise.
    unsafe { set_error(errptr, &message) };
    default
}

/// [`guard`] for functions that cannot tell of an error.
pub fn quiet<T>(default: T, act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or(default)
}

/// Gives `value` to C.
pub fn give<T: 'static>(value: T) -> *mut T {
    let handle = Box::into_raw(Box::new(value));
    given(handle);
    handle
}

/// Takes back what [`give`] gave; none if it is null, was taken back before, or is something else.
///
/// # Safety
/// `handle` is null or from [`give`], and not used any more.
pub unsafe fn take<T: 'static>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: the caller's promise; only what C has is taken back, and once.
    (!handle.is_null() && taken_back(handle)).then(|| unsafe { Box::from_raw(handle) })
}

/// Frees what [`give`] gave; null is nothing, nor is what was freed.
///
/// # Safety
/// As [`take`].
pub unsafe fn free<T: 'static>(handle: *mut T) {
    // SAFETY: the caller's promise. A panic in what it owns must not reach C.
    let handle = unsafe { take(handle) };
    quiet((), || drop(handle));
}

/// An error for what the caller left out.
#[must_use]
pub fn missing(what: &str) -> Error {
    Error::InvalidArgument(format!("{what} is null"))
}

/// Frees what a function of this library returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_free(pointer: *mut std::ffi::c_void) {
    // SAFETY: it is null or from `malloc`.
    unsafe { libc::free(pointer) };
}
