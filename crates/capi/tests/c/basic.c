/* The usual calls of a C program. The program checks all of them, and its exit code is the
 * result. */
#include "rocksdb/c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, err ? err : ""); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static char* err = NULL;
static int operators_alive = 0;

static void operator_gone(void* state) {
    (void)state;
    operators_alive--;
}

static const char* operator_name(void* state) {
    (void)state;
    return "append";
}

static char* append(const char* begin, size_t begin_length, const char* const* operands,
                    const size_t* lengths, int count, unsigned char* success, size_t* length) {
    size_t all = begin_length;
    for (int i = 0; i < count; i++) all += lengths[i];
    char* merged = malloc(all + 1);
    if (begin_length > 0) memcpy(merged, begin, begin_length);
    size_t at = begin_length;
    for (int i = 0; i < count; i++) {
        memcpy(merged + at, operands[i], lengths[i]);
        at += lengths[i];
    }
    *success = 1;
    *length = all;
    return merged;
}

static char* full_merge(void* state, const char* key, size_t key_length, const char* existing,
                        size_t existing_length, const char* const* operands,
                        const size_t* lengths, int count, unsigned char* success,
                        size_t* length) {
    (void)state;
    (void)key;
    (void)key_length;
    return append(existing, existing_length, operands, lengths, count, success, length);
}

static char* partial_merge(void* state, const char* key, size_t key_length,
                           const char* const* operands, const size_t* lengths, int count,
                           unsigned char* success, size_t* length) {
    (void)state;
    (void)key;
    (void)key_length;
    return append(NULL, 0, operands, lengths, count, success, length);
}

static void check_get(rocksdb_t* db, rocksdb_readoptions_t* options,
                      rocksdb_column_family_handle_t* family, const char* key,
                      const char* expected) {
    size_t length = 77;
    char* value = family ? rocksdb_get_cf(db, options, family, key, strlen(key), &length, &err)
                         : rocksdb_get(db, options, key, strlen(key), &length, &err);
    CHECK(err == NULL);
    CHECK((value == NULL) == (expected == NULL));
    CHECK(length == (expected ? strlen(expected) : 0));
    CHECK(expected == NULL || memcmp(value, expected, length) == 0);
    rocksdb_free(value);
}

