//! Properties of tables for listeners and table filters.

use std::collections::BTreeMap;
use std::ffi::{c_uchar, c_void};
use std::path::PathBuf;

use sateen::{LiveTable, TableFilter};

use crate::abi::quiet;
use crate::callbacks::State;
use crate::calls::rocksdb_readoptions_t;
use crate::getters::{no_entries, no_texts, nothing, numbers, texts};

/// The properties of a table, or of all tables of a file.
#[derive(Clone, Debug, Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_table_properties_t {
    pub(crate) table: LiveTable,
    pub(crate) family: u32,
}

impl rocksdb_table_properties_t {
    /// Returns the properties of `tables` as if they were one.
    pub(crate) fn of_all(tables: &[LiveTable], family: u32) -> rocksdb_table_properties_t {
        let mut all = tables.first().cloned().unwrap_or_default();
        for table in tables.iter().skip(1) {
            all.entries += table.entries;
            all.deletions += table.deletions;
            all.size_bytes += table.size_bytes;
            all.smallest_seqno = all.smallest_seqno.min(table.smallest_seqno);
            all.largest_seqno = all.largest_seqno.max(table.largest_seqno);
        }
        rocksdb_table_properties_t { table: all, family }
    }

    /// Returns the properties of `tables` by file.
    pub(crate) fn by_file<'a>(
        tables: impl Iterator<Item = &'a LiveTable>,
        family: u32,
    ) -> Vec<rocksdb_table_properties_t> {
        let mut files: BTreeMap<PathBuf, Vec<LiveTable>> = BTreeMap::new();
        tables.for_each(|it| files.entry(it.file.clone()).or_default().push(it.clone()));
        files.values().map(|tables| Self::of_all(tables, family)).collect()
    }
}

/// Returns the number in the name of a table's file; 0 if it has none.
pub(crate) fn file_number(table: &LiveTable) -> u64 {
    let name = table.file.file_stem().and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).unwrap_or(0)
}

numbers! {
    rocksdb_table_properties_column_family_id(rocksdb_table_properties_t) -> u64:
        |it| it.family.into();
    rocksdb_table_properties_data_size(rocksdb_table_properties_t) -> u64: |it| it.table.size_bytes;
    rocksdb_table_properties_has_key_largest_seqno(rocksdb_table_properties_t) -> c_uchar: |_it| 1;
    rocksdb_table_properties_has_key_smallest_seqno(rocksdb_table_properties_t) -> c_uchar: |_it| 1;
    rocksdb_table_properties_key_largest_seqno(rocksdb_table_properties_t) -> u64:
        |it| it.table.largest_seqno;
    rocksdb_table_properties_key_smallest_seqno(rocksdb_table_properties_t) -> u64:
        |it| it.table.smallest_seqno;
    rocksdb_table_properties_num_deletions(rocksdb_table_properties_t) -> u64:
        |it| it.table.deletions;
    rocksdb_table_properties_num_entries(rocksdb_table_properties_t) -> u64: |it| it.table.entries;
    rocksdb_table_properties_orig_file_number(rocksdb_table_properties_t) -> u64:
        |it| file_number(&it.table);
}

nothing! {
    rocksdb_table_properties_t -> u64:
        rocksdb_table_properties_creation_time
        rocksdb_table_properties_data_block_restart_interval
        rocksdb_table_properties_external_sst_file_global_seqno_offset
        rocksdb_table_properties_fast_compression_estimated_data_size
        rocksdb_table_properties_file_creation_time
        rocksdb_table_properties_filter_size
        rocksdb_table_properties_fixed_key_len
        rocksdb_table_properties_format_version
        rocksdb_table_properties_index_block_restart_interval
        rocksdb_table_properties_index_key_is_user_key
        rocksdb_table_properties_index_partitions
        rocksdb_table_properties_index_size
        rocksdb_table_properties_index_value_is_delta_encoded
        rocksdb_table_properties_lsm_info_at_creation
        rocksdb_table_properties_newest_key_time
        rocksdb_table_properties_num_data_blocks
        rocksdb_table_properties_num_data_blocks_compression_bypassed
        rocksdb_table_properties_num_data_blocks_compression_rejected
        rocksdb_table_properties_num_filter_entries
        rocksdb_table_properties_num_merge_operands
        rocksdb_table_properties_num_range_deletions
        rocksdb_table_properties_num_uniform_blocks
        rocksdb_table_properties_oldest_ancestor_time
        rocksdb_table_properties_oldest_key_time
        rocksdb_table_properties_raw_key_size
        rocksdb_table_properties_raw_value_size
        rocksdb_table_properties_separate_key_value_in_data_block
        rocksdb_table_properties_slow_compression_estimated_data_size
        rocksdb_table_properties_tail_start_offset
        rocksdb_table_properties_top_level_index_size
        rocksdb_table_properties_udi_is_primary_index
        rocksdb_table_properties_uncompressed_data_size
        rocksdb_table_properties_user_defined_timestamps_persisted;
}

nothing! {
    rocksdb_table_properties_t -> usize:
        rocksdb_table_properties_readable_properties_count
        rocksdb_table_properties_user_collected_properties_count;
}

texts! {
    rocksdb_table_properties_column_family_name(rocksdb_table_properties_t):
        |it| it.table.column_family.as_bytes();
}

no_texts! {
    rocksdb_table_properties_t:
        rocksdb_table_properties_comparator_name
        rocksdb_table_properties_compression_name
        rocksdb_table_properties_compression_options
        rocksdb_table_properties_db_host_id
        rocksdb_table_properties_db_id
        rocksdb_table_properties_db_session_id
        rocksdb_table_properties_filter_policy_name
        rocksdb_table_properties_merge_operator_name
        rocksdb_table_properties_prefix_extractor_name
        rocksdb_table_properties_property_collectors_names
        rocksdb_table_properties_seqno_to_time_mapping;
}

no_entries! {
    rocksdb_table_properties_t:
        rocksdb_table_properties_readable_properties_key_at
        rocksdb_table_properties_readable_properties_value_at
        rocksdb_table_properties_user_collected_properties_key_at
        rocksdb_table_properties_user_collected_properties_value_at;
}

type Wants = unsafe extern "C" fn(*mut c_void, *const rocksdb_table_properties_t) -> c_uchar;

/// Limits iterators with these options to the tables that `wants` accepts. The options own the
/// state from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_set_table_filter(
    options: *mut rocksdb_readoptions_t,
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    wants: Option<Wants>,
) {
    let state = State { state, destructor };
    // SAFETY: the contract of the crate.
    let Some(options) = (unsafe { options.as_mut() }) else { return };
    let filter = wants.map(|wants| {
        TableFilter::new(move |table| {
            // The closure must hold the whole state instead of its pointer alone.
            let state = &state;
            let properties = rocksdb_table_properties_t { table: table.clone(), family: 0 };
            // SAFETY: RocksDB's contract: given with this state; the properties live as long as
            // the call.
            unsafe { wants(state.state, &raw const properties) != 0 }
        })
    });
    quiet((), || options.0.table_filter = filter);
}

/// Removes the filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_clear_table_filter(
    options: *mut rocksdb_readoptions_t,
) {
    // SAFETY: the contract of the crate.
    if let Some(options) = unsafe { options.as_mut() } {
        quiet((), || options.0.table_filter = None);
    }
}

/// Returns 1 if there is a filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_has_table_filter(
    options: *const rocksdb_readoptions_t,
) -> c_uchar {
    // SAFETY: the contract of the crate.
    unsafe { options.as_ref() }.is_some_and(|options| options.0.table_filter.is_some()).into()
}
