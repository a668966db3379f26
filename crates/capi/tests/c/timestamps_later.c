/* Timestamps that are set later, by batches and transactions; trimmed history; reads with metadata. */
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
static rocksdb_t* db;
static rocksdb_column_family_handle_t *plain, *timed;
static rocksdb_readoptions_t* ro;
static rocksdb_writeoptions_t* wo;

static void fails_with(const char* says) {
    CHECK(err != NULL && strstr(err, says) != NULL);
    rocksdb_free(err);
    err = NULL;
}

/* A timestamp of eight bytes, the least significant one first. */
static const char* ts(uint64_t time) {
    static char places[4][8];
    static int next;
    char* place = places[next++ % 4];
    for (int i = 0; i < 8; i++) place[i] = (char)(time >> (8 * i));
    return place;
}

static uint64_t time_of(const char* timestamp) {
    uint64_t time = 0;
    for (int i = 7; i >= 0; i--) time = time << 8 | (unsigned char)timestamp[i];
    return time;
}

static int compare(void* state, const char* a, size_t alen, const char* b, size_t blen) {
    (void)state;
    CHECK(alen >= 8 && blen >= 8);
    int order = memcmp(a, b, alen < blen ? alen - 8 : blen - 8);
    if (order == 0 && alen != blen) return alen < blen ? -1 : 1;
    if (order != 0) return order;
    uint64_t at = time_of(a + alen - 8), bt = time_of(b + blen - 8);
    return at > bt ? -1 : at < bt;
}

static int compare_ts(void* state, const char* a, size_t alen, const char* b, size_t blen) {
    (void)state, (void)alen, (void)blen;
    uint64_t at = time_of(a), bt = time_of(b);
    return at < bt ? -1 : at > bt;
}

static int compare_without_ts(void* state, const char* a, size_t alen, unsigned char a_has,
                              const char* b, size_t blen, unsigned char b_has) {
    (void)state, (void)a, (void)alen, (void)a_has, (void)b, (void)blen, (void)b_has;
    return 0;
}

static void nothing(void* state) {
    (void)state;
}

static const char* name(void* state) {
    (void)state;
    return "eight bytes";
}

static size_t ts_size(void* state, uint32_t family) {
    CHECK(state == &db);
    return family == rocksdb_column_family_handle_get_id(timed) ? 8 : 0;
}

/* Null for no value. */
static void sees(uint64_t at, const char* key, const char* value, uint64_t time) {
    rocksdb_readoptions_set_timestamp(ro, ts(at), 8);
    size_t length = 0, ts_length = 0;
    char* found_at = NULL;
    char* found = rocksdb_get_cf_with_metadata(db, ro, timed, key, strlen(key), &length, &found_at,
                                               &ts_length, NULL, &err);
    CHECK(err == NULL && (found == NULL) == (value == NULL));
    if (value != NULL) {
        CHECK(length == strlen(value) && memcmp(found, value, length) == 0);
        CHECK(ts_length == 8 && time_of(found_at) == time);
    }
    rocksdb_free(found);
    rocksdb_free(found_at);
    rocksdb_readoptions_set_timestamp(ro, NULL, 0);
}

static void batches(void) {
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put_cf(batch, timed, "a", 1, "1", 1);
    rocksdb_writebatch_put_cf(batch, plain, "a", 1, "plain", 5);
    rocksdb_writebatch_delete_cf(batch, timed, "b", 1);
    rocksdb_write(db, wo, batch, &err);
    fails_with("have no timestamp");
    rocksdb_writebatch_update_timestamps(batch, ts(3), 7, &db, ts_size, &err);
    fails_with("a timestamp of 7 bytes");
    rocksdb_write(db, wo, batch, &err);
    fails_with("have no timestamp");
    rocksdb_writebatch_update_timestamps(batch, ts(3), 8, &db, ts_size, &err);
    CHECK(err == NULL && rocksdb_writebatch_count(batch) == 3);
    rocksdb_write(db, wo, batch, &err);
    CHECK(err == NULL);
    sees(2, "a", NULL, 0);
    sees(3, "a", "1", 3);
    /* The timestamps of a batch can be changed. */
    rocksdb_writebatch_update_timestamps(batch, ts(4), 8, &db, ts_size, &err);
    rocksdb_write(db, wo, batch, &err);
    CHECK(err == NULL);
    sees(9, "a", "1", 4);
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_merge_cf(batch, timed, "a", 1, "1", 1);
    rocksdb_write(db, wo, batch, &err);
    fails_with("have timestamps");
    rocksdb_writebatch_destroy(batch);

    rocksdb_writebatch_wi_t* indexed = rocksdb_writebatch_wi_create(0, 1);
    rocksdb_writebatch_wi_put_cf(indexed, timed, "b", 1, "2", 1);
    rocksdb_writebatch_wi_set_save_point(indexed);
    rocksdb_writebatch_wi_delete_cf(indexed, timed, "a", 1);
    rocksdb_write_writebatch_wi(db, wo, indexed, &err);
    fails_with("have no timestamp");
    rocksdb_writebatch_wi_update_timestamps(indexed, ts(6), 8, &db, NULL, &err);
    fails_with("the function of lengths");
    rocksdb_writebatch_wi_update_timestamps(indexed, ts(6), 8, &db, ts_size, &err);
    rocksdb_write_writebatch_wi(db, wo, indexed, &err);
    CHECK(err == NULL);
    sees(5, "a", "1", 4);
    sees(6, "a", NULL, 0);
    sees(6, "b", "2", 6);
    rocksdb_writebatch_wi_rollback_to_save_point(indexed, &err);
    rocksdb_writebatch_wi_update_timestamps(indexed, ts(7), 8, &db, ts_size, &err);
    rocksdb_write_writebatch_wi(db, wo, indexed, &err);
    CHECK(err == NULL);
    sees(7, "b", "2", 7);
    rocksdb_writebatch_wi_destroy(indexed);
}

