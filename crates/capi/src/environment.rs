//! Environments and rate limiters.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use sateen::vfs::{MemVfs, PosixVfs, Vfs};
use sateen::{ColumnFamilyOptions, Db, Error, Options, RateLimitMode, Runtime};

use crate::abi::{ErrPtr, free, give, guard, missing, quiet};
use crate::options::{change, rocksdb_options_t};

/// The file system of the process, or one in memory, and what databases with this environment
/// share: threads and a scheduler.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_env_t {
    memory: Option<Arc<MemVfs>>,
    runtime: Runtime,
}

/// Makes an environment on disk. Databases that are opened with it, and are on one disk, share
/// threads. Those that are opened with another one do not.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_default_env() -> *mut rocksdb_env_t {
    give(rocksdb_env_t { memory: None, runtime: Runtime::new() })
}

/// Makes an environment with files in memory. All databases that are opened with it share the
/// files, which live as long as it or one of them.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_mem_env() -> *mut rocksdb_env_t {
    quiet(std::ptr::null_mut(), || {
        let memory = Some(Arc::new(MemVfs::new()));
        give(rocksdb_env_t { memory, runtime: Runtime::new() })
    })
}

/// Sets the environment of databases that are opened with the options; null for the disk and
/// threads of their own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_env(
    options: *mut rocksdb_options_t,
    env: *mut rocksdb_env_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let env = env.as_ref();
        change(options, |options| {
            options.4.memory = env.and_then(|env| env.memory.clone());
            options.4.runtime = env.map(|env| env.runtime.clone());
            options.0.runtime = options.4.runtime();
        });
    }
}

/// Makes the directory `path` and missing parents. An existing directory is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_dir_if_missing(
    env: *mut rocksdb_env_t,
    path: *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            if path.is_null() {
                return Err(missing("the path"));
            }
            let path = Path::new(OsStr::from_bytes(CStr::from_ptr(path).to_bytes()));
            vfs_of(env).create_dir_all(path).map_err(|source| Error::Io {
                operation: "create",
                path: path.to_owned(),
                source: Arc::new(source),
            })
        });
    }
}

fn files(memory: Option<&Arc<MemVfs>>) -> Arc<dyn Vfs> {
    match memory {
        Some(memory) => memory.clone(),
        None => Arc::new(PosixVfs::new()),
    }
}

/// Returns the file system of `env`, or the disk's if it is null.
///
/// # Safety
/// The contract of the module.
pub(crate) unsafe fn vfs_of(env: *const rocksdb_env_t) -> Arc<dyn Vfs> {
    // SAFETY: the caller's promise.
    files(unsafe { env.as_ref() }.and_then(|env| env.memory.as_ref()))
}

/// A path and its file system.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) path: PathBuf,
}

impl Place {
    /// Returns `path` in the file system of `options`.
    ///
    /// # Safety
    /// The contract of the module.
    pub(crate) unsafe fn new(options: *const rocksdb_options_t, path: *const c_char) -> Place {
        // SAFETY: the caller's promise.
        let (memory, path) = unsafe {
            let memory = options.as_ref().and_then(|options| options.4.memory.as_ref());
            (memory, crate::abi::path(path))
        };
        // A file system in memory has no current directory.
        let path = match memory {
            Some(_) => std::path::absolute(&path).unwrap_or(path),
            None => path,
        };
        Place { vfs: files(memory), path }
    }

