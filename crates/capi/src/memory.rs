//! The memory of databases and caches.

use sateen::{Db, SharedBlockCache};

use crate::abi::{ErrPtr, free, give, guard, missing};
use crate::cache::rocksdb_cache_t as Cache;
use crate::database::rocksdb_t;

/// The databases and caches whose memory is summed up.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
#[derive(Default)]
pub struct rocksdb_memory_consumers_t {
    databases: Vec<Db>,
    caches: Vec<SharedBlockCache>,
}

/// Makes an empty list.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_memory_consumers_create() -> *mut rocksdb_memory_consumers_t {
    give(rocksdb_memory_consumers_t::default())
}

/// Adds a database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_memory_consumers_add_db(
    consumers: *mut rocksdb_memory_consumers_t,
    db: *mut rocksdb_t,
) {
    // SAFETY: the contract of the module.
    if let (Some(consumers), Some(db)) = unsafe { (consumers.as_mut(), db.as_ref()) } {
        consumers.databases.push(db.db.clone());
    }
}

/// Adds a cache. The same cache counts once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_memory_consumers_add_cache(
    consumers: *mut rocksdb_memory_consumers_t,
    cache: *mut Cache,
) {
    // SAFETY: the contract of the module.
    if let (Some(consumers), Some(cache)) = unsafe { (consumers.as_mut(), cache.as_ref()) }
        && !consumers.caches.contains(&cache.0)
    {
        consumers.caches.push(cache.0.clone());
    }
}

/// Frees a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_memory_consumers_destroy(
    consumers: *mut rocksdb_memory_consumers_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(consumers) };
}

/// The memory at the time of a measurement.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
#[derive(Default)]
pub struct rocksdb_memory_usage_t {
    memtables: u64,
    readers: u64,
    caches: u64,
}

/// Measures the memory of a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_memory_usage_create(
    consumers: *mut rocksdb_memory_consumers_t,
    errptr: ErrPtr,
) -> *mut rocksdb_memory_usage_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, std::ptr::null_mut(), || {
            let list = consumers.as_ref().ok_or_else(|| missing("the list of consumers"))?;
            let mut usage = rocksdb_memory_usage_t::default();
            for memory in list.databases.iter().map(|db| db.metrics().memory) {
                usage.memtables += memory.active_memtables + memory.immutable_memtables;
                usage.readers += memory.indexes_and_filters;
            }
            let of_cache = |cache: &SharedBlockCache| cache.usage_bytes() + cache.index_bytes();
            usage.caches = list.caches.iter().map(of_cache).sum();
            Ok(give(usage))
        })
    }
}

/// Frees a measurement.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_memory_usage_destroy(
    usage: *mut rocksdb_memory_usage_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(usage) };
}

macro_rules! totals {
    ($($(#[$doc:meta])* $function:ident $field:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(usage: *mut rocksdb_memory_usage_t) -> u64 {
            // SAFETY: the contract of the module.
            unsafe { usage.as_ref() }.map_or(0, |usage| usage.$field)
        }
    )* };
}

totals! {
    /// Returns the bytes of all memtables.
    rocksdb_approximate_memory_usage_get_mem_table_total memtables;
    /// Returns the bytes of unflushed memtables, which are all memtables.
    rocksdb_approximate_memory_usage_get_mem_table_unflushed memtables;
    /// Returns the bytes of indexes and filters of tables.
    rocksdb_approximate_memory_usage_get_mem_table_readers_total readers;
    /// Returns the bytes of the caches, with the tables that find blocks.
    rocksdb_approximate_memory_usage_get_cache_total caches;
}
