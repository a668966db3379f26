//! The databases of other stores, which are read from the first key to the last.
#![expect(unsafe_code, reason = "calls to C functions")]

use std::ffi::{c_char, c_uchar};
use std::marker::PhantomData;

use crate::error::explain;
use crate::library::{ErrorSlot, Free, Handle, bytes, call, functions};
use crate::{Error, Result};

/// The column family that every database has. It is LevelDB's only one.
pub const DEFAULT_FAMILY: &str = "default";

/// A database of another store that is open for reading.
pub trait Source {
    /// The names of its column families, as the store has them: any bytes.
    fn families(&self) -> &[Vec<u8>];

    /// The estimated number of keys in the column family at this index of [`Source::families`], if
    /// the store gives one.
    fn keys_estimated(&self, family: usize) -> Option<u64>;

    /// Returns a cursor at the first key of a column family.
    ///
    /// # Errors
    /// The error of the store.
    fn cursor(&self, family: usize) -> Result<Cursor<'_>>;
}

functions! {
    /// The functions of an iterator, which have the same signatures in RocksDB and LevelDB.
    pub(crate) struct Iterating {
        required {
            iter_seek_to_first: Free,
            iter_next: Free,
            iter_valid: unsafe extern "C" fn(Handle) -> c_uchar,
            iter_key: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
            iter_value: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
            iter_get_error: unsafe extern "C" fn(Handle, ErrorSlot),
            iter_destroy: Free,
            free: Free,
        }
        optional {}
    }
}

/// Visits keys in order: read [`Cursor::entry`], advance, and repeat. When there is no entry,
/// [`Cursor::status`] tells the end from an error.
pub struct Cursor<'a> {
    api: &'a Iterating,
    iterator: Handle,
    /// The read options, which are freed after the iterator.
    options: (Handle, Free),
    of: PhantomData<&'a ()>,
}

impl<'a> Cursor<'a> {
    /// Takes over an iterator and the read options that it was made with.
    ///
    /// # Safety
    /// The iterator belongs to `api`, has no other owner and may be used for `'a`. The function
    /// beside the options frees them.
    pub(crate) unsafe fn new(
        api: &'a Iterating,
        iterator: Handle,
        options: (Handle, Free),
    ) -> Cursor<'a> {
        // SAFETY: as the caller promises.
        unsafe { (api.iter_seek_to_first)(iterator) };
        Cursor { api, iterator, options, of: PhantomData }
    }

    /// The key and value at the cursor; `None` at the end and after an error.
    #[must_use]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        let (mut key_bytes, mut value_bytes) = (0, 0);
        // SAFETY: key and value are asked for while the iterator is valid; they stay until it
        // moves, for which it is borrowed mutably.
        unsafe {
            if (self.api.iter_valid)(self.iterator) == 0 {
                return None;
            }
            let key = (self.api.iter_key)(self.iterator, &mut key_bytes);
            let value = (self.api.iter_value)(self.iterator, &mut value_bytes);
            Some((bytes(key, key_bytes), bytes(value, value_bytes)))
        }
    }

    /// Moves to the next key. Does nothing at the end.
    pub fn advance(&mut self) {
        // SAFETY: an iterator that is not valid must not be moved.
        unsafe {
            if (self.api.iter_valid)(self.iterator) != 0 {
                (self.api.iter_next)(self.iterator);
            }
        }
    }

    /// Returns the error that ended the reading, if there is one.
    ///
    /// # Errors
    /// The error of the store.
    pub fn status(&self) -> Result<()> {
        // SAFETY: the iterator is there; its error is a text to be freed.
        unsafe {
            call(self.api.free, |error| (self.api.iter_get_error)(self.iterator, error))
                .map_err(|error| Error::Failed(format!("{error}{}", explain(&error))))
        }
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: both are freed once, and not used again.
        unsafe {
            (self.api.iter_destroy)(self.iterator);
            (self.options.1)(self.options.0);
        }
    }
}
