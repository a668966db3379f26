/* Options: mapped, stored and refused ones, by function and by name, also while the database is
 * open. */
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

static void refused(const char* what) {
    CHECK(err != NULL && strstr(err, what) != NULL);
    rocksdb_free(err);
    err = NULL;
}

static void numbers(void) {
    rocksdb_options_t* options = rocksdb_options_create();
    CHECK(rocksdb_options_get_create_if_missing(options) == 0);
    rocksdb_options_set_write_buffer_size(options, 12345678);
    CHECK(rocksdb_options_get_write_buffer_size(options) == 12345678);
    rocksdb_options_set_max_write_buffer_number(options, 5);
    CHECK(rocksdb_options_get_max_write_buffer_number(options) == 5);
    rocksdb_options_set_max_bytes_for_level_multiplier(options, 7.5);
    CHECK(rocksdb_options_get_max_bytes_for_level_multiplier(options) == 7.5);
    rocksdb_options_set_disable_auto_compactions(options, 1);
    CHECK(rocksdb_options_get_disable_auto_compactions(options) == 1);
    rocksdb_options_compaction_readahead_size(options, 1 << 20);
    CHECK(rocksdb_options_get_compaction_readahead_size(options) == 1 << 20);
    rocksdb_options_set_max_open_files(options, -1);
    CHECK(rocksdb_options_get_max_open_files(options) == -1);
    rocksdb_options_set_max_open_files(options, 2);
    CHECK(rocksdb_options_get_max_open_files(options) == 2);
    rocksdb_options_set_max_background_compactions(options, -1);
    CHECK(rocksdb_options_get_max_background_compactions(options) == -1);
    rocksdb_options_set_compression(options, rocksdb_lz4hc_compression);
    CHECK(rocksdb_options_get_compression(options) == rocksdb_lz4hc_compression);
    rocksdb_options_set_bottommost_compression(options, rocksdb_zstd_compression);
    CHECK(rocksdb_options_get_bottommost_compression(options) == rocksdb_zstd_compression);
    rocksdb_options_set_wal_recovery_mode(options, rocksdb_absolute_consistency_recovery);
    CHECK(rocksdb_options_get_wal_recovery_mode(options) == 1);
    rocksdb_options_set_compaction_pri(options, rocksdb_k_round_robin_compaction_pri);
    CHECK(rocksdb_options_get_compaction_pri(options) == rocksdb_k_round_robin_compaction_pri);
    rocksdb_options_set_statistics_level(options, 5);
    CHECK(rocksdb_options_get_statistics_level(options) == 0);
    rocksdb_options_enable_statistics(options);
    CHECK(rocksdb_options_get_statistics_level(options) == 3);
    rocksdb_options_set_statistics_level(options, 42);
    CHECK(rocksdb_options_get_statistics_level(options) == 5);
    rocksdb_options_set_create_if_missing(options, 42);
    CHECK(rocksdb_options_get_create_if_missing(options) == 1);
    rocksdb_options_set_paranoid_checks(options, 42);
    CHECK(rocksdb_options_get_paranoid_checks(options) == 1);
    CHECK(rocksdb_options_get_write_buffer_size(NULL) == 0);
    rocksdb_options_set_write_buffer_size(NULL, 1);
    rocksdb_options_destroy(options);
}

static void refusals(const char* path) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    /* Contradicting values are adjusted, and returned as they were set. */
    rocksdb_options_set_num_levels(options, -3);
    rocksdb_options_set_level0_file_num_compaction_trigger(options, -1);
    rocksdb_options_set_level0_slowdown_writes_trigger(options, -1);
    rocksdb_options_set_level0_stop_writes_trigger(options, -1);
    rocksdb_options_set_hard_pending_compaction_bytes_limit(options, 1u << 30);
    rocksdb_options_set_max_bytes_for_level_multiplier(options, -1);
    rocksdb_options_set_max_background_jobs(options, -1);
    CHECK(rocksdb_options_get_num_levels(options) == -3);
    CHECK(rocksdb_options_get_level0_slowdown_writes_trigger(options) == -1);
    CHECK(rocksdb_options_get_max_background_jobs(options) == -1);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL && db != NULL);
    const char* names[] = {"level0_slowdown_writes_trigger", "soft_pending_compaction_bytes_limit"};
    const char* values[] = {"-1", "549755813888"};
    rocksdb_set_options(db, 2, names, values, &err);
    CHECK(err == NULL);
    rocksdb_close(db);
    rocksdb_destroy_db(options, path, &err);
    CHECK(err == NULL);
    rocksdb_options_destroy(options);
}

static void texts(void) {
    rocksdb_options_t* base = rocksdb_options_create();
    rocksdb_options_t* made = rocksdb_options_create();
    rocksdb_options_set_num_levels(base, 5);
    rocksdb_get_options_from_string(
        base,
        "create_if_missing=true; write_buffer_size=16M; max_open_files=-1;compression=kZSTD;"
        "compression_per_level=kNoCompression:kSnappyCompression;compaction_pri=kRoundRobin;"
        "compaction_style=kCompactionStyleUniversal;compression_opts={level=3;window_bits=-14};"
        "stats_dump_period_sec=60;enable_blob_garbage_collection=true;"
        "block_based_table_factory={block_size=8192;filter_policy=bloomfilter:9:false;"
        "block_cache=1M;cache_index_and_filter_blocks=1};sateen.slice_bytes_max=128KiB",
        made, &err);
    CHECK(err == NULL);
    CHECK(rocksdb_options_get_create_if_missing(made) == 1);
    CHECK(rocksdb_options_get_write_buffer_size(made) == 16 << 20);
    CHECK(rocksdb_options_get_num_levels(made) == 5);
    /* An error changes nothing and names the option. */
    rocksdb_get_options_from_string(base, "num_levels=6;no_such_option=1", made, &err);
    refused("no_such_option");
    CHECK(rocksdb_options_get_num_levels(made) == 5);
    rocksdb_get_options_from_string(base, "table_factory={block_sise=1}", made, &err);
    refused("block_sise");
    rocksdb_get_options_from_string(base, "sateen.num=1", made, &err);
    refused("num");
    rocksdb_get_options_from_string(base, "num_levels", made, &err);
    refused("num_levels");
    rocksdb_get_options_from_string(base, "sateen.profile=vlsm", made, &err);
    CHECK(err == NULL);
    rocksdb_options_destroy(base);
    rocksdb_options_destroy(made);
}

