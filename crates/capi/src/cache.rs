//! Block caches, which databases may share.

use sateen::SharedBlockCache;

use crate::abi::{free, give, quiet};
use crate::settings::{Setting, Settings, keeps};

/// A block cache. Databases whose options have the same cache share it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
#[derive(Clone)]
pub struct rocksdb_cache_t(pub(crate) SharedBlockCache);

type Cache = rocksdb_cache_t;

fn made(bytes: usize) -> *mut Cache {
    quiet(std::ptr::null_mut(), || give(rocksdb_cache_t(SharedBlockCache::new(bytes as u64))))
}

/// Makes a cache of this many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru(bytes: usize) -> *mut Cache {
    made(bytes)
}

/// Makes a cache of this many bytes. No cache ever exceeds its capacity.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru_with_strict_capacity_limit(bytes: usize) -> *mut Cache {
    made(bytes)
}

/// Makes a cache of this many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_hyper_clock(bytes: usize, _charge: usize) -> *mut Cache {
    made(bytes)
}

/// Options of a cache. Only its capacity has an effect.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
#[derive(Default)]
pub struct rocksdb_lru_cache_options_t {
    kept: Settings,
}

/// Options of a cache. Only its capacity has an effect.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
#[derive(Default)]
pub struct rocksdb_hyper_clock_cache_options_t {
    kept: Settings,
}

keeps!(rocksdb_lru_cache_options_t: kept, rocksdb_hyper_clock_cache_options_t: kept);

/// Makes options of a cache.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_lru_cache_options_create() -> *mut rocksdb_lru_cache_options_t {
    give(rocksdb_lru_cache_options_t::default())
}

/// Frees options of a cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_lru_cache_options_destroy(
    options: *mut rocksdb_lru_cache_options_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(options) };
}

/// Makes options of a cache of this many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_hyper_clock_cache_options_create(
    bytes: usize,
    _charge: usize,
) -> *mut rocksdb_hyper_clock_cache_options_t {
    let mut options = rocksdb_hyper_clock_cache_options_t::default();
    bytes.put(&mut options.kept, "capacity");
    give(options)
}

/// Frees options of a cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_hyper_clock_cache_options_destroy(
    options: *mut rocksdb_hyper_clock_cache_options_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(options) };
}

/// Makes a cache with these options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_create_lru_opts(
    options: *const rocksdb_lru_cache_options_t,
) -> *mut Cache {
    // SAFETY: the contract of the module.
    let options = unsafe { options.as_ref() };
    made(options.and_then(|options| usize::get(&options.kept, "capacity")).unwrap_or(0))
}

/// Makes a cache with these options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_create_hyper_clock_opts(
    options: *const rocksdb_hyper_clock_cache_options_t,
) -> *mut Cache {
    // SAFETY: the contract of the module.
    let options = unsafe { options.as_ref() };
    made(options.and_then(|options| usize::get(&options.kept, "capacity")).unwrap_or(0))
}

/// Frees the caller's reference to a cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_destroy(cache: *mut Cache) {
    // SAFETY: the contract of the module.
    unsafe { free(cache) };
}

/// Accepted without effect: the memory is freed with the last reference to the cache.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_disown_data(_cache: *mut Cache) {}

/// Changes the capacity of a cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_set_capacity(cache: *mut Cache, bytes: usize) {
    // SAFETY: the contract of the module.
    if let Some(cache) = unsafe { cache.as_ref() } {
        quiet((), || cache.0.set_capacity(bytes as u64));
    }
}

macro_rules! looks {
    ($($(#[$doc:meta])* $function:ident |$cache:ident| $of:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(cache: *const Cache) -> usize {
            // SAFETY: the contract of the module.
            let number = unsafe { cache.as_ref() }.map_or(0, |cache| {
                let $cache = &cache.0;
                quiet(0, || $of)
            });
            usize::try_from(number).unwrap_or(usize::MAX)
        }
    )* };
}

looks! {
    /// Returns the capacity in bytes.
    rocksdb_cache_get_capacity |cache| cache.capacity();
    /// Returns the bytes in the cache.
    rocksdb_cache_get_usage |cache| cache.usage_bytes();
    /// Returns the bytes of blocks that readers hold, evicted ones included.
    rocksdb_cache_get_pinned_usage |cache| cache.in_use_bytes();
    /// Returns the number of blocks in the cache.
    rocksdb_cache_get_occupancy_count |cache| cache.blocks() as u64;
    /// Returns the number of places for blocks, which is that of the blocks.
    rocksdb_cache_get_table_address_count |cache| cache.blocks() as u64;
}
