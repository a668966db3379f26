/* Value files in the descriptions of flushes and compactions. */
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
/* Set by the listeners, which have ended when the call that they belong to returns. */
static int flushes, compactions;
static uint64_t written, written_bytes, garbage, garbage_bytes, first_number;
static char first_path[4096];

static void nothing(void* state) {
    (void)state;
}

static void keep_path(const char* path, size_t length) {
    CHECK(path != NULL && length > 4 && length < sizeof first_path);
    memcpy(first_path, path, length);
    first_path[length] = 0;
}

static void flush_ended(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
    (void)state, (void)db;
    size_t count = rocksdb_flushjobinfo_blob_file_addition_infos_count(info), length = 0;
    CHECK(count <= 1);
    CHECK(rocksdb_flushjobinfo_blob_file_addition_info_at(info, count) == NULL);
    if (count == 0) {
        written = 0;
        flushes++;
        return;
    }
    const rocksdb_blob_file_addition_info_t* file =
        rocksdb_flushjobinfo_blob_file_addition_info_at(info, 0);
    written = rocksdb_blob_file_addition_info_total_blob_count(file);
    written_bytes = rocksdb_blob_file_addition_info_total_blob_bytes(file);
    uint64_t number = rocksdb_blob_file_addition_info_blob_file_number(file);
    CHECK(number > 0 && rocksdb_flushjobinfo_oldest_blob_file_number(info) == number);
    if (flushes == 0) {
        first_number = number;
        const char* path = rocksdb_blob_file_addition_info_blob_file_path(file, &length);
        keep_path(path, length);
    }
    flushes++;
}

static void compaction_ended(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
    (void)state, (void)db;
    size_t length = 0;
    CHECK(rocksdb_compactionjobinfo_blob_file_addition_infos_count(info) == 0);
    CHECK(rocksdb_compactionjobinfo_blob_file_addition_info_at(info, 0) == NULL);
    CHECK(rocksdb_compactionjobinfo_blob_file_garbage_infos_count(info) == 1);
    const rocksdb_blob_file_garbage_info_t* of =
        rocksdb_compactionjobinfo_blob_file_garbage_info_at(info, 0);
    garbage = rocksdb_blob_file_garbage_info_garbage_blob_count(of);
    garbage_bytes = rocksdb_blob_file_garbage_info_garbage_blob_bytes(of);
    CHECK(rocksdb_blob_file_garbage_info_blob_file_number(of) == first_number);
    const char* path = rocksdb_blob_file_garbage_info_blob_file_path(of, &length);
    CHECK(strlen(first_path) == length && memcmp(first_path, path, length) == 0);
    const rocksdb_compaction_job_stats_t* stats = rocksdb_compactionjobinfo_stats(info);
    CHECK(rocksdb_compaction_job_stats_num_output_files_blob(stats) == 0);
    CHECK(rocksdb_compaction_job_stats_total_output_bytes_blob(stats) == 0);
    compactions++;
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[4096], value[1000];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    memset(value, 'v', sizeof value);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_disable_auto_compactions(options, 1);
    rocksdb_options_set_enable_blob_files(options, 1);
    rocksdb_options_set_min_blob_size(options, 100);
    rocksdb_options_add_eventlistener(
        options,
        rocksdb_eventlistener_create(NULL, nothing, NULL, flush_ended, NULL, compaction_ended, NULL,
                                     NULL, NULL, NULL, NULL, NULL));
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_listener_wait(fo, 1);
    char key[3] = "k0";
    for (int i = 0; i < 5; i++) {
        key[1] = (char)('0' + i);
        rocksdb_put(db, wo, key, 2, value, sizeof value, &err);
    }
    rocksdb_put(db, wo, "small", 5, "1", 1, &err);
    rocksdb_flush(db, fo, &err);
    CHECK(err == NULL && flushes == 1 && written == 5 && written_bytes == 5 * sizeof value);
    FILE* file = fopen(first_path, "rb");
    CHECK(file != NULL);
    fclose(file);
    rocksdb_put(db, wo, "k1", 2, value, 200, &err);
    rocksdb_delete(db, wo, "k3", 2, &err);
    rocksdb_flush(db, fo, &err);
    CHECK(err == NULL && flushes == 2 && written == 1 && written_bytes == 200);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    CHECK(compactions == 1 && garbage == 2 && garbage_bytes == 2 * sizeof value);

    // The smallest size outlasts a time without value files.
    const char* names[] = {"enable_blob_files"};
    const char* off[] = {"false"};
    const char* on[] = {"true"};
    rocksdb_set_options(db, 1, names, off, &err);
    rocksdb_put(db, wo, "k4", 2, value, 300, &err);
    rocksdb_flush(db, fo, &err);
    CHECK(err == NULL && flushes == 3 && written == 0);
    rocksdb_set_options(db, 1, names, on, &err);
    rocksdb_put(db, wo, "k4", 2, value, 400, &err);
    rocksdb_put(db, wo, "small", 5, value, 99, &err);
    rocksdb_flush(db, fo, &err);
    CHECK(err == NULL && flushes == 4 && written == 1 && written_bytes == 400);

    CHECK(rocksdb_flushjobinfo_blob_file_addition_info_at(NULL, 0) == NULL);
    CHECK(rocksdb_blob_file_addition_info_total_blob_count(NULL) == 0);

    rocksdb_flushoptions_destroy(fo);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    puts("all is well");
    return 0;
}
