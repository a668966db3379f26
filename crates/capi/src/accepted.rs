//! Directories for tables; triggers of compactions, which are accepted without effect; and getters
//! of options that are texts.

use std::ffi::{c_char, c_double};

use sateen::TablePath;

use crate::abi::{free, give, path};
use crate::info_log::COLLECTOR;
use crate::options::{change, rocksdb_options_t};

/// A directory for tables.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_dbpath_t(TablePath);

/// Makes a directory for tables that should have `target_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_dbpath_create(
    directory: *const c_char,
    target_bytes: u64,
) -> *mut rocksdb_dbpath_t {
    // SAFETY: the contract of the crate.
    give(rocksdb_dbpath_t(TablePath::new(unsafe { path(directory) }, target_bytes)))
}

/// Returns the directories at `paths`.
unsafe fn all(paths: *const *const rocksdb_dbpath_t, count: usize) -> Vec<TablePath> {
    let count = if paths.is_null() { 0 } else { count };
    // SAFETY: the contract of the crate.
    let each = (0..count).filter_map(|nth| unsafe { (*paths.add(nth)).as_ref() });
    each.map(|path| path.0.clone()).collect()
}

/// Sets the directories for the tables of column families that have none of their own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_db_paths(
    options: *mut rocksdb_options_t,
    paths: *const *const rocksdb_dbpath_t,
    count: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let paths = all(paths, count);
        change(options, |options| options.0.paths = paths);
    }
}

/// Sets the directories for the tables of a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_cf_paths(
    options: *mut rocksdb_options_t,
    paths: *const *const rocksdb_dbpath_t,
    count: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let paths = all(paths, count);
        change(options, |options| options.0.column_family.family_paths = paths);
    }
}

/// Frees a directory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_dbpath_destroy(path: *mut rocksdb_dbpath_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(path) };
}

unsafe fn keep_collector(
    options: *mut rocksdb_options_t,
    window: usize,
    deletions: usize,
    ratio: c_double,
) {
    let text = format!(
        "CompactOnDeletionCollector (Sliding window size = {window} Deletion trigger = {deletions} \
         Deletion ratio = {ratio})"
    );
    // SAFETY: the contract of the crate.
    unsafe { change(options, |options| options.2.put_text(COLLECTOR, &text)) };
}

/// Accepted without effect: compactions weigh tombstones by their number, not by how close they
/// lie. LOG lists it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory(
    options: *mut rocksdb_options_t,
    window: usize,
    deletions: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe { keep_collector(options, window, deletions, 0.0) };
}

/// Accepted without effect, like the function above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
    options: *mut rocksdb_options_t,
    window: usize,
    deletions: usize,
    ratio: c_double,
) {
    // SAFETY: the contract of the crate.
    unsafe { keep_collector(options, window, deletions, ratio) };
}

/// Accepted without effect, like the function above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
    options: *mut rocksdb_options_t,
    window: usize,
    deletions: usize,
    ratio: c_double,
    _file_bytes_min: u64,
) {
    // SAFETY: the contract of the crate.
    unsafe { keep_collector(options, window, deletions, ratio) };
}

macro_rules! texts {
    ($($get:ident $key:literal;)*) => { $(
        /// Returns the text that was set, valid until it is set again; empty if none was.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(
            options: *mut rocksdb_options_t,
            size: *mut usize,
        ) -> *const c_char {
            // SAFETY: the contract of the crate.
            unsafe {
                let kept = options.as_ref().and_then(|options| options.kept($key));
                let text: *const c_char = kept.unwrap_or(c"".as_ptr());
                if let Some(size) = size.as_mut() {
                    *size = libc::strlen(text);
                }
                text
            }
        }
    )* };
}

texts! {
    rocksdb_options_get_wal_dir "wal_dir";
    rocksdb_options_get_db_log_dir "db_log_dir";
    rocksdb_options_get_db_host_id "db_host_id";
    rocksdb_options_get_daily_offpeak_time_utc "daily_offpeak_time_utc";
}
