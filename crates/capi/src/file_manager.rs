//! Managers of table files: how fast obsolete files are deleted.
//!
//! There is no limit for the space of databases. The functions that set one say so.

use std::sync::Mutex;

use crate::abi::{free, give};
use crate::environment::rocksdb_env_t;

/// RocksDB's default for the largest share of a database that obsolete files may have.
const MAX_TRASH_DB_RATIO: f64 = 0.25;

/// The settings of a manager. They have no effect: obsolete bytes are freed in the background when
/// clients leave bandwidth, and there is no trash.
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
        #[doc = concat!("Stores `", stringify!($field), "` for its getter.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(manager: *mut rocksdb_sst_file_manager_t, value: $type) {
            // SAFETY: the contract of the crate.
            if let Some(manager) = unsafe { manager.as_ref() }
                && let Ok(mut kept) = manager.$field.lock()
            {
                *kept = value;
            }
        }

        #[doc = concat!("Returns the value that `", stringify!($field), "` was set to.")]
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

/// Returns 0, because there is no trash.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_get_total_trash_size(
    _manager: *mut rocksdb_sst_file_manager_t,
) -> u64 {
    0
}
