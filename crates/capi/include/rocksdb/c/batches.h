/* Write batches, with an index or without. */
#ifndef SATEEN_ROCKSDB_C_BATCHES_H
#define SATEEN_ROCKSDB_C_BATCHES_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

void rocksdb_writebatch_clear(rocksdb_writebatch_t* batch);
int rocksdb_writebatch_count(rocksdb_writebatch_t* batch);
rocksdb_writebatch_t* rocksdb_writebatch_create(void);
rocksdb_writebatch_t* rocksdb_writebatch_create_from(const char* record, size_t size);
rocksdb_writebatch_t* rocksdb_writebatch_create_with_params(size_t reserved_bytes, size_t max_bytes,
    size_t protection_bytes_per_key, size_t default_cf_ts_sz);
const char* rocksdb_writebatch_data(rocksdb_writebatch_t* batch, size_t* size);
void rocksdb_writebatch_delete(rocksdb_writebatch_t* batch, const char* key, size_t key_length);
void rocksdb_writebatch_delete_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length);
void rocksdb_writebatch_delete_cf_with_ts(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    const char* timestamp, size_t timestamp_length);
void rocksdb_writebatch_delete_range(rocksdb_writebatch_t* batch, const char* start_key,
    size_t start_key_length, const char* end_key, size_t end_key_length);
void rocksdb_writebatch_delete_range_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* start_key, size_t start_key_length,
    const char* end_key, size_t end_key_length);
void rocksdb_writebatch_delete_rangev(rocksdb_writebatch_t* batch, int count,
    const char* const* start_keys, const size_t* start_key_lengths, const char* const* end_keys,
    const size_t* end_key_lengths);
void rocksdb_writebatch_delete_rangev_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, int count, const char* const* start_keys,
    const size_t* start_key_lengths, const char* const* end_keys, const size_t* end_key_lengths);
void rocksdb_writebatch_deletev(rocksdb_writebatch_t* batch, int count, const char* const* keys,
    const size_t* key_lengths);
void rocksdb_writebatch_deletev_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, int count, const char* const* keys,
    const size_t* key_lengths);
void rocksdb_writebatch_destroy(rocksdb_writebatch_t* batch);
void rocksdb_writebatch_iterate(rocksdb_writebatch_t* batch, void* state, void (*put)(void* state,
    const char* key, size_t key_length, const char* value, size_t value_length), void
    (*deleted)(void* state, const char* key, size_t key_length));
void rocksdb_writebatch_iterate_cf(rocksdb_writebatch_t* batch, void* state, void (*put_cf)(void*
    state, uint32_t cfid, const char* key, size_t key_length, const char* value, size_t
    value_length), void (*deleted_cf)(void* state, uint32_t cfid, const char* key, size_t
    key_length), void (*merge_cf)(void* state, uint32_t cfid, const char* key, size_t key_length,
    const char* value, size_t value_length));
void rocksdb_writebatch_iterate_cf_ld(rocksdb_writebatch_t* batch, void* state, void (*put_cf)(void*
    state, uint32_t cfid, const char* key, size_t key_length, const char* value, size_t
    value_length), void (*deleted_cf)(void* state, uint32_t cfid, const char* key, size_t
    key_length), void (*merge_cf)(void* state, uint32_t cfid, const char* key, size_t key_length,
    const char* value, size_t value_length), void (*log_data)(void* state, const char* blob, size_t
    blob_len));
void rocksdb_writebatch_iterate_ld(rocksdb_writebatch_t* batch, void* state, void (*put)(void*
    state, const char* key, size_t key_length, const char* value, size_t value_length), void
    (*deleted)(void* state, const char* key, size_t key_length), void (*log_data)(void* state, const
    char* blob, size_t blob_len));
void rocksdb_writebatch_merge(rocksdb_writebatch_t* batch, const char* key, size_t key_length,
    const char* value, size_t value_length);
void rocksdb_writebatch_merge_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, const char* value,
    size_t value_length);
void rocksdb_writebatch_mergev(rocksdb_writebatch_t* batch, int count, const char* const* keys,
    const size_t* key_lengths, int count2, const char* const* values, const size_t* value_lengths);
