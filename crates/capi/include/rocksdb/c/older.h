/* The signatures of functions in older versions of RocksDB, for SATEEN_ROCKSDB_ABI. The library
 * has each older function under a name of its own as well. A program that chose an older version
 * than the library's calls it by that name. */
#ifndef SATEEN_ROCKSDB_C_OLDER_H
#define SATEEN_ROCKSDB_C_OLDER_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if SATEEN_ROCKSDB_ABI < SATEEN_ROCKSDB_ABI_INSTALLED
#define SATEEN_ROCKSDB_SYMBOL(name) __asm__(name)
#else
#define SATEEN_ROCKSDB_SYMBOL(name)
#endif

#if SATEEN_ROCKSDB_ABI < 11
rocksdb_slicetransform_t* rocksdb_slicetransform_create(void* state, void (*destructor)(void*
    state), char* (*transform)(void* state, const char* key, size_t length, size_t* prefix_length),
    unsigned char (*in_domain)(void* state, const char* key, size_t length),
    unsigned char (*in_range)(void* state, const char* key, size_t length), const char*
    (*name)(void* state)) SATEEN_ROCKSDB_SYMBOL("rocksdb_slicetransform_create_abi10");
#endif

#if SATEEN_ROCKSDB_ABI < 9
void rocksdb_enable_file_deletions(rocksdb_t* db, unsigned char force, char** errptr)
    SATEEN_ROCKSDB_SYMBOL("rocksdb_enable_file_deletions_abi8");
#endif

#if SATEEN_ROCKSDB_ABI < 8
void rocksdb_options_set_plain_table_factory(rocksdb_options_t* options, uint32_t value, int value2,
    double value3, size_t value4)
    SATEEN_ROCKSDB_SYMBOL("rocksdb_options_set_plain_table_factory_abi7");
#endif

#ifdef __cplusplus
}
#endif

#endif
