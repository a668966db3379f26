//! The values that cross the boundary to C: bytes, texts, errors and panics.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use sateen::{Comparator, Error};

use crate::handles::{given, taken_back};

/// The place for a function's error: null, or a place that contains null or a text from `malloc`.
pub type ErrPtr = *mut *mut c_char;

/// Bytes with another owner, as some functions return them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Their address, which may be null if there are none.
    pub data: *const c_char,
    /// Their number.
    pub size: usize,
}

impl Default for Slice {
    fn default() -> Slice {
        Slice { data: std::ptr::null(), size: 0 }
    }
}

/// Returns the bytes at `data`. Null stands for no bytes, and is an error with another length.
///
/// # Safety
/// `data` is null or points to `length` bytes that live as long as the answer is used.
#[inline]
pub unsafe fn bytes<'a>(data: *const c_char, length: usize) -> sateen::Result<&'a [u8]> {
    if data.is_null() && length > 0 {
        return Err(null_with_length(length));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { bytes_or_none(data, length) })
}

#[cold]
fn null_with_length(length: usize) -> Error {
    Error::InvalidArgument(format!(
        "a null pointer with length {length}: pass the address of the bytes, or length 0"
    ))
}

/// Returns the bytes at `data`; none if it is null, whatever the length is. For functions that
/// cannot report an error.
///
/// # Safety
/// As [`bytes`].
#[must_use]
pub unsafe fn bytes_or_none<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// Returns the bytes at `data`, or `None` if it is null.
///
/// # Safety
/// As [`bytes`].
#[must_use]
pub unsafe fn optional_bytes<'a>(data: *const c_char, length: usize) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    (!data.is_null()).then(|| unsafe { bytes_or_none(data, length) })
}

/// Returns the byte strings of two parallel arrays of addresses and lengths.
///
/// # Safety
/// Each array is null or has `count` members, which [`bytes`] takes.
pub unsafe fn byte_strings<'a>(
    count: usize,
    data: *const *const c_char,
    lengths: *const usize,
) -> sateen::Result<Vec<&'a [u8]>> {
    if count > 0 && (data.is_null() || lengths.is_null()) {
        return Err(missing("the list of byte strings or that of their lengths"));
    }
    // SAFETY: the caller's promise.
    (0..count).map(|nth| unsafe { bytes(*data.add(nth), *lengths.add(nth)) }).collect()
}

