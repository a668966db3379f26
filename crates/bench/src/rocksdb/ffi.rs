//! RocksDB's C functions, found at run time in a shared library.
//!
//! Only this file and [`super`] know about pointers. The library is opened RTLD_NOW | RTLD_LOCAL
//! and never closed: RocksDB's own threads may still run in it when the process ends.
#![expect(unsafe_code, reason = "dlopen and the C functions behind it")]
#![expect(non_snake_case, reason = "fields have the names of C functions")]

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::{Error, Result};

/// An opaque object of RocksDB.
pub(super) type Handle = *mut c_void;
/// Where RocksDB puts an error's text.
pub(super) type ErrorSlot = *mut *mut c_char;

/// A slice as RocksDB returns it by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Slice {
    pub data: *const c_char,
    pub size: usize,
}

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

macro_rules! declare {
    (
        required { $($name:ident: $type:ty,)* }
        optional { $($maybe:ident: $maybe_type:ty,)* }
    ) => {
        /// The functions; the name of a field is the C name without `rocksdb_`.
        pub(super) struct Api {
            $(pub $name: $type,)*
            $(pub $maybe: Option<$maybe_type>,)*
        }

        fn resolve(library: &Library, path: &Path) -> Result<Api> {
            let mut missing: Vec<&'static str> = Vec::new();
            $(
                // SAFETY: the type is that of the function of this name in RocksDB's C header.
                let $name = unsafe {
                    library.get::<$type>(concat!("rocksdb_", stringify!($name), "\0").as_bytes())
                };
                if $name.is_err() {
                    missing.push(concat!("rocksdb_", stringify!($name)));
                }
            )*
            if let ($(Ok($name),)*) = ($($name,)*) {
                return Ok(Api {
                    $($name: *$name,)*
                    $(
                        // SAFETY: as above; absent in older versions.
                        $maybe: unsafe {
                            library.get::<$maybe_type>(
                                concat!("rocksdb_", stringify!($maybe), "\0").as_bytes(),
                            )
                        }
                        .ok()
                        .map(|symbol| *symbol),
                    )*
                });
            }
            Err(Error::Failed(format!(
                "{}: not a RocksDB library with C functions: it lacks {}",
                path.display(),
                missing.join(", ")
            )))
        }
    };
}

type New = unsafe extern "C" fn() -> Handle;
type Free = unsafe extern "C" fn(Handle);
type SetFlag = unsafe extern "C" fn(Handle, c_uchar);
type SetInt = unsafe extern "C" fn(Handle, c_int);
type SetSize = unsafe extern "C" fn(Handle, usize);
type SetHandle = unsafe extern "C" fn(Handle, Handle);

declare! {
    required {
        options_create: New,
        options_destroy: Free,
        options_set_create_if_missing: SetFlag,
        options_set_write_buffer_size: SetSize,
        options_set_max_write_buffer_number: SetInt,
        options_set_max_background_jobs: SetInt,
        options_set_compression: SetInt,
        options_set_use_direct_reads: SetFlag,
        options_set_use_direct_io_for_flush_and_compaction: SetFlag,
        options_set_block_based_table_factory: SetHandle,
        block_based_options_create: New,
        block_based_options_destroy: Free,
        block_based_options_set_filter_policy: SetHandle,
        block_based_options_set_block_cache: SetHandle,
        block_based_options_set_no_block_cache: SetFlag,
        filterpolicy_create_bloom_full: unsafe extern "C" fn(f64) -> Handle,
        cache_create_lru: unsafe extern "C" fn(usize) -> Handle,
        cache_destroy: Free,
        cache_get_usage: unsafe extern "C" fn(Handle) -> usize,
        get_options_from_string:
            unsafe extern "C" fn(Handle, *const c_char, Handle, ErrorSlot),
        open: unsafe extern "C" fn(Handle, *const c_char, ErrorSlot) -> Handle,
        close: Free,
        put: unsafe extern "C" fn(
            Handle, Handle, *const c_char, usize, *const c_char, usize, ErrorSlot),
        delete: unsafe extern "C" fn(Handle, Handle, *const c_char, usize, ErrorSlot),
        get_pinned: unsafe extern "C" fn(
            Handle, Handle, *const c_char, usize, ErrorSlot) -> Handle,
        pinnableslice_value: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
        pinnableslice_destroy: Free,
        get_default_column_family_handle: unsafe extern "C" fn(Handle) -> Handle,
        column_family_handle_destroy: Free,
        batched_multi_get_cf: BatchedMultiGet,
        create_iterator: unsafe extern "C" fn(Handle, Handle) -> Handle,
        iter_seek: unsafe extern "C" fn(Handle, *const c_char, usize),
        iter_next: Free,
        iter_valid: unsafe extern "C" fn(Handle) -> c_uchar,
        iter_key: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
        iter_value: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
        iter_get_error: unsafe extern "C" fn(Handle, ErrorSlot),
        iter_destroy: Free,
        write: unsafe extern "C" fn(Handle, Handle, Handle, ErrorSlot),
        writebatch_create: New,
        writebatch_destroy: Free,
        writebatch_clear: Free,
        writebatch_put: unsafe extern "C" fn(
            Handle, *const c_char, usize, *const c_char, usize),
        writebatch_delete: unsafe extern "C" fn(Handle, *const c_char, usize),
        flushoptions_create: New,
        flushoptions_destroy: Free,
        flushoptions_set_wait: SetFlag,
        flush: unsafe extern "C" fn(Handle, Handle, ErrorSlot),
        property_value: unsafe extern "C" fn(Handle, *const c_char) -> *mut c_char,
        property_int: unsafe extern "C" fn(Handle, *const c_char, *mut u64) -> c_int,
        free: Free,
        readoptions_create: New,
        readoptions_destroy: Free,
        writeoptions_create: New,
        writeoptions_destroy: Free,
        writeoptions_disable_WAL: SetInt,
        writeoptions_set_sync: SetFlag,
    }
    optional {
        cache_create_hyper_clock: unsafe extern "C" fn(usize, usize) -> Handle,
        get_into_buffer: GetIntoBuffer,
        ratelimiter_create_auto_tuned: unsafe extern "C" fn(i64, i64, i32) -> Handle,
        ratelimiter_destroy: Free,
        options_set_ratelimiter: SetHandle,
        iter_key_slice: unsafe extern "C" fn(Handle) -> Slice,
        iter_value_slice: unsafe extern "C" fn(Handle) -> Slice,
        wait_for_compact: unsafe extern "C" fn(Handle, Handle, ErrorSlot),
        wait_for_compact_options_create: New,
        wait_for_compact_options_destroy: Free,
    }
}

/// Opens the library at `path` and finds the functions in it.
pub(super) fn load(path: &Path) -> Result<Api> {
    if !path.is_file() {
        return Err(Error::Usage(format!("--peer {}: there is no such file", path.display())));
    }
    // SAFETY: the library's initializers run; the caller named it to be run.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| Error::Failed(format!("{}: cannot be loaded: {error}", path.display())))?;
    let api = resolve(&library, path)?;
    std::mem::forget(library);
    Ok(api)
}
