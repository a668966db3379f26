/* Handles, named numbers, and the types of callbacks. */
#ifndef SATEEN_ROCKSDB_C_TYPES_H
#define SATEEN_ROCKSDB_C_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rocksdb_backup_engine_info_t rocksdb_backup_engine_info_t;
typedef struct rocksdb_backup_engine_options_t rocksdb_backup_engine_options_t;
typedef struct rocksdb_backup_engine_t rocksdb_backup_engine_t;
typedef struct rocksdb_blob_file_addition_info_t rocksdb_blob_file_addition_info_t;
typedef struct rocksdb_blob_file_garbage_info_t rocksdb_blob_file_garbage_info_t;
typedef struct rocksdb_block_based_table_options_t rocksdb_block_based_table_options_t;
typedef struct rocksdb_block_cache_trace_options_t rocksdb_block_cache_trace_options_t;
typedef struct rocksdb_block_cache_trace_writer_options_t
    rocksdb_block_cache_trace_writer_options_t;
typedef struct rocksdb_cache_t rocksdb_cache_t;
typedef struct rocksdb_checkpoint_t rocksdb_checkpoint_t;
typedef struct rocksdb_column_family_handle_t rocksdb_column_family_handle_t;
typedef struct rocksdb_column_family_metadata_options_t rocksdb_column_family_metadata_options_t;
typedef struct rocksdb_column_family_metadata_t rocksdb_column_family_metadata_t;
typedef struct rocksdb_compaction_file_info_t rocksdb_compaction_file_info_t;
typedef struct rocksdb_compaction_job_stats_t rocksdb_compaction_job_stats_t;
typedef struct rocksdb_compaction_options_t rocksdb_compaction_options_t;
typedef struct rocksdb_compaction_service_options_override_t
    rocksdb_compaction_service_options_override_t;
typedef struct rocksdb_compactionfilter_t rocksdb_compactionfilter_t;
typedef struct rocksdb_compactionfiltercontext_t rocksdb_compactionfiltercontext_t;
typedef struct rocksdb_compactionfilterfactory_t rocksdb_compactionfilterfactory_t;
typedef struct rocksdb_compactionjobinfo_t rocksdb_compactionjobinfo_t;
typedef struct rocksdb_compactionservice_jobinfo_t rocksdb_compactionservice_jobinfo_t;
typedef struct rocksdb_compactionservice_scheduleresponse_t
    rocksdb_compactionservice_scheduleresponse_t;
typedef struct rocksdb_compactionservice_t rocksdb_compactionservice_t;
typedef struct rocksdb_compactoptions_t rocksdb_compactoptions_t;
typedef struct rocksdb_comparator_t rocksdb_comparator_t;
typedef struct rocksdb_create_backup_options_t rocksdb_create_backup_options_t;
typedef struct rocksdb_cuckoo_table_options_t rocksdb_cuckoo_table_options_t;
typedef struct rocksdb_dbpath_t rocksdb_dbpath_t;
typedef struct rocksdb_env_t rocksdb_env_t;
typedef struct rocksdb_envoptions_t rocksdb_envoptions_t;
typedef struct rocksdb_eventlistener_t rocksdb_eventlistener_t;
typedef struct rocksdb_export_import_files_metadata_t rocksdb_export_import_files_metadata_t;
typedef struct rocksdb_externalfileingestioninfo_t rocksdb_externalfileingestioninfo_t;
typedef struct rocksdb_fifo_compaction_options_t rocksdb_fifo_compaction_options_t;
typedef struct rocksdb_file_checksum_gen_factory_t rocksdb_file_checksum_gen_factory_t;
typedef struct rocksdb_filelock_t rocksdb_filelock_t;
typedef struct rocksdb_filterpolicy_t rocksdb_filterpolicy_t;
typedef struct rocksdb_flushjobinfo_t rocksdb_flushjobinfo_t;
typedef struct rocksdb_flushoptions_t rocksdb_flushoptions_t;
typedef struct rocksdb_flushwaloptions_t rocksdb_flushwaloptions_t;
typedef struct rocksdb_hyper_clock_cache_options_t rocksdb_hyper_clock_cache_options_t;
typedef struct rocksdb_import_column_family_options_t rocksdb_import_column_family_options_t;
typedef struct rocksdb_ingestexternalfileoptions_t rocksdb_ingestexternalfileoptions_t;
typedef struct rocksdb_iterator_t rocksdb_iterator_t;
typedef struct rocksdb_level_metadata_t rocksdb_level_metadata_t;
typedef struct rocksdb_livefile_t rocksdb_livefile_t;
typedef struct rocksdb_livefiles_storage_info_options_t rocksdb_livefiles_storage_info_options_t;
typedef struct rocksdb_livefiles_storage_info_t rocksdb_livefiles_storage_info_t;
typedef struct rocksdb_livefiles_t rocksdb_livefiles_t;
typedef struct rocksdb_logger_t rocksdb_logger_t;
typedef struct rocksdb_lru_cache_options_t rocksdb_lru_cache_options_t;
typedef struct rocksdb_memory_allocator_t rocksdb_memory_allocator_t;
typedef struct rocksdb_memory_consumers_t rocksdb_memory_consumers_t;
typedef struct rocksdb_memory_usage_t rocksdb_memory_usage_t;
typedef struct rocksdb_memtableinfo_t rocksdb_memtableinfo_t;
typedef struct rocksdb_mergeoperator_t rocksdb_mergeoperator_t;
typedef struct rocksdb_open_and_compact_options_t rocksdb_open_and_compact_options_t;
typedef struct rocksdb_optimistictransaction_options_t rocksdb_optimistictransaction_options_t;
typedef struct rocksdb_optimistictransactiondb_lock_buckets_t
    rocksdb_optimistictransactiondb_lock_buckets_t;
