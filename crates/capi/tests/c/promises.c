/* Options with promises that are not kept are refused by their names. The others pass. */
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

static void refused(const char* what) {
    CHECK(err != NULL && strstr(err, what) != NULL);
    rocksdb_free(err);
    err = NULL;
}

static void refused_at_open(const char* path, rocksdb_options_t* options, const char* what) {
    rocksdb_options_set_create_if_missing(options, 1);
    CHECK(rocksdb_open(options, path, &err) == NULL);
    refused(what);
    const char* names[] = {"default"};
    const rocksdb_options_t* each[] = {options};
    rocksdb_column_family_handle_t* handle = NULL;
    CHECK(rocksdb_open_column_families(options, path, 1, names, each, &handle, &err) == NULL);
    refused(what);
    rocksdb_options_destroy(options);
}

#define REFUSED(option, value)                                                      \
    do {                                                                            \
        rocksdb_options_t* options = rocksdb_options_create();                      \
        rocksdb_options_set_##option(options, value);                               \
        refused_at_open(path, options, #option "=" #value " is not implemented");   \
    } while (0)

static void databases(const char* path) {
    REFUSED(allow_ingest_behind, 1);
    REFUSED(cf_allow_ingest_behind, 1);
    REFUSED(best_efforts_recovery, 1);
    REFUSED(paranoid_file_checks, 1);
    REFUSED(paranoid_memory_checks, 1);
    REFUSED(memtable_protection_bytes_per_key, 8);
    REFUSED(block_protection_bytes_per_key, 8);
    REFUSED(disallow_memtable_writes, 1);
    REFUSED(wal_recovery_mode, 3);

    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_dbpath_t* elsewhere = rocksdb_dbpath_create("/elsewhere", 1 << 30);
    rocksdb_dbpath_t* large = rocksdb_dbpath_create("/large", 0);
    const rocksdb_dbpath_t* paths[] = {elsewhere, large};
    rocksdb_options_set_db_paths(options, paths, 2);
    rocksdb_options_set_compaction_style(options, 2);
    refused_at_open(path, options, "paths=/elsewhere:1GiB,/large:0: compaction_style=fifo");
    rocksdb_dbpath_destroy(elsewhere);
    rocksdb_dbpath_destroy(large);

    options = rocksdb_options_create();
    rocksdb_options_t* made = rocksdb_options_create();
    rocksdb_get_options_from_string(options, "compaction_style=kCompactionStyleFIFO;ttl=60", made,
        &err);
    CHECK(err == NULL);
    refused_at_open(path, made, "ttl=60 is not implemented: FIFO compaction");
    made = rocksdb_options_create();
    const char* lists[] = {
        "comparator=rocksdb.ReverseBytewiseComparator",
        "merge_operator={id=StringAppendOperator;delimiter=,}",
        "db_paths={{path=/elsewhere;size=1}}",
    };
    const char* said[] = {
        "comparator=rocksdb.ReverseBytewiseComparator is not implemented",
        "merge_operator=StringAppendOperator is not implemented",
        "unknown option \"size\" of a directory",
    };
    for (size_t nth = 0; nth < sizeof lists / sizeof *lists; nth++) {
        rocksdb_get_options_from_string(options, lists[nth], made, &err);
        refused(said[nth]);
    }
    rocksdb_get_options_from_string(
        options,
        "comparator=leveldb.BytewiseComparator;merge_operator=nullptr;"
        "wal_recovery_mode=kAbsoluteConsistency",
        made, &err);
    CHECK(err == NULL && rocksdb_options_get_wal_recovery_mode(made) == 1);
    rocksdb_options_destroy(made);
    rocksdb_options_destroy(options);
}

/* Accepted: the defaults, promises that are kept anyway, and options of speed and space. */
static void taken(const char* path) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_allow_ingest_behind(options, 0);
    rocksdb_options_set_paranoid_checks(options, 1);
    rocksdb_options_set_use_fsync(options, 1);
    rocksdb_options_set_manual_wal_flush(options, 1);
    rocksdb_options_set_unordered_write(options, 1);
    rocksdb_options_set_avoid_flush_during_shutdown(options, 1);
    rocksdb_options_set_compaction_style(options, 1);
    rocksdb_options_set_wal_recovery_mode(options, 2);
    rocksdb_options_set_enable_blob_files(options, 1);
    rocksdb_options_set_atomic_flush(options, 1);
    CHECK(rocksdb_options_get_atomic_flush(options) == 1);
    rocksdb_dbpath_t* own = rocksdb_dbpath_create(path, 1 << 30);
    const rocksdb_dbpath_t* paths[] = {own};
    rocksdb_options_set_db_paths(options, paths, 1);
    rocksdb_dbpath_destroy(own);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL && db != NULL);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_put(db, write, "k", 1, "v", 1, &err);
    CHECK(err == NULL);

    /* A running database refuses the options, too. */
    const char* names[] = {"paranoid_file_checks"};
    const char* values[] = {"true"};
    rocksdb_set_options(db, 1, names, values, &err);
    refused("paranoid_file_checks=true is not implemented");
    rocksdb_options_t* of_family = rocksdb_options_create();
    rocksdb_universal_compaction_options_t* universal =
        rocksdb_universal_compaction_options_create();
    rocksdb_universal_compaction_options_set_incremental(universal, 1);
    rocksdb_options_set_universal_compaction_options(of_family, universal);
    rocksdb_universal_compaction_options_destroy(universal);
    CHECK(rocksdb_create_column_family(db, of_family, "c", &err) == NULL);
    refused("universal_compaction_options.incremental=1 is not implemented");
    rocksdb_options_destroy(of_family);

    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_force_atomic_flush(flush, 1);
    rocksdb_flush(db, flush, &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_destroy(flush);

    rocksdb_writeoptions_set_protection_bytes_per_key(write, 8);
    rocksdb_put(db, write, "l", 1, "v", 1, &err);
    refused("protection_bytes_per_key=8 is not implemented");
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static char* get(rocksdb_t* db, rocksdb_readoptions_t* read) {
    size_t length = 0;
    return rocksdb_get(db, read, "k", 1, &length, &err);
}

static void reads(const char* path) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    for (int tier = 2; tier <= 3; tier++) {
        rocksdb_readoptions_t* read = rocksdb_readoptions_create();
        rocksdb_readoptions_set_read_tier(read, tier);
        CHECK(get(db, read) == NULL);
        refused(tier == 2 ? "read_tier=2" : "read_tier=3");
        rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
        rocksdb_iter_seek_to_first(iter);
        CHECK(!rocksdb_iter_valid(iter));
        rocksdb_iter_get_error(iter, &err);
        refused("read_tier");
        rocksdb_iter_destroy(iter);
        rocksdb_readoptions_destroy(read);
    }
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_timestamp(read, "12345678", 8);
    CHECK(get(db, read) == NULL);
    refused("have no timestamps");
    rocksdb_readoptions_set_timestamp(read, NULL, 0);
    free(get(db, read));
    CHECK(err == NULL);

    /* A deadline in the past, and one in the distant future. */
    rocksdb_readoptions_set_deadline(read, 1);
    CHECK(get(db, read) == NULL);
    refused("Operation timed out");
    rocksdb_readoptions_set_deadline(read, UINT64_MAX);
    free(get(db, read));
    CHECK(err == NULL);

    rocksdb_readoptions_set_value_size_soft_limit(read, 1);
    free(get(db, read));
    CHECK(err == NULL);
    const char* keys[] = {"k"};
    size_t lengths[] = {1};
    char* values[1];
    size_t value_lengths[1];
    char* errors[1];
    rocksdb_multi_get(db, read, 1, keys, lengths, values, value_lengths, errors);
    CHECK(values[0] == NULL && errors[0] != NULL);
    CHECK(strstr(errors[0], "value_size_soft_limit=1 is not implemented") != NULL);
    free(errors[0]);
    rocksdb_readoptions_destroy(read);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static void read_only(const char* path) {
    rocksdb_options_t* options = rocksdb_options_create();
    /* Options of writes, of which there are none. */
    rocksdb_options_set_allow_ingest_behind(options, 1);
    rocksdb_t* db = rocksdb_open_for_read_only(options, path, 1, &err);
    CHECK(err == NULL && db != NULL);
    rocksdb_close(db);
    rocksdb_options_set_allow_ingest_behind(options, 0);
    db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_put(db, write, "in the log", 10, "v", 1, &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    CHECK(rocksdb_open_for_read_only(options, path, 1, &err) == NULL);
    refused("error_if_wal_file_exists");
    db = rocksdb_open_for_read_only(options, path, 0, &err);
    CHECK(err == NULL && db != NULL);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

/* The limit for values is that of the database, in batches as elsewhere. */
static void large_values(const char* path) {
    rocksdb_options_t* options = rocksdb_options_create();
    const size_t length = 65 << 20;
    char* value = calloc(1, length);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "large", 5, value, length);
    rocksdb_writebatch_wi_t* indexed = rocksdb_writebatch_wi_create(0, 1);
    rocksdb_writebatch_wi_put(indexed, "large", 5, value, length);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_write(db, write, batch, &err);
    refused("64");
    rocksdb_write_writebatch_wi(db, write, indexed, &err);
    refused("64");
    rocksdb_close(db);
    rocksdb_get_options_from_string(options, "sateen.value_bytes_max=128MiB", options, &err);
    CHECK(err == NULL);
    db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_write(db, write, batch, &err);
    CHECK(err == NULL);
    rocksdb_write_writebatch_wi(db, write, indexed, &err);
    CHECK(err == NULL);
    rocksdb_close(db);
    rocksdb_writebatch_wi_destroy(indexed);
    rocksdb_writebatch_destroy(batch);
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(options);
    free(value);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/kept", arguments[1]);
    databases(path);
    taken(path);
    reads(path);
    read_only(path);
    large_values(path);
    puts("all is well");
    return 0;
}
