//! A database of another store, to be read from end to end.
#![expect(unsafe_code, reason = "calls to C functions")]

use std::ffi::{c_char, c_uchar};
use std::marker::PhantomData;

use crate::error::explain;
use crate::library::{ErrorSlot, Free, Handle, bytes, call, functions};
use crate::{Error, Result};

/// The column family that every database has, and LevelDB's only one.
pub const DEFAULT_FAMILY: &str = "default";

/// A database of another store that is open for reading.
pub trait Source {
    /// The names of its column families: bytes, as they are there.
    fn families(&self) -> &[Vec<u8>];

    /// About how many keys the column family of this place in [`Source::families`] has, if the
    /// store knows.
    fn keys_estimated(&self, family: usize) -> Option<u64>;

    /// Goes through a column family in the order of its keys, from the first on.
    ///
    /// # Errors
    /// What the store says.
    fn cursor(&self, family: usize) -> Result<Cursor<'_>>;
}

functions! {
    /// An iterator's functions, which RocksDB and LevelDB have with the same signatures.
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

/// Goes through keys in order. Ask [`Cursor::entry`], move, and ask again; at the end
/// [`Cursor::status`] tells whether it is one.
pub struct Cursor<'a> {
    api: &'a Iterating,
    iterator: Handle,
    /// What the iterator was told is freed after it.
    options: (Handle, Free),
    of: PhantomData<&'a ()>,
}

impl<'a> Cursor<'a> {
    /// Takes over an iterator and the read options that it was made with.
    ///
    /// # Safety
    /// The iterator is one of `api`, which nobody else has and which may be used for `'a`; the
    /// options are freed by the function beside them.
    pub(crate) unsafe fn new(
        api: &'a Iterating,
        iterator: Handle,
        options: (Handle, Free),
    ) -> Cursor<'a> {
        // SAFETY: as the caller promises.
        unsafe { (api.iter_seek_to_first)(iterator) };
        Cursor { api, iterator, options, of: PhantomData }
    }

    /// The key and the value that it stands at; `None` at the end, and after an error.
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

    /// Moves to the next key, if it stands at one.
    pub fn advance(&mut self) {
        // SAFETY: an iterator that is not valid must not be moved.
        unsafe {
            if (self.api.iter_valid)(self.iterator) != 0 {
                (self.api.iter_next)(self.iterator);
            }
        }
    }

    /// Whether all went well so far.
    ///
    /// # Errors
    /// What the store says.
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
