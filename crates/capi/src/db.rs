//! Databases: opening, reading and writing.

use std::ffi::{c_char, c_uchar};
use std::ptr::null_mut;

use sateen::{Db, PinnedSlice, WriteOptions, shown};

use crate::abi::{
    ErrPtr, byte_strings, bytes, free, give, guard, lend, malloc_copy, missing, quiet, status, take,
};
use crate::batch::rocksdb_writebatch_t;
use crate::calls::{rocksdb_readoptions_t, rocksdb_writeoptions_t};
use crate::database::{DEFAULT, check_untimed, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::environment::Place;
use crate::families::Wanted;
use crate::handles::{Graveyard, closed_database};
use crate::options::{checked, rocksdb_options_t};
use crate::promises::{check_log, check_write, promised};
use crate::timestamps::{value, values_of};

type Family = rocksdb_column_family_handle_t;

/// Returns the options of a write, if their promises are kept.
pub(crate) unsafe fn write_options(
    options: *const rocksdb_writeoptions_t,
) -> sateen::Result<WriteOptions> {
    // SAFETY: the contract of the module.
    let options = unsafe { options.as_ref() }.ok_or_else(|| missing("the write options"))?;
    check_write(options)?;
    Ok(options.0.clone())
}

/// Opens a database that has the default column family alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open(
    options: *const rocksdb_options_t,
    path: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, null_mut(), || Ok(rocksdb_t::opened(open_default(options, path)?, options)))
    }
}

/// Opens a database that has the default column family alone.
pub(crate) unsafe fn open_default(
    options: *const rocksdb_options_t,
    path: *const c_char,
) -> sateen::Result<Db> {
    // SAFETY: the contract of the module.
    unsafe {
        let place = Place::new(options, path);
        let open = promised(options)?;
        Wanted::default_only(&open).open(&place, &open, false)
    }
}

/// Opens a database for reading only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_for_read_only(
    options: *const rocksdb_options_t,
    path: *const c_char,
    error_if_wal_file_exists: c_uchar,
    errptr: ErrPtr,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, null_mut(), || {
            let place = Place::new(options, path);
            let db = place.open_read_only(checked(options)?, &[])?;
            check_log(&db, error_if_wal_file_exists)?;
            Ok(rocksdb_t::opened(db, options))
        })
    }
}

/// Closes a database. Later calls with this handle fail. Closing it again does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_close(db: *mut rocksdb_t) {
    static CLOSED: Graveyard<rocksdb_t> = Graveyard::new();
    // SAFETY: the contract of the module.
    unsafe { close_handle(db, |db| db, &CLOSED) };
}

/// Closes the database of a handle, which then belongs to `graveyard`.
pub(crate) unsafe fn close_handle<T: 'static>(
    handle: *mut T,
    base: fn(&mut T) -> &mut rocksdb_t,
    graveyard: &Graveyard<T>,
) {
    // SAFETY: the contract of the module.
    let Some(mut handle) = (unsafe { take(handle) }) else { return };
    let db = base(&mut handle);
    if db.db.is_of_parent_process() {
        // The database belongs to the parent process. Its threads may hold locks in this copy of
        // the memory.
        std::mem::forget(handle);
        return;
    }
    if let Some(counters) = &db.counters {
        quiet((), || counters.closes(&db.db));
    }
    let _nobody_to_tell = quiet(Ok(()), || db.db.close());
    quiet((), || {
        if let Some(closed) = closed_database() {
            let db = base(&mut handle);
            (db.db, db.counters) = (closed, None);
            graveyard.keep(handle);
        }
    });
}

/// Removes the files of the database at `path`, and the directory if it is empty then. Does nothing
/// if there is no database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_destroy_db(
    options: *const rocksdb_options_t,
    path: *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let place = Place::new(options, path);
            let options = checked(options)?;
            sateen::destroy_with(place.vfs.as_ref(), &place.path, &options).map(drop)
        });
    }
}

/// Repairs a damaged database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_repair_db(
    options: *const rocksdb_options_t,
    path: *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let place = Place::new(options, path);
            sateen::repair_with(place.vfs, place.path, &checked(options)?).map(drop)
        });
    }
}

macro_rules! writes {
    ($(
        $function:ident $of_family:ident ($($argument:ident $length:ident)*) $method:ident;
    )*) => { $(
        /// Writes to the default column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            $($argument: *const c_char, $length: usize,)*
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the module.
            unsafe { $of_family(db, options, DEFAULT, $($argument, $length,)* errptr) };
        }

        /// Writes to a column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            family: *mut Family,
            $($argument: *const c_char, $length: usize,)*
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the module.
            unsafe {
                guard(errptr, (), || {
                    let db = the(db)?;
                    let (options, family) = (write_options(options)?, of(db, family)?);
                    check_untimed(&family)?;
                    family.writing(&options).$method($(bytes($argument, $length)?),*)
                });
            }
        }
    )* };
}

