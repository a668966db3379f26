//! Block-based table options and filter policies.

use std::ffi::{c_double, c_int, c_uchar};
use std::fmt::{Display, Write as _};

use sateen::Options;

use crate::abi::{free, give};
use crate::cache::rocksdb_cache_t;
use crate::settings::{Setting, Settings, keeps};

/// The getters of all options, as C has them.
mod listed {
    use std::ffi::c_void;
    use std::fmt::Display;

    include!(concat!(env!("OUT_DIR"), "/listed_of_tables.rs"));
}

/// The name under which options keep what LOG says of tables.
pub(crate) const OF_TABLES: &str = "lines of LOG about tables";

/// A filter policy: bits for each key.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_filterpolicy_t(u32);

/// Options of tables.
#[derive(Clone, Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_block_based_table_options_t {
    block_bytes: Option<u64>,
    restart_interval: Option<c_int>,
    whole_key_filter: Option<bool>,
    cache: Option<rocksdb_cache_t>,
    no_cache: bool,
    filter_bits: u32,
    kept: Settings,
}

keeps!(rocksdb_block_based_table_options_t: kept);

impl rocksdb_block_based_table_options_t {
    /// Applies them to `options`. Values that were not set have RocksDB's defaults: blocks of 4
    /// KiB, a cache of 32 MiB, no filters.
    pub(crate) fn apply(&self, options: &mut Options) {
        let family = &mut options.column_family;
        let restart_interval = u32::try_from(self.restart_interval.unwrap_or(16)).unwrap_or(1);
        family.block_bytes = self.block_bytes.unwrap_or(4 << 10).clamp(1, 16 << 20);
        family.restart_interval = restart_interval.clamp(1, 65_535);
        family.whole_key_filter = self.whole_key_filter.unwrap_or(true);
        family.bloom_bits_per_key = self.filter_bits;
        options.block_cache_bytes = if self.no_cache { 1 } else { 32 << 20 };
        let shared = self.cache.as_ref().filter(|_| !self.no_cache);
        options.shared_block_cache = shared.map(|cache| cache.0.clone());
    }

    /// Returns the lines of LOG about them.
    pub(crate) fn lines(&self) -> String {
        let mut lines = String::new();
        let mut add = |name: &str, value: &dyn Display| {
            let _never_fails = writeln!(lines, "  {name}: {value}");
        };
        // A copy, because the getters get a pointer through which they might write.
        let mut copy = self.clone();
        // SAFETY: the handle is valid.
        unsafe { listed::each((&raw mut copy).cast(), &mut add) };
        lines
    }
}

type Table = rocksdb_block_based_table_options_t;

/// Makes table options.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_create() -> *mut Table {
    give(Table::default())
}

/// Frees table options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_destroy(options: *mut Table) {
    // SAFETY: the contract of the module.
    unsafe { free(options) };
}

macro_rules! setters {
    ($(
        $(#[$doc:meta])*
        $function:ident($value:ident: $type:ty) |$options:ident| $set:expr;
    )*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(options: *mut Table, $value: $type) {
            // SAFETY: the contract of the module.
            if let Some($options) = unsafe { options.as_mut() } {
                $set;
            }
        }
    )* };
}

setters! {
    /// Sets `block_bytes`.
    rocksdb_block_based_options_set_block_size(bytes: usize)
        |options| options.block_bytes = Some(bytes as u64);
    /// Sets `restart_interval`.
    rocksdb_block_based_options_set_block_restart_interval(entries: c_int)
        |options| options.restart_interval = Some(entries);
    /// Sets `whole_key_filter`.
    rocksdb_block_based_options_set_whole_key_filtering(whole: c_uchar)
        |options| options.whole_key_filter = Some(whole != 0);
    /// Turns the block cache off.
    rocksdb_block_based_options_set_no_block_cache(none: c_uchar)
        |options| options.no_cache = none != 0;
    /// The older name of `rocksdb_block_based_options_set_data_block_hash_table_util_ratio`.
    rocksdb_block_based_options_set_data_block_hash_ratio(ratio: c_double)
        |options| ratio.put(&mut options.kept, "data_block_hash_table_util_ratio");
}

macro_rules! getters {
    ($($(#[$doc:meta])* $function:ident -> $type:ty: |$options:ident| $value:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(options: *mut Table) -> $type {
            // SAFETY: the contract of the module.
            unsafe { options.as_ref() }.map_or_else(Default::default, |$options| $value)
        }
    )* };
}

getters! {
    /// Returns the value that was set, or RocksDB's default.
    rocksdb_block_based_options_get_block_size -> usize: |options|
        options.block_bytes.map_or(4 << 10, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    /// Returns the value that was set, or RocksDB's default.
    rocksdb_block_based_options_get_block_restart_interval -> c_int: |options|
        options.restart_interval.unwrap_or(16);
    /// Returns the value that was set, or RocksDB's default.
    rocksdb_block_based_options_get_whole_key_filtering -> c_uchar: |options|
        options.whole_key_filter.unwrap_or(true).into();
    /// Returns the value that was set.
    rocksdb_block_based_options_get_no_block_cache -> c_uchar: |options| options.no_cache.into();
}

/// Sets the block cache; null for a private one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_set_block_cache(
    options: *mut Table,
    cache: *mut rocksdb_cache_t,
) {
    // SAFETY: the contract of the module.
    if let Some(options) = unsafe { options.as_mut() } {
        // SAFETY: the contract of the module.
        options.cache = unsafe { cache.as_ref() }.cloned();
    }
}

/// Sets the filter policy. The options own it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_set_filter_policy(
    options: *mut Table,
    policy: *mut rocksdb_filterpolicy_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let bits = policy.as_ref().map_or(0, |policy| policy.0);
        if let Some(options) = options.as_mut() {
            options.filter_bits = bits;
        }
        free(policy);
    }
}

/// Makes a policy of Bloom filters with about this many bits for each key.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_bloom(
    bits_per_key: c_double,
) -> *mut rocksdb_filterpolicy_t {
    // NaN becomes 0 as well.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
    let bits = bits_per_key.round().clamp(0.0, 64.0) as u32;
    give(rocksdb_filterpolicy_t(bits))
}

/// Makes a policy of Bloom filters, like the function above.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_bloom_full(
    bits_per_key: c_double,
) -> *mut rocksdb_filterpolicy_t {
    rocksdb_filterpolicy_create_bloom(bits_per_key)
}

/// Frees a policy that no options own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_filterpolicy_destroy(policy: *mut rocksdb_filterpolicy_t) {
    // SAFETY: the contract of the module.
    unsafe { free(policy) };
}

/// Makes a policy of filters that are as good as Bloom filters with this many bits for each key:
/// Bloom filters.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_ribbon(
    bloom_equivalent_bits_per_key: c_double,
) -> *mut rocksdb_filterpolicy_t {
    rocksdb_filterpolicy_create_bloom(bloom_equivalent_bits_per_key)
}

/// Makes a policy of Bloom filters, like the function above.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_ribbon_hybrid(
    bloom_equivalent_bits_per_key: c_double,
    _bloom_before_level: c_int,
) -> *mut rocksdb_filterpolicy_t {
    rocksdb_filterpolicy_create_bloom(bloom_equivalent_bits_per_key)
}
