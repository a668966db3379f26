//! Checksums of whole files, which Sateen does not need, because blocks and records have their own.

use std::ffi::c_char;

use sateen::Error;

use crate::abi::{ErrPtr, free, give, guard, missing};
use crate::calls::rocksdb_readoptions_t;
use crate::database::{FILE_CHECKSUMS, rocksdb_t};
use crate::options::{change, rocksdb_options_t};
use crate::upkeep::rocksdb_verify_checksum;

/// A factory of file checksums.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_file_checksum_gen_factory_t(u8);

/// A factory of table cuts at key prefixes.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_sst_partitioner_factory_t(());

/// Makes a factory of CRC-32C checksums.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_file_checksum_gen_crc32c_factory_create()
-> *mut rocksdb_file_checksum_gen_factory_t {
    give(rocksdb_file_checksum_gen_factory_t(1))
}

/// Frees a factory. Options that have it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_file_checksum_gen_factory_destroy(
    factory: *mut rocksdb_file_checksum_gen_factory_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(factory) };
}

/// Sets the factory. Without one, `rocksdb_verify_file_checksums` fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_file_checksum_gen_factory(
    options: *mut rocksdb_options_t,
    factory: *mut rocksdb_file_checksum_gen_factory_t,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let given = factory.as_ref().map_or(0, |factory| factory.0);
        change(options, |options| options.keep(FILE_CHECKSUMS, given));
    }
}

/// Makes a factory that cuts where the first bytes of keys change. Accepted without effect: the
/// size of tables and their overlap decide where they end.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_partitioner_fixed_prefix_factory_create(
    _length: usize,
) -> *mut rocksdb_sst_partitioner_factory_t {
    give(rocksdb_sst_partitioner_factory_t(()))
}

/// Frees a factory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_partitioner_factory_destroy(
    factory: *mut rocksdb_sst_partitioner_factory_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(factory) };
}

/// Reads and verifies all files, as `rocksdb_verify_checksum` does. Fails if the options of the
/// database have no factory of file checksums.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_verify_file_checksums(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe {
        let possible = guard(errptr, false, || {
            let db = db.as_ref().ok_or_else(|| missing("the database"))?;
            let text = "file_checksum_gen_factory is null";
            let refused = || Error::InvalidArgument(text.to_owned());
            db.file_checksums.then_some(true).ok_or_else(refused)
        });
        if possible {
            rocksdb_verify_checksum(db, errptr);
        }
    }
}

/// Does the same. The read options have no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_verify_file_checksums_with_options(
    db: *mut rocksdb_t,
    _options: *const rocksdb_readoptions_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_verify_file_checksums(db, errptr) };
}
