/* Traces of calls are recorded, read and replayed; those of blocks and I/O are recorded. */
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

/* There is an error with this text. */
#define REFUSED(part)                            \
    do {                                         \
        CHECK(err && strstr(err, part));         \
        rocksdb_free(err);                       \
        err = NULL;                              \
    } while (0)

static char* err = NULL;

static rocksdb_t* open_at(rocksdb_options_t* options, const char* directory, const char* name) {
    char path[1000];
    snprintf(path, sizeof path, "%s/traces-%s", directory, name);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    return db;
}

static void put(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_put(db, write, key, strlen(key), value, strlen(value), &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_destroy(write);
}

static int has(rocksdb_t* db, const char* key, const char* expected) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    size_t length;
    char* value = rocksdb_get(db, read, key, strlen(key), &length, &err);
    CHECK(err == NULL);
    int same = value && length == strlen(expected) && !memcmp(value, expected, length);
    rocksdb_free(value);
    rocksdb_readoptions_destroy(read);
    return same;
}

/* The number of records of a trace, and the kind of the second. */
static int records(rocksdb_env_t* env, const char* trace, char* kind) {
    rocksdb_trace_reader_t* reader = rocksdb_trace_reader_create(env, NULL, trace, &err);
    CHECK(err == NULL && reader);
    int count = 0;
    size_t length;
    char* record;
    while ((record = rocksdb_trace_reader_read(reader, &length, &err))) {
        CHECK(err == NULL && length >= 13);
        if (count == 0) CHECK(!memcmp(record + 13, "feedcafedeadbeef\tTrace Version: 0.2\t", 35));
        if (count == 1) *kind = record[8];
        count++;
        rocksdb_free(record);
    }
    CHECK(err == NULL && length == 0);
    rocksdb_trace_reader_reset(reader, &err);
    record = rocksdb_trace_reader_read(reader, &length, &err);
    CHECK(err == NULL && record && record[8] == 1);
    rocksdb_free(record);
    rocksdb_trace_reader_close(reader, &err);
    CHECK(err == NULL);
    CHECK(!rocksdb_trace_reader_read(reader, &length, &err));
    REFUSED("");
    rocksdb_trace_reader_destroy(reader);
    return count;
}

static void replay(rocksdb_t* db, rocksdb_env_t* env, const char* trace, unsigned threads) {
    rocksdb_replayer_t* replayer =
        rocksdb_new_default_replayer(db, NULL, 0, env, NULL, trace, &err);
    CHECK(err == NULL && replayer);
    rocksdb_replay_options_t* options = rocksdb_replay_options_create();
    rocksdb_replay_options_set_num_threads(options, threads);
    rocksdb_replay_options_set_fast_forward(options, 1e6);
    CHECK(rocksdb_replayer_get_header_timestamp(replayer) == 0);
    rocksdb_replayer_replay(replayer, options, &err);
    REFUSED("not prepared");
    for (int round = 0; round < 2; round++) {
        rocksdb_replayer_prepare(replayer, &err);
        CHECK(err == NULL && rocksdb_replayer_get_header_timestamp(replayer) > 0);
        rocksdb_replayer_replay(replayer, options, &err);
        CHECK(err == NULL);
    }
    rocksdb_replayer_replay(replayer, options, &err);
    REFUSED("not prepared");
    rocksdb_replay_options_set_num_threads(options, 5000);
    rocksdb_replayer_prepare(replayer, &err);
    CHECK(err == NULL);
    rocksdb_replayer_replay(replayer, options, &err);
    REFUSED("threads");
    rocksdb_replay_options_set_num_threads(options, threads);
    rocksdb_replay_options_set_fast_forward(options, 0);
    rocksdb_replayer_prepare(replayer, &err);
    rocksdb_replayer_replay(replayer, options, &err);
    REFUSED("speed");
    rocksdb_replay_options_destroy(options);
    rocksdb_replayer_destroy(replayer);
}

/* The number of records of a kind in a trace of blocks or I/O, of a file on the disk. */
static int records_of(const char* trace, char kind) {
    FILE* file = fopen(trace, "rb");
    CHECK(file);
    int count = 0;
    unsigned char head[13];
    for (int nth = 0; fread(head, 1, sizeof head, file) == sizeof head; nth++) {
        uint32_t length = head[9] | head[10] << 8 | head[11] << 16 | (uint32_t)head[12] << 24;
        char magic[17] = "";
        if (nth == 0) {
            CHECK(head[8] == 1 && length == 25 && fread(magic, 1, 17, file) == 17);
            CHECK(!memcmp(magic, "\x10" "feedcafedeadbeef", 17));
            length -= 17;
        }
        count += head[8] == kind;
        CHECK(fseek(file, length, SEEK_CUR) == 0);
    }
    fclose(file);
    return count;
}

