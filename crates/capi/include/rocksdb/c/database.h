/* Databases: opening, reading, writing, iterating, maintenance. */
#ifndef SATEEN_ROCKSDB_C_DATABASE_H
#define SATEEN_ROCKSDB_C_DATABASE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

void rocksdb_abort_all_compactions(rocksdb_t* db);
void rocksdb_approximate_sizes(rocksdb_t* db, int count, const char* const* begins,
    const size_t* begin_lengths, const char* const* ends, const size_t* end_lengths,
    uint64_t* sizes, char** errptr);
void rocksdb_approximate_sizes_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family, int count,
    const char* const* begins, const size_t* begin_lengths, const char* const* ends,
    const size_t* end_lengths, uint64_t* sizes, char** errptr);
void rocksdb_approximate_sizes_cf_with_flags(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    int count, const char* const* begins, const size_t* begin_lengths, const char* const* ends,
    const size_t* end_lengths, uint8_t include_flags, uint64_t* sizes, char** errptr);
void rocksdb_approximate_sizes_cf_with_options(rocksdb_t* db,
    rocksdb_column_family_handle_t* family, const rocksdb_size_approximation_options_t* options,
    int count, const char* const* begins, const size_t* begin_lengths, const char* const* ends,
    const size_t* end_lengths, uint64_t* sizes, char** errptr);
void rocksdb_approximate_sizes_with_options(rocksdb_t* db,
    const rocksdb_size_approximation_options_t* options, int count, const char* const* begins,
    const size_t* begin_lengths, const char* const* ends, const size_t* end_lengths,
    uint64_t* sizes, char** errptr);
void rocksdb_batched_multi_get_cf(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, size_t count, const char* const* keys,
    const size_t* key_lengths, rocksdb_pinnableslice_t** values, char** errors, bool sorted_input);
void rocksdb_batched_multi_get_cf_slice(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, size_t count, const rocksdb_slice_t* keys,
    rocksdb_pinnableslice_t** values, char** errors, bool sorted_input);
rocksdb_pinnable_multi_get_t* rocksdb_batched_multi_get_pinned_cf(rocksdb_t* db,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, size_t count,
    const rocksdb_slice_t* keys, unsigned char sorted_input);
void rocksdb_cancel_all_background_work(rocksdb_t* db, unsigned char wait);
void rocksdb_close(rocksdb_t* db);
void rocksdb_column_family_handle_destroy(rocksdb_column_family_handle_t* column_family_handle);
uint32_t rocksdb_column_family_handle_get_id(rocksdb_column_family_handle_t* handle);
char* rocksdb_column_family_handle_get_name(rocksdb_column_family_handle_t* handle,
    size_t* name_length);
void rocksdb_compact_files(rocksdb_t* db, const rocksdb_compaction_options_t* options,
    const char* const* input_file_names, size_t num_input_file_names, int output_level,
    int output_path_id, char*** output_file_names, size_t* num_output_file_names,
    rocksdb_compactionjobinfo_t* compaction_job_info, char** errptr);
void rocksdb_compact_files_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    const rocksdb_compaction_options_t* options, const char* const* input_file_names,
    size_t num_input_file_names, int output_level, int output_path_id, char*** output_file_names,
    size_t* num_output_file_names, rocksdb_compactionjobinfo_t* compaction_job_info, char** errptr);
void rocksdb_compact_files_output_file_names_destroy(char** output_file_names,
    size_t num_output_file_names);
void rocksdb_compact_range(rocksdb_t* db, const char* start_key, size_t start_key_length,
    const char* limit_key, size_t limit_key_length);
void rocksdb_compact_range_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    const char* start_key, size_t start_key_length, const char* limit_key, size_t limit_key_length);
void rocksdb_compact_range_cf_opt(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    rocksdb_compactoptions_t* options, const char* start_key, size_t start_key_length,
    const char* limit_key, size_t limit_key_length);
