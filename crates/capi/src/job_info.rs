//! The descriptions that listeners get: of flushes, compactions, files, memtables and stalls.

use std::ffi::{c_char, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;

use sateen::{CompactionInfo, FlushInfo, IngestInfo, LiveTable, SealInfo, StallState};

use crate::abi::{ErrPtr, bytes_or_none, free, give, guard, lend};
use crate::getters::{no_texts, nothing, numbers, texts};
use crate::table_properties::{file_number, rocksdb_table_properties_t};
use crate::value_codes::reason_code;

/// A flush.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_flushjobinfo_t {
    pub(crate) info: FlushInfo,
    /// Properties of all its tables.
    properties: rocksdb_table_properties_t,
}

impl rocksdb_flushjobinfo_t {
    pub(crate) fn new(info: FlushInfo) -> rocksdb_flushjobinfo_t {
        let family = info.column_family_id;
        let mut properties = rocksdb_table_properties_t::of_all(&info.tables, family);
        properties.table.column_family.clone_from(&info.column_family);
        rocksdb_flushjobinfo_t { info, properties }
    }
}

/// A table of a compaction.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compaction_file_info_t {
    level: c_int,
    number: u64,
}

impl rocksdb_compaction_file_info_t {
    fn new(table: &LiveTable) -> rocksdb_compaction_file_info_t {
        rocksdb_compaction_file_info_t { level: table.level.into(), number: file_number(table) }
    }
}

/// A compaction. Empty until `rocksdb_compact_files` fills it in.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compactionjobinfo_t {
    pub(crate) info: Option<CompactionInfo>,
    input_files: Vec<rocksdb_compaction_file_info_t>,
    output_files: Vec<rocksdb_compaction_file_info_t>,
    /// Properties of each file with its tables.
    properties: Vec<rocksdb_table_properties_t>,
}

impl rocksdb_compactionjobinfo_t {
    pub(crate) fn new(info: CompactionInfo) -> rocksdb_compactionjobinfo_t {
        let files = |tables: &[LiveTable]| {
            tables.iter().map(rocksdb_compaction_file_info_t::new).collect::<Vec<_>>()
        };
        let tables = info.inputs.iter().chain(&info.outputs);
        let family = info.column_family_id;
        rocksdb_compactionjobinfo_t {
            input_files: files(&info.inputs),
            output_files: files(&info.outputs),
            properties: rocksdb_table_properties_t::by_file(tables, family),
            info: Some(info),
        }
    }

    pub(crate) fn get<T: Default>(&self, get: impl FnOnce(&CompactionInfo) -> T) -> T {
        self.info.as_ref().map(get).unwrap_or_default()
    }

    fn is(&self, is: impl FnOnce(&CompactionInfo) -> bool) -> bool {
        self.info.as_ref().is_some_and(is)
    }
}

/// The statistics of a compaction, which are its description.
#[repr(transparent)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compaction_job_stats_t(rocksdb_compactionjobinfo_t);

/// The subcompaction of a compaction. Each has exactly one.
#[repr(transparent)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_subcompactionjobinfo_t(pub(crate) rocksdb_compactionjobinfo_t);

/// An ingested file.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_externalfileingestioninfo_t {
    info: IngestInfo,
    properties: rocksdb_table_properties_t,
}

impl rocksdb_externalfileingestioninfo_t {
    pub(crate) fn new(info: IngestInfo) -> rocksdb_externalfileingestioninfo_t {
        let table = info.table.clone().unwrap_or_default();
        let properties = rocksdb_table_properties_t { table, family: info.column_family_id };
        rocksdb_externalfileingestioninfo_t { info, properties }
    }
}

/// A sealed memtable.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_memtableinfo_t(pub(crate) SealInfo);

/// The state of writes: 0 delayed, 1 stopped, 2 normal.
#[repr(transparent)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_writestallcondition_t(c_int);

