/* The version of RocksDB whose signatures the header has: 7 to 11. A program chooses an older one
 * by defining SATEEN_ROCKSDB_ABI before it includes the header. 8 stands for RocksDB 8.5 or
 * newer. */
#ifndef SATEEN_ROCKSDB_C_ABI_H
#define SATEEN_ROCKSDB_C_ABI_H

/* The version whose signatures the library has under RocksDB's own names. scripts/install-capi
 * --abi writes another number here. */
#define SATEEN_ROCKSDB_ABI_INSTALLED 11

#ifndef SATEEN_ROCKSDB_ABI
#define SATEEN_ROCKSDB_ABI SATEEN_ROCKSDB_ABI_INSTALLED
#endif

#if SATEEN_ROCKSDB_ABI < 7 || SATEEN_ROCKSDB_ABI > 11
#error "SATEEN_ROCKSDB_ABI must be 7, 8, 9, 10 or 11"
#elif SATEEN_ROCKSDB_ABI > SATEEN_ROCKSDB_ABI_INSTALLED
#error "SATEEN_ROCKSDB_ABI is newer than the library that was installed with this header"
#endif

#endif