void rocksdb_compact_range_opt(rocksdb_t* db, rocksdb_compactoptions_t* options,
    const char* start_key, size_t start_key_length, const char* limit_key, size_t limit_key_length);
rocksdb_compactionfilter_t* rocksdb_compactionfilter_create(void* state, void (*destructor)(void*
    state), unsigned char (*filter)(void* state, int level, const char* key, size_t key_length,
    const char* existing_value, size_t value_length, char** new_value, size_t* new_value_length,
    unsigned char* value_changed), const char* (*name)(void* state));
void rocksdb_compactionfilter_destroy(rocksdb_compactionfilter_t* compactionfilter);
void rocksdb_compactionfilter_set_ignore_snapshots(rocksdb_compactionfilter_t* compactionfilter,
    unsigned char value);
unsigned char rocksdb_compactionfiltercontext_is_full_compaction(
    rocksdb_compactionfiltercontext_t* context);
unsigned char rocksdb_compactionfiltercontext_is_manual_compaction(
    rocksdb_compactionfiltercontext_t* context);
rocksdb_compactionfilterfactory_t* rocksdb_compactionfilterfactory_create(void* state, void
    (*destructor)(void* state), rocksdb_compactionfilter_t* (*create_compaction_filter)(void* state,
    rocksdb_compactionfiltercontext_t* context), const char* (*name)(void* state));
void rocksdb_compactionfilterfactory_destroy(
    rocksdb_compactionfilterfactory_t* compactionfilterfactory);
rocksdb_comparator_t* rocksdb_comparator_create(void* state, void (*destructor)(void* state), int
    (*compare)(void* state, const char* a, size_t alen, const char* batch, size_t blen), const char*
    (*name)(void* state));
void rocksdb_comparator_destroy(rocksdb_comparator_t* comparator);
rocksdb_comparator_t* rocksdb_comparator_with_ts_create(void* state, void (*destructor)(void*
    state), int (*compare)(void* state, const char* a, size_t alen, const char* batch, size_t blen),
    int (*compare_ts)(void* state, const char* a_ts, size_t a_tslen, const char* b_ts, size_t
    b_tslen), int (*compare_without_ts)(void* state, const char* a, size_t alen, unsigned char
    a_has_ts, const char* batch, size_t blen, unsigned char b_has_ts), const char* (*name)(void*
    state), size_t timestamp_size);
void rocksdb_continue_background_work(rocksdb_t* db, char** errptr);
rocksdb_column_family_handle_t** rocksdb_create_column_families(rocksdb_t* db,
    const rocksdb_options_t* family_options, int family_count, const char* const* family_names,
    size_t* count, char** errptr);
void rocksdb_create_column_families_destroy(rocksdb_column_family_handle_t** list);
rocksdb_column_family_handle_t* rocksdb_create_column_family(rocksdb_t* db,
    const rocksdb_options_t* family_options, const char* family_name, char** errptr);
rocksdb_column_family_handle_t* rocksdb_create_column_family_with_import(rocksdb_t* db,
    rocksdb_options_t* family_options, const char* family_name,
    rocksdb_import_column_family_options_t* import_options,
    rocksdb_export_import_files_metadata_t* metadata, char** errptr);
rocksdb_column_family_handle_t* rocksdb_create_column_family_with_ttl(rocksdb_t* db,
    const rocksdb_options_t* family_options, const char* family_name, int ttl, char** errptr);
rocksdb_iterator_t* rocksdb_create_iterator(rocksdb_t* db, const rocksdb_readoptions_t* options);
rocksdb_iterator_t* rocksdb_create_iterator_cf(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family);
void rocksdb_create_iterators(rocksdb_t* db, rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t** families, rocksdb_iterator_t** iterators, size_t size,
    char** errptr);
