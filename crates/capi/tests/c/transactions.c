/* Transactions of both kinds: locks and conflicts, save points, snapshots, two-phase commit, and
 * what is refused. */
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
#define OK(call)             \
    do {                     \
        call;                \
        CHECK(err == NULL);  \
    } while (0)

static char* err = NULL;
static rocksdb_readoptions_t* ro;
static rocksdb_writeoptions_t* wo;
static rocksdb_options_t* options;

static void fails_with(const char* says) {
    CHECK(err != NULL && strstr(err, says) != NULL);
    rocksdb_free(err);
    err = NULL;
}

/* Frees a value, which must be the expected one; NULL for none. The length is read after the call
 * that stores it. */
static void is(char* value, const size_t* length, const char* expected) {
    CHECK(err == NULL);
    CHECK((value == NULL) == (expected == NULL));
    CHECK(expected == NULL || *length == strlen(expected));
    CHECK(expected == NULL || memcmp(value, expected, *length) == 0);
    rocksdb_free(value);
}

static void sees(rocksdb_transaction_t* transaction, const char* key, const char* expected) {
    size_t length = 0;
    char* value = rocksdb_transaction_get(transaction, ro, key, strlen(key), &length, &err);
    is(value, &length, expected);
}

static void has(rocksdb_transactiondb_t* db, const char* key, const char* expected) {
    size_t length = 0;
    char* value = rocksdb_transactiondb_get(db, ro, key, strlen(key), &length, &err);
    is(value, &length, expected);
}

static void put(rocksdb_transaction_t* transaction, const char* key, const char* value) {
    rocksdb_transaction_put(transaction, key, strlen(key), value, strlen(value), &err);
}

/* Counts the keys of an iterator, and frees it. */
static int keys(rocksdb_iterator_t* iter) {
    int count = 0;
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        count++;
    }
    OK(rocksdb_iter_get_error(iter, &err));
    rocksdb_iter_destroy(iter);
    return count;
}

