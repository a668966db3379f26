/* One limit for the memtables of two databases, whose memory a cache is charged with. */
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

static rocksdb_t* open_db(const char* directory, const char* name, rocksdb_options_t* options) {
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    return db;
}

static void fill(rocksdb_t* db, int from, int to) {
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    char key[20], value[1000];
    memset(value, 'v', sizeof value);
    for (int i = from; i < to; i++) {
        rocksdb_put(db, write, key, (size_t)sprintf(key, "%08d", i), value, sizeof value, &err);
        CHECK(err == NULL);
    }
    rocksdb_writeoptions_destroy(write);
}

static void holds(rocksdb_t* db, int to) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
    int seen = 0;
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        seen++;
    }
    CHECK(seen == to);
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(read);
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    const size_t limit = 8 << 20;
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(16 << 20);
    rocksdb_write_buffer_manager_t* manager =
        rocksdb_write_buffer_manager_create_with_cache(limit, cache, false);
    CHECK(rocksdb_write_buffer_manager_enabled(manager));
    CHECK(rocksdb_write_buffer_manager_cost_to_cache(manager));
    CHECK(rocksdb_write_buffer_manager_buffer_size(manager) == limit);

    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 64 << 20);
    rocksdb_options_set_write_buffer_manager(options, manager);
    rocksdb_t* one = open_db(argv[1], "one", options);
    rocksdb_t* two = open_db(argv[1], "two", options);

    fill(one, 0, 1000);
    fill(two, 0, 1000);
    size_t used = rocksdb_write_buffer_manager_memory_usage(manager);
    CHECK(used > 2000000 && used < limit);
    CHECK(rocksdb_write_buffer_manager_mutable_memtable_memory_usage(manager) <= used);
    size_t charged = rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(manager);
    CHECK(charged >= used && charged % (256 << 10) == 0);
    CHECK(rocksdb_cache_get_usage(cache) >= charged);

    /* A database with many writes is flushed early, many times before its memtable is full. */
    fill(two, 1000, 40000);
    CHECK(rocksdb_write_buffer_manager_mutable_memtable_memory_usage(manager) < limit);
    const rocksdb_livefiles_t* live = rocksdb_livefiles(two);
    CHECK(rocksdb_livefiles_count(live) >= 1);
    rocksdb_livefiles_destroy(live);

    /* Writers may wait, and their waits end. */
    rocksdb_write_buffer_manager_set_allow_stall(manager, true);
    rocksdb_write_buffer_manager_set_buffer_size(manager, 2 << 20);
    CHECK(rocksdb_write_buffer_manager_buffer_size(manager) == 2 << 20);
    fill(one, 1000, 5000);
    fill(two, 40000, 42000);
    holds(one, 5000);
    holds(two, 42000);

    rocksdb_write_buffer_manager_destroy(manager);
    rocksdb_options_destroy(options);
    fill(one, 5000, 6000);
    rocksdb_close(one);
    rocksdb_close(two);

    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_db_write_buffer_size(options, 1 << 20);
    CHECK(rocksdb_options_get_db_write_buffer_size(options) == 1 << 20);
    one = open_db(argv[1], "one", options);
    holds(one, 6000);
    fill(one, 6000, 9000);
    live = rocksdb_livefiles(one);
    CHECK(rocksdb_livefiles_count(live) >= 1);
    rocksdb_livefiles_destroy(live);
    rocksdb_close(one);
    rocksdb_options_destroy(options);
    rocksdb_cache_destroy(cache);
    printf("all is well\n");
    return 0;
}