typedef struct rocksdb_optimistictransactiondb_options_t rocksdb_optimistictransactiondb_options_t;
typedef struct rocksdb_optimistictransactiondb_t rocksdb_optimistictransactiondb_t;
typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_perfcontext_t rocksdb_perfcontext_t;
typedef struct rocksdb_pinnable_handle_t rocksdb_pinnable_handle_t;
typedef struct rocksdb_pinnable_multi_get_t rocksdb_pinnable_multi_get_t;
typedef struct rocksdb_pinnableslice_t rocksdb_pinnableslice_t;
typedef struct rocksdb_randomfile_t rocksdb_randomfile_t;
typedef struct rocksdb_ratelimiter_t rocksdb_ratelimiter_t;
typedef struct rocksdb_readoptions_t rocksdb_readoptions_t;
typedef struct rocksdb_replay_options_t rocksdb_replay_options_t;
typedef struct rocksdb_replayer_t rocksdb_replayer_t;
typedef struct rocksdb_restore_options_t rocksdb_restore_options_t;
typedef struct rocksdb_seqfile_t rocksdb_seqfile_t;
typedef struct rocksdb_size_approximation_options_t rocksdb_size_approximation_options_t;
typedef struct rocksdb_slicetransform_t rocksdb_slicetransform_t;
typedef struct rocksdb_snapshot_t rocksdb_snapshot_t;
typedef struct rocksdb_sst_file_manager_t rocksdb_sst_file_manager_t;
typedef struct rocksdb_sst_file_metadata_t rocksdb_sst_file_metadata_t;
typedef struct rocksdb_sst_partitioner_factory_t rocksdb_sst_partitioner_factory_t;
typedef struct rocksdb_sstfilewriter_t rocksdb_sstfilewriter_t;
typedef struct rocksdb_statistics_histogram_data_t rocksdb_statistics_histogram_data_t;
typedef struct rocksdb_status_ptr_t rocksdb_status_ptr_t;
typedef struct rocksdb_subcompactionjobinfo_t rocksdb_subcompactionjobinfo_t;
typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_table_properties_collector_factory_t
    rocksdb_table_properties_collector_factory_t;
typedef struct rocksdb_table_properties_t rocksdb_table_properties_t;
typedef struct rocksdb_trace_options_t rocksdb_trace_options_t;
typedef struct rocksdb_trace_reader_t rocksdb_trace_reader_t;
typedef struct rocksdb_transaction_options_t rocksdb_transaction_options_t;
typedef struct rocksdb_transaction_t rocksdb_transaction_t;
typedef struct rocksdb_transactiondb_options_t rocksdb_transactiondb_options_t;
typedef struct rocksdb_transactiondb_t rocksdb_transactiondb_t;
typedef struct rocksdb_universal_compaction_options_t rocksdb_universal_compaction_options_t;
typedef struct rocksdb_wait_for_compact_options_t rocksdb_wait_for_compact_options_t;
typedef struct rocksdb_wal_file_t rocksdb_wal_file_t;
typedef struct rocksdb_wal_files_t rocksdb_wal_files_t;
typedef struct rocksdb_wal_iterator_t rocksdb_wal_iterator_t;
typedef struct rocksdb_wal_readoptions_t rocksdb_wal_readoptions_t;
typedef struct rocksdb_walfilter_t rocksdb_walfilter_t;
typedef struct rocksdb_writablefile_t rocksdb_writablefile_t;
typedef struct rocksdb_write_buffer_manager_t rocksdb_write_buffer_manager_t;
typedef struct rocksdb_writebatch_t rocksdb_writebatch_t;
typedef struct rocksdb_writebatch_wi_t rocksdb_writebatch_wi_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;
typedef struct rocksdb_writestallcondition_t rocksdb_writestallcondition_t;
typedef struct rocksdb_writestallinfo_t rocksdb_writestallinfo_t;