static void pessimistic(const char* path) {
    rocksdb_transactiondb_options_t* of_db = rocksdb_transactiondb_options_create();
    rocksdb_transactiondb_options_set_max_num_locks(of_db, 5);
    CHECK(rocksdb_transactiondb_open(options, of_db, path, &err) == NULL);
    fails_with("max_num_locks=5 is not implemented");
    rocksdb_transactiondb_options_set_max_num_locks(of_db, -1);
    rocksdb_transactiondb_options_set_transaction_lock_timeout(of_db, 1);
    rocksdb_transactiondb_options_set_default_lock_timeout(of_db, 1);
    rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, of_db, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_transactiondb_options_destroy(of_db);
    rocksdb_transaction_options_t* to = rocksdb_transaction_options_create();
    CHECK(rocksdb_transaction_options_get_lock_timeout(to) == -1);
    CHECK(rocksdb_transaction_options_get_skip_prepare(to) == 1);

    /* A lock is respected by transactions and by plain writes, but not past the base. */
    rocksdb_transaction_t* one = rocksdb_transaction_begin(db, wo, to, NULL);
    rocksdb_transaction_t* other = rocksdb_transaction_begin(db, wo, to, NULL);
    OK(put(one, "a", "1"));
    put(other, "a", "2");
    fails_with("Operation timed out:");
    rocksdb_transactiondb_put(db, wo, "a", 1, "3", 1, &err);
    fails_with("Operation timed out:");
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "b", 1, "4", 1);
    rocksdb_writebatch_delete(batch, "a", 1);
    rocksdb_transactiondb_write(db, wo, batch, &err);
    fails_with("Operation timed out:");
    has(db, "b", NULL);
    sees(one, "a", "1");
    sees(other, "a", NULL);
    OK(rocksdb_transaction_commit(one, &err));
    has(db, "a", "1");
    rocksdb_transaction_commit(one, &err);
    fails_with("Invalid argument:");
    OK(rocksdb_transactiondb_write(db, wo, batch, &err));
    rocksdb_writebatch_delete_range(batch, "a", 1, "c", 1);
    rocksdb_transactiondb_write(db, wo, batch, &err);
    fails_with("range deletions");
    rocksdb_writebatch_destroy(batch);
    has(db, "a", NULL);
    has(db, "b", "4");

    /* Its place is used again. Shared locks, reads for update, and a rollback. */
    CHECK(rocksdb_transaction_begin(db, wo, to, one) == one);
    size_t length = 0;
    is(rocksdb_transaction_get_for_update(one, ro, "b", 1, &length, 0, &err), &length, "4");
    rocksdb_pinnableslice_t* pinned =
        rocksdb_transaction_get_pinned_for_update(other, ro, "b", 1, 0, &err);
    CHECK(pinned != NULL && err == NULL);
    CHECK(memcmp(rocksdb_pinnableslice_value(pinned, &length), "4", 1) == 0 && length == 1);
    rocksdb_pinnableslice_destroy(pinned);
    CHECK(rocksdb_transaction_get_for_update(other, ro, "b", 1, &length, 1, &err) == NULL);
    fails_with("Operation timed out:");
    OK(rocksdb_transaction_rollback(one, &err));
    is(rocksdb_transaction_get_for_update(other, ro, "b", 1, &length, 1, &err), &length, "4");
    OK(rocksdb_transaction_rollback(other, &err));

    /* After a rollback it goes on. */
    OK(put(one, "c", "5"));
    rocksdb_transaction_set_savepoint(one);
    OK(put(one, "d", "6"));
    OK(rocksdb_transaction_delete(one, "b", 1, &err));
    CHECK(keys(rocksdb_transaction_create_iterator(one, ro)) == 2);
    CHECK(keys(rocksdb_transactiondb_create_iterator(db, ro)) == 1);
    const char* names[] = {"b", "c", "d", "e"};
    const size_t lengths[] = {1, 1, 1, 1};
    char* values[4];
    char* errors[4];
    size_t value_lengths[4];
    rocksdb_transaction_multi_get(one, ro, 4, names, lengths, values, value_lengths, errors);
    for (int i = 0; i < 4; i++) {
        const char* expected[] = {NULL, "5", "6", NULL};
        CHECK(errors[i] == NULL);
        is(values[i], &value_lengths[i], expected[i]);
    }
    OK(rocksdb_transaction_rollback_to_savepoint(one, &err));
    rocksdb_transaction_rollback_to_savepoint(one, &err);
    fails_with("NotFound:");
    sees(one, "d", NULL);
    sees(one, "b", "4");
    OK(put(other, "d", "7"));
    put(other, "c", "7");
    fails_with("Operation timed out:");
    OK(rocksdb_transaction_rollback(other, &err));

    /* Its batch, which C frees. */
    rocksdb_writebatch_wi_t* lent = rocksdb_transaction_get_writebatch_wi(one);
    CHECK(rocksdb_writebatch_wi_count(lent) == 1);
    const char* data = rocksdb_writebatch_wi_data(lent, &length);
    batch = rocksdb_writebatch_create_from(data, length);
    CHECK(rocksdb_writebatch_count(batch) == 1);
    OK(rocksdb_transaction_rollback(one, &err));
    CHECK(rocksdb_writebatch_wi_count(lent) == 0);
    OK(rocksdb_transaction_rebuild_from_writebatch(other, batch, &err));
    sees(other, "c", "5");
    put(one, "c", "8");
    fails_with("Operation timed out:");
    rocksdb_writebatch_wi_put(lent, "c", 1, "8", 1);
    rocksdb_transaction_commit(one, &err);
    fails_with("the batch of a transaction");
    OK(rocksdb_transaction_rollback(one, &err));
    OK(rocksdb_transaction_commit(one, &err));
    rocksdb_transaction_destroy(one);
    CHECK(rocksdb_writebatch_wi_count(lent) == 0);
    rocksdb_free(lent);
    OK(rocksdb_transaction_commit(other, &err));
    rocksdb_transaction_destroy(other);
    rocksdb_writebatch_destroy(batch);
    has(db, "c", "5");

    /* A snapshot is respected by locks; reads see it only if their options have it. */
    rocksdb_transaction_options_set_set_snapshot(to, 1);
    one = rocksdb_transaction_begin(db, wo, to, NULL);
    rocksdb_transaction_options_set_set_snapshot(to, 0);
    OK(rocksdb_transactiondb_put(db, wo, "c", 1, "9", 1, &err));
    sees(one, "c", "9");
    const rocksdb_snapshot_t* snapshot = rocksdb_transaction_get_snapshot(one);
    rocksdb_readoptions_t* then = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(then, snapshot);
    is(rocksdb_transaction_get(one, then, "c", 1, &length, &err), &length, "5");
    put(one, "c", "10");
    fails_with("Resource busy:");
    rocksdb_transaction_destroy(one);
    rocksdb_readoptions_set_snapshot(then, snapshot);
    CHECK(rocksdb_transactiondb_get(db, then, "c", 1, &length, &err) == NULL);
    fails_with("is freed");
    rocksdb_free((void*)snapshot);
    one = rocksdb_transaction_begin(db, wo, to, NULL);
    snapshot = rocksdb_transaction_get_snapshot(one);
    rocksdb_readoptions_set_snapshot(then, snapshot);
    is(rocksdb_transaction_get(one, then, "c", 1, &length, &err), &length, "9");
    rocksdb_free((void*)snapshot);
    rocksdb_readoptions_destroy(then);

    /* Names, prepares, and what is refused. */
    rocksdb_transaction_prepare(one, &err);
    fails_with("has no name");
    OK(rocksdb_transaction_set_name(one, "n1", 2, &err));
    rocksdb_transaction_set_name(one, "n3", 2, &err);
    fails_with("has the name n1 already");
    rocksdb_transaction_options_set_skip_prepare(to, 0);
    other = rocksdb_transaction_begin(db, wo, to, NULL);
    rocksdb_transaction_options_set_skip_prepare(to, 1);
    rocksdb_transaction_set_name(other, "n1", 2, &err);
    fails_with("another transaction has the name n1");
    rocksdb_transaction_commit(other, &err);
    fails_with("the transaction is not prepared");
    OK(put(other, "q", "1"));
    rocksdb_transaction_commit(other, &err);
    fails_with("not prepared");
    OK(rocksdb_transaction_set_name(other, "n2", 2, &err));
    char* name = rocksdb_transaction_get_name(other, &length);
    is(name, &length, "n2");
    OK(rocksdb_transaction_prepare(other, &err));
    OK(put(one, "p", "1"));
    OK(rocksdb_transaction_prepare(one, &err));
    rocksdb_transaction_destroy(one);
    rocksdb_transaction_destroy(other);
    rocksdb_transactiondb_delete(db, wo, "p", 1, &err);
    fails_with("Operation timed out:");
    rocksdb_transaction_options_set_expiration(to, 5);
    one = rocksdb_transaction_begin(db, wo, to, NULL);
    put(one, "a", "1");
    fails_with("expiration=5 is not implemented");
    rocksdb_transaction_commit(one, &err);
    fails_with("expiration=5 is not implemented");
    rocksdb_transaction_destroy(one);
    rocksdb_transaction_options_set_expiration(to, -1);
    rocksdb_transaction_options_set_max_write_batch_size(to, 100);
    one = rocksdb_transaction_begin(db, wo, to, NULL);
    OK(put(one, "a", "1"));
    char large[200] = {0};
    rocksdb_transaction_put(one, "b", 1, large, sizeof large, &err);
    fails_with("Operation aborted:");
    rocksdb_transaction_set_commit_timestamp(one, 7);
    OK(rocksdb_transaction_commit(one, &err));
    rocksdb_transaction_destroy(one);
    rocksdb_transaction_options_destroy(to);

    /* The base, and a transaction that outlives its database. */
    rocksdb_t* base = rocksdb_transactiondb_get_base_db(db);
    is(rocksdb_get(base, ro, "c", 1, &length, &err), &length, "9");
    OK(rocksdb_put(base, wo, "p", 1, "0", 1, &err));
    rocksdb_transactiondb_close_base_db(base);
    has(db, "p", "0");
    one = rocksdb_transaction_begin(db, wo, NULL, NULL);
    OK(put(one, "late", "1"));
    rocksdb_transactiondb_close(db);
    rocksdb_transaction_commit(one, &err);
    fails_with("Shutdown in progress:");
    rocksdb_transaction_destroy(one);
    rocksdb_transactiondb_put(db, wo, "a", 1, "1", 1, &err);
    fails_with("Shutdown in progress:");
    rocksdb_transactiondb_close(db);

    /* Prepared transactions are there again. */
    db = rocksdb_transactiondb_open(options, NULL, path, &err);
    CHECK(db != NULL && err == NULL);
    size_t count = 0;
    rocksdb_transaction_t** found = rocksdb_transactiondb_get_prepared_transactions(db, &count);
    CHECK(count == 2);
    OK(rocksdb_transaction_commit(found[0], &err));
    OK(rocksdb_transaction_rollback(found[1], &err));
    rocksdb_transaction_destroy(found[0]);
    rocksdb_transaction_destroy(found[1]);
    rocksdb_free(found);
    CHECK(rocksdb_transactiondb_get_prepared_transactions(db, &count) == NULL && count == 0);
    has(db, "p", "1");
    has(db, "q", NULL);
    OK(rocksdb_transactiondb_flush_wal(db, 1, &err));
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    OK(rocksdb_transactiondb_flush(db, flush, &err));
    rocksdb_flushoptions_destroy(flush);
    uint64_t number = 0;
    CHECK(rocksdb_transactiondb_property_int(db, "rocksdb.estimate-num-keys", &number) == 0);
    rocksdb_column_family_handle_t* family =
        rocksdb_transactiondb_create_column_family(db, options, "loans", &err);
    CHECK(family != NULL && err == NULL);
    OK(rocksdb_transactiondb_put_cf(db, wo, family, "walden", 6, "lent", 4, &err));
    one = rocksdb_transaction_begin(db, wo, NULL, NULL);
    is(rocksdb_transaction_get_cf(one, ro, family, "walden", 6, &length, &err), &length, "lent");
    OK(rocksdb_transaction_delete_cf(one, family, "walden", 6, &err));
    CHECK(keys(rocksdb_transaction_create_iterator_cf(one, ro, family)) == 0);
    rocksdb_transaction_merge_cf(one, family, "walden", 6, "x", 1, &err);
    CHECK(err == NULL);
    rocksdb_transaction_commit(one, &err);
    fails_with("Not implemented:");
    rocksdb_transaction_destroy(one);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_transactiondb_close(db);
}

