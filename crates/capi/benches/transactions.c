/* Transactions through the C interface, the same with RocksDB's library and with ours.
 *
 *   cc -O2 -pthread -I crates/capi/include crates/capi/benches/transactions.c -o txn -ldl -lm
 *   ./txn LIBRARY DIRECTORY [NAME=VALUE ...]
 *
 * Loads `keys` keys into DIRECTORY, which must not exist, then runs transactions in `threads`
 * threads for `seconds`: each reads and writes some keys, and is tried again until it commits.
 * Prints commits per second, refused attempts, and latencies from the begin of the first attempt to
 * the commit. With a rate, a latency counts from the moment at which the transaction was due.
 *
 *   kind=optimistic|pessimistic  draw=uniform|zipfian  keys=1000000  threads=8  seconds=20
 *   reads=5  writes=5  value=100  lock=0 (1 reads for update)  snapshot=1  sync=0
 *   rate=0 (transactions a second; 0 is as many as possible)  peak=0  period=10
 *
 * With `peak`, each period of `period` seconds at `rate` is followed by one at `peak`.
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The functions, found by their names in the library. */
#define FUNCTIONS(F)                                                                               \
    F(options_create) F(options_set_create_if_missing) F(options_set_error_if_exists)              \
    F(options_set_write_buffer_size) F(options_set_max_write_buffer_number)                        \
    F(options_set_max_background_jobs) F(options_set_compression)                                  \
    F(options_set_block_based_table_factory) F(block_based_options_create)                         \
    F(block_based_options_set_block_cache) F(block_based_options_set_filter_policy)                \
    F(cache_create_lru) F(filterpolicy_create_bloom_full) F(writeoptions_create)                   \
    F(writeoptions_set_sync) F(readoptions_create) F(readoptions_set_snapshot) F(free)             \
    F(writebatch_create) F(writebatch_put) F(writebatch_clear) F(writebatch_destroy) F(write)      \
    F(transactiondb_options_create) F(transactiondb_open) F(transactiondb_close)                   \
    F(transactiondb_write) F(transaction_options_create)                                           \
    F(transaction_options_set_set_snapshot) F(transaction_options_set_deadlock_detect)             \
    F(transaction_begin) F(optimistictransactiondb_open) F(optimistictransactiondb_close)          \
    F(optimistictransactiondb_get_base_db) F(optimistictransactiondb_close_base_db)                \
    F(optimistictransaction_options_create) F(optimistictransaction_options_set_set_snapshot)      \
    F(optimistictransaction_begin) F(transaction_get_snapshot) F(transaction_get)                  \
    F(transaction_get_for_update) F(transaction_put) F(transaction_commit)                         \
    F(transaction_rollback) F(transaction_destroy)
#define DECLARE(name) static __typeof__(&rocksdb_##name) f_##name;
FUNCTIONS(DECLARE)

