/* Statistics, caches that databases share, memory, rate limiters and environments. */
#include "rocksdb/c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, err ? err : ""); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static char* err = NULL;

static rocksdb_t* filled(rocksdb_options_t* options, const char* directory, const char* name) {
    char path[1000], key[20], value[100];
    sprintf(path, "%s/%s", directory, name);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    memset(value, 'v', sizeof value);
    for (int i = 0; i < 2000; i++) {
        rocksdb_put(db, write, key, (size_t)sprintf(key, "%s%06d", name, i), value, sizeof value,
                    &err);
        CHECK(err == NULL);
    }
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(write);
    return db;
}

static void read_all(rocksdb_t* db, const char* name) {
    char key[20];
    size_t length;
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    for (int i = 0; i < 2000; i++) {
        char* value =
            rocksdb_get(db, read, key, (size_t)sprintf(key, "%s%06d", name, i), &length, &err);
        CHECK(err == NULL && length == 100);
        rocksdb_free(value);
    }
    CHECK(rocksdb_get(db, read, "~", 1, &length, &err) == NULL);
    rocksdb_readoptions_destroy(read);
}

static void shared_cache(const char* directory) {
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(4 << 20);
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_t* one = filled(options, directory, "one");
    rocksdb_t* two = filled(options, directory, "two");
    read_all(one, "one");
    size_t of_one = rocksdb_cache_get_usage(cache);
    CHECK(of_one > 100000 && rocksdb_cache_get_occupancy_count(cache) > 0);
    read_all(two, "two");
    CHECK(rocksdb_cache_get_usage(cache) > of_one + 100000);
    read_all(one, "one");
    uint64_t usage, capacity;
    CHECK(rocksdb_property_int(one, "rocksdb.block-cache-usage", &usage) == 0);
    CHECK(usage == rocksdb_cache_get_usage(cache));
    CHECK(rocksdb_property_int(two, "rocksdb.block-cache-capacity", &capacity) == 0);
    CHECK(capacity == 4 << 20 && rocksdb_cache_get_capacity(cache) == 4 << 20);

    rocksdb_memory_consumers_t* consumers = rocksdb_memory_consumers_create();
    rocksdb_memory_consumers_add_db(consumers, one);
    rocksdb_memory_consumers_add_db(consumers, two);
    rocksdb_memory_consumers_add_cache(consumers, cache);
    rocksdb_memory_consumers_add_cache(consumers, cache);
    rocksdb_memory_usage_t* memory = rocksdb_approximate_memory_usage_create(consumers, &err);
    CHECK(err == NULL);
    /* With the tables that find blocks. */
    CHECK(rocksdb_approximate_memory_usage_get_cache_total(memory) >
          rocksdb_cache_get_usage(cache));
    CHECK(rocksdb_approximate_memory_usage_get_mem_table_readers_total(memory) > 1000);
    CHECK(rocksdb_approximate_memory_usage_get_mem_table_total(memory) >=
          rocksdb_approximate_memory_usage_get_mem_table_unflushed(memory));
    rocksdb_approximate_memory_usage_destroy(memory);
    CHECK(rocksdb_approximate_memory_usage_create(NULL, &err) == NULL && err != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_memory_consumers_destroy(consumers);

    rocksdb_cache_set_capacity(cache, 0);
    CHECK(rocksdb_cache_get_usage(cache) == 0 && rocksdb_cache_get_capacity(cache) == 0);
    CHECK(rocksdb_cache_get_pinned_usage(cache) == 0);
    /* The order does not matter, because databases keep what they use. */
    rocksdb_block_based_options_destroy(table);
    rocksdb_cache_disown_data(cache);
    rocksdb_cache_destroy(cache);
    read_all(two, "two");
    rocksdb_options_destroy(options);
    rocksdb_close(one);
    read_all(two, "two");
    rocksdb_close(two);
    CHECK(rocksdb_cache_get_usage(NULL) == 0);
}

static void caches(void) {
    rocksdb_lru_cache_options_t* lru = rocksdb_lru_cache_options_create();
    rocksdb_lru_cache_options_set_capacity(lru, 12345);
    rocksdb_lru_cache_options_set_num_shard_bits(lru, 4);
    rocksdb_hyper_clock_cache_options_t* clock = rocksdb_hyper_clock_cache_options_create(77, 0);
    rocksdb_cache_t* all[] = {rocksdb_cache_create_lru_opts(lru),
                              rocksdb_cache_create_hyper_clock_opts(clock),
                              rocksdb_cache_create_hyper_clock(5, 8192),
                              rocksdb_cache_create_lru_with_strict_capacity_limit(0)};
    static const size_t sizes[] = {12345, 77, 5, 0};
    for (int i = 0; i < 4; i++) {
        CHECK(rocksdb_cache_get_capacity(all[i]) == sizes[i]);
        rocksdb_cache_destroy(all[i]);
    }
    rocksdb_lru_cache_options_destroy(lru);
    rocksdb_hyper_clock_cache_options_destroy(clock);
    rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_create_ribbon(9.5));
    rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_create_ribbon_hybrid(9.5, 1));
}