writes! {
    rocksdb_put rocksdb_put_cf (key key_length value value_length) put;
    rocksdb_merge rocksdb_merge_cf (key key_length operand operand_length) merge;
    rocksdb_delete rocksdb_delete_cf (key key_length) delete;
    rocksdb_singledelete rocksdb_singledelete_cf (key key_length) single_delete;
}

/// Deletes all keys from `begin` (included) to `end` (excluded).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_delete_range_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    family: *mut Family,
    begin: *const c_char,
    begin_length: usize,
    end: *const c_char,
    end_length: usize,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let db = the(db)?;
            let (begin, end) = (bytes(begin, begin_length)?, bytes(end, end_length)?);
            let family = of(db, family)?;
            check_untimed(&family)?;
            family.writing(&write_options(options)?).delete_range(begin, end)
        });
    }
}

/// Applies a batch atomically.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    batch: *mut rocksdb_writebatch_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let batch = batch.as_ref().ok_or_else(|| missing("the batch"))?;
            let db = the(db)?;
            db.write_timestamped(batch.complete_for(db)?, &write_options(options)?)
        });
    }
}

/// Returns the value of a key, to be freed; null if the key does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_get_cf(db, options, DEFAULT, key, key_length, value_length, errptr) }
}

/// Returns the value of a key in a column family, to be freed; null if the key does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the module.
    unsafe {
        let found = guard(errptr, None, || {
            let db = the(db)?;
            let key = bytes(key, key_length)?;
            value(&of(db, family)?, options, key)
        });
        if let Some(length) = value_length.as_mut() {
            *length = found.as_ref().map_or(0, |value| value.len());
        }
        found.map_or(null_mut(), |value| malloc_copy(&value))
    }
}

/// A value that stays in memory until this handle is freed.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_pinnableslice_t(pub(crate) PinnedSlice);

/// Returns the value of a key without a copy; null if the key does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_pinned(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    errptr: ErrPtr,
) -> *mut rocksdb_pinnableslice_t {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_get_pinned_cf(db, options, DEFAULT, key, key_length, errptr) }
}

/// Returns the value of a key in a column family without a copy; null if the key does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_pinned_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    errptr: ErrPtr,
) -> *mut rocksdb_pinnableslice_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, null_mut(), || {
            let db = the(db)?;
            let key = bytes(key, key_length)?;
            let found = value(&of(db, family)?, options, key)?;
            Ok(found.map_or(null_mut(), |value| give(rocksdb_pinnableslice_t(value))))
        })
    }
}

/// Frees a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnableslice_destroy(value: *mut rocksdb_pinnableslice_t) {
    // SAFETY: the contract of the module.
    unsafe { free(value) };
}

/// Returns the bytes of a value; null and 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnableslice_value(
    value: *const rocksdb_pinnableslice_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    unsafe {
        let value = value.as_ref().map(|value| &*value.0);
        lend(value, length)
    }
}

/// Returns the values of many keys, each to be freed, and the error of each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    count: usize,
    keys: *const *const c_char,
    key_lengths: *const usize,
    values: *mut *mut c_char,
    value_lengths: *mut usize,
    errors: *mut *mut c_char,
) {
    let answer = |nth: usize, found: sateen::Result<Option<PinnedSlice>>| {
        let value = found.as_ref().ok().and_then(Option::as_ref);
        let error = found.as_ref().err().map(status);
        // SAFETY: the caller has room for as many answers as keys.
        unsafe {
            *value_lengths.add(nth) = value.map_or(0, |value| value.len());
            *values.add(nth) = value.map_or(null_mut(), |value| malloc_copy(value));
            *errors.add(nth) =
                error.map_or(null_mut(), |text| malloc_copy(shown(&text).as_bytes()));
        }
    };
    quiet((), || {
        // SAFETY: the contract of the module.
        let found = unsafe {
            the(db).and_then(|db| {
                let keys = byte_strings(count, keys, key_lengths)?;
                values_of(&db.default_column_family(), options, &keys)
            })
        };
        match found {
            Ok(found) => {
                found.into_iter().enumerate().for_each(|(nth, found)| answer(nth, found));
            }
            Err(error) => (0..count).for_each(|nth| answer(nth, Err(error.clone()))),
        }
    });
}
