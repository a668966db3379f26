//! Options of a database and its column families. A setter with a counterpart sets it; one without
//! is accepted and changes nothing: `docs/c_abi/options.md` and `refused.md` say which are which.

use std::ffi::c_char;

use sateen::vfs::MemVfs;
use sateen::{Error, Options};

use crate::abi::{free, give, missing, path};
use crate::counters::Counters;
use crate::merge::rocksdb_mergeoperator_t;
use crate::settings::{Settings, keeps};
use crate::table_options::rocksdb_block_based_table_options_t;
use crate::value_codes::compression;

/// Options, all of a column family's among them, the first value that was refused,
/// what has no counterpart, where it is counted, and the memory that the files are in, if they are.
#[derive(Clone)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_options_t(
    pub(crate) Options,
    pub(crate) Option<Error>,
    pub(crate) Settings,
    pub(crate) Option<Counters>,
    pub(crate) Option<MemVfs>,
);

keeps!(rocksdb_options_t: 2);

impl rocksdb_options_t {
    /// The counts of the databases that are opened with these options, if statistics are on.
    pub(crate) fn counters(&self) -> Option<&Counters> {
        self.3.as_ref()
    }

    /// Options that a database can be opened with: limits that contradict each other are brought
    /// into order, as RocksDB does.
    pub(crate) fn checked(&self) -> sateen::Result<Options> {
        if let Some(error) = &self.1 {
            return Err(error.clone());
        }
        let mut options = self.0.clone().sanitized();
        // Nobody else would do the work of the background: C has no function that does.
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

/// Makes options: Sateen's defaults, but a database that does not exist is not made, values whose
/// time is over are read until a compaction drops them, and a checkpoint has its database's
/// identity.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_create() -> *mut rocksdb_options_t {
    let mut options =
        Options { create_if_missing: false, checkpoint_keeps_identity: true, ..Options::default() };
    options.column_family.ttl_hide_expired = false;
    give(rocksdb_options_t(options, None, Settings::default(), None, None))
}

/// Frees options. Databases that were opened with them go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_destroy(options: *mut rocksdb_options_t) {
    // SAFETY: the contract of the module.
    unsafe { free(options) };
}

/// A copy of options.
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

/// The directory of the logs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_wal_dir(
    options: *mut rocksdb_options_t,
    directory: *const c_char,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.keep("wal_dir", directory);
            // An empty one is the database's own directory.
            options.0.wal_dir = Some(path(directory)).filter(|path| !path.as_os_str().is_empty());
        });
    }
}

/// What combines operands. The options own it from now on.
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

/// Block size, cache and filters. They are copied: the caller frees its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_block_based_table_factory(
    options: *mut rocksdb_options_t,
    table: *mut rocksdb_block_based_table_options_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        if let Some(table) = table.as_ref() {
            change(options, |options| table.apply(&mut options.0));
        }
    }
}

/// Returns the options at `options`, ready to open a database with.
pub(crate) unsafe fn checked(options: *const rocksdb_options_t) -> sateen::Result<Options> {
    // SAFETY: the contract of the module.
    unsafe { options.as_ref() }.ok_or_else(|| missing("the options"))?.checked()
}
