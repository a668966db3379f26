//! Options with a counterpart: a setter sets ours, and the getter returns it.

use std::ffi::{c_double, c_int, c_uchar};
use std::time::Duration;

use sateen::{Compression, StatisticsLevel, WalRecovery};

use crate::option_values::is_code;
use crate::options::{change, rocksdb_options_t};
use crate::settings::Setting;
use crate::value_codes::{compaction_priority, compression};

/// The conversion between a value of ours and C's.
trait Field<C>: Copy {
    /// Returns our value that is nearest to C's.
    fn nearest(value: C) -> Self;
    /// Returns C's value; its largest number if ours is larger.
    fn shown(self) -> C;
    /// True if the getter returns the very value that was set.
    const IS_GIVEN_BACK: bool = true;
}

macro_rules! numbers {
    ($($ours:ty, $of_c:ty;)*) => { $(
        impl Field<$of_c> for $ours {
            fn nearest(value: $of_c) -> $ours {
                // Numbers of C that ours cannot represent are negative.
                <$ours>::try_from(value).unwrap_or(0)
            }

            fn shown(self) -> $of_c {
                <$of_c>::try_from(self).unwrap_or(<$of_c>::MAX)
            }
        }
    )* };
}

numbers! {
    u64, usize;
    u64, u64;
    u64, c_int;
    u32, c_int;
}

macro_rules! flags {
    ($($of_c:ty),*) => { $(
        impl Field<$of_c> for bool {
            fn nearest(value: $of_c) -> bool {
                value != 0
            }

            fn shown(self) -> $of_c {
                self.into()
            }

            const IS_GIVEN_BACK: bool = false;
        }
    )* };
}

flags!(c_uchar, c_int);

impl Field<c_double> for f64 {
    fn nearest(value: c_double) -> f64 {
        value
    }

    fn shown(self) -> c_double {
        self
    }
}

/// Returns the name of the option that a function sets.
fn option_of(setter: &'static str) -> &'static str {
    let name = setter.strip_prefix(concat!("rocksdb", "_options_")).unwrap_or(setter);
    name.strip_prefix("set_").unwrap_or(name)
}

/// Returns the value for a getter: the one that was set, as long as our value still results from
/// it.
fn given<O: Field<C> + PartialEq, C: Setting + Copy>(
    options: &rocksdb_options_t,
    setter: &'static str,
    ours: O,
) -> C {
    let given = options.kept::<C>(option_of(setter));
    let given = given.filter(|given| O::IS_GIVEN_BACK && O::nearest(*given) == ours);
    given.unwrap_or_else(|| ours.shown())
}

macro_rules! mapped {
    ($($set:ident($of_set:ty) $get:ident($of_get:ty) $($field:ident).+;)*) => { $(
        #[doc = concat!("Sets `", stringify!($($field).+), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(options: *mut rocksdb_options_t, value: $of_set) {
            // SAFETY: the contract of the module.
            unsafe {
                change(options, |options| {
                    options.keep(option_of(stringify!($set)), value);
                    options.0.$($field).+ = Field::nearest(value);
                });
            }
        }

        #[doc = concat!("Returns `", stringify!($($field).+), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(options: *mut rocksdb_options_t) -> $of_get {
            // SAFETY: the contract of the module.
            let options = unsafe { options.as_ref() };
            options.map_or(Default::default(), |options| {
                given(options, stringify!($set), options.0.$($field).+)
            })
        }
    )* };
}

