/* A thread's counts of its own operations, under RocksDB's numbers. */
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

static int scanned(rocksdb_t* db, rocksdb_readoptions_t* read) {
    int seen = 0;
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        seen++;
    }
    rocksdb_iter_get_error(iter, &err);
    CHECK(err == NULL);
    rocksdb_iter_destroy(iter);
    return seen;
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    char path[1000], key[20];
    snprintf(path, sizeof path, "%s/perf_db", argv[1]);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    const int n = 100;
    for (int i = 0; i < n; i++) {
        rocksdb_put(db, write, key, (size_t)sprintf(key, "%04d", i), "value", 5, &err);
    }
    rocksdb_flush(db, flush, &err);
    CHECK(err == NULL);

    rocksdb_set_perf_level(rocksdb_enable_count);
    rocksdb_perfcontext_t* perf = rocksdb_perfcontext_create();
    rocksdb_perfcontext_reset(perf);
    CHECK(scanned(db, read) == n);
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_internal_key_skipped_count) == (uint64_t)n);
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_internal_delete_skipped_count) == 0);

    for (int i = n / 2; i < n; i++) {
        rocksdb_delete(db, write, key, (size_t)sprintf(key, "%04d", i), &err);
    }
    rocksdb_perfcontext_reset(perf);
    CHECK(scanned(db, read) == n / 2);
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_internal_key_skipped_count) == (uint64_t)n);
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_internal_delete_skipped_count) ==
          (uint64_t)n / 2);

    rocksdb_perfcontext_reset(perf);
    for (int i = 0; i < n; i++) {
        size_t length;
        char* value = rocksdb_get(db, read, key, (size_t)sprintf(key, "%04d", i), &length, &err);
        CHECK(err == NULL && (value != NULL) == (i < n / 2));
        rocksdb_free(value);
    }
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_get_from_memtable_count) == (uint64_t)n);
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_get_read_bytes) == 5 * (uint64_t)n / 2);
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_block_cache_hit_count) > 0);
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_get_from_memtable_time) == 0);
    char* report = rocksdb_perfcontext_report(perf, 1);
    CHECK(strstr(report, "get_from_memtable_count = 100") && !strstr(report, "= 0"));
    rocksdb_free(report);
    report = rocksdb_perfcontext_report(perf, 0);
    CHECK(strstr(report, "user_key_comparison_count = ") && strstr(report, "key_lock_wait_count = 0"));
    rocksdb_free(report);

    /* RocksDB's levels by number: at 6 everything is counted. */
    rocksdb_set_perf_level(6);
    rocksdb_perfcontext_reset(perf);
    rocksdb_put(db, write, "a", 1, "b", 1, &err);
    CHECK(err == NULL);
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_write_wal_time) > 0);
    CHECK(rocksdb_perfcontext_metric(perf, rocksdb_write_memtable_time) > 0);
    CHECK(rocksdb_perfcontext_metric(perf, -1) == 0 && rocksdb_perfcontext_metric(perf, 9999) == 0);
    rocksdb_set_perf_level(rocksdb_disable);
    rocksdb_perfcontext_reset(perf);
    CHECK(scanned(db, read) == n / 2 + 1);
    report = rocksdb_perfcontext_report(perf, 1);
    CHECK(strcmp(report, "") == 0);
    rocksdb_free(report);

    rocksdb_perfcontext_destroy(perf);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    printf("all is well\n");
    return 0;
}
