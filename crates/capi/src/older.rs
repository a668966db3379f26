//! Functions whose signature changed between RocksDB 7 and 11, as older versions have them.
//!
//! Each is there under a name of its own, which the header uses for a program that defines
//! `SATEEN_ROCKSDB_ABI`. A library that is built for an older version (`build.rs`) has it under
//! RocksDB's name instead of the newest one.

use std::ffi::{c_char, c_double, c_int, c_uchar, c_void};

use crate::abi::ErrPtr;
use crate::db::rocksdb_t;
use crate::options::rocksdb_options_t;
use crate::prefix::{InDomain, Transform, rocksdb_slicetransform_create, rocksdb_slicetransform_t};
use crate::work::rocksdb_enable_file_deletions;

type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type Destructor = unsafe extern "C" fn(*mut c_void);

/// Accepted without effect: tables have one form.
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
    /// Up to RocksDB 10: with a function that nothing has called since RocksDB 5.
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

    /// Up to RocksDB 8: `force` ends all calls of `rocksdb_disable_file_deletions` at once.
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

    /// Up to RocksDB 8.4.
    rocksdb_options_set_plain_table_factory_abi7 as "rocksdb_options_set_plain_table_factory"
        if abi_below_8 (
        _options: *mut rocksdb_options_t,
        _user_key_length: u32,
        _bloom_bits_per_key: c_int,
        _hash_table_ratio: c_double,
        _index_sparseness: usize,
    ) {}
}
