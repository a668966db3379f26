/* Setting options of a database and its column families. */
#ifndef SATEEN_ROCKSDB_C_OPTIONS_SET_H
#define SATEEN_ROCKSDB_C_OPTIONS_SET_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

void rocksdb_options_add_compact_on_deletion_collector_factory(rocksdb_options_t* options,
    size_t window_size, size_t num_dels_trigger);
void rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(rocksdb_options_t* options,
    size_t window_size, size_t num_dels_trigger, double deletion_ratio);
void rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
    rocksdb_options_t* options, size_t window_size, size_t num_dels_trigger, double deletion_ratio,
    uint64_t min_file_size);
void rocksdb_options_add_eventlistener(rocksdb_options_t* options,
    rocksdb_eventlistener_t* eventlistener);
void rocksdb_options_add_table_properties_collector_factory(rocksdb_options_t* options,
    rocksdb_table_properties_collector_factory_t* table_properties_collector_factory);
void rocksdb_options_checksum_handoff_file_types_add(rocksdb_options_t* options, int file_type);
void rocksdb_options_checksum_handoff_file_types_clear(rocksdb_options_t* options);
unsigned char rocksdb_options_checksum_handoff_file_types_contains(rocksdb_options_t* options,
    int file_type);
size_t rocksdb_options_checksum_handoff_file_types_count(rocksdb_options_t* options);
void rocksdb_options_checksum_handoff_file_types_remove(rocksdb_options_t* options, int file_type);
void rocksdb_options_clear_wal_filter(rocksdb_options_t* options);
void rocksdb_options_compaction_readahead_size(rocksdb_options_t* options, size_t value);
rocksdb_options_t* rocksdb_options_create(void);
rocksdb_options_t* rocksdb_options_create_copy(rocksdb_options_t* options);
void rocksdb_options_destroy(rocksdb_options_t* options);
void rocksdb_options_enable_statistics(rocksdb_options_t* options);
void rocksdb_options_increase_parallelism(rocksdb_options_t* options, int total_threads);
void rocksdb_options_optimize_for_point_lookup(rocksdb_options_t* options,
    uint64_t block_cache_size_mb);
void rocksdb_options_optimize_level_style_compaction(rocksdb_options_t* options,
    uint64_t memtable_memory_budget);
void rocksdb_options_optimize_universal_style_compaction(rocksdb_options_t* options,
    uint64_t memtable_memory_budget);