void rocksdb_writebatch_mergev_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, int count, const char* const* keys,
    const size_t* key_lengths, int count2, const char* const* values, const size_t* value_lengths);
void rocksdb_writebatch_pop_save_point(rocksdb_writebatch_t* batch, char** errptr);
void rocksdb_writebatch_put(rocksdb_writebatch_t* batch, const char* key, size_t key_length,
    const char* value, size_t value_length);
void rocksdb_writebatch_put_cf(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* family,
    const char* key, size_t key_length, const char* value, size_t value_length);
void rocksdb_writebatch_put_cf_with_ts(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    const char* timestamp, size_t timestamp_length, const char* value, size_t value_length);
void rocksdb_writebatch_put_log_data(rocksdb_writebatch_t* batch, const char* blob, size_t length);
void rocksdb_writebatch_putv(rocksdb_writebatch_t* batch, int count, const char* const* keys,
    const size_t* key_lengths, int count2, const char* const* values, const size_t* value_lengths);
void rocksdb_writebatch_putv_cf(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* family,
    int count, const char* const* keys, const size_t* key_lengths, int count2,
    const char* const* values, const size_t* value_lengths);
void rocksdb_writebatch_rollback_to_save_point(rocksdb_writebatch_t* batch, char** errptr);
void rocksdb_writebatch_set_save_point(rocksdb_writebatch_t* batch);
void rocksdb_writebatch_singledelete(rocksdb_writebatch_t* batch, const char* key,
    size_t key_length);
void rocksdb_writebatch_singledelete_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length);
void rocksdb_writebatch_singledelete_cf_with_ts(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    const char* timestamp, size_t timestamp_length);
void rocksdb_writebatch_update_timestamps(rocksdb_writebatch_t* batch, const char* timestamp,
    size_t timestamp_length, void* state, size_t (*get_ts_size)(void* state, uint32_t value),
    char** errptr);
void rocksdb_writebatch_verify_checksum(rocksdb_writebatch_t* batch, char** errptr);
void rocksdb_writebatch_wi_clear(rocksdb_writebatch_wi_t* batch);
int rocksdb_writebatch_wi_count(rocksdb_writebatch_wi_t* batch);
rocksdb_writebatch_wi_t* rocksdb_writebatch_wi_create(size_t reserved_bytes,
    unsigned char overwrite_keys);
rocksdb_writebatch_wi_t* rocksdb_writebatch_wi_create_from(const char* record, size_t size);
rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base(rocksdb_writebatch_wi_t* batch,
    rocksdb_iterator_t* base_iterator);
rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base_cf(
    rocksdb_writebatch_wi_t* batch, rocksdb_iterator_t* base_iterator,
    rocksdb_column_family_handle_t* family);
rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
    rocksdb_writebatch_wi_t* batch, rocksdb_iterator_t* base_iterator,
    rocksdb_column_family_handle_t* family, const rocksdb_readoptions_t* options);
rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base_readopts(
    rocksdb_writebatch_wi_t* batch, rocksdb_iterator_t* base_iterator,
    const rocksdb_readoptions_t* options);
rocksdb_writebatch_wi_t* rocksdb_writebatch_wi_create_with_params(
    rocksdb_comparator_t* backup_index_comparator, size_t reserved_bytes,
    unsigned char overwrite_key, size_t max_bytes, size_t protection_bytes_per_key);
const char* rocksdb_writebatch_wi_data(rocksdb_writebatch_wi_t* batch, size_t* size);
void rocksdb_writebatch_wi_delete(rocksdb_writebatch_wi_t* batch, const char* key,
    size_t key_length);
void rocksdb_writebatch_wi_delete_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length);
void rocksdb_writebatch_wi_delete_range(rocksdb_writebatch_wi_t* batch, const char* start_key,
    size_t start_key_length, const char* end_key, size_t end_key_length);
void rocksdb_writebatch_wi_delete_range_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* start_key, size_t start_key_length,
    const char* end_key, size_t end_key_length);
void rocksdb_writebatch_wi_delete_rangev(rocksdb_writebatch_wi_t* batch, int count,
    const char* const* start_keys, const size_t* start_key_lengths, const char* const* end_keys,
    const size_t* end_key_lengths);
