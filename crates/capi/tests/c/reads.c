/* Reads of many keys, of keys in pieces, and into the caller's memory; batches of pieces and their
 * contents; several column families at once. */
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
static char seen[1000];

static void put(void* state, const char* key, size_t key_length, const char* value,
                size_t value_length) {
    sprintf((char*)state + strlen(state), "+%.*s=%.*s ", (int)key_length, key,
            (int)value_length, value);
}

static void deleted(void* state, const char* key, size_t key_length) {
    sprintf((char*)state + strlen(state), "-%.*s ", (int)key_length, key);
}

static void put_cf(void* state, uint32_t family, const char* key, size_t key_length,
                   const char* value, size_t value_length) {
    sprintf((char*)state + strlen(state), "%u", family);
    put(state, key, key_length, value, value_length);
}

static void deleted_cf(void* state, uint32_t family, const char* key, size_t key_length) {
    sprintf((char*)state + strlen(state), "%u", family);
    deleted(state, key, key_length);
}

static void log_data(void* state, const char* blob, size_t length) {
    sprintf((char*)state + strlen(state), "[%.*s] ", (int)length, blob);
}

/* Log data goes to the WAL with its batch and comes out of it. It is not a write. */
static void data_of_the_log(rocksdb_t* db, rocksdb_column_family_handle_t* other) {
    uint64_t before = rocksdb_get_latest_sequence_number(db), sequence = 0;
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put_log_data(batch, "first", 5);
    rocksdb_writebatch_put(batch, "k1", 2, "v1", 2);
    rocksdb_writebatch_put_log_data(batch, NULL, 0);
    rocksdb_writebatch_set_save_point(batch);
    rocksdb_writebatch_put_log_data(batch, "undone", 6);
    rocksdb_writebatch_rollback_to_save_point(batch, &err);
    CHECK(err == NULL && rocksdb_writebatch_count(batch) == 1);
    rocksdb_writebatch_delete_cf(batch, other, "k2", 2);
    rocksdb_writebatch_put_log_data(batch, "behind", 6);
    seen[0] = 0;
    rocksdb_writebatch_iterate_ld(batch, seen, put, deleted, log_data);
    /* The iteration ends at another column family. */
    CHECK(strcmp(seen, "[first] +k1=v1 [] ") == 0);
    const char* all = "[first] 0+k1=v1 [] 1-k2 [behind] ";
    seen[0] = 0;
    rocksdb_writebatch_iterate_cf_ld(batch, seen, put_cf, deleted_cf, put_cf, log_data);
    CHECK(strcmp(seen, all) == 0);
    seen[0] = 0;
    rocksdb_writebatch_iterate_cf_ld(batch, seen, NULL, NULL, NULL, log_data);
    CHECK(strcmp(seen, "[first] [] [behind] ") == 0);

    size_t length = 0;
    const char* data = rocksdb_writebatch_data(batch, &length);
    const char bytes[] = "\0\0\0\0\0\0\0\0\2\0\0\0\3\5first\1\2k1\2v1\3\0\4\1\2k2\3\6behind";
    CHECK(length == sizeof bytes - 1 && memcmp(data, bytes, length) == 0);
    rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, length);
    rocksdb_write(db, write, copy, &err);
    CHECK(err == NULL && rocksdb_get_latest_sequence_number(db) == before + 2);
    rocksdb_writebatch_destroy(copy);

    /* Log data alone is written, too, with the number of the next write. */
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_put_log_data(batch, "alone", 5);
    rocksdb_write(db, write, batch, &err);
    CHECK(err == NULL && rocksdb_get_latest_sequence_number(db) == before + 2);
    rocksdb_writebatch_destroy(batch);
    rocksdb_wal_iterator_t* updates = rocksdb_get_updates_since(db, before + 1, NULL, &err);
    CHECK(err == NULL && rocksdb_wal_iter_valid(updates));
    const char* expected[] = {all, "[alone] "};
    for (uint64_t i = 0; i < 2; i++) {
        batch = rocksdb_wal_iter_get_batch(updates, &sequence);
        CHECK(batch != NULL && sequence == before + (i == 0 ? 1 : 3));
        seen[0] = 0;
        rocksdb_writebatch_iterate_cf_ld(batch, seen, put_cf, deleted_cf, put_cf, log_data);
        CHECK(strcmp(seen, expected[i]) == 0);
        /* The bytes begin with the sequence number, even those of a copy, until the batch is
         * cleared. */
        data = rocksdb_writebatch_data(batch, &length);
        CHECK(length > 12 && (unsigned char)data[0] == sequence && data[1] == 0);
        copy = rocksdb_writebatch_create_from(data, length);
        size_t copied = 0;
        const char* same = rocksdb_writebatch_data(copy, &copied);
        CHECK(copied == length && memcmp(same, data, length) == 0);
        rocksdb_writebatch_clear(copy);
        same = rocksdb_writebatch_data(copy, &copied);
        CHECK(copied == 12 && same[0] == 0);
        rocksdb_writebatch_destroy(copy);
        rocksdb_writebatch_destroy(batch);
        rocksdb_wal_iter_next(updates);
    }
    CHECK(!rocksdb_wal_iter_valid(updates));
    rocksdb_wal_iter_status(updates, &err);
    CHECK(err == NULL);
    rocksdb_wal_iter_destroy(updates);
    rocksdb_delete(db, write, "k1", 2, &err);
    CHECK(err == NULL);
    rocksdb_writebatch_put_log_data(NULL, "x", 1);
    rocksdb_writeoptions_destroy(write);
}