mapped! {
    rocksdb_options_set_create_if_missing(c_uchar)
        rocksdb_options_get_create_if_missing(c_uchar) create_if_missing;
    rocksdb_options_set_create_missing_column_families(c_uchar)
        rocksdb_options_get_create_missing_column_families(c_uchar)
        create_missing_column_families;
    rocksdb_options_set_error_if_exists(c_uchar)
        rocksdb_options_get_error_if_exists(c_uchar) error_if_exists;
    rocksdb_options_set_write_buffer_size(usize)
        rocksdb_options_get_write_buffer_size(usize) column_family.memtable_bytes;
    rocksdb_options_set_db_write_buffer_size(usize)
        rocksdb_options_get_db_write_buffer_size(usize) all_memtables_bytes;
    rocksdb_options_set_max_write_buffer_number(c_int)
        rocksdb_options_get_max_write_buffer_number(c_int) column_family.memtables_max;
    rocksdb_options_set_min_write_buffer_number_to_merge(c_int)
        rocksdb_options_get_min_write_buffer_number_to_merge(c_int)
        column_family.memtables_to_flush_min;
    rocksdb_options_set_max_total_wal_size(u64)
        rocksdb_options_get_max_total_wal_size(u64) max_total_wal_bytes;
    rocksdb_options_set_WAL_ttl_seconds(u64)
        rocksdb_options_get_WAL_ttl_seconds(u64) wal_ttl_seconds;
    rocksdb_options_set_max_background_jobs(c_int)
        rocksdb_options_get_max_background_jobs(c_int) background_threads;
    rocksdb_options_set_blob_file_size(u64)
        rocksdb_options_get_blob_file_size(u64) column_family.value_file_bytes;
    rocksdb_options_set_blob_file_starting_level(c_int)
        rocksdb_options_get_blob_file_starting_level(c_int) column_family.value_starting_level;
    rocksdb_options_set_enable_blob_gc(c_uchar)
        rocksdb_options_get_enable_blob_gc(c_uchar) column_family.value_garbage_collection;
    rocksdb_options_set_blob_gc_age_cutoff(c_double)
        rocksdb_options_get_blob_gc_age_cutoff(c_double) column_family.value_garbage_age_cutoff;
    rocksdb_options_set_blob_gc_force_threshold(c_double)
        rocksdb_options_get_blob_gc_force_threshold(c_double)
        column_family.value_garbage_force_threshold;
    rocksdb_options_set_num_levels(c_int)
        rocksdb_options_get_num_levels(c_int) column_family.levels;
    rocksdb_options_set_level0_file_num_compaction_trigger(c_int)
        rocksdb_options_get_level0_file_num_compaction_trigger(c_int)
        column_family.level0_trigger;
    rocksdb_options_set_level0_slowdown_writes_trigger(c_int)
        rocksdb_options_get_level0_slowdown_writes_trigger(c_int) column_family.level0_slowdown;
    rocksdb_options_set_level0_stop_writes_trigger(c_int)
        rocksdb_options_get_level0_stop_writes_trigger(c_int) column_family.level0_stop;
    rocksdb_options_set_target_file_size_base(u64)
        rocksdb_options_get_target_file_size_base(u64) column_family.table_bytes;
    rocksdb_options_set_target_file_size_multiplier(c_int)
        rocksdb_options_get_target_file_size_multiplier(c_int) column_family.table_multiplier;
    rocksdb_options_set_max_bytes_for_level_multiplier(c_double)
        rocksdb_options_get_max_bytes_for_level_multiplier(c_double)
        column_family.level_multiplier;
    rocksdb_options_set_level_compaction_dynamic_level_bytes(c_uchar)
        rocksdb_options_get_level_compaction_dynamic_level_bytes(c_uchar)
        column_family.dynamic_level_bytes;
    rocksdb_options_set_max_compaction_bytes(u64)
        rocksdb_options_get_max_compaction_bytes(u64) column_family.compaction_bytes_max;
    rocksdb_options_compaction_readahead_size(usize)
        rocksdb_options_get_compaction_readahead_size(usize) compaction_readahead_bytes;
    rocksdb_options_set_disable_auto_compactions(c_int)
        rocksdb_options_get_disable_auto_compactions(c_uchar)
        column_family.disable_auto_compactions;
    rocksdb_options_set_soft_pending_compaction_bytes_limit(usize)
        rocksdb_options_get_soft_pending_compaction_bytes_limit(usize)
        column_family.soft_pending_compaction_bytes;
    rocksdb_options_set_hard_pending_compaction_bytes_limit(usize)
        rocksdb_options_get_hard_pending_compaction_bytes_limit(usize)
        column_family.hard_pending_compaction_bytes;
    rocksdb_options_set_max_manifest_file_size(usize)
        rocksdb_options_get_max_manifest_file_size(usize) manifest_bytes_max;
    rocksdb_options_set_wal_bytes_per_sync(u64)
        rocksdb_options_get_wal_bytes_per_sync(u64) wal_bytes_per_sync;
    rocksdb_options_set_use_direct_reads(c_uchar)
        rocksdb_options_get_use_direct_reads(c_uchar) direct_reads;
    rocksdb_options_set_use_direct_io_for_flush_and_compaction(c_uchar)
        rocksdb_options_get_use_direct_io_for_flush_and_compaction(c_uchar)
        direct_io_for_flush_and_compaction;
    rocksdb_options_set_write_dbid_to_manifest(c_uchar)
        rocksdb_options_get_write_dbid_to_manifest(c_uchar) checkpoint_keeps_identity;
    rocksdb_options_set_atomic_flush(c_uchar)
        rocksdb_options_get_atomic_flush(c_uchar) atomic_flush;
    rocksdb_options_set_max_write_batch_group_size_bytes(u64)
        rocksdb_options_get_max_write_batch_group_size_bytes(u64) commit_group_bytes_max;
}

