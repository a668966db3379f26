/* Table options, filters, caches and memory. */
#ifndef SATEEN_ROCKSDB_C_TABLE_OPTIONS_H
#define SATEEN_ROCKSDB_C_TABLE_OPTIONS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

rocksdb_memory_usage_t* rocksdb_approximate_memory_usage_create(
    rocksdb_memory_consumers_t* consumers, char** errptr);
void rocksdb_approximate_memory_usage_destroy(rocksdb_memory_usage_t* usage);
uint64_t rocksdb_approximate_memory_usage_get_cache_total(rocksdb_memory_usage_t* memory_usage);
uint64_t rocksdb_approximate_memory_usage_get_mem_table_readers_total(
    rocksdb_memory_usage_t* memory_usage);
uint64_t rocksdb_approximate_memory_usage_get_mem_table_total(rocksdb_memory_usage_t* memory_usage);
uint64_t rocksdb_approximate_memory_usage_get_mem_table_unflushed(
    rocksdb_memory_usage_t* memory_usage);
void rocksdb_block_based_options_clear_user_defined_index_factory(
    rocksdb_block_based_table_options_t* options);
rocksdb_block_based_table_options_t* rocksdb_block_based_options_create(void);
void rocksdb_block_based_options_destroy(rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_block_align(
    rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_block_restart_interval(
    rocksdb_block_based_table_options_t* options);
uint64_t rocksdb_block_based_options_get_block_size(rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_block_size_deviation(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_cache_index_and_filter_blocks(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_cache_index_and_filter_blocks_with_high_priority(
    rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_checksum(rocksdb_block_based_table_options_t* options);
double rocksdb_block_based_options_get_data_block_hash_table_util_ratio(
    rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_data_block_index_type(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_decouple_partitioned_filters(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_detect_filter_construct_corruption(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_enable_index_compression(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_fail_if_no_udi_on_open(
    rocksdb_block_based_table_options_t* options);
uint32_t rocksdb_block_based_options_get_format_version(
    rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_index_block_restart_interval(
    rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_index_block_search_type(
    rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_index_shortening(rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_index_type(rocksdb_block_based_table_options_t* options);
size_t rocksdb_block_based_options_get_initial_auto_readahead_size(
    rocksdb_block_based_table_options_t* options);
size_t rocksdb_block_based_options_get_max_auto_readahead_size(
    rocksdb_block_based_table_options_t* options);
uint64_t rocksdb_block_based_options_get_metadata_block_size(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_no_block_cache(
    rocksdb_block_based_table_options_t* options);
uint64_t rocksdb_block_based_options_get_num_file_reads_for_auto_readahead(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_optimize_filters_for_memory(
    rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_optimize_key_common_prefix(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_partition_filters(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_pin_l0_filter_and_index_blocks_in_cache(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_pin_top_level_index_and_filter(
    rocksdb_block_based_table_options_t* options);
int rocksdb_block_based_options_get_prepopulate_block_cache(
    rocksdb_block_based_table_options_t* options);
uint32_t rocksdb_block_based_options_get_read_amp_bytes_per_bit(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_separate_key_value_in_data_block(
    rocksdb_block_based_table_options_t* options);
size_t rocksdb_block_based_options_get_super_block_alignment_size(
    rocksdb_block_based_table_options_t* options);
size_t rocksdb_block_based_options_get_super_block_alignment_space_overhead_ratio(
    rocksdb_block_based_table_options_t* options);
double rocksdb_block_based_options_get_uniform_cv_threshold(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_use_delta_encoding(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_use_udi_as_primary_index(
    rocksdb_block_based_table_options_t* options);
const char* rocksdb_block_based_options_get_user_defined_index_factory_name(
    const rocksdb_block_based_table_options_t* options, size_t* name_length);
unsigned char rocksdb_block_based_options_get_verify_compression(
    rocksdb_block_based_table_options_t* options);
unsigned char rocksdb_block_based_options_get_whole_key_filtering(
    rocksdb_block_based_table_options_t* options);
void rocksdb_block_based_options_set_block_align(rocksdb_block_based_table_options_t* options,
    unsigned char value);
void rocksdb_block_based_options_set_block_cache(rocksdb_block_based_table_options_t* options,
    rocksdb_cache_t* block_cache);
void rocksdb_block_based_options_set_block_cache_compressed(
    rocksdb_block_based_table_options_t* options, rocksdb_cache_t* block_cache_compressed);
void rocksdb_block_based_options_set_block_restart_interval(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_block_size(rocksdb_block_based_table_options_t* options,
    size_t value);
void rocksdb_block_based_options_set_block_size_deviation(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_cache_index_and_filter_blocks(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_checksum(rocksdb_block_based_table_options_t* options,
    char value);
void rocksdb_block_based_options_set_data_block_hash_ratio(
    rocksdb_block_based_table_options_t* options, double value);
void rocksdb_block_based_options_set_data_block_hash_table_util_ratio(
    rocksdb_block_based_table_options_t* options, double value);
void rocksdb_block_based_options_set_data_block_index_type(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_decouple_partitioned_filters(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_detect_filter_construct_corruption(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_enable_index_compression(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_fail_if_no_udi_on_open(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_filter_policy(rocksdb_block_based_table_options_t* options,
    rocksdb_filterpolicy_t* filter_policy);
void rocksdb_block_based_options_set_format_version(rocksdb_block_based_table_options_t* options,
    int value);
void rocksdb_block_based_options_set_index_block_restart_interval(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_index_block_search_type(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_index_shortening(rocksdb_block_based_table_options_t* options,
    int value);
void rocksdb_block_based_options_set_index_type(rocksdb_block_based_table_options_t* options,
    int value);
void rocksdb_block_based_options_set_initial_auto_readahead_size(
    rocksdb_block_based_table_options_t* options, size_t value);
void rocksdb_block_based_options_set_max_auto_readahead_size(
    rocksdb_block_based_table_options_t* options, size_t value);
void rocksdb_block_based_options_set_metadata_block_size(
    rocksdb_block_based_table_options_t* options, uint64_t value);
void rocksdb_block_based_options_set_no_block_cache(rocksdb_block_based_table_options_t* options,
    unsigned char value);
void rocksdb_block_based_options_set_num_file_reads_for_auto_readahead(
    rocksdb_block_based_table_options_t* options, uint64_t value);
void rocksdb_block_based_options_set_optimize_filters_for_memory(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_optimize_key_common_prefix(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_partition_filters(rocksdb_block_based_table_options_t* options,
    unsigned char value);
void rocksdb_block_based_options_set_partition_pinning_tier(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_pin_top_level_index_and_filter(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_prepopulate_block_cache(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_read_amp_bytes_per_bit(
    rocksdb_block_based_table_options_t* options, uint32_t value);
void rocksdb_block_based_options_set_separate_key_value_in_data_block(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_super_block_alignment_size(
    rocksdb_block_based_table_options_t* options, size_t value);
void rocksdb_block_based_options_set_super_block_alignment_space_overhead_ratio(
    rocksdb_block_based_table_options_t* options, size_t value);
void rocksdb_block_based_options_set_top_level_index_pinning_tier(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_uniform_cv_threshold(
    rocksdb_block_based_table_options_t* options, double value);
void rocksdb_block_based_options_set_unpartitioned_pinning_tier(
    rocksdb_block_based_table_options_t* options, int value);
void rocksdb_block_based_options_set_use_delta_encoding(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_use_udi_as_primary_index(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_user_defined_index_factory_from_string(
    rocksdb_block_based_table_options_t* options, const char* value, size_t value_length,
    char** errptr);
void rocksdb_block_based_options_set_verify_compression(
    rocksdb_block_based_table_options_t* options, unsigned char value);
void rocksdb_block_based_options_set_whole_key_filtering(
    rocksdb_block_based_table_options_t* options, unsigned char value);
rocksdb_cache_t* rocksdb_cache_create_hyper_clock(size_t capacity, size_t estimated_entry_charge);
rocksdb_cache_t* rocksdb_cache_create_hyper_clock_opts(
    const rocksdb_hyper_clock_cache_options_t* options);
rocksdb_cache_t* rocksdb_cache_create_lru(size_t capacity);
rocksdb_cache_t* rocksdb_cache_create_lru_opts(const rocksdb_lru_cache_options_t* options);
rocksdb_cache_t* rocksdb_cache_create_lru_with_strict_capacity_limit(size_t capacity);
void rocksdb_cache_destroy(rocksdb_cache_t* cache);
void rocksdb_cache_disown_data(rocksdb_cache_t* cache);
size_t rocksdb_cache_get_capacity(const rocksdb_cache_t* cache);
size_t rocksdb_cache_get_occupancy_count(const rocksdb_cache_t* cache);
size_t rocksdb_cache_get_pinned_usage(const rocksdb_cache_t* cache);
size_t rocksdb_cache_get_table_address_count(const rocksdb_cache_t* cache);
size_t rocksdb_cache_get_usage(const rocksdb_cache_t* cache);
void rocksdb_cache_set_capacity(rocksdb_cache_t* cache, size_t capacity);
rocksdb_cuckoo_table_options_t* rocksdb_cuckoo_options_create(void);
void rocksdb_cuckoo_options_destroy(rocksdb_cuckoo_table_options_t* options);
uint32_t rocksdb_cuckoo_options_get_cuckoo_block_size(rocksdb_cuckoo_table_options_t* options);
double rocksdb_cuckoo_options_get_hash_table_ratio(rocksdb_cuckoo_table_options_t* options);
unsigned char rocksdb_cuckoo_options_get_identity_as_first_hash(
    rocksdb_cuckoo_table_options_t* options);
uint32_t rocksdb_cuckoo_options_get_max_search_depth(rocksdb_cuckoo_table_options_t* options);
unsigned char rocksdb_cuckoo_options_get_use_module_hash(rocksdb_cuckoo_table_options_t* options);
void rocksdb_cuckoo_options_set_cuckoo_block_size(rocksdb_cuckoo_table_options_t* options,
    uint32_t value);
void rocksdb_cuckoo_options_set_hash_ratio(rocksdb_cuckoo_table_options_t* options, double value);
void rocksdb_cuckoo_options_set_hash_table_ratio(rocksdb_cuckoo_table_options_t* options,
    double value);
void rocksdb_cuckoo_options_set_identity_as_first_hash(rocksdb_cuckoo_table_options_t* options,
    unsigned char value);
void rocksdb_cuckoo_options_set_max_search_depth(rocksdb_cuckoo_table_options_t* options,
    uint32_t value);
void rocksdb_cuckoo_options_set_use_module_hash(rocksdb_cuckoo_table_options_t* options,
    unsigned char value);
rocksdb_file_checksum_gen_factory_t* rocksdb_file_checksum_gen_crc32c_factory_create(void);
void rocksdb_file_checksum_gen_factory_destroy(rocksdb_file_checksum_gen_factory_t* factory);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom(double bits_per_key);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom_full(double bits_per_key);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_ribbon(double bloom_equivalent_bits_per_key);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_ribbon_hybrid(
    double bloom_equivalent_bits_per_key, int bloom_before_level);
void rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_t* filterpolicy);
rocksdb_hyper_clock_cache_options_t* rocksdb_hyper_clock_cache_options_create(size_t capacity,
    size_t estimated_entry_charge);
void rocksdb_hyper_clock_cache_options_destroy(rocksdb_hyper_clock_cache_options_t* options);
void rocksdb_hyper_clock_cache_options_set_capacity(rocksdb_hyper_clock_cache_options_t* options,
    size_t value);
void rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(
    rocksdb_hyper_clock_cache_options_t* options, size_t value);
void rocksdb_hyper_clock_cache_options_set_memory_allocator(
    rocksdb_hyper_clock_cache_options_t* options, rocksdb_memory_allocator_t* memory_allocator);
void rocksdb_hyper_clock_cache_options_set_num_shard_bits(
    rocksdb_hyper_clock_cache_options_t* options, int value);
rocksdb_memory_allocator_t* rocksdb_jemalloc_nodump_allocator_create(char** errptr);
rocksdb_lru_cache_options_t* rocksdb_lru_cache_options_create(void);
void rocksdb_lru_cache_options_destroy(rocksdb_lru_cache_options_t* options);
void rocksdb_lru_cache_options_set_capacity(rocksdb_lru_cache_options_t* options, size_t value);
void rocksdb_lru_cache_options_set_memory_allocator(rocksdb_lru_cache_options_t* options,
    rocksdb_memory_allocator_t* memory_allocator);
void rocksdb_lru_cache_options_set_num_shard_bits(rocksdb_lru_cache_options_t* options, int value);
void rocksdb_memory_allocator_destroy(rocksdb_memory_allocator_t* memory_allocator);
void rocksdb_memory_consumers_add_cache(rocksdb_memory_consumers_t* consumers,
    rocksdb_cache_t* cache);
void rocksdb_memory_consumers_add_db(rocksdb_memory_consumers_t* consumers, rocksdb_t* db);
rocksdb_memory_consumers_t* rocksdb_memory_consumers_create(void);
void rocksdb_memory_consumers_destroy(rocksdb_memory_consumers_t* consumers);
#if SATEEN_ROCKSDB_ABI >= 11
rocksdb_slicetransform_t* rocksdb_slicetransform_create(void* state, void (*destructor)(void*
    state), char* (*transform)(void* state, const char* key, size_t length, size_t* prefix_length),
    unsigned char (*in_domain)(void* state, const char* key, size_t length), const char*
    (*name)(void* state));
#endif
rocksdb_slicetransform_t* rocksdb_slicetransform_create_fixed_prefix(size_t value);
rocksdb_slicetransform_t* rocksdb_slicetransform_create_noop(void);
void rocksdb_slicetransform_destroy(rocksdb_slicetransform_t* slicetransform);
void rocksdb_sst_partitioner_factory_destroy(rocksdb_sst_partitioner_factory_t* factory);
rocksdb_sst_partitioner_factory_t* rocksdb_sst_partitioner_fixed_prefix_factory_create(
    size_t prefix_length);
void rocksdb_table_properties_collector_factory_destroy(
    rocksdb_table_properties_collector_factory_t* factory);
size_t rocksdb_write_buffer_manager_buffer_size(rocksdb_write_buffer_manager_t* manager);
bool rocksdb_write_buffer_manager_cost_to_cache(rocksdb_write_buffer_manager_t* manager);
rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create(size_t buffer_size,
    bool allow_stall);
rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create_with_cache(size_t buffer_size,
    const rocksdb_cache_t* cache, bool allow_stall);
rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create_with_cache_and_policy(
    size_t buffer_size, const rocksdb_cache_t* cache, bool allow_stall, int flush_policy);
rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create_with_policy(size_t buffer_size,
    bool allow_stall, int flush_policy);
void rocksdb_write_buffer_manager_destroy(rocksdb_write_buffer_manager_t* manager);
size_t rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(
    rocksdb_write_buffer_manager_t* manager);
bool rocksdb_write_buffer_manager_enabled(rocksdb_write_buffer_manager_t* manager);
int rocksdb_write_buffer_manager_flush_policy(rocksdb_write_buffer_manager_t* manager);
size_t rocksdb_write_buffer_manager_memory_usage(rocksdb_write_buffer_manager_t* manager);
size_t rocksdb_write_buffer_manager_mutable_memtable_memory_usage(
    rocksdb_write_buffer_manager_t* manager);
void rocksdb_write_buffer_manager_set_allow_stall(rocksdb_write_buffer_manager_t* manager,
    bool new_allow_stall);
void rocksdb_write_buffer_manager_set_buffer_size(rocksdb_write_buffer_manager_t* manager,
    size_t new_size);
void rocksdb_write_buffer_manager_set_flush_policy(rocksdb_write_buffer_manager_t* manager,
    int flush_policy);

#ifdef __cplusplus
}
#endif

#endif
