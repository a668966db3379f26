/* Listeners, pausing background work, and compacting files by name. */
#include "rocksdb/c.h"

#include <pthread.h>
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
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* The events, under the mutex. */
static struct {
    int flush_begins, flushes, flush_entries, compaction_begins, compactions, parts_begin, parts;
    int inputs, outputs, ingested, sealed, sealed_entries, held_back, normal, freed, value_read;
    int holds, is_held;
} told;

static int now(const int* count) {
    pthread_mutex_lock(&mutex);
    int value = *count;
    pthread_mutex_unlock(&mutex);
    return value;
}

/* Waits for events of another thread, which may arrive late. */
static int becomes(const int* count, int least) {
    struct timespec pause = {0, 5 * 1000 * 1000};
    for (int i = 0; i < 12000 && now(count) < least; i++) {
        nanosleep(&pause, NULL);
    }
    return now(count) >= least;
}

static void gone(void* state) {
    CHECK(state == &told);
    told.freed++;
}

static int is_default(const char* name, size_t length) {
    return length == 7 && memcmp(name, "default", 7) == 0;
}

static void flush_begins(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
    size_t length = 0;
    CHECK(state == &told && db != NULL && rocksdb_flushjobinfo_job_id(info) > 0);
    const char* name = rocksdb_flushjobinfo_cf_name(info, &length);
    CHECK(is_default(name, length));
    pthread_mutex_lock(&mutex);
    told.flush_begins++;
    pthread_mutex_unlock(&mutex);
}

static void flush_ended(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
    CHECK(state == &told);
    const rocksdb_table_properties_t* properties = rocksdb_flushjobinfo_table_properties(info);
    size_t length = 0;
    const char* path = rocksdb_flushjobinfo_file_path(info, &length);
    CHECK(length > 4 && memcmp(path + length - 4, ".sat", 4) == 0);
    CHECK(rocksdb_flushjobinfo_largest_seqno(info) >= rocksdb_flushjobinfo_smallest_seqno(info));
    /* No lock is held during a callback: it can read and write the database. */
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    char* failed = NULL;
    char* value = rocksdb_get(db, ro, "a", 1, &length, &failed);
    rocksdb_put(db, wo, "told", 4, "yes", 3, &failed);
    CHECK(failed == NULL);
    /* The callback cannot close the handle. */
    rocksdb_close(db);
    pthread_mutex_lock(&mutex);
    told.flushes++;
    told.flush_entries += (int)rocksdb_table_properties_num_entries(properties);
    told.value_read += value != NULL;
    told.is_held = told.holds;
    pthread_cond_broadcast(&changed);
    while (told.holds) {
        pthread_cond_wait(&changed, &mutex);
    }
    told.is_held = 0;
    pthread_mutex_unlock(&mutex);
    rocksdb_free(value);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_readoptions_destroy(ro);
}

static void compaction_begins(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
    CHECK(state == &told && db != NULL);
    CHECK(rocksdb_compactionjobinfo_input_files_count(info) > 0);
    CHECK(rocksdb_compactionjobinfo_output_files_count(info) == 0);
    pthread_mutex_lock(&mutex);
    told.compaction_begins++;
    pthread_mutex_unlock(&mutex);
}

static void compaction_ended(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
    CHECK(state == &told && db != NULL);
    size_t inputs = rocksdb_compactionjobinfo_input_files_count(info), length = 0;
    const char* name = rocksdb_compactionjobinfo_input_file_at(info, 0, &length);
    CHECK(inputs > 0 && name != NULL && length > 0);
    CHECK(rocksdb_compactionjobinfo_table_properties_for_file(info, name, length) != NULL);
    CHECK(rocksdb_compactionjobinfo_table_properties_for_file(info, name, 1) == NULL);
    CHECK(rocksdb_compactionjobinfo_input_file_at(info, inputs, &length) == NULL && length == 0);
    const rocksdb_compaction_job_stats_t* stats = rocksdb_compactionjobinfo_stats(info);
    CHECK(rocksdb_compaction_job_stats_num_input_files(stats) == inputs);
    char* failed = NULL;
    rocksdb_compactionjobinfo_status(info, &failed);
    CHECK(failed == NULL && !rocksdb_compactionjobinfo_aborted(info));
    pthread_mutex_lock(&mutex);
    told.compactions++;
    told.inputs += (int)inputs;
    told.outputs += (int)rocksdb_compactionjobinfo_output_files_count(info);
    pthread_mutex_unlock(&mutex);
}

