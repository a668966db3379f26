/* Transactions, optimistic and pessimistic. */
#ifndef SATEEN_ROCKSDB_C_TRANSACTIONS_H
#define SATEEN_ROCKSDB_C_TRANSACTIONS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

rocksdb_transaction_t* rocksdb_optimistictransaction_begin(rocksdb_optimistictransactiondb_t* db,
    const rocksdb_writeoptions_t* options,
    const rocksdb_optimistictransaction_options_t* transaction_options,
    rocksdb_transaction_t* old_transaction);
rocksdb_optimistictransaction_options_t* rocksdb_optimistictransaction_options_create(void);
void rocksdb_optimistictransaction_options_destroy(
    rocksdb_optimistictransaction_options_t* options);
unsigned char rocksdb_optimistictransaction_options_get_set_snapshot(
    rocksdb_optimistictransaction_options_t* options);
void rocksdb_optimistictransaction_options_set_set_snapshot(
    rocksdb_optimistictransaction_options_t* options, unsigned char value);
rocksdb_checkpoint_t* rocksdb_optimistictransactiondb_checkpoint_object_create(
    rocksdb_optimistictransactiondb_t* db, char** errptr);
void rocksdb_optimistictransactiondb_close(rocksdb_optimistictransactiondb_t* db);
void rocksdb_optimistictransactiondb_close_base_db(rocksdb_t* base_db);
rocksdb_t* rocksdb_optimistictransactiondb_get_base_db(rocksdb_optimistictransactiondb_t* db);
size_t rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(
    rocksdb_optimistictransactiondb_lock_buckets_t* lock_buckets);
rocksdb_optimistictransactiondb_lock_buckets_t* rocksdb_optimistictransactiondb_lock_buckets_create(
    size_t bucket_count, unsigned char cache_aligned);
void rocksdb_optimistictransactiondb_lock_buckets_destroy(
    rocksdb_optimistictransactiondb_lock_buckets_t* lock_buckets);
rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open(
    const rocksdb_options_t* options, const char* name, char** errptr);
rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open_column_families(
    const rocksdb_options_t* options, const char* name, int family_count,
    const char* const* family_names, const rocksdb_options_t* const* family_options,
    rocksdb_column_family_handle_t** handles, char** errptr);
rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
    const rocksdb_options_t* options,
    const rocksdb_optimistictransactiondb_options_t* otxn_db_options, const char* name,
    int family_count, const char* const* family_names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles,
    char** errptr);
rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open_with_otxn_db_options(
    const rocksdb_options_t* options,
    const rocksdb_optimistictransactiondb_options_t* otxn_db_options, const char* name,
    char** errptr);
rocksdb_optimistictransactiondb_options_t* rocksdb_optimistictransactiondb_options_create(void);
void rocksdb_optimistictransactiondb_options_destroy(
    rocksdb_optimistictransactiondb_options_t* options);
uint32_t rocksdb_optimistictransactiondb_options_get_occ_lock_buckets(
    rocksdb_optimistictransactiondb_options_t* options);
int rocksdb_optimistictransactiondb_options_get_validate_policy(
    rocksdb_optimistictransactiondb_options_t* options);
void rocksdb_optimistictransactiondb_options_set_occ_lock_buckets(
    rocksdb_optimistictransactiondb_options_t* options, uint32_t value);
void rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(
    rocksdb_optimistictransactiondb_options_t* options,
    rocksdb_optimistictransactiondb_lock_buckets_t* lock_buckets);
void rocksdb_optimistictransactiondb_options_set_validate_policy(
    rocksdb_optimistictransactiondb_options_t* options, int value);
int rocksdb_optimistictransactiondb_property_int(rocksdb_optimistictransactiondb_t* db,
    const char* name, uint64_t* value_out);
char* rocksdb_optimistictransactiondb_property_value(rocksdb_optimistictransactiondb_t* db,
    const char* name);
void rocksdb_optimistictransactiondb_write(rocksdb_optimistictransactiondb_t* db,
    const rocksdb_writeoptions_t* options, rocksdb_writebatch_t* batch, char** errptr);
rocksdb_transaction_t* rocksdb_transaction_begin(rocksdb_transactiondb_t* db,
    const rocksdb_writeoptions_t* options, const rocksdb_transaction_options_t* transaction_options,
    rocksdb_transaction_t* old_transaction);
