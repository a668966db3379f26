//! Databases whose values expire.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use sateen::Options;

use crate::abi::{ErrPtr, give, guard, missing, text};
use crate::database::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::environment::Place;
use crate::families::{Wanted, open, wanted};
use crate::options::rocksdb_options_t;
use crate::promises::promised;

/// Returns `options` with values that expire after `seconds`; never if that is not above 0.
fn with_ttl(mut options: Options, seconds: c_int) -> Options {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    options.column_family.ttl = Some(Duration::from_secs(seconds));
    options
}

/// Opens a database whose values expire after `ttl` seconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_with_ttl(
    options: *const rocksdb_options_t,
    path: *const c_char,
    ttl: c_int,
    errptr: ErrPtr,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, std::ptr::null_mut(), || {
            let place = Place::new(options, path);
            let open = with_ttl(promised(options)?, ttl);
            let db = Wanted::default_only(&open).open(&place, &open, false)?;
            Ok(rocksdb_t::opened(db, options))
        })
    }
}

/// Opens a database and its column families, as `rocksdb_open_column_families` does. The values of
/// each family expire after the seconds in `ttls`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_column_families_with_ttl(
    options: *const rocksdb_options_t,
    path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    ttls: *const c_int,
    errptr: ErrPtr,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, std::ptr::null_mut(), || {
            let check = |options| promised(options);
            let mut wanted = wanted(count, names, family_options, check)?;
            if ttls.is_null() {
                return Err(missing("the list of lifetimes"));
            }
            for (nth, options) in wanted.options.iter_mut().enumerate() {
                *options = with_ttl(options.clone(), *ttls.add(nth));
            }
            open(options, path, wanted, handles, None)
        })
    }
}

/// Creates a column family whose values expire after `ttl` seconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_family_with_ttl(
    db: *mut rocksdb_t,
    options: *const rocksdb_options_t,
    name: *const c_char,
    ttl: c_int,
    errptr: ErrPtr,
) -> *mut rocksdb_column_family_handle_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, std::ptr::null_mut(), || {
            let db = db.as_ref().ok_or_else(|| missing("the database"))?;
            let own = with_ttl(promised(options)?, ttl).column_family;
            let family = db.db.create_column_family(&text(name), own)?;
            db.smallest_values.note(family.name(), options);
            Ok(give(rocksdb_column_family_handle_t(family)))
        })
    }
}
