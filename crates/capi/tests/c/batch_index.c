/* Batches with an index: what they say alone, and above a database. */
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
static rocksdb_readoptions_t* ro;

static void fails_with(const char* says) {
    CHECK(err != NULL && strstr(err, says) != NULL);
    rocksdb_free(err);
    err = NULL;
}

static void is(char* value, const size_t* length, const char* expected) {
    CHECK(err == NULL);
    CHECK((value == NULL) == (expected == NULL));
    CHECK(expected == NULL || *length == strlen(expected));
    CHECK(expected == NULL || memcmp(value, expected, *length) == 0);
    rocksdb_free(value);
}

/* Shows the keys and values of an iterator as text, and frees it. */
static const char* shown(rocksdb_iterator_t* iter) {
    static char text[200];
    size_t at = 0;
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        size_t key = 0, value = 0;
        const char* k = rocksdb_iter_key(iter, &key);
        const char* v = rocksdb_iter_value(iter, &value);
        at += (size_t)snprintf(text + at, sizeof text - at, "%.*s=%.*s ", (int)key, k, (int)value, v);
    }
    text[at] = 0;
    rocksdb_iter_get_error(iter, &err);
    CHECK(err == NULL);
    rocksdb_iter_destroy(iter);
    return text;
}

static int puts_seen, deletes_seen;

static void on_put(void* state, const char* key, size_t klen, const char* value, size_t vlen) {
    (void)state, (void)key, (void)klen, (void)value, (void)vlen;
    puts_seen++;
}

