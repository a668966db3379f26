/* Backups, checkpoints, traces, environments, files of other databases. */
#ifndef SATEEN_ROCKSDB_C_TOOLS_H
#define SATEEN_ROCKSDB_C_TOOLS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

void rocksdb_backup_engine_close(rocksdb_backup_engine_t* engine);
void rocksdb_backup_engine_create_new_backup(rocksdb_backup_engine_t* engine, rocksdb_t* db,
    char** errptr);
void rocksdb_backup_engine_create_new_backup_flush(rocksdb_backup_engine_t* engine, rocksdb_t* db,
    unsigned char flush_before_backup, char** errptr);
void rocksdb_backup_engine_create_new_backup_with_metadata(rocksdb_backup_engine_t* engine,
    rocksdb_t* db, const rocksdb_create_backup_options_t* options, const char* app_metadata,
    size_t app_metadata_length, uint32_t* backup_id, char** errptr);
void rocksdb_backup_engine_create_new_backup_with_options(rocksdb_backup_engine_t* engine,
    rocksdb_t* db, const rocksdb_create_backup_options_t* options, uint32_t* backup_id,
    char** errptr);
const rocksdb_backup_engine_info_t* rocksdb_backup_engine_get_backup_info(
    rocksdb_backup_engine_t* engine);
const char* rocksdb_backup_engine_info_app_metadata(const rocksdb_backup_engine_info_t* info,
    int index, size_t* length);
uint32_t rocksdb_backup_engine_info_backup_id(const rocksdb_backup_engine_info_t* info, int index);
int rocksdb_backup_engine_info_count(const rocksdb_backup_engine_info_t* info);
void rocksdb_backup_engine_info_destroy(const rocksdb_backup_engine_info_t* info);
uint32_t rocksdb_backup_engine_info_number_files(const rocksdb_backup_engine_info_t* info,
    int index);
uint64_t rocksdb_backup_engine_info_size(const rocksdb_backup_engine_info_t* info, int index);
int64_t rocksdb_backup_engine_info_timestamp(const rocksdb_backup_engine_info_t* info, int index);
rocksdb_backup_engine_t* rocksdb_backup_engine_open(const rocksdb_options_t* options,
    const char* path, char** errptr);
rocksdb_backup_engine_t* rocksdb_backup_engine_open_opts(
    const rocksdb_backup_engine_options_t* options, rocksdb_env_t* env, char** errptr);
rocksdb_backup_engine_options_t* rocksdb_backup_engine_options_create(const char* backup_dir);
void rocksdb_backup_engine_options_destroy(rocksdb_backup_engine_options_t* options);
const char* rocksdb_backup_engine_options_get_backup_dir(rocksdb_backup_engine_options_t* options,
    size_t* size);
unsigned char rocksdb_backup_engine_options_get_backup_log_files(
    rocksdb_backup_engine_options_t* options);
uint64_t rocksdb_backup_engine_options_get_backup_rate_limit(
    rocksdb_backup_engine_options_t* options);
uint64_t rocksdb_backup_engine_options_get_callback_trigger_interval_size(
    rocksdb_backup_engine_options_t* options);
unsigned char rocksdb_backup_engine_options_get_current_temperatures_override_manifest(
    rocksdb_backup_engine_options_t* options);
unsigned char rocksdb_backup_engine_options_get_destroy_old_data(
    rocksdb_backup_engine_options_t* options);
uint64_t rocksdb_backup_engine_options_get_io_buffer_size(rocksdb_backup_engine_options_t* options);
int rocksdb_backup_engine_options_get_max_background_operations(
    rocksdb_backup_engine_options_t* options);
int rocksdb_backup_engine_options_get_max_valid_backups_to_open(
    rocksdb_backup_engine_options_t* options);
uint64_t rocksdb_backup_engine_options_get_restore_rate_limit(
    rocksdb_backup_engine_options_t* options);
int rocksdb_backup_engine_options_get_schema_version(rocksdb_backup_engine_options_t* options);
unsigned char rocksdb_backup_engine_options_get_share_files_with_checksum(
    rocksdb_backup_engine_options_t* options);
