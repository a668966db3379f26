/* Exporting a column family, and importing it into another database. */
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

static void fails_with(const char* says) {
    CHECK(err != NULL && strstr(err, says) != NULL);
    rocksdb_free(err);
    err = NULL;
}

static rocksdb_t* open_at(rocksdb_options_t* options, const char* base, const char* name) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", base, name);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    return db;
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char directory[4200];
    snprintf(directory, sizeof directory, "%s/exported", arguments[1]);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    rocksdb_t* db = open_at(options, arguments[1], "db");
    rocksdb_t* other = open_at(options, arguments[1], "other");
    rocksdb_column_family_handle_t* loans =
        rocksdb_create_column_family(db, options, "loans", &err);
    CHECK(loans != NULL && err == NULL);
    rocksdb_put_cf(db, wo, loans, "walden", 6, "lent", 4, &err);
    rocksdb_put_cf(db, wo, loans, "typee", 5, "lent", 4, &err);
    rocksdb_delete_cf(db, wo, loans, "typee", 5, &err);
    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
    rocksdb_export_import_files_metadata_t* exported =
        rocksdb_checkpoint_export_column_family(checkpoint, loans, directory, &err);
    CHECK(exported != NULL && err == NULL);
    CHECK(rocksdb_checkpoint_export_column_family(checkpoint, loans, directory, &err) == NULL);
    fails_with("exists already");
    char* name = rocksdb_export_import_files_metadata_get_db_comparator_name(exported);
    CHECK(strcmp(name, "leveldb.BytewiseComparator") == 0);
    rocksdb_free(name);
    rocksdb_livefiles_t* files = rocksdb_export_import_files_metadata_get_files(exported);
    CHECK(rocksdb_livefiles_count(files) == 1);
    CHECK(strcmp(rocksdb_livefiles_directory(files, 0), directory) == 0);
    size_t length = 0;
    CHECK(memcmp(rocksdb_livefiles_smallestkey(files, 0, &length), "walden", 6) == 0);
    CHECK(rocksdb_livefiles_size(files, 0) > 0 && rocksdb_livefiles_level(files, 0) == 6);

    /* Imported under another name, twice; the second time the files go with it. */
    rocksdb_import_column_family_options_t* import = rocksdb_import_column_family_options_create();
    CHECK(rocksdb_import_column_family_options_get_move_files(import) == 0);
    for (int i = 0; i < 2; i++) {
        rocksdb_import_column_family_options_set_move_files(import, (unsigned char)i);
        rocksdb_column_family_handle_t* taken = rocksdb_create_column_family_with_import(
            other, options, i == 0 ? "first" : "second", import, exported, &err);
        CHECK(taken != NULL && err == NULL);
        char* value = rocksdb_get_cf(other, ro, taken, "walden", 6, &length, &err);
        CHECK(err == NULL && length == 4 && memcmp(value, "lent", 4) == 0);
        rocksdb_free(value);
        CHECK(rocksdb_get_cf(other, ro, taken, "typee", 5, &length, &err) == NULL && err == NULL);
        rocksdb_column_family_handle_destroy(taken);
    }
    /* They are gone, so nothing is created. */
    CHECK(rocksdb_create_column_family_with_import(other, options, "third", import, exported, &err) ==
          NULL);
    fails_with("IO error:");
    CHECK(rocksdb_create_column_family_with_import(other, options, "first", import, exported, &err) ==
          NULL);
    fails_with("Invalid argument:");
    rocksdb_column_family_handle_t* third =
        rocksdb_create_column_family(other, options, "third", &err);
    CHECK(third != NULL && err == NULL);
    rocksdb_column_family_handle_destroy(third);

    /* Metadata of the caller. */
    rocksdb_export_import_files_metadata_t* own = rocksdb_export_import_files_metadata_create();
    rocksdb_export_import_files_metadata_set_db_comparator_name(own, "another");
    CHECK(rocksdb_create_column_family_with_import(other, options, "own", import, own, &err) == NULL);
    fails_with("with the comparator another");
    rocksdb_export_import_files_metadata_set_db_comparator_name(own, "leveldb.BytewiseComparator");
    rocksdb_livefile_t* file = rocksdb_livefile_create();
    rocksdb_livefile_set_name(file, "/none.sst");
    rocksdb_livefile_set_directory(file, directory);
    rocksdb_livefile_set_level(file, 3);
    rocksdb_livefile_set_largest_key(file, "z", 1);
    rocksdb_livefiles_t* list = rocksdb_livefiles_create();
    rocksdb_livefiles_add(list, file);
    CHECK(rocksdb_livefiles_count(list) == 1 && rocksdb_livefiles_level(list, 0) == 3);
    CHECK(strcmp(rocksdb_livefiles_name(list, 0), "/none.sst") == 0);
    rocksdb_export_import_files_metadata_set_files(own, list);
    CHECK(rocksdb_create_column_family_with_import(other, options, "own", import, own, &err) == NULL);
    fails_with("none.sst");
    rocksdb_livefile_destroy(rocksdb_livefile_create());

    rocksdb_export_import_files_metadata_destroy(own);
    rocksdb_livefiles_destroy(files);
    rocksdb_export_import_files_metadata_destroy(exported);
    rocksdb_import_column_family_options_destroy(import);
    rocksdb_checkpoint_object_destroy(checkpoint);
    rocksdb_column_family_handle_destroy(loans);
    rocksdb_close(other);
    rocksdb_close(db);
    rocksdb_readoptions_destroy(ro);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_options_destroy(options);
    puts("all is well");
    return 0;
}
