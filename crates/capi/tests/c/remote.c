/* Compactions in other processes: here the threads of the service do their work. */
#include <rocksdb/c.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, err ? err : "no error"); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

static char* err = NULL;

/* How the service works, and what it was told. */
typedef struct {
    const char *path, *output;
    int mode; /* 0: works, 1: garbage, 2: fails, 3: never answers until it is cancelled */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int scheduled, waited, cancelled, installed, local, gone;
    char* input;
    size_t length;
} service;

static rocksdb_compactionservice_scheduleresponse_t* schedule(
    void* state, const rocksdb_compactionservice_jobinfo_t* info, const char* input,
    size_t length) {
    service* self = state;
    size_t name_length = 0;
    const char* name = rocksdb_compactionservice_jobinfo_t_get_db_name(info, &name_length);
    CHECK(name_length == strlen(self->path) && memcmp(name, self->path, name_length) == 0);
    name = rocksdb_compactionservice_jobinfo_t_get_cf_name(info, &name_length);
    CHECK(name_length == 7 && memcmp(name, "default", 7) == 0);
    rocksdb_compactionservice_jobinfo_t_get_db_id(info, &name_length);
    CHECK(name_length == 36);
    rocksdb_compactionservice_jobinfo_t_get_db_session_id(info, &name_length);
    CHECK(name_length > 0);
    CHECK(rocksdb_compactionservice_jobinfo_t_get_cf_id(info) == 0);
    CHECK(rocksdb_compactionservice_jobinfo_t_get_job_id(info) != 0);
    CHECK(rocksdb_compactionservice_jobinfo_t_get_priority(info) == 1);
    CHECK(rocksdb_compactionservice_jobinfo_t_get_base_input_level(info) >= 0);
    CHECK(rocksdb_compactionservice_jobinfo_t_get_output_level(info) >=
          rocksdb_compactionservice_jobinfo_t_get_base_input_level(info));
    CHECK(rocksdb_compactionservice_jobinfo_t_is_manual_compaction(info) == 1);
    CHECK(rocksdb_compactionservice_jobinfo_t_get_compaction_reason(info) == 9);
    CHECK(rocksdb_compactionservice_jobinfo_t_is_full_compaction(info) <= 1);
    CHECK(rocksdb_compactionservice_jobinfo_t_is_bottommost_level(info) <= 1);
    pthread_mutex_lock(&self->lock);
    self->scheduled += 1;
    free(self->input);
    self->input = malloc(length);
    memcpy(self->input, input, length);
    self->length = length;
    pthread_mutex_unlock(&self->lock);
    char* refused = NULL;
    rocksdb_compactionservice_scheduleresponse_t* response =
        rocksdb_compactionservice_scheduleresponse_create(
            "one", rocksdb_compactionservice_jobstatus_success, &refused);
    CHECK(refused == NULL);
    return response;
}

static int wait_for(void* state, const char* job, char** result, size_t* length) {
    service* self = state;
    CHECK(strcmp(job, "one") == 0);
    pthread_mutex_lock(&self->lock);
    self->waited += 1;
    pthread_cond_broadcast(&self->changed);
    while (self->mode == 3 && self->cancelled == 0) {
        pthread_cond_wait(&self->changed, &self->lock);
    }
    int mode = self->mode;
    pthread_mutex_unlock(&self->lock);
    if (mode == 1) {
        *result = strdup("garbage");
        *length = 7;
        return rocksdb_compactionservice_jobstatus_success;
    }
    if (mode >= 2) {
        return rocksdb_compactionservice_jobstatus_failure;
    }
    rocksdb_compaction_service_options_override_t* overrides =
        rocksdb_compaction_service_options_override_create();
    rocksdb_compaction_service_options_override_set_option(overrides, "max_open_files", "100");
    char* failed = NULL;
    *result = rocksdb_open_and_compact(self->path, self->output, self->input, self->length,
                                       length, overrides, &failed);
    rocksdb_compaction_service_options_override_destroy(overrides);
    if (failed != NULL) {
        fprintf(stderr, "the worker: %s\n", failed);
        exit(1);
    }
    return rocksdb_compactionservice_jobstatus_success;
}

