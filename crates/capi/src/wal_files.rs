//! Lists of WAL files.

use std::ffi::{CString, c_char, c_int};
use std::ptr::{null, null_mut};

use sateen::LiveFile;

use crate::abi::{ErrPtr, free, give, guard, missing};
use crate::database::{rocksdb_t, the};

/// The type of a WAL that recovery needs. Archived ones are not listed.
const ALIVE: c_int = 1;

/// A WAL file.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_wal_file_t {
    file: LiveFile,
    /// Its name behind a slash, as RocksDB has it.
    name: CString,
}

impl rocksdb_wal_file_t {
    fn new(file: LiveFile) -> rocksdb_wal_file_t {
        let name = CString::new(format!("/{}", file.name)).unwrap_or_default();
        rocksdb_wal_file_t { file, name }
    }
}

/// WAL files, oldest first.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_wal_files_t(Vec<rocksdb_wal_file_t>);

/// Lists the WALs that recovery needs, oldest first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_sorted_wal_files(
    db: *mut rocksdb_t,
    errptr: ErrPtr,
) -> *mut rocksdb_wal_files_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let files = the(db)?.wal_files()?.into_iter().map(rocksdb_wal_file_t::new);
            Ok(give(rocksdb_wal_files_t(files.collect())))
        })
    }
}

/// Returns the WAL in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_current_wal_file(
    db: *mut rocksdb_t,
    errptr: ErrPtr,
) -> *mut rocksdb_wal_file_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let newest = the(db)?.wal_files()?.pop().ok_or_else(|| missing("the WAL"))?;
            Ok(give(rocksdb_wal_file_t::new(newest)))
        })
    }
}

/// Frees a list and its files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_files_destroy(files: *mut rocksdb_wal_files_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(files) };
}

/// Frees a file that is in no list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_file_destroy(file: *mut rocksdb_wal_file_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(file) };
}

/// Returns the number of files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_files_count(files: *const rocksdb_wal_files_t) -> usize {
    // SAFETY: the contract of the crate.
    unsafe { files.as_ref() }.map_or(0, |files| files.0.len())
}

/// Returns a file of a list, which owns it; null beyond the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_files_get_wal_file(
    files: *const rocksdb_wal_files_t,
    index: usize,
) -> *const rocksdb_wal_file_t {
    // SAFETY: the contract of the crate.
    let files = unsafe { files.as_ref() };
    files.and_then(|files| files.0.get(index)).map_or(null(), std::ptr::from_ref)
}

/// Returns the name of the file behind a slash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_file_path_name(
    file: *const rocksdb_wal_file_t,
) -> *const c_char {
    // SAFETY: the contract of the crate.
    unsafe { file.as_ref() }.map_or(null(), |file| file.name.as_ptr())
}

crate::getters::numbers! {
    rocksdb_wal_file_log_number(rocksdb_wal_file_t) -> u64: |it| it.file.number;
    rocksdb_wal_file_size_file_bytes(rocksdb_wal_file_t) -> u64: |it| it.file.size_bytes;
    rocksdb_wal_file_type(rocksdb_wal_file_t) -> c_int: |_it| ALIVE;
}

crate::getters::nothing! {
    rocksdb_wal_file_t -> u64: rocksdb_wal_file_start_sequence;
}
