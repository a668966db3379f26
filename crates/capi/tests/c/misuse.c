/* Misuse: handles are freed in the wrong order, twice, or by the function of another type, and a
 * database is used after it was closed. */
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

static rocksdb_t* fresh(const char* directory, rocksdb_options_t** options) {
    *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(*options, 1);
    rocksdb_t* db = rocksdb_open(*options, directory, &err);
    CHECK(err == NULL);
    return db;
}

/* Objects of a database are freed after it, and work until then if they can. */
static void any_order(const char* directory) {
    rocksdb_options_t* options;
    rocksdb_t* db = fresh(directory, &options);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_put(db, write, "key", 3, "value", 5, &err);
    CHECK(err == NULL);
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(read, snapshot);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
    rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, read, "key", 3, &err);
    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
    rocksdb_column_family_handle_t* family =
        rocksdb_create_column_family(db, options, "family", &err);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put_cf(batch, family, "key", 3, "value", 5);
    rocksdb_memory_consumers_t* consumers = rocksdb_memory_consumers_create();
    rocksdb_memory_consumers_add_db(consumers, db);
    CHECK(err == NULL && pinned != NULL);

    rocksdb_options_destroy(options);
    rocksdb_close(db);
    rocksdb_readoptions_destroy(read);

    size_t length;
    CHECK(memcmp(rocksdb_pinnableslice_value(pinned, &length), "value", 5) == 0 && length == 5);
    rocksdb_iter_seek_to_first(iter);
    if (rocksdb_iter_valid(iter)) CHECK(memcmp(rocksdb_iter_key(iter, &length), "key", 3) == 0);
    rocksdb_checkpoint_create(checkpoint, "/nowhere/at/all", 0, &err);
    CHECK(err != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_memory_usage_t* usage = rocksdb_approximate_memory_usage_create(consumers, &err);
    CHECK(err == NULL);

    rocksdb_column_family_handle_destroy(family);
    rocksdb_release_snapshot(db, snapshot);
    rocksdb_pinnableslice_destroy(pinned);
    rocksdb_memory_consumers_destroy(consumers);
    rocksdb_approximate_memory_usage_destroy(usage);
    rocksdb_checkpoint_object_destroy(checkpoint);
    rocksdb_writebatch_destroy(batch);
    rocksdb_iter_destroy(iter);
    rocksdb_writeoptions_destroy(write);
}

/* A second free does nothing, nor does the function of another type. */
static void twice(const char* directory) {
    rocksdb_options_t* options;
    rocksdb_t* db = fresh(directory, &options);
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_filterpolicy_t* policy = rocksdb_filterpolicy_create_bloom(10);
    /* The options own the policy. */
    rocksdb_block_based_options_set_filter_policy(table, policy);
    rocksdb_filterpolicy_destroy(policy);
    rocksdb_writeoptions_destroy((rocksdb_writeoptions_t*)read);
    rocksdb_close((rocksdb_t*)iter);
    CHECK(rocksdb_readoptions_get_fill_cache(read) == 1);
    rocksdb_iter_seek_to_first(iter);
    for (int i = 0; i < 2; i++) {
        rocksdb_iter_destroy(iter);
        rocksdb_release_snapshot(db, snapshot);
        rocksdb_writebatch_destroy(batch);
        rocksdb_cache_destroy(cache);
        rocksdb_env_destroy(env);
        rocksdb_column_family_handle_destroy(family);
        rocksdb_block_based_options_destroy(table);
        rocksdb_flushoptions_destroy(flush);
        rocksdb_readoptions_destroy(read);
        rocksdb_writeoptions_destroy(write);
        rocksdb_close(db);
        rocksdb_options_destroy(options);
    }
    int on_the_stack = 7;
    rocksdb_options_destroy((rocksdb_options_t*)&on_the_stack);
    CHECK(on_the_stack == 7);
}

static void closed(void) {
    CHECK(err != NULL && strncmp(err, "Shutdown in progress: ", 22) == 0);
    rocksdb_free(err);
    err = NULL;
}

/* Every call says that the database is closed. Other databases are not affected. */
static void after_close(const char* directory) {
    rocksdb_options_t* options;
    rocksdb_t* db = fresh(directory, &options);
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_close(db);
    rocksdb_t* other = rocksdb_open(options, directory, &err);
    CHECK(err == NULL);
    size_t length = 77;
    CHECK(rocksdb_get(db, read, "key", 3, &length, &err) == NULL && length == 0);
    closed();
    rocksdb_put(db, write, "key", 3, "value", 5, &err);
    closed();
    CHECK(rocksdb_create_column_family(db, options, "new", &err) == NULL);
    closed();
    rocksdb_flush(db, flush, &err);
    closed();
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
    CHECK(!rocksdb_iter_valid(iter));
    rocksdb_iter_get_error(iter, &err);
    closed();
    rocksdb_iter_destroy(iter);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    rocksdb_free(rocksdb_property_value(db, "rocksdb.stats"));
    rocksdb_release_snapshot(db, rocksdb_create_snapshot(db));
    rocksdb_close(db);
    rocksdb_put(other, write, "key", 3, "value", 5, &err);
    CHECK(err == NULL);
    rocksdb_close(other);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[1000];
    void (*const all[])(const char*) = {any_order, twice, after_close};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        snprintf(path, sizeof path, "%s/%zu", arguments[1], i);
        all[i](path);
    }
    puts("all is well");
    return 0;
}
