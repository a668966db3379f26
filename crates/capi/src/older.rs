//! Functions whose signature changed between RocksDB 7 and 11, with the signatures of older
//! versions.
//!
//! Each has a name of its own, which the header uses for a program that defines
//! `SATEEN_ROCKSDB_ABI`. A library that is built for an older version (`build.rs`) has it under
//! RocksDB's name instead of the newest function. The library's tickers and histograms have the
//! numbers of that version, too.

use std::ffi::{c_char, c_double, c_int, c_uchar, c_void};

use crate::abi::ErrPtr;
use crate::database::rocksdb_t;
use crate::options::rocksdb_options_t;
use crate::prefix::{InDomain, Transform, rocksdb_slicetransform_create, rocksdb_slicetransform_t};
use crate::work::rocksdb_enable_file_deletions;

type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type Destructor = unsafe extern "C" fn(*mut c_void);

/// Accepted without effect: tables have one format.
#[cfg_attr(not(abi_below_8), unsafe(no_mangle))]
pub extern "C" fn rocksdb_options_set_plain_table_factory(
    _options: *mut rocksdb_options_t,
    _user_key_length: u32,
    _bloom_bits_per_key: c_int,
    _hash_table_ratio: c_double,
    _index_sparseness: usize,
    _huge_page_tlb_size: usize,
    _encoding_type: c_char,
    _full_scan_mode: c_uchar,
    _store_index_in_file: c_uchar,
) {
}

/// Defines an older function under a name of its own, and under RocksDB's if the library is built
/// for a version that has it.
macro_rules! older {
    ($($(#[$doc:meta])* $own:ident as $name:literal if $cfg:ident
        ($($argument:ident: $type:ty),* $(,)?) $(-> $returns:ty)? $body:block)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $own($($argument: $type),*) $(-> $returns)? $body

        #[cfg($cfg)]
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn under_its_name($($argument: $type),*) $(-> $returns)? {
                // SAFETY: the contract of the crate.
                unsafe { $own($($argument),*) }
            }
        };
    )* };
}

older! {
    /// The form up to RocksDB 10, with a function that RocksDB has not called since version 5.
    rocksdb_slicetransform_create_abi10 as "rocksdb_slicetransform_create" if abi_below_11 (
        state: *mut c_void,
        destructor: Option<Destructor>,
        transform: Option<Transform>,
        in_domain: Option<InDomain>,
        _in_range: Option<InDomain>,
        name: Option<Name>,
    ) -> *mut rocksdb_slicetransform_t {
        // SAFETY: the contract of the crate.
        unsafe { rocksdb_slicetransform_create(state, destructor, transform, in_domain, name) }
    }

    /// The form up to RocksDB 8: `force` ends all calls of `rocksdb_disable_file_deletions` at
    /// once.
    rocksdb_enable_file_deletions_abi8 as "rocksdb_enable_file_deletions" if abi_below_9 (
        db: *mut rocksdb_t,
        force: c_uchar,
        errptr: ErrPtr,
    ) {
        // SAFETY: the contract of the crate.
        unsafe {
            if force == 0 {
                rocksdb_enable_file_deletions(db, errptr);
            } else {
                crate::work::enable_all_file_deletions(db, errptr);
            }
        }
    }

    /// The form up to RocksDB 8.4.
    rocksdb_options_set_plain_table_factory_abi7 as "rocksdb_options_set_plain_table_factory"
        if abi_below_8 (
        _options: *mut rocksdb_options_t,
        _user_key_length: u32,
        _bloom_bits_per_key: c_int,
        _hash_table_ratio: c_double,
        _index_sparseness: usize,
    ) {}
}

/// The counted tickers, by their numbers in RocksDB 11.8.
const TICKERS: [u32; 28] = [
    0, 1, 12, 13, 35, 36, 37, 45, 46, 51, 58, 59, 61, 62, 63, 64, 70, 71, 74, 75, 76, 78, 84, 85,
    91, 94, 95, 96,
];
/// The counted histograms, by their numbers in RocksDB 11.8.
const HISTOGRAMS: [u32; 7] = [0, 1, 2, 10, 15, 16, 50];

/// The same numbers in the library's version: RocksDB 11.
#[cfg(not(abi_below_11))]
const OWN: ([u32; 28], [u32; 7]) = (TICKERS, HISTOGRAMS);
/// The same numbers in RocksDB 9 and 10.
#[cfg(all(abi_below_11, not(abi_below_9)))]
const OWN: ([u32; 28], [u32; 7]) = (
    [
        0, 1, 12, 13, 35, 36, 37, 45, 46, 51, 57, 58, 60, 61, 62, 63, 69, 70, 73, 74, 75, 77, 83,
        84, 85, 88, 89, 90,
    ],
    HISTOGRAMS,
);
/// The same numbers in RocksDB 8.11. Those of histograms differ in 8.7.
#[cfg(all(abi_below_9, not(abi_below_8)))]
const OWN: ([u32; 28], [u32; 7]) = (
    [
        0, 1, 12, 13, 18, 19, 20, 25, 26, 31, 37, 38, 40, 41, 42, 43, 91, 60, 49, 50, 51, 53, 62,
        63, 64, 67, 68, 69,
    ],
    [0, 1, 2, 10, 15, 16, 52],
);
/// The same numbers in RocksDB 7.
#[cfg(abi_below_8)]
const OWN: ([u32; 28], [u32; 7]) = (
    [
        0, 1, 14, 15, 20, 21, 22, 28, 29, 34, 40, 41, 43, 44, 45, 46, 104, 69, 53, 54, 58, 62, 75,
        76, 77, 81, 82, 83,
    ],
    [0, 1, 2, 10, 20, 21, 46],
);

/// Returns the number in RocksDB 11.8 of the ticker with `number` in the library's version; `None`
/// if it is not counted.
pub(crate) fn ticker(number: u32) -> Option<u32> {
    translated(number, &OWN.0, &TICKERS)
}

/// Returns the same for a histogram.
pub(crate) fn histogram(number: u32) -> Option<u32> {
    translated(number, &OWN.1, &HISTOGRAMS)
}

fn translated(number: u32, own: &[u32], newest: &[u32]) -> Option<u32> {
    let at = own.iter().position(|own| *own == number)?;
    newest.get(at).copied()
}