static void part_begins(void* state, const rocksdb_subcompactionjobinfo_t* info) {
    CHECK(state == &told && rocksdb_subcompactionjobinfo_job_id(info) > 0);
    pthread_mutex_lock(&mutex);
    told.parts_begin++;
    pthread_mutex_unlock(&mutex);
}

static void part_ended(void* state, const rocksdb_subcompactionjobinfo_t* info) {
    CHECK(state == &told && rocksdb_subcompactionjobinfo_stats(info) != NULL);
    pthread_mutex_lock(&mutex);
    told.parts++;
    pthread_mutex_unlock(&mutex);
}

static void ingested(void* state, rocksdb_t* db, const rocksdb_externalfileingestioninfo_t* info) {
    CHECK(state == &told && db != NULL);
    const rocksdb_table_properties_t* properties =
        rocksdb_externalfileingestioninfo_table_properties(info);
    CHECK(rocksdb_table_properties_num_entries(properties) == 1);
    pthread_mutex_lock(&mutex);
    told.ingested++;
    pthread_mutex_unlock(&mutex);
}

static void stalled(void* state, const rocksdb_writestallinfo_t* info) {
    CHECK(state == &told);
    int to = *(const int*)rocksdb_writestallinfo_cur(info);
    CHECK(to != *(const int*)rocksdb_writestallinfo_prev(info));
    pthread_mutex_lock(&mutex);
    told.held_back += to == 0 || to == 1;
    told.normal += to == 2;
    pthread_mutex_unlock(&mutex);
}

static void sealed(void* state, const rocksdb_memtableinfo_t* info) {
    size_t length = 0;
    const char* name = rocksdb_memtableinfo_cf_name(info, &length);
    CHECK(state == &told && is_default(name, length));
    pthread_mutex_lock(&mutex);
    told.sealed++;
    told.sealed_entries += (int)rocksdb_memtableinfo_num_entries(info);
    pthread_mutex_unlock(&mutex);
}

static rocksdb_t* db;
static rocksdb_writeoptions_t* wo;
static rocksdb_flushoptions_t* and_listeners;

static void put(const char* key) {
    rocksdb_put(db, wo, key, strlen(key), "some value", 10, &err);
    CHECK(err == NULL);
}

static void flush(void) {
    rocksdb_flush(db, and_listeners, &err);
    CHECK(err == NULL);
}

static void fails_with(const char* beginning) {
    CHECK(err != NULL && strncmp(err, beginning, strlen(beginning)) == 0);
    rocksdb_free(err);
    err = NULL;
}

static void listeners(void) {
    put("a");
    put("b");
    flush();
    CHECK(now(&told.flush_begins) == 1 && now(&told.flushes) == 1);
    CHECK(now(&told.flush_entries) == 2 && now(&told.value_read) == 1);
    CHECK(now(&told.sealed) == 1 && now(&told.sealed_entries) == 2);
    put("a");
    flush();
    /* The second flush includes what the first callback wrote. */
    CHECK(now(&told.flushes) == 2 && now(&told.flush_entries) == 4);
    CHECK(now(&told.compactions) == 0);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    CHECK(now(&told.compactions) >= 1 && now(&told.inputs) >= 2 && now(&told.outputs) >= 1);
    CHECK(now(&told.compaction_begins) == now(&told.compactions));
    CHECK(now(&told.parts_begin) == now(&told.compactions));
    CHECK(now(&told.parts) == now(&told.compactions));
}

/* A slow listener delays only callers that wait for it. */
static void a_slow_listener(void) {
    pthread_mutex_lock(&mutex);
    told.holds = 1;
    pthread_mutex_unlock(&mutex);
    put("slow");
    rocksdb_flushoptions_t* alone = rocksdb_flushoptions_create();
    CHECK(rocksdb_flushoptions_get_listener_wait(alone) == 0);
    rocksdb_flush(db, alone, &err);
    CHECK(err == NULL);
    CHECK(becomes(&told.is_held, 1));
    for (int i = 0; i < 500; i++) {
        put("meanwhile");
    }
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
    rocksdb_iter_seek_to_first(iter);
    CHECK(rocksdb_iter_valid(iter));
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(read);
    pthread_mutex_lock(&mutex);
    CHECK(told.is_held);
    told.holds = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    flush();
    CHECK(!now(&told.is_held));
    rocksdb_flushoptions_destroy(alone);
}

static void wait_for(int abort_on_pause, uint64_t micros) {
    rocksdb_wait_for_compact_options_t* options = rocksdb_wait_for_compact_options_create();
    rocksdb_wait_for_compact_options_set_abort_on_pause(options, abort_on_pause);
    rocksdb_wait_for_compact_options_set_timeout(options, micros);
    rocksdb_wait_for_compact(db, options, &err);
    rocksdb_wait_for_compact_options_destroy(options);
}