const rocksdb_snapshot_t* rocksdb_create_snapshot(rocksdb_t* db);
void rocksdb_delete(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_length, char** errptr);
void rocksdb_delete_cf(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char** errptr);
void rocksdb_delete_cf_with_ts(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    const char* timestamp, size_t timestamp_length, char** errptr);
void rocksdb_delete_file(rocksdb_t* db, const char* name);
void rocksdb_delete_file_in_range(rocksdb_t* db, const char* start_key, size_t start_key_length,
    const char* limit_key, size_t limit_key_length, char** errptr);
void rocksdb_delete_file_in_range_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    const char* start_key, size_t start_key_length, const char* limit_key, size_t limit_key_length,
    char** errptr);
void rocksdb_delete_range_cf(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* start_key, size_t start_key_length,
    const char* end_key, size_t end_key_length, char** errptr);
void rocksdb_delete_with_ts(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_length, const char* timestamp, size_t timestamp_length, char** errptr);
void rocksdb_destroy_db(const rocksdb_options_t* options, const char* name, char** errptr);
void rocksdb_disable_file_deletions(rocksdb_t* db, char** errptr);
void rocksdb_disable_manual_compaction(rocksdb_t* db);
void rocksdb_drop_column_family(rocksdb_t* db, rocksdb_column_family_handle_t* handle,
    char** errptr);
#if SATEEN_ROCKSDB_ABI >= 9
void rocksdb_enable_file_deletions(rocksdb_t* db, char** errptr);
#endif
void rocksdb_enable_manual_compaction(rocksdb_t* db);
void rocksdb_flush(rocksdb_t* db, const rocksdb_flushoptions_t* options, char** errptr);
void rocksdb_flush_cf(rocksdb_t* db, const rocksdb_flushoptions_t* options,
    rocksdb_column_family_handle_t* family, char** errptr);
void rocksdb_flush_cfs(rocksdb_t* db, const rocksdb_flushoptions_t* options,
    rocksdb_column_family_handle_t** family, int family_count, char** errptr);
void rocksdb_flush_wal(rocksdb_t* db, unsigned char sync, char** errptr);
void rocksdb_flush_wal_with_options(rocksdb_t* db, const rocksdb_flushwaloptions_t* options,
    char** errptr);
void rocksdb_free(void* pointer);
char* rocksdb_get(rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key,
    size_t key_length, size_t* value_length, char** errptr);
char* rocksdb_get_cf(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    size_t* value_length, char** errptr);
char* rocksdb_get_cf_with_metadata(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    size_t* value_length, char** timestamp, size_t* timestamp_length,
    unsigned char* newer_version_present, char** errptr);
char* rocksdb_get_cf_with_ts(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    size_t* value_length, char** timestamp, size_t* timestamp_length, char** errptr);
rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata(rocksdb_t* db);
rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata_cf(rocksdb_t* db,
    rocksdb_column_family_handle_t* family);
rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata_cf_with_options(rocksdb_t* db,
    rocksdb_column_family_handle_t* family,
    const rocksdb_column_family_metadata_options_t* options);
rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata_with_options(rocksdb_t* db,
    const rocksdb_column_family_metadata_options_t* options);
rocksdb_wal_file_t* rocksdb_get_current_wal_file(rocksdb_t* db, char** errptr);
char* rocksdb_get_db_identity(rocksdb_t* db, size_t* id_length);
rocksdb_column_family_handle_t* rocksdb_get_default_column_family_handle(rocksdb_t* db);
char* rocksdb_get_full_history_ts_low(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    size_t* ts_low_length, char** errptr);
unsigned char rocksdb_get_into_buffer(rocksdb_t* db, const rocksdb_readoptions_t* options,
    const char* key, size_t key_length, char* buffer, size_t buffer_size, size_t* value_length,
    unsigned char* found, char** errptr);
unsigned char rocksdb_get_into_buffer_cf(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char* buffer,
    size_t buffer_size, size_t* value_length, unsigned char* found, char** errptr);