void rocksdb_options_prepare_for_bulk_load(rocksdb_options_t* options);
void rocksdb_options_set_WAL_size_limit_MB(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_WAL_ttl_seconds(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_access_hint_on_compaction_start(rocksdb_options_t* options, int value);
void rocksdb_options_set_advise_random_on_open(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_allow_2pc(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_allow_concurrent_memtable_write(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_allow_data_in_errors(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_allow_fallocate(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_allow_ingest_behind(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_allow_mmap_reads(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_allow_mmap_writes(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_arena_block_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_async_wal_precreate(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_atomic_flush(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_avoid_flush_during_recovery(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_avoid_flush_during_shutdown(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_avoid_unnecessary_blocking_io(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_background_close_inactive_wals(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_best_efforts_recovery(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_bgerror_resume_retry_interval(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_blob_cache(rocksdb_options_t* options, rocksdb_cache_t* blob_cache);
void rocksdb_options_set_blob_compaction_readahead_size(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_blob_compression_type(rocksdb_options_t* options, int value);
void rocksdb_options_set_blob_direct_write_partitions(rocksdb_options_t* options, uint32_t value);
void rocksdb_options_set_blob_file_size(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_blob_file_starting_level(rocksdb_options_t* options, int value);
void rocksdb_options_set_blob_file_writable_file_max_buffer_size(rocksdb_options_t* options,
    uint64_t value);
void rocksdb_options_set_blob_gc_age_cutoff(rocksdb_options_t* options, double value);
void rocksdb_options_set_blob_gc_force_threshold(rocksdb_options_t* options, double value);
void rocksdb_options_set_block_based_table_factory(rocksdb_options_t* options,
    rocksdb_block_based_table_options_t* table_options);
void rocksdb_options_set_block_protection_bytes_per_key(rocksdb_options_t* options, uint8_t value);
void rocksdb_options_set_bloom_locality(rocksdb_options_t* options, uint32_t value);
void rocksdb_options_set_bottommost_compression(rocksdb_options_t* options, int value);
void rocksdb_options_set_bottommost_compression_options(rocksdb_options_t* options, int value,
    int value2, int value3, int value4, unsigned char value5);
void rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(
    rocksdb_options_t* options, uint64_t value, unsigned char value2);
void rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(
    rocksdb_options_t* options, unsigned char value, unsigned char value2);
void rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
    rocksdb_options_t* options, int value, unsigned char value2);
void rocksdb_options_set_bottommost_file_compaction_delay(rocksdb_options_t* options,
    uint32_t value);
void rocksdb_options_set_bytes_per_sync(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_cf_allow_ingest_behind(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_cf_paths(rocksdb_options_t* options, const rocksdb_dbpath_t** path_values,
    size_t path_count);
void rocksdb_options_set_compaction_filter(rocksdb_options_t* options,
    rocksdb_compactionfilter_t* compactionfilter);
void rocksdb_options_set_compaction_filter_factory(rocksdb_options_t* options,
    rocksdb_compactionfilterfactory_t* compactionfilterfactory);
void rocksdb_options_set_compaction_pri(rocksdb_options_t* options, int value);
void rocksdb_options_set_compaction_service(rocksdb_options_t* options,
    rocksdb_compactionservice_t* service);
void rocksdb_options_set_compaction_style(rocksdb_options_t* options, int value);
void rocksdb_options_set_compaction_verify_record_count(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_comparator(rocksdb_options_t* options, rocksdb_comparator_t* comparator);
void rocksdb_options_set_compression(rocksdb_options_t* options, int value);
void rocksdb_options_set_compression_options(rocksdb_options_t* options, int value, int value2,
    int value3, int value4);
void rocksdb_options_set_compression_options_max_dict_buffer_bytes(rocksdb_options_t* options,
    uint64_t value);
void rocksdb_options_set_compression_options_parallel_threads(rocksdb_options_t* options,
    int value);
void rocksdb_options_set_compression_options_use_zstd_dict_trainer(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_compression_options_zstd_max_train_bytes(rocksdb_options_t* options,
    int value);
void rocksdb_options_set_compression_per_level(rocksdb_options_t* options, const int* level_values,
    size_t level_count);
void rocksdb_options_set_create_if_missing(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_create_missing_column_families(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_cuckoo_table_factory(rocksdb_options_t* options,
    rocksdb_cuckoo_table_options_t* table_options);
void rocksdb_options_set_daily_offpeak_time_utc(rocksdb_options_t* options, const char* value);
void rocksdb_options_set_db_host_id(rocksdb_options_t* options, const char* value);
void rocksdb_options_set_db_log_dir(rocksdb_options_t* options, const char* value);
void rocksdb_options_set_db_paths(rocksdb_options_t* options, const rocksdb_dbpath_t** path_values,
    size_t path_count);
void rocksdb_options_set_db_write_buffer_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_default_temperature(rocksdb_options_t* options, int value);
void rocksdb_options_set_default_write_temperature(rocksdb_options_t* options, int value);
void rocksdb_options_set_delayed_write_rate(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_delete_obsolete_files_period_micros(rocksdb_options_t* options,
    uint64_t value);
void rocksdb_options_set_disable_auto_compactions(rocksdb_options_t* options, int value);
void rocksdb_options_set_disallow_memtable_writes(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_dump_malloc_stats(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_enable_blob_direct_write(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_enable_blob_files(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_enable_blob_gc(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_enable_pipelined_write(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_enable_thread_tracking(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_enable_write_thread_adaptive_yield(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_enforce_single_del_contracts(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_enforce_write_buffer_manager_during_recovery(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_env(rocksdb_options_t* options, rocksdb_env_t* env);
void rocksdb_options_set_error_if_exists(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_experimental_mempurge_threshold(rocksdb_options_t* options, double value);
void rocksdb_options_set_fast_sst_open(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_fifo_compaction_options(rocksdb_options_t* options,
    rocksdb_fifo_compaction_options_t* fifo);
void rocksdb_options_set_file_checksum_gen_factory(rocksdb_options_t* options,
    rocksdb_file_checksum_gen_factory_t* file_checksum_gen_factory);
void rocksdb_options_set_flush_verify_memtable_count(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_follower_catchup_retry_count(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_follower_catchup_retry_wait_ms(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_follower_refresh_catchup_period_ms(rocksdb_options_t* options,
    uint64_t value);
void rocksdb_options_set_force_consistency_checks(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_hard_pending_compaction_bytes_limit(rocksdb_options_t* options,
    size_t value);
void rocksdb_options_set_hash_link_list_rep(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_hash_skip_list_rep(rocksdb_options_t* options, size_t value,
    int32_t value2, int32_t value3);
void rocksdb_options_set_info_log(rocksdb_options_t* options, rocksdb_logger_t* logger);
void rocksdb_options_set_info_log_level(rocksdb_options_t* options, int value);
void rocksdb_options_set_inplace_update_num_locks(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_inplace_update_support(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_is_fd_close_on_exec(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_keep_log_file_num(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_last_level_temperature(rocksdb_options_t* options, int value);
void rocksdb_options_set_level0_file_num_compaction_trigger(rocksdb_options_t* options, int value);
void rocksdb_options_set_level0_slowdown_writes_trigger(rocksdb_options_t* options, int value);
void rocksdb_options_set_level0_stop_writes_trigger(rocksdb_options_t* options, int value);
void rocksdb_options_set_level_compaction_dynamic_level_bytes(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_log_file_time_to_roll(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_log_readahead_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_lowest_used_cache_tier(rocksdb_options_t* options, int value);
void rocksdb_options_set_manifest_preallocation_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_manual_wal_flush(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_max_background_compactions(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_background_flushes(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_background_jobs(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_bgerror_resume_count(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_max_bytes_for_level_multiplier(rocksdb_options_t* options, double value);
void rocksdb_options_set_max_bytes_for_level_multiplier_additional(rocksdb_options_t* options,
    int* level_values, size_t level_count);
void rocksdb_options_set_max_compaction_bytes(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_max_compaction_trigger_wakeup_seconds(rocksdb_options_t* options,
    uint64_t value);
void rocksdb_options_set_max_file_opening_threads(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_log_file_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_max_manifest_file_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_max_manifest_space_amp_pct(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_open_files(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_sequential_skip_in_iterations(rocksdb_options_t* options,
    uint64_t value);
void rocksdb_options_set_max_subcompactions(rocksdb_options_t* options, uint32_t value);
void rocksdb_options_set_max_successive_merges(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_max_total_wal_size(rocksdb_options_t* options, uint64_t index);
void rocksdb_options_set_max_write_batch_group_size_bytes(rocksdb_options_t* options,
    uint64_t value);
void rocksdb_options_set_max_write_buffer_number(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_write_buffer_number_to_maintain(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_write_buffer_size_to_maintain(rocksdb_options_t* options,
    int64_t value);
void rocksdb_options_set_memtable_avg_op_scan_flush_trigger(rocksdb_options_t* options,
    uint32_t value);
void rocksdb_options_set_memtable_batch_lookup_optimization(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_memtable_huge_page_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_memtable_max_range_deletions(rocksdb_options_t* options, uint32_t value);
void rocksdb_options_set_memtable_op_scan_flush_trigger(rocksdb_options_t* options, uint32_t value);
void rocksdb_options_set_memtable_prefix_bloom_size_ratio(rocksdb_options_t* options, double value);
void rocksdb_options_set_memtable_protection_bytes_per_key(rocksdb_options_t* options,
    uint32_t value);
void rocksdb_options_set_memtable_vector_rep(rocksdb_options_t* options);
void rocksdb_options_set_memtable_verify_per_key_checksum_on_seek(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_memtable_whole_key_filtering(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_merge_operator(rocksdb_options_t* options,
    rocksdb_mergeoperator_t* merge_operator);
void rocksdb_options_set_metadata_write_temperature(rocksdb_options_t* options, int value);
void rocksdb_options_set_min_blob_size(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_min_level_to_compress(rocksdb_options_t* options, int level);
void rocksdb_options_set_min_tombstones_for_range_conversion(rocksdb_options_t* options,
    uint32_t value);
void rocksdb_options_set_min_write_buffer_number_to_merge(rocksdb_options_t* options, int value);
void rocksdb_options_set_num_levels(rocksdb_options_t* options, int value);
void rocksdb_options_set_open_files_async(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_optimize_filters_for_hits(rocksdb_options_t* options, int value);
void rocksdb_options_set_optimize_manifest_for_recovery(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_paranoid_checks(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_paranoid_file_checks(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_paranoid_memory_checks(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_periodic_compaction_phase_recovery_percent(rocksdb_options_t* options,
    int value);
void rocksdb_options_set_periodic_compaction_seconds(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_persist_stats_to_disk(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_persist_user_defined_timestamps(rocksdb_options_t* options,
    unsigned char value);
#if SATEEN_ROCKSDB_ABI >= 8
void rocksdb_options_set_plain_table_factory(rocksdb_options_t* options, uint32_t value, int value2,
    double value3, size_t value4, size_t value5, char value6, unsigned char value7,
    unsigned char value8);
#endif
void rocksdb_options_set_preclude_last_level_data_seconds(rocksdb_options_t* options,
    uint64_t value);
void rocksdb_options_set_prefix_extractor(rocksdb_options_t* options,
    rocksdb_slicetransform_t* slicetransform);
void rocksdb_options_set_prefix_seek_opt_in_only(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_prepopulate_blob_cache(rocksdb_options_t* options, int value);
void rocksdb_options_set_preserve_internal_time_seconds(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_ratelimiter(rocksdb_options_t* options, rocksdb_ratelimiter_t* limiter);
void rocksdb_options_set_read_io_executor_threads(rocksdb_options_t* options, int value);
void rocksdb_options_set_read_triggered_compaction_threshold(rocksdb_options_t* options,
    double value);
void rocksdb_options_set_recycle_log_file_num(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_remote_compaction_manifest_floor(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_report_bg_io_stats(rocksdb_options_t* options, int value);
void rocksdb_options_set_reuse_manifest_on_open(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_row_cache(rocksdb_options_t* options, rocksdb_cache_t* cache);
void rocksdb_options_set_sample_for_compression(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_skip_stats_update_on_db_open(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_soft_pending_compaction_bytes_limit(rocksdb_options_t* options,
    size_t value);
void rocksdb_options_set_sst_file_manager(rocksdb_options_t* options,
    rocksdb_sst_file_manager_t* manager);
void rocksdb_options_set_sst_partitioner_factory(rocksdb_options_t* options,
    rocksdb_sst_partitioner_factory_t* sst_partitioner_factory);
void rocksdb_options_set_statistics_level(rocksdb_options_t* options, int level);
void rocksdb_options_set_stats_dump_period_sec(rocksdb_options_t* options, unsigned int value);
void rocksdb_options_set_stats_history_buffer_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_stats_persist_period_sec(rocksdb_options_t* options, unsigned int value);
void rocksdb_options_set_strict_bytes_per_sync(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_strict_max_successive_merges(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_table_cache_numshardbits(rocksdb_options_t* options, int value);
void rocksdb_options_set_target_file_size_base(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_target_file_size_is_upper_bound(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_target_file_size_multiplier(rocksdb_options_t* options, int value);
void rocksdb_options_set_track_and_verify_wals(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_track_and_verify_wals_in_manifest(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_ttl(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_two_write_queues(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_uint64add_merge_operator(rocksdb_options_t* options);
void rocksdb_options_set_uncache_aggressiveness(rocksdb_options_t* options, uint32_t value);
void rocksdb_options_set_universal_compaction_options(rocksdb_options_t* options,
    rocksdb_universal_compaction_options_t* options2);
void rocksdb_options_set_unordered_write(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_use_adaptive_mutex(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_use_direct_io_for_compaction_reads(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_use_direct_io_for_flush_and_compaction(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_use_direct_reads(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_use_fsync(rocksdb_options_t* options, int value);
void rocksdb_options_set_use_session_tmp_dir_for_remote_compaction(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_verify_manifest_content_on_close(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_verify_output_flags(rocksdb_options_t* options, int value);
void rocksdb_options_set_verify_sst_unique_id_in_manifest(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_wal_bytes_per_sync(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_wal_compression(rocksdb_options_t* options, int value);
void rocksdb_options_set_wal_dir(rocksdb_options_t* options, const char* value);
void rocksdb_options_set_wal_filter(rocksdb_options_t* options, rocksdb_walfilter_t* walfilter);
void rocksdb_options_set_wal_recovery_mode(rocksdb_options_t* options, int value);
void rocksdb_options_set_wal_write_temperature(rocksdb_options_t* options, int value);
void rocksdb_options_set_writable_file_max_buffer_size(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_write_buffer_manager(rocksdb_options_t* options,
    rocksdb_write_buffer_manager_t* manager);
void rocksdb_options_set_write_buffer_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_write_dbid_to_manifest(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_write_identity_file(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_write_thread_max_yield_usec(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_write_thread_slow_yield_usec(rocksdb_options_t* options, uint64_t value);

#ifdef __cplusplus
}
#endif

#endif
