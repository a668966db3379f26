//! Prefix extractors: RocksDB's slice transforms.

use std::ffi::{c_char, c_uchar, c_void};

use sateen::{PrefixExtractor, Prefixing};

use crate::abi::{bytes_or_none, free, give, quiet};
use crate::callbacks::{State, name_of};
use crate::options::{change, rocksdb_options_t};

pub(crate) type Transform =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char;
pub(crate) type InDomain = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar;

/// The functions of an extractor and their state.
struct Callbacks {
    state: State,
    transform: Option<Transform>,
    in_domain: Option<InDomain>,
    name: String,
}

impl PrefixExtractor for Callbacks {
    fn name(&self) -> &str {
        &self.name
    }

    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        let (data, mut length) = (key.as_ptr().cast(), 0);
        // SAFETY: RocksDB calls them with a key that lives as long as the call, and a place
        // for a length.
        let prefix = unsafe {
            if self.in_domain.is_some_and(|is_in| is_in(self.state.state, data, key.len()) == 0) {
                return None;
            }
            bytes_or_none(
                self.transform?(self.state.state, data, key.len(), &raw mut length),
                length,
            )
        };
        // A result that is not a prefix of the key tells nothing about neighbouring keys.
        key.starts_with(prefix).then_some(prefix.len())
    }
}

/// A prefix extractor. Options that get it own it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_slicetransform_t(Prefixing);

/// Makes an extractor of functions.
#[cfg_attr(not(abi_below_11), unsafe(no_mangle))]
pub unsafe extern "C" fn rocksdb_slicetransform_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    transform: Option<Transform>,
    in_domain: Option<InDomain>,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> *mut rocksdb_slicetransform_t {
    // SAFETY: RocksDB's contract.
    let name = unsafe { name_of(name, state) };
    let callbacks = Callbacks { state: State { state, destructor }, transform, in_domain, name };
    quiet(std::ptr::null_mut(), || give(rocksdb_slicetransform_t(Prefixing::new(callbacks))))
}

/// Makes an extractor of the first `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_slicetransform_create_fixed_prefix(
    length: usize,
) -> *mut rocksdb_slicetransform_t {
    give(rocksdb_slicetransform_t(Prefixing::fixed(length)))
}

/// Makes an extractor of the whole key.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_slicetransform_create_noop() -> *mut rocksdb_slicetransform_t {
    give(rocksdb_slicetransform_t(Prefixing::noop()))
}

/// Frees an extractor that no options own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_slicetransform_destroy(extractor: *mut rocksdb_slicetransform_t) {
    // SAFETY: the contract of the module.
    unsafe { free(extractor) };
}

/// Sets the prefix extractor. The options own it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_prefix_extractor(
    options: *mut rocksdb_options_t,
    extractor: *mut rocksdb_slicetransform_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let prefixing = extractor.as_ref().map(|extractor| extractor.0.clone());
        change(options, |options| options.0.column_family.prefix_extractor = prefixing);
        free(extractor);
    }
}