uint64_t rocksdb_get_latest_sequence_number(rocksdb_t* db);
rocksdb_livefiles_storage_info_t* rocksdb_get_livefiles_storage_info(rocksdb_t* db,
    const rocksdb_livefiles_storage_info_options_t* options, char** errptr);
void rocksdb_get_options_from_string(const rocksdb_options_t* base_options, const char* list,
    rocksdb_options_t* new_options, char** errptr);
rocksdb_pinnableslice_t* rocksdb_get_pinned(rocksdb_t* db, const rocksdb_readoptions_t* options,
    const char* key, size_t key_length, char** errptr);
rocksdb_pinnableslice_t* rocksdb_get_pinned_cf(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char** errptr);
rocksdb_pinnable_handle_t* rocksdb_get_pinned_cf_v2(rocksdb_t* db,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, char** errptr);
rocksdb_pinnable_handle_t* rocksdb_get_pinned_v2(rocksdb_t* db,
    const rocksdb_readoptions_t* options, const char* key, size_t key_length, char** errptr);
rocksdb_wal_files_t* rocksdb_get_sorted_wal_files(rocksdb_t* db, char** errptr);
rocksdb_wal_iterator_t* rocksdb_get_updates_since(rocksdb_t* db, uint64_t sequence,
    const rocksdb_wal_readoptions_t* options, char** errptr);
char* rocksdb_get_with_metadata(rocksdb_t* db, const rocksdb_readoptions_t* options,
    const char* key, size_t key_length, size_t* value_length, char** timestamp,
    size_t* timestamp_length, unsigned char* newer_version_present, char** errptr);
char* rocksdb_get_with_ts(rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key,
    size_t key_length, size_t* value_length, char** timestamp, size_t* timestamp_length,
    char** errptr);
void rocksdb_increase_full_history_ts_low(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    const char* ts_low, size_t ts_low_length, char** errptr);
void rocksdb_iter_destroy(rocksdb_iterator_t* iterator);
void rocksdb_iter_get_error(const rocksdb_iterator_t* iterator, char** errptr);
const char* rocksdb_iter_key(const rocksdb_iterator_t* iterator, size_t* key_length);
rocksdb_slice_t rocksdb_iter_key_slice(const rocksdb_iterator_t* iterator);
void rocksdb_iter_next(rocksdb_iterator_t* iterator);
void rocksdb_iter_prev(rocksdb_iterator_t* iterator);
void rocksdb_iter_refresh(const rocksdb_iterator_t* iterator, char** errptr);
void rocksdb_iter_seek(rocksdb_iterator_t* iterator, const char* key, size_t key_length);
void rocksdb_iter_seek_for_prev(rocksdb_iterator_t* iterator, const char* key, size_t key_length);
void rocksdb_iter_seek_to_first(rocksdb_iterator_t* iterator);
void rocksdb_iter_seek_to_last(rocksdb_iterator_t* iterator);
const char* rocksdb_iter_timestamp(const rocksdb_iterator_t* iterator, size_t* timestamp_length);
rocksdb_slice_t rocksdb_iter_timestamp_slice(const rocksdb_iterator_t* iterator);
unsigned char rocksdb_iter_valid(const rocksdb_iterator_t* iterator);
const char* rocksdb_iter_value(const rocksdb_iterator_t* iterator, size_t* value_length);
rocksdb_slice_t rocksdb_iter_value_slice(const rocksdb_iterator_t* iterator);
unsigned char rocksdb_key_may_exist(rocksdb_t* db, const rocksdb_readoptions_t* options,
    const char* key, size_t key_length, char** value, size_t* value_length, const char* timestamp,
    size_t timestamp_length, unsigned char* value_found);
unsigned char rocksdb_key_may_exist_cf(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char** value,
    size_t* value_length, const char* timestamp, size_t timestamp_length,
    unsigned char* value_found);
char** rocksdb_list_column_families(const rocksdb_options_t* options, const char* name,
    size_t* count, char** errptr);
