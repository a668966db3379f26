//! Background work: waiting for it, pausing it, and what it leaves.

use std::ffi::{c_char, c_uchar};
use std::ptr::null_mut;
use std::time::Duration;

use sateen::WaitForCompactOptions;

use crate::abi::{ErrPtr, bytes, free, give, guard, malloc_copy, optional_bytes, quiet};
use crate::calls::rocksdb_readoptions_t;
use crate::database::{of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::promises::read_options;

type Family = rocksdb_column_family_handle_t;

/// How to wait.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
#[derive(Default)]
pub struct rocksdb_wait_for_compact_options_t {
    options: WaitForCompactOptions,
    wait_for_purge: bool,
}

/// As long as it takes, and no more than wait.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wait_for_compact_options_create()
-> *mut rocksdb_wait_for_compact_options_t {
    give(rocksdb_wait_for_compact_options_t::default())
}

/// Frees them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wait_for_compact_options_destroy(
    options: *mut rocksdb_wait_for_compact_options_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(options) };
}

macro_rules! flags {
    ($($(#[$doc:meta])* $set:ident $get:ident $($field:ident).+;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(
            options: *mut rocksdb_wait_for_compact_options_t,
            value: c_uchar,
        ) {
            // SAFETY: the contract of the crate.
            if let Some(options) = unsafe { options.as_mut() } {
                options.$($field).+ = value != 0;
            }
        }

        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(
            options: *mut rocksdb_wait_for_compact_options_t,
        ) -> c_uchar {
            // SAFETY: the contract of the crate.
            unsafe { options.as_ref() }.map_or(0, |options| options.$($field).+.into())
        }
    )* };
}

flags! {
    /// What is in memory is stored first.
    rocksdb_wait_for_compact_options_set_flush rocksdb_wait_for_compact_options_get_flush
        options.flush;
    /// The database is closed afterwards.
    rocksdb_wait_for_compact_options_set_close_db rocksdb_wait_for_compact_options_get_close_db
        options.close;
    /// Waiting fails while background work is paused.
    rocksdb_wait_for_compact_options_set_abort_on_pause
        rocksdb_wait_for_compact_options_get_abort_on_pause options.abort_on_pause;
    /// Kept: what can be given back is waited for anyway.
    rocksdb_wait_for_compact_options_set_wait_for_purge
        rocksdb_wait_for_compact_options_get_wait_for_purge wait_for_purge;
}

/// So many microseconds at most; 0: as long as it takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wait_for_compact_options_set_timeout(
    options: *mut rocksdb_wait_for_compact_options_t,
    microseconds: u64,
) {
    // SAFETY: the contract of the crate.
    if let Some(options) = unsafe { options.as_mut() } {
        let timeout = Duration::from_micros(microseconds);
        options.options.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    }
}

/// The microseconds; 0: as long as it takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wait_for_compact_options_get_timeout(
    options: *mut rocksdb_wait_for_compact_options_t,
) -> u64 {
    // SAFETY: the contract of the crate.
    let timeout = unsafe { options.as_ref() }.and_then(|options| options.options.timeout);
    timeout.map_or(0, |timeout| u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX))
}

/// Returns when there is no flush or compaction left to do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wait_for_compact(
    db: *mut rocksdb_t,
    options: *mut rocksdb_wait_for_compact_options_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let options = options.as_ref().map_or_else(Default::default, |it| it.options);
            the(db)?.wait_for_compact(&options)
        });
    }
}

/// No flush or compaction starts or goes on until as many calls of
/// `rocksdb_continue_background_work`. Returns when none is at work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pause_background_work(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || the(db)?.pause_background_work()) };
}

/// Ends one `rocksdb_pause_background_work`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_continue_background_work(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || the(db)?.continue_background_work()) };
}

/// Compactions by hand are refused, and end, until as many calls of the function that enables them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_disable_manual_compaction(db: *mut rocksdb_t) {
    // SAFETY: the contract of the crate.
    quiet((), || unsafe { the(db) }.map_or((), |db| db.pause_manual_compactions()));
}