impl From<StallState> for rocksdb_writestallcondition_t {
    fn from(state: StallState) -> rocksdb_writestallcondition_t {
        rocksdb_writestallcondition_t(match state {
            StallState::Delayed => 0,
            StallState::Stopped => 1,
            StallState::Normal => 2,
        })
    }
}

/// A change of the state of writes.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_writestallinfo_t {
    pub(crate) family: String,
    pub(crate) from: rocksdb_writestallcondition_t,
    pub(crate) to: rocksdb_writestallcondition_t,
}

fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn number(job: u64) -> c_int {
    c_int::try_from(job).unwrap_or(c_int::MAX)
}

fn micros(info: &CompactionInfo) -> u64 {
    u64::try_from(info.duration.as_micros()).unwrap_or(u64::MAX).max(1)
}

fn entries(tables: &[LiveTable]) -> u64 {
    tables.iter().map(|table| table.entries).sum()
}

fn deletions(tables: &[LiveTable]) -> u64 {
    tables.iter().map(|table| table.deletions).sum()
}

fn bytes_of(tables: &[LiveTable]) -> u64 {
    tables.iter().map(|table| table.size_bytes).sum()
}

fn inputs_at_output_level(info: &CompactionInfo) -> usize {
    info.inputs.iter().filter(|table| table.level == info.output_level).count()
}