void rocksdb_list_column_families_destroy(char** list, size_t length);
void rocksdb_load_latest_options(const char* db_path, rocksdb_env_t* env,
    bool ignore_unknown_options, rocksdb_cache_t* cache, rocksdb_options_t** db_options,
    size_t* family_count, char*** family_names, rocksdb_options_t*** family_options, char** errptr);
void rocksdb_load_latest_options_destroy(rocksdb_options_t* db_options,
    char** list_column_family_names, rocksdb_options_t** list_column_family_options, size_t length);
void rocksdb_merge(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_length, const char* value, size_t value_length, char** errptr);
void rocksdb_merge_cf(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, const char* value,
    size_t value_length, char** errptr);
rocksdb_mergeoperator_t* rocksdb_mergeoperator_create(void* state, void (*destructor)(void* state),
    char* (*full_merge)(void* state, const char* key, size_t key_length, const char* existing_value,
    size_t existing_length, const char* const* operands, const size_t* operand_lengths, int count,
    unsigned char* success, size_t* new_value_length), char* (*partial_merge)(void* state, const
    char* key, size_t key_length, const char* const* operands, const size_t* operand_lengths, int
    count, unsigned char* success, size_t* new_value_length), void (*delete_value)(void* state,
    const char* value, size_t value_length), const char* (*name)(void* state));
void rocksdb_mergeoperator_destroy(rocksdb_mergeoperator_t* merge_operator);
void rocksdb_multi_get(rocksdb_t* db, const rocksdb_readoptions_t* options, size_t count,
    const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
    char** errors);
void rocksdb_multi_get_cf(rocksdb_t* db, const rocksdb_readoptions_t* options,
    const rocksdb_column_family_handle_t* const* families, size_t count, const char* const* keys,
    const size_t* key_lengths, char** values, size_t* value_lengths, char** errors);
void rocksdb_multi_get_cf_with_metadata(rocksdb_t* db, const rocksdb_readoptions_t* options,
    const rocksdb_column_family_handle_t* const* families, size_t count, const char* const* keys,
    const size_t* key_lengths, char** values, size_t* value_lengths, char** timestamps,
    size_t* timestamp_lengths, unsigned char* newer_version_present, char** errors);
void rocksdb_multi_get_cf_with_ts(rocksdb_t* db, const rocksdb_readoptions_t* options,
    const rocksdb_column_family_handle_t* const* families, size_t count, const char* const* keys,
    const size_t* key_lengths, char** values, size_t* value_lengths, char** timestamps,
    size_t* timestamp_lengths, char** errors);
void rocksdb_multi_get_with_metadata(rocksdb_t* db, const rocksdb_readoptions_t* options,
    size_t count, const char* const* keys, const size_t* key_lengths, char** values,
    size_t* value_lengths, char** timestamps, size_t* timestamp_lengths,
    unsigned char* newer_version_present, char** errors);
void rocksdb_multi_get_with_ts(rocksdb_t* db, const rocksdb_readoptions_t* options, size_t count,
    const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
    char** timestamps, size_t* timestamp_lengths, char** errors);
rocksdb_replayer_t* rocksdb_new_default_replayer(rocksdb_t* db,
    rocksdb_column_family_handle_t** families, size_t family_count, rocksdb_env_t* env,
    const rocksdb_envoptions_t* options, const char* trace_path, char** errptr);
rocksdb_t* rocksdb_open(const rocksdb_options_t* options, const char* name, char** errptr);
char* rocksdb_open_and_compact(const char* db_path, const char* output_directory, const char* input,
    size_t input_length, size_t* output_length,
    const rocksdb_compaction_service_options_override_t* options, char** errptr);
unsigned char* rocksdb_open_and_compact_canceled_create(void);
void rocksdb_open_and_compact_canceled_destroy(unsigned char* canceled);
void rocksdb_open_and_compact_canceled_set(unsigned char* canceled, unsigned char value);
char* rocksdb_open_and_compact_with_options(const rocksdb_open_and_compact_options_t* options,
    const char* db_path, const char* output_directory, const char* input, size_t input_length,
    size_t* output_length, const rocksdb_compaction_service_options_override_t* options2,
    char** errptr);
