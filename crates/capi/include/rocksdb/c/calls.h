/* Options of single calls. */
#ifndef SATEEN_ROCKSDB_C_CALLS_H
#define SATEEN_ROCKSDB_C_CALLS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

rocksdb_column_family_metadata_options_t* rocksdb_column_family_metadata_options_create(void);
void rocksdb_column_family_metadata_options_destroy(
    rocksdb_column_family_metadata_options_t* options);
const char* rocksdb_column_family_metadata_options_get_end_key(
    const rocksdb_column_family_metadata_options_t* options, size_t* key_length);
int rocksdb_column_family_metadata_options_get_level(
    rocksdb_column_family_metadata_options_t* options);
const char* rocksdb_column_family_metadata_options_get_start_key(
    const rocksdb_column_family_metadata_options_t* options, size_t* key_length);
void rocksdb_column_family_metadata_options_set_end_key(
    rocksdb_column_family_metadata_options_t* options, const char* key, size_t key_length);
void rocksdb_column_family_metadata_options_set_level(
    rocksdb_column_family_metadata_options_t* options, int value);
void rocksdb_column_family_metadata_options_set_start_key(
    rocksdb_column_family_metadata_options_t* options, const char* key, size_t key_length);
unsigned char* rocksdb_compaction_options_canceled_create(void);
void rocksdb_compaction_options_canceled_destroy(unsigned char* canceled);
void rocksdb_compaction_options_canceled_set(unsigned char* canceled, unsigned char value);
rocksdb_compaction_options_t* rocksdb_compaction_options_create(void);
void rocksdb_compaction_options_destroy(rocksdb_compaction_options_t* options);
unsigned char rocksdb_compaction_options_get_allow_trivial_move(
    rocksdb_compaction_options_t* options);
int rocksdb_compaction_options_get_compression(rocksdb_compaction_options_t* options);
uint32_t rocksdb_compaction_options_get_max_subcompactions(rocksdb_compaction_options_t* options);
uint64_t rocksdb_compaction_options_get_output_file_size_limit(
    rocksdb_compaction_options_t* options);
int rocksdb_compaction_options_get_output_temperature_override(
    rocksdb_compaction_options_t* options);
void rocksdb_compaction_options_set_allow_trivial_move(rocksdb_compaction_options_t* options,
    unsigned char value);
void rocksdb_compaction_options_set_canceled(rocksdb_compaction_options_t* options,
    unsigned char* canceled);
void rocksdb_compaction_options_set_compression(rocksdb_compaction_options_t* options, int value);
void rocksdb_compaction_options_set_max_subcompactions(rocksdb_compaction_options_t* options,
    uint32_t value);
void rocksdb_compaction_options_set_output_file_size_limit(rocksdb_compaction_options_t* options,
    uint64_t value);
void rocksdb_compaction_options_set_output_temperature_override(
    rocksdb_compaction_options_t* options, int value);
rocksdb_compactoptions_t* rocksdb_compactoptions_create(void);
void rocksdb_compactoptions_destroy(rocksdb_compactoptions_t* options);
unsigned char rocksdb_compactoptions_get_allow_write_stall(rocksdb_compactoptions_t* options);
double rocksdb_compactoptions_get_blob_garbage_collection_age_cutoff(
    rocksdb_compactoptions_t* options);
int rocksdb_compactoptions_get_blob_garbage_collection_policy(rocksdb_compactoptions_t* options);
unsigned char rocksdb_compactoptions_get_bottommost_level_compaction(
    rocksdb_compactoptions_t* options);
unsigned char rocksdb_compactoptions_get_change_level(rocksdb_compactoptions_t* options);
unsigned char rocksdb_compactoptions_get_exclusive_manual_compaction(
    rocksdb_compactoptions_t* options);
int rocksdb_compactoptions_get_max_subcompactions(rocksdb_compactoptions_t* options);
int rocksdb_compactoptions_get_target_level(rocksdb_compactoptions_t* options);
int rocksdb_compactoptions_get_target_path_id(rocksdb_compactoptions_t* options);
void rocksdb_compactoptions_set_allow_write_stall(rocksdb_compactoptions_t* options,
    unsigned char value);
void rocksdb_compactoptions_set_blob_garbage_collection_age_cutoff(
    rocksdb_compactoptions_t* options, double value);
