/* Values with the times of their writes, and values without them: neither form is taken for the
   other. */
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

static void refused(const char* what) {
    CHECK(err != NULL && strncmp(err, "Invalid argument: ", 18) == 0 && strstr(err, what) != NULL);
    rocksdb_free(err);
    err = NULL;
}

static void has(rocksdb_t* db, const char* key, const char* value) {
    CHECK(db != NULL && err == NULL);
    rocksdb_readoptions_t* options = rocksdb_readoptions_create();
    size_t length = 0;
    char* found = rocksdb_get(db, options, key, strlen(key), &length, &err);
    CHECK(err == NULL && found != NULL);
    CHECK(length == strlen(value) && memcmp(found, value, length) == 0);
    rocksdb_free(found);
    rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, options);
    rocksdb_iter_seek_to_first(iterator);
    CHECK(rocksdb_iter_valid(iterator));
    rocksdb_iter_value(iterator, &length);
    CHECK(length == strlen(value));
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(options);
    rocksdb_close(db);
}

static void put(rocksdb_t* db, const char* key, const char* value) {
    CHECK(db != NULL && err == NULL);
    rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
    rocksdb_put(db, options, key, strlen(key), value, strlen(value), &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_destroy(options);
    rocksdb_close(db);
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    char path[4096], other[4096];
    snprintf(path, sizeof path, "%s/timed", argv[1]);
    put(rocksdb_open_with_ttl(options, path, 3600, &err), "key", "red");
    CHECK(rocksdb_open(options, path, &err) == NULL);
    refused("the column family default are stored with");
    /* Functions for readers have no TTL: they take what is stored. */
    has(rocksdb_open_for_read_only(options, path, 0, &err), "key", "red");
    snprintf(other, sizeof other, "%s/secondary", argv[1]);
    has(rocksdb_open_as_secondary(options, path, other, &err), "key", "red");
    has(rocksdb_open_with_ttl(options, path, 0, &err), "key", "red");

    snprintf(path, sizeof path, "%s/plain", argv[1]);
    put(rocksdb_open(options, path, &err), "key", "texas");
    CHECK(rocksdb_open_with_ttl(options, path, 3600, &err) == NULL);
    refused("ttl=1h: the values of the column family default are stored without");
    const char* names[] = {"default"};
    const rocksdb_options_t* each[] = {options};
    rocksdb_column_family_handle_t* handle = NULL;
    int ttls[] = {60};
    CHECK(rocksdb_open_column_families_with_ttl(
              options, path, 1, names, each, &handle, ttls, &err) == NULL);
    refused("ttl=1m: the values of the column family default are stored without");
    has(rocksdb_open(options, path, &err), "key", "texas");
    rocksdb_options_destroy(options);
    printf("all is well\n");
    return 0;
}
