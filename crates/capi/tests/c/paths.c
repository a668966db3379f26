/* Tables in several directories, and filters of the WAL. */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, err ? err : "no error"); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

static char* err = NULL;

static void put(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_put(db, write, key, strlen(key), value, strlen(value), &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_destroy(write);
}

/* Whether the database has `key`. */
static int has(rocksdb_t* db, const char* key) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    size_t length;
    char* value = rocksdb_get(db, read, key, strlen(key), &length, &err);
    CHECK(err == NULL);
    rocksdb_readoptions_destroy(read);
    free(value);
    return value != NULL;
}

/* The directory of the only table of a column family. */
static void in_directory(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char* wanted) {
    rocksdb_column_family_metadata_t* all = rocksdb_get_column_family_metadata_cf(db, family);
    size_t found = 0;
    for (size_t at = 0; at < rocksdb_column_family_metadata_get_level_count(all); at++) {
        rocksdb_level_metadata_t* level = rocksdb_column_family_metadata_get_level_metadata(all, at);
        for (size_t nth = 0; nth < rocksdb_level_metadata_get_file_count(level); nth++) {
            rocksdb_sst_file_metadata_t* file =
                rocksdb_level_metadata_get_sst_file_metadata(level, nth);
            char* directory = rocksdb_sst_file_metadata_get_directory(file);
            CHECK(strcmp(directory, wanted) == 0);
            rocksdb_free(directory);
            rocksdb_sst_file_metadata_destroy(file);
            found += 1;
        }
        rocksdb_level_metadata_destroy(level);
    }
    rocksdb_column_family_metadata_destroy(all);
    CHECK(found == 1);
}

static void directories(const char* place) {
    char path[512], fast[512], large[512], own[512];
    snprintf(path, sizeof path, "%s/db", place);
    snprintf(fast, sizeof fast, "%s/fast", place);
    snprintf(large, sizeof large, "%s/large", place);
    snprintf(own, sizeof own, "%s/own", place);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_dbpath_t* made[] = {
        rocksdb_dbpath_create(fast, 1 << 20),
        rocksdb_dbpath_create(large, 1 << 30),
        rocksdb_dbpath_create(own, 0),
    };
    const rocksdb_dbpath_t* const* paths = (const rocksdb_dbpath_t* const*)made;
    rocksdb_options_t* plain = rocksdb_options_create_copy(options);
    rocksdb_options_set_db_paths(options, (const rocksdb_dbpath_t**)paths, 2);
    rocksdb_options_t* apart = rocksdb_options_create_copy(options);
    rocksdb_options_set_cf_paths(apart, (const rocksdb_dbpath_t**)paths + 2, 1);
    for (int nth = 0; nth < 3; nth++) rocksdb_dbpath_destroy(made[nth]);

    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, apart, "own", &err);
    CHECK(err == NULL);
    put(db, "a", "1");
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_put_cf(db, write, family, "b", 1, "1", 1, &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_destroy(write);
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &err);
    CHECK(err == NULL);
    rocksdb_flush_cf(db, flush, family, &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_column_family_handle_t* first = rocksdb_get_default_column_family_handle(db);
    in_directory(db, first, fast);
    in_directory(db, family, own);
    /* Level 0 alone fills the first directory. */
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    in_directory(db, first, large);
    rocksdb_column_family_handle_destroy(first);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);

    /* Without the directories the tables are not found, and the error names one of them. */
    CHECK(rocksdb_open(plain, path, &err) == NULL && strstr(err, "the database also had tables in"));
    free(err);
    err = NULL;
    rocksdb_options_t* text = rocksdb_options_create();
    char list[2048];
    snprintf(list, sizeof list,
             "db_paths={{path=%s;target_size=1M}:{path=%s;target_size=1G}:{path=%s;target_size=0}}",
             fast, large, own);
    rocksdb_get_options_from_string(plain, list, text, &err);
    CHECK(err == NULL);
    db = rocksdb_open_for_read_only(text, path, 0, &err);
    CHECK(err == NULL && has(db, "a"));
    rocksdb_close(db);
    const char* wrong[] = {"x", "-1", ""};
    for (int i = 0; i < 3; i++) {
        snprintf(list, sizeof list, "db_paths={{path=%s;target_size=%s}}", fast, wrong[i]);
        rocksdb_get_options_from_string(plain, list, text, &err);
        CHECK(err != NULL && strstr(err, "target_size=") != NULL);
        rocksdb_free(err);
        err = NULL;
    }
    rocksdb_destroy_db(plain, path, &err);
    CHECK(err == NULL && fopen(large, "r") == NULL && fopen(own, "r") == NULL);
    rocksdb_options_destroy(text);
    rocksdb_options_destroy(plain);
    rocksdb_options_destroy(apart);
    rocksdb_options_destroy(options);
}

