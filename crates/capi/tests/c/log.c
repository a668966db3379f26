/* Reading the WAL and following a database. */
#include "rocksdb/c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, err ? err : ""); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static char* err = NULL;

static void take_error(const char* begins) {
    CHECK(err != NULL && strncmp(err, begins, strlen(begins)) == 0);
    rocksdb_free(err);
    err = NULL;
}

static void put(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
    rocksdb_put(db, options, key, strlen(key), value, strlen(value), &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_destroy(options);
}

static int has(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_readoptions_t* options = rocksdb_readoptions_create();
    size_t length = 0;
    char* found = rocksdb_get(db, options, key, strlen(key), &length, &err);
    CHECK(err == NULL);
    int same = value == NULL ? found == NULL
                             : found != NULL && length == strlen(value) && memcmp(found, value, length) == 0;
    rocksdb_free(found);
    rocksdb_readoptions_destroy(options);
    return same;
}

static void flush(rocksdb_t* db) {
    rocksdb_flushoptions_t* options = rocksdb_flushoptions_create();
    rocksdb_flush(db, options, &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_destroy(options);
}

static void count_puts(void* state, const char* key, size_t key_length, const char* value,
                       size_t value_length) {
    (void)key, (void)key_length, (void)value, (void)value_length;
    *(int*)state += 1;
}

static void count_deletes(void* state, const char* key, size_t key_length) {
    (void)key, (void)key_length;
    *(int*)state += 100;
}

static void options_of_the_log(void) {
    rocksdb_options_t* options = rocksdb_options_create();
    CHECK(rocksdb_options_get_WAL_ttl_seconds(options) == 0);
    CHECK(rocksdb_options_get_WAL_size_limit_MB(options) == 0);
    rocksdb_options_set_WAL_ttl_seconds(options, 60);
    rocksdb_options_set_WAL_size_limit_MB(options, 7);
    CHECK(rocksdb_options_get_WAL_ttl_seconds(options) == 60);
    CHECK(rocksdb_options_get_WAL_size_limit_MB(options) == 7);
    rocksdb_options_t* named = rocksdb_options_create();
    rocksdb_get_options_from_string(options, "WAL_ttl_seconds=5;WAL_size_limit_MB=3", named, &err);
    CHECK(err == NULL);
    CHECK(rocksdb_options_get_WAL_ttl_seconds(named) == 5);
    CHECK(rocksdb_options_get_WAL_size_limit_MB(named) == 3);
    rocksdb_options_destroy(named);
    rocksdb_options_destroy(options);

    rocksdb_wal_readoptions_t* read = rocksdb_wal_readoptions_create();
    CHECK(rocksdb_wal_readoptions_get_verify_checksums(read) == 1);
    rocksdb_wal_readoptions_set_verify_checksums(read, 0);
    CHECK(rocksdb_wal_readoptions_get_verify_checksums(read) == 0);
    rocksdb_wal_readoptions_destroy(read);
}

static rocksdb_t* follow(const char* path) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_t* secondary = rocksdb_open_as_secondary(options, path, "/unused", &err);
    rocksdb_options_destroy(options);
    return secondary;
}

/* A database that follows another one. */
static void secondary(const char* path) {
    CHECK(follow("/there/is/none") == NULL);
    take_error("");
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_column_family_handle_t* family =
        rocksdb_create_column_family(db, options, "other", &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    put(db, "a", "1");
    rocksdb_put_cf(db, wo, family, "a", 1, "other", 5, &err);
    CHECK(err == NULL);

    rocksdb_t* one = follow(path);
    CHECK(one != NULL && err == NULL && has(one, "a", "1"));
    const char* names[] = {"default", "other"};
    const rocksdb_options_t* of_families[] = {options, options};
    rocksdb_column_family_handle_t* handles[2] = {NULL, NULL};
    rocksdb_t* two = rocksdb_open_as_secondary_column_families(options, path, NULL, 2, names,
                                                               of_families, handles, &err);
    CHECK(two != NULL && err == NULL && handles[0] != NULL && handles[1] != NULL);

    put(db, "a", "2");
    flush(db);
    put(db, "b", "3");
    rocksdb_delete_cf(db, wo, family, "a", 1, &err);
    CHECK(err == NULL && has(one, "a", "1"));
    rocksdb_try_catch_up_with_primary(one, &err);
    CHECK(err == NULL && has(one, "a", "2") && has(one, "b", "3"));
    size_t length = 0;
    char* found = rocksdb_get_cf(two, ro, handles[1], "a", 1, &length, &err);
    CHECK(err == NULL && found != NULL && length == 5);
    rocksdb_free(found);
    rocksdb_try_catch_up_with_primary(two, &err);
    CHECK(err == NULL && has(two, "a", "2"));
    CHECK(rocksdb_get_cf(two, ro, handles[1], "a", 1, &length, &err) == NULL && err == NULL);

    rocksdb_put(one, wo, "c", 1, "4", 1, &err);
    take_error("Not implemented: ");
    CHECK(rocksdb_get_updates_since(one, 1, NULL, &err) == NULL);
    take_error("Not implemented: ");
    rocksdb_try_catch_up_with_primary(db, &err);
    take_error("Not implemented: ");
    rocksdb_try_catch_up_with_primary(NULL, &err);
    take_error("Invalid argument: ");
    const char* missing[] = {"none"};
    CHECK(rocksdb_open_as_secondary_column_families(options, path, NULL, 1, missing, of_families,
                                                    handles, &err) == NULL);
    take_error("Invalid argument: ");

    /* The primary is closed and opened again. */
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    const rocksdb_options_t* again[] = {options, options};
    rocksdb_column_family_handle_t* reopened[2];
    db = rocksdb_open_column_families(options, path, 2, names, again, reopened, &err);
    CHECK(db != NULL && err == NULL);
    put(db, "d", "5");
    rocksdb_try_catch_up_with_primary(one, &err);
    CHECK(err == NULL && has(one, "d", "5"));
    for (int i = 0; i < 2; i++) {
        rocksdb_column_family_handle_destroy(reopened[i]);
        rocksdb_column_family_handle_destroy(handles[i]);
    }
    rocksdb_close(one);
    rocksdb_close(two);
    rocksdb_close(db);
    rocksdb_readoptions_destroy(ro);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    options_of_the_log();
    char path[4096], other[4096];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    snprintf(other, sizeof other, "%s/other", arguments[1]);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_WAL_ttl_seconds(options, 3600);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_t* copy = rocksdb_open(options, other, &err);
    CHECK(copy != NULL && err == NULL);

    CHECK(rocksdb_get_updates_since(db, 1, NULL, &err) == NULL);
    take_error("NotFound: ");
    put(db, "a", "1");
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "b", 1, "2", 1);
    rocksdb_writebatch_put(batch, "c", 1, "3", 1);
    rocksdb_writebatch_delete(batch, "a", 1);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_write(db, wo, batch, &err);
    CHECK(err == NULL);
    rocksdb_writebatch_destroy(batch);
    flush(db);

    /* WALs of flushed data are kept. The batches can be read and written elsewhere. */
    rocksdb_wal_iterator_t* iterator = rocksdb_get_updates_since(db, 0, NULL, &err);
    CHECK(iterator != NULL && err == NULL);
    uint64_t expected[] = {1, 2}, sequence = 0;
    int counts[] = {1, 102};
    for (int i = 0; i < 2; i++) {
        CHECK(rocksdb_wal_iter_valid(iterator) == 1);
        batch = rocksdb_wal_iter_get_batch(iterator, &sequence);
        CHECK(batch != NULL && sequence == expected[i]);
        int seen = 0;
        rocksdb_writebatch_iterate(batch, &seen, count_puts, count_deletes);
        CHECK(seen == counts[i]);
        rocksdb_write(copy, wo, batch, &err);
        CHECK(err == NULL);
        rocksdb_writebatch_destroy(batch);
        rocksdb_wal_iter_next(iterator);
    }
    CHECK(rocksdb_wal_iter_valid(iterator) == 0);
    CHECK(rocksdb_wal_iter_get_batch(iterator, &sequence) == NULL);
    rocksdb_wal_iter_status(iterator, &err);
    CHECK(err == NULL);
    CHECK(has(copy, "a", NULL) && has(copy, "b", "2") && has(copy, "c", "3"));

    /* Another write follows. */
    put(db, "d", "4");
    rocksdb_wal_iter_next(iterator);
    CHECK(rocksdb_wal_iter_valid(iterator) == 1);
    rocksdb_writebatch_destroy(rocksdb_wal_iter_get_batch(iterator, &sequence));
    CHECK(sequence == 5);
    rocksdb_close(copy);

    /* The iterator outlives the database and reports that it is closed. */
    rocksdb_close(db);
    rocksdb_wal_iter_next(iterator);
    CHECK(rocksdb_wal_iter_valid(iterator) == 0);
    rocksdb_wal_iter_status(iterator, &err);
    take_error("Shutdown in progress: ");
    rocksdb_wal_iter_destroy(iterator);

    /* WALs are kept when the database is opened again. Without WALs, updates begin with the
     * current state, as in RocksDB. */
    db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    iterator = rocksdb_get_updates_since(db, 3, NULL, &err);
    CHECK(iterator != NULL && rocksdb_wal_iter_valid(iterator) == 1);
    rocksdb_writebatch_destroy(rocksdb_wal_iter_get_batch(iterator, &sequence));
    CHECK(sequence == 2);
    rocksdb_wal_iter_destroy(iterator);
    rocksdb_close(db);
    rocksdb_options_set_WAL_ttl_seconds(options, 0);
    db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    iterator = rocksdb_get_updates_since(db, 1, NULL, &err);
    CHECK(iterator != NULL && rocksdb_wal_iter_valid(iterator) == 0);
    put(db, "e", "6");
    rocksdb_wal_iter_next(iterator);
    rocksdb_writebatch_destroy(rocksdb_wal_iter_get_batch(iterator, &sequence));
    CHECK(sequence == 6);
    rocksdb_wal_iter_destroy(iterator);

    /* Null handles fail. */
    CHECK(rocksdb_get_updates_since(NULL, 0, NULL, &err) == NULL);
    take_error("Invalid argument: ");
    CHECK(rocksdb_wal_iter_valid(NULL) == 0);
    rocksdb_wal_iter_next(NULL);
    CHECK(rocksdb_wal_iter_get_batch(NULL, NULL) == NULL);
    rocksdb_wal_iter_destroy(NULL);
    rocksdb_close(db);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_options_destroy(options);
    snprintf(other, sizeof other, "%s/followed", arguments[1]);
    secondary(other);
    printf("all is well\n");
    return 0;
}
