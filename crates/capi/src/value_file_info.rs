//! Value files in the descriptions of flushes and compactions, which RocksDB calls blob files:
//! those that a job wrote, and the values in each that it dropped.

use std::os::unix::ffi::OsStrExt;
use std::ptr::null;

use sateen::ValueFileInfo;

use crate::getters::{numbers, texts};
use crate::job_info::{rocksdb_compactionjobinfo_t, rocksdb_flushjobinfo_t};

/// A value file that a flush or compaction wrote.
#[repr(transparent)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_blob_file_addition_info_t(ValueFileInfo);

/// The values of a value file that a compaction dropped.
#[repr(transparent)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_blob_file_garbage_info_t(ValueFileInfo);

numbers! {
    rocksdb_blob_file_addition_info_blob_file_number(
        rocksdb_blob_file_addition_info_t) -> u64: |it| it.0.number;
    rocksdb_blob_file_addition_info_total_blob_bytes(
        rocksdb_blob_file_addition_info_t) -> u64: |it| it.0.bytes;
    rocksdb_blob_file_addition_info_total_blob_count(
        rocksdb_blob_file_addition_info_t) -> u64: |it| it.0.values;
    rocksdb_blob_file_garbage_info_blob_file_number(
        rocksdb_blob_file_garbage_info_t) -> u64: |it| it.0.number;
    rocksdb_blob_file_garbage_info_garbage_blob_bytes(
        rocksdb_blob_file_garbage_info_t) -> u64: |it| it.0.bytes;
    rocksdb_blob_file_garbage_info_garbage_blob_count(
        rocksdb_blob_file_garbage_info_t) -> u64: |it| it.0.values;
    rocksdb_flushjobinfo_blob_file_addition_infos_count(rocksdb_flushjobinfo_t) -> usize:
        |it| it.info.value_files.len();
    rocksdb_flushjobinfo_oldest_blob_file_number(rocksdb_flushjobinfo_t) -> u64:
        |it| it.info.value_files.iter().map(|file| file.number).min().unwrap_or(0);
    rocksdb_compactionjobinfo_blob_file_addition_infos_count(
        rocksdb_compactionjobinfo_t) -> usize: |it| it.get(|info| info.value_files.len());
    rocksdb_compactionjobinfo_blob_file_garbage_infos_count(
        rocksdb_compactionjobinfo_t) -> usize: |it| it.get(|info| info.value_garbage.len());
}

texts! {
    rocksdb_blob_file_addition_info_blob_file_path(rocksdb_blob_file_addition_info_t):
        |it| it.0.file.as_os_str().as_bytes();
    rocksdb_blob_file_garbage_info_blob_file_path(rocksdb_blob_file_garbage_info_t):
        |it| it.0.file.as_os_str().as_bytes();
}

/// Returns the entry as C sees it; null if there is none. `T` is `ValueFileInfo` in another name.
fn at<T>(files: Option<&Vec<ValueFileInfo>>, index: usize) -> *const T {
    files.and_then(|files| files.get(index)).map_or(null(), |file| std::ptr::from_ref(file).cast())
}

/// Returns a value file that the flush wrote; null if there are fewer. It lives as long as `info`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flushjobinfo_blob_file_addition_info_at(
    info: *const rocksdb_flushjobinfo_t,
    index: usize,
) -> *const rocksdb_blob_file_addition_info_t {
    // SAFETY: the contract of the crate.
    at(unsafe { info.as_ref() }.map(|info| &info.info.value_files), index)
}

/// Returns a value file that the compaction wrote; null if there are fewer. It lives as long as
/// `info`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_blob_file_addition_info_at(
    info: *const rocksdb_compactionjobinfo_t,
    index: usize,
) -> *const rocksdb_blob_file_addition_info_t {
    // SAFETY: the contract of the crate.
    let info = unsafe { info.as_ref() }.and_then(|info| info.info.as_ref());
    at(info.map(|info| &info.value_files), index)
}

/// Returns the dropped values of a value file; null if there are fewer. It lives as long as `info`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_blob_file_garbage_info_at(
    info: *const rocksdb_compactionjobinfo_t,
    index: usize,
) -> *const rocksdb_blob_file_garbage_info_t {
    // SAFETY: the contract of the crate.
    let info = unsafe { info.as_ref() }.and_then(|info| info.info.as_ref());
    at(info.map(|info| &info.value_garbage), index)
}
