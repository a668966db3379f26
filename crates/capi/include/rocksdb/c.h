/* The functions of RocksDB's C interface that Sateen has. What each does here, and what becomes of
 * options, is in docs/c_abi.md. Errors: a function that takes `errptr` leaves there a text to be
 * freed with rocksdb_free if it fails; what was there is freed. */
#ifndef SATEEN_ROCKSDB_C_H
#define SATEEN_ROCKSDB_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_block_based_table_options_t rocksdb_block_based_table_options_t;
typedef struct rocksdb_cache_t rocksdb_cache_t;
typedef struct rocksdb_checkpoint_t rocksdb_checkpoint_t;
typedef struct rocksdb_column_family_handle_t rocksdb_column_family_handle_t;
typedef struct rocksdb_compactionfilter_t rocksdb_compactionfilter_t;
typedef struct rocksdb_compactionfiltercontext_t rocksdb_compactionfiltercontext_t;
typedef struct rocksdb_compactionfilterfactory_t rocksdb_compactionfilterfactory_t;
typedef struct rocksdb_compactoptions_t rocksdb_compactoptions_t;
typedef struct rocksdb_filterpolicy_t rocksdb_filterpolicy_t;
typedef struct rocksdb_flushoptions_t rocksdb_flushoptions_t;
typedef struct rocksdb_iterator_t rocksdb_iterator_t;
typedef struct rocksdb_mergeoperator_t rocksdb_mergeoperator_t;
typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_pinnableslice_t rocksdb_pinnableslice_t;
typedef struct rocksdb_readoptions_t rocksdb_readoptions_t;
typedef struct rocksdb_snapshot_t rocksdb_snapshot_t;
typedef struct rocksdb_writebatch_t rocksdb_writebatch_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;

/* options */

