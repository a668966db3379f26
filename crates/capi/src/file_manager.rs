//! Managers of table files: how fast files go that are not needed any more.
//!
//! A limit for the space of databases is not there: the functions that set one say so.

use std::sync::Mutex;

use crate::abi::{free, give};
use crate::environment::rocksdb_env_t;

/// RocksDB's default for the part of a database that files on their way out may be.
const MAX_TRASH_DB_RATIO: f64 = 0.25;

/// What was set of a manager. Nothing of it has an effect: space is given back in the background,
/// as clients leave the device to it, and files do not wait in a trash.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_sst_file_manager_t {
    delete_rate_bytes_per_second: Mutex<i64>,
    max_trash_db_ratio: Mutex<f64>,
}

/// Makes a manager.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_create(
    _env: *mut rocksdb_env_t,
) -> *mut rocksdb_sst_file_manager_t {
    give(rocksdb_sst_file_manager_t {
        delete_rate_bytes_per_second: Mutex::new(0),
        max_trash_db_ratio: Mutex::new(MAX_TRASH_DB_RATIO),
    })
}

/// Frees a manager.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_file_manager_destroy(
    manager: *mut rocksdb_sst_file_manager_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(manager) };
}

macro_rules! kept {
    ($($field:ident: $type:ty = $set:ident $get:ident;)*) => { $(
        #[doc = concat!("Keeps `", stringify!($field), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(manager: *mut rocksdb_sst_file_manager_t, value: $type) {
            // SAFETY: the contract of the crate.
            if let Some(manager) = unsafe { manager.as_ref() }
                && let Ok(mut kept) = manager.$field.lock()
            {
                *kept = value;
            }
        }

        #[doc = concat!("What `", stringify!($field), "` was set to.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(manager: *mut rocksdb_sst_file_manager_t) -> $type {
            // SAFETY: the contract of the crate.
            let manager = unsafe { manager.as_ref() };
            let kept = manager.and_then(|manager| manager.$field.lock().ok().map(|kept| *kept));
            kept.unwrap_or_default()
        }
    )* };
}

kept! {
    delete_rate_bytes_per_second: i64 =
        rocksdb_sst_file_manager_set_delete_rate_bytes_per_second
        rocksdb_sst_file_manager_get_delete_rate_bytes_per_second;
    max_trash_db_ratio: f64 =
        rocksdb_sst_file_manager_set_max_trash_db_ratio
        rocksdb_sst_file_manager_get_max_trash_db_ratio;
}

/// 0: nothing waits in a trash.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_get_total_trash_size(
    _manager: *mut rocksdb_sst_file_manager_t,
) -> u64 {
    0
}
