//! Options of a database and its column families. A setter with a counterpart sets it; one without
//! is accepted and changes nothing: `docs/c_abi.md` says which are which.

use std::ffi::{c_char, c_double, c_int, c_uchar};

use sateen::{Compression, Error, Options};

use crate::abi::{ErrPtr, free, give, guard, missing, text};
use crate::merge::rocksdb_mergeoperator_t;
use crate::settings::{Settings, keeps};
use crate::table_options::rocksdb_block_based_table_options_t;

/// Options, all of a column family's among them, the first value that was refused, and
/// what has no counterpart.
#[derive(Clone)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_options_t(pub(crate) Options, Option<Error>, Settings);

keeps!(rocksdb_options_t: 2);

impl rocksdb_options_t {
    /// Sets an option by name. A value that cannot be is told when a database is opened with it.
    fn set(&mut self, name: &str, value: &str) {
        if let Err(error) = self.0.set(name, value) {
            self.1.get_or_insert(error);
        }
    }

    /// Options that a database can be opened with: limits that contradict each other are brought
    /// into order, as RocksDB does.
    pub(crate) fn checked(&self) -> sateen::Result<Options> {
        if let Some(error) = &self.1 {
            return Err(error.clone());
        }
        let mut options = self.0.clone();
        let family = &mut options.column_family;
        family.memtables_max = family.memtables_max.max(2);
        family.memtables_to_flush_min =
            family.memtables_to_flush_min.clamp(1, family.memtables_max - 1);
        family.level0_trigger = family.level0_trigger.max(1);
        family.level0_slowdown = family.level0_slowdown.max(family.level0_trigger);
        family.level0_stop = family.level0_stop.max(family.level0_slowdown);
        Ok(options)
    }
}

/// Changes the options at `options`, if there are any.
pub(crate) unsafe fn change(
    options: *mut rocksdb_options_t,
    act: impl FnOnce(&mut rocksdb_options_t),
) {
    // SAFETY: the contract of the module.
    if let Some(options) = unsafe { options.as_mut() } {
        crate::abi::quiet((), || act(options));
    }
}

/// Makes options: Sateen's defaults, but a database that does not exist is not made.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_create() -> *mut rocksdb_options_t {
    let options = Options { create_if_missing: false, ..Options::default() };
    give(rocksdb_options_t(options, None, Settings::default()))
}

/// Frees options. Databases that were opened with them go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_destroy(options: *mut rocksdb_options_t) {
    // SAFETY: the contract of the module.
    unsafe { free(options) };
}

/// A copy of options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_create_copy(
    options: *const rocksdb_options_t,
) -> *mut rocksdb_options_t {
    // SAFETY: the contract of the module.
    match unsafe { options.as_ref() } {
        Some(options) => give(options.clone()),
        None => rocksdb_options_create(),
    }
}

/// Options `base`, changed as `list` (`name=value;…`) says, in `new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_options_from_string(
    base: *const rocksdb_options_t,
    list: *const c_char,
    new: *mut rocksdb_options_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let base = base.as_ref().ok_or_else(|| missing("the base options"))?;
            let new = new.as_mut().ok_or_else(|| missing("the new options"))?;
            let mut options = base.0.clone();
            options.apply_str_list(&text(list))?;
            new.0 = options;
            Ok(())
        });
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $function:ident($type:ty) $name:literal;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(options: *mut rocksdb_options_t, value: $type) {
            // SAFETY: the contract of the module.
            unsafe { change(options, |options| options.set($name, &value.to_string())) };
        }
    )* };
}

