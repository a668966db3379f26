/* The functions of a shared library with which `sateen bench --peer LIB.so` measures a store.
 *
 * A library that has `sateen_peer_abi` is called through these functions and no others. The order
 * of the calls is:
 *
 * 1. `abi`, and, only if it returns SATEEN_PEER_ABI, `name`, `settings` and `options`. The
 *    benchmark refuses by name what the user asks for and the store does not have.
 * 2. `open`, once in a process.
 * 3. `put`, `delete`, `write`, `get` and cursors, from any number of threads at once; `counters`
 *    once a second; `flush` and `wait_idle` after the load and after the measured phase.
 * 4. `close`, after the last cursor is closed and every other call has returned.
 *
 * Keys and values are bytes of any value; keys are ordered by their unsigned bytes. A pointer that
 * is passed to a function is not used after it returns. Texts end in NUL and are UTF-8.
 *
 * A function that can fail returns -1 or NULL, and `error` then says why. It ends the process only
 * if the store cannot go on and has no call to fail. No exception or panic leaves a function.
 */
#ifndef SATEEN_PEER_H
#define SATEEN_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes whenever a function or a struct does. */
#define SATEEN_PEER_ABI 1u

/* An open database. */
typedef struct sateen_peer_db sateen_peer_db;

/* A position in the order of the keys of a database. One thread uses it at a time. */
typedef struct sateen_peer_cursor sateen_peer_cursor;

/* A key and its value. */
typedef struct sateen_peer_entry {
    const void *key;
    size_t key_length;
    const void *value;
    size_t value_length;
} sateen_peer_entry;

/* A change of one key: a put, or a delete if `is_delete` is not 0. */
typedef struct sateen_peer_change {
    sateen_peer_entry entry;
    int is_delete;
} sateen_peer_change;

/* What a store counts of itself since it was opened. SATEEN_PEER_UNKNOWN stands for a figure that
 * it does not count. */
#define SATEEN_PEER_UNKNOWN UINT64_MAX
typedef struct sateen_peer_figures {
    uint64_t flush_written;      /* bytes that flushes wrote */
    uint64_t compaction_read;    /* bytes that compactions read */
    uint64_t compaction_written; /* bytes that compactions wrote */
    uint64_t stalls;             /* delays and stops of writes */
    uint64_t stall_ns;           /* their length in nanoseconds */
    uint64_t barriers;           /* syncs of files and directories */
    uint64_t memtable_bytes;     /* bytes in memtables now */
    uint64_t cache_bytes;        /* bytes in the block cache now */
    uint64_t debt_bytes;         /* compaction debt in bytes now, by the store's estimate */
    uint64_t running_jobs;       /* flushes and compactions that run now */
} sateen_peer_figures;

/* Returns SATEEN_PEER_ABI. */
uint32_t sateen_peer_abi(void);

/* Returns the store's name: small letters, digits and hyphens. It names the engine in tables, and
 * the directory of its database. */
const char *sateen_peer_name(void);

/* Returns the store's name and version, as in "fjall 3.1.13". */
const char *sateen_peer_version(void);

/* Returns the benchmark's settings that the store has, separated by `;`. A setting stands alone, or
 * with its possible values: "memtable_size;compression=none|lz4". The first value is the store's
 * default. These are all settings:
 *
 *   memtable_size  bytes of a memtable
 *   memtables      the largest number of memtables, the active one included
 *   block_cache    bytes of the block cache
 *   bloom_bits     bits for each key in Bloom filters, a decimal number; 0 for no filters
 *   compression    none, lz4 or zstd
 *   wal            off: a write may be lost with the process; buffered: it survives the process;
 *                  sync: it survives power loss
 *   direct         true or false: direct I/O for reads, flushes and compactions
 *   jobs           flushes and compactions that may run at a time
 */
const char *sateen_peer_settings(void);

/* Optional. Returns the names of the store's own options, for --peer-options, separated by `;`. */
const char *sateen_peer_options(void);

/* Optional. Returns sentences that a reader of the figures must know of the store. */
const char *sateen_peer_notes(void);

/* Returns why the last failed call of this thread failed. The text is valid until the thread's next
 * call of any function of the library. */
const char *sateen_peer_error(void);

/* Opens the database in an existing directory, and creates it if the directory is empty. `settings`
 * is "name=value;name=value": every setting that `settings` returns, each with a possible value,
 * then the user's values of the store's own options. Returns NULL if it fails, also for a name or a
 * value that it does not know. */
sateen_peer_db *sateen_peer_open(const char *directory, const char *settings);

/* Closes the database and frees the handle, whether or not it fails. Returns 0 or -1. */
int sateen_peer_close(sateen_peer_db *db);

/* Writes one key. `sync` is 1 if the write must survive power loss once the call has returned. That
 * is so for every write with wal=sync and for none without. Returns 0 or -1. */
int sateen_peer_put(sateen_peer_db *db, const void *key, size_t key_length, const void *value,
                    size_t value_length, int sync);

/* Deletes one key, whether or not it exists. Returns 0 or -1. */
int sateen_peer_delete(sateen_peer_db *db, const void *key, size_t key_length, int sync);

/* Optional. Makes all changes, in their order, or none. Returns 0 or -1. */
int sateen_peer_write(sateen_peer_db *db, const sateen_peer_change *changes, size_t count,
                      int sync);

/* Reads the value of one key. Returns 1 if the key exists, 0 if not, -1 if the read failed. If it
 * exists, `*length` is the length of the value, which is in `buffer` if it fits into `capacity`
 * bytes. If it does not fit, the buffer's content is undefined. */
int sateen_peer_get(sateen_peer_db *db, const void *key, size_t key_length, void *buffer,
                    size_t capacity, size_t *length);

/* Opens a cursor, which has no position yet. Returns NULL if it fails. */
sateen_peer_cursor *sateen_peer_cursor_open(sateen_peer_db *db);

/* Moves the cursor to the first key that is not below `key`, and sees all writes that returned
 * before the call. Returns 1 and sets `*entry` if there is one, 0 if not, -1 if it fails. The entry
 * is valid until the cursor's next call. */
int sateen_peer_cursor_seek(sateen_peer_cursor *cursor, const void *key, size_t key_length,
                            sateen_peer_entry *entry);

/* Moves the cursor to the next key. Returns as `cursor_seek` does. It is called only after a call
 * that returned 1. */
int sateen_peer_cursor_next(sateen_peer_cursor *cursor, sateen_peer_entry *entry);

/* Closes the cursor. */
void sateen_peer_cursor_close(sateen_peer_cursor *cursor);

/* Moves what was written from memory into the store's files, and waits for it. Returns 0 or -1. */
int sateen_peer_flush(sateen_peer_db *db);

/* Waits until no background work is running or due. Returns 0 or -1. */
int sateen_peer_wait_idle(sateen_peer_db *db);

/* Optional. Sets the figures that the store counts; the others are SATEEN_PEER_UNKNOWN before the
 * call. Returns 0 or -1. */
int sateen_peer_counters(sateen_peer_db *db, sateen_peer_figures *figures);

#ifdef __cplusplus
}
#endif

#endif