static void batches(rocksdb_t* db, rocksdb_column_family_handle_t* other) {
    const char* key[] = {"pie", "ces"};
    const char* value[] = {"v", "", "al"};
    size_t key_lengths[] = {3, 3}, value_lengths[] = {1, 0, 2};
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create_with_params(SIZE_MAX, 0, 0, 0);
    rocksdb_writebatch_putv(batch, 2, key, key_lengths, 3, value, value_lengths);
    rocksdb_writebatch_putv_cf(batch, other, 1, key, key_lengths, 1, value, value_lengths);
    rocksdb_writebatch_deletev(batch, 1, key + 1, key_lengths);
    rocksdb_writebatch_deletev_cf(batch, other, 2, key, key_lengths);
    rocksdb_writebatch_mergev_cf(batch, other, 1, key, key_lengths, 1, value, value_lengths);
    rocksdb_writebatch_put_log_data(batch, "note", 4);
    CHECK(rocksdb_writebatch_count(batch) == 5);
    rocksdb_writebatch_verify_checksum(batch, &err);
    CHECK(err == NULL);

    seen[0] = 0;
    rocksdb_writebatch_iterate(batch, seen, put, deleted);
    CHECK(strcmp(seen, "+pieces=val ") == 0);
    seen[0] = 0;
    rocksdb_writebatch_iterate_ld(batch, seen, put, deleted, NULL);
    CHECK(strcmp(seen, "+pieces=val ") == 0);
    seen[0] = 0;
    rocksdb_writebatch_iterate_cf(batch, seen, put_cf, deleted_cf, put_cf);
    CHECK(strcmp(seen, "0+pieces=val 1+pie=v 0-ces 1-pieces 1+pie=v ") == 0);
    seen[0] = 0;
    rocksdb_writebatch_iterate_cf_ld(batch, seen, put_cf, NULL, NULL, NULL);
    CHECK(strcmp(seen, "0+pieces=val 1+pie=v ") == 0);
    rocksdb_writebatch_iterate_cf(NULL, seen, put_cf, deleted_cf, put_cf);

    /* The batch has no operand, because the column family has no merge operator. */
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_putv(batch, 2, key, key_lengths, 3, value, value_lengths);
    rocksdb_writebatch_putv_cf(batch, other, 1, key, key_lengths, 1, value, value_lengths);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_write(db, write, batch, &err);
    CHECK(err == NULL);
    rocksdb_put(db, write, "a", 1, "1", 1, &err);
    rocksdb_put_cf(db, write, other, "a", 1, "2", 1, &err);
    rocksdb_put(db, write, "empty", 5, "", 0, &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_destroy(write);
    rocksdb_writebatch_destroy(batch);
}

static void many(rocksdb_t* db, rocksdb_column_family_handle_t* base,
                 rocksdb_column_family_handle_t* other) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    const rocksdb_column_family_handle_t* families[] = {other, base, other, base, base};
    const char* keys[] = {"a", "a", "none", "pieces", "empty"};
    size_t lengths[] = {1, 1, 4, 6, 5}, value_lengths[5];
    char *values[5], *errors[5];
    rocksdb_multi_get_cf(db, read, families, 5, keys, lengths, values, value_lengths, errors);
    for (int i = 0; i < 5; i++) CHECK(errors[i] == NULL);
    CHECK(value_lengths[0] == 1 && values[0][0] == '2');
    CHECK(value_lengths[1] == 1 && values[1][0] == '1');
    CHECK(values[2] == NULL && value_lengths[2] == 0);
    CHECK(value_lengths[3] == 3 && memcmp(values[3], "val", 3) == 0);
    CHECK(values[4] != NULL && value_lengths[4] == 0);
    for (int i = 0; i < 5; i++) rocksdb_free(values[i]);
    rocksdb_multi_get_cf(NULL, read, families, 2, keys, lengths, values, value_lengths, errors);
    CHECK(values[1] == NULL && strstr(errors[1], "null") != NULL);
    rocksdb_free(errors[0]);
    rocksdb_free(errors[1]);

    rocksdb_pinnableslice_t* pinned[5];
    size_t length;
    rocksdb_batched_multi_get_cf(db, read, base, 5, keys, lengths, pinned, errors, false);
    CHECK(pinned[2] == NULL && errors[2] == NULL);
    CHECK(memcmp(rocksdb_pinnableslice_value(pinned[3], &length), "val", 3) == 0 && length == 3);
    for (int i = 0; i < 5; i++) rocksdb_pinnableslice_destroy(pinned[i]);
    rocksdb_slice_t slices[] = {{"none", 4}, {"a", 1}};
    rocksdb_batched_multi_get_cf_slice(db, read, other, 2, slices, pinned, errors, true);
    CHECK(pinned[0] == NULL && errors[0] == NULL);
    CHECK(rocksdb_pinnableslice_value(pinned[1], &length)[0] == '2' && length == 1);
    rocksdb_pinnableslice_destroy(pinned[1]);

    rocksdb_slice_t three[] = {{"none", 4}, {"a", 1}, {"pieces", 6}};
    rocksdb_pinnable_multi_get_t* all =
        rocksdb_batched_multi_get_pinned_cf(db, read, base, 3, three, false);
    CHECK(rocksdb_pinnable_multi_get_count(all) == 3);
    const char *value = "", *error = "";
    size_t error_length = 9;
    CHECK(rocksdb_pinnable_multi_get_result(all, 0, &value, &length, &error, &error_length) ==
          rocksdb_pinnable_multi_get_not_found);
    CHECK(value == NULL && length == 0 && error == NULL && error_length == 0);
    CHECK(rocksdb_pinnable_multi_get_result(all, 1, &value, &length, &error, &error_length) ==
          rocksdb_pinnable_multi_get_found);
    CHECK(length == 1 && value[0] == '1' && error == NULL);
    CHECK(rocksdb_pinnable_multi_get_result(all, 2, &value, &length, &error, &error_length) ==
          rocksdb_pinnable_multi_get_found);
    CHECK(length == 3 && memcmp(value, "val", 3) == 0);
    CHECK(rocksdb_pinnable_multi_get_result(all, 3, &value, &length, &error, &error_length) ==
          rocksdb_pinnable_multi_get_out_of_bounds);
    CHECK(value == NULL && error == NULL);
    rocksdb_pinnable_multi_get_destroy(all);
    all = rocksdb_batched_multi_get_pinned_cf(NULL, read, base, 2, three, true);
    CHECK(rocksdb_pinnable_multi_get_result(all, 1, &value, &length, &error, &error_length) ==
          rocksdb_pinnable_multi_get_error);
    CHECK(value == NULL && error_length > 0 && strlen(error) == error_length);
    rocksdb_pinnable_multi_get_destroy(all);
    all = rocksdb_batched_multi_get_pinned_cf(db, read, base, 0, NULL, true);
    CHECK(rocksdb_pinnable_multi_get_count(all) == 0);
    rocksdb_pinnable_multi_get_destroy(all);
    rocksdb_readoptions_destroy(read);
}