static void metadata(void) {
    /* Whether keys were written after the snapshot. */
    rocksdb_put_cf(db, wo, plain, "old", 3, "1", 1, &err);
    rocksdb_put_cf(db, wo, plain, "new", 3, "1", 1, &err);
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    for (int flushed = 0; flushed < 2; flushed++) {
        rocksdb_put_cf(db, wo, plain, "new", 3, "1", 1, &err);
        rocksdb_put_cf(db, wo, plain, "created", 7, "1", 1, &err);
        const char* keys[] = {"old", "new", "created", "never"};
        const size_t lengths[] = {3, 3, 7, 5};
        const rocksdb_column_family_handle_t* families[] = {plain, plain, plain, plain};
        for (int at_snapshot = 0; at_snapshot < 2; at_snapshot++) {
            rocksdb_readoptions_set_snapshot(ro, at_snapshot ? snapshot : NULL);
            char *values[4], *times[4], *errors[4];
            size_t value_lengths[4], time_lengths[4];
            unsigned char newer[4];
            rocksdb_multi_get_cf_with_metadata(db, ro, families, 4, keys, lengths, values,
                                               value_lengths, times, time_lengths, newer, errors);
            for (int i = 0; i < 4; i++) {
                CHECK(errors[i] == NULL && times[i] == NULL && time_lengths[i] == 0);
                CHECK(newer[i] == (at_snapshot && (i == 1 || i == 2)));
                CHECK((values[i] != NULL) == (i < (at_snapshot ? 2 : 3)));
                rocksdb_free(values[i]);
            }
        }
        size_t length = 0;
        unsigned char newer = 0;
        char* value = rocksdb_get_cf_with_metadata(db, ro, plain, "new", 3, &length, NULL, NULL,
                                                   &newer, &err);
        CHECK(err == NULL && newer && length == 1 && *value == '1');
        rocksdb_free(value);
        rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
        rocksdb_flush_cf(db, fo, plain, &err);
        rocksdb_flushoptions_destroy(fo);
        CHECK(err == NULL);
    }
    rocksdb_readoptions_set_snapshot(ro, NULL);
    rocksdb_release_snapshot(db, snapshot);
    size_t length = 0;
    unsigned char newer = 7;
    CHECK(rocksdb_get_cf_with_metadata(db, ro, timed, "b", 1, &length, NULL, NULL, NULL, &err) ==
          NULL);
    fails_with("have timestamps");
    rocksdb_readoptions_set_timestamp(ro, ts(9), 8);
    CHECK(rocksdb_get_cf_with_metadata(db, ro, timed, "b", 1, &length, NULL, NULL, &newer, &err) ==
          NULL);
    fails_with("newer_version_present is not implemented");
    CHECK(newer == 0);
    rocksdb_readoptions_set_timestamp(ro, NULL, 0);
}

