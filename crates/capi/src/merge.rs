//! Merge operators in C.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use sateen::{MergeOperator, Merging};

use crate::abi::{bytes_or_none, give, quiet};
use crate::callbacks::{State, name_of};

type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

/// The functions of a merge operator and their state.
struct Callbacks {
    state: State,
    full_merge: Option<FullMerge>,
    partial_merge: Option<PartialMerge>,
    delete_value: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
    name: String,
}

impl Callbacks {
    /// Returns a copy of a function's result and frees the result.
    fn take(&self, value: *mut c_char, length: usize, success: c_uchar) -> Option<Vec<u8>> {
        if value.is_null() {
            return (success != 0).then(Vec::new);
        }
        // SAFETY: the function returned this many bytes.
        let copy = (success != 0).then(|| unsafe { bytes_or_none(value, length) }.to_vec());
        match self.delete_value {
            // SAFETY: it frees what the functions return.
            Some(delete) => unsafe { delete(self.state.state, value, length) },
            // SAFETY: without a destructor they return memory of `malloc`.
            None => unsafe { libc::free(value.cast()) },
        }
        copy
    }
}

struct Lists {
    data: Vec<*const c_char>,
    lengths: Vec<usize>,
    count: c_int,
}

fn lists(operands: &[&[u8]]) -> Option<Lists> {
    Some(Lists {
        data: operands.iter().map(|operand| operand.as_ptr().cast()).collect(),
        lengths: operands.iter().map(|operand| operand.len()).collect(),
        count: c_int::try_from(operands.len()).ok()?,
    })
}

impl MergeOperator for Callbacks {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let Lists { data, lengths, count } = lists(operands)?;
        let (mut success, mut length) = (0, 0);
        let before = existing.map_or(std::ptr::null(), |value| value.as_ptr().cast());
        let (state, key_at) = (self.state.state, key.as_ptr().cast());
        // SAFETY: RocksDB calls it with byte strings that live as long as the call, lists of
        // `count` of them, and places for two answers.
        let value = unsafe {
            self.full_merge?(
                state,
                key_at,
                key.len(),
                before,
                existing.map_or(0, <[u8]>::len),
                data.as_ptr(),
                lengths.as_ptr(),
                count,
                &raw mut success,
                &raw mut length,
            )
        };
        self.take(value, length, success)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let Lists { data, lengths, count } = lists(operands)?;
        let (mut success, mut length) = (0, 0);
        let (state, key_at) = (self.state.state, key.as_ptr().cast());
        // SAFETY: as above.
        let value = unsafe {
            self.partial_merge?(
                state,
                key_at,
                key.len(),
                data.as_ptr(),
                lengths.as_ptr(),
                count,
                &raw mut success,
                &raw mut length,
            )
        };
        self.take(value, length, success)
    }
}

/// A merge operator. Options that get it own it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_mergeoperator_t(pub(crate) Merging);

/// Makes a merge operator of functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_mergeoperator_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    full_merge: Option<FullMerge>,
    partial_merge: Option<PartialMerge>,
    delete_value: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> *mut rocksdb_mergeoperator_t {
    // SAFETY: RocksDB's contract.
    let name = unsafe { name_of(name, state) };
    let callbacks = Callbacks {
        state: State { state, destructor },
        full_merge,
        partial_merge,
        delete_value,
        name,
    };
    quiet(std::ptr::null_mut(), || give(rocksdb_mergeoperator_t(Merging::new(callbacks))))
}

/// Frees a merge operator that no options own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_mergeoperator_destroy(operator: *mut rocksdb_mergeoperator_t) {
    // SAFETY: the contract of the module.
    unsafe { crate::abi::free(operator) };
}
