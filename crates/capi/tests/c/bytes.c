/* Paths and names of column families are bytes; and what destroying a database removes. */
#include "rocksdb/c.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, err ? err : ""); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static char* err = NULL;
static const char* root;
static rocksdb_options_t* options;
static rocksdb_writeoptions_t* wo;
static rocksdb_readoptions_t* ro;

static const char* at(const char* name) {
    static char paths[8][4096];
    static int next = 0;
    char* path = paths[next++ % 8];
    snprintf(path, 4096, "%s/%s", root, name);
    return path;
}

static int there(const char* name) {
    struct stat stat;
    return lstat(at(name), &stat) == 0;
}

static void file(const char* name, const char* text) {
    FILE* out = fopen(at(name), "w");
    CHECK(out != NULL && fputs(text, out) >= 0 && fclose(out) == 0);
}

static void make(const char* name, const char* value) {
    rocksdb_t* db = rocksdb_open(options, at(name), &err);
    CHECK(err == NULL);
    rocksdb_put(db, wo, "key", 3, value, strlen(value), &err);
    CHECK(err == NULL);
    rocksdb_close(db);
}

static void has(const char* name, const char* value) {
    rocksdb_t* db = rocksdb_open(options, at(name), &err);
    CHECK(err == NULL);
    size_t length = 0;
    char* found = rocksdb_get(db, ro, "key", 3, &length, &err);
    CHECK(err == NULL && found != NULL && length == strlen(value));
    CHECK(memcmp(found, value, length) == 0);
    rocksdb_free(found);
    rocksdb_close(db);
}

