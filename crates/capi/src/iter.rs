//! Iterators.

use std::ffi::{c_char, c_uchar};
use std::ptr::null;

use sateen::Iter;

use crate::abi::{ErrPtr, bytes, free, give, quiet, set_error, status};
use crate::calls::rocksdb_readoptions_t;
use crate::db::rocksdb_t;
use crate::families::rocksdb_column_family_handle_t;

/// An iterator, or why there is none.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_iterator_t(sateen::Result<Iter>);

/// An iterator over the default column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterator(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_create_iterator_cf(db, options, std::ptr::null_mut()) }
}

/// An iterator over a column family. What keeps it from being made it says itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterator_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_iterator_t {
    quiet(std::ptr::null_mut(), || {
        // SAFETY: the contract of the module.
        let (db, options, family) = unsafe { (db.as_ref(), options.as_ref(), family.as_ref()) };
        let Some(db) = db else { return std::ptr::null_mut() };
        let options = options.map(|options| options.0.clone()).unwrap_or_default();
        let opened = match family {
            Some(family) => db.db.iter_cf(&family.0, &options),
            None => db.db.iter(&options),
        };
        give(rocksdb_iterator_t(opened))
    })
}

/// Frees an iterator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_destroy(iter: *mut rocksdb_iterator_t) {
    // SAFETY: the contract of the module.
    unsafe { free(iter) };
}

/// Calls `act` with the iterator, if there is one.
unsafe fn with<T>(
    iter: *mut rocksdb_iterator_t,
    default: T,
    act: impl FnOnce(&mut Iter) -> T,
) -> T {
    // SAFETY: the contract of the module.
    match unsafe { iter.as_mut() }.map(|iter| &mut iter.0) {
        Some(Ok(iter)) => quiet(default, || act(iter)),
        _ => default,
    }
}

/// Whether it stands on a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_valid(iter: *const rocksdb_iterator_t) -> c_uchar {
    // SAFETY: the contract of the module.
    unsafe { with(iter.cast_mut(), 0, |iter| c_uchar::from(iter.valid())) }
}

macro_rules! moves {
    ($($(#[$doc:meta])* $function:ident($($key:ident)?) $method:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            iter: *mut rocksdb_iterator_t
            $(, $key: *const c_char, length: usize)?
        ) {
            // SAFETY: the contract of the module.
            unsafe { with(iter, (), |iter| iter.$method($(bytes($key, length))?)) };
        }
    )* };
}

moves! {
    /// To the first key.
    rocksdb_iter_seek_to_first() seek_to_first;
    /// To the last key.
    rocksdb_iter_seek_to_last() seek_to_last;
    /// To the first key at or after `key`.
    rocksdb_iter_seek(key) seek;
    /// To the last key at or before `key`.
    rocksdb_iter_seek_for_prev(key) seek_for_prev;
    /// To the next key.
    rocksdb_iter_next() next;
    /// To the key before.
    rocksdb_iter_prev() prev;
}

/// The bytes that `of` takes from the iterator, and their length.
unsafe fn shown(
    iter: *const rocksdb_iterator_t,
    length: *mut usize,
    of: impl FnOnce(&Iter) -> &[u8],
) -> *const c_char {
    // SAFETY: the contract of the module.
    let (data, bytes) = unsafe {
        with(iter.cast_mut(), (null(), 0), |iter| {
            let shown = of(iter);
            (shown.as_ptr().cast(), shown.len())
        })
    };
    // SAFETY: the contract of the module.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = bytes;
    }
    data
}

/// The key; lives until the next move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_key(
    iter: *const rocksdb_iterator_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    unsafe { shown(iter, length, Iter::key) }
}

/// The value; lives until the next move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_value(
    iter: *const rocksdb_iterator_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    unsafe { shown(iter, length, Iter::value) }
}

/// Why it is not valid, if that is not the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_get_error(iter: *const rocksdb_iterator_t, errptr: ErrPtr) {
    // SAFETY: the contract of the module.
    let error = match unsafe { iter.as_ref() }.map(|iter| &iter.0) {
        Some(Ok(iter)) => iter.status().err(),
        Some(Err(error)) => Some(error.clone()),
        None => None,
    };
    if let Some(error) = error {
        // SAFETY: the contract of the module.
        unsafe { set_error(errptr, &status(&error)) };
    }
}