setters! {
    /// `create_if_missing`.
    rocksdb_options_set_create_if_missing(c_uchar) "create_if_missing";
    /// `create_missing_column_families`.
    rocksdb_options_set_create_missing_column_families(c_uchar) "create_missing_column_families";
    /// `error_if_exists`.
    rocksdb_options_set_error_if_exists(c_uchar) "error_if_exists";
    /// `memtable_bytes`.
    rocksdb_options_set_write_buffer_size(usize) "memtable_bytes";
    /// `memtables_max`.
    rocksdb_options_set_max_write_buffer_number(c_int) "memtables_max";
    /// `memtables_to_flush_min`.
    rocksdb_options_set_min_write_buffer_number_to_merge(c_int) "memtables_to_flush_min";
    /// `max_total_wal_bytes`.
    rocksdb_options_set_max_total_wal_size(u64) "max_total_wal_bytes";
    /// `background_threads`.
    rocksdb_options_set_max_background_jobs(c_int) "background_threads";
    /// `max_background_compactions`.
    rocksdb_options_set_max_background_compactions(c_int) "max_background_compactions";
    /// `max_background_flushes`.
    rocksdb_options_set_max_background_flushes(c_int) "max_background_flushes";
    /// `levels`.
    rocksdb_options_set_num_levels(c_int) "levels";
    /// `level0_trigger`.
    rocksdb_options_set_level0_file_num_compaction_trigger(c_int) "level0_trigger";
    /// `level0_slowdown`.
    rocksdb_options_set_level0_slowdown_writes_trigger(c_int) "level0_slowdown";
    /// `level0_stop`.
    rocksdb_options_set_level0_stop_writes_trigger(c_int) "level0_stop";
    /// `table_bytes`.
    rocksdb_options_set_target_file_size_base(u64) "table_bytes";
    /// `table_multiplier`.
    rocksdb_options_set_target_file_size_multiplier(c_int) "table_multiplier";
    /// `level_base_bytes`.
    rocksdb_options_set_max_bytes_for_level_base(u64) "level_base_bytes";
    /// `level_multiplier`.
    rocksdb_options_set_max_bytes_for_level_multiplier(c_double) "level_multiplier";
    /// `dynamic_level_bytes`.
    rocksdb_options_set_level_compaction_dynamic_level_bytes(c_uchar) "dynamic_level_bytes";
    /// `compaction_bytes_max`.
    rocksdb_options_set_max_compaction_bytes(u64) "compaction_bytes_max";
    /// `compaction_readahead_bytes`.
    rocksdb_options_compaction_readahead_size(usize) "compaction_readahead_bytes";
    /// `disable_auto_compactions`.
    rocksdb_options_set_disable_auto_compactions(c_int) "disable_auto_compactions";
    /// `soft_pending_compaction_bytes`.
    rocksdb_options_set_soft_pending_compaction_bytes_limit(usize) "soft_pending_compaction_bytes";
    /// `hard_pending_compaction_bytes`.
    rocksdb_options_set_hard_pending_compaction_bytes_limit(usize) "hard_pending_compaction_bytes";
    /// `manifest_bytes_max`.
    rocksdb_options_set_max_manifest_file_size(usize) "manifest_bytes_max";
    /// `wal_bytes_per_sync`.
    rocksdb_options_set_wal_bytes_per_sync(u64) "wal_bytes_per_sync";
    /// `direct_reads`.
    rocksdb_options_set_use_direct_reads(c_uchar) "direct_reads";
    /// `direct_io_for_flush_and_compaction`.
    rocksdb_options_set_use_direct_io_for_flush_and_compaction(c_uchar)
        "direct_io_for_flush_and_compaction";
}

/// Files that may be open; -1: as many as there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_max_open_files(
    options: *mut rocksdb_options_t,
    files: c_int,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.0.max_open_files = u32::try_from(files).unwrap_or(u32::MAX);
        });
    }
}

/// The directory of the logs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_wal_dir(
    options: *mut rocksdb_options_t,
    directory: *const c_char,
) {
    // SAFETY: the contract of the module.
    unsafe { change(options, |options| options.0.wal_dir = Some(text(directory).into())) };
}

/// As many background threads as told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_increase_parallelism(
    options: *mut rocksdb_options_t,
    threads: c_int,
) {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_options_set_max_background_jobs(options, threads.max(2)) };
}

/// Sizes for so many bytes of memtables, as RocksDB divides them: a quarter for each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_optimize_level_style_compaction(
    options: *mut rocksdb_options_t,
    memtable_memory_budget: u64,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            let family = &mut options.0.column_family;
            family.memtable_bytes = (memtable_memory_budget / 4).max(64 << 10);
            family.memtables_max = 6;
            family.level_base_bytes = memtable_memory_budget.max(256 << 10);
        });
    }
}

/// How blocks of a RocksDB compression type are compressed here: the fast ones by LZ4, the strong
/// ones by zstd.
fn compression(code: c_int) -> Compression {
    match code {
        1 | 4 | 6 => Compression::Lz4,
        2 | 3 | 5 | 7 | 0x40 => Compression::Zstd,
        _ => Compression::None,
    }
}

/// The compression of all levels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compression(
    options: *mut rocksdb_options_t,
    code: c_int,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.0.column_family.compression = vec![compression(code)];
        });
    }
}

/// The compression of each level.
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
            options.0.column_family.compression =
                codes.iter().map(|code| compression(*code)).collect();
        });
    }
}

/// What combines operands. The options own it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_merge_operator(
    options: *mut rocksdb_options_t,
    operator: *mut rocksdb_mergeoperator_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let merging = operator.as_ref().map(|operator| operator.0.clone());
        change(options, |options| options.0.column_family.merge_operator = merging);
        free(operator);
    }
}

/// Block size, cache and filters. They are copied: the caller frees its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_block_based_table_factory(
    options: *mut rocksdb_options_t,
    table: *mut rocksdb_block_based_table_options_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        if let Some(table) = table.as_ref() {
            change(options, |options| table.apply(&mut options.0));
        }
    }
}