/// Sets `level_base_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_max_bytes_for_level_base(
    options: *mut rocksdb_options_t,
    bytes: u64,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.keep(LEVEL_BASE, bytes);
            options.0.column_family.level_base_bytes = bytes;
        });
    }
}

const LEVEL_BASE: &str = "max_bytes_for_level_base";

/// Returns `level_base_bytes`, or RocksDB's default if it follows from the levels above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_max_bytes_for_level_base(
    options: *mut rocksdb_options_t,
) -> u64 {
    // SAFETY: the contract of the module.
    let Some(options) = (unsafe { options.as_ref() }) else { return 256 << 20 };
    match (options.0.column_family.level_base_bytes, options.kept::<u64>(LEVEL_BASE)) {
        (0, Some(0)) => 0,
        (0, _) => 256 << 20,
        (bytes, _) => bytes,
    }
}

impl rocksdb_options_t {
    /// Keeps a setter's value for the getter.
    pub(crate) fn keep(&mut self, key: &'static str, value: impl Setting) {
        value.put(&mut self.2, key);
    }

    /// Returns the value that [`rocksdb_options_t::keep`] kept.
    pub(crate) fn kept<T: Setting>(&self, key: &str) -> Option<T> {
        T::get(&self.2, key)
    }
}

/// Setters whose values have another form here. The getter returns the value that was set.
macro_rules! translated {
    ($(
        $(#[$doc:meta])*
        $set:ident($of_c:ty) $key:literal |$options:ident, $value:ident| $act:expr;
    )*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(options: *mut rocksdb_options_t, $value: $of_c) {
            // SAFETY: the contract of the module.
            unsafe {
                change(options, |options| {
                    options.keep($key, $value);
                    let $options = &mut options.0;
                    $act;
                });
            }
        }
    )* };
}

translated! {
    /// Sets the largest number of open files; -1 for no limit.
    rocksdb_options_set_max_open_files(c_int) "max_open_files" |options, files|
        options.max_open_files = u32::try_from(files).map_or(u32::MAX, |files| files.max(16));
    /// Sets `max_background_compactions`; -1 for as many as there are threads.
    rocksdb_options_set_max_background_compactions(c_int) "max_background_compactions"
        |options, jobs| if let Ok(jobs @ 1..) = u32::try_from(jobs) {
            options.max_background_compactions = jobs;
        };
    /// Sets `max_background_flushes`; -1 changes nothing.
    rocksdb_options_set_max_background_flushes(c_int) "max_background_flushes"
        |options, jobs| if let Ok(jobs @ 1..) = u32::try_from(jobs) {
            options.max_background_flushes = jobs;
        };
    /// Sets the first rate of delayed writes; 0 changes nothing.
    rocksdb_options_set_delayed_write_rate(u64) "delayed_write_rate" |options, bytes|
        if bytes > 0 {
            options.delayed_write_bytes_per_second = bytes;
        };
    /// Sets the compression of all levels.
    rocksdb_options_set_compression(c_int) "compression" |options, code|
        options.column_family.compression = vec![compression(code)];
    /// Sets the compression of the last level; 255 for that of the others.
    rocksdb_options_set_bottommost_compression(c_int) "bottommost_compression"
        |_options, _code| {};
    /// Sets the first compressed level, if the compression of all levels was set before.
    rocksdb_options_set_min_level_to_compress(c_int) "min_level_to_compress" |options, level| {
        let family = &mut options.column_family;
        if let (Ok(level), Some(last)) = (usize::try_from(level), family.compression.last()) {
            let above = std::iter::repeat_n(Compression::None, level.min(16));
            family.compression = above.chain([*last]).collect();
        }
    };
    /// Sets `compaction_priority`.
    rocksdb_options_set_compaction_pri(c_int) "compaction_pri" |options, code|
        options.column_family.compaction_priority = compaction_priority(code);
    /// Sets `retry_delay`, in microseconds.
    rocksdb_options_set_bgerror_resume_retry_interval(u64) "bgerror_resume_retry_interval"
        |options, micros| options.retry_delay = Duration::from_micros(micros);
    /// Sets `wal_recovery`: `absolute` for 1, otherwise `prefix`.
    rocksdb_options_set_wal_recovery_mode(c_int) "wal_recovery_mode" |options, mode|
        options.wal_recovery = match mode {
            1 => WalRecovery::Absolute,
            _ => WalRecovery::Prefix,
        };
}

/// The default level of statistics: everything but detailed times.
const STATISTICS_LEVEL: c_int = 3;

