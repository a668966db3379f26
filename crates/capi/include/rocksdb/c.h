/* RocksDB's C interface with Sateen behind it: all functions of RocksDB 7.8 to 11.12. Functions
 * that are not implemented link as well. They report `Not implemented` through errptr, or end the
 * program if they have no errptr. docs/c_abi/options.md says what each option becomes.
 *
 * Errors: a function that fails frees the text at errptr and stores a new one there, to be freed
 * with rocksdb_free. Booleans are unsigned char. A function whose signature has changed has that
 * of RocksDB 11, or of the version that SATEEN_ROCKSDB_ABI names: c/abi.h. */
#ifndef SATEEN_ROCKSDB_C_H
#define SATEEN_ROCKSDB_C_H

#include "c/types.h"
#include "c/options_set.h"
#include "c/options_get.h"
#include "c/table_options.h"
#include "c/calls.h"
#include "c/database.h"
#include "c/batches.h"
#include "c/transactions.h"
#include "c/tools.h"
#include "c/events.h"
#include "c/older.h"

#endif
