//! The environment, and how fast background work may write.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::abi::{free, give};
use crate::options::{change, rocksdb_options_t};

/// The file system and the threads of the process: there is one. A database has threads of its
/// own, whose number is an option of it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_env_t(());

/// The environment.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_default_env() -> *mut rocksdb_env_t {
    give(rocksdb_env_t(()))
}

/// Frees the caller's hold of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_env_destroy(env: *mut rocksdb_env_t) {
    // SAFETY: the contract of the module.
    unsafe { free(env) };
}

/// What the pools of the process were set to: kept for those who ask.
static THREADS: [AtomicI32; 3] = [const { AtomicI32::new(0) }; 3];

macro_rules! threads {
    ($($pool:literal $set:ident $get:ident;)*) => { $(
        /// Accepted: threads belong to databases.
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(_env: *mut rocksdb_env_t, threads: c_int) {
            THREADS[$pool].store(threads, Ordering::Relaxed);
        }

        /// What was set last.
        #[unsafe(no_mangle)]
        pub extern "C" fn $get(_env: *mut rocksdb_env_t) -> c_int {
            THREADS[$pool].load(Ordering::Relaxed)
        }
    )* };
}

threads! {
    0 rocksdb_env_set_background_threads rocksdb_env_get_background_threads;
    0 rocksdb_env_set_low_priority_background_threads
        rocksdb_env_get_low_priority_background_threads;
    1 rocksdb_env_set_high_priority_background_threads
        rocksdb_env_get_high_priority_background_threads;
    2 rocksdb_env_set_bottom_priority_background_threads
        rocksdb_env_get_bottom_priority_background_threads;
}

macro_rules! accepted {
    ($($function:ident;)*) => { $(
        /// Accepted: threads belong to databases, and are lower than the clients' as it is.
        #[unsafe(no_mangle)]
        pub extern "C" fn $function(_env: *mut rocksdb_env_t) {}
    )* };
}

accepted! {
    rocksdb_env_join_all_threads;
    rocksdb_env_lower_thread_pool_io_priority;
    rocksdb_env_lower_high_priority_thread_pool_io_priority;
    rocksdb_env_lower_thread_pool_cpu_priority;
    rocksdb_env_lower_high_priority_thread_pool_cpu_priority;
}

/// How fast flushes and compactions may write. Each database that is opened with it has that rate
/// for itself.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_ratelimiter_t {
    bytes_per_second: u64,
    auto_tuned: bool,
}

fn limiter(bytes_per_second: i64, auto_tuned: bool) -> *mut rocksdb_ratelimiter_t {
    let bytes_per_second = u64::try_from(bytes_per_second).unwrap_or(0);
    give(rocksdb_ratelimiter_t { bytes_per_second, auto_tuned })
}

/// So many bytes a second.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create(
    bytes_per_second: i64,
    _refill_period_us: i64,
    _fairness: i32,
) -> *mut rocksdb_ratelimiter_t {
    limiter(bytes_per_second, false)
}

/// Up to so many bytes a second, as much as is needed.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create_auto_tuned(
    bytes_per_second: i64,
    _refill_period_us: i64,
    _fairness: i32,
) -> *mut rocksdb_ratelimiter_t {
    limiter(bytes_per_second, true)
}

/// The same; what background work reads is not limited.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create_with_mode(
    bytes_per_second: i64,
    _refill_period_us: i64,
    _fairness: i32,
    _mode: c_int,
    auto_tuned: bool,
) -> *mut rocksdb_ratelimiter_t {
    limiter(bytes_per_second, auto_tuned)
}

/// Frees the caller's hold of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ratelimiter_destroy(limiter: *mut rocksdb_ratelimiter_t) {
    // SAFETY: the contract of the module.
    unsafe { free(limiter) };
}

/// `rate_limit_bytes_per_second` and `rate_limit_auto_tune`; null for no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_ratelimiter(
    options: *mut rocksdb_options_t,
    limiter: *mut rocksdb_ratelimiter_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let limit = limiter.as_ref().map(|limiter| (limiter.bytes_per_second, limiter.auto_tuned));
        let (bytes_per_second, auto_tuned) = limit.unwrap_or_default();
        change(options, |options| {
            options.0.rate_limit_bytes_per_second = bytes_per_second;
            options.0.rate_limit_auto_tune = auto_tuned;
        });
    }
}