void rocksdb_transaction_commit(rocksdb_transaction_t* transaction, char** errptr);
rocksdb_iterator_t* rocksdb_transaction_create_iterator(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options);
rocksdb_iterator_t* rocksdb_transaction_create_iterator_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family);
void rocksdb_transaction_delete(rocksdb_transaction_t* transaction, const char* key,
    size_t key_length, char** errptr);
void rocksdb_transaction_delete_cf(rocksdb_transaction_t* transaction,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, char** errptr);
void rocksdb_transaction_destroy(rocksdb_transaction_t* transaction);
char* rocksdb_transaction_get(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const char* key, size_t key_length, size_t* value_length,
    char** errptr);
char* rocksdb_transaction_get_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, size_t* value_length, char** errptr);
char* rocksdb_transaction_get_for_update(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const char* key, size_t key_length, size_t* value_length,
    unsigned char exclusive, char** errptr);
char* rocksdb_transaction_get_for_update_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, size_t* value_length, unsigned char exclusive, char** errptr);
char* rocksdb_transaction_get_name(rocksdb_transaction_t* transaction, size_t* name_length);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const char* key, size_t key_length, char** errptr);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, char** errptr);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_for_update(
    rocksdb_transaction_t* transaction, const rocksdb_readoptions_t* options, const char* key,
    size_t key_length, unsigned char exclusive, char** errptr);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_for_update_cf(
    rocksdb_transaction_t* transaction, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length,
    unsigned char exclusive, char** errptr);
const rocksdb_snapshot_t* rocksdb_transaction_get_snapshot(rocksdb_transaction_t* transaction);
rocksdb_writebatch_wi_t* rocksdb_transaction_get_writebatch_wi(rocksdb_transaction_t* transaction);
void rocksdb_transaction_merge(rocksdb_transaction_t* transaction, const char* key,
    size_t key_length, const char* value, size_t value_length, char** errptr);
void rocksdb_transaction_merge_cf(rocksdb_transaction_t* transaction,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, const char* value,
    size_t value_length, char** errptr);
void rocksdb_transaction_multi_get(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, size_t count, const char* const* keys,
    const size_t* key_lengths, char** values, size_t* value_lengths, char** errors);
void rocksdb_transaction_multi_get_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const rocksdb_column_family_handle_t* const* families,
    size_t count, const char* const* keys, const size_t* key_lengths, char** values,
    size_t* value_lengths, char** errors);
void rocksdb_transaction_multi_get_for_update(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, size_t count, const char* const* keys,
    const size_t* key_lengths, char** values, size_t* value_lengths, char** errors);
void rocksdb_transaction_multi_get_for_update_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const rocksdb_column_family_handle_t* const* families,
    size_t count, const char* const* keys, const size_t* key_lengths, char** values,
    size_t* value_lengths, char** errors);
rocksdb_transaction_options_t* rocksdb_transaction_options_create(void);
void rocksdb_transaction_options_destroy(rocksdb_transaction_options_t* options);
unsigned char rocksdb_transaction_options_get_commit_bypass_memtable(
    rocksdb_transaction_options_t* options);
unsigned char rocksdb_transaction_options_get_deadlock_detect(
    rocksdb_transaction_options_t* options);
int64_t rocksdb_transaction_options_get_deadlock_detect_depth(
    rocksdb_transaction_options_t* options);
int64_t rocksdb_transaction_options_get_deadlock_timeout_us(rocksdb_transaction_options_t* options);
int64_t rocksdb_transaction_options_get_expiration(rocksdb_transaction_options_t* options);
uint64_t rocksdb_transaction_options_get_large_txn_commit_optimize_byte_threshold(
    rocksdb_transaction_options_t* options);
uint32_t rocksdb_transaction_options_get_large_txn_commit_optimize_threshold(
    rocksdb_transaction_options_t* options);
int64_t rocksdb_transaction_options_get_lock_timeout(rocksdb_transaction_options_t* options);
size_t rocksdb_transaction_options_get_max_write_batch_size(rocksdb_transaction_options_t* options);
unsigned char rocksdb_transaction_options_get_set_snapshot(rocksdb_transaction_options_t* options);
unsigned char rocksdb_transaction_options_get_skip_concurrency_control(
    rocksdb_transaction_options_t* options);
