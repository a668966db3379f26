/* Descriptions for listeners: jobs, files, properties of tables. */
#ifndef SATEEN_ROCKSDB_C_EVENTS_H
#define SATEEN_ROCKSDB_C_EVENTS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

uint64_t rocksdb_blob_file_addition_info_blob_file_number(
    const rocksdb_blob_file_addition_info_t* info);
const char* rocksdb_blob_file_addition_info_blob_file_path(
    const rocksdb_blob_file_addition_info_t* info, size_t* size);
uint64_t rocksdb_blob_file_addition_info_total_blob_bytes(
    const rocksdb_blob_file_addition_info_t* info);
uint64_t rocksdb_blob_file_addition_info_total_blob_count(
    const rocksdb_blob_file_addition_info_t* info);
uint64_t rocksdb_blob_file_garbage_info_blob_file_number(
    const rocksdb_blob_file_garbage_info_t* info);
const char* rocksdb_blob_file_garbage_info_blob_file_path(
    const rocksdb_blob_file_garbage_info_t* info, size_t* size);
uint64_t rocksdb_blob_file_garbage_info_garbage_blob_bytes(
    const rocksdb_blob_file_garbage_info_t* info);
uint64_t rocksdb_blob_file_garbage_info_garbage_blob_count(
    const rocksdb_blob_file_garbage_info_t* info);
void rocksdb_column_family_metadata_destroy(rocksdb_column_family_metadata_t* metadata);
size_t rocksdb_column_family_metadata_get_file_count(rocksdb_column_family_metadata_t* metadata);
size_t rocksdb_column_family_metadata_get_level_count(rocksdb_column_family_metadata_t* metadata);
rocksdb_level_metadata_t* rocksdb_column_family_metadata_get_level_metadata(
    rocksdb_column_family_metadata_t* metadata, size_t index);
char* rocksdb_column_family_metadata_get_name(rocksdb_column_family_metadata_t* metadata);
uint64_t rocksdb_column_family_metadata_get_size(rocksdb_column_family_metadata_t* metadata);
uint64_t rocksdb_compaction_file_info_file_number(const rocksdb_compaction_file_info_t* info);
int rocksdb_compaction_file_info_level(const rocksdb_compaction_file_info_t* info);
uint64_t rocksdb_compaction_file_info_oldest_blob_file_number(
    const rocksdb_compaction_file_info_t* info);
