//! The options of backups and restores. The functions that use a handle read its values.

use std::ffi::{c_char, c_uchar, c_void};
use std::sync::Arc;

use sateen::Error;
use sateen::vfs::Vfs;

use crate::abi::{free, give, lend, quiet};
use crate::callbacks::State;
use crate::environment::{rocksdb_env_t, rocksdb_ratelimiter_t, vfs_of};
use crate::settings::{Setting, Settings, keeps, made};

/// Options of a backup engine.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_backup_engine_options_t {
    pub(crate) kept: Settings,
    /// The file system of the backups, if it is not that of the databases.
    pub(crate) vfs: Option<Arc<dyn Vfs>>,
    /// The rates of the limiters for backups and for restores, in bytes a second.
    pub(crate) backup_limiter: Option<u64>,
    pub(crate) restore_limiter: Option<u64>,
}

/// Options of a restore.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_restore_options_t(Settings);

/// A function that is called as a backup makes progress.
pub(crate) type Progress = unsafe extern "C" fn(*mut c_void);
/// A function that names files to leave out.
pub(crate) type Exclude = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar;

/// Options of a backup.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_create_backup_options_t {
    pub(crate) kept: Settings,
    pub(crate) progress: Option<(Arc<State>, Progress)>,
    pub(crate) excludes: bool,
}

keeps!(
    rocksdb_backup_engine_options_t: kept,
    rocksdb_restore_options_t: 0,
    rocksdb_create_backup_options_t: kept,
);
made!(rocksdb_restore_options_t:
    rocksdb_restore_options_create, rocksdb_restore_options_destroy);
made!(rocksdb_create_backup_options_t:
    rocksdb_create_backup_options_create, rocksdb_create_backup_options_destroy);

/// Makes options of a backup engine in the directory `backup_dir`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_create(
    backup_dir: *const c_char,
) -> *mut rocksdb_backup_engine_options_t {
    let mut options = rocksdb_backup_engine_options_t::default();
    // A text that a setter is given ends with a zero.
    quiet((), || backup_dir.put(&mut options.kept, "backup_dir"));
    give(options)
}

/// Frees options of a backup engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_destroy(
    options: *mut rocksdb_backup_engine_options_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(options) };
}

/// Returns the directory of the backups, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_get_backup_dir(
    options: *mut rocksdb_backup_engine_options_t,
    size: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    unsafe {
        let found = options.as_ref().and_then(|options| options.kept.text("backup_dir"));
        lend(found.map(std::ffi::CStr::to_bytes), size)
    }
}

/// Sets the file system of the backups.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_set_env(
    options: *mut rocksdb_backup_engine_options_t,
    env: *mut rocksdb_env_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        if let Some(options) = options.as_mut() {
            options.vfs = (!env.is_null()).then(|| vfs_of(env));
        }
    }
}

/// Defines setters of rate limiters.
macro_rules! limiters {
    ($($function:ident: $field:ident;)*) => { $(
        /// Sets the rate of a limiter, which counts instead of the number of bytes; null for that
        /// number. Each operation has this rate for itself: it does not share the limiter with
        /// databases.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            options: *mut rocksdb_backup_engine_options_t,
            limiter: *mut rocksdb_ratelimiter_t,
        ) {
            // SAFETY: the contract of the module.
            unsafe {
                if let Some(options) = options.as_mut() {
                    options.$field = limiter.as_ref().map(rocksdb_ratelimiter_t::rate);
                }
            }
        }
    )* };
}

limiters! {
    rocksdb_backup_engine_options_set_backup_rate_limiter: backup_limiter;
    rocksdb_backup_engine_options_set_restore_rate_limiter: restore_limiter;
}

/// Sets the function that is called as a backup makes progress.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_backup_options_set_progress_callback(
    options: *mut rocksdb_create_backup_options_t,
    state: *mut c_void,
    callback: Option<Progress>,
) {
    // SAFETY: the contract of the module.
    if let Some(options) = unsafe { options.as_mut() } {
        let state = Arc::new(State { state, destructor: None });
        options.progress = callback.map(|callback| (state, callback));
    }
}

/// Sets the function that names files to leave out, which making a backup refuses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_backup_options_set_exclude_files_callback(
    options: *mut rocksdb_create_backup_options_t,
    _state: *mut c_void,
    callback: Option<Exclude>,
) {
    // SAFETY: the contract of the module.
    if let Some(options) = unsafe { options.as_mut() } {
        options.excludes = callback.is_some();
    }
}

/// Returns the error for an option that promises what Sateen does not do.
pub(crate) fn refused(option: &str, why: &str) -> Error {
    Error::InvalidArgument(format!("{option}: {why}"))
}

/// Fails if an option promises what Sateen does not do.
pub(crate) fn check(options: &rocksdb_backup_engine_options_t) -> sateen::Result<()> {
    let is_off = |name| i32::get(&options.kept, name) == Some(0);
    if is_off("share_table_files") {
        return Err(refused("share_table_files=0", "backups in one place share their tables"));
    }
    if is_off("backup_log_files") {
        let why = "a backup has the WALs; flush_before_backup leaves little in them";
        return Err(refused("backup_log_files=0", why));
    }
    Ok(())
}