    /// Opens the database for reading only. A missing database is an I/O error instead of an
    /// invalid argument.
    pub(crate) fn open_read_only(
        &self,
        options: Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> sateen::Result<Db> {
        // Other errors than a missing file are those of the open.
        let is_missing = matches!(self.vfs.exists(&self.path.join("CURRENT")), Ok(false))
            && !self.path.as_os_str().is_empty()
            && self.vfs.list(&self.path).err().is_none_or(|e| e.kind() == ErrorKind::NotFound);
        if is_missing {
            let source = std::io::Error::new(ErrorKind::NotFound, "there is no database here");
            let path = self.path.clone();
            return Err(Error::Io { operation: "open", path, source: Arc::new(source) });
        }
        let (options, families) = self.for_reader(options, families);
        Db::open_read_only_families_with(self.vfs.clone(), &self.path, options, &families)
    }

    /// Opens the database as a secondary.
    pub(crate) fn open_secondary(
        &self,
        options: Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> sateen::Result<Db> {
        let (options, families) = self.for_reader(options, families);
        Db::open_secondary_with(self.vfs.clone(), &self.path, options, &families)
    }

    /// Returns options with the `ttl` that fits the stored values. A reader has no function in C
    /// that gives it one.
    fn for_reader<'a>(
        &self,
        mut options: Options,
        families: &[(&'a str, ColumnFamilyOptions)],
    ) -> (Options, Vec<(&'a str, ColumnFamilyOptions)>) {
        let mut families = families.to_vec();
        // The open that follows tells why the database cannot be read.
        let ttls = Db::list_ttls_with(self.vfs.as_ref(), &self.path).unwrap_or_default();
        for (name, ttl) in ttls {
            if name == sateen::DEFAULT_COLUMN_FAMILY {
                options.column_family.ttl = ttl;
            }
            let own = families.iter_mut().filter(|(family, _)| *family == name);
            own.for_each(|(_, options)| options.ttl = ttl);
        }
        (options, families)
    }
}

/// Frees the caller's reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_env_destroy(env: *mut rocksdb_env_t) {
    // SAFETY: the contract of the module.
    unsafe { free(env) };
}

/// The most threads that a database may have (`background_threads`).
const THREADS_MAX: u32 = 1024;
/// The sizes of thread pools that were set last. All environments have the same ones, as in
/// RocksDB.
static THREADS: [AtomicI32; 3] = [const { AtomicI32::new(0) }; 3];

/// Tells the runtime of the environment the number of threads: that of the pools together.
unsafe fn set_threads(env: *const rocksdb_env_t) {
    let pools = THREADS.iter().map(|pool| pool.load(Ordering::Relaxed));
    let threads: i64 = pools.map(|threads| i64::from(threads.max(0))).sum();
    // SAFETY: the caller's promise.
    if let (Some(env), Ok(threads @ 1..)) = (unsafe { env.as_ref() }, u32::try_from(threads)) {
        env.runtime.set_threads(threads.min(THREADS_MAX));
    }
}

macro_rules! threads {
    ($($pool:literal $set:ident $get:ident;)*) => { $(
        /// Sets the size of a thread pool. Databases that are opened with the environment from now
        /// on have as many threads together as the pools.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(env: *mut rocksdb_env_t, threads: c_int) {
            THREADS[$pool].store(threads, Ordering::Relaxed);
            // SAFETY: the contract of the module.
            unsafe { set_threads(env) };
        }

        /// Returns the value that was set last.
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
        /// Accepted without effect: threads end with the databases, and their priority is below
        /// that of clients anyway.
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

/// A rate limit of flushes and compactions. Databases that are opened with the same limiter share
/// the rate if they are on one disk.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_ratelimiter_t {
    bytes_per_second: u64,
    refill_period: Duration,
    fairness: u32,
    mode: RateLimitMode,
    auto_tune: bool,
    runtime: Runtime,
}

impl rocksdb_ratelimiter_t {
    /// Returns the bytes a second; 0 for no limit.
    pub(crate) fn rate(&self) -> u64 {
        self.bytes_per_second
    }
}

fn limiter(
    bytes_per_second: i64,
    refill_period_us: i64,
    fairness: i32,
    mode: RateLimitMode,
    auto_tune: bool,
) -> *mut rocksdb_ratelimiter_t {
    give(rocksdb_ratelimiter_t {
        bytes_per_second: u64::try_from(bytes_per_second).unwrap_or(0),
        refill_period: Duration::from_micros(u64::try_from(refill_period_us).unwrap_or(0)),
        // RocksDB's limit.
        fairness: u32::try_from(fairness).unwrap_or(0).min(100),
        mode,
        auto_tune,
        runtime: Runtime::new(),
    })
}

fn limiter_mode(code: c_int) -> RateLimitMode {
    match code {
        0 => RateLimitMode::ReadsOnly,
        2 => RateLimitMode::AllIo,
        _ => RateLimitMode::WritesOnly,
    }
}

/// Makes a limiter of this many bytes a second.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create(
    bytes_per_second: i64,
    refill_period_us: i64,
    fairness: i32,
) -> *mut rocksdb_ratelimiter_t {
    limiter(bytes_per_second, refill_period_us, fairness, RateLimitMode::WritesOnly, false)
}

/// Makes a limiter that tunes itself up to this many bytes a second.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create_auto_tuned(
    bytes_per_second: i64,
    refill_period_us: i64,
    fairness: i32,
) -> *mut rocksdb_ratelimiter_t {
    limiter(bytes_per_second, refill_period_us, fairness, RateLimitMode::WritesOnly, true)
}

/// Makes a limiter of the reads (`mode` 0), the writes (1) or both (2) of background work.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create_with_mode(
    bytes_per_second: i64,
    refill_period_us: i64,
    fairness: i32,
    mode: c_int,
    auto_tuned: bool,
) -> *mut rocksdb_ratelimiter_t {
    limiter(bytes_per_second, refill_period_us, fairness, limiter_mode(mode), auto_tuned)
}

/// Frees the caller's reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ratelimiter_destroy(limiter: *mut rocksdb_ratelimiter_t) {
    // SAFETY: the contract of the module.
    unsafe { free(limiter) };
}

