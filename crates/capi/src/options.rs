//! Options of a database and its column families. A setter with a counterpart sets it. One without
//! is accepted and changes nothing; `docs/c_abi/options.md` and `refused.md` list them.

use std::ffi::c_char;
use std::sync::Arc;

use sateen::vfs::MemVfs;
use sateen::{Error, LogLevel, Options, Runtime};

use crate::abi::{free, give, missing, path};
use crate::counters::Counters;
use crate::merge::rocksdb_mergeoperator_t;
use crate::settings::{Settings, keeps};
use crate::table_options::{OF_TABLES, rocksdb_block_based_table_options_t};
use crate::value_codes::compression;

/// The name under which options keep the length from which on values are in value files.
pub(crate) const SMALLEST_VALUE: &str = "min_blob_size";

/// Options of a database and of its column families; the first refused value; values without a
/// counterpart; the counts, if statistics are on; and what their environment has.
#[derive(Clone)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_options_t(
    pub(crate) Options,
    pub(crate) Option<Error>,
    pub(crate) Settings,
    pub(crate) Option<Counters>,
    pub(crate) Surroundings,
);

/// What the environment and the rate limiter of options have.
#[derive(Clone, Default)]
pub(crate) struct Surroundings {
    /// The file system in memory, if they use one.
    pub(crate) memory: Option<Arc<MemVfs>>,
    /// What databases with the same environment share.
    pub(crate) runtime: Option<Runtime>,
    /// What databases with the same rate limiter share.
    pub(crate) limiter: Option<Runtime>,
}

impl Surroundings {
    /// Returns the runtime of databases. Those with one limiter must have one scheduler, so its
    /// runtime goes before that of the environment.
    pub(crate) fn runtime(&self) -> Option<Runtime> {
        self.limiter.as_ref().or(self.runtime.as_ref()).cloned()
    }
}

keeps!(rocksdb_options_t: 2);

impl rocksdb_options_t {
    /// The counts of the databases that are opened with these options, if statistics are on.
    pub(crate) fn counters(&self) -> Option<&Counters> {
        self.3.as_ref()
    }

    /// Returns options that a database can be opened with. Contradicting limits are adjusted, as in
    /// RocksDB.
    pub(crate) fn checked(&self) -> sateen::Result<Options> {
        if let Some(error) = &self.1 {
            return Err(error.clone());
        }
        let mut options = self.0.clone().sanitized();
        // C has no function that runs background work, so at least one thread must.
        options.background_threads = options.background_threads.max(1);
        let family = &mut options.column_family;
        if let Some(last) = self.kept("bottommost_compression").filter(|code| *code != 255) {
            let levels = u8::try_from(family.levels.saturating_sub(1)).unwrap_or(u8::MAX);
            let above = (0..levels).map(|level| family.compression_at(level.into()));
            family.compression = above.chain([compression(last)]).collect();
        }
        Ok(options)
    }
}

/// Changes the options at `options`, if there are any.
pub(crate) unsafe fn change(
    options: *mut rocksdb_options_t,
    act: impl FnOnce(&mut rocksdb_options_t),
) {
    // SAFETY: the contract of the module.
    if let Some(options) = unsafe { options.as_mut() } {
        crate::abi::quiet((), || act(options));
    }
}

/// Makes options with Sateen's defaults, except that a missing database is not created, expired
/// values are visible until a compaction drops them, a checkpoint has its database's identity, and
/// LOG is written.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_create() -> *mut rocksdb_options_t {
    let mut options =
        Options { create_if_missing: false, checkpoint_keeps_identity: true, ..Options::default() };
    options.log_level = LogLevel::Info;
    options.column_family.ttl_hide_expired = false;
    give(rocksdb_options_t(options, None, Settings::default(), None, Surroundings::default()))
}

/// Frees options. Databases that were opened with them keep running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_destroy(options: *mut rocksdb_options_t) {
    // SAFETY: the contract of the module.
    unsafe { free(options) };
}

/// Returns a copy of options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_create_copy(
    options: *const rocksdb_options_t,
) -> *mut rocksdb_options_t {
    // SAFETY: the contract of the module.
    match unsafe { options.as_ref() } {
        Some(options) => give(options.clone()),
        None => rocksdb_options_create(),
    }
}

/// Sets the directory of the WALs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_wal_dir(
    options: *mut rocksdb_options_t,
    directory: *const c_char,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.keep("wal_dir", directory);
            // An empty path stands for the database's own directory.
            options.0.wal_dir = Some(path(directory)).filter(|path| !path.as_os_str().is_empty());
        });
    }
}

/// Sets the merge operator. The options own it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_merge_operator(
    options: *mut rocksdb_options_t,
    operator: *mut rocksdb_mergeoperator_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let merging = operator.as_ref().map(|operator| operator.0.clone());
        change(options, |options| options.0.column_family.merge_operator = merging);
        free(operator);
    }
}

/// Sets block size, cache and filters. They are copied, and the caller frees its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_block_based_table_factory(
    options: *mut rocksdb_options_t,
    table: *mut rocksdb_block_based_table_options_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        if let Some(table) = table.as_ref() {
            let lines = table.lines();
            change(options, |options| {
                table.apply(&mut options.0);
                options.2.put_bytes(OF_TABLES, lines.as_bytes());
            });
        }
    }
}

/// Returns the options at `options`, ready to open a database with.
pub(crate) unsafe fn checked(options: *const rocksdb_options_t) -> sateen::Result<Options> {
    // SAFETY: the contract of the module.
    unsafe { options.as_ref() }.ok_or_else(|| missing("the options"))?.checked()
}
