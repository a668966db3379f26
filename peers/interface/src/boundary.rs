//! Pointers, errors and panics between C and a [`Store`].

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Result;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Returns the text of the thread's last error.
#[must_use]
pub fn error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// Stores the text of an error.
#[cold]
fn fails(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    ERROR.with_borrow_mut(|error| *error = text);
}

/// Makes a call, and stores its error. A panic is an error.
fn outcome<T>(call: impl FnOnce() -> Result<T>) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(format!("the store panicked: {}", text.unwrap_or_default()))
    });
    match done {
        Ok(value) => Some(value),
        Err(error) => {
            fails(&error);
            None
        }
    }
}

fn status(done: Option<()>) -> c_int {
    if done.is_some() { 0 } else { -1 }
}

/// What the C functions do. Each is unsafe because its pointers must be as the header says.
#[allow(clippy::missing_safety_doc, reason = "the header says what the pointers must be")]
pub mod calls {
    use std::ffi::c_void;
    use std::path::Path;

    use super::{CStr, c_char, c_int, outcome, status};
    use crate::{Figures, Pair, Settings, Store};

    /// `sateen_peer_entry`.
    #[repr(C)]
    pub struct EntryInC {
        key: *const u8,
        key_length: usize,
        value: *const u8,
        value_length: usize,
    }

    /// `sateen_peer_change`.
    #[repr(C)]
    pub struct ChangeInC {
        entry: EntryInC,
        is_delete: c_int,
    }

    /// An open cursor. The entries are those from its last seek.
    struct Cursor<S: Store> {
        store: *const S,
        entries: Option<S::Entries>,
        at: Option<S::Pair>,
    }

    /// Returns the bytes at a pointer.
    unsafe fn bytes<'a>(data: *const u8, length: usize) -> &'a [u8] {
        if length == 0 {
            return &[];
        }
        // SAFETY: the caller passes this many readable bytes.
        unsafe { std::slice::from_raw_parts(data, length) }
    }

    /// Returns the database of a handle.
    unsafe fn of<'a, S: Store>(db: *mut c_void) -> &'a S {
        // SAFETY: the handle is that of `open`, and is not closed during the call.
        unsafe { &*db.cast::<S>() }
    }

    pub unsafe fn open<S: Store>(directory: *const c_char, settings: *const c_char) -> *mut c_void {
        let opened = outcome(|| {
            // SAFETY: the texts end in NUL.
            let (directory, settings) =
                unsafe { (CStr::from_ptr(directory), CStr::from_ptr(settings)) };
            let settings = settings.to_str().map_err(|_| "the settings are not UTF-8")?;
            // SAFETY: the bytes are those of a path on this system.
            let path =
                unsafe { std::ffi::OsStr::from_encoded_bytes_unchecked(directory.to_bytes()) };
            S::open(Path::new(path), &mut Settings::parse(settings)?)
        });
        opened.map_or(std::ptr::null_mut(), |store| Box::into_raw(Box::new(store)).cast())
    }

    pub unsafe fn close<S: Store>(db: *mut c_void) -> c_int {
        // SAFETY: the handle is that of `open` and is not used again.
        let store = unsafe { Box::from_raw(db.cast::<S>()) };
        status(outcome(|| store.close()))
    }

    pub unsafe fn put<S: Store>(
        db: *mut c_void,
        key: *const u8,
        key_length: usize,
        value: *const u8,
        value_length: usize,
        sync: c_int,
    ) -> c_int {
        // SAFETY: the caller's pointers.
        let (store, key, value) =
            unsafe { (of::<S>(db), bytes(key, key_length), bytes(value, value_length)) };
        status(outcome(|| store.put(key, value, sync != 0)))
    }

    pub unsafe fn delete<S: Store>(
        db: *mut c_void,
        key: *const u8,
        key_length: usize,
        sync: c_int,
    ) -> c_int {
        // SAFETY: the caller's pointers.
        let (store, key) = unsafe { (of::<S>(db), bytes(key, key_length)) };
        status(outcome(|| store.delete(key, sync != 0)))
    }

    pub unsafe fn write<S: Store>(
        db: *mut c_void,
        changes: *const ChangeInC,
        count: usize,
        sync: c_int,
    ) -> c_int {
        if count == 0 {
            return 0;
        }
        // SAFETY: the caller's pointers.
        let (store, changes) = unsafe { (of::<S>(db), std::slice::from_raw_parts(changes, count)) };
        let mut each = changes.iter().map(|change| {
            let entry = &change.entry;
            // SAFETY: the caller's pointers.
            let (key, value) = unsafe {
                (bytes(entry.key, entry.key_length), bytes(entry.value, entry.value_length))
            };
            (key, (change.is_delete == 0).then_some(value))
        });
        status(outcome(|| store.write(&mut each, sync != 0)))
    }