static void for_a_purpose(const char* path) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_optimize_for_point_lookup(options, 4);
    rocksdb_options_optimize_universal_style_compaction(options, 64 << 20);
    CHECK(rocksdb_options_get_write_buffer_size(options) == 16 << 20);
    rocksdb_options_optimize_level_style_compaction(options, 32 << 20);
    CHECK(rocksdb_options_get_write_buffer_size(options) == 8 << 20);
    rocksdb_options_prepare_for_bulk_load(options);
    CHECK(rocksdb_options_get_disable_auto_compactions(options) == 1);
    rocksdb_options_enable_statistics(options);
    rocksdb_options_set_min_level_to_compress(options, 2);
    rocksdb_options_set_compression_options(options, -14, 5, 0, 0);
    rocksdb_options_set_write_buffer_size(options, 1);
    rocksdb_options_set_bottommost_compression(options, rocksdb_zstd_compression);
    rocksdb_options_set_uint64add_merge_operator(options);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);

    char* text = rocksdb_property_value(db, "rocksdb.options");
    CHECK(strstr(text, "bloom_bits_per_key = 10\n") != NULL);
    CHECK(strstr(text, "block_cache_bytes = 4MiB\n") != NULL);
    CHECK(strstr(text, "compression = none,none,lz4,lz4,lz4,lz4,zstd\n") != NULL);
    CHECK(strstr(text, "zstd_level = 5\n") != NULL);
    rocksdb_free(text);

    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    uint64_t two = 2, three = 3;
    size_t length;
    rocksdb_merge(db, write, "n", 1, (char*)&two, 8, &err);
    rocksdb_merge(db, write, "n", 1, (char*)&three, 8, &err);
    char* sum = rocksdb_get(db, read, "n", 1, &length, &err);
    CHECK(err == NULL && length == 8 && *(uint64_t*)(void*)sum == 5);
    rocksdb_free(sum);

    const char* names[] = {"write_buffer_size", "stats_dump_period_sec", "sateen.block_bytes"};
    const char* values[] = {"1048576", "0", "16KiB"};
    rocksdb_set_options(db, 3, names, values, &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_t* base = rocksdb_get_default_column_family_handle(db);
    rocksdb_set_options_cf(db, base, 1, names, values, &err);
    CHECK(err == NULL);
    rocksdb_set_db_options(db, 1, names + 1, values, &err);
    CHECK(err == NULL);
    names[1] = "nothing";
    rocksdb_set_options_cf(db, base, 2, names, values, &err);
    refused("nothing");
    rocksdb_column_family_handle_destroy(base);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static void properties(const char* path) {
    static const char* const numbers[] = {
        "estimate-num-keys", "cur-size-all-mem-tables", "size-all-mem-tables",
        "cur-size-active-mem-table", "num-immutable-mem-table", "estimate-live-data-size",
        "total-sst-files-size", "live-sst-files-size", "block-cache-usage",
        "block-cache-capacity", "block-cache-pinned-usage", "background-errors",
        "num-snapshots", "oldest-snapshot-sequence", "is-write-stopped",
        "actual-delayed-write-rate", "num-running-compactions", "num-running-flushes",
        "compaction-pending", "mem-table-flush-pending", "num-files-at-level0",
        "estimate-pending-compaction-bytes", "estimate-table-readers-mem",
        "num-entries-active-mem-table", "num-deletes-active-mem-table",
        "num-entries-imm-mem-tables", "num-deletes-imm-mem-tables", "base-level",
        "min-log-number-to-keep"};
    static const char* const texts[] = {"stats", "dbstats", "cfstats", "levelstats", "sstables"};
    char name[100];
    uint64_t value;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sprintf(name, "rocksdb.%s", numbers[i]);
        value = UINT64_MAX;
        if (rocksdb_property_int(db, name, &value) != 0) fprintf(stderr, "%s\n", name);
        CHECK(value != UINT64_MAX);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sprintf(name, "rocksdb.%s", texts[i]);
        char* text = rocksdb_property_value(db, name);
        if (text == NULL) fprintf(stderr, "%s\n", name);
        CHECK(text != NULL && strlen(text) > 10);
        CHECK(rocksdb_property_int(db, name, &value) == -1);
        rocksdb_free(text);
    }
    CHECK(rocksdb_property_int(db, "rocksdb.oldest-snapshot-sequence", &value) == 0);
    CHECK(value == rocksdb_snapshot_get_sequence_number(snapshot));
    CHECK(rocksdb_property_int(db, "rocksdb.base-level", &value) == 0 && value > 0);
    CHECK(rocksdb_property_value(db, "rocksdb.no-such-thing") == NULL);
    CHECK(rocksdb_property_value(db, "stats") == NULL);
    rocksdb_release_snapshot(db, snapshot);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
    char path[1000];
    CHECK(count == 2);
    sprintf(path, "%s/db", arguments[1]);
    numbers();
    refusals(path);
    texts();
    for_a_purpose(path);
    properties(path);
    puts("all is well");
    return 0;
}