static void pausing(void) {
    flush();
    wait_for(0, 0);
    CHECK(err == NULL);
    rocksdb_continue_background_work(db, &err);
    fails_with("Invalid argument: background work is not paused");
    rocksdb_pause_background_work(db, &err);
    rocksdb_pause_background_work(db, &err);
    CHECK(err == NULL);
    int flushes = now(&told.flush_begins), compactions = now(&told.compaction_begins);
    rocksdb_flushoptions_t* no_wait = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(no_wait, 0);
    put("paused");
    rocksdb_flush(db, no_wait, &err);
    CHECK(err == NULL);
    rocksdb_suggest_compact_range(db, NULL, 0, NULL, 0, &err);
    rocksdb_free(err);
    err = NULL;
    wait_for(1, 0);
    fails_with("Operation aborted: background work is paused");
    wait_for(0, 300 * 1000);
    fails_with("Operation timed out");
    CHECK(now(&told.flush_begins) == flushes && now(&told.compaction_begins) == compactions);

    /* Writers continue until memory is full. Then they and the listeners are told. */
    rocksdb_writeoptions_t* no_stall = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_no_slowdown(no_stall, 1);
    char value[8192];
    memset(value, 'v', sizeof value);
    for (int i = 0; i < 10000 && err == NULL; i++) {
        char key[16];
        snprintf(key, sizeof key, "fill%06d", i);
        rocksdb_put(db, no_stall, key, strlen(key), value, sizeof value, &err);
    }
    fails_with("Result incomplete");
    rocksdb_writeoptions_destroy(no_stall);
    CHECK(becomes(&told.held_back, 1));
    CHECK(now(&told.flush_begins) == flushes);

    rocksdb_continue_background_work(db, &err);
    CHECK(err == NULL);
    wait_for(1, 0);
    fails_with("Operation aborted");
    rocksdb_continue_background_work(db, &err);
    CHECK(err == NULL);
    flush();
    wait_for(1, 60 * 1000 * 1000);
    CHECK(err == NULL && now(&told.flush_begins) > flushes);
    CHECK(becomes(&told.normal, 1));
    rocksdb_flushoptions_destroy(no_wait);
}

static char* a_file(int level) {
    rocksdb_column_family_metadata_t* family = rocksdb_get_column_family_metadata(db);
    rocksdb_level_metadata_t* of_level =
        rocksdb_column_family_metadata_get_level_metadata(family, (size_t)level);
    rocksdb_sst_file_metadata_t* file = rocksdb_level_metadata_get_sst_file_metadata(of_level, 0);
    char* name = file ? rocksdb_sst_file_metadata_get_relative_filename(file) : NULL;
    rocksdb_sst_file_metadata_destroy(file);
    rocksdb_level_metadata_destroy(of_level);
    rocksdb_column_family_metadata_destroy(family);
    return name;
}