static int seen = 0;
static void count_put(void* state, const char* k, size_t kl, const char* v, size_t vl) {
    (void)state; (void)k; (void)kl; (void)v; (void)vl;
    seen += 1;
}
static void count_delete(void* state, const char* k, size_t kl) {
    (void)state; (void)k; (void)kl;
    seen += 100;
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    char path[1000], copy[1000];
    snprintf(path, sizeof path, "%s/db", argv[1]);
    snprintf(copy, sizeof copy, "%s/copy", argv[1]);

    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db == NULL && err != NULL); /* the database does not exist and may not be created */
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 1 << 20);
    rocksdb_options_set_max_write_buffer_number(options, 4);
    rocksdb_options_set_compression(options, 1);
    rocksdb_options_set_paranoid_checks(options, 1);
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(8 << 20);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    rocksdb_cache_destroy(cache);
    operators_alive = 1;
    rocksdb_options_set_merge_operator(
        options, rocksdb_mergeoperator_create(NULL, operator_gone, full_merge, partial_merge,
                                              NULL, operator_name));
    rocksdb_free(err);
    err = NULL;
    db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_t* second = rocksdb_open(options, path, &err);
    CHECK(second == NULL && strncmp(err, "IO error: ", 10) == 0);

    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    rocksdb_put(db, wo, "a", 1, "1", 1, &err); /* an existing error is not touched */
    CHECK(strncmp(err, "IO error: ", 10) == 0);
    rocksdb_free(err);
    err = NULL;
    rocksdb_writeoptions_set_sync(wo, 1);
    rocksdb_put(db, wo, "b", 1, "", 0, &err);
    rocksdb_put(db, wo, "nothing", 7, NULL, 0, &err);
    check_get(db, ro, NULL, "a", "1");
    check_get(db, ro, NULL, "b", "");
    check_get(db, ro, NULL, "nothing", "");
    check_get(db, ro, NULL, "none", NULL);
    rocksdb_merge(db, wo, "a", 1, "23", 2, &err);
    rocksdb_merge(db, wo, "c", 1, "x", 1, &err);
    CHECK(err == NULL);
    check_get(db, ro, NULL, "a", "123");
    check_get(db, ro, NULL, "c", "x");

    /* Snapshots, and pinned values that outlive a flush and a delete. */
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    CHECK(rocksdb_snapshot_get_sequence_number(snapshot) == 5);
    rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
    rocksdb_flush(db, fo, &err);
    rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, ro, "a", 1, &err);
    rocksdb_delete(db, wo, "a", 1, &err);
    rocksdb_singledelete(db, wo, "c", 1, &err);
    CHECK(err == NULL);
    check_get(db, ro, NULL, "a", NULL);
    rocksdb_readoptions_set_snapshot(ro, snapshot);
    rocksdb_release_snapshot(db, snapshot); /* the options hold it, too */
    check_get(db, ro, NULL, "a", "123");
    rocksdb_readoptions_set_snapshot(ro, NULL);
    size_t length = 0;
    CHECK(memcmp(rocksdb_pinnableslice_value(pinned, &length), "123", 3) == 0 && length == 3);
    rocksdb_pinnableslice_destroy(pinned);

    /* Range deletions: alone, as part of a batch, and ignored by a read that says so. */
    rocksdb_put(db, wo, "r1", 2, "1", 1, &err);
    rocksdb_put(db, wo, "r2", 2, "2", 1, &err);
    rocksdb_put(db, wo, "r3", 2, "3", 1, &err);
    rocksdb_column_family_handle_t* default_family = rocksdb_get_default_column_family_handle(db);
    rocksdb_delete_range_cf(db, wo, default_family, "r1", 2, "r2", 2, &err);
    rocksdb_writebatch_t* ranges = rocksdb_writebatch_create();
    rocksdb_writebatch_delete_range(ranges, "r3", 2, "r4", 2);
    rocksdb_write(db, wo, ranges, &err);
    rocksdb_writebatch_destroy(ranges);
    CHECK(err == NULL);
    check_get(db, ro, NULL, "r1", NULL);
    check_get(db, ro, NULL, "r2", "2");
    check_get(db, ro, NULL, "r3", NULL);
    rocksdb_readoptions_set_ignore_range_deletions(ro, 1);
    check_get(db, ro, NULL, "r1", "1");
    rocksdb_readoptions_set_ignore_range_deletions(ro, 0);
    rocksdb_delete_range_cf(db, wo, default_family, "z", 1, "a", 1, &err);
    rocksdb_column_family_handle_destroy(default_family);
    CHECK(err != NULL && strncmp(err, "Invalid argument:", 17) == 0);
    free(err);
    err = NULL;

    /* Batches. */
    rocksdb_column_family_handle_t* family =
        rocksdb_create_column_family(db, options, "family", &err);
    CHECK(family != NULL && err == NULL);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%03d", i);
        rocksdb_writebatch_put(batch, key, 6, key, 6);
        rocksdb_writebatch_put_cf(batch, family, key, 6, "f", 1);
    }
    rocksdb_writebatch_set_save_point(batch);
    rocksdb_writebatch_delete(batch, "key000", 6);
    rocksdb_writebatch_rollback_to_save_point(batch, &err);
    CHECK(err == NULL && rocksdb_writebatch_count(batch) == 200);
    rocksdb_writebatch_rollback_to_save_point(batch, &err);
    CHECK(err != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_writebatch_delete(batch, "key050", 6);
    rocksdb_writebatch_merge_cf(batch, family, "key001", 6, "!", 1);
    /* The iteration ends at the first entry of another column family. */
    rocksdb_writebatch_iterate(batch, NULL, count_put, count_delete);
    CHECK(seen == 1);
    const char* data = rocksdb_writebatch_data(batch, &length);
    rocksdb_writebatch_t* twin = rocksdb_writebatch_create_from(data, length);
    rocksdb_writebatch_destroy(batch);
    rocksdb_write(db, wo, twin, &err);
    CHECK(err == NULL);
    rocksdb_writebatch_destroy(twin);
    twin = rocksdb_writebatch_create_from("no batch", 8);
    rocksdb_write(db, wo, twin, &err);
    CHECK(strncmp(err, "Invalid argument: ", 18) == 0);
    rocksdb_writebatch_destroy(twin);
    rocksdb_free(err);
    err = NULL;
    check_get(db, ro, family, "key001", "f!");
    check_get(db, ro, NULL, "key050", NULL);

    /* Many keys at once. */
    const char* keys[3] = {"key007", "gone", "key009"};
    const size_t lengths[3] = {6, 4, 6};
    char *values[3], *errors[3];
    size_t value_lengths[3];
    rocksdb_multi_get(db, ro, 3, keys, lengths, values, value_lengths, errors);
    CHECK(value_lengths[0] == 6 && memcmp(values[0], "key007", 6) == 0 && !errors[0]);
    CHECK(values[1] == NULL && !errors[1]);
    CHECK(value_lengths[2] == 6 && !errors[2]);
    for (int i = 0; i < 3; i++) rocksdb_free(values[i]);

    /* Iterators, within bounds and in both directions. */
    rocksdb_readoptions_set_iterate_upper_bound(ro, "key020", 6);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
    CHECK(!rocksdb_iter_valid(iter));
    int count = 0;
    for (rocksdb_iter_seek(iter, "key010", 6); rocksdb_iter_valid(iter);
         rocksdb_iter_next(iter)) {
        CHECK(memcmp(rocksdb_iter_key(iter, &length), "key01", 5) == 0 && length == 6);
        rocksdb_iter_value(iter, &length);
        CHECK(length == 6);
        count++;
    }
    CHECK(count == 10);
    rocksdb_iter_seek_to_last(iter);
    CHECK(memcmp(rocksdb_iter_key(iter, &length), "key019", 6) == 0);
    rocksdb_iter_prev(iter);
    CHECK(memcmp(rocksdb_iter_key(iter, &length), "key018", 6) == 0);
    rocksdb_iter_seek_for_prev(iter, "key0155", 7);
    CHECK(memcmp(rocksdb_iter_key(iter, &length), "key015", 6) == 0);
    rocksdb_iter_get_error(iter, &err);
    CHECK(err == NULL);
    rocksdb_readoptions_set_iterate_lower_bound(ro, "z", 1);
    rocksdb_iterator_t* reversed = rocksdb_create_iterator_cf(db, ro, family);
    rocksdb_iter_seek_to_first(reversed);
    CHECK(!rocksdb_iter_valid(reversed));
    rocksdb_iter_seek(reversed, "zz", 2);
    CHECK(!rocksdb_iter_valid(reversed));
    rocksdb_iter_seek_to_last(reversed);
    CHECK(!rocksdb_iter_valid(reversed));
    rocksdb_iter_get_error(reversed, &err);
    CHECK(err == NULL);
    rocksdb_iter_destroy(reversed);
    rocksdb_readoptions_set_iterate_lower_bound(ro, NULL, 0);
    rocksdb_readoptions_set_iterate_upper_bound(ro, NULL, 0);

    /* Upkeep. */
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    rocksdb_compact_range_cf(db, family, "a", 1, "z", 1);
    char* property = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
    CHECK(property != NULL && strcmp(property, "0") == 0);
    rocksdb_free(property);
    CHECK(rocksdb_property_value(db, "rocksdb.no-such-property") == NULL);
    uint64_t number = 0;
    CHECK(rocksdb_property_int(db, "rocksdb.estimate-num-keys", &number) == 0 && number > 90);
    CHECK(rocksdb_property_int(db, "rocksdb.no-such-property", &number) == -1);
    const char* names[1] = {"write_buffer_size"};
    const char* sizes[1] = {"2097152"};
    rocksdb_set_options(db, 1, names, sizes, &err);
    CHECK(err == NULL);
    sizes[0] = "many";
    rocksdb_set_options(db, 1, names, sizes, &err);
    CHECK(err != NULL);
    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_checkpoint_create(checkpoint, copy, 0, &err);
    CHECK(err == NULL);

    /* Handles are freed in an unusual order. */
    rocksdb_close(db);
    rocksdb_iter_seek_to_first(iter);
    rocksdb_iter_destroy(iter);
    rocksdb_checkpoint_object_destroy(checkpoint);
    rocksdb_column_family_handle_destroy(family);

    /* Again, with column families. */
    size_t families = 0;
    char** list = rocksdb_list_column_families(options, path, &families, &err);
    CHECK(err == NULL && families == 2 && strcmp(list[0], "default") == 0);
    rocksdb_list_column_families_destroy(list, families);
    const char* one[1] = {"default"};
    const char* both[2] = {"family", "default"};
    const rocksdb_options_t* each[2] = {options, options};
    rocksdb_column_family_handle_t* handles[2];
    db = rocksdb_open_column_families(options, path, 1, one, each, handles, &err);
    CHECK(db == NULL && strstr(err, "not opened: family") != NULL);
    rocksdb_free(err);
    err = NULL;
    db = rocksdb_open_column_families(options, path, 2, both, each, handles, &err);
    CHECK(db != NULL && err == NULL);
    check_get(db, ro, handles[0], "key001", "f!");
    check_get(db, ro, handles[1], "key001", "key001");
    char* name = rocksdb_column_family_handle_get_name(handles[0], &length);
    CHECK(length == 6 && strcmp(name, "family") == 0);
    rocksdb_free(name);
    rocksdb_drop_column_family(db, handles[0], &err);
    CHECK(err == NULL);
    rocksdb_put_cf(db, wo, handles[0], "k", 1, "v", 1, &err);
    CHECK(err != NULL);
    rocksdb_free(err);
    err = NULL;
    for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(handles[i]);
    rocksdb_close(db);

    db = rocksdb_open_for_read_only(options, copy, 0, &err);
    CHECK(db != NULL && err == NULL);
    check_get(db, ro, NULL, "key001", "key001");
    rocksdb_put(db, wo, "k", 1, "v", 1, &err);
    CHECK(err != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_close(db);

    rocksdb_repair_db(options, copy, &err);
    CHECK(err == NULL);
    rocksdb_destroy_db(options, path, &err);
    CHECK(err == NULL);
    rocksdb_options_set_create_if_missing(options, 0);
    db = rocksdb_open(options, path, &err);
    CHECK(db == NULL && err != NULL);
    rocksdb_free(err);
    err = NULL;

    /* A database of another store is refused and stays. */
    char foreign[1100];
    snprintf(foreign, sizeof foreign, "%s/foreign", argv[1]);
    CHECK(mkdir(foreign, 0777) == 0);
    strcat(foreign, "/CURRENT");
    FILE* current = fopen(foreign, "w");
    CHECK(current != NULL);
    fputs("MANIFEST-000005\n", current);
    fclose(current);
    snprintf(foreign, sizeof foreign, "%s/foreign", argv[1]);
    db = rocksdb_open(options, foreign, &err);
    CHECK(db == NULL && strstr(err, "foreign") != NULL);
    rocksdb_destroy_db(options, foreign, &err);
    CHECK(err != NULL);
    strcat(foreign, "/CURRENT");
    current = fopen(foreign, "r");
    CHECK(current != NULL);
    fclose(current);
    rocksdb_free(err);
    err = NULL;

    /* Null handles do nothing. */
    rocksdb_put(NULL, NULL, "k", 1, "v", 1, &err);
    CHECK(strstr(err, "null") != NULL);
    rocksdb_free(err);
    err = NULL;
    CHECK(rocksdb_get(NULL, NULL, "k", 1, NULL, NULL) == NULL);
    rocksdb_close(NULL);
    rocksdb_iter_destroy(NULL);
    rocksdb_writebatch_destroy(NULL);
    rocksdb_free(NULL);

    rocksdb_flushoptions_destroy(fo);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_readoptions_destroy(ro);
    CHECK(operators_alive == 1);
    rocksdb_options_destroy(options);
    CHECK(operators_alive == 0);
    puts("all is well");
    return 0;
}