rocksdb_t* rocksdb_open_and_trim_history(const rocksdb_options_t* options, const char* name,
    int family_count, const char* const* family_names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles,
    char* timestamp, size_t timestamp_length, char** errptr);
rocksdb_t* rocksdb_open_as_secondary(const rocksdb_options_t* options, const char* name,
    const char* secondary_path, char** errptr);
rocksdb_t* rocksdb_open_as_secondary_column_families(const rocksdb_options_t* options,
    const char* name, const char* secondary_path, int family_count, const char* const* family_names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles,
    char** errptr);
rocksdb_t* rocksdb_open_column_families(const rocksdb_options_t* options, const char* name,
    int family_count, const char* const* family_names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles,
    char** errptr);
rocksdb_t* rocksdb_open_column_families_with_ttl(const rocksdb_options_t* options, const char* name,
    int family_count, const char* const* family_names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles,
    const int* ttls, char** errptr);
rocksdb_t* rocksdb_open_for_read_only(const rocksdb_options_t* options, const char* name,
    unsigned char error_if_wal_file_exists, char** errptr);
rocksdb_t* rocksdb_open_for_read_only_column_families(const rocksdb_options_t* options,
    const char* name, int family_count, const char* const* family_names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles,
    unsigned char error_if_wal_file_exists, char** errptr);
rocksdb_t* rocksdb_open_with_ttl(const rocksdb_options_t* options, const char* name, int ttl,
    char** errptr);
void rocksdb_pause_background_work(rocksdb_t* db, char** errptr);
rocksdb_perfcontext_t* rocksdb_perfcontext_create(void);
void rocksdb_perfcontext_destroy(rocksdb_perfcontext_t* context);
uint64_t rocksdb_perfcontext_metric(rocksdb_perfcontext_t* context, int metric);
char* rocksdb_perfcontext_report(rocksdb_perfcontext_t* context,
    unsigned char exclude_zero_counters);
void rocksdb_perfcontext_reset(rocksdb_perfcontext_t* context);
size_t rocksdb_pinnable_multi_get_count(const rocksdb_pinnable_multi_get_t* multi_get);
void rocksdb_pinnable_multi_get_destroy(rocksdb_pinnable_multi_get_t* multi_get);
int rocksdb_pinnable_multi_get_result(const rocksdb_pinnable_multi_get_t* multi_get, size_t index,
    const char** value, size_t* value_size, const char** error, size_t* error_size);
void rocksdb_pinnableslice_destroy(rocksdb_pinnableslice_t* value);
const char* rocksdb_pinnableslice_value(const rocksdb_pinnableslice_t* type, size_t* value_length);
int rocksdb_property_int(rocksdb_t* db, const char* name, uint64_t* value_out);
int rocksdb_property_int_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char* name,
    uint64_t* value_out);
char* rocksdb_property_value(rocksdb_t* db, const char* name);
char* rocksdb_property_value_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    const char* name);
void rocksdb_put(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_length, const char* value, size_t value_length, char** errptr);
void rocksdb_put_cf(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, const char* value,
    size_t value_length, char** errptr);
void rocksdb_put_cf_with_ts(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    const char* timestamp, size_t timestamp_length, const char* value, size_t value_length,
    char** errptr);
void rocksdb_put_with_ts(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_length, const char* timestamp, size_t timestamp_length, const char* value,
    size_t value_length, char** errptr);
void rocksdb_release_snapshot(rocksdb_t* db, const rocksdb_snapshot_t* snapshot);
void rocksdb_repair_db(const rocksdb_options_t* options, const char* name, char** errptr);
void rocksdb_resume_all_compactions(rocksdb_t* db);
void rocksdb_set_db_options(rocksdb_t* db, int count, const char* const* keys,
    const char* const* values, char** errptr);