/// Sets the options `rate_limit_…`, and that databases with the same limiter share it; null for no
/// limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_ratelimiter(
    options: *mut rocksdb_options_t,
    limiter: *mut rocksdb_ratelimiter_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let limiter = limiter.as_ref();
        change(options, |options| {
            options.4.limiter = limiter.map(|it| it.runtime.clone());
            options.0.runtime = options.4.runtime();
            let options = &mut options.0;
            options.rate_limit_bytes_per_second = limiter.map_or(0, |it| it.bytes_per_second);
            options.rate_limit_auto_tune = limiter.is_some_and(|it| it.auto_tune);
            if let Some(limiter) = limiter {
                options.rate_limit_refill_period = limiter.refill_period;
                options.rate_limit_fairness = limiter.fairness;
                options.rate_limit_mode = limiter.mode;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{rocksdb_options_create, rocksdb_options_destroy};

    #[test]
    fn databases_share_what_their_limiter_or_else_their_environment_has() {
        let (env, other) = (rocksdb_create_default_env(), rocksdb_create_mem_env());
        let limiter = rocksdb_ratelimiter_create(1 << 20, 100_000, 10);
        let options = rocksdb_options_create();
        // SAFETY: the handles are fresh, and destroyed once.
        unsafe {
            let runtime = || (*options).0.runtime.clone();
            assert_eq!(runtime(), None);
            rocksdb_options_set_env(options, env);
            assert_eq!(runtime(), Some((*env).runtime.clone()));
            rocksdb_options_set_env(options, other);
            assert_eq!(runtime(), Some((*other).runtime.clone()));
            rocksdb_options_set_ratelimiter(options, limiter);
            assert_eq!(runtime(), Some((*limiter).runtime.clone()));
            rocksdb_options_set_env(options, env);
            assert_eq!(runtime(), Some((*limiter).runtime.clone()));
            rocksdb_options_set_ratelimiter(options, std::ptr::null_mut());
            assert_eq!(runtime(), Some((*env).runtime.clone()));
            rocksdb_options_set_env(options, std::ptr::null_mut());
            assert_eq!(runtime(), None);
            // Each environment has threads of its own, and the last sizes are told.
            rocksdb_env_set_background_threads(env, 3);
            rocksdb_env_set_high_priority_background_threads(env, 2);
            assert_eq!(rocksdb_env_get_background_threads(other), 3);
            assert_eq!((*env).runtime.threads(), Some(5));
            assert_eq!((*other).runtime.threads(), None);
            rocksdb_options_destroy(options);
            rocksdb_ratelimiter_destroy(limiter);
            rocksdb_env_destroy(env);
            rocksdb_env_destroy(other);
        }
    }
}
