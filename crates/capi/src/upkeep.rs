//! Maintenance of a database: properties, flushes, compactions, options, checkpoints.

use std::ffi::{c_char, c_int, c_uchar};
use std::ptr::null_mut;

use sateen::{CompactRangeOptions, Db, Error, FlushOptions};

use crate::abi::{
    ErrPtr, count_of, free, give, guard, malloc_copy, missing, optional_bytes, quiet, set_error,
    status, text,
};
use crate::calls::{rocksdb_compactoptions_t, rocksdb_flushoptions_t};
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::odd_options::rocksdb_flushwaloptions_t;
use crate::settings::{Setting, Settings};
use crate::timestamps::before_compaction;

type Family = rocksdb_column_family_handle_t;

/// Returns the newest sequence number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_latest_sequence_number(db: *mut rocksdb_t) -> u64 {
    // SAFETY: the contract of the module.
    quiet(0, || unsafe { the(db) }.map_or(0, Db::latest_sequence_number))
}

/// Returns a property by name, to be freed; null if there is none of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_value(
    db: *mut rocksdb_t,
    name: *const c_char,
) -> *mut c_char {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_property_value_cf(db, DEFAULT, name) }
}

/// Returns a property of a column family by name, to be freed; null if there is none of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_value_cf(
    db: *mut rocksdb_t,
    family: *mut Family,
    name: *const c_char,
) -> *mut c_char {
    // SAFETY: the contract of the module.
    let value = quiet(None, || unsafe {
        let db = the(db).ok()?;
        of(db, family).ok()?.property(&text(name))
    });
    value.map_or(null_mut(), |value| malloc_copy(value.as_bytes()))
}

/// Stores a property that is a number. Returns 0 if it exists, otherwise -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_int(
    db: *mut rocksdb_t,
    name: *const c_char,
    value: *mut u64,
) -> c_int {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_property_int_cf(db, DEFAULT, name, value) }
}

/// Stores a property of a column family that is a number. Returns 0 if it exists, otherwise -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_int_cf(
    db: *mut rocksdb_t,
    family: *mut Family,
    name: *const c_char,
    value: *mut u64,
) -> c_int {
    // SAFETY: the contract of the module.
    let found = quiet(None, || unsafe {
        let db = the(db).ok()?;
        of(db, family).ok()?.property(&text(name))?.parse().ok()
    });
    // SAFETY: the contract of the module.
    match (found, unsafe { value.as_mut() }) {
        (Some(found), Some(value)) => {
            *value = found;
            0
        }
        _ => -1,
    }
}

/// Compacts a range of the default column family; null stands for its beginning or end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_range(
    db: *mut rocksdb_t,
    begin: *const c_char,
    begin_length: usize,
    end: *const c_char,
    end_length: usize,
) {
    let (family, options) = (DEFAULT, null_mut());
    // SAFETY: the contract of the module.
    unsafe {
        rocksdb_compact_range_cf_opt(db, family, options, begin, begin_length, end, end_length);
    }
}

/// Compacts a range of a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_range_cf(
    db: *mut rocksdb_t,
    family: *mut Family,
    begin: *const c_char,
    begin_length: usize,
    end: *const c_char,
    end_length: usize,
) {
    let options = null_mut();
    // SAFETY: the contract of the module.
    unsafe {
        rocksdb_compact_range_cf_opt(db, family, options, begin, begin_length, end, end_length);
    }
}

/// Compacts a range of the default column family with `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_range_opt(
    db: *mut rocksdb_t,
    options: *mut rocksdb_compactoptions_t,
    begin: *const c_char,
    begin_length: usize,
    end: *const c_char,
    end_length: usize,
) {
    let family = DEFAULT;
    // SAFETY: the contract of the module.
    unsafe {
        rocksdb_compact_range_cf_opt(db, family, options, begin, begin_length, end, end_length);
    }
}

/// Compacts a range of a column family with `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_range_cf_opt(
    db: *mut rocksdb_t,
    family: *mut Family,
    options: *mut rocksdb_compactoptions_t,
    begin: *const c_char,
    begin_length: usize,
    end: *const c_char,
    end_length: usize,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(null_mut(), (), || {
            let family = of(the(db)?, family)?;
            let begin = optional_bytes(begin, begin_length);
            let end = optional_bytes(end, end_length);
            let [begin, end] = before_compaction(&family, options.as_ref(), [begin, end])?;
            let options = options.as_ref().map(|options| options.0.clone()).unwrap_or_default();
            family.compact_range(begin.as_deref(), end.as_deref(), &options)
        });
    }
}

/// Flushes the default column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_flush_cf(db, options, DEFAULT, errptr) };
}

/// Returns the options of a flush. Checks the option for several column families, which are flushed
/// together if the database was opened with that option.
unsafe fn check_flush<'a>(
    db: &Db,
    options: *const rocksdb_flushoptions_t,
) -> sateen::Result<&'a rocksdb_flushoptions_t> {
    // SAFETY: the contract of the module.
    let options = unsafe { options.as_ref() }.ok_or_else(|| missing("the flush options"))?;
    let atomic = bool::get(&options.1, "force_atomic_flush");
    if atomic.unwrap_or(false) && !db.options().atomic_flush {
        let text = "force_atomic_flush=1 is not implemented without the option atomic_flush";
        return Err(Error::InvalidArgument(text.into()));
    }
    Ok(options)
}