/* Bytes with another owner. */
typedef struct rocksdb_slice_t {
    const char* data;
    size_t size;
} rocksdb_slice_t;

enum {
    rocksdb_pinnable_multi_get_not_found = 0,
    rocksdb_pinnable_multi_get_found = 1,
    rocksdb_pinnable_multi_get_error = 2,
    rocksdb_pinnable_multi_get_out_of_bounds = 3
};

enum {
    rocksdb_size_approximation_flags_none = 0,
    rocksdb_size_approximation_flags_include_memtable = 1,
    rocksdb_size_approximation_flags_include_files = 2,
    rocksdb_size_approximation_flags_include_blob_files = 4
};

enum {
    rocksdb_wal_file_type_archived_log = 0,
    rocksdb_wal_file_type_alive_log = 1
};

enum {
    rocksdb_block_based_table_index_type_binary_search = 0,
    rocksdb_block_based_table_index_type_hash_search = 1,
    rocksdb_block_based_table_index_type_two_level_index_search = 2
};

enum {
    rocksdb_block_based_table_data_block_index_type_binary_search = 0,
    rocksdb_block_based_table_data_block_index_type_binary_search_and_hash = 1
};

enum {
    rocksdb_block_based_table_index_block_search_type_binary = 0,
    rocksdb_block_based_table_index_block_search_type_interpolation = 1,
    rocksdb_block_based_table_index_block_search_type_auto = 2
};

enum {
    rocksdb_block_based_k_fallback_pinning_tier = 0,
    rocksdb_block_based_k_none_pinning_tier = 1,
    rocksdb_block_based_k_flush_and_similar_pinning_tier = 2,
    rocksdb_block_based_k_all_pinning_tier = 3
};

enum {
    rocksdb_statistics_level_disable_all = 0,
    rocksdb_statistics_level_except_tickers = 0,
    rocksdb_statistics_level_except_histogram_or_timers = 1,
    rocksdb_statistics_level_except_timers = 2,
    rocksdb_statistics_level_except_detailed_timers = 3,
    rocksdb_statistics_level_except_time_for_mutex = 4,
    rocksdb_statistics_level_all = 5
};

enum {
    rocksdb_prepopulate_blob_disable = 0,
    rocksdb_prepopulate_blob_flush_only = 1
};

enum {
    rocksdb_tolerate_corrupted_tail_records_recovery = 0,
    rocksdb_absolute_consistency_recovery = 1,
    rocksdb_point_in_time_recovery = 2,
    rocksdb_skip_any_corrupted_records_recovery = 3
};

enum {
    rocksdb_no_compression = 0,
    rocksdb_snappy_compression = 1,
    rocksdb_zlib_compression = 2,
    rocksdb_bz2_compression = 3,
    rocksdb_lz4_compression = 4,
    rocksdb_lz4hc_compression = 5,
    rocksdb_xpress_compression = 6,
    rocksdb_zstd_compression = 7
};

enum {
    rocksdb_level_compaction = 0,
    rocksdb_universal_compaction = 1,
    rocksdb_fifo_compaction = 2
};

enum {
    rocksdb_k_by_compensated_size_compaction_pri = 0,
    rocksdb_k_oldest_largest_seq_first_compaction_pri = 1,
    rocksdb_k_oldest_smallest_seq_first_compaction_pri = 2,
    rocksdb_k_min_overlapping_ratio_compaction_pri = 3,
    rocksdb_k_round_robin_compaction_pri = 4
};

enum {
    rocksdb_uninitialized = 0,
    rocksdb_disable = 1,
    rocksdb_enable_count = 2,
    rocksdb_enable_time_except_for_mutex = 3,
    rocksdb_enable_time = 4,
    rocksdb_out_of_bounds = 5
};