fn level0_files(info: &CompactionInfo) -> c_int {
    let count = info.inputs.iter().filter(|table| table.level == 0).count();
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

fn reason(info: &CompactionInfo) -> u32 {
    reason_code(info.reason, info.is_manual)
}

numbers! {
    rocksdb_flushjobinfo_cf_id(rocksdb_flushjobinfo_t) -> u32: |it| it.info.column_family_id;
    rocksdb_flushjobinfo_file_number(rocksdb_flushjobinfo_t) -> u64:
        |it| file_number(&it.properties.table);
    rocksdb_flushjobinfo_job_id(rocksdb_flushjobinfo_t) -> c_int: |it| number(it.info.job);
    rocksdb_flushjobinfo_largest_seqno(rocksdb_flushjobinfo_t) -> u64: |it| it.info.largest_seqno;
    rocksdb_flushjobinfo_smallest_seqno(rocksdb_flushjobinfo_t) -> u64:
        |it| it.properties.table.smallest_seqno;
    rocksdb_flushjobinfo_triggered_writes_slowdown(rocksdb_flushjobinfo_t) -> c_uchar:
        |it| it.info.slows_writes.into();
    rocksdb_flushjobinfo_triggered_writes_stop(rocksdb_flushjobinfo_t) -> c_uchar:
        |it| it.info.stops_writes.into();
}

nothing! {
    rocksdb_flushjobinfo_t -> u32:
        rocksdb_flushjobinfo_blob_compression_type
        rocksdb_flushjobinfo_flush_reason;
}

nothing! {
    rocksdb_flushjobinfo_t -> u64:
        rocksdb_flushjobinfo_thread_id;
}

texts! {
    rocksdb_flushjobinfo_cf_name(rocksdb_flushjobinfo_t): |it| it.info.column_family.as_bytes();
    rocksdb_flushjobinfo_file_path(rocksdb_flushjobinfo_t):
        |it| path_bytes(&it.properties.table.file);
}

numbers! {
    rocksdb_compactionjobinfo_aborted(rocksdb_compactionjobinfo_t) -> c_uchar:
        |it| it.is(|info| info.error.is_some()).into();
    rocksdb_compactionjobinfo_base_input_level(rocksdb_compactionjobinfo_t) -> c_int:
        |it| it.get(|info| info.start_level.into());
    rocksdb_compactionjobinfo_cf_id(rocksdb_compactionjobinfo_t) -> u32:
        |it| it.get(|info| info.column_family_id);
    rocksdb_compactionjobinfo_compaction_reason(rocksdb_compactionjobinfo_t) -> u32:
        |it| it.get(reason);
    rocksdb_compactionjobinfo_elapsed_micros(rocksdb_compactionjobinfo_t) -> u64:
        |it| it.get(micros);
    rocksdb_compactionjobinfo_input_file_infos_count(rocksdb_compactionjobinfo_t) -> usize:
        |it| it.input_files.len();
    rocksdb_compactionjobinfo_input_files_count(rocksdb_compactionjobinfo_t) -> usize:
        |it| it.input_files.len();
    rocksdb_compactionjobinfo_input_records(rocksdb_compactionjobinfo_t) -> u64:
        |it| it.get(|info| info.entries_in);
    rocksdb_compactionjobinfo_job_id(rocksdb_compactionjobinfo_t) -> c_int:
        |it| it.get(|info| number(info.job));
    rocksdb_compactionjobinfo_num_input_files(rocksdb_compactionjobinfo_t) -> usize:
        |it| it.input_files.len();
    rocksdb_compactionjobinfo_num_input_files_at_output_level(rocksdb_compactionjobinfo_t) -> usize:
        |it| it.get(inputs_at_output_level);
    rocksdb_compactionjobinfo_num_l0_files(rocksdb_compactionjobinfo_t) -> c_int:
        |it| it.get(level0_files);
    rocksdb_compactionjobinfo_output_file_infos_count(rocksdb_compactionjobinfo_t) -> usize:
        |it| it.output_files.len();
    rocksdb_compactionjobinfo_output_files_count(rocksdb_compactionjobinfo_t) -> usize:
        |it| it.output_files.len();
    rocksdb_compactionjobinfo_output_level(rocksdb_compactionjobinfo_t) -> c_int:
        |it| it.get(|info| info.output_level.into());
    rocksdb_compactionjobinfo_output_records(rocksdb_compactionjobinfo_t) -> u64:
        |it| it.get(|info| entries(&info.outputs));
    rocksdb_compactionjobinfo_table_properties_count(rocksdb_compactionjobinfo_t) -> usize:
        |it| it.properties.len();
    rocksdb_compactionjobinfo_total_input_bytes(rocksdb_compactionjobinfo_t) -> u64:
        |it| it.get(|info| bytes_of(&info.inputs));
    rocksdb_compactionjobinfo_total_output_bytes(rocksdb_compactionjobinfo_t) -> u64:
        |it| it.get(|info| bytes_of(&info.outputs));
}

nothing! {
    rocksdb_compactionjobinfo_t -> u32:
        rocksdb_compactionjobinfo_blob_compression_type
        rocksdb_compactionjobinfo_compression;
}

nothing! {
    rocksdb_compactionjobinfo_t -> u64:
        rocksdb_compactionjobinfo_num_corrupt_keys
        rocksdb_compactionjobinfo_thread_id;
}

texts! {
    rocksdb_compactionjobinfo_cf_name(rocksdb_compactionjobinfo_t):
        |it| it.info.as_ref().map_or(&[], |info| info.column_family.as_bytes());
}

numbers! {
    rocksdb_compaction_job_stats_elapsed_micros(rocksdb_compaction_job_stats_t) -> u64:
        |it| it.0.get(micros);
    rocksdb_compaction_job_stats_has_accurate_num_input_records(
        rocksdb_compaction_job_stats_t) -> c_uchar:
        |_it| 1;
    rocksdb_compaction_job_stats_is_full_compaction(rocksdb_compaction_job_stats_t) -> c_uchar:
        |it| it.0.is(|info| info.is_full).into();
    rocksdb_compaction_job_stats_is_manual_compaction(rocksdb_compaction_job_stats_t) -> c_uchar:
        |it| it.0.is(|info| info.is_manual).into();
    rocksdb_compaction_job_stats_num_input_deletion_records(rocksdb_compaction_job_stats_t) -> u64:
        |it| it.0.get(|info| deletions(&info.inputs));
    rocksdb_compaction_job_stats_num_input_files(rocksdb_compaction_job_stats_t) -> usize:
        |it| it.0.input_files.len();
    rocksdb_compaction_job_stats_num_input_files_at_output_level(
        rocksdb_compaction_job_stats_t) -> usize:
        |it| it.0.get(inputs_at_output_level);
    rocksdb_compaction_job_stats_num_input_files_trivially_moved(
        rocksdb_compaction_job_stats_t) -> usize:
        |it| it.0.get(|info| info.moved);
    rocksdb_compaction_job_stats_num_input_records(rocksdb_compaction_job_stats_t) -> u64:
        |it| it.0.get(|info| info.entries_in);
    rocksdb_compaction_job_stats_num_output_files(rocksdb_compaction_job_stats_t) -> usize:
        |it| it.0.output_files.len();
    rocksdb_compaction_job_stats_num_output_files_blob(rocksdb_compaction_job_stats_t) -> usize:
        |it| it.0.get(|info| info.value_files.len());
    rocksdb_compaction_job_stats_num_output_records(rocksdb_compaction_job_stats_t) -> u64:
        |it| it.0.get(|info| entries(&info.outputs));
    rocksdb_compaction_job_stats_num_records_replaced(rocksdb_compaction_job_stats_t) -> u64:
        |it| it.0.get(|info| info.entries_dropped);
    rocksdb_compaction_job_stats_total_input_bytes(rocksdb_compaction_job_stats_t) -> u64:
        |it| it.0.get(|info| bytes_of(&info.inputs));
    rocksdb_compaction_job_stats_total_output_bytes(rocksdb_compaction_job_stats_t) -> u64:
        |it| it.0.get(|info| bytes_of(&info.outputs));
    rocksdb_compaction_job_stats_total_output_bytes_blob(rocksdb_compaction_job_stats_t) -> u64:
        |it| it.0.get(|info| info.value_files.iter().map(|file| file.bytes).sum());
}

nothing! {
    rocksdb_compaction_job_stats_t -> u64:
        rocksdb_compaction_job_stats_cpu_micros
        rocksdb_compaction_job_stats_file_fsync_nanos
        rocksdb_compaction_job_stats_file_prepare_write_nanos
        rocksdb_compaction_job_stats_file_range_sync_nanos
        rocksdb_compaction_job_stats_file_write_nanos
        rocksdb_compaction_job_stats_num_blobs_read
        rocksdb_compaction_job_stats_num_corrupt_keys
        rocksdb_compaction_job_stats_num_expired_deletion_records
        rocksdb_compaction_job_stats_num_single_del_fallthru
        rocksdb_compaction_job_stats_num_single_del_mismatch
        rocksdb_compaction_job_stats_total_blob_bytes_read
        rocksdb_compaction_job_stats_total_input_raw_key_bytes
        rocksdb_compaction_job_stats_total_input_raw_value_bytes
        rocksdb_compaction_job_stats_total_skipped_input_bytes;
}

nothing! {
    rocksdb_compaction_job_stats_t -> c_uchar:
        rocksdb_compaction_job_stats_is_remote_compaction;
}

nothing! {
    rocksdb_compaction_job_stats_t -> usize:
        rocksdb_compaction_job_stats_num_filtered_input_files
        rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level;
}

no_texts! {
    rocksdb_compaction_job_stats_t:
        rocksdb_compaction_job_stats_largest_output_key_prefix
        rocksdb_compaction_job_stats_smallest_output_key_prefix;
}

numbers! {
    rocksdb_subcompactionjobinfo_base_input_level(rocksdb_subcompactionjobinfo_t) -> c_int:
        |it| it.0.get(|info| info.start_level.into());
    rocksdb_subcompactionjobinfo_cf_id(rocksdb_subcompactionjobinfo_t) -> u32:
        |it| it.0.get(|info| info.column_family_id);
    rocksdb_subcompactionjobinfo_compaction_reason(rocksdb_subcompactionjobinfo_t) -> u32:
        |it| it.0.get(reason);
    rocksdb_subcompactionjobinfo_job_id(rocksdb_subcompactionjobinfo_t) -> c_int:
        |it| it.0.get(|info| number(info.job));
    rocksdb_subcompactionjobinfo_output_level(rocksdb_subcompactionjobinfo_t) -> c_int:
        |it| it.0.get(|info| info.output_level.into());
}

nothing! {
    rocksdb_subcompactionjobinfo_t -> u32:
        rocksdb_subcompactionjobinfo_blob_compression_type
        rocksdb_subcompactionjobinfo_compression;
}

nothing! {
    rocksdb_subcompactionjobinfo_t -> c_int:
        rocksdb_subcompactionjobinfo_subcompaction_job_id;
}

nothing! {
    rocksdb_subcompactionjobinfo_t -> u64:
        rocksdb_subcompactionjobinfo_thread_id;
}

texts! {
    rocksdb_subcompactionjobinfo_cf_name(rocksdb_subcompactionjobinfo_t):
        |it| it.0.info.as_ref().map_or(&[], |info| info.column_family.as_bytes());
}

numbers! {
    rocksdb_compaction_file_info_file_number(rocksdb_compaction_file_info_t) -> u64: |it| it.number;
    rocksdb_compaction_file_info_level(rocksdb_compaction_file_info_t) -> c_int: |it| it.level;
}

nothing! {
    rocksdb_compaction_file_info_t -> u64:
        rocksdb_compaction_file_info_oldest_blob_file_number;
}

numbers! {
    rocksdb_externalfileingestioninfo_global_seqno(rocksdb_externalfileingestioninfo_t) -> u64:
        |it| it.info.seqno;
}

texts! {
    rocksdb_externalfileingestioninfo_cf_name(rocksdb_externalfileingestioninfo_t):
        |it| it.info.column_family.as_bytes();
    rocksdb_externalfileingestioninfo_external_file_path(rocksdb_externalfileingestioninfo_t):
        |it| path_bytes(&it.info.path);
}

no_texts! {
    rocksdb_externalfileingestioninfo_t:
        rocksdb_externalfileingestioninfo_internal_file_path;
}

numbers! {
    rocksdb_memtableinfo_earliest_seqno(rocksdb_memtableinfo_t) -> u64: |it| it.0.first_seqno;
    rocksdb_memtableinfo_first_seqno(rocksdb_memtableinfo_t) -> u64: |it| it.0.first_seqno;
    rocksdb_memtableinfo_num_deletes(rocksdb_memtableinfo_t) -> u64: |it| it.0.deletions;
    rocksdb_memtableinfo_num_entries(rocksdb_memtableinfo_t) -> u64: |it| it.0.entries;
}

texts! {
    rocksdb_memtableinfo_cf_name(rocksdb_memtableinfo_t): |it| it.0.column_family.as_bytes();
}

no_texts! {
    rocksdb_memtableinfo_t:
        rocksdb_memtableinfo_newest_udt;
}

texts! {
    rocksdb_writestallinfo_cf_name(rocksdb_writestallinfo_t): |it| it.family.as_bytes();
}

/// Returns the properties of a flush's tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flushjobinfo_table_properties(
    info: *const rocksdb_flushjobinfo_t,
) -> *const rocksdb_table_properties_t {
    // SAFETY: the contract of the crate.
    unsafe { info.as_ref() }.map_or(null(), |info| &raw const info.properties)
}