static void paths(void) {
    make("caf\xe9", "of e9");
    make("caf\xe8", "of e8");
    has("caf\xe9", "of e9");
    has("caf\xe8", "of e8");
    rocksdb_t* db = rocksdb_open(options, at("caf\xe9"), &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
    rocksdb_flush(db, fo, &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_destroy(fo);
    const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
    CHECK(strcmp(rocksdb_livefiles_directory(files, 0), at("caf\xe9")) == 0);
    rocksdb_livefiles_destroy(files);
    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
    rocksdb_checkpoint_create(checkpoint, at("copy\xe9"), 0, &err);
    CHECK(err == NULL);
    rocksdb_checkpoint_create(checkpoint, at("copy\xe8"), 0, &err);
    CHECK(err == NULL);
    rocksdb_checkpoint_create(checkpoint, at("copy\xe8"), 0, &err);
    CHECK(err != NULL && strstr(err, "copy\\xe8 exists already") != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_checkpoint_object_destroy(checkpoint);
    rocksdb_envoptions_t* eo = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(eo, options);
    const char* values[] = {"1", "2"};
    const char* ssts[] = {at("sst\xe8"), at("sst\xe9")};
    for (int i = 0; i < 2; i++) {
        rocksdb_sstfilewriter_open(writer, ssts[i], &err);
        CHECK(err == NULL);
        rocksdb_sstfilewriter_put(writer, i ? "b" : "a", 1, values[i], 1, &err);
        rocksdb_sstfilewriter_finish(writer, &err);
        CHECK(err == NULL);
    }
    CHECK(there("sst\xe8") && there("sst\xe9"));
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(eo);
    rocksdb_ingestexternalfileoptions_t* io = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingest_external_file(db, ssts, 2, io, &err);
    CHECK(err == NULL);
    rocksdb_ingestexternalfileoptions_destroy(io);
    size_t length = 0;
    char* found = rocksdb_get(db, ro, "b", 1, &length, &err);
    CHECK(found != NULL && length == 1 && *found == '2');
    rocksdb_free(found);
    rocksdb_close(db);
    has("copy\xe9", "of e9");
    rocksdb_destroy_db(options, at("caf\xe9"), &err);
    CHECK(err == NULL && !there("caf\xe9"));
    has("caf\xe8", "of e8");
    has("copy\xe8", "of e9");
}

static void families(void) {
    static const char* names[] = {"default", "\xe9", "\xe8", "caf\xc3\xa9", "caf\xe9"};
    rocksdb_t* db = rocksdb_open(options, at("families"), &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_t* handles[5];
    for (int i = 1; i < 5; i++) {
        handles[i] = rocksdb_create_column_family(db, options, names[i], &err);
        CHECK(err == NULL);
        rocksdb_put_cf(db, wo, handles[i], "key", 3, names[i], strlen(names[i]), &err);
        CHECK(err == NULL);
        size_t length = 0;
        char* name = rocksdb_column_family_handle_get_name(handles[i], &length);
        CHECK(strcmp(name, names[i]) == 0 && length == strlen(names[i]));
        rocksdb_free(name);
        rocksdb_column_family_metadata_t* metadata =
            rocksdb_get_column_family_metadata_cf(db, handles[i]);
        name = rocksdb_column_family_metadata_get_name(metadata);
        CHECK(strcmp(name, names[i]) == 0);
        rocksdb_free(name);
        rocksdb_column_family_metadata_destroy(metadata);
        rocksdb_column_family_handle_destroy(handles[i]);
    }
    rocksdb_create_column_family(db, options, "\xe9", &err);
    CHECK(err != NULL && strstr(err, "\\xe9") != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_close(db);

    size_t count = 0;
    char** list = rocksdb_list_column_families(options, at("families"), &count, &err);
    CHECK(err == NULL && count == 5);
    for (int i = 0; i < 5; i++) CHECK(strcmp(list[i], names[i]) == 0);
    rocksdb_list_column_families_destroy(list, count);

    /* A name with one different byte is another name. */
    static const char* wrong[] = {"default", "\xe9", "\xe7", "caf\xc3\xa9", "caf\xe9"};
    const rocksdb_options_t* each[] = {options, options, options, options, options};
    CHECK(rocksdb_open_column_families(options, at("families"), 5, wrong, each, handles, &err) == NULL);
    CHECK(err != NULL && strstr(err, "\\xe7") != NULL);
    rocksdb_free(err);
    err = NULL;
    db = rocksdb_open_column_families(options, at("families"), 5, names, each, handles, &err);
    CHECK(err == NULL);
    for (int i = 0; i < 5; i++) {
        size_t length = 0;
        char* found = rocksdb_get_cf(db, ro, handles[i], "key", 3, &length, &err);
        CHECK(err == NULL && (i == 0) == (found == NULL));
        CHECK(i == 0 || (length == strlen(names[i]) && memcmp(found, names[i], length) == 0));
        rocksdb_free(found);
        rocksdb_column_family_handle_destroy(handles[i]);
    }
    rocksdb_close(db);
}

static void logs(void) {
    rocksdb_options_set_wal_dir(options, at("logs\xe9"));
    size_t length = 0;
    CHECK(strcmp(rocksdb_options_get_wal_dir(options, &length), at("logs\xe9")) == 0);
    make("logged", "in a log");
    CHECK(there("logs\xe9") && !there("logs\xe8"));
    /* The stored options contain the path, too. */
    rocksdb_options_t *plain = options, *stored = NULL, **each = NULL;
    rocksdb_env_t* env = rocksdb_create_default_env();
    char** names = NULL;
    size_t count = 0;
    rocksdb_load_latest_options(at("logged"), env, 0, NULL, &stored, &count, &names, &each, &err);
    CHECK(err == NULL && count == 1);
    options = stored;
    has("logged", "in a log");
    options = plain;
    rocksdb_load_latest_options_destroy(stored, names, each, count);
    rocksdb_env_destroy(env);
    /* A WAL directory that stayed would prevent the next database. */
    for (int i = 0; i < 2; i++) {
        rocksdb_destroy_db(options, at("logged"), &err);
        CHECK(err == NULL && !there("logged") && !there("logs\xe9"));
        make("logged", "anew");
        has("logged", "anew");
    }
    rocksdb_destroy_db(options, at("logged"), &err);
    CHECK(err == NULL);
    rocksdb_options_set_wal_dir(options, "");
}

static void destroying(void) {
    rocksdb_options_t* plain = options;
    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    make("db", "1");
    make("db/nested", "2");
    file("db/notes.txt", "mine");
    file("db/777777.wal", "mine, too");
    rocksdb_destroy_db(options, at("db"), &err);
    CHECK(err == NULL && there("db/notes.txt") && there("db/777777.wal") && !there("db/CURRENT"));
    has("db/nested", "2");
    /* Through a symbolic link. */
    CHECK(mkdir(at("real"), 0755) == 0 && symlink(at("real"), at("link")) == 0);
    make("link", "3");
    CHECK(there("real/CURRENT"));
    rocksdb_destroy_db(options, at("link"), &err);
    CHECK(err == NULL && there("link") && there("real") && !there("real/CURRENT"));
    CHECK(rmdir(at("real")) == 0);
    /* Without CURRENT. */
    make("broken", "4");
    CHECK(unlink(at("broken/CURRENT")) == 0);
    CHECK(rocksdb_open(options, at("broken"), &err) == NULL && err != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_destroy_db(options, at("broken"), &err);
    CHECK(err == NULL && !there("broken"));
    make("broken", "5");
    has("broken", "5");
    /* Destroying a missing database succeeds. */
    rocksdb_destroy_db(options, at("none"), &err);
    CHECK(err == NULL && !there("none"));
    /* An open database stays. */
    rocksdb_t* db = rocksdb_open(options, at("broken"), &err);
    CHECK(err == NULL);
    rocksdb_destroy_db(options, at("broken"), &err);
    CHECK(err != NULL && strstr(err, "IO error") != NULL && there("broken/CURRENT"));
    rocksdb_free(err);
    err = NULL;
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    options = plain;
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    root = arguments[1];
    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    wo = rocksdb_writeoptions_create();
    ro = rocksdb_readoptions_create();
    paths();
    families();
    destroying();
    logs();
    rocksdb_writeoptions_destroy(wo);
    rocksdb_readoptions_destroy(ro);
    rocksdb_options_destroy(options);
    puts("all is well");
    return 0;
}