enum {
    rocksdb_user_key_comparison_count = 0,
    rocksdb_block_cache_hit_count = 1,
    rocksdb_block_read_count = 2,
    rocksdb_block_read_byte = 3,
    rocksdb_block_read_time = 4,
    rocksdb_block_checksum_time = 5,
    rocksdb_block_decompress_time = 6,
    rocksdb_get_read_bytes = 7,
    rocksdb_multiget_read_bytes = 8,
    rocksdb_iter_read_bytes = 9,
    rocksdb_internal_key_skipped_count = 10,
    rocksdb_internal_delete_skipped_count = 11,
    rocksdb_internal_recent_skipped_count = 12,
    rocksdb_internal_merge_count = 13,
    rocksdb_get_snapshot_time = 14,
    rocksdb_get_from_memtable_time = 15,
    rocksdb_get_from_memtable_count = 16,
    rocksdb_get_post_process_time = 17,
    rocksdb_get_from_output_files_time = 18,
    rocksdb_seek_on_memtable_time = 19,
    rocksdb_seek_on_memtable_count = 20,
    rocksdb_next_on_memtable_count = 21,
    rocksdb_prev_on_memtable_count = 22,
    rocksdb_seek_child_seek_time = 23,
    rocksdb_seek_child_seek_count = 24,
    rocksdb_seek_min_heap_time = 25,
    rocksdb_seek_max_heap_time = 26,
    rocksdb_seek_internal_seek_time = 27,
    rocksdb_find_next_user_entry_time = 28,
    rocksdb_write_wal_time = 29,
    rocksdb_write_memtable_time = 30,
    rocksdb_write_delay_time = 31,
    rocksdb_write_pre_and_post_process_time = 32,
    rocksdb_db_mutex_lock_nanos = 33,
    rocksdb_db_condition_wait_nanos = 34,
    rocksdb_merge_operator_time_nanos = 35,
    rocksdb_read_index_block_nanos = 36,
    rocksdb_read_filter_block_nanos = 37,
    rocksdb_new_table_block_iter_nanos = 38,
    rocksdb_new_table_iterator_nanos = 39,
    rocksdb_block_seek_nanos = 40,
    rocksdb_find_table_nanos = 41,
    rocksdb_bloom_memtable_hit_count = 42,
    rocksdb_bloom_memtable_miss_count = 43,
    rocksdb_bloom_sst_hit_count = 44,
    rocksdb_bloom_sst_miss_count = 45,
    rocksdb_key_lock_wait_time = 46,
    rocksdb_key_lock_wait_count = 47,
    rocksdb_env_new_sequential_file_nanos = 48,
    rocksdb_env_new_random_access_file_nanos = 49,
    rocksdb_env_new_writable_file_nanos = 50,
    rocksdb_env_reuse_writable_file_nanos = 51,
    rocksdb_env_new_random_rw_file_nanos = 52,
    rocksdb_env_new_directory_nanos = 53,
    rocksdb_env_file_exists_nanos = 54,
    rocksdb_env_get_children_nanos = 55,
    rocksdb_env_get_children_file_attributes_nanos = 56,
    rocksdb_env_delete_file_nanos = 57,
    rocksdb_env_create_dir_nanos = 58,
    rocksdb_env_create_dir_if_missing_nanos = 59,
    rocksdb_env_delete_dir_nanos = 60,
    rocksdb_env_get_file_size_nanos = 61,
    rocksdb_env_get_file_modification_time_nanos = 62,
    rocksdb_env_rename_file_nanos = 63,
    rocksdb_env_link_file_nanos = 64,
    rocksdb_env_lock_file_nanos = 65,
    rocksdb_env_unlock_file_nanos = 66,
    rocksdb_env_new_logger_nanos = 67,
    rocksdb_number_async_seek = 68,
    rocksdb_blob_cache_hit_count = 69,
    rocksdb_blob_read_count = 70,
    rocksdb_blob_read_byte = 71,
    rocksdb_blob_read_time = 72,
    rocksdb_blob_checksum_time = 73,
    rocksdb_blob_decompress_time = 74,
    rocksdb_internal_range_del_reseek_count = 75,
    rocksdb_block_read_cpu_time = 76,
    rocksdb_internal_merge_point_lookup_count = 77,
    rocksdb_data_block_read_byte = 78,
    rocksdb_index_block_read_byte = 79,
    rocksdb_filter_block_read_byte = 80,
    rocksdb_compression_dict_block_read_byte = 81,
    rocksdb_metadata_block_read_byte = 82,
    rocksdb_blob_cache_read_byte = 83,
    rocksdb_total_metric_count = 86
};

enum {
    rocksdb_wal_filter_continue_processing = 0,
    rocksdb_wal_filter_ignore_current_record = 1,
    rocksdb_wal_filter_stop_replay = 2,
    rocksdb_wal_filter_corrupted_record = 3
};