/// Returns the number of members of an array. A negative number of C means none.
#[must_use]
pub fn count_of(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Returns the address of `found` and stores its length at `length` if that is not null. For `None`
/// the address is null and the length 0.
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

/// Returns the text at `text`. Different bytes give different texts, even if they are not UTF-8
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

/// Returns the path at `path`, whatever its bytes are.
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

/// Returns a copy of the bytes that a name stands for, made by [`malloc_copy`].
#[must_use]
pub fn malloc_name(name: &str) -> *mut c_char {
    malloc_copy(&sateen::bytes_of_text(name))
}

/// Returns a copy of `bytes` in memory from `malloc`, with a zero after it. Null if there is no
/// memory.
#[must_use]
pub fn malloc_copy(bytes: &[u8]) -> *mut c_char {
    // SAFETY: `malloc` takes any size.
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

/// Stores `message` at `errptr`, if it is not null.
///
/// # Safety
/// `errptr` is what [`ErrPtr`] says.
pub unsafe fn set_error(errptr: ErrPtr, message: &str) {
    if errptr.is_null() {
        return;
    }
    // SAFETY: the caller's promise: the old text is null or from `malloc`.
    unsafe {
        libc::free((*errptr).cast());
        *errptr = malloc_copy(sateen::shown(message).as_bytes());
    }
}

/// Returns the text of an error in RocksDB's form: its kind, then its description.
#[must_use]
pub fn status(error: &Error) -> String {
    let kind = match error {
        Error::Io { .. } | Error::Locked { .. } => "IO error",
        Error::Corruption { .. } | Error::InconsistentEdit { .. } => "Corruption",
        // Clients search for these words.
        Error::MergeFailed { .. } => "Corruption: Merge operator failed",
        Error::WouldStall { .. }
        | Error::ManualCompactionPaused
        | Error::Cancelled(_)
        | Error::NotInMemory
        | Error::TooManySkipped(_) => "Result incomplete",
        Error::TimedOut(_) | Error::LockTimedOut { .. } => "Operation timed out",
        Error::ReadOnly(_) | Error::NoMergeOperator(_) | Error::NotSecondary => "Not implemented",
        Error::Behind { .. } | Error::NotBottommost { .. } | Error::TryAgain { .. } => {
            "Operation failed. Try again."
        }
        // The names of the options are those of C.
        Error::TransactionSize { bytes, max } => {
            return format!(
                "Operation aborted: the transaction would have {bytes} bytes, above the limit \
                 max_write_batch_size={max}"
            );
        }
        Error::LockLimit(max) => {
            return format!(
                "Resource busy: the transaction holds {max} locks, which is the limit of \
                 max_num_locks"
            );
        }
        Error::Busy { .. } | Error::Deadlock { .. } => "Resource busy",
        Error::NoSavePoint
        | Error::NotInLog(_)
        | Error::NoSuchBackup(_)
        | Error::BackupDeleted(_) => "NotFound",
        Error::Closed | Error::OfParentProcess => "Shutdown in progress",
        Error::BackgroundPaused => "Operation aborted",
        Error::Background { cause, .. } => return status(cause),
        Error::InvalidArgument(text) => {
            let of_comparators = comparators_differ(text);
            return format!("Invalid argument: {}", of_comparators.as_ref().unwrap_or(text));
        }
        _ => "Invalid argument",
    };
    format!("{kind}: {error}")
}

/// RocksDB's names of the orders that the engine implements itself.
pub(crate) const BYTEWISE: &str = "leveldb.BytewiseComparator";
pub(crate) const REVERSE_BYTEWISE: &str = "rocksdb.ReverseBytewiseComparator";

/// Returns RocksDB's name of a comparator with this name, which differs for an order that the
/// engine implements itself.
#[must_use]
pub fn comparator_name(name: &str) -> &str {
    match name {
        Comparator::BYTEWISE_NAME => BYTEWISE,
        Comparator::REVERSE_BYTEWISE_NAME => REVERSE_BYTEWISE,
        name => name,
    }
}

/// Returns RocksDB's text for the engine's `text` about a comparator that is not the recorded one;
/// `None` if it is about something else. Programs compare this text.
fn comparators_differ(text: &str) -> Option<String> {
    let (given, rest) =
        text.strip_prefix("comparator=")?.split_once(": keys of the column family")?;
    let (_, recorded) = rest.rsplit_once(" are compared by ")?;
    let [given, recorded] = [given, recorded].map(comparator_name);
    Some(format!("{given}: does not match existing comparator {recorded}"))
}

/// Runs `act`. If it fails or panics, stores the error at `errptr` and returns `default`.
///
/// # Safety
/// `errptr` is what [`ErrPtr`] says.
pub unsafe fn guard<T>(errptr: ErrPtr, default: T, act: impl FnOnce() -> sateen::Result<T>) -> T {
    // The engine itself reports at the next call what a panic left incomplete.
    let message = match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => status(&error),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            format!("Aborted: a panic: {}", text.unwrap_or("without a message"))
        }
    };
    // SAFETY: the caller's promise.
    unsafe { set_error(errptr, &message) };
    default
}

/// Does the same as [`guard`] for functions that cannot report an error.
pub fn quiet<T>(default: T, act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or(default)
}

/// Moves `value` into memory whose address C gets.
pub fn give<T: 'static>(value: T) -> *mut T {
    let handle = Box::into_raw(Box::new(value));
    given(handle);
    handle
}

/// Takes back a value of [`give`]. Returns `None` if the handle is null, was taken back before, or
/// belongs to another type.
///
/// # Safety
/// `handle` is null or from [`give`], and is not used again.
pub unsafe fn take<T: 'static>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: the caller's promise; only what C has is taken back, and once.
    (!handle.is_null() && taken_back(handle)).then(|| unsafe { Box::from_raw(handle) })
}

/// Frees a value of [`give`]. Does nothing for null and for a freed handle.
///
/// # Safety
/// As [`take`].
pub unsafe fn free<T: 'static>(handle: *mut T) {
    // SAFETY: the caller's promise. A panic in what it owns must not reach C.
    let handle = unsafe { take(handle) };
    quiet((), || drop(handle));
}

/// Returns the error for a missing argument.
#[must_use]
pub fn missing(what: &str) -> Error {
    Error::InvalidArgument(format!("{what} is null"))
}

/// Frees memory that a function of this library returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_free(pointer: *mut std::ffi::c_void) {
    // SAFETY: it is null or from `malloc`.
    unsafe { libc::free(pointer) };
}