int rocksdb_backup_engine_options_get_share_files_with_checksum_naming(
    rocksdb_backup_engine_options_t* options);
unsigned char rocksdb_backup_engine_options_get_share_table_files(
    rocksdb_backup_engine_options_t* options);
unsigned char rocksdb_backup_engine_options_get_sync(rocksdb_backup_engine_options_t* options);
void rocksdb_backup_engine_options_set_backup_dir(rocksdb_backup_engine_options_t* options,
    const char* value);
void rocksdb_backup_engine_options_set_backup_log_files(rocksdb_backup_engine_options_t* options,
    unsigned char value);
void rocksdb_backup_engine_options_set_backup_rate_limit(rocksdb_backup_engine_options_t* options,
    uint64_t value);
void rocksdb_backup_engine_options_set_backup_rate_limiter(rocksdb_backup_engine_options_t* options,
    rocksdb_ratelimiter_t* limiter);
void rocksdb_backup_engine_options_set_callback_trigger_interval_size(
    rocksdb_backup_engine_options_t* options, uint64_t value);
void rocksdb_backup_engine_options_set_current_temperatures_override_manifest(
    rocksdb_backup_engine_options_t* options, unsigned char value);
void rocksdb_backup_engine_options_set_destroy_old_data(rocksdb_backup_engine_options_t* options,
    unsigned char value);
void rocksdb_backup_engine_options_set_env(rocksdb_backup_engine_options_t* options,
    rocksdb_env_t* env);
void rocksdb_backup_engine_options_set_io_buffer_size(rocksdb_backup_engine_options_t* options,
    uint64_t value);
void rocksdb_backup_engine_options_set_max_background_operations(
    rocksdb_backup_engine_options_t* options, int value);
void rocksdb_backup_engine_options_set_max_valid_backups_to_open(
    rocksdb_backup_engine_options_t* options, int value);
void rocksdb_backup_engine_options_set_restore_rate_limit(rocksdb_backup_engine_options_t* options,
    uint64_t value);
void rocksdb_backup_engine_options_set_restore_rate_limiter(
    rocksdb_backup_engine_options_t* options, rocksdb_ratelimiter_t* limiter);
void rocksdb_backup_engine_options_set_schema_version(rocksdb_backup_engine_options_t* options,
    int value);
void rocksdb_backup_engine_options_set_share_files_with_checksum(
    rocksdb_backup_engine_options_t* options, unsigned char value);
void rocksdb_backup_engine_options_set_share_files_with_checksum_naming(
    rocksdb_backup_engine_options_t* options, int value);
void rocksdb_backup_engine_options_set_share_table_files(rocksdb_backup_engine_options_t* options,
    unsigned char value);
void rocksdb_backup_engine_options_set_sync(rocksdb_backup_engine_options_t* options,
    unsigned char value);
void rocksdb_backup_engine_purge_old_backups(rocksdb_backup_engine_t* engine,
    uint32_t num_backups_to_keep, char** errptr);
void rocksdb_backup_engine_restore_db_from_backup(rocksdb_backup_engine_t* engine,
    const char* db_dir, const char* wal_dir, const rocksdb_restore_options_t* restore_options,
    uint32_t backup_id, char** errptr);
void rocksdb_backup_engine_restore_db_from_latest_backup(rocksdb_backup_engine_t* engine,
    const char* db_dir, const char* wal_dir, const rocksdb_restore_options_t* restore_options,
    char** errptr);
void rocksdb_backup_engine_stop_backup(rocksdb_backup_engine_t* engine);
void rocksdb_backup_engine_verify_backup(rocksdb_backup_engine_t* engine, uint32_t backup_id,
    char** errptr);
rocksdb_block_cache_trace_options_t* rocksdb_block_cache_trace_options_create(void);
void rocksdb_block_cache_trace_options_destroy(rocksdb_block_cache_trace_options_t* options);
uint64_t rocksdb_block_cache_trace_options_get_sampling_frequency(
    rocksdb_block_cache_trace_options_t* options);
void rocksdb_block_cache_trace_options_set_sampling_frequency(
    rocksdb_block_cache_trace_options_t* options, uint64_t value);