unsigned char rocksdb_transaction_options_get_skip_prepare(rocksdb_transaction_options_t* options);
unsigned char rocksdb_transaction_options_get_use_only_the_last_commit_time_batch_for_recovery(
    rocksdb_transaction_options_t* options);
int64_t rocksdb_transaction_options_get_write_batch_flush_threshold(
    rocksdb_transaction_options_t* options);
unsigned char rocksdb_transaction_options_get_write_batch_track_timestamp_size(
    rocksdb_transaction_options_t* options);
void rocksdb_transaction_options_set_commit_bypass_memtable(rocksdb_transaction_options_t* options,
    unsigned char value);
void rocksdb_transaction_options_set_deadlock_detect(rocksdb_transaction_options_t* options,
    unsigned char value);
void rocksdb_transaction_options_set_deadlock_detect_depth(rocksdb_transaction_options_t* options,
    int64_t value);
void rocksdb_transaction_options_set_deadlock_timeout_us(rocksdb_transaction_options_t* options,
    int64_t value);
void rocksdb_transaction_options_set_expiration(rocksdb_transaction_options_t* options,
    int64_t value);
void rocksdb_transaction_options_set_large_txn_commit_optimize_byte_threshold(
    rocksdb_transaction_options_t* options, uint64_t value);
void rocksdb_transaction_options_set_large_txn_commit_optimize_threshold(
    rocksdb_transaction_options_t* options, uint32_t value);
void rocksdb_transaction_options_set_lock_timeout(rocksdb_transaction_options_t* options,
    int64_t value);
void rocksdb_transaction_options_set_max_write_batch_size(rocksdb_transaction_options_t* options,
    size_t value);
void rocksdb_transaction_options_set_set_snapshot(rocksdb_transaction_options_t* options,
    unsigned char value);
void rocksdb_transaction_options_set_skip_concurrency_control(
    rocksdb_transaction_options_t* options, unsigned char value);
void rocksdb_transaction_options_set_skip_prepare(rocksdb_transaction_options_t* options,
    unsigned char value);
void rocksdb_transaction_options_set_use_only_the_last_commit_time_batch_for_recovery(
    rocksdb_transaction_options_t* options, unsigned char value);
void rocksdb_transaction_options_set_write_batch_flush_threshold(
    rocksdb_transaction_options_t* options, int64_t value);
void rocksdb_transaction_options_set_write_batch_track_timestamp_size(
    rocksdb_transaction_options_t* options, unsigned char value);
void rocksdb_transaction_prepare(rocksdb_transaction_t* transaction, char** errptr);
void rocksdb_transaction_put(rocksdb_transaction_t* transaction, const char* key, size_t key_length,
    const char* value, size_t value_length, char** errptr);
void rocksdb_transaction_put_cf(rocksdb_transaction_t* transaction,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_length, const char* value,
    size_t value_length, char** errptr);
void rocksdb_transaction_put_log_data(rocksdb_transaction_t* transaction, const char* blob,
    size_t length);
void rocksdb_transaction_rebuild_from_writebatch(rocksdb_transaction_t* transaction,
    rocksdb_writebatch_t* writebatch, char** errptr);
void rocksdb_transaction_rebuild_from_writebatch_wi(rocksdb_transaction_t* transaction,
    rocksdb_writebatch_wi_t* batch, char** errptr);
void rocksdb_transaction_rollback(rocksdb_transaction_t* transaction, char** errptr);
void rocksdb_transaction_rollback_to_savepoint(rocksdb_transaction_t* transaction, char** errptr);
void rocksdb_transaction_set_commit_timestamp(rocksdb_transaction_t* transaction,
    uint64_t commit_timestamp);
void rocksdb_transaction_set_name(rocksdb_transaction_t* transaction, const char* name,
    size_t name_length, char** errptr);
void rocksdb_transaction_set_read_timestamp_for_validation(rocksdb_transaction_t* transaction,
    uint64_t read_timestamp);
void rocksdb_transaction_set_savepoint(rocksdb_transaction_t* transaction);
rocksdb_checkpoint_t* rocksdb_transactiondb_checkpoint_object_create(rocksdb_transactiondb_t* db,
    char** errptr);
