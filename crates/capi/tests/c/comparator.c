/* Keys in the order of a comparator: numbers as text, by their value. */
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
static int alive = 0;

static void gone(void* state) { (void)state; alive -= 1; }
static const char* by_value(void* state) { (void)state; return "by value"; }
static const char* bytewise(void* state) { (void)state; return "leveldb.BytewiseComparator"; }
static long value_of(const char* key, size_t length) {
    char text[32] = {0};
    memcpy(text, key, length < 31 ? length : 31);
    return strtol(text, NULL, 10);
}
static int compare(void* state, const char* a, size_t a_length, const char* b, size_t b_length) {
    (void)state;
    long difference = value_of(a, a_length) - value_of(b, b_length);
    return difference < 0 ? -7 : difference > 0 ? 7 : 0;
}

static rocksdb_comparator_t* make(const char* (*name)(void*)) {
    alive += 1;
    return rocksdb_comparator_create(NULL, gone, compare, name);
}

static rocksdb_options_t* with(rocksdb_comparator_t* comparator) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    if (comparator) rocksdb_options_set_comparator(options, comparator);
    return options;
}

/* Returns the keys of the database as a list, from `from` on. */
static const char* keys(rocksdb_t* db, const char* from, const char* upper) {
    static char list[256];
    list[0] = 0;
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    if (upper) rocksdb_readoptions_set_iterate_upper_bound(read, upper, strlen(upper));
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
    for (rocksdb_iter_seek(iter, from, strlen(from)); rocksdb_iter_valid(iter);
         rocksdb_iter_next(iter)) {
        size_t length;
        const char* key = rocksdb_iter_key(iter, &length);
        strncat(list, key, length);
        strcat(list, " ");
    }
    rocksdb_iter_get_error(iter, &err);
    CHECK(err == NULL);
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(read);
    return list;
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[512], other[512], file[512];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    snprintf(other, sizeof other, "%s/other", arguments[1]);
    snprintf(file, sizeof file, "%s/file.sst", arguments[1]);

    rocksdb_comparator_t* comparator = make(by_value);
    rocksdb_options_t* options = with(comparator);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    const char* numbers[] = {"100", "9", "20", "3", "1000", "77"};
    for (int i = 0; i < 6; i++) {
        rocksdb_put(db, write, numbers[i], strlen(numbers[i]), "v", 1, &err);
        CHECK(err == NULL);
    }
    CHECK(strcmp(keys(db, "0", NULL), "3 9 20 77 100 1000 ") == 0);

    /* A file for the database must have its order. */
    rocksdb_envoptions_t* environment = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* writer =
        rocksdb_sstfilewriter_create_with_comparator(environment, options, comparator);
    rocksdb_sstfilewriter_open(writer, file, &err);
    CHECK(err == NULL);
    rocksdb_sstfilewriter_put(writer, "10", 2, "in", 2, &err);
    rocksdb_sstfilewriter_put(writer, "200", 3, "in", 2, &err);
    CHECK(err == NULL);
    rocksdb_sstfilewriter_put(writer, "30", 2, "in", 2, &err);
    CHECK(err != NULL);
    free(err);
    err = NULL;
    rocksdb_sstfilewriter_finish(writer, &err);
    CHECK(err == NULL);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(environment);
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    const char* files[] = {file};
    rocksdb_ingest_external_file(db, files, 1, ingest, &err);
    CHECK(err == NULL);

    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &err);
    CHECK(err == NULL);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    CHECK(strcmp(keys(db, "9", "200"), "9 10 20 77 100 ") == 0);
    rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
    rocksdb_delete_range_cf(db, write, family, "10", 2, "100", 3, &err);
    CHECK(err == NULL);
    CHECK(strcmp(keys(db, "0", NULL), "3 9 100 200 1000 ") == 0);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);

    /* Another order is refused by its name. Listing column families needs none. */
    rocksdb_options_t* plain = with(NULL);
    CHECK(rocksdb_open(plain, path, &err) == NULL);
    CHECK(err && strcmp(err, "Invalid argument: leveldb.BytewiseComparator: "
                             "does not match existing comparator by value") == 0);
    free(err);
    err = NULL;
    size_t families;
    char** names = rocksdb_list_column_families(plain, path, &families, &err);
    CHECK(err == NULL && families == 1 && strcmp(names[0], "default") == 0);
    rocksdb_list_column_families_destroy(names, families);

    /* A freed comparator stays alive in options that have it. */
    rocksdb_comparator_destroy(comparator);
    CHECK(alive == 1);
    db = rocksdb_open_for_read_only(options, path, 0, &err);
    CHECK(err == NULL);
    rocksdb_options_destroy(options);
    CHECK(strcmp(keys(db, "100", NULL), "100 200 1000 ") == 0);
    size_t length;
    char* value = rocksdb_get(db, read, "200", 3, &length, &err);
    CHECK(err == NULL && length == 2 && memcmp(value, "in", 2) == 0);
    free(value);
    rocksdb_close(db);
    CHECK(alive == 0);

    /* One column family has the order of bytes, one that of values. */
    comparator = make(by_value);
    options = with(comparator);
    const char* both[] = {"default", "numbers"};
    const rocksdb_options_t* of_both[] = {plain, options};
    rocksdb_column_family_handle_t* handles[2];
    db = rocksdb_open_column_families(plain, other, 2, both, of_both, handles, &err);
    CHECK(err == NULL);
    for (int i = 0; i < 6; i++) {
        rocksdb_put(db, write, numbers[i], strlen(numbers[i]), "v", 1, &err);
        rocksdb_put_cf(db, write, handles[1], numbers[i], strlen(numbers[i]), "v", 1, &err);
        CHECK(err == NULL);
    }
    CHECK(strcmp(keys(db, "", NULL), "100 1000 20 3 77 9 ") == 0);
    for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(handles[i]);
    rocksdb_close(db);
    db = rocksdb_open_for_read_only_column_families(plain, other, 2, both, of_both, handles, 0, &err);
    CHECK(err == NULL);
    rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(db, read, handles[1]);
    rocksdb_iter_seek_to_last(iter);
    const char* key = rocksdb_iter_key(iter, &length);
    CHECK(length == 4 && memcmp(key, "1000", 4) == 0);
    rocksdb_iter_destroy(iter);
    for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(handles[i]);
    rocksdb_close(db);
    rocksdb_comparator_destroy(comparator);
    rocksdb_options_destroy(options);
    CHECK(alive == 0);

    /* A comparator with the name of the engine's own order is replaced by that order. */
    comparator = make(bytewise);
    CHECK(alive == 1);
    options = with(comparator);
    rocksdb_comparator_destroy(comparator);
    CHECK(alive == 0);
    snprintf(other, sizeof other, "%s/bytes", arguments[1]);
    db = rocksdb_open(options, other, &err);
    CHECK(err == NULL);
    rocksdb_put(db, write, "9", 1, "v", 1, &err);
    rocksdb_put(db, write, "10", 2, "v", 1, &err);
    CHECK(err == NULL && strcmp(keys(db, "", NULL), "10 9 ") == 0);
    rocksdb_close(db);

    rocksdb_options_destroy(options);
    rocksdb_options_destroy(plain);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
    CHECK(rocksdb_comparator_create(NULL, NULL, NULL, NULL) == NULL);
    puts("all is well");
    return 0;
}
