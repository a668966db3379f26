//! The functions that are not there yet, written by `build.rs`: a program that links RocksDB's
//! links this, too.
#![expect(non_camel_case_types, reason = "RocksDB's names")]
#![allow(unused_variables, reason = "a function that is not there reads nothing")]

use std::ffi::{c_char, c_void};

#[allow(unused_imports, reason = "what no function that is missing returns any more")]
use crate::abi::Slice;
use crate::abi::{ErrPtr, free, give, quiet, set_error};
use crate::settings::{Keeps, Setting, Settings};
#[allow(unused_imports, reason = "handles that functions are missing of")]
use crate::{cache::*, calls::*, compact_files::*, odd_options::*, options::*, table_options::*};

/// Says at `errptr` that a function is not there.
///
/// # Safety
/// `errptr` is what [`ErrPtr`] says.
unsafe fn told(errptr: ErrPtr, name: &str) {
    // SAFETY: the caller's promise.
    unsafe { set_error(errptr, &format!("Not implemented: {name}")) };
}

/// Ends the program, which called what is not there and cannot be told.
fn absent(name: &str) -> ! {
    eprintln!("libsateen_rocksdb: Not implemented: {name}");
    std::process::abort();
}

/// Keeps what an option without a counterpart was set to.
///
/// # Safety
/// `handle` is null or a handle of that type.
unsafe fn put<H: Keeps, T: Setting>(handle: *mut c_void, key: &'static str, value: T) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { handle.cast::<H>().as_mut() } {
        quiet((), || value.put(handle.settings(), key));
    }
}

/// What it was set to, or what RocksDB takes if it was not.
///
/// # Safety
/// As [`put`].
unsafe fn got<H: Keeps, T: Setting>(handle: *mut c_void, key: &str, default: T) -> T {
    // SAFETY: the caller's promise.
    match unsafe { handle.cast::<H>().as_mut() } {
        Some(handle) => T::get(handle.settings(), key).unwrap_or(default),
        None => default,
    }
}

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
