//! The counts of this thread's operations, under RocksDB's numbers.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uchar};

use sateen::{PerfContext, PerfLevel, PerfMetric};

use crate::abi::{free, give, malloc_copy, quiet};

/// The names of RocksDB's metrics, by their numbers.
const NAMES: [&str; 84] = [
    "user_key_comparison_count",
    "block_cache_hit_count",
    "block_read_count",
    "block_read_byte",
    "block_read_time",
    "block_checksum_time",
    "block_decompress_time",
    "get_read_bytes",
    "multiget_read_bytes",
    "iter_read_bytes",
    "internal_key_skipped_count",
    "internal_delete_skipped_count",
    "internal_recent_skipped_count",
    "internal_merge_count",
    "get_snapshot_time",
    "get_from_memtable_time",
    "get_from_memtable_count",
    "get_post_process_time",
    "get_from_output_files_time",
    "seek_on_memtable_time",
    "seek_on_memtable_count",
    "next_on_memtable_count",
    "prev_on_memtable_count",
    "seek_child_seek_time",
    "seek_child_seek_count",
    "seek_min_heap_time",
    "seek_max_heap_time",
    "seek_internal_seek_time",
    "find_next_user_entry_time",
    "write_wal_time",
    "write_memtable_time",
    "write_delay_time",
    "write_pre_and_post_process_time",
    "db_mutex_lock_nanos",
    "db_condition_wait_nanos",
    "merge_operator_time_nanos",
    "read_index_block_nanos",
    "read_filter_block_nanos",
    "new_table_block_iter_nanos",
    "new_table_iterator_nanos",
    "block_seek_nanos",
    "find_table_nanos",
    "bloom_memtable_hit_count",
    "bloom_memtable_miss_count",
    "bloom_sst_hit_count",
    "bloom_sst_miss_count",
    "key_lock_wait_time",
    "key_lock_wait_count",
    "env_new_sequential_file_nanos",
    "env_new_random_access_file_nanos",
    "env_new_writable_file_nanos",
    "env_reuse_writable_file_nanos",
    "env_new_random_rw_file_nanos",
    "env_new_directory_nanos",
    "env_file_exists_nanos",
    "env_get_children_nanos",
    "env_get_children_file_attributes_nanos",
    "env_delete_file_nanos",
    "env_create_dir_nanos",
    "env_create_dir_if_missing_nanos",
    "env_delete_dir_nanos",
    "env_get_file_size_nanos",
    "env_get_file_modification_time_nanos",
    "env_rename_file_nanos",
    "env_link_file_nanos",
    "env_lock_file_nanos",
    "env_unlock_file_nanos",
    "env_new_logger_nanos",
    "number_async_seek",
    "blob_cache_hit_count",
    "blob_read_count",
    "blob_read_byte",
    "blob_read_time",
    "blob_checksum_time",
    "blob_decompress_time",
    "internal_range_del_reseek_count",
    "block_read_cpu_time",
    "internal_merge_point_lookup_count",
    "data_block_read_byte",
    "index_block_read_byte",
    "filter_block_read_byte",
    "compression_dict_block_read_byte",
    "metadata_block_read_byte",
    "blob_cache_read_byte",
];

fn numbered(number: c_int) -> Option<PerfMetric> {
    let name = NAMES.get(usize::try_from(number).ok()?)?;
    PerfMetric::ALL.iter().copied().find(|metric| metric.name() == *name)
}

/// A view of the counts of the calling thread.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_perfcontext_t(());

thread_local! {
    /// True if this thread has a level: it set one or has used a context.
    static HAS_LEVEL: Cell<bool> = const { Cell::new(false) };
}

/// Sets how much this thread counts.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_set_perf_level(level: c_int) {
    let level = match level {
        ..=1 => PerfLevel::Off,
        2 => PerfLevel::Counts,
        3 => PerfLevel::Waits,
        // There are no levels for processor time alone.
        4 | 5 => PerfLevel::Times,
        6.. => PerfLevel::TimesAndLocks,
    };
    HAS_LEVEL.set(true);
    quiet((), || level.set());
}

/// Starts counting for a thread that uses a context and has set no level. RocksDB's threads count
/// from their beginning; here a thread that never asks pays nothing.
fn begin() {
    if !HAS_LEVEL.replace(true) && PerfLevel::of_thread() == PerfLevel::Off {
        quiet((), || PerfLevel::Counts.set());
    }
}

/// Makes a context.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_create() -> *mut rocksdb_perfcontext_t {
    begin();
    give(rocksdb_perfcontext_t(()))
}

/// Frees a context. The counts stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_perfcontext_destroy(context: *mut rocksdb_perfcontext_t) {
    // SAFETY: the contract of the module.
    unsafe { free(context) };
}

/// Resets the counts of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_reset(_context: *mut rocksdb_perfcontext_t) {
    begin();
    quiet((), PerfContext::reset);
}

/// Returns a count of this thread; 0 if the engine does not count it.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_metric(
    _context: *mut rocksdb_perfcontext_t,
    metric: c_int,
) -> u64 {
    begin();
    quiet(0, || numbered(metric).map_or(0, |metric| PerfContext::of_thread().get(metric)))
}

/// Returns all counts as text, to be freed. Zeros can be excluded.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_report(
    _context: *mut rocksdb_perfcontext_t,
    exclude_zeros: c_uchar,
) -> *mut c_char {
    begin();
    quiet(std::ptr::null_mut(), || {
        let counted = PerfContext::of_thread();
        let value = |name: &str| {
            let metric = PerfMetric::ALL.iter().find(|metric| metric.name() == name);
            metric.map_or(0, |metric| counted.get(*metric))
        };
        // Metrics without a number come last.
        let others = PerfMetric::ALL.iter().map(|metric| metric.name());
        let names = NAMES.into_iter().chain(others.filter(|name| !NAMES.contains(name)));
        let shown = names.map(|name| (name, value(name)));
        let shown = shown.filter(|(_, value)| exclude_zeros == 0 || *value > 0);
        let lines: Vec<_> = shown.map(|(name, value)| format!("{name} = {value}")).collect();
        malloc_copy(lines.join(", ").as_bytes())
    })
}