static void transactions(rocksdb_transactiondb_t* tdb) {
    rocksdb_transaction_options_t* to = rocksdb_transaction_options_create();
    rocksdb_transaction_options_set_lock_timeout(to, 1);
    rocksdb_transaction_t* one = rocksdb_transaction_begin(tdb, wo, to, NULL);
    rocksdb_transaction_t* other = rocksdb_transaction_begin(tdb, wo, to, NULL);
    rocksdb_transaction_put_cf(one, timed, "t", 1, "first", 5, &err);
    rocksdb_transaction_put_cf(one, plain, "t", 1, "plain", 5, &err);
    CHECK(err == NULL);
    rocksdb_transaction_put_cf(other, timed, "t", 1, "second", 6, &err);
    fails_with("Operation timed out:");
    rocksdb_transaction_merge_cf(one, timed, "t", 1, "1", 1, &err);
    fails_with("have timestamps");
    size_t length = 0;
    CHECK(rocksdb_transaction_get_cf(one, ro, timed, "t", 1, &length, &err) == NULL);
    fails_with("have no timestamp");
    rocksdb_readoptions_set_timestamp(ro, ts(10), 8);
    char* value = rocksdb_transaction_get_cf(one, ro, timed, "t", 1, &length, &err);
    CHECK(err == NULL && length == 5 && memcmp(value, "first", 5) == 0);
    rocksdb_free(value);
    rocksdb_transaction_commit(one, &err);
    fails_with("its commit needs one");
    rocksdb_transaction_set_commit_timestamp(one, 20);
    rocksdb_transaction_commit(one, &err);
    CHECK(err == NULL);
    rocksdb_transaction_destroy(one);
    sees(19, "t", NULL, 0);
    sees(20, "t", "first", 20);

    /* Reads for update as of a timestamp. */
    CHECK(rocksdb_transaction_get_for_update_cf(other, ro, timed, "t", 1, &length, 1, &err) == NULL);
    fails_with("set_read_timestamp_for_validation");
    rocksdb_transaction_set_read_timestamp_for_validation(other, 19);
    CHECK(rocksdb_transaction_get_for_update_cf(other, ro, timed, "t", 1, &length, 1, &err) == NULL);
    fails_with("Resource busy:");
    rocksdb_transaction_set_read_timestamp_for_validation(other, 20);
    value = rocksdb_transaction_get_for_update_cf(other, ro, timed, "t", 1, &length, 1, &err);
    CHECK(err == NULL && length == 5 && memcmp(value, "first", 5) == 0);
    rocksdb_free(value);
    rocksdb_readoptions_set_timestamp(ro, ts(21), 8);
    CHECK(rocksdb_transaction_get_for_update_cf(other, ro, timed, "t", 1, &length, 1, &err) == NULL);
    fails_with("another one than");
    rocksdb_readoptions_set_timestamp(ro, NULL, 0);
    rocksdb_transaction_delete_cf(other, timed, "t", 1, &err);
    rocksdb_transaction_set_commit_timestamp(other, 20);
    rocksdb_transaction_commit(other, &err);
    fails_with("must be after");
    rocksdb_transaction_set_commit_timestamp(other, 30);
    rocksdb_transaction_commit(other, &err);
    CHECK(err == NULL);
    rocksdb_transaction_destroy(other);
    sees(29, "t", "first", 20);
    sees(30, "t", NULL, 0);

    one = rocksdb_transaction_begin(tdb, wo, to, NULL);
    rocksdb_transaction_set_read_timestamp_for_validation(one, 9);
    rocksdb_transaction_set_read_timestamp_for_validation(one, 8);
    rocksdb_transaction_commit(one, &err);
    fails_with("cannot become smaller");
    rocksdb_iterator_t* iter = rocksdb_transaction_create_iterator_cf(one, ro, timed);
    rocksdb_iter_seek_to_first(iter);
    rocksdb_iter_get_error(iter, &err);
    fails_with("have timestamps");
    rocksdb_iter_destroy(iter);
    rocksdb_transaction_destroy(one);
    rocksdb_transaction_options_destroy(to);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    ro = rocksdb_readoptions_create();
    wo = rocksdb_writeoptions_create();
    rocksdb_comparator_t* comparator = rocksdb_comparator_with_ts_create(
        NULL, nothing, compare, compare_ts, compare_without_ts, name, 8);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_t* of_timed = rocksdb_options_create();
    rocksdb_options_set_comparator(of_timed, comparator);
    const char* names[] = {"default", "timed"};
    const rocksdb_options_t* each[] = {options, of_timed};
    rocksdb_column_family_handle_t* handles[2];
    rocksdb_transactiondb_options_t* tdo = rocksdb_transactiondb_options_create();
    rocksdb_transactiondb_t* tdb = rocksdb_transactiondb_open_column_families(
        options, tdo, path, 2, names, each, handles, &err);
    CHECK(tdb != NULL && err == NULL);
    plain = handles[0], timed = handles[1];
    db = rocksdb_transactiondb_get_base_db(tdb);

    batches();
    metadata();
    transactions(tdb);
    rocksdb_transactiondb_close_base_db(db);
    rocksdb_column_family_handle_destroy(plain);
    rocksdb_column_family_handle_destroy(timed);
    rocksdb_transactiondb_close(tdb);
    rocksdb_transactiondb_options_destroy(tdo);

    /* Trimmed history. */
    char short_ts[] = "1";
    CHECK(rocksdb_open_and_trim_history(options, path, 2, names, each, handles, short_ts, 1, &err) ==
          NULL);
    fails_with("a timestamp of 1 bytes");
    char latest[8];
    memcpy(latest, ts(6), 8);
    for (int i = 0; i < 2; i++) {
        db = rocksdb_open_and_trim_history(options, path, 2, names, each, handles, latest, 8, &err);
        CHECK(db != NULL && err == NULL);
        plain = handles[0], timed = handles[1];
        sees(99, "b", "2", 6);
        sees(99, "a", NULL, 0);
        sees(5, "a", "1", 4);
        sees(20, "t", NULL, 0);
        size_t length = 0;
        char* value = rocksdb_get_cf(db, ro, plain, "t", 1, &length, &err);
        CHECK(err == NULL && length == 5);
        rocksdb_free(value);
        rocksdb_column_family_handle_destroy(plain);
        rocksdb_column_family_handle_destroy(timed);
        rocksdb_close(db);
    }
    rocksdb_options_destroy(options);
    rocksdb_options_destroy(of_timed);
    rocksdb_comparator_destroy(comparator);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_readoptions_destroy(ro);
    puts("all is well");
    return 0;
}
