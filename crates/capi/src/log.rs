//! Reading the WAL, and how much of it is kept for that.

use std::ffi::c_uchar;
use std::ptr::null_mut;

use sateen::Updates;

use crate::abi::{ErrPtr, free, give, guard, missing, quiet};
use crate::batch::rocksdb_writebatch_t;
use crate::database::{rocksdb_t, the};
use crate::options::rocksdb_options_t;

const MIB: u64 = 1 << 20;

/// An iterator over written batches.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_wal_iterator_t(Updates);

/// Options for reading the WAL. Checksums are always verified.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_wal_readoptions_t {
    verify_checksums: c_uchar,
}

/// Sets how many MiB of WALs are kept that nothing else needs; 0 for no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_WAL_size_limit_MB(
    options: *mut rocksdb_options_t,
    value: u64,
) {
    // SAFETY: the contract of the module.
    if let Some(options) = unsafe { options.as_mut() } {
        options.0.wal_size_limit_bytes = value.saturating_mul(MIB);
    }
}

/// Returns how many MiB of WALs are kept that nothing else needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_WAL_size_limit_MB(
    options: *mut rocksdb_options_t,
) -> u64 {
    // SAFETY: the contract of the module.
    match unsafe { options.as_ref() }.map_or(0, |options| options.0.wal_size_limit_bytes) {
        u64::MAX => u64::MAX,
        bytes => bytes / MIB,
    }
}

/// Makes options for reading the WAL.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_wal_readoptions_create() -> *mut rocksdb_wal_readoptions_t {
    give(rocksdb_wal_readoptions_t { verify_checksums: 1 })
}

/// Frees options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_readoptions_destroy(options: *mut rocksdb_wal_readoptions_t) {
    // SAFETY: the contract of the module.
    unsafe { free(options) };
}

/// Stores the value for its getter. Checksums are always verified.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_readoptions_set_verify_checksums(
    options: *mut rocksdb_wal_readoptions_t,
    verify_checksums: c_uchar,
) {
    // SAFETY: the contract of the module.
    if let Some(options) = unsafe { options.as_mut() } {
        options.verify_checksums = c_uchar::from(verify_checksums != 0);
    }
}

/// Returns the value that was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_readoptions_get_verify_checksums(
    options: *mut rocksdb_wal_readoptions_t,
) -> c_uchar {
    // SAFETY: the contract of the module.
    unsafe { options.as_ref() }.map_or(1, |options| options.verify_checksums)
}

/// Returns the batches from a sequence number on, as far as WALs still have them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_updates_since(
    db: *mut rocksdb_t,
    sequence: u64,
    _options: *const rocksdb_wal_readoptions_t,
    errptr: ErrPtr,
) -> *mut rocksdb_wal_iterator_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, null_mut(), || {
            Ok(give(rocksdb_wal_iterator_t(the(db)?.updates_available_since(sequence)?)))
        })
    }
}

/// Returns 1 if the iterator is at a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_valid(
    iterator: *const rocksdb_wal_iterator_t,
) -> c_uchar {
    // SAFETY: the contract of the module.
    unsafe { iterator.as_ref() }.map_or(0, |iterator| iterator.0.valid().into())
}

/// Moves to the next batch, which may have been written since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_next(iterator: *mut rocksdb_wal_iterator_t) {
    // SAFETY: the contract of the module.
    if let Some(iterator) = unsafe { iterator.as_mut() } {
        quiet((), || iterator.0.next());
    }
}

/// Reports the error that stopped the iterator, if it is not merely at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_status(
    iterator: *const rocksdb_wal_iterator_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || iterator.as_ref().ok_or_else(|| missing("the iterator"))?.0.status());
    }
}

/// Returns a copy of the batch, for the caller to destroy, and the sequence number of its first
/// write. Null if the iterator is not at a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_get_batch(
    iterator: *const rocksdb_wal_iterator_t,
    sequence: *mut u64,
) -> *mut rocksdb_writebatch_t {
    quiet(null_mut(), || {
        // SAFETY: the contract of the module.
        let Some(updates) = (unsafe { iterator.as_ref() }) else { return null_mut() };
        let Some(batch) = updates.0.batch() else { return null_mut() };
        let first = updates.0.sequence_number();
        // SAFETY: the contract of the module.
        if let Some(sequence) = unsafe { sequence.as_mut() } {
            *sequence = first;
        }
        give(rocksdb_writebatch_t::of(batch.clone(), first))
    })
}

/// Frees an iterator and releases the WALs that it kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_destroy(iterator: *const rocksdb_wal_iterator_t) {
    // SAFETY: the contract of the module.
    unsafe { free(iterator.cast_mut()) };
}