void rocksdb_compactoptions_set_blob_garbage_collection_policy(rocksdb_compactoptions_t* options,
    int value);
void rocksdb_compactoptions_set_bottommost_level_compaction(rocksdb_compactoptions_t* options,
    unsigned char value);
void rocksdb_compactoptions_set_change_level(rocksdb_compactoptions_t* options,
    unsigned char value);
void rocksdb_compactoptions_set_exclusive_manual_compaction(rocksdb_compactoptions_t* options,
    unsigned char value);
void rocksdb_compactoptions_set_full_history_ts_low(rocksdb_compactoptions_t* options,
    char* timestamp, size_t timestamp_length);
void rocksdb_compactoptions_set_max_subcompactions(rocksdb_compactoptions_t* options, int value);
void rocksdb_compactoptions_set_target_level(rocksdb_compactoptions_t* options, int value);
void rocksdb_compactoptions_set_target_path_id(rocksdb_compactoptions_t* options, int value);
rocksdb_fifo_compaction_options_t* rocksdb_fifo_compaction_options_create(void);
void rocksdb_fifo_compaction_options_destroy(rocksdb_fifo_compaction_options_t* options);
uint64_t rocksdb_fifo_compaction_options_get_age_for_warm(
    rocksdb_fifo_compaction_options_t* options);
unsigned char rocksdb_fifo_compaction_options_get_allow_compaction(
    rocksdb_fifo_compaction_options_t* options);
unsigned char rocksdb_fifo_compaction_options_get_allow_trivial_copy_when_change_temperature(
    rocksdb_fifo_compaction_options_t* options);
uint64_t rocksdb_fifo_compaction_options_get_max_data_files_size(
    rocksdb_fifo_compaction_options_t* options);
uint64_t rocksdb_fifo_compaction_options_get_max_table_files_size(
    rocksdb_fifo_compaction_options_t* options);
uint64_t rocksdb_fifo_compaction_options_get_trivial_copy_buffer_size(
    rocksdb_fifo_compaction_options_t* options);
unsigned char rocksdb_fifo_compaction_options_get_use_kv_ratio_compaction(
    rocksdb_fifo_compaction_options_t* options);
void rocksdb_fifo_compaction_options_set_age_for_warm(rocksdb_fifo_compaction_options_t* options,
    uint64_t value);
void rocksdb_fifo_compaction_options_set_allow_compaction(
    rocksdb_fifo_compaction_options_t* options, unsigned char allow_compaction);
void rocksdb_fifo_compaction_options_set_allow_trivial_copy_when_change_temperature(
    rocksdb_fifo_compaction_options_t* options, unsigned char value);
void rocksdb_fifo_compaction_options_set_max_data_files_size(
    rocksdb_fifo_compaction_options_t* options, uint64_t size);
void rocksdb_fifo_compaction_options_set_max_table_files_size(
    rocksdb_fifo_compaction_options_t* options, uint64_t size);
void rocksdb_fifo_compaction_options_set_trivial_copy_buffer_size(
    rocksdb_fifo_compaction_options_t* options, uint64_t value);
void rocksdb_fifo_compaction_options_set_use_kv_ratio_compaction(
    rocksdb_fifo_compaction_options_t* options, unsigned char use_kv_ratio_compaction);
rocksdb_flushoptions_t* rocksdb_flushoptions_create(void);
void rocksdb_flushoptions_destroy(rocksdb_flushoptions_t* options);
unsigned char rocksdb_flushoptions_get_allow_write_stall(rocksdb_flushoptions_t* options);
unsigned char rocksdb_flushoptions_get_force_atomic_flush(rocksdb_flushoptions_t* options);
unsigned char rocksdb_flushoptions_get_listener_wait(rocksdb_flushoptions_t* options);
unsigned char rocksdb_flushoptions_get_wait(rocksdb_flushoptions_t* options);
void rocksdb_flushoptions_set_allow_write_stall(rocksdb_flushoptions_t* options,
    unsigned char value);
void rocksdb_flushoptions_set_force_atomic_flush(rocksdb_flushoptions_t* options,
    unsigned char value);
