/* Databases in memory, and the options that a database was opened with last. */
#include "rocksdb/c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, err ? err : ""); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static char* err = NULL;

static void fill(rocksdb_t* db, const char* value) {
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    char key[20];
    for (int i = 0; i < 2000; i++) {
        rocksdb_put(db, write, key, (size_t)sprintf(key, "%06d", i), value, strlen(value), &err);
        CHECK(err == NULL);
    }
    rocksdb_writeoptions_destroy(write);
}

static void holds(rocksdb_t* db, const char* key, const char* expected) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    size_t length;
    char* value = rocksdb_get(db, read, key, strlen(key), &length, &err);
    CHECK(err == NULL);
    CHECK(expected ? value && length == strlen(expected) && !memcmp(value, expected, length)
                   : !value);
    rocksdb_free(value);
    rocksdb_readoptions_destroy(read);
}

static void in_memory(const char* directory) {
    char one[1000], two[1000], copy[1000], file[1000];
    snprintf(one, sizeof one, "%s/memory/one", directory);
    snprintf(two, sizeof two, "%s/memory/two", directory);
    snprintf(copy, sizeof copy, "%s/memory/copy", directory);
    snprintf(file, sizeof file, "%s/memory/entries", directory);
    rocksdb_env_t* env = rocksdb_create_mem_env();
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_env(options, env);
    rocksdb_options_set_write_buffer_size(options, 64 << 10);
    rocksdb_t* db = rocksdb_open(options, one, &err);
    CHECK(err == NULL);
    rocksdb_t* other = rocksdb_open(options, two, &err);
    CHECK(err == NULL);
    fill(db, "one");
    fill(other, "two");
    rocksdb_column_family_handle_t* family =
        rocksdb_create_column_family(db, options, "family", &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);

    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
    rocksdb_checkpoint_create(checkpoint, copy, 0, &err);
    CHECK(err == NULL);
    rocksdb_checkpoint_object_destroy(checkpoint);

    /* Files to be ingested are in memory, too. */
    rocksdb_envoptions_t* envoptions = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(envoptions, options);
    rocksdb_sstfilewriter_open(writer, file, &err);
    rocksdb_sstfilewriter_put(writer, "ingested", 8, "yes", 3, &err);
    rocksdb_sstfilewriter_finish(writer, &err);
    CHECK(err == NULL);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(envoptions);
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    const char* files[1] = {file};
    rocksdb_ingest_external_file(db, files, 1, ingest, &err);
    CHECK(err == NULL);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
    rocksdb_close(db);
    rocksdb_close(other);

    /* The files are there again, and nowhere else. */
    size_t count;
    char** names = rocksdb_list_column_families(options, one, &count, &err);
    CHECK(err == NULL && count == 2 && strcmp(names[1], "family") == 0);
    rocksdb_list_column_families_destroy(names, count);
    CHECK(access(one, F_OK) != 0);
    rocksdb_options_set_create_if_missing(options, 0);
    const char* all[2] = {"default", "family"};
    const rocksdb_options_t* of[2] = {options, options};
    rocksdb_column_family_handle_t* handles[2];
    db = rocksdb_open_column_families(options, one, 2, all, of, handles, &err);
    CHECK(err == NULL);
    /* No block has been read yet. */
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    size_t length;
    rocksdb_readoptions_set_read_tier(read, 1);
    CHECK(rocksdb_readoptions_get_read_tier(read) == 1);
    CHECK(rocksdb_get(db, read, "000007", 6, &length, &err) == NULL);
    CHECK(err != NULL && strncmp(err, "Result incomplete:", 18) == 0);
    free(err);
    err = NULL;
    holds(db, "000007", "one");
    char* value = rocksdb_get(db, read, "000007", 6, &length, &err);
    CHECK(err == NULL && length == 3 && memcmp(value, "one", 3) == 0);
    rocksdb_free(value);
    rocksdb_readoptions_destroy(read);
    holds(db, "ingested", "yes");
    rocksdb_column_family_handle_destroy(handles[0]);
    rocksdb_column_family_handle_destroy(handles[1]);
    /* The database is open. */
    CHECK(rocksdb_open(options, one, &err) == NULL && strstr(err, "IO error"));
    free(err);
    err = NULL;
    rocksdb_close(db);
    db = rocksdb_open_for_read_only(options, copy, 0, &err);
    CHECK(err == NULL);
    holds(db, "000007", "one");
    holds(db, "ingested", NULL);
    rocksdb_close(db);

    rocksdb_destroy_db(options, two, &err);
    CHECK(err == NULL);
    CHECK(rocksdb_open(options, two, &err) == NULL && err);
    free(err);
    err = NULL;
    /* Another environment has other files. A freed environment stays for databases that have it. */
    rocksdb_env_t* empty = rocksdb_create_mem_env();
    rocksdb_options_t* elsewhere = rocksdb_options_create();
    rocksdb_options_set_env(elsewhere, empty);
    CHECK(rocksdb_open(elsewhere, one, &err) == NULL && err);
    free(err);
    err = NULL;
    rocksdb_options_destroy(elsewhere);
    rocksdb_env_destroy(empty);
    rocksdb_env_destroy(env);
    db = rocksdb_open_for_read_only(options, one, 0, &err);
    CHECK(err == NULL);
    rocksdb_options_destroy(options);
    holds(db, "001999", "one");
    rocksdb_close(db);
}

static void stored_options(const char* directory) {
    char path[1000];
    snprintf(path, sizeof path, "%s/stored", directory);
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 1 << 20);
    rocksdb_options_set_max_total_wal_size(options, 77 << 20);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_options_set_write_buffer_size(options, 3 << 20);
    rocksdb_column_family_handle_t* family =
        rocksdb_create_column_family(db, options, "family", &err);
    CHECK(err == NULL);
    const char* keys[1] = {"level0_file_num_compaction_trigger"};
    const char* values[1] = {"17"};
    rocksdb_set_options_cf(db, family, 1, keys, values, &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    rocksdb_options_destroy(options);

    rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
    rocksdb_options_t* loaded;
    rocksdb_options_t** of_families;
    char** names;
    size_t count;
    rocksdb_load_latest_options(path, env, false, cache, &loaded, &count, &names, &of_families,
                                &err);
    CHECK(err == NULL && count == 2);
    CHECK(rocksdb_options_get_max_total_wal_size(loaded) == 77 << 20);
    CHECK(rocksdb_options_get_write_buffer_size(loaded) == 1 << 20);
    CHECK(strcmp(names[0], "default") == 0 && strcmp(names[1], "family") == 0);
    CHECK(rocksdb_options_get_write_buffer_size(of_families[1]) == 3 << 20);
    CHECK(rocksdb_options_get_level0_file_num_compaction_trigger(of_families[1]) == 17);
    rocksdb_column_family_handle_t* handles[2];
    db = rocksdb_open_column_families(loaded, path, 2, (const char* const*)names,
                                      (const rocksdb_options_t* const*)of_families, handles, &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_destroy(handles[0]);
    rocksdb_column_family_handle_destroy(handles[1]);
    rocksdb_close(db);
    rocksdb_load_latest_options_destroy(loaded, names, of_families, count);

    rocksdb_load_latest_options(directory, env, true, NULL, &loaded, &count, &names, &of_families,
                                &err);
    CHECK(err != NULL);
    free(err);
    err = NULL;
    rocksdb_load_latest_options_destroy(NULL, NULL, NULL, 0);
    rocksdb_cache_destroy(cache);
    rocksdb_env_destroy(env);
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    in_memory(argv[1]);
    stored_options(argv[1]);
    printf("all is well\n");
    return 0;
}
