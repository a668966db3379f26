/* The tables of a database, and background work. */
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

int main(int count, char** arguments) {
    CHECK(count == 2);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    char path[4096];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    for (int i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%04d", i);
        rocksdb_put(db, wo, key, 7, "some value", 10, &err);
        CHECK(err == NULL);
    }

    /* Waiting for background work. */
    rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
    rocksdb_wait_for_compact_options_set_flush(wait, 1);
    rocksdb_wait_for_compact_options_set_timeout(wait, 60 * 1000 * 1000);
    CHECK(rocksdb_wait_for_compact_options_get_flush(wait) == 1);
    CHECK(rocksdb_wait_for_compact_options_get_timeout(wait) == 60 * 1000 * 1000);
    rocksdb_wait_for_compact(db, wait, &err);
    CHECK(err == NULL);
    rocksdb_wait_for_compact_options_destroy(wait);

    /* The tables. Objects from a list stay when the list is freed. */
    const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
    CHECK(rocksdb_livefiles_count(files) >= 1);
    size_t length = 0;
    CHECK(memcmp(rocksdb_livefiles_smallestkey(files, 0, &length), "key0000", 7) == 0);
    CHECK(length == 7);
    CHECK(rocksdb_livefiles_name(files, 0)[0] == '/');
    CHECK(strcmp(rocksdb_livefiles_column_family_name(files, 0), "default") == 0);
    CHECK(rocksdb_livefiles_size(files, 0) > 0 && rocksdb_livefiles_entries(files, 0) > 0);
    CHECK(rocksdb_livefiles_deletions(files, 0) == 0);
    CHECK(rocksdb_livefiles_name(files, 1000) == NULL && rocksdb_livefiles_size(files, -1) == 0);
    rocksdb_livefiles_destroy(files);

    rocksdb_column_family_metadata_t* family = rocksdb_get_column_family_metadata(db);
    size_t tables = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < rocksdb_column_family_metadata_get_level_count(family); i++) {
        rocksdb_level_metadata_t* level = rocksdb_column_family_metadata_get_level_metadata(family, i);
        CHECK(rocksdb_level_metadata_get_level(level) == (int)i);
        tables += rocksdb_level_metadata_get_file_count(level);
        bytes += rocksdb_level_metadata_get_size(level);
        rocksdb_sst_file_metadata_t* table = rocksdb_level_metadata_get_sst_file_metadata(level, 0);
        rocksdb_level_metadata_destroy(level);
        if (table != NULL) {
            char* name = rocksdb_sst_file_metadata_get_relative_filename(table);
            char* key = rocksdb_sst_file_metadata_get_largestkey(table, &length);
            CHECK(strstr(name, ".sat") != NULL && length == 7 && memcmp(key, "key", 3) == 0);
            rocksdb_free(name);
            rocksdb_free(key);
            rocksdb_sst_file_metadata_destroy(table);
        }
    }
    CHECK(tables >= 1 && tables == rocksdb_column_family_metadata_get_file_count(family));
    CHECK(bytes == rocksdb_column_family_metadata_get_size(family));
    rocksdb_column_family_metadata_destroy(family);

    /* Whether a key may be there. */
    unsigned char found = 9;
    CHECK(rocksdb_key_may_exist(db, ro, "key0500", 7, NULL, NULL, NULL, 0, &found) == 1);
    CHECK(found == 0);
    CHECK(rocksdb_key_may_exist(db, ro, "zzz", 3, NULL, NULL, NULL, 0, NULL) == 0);

    /* Pauses, and dropping tables. */
    char* identity = rocksdb_get_db_identity(db, &length);
    CHECK(length == strlen(identity) && length == 36 && identity[8] == '-');
    rocksdb_free(identity);
    rocksdb_disable_manual_compaction(db);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    rocksdb_enable_manual_compaction(db);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    rocksdb_abort_all_compactions(db);
    rocksdb_suggest_compact_range(db, NULL, 0, NULL, 0, &err);
    CHECK(err != NULL && strstr(err, "paused") != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_resume_all_compactions(db);
    rocksdb_suggest_compact_range(db, NULL, 0, NULL, 0, &err);
    CHECK(err == NULL);
    /* One too many is nothing. */
    rocksdb_resume_all_compactions(db);
    rocksdb_abort_all_compactions(NULL);
    uint64_t enabled = 9;
    CHECK(rocksdb_property_int(db, "rocksdb.is-file-deletions-enabled", &enabled) == 0);
    CHECK(enabled == 1);
    rocksdb_disable_file_deletions(db, &err);
    CHECK(rocksdb_property_int(db, "rocksdb.is-file-deletions-enabled", &enabled) == 0);
    CHECK(enabled == 0);
    rocksdb_delete_file_in_range(db, "a", 1, "z", 1, &err);
    rocksdb_enable_file_deletions(db, &err);
    CHECK(err == NULL);
    files = rocksdb_livefiles(db);
    CHECK(rocksdb_livefiles_count(files) == 0);
    rocksdb_livefiles_destroy(files);

    /* Files that are written outside and ingested. */
    snprintf(path, sizeof path, "%s/new.sst", arguments[1]);
    const char* paths[] = {path};
    rocksdb_envoptions_t* env = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
    rocksdb_sstfilewriter_put(writer, "a", 1, "1", 1, &err);
    CHECK(err != NULL);
    free(err);
    err = NULL;
    for (int i = 0; i < 2; i++) { /* the second one replaces the first */
        uint64_t size = 0;
        rocksdb_sstfilewriter_open(writer, path, &err);
        rocksdb_sstfilewriter_put(writer, "key0001", 7, "taken in", 8, &err);
        rocksdb_sstfilewriter_delete(writer, "key0002", 7, &err);
        CHECK(err == NULL);
        rocksdb_sstfilewriter_add(writer, "key0002", 7, "again", 5, &err);
        CHECK(err != NULL && strncmp(err, "Invalid argument:", 17) == 0);
        free(err);
        err = NULL;
        rocksdb_sstfilewriter_finish(writer, &err);
        rocksdb_sstfilewriter_file_size(writer, &size);
        CHECK(err == NULL && size > 0);
    }
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env);
    rocksdb_put(db, wo, "key0002", 7, "before", 6, &err);
    rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(how, 0);
    rocksdb_ingest_external_file(db, paths, 1, how, &err);
    CHECK(err != NULL && strncmp(err, "Invalid argument:", 17) == 0);
    free(err);
    err = NULL;
    rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(how, 1);
    rocksdb_ingestexternalfileoptions_set_move_files(how, 1);
    rocksdb_ingest_external_file(db, paths, 1, how, &err);
    CHECK(err == NULL && fopen(path, "r") == NULL);
    char* value = rocksdb_get(db, ro, "key0001", 7, &length, &err);
    CHECK(length == 8 && memcmp(value, "taken in", 8) == 0);
    free(value);
    CHECK(rocksdb_get(db, ro, "key0002", 7, &length, &err) == NULL && err == NULL);
    rocksdb_ingest_external_file(db, paths, 1, how, &err);
    CHECK(err != NULL && strncmp(err, "IO error:", 9) == 0);
    free(err);
    err = NULL;
    rocksdb_ingestexternalfileoptions_destroy(how);

    rocksdb_wait_for_compact(NULL, NULL, &err);
    CHECK(err != NULL);
    free(err);

    rocksdb_readoptions_destroy(ro);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    printf("all is well\n");
    return 0;
}