typedef struct {
    int answer;
    int families;
    int records;
    int freed;
} Filter;

static void freed(void* state) { ((Filter*)state)->freed += 1; }
static const char* name(void* state) { (void)state; return "a filter"; }
static void families(void* state, const uint32_t* ids, const uint64_t* logs, size_t count,
                     const char* const* names, const size_t* lengths, const uint32_t* name_ids,
                     size_t names_count) {
    CHECK(count == 1 && ids[0] == 0 && logs[0] > 0);
    CHECK(names_count == 1 && lengths[0] == 7 && name_ids[0] == 0);
    CHECK(memcmp(names[0], "default", 7) == 0);
    ((Filter*)state)->families += 1;
}
static int found(void* state, unsigned long long log, const char* file, size_t length,
                 const rocksdb_writebatch_t* batch, rocksdb_writebatch_t* new_batch,
                 unsigned char* changed) {
    Filter* filter = state;
    CHECK(log > 0 && length == strlen(file) && strstr(file, ".wal"));
    CHECK(rocksdb_writebatch_count((rocksdb_writebatch_t*)batch) == 1);
    filter->records += 1;
    if (filter->records != 2) return rocksdb_wal_filter_continue_processing;
    if (filter->answer == 100) {
        rocksdb_writebatch_put(new_batch, "new", 3, "n", 1);
        *changed = 1;
        return rocksdb_wal_filter_continue_processing;
    }
    return filter->answer;
}

/* What is there of three records, if the filter gives `answer` for the second one. */
static void filtered(const char* place, int answer, const char* wanted) {
    char path[512];
    snprintf(path, sizeof path, "%s/filtered%d", place, answer);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    put(db, "a", "1");
    put(db, "b", "1");
    put(db, "c", "1");
    rocksdb_close(db);
    Filter state = {answer, 0, 0, 0};
    rocksdb_walfilter_t* filter = rocksdb_walfilter_create(&state, freed, families, found, name);
    rocksdb_options_set_wal_filter(options, filter);
    db = rocksdb_open(options, path, &err);
    rocksdb_options_clear_wal_filter(options);
    rocksdb_walfilter_destroy(filter);
    CHECK(state.freed == 1 && state.families == 1);
    if (wanted == NULL) {
        CHECK(db == NULL && err && strncmp(err, "Corruption:", 11) == 0);
        free(err);
        err = NULL;
        db = rocksdb_open(options, path, &err);
        wanted = "abc";
    }
    CHECK(err == NULL && db != NULL);
    const char* keys[] = {"a", "b", "c", "new"};
    for (int nth = 0; nth < 4; nth++) CHECK(has(db, keys[nth]) == (strchr(wanted, keys[nth][0]) != NULL));
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    directories(arguments[1]);
    filtered(arguments[1], rocksdb_wal_filter_continue_processing, "abc");
    filtered(arguments[1], rocksdb_wal_filter_ignore_current_record, "ac");
    filtered(arguments[1], rocksdb_wal_filter_stop_replay, "a");
    filtered(arguments[1], rocksdb_wal_filter_corrupted_record, NULL);
    filtered(arguments[1], 100, "acn");
    puts("all is well");
    return 0;
}