void rocksdb_options_set_create_if_missing(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_create_missing_column_families(rocksdb_options_t* options, unsigned char
    value);
void rocksdb_options_set_error_if_exists(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_write_buffer_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_max_write_buffer_number(rocksdb_options_t* options, int value);
void rocksdb_options_set_min_write_buffer_number_to_merge(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_total_wal_size(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_max_background_jobs(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_background_compactions(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_background_flushes(rocksdb_options_t* options, int value);
void rocksdb_options_set_num_levels(rocksdb_options_t* options, int value);
void rocksdb_options_set_level0_file_num_compaction_trigger(rocksdb_options_t* options, int
    value);
void rocksdb_options_set_level0_slowdown_writes_trigger(rocksdb_options_t* options, int value);
void rocksdb_options_set_level0_stop_writes_trigger(rocksdb_options_t* options, int value);
void rocksdb_options_set_target_file_size_base(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_target_file_size_multiplier(rocksdb_options_t* options, int value);
void rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_max_bytes_for_level_multiplier(rocksdb_options_t* options, double value);
void rocksdb_options_set_level_compaction_dynamic_level_bytes(rocksdb_options_t* options, unsigned
    char value);
void rocksdb_options_set_max_compaction_bytes(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_compaction_readahead_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_disable_auto_compactions(rocksdb_options_t* options, int value);
void rocksdb_options_set_soft_pending_compaction_bytes_limit(rocksdb_options_t* options, size_t
    value);
void rocksdb_options_set_hard_pending_compaction_bytes_limit(rocksdb_options_t* options, size_t
    value);
void rocksdb_options_set_max_manifest_file_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_wal_bytes_per_sync(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_use_direct_reads(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_use_direct_io_for_flush_and_compaction(rocksdb_options_t* options,
    unsigned char value);
void rocksdb_options_set_paranoid_checks(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_use_fsync(rocksdb_options_t* options, int value);
void rocksdb_options_set_bytes_per_sync(rocksdb_options_t* options, uint64_t value);
void rocksdb_options_set_keep_log_file_num(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_max_log_file_size(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_log_file_time_to_roll(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_recycle_log_file_num(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_info_log_level(rocksdb_options_t* options, int value);
void rocksdb_options_set_stats_dump_period_sec(rocksdb_options_t* options, unsigned int value);
void rocksdb_options_set_table_cache_numshardbits(rocksdb_options_t* options, int value);
void rocksdb_options_set_advise_random_on_open(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_max_successive_merges(rocksdb_options_t* options, size_t value);
void rocksdb_options_set_max_subcompactions(rocksdb_options_t* options, uint32_t value);
void rocksdb_options_set_skip_stats_update_on_db_open(rocksdb_options_t* options, unsigned char
    value);
void rocksdb_options_set_allow_concurrent_memtable_write(rocksdb_options_t* options, unsigned char
    value);
void rocksdb_options_set_enable_pipelined_write(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_unordered_write(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_use_adaptive_mutex(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_optimize_filters_for_hits(rocksdb_options_t* options, int value);
void rocksdb_options_set_delete_obsolete_files_period_micros(rocksdb_options_t* options, uint64_t
    value);
void rocksdb_options_set_max_file_opening_threads(rocksdb_options_t* options, int value);
rocksdb_options_t* rocksdb_options_create(void);
void rocksdb_options_destroy(rocksdb_options_t* options);
rocksdb_options_t* rocksdb_options_create_copy(const rocksdb_options_t* options);
void rocksdb_get_options_from_string(const rocksdb_options_t* base, const char* list,
    rocksdb_options_t* new_options, char** errptr);
void rocksdb_options_set_max_open_files(rocksdb_options_t* options, int files);
void rocksdb_options_set_wal_dir(rocksdb_options_t* options, const char* directory);
void rocksdb_options_increase_parallelism(rocksdb_options_t* options, int threads);
void rocksdb_options_optimize_level_style_compaction(rocksdb_options_t* options, uint64_t
    memtable_memory_budget);
void rocksdb_options_set_compression(rocksdb_options_t* options, int code);
void rocksdb_options_set_compression_per_level(rocksdb_options_t* options, const int* codes,
    size_t levels);
void rocksdb_options_set_merge_operator(rocksdb_options_t* options, rocksdb_mergeoperator_t*
    merge_operator);
void rocksdb_options_set_block_based_table_factory(rocksdb_options_t* options,
    rocksdb_block_based_table_options_t* table);

/* table options, filters, caches */

void rocksdb_block_based_options_set_block_size(rocksdb_block_based_table_options_t* options,
    size_t bytes);
void rocksdb_block_based_options_set_block_restart_interval(rocksdb_block_based_table_options_t*
    options, int entries);
void rocksdb_block_based_options_set_whole_key_filtering(rocksdb_block_based_table_options_t*
    options, unsigned char whole);
void rocksdb_block_based_options_set_no_block_cache(rocksdb_block_based_table_options_t* options,
    unsigned char none);
void rocksdb_block_based_options_set_format_version(rocksdb_block_based_table_options_t* options,
    int version);
void rocksdb_block_based_options_set_index_type(rocksdb_block_based_table_options_t* options, int
    kind);
void
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(rocksdb_block_based_table_options_t*
    options, unsigned char cached);
void
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(rocksdb_block_based_table_options_t*
    options, unsigned char pinned);
rocksdb_block_based_table_options_t* rocksdb_block_based_options_create(void);
void rocksdb_block_based_options_destroy(rocksdb_block_based_table_options_t* options);
void rocksdb_block_based_options_set_block_cache(rocksdb_block_based_table_options_t* options,
    rocksdb_cache_t* cache);
void rocksdb_block_based_options_set_filter_policy(rocksdb_block_based_table_options_t* options,
    rocksdb_filterpolicy_t* policy);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom(double bits_per_key);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom_full(double bits_per_key);
void rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_t* policy);
rocksdb_cache_t* rocksdb_cache_create_lru(size_t bytes);
void rocksdb_cache_destroy(rocksdb_cache_t* cache);
size_t rocksdb_cache_get_capacity(const rocksdb_cache_t* cache);

/* merge operators */

rocksdb_mergeoperator_t* rocksdb_mergeoperator_create(void* state, void (*destructor)(void*),
    char* (*full_merge)(void*, const char* key, size_t key_length, const char* existing_value,
    size_t existing_value_length, const char* const* operands_list, const size_t*
    operands_list_length, int num_operands, unsigned char* success, size_t* new_value_length),
    char* (*partial_merge)(void*, const char* key, size_t key_length, const char* const*
    operands_list, const size_t* operands_list_length, int num_operands, unsigned char* success,
    size_t* new_value_length), void (*delete_value)(void*, const char* value, size_t
    value_length), const char* (*name)(void*));
void rocksdb_mergeoperator_destroy(rocksdb_mergeoperator_t* merge_operator);

/* compaction filters */

rocksdb_compactionfilter_t* rocksdb_compactionfilter_create(void* state, void
    (*destructor)(void*), unsigned char (*filter)(void*, int level, const char* key, size_t
    key_length, const char* existing_value, size_t value_length, char** new_value, size_t*
    new_value_length, unsigned char* value_changed), const char* (*name)(void*));
void rocksdb_compactionfilter_set_ignore_snapshots(rocksdb_compactionfilter_t* filter, unsigned
    char ignored);
void rocksdb_compactionfilter_destroy(rocksdb_compactionfilter_t* filter);
unsigned char
    rocksdb_compactionfiltercontext_is_full_compaction(rocksdb_compactionfiltercontext_t* context);
unsigned char
    rocksdb_compactionfiltercontext_is_manual_compaction(rocksdb_compactionfiltercontext_t*
    context);
rocksdb_compactionfilterfactory_t* rocksdb_compactionfilterfactory_create(void* state, void
    (*destructor)(void*), rocksdb_compactionfilter_t* (*create_compaction_filter)(void*,
    rocksdb_compactionfiltercontext_t* context), const char* (*name)(void*));
void rocksdb_compactionfilterfactory_destroy(rocksdb_compactionfilterfactory_t* factory);
void rocksdb_options_set_compaction_filter(rocksdb_options_t* options, rocksdb_compactionfilter_t*
    filter);
void rocksdb_options_set_compaction_filter_factory(rocksdb_options_t* options,
    rocksdb_compactionfilterfactory_t* factory);

/* a database */

void rocksdb_put(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t
    key_length, const char* value, size_t value_length, char** errptr);
void rocksdb_put_cf(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, const char* value,
    size_t value_length, char** errptr);
void rocksdb_merge(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t
    key_length, const char* operand, size_t operand_length, char** errptr);
void rocksdb_merge_cf(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, const char*
    operand, size_t operand_length, char** errptr);
void rocksdb_delete(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key, size_t
    key_length, char** errptr);
void rocksdb_delete_cf(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char** errptr);
void rocksdb_singledelete(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_length, char** errptr);
void rocksdb_singledelete_cf(rocksdb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char** errptr);
rocksdb_t* rocksdb_open(const rocksdb_options_t* options, const char* path, char** errptr);
rocksdb_t* rocksdb_open_for_read_only(const rocksdb_options_t* options, const char* path, unsigned
    char error_if_wal_file_exists, char** errptr);
void rocksdb_close(rocksdb_t* db);
void rocksdb_destroy_db(const rocksdb_options_t* options, const char* path, char** errptr);
void rocksdb_repair_db(const rocksdb_options_t* options, const char* path, char** errptr);
void rocksdb_write(rocksdb_t* db, const rocksdb_writeoptions_t* options, rocksdb_writebatch_t*
    batch, char** errptr);
char* rocksdb_get(rocksdb_t* db, const rocksdb_readoptions_t* options, const char* key, size_t
    key_length, size_t* value_length, char** errptr);
char* rocksdb_get_cf(rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, size_t*
    value_length, char** errptr);
rocksdb_pinnableslice_t* rocksdb_get_pinned(rocksdb_t* db, const rocksdb_readoptions_t* options,
    const char* key, size_t key_length, char** errptr);
rocksdb_pinnableslice_t* rocksdb_get_pinned_cf(rocksdb_t* db, const rocksdb_readoptions_t*
    options, rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char**
    errptr);
void rocksdb_pinnableslice_destroy(rocksdb_pinnableslice_t* value);
const char* rocksdb_pinnableslice_value(const rocksdb_pinnableslice_t* value, size_t* length);
void rocksdb_multi_get(rocksdb_t* db, const rocksdb_readoptions_t* options, size_t count, const
    char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths, char**
    errors);
uint64_t rocksdb_get_latest_sequence_number(rocksdb_t* db);
char* rocksdb_property_value(rocksdb_t* db, const char* name);
char* rocksdb_property_value_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char*
    name);
int rocksdb_property_int(rocksdb_t* db, const char* name, uint64_t* value);
int rocksdb_property_int_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char*
    name, uint64_t* value);
void rocksdb_approximate_sizes(rocksdb_t* db, int count, const char* const* begins, const size_t*
    begin_lengths, const char* const* ends, const size_t* end_lengths, uint64_t* sizes, char**
    errptr);
void rocksdb_approximate_sizes_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family, int
    count, const char* const* begins, const size_t* begin_lengths, const char* const* ends, const
    size_t* end_lengths, uint64_t* sizes, char** errptr);
void rocksdb_compact_range(rocksdb_t* db, const char* begin, size_t begin_length, const char* end,
    size_t end_length);
void rocksdb_compact_range_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char*
    begin, size_t begin_length, const char* end, size_t end_length);
void rocksdb_compact_range_opt(rocksdb_t* db, rocksdb_compactoptions_t* options, const char*
    begin, size_t begin_length, const char* end, size_t end_length);
void rocksdb_compact_range_cf_opt(rocksdb_t* db, rocksdb_column_family_handle_t* family,
    rocksdb_compactoptions_t* options, const char* begin, size_t begin_length, const char* end,
    size_t end_length);
void rocksdb_flush(rocksdb_t* db, const rocksdb_flushoptions_t* options, char** errptr);
void rocksdb_flush_cf(rocksdb_t* db, const rocksdb_flushoptions_t* options,
    rocksdb_column_family_handle_t* family, char** errptr);
void rocksdb_flush_wal(rocksdb_t* db, unsigned char sync, char** errptr);
void rocksdb_set_options(rocksdb_t* db, int count, const char* const* names, const char* const*
    values, char** errptr);
rocksdb_checkpoint_t* rocksdb_checkpoint_object_create(rocksdb_t* db, char** errptr);
void rocksdb_checkpoint_create(rocksdb_checkpoint_t* checkpoint, const char* path, uint64_t
    log_size_for_flush, char** errptr);
void rocksdb_checkpoint_object_destroy(rocksdb_checkpoint_t* checkpoint);

/* column families */

rocksdb_t* rocksdb_open_column_families(const rocksdb_options_t* options, const char* path, int
    count, const char* const* names, const rocksdb_options_t* const* family_options,
    rocksdb_column_family_handle_t** handles, char** errptr);
rocksdb_t* rocksdb_open_for_read_only_column_families(const rocksdb_options_t* options, const
    char* path, int count, const char* const* names, const rocksdb_options_t* const*
    family_options, rocksdb_column_family_handle_t** handles, unsigned char
    error_if_wal_file_exists, char** errptr);
char** rocksdb_list_column_families(const rocksdb_options_t* options, const char* path, size_t*
    count, char** errptr);
void rocksdb_list_column_families_destroy(char** list, size_t count);
rocksdb_column_family_handle_t* rocksdb_create_column_family(rocksdb_t* db, const
    rocksdb_options_t* options, const char* name, char** errptr);
void rocksdb_drop_column_family(rocksdb_t* db, rocksdb_column_family_handle_t* family, char**
    errptr);
rocksdb_column_family_handle_t* rocksdb_get_default_column_family_handle(rocksdb_t* db);
void rocksdb_column_family_handle_destroy(rocksdb_column_family_handle_t* family);
uint32_t rocksdb_column_family_handle_get_id(rocksdb_column_family_handle_t* family);
char* rocksdb_column_family_handle_get_name(rocksdb_column_family_handle_t* family, size_t*
    length);

/* options of calls, snapshots */

rocksdb_writeoptions_t* rocksdb_writeoptions_create(void);
void rocksdb_writeoptions_destroy(rocksdb_writeoptions_t* options);
rocksdb_readoptions_t* rocksdb_readoptions_create(void);
void rocksdb_readoptions_destroy(rocksdb_readoptions_t* options);
rocksdb_flushoptions_t* rocksdb_flushoptions_create(void);
void rocksdb_flushoptions_destroy(rocksdb_flushoptions_t* options);
rocksdb_compactoptions_t* rocksdb_compactoptions_create(void);
void rocksdb_compactoptions_destroy(rocksdb_compactoptions_t* options);
void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t* options, unsigned char sync);
void rocksdb_writeoptions_disable_WAL(rocksdb_writeoptions_t* options, int disable);
void rocksdb_writeoptions_set_no_slowdown(rocksdb_writeoptions_t* options, unsigned char
    no_slowdown);
void rocksdb_writeoptions_set_low_pri(rocksdb_writeoptions_t* options, unsigned char low);
void rocksdb_readoptions_set_verify_checksums(rocksdb_readoptions_t* options, unsigned char
    verify);
void rocksdb_readoptions_set_fill_cache(rocksdb_readoptions_t* options, unsigned char fill);
void rocksdb_readoptions_set_readahead_size(rocksdb_readoptions_t* options, size_t bytes);
void rocksdb_readoptions_set_total_order_seek(rocksdb_readoptions_t* options, unsigned char
    total);
void rocksdb_readoptions_set_pin_data(rocksdb_readoptions_t* options, unsigned char pin);
void rocksdb_readoptions_set_async_io(rocksdb_readoptions_t* options, unsigned char async);
void rocksdb_readoptions_set_background_purge_on_iterator_cleanup(rocksdb_readoptions_t* options,
    unsigned char background);
void rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t* options, unsigned char wait);
void rocksdb_compactoptions_set_exclusive_manual_compaction(rocksdb_compactoptions_t* options,
    unsigned char exclusive);
void rocksdb_compactoptions_set_bottommost_level_compaction(rocksdb_compactoptions_t* options,
    unsigned char when);
void rocksdb_readoptions_set_iterate_lower_bound(rocksdb_readoptions_t* options, const char* key,
    size_t length);
void rocksdb_readoptions_set_iterate_upper_bound(rocksdb_readoptions_t* options, const char* key,
    size_t length);
void rocksdb_readoptions_set_snapshot(rocksdb_readoptions_t* handle, const rocksdb_snapshot_t*
    snapshot);
const rocksdb_snapshot_t* rocksdb_create_snapshot(rocksdb_t* db);
void rocksdb_release_snapshot(rocksdb_t* db, const rocksdb_snapshot_t* snapshot);
uint64_t rocksdb_snapshot_get_sequence_number(const rocksdb_snapshot_t* snapshot);

/* iterators */

void rocksdb_iter_seek_to_first(rocksdb_iterator_t* iter);
void rocksdb_iter_seek_to_last(rocksdb_iterator_t* iter);
void rocksdb_iter_seek(rocksdb_iterator_t* iter, const char* key, size_t length);
void rocksdb_iter_seek_for_prev(rocksdb_iterator_t* iter, const char* key, size_t length);
void rocksdb_iter_next(rocksdb_iterator_t* iter);
void rocksdb_iter_prev(rocksdb_iterator_t* iter);
rocksdb_iterator_t* rocksdb_create_iterator(rocksdb_t* db, const rocksdb_readoptions_t* options);
rocksdb_iterator_t* rocksdb_create_iterator_cf(rocksdb_t* db, const rocksdb_readoptions_t*
    options, rocksdb_column_family_handle_t* family);
void rocksdb_iter_destroy(rocksdb_iterator_t* iter);
unsigned char rocksdb_iter_valid(const rocksdb_iterator_t* iter);
const char* rocksdb_iter_key(const rocksdb_iterator_t* iter, size_t* length);
const char* rocksdb_iter_value(const rocksdb_iterator_t* iter, size_t* length);
void rocksdb_iter_get_error(const rocksdb_iterator_t* iter, char** errptr);

/* write batches */

void rocksdb_writebatch_put(rocksdb_writebatch_t* batch, const char* key, size_t key_length, const
    char* value, size_t value_length);
void rocksdb_writebatch_put_cf(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t*
    family, const char* key, size_t key_length, const char* value, size_t value_length);
void rocksdb_writebatch_merge(rocksdb_writebatch_t* batch, const char* key, size_t key_length,
    const char* operand, size_t operand_length);
void rocksdb_writebatch_merge_cf(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t*
    family, const char* key, size_t key_length, const char* operand, size_t operand_length);
void rocksdb_writebatch_delete(rocksdb_writebatch_t* batch, const char* key, size_t key_length);
void rocksdb_writebatch_delete_cf(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t*
    family, const char* key, size_t key_length);
void rocksdb_writebatch_singledelete(rocksdb_writebatch_t* batch, const char* key, size_t
    key_length);
void rocksdb_writebatch_singledelete_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length);
rocksdb_writebatch_t* rocksdb_writebatch_create(void);
rocksdb_writebatch_t* rocksdb_writebatch_create_from(const char* data, size_t length);
void rocksdb_writebatch_destroy(rocksdb_writebatch_t* batch);
void rocksdb_writebatch_clear(rocksdb_writebatch_t* batch);
int rocksdb_writebatch_count(rocksdb_writebatch_t* batch);
const char* rocksdb_writebatch_data(rocksdb_writebatch_t* batch, size_t* length);
void rocksdb_writebatch_iterate(rocksdb_writebatch_t* batch, void* state, void (*put)(void*, const
    char* key, size_t key_length, const char* value, size_t value_length), void (*deleted)(void*,
    const char* key, size_t key_length));
void rocksdb_writebatch_set_save_point(rocksdb_writebatch_t* batch);
void rocksdb_writebatch_rollback_to_save_point(rocksdb_writebatch_t* batch, char** errptr);
void rocksdb_writebatch_pop_save_point(rocksdb_writebatch_t* batch, char** errptr);

/* memory */

void rocksdb_free(void* pointer);

#ifdef __cplusplus
}
#endif

#endif
