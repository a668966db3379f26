/* Keys with timestamps: versions, reads as of a timestamp, batches, files, and the end of history. */
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
static rocksdb_readoptions_t* ro;
static rocksdb_writeoptions_t* wo;

static void fails_with(const char* says) {
    CHECK(err != NULL && strstr(err, says) != NULL);
    rocksdb_free(err);
    err = NULL;
}

/* Keys by their bytes, then timestamps of two bytes, newer ones first. */
static int compare(void* state, const char* a, size_t alen, const char* b, size_t blen) {
    (void)state;
    CHECK(alen >= 2 && blen >= 2);
    size_t shared = alen < blen ? alen - 2 : blen - 2;
    int order = memcmp(a, b, shared);
    if (order == 0 && alen != blen) order = alen < blen ? -1 : 1;
    return order != 0 ? order : memcmp(b + blen - 2, a + alen - 2, 2);
}

static int compare_ts(void* state, const char* a, size_t alen, const char* b, size_t blen) {
    (void)state, (void)alen, (void)blen;
    return memcmp(a, b, 2);
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
    return "two bytes";
}

static void as_of(const char* timestamp) {
    rocksdb_readoptions_set_timestamp(ro, timestamp, timestamp ? 2 : 0);
}

static void sees(const char* key, const char* value, const char* timestamp) {
    size_t length = 0, ts_length = 0;
    char* ts = NULL;
    char* found = rocksdb_get_with_ts(db, ro, key, strlen(key), &length, &ts, &ts_length, &err);
    CHECK(err == NULL);
    CHECK((found == NULL) == (value == NULL));
    if (value != NULL) {
        CHECK(length == strlen(value) && memcmp(found, value, length) == 0);
        CHECK(ts_length == 2 && memcmp(ts, timestamp, 2) == 0);
    } else {
        CHECK(ts == NULL && ts_length == 0 && length == 0);
    }
    rocksdb_free(found);
    rocksdb_free(ts);
    found = rocksdb_get(db, ro, key, strlen(key), &length, &err);
    CHECK(err == NULL && (found == NULL) == (value == NULL));
    rocksdb_free(found);
    rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, ro, key, strlen(key), &err);
    CHECK(err == NULL && (pinned == NULL) == (value == NULL));
    rocksdb_pinnableslice_destroy(pinned);
}

