//! Managers of table files: a limit for the space of databases, and how fast obsolete tables are
//! deleted.

use std::sync::Mutex;

use sateen::SpaceManager;

use crate::abi::{free, give, quiet};
use crate::environment::rocksdb_env_t;
use crate::options::{change, rocksdb_options_t};

/// RocksDB's default for the largest share of a database that obsolete files may have.
const MAX_TRASH_DB_RATIO: f64 = 0.25;

/// A manager, and its settings without a counterpart. There is no trash: dead tables are punched
/// out of their files.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_sst_file_manager_t {
    space: SpaceManager,
    max_trash_db_ratio: Mutex<f64>,
}

type Manager = rocksdb_sst_file_manager_t;

/// Makes a manager without limits.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_create(_env: *mut rocksdb_env_t) -> *mut Manager {
    give(Manager {
        space: SpaceManager::new(0),
        max_trash_db_ratio: Mutex::new(MAX_TRASH_DB_RATIO),
    })
}

/// Frees the caller's reference to a manager. Databases keep theirs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_file_manager_destroy(manager: *mut Manager) {
    // SAFETY: the contract of the crate.
    unsafe { free(manager) };
}

/// Has databases count for a manager, and follow its limits; null for none. The caller keeps its
/// reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_sst_file_manager(
    options: *mut rocksdb_options_t,
    manager: *mut Manager,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let space = manager.as_ref().map(|manager| manager.space.clone());
        change(options, |options| options.0.space_manager = space);
    }
}

macro_rules! calls {
    ($($(#[$doc:meta])* $function:ident($($value:ident: $type:ty)?) -> $result:ty:
        |$manager:ident| $call:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(manager: *mut Manager, $($value: $type)?) -> $result {
            // SAFETY: the contract of the crate.
            let Some($manager) = (unsafe { manager.as_ref() }) else { return Default::default() };
            quiet(Default::default(), || $call)
        }
    )* };
}

fn kept<T: Copy + Default>(value: &Mutex<T>) -> T {
    value.lock().map_or_else(|_| T::default(), |value| *value)
}

fn keep<T>(place: &Mutex<T>, value: T) {
    if let Ok(mut place) = place.lock() {
        *place = value;
    }
}

calls! {
    /// Sets the limit for the tables of all databases of the manager; 0 for none.
    rocksdb_sst_file_manager_set_max_allowed_space_usage(bytes: u64) -> ():
        |manager| manager.space.set_limit_bytes(bytes);
    /// Accepted without effect: compactions are never held back to keep a reserve, because they
    /// make room.
    rocksdb_sst_file_manager_set_compaction_buffer_size(_bytes: u64) -> (): |_manager| ();
    /// Returns true if the limit is reached.
    rocksdb_sst_file_manager_is_max_allowed_space_reached() -> bool:
        |manager| manager.space.is_reached();
    /// Returns the same: what running compactions still write is not known beforehand.
    rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions() -> bool:
        |manager| manager.space.is_reached();
    /// Returns the bytes of all table files, obsolete tables included.
    rocksdb_sst_file_manager_get_total_size() -> u64: |manager| manager.space.used_bytes();
    /// Returns the bytes of obsolete tables that are not deleted yet.
    rocksdb_sst_file_manager_get_total_trash_size() -> u64:
        |manager| manager.space.obsolete_bytes();
    /// Sets the rate at which obsolete tables are deleted; 0 and below for no limit.
    rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(rate: i64) -> ():
        |manager| manager.space.set_delete_rate(u64::try_from(rate).unwrap_or(0));
    /// Returns that rate.
    rocksdb_sst_file_manager_get_delete_rate_bytes_per_second() -> i64:
        |manager| i64::try_from(manager.space.delete_rate()).unwrap_or(i64::MAX);
    /// Stores the value for its getter.
    rocksdb_sst_file_manager_set_max_trash_db_ratio(ratio: f64) -> ():
        |manager| keep(&manager.max_trash_db_ratio, ratio);
    /// Returns the value that was set.
    rocksdb_sst_file_manager_get_max_trash_db_ratio() -> f64:
        |manager| kept(&manager.max_trash_db_ratio);
}
