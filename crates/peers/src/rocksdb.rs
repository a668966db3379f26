//! The C functions of RocksDB that a reader, a writer and the benchmark call.
#![expect(unsafe_code, reason = "finding functions by their names")]
#![expect(non_snake_case, reason = "fields have the names of C functions")]

use std::ffi::{c_char, c_int, c_uchar};
use std::ops::Deref;

use crate::library::{ErrorSlot, New, SetFlag, SetHandle, SetInt, SetSize, functions};
use crate::{Free, Handle, Inherited, Library, Result};

const WHAT: &str = "RocksDB";
const PREFIX: &str = "rocksdb_";

/// The type of `get_into_buffer`: database, options, key, buffer, value's length, found, error.
type GetIntoBuffer = unsafe extern "C" fn(
    Handle,
    Handle,
    *const c_char,
    usize,
    *mut c_char,
    usize,
    *mut usize,
    *mut c_uchar,
    ErrorSlot,
) -> c_uchar;
/// The type of `batched_multi_get_cf`.
type BatchedMultiGet = unsafe extern "C" fn(
    Handle,
    Handle,
    Handle,
    usize,
    *const *const c_char,
    *const usize,
    *mut Handle,
    *mut *mut c_char,
    c_uchar,
);
/// The type of `load_latest_options`: directory, environment, whether to skip unknown options,
/// cache; options; number, names and options of the column families; error.
type LoadLatestOptions = unsafe extern "C" fn(
    *const c_char,
    Handle,
    bool,
    Handle,
    *mut Handle,
    *mut usize,
    *mut *mut *mut c_char,
    *mut *mut Handle,
    ErrorSlot,
);
/// The type of `open_for_read_only_column_families`: options, directory, number, names and options
/// of column families, their handles, whether logs are an error, error.
type OpenReadOnly = unsafe extern "C" fn(
    Handle,
    *const c_char,
    c_int,
    *const *const c_char,
    *const Handle,
    *mut Handle,
    c_uchar,
    ErrorSlot,
) -> Handle;

functions! {
    /// The functions that every user of a database calls.
    pub struct Common {
        required {
            options_create: New,
            options_destroy: Free,
            get_options_from_string:
                unsafe extern "C" fn(Handle, *const c_char, Handle, ErrorSlot),
            cache_create_lru: unsafe extern "C" fn(usize) -> Handle,
            cache_destroy: Free,
            close: Free,
            column_family_handle_destroy: Free,
            free: Free,
            readoptions_create: New,
            readoptions_destroy: Free,
        }
        optional {}
    }
}

functions! {
    /// The functions that a reader calls in addition to [`Common`] and to those of an iterator.
    pub(crate) struct Reading {
        required {
            list_column_families:
                unsafe extern "C" fn(Handle, *const c_char, *mut usize, ErrorSlot)
                    -> *mut *mut c_char,
            list_column_families_destroy: unsafe extern "C" fn(*mut *mut c_char, usize),
            open_for_read_only_column_families: OpenReadOnly,
            create_iterator_cf: unsafe extern "C" fn(Handle, Handle, Handle) -> Handle,
            options_set_db_log_dir: unsafe extern "C" fn(Handle, *const c_char),
            options_set_max_open_files: SetInt,
            readoptions_set_fill_cache: SetFlag,
            readoptions_set_readahead_size: SetSize,
            readoptions_set_total_order_seek: SetFlag,
        }
        optional {
            property_int_cf:
                unsafe extern "C" fn(Handle, Handle, *const c_char, *mut u64) -> c_int,
            create_default_env: New,
            env_destroy: Free,
            load_latest_options: LoadLatestOptions,
            load_latest_options_destroy:
                unsafe extern "C" fn(Handle, *mut *mut c_char, *mut Handle, usize),
        }
    }
}

