/* A peer for tests: up to eight keys in an array. Its answers to settings are compiled in. */
#include "sateen_peer.h"
#include <stdlib.h>
#include <string.h>

#ifndef ABI
#define ABI SATEEN_PEER_ABI
#endif
#ifndef NAME
#define NAME "stub"
#endif

struct sateen_peer_db {
    char keys[8][16];
    char values[8][64];
    size_t count, key_lengths[8], value_lengths[8];
    int synced, is_flushed;
};
struct sateen_peer_cursor {
    sateen_peer_db *db;
    size_t at;
};
static _Thread_local const char *why;
static char opened_with[512];

static int fail(const char *text) {
    why = text;
    return -1;
}
uint32_t sateen_peer_abi(void) { return ABI; }
const char *sateen_peer_name(void) { return NAME; }
const char *sateen_peer_version(void) { return "Stub 1.2"; }
const char *sateen_peer_settings(void) { return "block_cache;compression=none|lz4;wal=buffered|sync;memtables=3"; }
const char *sateen_peer_options(void) { return "colour;size"; }
/* The notes tell a test with which settings the database was opened. */
const char *sateen_peer_notes(void) { return opened_with; }
const char *sateen_peer_error(void) { return why; }
sateen_peer_db *sateen_peer_open(const char *directory, const char *settings) {
    if (strstr(settings, "colour=red")) {
        fail("colour=red: only blue");
        return NULL;
    }
    strncpy(opened_with, settings, sizeof opened_with - 1);
    return directory[0] == '/' ? calloc(1, sizeof(sateen_peer_db)) : NULL;
}
int sateen_peer_close(sateen_peer_db *db) {
    free(db);
    return 0;
}
static int compare(sateen_peer_db *db, size_t i, const void *key, size_t length) {
    size_t common = db->key_lengths[i] < length ? db->key_lengths[i] : length;
    int order = memcmp(db->keys[i], key, common);
    return order ? order : (db->key_lengths[i] > length) - (db->key_lengths[i] < length);
}
static size_t find(sateen_peer_db *db, const void *key, size_t length) {
    size_t i = 0;
    while (i < db->count && compare(db, i, key, length) < 0) i++;
    return i;
}
int sateen_peer_delete(sateen_peer_db *db, const void *key, size_t key_length, int sync) {
    size_t i = find(db, key, key_length);
    db->synced += sync;
    if (i == db->count || compare(db, i, key, key_length)) return 0;
    for (db->count--; i < db->count; i++) {
        memcpy(db->keys[i], db->keys[i + 1], 16);
        memcpy(db->values[i], db->values[i + 1], 64);
        db->key_lengths[i] = db->key_lengths[i + 1];
        db->value_lengths[i] = db->value_lengths[i + 1];
    }
    return 0;
}
int sateen_peer_put(sateen_peer_db *db, const void *key, size_t key_length, const void *value, size_t value_length, int sync) {
    sateen_peer_delete(db, key, key_length, sync);
    if (db->count == 8) return fail("the disk of the stub is full");
    size_t at = find(db, key, key_length);
    for (size_t i = db->count; i > at; i--) {
        memcpy(db->keys[i], db->keys[i - 1], 16);
        memcpy(db->values[i], db->values[i - 1], 64);
        db->key_lengths[i] = db->key_lengths[i - 1];
        db->value_lengths[i] = db->value_lengths[i - 1];
    }
    memcpy(db->keys[at], key, key_length);
    memcpy(db->values[at], value, value_length);
    db->key_lengths[at] = key_length;
    db->value_lengths[at] = value_length;
    db->count++;
    return 0;
}
#ifndef NO_BATCHES
int sateen_peer_write(sateen_peer_db *db, const sateen_peer_change *changes, size_t count, int sync) {
    for (size_t i = 0; i < count; i++) {
        const sateen_peer_entry *e = &changes[i].entry;
        int done = changes[i].is_delete
                       ? sateen_peer_delete(db, e->key, e->key_length, sync)
                       : sateen_peer_put(db, e->key, e->key_length, e->value, e->value_length, sync);
        if (done) return done;
    }
    return 0;
}
#endif
int sateen_peer_get(sateen_peer_db *db, const void *key, size_t key_length, void *buffer, size_t capacity, size_t *length) {
    size_t i = find(db, key, key_length);
    if (i == db->count || compare(db, i, key, key_length)) return 0;
    if (key_length == 4 && !memcmp(key, "huge", 4)) {
        *length = (size_t)1 << 40;
        return 1;
    }
    *length = db->value_lengths[i];
    if (*length <= capacity) memcpy(buffer, db->values[i], *length);
    return 1;
}
sateen_peer_cursor *sateen_peer_cursor_open(sateen_peer_db *db) {
    sateen_peer_cursor *cursor = malloc(sizeof *cursor);
    cursor->db = db;
    return cursor;
}
static int entry_at(sateen_peer_cursor *cursor, sateen_peer_entry *entry) {
    sateen_peer_db *db = cursor->db;
    if (cursor->at == db->count) return 0;
    entry->key = db->keys[cursor->at];
    entry->key_length = db->key_lengths[cursor->at];
    entry->value = db->values[cursor->at];
    entry->value_length = db->value_lengths[cursor->at];
    if (entry->key_length == 3 && !memcmp(entry->key, "bad", 3)) return fail("a block is damaged");
    return 1;
}
int sateen_peer_cursor_seek(sateen_peer_cursor *cursor, const void *key, size_t key_length, sateen_peer_entry *entry) {
    cursor->at = find(cursor->db, key, key_length);
    return entry_at(cursor, entry);
}
int sateen_peer_cursor_next(sateen_peer_cursor *cursor, sateen_peer_entry *entry) {
    cursor->at++;
    return entry_at(cursor, entry);
}
void sateen_peer_cursor_close(sateen_peer_cursor *cursor) { free(cursor); }
int sateen_peer_flush(sateen_peer_db *db) {
    db->is_flushed = 1;
    return 0;
}
#ifndef NO_WAIT
/* Without a flush it fails and does not say why, whatever failed before: a library may stay loaded. */
int sateen_peer_wait_idle(sateen_peer_db *db) { return db->is_flushed ? 0 : fail(NULL); }
#endif
/* Of the last two figures a test reads how many writes were synced, and that the others stay unknown. */
int sateen_peer_counters(sateen_peer_db *db, sateen_peer_figures *figures) {
    figures->flush_written = 7;
    figures->barriers = (uint64_t)db->synced;
    figures->running_jobs = 2;
    return 0;
}