/* Traces of blocks and of I/O. */
static void of_blocks_and_io(const char* directory) {
    char trace[1000];
    snprintf(trace, sizeof trace, "%s/traces-of-blocks", directory);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = open_at(options, directory, "blocks");
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    put(db, "key", "value");
    rocksdb_flush(db, flush, &err);
    CHECK(err == NULL);

    rocksdb_end_block_cache_trace(db, &err);
    REFUSED("no trace of blocks");
    rocksdb_start_block_cache_trace(db, NULL, NULL, NULL, trace, &err);
    CHECK(err == NULL);
    rocksdb_start_block_cache_trace(db, NULL, NULL, NULL, trace, &err);
    REFUSED("already");
    for (int i = 0; i < 5; i++) CHECK(has(db, "key", "value"));
    rocksdb_end_block_cache_trace(db, &err);
    CHECK(err == NULL && records_of(trace, 9) == 5 && records_of(trace, 2) == 1);

    rocksdb_block_cache_trace_options_t* sampled = rocksdb_block_cache_trace_options_create();
    rocksdb_block_cache_trace_writer_options_t* small =
        rocksdb_block_cache_trace_writer_options_create();
    CHECK(rocksdb_block_cache_trace_options_get_sampling_frequency(sampled) == 1);
    rocksdb_block_cache_trace_writer_options_set_max_trace_file_size(small, 400);
    CHECK(rocksdb_block_cache_trace_writer_options_get_max_trace_file_size(small) == 400);
    rocksdb_start_block_cache_trace_with_options(db, NULL, NULL, sampled, small, trace, &err);
    CHECK(err == NULL);
    for (int i = 0; i < 100; i++) CHECK(has(db, "key", "value"));
    rocksdb_end_block_cache_trace(db, &err);
    CHECK(err == NULL && records_of(trace, 9) >= 1 && records_of(trace, 9) < 4);
    rocksdb_start_block_cache_trace_with_options(db, NULL, NULL, NULL, NULL, trace, &err);
    CHECK(err == NULL);
    rocksdb_end_block_cache_trace(db, &err);
    CHECK(err == NULL && records_of(trace, 9) == 0);
    rocksdb_block_cache_trace_writer_options_destroy(small);
    rocksdb_block_cache_trace_options_destroy(sampled);

    rocksdb_end_io_trace(db, &err);
    REFUSED("no trace of I/O");
    rocksdb_start_io_trace(db, NULL, NULL, NULL, trace, &err);
    CHECK(err == NULL);
    put(db, "other", "value");
    rocksdb_flush(db, flush, &err);
    CHECK(err == NULL);
    rocksdb_end_io_trace(db, &err);
    CHECK(err == NULL && records_of(trace, 12) > 3 && records_of(trace, 2) == 1);
    CHECK(!rocksdb_trace_reader_create(NULL, NULL, trace, &err));
    REFUSED("not calls");
    rocksdb_start_io_trace(db, NULL, NULL, NULL, "/no/such/directory/trace", &err);
    REFUSED("IO error");
    rocksdb_start_block_cache_trace(db, NULL, NULL, NULL, NULL, &err);
    REFUSED("is null");
    rocksdb_flushoptions_destroy(flush);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static void in(rocksdb_env_t* env, const char* directory, const char* name) {
    char trace[1000], second[20], blocks[1000];
    snprintf(trace, sizeof trace, "%s/traces-%s.trace", directory, name);
    snprintf(second, sizeof second, "%s2", name);
    snprintf(blocks, sizeof blocks, "%s/traces-%s.blocks", directory, name);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    if (env) rocksdb_options_set_env(options, env);
    rocksdb_t* db = open_at(options, directory, name);

    rocksdb_end_trace(db, &err);
    REFUSED("no trace");
    rocksdb_start_trace(db, env, NULL, NULL, trace, &err);
    CHECK(err == NULL);
    put(db, "key", "value");
    CHECK(has(db, "key", "value"));
    rocksdb_start_trace(db, env, NULL, NULL, trace, &err);
    REFUSED("already");
    rocksdb_end_trace(db, &err);
    CHECK(err == NULL);
    put(db, "other", "value");
    char kind = 0;
    CHECK(records(env, trace, &kind) == 4 && kind == 3);

    rocksdb_t* other = open_at(options, directory, second);
    replay(other, env, trace, 1);
    replay(other, NULL, trace, 3);
    CHECK(has(other, "key", "value") && !has(other, "other", "value"));
    CHECK(!rocksdb_new_default_replayer(other, NULL, 1, env, NULL, trace, &err));
    REFUSED("is null");

    /* A file that is there is replaced, and the filter names what is left out. */
    rocksdb_trace_options_t* chosen = rocksdb_trace_options_create();
    rocksdb_trace_options_set_filter(chosen, rocksdb_trace_filter_write);
    rocksdb_trace_options_set_sampling_frequency(chosen, 2);
    rocksdb_trace_options_set_preserve_write_order(chosen, 1);
    rocksdb_start_trace(db, NULL, NULL, chosen, trace, &err);
    CHECK(err == NULL);
    for (int i = 0; i < 7; i++) {
        put(db, "key", "again");
        CHECK(has(db, "key", "again"));
    }
    rocksdb_end_trace(db, &err);
    CHECK(err == NULL && records(env, trace, &kind) == 2 + 3 && kind == 4);
    rocksdb_trace_options_destroy(chosen);

    rocksdb_start_io_trace(db, env, NULL, NULL, trace, &err);
    CHECK(err == NULL);
    rocksdb_start_block_cache_trace(db, env, NULL, NULL, blocks, &err);
    CHECK(err == NULL);
    rocksdb_end_block_cache_trace(db, &err);
    CHECK(err == NULL);
    rocksdb_end_io_trace(db, &err);
    CHECK(err == NULL);
    CHECK(!rocksdb_trace_reader_create(env, NULL, "/no/such/trace", &err));
    REFUSED("IO error");
    rocksdb_close(other);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    in(NULL, argv[1], "disk");
    rocksdb_env_t* env = rocksdb_create_mem_env();
    in(env, argv[1], "memory");
    rocksdb_env_destroy(env);
    of_blocks_and_io(argv[1]);
    printf("all is well\n");
    return 0;
}
