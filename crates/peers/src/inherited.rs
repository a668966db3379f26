//! The C functions that RocksDB has from LevelDB: the same names behind another prefix, and the
//! same signatures.
#![expect(unsafe_code, reason = "finding functions by their names")]

use std::ffi::{c_char, c_uchar};

use crate::library::{ErrorSlot, New, SetFlag, SetInt, SetSize, functions};
use crate::{Free, Handle, Library, Result, Slice};

functions! {
    /// The functions that a program calls in both libraries.
    pub struct Inherited {
        required {
            options_create: New,
            options_destroy: Free,
            options_set_create_if_missing: SetFlag,
            options_set_write_buffer_size: SetSize,
            options_set_compression: SetInt,
            cache_create_lru: unsafe extern "C" fn(usize) -> Handle,
            cache_destroy: Free,
            open: unsafe extern "C" fn(Handle, *const c_char, ErrorSlot) -> Handle,
            close: Free,
            free: Free,
            put: unsafe extern "C" fn(
                Handle, Handle, *const c_char, usize, *const c_char, usize, ErrorSlot),
            delete: unsafe extern "C" fn(Handle, Handle, *const c_char, usize, ErrorSlot),
            write: unsafe extern "C" fn(Handle, Handle, Handle, ErrorSlot),
            writebatch_create: New,
            writebatch_destroy: Free,
            writebatch_clear: Free,
            writebatch_put: unsafe extern "C" fn(
                Handle, *const c_char, usize, *const c_char, usize),
            writebatch_delete: unsafe extern "C" fn(Handle, *const c_char, usize),
            create_iterator: unsafe extern "C" fn(Handle, Handle) -> Handle,
            iter_seek: unsafe extern "C" fn(Handle, *const c_char, usize),
            iter_next: Free,
            iter_valid: unsafe extern "C" fn(Handle) -> c_uchar,
            iter_key: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
            iter_value: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
            iter_get_error: unsafe extern "C" fn(Handle, ErrorSlot),
            iter_destroy: Free,
            property_value: unsafe extern "C" fn(Handle, *const c_char) -> *mut c_char,
            readoptions_create: New,
            readoptions_destroy: Free,
            writeoptions_create: New,
            writeoptions_destroy: Free,
            writeoptions_set_sync: SetFlag,
        }
        // Newer versions of RocksDB alone.
        optional {
            iter_key_slice: unsafe extern "C" fn(Handle) -> Slice,
            iter_value_slice: unsafe extern "C" fn(Handle) -> Slice,
        }
    }
}

impl Inherited {
    pub(crate) fn load(library: &Library, what: &str, prefix: &str) -> Result<Inherited> {
        Inherited::resolve(library, what, prefix)
    }
}
