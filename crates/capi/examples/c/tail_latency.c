/* What keeps the slowest operations fast, and how to see it.
 *
 *   cc tail_latency.c $(pkg-config --cflags --libs sateen_rocksdb) -o tail_latency
 *   ./tail_latency DIRECTORY
 *
 * None of it is needed: the scheduler is on, and learns what the device can do. `sateen.` before
 * a name reaches what RocksDB has no option for; `sateen db options` explains them all.
 */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop_at(char* err) {
    if (err == NULL) return;
    fprintf(stderr, "%s\n", err);
    rocksdb_free(err);
    exit(1);
}

/* The number of DB_WRITE among RocksDB's histograms. */
enum { WRITE_MICROS = 1 };

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    char* err = NULL;
    rocksdb_options_t* plain = rocksdb_options_create();
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_get_options_from_string(
        plain,
        "create_if_missing=true;"
        /* A profile comes first, because it replaces all values. This is the default one. vlsm,
         * silk, adoc and others are published shapes and schedulers. */
        "sateen.profile=sateen;"
        /* One number for all memory. The block cache gets what the other parts do not need. */
        "sateen.memory_budget=256MiB;"
        /* A write is durable after 10 ms at the latest, and no write waits for a sync. */
        "sateen.wal=interval:10ms;"
        /* Background work takes the bandwidth that it needs to finish in this time, and leaves the
         * rest. */
        "sateen.scheduler_drain_time=10s;"
        /* The most bytes of a running compaction that urgent work waits for. */
        "sateen.slice_bytes_max=1MiB",
        options, &err);
    stop_at(err);
    rocksdb_options_enable_statistics(options);
    rocksdb_t* db = rocksdb_open(options, argv[1], &err);
    stop_at(err);

    /* A write that would have to wait fails at once, for callers that can do something else. It
     * changed nothing, so it can be repeated. */
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_no_slowdown(write, 1);
    int made = 0, put_off = 0;
    char value[1000];
    memset(value, 'v', sizeof value);
    for (int i = 0; i < 20000; i++) {
        char key[32];
        int length = snprintf(key, sizeof key, "sensor/%d", i * 7919 % 20000);
        rocksdb_put(db, write, key, (size_t)length, value, sizeof value, &err);
        if (err == NULL) {
            made++;
        } else if (strncmp(err, "Result incomplete", 17) == 0) {
            put_off++;
            rocksdb_free(err);
            err = NULL;
        } else {
            stop_at(err);
        }
    }
    printf("all: %d\n", made + put_off);

    /* Settings can be changed while the database is open. */
    const char* names[] = {"sateen.scheduler_drain_time", "max_background_jobs"};
    const char* values[] = {"5s", "2"};
    rocksdb_set_options(db, 1, names, values, &err);
    stop_at(err);

    /* The rate to which writes are delayed; 0 for no delay. */
    char* rate = rocksdb_property_value(db, "rocksdb.actual-delayed-write-rate");
    printf("slowed down to: %s\n", rate ? rate : "?");
    rocksdb_free(rate);
    rocksdb_statistics_histogram_data_t* writes = rocksdb_statistics_histogram_data_create();
    rocksdb_options_statistics_get_histogram_data(options, WRITE_MICROS, writes);
    fprintf(stderr, "p99 of writes: %.0f us, the slowest %.0f us\n",
            rocksdb_statistics_histogram_data_get_p99(writes),
            rocksdb_statistics_histogram_data_get_max(writes));
    rocksdb_statistics_histogram_data_destroy(writes);

    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_options_destroy(plain);
    return 0;
}