static void one(rocksdb_t* db, rocksdb_column_family_handle_t* other) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    size_t length = 99;
    unsigned char found = 9;
    char buffer[3] = "xy";
    CHECK(rocksdb_get_into_buffer(db, read, "a", 1, buffer, 3, &length, &found, &err));
    CHECK(err == NULL && found && length == 1 && memcmp(buffer, "1y", 3) == 0);
    CHECK(!rocksdb_get_into_buffer(db, read, "pieces", 6, buffer, 2, &length, &found, &err));
    CHECK(err == NULL && found && length == 3 && memcmp(buffer, "1y", 3) == 0);
    CHECK(!rocksdb_get_into_buffer_cf(db, read, other, "x", 1, buffer, 2, &length, &found, &err));
    CHECK(err == NULL && !found && length == 0);
    CHECK(!rocksdb_get_into_buffer(NULL, read, "x", 1, buffer, 2, NULL, NULL, &err));
    CHECK(err != NULL);
    rocksdb_free(err);
    err = NULL;

    rocksdb_pinnable_handle_t* handle = rocksdb_get_pinned_cf_v2(db, read, other, "a", 1, &err);
    CHECK(rocksdb_pinnable_handle_get_value(handle, &length)[0] == '2' && length == 1);
    rocksdb_pinnable_handle_destroy(handle);
    CHECK(rocksdb_get_pinned_v2(db, read, "none", 4, &err) == NULL && err == NULL);
    CHECK(rocksdb_pinnable_handle_get_value(NULL, &length) == NULL && length == 0);
    rocksdb_readoptions_destroy(read);
}