static void optimistic(const char* path) {
    rocksdb_optimistictransactiondb_t* db =
        rocksdb_optimistictransactiondb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_t* base = rocksdb_optimistictransactiondb_get_base_db(db);
    rocksdb_optimistictransaction_options_t* to = rocksdb_optimistictransaction_options_create();
    rocksdb_transaction_t* one = rocksdb_optimistictransaction_begin(db, wo, to, NULL);
    OK(put(one, "a", "1"));
    OK(rocksdb_put(base, wo, "a", 1, "2", 1, &err));
    rocksdb_transaction_commit(one, &err);
    fails_with("Resource busy:");
    OK(rocksdb_transaction_rollback(one, &err));
    size_t length = 0;
    is(rocksdb_transaction_get_for_update(one, ro, "a", 1, &length, 1, &err), &length, "2");
    OK(put(one, "b", "3"));
    OK(rocksdb_transaction_commit(one, &err));

    /* It can be used again. */
    OK(put(one, "b", "4"));
    rocksdb_transaction_put_log_data(one, "log", 3);
    OK(rocksdb_transaction_commit(one, &err));
    is(rocksdb_get(base, ro, "b", 1, &length, &err), &length, "4");
    rocksdb_transaction_set_name(one, "n", 1, &err);
    fails_with("only a pessimistic transaction");

    /* Keys that are only read for update are validated, too; with a snapshot since then. */
    rocksdb_optimistictransaction_options_set_set_snapshot(to, 1);
    CHECK(rocksdb_optimistictransaction_begin(db, wo, to, one) == one);
    OK(rocksdb_put(base, wo, "b", 1, "5", 1, &err));
    is(rocksdb_transaction_get_for_update(one, ro, "b", 1, &length, 1, &err), &length, "5");
    rocksdb_transaction_commit(one, &err);
    fails_with("Resource busy:");
    rocksdb_transaction_destroy(one);
    rocksdb_optimistictransaction_options_destroy(to);

    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "c", 1, "6", 1);
    OK(rocksdb_optimistictransactiondb_write(db, wo, batch, &err));
    rocksdb_writebatch_destroy(batch);
    char path_of_checkpoint[4200];
    snprintf(path_of_checkpoint, sizeof path_of_checkpoint, "%s.checkpoint", path);
    rocksdb_checkpoint_t* checkpoint =
        rocksdb_optimistictransactiondb_checkpoint_object_create(db, &err);
    CHECK(checkpoint != NULL && err == NULL);
    OK(rocksdb_checkpoint_create(checkpoint, path_of_checkpoint, 0, &err));
    rocksdb_checkpoint_object_destroy(checkpoint);
    rocksdb_optimistictransactiondb_close_base_db(base);
    rocksdb_optimistictransactiondb_close(db);

    rocksdb_optimistictransactiondb_options_t* of_db =
        rocksdb_optimistictransactiondb_options_create();
    CHECK(rocksdb_optimistictransactiondb_options_get_validate_policy(of_db) == 1);
    rocksdb_optimistictransactiondb_lock_buckets_t* buckets =
        rocksdb_optimistictransactiondb_lock_buckets_create(100, 1);
    CHECK(rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(buckets) > 0);
    rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(of_db, buckets);
    rocksdb_optimistictransactiondb_lock_buckets_destroy(buckets);
    const char* families[] = {"default"};
    const rocksdb_options_t* of_families[] = {options};
    rocksdb_column_family_handle_t* handle = NULL;
    db = rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
        options, of_db, path_of_checkpoint, 1, families, of_families, &handle, &err);
    CHECK(db != NULL && err == NULL);
    one = rocksdb_optimistictransaction_begin(db, wo, NULL, NULL);
    is(rocksdb_transaction_get_cf(one, ro, handle, "c", 1, &length, &err), &length, "6");
    rocksdb_transaction_destroy(one);
    rocksdb_column_family_handle_destroy(handle);
    rocksdb_optimistictransactiondb_close(db);
    rocksdb_optimistictransactiondb_options_destroy(of_db);
}

