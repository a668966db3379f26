//! The file LOG and loggers. As in RocksDB, a database writes LOG from the level info on, unless
//! its options have a logger, which then gets the lines.
//!
//! LOG begins with the options under RocksDB's names, each as its getter returns it: programs and
//! tests read them there. `build.rs` writes the list of getters.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fmt::{Display, Write as _};

use sateen::{LogLevel, Logger, shown};

use crate::abi::{free, give, text};
use crate::options::{change, rocksdb_options_t};
use crate::table_options::{OF_TABLES, rocksdb_block_based_table_options_t};

/// The getters of all options, as C has them.
mod listed {
    use std::ffi::c_void;
    use std::fmt::Display;

    include!(concat!(env!("OUT_DIR"), "/listed.rs"));
}

/// The name under which options keep what LOG says of a collector of deletions.
pub(crate) const COLLECTOR: &str = "table_properties_collectors";

/// RocksDB's default of `keep_log_file_num`.
const KEEP_LOG_FILE_NUM: usize = 1000;

/// A reference to a logger; `None` stands for the file LOG.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_logger_t(Option<Logger>);

/// Returns our level for one of RocksDB: debug, info, warn, error, fatal, header. Failures are the
/// highest that we have.
fn level_of(level: c_int) -> LogLevel {
    match level {
        ..=0 => LogLevel::Debug,
        1 => LogLevel::Info,
        2 => LogLevel::Warn,
        3.. => LogLevel::Error,
    }
}

/// Does the same for the name of a level in an option string.
pub(crate) fn level_in_text(level: &str) -> &str {
    match level {
        "DEBUG_LEVEL" | "0" => "debug",
        "INFO_LEVEL" | "1" => "info",
        "WARN_LEVEL" | "2" => "warn",
        "ERROR_LEVEL" | "3" | "FATAL_LEVEL" | "4" | "HEADER_LEVEL" | "5" => "error",
        ours => ours,
    }
}

fn code_of(level: LogLevel) -> c_uint {
    match level {
        LogLevel::Debug => 0,
        LogLevel::Info => 1,
        LogLevel::Warn => 2,
        _ => 3,
    }
}

/// Makes a logger that writes lines to the standard error output, behind a prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_logger_create_stderr_logger(
    level: c_int,
    prefix: *const c_char,
) -> *mut rocksdb_logger_t {
    // SAFETY: the contract of the crate.
    let prefix = if prefix.is_null() { String::new() } else { unsafe { text(prefix) } };
    let prefix = shown(&prefix).into_owned();
    let logger = Logger::new(level_of(level), move |_, line| {
        let space = if prefix.is_empty() { "" } else { " " };
        eprintln!("{prefix}{space}{line}");
    });
    give(rocksdb_logger_t(Some(logger)))
}

/// The caller's function, and its argument.
#[derive(Clone, Copy)]
struct Callback {
    told: unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize),
    state: *mut c_void,
}

// SAFETY: RocksDB calls the function from any thread, too.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    fn tell(&self, level: LogLevel, line: &str) {
        let line = CString::new(line).unwrap_or_default();
        let length = line.as_bytes().len();
        // SAFETY: the caller's function gets its argument, and a text for the time of the call.
        unsafe { (self.told)(self.state, code_of(level), line.as_ptr().cast_mut(), length) };
    }
}

/// Makes a logger that calls a function of the caller for each line. The function is called by
/// threads of the databases until they are closed.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_logger_create_callback_logger(
    level: c_int,
    told: Option<unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize)>,
    state: *mut c_void,
) -> *mut rocksdb_logger_t {
    let logger = told.map(|told| {
        let callback = Callback { told, state };
        Logger::new(level_of(level), move |level, line| callback.tell(level, line))
    });
    give(rocksdb_logger_t(logger))
}

/// Frees the caller's reference to a logger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_logger_destroy(logger: *mut rocksdb_logger_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(logger) };
}

/// Has databases pass the lines of LOG to a logger; null for the file. The caller keeps its
/// reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_info_log(
    options: *mut rocksdb_options_t,
    logger: *mut rocksdb_logger_t,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let logger = logger.as_ref().and_then(|logger| logger.0.clone());
        change(options, |options| options.0.logger = logger);
    }
}

/// Returns a new reference to the logger, which the caller frees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_info_log(
    options: *mut rocksdb_options_t,
) -> *mut rocksdb_logger_t {
    // SAFETY: the contract of the crate.
    let options = unsafe { options.as_ref() };
    give(rocksdb_logger_t(options.and_then(|options| options.0.logger.clone())))
}

/// Sets `log_level`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_info_log_level(
    options: *mut rocksdb_options_t,
    level: c_int,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        change(options, |options| {
            options.keep("info_log_level", level);
            options.0.log_level = level_of(level);
        });
    }
}

/// Returns the level that was set; 1 (info) by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_info_log_level(
    options: *mut rocksdb_options_t,
) -> c_int {
    // SAFETY: the contract of the crate.
    let level = unsafe { options.as_ref() }.and_then(|options| options.kept("info_log_level"));
    // RocksDB keeps one byte.
    level.map_or(1, |level: c_int| c_int::from(level.to_le_bytes()[0]))
}

/// Sets `log_file_bytes_max`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_max_log_file_size(
    options: *mut rocksdb_options_t,
    bytes: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        change(options, |options| {
            options.keep("max_log_file_size", bytes);
            options.0.log_file_bytes_max = bytes as u64;
        });
    }
}

/// Returns the size that was set; 0 by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_max_log_file_size(
    options: *mut rocksdb_options_t,
) -> usize {
    // SAFETY: the contract of the crate.
    let options = unsafe { options.as_ref() };
    options.and_then(|options| options.kept("max_log_file_size")).unwrap_or(0)
}

/// Sets `log_files_max`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_keep_log_file_num(
    options: *mut rocksdb_options_t,
    files: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        change(options, |options| {
            options.keep("keep_log_file_num", files);
            options.0.log_files_max = u32::try_from(files.clamp(1, 1000)).unwrap_or(1000);
        });
    }
}

/// Returns the number that was set; 1000 by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_keep_log_file_num(
    options: *mut rocksdb_options_t,
) -> usize {
    // SAFETY: the contract of the crate.
    let options = unsafe { options.as_ref() };
    options.and_then(|options| options.kept("keep_log_file_num")).unwrap_or(KEEP_LOG_FILE_NUM)
}

/// Returns the lines that LOG begins with.
pub(crate) fn head(options: &rocksdb_options_t) -> String {
    let mut lines = String::from("Jemalloc supported: 0\nFast CRC32 supported: ");
    // Checksums are xxh3.
    lines.push_str("Not supported on x86\n");
    // A copy, because the getters get a pointer through which they might write.
    let mut copy = options.clone();
    let mut add = |name: &str, value: &dyn Display| {
        let _never_fails = writeln!(lines, "Options.{name}: {value}");
    };
    // SAFETY: the handle is valid.
    unsafe { listed::each((&raw mut copy).cast(), &mut add) };
    if let Some(collector) = options.2.text(COLLECTOR) {
        add(COLLECTOR, &shown(&collector.to_string_lossy()));
    }
    match options.2.text(OF_TABLES) {
        Some(of_tables) => lines.push_str(&of_tables.to_string_lossy()),
        None => lines.push_str(&rocksdb_block_based_table_options_t::default().lines()),
    }
    lines
}