static void iterators(rocksdb_t* db, rocksdb_column_family_handle_t* base,
                      rocksdb_column_family_handle_t* other) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_column_family_handle_t* families[] = {base, other};
    rocksdb_iterator_t* both[2];
    rocksdb_create_iterators(db, read, families, both, 2, &err);
    CHECK(err == NULL);
    rocksdb_put(db, write, "Z", 1, "new", 3, &err);
    rocksdb_iter_seek_to_first(both[0]);
    rocksdb_iter_seek_to_first(both[1]);
    rocksdb_slice_t key = rocksdb_iter_key_slice(both[0]);
    rocksdb_slice_t value = rocksdb_iter_value_slice(both[1]);
    CHECK(key.size == 1 && key.data[0] == 'a');
    CHECK(value.size == 1 && value.data[0] == '2');
    rocksdb_iter_refresh(both[0], &err);
    CHECK(err == NULL && !rocksdb_iter_valid(both[0]));
    rocksdb_iter_seek_to_first(both[0]);
    CHECK(rocksdb_iter_key_slice(both[0]).data[0] == 'Z');
    CHECK(rocksdb_iter_key_slice(NULL).data == NULL);
    rocksdb_iter_refresh(NULL, &err);
    CHECK(err != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_iter_destroy(both[0]);
    rocksdb_iter_destroy(both[1]);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
}

static void upkeep(rocksdb_t* db, rocksdb_column_family_handle_t* base,
                   rocksdb_column_family_handle_t* other) {
    rocksdb_column_family_handle_t* families[] = {base, other};
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush_cfs(db, flush, families, 2, &err);
    CHECK(err == NULL);
    uint64_t bytes = 0;
    for (int i = 0; i < 2; i++) {
        CHECK(rocksdb_property_int_cf(db, families[i], "rocksdb.total-sst-files-size", &bytes) == 0);
        CHECK(bytes > 0);
    }
    rocksdb_suggest_compact_range(db, NULL, 0, NULL, 0, &err);
    rocksdb_suggest_compact_range_cf(db, other, "a", 1, "b", 1, &err);
    CHECK(err == NULL);
    rocksdb_verify_checksum(db, &err);
    rocksdb_verify_checksum_with_options(db, NULL, &err);
    CHECK(err == NULL);
    rocksdb_cancel_all_background_work(db, 1);
    rocksdb_flushoptions_destroy(flush);
}

int main(int count, char** arguments) {
    char path[1000];
    CHECK(count == 2);
    sprintf(path, "%s/db", arguments[1]);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_t* other =
        rocksdb_create_column_family(db, options, "other", &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_t* base = rocksdb_get_default_column_family_handle(db);
    data_of_the_log(db, other);
    batches(db, other);
    many(db, base, other);
    one(db, other);
    iterators(db, base, other);
    upkeep(db, base, other);
    rocksdb_close(db);
    rocksdb_column_family_handle_destroy(base);
    rocksdb_column_family_handle_destroy(other);
    rocksdb_options_destroy(options);
    puts("all is well");
    return 0;
}