functions! {
    /// The functions that a writer calls in addition to [`Common`] and [`Inherited`].
    pub(crate) struct Writing {
        required {
            options_set_error_if_exists: SetFlag,
            create_column_family:
                unsafe extern "C" fn(Handle, Handle, *const c_char, ErrorSlot) -> Handle,
            writebatch_put_cf: unsafe extern "C" fn(
                Handle, Handle, *const c_char, usize, *const c_char, usize),
            writeoptions_disable_WAL: SetInt,
            flushoptions_create: New,
            flushoptions_destroy: Free,
            flushoptions_set_wait: SetFlag,
            flush: unsafe extern "C" fn(Handle, Handle, ErrorSlot),
            flush_cf: unsafe extern "C" fn(Handle, Handle, Handle, ErrorSlot),
        }
        optional {}
    }
}

functions! {
    /// The functions that the benchmark calls in addition to [`Common`] and [`Inherited`].
    pub struct Calls {
        required {
            options_set_max_write_buffer_number: SetInt,
            options_set_max_background_jobs: SetInt,
            options_set_use_direct_reads: SetFlag,
            options_set_use_direct_io_for_flush_and_compaction: SetFlag,
            options_set_block_based_table_factory: SetHandle,
            block_based_options_create: New,
            block_based_options_destroy: Free,
            block_based_options_set_filter_policy: SetHandle,
            block_based_options_set_block_cache: SetHandle,
            block_based_options_set_no_block_cache: SetFlag,
            filterpolicy_create_bloom_full: unsafe extern "C" fn(f64) -> Handle,
            cache_get_usage: unsafe extern "C" fn(Handle) -> usize,
            get_pinned: unsafe extern "C" fn(
                Handle, Handle, *const c_char, usize, ErrorSlot) -> Handle,
            pinnableslice_value: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
            pinnableslice_destroy: Free,
            flushoptions_create: New,
            flushoptions_destroy: Free,
            flushoptions_set_wait: SetFlag,
            flush: unsafe extern "C" fn(Handle, Handle, ErrorSlot),
            property_int: unsafe extern "C" fn(Handle, *const c_char, *mut u64) -> c_int,
            writeoptions_disable_WAL: SetInt,
        }
        optional {
            cache_create_hyper_clock: unsafe extern "C" fn(usize, usize) -> Handle,
            get_default_column_family_handle: unsafe extern "C" fn(Handle) -> Handle,
            batched_multi_get_cf: BatchedMultiGet,
            get_into_buffer: GetIntoBuffer,
            ratelimiter_create_auto_tuned: unsafe extern "C" fn(i64, i64, i32) -> Handle,
            ratelimiter_destroy: Free,
            options_set_ratelimiter: SetHandle,
            write_buffer_manager_create: unsafe extern "C" fn(usize, bool) -> Handle,
            write_buffer_manager_destroy: Free,
            options_set_write_buffer_manager: SetHandle,
            wait_for_compact: unsafe extern "C" fn(Handle, Handle, ErrorSlot),
            wait_for_compact_options_create: New,
            wait_for_compact_options_destroy: Free,
        }
    }
}

impl Common {
    pub(crate) fn load(library: &Library) -> Result<Common> {
        Common::resolve(library, WHAT, PREFIX)
    }
}

impl Reading {
    pub(crate) fn load(library: &Library) -> Result<Reading> {
        Reading::resolve(library, WHAT, PREFIX)
    }
}

impl Writing {
    pub(crate) fn load(library: &Library) -> Result<Writing> {
        Writing::resolve(library, WHAT, PREFIX)
    }
}

/// The functions that the benchmark calls.
pub struct Api {
    /// The functions that every user of a database calls.
    pub common: Common,
    /// The functions that LevelDB has, too.
    pub inherited: Inherited,
    calls: Calls,
}

impl Api {
    /// Finds the functions in `library`.
    ///
    /// # Errors
    /// `Failed` with the names of functions that the library lacks.
    pub fn load(library: &Library) -> Result<Api> {
        let common = Common::load(library)?;
        let inherited = Inherited::load(library, WHAT, PREFIX)?;
        Ok(Api { common, inherited, calls: Calls::resolve(library, WHAT, PREFIX)? })
    }
}

impl Deref for Api {
    type Target = Calls;

    fn deref(&self) -> &Calls {
        &self.calls
    }
}