/// They are possible again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_enable_manual_compaction(db: *mut rocksdb_t) {
    // SAFETY: the contract of the crate.
    quiet((), || unsafe { the(db) }.map_or((), |db| db.resume_manual_compactions()));
}

/// Files of tables stay when they are not needed any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_disable_file_deletions(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || the(db).map(|db| db.disable_file_deletions())) };
}

/// Ends all calls of [`rocksdb_disable_file_deletions`].
///
/// # Safety
/// The contract of the crate.
pub(crate) unsafe fn enable_all_file_deletions(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || the(db).map(|db| db.enable_all_file_deletions())) };
}

/// They go again.
#[cfg_attr(not(abi_below_9), unsafe(no_mangle))]
pub unsafe extern "C" fn rocksdb_enable_file_deletions(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || the(db).map(|db| db.enable_file_deletions())) };
}

/// Drops the tables below level 0 that have nothing but keys from `begin` to `end`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_delete_file_in_range(
    db: *mut rocksdb_t,
    begin: *const c_char,
    begin_length: usize,
    end: *const c_char,
    end_length: usize,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let family = null_mut();
        rocksdb_delete_file_in_range_cf(db, family, begin, begin_length, end, end_length, errptr);
    }
}

/// The same in a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_delete_file_in_range_cf(
    db: *mut rocksdb_t,
    family: *mut Family,
    begin: *const c_char,
    begin_length: usize,
    end: *const c_char,
    end_length: usize,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let db = the(db)?;
            let begin = optional_bytes(begin, begin_length);
            let end = optional_bytes(end, end_length);
            db.delete_files_in_range(&of(db, family), begin, end)
        });
    }
}

/// What tells this database from all others, to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_db_identity(
    db: *mut rocksdb_t,
    length: *mut usize,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let identity = quiet(None, || Some(the(db).ok()?.identity()));
        if let Some(length) = length.as_mut() {
            *length = identity.as_ref().map_or(0, String::len);
        }
        identity.map_or(null_mut(), |identity| malloc_copy(identity.as_bytes()))
    }
}

/// 0 if the key is not there for sure. If its value is asked for and is in memory, it is given, to
/// be freed, and `value_found` says so; an empty one if the key is not there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_key_may_exist(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
    timestamp: *const c_char,
    timestamp_length: usize,
    value_found: *mut c_uchar,
) -> c_uchar {
    let family = null_mut();
    // SAFETY: the contract of the crate.
    unsafe {
        rocksdb_key_may_exist_cf(
            db,
            options,
            family,
            key,
            key_length,
            value,
            value_length,
            timestamp,
            timestamp_length,
            value_found,
        )
    }
}

/// The same in a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_key_may_exist_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
    _timestamp: *const c_char,
    _timestamp_length: usize,
    value_found: *mut c_uchar,
) -> c_uchar {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(value_found) = value_found.as_mut() {
            *value_found = 0;
        }
        // What cannot be told may be.
        quiet(1, || {
            let Ok(db) = the(db) else { return 0 };
            let Ok(options) = read_options(options) else { return 1 };
            let key = bytes(key, key_length);
            let family = of(db, family);
            let may = db.may_contain(&family, key, &options).unwrap_or(true);
            let (Some(value_found), Some(value)) = (value_found.as_mut(), value.as_mut()) else {
                return may.into();
            };
            let give = |found: &[u8], value: &mut *mut c_char, value_found: &mut c_uchar| {
                *value = malloc_copy(found);
                *value_found = c_uchar::from(!value.is_null());
                if let Some(length) = value_length.as_mut() {
                    *length = found.len();
                }
            };
            if !may {
                // As in RocksDB: that there is none is known, and nothing is its value.
                give(&[], value, value_found);
            } else if db.has_in_memory(&family, key, &options).unwrap_or(false)
                && let Ok(Some(found)) = db.get_pinned_cf(&family, key, &options)
            {
                give(&found, value, value_found);
            }
            may.into()
        })
    }
}