/// Returns the properties of an ingested file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_externalfileingestioninfo_table_properties(
    info: *const rocksdb_externalfileingestioninfo_t,
) -> *const rocksdb_table_properties_t {
    // SAFETY: the contract of the crate.
    unsafe { info.as_ref() }.map_or(null(), |info| &raw const info.properties)
}

/// Returns the state of writes before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writestallinfo_prev(
    info: *const rocksdb_writestallinfo_t,
) -> *const rocksdb_writestallcondition_t {
    // SAFETY: the contract of the crate.
    unsafe { info.as_ref() }.map_or(null(), |info| &raw const info.from)
}

/// Returns the state of writes now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writestallinfo_cur(
    info: *const rocksdb_writestallinfo_t,
) -> *const rocksdb_writestallcondition_t {
    // SAFETY: the contract of the crate.
    unsafe { info.as_ref() }.map_or(null(), |info| &raw const info.to)
}

/// Makes a description that `rocksdb_compact_files` fills in.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionjobinfo_create() -> *mut rocksdb_compactionjobinfo_t {
    give(rocksdb_compactionjobinfo_t::default())
}

/// Frees a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_destroy(info: *mut rocksdb_compactionjobinfo_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(info) };
}

macro_rules! files {
    ($($(#[$doc:meta])* $path:ident $info:ident $tables:ident $files:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $path(
            info: *const rocksdb_compactionjobinfo_t,
            index: usize,
            length: *mut usize,
        ) -> *const c_char {
            // SAFETY: the contract of the crate.
            unsafe {
                let of_it = info.as_ref().and_then(|info| info.info.as_ref());
                let table = of_it.and_then(|info| info.$tables.get(index));
                lend(table.map(|table| path_bytes(&table.file)), length)
            }
        }

        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $info(
            info: *const rocksdb_compactionjobinfo_t,
            index: usize,
        ) -> *const rocksdb_compaction_file_info_t {
            // SAFETY: the contract of the crate.
            let file = unsafe { info.as_ref() }.and_then(|info| info.$files.get(index));
            file.map_or(null(), std::ptr::from_ref)
        }
    )* };
}