static void fail(const char* what, const char* why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fail(path, dlerror());
#define FIND(name)                                                                                 \
    *(void**)&f_##name = dlsym(library, "rocksdb_" #name);                                         \
    if (f_##name == NULL) fail(path, "lacks rocksdb_" #name);
    FUNCTIONS(FIND)
}

static int optimistic, zipfian, lock_reads, snapshot = 1, sync_writes;
static uint64_t keys = 1000000, threads = 8, seconds = 20, reads = 5, writes = 5, value_bytes = 100;
static uint64_t rate, peak, period = 10;

static rocksdb_transactiondb_t* pessimistic_db;
static rocksdb_optimistictransactiondb_t* optimistic_db;
static rocksdb_writeoptions_t* write_options;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t next(uint64_t* state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Zipf's distribution with the exponent 0.99, by the method of Gray et al. (SIGMOD 1994). The ranks
 * are scattered over the keys. */
static double zeta_n, zeta_2, eta;
static const double theta = 0.99;

static void prepare_zipf(void) {
    for (uint64_t rank = 1; rank <= keys; rank++) zeta_n += pow(1.0 / (double)rank, theta);
    zeta_2 = 1 + pow(0.5, theta);
    eta = (1 - pow(2.0 / (double)keys, 1 - theta)) / (1 - zeta_2 / zeta_n);
}

static uint64_t draw(uint64_t* state) {
    if (!zipfian) return next(state) % keys;
    double u = (double)(next(state) >> 11) / 9007199254740992.0, scaled = u * zeta_n;
    uint64_t rank = 0;
    if (scaled >= 1) {
        rank = scaled < zeta_2
                   ? 1
                   : (uint64_t)((double)keys * pow(eta * u - eta + 1, 1 / (1 - theta)));
    }
    return rank * 0x9E3779B97F4A7C15u % keys;
}

static size_t key_of(uint64_t number, char* key) {
    return (size_t)sprintf(key, "key%013llu", (unsigned long long)number);
}

/* Latencies in buckets of 1/32 of a power of two, in nanoseconds. */
enum { BUCKETS = 64 * 32 };
typedef struct {
    uint64_t counts[BUCKETS], count, longest;
} histogram;

static void note(histogram* all, uint64_t ns) {
    int power = ns < 32 ? 5 : 63 - __builtin_clzll(ns);
    uint64_t part = ns < 32 ? ns : (ns >> (power - 5)) & 31;
    all->counts[(power - 5) * 32 + (ns < 32 ? 0 : 32) + (int)part]++;
    all->count++;
    if (ns > all->longest) all->longest = ns;
}

static double micros(const histogram* all, double share) {
    uint64_t wanted = (uint64_t)(share * (double)all->count), seen = 0;
    for (int at = 0; at < BUCKETS; at++) {
        seen += all->counts[at];
        if (seen > wanted) {
            if (at < 32) return at / 1000.0;
            int power = at / 32 - 1 + 5;
            return (double)((32ull + (uint64_t)at % 32 + 1) << (power - 5)) / 1000.0;
        }
    }
    return (double)all->longest / 1000.0;
}

/* One thread. */
typedef struct {
    pthread_t thread;
    uint64_t number, committed, refused;
    histogram latencies, in_peak;
    char why[160];
} client;

static uint64_t begun, end;

/* Returns 1 if the transaction was committed. */
static int attempt(client* self, rocksdb_transaction_t* transaction, rocksdb_readoptions_t* options,
                   const uint64_t* wanted, const char* value) {
    char key[32], *err = NULL;
    const rocksdb_snapshot_t* seen = snapshot ? f_transaction_get_snapshot(transaction) : NULL;
    if (snapshot) f_readoptions_set_snapshot(options, seen);
    for (uint64_t at = 0; at < reads + writes && err == NULL; at++) {
        size_t length = key_of(wanted[at], key), found;
        if (at >= reads) {
            f_transaction_put(transaction, key, length, value, value_bytes, &err);
        } else if (lock_reads) {
            f_free(
                f_transaction_get_for_update(transaction, options, key, length, &found, 1, &err));
        } else {
            f_free(f_transaction_get(transaction, options, key, length, &found, &err));
        }
    }
    if (err == NULL) f_transaction_commit(transaction, &err);
    if (snapshot) f_free((void*)seen);
    if (err == NULL) return 1;
    self->refused++;
    snprintf(self->why, sizeof self->why, "%s", err);
    f_free(err);
    err = NULL;
    f_transaction_rollback(transaction, &err);
    if (err != NULL) fail("rollback", err);
    return 0;
}

static void* run(void* argument) {
    client* self = argument;
    uint64_t state = 0x9E3779B97F4A7C15u * (self->number + 1), wanted[256];
    char* value = malloc(value_bytes + 8);
    rocksdb_readoptions_t* options = f_readoptions_create();
    rocksdb_optimistictransaction_options_t* of_optimistic =
        f_optimistictransaction_options_create();
    f_optimistictransaction_options_set_set_snapshot(of_optimistic, (unsigned char)snapshot);
    rocksdb_transaction_options_t* of_pessimistic = f_transaction_options_create();
    f_transaction_options_set_set_snapshot(of_pessimistic, (unsigned char)snapshot);
    f_transaction_options_set_deadlock_detect(of_pessimistic, 1);
    rocksdb_transaction_t* transaction = NULL;
    double due = (double)begun;
    for (;;) {
        uint64_t start = now();
        int at_peak = 0;
        if (rate > 0) {
            at_peak = peak > 0 && (uint64_t)(due - (double)begun) / 1000000000 / period % 2 == 1;
            due += 1e9 * (double)threads / (double)(at_peak ? peak : rate);
            if ((uint64_t)due > start) {
                uint64_t wait = (uint64_t)due - start;
                struct timespec time = {(time_t)(wait / 1000000000), (long)(wait % 1000000000)};
                nanosleep(&time, NULL);
            }
            start = (uint64_t)due;
        }
        if (start >= end || now() >= end) break;
        for (uint64_t at = 0; at < reads + writes; at++) wanted[at] = draw(&state);
        for (uint64_t at = 0; at < value_bytes; at += 8) {
            uint64_t word = next(&state);
            memcpy(value + at, &word, 8);
        }
        do {
            transaction = optimistic ? f_optimistictransaction_begin(optimistic_db, write_options,
                                                                     of_optimistic, transaction)
                                     : f_transaction_begin(pessimistic_db, write_options,
                                                           of_pessimistic, transaction);
        } while (!attempt(self, transaction, options, wanted, value) && now() < end + 1000000000);
        self->committed++;
        note(at_peak ? &self->in_peak : &self->latencies, now() - start);
    }
    if (transaction != NULL) f_transaction_destroy(transaction);
    return NULL;
}

static void fill(void) {
    rocksdb_t* base = optimistic ? f_optimistictransactiondb_get_base_db(optimistic_db) : NULL;
    rocksdb_writebatch_t* batch = f_writebatch_create();
    char key[32], *err = NULL, *value = malloc(value_bytes + 8);
    uint64_t state = 7;
    for (uint64_t number = 0; number < keys; number++) {
        for (uint64_t at = 0; at < value_bytes; at += 8) {
            uint64_t word = next(&state);
            memcpy(value + at, &word, 8);
        }
        f_writebatch_put(batch, key, key_of(number, key), value, value_bytes);
        if (number % 1000 == 999 || number + 1 == keys) {
            if (optimistic) {
                f_write(base, write_options, batch, &err);
            } else {
                f_transactiondb_write(pessimistic_db, write_options, batch, &err);
            }
            if (err != NULL) fail("loading", err);
            f_writebatch_clear(batch);
        }
    }
    f_writebatch_destroy(batch);
    if (base != NULL) f_optimistictransactiondb_close_base_db(base);
    free(value);
}

static void open_database(const char* directory) {
    char* err = NULL;
    rocksdb_options_t* options = f_options_create();
    f_options_set_create_if_missing(options, 1);
    f_options_set_error_if_exists(options, 1);
    f_options_set_write_buffer_size(options, 64 << 20);
    f_options_set_max_write_buffer_number(options, 2);
    f_options_set_max_background_jobs(options, 2);
    f_options_set_compression(options, rocksdb_no_compression);
    rocksdb_block_based_table_options_t* tables = f_block_based_options_create();
    f_block_based_options_set_block_cache(tables, f_cache_create_lru(256 << 20));
    f_block_based_options_set_filter_policy(tables, f_filterpolicy_create_bloom_full(10));
    f_options_set_block_based_table_factory(options, tables);
    if (optimistic) {
        optimistic_db = f_optimistictransactiondb_open(options, directory, &err);
    } else {
        rocksdb_transactiondb_options_t* more = f_transactiondb_options_create();
        pessimistic_db = f_transactiondb_open(options, more, directory, &err);
    }
    if (err != NULL) fail(directory, err);
}

static void set(const char* text) {
    const char* value = strchr(text, '=');
    if (value == NULL) fail(text, "NAME=VALUE is wanted");
    size_t length = (size_t)(value++ - text);
    struct {
        const char* name;
        uint64_t* number;
        int* flag;
    } all[] = {{"keys", &keys, 0},         {"threads", &threads, 0}, {"seconds", &seconds, 0},
               {"reads", &reads, 0},       {"writes", &writes, 0},   {"value", &value_bytes, 0},
               {"rate", &rate, 0},         {"peak", &peak, 0},       {"period", &period, 0},
               {"lock", 0, &lock_reads},   {"sync", 0, &sync_writes}, {"snapshot", 0, &snapshot}};
    for (size_t at = 0; at < sizeof all / sizeof *all; at++) {
        if (strlen(all[at].name) != length || strncmp(all[at].name, text, length) != 0) continue;
        uint64_t number = strtoull(value, NULL, 10);
        if (all[at].number != NULL) *all[at].number = number;
        if (all[at].flag != NULL) *all[at].flag = number != 0;
        return;
    }
    if (strcmp(text, "kind=optimistic") == 0) optimistic = 1;
    else if (strcmp(text, "draw=zipfian") == 0) zipfian = 1;
    else if (strcmp(text, "kind=pessimistic") != 0 && strcmp(text, "draw=uniform") != 0)
        fail(text, "no such setting");
}

static void show(const char* when, const histogram* all) {
    printf("%s: p50 %.1f us, p99 %.1f us, p99.9 %.1f us, longest %.1f us\n", when, micros(all, 0.5),
           micros(all, 0.99), micros(all, 0.999), (double)all->longest / 1000);
}

int main(int argc, char** argv) {
    if (argc < 3) fail(argv[0], "LIBRARY DIRECTORY [NAME=VALUE ...]");
    for (int at = 3; at < argc; at++) set(argv[at]);
    if (keys == 0 || threads == 0 || period == 0 || reads + writes > 256)
        fail("arguments", "out of range");
    load(argv[1]);
    if (zipfian) prepare_zipf();
    write_options = f_writeoptions_create();
    open_database(argv[2]);
    fill();
    f_writeoptions_set_sync(write_options, (unsigned char)sync_writes);
    client* clients = calloc(threads, sizeof *clients);
    begun = now();
    end = begun + seconds * 1000000000;
    for (uint64_t at = 0; at < threads; at++) {
        clients[at].number = at;
        if (pthread_create(&clients[at].thread, NULL, run, &clients[at]) != 0)
            fail("pthread_create", "no thread");
    }
    static histogram all, in_peak;
    uint64_t committed = 0, refused = 0;
    const char* why = "";
    for (uint64_t at = 0; at < threads; at++) {
        pthread_join(clients[at].thread, NULL);
        committed += clients[at].committed;
        refused += clients[at].refused;
        if (clients[at].refused > 0) why = clients[at].why;
        histogram* sums[] = {&all, &in_peak};
        histogram* parts[] = {&clients[at].latencies, &clients[at].in_peak};
        for (int which = 0; which < 2; which++) {
            for (int bucket = 0; bucket < BUCKETS; bucket++)
                sums[which]->counts[bucket] += parts[which]->counts[bucket];
            sums[which]->count += parts[which]->count;
            if (parts[which]->longest > sums[which]->longest)
                sums[which]->longest = parts[which]->longest;
        }
    }
    double took = (double)(now() - begun) / 1e9;
    printf("%s, %s: %.0f commits a second, %llu refused attempts%s%s\n",
           optimistic ? "optimistic" : "pessimistic", zipfian ? "zipfian" : "uniform",
           (double)committed / took, (unsigned long long)refused, refused > 0 ? ", the last: " : "",
           why);
    show(peak > 0 ? "at the rate" : "all", &all);
    if (peak > 0) show("at the peak", &in_peak);
    if (optimistic) {
        f_optimistictransactiondb_close(optimistic_db);
    } else {
        f_transactiondb_close(pessimistic_db);
    }
    return 0;
}