void rocksdb_transactiondb_close(rocksdb_transactiondb_t* db);
void rocksdb_transactiondb_close_base_db(rocksdb_t* base_db);
rocksdb_column_family_handle_t* rocksdb_transactiondb_create_column_family(
    rocksdb_transactiondb_t* db, const rocksdb_options_t* family_options, const char* family_name,
    char** errptr);
rocksdb_iterator_t* rocksdb_transactiondb_create_iterator(rocksdb_transactiondb_t* db,
    const rocksdb_readoptions_t* options);
rocksdb_iterator_t* rocksdb_transactiondb_create_iterator_cf(rocksdb_transactiondb_t* db,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family);
const rocksdb_snapshot_t* rocksdb_transactiondb_create_snapshot(rocksdb_transactiondb_t* db);
void rocksdb_transactiondb_delete(rocksdb_transactiondb_t* db,
    const rocksdb_writeoptions_t* options, const char* key, size_t key_length, char** errptr);
void rocksdb_transactiondb_delete_cf(rocksdb_transactiondb_t* db,
    const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, char** errptr);
void rocksdb_transactiondb_flush(rocksdb_transactiondb_t* db, const rocksdb_flushoptions_t* options,
    char** errptr);
void rocksdb_transactiondb_flush_cf(rocksdb_transactiondb_t* db,
    const rocksdb_flushoptions_t* options, rocksdb_column_family_handle_t* family, char** errptr);
void rocksdb_transactiondb_flush_cfs(rocksdb_transactiondb_t* db,
    const rocksdb_flushoptions_t* options, rocksdb_column_family_handle_t** families,
    int family_count, char** errptr);
void rocksdb_transactiondb_flush_wal(rocksdb_transactiondb_t* db, unsigned char sync,
    char** errptr);
void rocksdb_transactiondb_flush_wal_with_options(rocksdb_transactiondb_t* db,
    const rocksdb_flushwaloptions_t* options, char** errptr);
char* rocksdb_transactiondb_get(rocksdb_transactiondb_t* db, const rocksdb_readoptions_t* options,
    const char* key, size_t key_length, size_t* value_length, char** errptr);
rocksdb_t* rocksdb_transactiondb_get_base_db(rocksdb_transactiondb_t* db);
char* rocksdb_transactiondb_get_cf(rocksdb_transactiondb_t* db,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, size_t* value_length, char** errptr);
rocksdb_pinnableslice_t* rocksdb_transactiondb_get_pinned(rocksdb_transactiondb_t* db,
    const rocksdb_readoptions_t* options, const char* key, size_t key_length, char** errptr);
rocksdb_pinnableslice_t* rocksdb_transactiondb_get_pinned_cf(rocksdb_transactiondb_t* db,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, char** errptr);
rocksdb_transaction_t** rocksdb_transactiondb_get_prepared_transactions(rocksdb_transactiondb_t* db,
    size_t* count);
void rocksdb_transactiondb_merge(rocksdb_transactiondb_t* db, const rocksdb_writeoptions_t* options,
    const char* key, size_t key_length, const char* value, size_t value_length, char** errptr);
void rocksdb_transactiondb_merge_cf(rocksdb_transactiondb_t* db,
    const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, const char* value, size_t value_length, char** errptr);
void rocksdb_transactiondb_multi_get(rocksdb_transactiondb_t* db,
    const rocksdb_readoptions_t* options, size_t count, const char* const* keys,
    const size_t* key_lengths, char** values, size_t* value_lengths, char** errors);
void rocksdb_transactiondb_multi_get_cf(rocksdb_transactiondb_t* db,
    const rocksdb_readoptions_t* options, const rocksdb_column_family_handle_t* const* families,
    size_t count, const char* const* keys, const size_t* key_lengths, char** values,
    size_t* value_lengths, char** errors);
rocksdb_transactiondb_t* rocksdb_transactiondb_open(const rocksdb_options_t* options,
    const rocksdb_transactiondb_options_t* txn_db_options, const char* name, char** errptr);
rocksdb_transactiondb_t* rocksdb_transactiondb_open_column_families(
    const rocksdb_options_t* options, const rocksdb_transactiondb_options_t* txn_db_options,
    const char* name, int family_count, const char* const* family_names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles,
    char** errptr);
