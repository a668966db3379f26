/* Calls the functions whose signature changed with that of SATEEN_ROCKSDB_ABI. */
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
static int state_of_mine = 42;
static int named = 0, transformed = 0, freed = 0;

static void gone(void* state) {
    CHECK(state == &state_of_mine);
    freed++;
}
static const char* name(void* state) {
    CHECK(state == &state_of_mine);
    named++;
    return "three bytes";
}
static unsigned char in_domain(void* state, const char* key, size_t length) {
    CHECK(state == &state_of_mine && key != NULL);
    return length >= 3;
}
static char* transform(void* state, const char* key, size_t length, size_t* prefix_length) {
    CHECK(state == &state_of_mine && length >= 3);
    transformed++;
    *prefix_length = 3;
    return (char*)key;
}
#if SATEEN_ROCKSDB_ABI < 11
static unsigned char in_range(void* state, const char* key, size_t length) {
    (void)state, (void)key, (void)length;
    CHECK(!"nobody calls it");
    return 0;
}
#endif

static rocksdb_slicetransform_t* extractor(void) {
#if SATEEN_ROCKSDB_ABI < 11
    return rocksdb_slicetransform_create(
        &state_of_mine, gone, transform, in_domain, in_range, name);
#else
    return rocksdb_slicetransform_create(&state_of_mine, gone, transform, in_domain, name);
#endif
}

static void enable(rocksdb_t* db, int force) {
#if SATEEN_ROCKSDB_ABI < 9
    rocksdb_enable_file_deletions(db, (unsigned char)force, &err);
#else
    (void)force;
    rocksdb_enable_file_deletions(db, &err);
#endif
    CHECK(err == NULL);
}

static int enabled(rocksdb_t* db) {
    uint64_t value = 9;
    CHECK(rocksdb_property_int(db, "rocksdb.is-file-deletions-enabled", &value) == 0);
    return (int)value;
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_prefix_extractor(options, extractor());
#if SATEEN_ROCKSDB_ABI < 8
    rocksdb_options_set_plain_table_factory(options, 4, 10, 0.75, 16);
#else
    rocksdb_options_set_plain_table_factory(options, 4, 10, 0.75, 16, 0, 0, 0, 0);
#endif
    char path[4096];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL && named > 0);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    const char* keys[] = {"one/1", "one/2", "two/1"};
    for (int i = 0; i < 3; i++) {
        rocksdb_put(db, wo, keys[i], 5, "v", 1, &err);
        CHECK(err == NULL);
    }
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    rocksdb_readoptions_set_prefix_same_as_start(ro, 1);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
    int found = 0;
    for (rocksdb_iter_seek(iter, "one", 3); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        found++;
    }
    rocksdb_iter_destroy(iter);
    CHECK(found == 2 && transformed > 0);

    rocksdb_disable_file_deletions(db, &err);
    rocksdb_disable_file_deletions(db, &err);
    CHECK(err == NULL && !enabled(db));
    enable(db, 0);
    CHECK(!enabled(db));
    enable(db, 1);
    CHECK(enabled(db));
    /* Enabling without disabling before has no effect. */
    enable(db, 0);
    rocksdb_disable_file_deletions(db, &err);
    CHECK(!enabled(db));
#if SATEEN_ROCKSDB_ABI < 9
    rocksdb_disable_file_deletions(db, &err);
    enable(db, 1);
    CHECK(enabled(db));
#endif

    rocksdb_readoptions_destroy(ro);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    CHECK(freed <= 1);
    puts("all is well");
    return 0;
}