static void files_by_name(void) {
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    put("x");
    put("y");
    flush();
    char* newest = a_file(0);
    CHECK(newest != NULL);
    rocksdb_compaction_options_t* options = rocksdb_compaction_options_create();
    unsigned char* flag = rocksdb_compaction_options_canceled_create();
    rocksdb_compaction_options_set_canceled(options, flag);
    const char* names[] = {newest};
    char** made = NULL;
    size_t count = 0;

    const char* wrong[] = {"nothing.sat"};
    rocksdb_compact_files(db, options, wrong, 1, 6, 0, &made, &count, NULL, &err);
    fails_with("Invalid argument: nothing.sat is not the name of a table file");
    wrong[0] = "999999.sat";
    rocksdb_compact_files(db, options, wrong, 1, 6, 0, &made, &count, NULL, &err);
    fails_with("Invalid argument: 999999.sat is not a file of the column family default");
    rocksdb_compact_files(db, options, names, 1, 99, 0, &made, &count, NULL, &err);
    fails_with("Invalid argument: the output level 99");
    rocksdb_compact_files(db, options, names, 1, 0, 0, &made, &count, NULL, &err);
    fails_with("Invalid argument: the output level 0");
    rocksdb_compact_files(db, options, names, 1, 6, 1, &made, &count, NULL, &err);
    fails_with("Invalid argument: there is no path 1");
    rocksdb_compaction_options_canceled_set(flag, 1);
    rocksdb_compact_files(db, options, names, 1, 6, 0, &made, &count, NULL, &err);
    fails_with("Result incomplete");
    rocksdb_compaction_options_canceled_set(flag, 0);
    CHECK(made == NULL && count == 0);
    char* still = a_file(0);
    CHECK(still != NULL && strcmp(still, newest) == 0);
    rocksdb_free(still);

    rocksdb_compactionjobinfo_t* info = rocksdb_compactionjobinfo_create();
    CHECK(rocksdb_compactionjobinfo_job_id(info) == 0);
    int compactions = now(&told.compactions);
    rocksdb_compact_files(db, options, names, 1, 6, -1, &made, &count, info, &err);
    CHECK(err == NULL && count > 0 && made != NULL && strstr(made[0], ".sat") != NULL);
    CHECK(now(&told.compactions) == compactions + 1);
    CHECK(rocksdb_compactionjobinfo_output_level(info) == 6);
    CHECK(rocksdb_compactionjobinfo_base_input_level(info) == 0);
    CHECK(rocksdb_compactionjobinfo_output_files_count(info) >= count);
    CHECK(rocksdb_compactionjobinfo_compaction_reason(info) == 9);
    rocksdb_compact_files_output_file_names_destroy(made, count);
    CHECK(a_file(0) == NULL);
    char* deep = a_file(6);
    CHECK(deep != NULL);
    names[0] = deep;
    rocksdb_compact_files(db, NULL, names, 1, 1, 0, NULL, NULL, NULL, &err);
    CHECK(err != NULL && strstr(err, "below the output level 1") != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_free(deep);
    rocksdb_free(newest);
    rocksdb_compactionjobinfo_destroy(info);
    rocksdb_compaction_options_canceled_destroy(flag);
    rocksdb_compaction_options_destroy(options);
    rocksdb_verify_checksum(db, &err);
    CHECK(err == NULL);
}

static unsigned char of_more_than_two_entries(void* state, const rocksdb_table_properties_t* properties) {
    (*(int*)state)++;
    return rocksdb_table_properties_num_entries(properties) > 2;
}

static int destroyed = 0;
static void filter_gone(void* state) {
    (void)state;
    destroyed++;
}

/* Iterators skip tables that a filter rejects. */
static void filters_of_tables(void) {
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    /* With the last callback's write these are two entries. */
    put("z1");
    flush();
    int asked = 0;
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    rocksdb_readoptions_set_table_filter(ro, &asked, filter_gone, of_more_than_two_entries);
    CHECK(rocksdb_readoptions_has_table_filter(ro) == 1);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
    CHECK(asked >= 2);
    rocksdb_iter_seek(iter, "z1", 2);
    CHECK(!rocksdb_iter_valid(iter));
    rocksdb_iter_seek_to_last(iter);
    CHECK(rocksdb_iter_valid(iter));
    rocksdb_iter_destroy(iter);
    size_t length = 0;
    char* value = rocksdb_get(db, ro, "z1", 2, &length, &err);
    CHECK(err == NULL && value != NULL);
    rocksdb_free(value);
    rocksdb_readoptions_clear_table_filter(ro);
    CHECK(rocksdb_readoptions_has_table_filter(ro) == 0 && destroyed == 1);
    rocksdb_readoptions_destroy(ro);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 1 << 20);
    rocksdb_options_set_disable_auto_compactions(options, 1);
    rocksdb_options_add_eventlistener(
        options, rocksdb_eventlistener_create(&told, gone, flush_begins, flush_ended,
                                              compaction_begins, compaction_ended, part_begins,
                                              part_ended, ingested, NULL, stalled, sealed));
    rocksdb_eventlistener_t* unused = rocksdb_eventlistener_create(
        &told, gone, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    rocksdb_eventlistener_destroy(unused);
    CHECK(told.freed == 1);
    char path[4096];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    wo = rocksdb_writeoptions_create();
    and_listeners = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_listener_wait(and_listeners, 1);

    listeners();
    a_slow_listener();
    pausing();
    files_by_name();
    filters_of_tables();

    rocksdb_envoptions_t* env = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
    snprintf(path, sizeof path, "%s/one.sst", arguments[1]);
    rocksdb_sstfilewriter_open(writer, path, &err);
    rocksdb_sstfilewriter_put(writer, "z", 1, "1", 1, &err);
    rocksdb_sstfilewriter_finish(writer, &err);
    CHECK(err == NULL);
    const char* files[] = {path};
    rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingest_external_file(db, files, 1, ingest, &err);
    CHECK(err == NULL && now(&told.ingested) == 1);
    rocksdb_ingestexternalfileoptions_destroy(ingest);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env);

    /* A paused database can be closed. */
    rocksdb_pause_background_work(db, &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_destroy(and_listeners);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    puts("all is well");
    return 0;
}