uint64_t rocksdb_compaction_job_stats_cpu_micros(const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_elapsed_micros(const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_file_fsync_nanos(const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_file_prepare_write_nanos(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_file_range_sync_nanos(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_file_write_nanos(const rocksdb_compaction_job_stats_t* stats);
unsigned char rocksdb_compaction_job_stats_has_accurate_num_input_records(
    const rocksdb_compaction_job_stats_t* stats);
unsigned char rocksdb_compaction_job_stats_is_full_compaction(
    const rocksdb_compaction_job_stats_t* stats);
unsigned char rocksdb_compaction_job_stats_is_manual_compaction(
    const rocksdb_compaction_job_stats_t* stats);
unsigned char rocksdb_compaction_job_stats_is_remote_compaction(
    const rocksdb_compaction_job_stats_t* stats);
const char* rocksdb_compaction_job_stats_largest_output_key_prefix(
    const rocksdb_compaction_job_stats_t* stats, size_t* size);
uint64_t rocksdb_compaction_job_stats_num_blobs_read(const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_num_corrupt_keys(const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_num_expired_deletion_records(
    const rocksdb_compaction_job_stats_t* stats);
size_t rocksdb_compaction_job_stats_num_filtered_input_files(
    const rocksdb_compaction_job_stats_t* stats);
size_t rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_num_input_deletion_records(
    const rocksdb_compaction_job_stats_t* stats);
size_t rocksdb_compaction_job_stats_num_input_files(const rocksdb_compaction_job_stats_t* stats);
size_t rocksdb_compaction_job_stats_num_input_files_at_output_level(
    const rocksdb_compaction_job_stats_t* stats);
size_t rocksdb_compaction_job_stats_num_input_files_trivially_moved(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_num_input_records(
    const rocksdb_compaction_job_stats_t* stats);
size_t rocksdb_compaction_job_stats_num_output_files(const rocksdb_compaction_job_stats_t* stats);
size_t rocksdb_compaction_job_stats_num_output_files_blob(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_num_output_records(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_num_records_replaced(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_num_single_del_fallthru(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_num_single_del_mismatch(
    const rocksdb_compaction_job_stats_t* stats);
const char* rocksdb_compaction_job_stats_smallest_output_key_prefix(
    const rocksdb_compaction_job_stats_t* stats, size_t* size);
uint64_t rocksdb_compaction_job_stats_total_blob_bytes_read(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_total_input_bytes(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_total_input_raw_key_bytes(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_total_input_raw_value_bytes(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_total_output_bytes(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_total_output_bytes_blob(
    const rocksdb_compaction_job_stats_t* stats);
uint64_t rocksdb_compaction_job_stats_total_skipped_input_bytes(
    const rocksdb_compaction_job_stats_t* stats);
void rocksdb_compaction_service_options_override_add_event_listener(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_eventlistener_t* event_listener);
void rocksdb_compaction_service_options_override_add_table_properties_collector_factory(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_table_properties_collector_factory_t* factory);
rocksdb_compaction_service_options_override_t* rocksdb_compaction_service_options_override_create(
    void);
rocksdb_compaction_service_options_override_t* rocksdb_compaction_service_options_override_create_from_options(
    rocksdb_options_t* option);
void rocksdb_compaction_service_options_override_destroy(
    rocksdb_compaction_service_options_override_t* options);
void rocksdb_compaction_service_options_override_set_block_based_table_factory(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_block_based_table_options_t* table_options);
void rocksdb_compaction_service_options_override_set_compaction_filter(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_compactionfilter_t* compaction_filter);
void rocksdb_compaction_service_options_override_set_compaction_filter_factory(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_compactionfilterfactory_t* compaction_filter_factory);
void rocksdb_compaction_service_options_override_set_comparator(
    rocksdb_compaction_service_options_override_t* options, rocksdb_comparator_t* comparator);
void rocksdb_compaction_service_options_override_set_cuckoo_table_factory(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_cuckoo_table_options_t* table_options);
void rocksdb_compaction_service_options_override_set_env(
    rocksdb_compaction_service_options_override_t* options, rocksdb_env_t* env);
void rocksdb_compaction_service_options_override_set_file_checksum_gen_factory(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_file_checksum_gen_factory_t* factory);
void rocksdb_compaction_service_options_override_set_info_log(
    rocksdb_compaction_service_options_override_t* options, rocksdb_logger_t* logger);
void rocksdb_compaction_service_options_override_set_merge_operator(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_mergeoperator_t* merge_operator);
void rocksdb_compaction_service_options_override_set_option(
    rocksdb_compaction_service_options_override_t* options, const char* key, const char* value);
void rocksdb_compaction_service_options_override_set_prefix_extractor(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_slicetransform_t* prefix_extractor);
void rocksdb_compaction_service_options_override_set_sst_partitioner_factory(
    rocksdb_compaction_service_options_override_t* options,
    rocksdb_sst_partitioner_factory_t* factory);
void rocksdb_compaction_service_options_override_set_statistics(
    rocksdb_compaction_service_options_override_t* options, rocksdb_options_t* options2);
unsigned char rocksdb_compactionjobinfo_aborted(const rocksdb_compactionjobinfo_t* info);
int rocksdb_compactionjobinfo_base_input_level(const rocksdb_compactionjobinfo_t* info);
uint32_t rocksdb_compactionjobinfo_blob_compression_type(const rocksdb_compactionjobinfo_t* info);
const rocksdb_blob_file_addition_info_t* rocksdb_compactionjobinfo_blob_file_addition_info_at(
    const rocksdb_compactionjobinfo_t* info, size_t index);
size_t rocksdb_compactionjobinfo_blob_file_addition_infos_count(
    const rocksdb_compactionjobinfo_t* info);
const rocksdb_blob_file_garbage_info_t* rocksdb_compactionjobinfo_blob_file_garbage_info_at(
    const rocksdb_compactionjobinfo_t* info, size_t index);
size_t rocksdb_compactionjobinfo_blob_file_garbage_infos_count(
    const rocksdb_compactionjobinfo_t* info);
uint32_t rocksdb_compactionjobinfo_cf_id(const rocksdb_compactionjobinfo_t* info);
const char* rocksdb_compactionjobinfo_cf_name(const rocksdb_compactionjobinfo_t* info,
    size_t* size);
uint32_t rocksdb_compactionjobinfo_compaction_reason(const rocksdb_compactionjobinfo_t* info);
uint32_t rocksdb_compactionjobinfo_compression(const rocksdb_compactionjobinfo_t* info);
rocksdb_compactionjobinfo_t* rocksdb_compactionjobinfo_create(void);
void rocksdb_compactionjobinfo_destroy(rocksdb_compactionjobinfo_t* info);
uint64_t rocksdb_compactionjobinfo_elapsed_micros(const rocksdb_compactionjobinfo_t* info);
const char* rocksdb_compactionjobinfo_input_file_at(const rocksdb_compactionjobinfo_t* info,
    size_t index, size_t* size);
const rocksdb_compaction_file_info_t* rocksdb_compactionjobinfo_input_file_info_at(
    const rocksdb_compactionjobinfo_t* info, size_t index);
size_t rocksdb_compactionjobinfo_input_file_infos_count(const rocksdb_compactionjobinfo_t* info);
size_t rocksdb_compactionjobinfo_input_files_count(const rocksdb_compactionjobinfo_t* info);
uint64_t rocksdb_compactionjobinfo_input_records(const rocksdb_compactionjobinfo_t* info);
int rocksdb_compactionjobinfo_job_id(const rocksdb_compactionjobinfo_t* info);
uint64_t rocksdb_compactionjobinfo_num_corrupt_keys(const rocksdb_compactionjobinfo_t* info);
size_t rocksdb_compactionjobinfo_num_input_files(const rocksdb_compactionjobinfo_t* info);
size_t rocksdb_compactionjobinfo_num_input_files_at_output_level(
    const rocksdb_compactionjobinfo_t* info);
int rocksdb_compactionjobinfo_num_l0_files(const rocksdb_compactionjobinfo_t* info);
const char* rocksdb_compactionjobinfo_output_file_at(const rocksdb_compactionjobinfo_t* info,
    size_t index, size_t* size);
const rocksdb_compaction_file_info_t* rocksdb_compactionjobinfo_output_file_info_at(
    const rocksdb_compactionjobinfo_t* info, size_t index);
size_t rocksdb_compactionjobinfo_output_file_infos_count(const rocksdb_compactionjobinfo_t* info);
size_t rocksdb_compactionjobinfo_output_files_count(const rocksdb_compactionjobinfo_t* info);
int rocksdb_compactionjobinfo_output_level(const rocksdb_compactionjobinfo_t* info);
uint64_t rocksdb_compactionjobinfo_output_records(const rocksdb_compactionjobinfo_t* info);
const rocksdb_compaction_job_stats_t* rocksdb_compactionjobinfo_stats(
    const rocksdb_compactionjobinfo_t* info);
void rocksdb_compactionjobinfo_status(const rocksdb_compactionjobinfo_t* info, char** errptr);
size_t rocksdb_compactionjobinfo_table_properties_count(const rocksdb_compactionjobinfo_t* info);
const rocksdb_table_properties_t* rocksdb_compactionjobinfo_table_properties_for_file(
    const rocksdb_compactionjobinfo_t* info, const char* file_name, size_t file_name_length);
const char* rocksdb_compactionjobinfo_table_properties_key_at(
    const rocksdb_compactionjobinfo_t* info, size_t index, size_t* key_length);
const rocksdb_table_properties_t* rocksdb_compactionjobinfo_table_properties_value_at(
    const rocksdb_compactionjobinfo_t* info, size_t index);
uint64_t rocksdb_compactionjobinfo_thread_id(const rocksdb_compactionjobinfo_t* info);
uint64_t rocksdb_compactionjobinfo_total_input_bytes(const rocksdb_compactionjobinfo_t* info);
uint64_t rocksdb_compactionjobinfo_total_output_bytes(const rocksdb_compactionjobinfo_t* info);
rocksdb_compactionservice_t* rocksdb_compactionservice_create(void* state, void (*destructor)(void*
    state), rocksdb_compaction_service_schedule_cb schedule, const char* name,
    rocksdb_compaction_service_wait_cb wait,
    rocksdb_compaction_service_cancel_awaiting_jobs_cb cancel_awaiting_jobs,
    rocksdb_compaction_service_on_installation_cb on_installation);
int rocksdb_compactionservice_jobinfo_t_get_base_input_level(
    const rocksdb_compactionservice_jobinfo_t* info);
uint32_t rocksdb_compactionservice_jobinfo_t_get_cf_id(
    const rocksdb_compactionservice_jobinfo_t* info);
const char* rocksdb_compactionservice_jobinfo_t_get_cf_name(
    const rocksdb_compactionservice_jobinfo_t* info, size_t* length);
int rocksdb_compactionservice_jobinfo_t_get_compaction_reason(
    const rocksdb_compactionservice_jobinfo_t* info);
const char* rocksdb_compactionservice_jobinfo_t_get_db_id(
    const rocksdb_compactionservice_jobinfo_t* info, size_t* length);
const char* rocksdb_compactionservice_jobinfo_t_get_db_name(
    const rocksdb_compactionservice_jobinfo_t* info, size_t* length);
const char* rocksdb_compactionservice_jobinfo_t_get_db_session_id(
    const rocksdb_compactionservice_jobinfo_t* info, size_t* length);
uint64_t rocksdb_compactionservice_jobinfo_t_get_job_id(
    const rocksdb_compactionservice_jobinfo_t* info);
int rocksdb_compactionservice_jobinfo_t_get_output_level(
    const rocksdb_compactionservice_jobinfo_t* info);
int rocksdb_compactionservice_jobinfo_t_get_priority(
    const rocksdb_compactionservice_jobinfo_t* info);
unsigned char rocksdb_compactionservice_jobinfo_t_is_bottommost_level(
    const rocksdb_compactionservice_jobinfo_t* info);
unsigned char rocksdb_compactionservice_jobinfo_t_is_full_compaction(
    const rocksdb_compactionservice_jobinfo_t* info);
unsigned char rocksdb_compactionservice_jobinfo_t_is_manual_compaction(
    const rocksdb_compactionservice_jobinfo_t* info);
rocksdb_compactionservice_scheduleresponse_t* rocksdb_compactionservice_scheduleresponse_create(
    const char* scheduled_job_id, int status, char** errptr);
rocksdb_compactionservice_scheduleresponse_t* rocksdb_compactionservice_scheduleresponse_create_with_status(
    int status, char** errptr);
const char* rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(
    const rocksdb_compactionservice_scheduleresponse_t* response, size_t* length);
int rocksdb_compactionservice_scheduleresponse_getstatus(
    const rocksdb_compactionservice_scheduleresponse_t* response);
void rocksdb_compactionservice_scheduleresponse_t_destroy(
    rocksdb_compactionservice_scheduleresponse_t* response);
rocksdb_eventlistener_t* rocksdb_eventlistener_create(void* state, void (*destructor_)(void* state),
    on_flush_begin_cb on_flush_begin, on_flush_completed_cb on_flush_completed,
    on_compaction_begin_cb on_compaction_begin, on_compaction_completed_cb on_compaction_completed,
    on_subcompaction_begin_cb on_subcompaction_begin,
    on_subcompaction_completed_cb on_subcompaction_completed,
    on_external_file_ingested_cb on_external_file_ingested,
    on_background_error_cb on_background_error,
    on_stall_conditions_changed_cb on_stall_conditions_changed,
    on_memtable_sealed_cb on_memtable_sealed);
void rocksdb_eventlistener_destroy(rocksdb_eventlistener_t* eventlistener);
const char* rocksdb_externalfileingestioninfo_cf_name(
    const rocksdb_externalfileingestioninfo_t* info, size_t* size);
const char* rocksdb_externalfileingestioninfo_external_file_path(
    const rocksdb_externalfileingestioninfo_t* info, size_t* size);
uint64_t rocksdb_externalfileingestioninfo_global_seqno(
    const rocksdb_externalfileingestioninfo_t* info);
const char* rocksdb_externalfileingestioninfo_internal_file_path(
    const rocksdb_externalfileingestioninfo_t* info, size_t* size);
const rocksdb_table_properties_t* rocksdb_externalfileingestioninfo_table_properties(
    const rocksdb_externalfileingestioninfo_t* info);
uint32_t rocksdb_flushjobinfo_blob_compression_type(const rocksdb_flushjobinfo_t* info);
const rocksdb_blob_file_addition_info_t* rocksdb_flushjobinfo_blob_file_addition_info_at(
    const rocksdb_flushjobinfo_t* info, size_t index);
size_t rocksdb_flushjobinfo_blob_file_addition_infos_count(const rocksdb_flushjobinfo_t* info);
uint32_t rocksdb_flushjobinfo_cf_id(const rocksdb_flushjobinfo_t* info);
const char* rocksdb_flushjobinfo_cf_name(const rocksdb_flushjobinfo_t* info, size_t* size);
uint64_t rocksdb_flushjobinfo_file_number(const rocksdb_flushjobinfo_t* info);
const char* rocksdb_flushjobinfo_file_path(const rocksdb_flushjobinfo_t* info, size_t* size);
uint32_t rocksdb_flushjobinfo_flush_reason(const rocksdb_flushjobinfo_t* info);
int rocksdb_flushjobinfo_job_id(const rocksdb_flushjobinfo_t* info);
uint64_t rocksdb_flushjobinfo_largest_seqno(const rocksdb_flushjobinfo_t* info);
uint64_t rocksdb_flushjobinfo_oldest_blob_file_number(const rocksdb_flushjobinfo_t* info);
uint64_t rocksdb_flushjobinfo_smallest_seqno(const rocksdb_flushjobinfo_t* info);
const rocksdb_table_properties_t* rocksdb_flushjobinfo_table_properties(
    const rocksdb_flushjobinfo_t* info);
uint64_t rocksdb_flushjobinfo_thread_id(const rocksdb_flushjobinfo_t* info);
unsigned char rocksdb_flushjobinfo_triggered_writes_slowdown(const rocksdb_flushjobinfo_t* info);
unsigned char rocksdb_flushjobinfo_triggered_writes_stop(const rocksdb_flushjobinfo_t* info);
void rocksdb_level_metadata_destroy(rocksdb_level_metadata_t* metadata);
size_t rocksdb_level_metadata_get_file_count(rocksdb_level_metadata_t* metadata);
int rocksdb_level_metadata_get_level(rocksdb_level_metadata_t* metadata);
uint64_t rocksdb_level_metadata_get_size(rocksdb_level_metadata_t* metadata);
rocksdb_sst_file_metadata_t* rocksdb_level_metadata_get_sst_file_metadata(
    rocksdb_level_metadata_t* metadata, size_t index);
rocksdb_livefile_t* rocksdb_livefile_create(void);
void rocksdb_livefile_destroy(rocksdb_livefile_t* livefile);
void rocksdb_livefile_set_column_family_name(rocksdb_livefile_t* livefile, const char* value);
void rocksdb_livefile_set_directory(rocksdb_livefile_t* livefile, const char* value);
void rocksdb_livefile_set_largest_key(rocksdb_livefile_t* livefile, const char* value,
    size_t value2);
void rocksdb_livefile_set_largest_seqno(rocksdb_livefile_t* livefile, uint64_t value);
void rocksdb_livefile_set_level(rocksdb_livefile_t* livefile, int value);
void rocksdb_livefile_set_name(rocksdb_livefile_t* livefile, const char* value);
void rocksdb_livefile_set_num_deletions(rocksdb_livefile_t* livefile, uint64_t value);
void rocksdb_livefile_set_num_entries(rocksdb_livefile_t* livefile, uint64_t value);
void rocksdb_livefile_set_size(rocksdb_livefile_t* livefile, size_t value);
void rocksdb_livefile_set_smallest_key(rocksdb_livefile_t* livefile, const char* value,
    size_t value2);
void rocksdb_livefile_set_smallest_seqno(rocksdb_livefile_t* livefile, uint64_t value);
const rocksdb_livefiles_t* rocksdb_livefiles(rocksdb_t* db);
void rocksdb_livefiles_add(rocksdb_livefiles_t* livefiles, rocksdb_livefile_t* livefile);
const char* rocksdb_livefiles_column_family_name(const rocksdb_livefiles_t* livefiles, int index);
int rocksdb_livefiles_count(const rocksdb_livefiles_t* livefiles);
rocksdb_livefiles_t* rocksdb_livefiles_create(void);
uint64_t rocksdb_livefiles_deletions(const rocksdb_livefiles_t* livefiles, int index);
void rocksdb_livefiles_destroy(const rocksdb_livefiles_t* livefiles);
const char* rocksdb_livefiles_directory(const rocksdb_livefiles_t* livefiles, int index);
uint64_t rocksdb_livefiles_entries(const rocksdb_livefiles_t* livefiles, int index);
uint64_t rocksdb_livefiles_largest_seqno(const rocksdb_livefiles_t* livefiles, int index);
const char* rocksdb_livefiles_largestkey(const rocksdb_livefiles_t* livefiles, int index,
    size_t* size);
int rocksdb_livefiles_level(const rocksdb_livefiles_t* livefiles, int index);
const char* rocksdb_livefiles_name(const rocksdb_livefiles_t* livefiles, int index);
size_t rocksdb_livefiles_size(const rocksdb_livefiles_t* livefiles, int index);
uint64_t rocksdb_livefiles_smallest_seqno(const rocksdb_livefiles_t* livefiles, int index);
const char* rocksdb_livefiles_smallestkey(const rocksdb_livefiles_t* livefiles, int index,
    size_t* size);
size_t rocksdb_livefiles_storage_info_count(const rocksdb_livefiles_storage_info_t* info);
void rocksdb_livefiles_storage_info_destroy(rocksdb_livefiles_storage_info_t* info);
const char* rocksdb_livefiles_storage_info_directory(const rocksdb_livefiles_storage_info_t* info,
    size_t index);
const char* rocksdb_livefiles_storage_info_file_checksum(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
const char* rocksdb_livefiles_storage_info_file_checksum_func_name(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
uint64_t rocksdb_livefiles_storage_info_file_number(const rocksdb_livefiles_storage_info_t* info,
    size_t index);
int rocksdb_livefiles_storage_info_file_type(const rocksdb_livefiles_storage_info_t* info,
    size_t index);
const char* rocksdb_livefiles_storage_info_relative_filename(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
const char* rocksdb_livefiles_storage_info_replacement_contents(
    const rocksdb_livefiles_storage_info_t* info, size_t index, size_t* size);
uint64_t rocksdb_livefiles_storage_info_size(const rocksdb_livefiles_storage_info_t* info,
    size_t index);
int rocksdb_livefiles_storage_info_temperature(const rocksdb_livefiles_storage_info_t* info,
    size_t index);
unsigned char rocksdb_livefiles_storage_info_trim_to_size(
    const rocksdb_livefiles_storage_info_t* info, size_t index);
const char* rocksdb_memtableinfo_cf_name(const rocksdb_memtableinfo_t* info, size_t* size);
uint64_t rocksdb_memtableinfo_earliest_seqno(const rocksdb_memtableinfo_t* info);
uint64_t rocksdb_memtableinfo_first_seqno(const rocksdb_memtableinfo_t* info);
const char* rocksdb_memtableinfo_newest_udt(const rocksdb_memtableinfo_t* info, size_t* size);
uint64_t rocksdb_memtableinfo_num_deletes(const rocksdb_memtableinfo_t* info);
uint64_t rocksdb_memtableinfo_num_entries(const rocksdb_memtableinfo_t* info);
void rocksdb_pinnable_handle_destroy(rocksdb_pinnable_handle_t* handle);
const char* rocksdb_pinnable_handle_get_value(const rocksdb_pinnable_handle_t* handle,
    size_t* value_length);
void rocksdb_reset_status(rocksdb_status_ptr_t* status_ptr);
void rocksdb_sst_file_metadata_destroy(rocksdb_sst_file_metadata_t* metadata);
char* rocksdb_sst_file_metadata_get_directory(rocksdb_sst_file_metadata_t* metadata);
char* rocksdb_sst_file_metadata_get_largestkey(rocksdb_sst_file_metadata_t* metadata,
    size_t* length);
char* rocksdb_sst_file_metadata_get_relative_filename(rocksdb_sst_file_metadata_t* metadata);
uint64_t rocksdb_sst_file_metadata_get_size(rocksdb_sst_file_metadata_t* metadata);
char* rocksdb_sst_file_metadata_get_smallestkey(rocksdb_sst_file_metadata_t* metadata,
    size_t* length);
void rocksdb_status_ptr_get_error(rocksdb_status_ptr_t* status, char** errptr);
int rocksdb_subcompactionjobinfo_base_input_level(const rocksdb_subcompactionjobinfo_t* info);
uint32_t rocksdb_subcompactionjobinfo_blob_compression_type(
    const rocksdb_subcompactionjobinfo_t* info);
uint32_t rocksdb_subcompactionjobinfo_cf_id(const rocksdb_subcompactionjobinfo_t* info);
const char* rocksdb_subcompactionjobinfo_cf_name(const rocksdb_subcompactionjobinfo_t* info,
    size_t* size);
uint32_t rocksdb_subcompactionjobinfo_compaction_reason(const rocksdb_subcompactionjobinfo_t* info);
uint32_t rocksdb_subcompactionjobinfo_compression(const rocksdb_subcompactionjobinfo_t* info);
int rocksdb_subcompactionjobinfo_job_id(const rocksdb_subcompactionjobinfo_t* info);
int rocksdb_subcompactionjobinfo_output_level(const rocksdb_subcompactionjobinfo_t* info);
const rocksdb_compaction_job_stats_t* rocksdb_subcompactionjobinfo_stats(
    const rocksdb_subcompactionjobinfo_t* info);
void rocksdb_subcompactionjobinfo_status(const rocksdb_subcompactionjobinfo_t* info, char** errptr);
int rocksdb_subcompactionjobinfo_subcompaction_job_id(const rocksdb_subcompactionjobinfo_t* info);
uint64_t rocksdb_subcompactionjobinfo_thread_id(const rocksdb_subcompactionjobinfo_t* info);
uint64_t rocksdb_table_properties_column_family_id(const rocksdb_table_properties_t* properties);
const char* rocksdb_table_properties_column_family_name(
    const rocksdb_table_properties_t* properties, size_t* size);
const char* rocksdb_table_properties_comparator_name(const rocksdb_table_properties_t* properties,
    size_t* size);
const char* rocksdb_table_properties_compression_name(const rocksdb_table_properties_t* properties,
    size_t* size);
const char* rocksdb_table_properties_compression_options(
    const rocksdb_table_properties_t* properties, size_t* size);
uint64_t rocksdb_table_properties_creation_time(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_data_block_restart_interval(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_data_size(const rocksdb_table_properties_t* properties);
const char* rocksdb_table_properties_db_host_id(const rocksdb_table_properties_t* properties,
    size_t* size);
const char* rocksdb_table_properties_db_id(const rocksdb_table_properties_t* properties,
    size_t* size);
const char* rocksdb_table_properties_db_session_id(const rocksdb_table_properties_t* properties,
    size_t* size);
uint64_t rocksdb_table_properties_external_sst_file_global_seqno_offset(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_fast_compression_estimated_data_size(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_file_creation_time(const rocksdb_table_properties_t* properties);
const char* rocksdb_table_properties_filter_policy_name(
    const rocksdb_table_properties_t* properties, size_t* size);
uint64_t rocksdb_table_properties_filter_size(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_fixed_key_len(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_format_version(const rocksdb_table_properties_t* properties);
unsigned char rocksdb_table_properties_has_key_largest_seqno(
    const rocksdb_table_properties_t* properties);
unsigned char rocksdb_table_properties_has_key_smallest_seqno(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_index_block_restart_interval(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_index_key_is_user_key(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_index_partitions(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_index_size(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_index_value_is_delta_encoded(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_key_largest_seqno(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_key_smallest_seqno(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_lsm_info_at_creation(
    const rocksdb_table_properties_t* properties);
const char* rocksdb_table_properties_merge_operator_name(
    const rocksdb_table_properties_t* properties, size_t* size);
uint64_t rocksdb_table_properties_newest_key_time(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_num_data_blocks(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_num_data_blocks_compression_bypassed(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_num_data_blocks_compression_rejected(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_num_deletions(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_num_entries(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_num_filter_entries(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_num_merge_operands(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_num_range_deletions(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_num_uniform_blocks(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_oldest_ancestor_time(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_oldest_key_time(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_orig_file_number(const rocksdb_table_properties_t* properties);
const char* rocksdb_table_properties_prefix_extractor_name(
    const rocksdb_table_properties_t* properties, size_t* size);
const char* rocksdb_table_properties_property_collectors_names(
    const rocksdb_table_properties_t* properties, size_t* size);
uint64_t rocksdb_table_properties_raw_key_size(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_raw_value_size(const rocksdb_table_properties_t* properties);
size_t rocksdb_table_properties_readable_properties_count(
    const rocksdb_table_properties_t* properties);
const char* rocksdb_table_properties_readable_properties_key_at(
    const rocksdb_table_properties_t* properties, size_t index, size_t* key_length);
const char* rocksdb_table_properties_readable_properties_value_at(
    const rocksdb_table_properties_t* properties, size_t index, size_t* value_length);
uint64_t rocksdb_table_properties_separate_key_value_in_data_block(
    const rocksdb_table_properties_t* properties);
const char* rocksdb_table_properties_seqno_to_time_mapping(
    const rocksdb_table_properties_t* properties, size_t* size);
uint64_t rocksdb_table_properties_slow_compression_estimated_data_size(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_tail_start_offset(const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_top_level_index_size(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_udi_is_primary_index(
    const rocksdb_table_properties_t* properties);
uint64_t rocksdb_table_properties_uncompressed_data_size(
    const rocksdb_table_properties_t* properties);
size_t rocksdb_table_properties_user_collected_properties_count(
    const rocksdb_table_properties_t* properties);
const char* rocksdb_table_properties_user_collected_properties_key_at(
    const rocksdb_table_properties_t* properties, size_t index, size_t* key_length);
const char* rocksdb_table_properties_user_collected_properties_value_at(
    const rocksdb_table_properties_t* properties, size_t index, size_t* value_length);
uint64_t rocksdb_table_properties_user_defined_timestamps_persisted(
    const rocksdb_table_properties_t* properties);
void rocksdb_wal_file_destroy(rocksdb_wal_file_t* file);
uint64_t rocksdb_wal_file_log_number(const rocksdb_wal_file_t* file);
const char* rocksdb_wal_file_path_name(const rocksdb_wal_file_t* file);
uint64_t rocksdb_wal_file_size_file_bytes(const rocksdb_wal_file_t* file);
uint64_t rocksdb_wal_file_start_sequence(const rocksdb_wal_file_t* file);
int rocksdb_wal_file_type(const rocksdb_wal_file_t* file);
size_t rocksdb_wal_files_count(const rocksdb_wal_files_t* files);
void rocksdb_wal_files_destroy(rocksdb_wal_files_t* files);
const rocksdb_wal_file_t* rocksdb_wal_files_get_wal_file(const rocksdb_wal_files_t* files,
    size_t index);
rocksdb_walfilter_t* rocksdb_walfilter_create(void* state, void (*destructor)(void* state),
    rocksdb_walfilter_column_family_log_number_map_cb column_family_log_number_map,
    rocksdb_walfilter_log_record_found_cb log_record_found, const char* (*name)(void* state));
void rocksdb_walfilter_destroy(rocksdb_walfilter_t* walfilter);
const char* rocksdb_writestallinfo_cf_name(const rocksdb_writestallinfo_t* info, size_t* size);
const rocksdb_writestallcondition_t* rocksdb_writestallinfo_cur(
    const rocksdb_writestallinfo_t* info);
const rocksdb_writestallcondition_t* rocksdb_writestallinfo_prev(
    const rocksdb_writestallinfo_t* info);

#ifdef __cplusplus
}
#endif

#endif
