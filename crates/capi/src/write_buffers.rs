//! A limit for the memtables of several databases.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use sateen::WriteBufferManager;

use crate::abi::{free, give, quiet};
use crate::cache::rocksdb_cache_t;
use crate::options::{change, rocksdb_options_t};

/// The policy in force, whatever is asked for: the largest memtable of all databases is flushed
/// first.
const LARGEST_ACROSS_DBS: c_int = 2;

/// A limit for memtables. Databases whose options have the same limit share it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_write_buffer_manager_t {
    manager: WriteBufferManager,
    policy: AtomicI32,
}

type Manager = rocksdb_write_buffer_manager_t;

unsafe fn made(
    bytes: usize,
    cache: *const rocksdb_cache_t,
    allow_stall: bool,
    policy: c_int,
) -> *mut Manager {
    // SAFETY: the contract of the module.
    let cache = unsafe { cache.as_ref() };
    quiet(std::ptr::null_mut(), || {
        let manager = match cache {
            Some(cache) => WriteBufferManager::with_cache(bytes as u64, &cache.0),
            None => WriteBufferManager::new(bytes as u64),
        };
        manager.set_allow_stall(allow_stall);
        give(Manager { manager, policy: policy.into() })
    })
}

/// Makes a limit of this many bytes; 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_create(
    bytes: usize,
    allow_stall: bool,
) -> *mut Manager {
    // SAFETY: there is no cache.
    unsafe { made(bytes, std::ptr::null(), allow_stall, LARGEST_ACROSS_DBS) }
}

/// Does the same. The policy is stored for its getter alone.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_create_with_policy(
    bytes: usize,
    allow_stall: bool,
    policy: c_int,
) -> *mut Manager {
    // SAFETY: there is no cache.
    unsafe { made(bytes, std::ptr::null(), allow_stall, policy) }
}

/// Makes a limit whose memtables take their memory from the capacity of a cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_create_with_cache(
    bytes: usize,
    cache: *const rocksdb_cache_t,
    allow_stall: bool,
) -> *mut Manager {
    // SAFETY: the contract of the module.
    unsafe { made(bytes, cache, allow_stall, LARGEST_ACROSS_DBS) }
}

/// Does the same. The policy is stored for its getter alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_create_with_cache_and_policy(
    bytes: usize,
    cache: *const rocksdb_cache_t,
    allow_stall: bool,
    policy: c_int,
) -> *mut Manager {
    // SAFETY: the contract of the module.
    unsafe { made(bytes, cache, allow_stall, policy) }
}

/// Frees the caller's reference. Databases keep the limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_destroy(manager: *mut Manager) {
    // SAFETY: the contract of the module.
    unsafe { free(manager) };
}

macro_rules! looks {
    ($($(#[$doc:meta])* $function:ident -> $answer:ty, |$manager:ident| $of:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(manager: *mut Manager) -> $answer {
            // SAFETY: the contract of the module.
            unsafe { manager.as_ref() }.map_or(Default::default(), |$manager| $of)
        }
    )* };
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

looks! {
    /// Returns true if there is a limit.
    rocksdb_write_buffer_manager_enabled -> bool, |it| it.manager.limit_bytes() > 0;
    /// Returns true if memtables take their memory from a cache.
    rocksdb_write_buffer_manager_cost_to_cache -> bool, |it| it.manager.has_cache();
    /// Returns the limit.
    rocksdb_write_buffer_manager_buffer_size -> usize, |it| size(it.manager.limit_bytes());
    /// Returns the bytes of all memtables.
    rocksdb_write_buffer_manager_memory_usage -> usize, |it| size(it.manager.memory_bytes());
    /// Returns the bytes of the active memtables.
    rocksdb_write_buffer_manager_mutable_memtable_memory_usage -> usize,
        |it| size(it.manager.mutable_bytes());
    /// Returns the bytes that the cache is charged with.
    rocksdb_write_buffer_manager_dummy_entries_in_cache_usage -> usize,
        |it| size(it.manager.charged_bytes());
    /// Returns the policy that was asked for.
    rocksdb_write_buffer_manager_flush_policy -> c_int, |it| it.policy.load(Ordering::Relaxed);
}

/// Changes the limit; 0 for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_set_buffer_size(
    manager: *mut Manager,
    bytes: usize,
) {
    // SAFETY: the contract of the module.
    if let Some(it) = unsafe { manager.as_ref() } {
        quiet((), || it.manager.set_limit_bytes(bytes as u64));
    }
}

/// Sets whether writers wait while the limit is exceeded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_set_allow_stall(
    manager: *mut Manager,
    allow_stall: bool,
) {
    // SAFETY: the contract of the module.
    if let Some(it) = unsafe { manager.as_ref() } {
        quiet((), || it.manager.set_allow_stall(allow_stall));
    }
}

/// Stores the policy, which has no effect: the largest memtable is flushed first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_set_flush_policy(
    manager: *mut Manager,
    policy: c_int,
) {
    // SAFETY: the contract of the module.
    if let Some(it) = unsafe { manager.as_ref() } {
        it.policy.store(policy, Ordering::Relaxed);
    }
}

/// Sets the limit of databases that are opened with the options; null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_write_buffer_manager(
    options: *mut rocksdb_options_t,
    manager: *mut Manager,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let manager = manager.as_ref().map(|it| it.manager.clone());
        change(options, |options| options.0.write_buffer_manager = manager);
    }
}