void rocksdb_flushoptions_set_listener_wait(rocksdb_flushoptions_t* options, unsigned char value);
void rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t* options, unsigned char value);
rocksdb_flushwaloptions_t* rocksdb_flushwaloptions_create(void);
void rocksdb_flushwaloptions_destroy(rocksdb_flushwaloptions_t* options);
int rocksdb_flushwaloptions_get_rate_limiter_priority(rocksdb_flushwaloptions_t* options);
unsigned char rocksdb_flushwaloptions_get_sync(rocksdb_flushwaloptions_t* options);
void rocksdb_flushwaloptions_set_rate_limiter_priority(rocksdb_flushwaloptions_t* options,
    int value);
void rocksdb_flushwaloptions_set_sync(rocksdb_flushwaloptions_t* options, unsigned char value);
rocksdb_livefiles_storage_info_options_t* rocksdb_livefiles_storage_info_options_create(void);
void rocksdb_livefiles_storage_info_options_destroy(
    rocksdb_livefiles_storage_info_options_t* options);
unsigned char rocksdb_livefiles_storage_info_options_get_atomic_flush(
    rocksdb_livefiles_storage_info_options_t* options);
unsigned char rocksdb_livefiles_storage_info_options_get_include_checksum_info(
    rocksdb_livefiles_storage_info_options_t* options);
uint64_t rocksdb_livefiles_storage_info_options_get_wal_size_for_flush(
    rocksdb_livefiles_storage_info_options_t* options);
void rocksdb_livefiles_storage_info_options_set_atomic_flush(
    rocksdb_livefiles_storage_info_options_t* options, unsigned char value);
void rocksdb_livefiles_storage_info_options_set_include_checksum_info(
    rocksdb_livefiles_storage_info_options_t* options, unsigned char value);
void rocksdb_livefiles_storage_info_options_set_wal_size_for_flush(
    rocksdb_livefiles_storage_info_options_t* options, uint64_t value);
rocksdb_open_and_compact_options_t* rocksdb_open_and_compact_options_create(void);
void rocksdb_open_and_compact_options_destroy(rocksdb_open_and_compact_options_t* options);
unsigned char rocksdb_open_and_compact_options_get_allow_resumption(
    rocksdb_open_and_compact_options_t* options);
uint32_t rocksdb_open_and_compact_options_get_max_secondary_open_retries(
    rocksdb_open_and_compact_options_t* options);
void rocksdb_open_and_compact_options_set_allow_resumption(
    rocksdb_open_and_compact_options_t* options, unsigned char allow_resumption);
void rocksdb_open_and_compact_options_set_canceled(rocksdb_open_and_compact_options_t* options,
    unsigned char* canceled);
void rocksdb_open_and_compact_options_set_max_secondary_open_retries(
    rocksdb_open_and_compact_options_t* options, uint32_t value);
