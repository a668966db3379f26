//! Secondaries, which follow another process's database.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use crate::abi::{ErrPtr, guard};
use crate::database::{rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::environment::Place;
use crate::families::{give_handles, wanted};
use crate::options::checked;
use crate::options::rocksdb_options_t;

/// Opens a database for reading beside its primary. Nothing is written, so no `secondary_path` is
/// needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_as_secondary(
    options: *const rocksdb_options_t,
    path: *const c_char,
    _secondary_path: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, null_mut(), || {
            let db = Place::new(options, path).open_secondary(checked(options)?, &[])?;
            Ok(rocksdb_t::opened(db, options))
        })
    }
}

/// Does the same and returns handles of column families.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_as_secondary_column_families(
    options: *const rocksdb_options_t,
    path: *const c_char,
    _secondary_path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: ErrPtr,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, null_mut(), || {
            let wanted = wanted(count, names, family_options, |options| checked(options))?;
            let db = wanted.open_secondary(&Place::new(options, path), &checked(options)?)?;
            give_handles(&db, wanted.names(), handles)?;
            Ok(rocksdb_t::opened(db, options))
        })
    }
}

/// Applies what the primary has written since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_try_catch_up_with_primary(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the module.
    unsafe { guard(errptr, (), || the(db)?.try_catch_up_with_primary().map(drop)) };
}
