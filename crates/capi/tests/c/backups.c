/* Backups: making, listing, verifying, restoring and purging them. */
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
static int steps = 0;

static void progress(void* state) {
    ++*(int*)state;
}

static unsigned char exclude(void* state, const char* file, size_t length) {
    (void)state, (void)file, (void)length;
    return 0;
}

static void fails_with(const char* says) {
    CHECK(err != NULL && strstr(err, says) != NULL);
    rocksdb_free(err);
    err = NULL;
}

static void has(rocksdb_options_t* options, const char* path, const char* value) {
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    size_t length = 0;
    char* found = rocksdb_get(db, ro, "key", 3, &length, &err);
    CHECK(err == NULL && found != NULL);
    CHECK(length == strlen(value) && memcmp(found, value, length) == 0);
    rocksdb_free(found);
    rocksdb_readoptions_destroy(ro);
    rocksdb_close(db);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[4096], target[4096], restored[4096], logs[4096];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    snprintf(target, sizeof target, "%s/kept", arguments[1]);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_put(db, wo, "key", 3, "one", 3, &err);
    CHECK(err == NULL);

    /* Options keep their values, and say RocksDB's defaults. */
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_backup_engine_options_t* opened = rocksdb_backup_engine_options_create(target);
    size_t length = 0;
    const char* directory = rocksdb_backup_engine_options_get_backup_dir(opened, &length);
    CHECK(length == strlen(target) && memcmp(directory, target, length) == 0);
    CHECK(rocksdb_backup_engine_options_get_share_table_files(opened) == 1);
    CHECK(rocksdb_backup_engine_options_get_backup_log_files(opened) == 1);
    CHECK(rocksdb_backup_engine_options_get_max_background_operations(opened) == 1);
    rocksdb_backup_engine_options_set_max_background_operations(opened, 4);
    CHECK(rocksdb_backup_engine_options_get_max_background_operations(opened) == 4);
    rocksdb_backup_engine_options_set_callback_trigger_interval_size(opened, 1);

    /* What is promised and not done is refused by name. */
    rocksdb_backup_engine_options_set_share_table_files(opened, 0);
    CHECK(rocksdb_backup_engine_open_opts(opened, env, &err) == NULL);
    fails_with("share_table_files=0");
    rocksdb_backup_engine_options_set_share_table_files(opened, 1);
    rocksdb_backup_engine_options_set_backup_log_files(opened, 0);
    CHECK(rocksdb_backup_engine_open_opts(opened, env, &err) == NULL);
    fails_with("backup_log_files=0");
    rocksdb_backup_engine_options_set_backup_log_files(opened, 1);

    /* The rate of a limiter counts, and the limiter may go. */
    rocksdb_ratelimiter_t* limiter = rocksdb_ratelimiter_create(1 << 20, 100000, 10);
    rocksdb_backup_engine_options_set_backup_rate_limiter(opened, limiter);
    rocksdb_backup_engine_options_set_restore_rate_limiter(opened, limiter);
    rocksdb_ratelimiter_destroy(limiter);

    rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open_opts(opened, env, &err);
    CHECK(engine != NULL && err == NULL);
    CHECK(rocksdb_backup_engine_open(options, target, &err) == NULL);
    fails_with("already open");
    rocksdb_backup_engine_create_new_backup(engine, db, &err);
    CHECK(err == NULL);
    rocksdb_put(db, wo, "key", 3, "two", 3, &err);
    rocksdb_create_backup_options_t* creating = rocksdb_create_backup_options_create();
    rocksdb_create_backup_options_set_flush_before_backup(creating, 1);
    CHECK(rocksdb_create_backup_options_get_flush_before_backup(creating) == 1);
    rocksdb_create_backup_options_set_progress_callback(creating, &steps, progress);
    uint32_t id = 0;
    rocksdb_backup_engine_create_new_backup_with_metadata(
        engine, db, creating, "a\0b\xff", 4, &id, &err);
    CHECK(err == NULL && id == 2 && steps > 0);
    rocksdb_create_backup_options_set_exclude_files_callback(creating, NULL, exclude);
    rocksdb_backup_engine_create_new_backup_with_options(engine, db, creating, &id, &err);
    fails_with("exclude_files_callback");
    rocksdb_create_backup_options_destroy(creating);

    /* What there is. */
    const rocksdb_backup_engine_info_t* info = rocksdb_backup_engine_get_backup_info(engine);
    CHECK(rocksdb_backup_engine_info_count(info) == 2);
    CHECK(rocksdb_backup_engine_info_backup_id(info, 0) == 1);
    CHECK(rocksdb_backup_engine_info_backup_id(info, 1) == 2);
    CHECK(rocksdb_backup_engine_info_size(info, 1) > 0);
    CHECK(rocksdb_backup_engine_info_number_files(info, 1) >= 3);
    CHECK(rocksdb_backup_engine_info_timestamp(info, 1) > 1700000000);
    const char* metadata = rocksdb_backup_engine_info_app_metadata(info, 1, &length);
    CHECK(length == 4 && memcmp(metadata, "a\0b\xff", 4) == 0);
    CHECK(rocksdb_backup_engine_info_backup_id(info, 2) == 0);
    CHECK(rocksdb_backup_engine_info_size(info, -1) == 0);
    CHECK(rocksdb_backup_engine_info_app_metadata(info, 7, &length) == NULL && length == 0);
    rocksdb_backup_engine_info_destroy(info);
    rocksdb_backup_engine_verify_backup(engine, 1, &err);
    CHECK(err == NULL);
    rocksdb_backup_engine_verify_backup(engine, 9, &err);
    fails_with("NotFound: there is no backup 9");

    /* Restoring, with WALs in the same directory and in another one. */
    rocksdb_restore_options_t* restoring = rocksdb_restore_options_create();
    CHECK(rocksdb_restore_options_get_mode(restoring) == 65535);
    rocksdb_restore_options_set_keep_log_files(restoring, 1);
    CHECK(rocksdb_restore_options_get_keep_log_files(restoring) == 1);
    snprintf(restored, sizeof restored, "%s/first", arguments[1]);
    rocksdb_backup_engine_restore_db_from_backup(engine, restored, restored, restoring, 1, &err);
    CHECK(err == NULL);
    has(options, restored, "one");
    rocksdb_backup_engine_restore_db_from_latest_backup(engine, restored, restored, restoring, &err);
    fails_with("exists already");
    snprintf(restored, sizeof restored, "%s/latest", arguments[1]);
    snprintf(logs, sizeof logs, "%s/logs", arguments[1]);
    rocksdb_backup_engine_restore_db_from_backup(engine, restored, logs, NULL, 1, &err);
    CHECK(err == NULL);
    rocksdb_options_set_wal_dir(options, logs);
    has(options, restored, "one");
    snprintf(restored, sizeof restored, "%s/another", arguments[1]);
    rocksdb_backup_engine_restore_db_from_latest_backup(engine, restored, logs, NULL, &err);
    fails_with("has a WAL already");
    rocksdb_options_set_wal_dir(options, "");

    /* Purging, stopping, and an engine that starts over. */
    rocksdb_backup_engine_purge_old_backups(engine, 1, &err);
    CHECK(err == NULL);
    rocksdb_backup_engine_restore_db_from_backup(engine, restored, restored, NULL, 1, &err);
    fails_with("there is no backup 1");
    rocksdb_backup_engine_stop_backup(engine);
    rocksdb_backup_engine_create_new_backup_flush(engine, db, 1, &err);
    fails_with("Result incomplete: the backup was cancelled");
    rocksdb_backup_engine_close(engine);
    rocksdb_backup_engine_options_set_destroy_old_data(opened, 1);
    engine = rocksdb_backup_engine_open_opts(opened, env, &err);
    CHECK(engine != NULL && err == NULL);
    info = rocksdb_backup_engine_get_backup_info(engine);
    CHECK(rocksdb_backup_engine_info_count(info) == 0);
    rocksdb_backup_engine_info_destroy(info);
    rocksdb_backup_engine_restore_db_from_latest_backup(engine, restored, restored, NULL, &err);
    fails_with("NotFound");
    rocksdb_backup_engine_close(engine);

    /* Null is told. */
    rocksdb_backup_engine_create_new_backup(NULL, db, &err);
    fails_with("the backup engine is null");
    CHECK(rocksdb_backup_engine_open_opts(NULL, env, &err) == NULL);
    fails_with("the options is null");
    rocksdb_backup_engine_stop_backup(NULL);
    CHECK(rocksdb_backup_engine_info_count(NULL) == 0);

    rocksdb_restore_options_destroy(restoring);
    rocksdb_backup_engine_options_destroy(opened);
    rocksdb_env_destroy(env);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    puts("all is well");
    return 0;
}
