/* Functions that are not implemented say so, and options without a counterpart keep their values.
 * The last call ends the program. */
#include "rocksdb/c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

static void through_errptr(void) {
    char* err = NULL;
    for (int i = 0; i < 2; i++) {
        CHECK(rocksdb_jemalloc_nodump_allocator_create(&err) == NULL);
        CHECK(strcmp(err, "Not implemented: rocksdb_jemalloc_nodump_allocator_create") == 0);
    }
    rocksdb_free(err);
    CHECK(rocksdb_jemalloc_nodump_allocator_create(NULL) == NULL);
}

static void options_keep_what_they_are_given(void) {
    rocksdb_options_t* options = rocksdb_options_create();
    CHECK(rocksdb_options_get_max_manifest_space_amp_pct(options) == 500);
    CHECK(rocksdb_options_get_blob_gc_age_cutoff(options) == 0.25);
    CHECK(rocksdb_options_get_report_bg_io_stats(options) == 0);
    rocksdb_options_set_max_manifest_space_amp_pct(options, -7);
    rocksdb_options_set_blob_gc_age_cutoff(options, 0.5);
    rocksdb_options_set_report_bg_io_stats(options, 1);
    rocksdb_options_t* copy = rocksdb_options_create_copy(options);
    rocksdb_options_destroy(options);
    CHECK(rocksdb_options_get_max_manifest_space_amp_pct(copy) == -7);
    CHECK(rocksdb_options_get_blob_gc_age_cutoff(copy) == 0.5);
    CHECK(rocksdb_options_get_report_bg_io_stats(copy) == 1);
    rocksdb_options_destroy(copy);

    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    CHECK(rocksdb_readoptions_get_value_size_soft_limit(read) == UINT64_MAX);
    rocksdb_readoptions_set_value_size_soft_limit(read, (uint64_t)1 << 40);
    CHECK(rocksdb_readoptions_get_value_size_soft_limit(read) == (uint64_t)1 << 40);
    rocksdb_readoptions_destroy(read);
}

static void options_of_what_is_not_there(void) {
    rocksdb_transactiondb_options_t* options = rocksdb_transactiondb_options_create();
    CHECK(rocksdb_transactiondb_options_get_max_num_locks(options) == -1);
    rocksdb_transactiondb_options_set_max_num_locks(options, INT64_MIN);
    CHECK(rocksdb_transactiondb_options_get_max_num_locks(options) == INT64_MIN);
    rocksdb_transactiondb_options_destroy(options);
    rocksdb_transactiondb_options_destroy(NULL);
    rocksdb_transactiondb_options_set_max_num_locks(NULL, 1);
    CHECK(rocksdb_transactiondb_options_get_max_num_locks(NULL) == -1);
    rocksdb_transaction_destroy(NULL);
}

int main(void) {
    through_errptr();
    options_keep_what_they_are_given();
    options_of_what_is_not_there();
    puts("all is well");
    fflush(stdout);
    rocksdb_delete_file(NULL, "000001.sst");
    return 1;
}
