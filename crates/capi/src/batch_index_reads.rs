//! Reads of batches with an index: of the batch alone, and of a database as if the batch were
//! written.

use std::ffi::c_char;
use std::ptr::null_mut;

use sateen::BatchValue;

use crate::abi::{ErrPtr, bytes, give, guard, malloc_copy, missing, quiet, set_error, take};
use crate::batch_index::rocksdb_writebatch_wi_t;
use crate::calls::rocksdb_readoptions_t;
use crate::database::{DEFAULT, check_untimed, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::db::rocksdb_pinnableslice_t;
use crate::iter::rocksdb_iterator_t;
use crate::options::{checked, rocksdb_options_t};
use crate::promises::read_options;

type Batch = rocksdb_writebatch_wi_t;
type Family = rocksdb_column_family_handle_t;

/// Returns a value to C, to be freed, and its length.
unsafe fn given(value: Option<Vec<u8>>, length: *mut usize) -> *mut c_char {
    // SAFETY: the contract of the crate.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = value.as_ref().map_or(0, Vec::len);
    }
    value.map_or(null_mut(), |value| malloc_copy(&value))
}

/// Returns to C what a batch alone says about a key. Operands without a value are an error.
unsafe fn alone(found: BatchValue, length: *mut usize, errptr: ErrPtr) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let value = match found {
            BatchValue::Value(value) => Some(value),
            BatchValue::Merge(_) => {
                let text = "the batch has operands for the key, and no value to merge them into";
                set_error(errptr, &format!("Merge in progress: {text}"));
                None
            }
            _ => None,
        };
        given(value, length)
    }
}

/// Returns the value that the batch alone has for a key, to be freed; null if it has none. The
/// merge operator is that of `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_get_from_batch(
    batch: *mut Batch,
    options: *const rocksdb_options_t,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let found = guard(errptr, BatchValue::Missing, || {
            let batch = batch.as_ref().ok_or_else(|| missing("the batch"))?.checked()?;
            let operator = checked(options)?.column_family.merge_operator;
            batch.get_own(bytes(key, key_length)?, operator.as_ref())
        });
        alone(found, value_length, errptr)
    }
}

/// Does the same in a column family, with the merge operator of that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_get_from_batch_cf(
    batch: *mut Batch,
    options: *const rocksdb_options_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let found = guard(errptr, BatchValue::Missing, || {
            let batch = batch.as_ref().ok_or_else(|| missing("the batch"))?.checked()?;
            checked(options)?;
            let family = family.as_ref().ok_or_else(|| missing("the column family"))?;
            batch.get_from_batch(&family.0, bytes(key, key_length)?)
        });
        alone(found, value_length, errptr)
    }
}

/// Returns the value of a key as if the batch were written.
unsafe fn above(
    batch: *mut Batch,
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: (*const c_char, usize),
    errptr: ErrPtr,
) -> Option<Vec<u8>> {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, None, || {
            let (batch, db) = (batch.as_ref().ok_or_else(|| missing("the batch"))?, the(db)?);
            let batch = batch.checked_for(db)?;
            let (family, options) = (of(db, family)?, read_options(options)?);
            check_untimed(&family)?;
            batch.reading(&family, &options).get(bytes(key.0, key.1)?)
        })
    }
}

/// Returns the value of a key as if the batch were written, to be freed; null if the key does not
/// exist then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_get_from_batch_and_db(
    batch: *mut Batch,
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let found = above(batch, db, options, DEFAULT, (key, key_length), errptr);
        given(found, value_length)
    }
}

/// Does the same in a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_get_from_batch_and_db_cf(
    batch: *mut Batch,
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let found = above(batch, db, options, family, (key, key_length), errptr);
        given(found, value_length)
    }
}

/// Returns the value of a key as if the batch were written, in a handle; null if the key does not
/// exist then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db(
    batch: *mut Batch,
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    errptr: ErrPtr,
) -> *mut rocksdb_pinnableslice_t {
    let family = DEFAULT;
    // SAFETY: the contract of the crate.
    unsafe {
        rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
            batch, db, options, family, key, key_length, errptr,
        )
    }
}

/// Does the same in a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
    batch: *mut Batch,
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    errptr: ErrPtr,
) -> *mut rocksdb_pinnableslice_t {
    // SAFETY: the contract of the crate.
    let found = unsafe { above(batch, db, options, family, (key, key_length), errptr) };
    found.map_or(null_mut(), |value| give(rocksdb_pinnableslice_t(value.into())))
}

/// Makes an iterator of `base` and the batch, and frees `base`. `options` have the bounds; null for
/// those of `base`.
unsafe fn merged(
    batch: *mut Batch,
    base: *mut rocksdb_iterator_t,
    family: *mut Family,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    // SAFETY: the contract of the crate.
    quiet(null_mut(), || unsafe {
        let Some(base) = take(base) else { return null_mut() };
        let options = if options.is_null() { Ok(None) } else { read_options(options).map(Some) };
        let is_of_base = family == DEFAULT;
        let family = if is_of_base { Ok(None) } else { of(base.db(), family).map(Some) };
        let batch = batch.as_ref().ok_or_else(|| missing("the batch"));
        let batch = batch.and_then(|batch| batch.checked_for(base.db()));
        give(base.below(batch, family, options))
    })
}

macro_rules! iterators {
    ($($(#[$doc:meta])* $function:ident($($argument:ident: $type:ty),*)
        |$family:ident, $options:ident| $of:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            batch: *mut Batch,
            base: *mut rocksdb_iterator_t,
            $($argument: $type),*
        ) -> *mut rocksdb_iterator_t {
            let ($family, $options) = $of;
            // SAFETY: the contract of the crate.
            unsafe { merged(batch, base, $family, $options) }
        }
    )* };
}

iterators! {
    /// Makes an iterator over the column family of `base` as if the batch were written. It frees
    /// `base`, and shows what the database has now, or at the snapshot of `base`.
    rocksdb_writebatch_wi_create_iterator_with_base()
        |family, options| (DEFAULT, std::ptr::null());
    /// Does the same in a column family.
    rocksdb_writebatch_wi_create_iterator_with_base_cf(of: *mut Family)
        |family, options| (of, std::ptr::null());
    /// Does the same with options of reading.
    rocksdb_writebatch_wi_create_iterator_with_base_readopts(with: *const rocksdb_readoptions_t)
        |family, options| (DEFAULT, with);
    /// Does the same in a column family with options of reading.
    rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
        of: *mut Family, with: *const rocksdb_readoptions_t) |family, options| (of, with);
}
