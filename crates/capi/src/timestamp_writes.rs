//! Writes of versions of keys with timestamps (`…_with_ts`): single ones, in batches, and in files.

use std::ffi::c_char;

use sateen::{ColumnFamily, WriteBatch, timestamped_entry};

use crate::abi::{ErrPtr, bytes, guard};
use crate::batch::{add_to, rocksdb_writebatch_t};
use crate::calls::rocksdb_writeoptions_t;
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::db::write_options;
use crate::ingest::{rocksdb_sstfilewriter_t, with_comparator};
use crate::timestamps::timestamped;

type Family = rocksdb_column_family_handle_t;

macro_rules! writes {
    ($($function:ident $of_family:ident
        ($($key:ident)+; $($value:ident $value_length:ident)?) |$family:ident, $options:ident,
        $k:ident, $t:ident| $act:expr;)*) => { $(
        /// Writes a version of a key of the default column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            key: *const c_char,
            key_length: usize,
            timestamp: *const c_char,
            timestamp_length: usize,
            $($value: *const c_char, $value_length: usize,)?
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                $of_family(db, options, DEFAULT, key, key_length, timestamp, timestamp_length,
                    $($value, $value_length,)? errptr);
            }
        }

        /// Writes a version of a key of a column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            family: *mut Family,
            key: *const c_char,
            key_length: usize,
            timestamp: *const c_char,
            timestamp_length: usize,
            $($value: *const c_char, $value_length: usize,)?
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                guard(errptr, (), || {
                    let $family = timestamped(&of(the(db)?, family)?)?;
                    let $options = write_options(options)?;
                    let ($k, $t) = (bytes(key, key_length)?, bytes(timestamp, timestamp_length)?);
                    $act
                });
            }
        }
    )* };
}

writes! {
    rocksdb_put_with_ts rocksdb_put_cf_with_ts (put; value value_length)
        |family, options, key, time| family.put(key, time, bytes(value, value_length)?, &options);
    rocksdb_delete_with_ts rocksdb_delete_cf_with_ts (delete;)
        |family, options, key, time| family.delete(key, time, &options);
    rocksdb_singledelete_with_ts rocksdb_singledelete_cf_with_ts (delete;)
        |family, options, key, time| family.delete(key, time, &options);
}

/// Adds a version to a batch: a key with its timestamp.
unsafe fn add_version(
    batch: *mut rocksdb_writebatch_t,
    family: *mut Family,
    key: (*const c_char, usize),
    timestamp: (*const c_char, usize),
    act: impl FnOnce(&mut WriteBatch, &ColumnFamily, &[u8]) -> sateen::Result<()>,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        add_to(batch, family, |batch, family| {
            timestamped(family)?;
            let (key, timestamp) = (bytes(key.0, key.1)?, bytes(timestamp.0, timestamp.1)?);
            let (key, _) = timestamped_entry(family.comparator(), key, timestamp, None)?;
            act(batch, family, &key)
        });
    }
}

/// Adds a version with a value to a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_put_cf_with_ts(
    batch: *mut rocksdb_writebatch_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    timestamp: *const c_char,
    timestamp_length: usize,
    value: *const c_char,
    value_length: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let (key, time) = ((key, key_length), (timestamp, timestamp_length));
        add_version(batch, family, key, time, |batch, family, key| {
            batch.to(family).put(key, bytes(value, value_length)?)
        });
    }
}

macro_rules! deletions {
    ($($function:ident $act:ident;)*) => { $(
        /// Adds a version without a value to a batch.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            batch: *mut rocksdb_writebatch_t,
            family: *mut Family,
            key: *const c_char,
            key_length: usize,
            timestamp: *const c_char,
            timestamp_length: usize,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                let (key, time) = ((key, key_length), (timestamp, timestamp_length));
                add_version(batch, family, key, time, |batch, family, key| {
                    batch.to(family).$act(key)
                });
            }
        }
    )* };
}

deletions! {
    rocksdb_writebatch_delete_cf_with_ts delete;
    rocksdb_writebatch_singledelete_cf_with_ts single_delete;
}

/// Adds a version with a value to a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_put_with_ts(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    key_length: usize,
    timestamp: *const c_char,
    timestamp_length: usize,
    value: *const c_char,
    value_length: usize,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let (key, time) = (bytes(key, key_length)?, bytes(timestamp, timestamp_length)?);
            let value = Some(bytes(value, value_length)?);
            with_comparator(writer, |file, by| {
                let (key, value) = timestamped_entry(by, key, time, value)?;
                file.put(key, value)
            })
        });
    }
}

/// Adds a version without a value to a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_delete_with_ts(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    key_length: usize,
    timestamp: *const c_char,
    timestamp_length: usize,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let (key, time) = (bytes(key, key_length)?, bytes(timestamp, timestamp_length)?);
            with_comparator(writer, |file, by| {
                let (key, value) = timestamped_entry(by, key, time, None)?;
                file.put(key, value)
            })
        });
    }
}