void rocksdb_readoptions_clear_merge_operand_count_threshold(rocksdb_readoptions_t* options);
void rocksdb_readoptions_clear_request_id(rocksdb_readoptions_t* options);
void rocksdb_readoptions_clear_table_filter(rocksdb_readoptions_t* options);
void rocksdb_readoptions_clear_table_index_factory(rocksdb_readoptions_t* options);
rocksdb_readoptions_t* rocksdb_readoptions_create(void);
void rocksdb_readoptions_destroy(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_adaptive_readahead(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_allow_unprepared_value(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_async_io(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_auto_prefix_mode(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_auto_readahead_size(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_auto_refresh_iterator_with_snapshot(
    rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_background_purge_on_iterator_cleanup(
    rocksdb_readoptions_t* options);
uint64_t rocksdb_readoptions_get_deadline(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_fill_cache(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_ignore_range_deletions(rocksdb_readoptions_t* options);
int rocksdb_readoptions_get_io_activity(rocksdb_readoptions_t* options);
uint64_t rocksdb_readoptions_get_io_timeout(rocksdb_readoptions_t* options);
uint64_t rocksdb_readoptions_get_max_skippable_internal_keys(rocksdb_readoptions_t* options);
size_t rocksdb_readoptions_get_merge_operand_count_threshold(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_optimize_multiget_for_io(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_pin_data(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_prefix_same_as_start(rocksdb_readoptions_t* options);
int rocksdb_readoptions_get_rate_limiter_priority(rocksdb_readoptions_t* options);
int rocksdb_readoptions_get_read_tier(rocksdb_readoptions_t* options);
size_t rocksdb_readoptions_get_readahead_size(rocksdb_readoptions_t* options);
const char* rocksdb_readoptions_get_request_id(rocksdb_readoptions_t* options,
    size_t* request_id_length);
const char* rocksdb_readoptions_get_table_index_factory_name(const rocksdb_readoptions_t* options,
    size_t* name_length);
unsigned char rocksdb_readoptions_get_tailing(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_total_order_seek(rocksdb_readoptions_t* options);
uint64_t rocksdb_readoptions_get_value_size_soft_limit(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_get_verify_checksums(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_has_merge_operand_count_threshold(rocksdb_readoptions_t* options);
unsigned char rocksdb_readoptions_has_table_filter(const rocksdb_readoptions_t* options);
void rocksdb_readoptions_set_adaptive_readahead(rocksdb_readoptions_t* options,
    unsigned char value);
void rocksdb_readoptions_set_allow_unprepared_value(rocksdb_readoptions_t* options,
    unsigned char value);
void rocksdb_readoptions_set_async_io(rocksdb_readoptions_t* options, unsigned char value);
void rocksdb_readoptions_set_auto_prefix_mode(rocksdb_readoptions_t* options, unsigned char value);
void rocksdb_readoptions_set_auto_readahead_size(rocksdb_readoptions_t* options,
    unsigned char value);
void rocksdb_readoptions_set_auto_refresh_iterator_with_snapshot(rocksdb_readoptions_t* options,
    unsigned char value);
void rocksdb_readoptions_set_background_purge_on_iterator_cleanup(rocksdb_readoptions_t* options,
    unsigned char value);
void rocksdb_readoptions_set_deadline(rocksdb_readoptions_t* options, uint64_t microseconds);
void rocksdb_readoptions_set_fill_cache(rocksdb_readoptions_t* options, unsigned char value);
void rocksdb_readoptions_set_ignore_range_deletions(rocksdb_readoptions_t* options,
    unsigned char value);
void rocksdb_readoptions_set_io_activity(rocksdb_readoptions_t* options, int value);
void rocksdb_readoptions_set_io_timeout(rocksdb_readoptions_t* options, uint64_t microseconds);
void rocksdb_readoptions_set_iter_start_ts(rocksdb_readoptions_t* options, const char* timestamp,
    size_t timestamp_length);
void rocksdb_readoptions_set_iterate_lower_bound(rocksdb_readoptions_t* options, const char* key,
    size_t key_length);
void rocksdb_readoptions_set_iterate_upper_bound(rocksdb_readoptions_t* options, const char* key,
    size_t key_length);
void rocksdb_readoptions_set_managed(rocksdb_readoptions_t* options, unsigned char value);
void rocksdb_readoptions_set_max_skippable_internal_keys(rocksdb_readoptions_t* options,
    uint64_t value);
void rocksdb_readoptions_set_merge_operand_count_threshold(rocksdb_readoptions_t* options,
    size_t threshold);
void rocksdb_readoptions_set_optimize_multiget_for_io(rocksdb_readoptions_t* options,
    unsigned char value);
void rocksdb_readoptions_set_pin_data(rocksdb_readoptions_t* options, unsigned char value);
void rocksdb_readoptions_set_prefix_same_as_start(rocksdb_readoptions_t* options,
    unsigned char value);
void rocksdb_readoptions_set_rate_limiter_priority(rocksdb_readoptions_t* options, int value);
void rocksdb_readoptions_set_read_tier(rocksdb_readoptions_t* options, int value);
void rocksdb_readoptions_set_readahead_size(rocksdb_readoptions_t* options, size_t value);
void rocksdb_readoptions_set_request_id(rocksdb_readoptions_t* options, const char* request_id,
    size_t request_id_length);
void rocksdb_readoptions_set_snapshot(rocksdb_readoptions_t* options,
    const rocksdb_snapshot_t* snapshot);
void rocksdb_readoptions_set_table_filter(rocksdb_readoptions_t* options, void* state, void
    (*destructor)(void* state), rocksdb_readoptions_table_filter_cb table_filter);
void rocksdb_readoptions_set_table_index_factory_from_string(rocksdb_readoptions_t* options,
    const char* value, size_t value_length, char** errptr);
void rocksdb_readoptions_set_tailing(rocksdb_readoptions_t* options, unsigned char value);
void rocksdb_readoptions_set_timestamp(rocksdb_readoptions_t* options, const char* timestamp,
    size_t timestamp_length);
void rocksdb_readoptions_set_total_order_seek(rocksdb_readoptions_t* options, unsigned char value);
void rocksdb_readoptions_set_value_size_soft_limit(rocksdb_readoptions_t* options, uint64_t value);
void rocksdb_readoptions_set_verify_checksums(rocksdb_readoptions_t* options, unsigned char value);
rocksdb_size_approximation_options_t* rocksdb_size_approximation_options_create(void);
void rocksdb_size_approximation_options_destroy(rocksdb_size_approximation_options_t* options);
double rocksdb_size_approximation_options_get_files_size_error_margin(
    rocksdb_size_approximation_options_t* options);
unsigned char rocksdb_size_approximation_options_get_include_blob_files(
    rocksdb_size_approximation_options_t* options);
unsigned char rocksdb_size_approximation_options_get_include_files(
    rocksdb_size_approximation_options_t* options);
unsigned char rocksdb_size_approximation_options_get_include_memtables(
    rocksdb_size_approximation_options_t* options);
void rocksdb_size_approximation_options_set_files_size_error_margin(
    rocksdb_size_approximation_options_t* options, double value);
void rocksdb_size_approximation_options_set_include_blob_files(
    rocksdb_size_approximation_options_t* options, unsigned char value);
void rocksdb_size_approximation_options_set_include_files(
    rocksdb_size_approximation_options_t* options, unsigned char value);
void rocksdb_size_approximation_options_set_include_memtables(
    rocksdb_size_approximation_options_t* options, unsigned char value);
rocksdb_universal_compaction_options_t* rocksdb_universal_compaction_options_create(void);
void rocksdb_universal_compaction_options_destroy(rocksdb_universal_compaction_options_t* options);
unsigned char rocksdb_universal_compaction_options_get_allow_trivial_move(
    rocksdb_universal_compaction_options_t* options);
int rocksdb_universal_compaction_options_get_compression_size_percent(
    rocksdb_universal_compaction_options_t* options);
unsigned char rocksdb_universal_compaction_options_get_incremental(
    rocksdb_universal_compaction_options_t* options);
int rocksdb_universal_compaction_options_get_max_merge_width(
    rocksdb_universal_compaction_options_t* options);
int rocksdb_universal_compaction_options_get_max_read_amp(
    rocksdb_universal_compaction_options_t* options);
int rocksdb_universal_compaction_options_get_max_size_amplification_percent(
    rocksdb_universal_compaction_options_t* options);
int rocksdb_universal_compaction_options_get_min_merge_width(
    rocksdb_universal_compaction_options_t* options);
unsigned char rocksdb_universal_compaction_options_get_reduce_file_locking(
    rocksdb_universal_compaction_options_t* options);
int rocksdb_universal_compaction_options_get_size_ratio(
    rocksdb_universal_compaction_options_t* options);
int rocksdb_universal_compaction_options_get_stop_style(
    rocksdb_universal_compaction_options_t* options);
void rocksdb_universal_compaction_options_set_allow_trivial_move(
    rocksdb_universal_compaction_options_t* options, unsigned char value);
void rocksdb_universal_compaction_options_set_compression_size_percent(
    rocksdb_universal_compaction_options_t* options, int value);
void rocksdb_universal_compaction_options_set_incremental(
    rocksdb_universal_compaction_options_t* options, unsigned char value);
void rocksdb_universal_compaction_options_set_max_merge_width(
    rocksdb_universal_compaction_options_t* options, int value);
void rocksdb_universal_compaction_options_set_max_read_amp(
    rocksdb_universal_compaction_options_t* options, int value);
void rocksdb_universal_compaction_options_set_max_size_amplification_percent(
    rocksdb_universal_compaction_options_t* options, int value);
void rocksdb_universal_compaction_options_set_min_merge_width(
    rocksdb_universal_compaction_options_t* options, int value);
void rocksdb_universal_compaction_options_set_reduce_file_locking(
    rocksdb_universal_compaction_options_t* options, unsigned char value);
void rocksdb_universal_compaction_options_set_size_ratio(
    rocksdb_universal_compaction_options_t* options, int value);
void rocksdb_universal_compaction_options_set_stop_style(
    rocksdb_universal_compaction_options_t* options, int value);
rocksdb_wait_for_compact_options_t* rocksdb_wait_for_compact_options_create(void);
void rocksdb_wait_for_compact_options_destroy(rocksdb_wait_for_compact_options_t* options);
unsigned char rocksdb_wait_for_compact_options_get_abort_on_pause(
    rocksdb_wait_for_compact_options_t* options);
unsigned char rocksdb_wait_for_compact_options_get_close_db(
    rocksdb_wait_for_compact_options_t* options);
unsigned char rocksdb_wait_for_compact_options_get_flush(
    rocksdb_wait_for_compact_options_t* options);
uint64_t rocksdb_wait_for_compact_options_get_timeout(rocksdb_wait_for_compact_options_t* options);
unsigned char rocksdb_wait_for_compact_options_get_wait_for_purge(
    rocksdb_wait_for_compact_options_t* options);
void rocksdb_wait_for_compact_options_set_abort_on_pause(
    rocksdb_wait_for_compact_options_t* options, unsigned char value);
void rocksdb_wait_for_compact_options_set_close_db(rocksdb_wait_for_compact_options_t* options,
    unsigned char value);
void rocksdb_wait_for_compact_options_set_flush(rocksdb_wait_for_compact_options_t* options,
    unsigned char value);
void rocksdb_wait_for_compact_options_set_timeout(rocksdb_wait_for_compact_options_t* options,
    uint64_t microseconds);
void rocksdb_wait_for_compact_options_set_wait_for_purge(
    rocksdb_wait_for_compact_options_t* options, unsigned char value);
rocksdb_wal_readoptions_t* rocksdb_wal_readoptions_create(void);
void rocksdb_wal_readoptions_destroy(rocksdb_wal_readoptions_t* options);
unsigned char rocksdb_wal_readoptions_get_verify_checksums(rocksdb_wal_readoptions_t* options);
void rocksdb_wal_readoptions_set_verify_checksums(rocksdb_wal_readoptions_t* options,
    unsigned char verify_checksums);
rocksdb_writeoptions_t* rocksdb_writeoptions_create(void);
void rocksdb_writeoptions_destroy(rocksdb_writeoptions_t* options);
void rocksdb_writeoptions_disable_WAL(rocksdb_writeoptions_t* options, int value);
unsigned char rocksdb_writeoptions_get_disable_WAL(rocksdb_writeoptions_t* options);
unsigned char rocksdb_writeoptions_get_ignore_missing_column_families(
    rocksdb_writeoptions_t* options);
int rocksdb_writeoptions_get_io_activity(rocksdb_writeoptions_t* options);
unsigned char rocksdb_writeoptions_get_low_pri(rocksdb_writeoptions_t* options);
unsigned char rocksdb_writeoptions_get_memtable_insert_hint_per_batch(
    rocksdb_writeoptions_t* options);
unsigned char rocksdb_writeoptions_get_no_slowdown(rocksdb_writeoptions_t* options);
size_t rocksdb_writeoptions_get_protection_bytes_per_key(rocksdb_writeoptions_t* options);
int rocksdb_writeoptions_get_rate_limiter_priority(rocksdb_writeoptions_t* options);
unsigned char rocksdb_writeoptions_get_sync(rocksdb_writeoptions_t* options);
void rocksdb_writeoptions_set_ignore_missing_column_families(rocksdb_writeoptions_t* options,
    unsigned char value);
void rocksdb_writeoptions_set_io_activity(rocksdb_writeoptions_t* options, int value);
void rocksdb_writeoptions_set_low_pri(rocksdb_writeoptions_t* options, unsigned char value);
void rocksdb_writeoptions_set_memtable_insert_hint_per_batch(rocksdb_writeoptions_t* options,
    unsigned char value);
void rocksdb_writeoptions_set_no_slowdown(rocksdb_writeoptions_t* options, unsigned char value);
void rocksdb_writeoptions_set_protection_bytes_per_key(rocksdb_writeoptions_t* options,
    size_t value);
void rocksdb_writeoptions_set_rate_limiter_priority(rocksdb_writeoptions_t* options, int value);
void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t* options, unsigned char value);

#ifdef __cplusplus
}
#endif

#endif
