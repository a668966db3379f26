//! Functions that are accepted without effect and need more than a stub: directories for files,
//! loggers, triggers of compactions; and getters of options that are texts.

use std::ffi::{c_char, c_double, c_int, c_uint, c_void};

use crate::abi::{free, give, text};
use crate::options::rocksdb_options_t;

/// A directory for tables.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_dbpath_t(pub(crate) String);

/// Makes a directory. The only valid one is the database's; an open refuses others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_dbpath_create(
    path: *const c_char,
    _target_bytes: u64,
) -> *mut rocksdb_dbpath_t {
    // SAFETY: the contract of the crate.
    give(rocksdb_dbpath_t(unsafe { text(path) }))
}

/// Frees a directory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_dbpath_destroy(path: *mut rocksdb_dbpath_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(path) };
}

/// A logger, which never receives a message.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_logger_t(());

/// Makes a logger that never receives a message.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_logger_create_stderr_logger(
    _level: c_int,
    _prefix: *const c_char,
) -> *mut rocksdb_logger_t {
    give(rocksdb_logger_t(()))
}

/// Makes a logger that never receives a message, so that the function is never called.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_logger_create_callback_logger(
    _level: c_int,
    _told: Option<unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize)>,
    _state: *mut c_void,
) -> *mut rocksdb_logger_t {
    give(rocksdb_logger_t(()))
}

/// Frees the caller's reference to a logger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_logger_destroy(logger: *mut rocksdb_logger_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(logger) };
}

/// Returns a logger to be freed. `rocksdb_options_set_info_log` accepts it without effect.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_get_info_log(
    _options: *mut rocksdb_options_t,
) -> *mut rocksdb_logger_t {
    give(rocksdb_logger_t(()))
}

/// Accepted without effect: compactions weigh tombstones by their number, not by how close they
/// lie.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory(
    _options: *mut rocksdb_options_t,
    _window: usize,
    _deletions: usize,
) {
}

/// Accepted without effect, like the function above.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
    _options: *mut rocksdb_options_t,
    _window: usize,
    _deletions: usize,
    _ratio: c_double,
) {
}

/// Accepted without effect, like the function above.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
    _options: *mut rocksdb_options_t,
    _window: usize,
    _deletions: usize,
    _ratio: c_double,
    _file_bytes_min: u64,
) {
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