files! {
    /// Returns the name of an input; null if there are fewer.
    rocksdb_compactionjobinfo_input_file_at rocksdb_compactionjobinfo_input_file_info_at
        inputs input_files;
    /// Returns the name of an output; null if there are fewer.
    rocksdb_compactionjobinfo_output_file_at rocksdb_compactionjobinfo_output_file_info_at
        outputs output_files;
}

/// Returns the statistics.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionjobinfo_stats(
    info: *const rocksdb_compactionjobinfo_t,
) -> *const rocksdb_compaction_job_stats_t {
    info.cast()
}

/// Returns the statistics.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_subcompactionjobinfo_stats(
    info: *const rocksdb_subcompactionjobinfo_t,
) -> *const rocksdb_compaction_job_stats_t {
    info.cast()
}

/// Stores the error of the compaction at `errptr`, if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_status(
    info: *const rocksdb_compactionjobinfo_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let error = info.as_ref().and_then(|info| info.info.as_ref()?.error.clone());
            error.map_or(Ok(()), Err)
        });
    }
}

/// Stores the error of the subcompaction at `errptr`, if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_subcompactionjobinfo_status(
    info: *const rocksdb_subcompactionjobinfo_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_compactionjobinfo_status(info.cast(), errptr) };
}

/// Returns the name of a file with its tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_table_properties_key_at(
    info: *const rocksdb_compactionjobinfo_t,
    index: usize,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let file = info.as_ref().and_then(|info| info.properties.get(index));
        lend(file.map(|file| path_bytes(&file.table.file)), length)
    }
}

/// Returns the properties of its tables in a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_table_properties_value_at(
    info: *const rocksdb_compactionjobinfo_t,
    index: usize,
) -> *const rocksdb_table_properties_t {
    // SAFETY: the contract of the crate.
    let file = unsafe { info.as_ref() }.and_then(|info| info.properties.get(index));
    file.map_or(null(), std::ptr::from_ref)
}

/// Returns the properties of its tables in the file with this name; null if there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_table_properties_for_file(
    info: *const rocksdb_compactionjobinfo_t,
    name: *const c_char,
    length: usize,
) -> *const rocksdb_table_properties_t {
    // SAFETY: the contract of the crate.
    unsafe {
        let name = bytes_or_none(name, length);
        let files = info.as_ref().map_or(&[][..], |info| &info.properties);
        let found = files.iter().find(|file| path_bytes(&file.table.file) == name);
        found.map_or(null(), std::ptr::from_ref)
    }
}