static void statistics(const char* directory) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_statistics_histogram_data_t* data = rocksdb_statistics_histogram_data_create();
    CHECK(rocksdb_options_statistics_get_string(options) == NULL);
    CHECK(rocksdb_options_statistics_get_ticker_count(options, 58) == 0);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_enable_statistics(options);
    rocksdb_t* db = filled(options, directory, "counted");
    read_all(db, "counted");
    rocksdb_compactoptions_t* compact = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(compact, 2);
    rocksdb_compact_range_opt(db, compact, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(compact);
    /* Both return when their tables are installed, and are counted a moment later. */
    const struct timespec moment = {0, 1000000};
    for (int i = 0; i < 10000; i++) {
        rocksdb_options_statistics_get_histogram_data(options, 2, data);
        if (rocksdb_options_statistics_get_ticker_count(options, 96) > 0 &&
            rocksdb_statistics_histogram_data_get_count(data) > 0) {
            break;
        }
        nanosleep(&moment, NULL);
    }
    CHECK(rocksdb_statistics_histogram_data_get_count(data) > 0);
    /* Open or closed. */
    for (int i = 0; i < 2; i++) {
        CHECK(rocksdb_options_statistics_get_ticker_count(options, 58) == 2000);
        CHECK(rocksdb_options_statistics_get_ticker_count(options, 59) == 2001);
        CHECK(rocksdb_options_statistics_get_ticker_count(options, 62) == 2000 * 100);
        CHECK(rocksdb_options_statistics_get_ticker_count(options, 96) > 1000);
        CHECK(rocksdb_options_statistics_get_ticker_count(options, 75) == 0);
        CHECK(rocksdb_options_statistics_get_ticker_count(options, 100000) == 0);
        char* text = rocksdb_options_statistics_get_string(options);
        CHECK(strstr(text, "rocksdb.number.keys.written COUNT : 2000\n") != NULL);
        CHECK(strstr(text, "rocksdb.db.get.micros P50 : ") != NULL);
        rocksdb_free(text);
        rocksdb_options_statistics_get_histogram_data(options, 0, data);
        uint64_t count = rocksdb_statistics_histogram_data_get_count(data);
        double median = rocksdb_statistics_histogram_data_get_median(data);
        double max = rocksdb_statistics_histogram_data_get_max(data);
        CHECK(count > 100 && median > 0.0 && max >= median);
        CHECK(rocksdb_statistics_histogram_data_get_min(data) <= median);
        CHECK(rocksdb_statistics_histogram_data_get_p99(data) >=
              rocksdb_statistics_histogram_data_get_p95(data));
        CHECK(rocksdb_statistics_histogram_data_get_average(data) > 0.0);
        CHECK(rocksdb_statistics_histogram_data_get_std_dev(data) >= 0.0);
        CHECK(rocksdb_statistics_histogram_data_get_sum(data) <= (uint64_t)(max * (double)count));
        if (i == 0) rocksdb_close(db);
    }
    rocksdb_options_statistics_get_histogram_data(options, 9999, data);
    CHECK(rocksdb_statistics_histogram_data_get_count(data) == 0);
    rocksdb_statistics_histogram_data_destroy(data);
    rocksdb_options_destroy(options);
}

static void environment(const char* directory) {
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_env_set_background_threads(env, 4);
    rocksdb_env_set_high_priority_background_threads(env, 4);
    rocksdb_env_join_all_threads(env);
    rocksdb_ratelimiter_t* limiters[] = {
        rocksdb_ratelimiter_create(10 << 20, 100000, 10),
        rocksdb_ratelimiter_create_auto_tuned(10 << 20, 100000, 10),
        rocksdb_ratelimiter_create_with_mode(10 << 20, 50000, 7, 2, true)};
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_env(options, env);
    for (int i = 0; i < 3; i++) rocksdb_options_set_ratelimiter(options, limiters[i]);
    for (int i = 0; i < 3; i++) rocksdb_ratelimiter_destroy(limiters[i]);
    rocksdb_env_destroy(env);
    rocksdb_options_set_compaction_pri(options, rocksdb_k_oldest_largest_seq_first_compaction_pri);
    rocksdb_options_set_bgerror_resume_retry_interval(options, 2000000);
    rocksdb_t* db = filled(options, directory, "limited");
    char* text = rocksdb_property_value(db, "rocksdb.options");
    CHECK(strstr(text, "rate_limit_bytes_per_second = 10MiB\n") != NULL);
    CHECK(strstr(text, "rate_limit_auto_tune = true\n") != NULL);
    CHECK(strstr(text, "rate_limit_mode = all-io\n") != NULL);
    CHECK(strstr(text, "rate_limit_refill_period = 50ms\n") != NULL);
    CHECK(strstr(text, "rate_limit_fairness = 7\n") != NULL);
    CHECK(strstr(text, "compaction_priority = oldest-largest-seq-first\n") != NULL);
    CHECK(strstr(text, "retry_delay = 2s\n") != NULL);
    rocksdb_free(text);
    rocksdb_options_set_ratelimiter(options, NULL);
    rocksdb_options_destroy(options);
    rocksdb_close(db);
    rocksdb_envoptions_destroy(rocksdb_envoptions_create());
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    shared_cache(arguments[1]);
    caches();
    statistics(arguments[1]);
    environment(arguments[1]);
    puts("all is well");
    return 0;
}