void rocksdb_writebatch_wi_delete_rangev_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, int count, const char* const* start_keys,
    const size_t* start_key_lengths, const char* const* end_keys, const size_t* end_key_lengths);
void rocksdb_writebatch_wi_deletev(rocksdb_writebatch_wi_t* batch, int count,
    const char* const* keys, const size_t* key_lengths);
void rocksdb_writebatch_wi_deletev_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, int count, const char* const* keys,
    const size_t* key_lengths);
void rocksdb_writebatch_wi_destroy(rocksdb_writebatch_wi_t* batch);
char* rocksdb_writebatch_wi_get_from_batch(rocksdb_writebatch_wi_t* batch,
    const rocksdb_options_t* options, const char* key, size_t key_length, size_t* value_length,
    char** errptr);
char* rocksdb_writebatch_wi_get_from_batch_and_db(rocksdb_writebatch_wi_t* batch, rocksdb_t* db,
    const rocksdb_readoptions_t* options, const char* key, size_t key_length, size_t* value_length,
    char** errptr);
char* rocksdb_writebatch_wi_get_from_batch_and_db_cf(rocksdb_writebatch_wi_t* batch, rocksdb_t* db,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, size_t* value_length, char** errptr);
char* rocksdb_writebatch_wi_get_from_batch_cf(rocksdb_writebatch_wi_t* batch,
    const rocksdb_options_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, size_t* value_length, char** errptr);
rocksdb_pinnableslice_t* rocksdb_writebatch_wi_get_pinned_from_batch_and_db(
    rocksdb_writebatch_wi_t* batch, rocksdb_t* db, const rocksdb_readoptions_t* options,
    const char* key, size_t key_length, char** errptr);
rocksdb_pinnableslice_t* rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
    rocksdb_writebatch_wi_t* batch, rocksdb_t* db, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char** errptr);
void rocksdb_writebatch_wi_iterate(rocksdb_writebatch_wi_t* batch, void* state, void (*put)(void*
    state, const char* key, size_t key_length, const char* value, size_t value_length), void
    (*deleted)(void* state, const char* key, size_t key_length));
void rocksdb_writebatch_wi_merge(rocksdb_writebatch_wi_t* batch, const char* key, size_t key_length,
    const char* value, size_t value_length);
void rocksdb_writebatch_wi_merge_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, const char* value,
    size_t value_length);
void rocksdb_writebatch_wi_mergev(rocksdb_writebatch_wi_t* batch, int count,
    const char* const* keys, const size_t* key_lengths, int count2, const char* const* values,
    const size_t* value_lengths);
void rocksdb_writebatch_wi_mergev_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, int count, const char* const* keys,
    const size_t* key_lengths, int count2, const char* const* values, const size_t* value_lengths);
void rocksdb_writebatch_wi_put(rocksdb_writebatch_wi_t* batch, const char* key, size_t key_length,
    const char* value, size_t value_length);
void rocksdb_writebatch_wi_put_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, const char* value,
    size_t value_length);
void rocksdb_writebatch_wi_put_log_data(rocksdb_writebatch_wi_t* batch, const char* blob,
    size_t length);
void rocksdb_writebatch_wi_putv(rocksdb_writebatch_wi_t* batch, int count, const char* const* keys,
    const size_t* key_lengths, int count2, const char* const* values, const size_t* value_lengths);
void rocksdb_writebatch_wi_putv_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, int count, const char* const* keys,
    const size_t* key_lengths, int count2, const char* const* values, const size_t* value_lengths);
void rocksdb_writebatch_wi_rollback_to_save_point(rocksdb_writebatch_wi_t* batch, char** errptr);
void rocksdb_writebatch_wi_set_save_point(rocksdb_writebatch_wi_t* batch);
void rocksdb_writebatch_wi_singledelete(rocksdb_writebatch_wi_t* batch, const char* key,
    size_t key_length);
void rocksdb_writebatch_wi_singledelete_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length);
void rocksdb_writebatch_wi_update_timestamps(rocksdb_writebatch_wi_t* batch, const char* timestamp,
    size_t timestamp_length, void* state, size_t (*get_ts_size)(void* state, uint32_t value),
    char** errptr);

#ifdef __cplusplus
}
#endif

#endif