static void cancel(void* state) {
    service* self = state;
    pthread_mutex_lock(&self->lock);
    self->cancelled += 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void ended(void* state, const char* job, int status) {
    service* self = state;
    CHECK(strcmp(job, "one") == 0);
    pthread_mutex_lock(&self->lock);
    self->installed += status == rocksdb_compactionservice_jobstatus_success;
    self->local += status == rocksdb_compactionservice_jobstatus_use_local;
    pthread_mutex_unlock(&self->lock);
}

static void gone(void* state) {
    service* self = state;
    pthread_mutex_lock(&self->lock);
    self->gone += 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void write_twice(rocksdb_t* db) {
    rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++) {
            char key[20], value[40];
            snprintf(key, sizeof(key), "key%03d", i);
            snprintf(value, sizeof(value), "value %d of round %d", i, round);
            rocksdb_put(db, options, key, strlen(key), value, strlen(value), &err);
            CHECK(err == NULL);
        }
        rocksdb_flush(db, flush, &err);
        CHECK(err == NULL);
    }
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(options);
}

static void check(rocksdb_t* db) {
    rocksdb_readoptions_t* options = rocksdb_readoptions_create();
    for (int i = 0; i < 200; i++) {
        char key[20], value[40];
        size_t length = 0;
        snprintf(key, sizeof(key), "key%03d", i);
        snprintf(value, sizeof(value), "value %d of round 2", i);
        char* found = rocksdb_get(db, options, key, strlen(key), &length, &err);
        CHECK(err == NULL && found != NULL);
        CHECK(length == strlen(value) && memcmp(found, value, length) == 0);
        rocksdb_free(found);
    }
    rocksdb_readoptions_destroy(options);
}

static void* compact(void* db) {
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    return NULL;
}

static void run(const char* directory, int mode) {
    char path[400], output[400];
    snprintf(path, sizeof(path), "%s/remote-%d", directory, mode);
    snprintf(output, sizeof(output), "%s/remote-%d-output", directory, mode);
    service self = {.path = path, .output = output, .mode = mode};
    pthread_mutex_init(&self.lock, NULL);
    pthread_cond_init(&self.changed, NULL);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_disable_auto_compactions(options, 1);
    rocksdb_options_set_compaction_service(
        options, rocksdb_compactionservice_create(&self, gone, schedule, "test", wait_for, cancel,
                                                  ended));
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    write_twice(db);
    if (mode < 3) {
        rocksdb_compact_range(db, NULL, 0, NULL, 0);
        CHECK(self.scheduled > 0 && self.waited > 0);
        CHECK((self.installed > 0) == (mode == 0));
        CHECK((self.local > 0) == (mode > 0));
        check(db);
        rocksdb_close(db);
    } else {
        pthread_t thread;
        pthread_create(&thread, NULL, compact, db);
        pthread_mutex_lock(&self.lock);
        while (self.waited == 0) {
            pthread_cond_wait(&self.changed, &self.lock);
        }
        pthread_mutex_unlock(&self.lock);
        rocksdb_cancel_all_background_work(db, 0);
        pthread_join(thread, NULL);
        rocksdb_close(db);
        CHECK(self.installed == 0);
    }
    CHECK(self.cancelled == 1);
    rocksdb_options_set_compaction_service(options, NULL);
    pthread_mutex_lock(&self.lock);
    while (self.gone == 0) {
        pthread_cond_wait(&self.changed, &self.lock);
    }
    pthread_mutex_unlock(&self.lock);
    db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    check(db);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    free(self.input);
}

int main(int argc, char** argv) {
    CHECK(argc > 1);
    for (int mode = 0; mode < 4; mode++) {
        run(argv[1], mode);
    }
    /* What cannot be done is an error. */
    rocksdb_compaction_service_options_override_t* overrides =
        rocksdb_compaction_service_options_override_create();
    size_t length = 77;
    CHECK(rocksdb_open_and_compact(argv[1], "/nowhere", "garbage", 7, &length, overrides, &err) ==
          NULL);
    CHECK(err != NULL && length == 77);
    rocksdb_free(err);
    err = NULL;
    CHECK(rocksdb_open_and_compact(argv[1], "/nowhere", "garbage", 7, &length, NULL, &err) ==
          NULL);
    CHECK(err != NULL);
    rocksdb_free(err);
    err = NULL;
    rocksdb_compaction_service_options_override_destroy(overrides);
    puts("all is well");
    return 0;
}