/* Shows the keys, timestamps and values of an iterator, in one direction. */
static const char* shown(int backwards) {
    static char text[300];
    size_t at = 0;
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
    if (backwards) rocksdb_iter_seek_to_last(iter); else rocksdb_iter_seek_to_first(iter);
    while (rocksdb_iter_valid(iter)) {
        size_t k = 0, t = 0, v = 0;
        const char* key = rocksdb_iter_key(iter, &k);
        const char* ts = rocksdb_iter_timestamp(iter, &t);
        const char* value = rocksdb_iter_value(iter, &v);
        CHECK(t == 2);
        at += (size_t)snprintf(text + at, sizeof text - at, "%.*s@%.*s=%.*s ", (int)k, key, (int)t, ts,
                               (int)v, value);
        if (backwards) rocksdb_iter_prev(iter); else rocksdb_iter_next(iter);
    }
    text[at] = 0;
    rocksdb_iter_get_error(iter, &err);
    CHECK(err == NULL);
    rocksdb_iter_destroy(iter);
    return text;
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[4096], file[4200];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    snprintf(file, sizeof file, "%s/file", arguments[1]);
    ro = rocksdb_readoptions_create();
    wo = rocksdb_writeoptions_create();
    CHECK(rocksdb_comparator_with_ts_create(NULL, nothing, compare, compare_ts, compare_without_ts,
                                            name, 0) == NULL);
    rocksdb_comparator_t* comparator = rocksdb_comparator_with_ts_create(
        NULL, nothing, compare, compare_ts, compare_without_ts, name, 2);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_comparator(options, comparator);
    db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);

    rocksdb_put_with_ts(db, wo, "a", 1, "01", 2, "one", 3, &err);
    rocksdb_put_with_ts(db, wo, "a", 1, "05", 2, "five", 4, &err);
    rocksdb_put_with_ts(db, wo, "b", 1, "03", 2, "", 0, &err);
    rocksdb_delete_with_ts(db, wo, "a", 1, "07", 2, &err);
    CHECK(err == NULL);
    as_of("00");
    sees("a", NULL, NULL);
    as_of("04");
    sees("a", "one", "01");
    sees("b", "", "03");
    as_of("06");
    sees("a", "five", "05");
    CHECK(strcmp(shown(0), "a@05=five b@03= ") == 0);
    CHECK(strcmp(shown(1), "b@03= a@05=five ") == 0);
    as_of("07");
    sees("a", NULL, NULL);
    CHECK(strcmp(shown(0), "b@03= ") == 0);
    as_of("09");
    rocksdb_readoptions_set_iter_start_ts(ro, "02", 2);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
    rocksdb_iter_seek_to_first(iter);
    size_t length = 0;
    const char* key = rocksdb_iter_key(iter, &length);
    CHECK(rocksdb_iter_valid(iter) && length == 1 + 2 + 8);
    CHECK(memcmp(key, "a07", 3) == 0 && key[3] == 0x14);
    rocksdb_iter_next(iter);
    key = rocksdb_iter_key(iter, &length);
    CHECK(rocksdb_iter_valid(iter) && memcmp(key, "a05", 3) == 0 && key[3] == 1);
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_set_iter_start_ts(ro, NULL, 0);

    /* Batches, whose bytes have the keys with their timestamps. */
    rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put_cf_with_ts(batch, family, "c", 1, "08", 2, "eight", 5);
    rocksdb_writebatch_delete_cf_with_ts(batch, family, "b", 1, "08", 2);
    const char* data = rocksdb_writebatch_data(batch, &length);
    CHECK(rocksdb_writebatch_count(batch) == 2);
    CHECK(memcmp(data + 12, "\x01\x03" "c08\x05" "eight\x00\x03" "b08", 16) == 0);
    rocksdb_write(db, wo, batch, &err);
    CHECK(err == NULL);
    CHECK(strcmp(shown(0), "c@08=eight ") == 0);
    rocksdb_writebatch_put_cf(batch, family, "d", 1, "x", 1);
    rocksdb_write(db, wo, batch, &err);
    fails_with("have no timestamp");
    rocksdb_writebatch_destroy(batch);

    /* Files. */
    rocksdb_envoptions_t* env = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
    rocksdb_sstfilewriter_open(writer, file, &err);
    rocksdb_sstfilewriter_put(writer, "e08", 3, "x", 1, &err);
    fails_with("have timestamps");
    rocksdb_sstfilewriter_put_with_ts(writer, "e", 1, "08", 2, "file", 4, &err);
    rocksdb_sstfilewriter_delete_with_ts(writer, "f", 1, "08", 2, &err);
    rocksdb_sstfilewriter_finish(writer, &err);
    CHECK(err == NULL);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env);
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    const char* files[] = {file};
    rocksdb_ingest_external_file(db, files, 1, ingest, &err);
    CHECK(err == NULL);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
    sees("e", "file", "08");
    sees("f", NULL, NULL);

    /* Many keys. */
    const char* keys[] = {"c", "nothing", "e"};
    const size_t lengths[] = {1, 7, 1};
    char *values[3], *times[3], *errors[3];
    size_t value_lengths[3], time_lengths[3];
    rocksdb_multi_get_with_ts(db, ro, 3, keys, lengths, values, value_lengths, times, time_lengths,
                              errors);
    for (int i = 0; i < 3; i++) {
        CHECK(errors[i] == NULL && (values[i] == NULL) == (i == 1) && (times[i] == NULL) == (i == 1));
        rocksdb_free(values[i]);
        rocksdb_free(times[i]);
    }
    rocksdb_multi_get(db, ro, 3, keys, lengths, values, value_lengths, errors);
    for (int i = 0; i < 3; i++) {
        CHECK(errors[i] == NULL && (values[i] == NULL) == (i == 1));
        rocksdb_free(values[i]);
    }

    /* What has no timestamp, or one of another length. */
    rocksdb_put(db, wo, "a", 1, "x", 1, &err);
    fails_with("have timestamps");
    rocksdb_delete_range_cf(db, wo, family, "a", 1, "b", 1, &err);
    fails_with("have timestamps");
    const char *piece = "a", *behind = "b";
    size_t one = 1;
    for (int ranged = 0; ranged < 2; ranged++) {
        rocksdb_writebatch_t *pieces = rocksdb_writebatch_create();
        if (ranged) {
            rocksdb_writebatch_delete_rangev_cf(pieces, family, 1, &piece, &one, &behind, &one);
        } else {
            rocksdb_writebatch_putv_cf(pieces, family, 1, &piece, &one, 1, &piece, &one);
        }
        rocksdb_write(db, wo, pieces, &err);
        fails_with("have timestamps");
        rocksdb_writebatch_destroy(pieces);
    }
    rocksdb_put_with_ts(db, wo, "a", 1, "123", 3, "x", 1, &err);
    fails_with("a timestamp of 3 bytes");
    as_of(NULL);
    CHECK(rocksdb_get(db, ro, "c", 1, &length, &err) == NULL);
    fails_with("have timestamps");
    iter = rocksdb_create_iterator(db, ro);
    rocksdb_iter_seek_to_first(iter);
    CHECK(!rocksdb_iter_valid(iter));
    rocksdb_iter_get_error(iter, &err);
    fails_with("have timestamps");
    rocksdb_iter_destroy(iter);
    as_of("09");
    rocksdb_column_family_handle_destroy(family);
    rocksdb_options_t* plain = rocksdb_options_create();
    family = rocksdb_create_column_family(db, plain, "plain", &err);
    CHECK(family != NULL && err == NULL);
    CHECK(rocksdb_get_cf(db, ro, family, "a", 1, &length, &err) == NULL);
    fails_with("have no timestamps");
    rocksdb_put_cf_with_ts(db, wo, family, "a", 1, "01", 2, "x", 1, &err);
    fails_with("have no timestamps");
    rocksdb_increase_full_history_ts_low(db, family, "01", 2, &err);
    fails_with("have no timestamps");
    rocksdb_column_family_handle_destroy(family);
    rocksdb_options_destroy(plain);

    /* The end of history. */
    family = rocksdb_get_default_column_family_handle(db);
    char* low = rocksdb_get_full_history_ts_low(db, family, &length, &err);
    CHECK(err == NULL && length == 0);
    rocksdb_free(low);
    rocksdb_increase_full_history_ts_low(db, family, "05", 2, &err);
    CHECK(err == NULL);
    rocksdb_increase_full_history_ts_low(db, family, "04", 2, &err);
    fails_with("does not become smaller");
    rocksdb_compactoptions_t* compact = rocksdb_compactoptions_create();
    char six[] = "06";
    rocksdb_compactoptions_set_full_history_ts_low(compact, six, 2);
    rocksdb_compact_range_opt(db, compact, "a", 1, "z", 1);
    rocksdb_compactoptions_destroy(compact);
    low = rocksdb_get_full_history_ts_low(db, family, &length, &err);
    CHECK(err == NULL && length == 2 && memcmp(low, "06", 2) == 0);
    rocksdb_free(low);
    as_of("05");
    CHECK(rocksdb_get(db, ro, "a", 1, &length, &err) == NULL);
    fails_with("before the oldest one");
    as_of("06");
    sees("a", "five", "05");

    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_comparator_destroy(comparator);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_readoptions_destroy(ro);
    puts("all is well");
    return 0;
}