    pub unsafe fn get<S: Store>(
        db: *mut c_void,
        key: *const u8,
        key_length: usize,
        buffer: *mut u8,
        capacity: usize,
        length: *mut usize,
    ) -> c_int {
        // SAFETY: the caller's pointers.
        let (store, key) = unsafe { (of::<S>(db), bytes(key, key_length)) };
        let mut is_found = false;
        let done = outcome(|| {
            store.get(key, &mut |value| {
                is_found = true;
                // SAFETY: the caller's pointers; the buffer has this much room.
                unsafe {
                    *length = value.len();
                    if value.len() <= capacity {
                        std::ptr::copy_nonoverlapping(value.as_ptr(), buffer, value.len());
                    }
                }
            })
        });
        if done.is_some() { c_int::from(is_found) } else { -1 }
    }

    pub unsafe fn cursor_open<S: Store>(db: *mut c_void) -> *mut c_void {
        let cursor = Cursor::<S> { store: db.cast(), entries: None, at: None };
        Box::into_raw(Box::new(cursor)).cast()
    }

    pub unsafe fn cursor_seek<S: Store>(
        cursor: *mut c_void,
        key: *const u8,
        key_length: usize,
        entry: *mut EntryInC,
    ) -> c_int {
        // SAFETY: the caller's pointers; one thread uses the cursor at a time.
        let (at, key) = unsafe { (&mut *cursor.cast::<Cursor<S>>(), bytes(key, key_length)) };
        let done = outcome(|| {
            at.at = None;
            at.entries = None;
            // SAFETY: the database outlives the cursor.
            at.entries = Some(unsafe { &*at.store }.entries(key)?);
            Ok(())
        });
        if done.is_none() {
            return -1;
        }
        // SAFETY: as for this function.
        unsafe { cursor_next::<S>(cursor, entry) }
    }

    pub unsafe fn cursor_next<S: Store>(cursor: *mut c_void, entry: *mut EntryInC) -> c_int {
        // SAFETY: as for a seek.
        let cursor = unsafe { &mut *cursor.cast::<Cursor<S>>() };
        let next = outcome(|| cursor.entries.as_mut().and_then(Iterator::next).transpose());
        let Some(next) = next else { return -1 };
        cursor.at = next;
        let Some(pair) = &cursor.at else { return 0 };
        let (key, value) = (pair.key(), pair.value());
        let (key_length, value_length) = (key.len(), value.len());
        // SAFETY: the caller's pointer.
        unsafe {
            *entry =
                EntryInC { key: key.as_ptr(), key_length, value: value.as_ptr(), value_length };
        }
        1
    }

    pub unsafe fn cursor_close<S: Store>(cursor: *mut c_void) {
        // SAFETY: the cursor is that of `cursor_open` and is not used again.
        let cursor = unsafe { Box::from_raw(cursor.cast::<Cursor<S>>()) };
        let _nothing_to_tell = outcome(|| {
            drop(cursor);
            Ok(())
        });
    }

    pub unsafe fn flush<S: Store>(db: *mut c_void) -> c_int {
        // SAFETY: the caller's handle.
        let store = unsafe { of::<S>(db) };
        status(outcome(|| store.flush()))
    }

    pub unsafe fn wait_idle<S: Store>(db: *mut c_void) -> c_int {
        // SAFETY: the caller's handle.
        let store = unsafe { of::<S>(db) };
        status(outcome(|| store.wait_idle()))
    }

    pub unsafe fn counters<S: Store>(db: *mut c_void, figures: *mut Figures) -> c_int {
        // SAFETY: the caller's pointers.
        let (store, figures) = unsafe { (of::<S>(db), &mut *figures) };
        status(outcome(|| {
            store.count(figures);
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_panics_are_told_on_their_thread() {
        let last = || {
            // SAFETY: the text is valid until the next call.
            unsafe { CStr::from_ptr(error()) }.to_str().unwrap().to_owned()
        };
        assert_eq!(outcome(|| Ok(1)), Some(1));
        assert_eq!(outcome::<()>(|| Err("a\0b".to_owned())), None);
        assert_eq!(last(), "a b");
        assert_eq!(outcome::<()>(|| panic!("number {}", 7)), None);
        assert_eq!(last(), "the store panicked: number 7");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(last(), "");
            });
        });
    }
}
