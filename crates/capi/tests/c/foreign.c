/* A directory that RocksDB made. Every open says how to import it, and nothing changes it. */
#include "rocksdb/c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char* err = NULL;

static void file(const char* directory, const char* name, const char* text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE* out = fopen(path, "w");
    if (out == NULL || fputs(text, out) < 0 || fclose(out) != 0) exit(2);
}

static void names_the_import(const char* what, const char* directory) {
    char command[4200];
    snprintf(command, sizeof command, "sateen db import rocksdb %s ", directory);
    if (err == NULL || strstr(err, "it is a RocksDB database") == NULL ||
        strstr(err, command) == NULL) {
        fprintf(stderr, "%s: %s\n", what, err ? err : "no error");
        exit(1);
    }
    rocksdb_free(err);
    err = NULL;
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    char directory[2048];
    snprintf(directory, sizeof directory, "%s/theirs", argv[1]);
    mkdir(directory, 0755);
    file(directory, "CURRENT", "MANIFEST-000005\n");
    file(directory, "MANIFEST-000005", "whatever is in it");
    file(directory, "OPTIONS-000007", "[Version]\n");
    file(directory, "IDENTITY", "3b5c");

    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_open(options, directory, &err);
    names_the_import("open", directory);
    rocksdb_open_for_read_only(options, directory, 0, &err);
    names_the_import("open_for_read_only", directory);
    const char* names[] = {"default"};
    const rocksdb_options_t* each[] = {options};
    rocksdb_column_family_handle_t* families[1];
    rocksdb_open_column_families(options, directory, 1, names, each, families, &err);
    names_the_import("open_column_families", directory);
    size_t count = 0;
    rocksdb_list_column_families(options, directory, &count, &err);
    names_the_import("list_column_families", directory);
    rocksdb_repair_db(options, directory, &err);
    names_the_import("repair_db", directory);
    rocksdb_destroy_db(options, directory, &err);
    rocksdb_free(err);
    rocksdb_options_destroy(options);

    /* All files are there, and no others. */
    char path[4096];
    const char* files[] = {"CURRENT", "MANIFEST-000005", "OPTIONS-000007", "IDENTITY"};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        if (unlink(path) != 0) return 3;
    }
    if (rmdir(directory) != 0) return 4;
    printf("all is well\n");
    return 0;
}