enum {
    rocksdb_write_buffer_manager_flush_policy_oldest = 0,
    rocksdb_write_buffer_manager_flush_policy_largest = 1,
    rocksdb_write_buffer_manager_flush_policy_largest_across_dbs = 2
};

enum {
    rocksdb_trace_filter_none = 0,
    rocksdb_trace_filter_get = 1,
    rocksdb_trace_filter_write = 2,
    rocksdb_trace_filter_iterator_seek = 4,
    rocksdb_trace_filter_iterator_seek_for_prev = 8,
    rocksdb_trace_filter_multi_get = 16
};

enum {
    rocksdb_similar_size_compaction_stop_style = 0,
    rocksdb_total_size_compaction_stop_style = 1
};

enum {
    rocksdb_txndb_write_policy_write_committed = 0,
    rocksdb_txndb_write_policy_write_prepared = 1,
    rocksdb_txndb_write_policy_write_unprepared = 2
};

enum {
    rocksdb_compactionservice_jobstatus_success = 0,
    rocksdb_compactionservice_jobstatus_failure = 1,
    rocksdb_compactionservice_jobstatus_aborted = 2,
    rocksdb_compactionservice_jobstatus_use_local = 3
};

typedef rocksdb_compactionservice_scheduleresponse_t* (*rocksdb_compaction_service_schedule_cb)(
    void* state, const rocksdb_compactionservice_jobinfo_t* info,
    const char* compaction_service_input, size_t input_length);
typedef int (*rocksdb_compaction_service_wait_cb)(void* state, const char* scheduled_job_id,
    char** result, size_t* result_length);
typedef void (*rocksdb_compaction_service_cancel_awaiting_jobs_cb)(void* state);
typedef void (*rocksdb_compaction_service_on_installation_cb)(void* state,
    const char* scheduled_job_id, int status);
typedef void (*rocksdb_create_backup_options_progress_cb)(void* state);
typedef unsigned char (*rocksdb_create_backup_options_exclude_files_cb)(void* state,
    const char* relative_file, size_t relative_file_length);
typedef unsigned char (*rocksdb_readoptions_table_filter_cb)(void* state,
    const rocksdb_table_properties_t* table_properties);
typedef void (*rocksdb_walfilter_column_family_log_number_map_cb)(void* state,
    const uint32_t* column_family_ids, const uint64_t* log_numbers,
    size_t column_family_log_number_count, const char* const* family_names,
    const size_t* column_family_name_lengths, const uint32_t* column_family_name_ids,
    size_t column_family_name_count);
typedef int (*rocksdb_walfilter_log_record_found_cb)(void* state, unsigned long long log_number,
    const char* log_file_name, size_t log_file_name_len, const rocksdb_writebatch_t* batch,
    rocksdb_writebatch_t* new_batch, unsigned char* batch_changed);
typedef void (*on_flush_begin_cb)(void* state, rocksdb_t* db,
    const rocksdb_flushjobinfo_t* flushjobinfo);
typedef void (*on_flush_completed_cb)(void* state, rocksdb_t* db,
    const rocksdb_flushjobinfo_t* flushjobinfo);
typedef void (*on_compaction_begin_cb)(void* state, rocksdb_t* db,
    const rocksdb_compactionjobinfo_t* compactionjobinfo);
typedef void (*on_compaction_completed_cb)(void* state, rocksdb_t* db,
    const rocksdb_compactionjobinfo_t* compactionjobinfo);
typedef void (*on_subcompaction_begin_cb)(void* state,
    const rocksdb_subcompactionjobinfo_t* subcompactionjobinfo);
typedef void (*on_subcompaction_completed_cb)(void* state,
    const rocksdb_subcompactionjobinfo_t* subcompactionjobinfo);
typedef void (*on_external_file_ingested_cb)(void* state, rocksdb_t* db,
    const rocksdb_externalfileingestioninfo_t* externalfileingestioninfo);
typedef void (*on_background_error_cb)(void* state, uint32_t value,
    rocksdb_status_ptr_t* status_ptr);
typedef void (*on_stall_conditions_changed_cb)(void* state,
    const rocksdb_writestallinfo_t* writestallinfo);
typedef void (*rocksdb_logger_logv_cb)(void* state, uint32_t log_level, const char* value);
typedef void (*on_memtable_sealed_cb)(void* state, const rocksdb_memtableinfo_t* memtableinfo);

#ifdef __cplusplus
}
#endif

#endif