/// Flushes a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    family: *mut Family,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let db = the(db)?;
            let options = check_flush(db, options)?;
            of(db, family)?.flush_with(&options.0)?;
            wait_for_listeners(db, &options.1);
            Ok(())
        });
    }
}

/// Waits for listeners, if the options of a flush say so.
fn wait_for_listeners(db: &Db, options: &Settings) {
    if c_uchar::get(options, "listener_wait").unwrap_or(0) != 0 {
        db.wait_for_listeners();
    }
}

/// Flushes several column families.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_cfs(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    families: *mut *mut Family,
    count: c_int,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let db = the(db)?;
            let options = check_flush(db, options)?;
            let wait = options.0.wait;
            let count = count_of(count);
            if count > 0 && families.is_null() {
                return Err(missing("the list of column families"));
            }
            let families = (0..count).map(|nth| of(db, *families.add(nth)));
            let families = families.collect::<sateen::Result<Vec<_>>>()?;
            // All flushes begin before the first wait.
            for wait in [false, true].into_iter().take(1 + usize::from(wait)) {
                let options = FlushOptions { wait };
                families.iter().try_for_each(|family| family.flush_with(&options))?;
            }
            wait_for_listeners(db, &options.1);
            Ok(())
        });
    }
}

/// Asks for a compaction of a range of the default column family soon.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_suggest_compact_range(
    db: *mut rocksdb_t,
    begin: *const c_char,
    begin_length: usize,
    end: *const c_char,
    end_length: usize,
    errptr: ErrPtr,
) {
    let family = DEFAULT;
    // SAFETY: the contract of the module.
    unsafe {
        rocksdb_suggest_compact_range_cf(db, family, begin, begin_length, end, end_length, errptr);
    }
}

/// Does the same for a column family. The compaction runs in the background.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_suggest_compact_range_cf(
    db: *mut rocksdb_t,
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
            let options =
                CompactRangeOptions { wait: false, flush: false, ..CompactRangeOptions::default() };
            let begin = optional_bytes(begin, begin_length);
            let end = optional_bytes(end, end_length);
            of(db, family)?.compact_range(begin, end, &options)
        });
    }
}

/// Reads and verifies all files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_verify_checksum(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            // The error is the first damage or unreadable file, although the check itself
            // succeeded.
            let report = the(db)?.check(&mut |_, _| ())?;
            report.problems.into_iter().chain(report.unreadable).next().map_or(Ok(()), Err)
        });
    }
}

/// Does the same. The read options have no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_verify_checksum_with_options(
    db: *mut rocksdb_t,
    _options: *const crate::calls::rocksdb_readoptions_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_verify_checksum(db, errptr) };
}

/// Ends flushes and compactions for good, before the database is closed. There is no place for an
/// error: one means that nothing was ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cancel_all_background_work(db: *mut rocksdb_t, wait: c_uchar) {
    // SAFETY: the contract of the module.
    quiet((), || drop(unsafe { the(db) }.map(|db| db.end_background_work(wait != 0))));
}

/// Syncs the WAL if `sync`. Writes reach it without a flush.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_wal(db: *mut rocksdb_t, sync: c_uchar, errptr: ErrPtr) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || if sync == 0 { Ok(()) } else { the(db)?.sync_wal() });
    }
}

/// Syncs the WAL if `options` say so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_wal_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushwaloptions_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    let settings = unsafe { options.as_ref() }.map(|options| &options.0);
    let sync = settings.and_then(|settings| c_uchar::get(settings, "sync")).unwrap_or(0);
    // SAFETY: the contract of the module.
    unsafe { rocksdb_flush_wal(db, sync, errptr) };
}

/// A maker of checkpoints.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_checkpoint_t(Db);

impl rocksdb_checkpoint_t {
    /// Returns the database.
    pub(crate) fn db(&self) -> &Db {
        &self.0
    }
}

/// Makes a maker of checkpoints.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_checkpoint_object_create(
    db: *mut rocksdb_t,
    errptr: ErrPtr,
) -> *mut rocksdb_checkpoint_t {
    // SAFETY: the contract of the module.
    unsafe { guard(errptr, null_mut(), || Ok(give(rocksdb_checkpoint_t(the(db)?.clone())))) }
}

/// Creates a checkpoint in `path`, which must not exist. It shares files with the database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_checkpoint_create(
    checkpoint: *mut rocksdb_checkpoint_t,
    path: *const c_char,
    _log_size_for_flush: u64,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        match checkpoint.as_ref() {
            Some(checkpoint) => {
                guard(errptr, (), || checkpoint.0.checkpoint(crate::abi::path(path)))
            }
            None => set_error(errptr, &status(&missing("the checkpoint"))),
        }
    }
}

/// Frees a maker of checkpoints.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_checkpoint_object_destroy(checkpoint: *mut rocksdb_checkpoint_t) {
    // SAFETY: the contract of the module.
    unsafe { free(checkpoint) };
}
