/* Prefix extractors, and iterators that end with the prefix. */
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
static const char* name(void* state) { (void)state; return "up to the slash"; }
static const char* slash(const char* key, size_t length) { return memchr(key, '/', length); }
static unsigned char in_domain(void* state, const char* key, size_t length) {
    (void)state;
    return slash(key, length) != NULL;
}
static char* transform(void* state, const char* key, size_t length, size_t* prefix_length) {
    (void)state;
    *prefix_length = (size_t)(slash(key, length) - key) + 1;
    return (char*)key;
}

static int count(rocksdb_t* db, const rocksdb_readoptions_t* options, const char* from) {
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, options);
    int found = 0;
    for (rocksdb_iter_seek(iter, from, strlen(from)); rocksdb_iter_valid(iter);
         rocksdb_iter_next(iter)) {
        found += 1;
    }
    rocksdb_iter_get_error(iter, &err);
    CHECK(err == NULL);
    rocksdb_iter_destroy(iter);
    return found;
}

static void check(const char* path, rocksdb_slicetransform_t* extractor, int of_b, int of_b2) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_prefix_extractor(options, extractor);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 0.1);
    rocksdb_options_set_memtable_whole_key_filtering(options, 1);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    const char* keys[] = {"a/1", "a/2", "b/1", "b/2", "b/3", "d/1"};
    for (int at = 0; at < 6; at += 1) {
        rocksdb_put(db, wo, keys[at], 3, "v", 1, &err);
        CHECK(err == NULL);
    }
    rocksdb_readoptions_t* all = rocksdb_readoptions_create();
    rocksdb_readoptions_t* same = rocksdb_readoptions_create();
    CHECK(rocksdb_readoptions_get_prefix_same_as_start(same) == 0);
    rocksdb_readoptions_set_prefix_same_as_start(same, 1);
    CHECK(rocksdb_readoptions_get_prefix_same_as_start(same) == 1);
    for (int stored = 0; stored < 2; stored += 1) {
        CHECK(count(db, all, "b/") == 4 && count(db, all, "b/2") == 3);
        CHECK(count(db, same, "b/") == of_b && count(db, same, "b/2") == of_b2);
        CHECK(count(db, same, "c/1") == 0);
        rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
        rocksdb_flush(db, fo, &err);
        CHECK(err == NULL);
        rocksdb_flushoptions_destroy(fo);
    }
    rocksdb_readoptions_destroy(all);
    rocksdb_readoptions_destroy(same);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

/* Options as text: an extractor in RocksDB's form; the `ttl` there is about files. */
static void in_words(const char* path) {
    rocksdb_options_t* base = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(base, 1);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_get_options_from_string(
        base, "prefix_extractor={id=rocksdb.FixedPrefix.2;length=2;};ttl=2592000", options, &err);
    CHECK(err == NULL);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* same = rocksdb_readoptions_create();
    rocksdb_readoptions_set_prefix_same_as_start(same, 1);
    rocksdb_put(db, wo, "b/1", 3, "v", 1, &err);
    rocksdb_put(db, wo, "c/1", 3, "v", 1, &err);
    CHECK(err == NULL && count(db, same, "b/") == 1);
    rocksdb_close(db);
    db = rocksdb_open(base, path, &err);
    CHECK(db != NULL && err == NULL && count(db, same, "b/") == 2);
    size_t length = 0;
    char* value = rocksdb_get(db, same, "b/1", 3, &length, &err);
    CHECK(value != NULL && length == 1);
    rocksdb_free(value);
    rocksdb_close(db);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_readoptions_destroy(same);
    rocksdb_options_destroy(options);
    rocksdb_options_destroy(base);
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    char path[1000];
    snprintf(path, sizeof path, "%s/custom", argv[1]);
    alive = 1;
    check(path, rocksdb_slicetransform_create(NULL, gone, transform, in_domain, name), 3, 2);
    CHECK(alive == 0);
    snprintf(path, sizeof path, "%s/fixed", argv[1]);
    check(path, rocksdb_slicetransform_create_fixed_prefix(2), 3, 2);
    snprintf(path, sizeof path, "%s/noop", argv[1]);
    check(path, rocksdb_slicetransform_create_noop(), 0, 1);
    snprintf(path, sizeof path, "%s/words", argv[1]);
    in_words(path);
    alive = 1;
    rocksdb_slicetransform_destroy(
        rocksdb_slicetransform_create(NULL, gone, transform, in_domain, name));
    CHECK(alive == 0);
    rocksdb_slicetransform_destroy(NULL);
    puts("all is well");
    return 0;
}