rocksdb_block_cache_trace_writer_options_t* rocksdb_block_cache_trace_writer_options_create(void);
void rocksdb_block_cache_trace_writer_options_destroy(
    rocksdb_block_cache_trace_writer_options_t* options);
uint64_t rocksdb_block_cache_trace_writer_options_get_max_trace_file_size(
    rocksdb_block_cache_trace_writer_options_t* options);
void rocksdb_block_cache_trace_writer_options_set_max_trace_file_size(
    rocksdb_block_cache_trace_writer_options_t* options, uint64_t value);
void rocksdb_checkpoint_create(rocksdb_checkpoint_t* checkpoint, const char* checkpoint_dir,
    uint64_t log_size_for_flush, char** errptr);
rocksdb_export_import_files_metadata_t* rocksdb_checkpoint_export_column_family(
    rocksdb_checkpoint_t* checkpoint, rocksdb_column_family_handle_t* family,
    const char* export_dir, char** errptr);
rocksdb_checkpoint_t* rocksdb_checkpoint_object_create(rocksdb_t* db, char** errptr);
void rocksdb_checkpoint_object_destroy(rocksdb_checkpoint_t* checkpoint);
rocksdb_create_backup_options_t* rocksdb_create_backup_options_create(void);
void rocksdb_create_backup_options_destroy(rocksdb_create_backup_options_t* options);
unsigned char rocksdb_create_backup_options_get_atomic_flush(
    rocksdb_create_backup_options_t* options);
int rocksdb_create_backup_options_get_background_thread_cpu_priority(
    rocksdb_create_backup_options_t* options);
unsigned char rocksdb_create_backup_options_get_decrease_background_thread_cpu_priority(
    rocksdb_create_backup_options_t* options);
unsigned char rocksdb_create_backup_options_get_flush_before_backup(
    rocksdb_create_backup_options_t* options);
void rocksdb_create_backup_options_set_atomic_flush(rocksdb_create_backup_options_t* options,
    unsigned char value);
void rocksdb_create_backup_options_set_background_thread_cpu_priority(
    rocksdb_create_backup_options_t* options, int value);
void rocksdb_create_backup_options_set_decrease_background_thread_cpu_priority(
    rocksdb_create_backup_options_t* options, unsigned char value);
void rocksdb_create_backup_options_set_exclude_files_callback(
    rocksdb_create_backup_options_t* options, void* state,
    rocksdb_create_backup_options_exclude_files_cb callback);
void rocksdb_create_backup_options_set_flush_before_backup(rocksdb_create_backup_options_t* options,
    unsigned char value);
void rocksdb_create_backup_options_set_progress_callback(rocksdb_create_backup_options_t* options,
    void* state, rocksdb_create_backup_options_progress_cb callback);
