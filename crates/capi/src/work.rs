//! Background work: waiting for it, pausing it, and its results.

use std::ffi::{c_char, c_uchar};
use std::ptr::null_mut;
use std::time::Duration;

use sateen::WaitForCompactOptions;

use crate::abi::{ErrPtr, bytes, free, give, guard, malloc_copy, optional_bytes, quiet};
use crate::calls::rocksdb_readoptions_t;
use crate::database::{DEFAULT, check_untimed, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::promises::read_options;

type Family = rocksdb_column_family_handle_t;

/// Options of waiting.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
#[derive(Default)]
pub struct rocksdb_wait_for_compact_options_t {
    options: WaitForCompactOptions,
    wait_for_purge: bool,
}

/// Makes options that wait without a limit and do nothing else.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wait_for_compact_options_create()
-> *mut rocksdb_wait_for_compact_options_t {
    give(rocksdb_wait_for_compact_options_t::default())
}

/// Frees options.
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
    /// Flushes the memtables first.
    rocksdb_wait_for_compact_options_set_flush rocksdb_wait_for_compact_options_get_flush
        options.flush;
    /// Closes the database afterwards.
    rocksdb_wait_for_compact_options_set_close_db rocksdb_wait_for_compact_options_get_close_db
        options.close;
    /// Makes waiting fail while background work is paused.
    rocksdb_wait_for_compact_options_set_abort_on_pause
        rocksdb_wait_for_compact_options_get_abort_on_pause options.abort_on_pause;
    /// Stored for its getter. Waiting includes the freeing of obsolete files anyway.
    rocksdb_wait_for_compact_options_set_wait_for_purge
        rocksdb_wait_for_compact_options_get_wait_for_purge wait_for_purge;
}

/// Sets the limit in microseconds; 0 for none.
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

/// Returns the limit in microseconds; 0 for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wait_for_compact_options_get_timeout(
    options: *mut rocksdb_wait_for_compact_options_t,
) -> u64 {
    // SAFETY: the contract of the crate.
    let timeout = unsafe { options.as_ref() }.and_then(|options| options.options.timeout);
    timeout.map_or(0, |timeout| u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX))
}

/// Returns when no flush or compaction is left.
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

/// Pauses flushes and compactions until `rocksdb_continue_background_work` is called as often.
/// Returns when none is running.
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

/// Refuses and ends manual compactions until the function that enables them is called as often.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_disable_manual_compaction(db: *mut rocksdb_t) {
    // SAFETY: the contract of the crate.
    quiet((), || unsafe { the(db) }.map_or((), |db| db.pause_manual_compactions()));
}

/// Ends one `rocksdb_disable_manual_compaction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_enable_manual_compaction(db: *mut rocksdb_t) {
    // SAFETY: the contract of the crate.
    quiet((), || unsafe { the(db) }.map_or((), |db| db.resume_manual_compactions()));
}

/// Discards all compactions, and lets none start until the function that resumes them is called as
/// often. Returns when none is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_abort_all_compactions(db: *mut rocksdb_t) {
    // SAFETY: the contract of the crate.
    quiet((), || unsafe { the(db) }.and_then(|db| db.stop_compactions()).unwrap_or_default());
}

/// Ends one `rocksdb_abort_all_compactions`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_resume_all_compactions(db: *mut rocksdb_t) {
    // SAFETY: the contract of the crate.
    quiet((), || unsafe { the(db) }.and_then(|db| db.resume_compactions()).unwrap_or_default());
}

/// Keeps obsolete table files until file deletions are enabled.
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

/// Ends one `rocksdb_disable_file_deletions`.
#[cfg_attr(not(abi_below_9), unsafe(no_mangle))]
pub unsafe extern "C" fn rocksdb_enable_file_deletions(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || the(db).map(|db| db.enable_file_deletions())) };
}

/// Drops the tables below level 0 whose keys are all from `begin` to `end`.
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
        let family = DEFAULT;
        rocksdb_delete_file_in_range_cf(db, family, begin, begin_length, end, end_length, errptr);
    }
}

/// Does the same in a column family.
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
            let family = of(db, family)?;
            check_untimed(&family)?;
            family.delete_files_in_range(begin, end)
        });
    }
}

/// Returns the identity of this database, to be freed.
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

/// Returns 0 if the key certainly does not exist. If the caller asks for the value and it is in
/// memory, stores it, to be freed, and sets `value_found`. The value of a missing key is empty.
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
    let family = DEFAULT;
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

/// Does the same in a column family.
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
        // A key that cannot be checked may exist.
        quiet(1, || {
            let Ok(db) = the(db) else { return 0 };
            let given = options;
            let Ok(options) = read_options(options) else { return 1 };
            let (Ok(key), Ok(family)) = (bytes(key, key_length), of(db, family)) else { return 1 };
            if family.comparator().timestamp_bytes() > 0 {
                let found = crate::timestamps::value(&family, given, key);
                return found.map_or(1, |found| found.is_some().into());
            }
            let may = family.reading(&options).may_contain(key).unwrap_or(true);
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
                // As in RocksDB, a key that certainly does not exist has a known, empty value.
                give(&[], value, value_found);
            } else if family.reading(&options).has_in_memory(key).unwrap_or(false)
                && let Ok(Some(found)) = family.reading(&options).get_pinned(key)
            {
                give(&found, value, value_found);
            }
            may.into()
        })
    }
}