static void nothing_is_harmless(void) {
    CHECK(rocksdb_transaction_begin(NULL, wo, NULL, NULL) == NULL);
    CHECK(rocksdb_optimistictransaction_begin(NULL, wo, NULL, NULL) == NULL);
    put(NULL, "a", "b");
    fails_with("the transaction is null");
    rocksdb_transaction_commit(NULL, &err);
    fails_with("the transaction is null");
    rocksdb_transaction_set_savepoint(NULL);
    rocksdb_transaction_destroy(NULL);
    CHECK(rocksdb_transaction_get_snapshot(NULL) == NULL);
    CHECK(rocksdb_transaction_get_writebatch_wi(NULL) == NULL);
    CHECK(rocksdb_transactiondb_get_base_db(NULL) == NULL);
    rocksdb_transactiondb_close(NULL);
    rocksdb_optimistictransactiondb_close(NULL);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[4096];
    ro = rocksdb_readoptions_create();
    wo = rocksdb_writeoptions_create();
    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    snprintf(path, sizeof path, "%s/pessimistic", arguments[1]);
    pessimistic(path);
    snprintf(path, sizeof path, "%s/optimistic", arguments[1]);
    optimistic(path);
    nothing_is_harmless();
    rocksdb_options_destroy(options);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_readoptions_destroy(ro);
    puts("all is well");
    return 0;
}