rocksdb_env_t* rocksdb_create_default_env(void);
void rocksdb_create_dir_if_missing(rocksdb_env_t* env, const char* path, char** errptr);
rocksdb_env_t* rocksdb_create_mem_env(void);
rocksdb_dbpath_t* rocksdb_dbpath_create(const char* path, uint64_t target_size);
void rocksdb_dbpath_destroy(rocksdb_dbpath_t* dbpath);
void rocksdb_end_block_cache_trace(rocksdb_t* db, char** errptr);
void rocksdb_end_io_trace(rocksdb_t* db, char** errptr);
void rocksdb_end_trace(rocksdb_t* db, char** errptr);
void rocksdb_env_destroy(rocksdb_env_t* env);
int rocksdb_env_get_background_threads(rocksdb_env_t* env);
int rocksdb_env_get_bottom_priority_background_threads(rocksdb_env_t* env);
int rocksdb_env_get_high_priority_background_threads(rocksdb_env_t* env);
int rocksdb_env_get_low_priority_background_threads(rocksdb_env_t* env);
void rocksdb_env_join_all_threads(rocksdb_env_t* env);
void rocksdb_env_lower_high_priority_thread_pool_cpu_priority(rocksdb_env_t* env);
void rocksdb_env_lower_high_priority_thread_pool_io_priority(rocksdb_env_t* env);
void rocksdb_env_lower_thread_pool_cpu_priority(rocksdb_env_t* env);
void rocksdb_env_lower_thread_pool_io_priority(rocksdb_env_t* env);
void rocksdb_env_set_background_threads(rocksdb_env_t* env, int index);
void rocksdb_env_set_bottom_priority_background_threads(rocksdb_env_t* env, int index);
void rocksdb_env_set_high_priority_background_threads(rocksdb_env_t* env, int index);
void rocksdb_env_set_low_priority_background_threads(rocksdb_env_t* env, int index);
rocksdb_envoptions_t* rocksdb_envoptions_create(void);
void rocksdb_envoptions_destroy(rocksdb_envoptions_t* options);
unsigned char rocksdb_envoptions_get_allow_fallocate(rocksdb_envoptions_t* options);
uint64_t rocksdb_envoptions_get_bytes_per_sync(rocksdb_envoptions_t* options);
size_t rocksdb_envoptions_get_compaction_readahead_size(rocksdb_envoptions_t* options);
unsigned char rocksdb_envoptions_get_fallocate_with_keep_size(rocksdb_envoptions_t* options);
unsigned char rocksdb_envoptions_get_fd_cloexec(rocksdb_envoptions_t* options);
unsigned char rocksdb_envoptions_get_strict_bytes_per_sync(rocksdb_envoptions_t* options);
unsigned char rocksdb_envoptions_get_use_direct_reads(rocksdb_envoptions_t* options);
unsigned char rocksdb_envoptions_get_use_direct_writes(rocksdb_envoptions_t* options);
unsigned char rocksdb_envoptions_get_use_mmap_reads(rocksdb_envoptions_t* options);
unsigned char rocksdb_envoptions_get_use_mmap_writes(rocksdb_envoptions_t* options);
size_t rocksdb_envoptions_get_writable_file_max_buffer_size(rocksdb_envoptions_t* options);
void rocksdb_envoptions_set_allow_fallocate(rocksdb_envoptions_t* options, unsigned char value);
void rocksdb_envoptions_set_bytes_per_sync(rocksdb_envoptions_t* options, uint64_t value);
void rocksdb_envoptions_set_compaction_readahead_size(rocksdb_envoptions_t* options, size_t value);
void rocksdb_envoptions_set_fallocate_with_keep_size(rocksdb_envoptions_t* options,
    unsigned char value);
void rocksdb_envoptions_set_fd_cloexec(rocksdb_envoptions_t* options, unsigned char value);
void rocksdb_envoptions_set_rate_limiter(rocksdb_envoptions_t* options,
    rocksdb_ratelimiter_t* rate_limiter);
void rocksdb_envoptions_set_strict_bytes_per_sync(rocksdb_envoptions_t* options,
    unsigned char value);
void rocksdb_envoptions_set_use_direct_reads(rocksdb_envoptions_t* options, unsigned char value);
void rocksdb_envoptions_set_use_direct_writes(rocksdb_envoptions_t* options, unsigned char value);
void rocksdb_envoptions_set_use_mmap_reads(rocksdb_envoptions_t* options, unsigned char value);
void rocksdb_envoptions_set_use_mmap_writes(rocksdb_envoptions_t* options, unsigned char value);
void rocksdb_envoptions_set_writable_file_max_buffer_size(rocksdb_envoptions_t* options,
    size_t value);
rocksdb_export_import_files_metadata_t* rocksdb_export_import_files_metadata_create(void);
void rocksdb_export_import_files_metadata_destroy(
    rocksdb_export_import_files_metadata_t* export_import_files_metadata);
char* rocksdb_export_import_files_metadata_get_db_comparator_name(
    rocksdb_export_import_files_metadata_t* export_import_files_metadata);
rocksdb_livefiles_t* rocksdb_export_import_files_metadata_get_files(
    rocksdb_export_import_files_metadata_t* export_import_files_metadata);
void rocksdb_export_import_files_metadata_set_db_comparator_name(
    rocksdb_export_import_files_metadata_t* export_import_files_metadata, const char* value);