/// Sets `statistics`: latencies from the level with histograms on, and those of each operation at
/// the highest level. Does nothing while statistics are off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_statistics_level(
    options: *mut rocksdb_options_t,
    level: c_int,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            if options.counters().is_some() {
                options.keep("statistics_level", level.clamp(0, 5));
                options.0.statistics = match level {
                    ..=1 => StatisticsLevel::Counters,
                    2..=4 => StatisticsLevel::Latencies,
                    5.. => StatisticsLevel::AllLatencies,
                };
            }
        });
    }
}

/// Returns the level of the statistics, 0 to 5; 0 while they are off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_statistics_level(
    options: *mut rocksdb_options_t,
) -> c_int {
    // SAFETY: the contract of the module.
    let options = unsafe { options.as_ref() }.filter(|options| options.counters().is_some());
    options.map_or(0, |options| options.kept("statistics_level").unwrap_or(STATISTICS_LEVEL))
}

/// Sets the compression of each level.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compression_per_level(
    options: *mut rocksdb_options_t,
    codes: *const c_int,
    levels: usize,
) {
    if codes.is_null() || levels == 0 {
        return;
    }
    // SAFETY: the contract of the module.
    unsafe {
        let codes = std::slice::from_raw_parts(codes, levels);
        change(options, |options| {
            match codes.iter().find(|code| !is_code("compression", (**code).into())) {
                Some(code) => options.keep("compression_per_level", *code),
                None => options.2.clear("compression_per_level"),
            }
            options.0.column_family.compression =
                codes.iter().map(|code| compression(*code)).collect();
        });
    }
}

/// Sets zstd's level, if `level` is a valid one. The other values have no counterpart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compression_options(
    options: *mut rocksdb_options_t,
    _window_bits: c_int,
    level: c_int,
    _strategy: c_int,
    _dictionary_bytes: c_int,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            if (1..=22).contains(&level) {
                options.0.column_family.zstd_level = level;
            }
        });
    }
}

/// Lets databases that are opened with these options count there, with latencies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_enable_statistics(options: *mut rocksdb_options_t) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.0.statistics = StatisticsLevel::Latencies;
            options.3.get_or_insert_default();
            options.keep("statistics_level", STATISTICS_LEVEL);
        });
    }
}

/// Sets the number of background threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_increase_parallelism(
    options: *mut rocksdb_options_t,
    threads: c_int,
) {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_options_set_max_background_jobs(options, threads.max(2)) };
}

/// Sets sizes for this many bytes of memtables in RocksDB's way: a quarter for each memtable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_optimize_level_style_compaction(
    options: *mut rocksdb_options_t,
    memtable_memory_budget: u64,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.set_style(0);
            let family = &mut options.0.column_family;
            family.memtable_bytes = (memtable_memory_budget / 4).max(64 << 10);
            family.memtables_max = 6;
            family.level_base_bytes = memtable_memory_budget.max(256 << 10);
        });
    }
}

/// Chooses universal compaction, and sets memtables for this many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_optimize_universal_style_compaction(
    options: *mut rocksdb_options_t,
    memtable_memory_budget: u64,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.set_style(1);
            let family = &mut options.0.column_family;
            family.memtable_bytes = (memtable_memory_budget / 4).max(64 << 10);
            family.memtables_max = 6;
        });
    }
}

/// Sets a block cache of this many MiB, and filters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_optimize_for_point_lookup(
    options: *mut rocksdb_options_t,
    cache_mib: u64,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.0.shared_block_cache = None;
            options.0.block_cache_bytes = cache_mib.saturating_mul(1 << 20).max(1);
            options.0.column_family.bloom_bits_per_key = 10;
            options.0.column_family.whole_key_filter = true;
        });
    }
}

/// Turns off automatic compactions, and write stalls that wait for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_prepare_for_bulk_load(options: *mut rocksdb_options_t) {
    const NEVER: u32 = 1 << 30;
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            let family = &mut options.0.column_family;
            family.level0_trigger = NEVER;
            family.level0_slowdown = NEVER;
            family.level0_stop = NEVER;
            family.soft_pending_compaction_bytes = 0;
            family.hard_pending_compaction_bytes = 0;
            family.disable_auto_compactions = true;
            family.memtables_max = family.memtables_max.max(6);
            family.memtables_to_flush_min = 1;
            options.0.max_background_flushes = options.0.max_background_flushes.max(4);
        });
    }
}

/// Sets a merge operator that adds 64-bit little-endian numbers. A value of another length counts
/// as 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_uint64add_merge_operator(
    options: *mut rocksdb_options_t,
) {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let add = move |_: &[u8], before: Option<&[u8]>, operand: &[u8]| {
        let sum = before.map_or(0, number).wrapping_add(number(operand));
        Some(sum.to_le_bytes().to_vec())
    };
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            let merging = sateen::Merging::associative("UInt64AddOperator", add);
            options.0.column_family.merge_operator = Some(merging);
        });
    }
}