static void on_delete(void* state, const char* key, size_t klen) {
    (void)state, (void)key, (void)klen;
    deletes_seen++;
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    ro = rocksdb_readoptions_create();
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_column_family_handle_t* loans =
        rocksdb_create_column_family(db, options, "loans", &err);
    CHECK(loans != NULL && err == NULL);
    rocksdb_put(db, wo, "a", 1, "1", 1, &err);
    rocksdb_put(db, wo, "b", 1, "2", 1, &err);
    rocksdb_put_cf(db, wo, loans, "a", 1, "one", 3, &err);
    CHECK(err == NULL);

    rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
    rocksdb_writebatch_wi_put(batch, "c", 1, "3", 1);
    rocksdb_writebatch_wi_delete(batch, "a", 1);
    rocksdb_writebatch_wi_put_cf(batch, loans, "b", 1, "two", 3);
    rocksdb_writebatch_wi_put_log_data(batch, "log", 3);
    CHECK(rocksdb_writebatch_wi_count(batch) == 3);
    size_t length = 7;
    is(rocksdb_writebatch_wi_get_from_batch(batch, options, "c", 1, &length, &err), &length, "3");
    is(rocksdb_writebatch_wi_get_from_batch(batch, options, "a", 1, &length, &err), &length, NULL);
    CHECK(length == 0);
    is(rocksdb_writebatch_wi_get_from_batch(batch, options, "b", 1, &length, &err), &length, NULL);
    is(rocksdb_writebatch_wi_get_from_batch_cf(batch, options, loans, "b", 1, &length, &err), &length,
        "two");
    is(rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, ro, "b", 1, &length, &err), &length,
        "2");
    is(rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, ro, "a", 1, &length, &err), &length,
        NULL);
    is(rocksdb_writebatch_wi_get_from_batch_and_db_cf(batch, db, ro, loans, "a", 1, &length, &err),
        &length, "one");
    rocksdb_pinnableslice_t* pinned =
        rocksdb_writebatch_wi_get_pinned_from_batch_and_db(batch, db, ro, "c", 1, &err);
    CHECK(pinned != NULL && memcmp(rocksdb_pinnableslice_value(pinned, &length), "3", 1) == 0);
    rocksdb_pinnableslice_destroy(pinned);
    CHECK(rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(batch, db, ro, loans, "c", 1, &err) ==
          NULL && err == NULL);

    rocksdb_iterator_t* iter = rocksdb_writebatch_wi_create_iterator_with_base(
        batch, rocksdb_create_iterator(db, ro));
    rocksdb_iter_seek_to_last(iter);
    CHECK(rocksdb_iter_valid(iter) && *rocksdb_iter_key(iter, &length) == 'c');
    rocksdb_iter_prev(iter);
    CHECK(rocksdb_iter_valid(iter) && *rocksdb_iter_key(iter, &length) == 'b');
    rocksdb_iter_refresh(iter, &err);
    fails_with("cannot be refreshed");
    CHECK(strcmp(shown(iter), "b=2 c=3 ") == 0);
    iter = rocksdb_writebatch_wi_create_iterator_with_base_cf(
        batch, rocksdb_create_iterator_cf(db, ro, loans), loans);
    CHECK(strcmp(shown(iter), "a=one b=two ") == 0);
    rocksdb_readoptions_t* bounded = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_upper_bound(bounded, "c", 1);
    iter = rocksdb_writebatch_wi_create_iterator_with_base_readopts(
        batch, rocksdb_create_iterator(db, ro), bounded);
    CHECK(strcmp(shown(iter), "b=2 ") == 0);
    rocksdb_readoptions_destroy(bounded);

    rocksdb_writebatch_wi_iterate(batch, NULL, on_put, on_delete);
    CHECK(puts_seen == 1 && deletes_seen == 1);

    /* Save points, bytes, and a copy. */
    rocksdb_writebatch_wi_set_save_point(batch);
    rocksdb_writebatch_wi_delete_range(batch, "a", 1, "z", 1);
    is(rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, ro, "b", 1, &length, &err), &length,
        NULL);
    rocksdb_writebatch_wi_rollback_to_save_point(batch, &err);
    CHECK(err == NULL);
    rocksdb_writebatch_wi_rollback_to_save_point(batch, &err);
    fails_with("NotFound:");
    const char* data = rocksdb_writebatch_wi_data(batch, &length);
    rocksdb_writebatch_wi_t* copy = rocksdb_writebatch_wi_create_from(data, length);
    CHECK(rocksdb_writebatch_wi_count(copy) == 3);
    is(rocksdb_writebatch_wi_get_from_batch_cf(copy, options, loans, "b", 1, &length, &err), &length,
        "two");
    rocksdb_writebatch_wi_destroy(copy);
    copy = rocksdb_writebatch_wi_create_from("none", 4);
    is(rocksdb_writebatch_wi_get_from_batch(batch, options, "c", 1, &length, &err), &length, "3");
    rocksdb_write_writebatch_wi(db, wo, copy, &err);
    fails_with("Invalid argument:");
    rocksdb_writebatch_wi_destroy(copy);

    rocksdb_write_writebatch_wi(db, wo, batch, &err);
    CHECK(err == NULL);
    CHECK(strcmp(shown(rocksdb_create_iterator(db, ro)), "b=2 c=3 ") == 0);
    rocksdb_writebatch_wi_clear(batch);
    CHECK(rocksdb_writebatch_wi_count(batch) == 0);

    /* Pieces, operands alone, and a null family, which is an error of the batch. */
    const char* pieces[] = {"k", "ey"};
    const size_t sizes[] = {1, 2};
    rocksdb_writebatch_wi_putv(batch, 2, pieces, sizes, 1, pieces, sizes);
    is(rocksdb_writebatch_wi_get_from_batch(batch, options, "key", 3, &length, &err), &length, "k");
    rocksdb_writebatch_wi_merge(batch, "m", 1, "x", 1);
    CHECK(rocksdb_writebatch_wi_get_from_batch(batch, options, "m", 1, &length, &err) == NULL);
    fails_with("Merge in progress:");
    rocksdb_writebatch_wi_put_cf(batch, NULL, "a", 1, "b", 1);
    rocksdb_write_writebatch_wi(db, wo, batch, &err);
    fails_with("the column family is null");
    rocksdb_writebatch_wi_destroy(batch);
    rocksdb_writebatch_wi_destroy(NULL);
    CHECK(rocksdb_writebatch_wi_count(NULL) == 0);
    rocksdb_write_writebatch_wi(db, wo, NULL, &err);
    fails_with("the batch is null");
    CHECK(rocksdb_writebatch_wi_create_iterator_with_base(NULL, NULL) == NULL);

    rocksdb_column_family_handle_destroy(loans);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_readoptions_destroy(ro);
    puts("all is well");
    return 0;
}