void rocksdb_export_import_files_metadata_set_files(
    rocksdb_export_import_files_metadata_t* export_import_files_metadata,
    rocksdb_livefiles_t* livefiles);
rocksdb_import_column_family_options_t* rocksdb_import_column_family_options_create(void);
void rocksdb_import_column_family_options_destroy(rocksdb_import_column_family_options_t* options);
unsigned char rocksdb_import_column_family_options_get_move_files(
    rocksdb_import_column_family_options_t* options);
void rocksdb_import_column_family_options_set_move_files(
    rocksdb_import_column_family_options_t* options, unsigned char value);
void rocksdb_ingest_external_file(rocksdb_t* db, const char* const* file_list, size_t list_length,
    const rocksdb_ingestexternalfileoptions_t* options, char** errptr);
void rocksdb_ingest_external_file_cf(rocksdb_t* db, rocksdb_column_family_handle_t* handle,
    const char* const* file_list, size_t list_length,
    const rocksdb_ingestexternalfileoptions_t* options, char** errptr);
rocksdb_ingestexternalfileoptions_t* rocksdb_ingestexternalfileoptions_create(void);
void rocksdb_ingestexternalfileoptions_destroy(rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_allow_blocking_flush(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_allow_db_generated_files(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_allow_global_seqno(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_fail_if_not_bottommost_level(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_failed_move_fall_back_to_copy(
    rocksdb_ingestexternalfileoptions_t* options);
int rocksdb_ingestexternalfileoptions_get_file_opening_threads(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_fill_cache(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_ingest_behind(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_link_files(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_move_files(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_prefetch_lmax_index_and_filter_blocks(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_snapshot_consistency(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_verify_checksums_before_ingest(
    rocksdb_ingestexternalfileoptions_t* options);
size_t rocksdb_ingestexternalfileoptions_get_verify_checksums_readahead_size(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_verify_file_checksum(
    rocksdb_ingestexternalfileoptions_t* options);
unsigned char rocksdb_ingestexternalfileoptions_get_write_global_seqno(
    rocksdb_ingestexternalfileoptions_t* options);
void rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char allow_blocking_flush);
void rocksdb_ingestexternalfileoptions_set_allow_db_generated_files(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
void rocksdb_ingestexternalfileoptions_set_allow_global_seqno(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char allow_global_seqno);
void rocksdb_ingestexternalfileoptions_set_fail_if_not_bottommost_level(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char fail_if_not_bottommost_level);
void rocksdb_ingestexternalfileoptions_set_failed_move_fall_back_to_copy(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
void rocksdb_ingestexternalfileoptions_set_file_opening_threads(
    rocksdb_ingestexternalfileoptions_t* options, int value);
void rocksdb_ingestexternalfileoptions_set_fill_cache(rocksdb_ingestexternalfileoptions_t* options,
    unsigned char value);
void rocksdb_ingestexternalfileoptions_set_ingest_behind(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char ingest_behind);
void rocksdb_ingestexternalfileoptions_set_link_files(rocksdb_ingestexternalfileoptions_t* options,
    unsigned char value);
void rocksdb_ingestexternalfileoptions_set_move_files(rocksdb_ingestexternalfileoptions_t* options,
    unsigned char move_files);
void rocksdb_ingestexternalfileoptions_set_prefetch_lmax_index_and_filter_blocks(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
void rocksdb_ingestexternalfileoptions_set_snapshot_consistency(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char snapshot_consistency);
void rocksdb_ingestexternalfileoptions_set_verify_checksums_before_ingest(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
void rocksdb_ingestexternalfileoptions_set_verify_checksums_readahead_size(
    rocksdb_ingestexternalfileoptions_t* options, size_t value);
void rocksdb_ingestexternalfileoptions_set_verify_file_checksum(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
void rocksdb_ingestexternalfileoptions_set_write_global_seqno(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
rocksdb_logger_t* rocksdb_logger_create_callback_logger(int log_level, void (*)(void* state,
    unsigned lev, char* msg, size_t length), void* state);
rocksdb_logger_t* rocksdb_logger_create_stderr_logger(int log_level, const char* prefix);
void rocksdb_logger_destroy(rocksdb_logger_t* logger);
rocksdb_ratelimiter_t* rocksdb_ratelimiter_create(int64_t bytes_per_second,
    int64_t refill_period_us, int32_t fairness);
rocksdb_ratelimiter_t* rocksdb_ratelimiter_create_auto_tuned(int64_t bytes_per_second,
    int64_t refill_period_us, int32_t fairness);
rocksdb_ratelimiter_t* rocksdb_ratelimiter_create_with_mode(int64_t bytes_per_second,
    int64_t refill_period_us, int32_t fairness, int mode, bool auto_tuned);
void rocksdb_ratelimiter_destroy(rocksdb_ratelimiter_t* ratelimiter);
rocksdb_replay_options_t* rocksdb_replay_options_create(void);
void rocksdb_replay_options_destroy(rocksdb_replay_options_t* options);
double rocksdb_replay_options_get_fast_forward(rocksdb_replay_options_t* options);
uint32_t rocksdb_replay_options_get_num_threads(rocksdb_replay_options_t* options);
void rocksdb_replay_options_set_fast_forward(rocksdb_replay_options_t* options,
    double fast_forward);
void rocksdb_replay_options_set_num_threads(rocksdb_replay_options_t* options,
    uint32_t num_threads);
void rocksdb_replayer_destroy(rocksdb_replayer_t* replayer);
uint64_t rocksdb_replayer_get_header_timestamp(const rocksdb_replayer_t* replayer);
void rocksdb_replayer_prepare(rocksdb_replayer_t* replayer, char** errptr);
void rocksdb_replayer_replay(rocksdb_replayer_t* replayer, const rocksdb_replay_options_t* options,
    char** errptr);
rocksdb_restore_options_t* rocksdb_restore_options_create(void);
void rocksdb_restore_options_destroy(rocksdb_restore_options_t* options);
unsigned char rocksdb_restore_options_get_keep_log_files(rocksdb_restore_options_t* options);
int rocksdb_restore_options_get_mode(rocksdb_restore_options_t* options);
void rocksdb_restore_options_set_keep_log_files(rocksdb_restore_options_t* options, int value);
void rocksdb_restore_options_set_mode(rocksdb_restore_options_t* options, int value);
rocksdb_sst_file_manager_t* rocksdb_sst_file_manager_create(rocksdb_env_t* env);
void rocksdb_sst_file_manager_destroy(rocksdb_sst_file_manager_t* manager);
int64_t rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(
    rocksdb_sst_file_manager_t* manager);
double rocksdb_sst_file_manager_get_max_trash_db_ratio(rocksdb_sst_file_manager_t* manager);
uint64_t rocksdb_sst_file_manager_get_total_size(rocksdb_sst_file_manager_t* manager);
uint64_t rocksdb_sst_file_manager_get_total_trash_size(rocksdb_sst_file_manager_t* manager);
bool rocksdb_sst_file_manager_is_max_allowed_space_reached(rocksdb_sst_file_manager_t* manager);
bool rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(
    rocksdb_sst_file_manager_t* manager);
void rocksdb_sst_file_manager_set_compaction_buffer_size(rocksdb_sst_file_manager_t* manager,
    uint64_t compaction_buffer_size);
void rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(rocksdb_sst_file_manager_t* manager,
    int64_t delete_rate);
void rocksdb_sst_file_manager_set_max_allowed_space_usage(rocksdb_sst_file_manager_t* manager,
    uint64_t max_allowed_space);
void rocksdb_sst_file_manager_set_max_trash_db_ratio(rocksdb_sst_file_manager_t* manager,
    double ratio);
void rocksdb_sstfilewriter_add(rocksdb_sstfilewriter_t* writer, const char* key, size_t key_length,
    const char* value, size_t value_length, char** errptr);
rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create(const rocksdb_envoptions_t* env,
    const rocksdb_options_t* io_options);
rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create_with_comparator(
    const rocksdb_envoptions_t* env, const rocksdb_options_t* io_options,
    const rocksdb_comparator_t* comparator);
void rocksdb_sstfilewriter_delete(rocksdb_sstfilewriter_t* writer, const char* key,
    size_t key_length, char** errptr);
void rocksdb_sstfilewriter_delete_range(rocksdb_sstfilewriter_t* writer, const char* begin_key,
    size_t begin_key_length, const char* end_key, size_t end_key_length, char** errptr);
void rocksdb_sstfilewriter_delete_with_ts(rocksdb_sstfilewriter_t* writer, const char* key,
    size_t key_length, const char* timestamp, size_t timestamp_length, char** errptr);
void rocksdb_sstfilewriter_destroy(rocksdb_sstfilewriter_t* writer);
void rocksdb_sstfilewriter_file_size(rocksdb_sstfilewriter_t* writer, uint64_t* file_size);
void rocksdb_sstfilewriter_finish(rocksdb_sstfilewriter_t* writer, char** errptr);
void rocksdb_sstfilewriter_merge(rocksdb_sstfilewriter_t* writer, const char* key,
    size_t key_length, const char* value, size_t value_length, char** errptr);
void rocksdb_sstfilewriter_open(rocksdb_sstfilewriter_t* writer, const char* name, char** errptr);
void rocksdb_sstfilewriter_put(rocksdb_sstfilewriter_t* writer, const char* key, size_t key_length,
    const char* value, size_t value_length, char** errptr);
void rocksdb_sstfilewriter_put_with_ts(rocksdb_sstfilewriter_t* writer, const char* key,
    size_t key_length, const char* timestamp, size_t timestamp_length, const char* value,
    size_t value_length, char** errptr);
void rocksdb_start_block_cache_trace(rocksdb_t* db, rocksdb_env_t* env,
    const rocksdb_envoptions_t* options, const rocksdb_trace_options_t* options2,
    const char* trace_path, char** errptr);
void rocksdb_start_block_cache_trace_with_options(rocksdb_t* db, rocksdb_env_t* env,
    const rocksdb_envoptions_t* options, const rocksdb_block_cache_trace_options_t* options2,
    const rocksdb_block_cache_trace_writer_options_t* writer_options, const char* trace_path,
    char** errptr);
void rocksdb_start_io_trace(rocksdb_t* db, rocksdb_env_t* env, const rocksdb_envoptions_t* options,
    const rocksdb_trace_options_t* options2, const char* trace_path, char** errptr);
void rocksdb_start_trace(rocksdb_t* db, rocksdb_env_t* env, const rocksdb_envoptions_t* options,
    const rocksdb_trace_options_t* options2, const char* trace_path, char** errptr);
rocksdb_trace_options_t* rocksdb_trace_options_create(void);
void rocksdb_trace_options_destroy(rocksdb_trace_options_t* options);
uint64_t rocksdb_trace_options_get_filter(rocksdb_trace_options_t* options);
uint64_t rocksdb_trace_options_get_max_trace_file_size(rocksdb_trace_options_t* options);
unsigned char rocksdb_trace_options_get_preserve_write_order(rocksdb_trace_options_t* options);
uint64_t rocksdb_trace_options_get_sampling_frequency(rocksdb_trace_options_t* options);
void rocksdb_trace_options_set_filter(rocksdb_trace_options_t* options, uint64_t value);
void rocksdb_trace_options_set_max_trace_file_size(rocksdb_trace_options_t* options,
    uint64_t value);
void rocksdb_trace_options_set_preserve_write_order(rocksdb_trace_options_t* options,
    unsigned char value);
void rocksdb_trace_options_set_sampling_frequency(rocksdb_trace_options_t* options, uint64_t value);
void rocksdb_trace_reader_close(rocksdb_trace_reader_t* reader, char** errptr);
rocksdb_trace_reader_t* rocksdb_trace_reader_create(rocksdb_env_t* env,
    const rocksdb_envoptions_t* options, const char* trace_path, char** errptr);
void rocksdb_trace_reader_destroy(rocksdb_trace_reader_t* reader);
char* rocksdb_trace_reader_read(rocksdb_trace_reader_t* reader, size_t* size, char** errptr);
void rocksdb_trace_reader_reset(rocksdb_trace_reader_t* reader, char** errptr);

#ifdef __cplusplus
}
#endif

#endif