void rocksdb_set_options(rocksdb_t* db, int count, const char* const* keys,
    const char* const* values, char** errptr);
void rocksdb_set_options_cf(rocksdb_t* db, rocksdb_column_family_handle_t* handle, int count,
    const char* const* keys, const char* const* values, char** errptr);
void rocksdb_set_perf_level(int value);
void rocksdb_singledelete(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_length, char** errptr);
void rocksdb_singledelete_cf(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char** errptr);
void rocksdb_singledelete_cf_with_ts(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    const char* timestamp, size_t timestamp_length, char** errptr);
void rocksdb_singledelete_with_ts(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    const char* key, size_t key_length, const char* timestamp, size_t timestamp_length,
    char** errptr);
uint64_t rocksdb_snapshot_get_sequence_number(const rocksdb_snapshot_t* snapshot);
rocksdb_statistics_histogram_data_t* rocksdb_statistics_histogram_data_create(void);
void rocksdb_statistics_histogram_data_destroy(rocksdb_statistics_histogram_data_t* data);
double rocksdb_statistics_histogram_data_get_average(rocksdb_statistics_histogram_data_t* data);
uint64_t rocksdb_statistics_histogram_data_get_count(rocksdb_statistics_histogram_data_t* data);
double rocksdb_statistics_histogram_data_get_max(rocksdb_statistics_histogram_data_t* data);
double rocksdb_statistics_histogram_data_get_median(rocksdb_statistics_histogram_data_t* data);
double rocksdb_statistics_histogram_data_get_min(rocksdb_statistics_histogram_data_t* data);
double rocksdb_statistics_histogram_data_get_p95(rocksdb_statistics_histogram_data_t* data);
double rocksdb_statistics_histogram_data_get_p99(rocksdb_statistics_histogram_data_t* data);
double rocksdb_statistics_histogram_data_get_std_dev(rocksdb_statistics_histogram_data_t* data);
uint64_t rocksdb_statistics_histogram_data_get_sum(rocksdb_statistics_histogram_data_t* data);
void rocksdb_suggest_compact_range(rocksdb_t* db, const char* start_key, size_t start_key_length,
    const char* limit_key, size_t limit_key_length, char** errptr);
void rocksdb_suggest_compact_range_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    const char* start_key, size_t start_key_length, const char* limit_key, size_t limit_key_length,
    char** errptr);
void rocksdb_try_catch_up_with_primary(rocksdb_t* db, char** errptr);
void rocksdb_verify_checksum(rocksdb_t* db, char** errptr);
void rocksdb_verify_checksum_with_options(rocksdb_t* db, const rocksdb_readoptions_t* options,
    char** errptr);
void rocksdb_verify_file_checksums(rocksdb_t* db, char** errptr);
void rocksdb_verify_file_checksums_with_options(rocksdb_t* db, const rocksdb_readoptions_t* options,
    char** errptr);
void rocksdb_wait_for_compact(rocksdb_t* db, rocksdb_wait_for_compact_options_t* options,
    char** errptr);
void rocksdb_wal_iter_destroy(const rocksdb_wal_iterator_t* iterator);
rocksdb_writebatch_t* rocksdb_wal_iter_get_batch(const rocksdb_wal_iterator_t* iterator,
    uint64_t* sequence);
void rocksdb_wal_iter_next(rocksdb_wal_iterator_t* iterator);
void rocksdb_wal_iter_status(const rocksdb_wal_iterator_t* iterator, char** errptr);
unsigned char rocksdb_wal_iter_valid(const rocksdb_wal_iterator_t* wal_iterator);
void rocksdb_write(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_writebatch_t* batch, char** errptr);
void rocksdb_write_writebatch_wi(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_writebatch_wi_t* batch, char** errptr);

#ifdef __cplusplus
}
#endif

#endif
