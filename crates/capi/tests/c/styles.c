/* Universal and FIFO compaction, by function and by name. */
#include "rocksdb/c.h"

#include <stdint.h>
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

static rocksdb_options_t* small_options(int style) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 64 << 10);
    rocksdb_options_set_level0_file_num_compaction_trigger(options, 4);
    rocksdb_options_set_compaction_style(options, style);
    CHECK(rocksdb_options_get_compaction_style(options) == style);
    return options;
}

/* Values of 100 bytes, and after each 1,000 all are stored in tables. */
static void put(rocksdb_t* db, int from, int to) {
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    char key[16], value[100];
    memset(value, 'v', sizeof value);
    for (int n = from; n < to; n++) {
        int length = snprintf(key, sizeof key, "key%06d", n);
        rocksdb_put(db, write, key, (size_t)length, value, sizeof value, &err);
        CHECK(err == NULL);
        if (n % 1000 == 999) {
            rocksdb_flush(db, flush, &err);
            CHECK(err == NULL);
        }
    }
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(write);
}

static int there(rocksdb_t* db, int n) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    char key[16];
    int length = snprintf(key, sizeof key, "key%06d", n);
    size_t size = 0;
    char* value = rocksdb_get(db, read, key, (size_t)length, &size, &err);
    CHECK(err == NULL);
    int found = value != NULL;
    rocksdb_free(value);
    rocksdb_readoptions_destroy(read);
    return found;
}

static void wait_for_compactions(rocksdb_t* db) {
    rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
    rocksdb_wait_for_compact(db, wait, &err);
    CHECK(err == NULL);
    rocksdb_wait_for_compact_options_destroy(wait);
}

static uint64_t number(rocksdb_t* db, const char* property) {
    uint64_t value = 0;
    CHECK(rocksdb_property_int(db, property, &value) == 0);
    return value;
}

static void universal(const char* path) {
    rocksdb_options_t* options = small_options(rocksdb_universal_compaction);
    rocksdb_universal_compaction_options_t* how = rocksdb_universal_compaction_options_create();
    CHECK(rocksdb_universal_compaction_options_get_size_ratio(how) == 1);
    rocksdb_universal_compaction_options_set_size_ratio(how, 20);
    rocksdb_universal_compaction_options_set_min_merge_width(how, 2);
    rocksdb_universal_compaction_options_set_max_merge_width(how, 8);
    rocksdb_universal_compaction_options_set_max_size_amplification_percent(how, 100);
    rocksdb_universal_compaction_options_set_stop_style(
        how, rocksdb_similar_size_compaction_stop_style);
    CHECK(rocksdb_universal_compaction_options_get_max_merge_width(how) == 8);
    rocksdb_options_set_universal_compaction_options(options, how);
    rocksdb_universal_compaction_options_destroy(how);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL && db != NULL);
    for (int round = 0; round < 4; round++) put(db, 0, 4000);
    wait_for_compactions(db);
    CHECK(there(db, 0) && there(db, 3999) && !there(db, 4000));
    /* Runs are merged: far fewer bytes are left than were written. */
    CHECK(number(db, "rocksdb.total-sst-files-size") < 3 * 4000 * 120);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    CHECK(there(db, 0) && there(db, 3999));
    CHECK(number(db, "rocksdb.total-sst-files-size") < 2 * 4000 * 120);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static void fifo(const char* path) {
    rocksdb_options_t* options = small_options(rocksdb_fifo_compaction);
    rocksdb_fifo_compaction_options_t* how = rocksdb_fifo_compaction_options_create();
    rocksdb_fifo_compaction_options_set_max_table_files_size(how, 1 << 20);
    rocksdb_fifo_compaction_options_set_allow_compaction(how, 1);
    CHECK(rocksdb_fifo_compaction_options_get_max_table_files_size(how) == 1 << 20);
    rocksdb_options_set_fifo_compaction_options(options, how);
    rocksdb_fifo_compaction_options_destroy(how);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL && db != NULL);
    put(db, 0, 30000);
    wait_for_compactions(db);
    CHECK(!there(db, 0) && there(db, 29999));
    CHECK(number(db, "rocksdb.total-sst-files-size") <= (1 << 20) + (256 << 10));
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static void by_name(const char* path) {
    rocksdb_options_t* base = rocksdb_options_create();
    rocksdb_options_t* made = rocksdb_options_create();
    rocksdb_get_options_from_string(
        base,
        "create_if_missing=true;compaction_style=kCompactionStyleUniversal;"
        "compaction_options_universal={size_ratio=7;stop_style=kCompactionStopStyleSimilarSize;"
        "max_merge_width=-1;incremental=false;compression_size_percent=-1};"
        "compaction_options_fifo={max_table_files_size=64M;allow_compaction=true}",
        made, &err);
    CHECK(err == NULL && rocksdb_options_get_compaction_style(made) == 1);
    rocksdb_t* db = rocksdb_open(made, path, &err);
    CHECK(err == NULL && db != NULL);
    rocksdb_close(db);
    rocksdb_get_options_from_string(
        base, "compaction_options_universal={incremental=true}", made, &err);
    CHECK(err != NULL && strstr(err, "universal_compaction_options.incremental=true") != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_options_destroy(made);
    rocksdb_options_destroy(base);
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/universal", argv[1]);
    universal(path);
    snprintf(path, sizeof path, "%s/fifo", argv[1]);
    fifo(path);
    snprintf(path, sizeof path, "%s/name", argv[1]);
    by_name(path);
    puts("all is well");
    return 0;
}
