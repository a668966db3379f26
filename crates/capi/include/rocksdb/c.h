/* RocksDB's C interface, as Sateen has it: all functions of RocksDB 7.8 to 11.12. Those that are
 * not there yet link, too: they say `Not implemented` through errptr, or stop the program where
 * they have none. What each option becomes is in docs/c_abi/options.md.
 *
 * Errors: a function that takes errptr leaves there a text to be freed with rocksdb_free if it
 * fails; what was there is freed. Booleans are unsigned char. Where a signature has changed, it is
 * that of RocksDB 11, or of the version that SATEEN_ROCKSDB_ABI names: c/abi.h. */
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
