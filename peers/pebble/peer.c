/* The functions of sateen_peer.h around those that Go exports, whose types have no `const`.
 *
 * Go gives an error as a text from malloc; it is kept here until the thread's next error. */
#include "../sateen_peer.h"
#include "_cgo_export.h"

#include <stdlib.h>

struct sateen_peer_cursor {
    uintptr_t iterator; /* 0 before the first seek */
    void *buffer;       /* the key and, after it, the value */
    size_t capacity;
};

static _Thread_local char *why;

static int done(char *error) {
    if (!error) return 0;
    free(why);
    why = error;
    return -1;
}

uint32_t sateen_peer_abi(void) { return SATEEN_PEER_ABI; }

const char *sateen_peer_name(void) { return "pebble"; }

const char *sateen_peer_version(void) {
    static _Thread_local char *version;
    if (!version) version = pebbleVersion();
    return version;
}

const char *sateen_peer_settings(void) {
    return "memtable_size;memtables;block_cache;bloom_bits;compression=none|zstd;wal=off|sync;jobs";
}

const char *sateen_peer_options(void) {
    return "block_size;l0_compaction_threshold;l0_stop_writes_threshold;lbase_max_bytes;"
           "target_file_size";
}

const char *sateen_peer_notes(void) {
    return "pebble has buffered I/O and runs in Go: each call crosses from C to Go, which costs a "
           "fraction of a microsecond, and its processor time includes the garbage collector. It "
           "keeps up to 32 KiB of WAL records in memory if a write is not synced, so it has no "
           "--wal buffered. Each scan opens an iterator.";
}

const char *sateen_peer_error(void) { return why ? why : ""; }

sateen_peer_db *sateen_peer_open(const char *directory, const char *settings) {
    static char opened; /* Go keeps the one database of the process. */
    if (done(pebbleOpen((char *)directory, (char *)settings))) return NULL;
    return (sateen_peer_db *)&opened;
}

int sateen_peer_close(sateen_peer_db *db) {
    (void)db;
    return done(pebbleClose());
}

int sateen_peer_put(sateen_peer_db *db, const void *key, size_t key_length, const void *value,
                    size_t value_length, int sync) {
    (void)db;
    return done(pebblePut((void *)key, key_length, (void *)value, value_length, sync));
}

int sateen_peer_delete(sateen_peer_db *db, const void *key, size_t key_length, int sync) {
    (void)db;
    return done(pebbleDelete((void *)key, key_length, sync));
}

int sateen_peer_write(sateen_peer_db *db, const sateen_peer_change *changes, size_t count,
                      int sync) {
    (void)db;
    return done(pebbleWrite((sateen_peer_change *)changes, count, sync));
}

int sateen_peer_get(sateen_peer_db *db, const void *key, size_t key_length, void *buffer,
                    size_t capacity, size_t *length) {
    (void)db;
    char *error = NULL;
    int found = pebbleGet((void *)key, key_length, buffer, capacity, length, &error);
    return done(error) ? -1 : found;
}

sateen_peer_cursor *sateen_peer_cursor_open(sateen_peer_db *db) {
    (void)db;
    return calloc(1, sizeof(sateen_peer_cursor));
}

/* Takes what Go has put into the buffer. */
static int entry_of(sateen_peer_cursor *cursor, int found, size_t key_length, size_t value_length,
                    char *error, sateen_peer_entry *entry) {
    if (done(error)) return -1;
    if (!found) return 0;
    entry->key = cursor->buffer;
    entry->key_length = key_length;
    entry->value = (char *)cursor->buffer + key_length;
    entry->value_length = value_length;
    return 1;
}

int sateen_peer_cursor_seek(sateen_peer_cursor *cursor, const void *key, size_t key_length,
                            sateen_peer_entry *entry) {
    char *error = NULL;
    size_t lengths[2] = {0, 0};
    int found = pebbleSeek(&cursor->iterator, (void *)key, key_length, &cursor->buffer,
                           &cursor->capacity, lengths, &error);
    return entry_of(cursor, found, lengths[0], lengths[1], error, entry);
}

int sateen_peer_cursor_next(sateen_peer_cursor *cursor, sateen_peer_entry *entry) {
    char *error = NULL;
    size_t lengths[2] = {0, 0};
    int found =
        pebbleNext(cursor->iterator, &cursor->buffer, &cursor->capacity, lengths, &error);
    return entry_of(cursor, found, lengths[0], lengths[1], error, entry);
}

void sateen_peer_cursor_close(sateen_peer_cursor *cursor) {
    if (cursor->iterator) done(pebbleEnd(cursor->iterator));
    free(cursor->buffer);
    free(cursor);
}

int sateen_peer_flush(sateen_peer_db *db) {
    (void)db;
    return done(pebbleFlush());
}

int sateen_peer_wait_idle(sateen_peer_db *db) {
    (void)db;
    pebbleWaitIdle();
    return 0;
}

int sateen_peer_counters(sateen_peer_db *db, sateen_peer_figures *figures) {
    (void)db;
    pebbleCount(figures);
    return 0;
}
