/* Further expectations of the tests of bindings: opens that name too few column families, tailing
 * iterators, values of keys that may exist, options that are set as text, the bytes of batches,
 * files that delete ranges. */
#include "rocksdb/c.h"

#include <math.h>
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

/* Checks that the error at `err` begins with `kind` and contains `text`, and frees it. */
static void told(const char* kind, const char* text) {
    CHECK(err != NULL && strncmp(err, kind, strlen(kind)) == 0 && strstr(err, text) != NULL);
    rocksdb_free(err);
    err = NULL;
}

static const char* in(const char* directory, const char* name) {
    static char path[1000];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void put(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
    rocksdb_put(db, options, key, strlen(key), value, strlen(value), &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_destroy(options);
}

static int has(rocksdb_t* db, const char* key) {
    size_t length;
    rocksdb_readoptions_t* options = rocksdb_readoptions_create();
    char* value = rocksdb_get(db, options, key, strlen(key), &length, &err);
    CHECK(err == NULL);
    rocksdb_free(value);
    rocksdb_readoptions_destroy(options);
    return value != NULL;
}

static void flush(rocksdb_t* db) {
    rocksdb_flushoptions_t* options = rocksdb_flushoptions_create();
    rocksdb_flush(db, options, &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_destroy(options);
}

/* All column families must be named when a database is opened for writing. */
static void column_families(const char* directory, rocksdb_options_t* options) {
    const char* path = in(directory, "families");
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    const char* names[] = {"one", "two", "one"};
    size_t count = 77;
    rocksdb_column_family_handle_t** made =
        rocksdb_create_column_families(db, options, 3, names, &count, &err);
    told("Invalid argument: ", "one");
    CHECK(count == 2 && made != NULL);
    for (size_t i = 0; i < count; i++) rocksdb_column_family_handle_destroy(made[i]);
    rocksdb_create_column_families_destroy(made);
    rocksdb_close(db);
    CHECK(rocksdb_open(options, path, &err) == NULL);
    told("Invalid argument: Column families not opened: ", "one, two");
    CHECK(rocksdb_open_with_ttl(options, path, 100, &err) == NULL);
    told("Invalid argument: Column families not opened: ", "one, two");
    db = rocksdb_open_for_read_only(options, path, 0, &err);
    CHECK(err == NULL);
    rocksdb_close(db);
    rocksdb_destroy_db(options, path, &err);
    CHECK(err == NULL);
}

static void tailing(rocksdb_t* db) {
    rocksdb_readoptions_t* options = rocksdb_readoptions_create();
    rocksdb_iterator_t* fixed = rocksdb_create_iterator(db, options);
    rocksdb_readoptions_set_tailing(options, 1);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, options);
    rocksdb_readoptions_destroy(options);
    put(db, "t1", "");
    rocksdb_iter_seek(iter, "t", 1);
    rocksdb_iter_seek(fixed, "t", 1);
    CHECK(rocksdb_iter_valid(iter) && !rocksdb_iter_valid(fixed));
    put(db, "t0", "");
    put(db, "t2", "");
    size_t length;
    rocksdb_iter_next(iter);
    CHECK(rocksdb_iter_valid(iter) && memcmp(rocksdb_iter_key(iter, &length), "t2", 2) == 0);
    /* Keys have no timestamps. */
    CHECK(rocksdb_iter_timestamp(iter, &length) != NULL && length == 0);
    rocksdb_iter_next(iter);
    CHECK(!rocksdb_iter_valid(iter) && rocksdb_iter_timestamp(iter, &length) == NULL);
    rocksdb_iter_next(iter);
    rocksdb_iter_seek_to_first(iter);
    CHECK(memcmp(rocksdb_iter_key(iter, &length), "t0", 2) == 0);
    /* The current key may have been deleted. */
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_delete(db, write, "t0", 2, &err);
    rocksdb_writeoptions_destroy(write);
    rocksdb_iter_next(iter);
    CHECK(memcmp(rocksdb_iter_key(iter, &length), "t1", 2) == 0);
    rocksdb_iter_get_error(iter, &err);
    CHECK(err == NULL);
    rocksdb_iter_destroy(fixed);
    rocksdb_iter_destroy(iter);
}

/* A value in memory is returned if the caller asks for it. */
static void may_exist(rocksdb_t* db) {
    rocksdb_readoptions_t* options = rocksdb_readoptions_create();
    char* value = NULL;
    size_t length = 77;
    unsigned char found = 77;
    put(db, "may", "value");
    CHECK(rocksdb_key_may_exist(db, options, "may", 3, &value, &length, NULL, 0, &found));
    CHECK(found == 1 && length == 5 && memcmp(value, "value", 5) == 0);
    rocksdb_free(value);
    CHECK(rocksdb_key_may_exist(db, options, "may", 3, NULL, NULL, NULL, 0, NULL));
    CHECK(!rocksdb_key_may_exist(db, options, "not", 3, &value, &length, NULL, 0, &found));
    CHECK(found == 1 && length == 0 && value != NULL);
    rocksdb_free(value);
    value = NULL;
    flush(db);
    CHECK(rocksdb_key_may_exist(db, options, "may", 3, &value, &length, NULL, 0, &found));
    CHECK(found == 0 && value == NULL);
    rocksdb_readoptions_destroy(options);
}

static void options_as_text(rocksdb_t* db, rocksdb_options_t* options) {
    rocksdb_set_options(db, 0, NULL, NULL, &err);
    told("Invalid argument: ", "no option");
    rocksdb_options_t* base = rocksdb_options_create_copy(options);
    rocksdb_options_t* made = rocksdb_options_create();
    rocksdb_options_set_use_fsync(base, 1);
    const char* text =
        "use_fsync=false;bytes_per_sync=2M;keep_log_file_num=7;bottommost_compression=kZSTD;"
        "compaction_pri=kRoundRobin;memtable_prefix_bloom_size_ratio=0.25;max_open_files=-1;"
        "wal_compression=kZSTD";
    rocksdb_get_options_from_string(base, text, made, &err);
    CHECK(err == NULL);
    CHECK(rocksdb_options_get_use_fsync(base) == 1 && rocksdb_options_get_use_fsync(made) == 0);
    CHECK(rocksdb_options_get_bytes_per_sync(made) == 2 << 20);
    CHECK(rocksdb_options_get_keep_log_file_num(made) == 7);
    CHECK(rocksdb_options_get_bottommost_compression(made) == rocksdb_zstd_compression);
    CHECK(rocksdb_options_get_compaction_pri(made) == 4);
    CHECK(rocksdb_options_get_max_open_files(made) == -1);
    CHECK(fabs(rocksdb_options_get_memtable_prefix_bloom_size_ratio(made) - 0.25) < 1e-9);
    CHECK(rocksdb_options_get_wal_compression(made) == rocksdb_zstd_compression);
    rocksdb_get_options_from_string(made, "bytes_per_sync=1;no_such_option=1", base, &err);
    told("Invalid argument: ", "no_such_option");
    CHECK(rocksdb_options_get_bytes_per_sync(base) != 1);
    size_t length = 77;
    CHECK(strcmp(rocksdb_options_get_wal_dir(base, &length), "") == 0 && length == 0);
    rocksdb_options_set_wal_dir(base, "/logs");
    CHECK(strcmp(rocksdb_options_get_wal_dir(base, &length), "/logs") == 0 && length == 5);
    rocksdb_options_destroy(base);
    rocksdb_options_destroy(made);
}

/* The bytes are those of RocksDB, which some clients read themselves. */
static void bytes_of_batches(rocksdb_t* db) {
    static const char expected[] =
        "\0\0\0\0\0\0\0\0\4\0\0\0\1\4key1\4val1\0\4key2\7\4once\17\1a\1b";
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "key1", 4, "val1", 4);
    rocksdb_writebatch_delete(batch, "key2", 4);
    rocksdb_writebatch_singledelete(batch, "once", 4);
    rocksdb_writebatch_delete_range(batch, "a", 1, "b", 1);
    size_t length;
    const char* data = rocksdb_writebatch_data(batch, &length);
    CHECK(length == sizeof expected - 1 && memcmp(data, expected, length) == 0);
    rocksdb_writebatch_t* twin = rocksdb_writebatch_create_from(data, length);
    CHECK(rocksdb_writebatch_count(twin) == 4);
    rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
    rocksdb_write(db, options, twin, &err);
    CHECK(err == NULL && has(db, "key1"));
    rocksdb_writeoptions_destroy(options);
    rocksdb_writebatch_destroy(twin);
    rocksdb_writebatch_destroy(batch);
}

static void ranges_in_files(const char* directory, rocksdb_t* db, rocksdb_options_t* options) {
    put(db, "r1", "");
    put(db, "r2", "");
    put(db, "r3", "");
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(NULL, options);
    const char* path = in(directory, "ranges.sst");
    rocksdb_sstfilewriter_open(writer, path, &err);
    CHECK(err == NULL);
    rocksdb_sstfilewriter_delete_range(writer, "r2", 2, "r1", 2, &err);
    told("Invalid argument: ", "r2");
    rocksdb_sstfilewriter_put(writer, "r25", 3, "", 0, &err);
    rocksdb_sstfilewriter_delete_range(writer, "r2", 2, "r3", 2, &err);
    rocksdb_sstfilewriter_finish(writer, &err);
    CHECK(err == NULL);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingest_external_file(db, &path, 1, ingest, &err);
    CHECK(err == NULL);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
    CHECK(has(db, "r1") && !has(db, "r2") && has(db, "r25") && has(db, "r3"));
}

/* Enabling before disabling counts: grocksdb does so. */
static void compactions_by_hand(rocksdb_t* db) {
    rocksdb_enable_manual_compaction(db);
    rocksdb_disable_manual_compaction(db);
    rocksdb_suggest_compact_range(db, NULL, 0, NULL, 0, &err);
    CHECK(err == NULL);
    rocksdb_disable_manual_compaction(db);
    rocksdb_suggest_compact_range(db, NULL, 0, NULL, 0, &err);
    told("Result incomplete: ", "paused");
    rocksdb_enable_manual_compaction(db);
    rocksdb_suggest_compact_range(db, NULL, 0, NULL, 0, &err);
    CHECK(err == NULL);
}

static char* refuse(void* state, const char* key, size_t key_length, const char* existing,
                    size_t existing_length, const char* const* operands,
                    const size_t* operand_lengths, int count, unsigned char* success,
                    size_t* length) {
    (void)state, (void)key, (void)key_length, (void)existing, (void)existing_length;
    (void)operands, (void)operand_lengths, (void)count;
    *success = 0;
    *length = 0;
    return NULL;
}

static const char* name_of_it(void* state) {
    (void)state;
    return "refusing";
}

static void merges_that_fail(const char* directory) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_merge_operator(
        options, rocksdb_mergeoperator_create(NULL, NULL, refuse, NULL, NULL, name_of_it));
    rocksdb_t* db = rocksdb_open(options, in(directory, "refusing"), &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_merge(db, write, "k", 1, "v", 1, &err);
    CHECK(err == NULL);
    size_t length;
    CHECK(rocksdb_get(db, read, "k", 1, &length, &err) == NULL);
    told("Corruption: ", "Merge operator failed");
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

/* The highest level measures each write. */
static void statistics(const char* directory) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_enable_statistics(options);
    rocksdb_options_set_statistics_level(options, 5);
    rocksdb_t* db = rocksdb_open(options, in(directory, "statistics"), &err);
    CHECK(err == NULL);
    for (int i = 0; i < 100; i++) put(db, "k", "v");
    rocksdb_statistics_histogram_data_t* data = rocksdb_statistics_histogram_data_create();
    rocksdb_options_statistics_get_histogram_data(options, 1, data);
    CHECK(rocksdb_statistics_histogram_data_get_count(data) == 100);
    rocksdb_statistics_histogram_data_destroy(data);
    char* text = rocksdb_property_value(db, "rocksdb.stats");
    CHECK(text != NULL && strstr(text, "** DB Stats **") != NULL);
    rocksdb_free(text);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static void accepted(void) {
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_env_set_background_threads(env, 3);
    rocksdb_env_set_high_priority_background_threads(env, 5);
    CHECK(rocksdb_env_get_low_priority_background_threads(env) == 3);
    CHECK(rocksdb_env_get_high_priority_background_threads(env) == 5);
    rocksdb_env_destroy(env);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_dbpath_t* path = rocksdb_dbpath_create("/somewhere", 1 << 20);
    const rocksdb_dbpath_t* paths[] = {path};
    rocksdb_options_set_db_paths(options, paths, 1);
    rocksdb_dbpath_destroy(path);
    rocksdb_options_add_compact_on_deletion_collector_factory(options, 100, 10);
    rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = rocksdb_open(options, in(arguments[1], "db"), &err);
    CHECK(err == NULL);
    tailing(db);
    may_exist(db);
    options_as_text(db, options);
    bytes_of_batches(db);
    ranges_in_files(arguments[1], db, options);
    compactions_by_hand(db);
    rocksdb_close(db);
    column_families(arguments[1], options);
    merges_that_fail(arguments[1]);
    statistics(arguments[1]);
    accepted();
    rocksdb_options_destroy(options);
    puts("all is well");
    return 0;
}