rocksdb_transactiondb_options_t* rocksdb_transactiondb_options_create(void);
void rocksdb_transactiondb_options_destroy(rocksdb_transactiondb_options_t* options);
int64_t rocksdb_transactiondb_options_get_default_lock_timeout(
    rocksdb_transactiondb_options_t* options);
int64_t rocksdb_transactiondb_options_get_default_write_batch_flush_threshold(
    rocksdb_transactiondb_options_t* options);
unsigned char rocksdb_transactiondb_options_get_enable_udt_validation(
    rocksdb_transactiondb_options_t* options);
uint32_t rocksdb_transactiondb_options_get_max_num_deadlocks(
    rocksdb_transactiondb_options_t* options);
int64_t rocksdb_transactiondb_options_get_max_num_locks(rocksdb_transactiondb_options_t* options);
size_t rocksdb_transactiondb_options_get_num_stripes(rocksdb_transactiondb_options_t* options);
unsigned char rocksdb_transactiondb_options_get_rollback_merge_operands(
    rocksdb_transactiondb_options_t* options);
unsigned char rocksdb_transactiondb_options_get_skip_concurrency_control(
    rocksdb_transactiondb_options_t* options);
int64_t rocksdb_transactiondb_options_get_transaction_lock_timeout(
    rocksdb_transactiondb_options_t* options);
uint32_t rocksdb_transactiondb_options_get_txn_commit_bypass_memtable_threshold(
    rocksdb_transactiondb_options_t* options);
unsigned char rocksdb_transactiondb_options_get_use_per_key_point_lock_mgr(
    rocksdb_transactiondb_options_t* options);
int rocksdb_transactiondb_options_get_write_policy(rocksdb_transactiondb_options_t* options);
void rocksdb_transactiondb_options_set_default_lock_timeout(
    rocksdb_transactiondb_options_t* options, int64_t value);
void rocksdb_transactiondb_options_set_default_write_batch_flush_threshold(
    rocksdb_transactiondb_options_t* options, int64_t value);
void rocksdb_transactiondb_options_set_enable_udt_validation(
    rocksdb_transactiondb_options_t* options, unsigned char value);
void rocksdb_transactiondb_options_set_max_num_deadlocks(rocksdb_transactiondb_options_t* options,
    uint32_t value);
void rocksdb_transactiondb_options_set_max_num_locks(rocksdb_transactiondb_options_t* options,
    int64_t value);
void rocksdb_transactiondb_options_set_num_stripes(rocksdb_transactiondb_options_t* options,
    size_t value);
void rocksdb_transactiondb_options_set_rollback_merge_operands(
    rocksdb_transactiondb_options_t* options, unsigned char value);
void rocksdb_transactiondb_options_set_skip_concurrency_control(
    rocksdb_transactiondb_options_t* options, unsigned char value);
void rocksdb_transactiondb_options_set_transaction_lock_timeout(
    rocksdb_transactiondb_options_t* options, int64_t value);
void rocksdb_transactiondb_options_set_txn_commit_bypass_memtable_threshold(
    rocksdb_transactiondb_options_t* options, uint32_t value);
void rocksdb_transactiondb_options_set_use_per_key_point_lock_mgr(
    rocksdb_transactiondb_options_t* options, unsigned char value);
void rocksdb_transactiondb_options_set_write_policy(rocksdb_transactiondb_options_t* options,
    int value);
int rocksdb_transactiondb_property_int(rocksdb_transactiondb_t* db, const char* name,
    uint64_t* value_out);
char* rocksdb_transactiondb_property_value(rocksdb_transactiondb_t* db, const char* name);
void rocksdb_transactiondb_put(rocksdb_transactiondb_t* db, const rocksdb_writeoptions_t* options,
    const char* key, size_t key_length, const char* value, size_t value_length, char** errptr);
void rocksdb_transactiondb_put_cf(rocksdb_transactiondb_t* db,
    const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t* family, const char* key,
    size_t key_length, const char* value, size_t value_length, char** errptr);
void rocksdb_transactiondb_release_snapshot(rocksdb_transactiondb_t* db,
    const rocksdb_snapshot_t* snapshot);
void rocksdb_transactiondb_write(rocksdb_transactiondb_t* db, const rocksdb_writeoptions_t* options,
    rocksdb_writebatch_t* batch, char** errptr);

#ifdef __cplusplus
}
#endif

#endif
