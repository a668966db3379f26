/* LOG and loggers, managers of table files, WAL files, the end of background work. */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(holds)                                                                  \
    do {                                                                              \
        if (!(holds)) {                                                               \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #holds, err ? err : ""); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static char* err = NULL;

/* Whether LOG of the database has a text. */
static int log_has(const char* directory, const char* text) {
    char path[4096];
    static char all[1 << 20];
    snprintf(path, sizeof path, "%s/LOG", directory);
    FILE* file = fopen(path, "r");
    if (file == NULL) return 0;
    all[fread(all, 1, sizeof all - 1, file)] = 0;
    fclose(file);
    return strstr(all, text) != NULL;
}

typedef struct {
    int lines, closed;
} heard;

static void hear(void* state, unsigned level, char* text, size_t length) {
    heard* all = state;
    if (level > 3 || strlen(text) != length) exit(2);
    all->lines++;
    all->closed += strstr(text, "is closed") != NULL;
}

static rocksdb_t* opened(rocksdb_options_t* options, const char* directory) {
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = rocksdb_open(options, directory, &err);
    CHECK(err == NULL);
    return db;
}

static void logs(const char* place) {
    char directory[4096];
    snprintf(directory, sizeof directory, "%s/log", place);
    rocksdb_options_t* options = rocksdb_options_create();
    CHECK(rocksdb_options_get_info_log_level(options) == 1);
    CHECK(rocksdb_options_get_keep_log_file_num(options) == 1000);
    rocksdb_options_set_ttl(options, 86400);
    rocksdb_options_set_experimental_mempurge_threshold(options, 0.5);
    rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(options, 5, 10, 0.5);
    rocksdb_block_based_table_options_t* tables = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_format_version(tables, 4);
    rocksdb_block_based_options_set_data_block_hash_ratio(tables, 0.35);
    rocksdb_options_set_block_based_table_factory(options, tables);
    rocksdb_block_based_options_destroy(tables);
    rocksdb_t* db = opened(options, directory);
    /* It is there at once, with all options. */
    CHECK(log_has(directory, "Options.ttl: 86400\n"));
    CHECK(log_has(directory, "Options.experimental_mempurge_threshold: 0.500000\n"));
    CHECK(log_has(directory, "Options.create_if_missing: 1\n"));
    CHECK(log_has(directory, "Deletion trigger = 10 Deletion ratio = 0.5)"));
    CHECK(log_has(directory, "format_version: 4\n"));
    CHECK(log_has(directory, "data_block_hash_table_util_ratio: 0.350000\n"));
    CHECK(!log_has(directory, "is closed"));
    rocksdb_close(db);
    CHECK(log_has(directory, "is closed"));
    /* A level without news leaves no line of them. */
    rocksdb_options_set_info_log_level(options, 3);
    rocksdb_close(opened(options, directory));
    CHECK(log_has(directory, "is open") && !log_has(directory, "is closed"));

    /* A logger gets the lines instead, as long as a database has it. */
    snprintf(directory, sizeof directory, "%s/heard", place);
    heard all = {0, 0};
    rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(1, hear, &all);
    rocksdb_options_set_info_log(options, logger);
    rocksdb_logger_destroy(logger);
    db = opened(options, directory);
    logger = rocksdb_options_get_info_log(options);
    rocksdb_options_destroy(options);
    CHECK(all.lines > 10 && all.closed == 0);
    rocksdb_close(db);
    CHECK(all.closed == 1 && !log_has(directory, ""));
    options = rocksdb_options_create();
    rocksdb_options_set_info_log(options, logger);
    rocksdb_logger_destroy(logger);
    rocksdb_close(opened(options, directory));
    CHECK(all.closed == 2);
    rocksdb_options_set_info_log(options, NULL);
    rocksdb_close(opened(options, directory));
    CHECK(all.closed == 2 && log_has(directory, "is closed"));
    rocksdb_options_destroy(options);
}

static void space(const char* place) {
    char directory[4096];
    snprintf(directory, sizeof directory, "%s/space", place);
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_sst_file_manager_t* manager = rocksdb_sst_file_manager_create(env);
    rocksdb_sst_file_manager_set_max_allowed_space_usage(manager, 100 << 10);
    rocksdb_sst_file_manager_set_compaction_buffer_size(manager, 100 << 10);
    CHECK(!rocksdb_sst_file_manager_is_max_allowed_space_reached(manager));
    CHECK(!rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(manager));
    rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(manager, 1 << 20);
    CHECK(rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager) == 1 << 20);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_sst_file_manager(options, manager);
    rocksdb_options_set_write_buffer_size(options, 64 << 10);
    rocksdb_t* db = opened(options, directory);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    static char value[1000];
    for (int number = 0; err == NULL && number < 100000; number++) {
        for (size_t at = 0; at < sizeof value; at++) value[at] = (char)rand();
        rocksdb_put(db, write, (char*)&number, sizeof number, value, sizeof value, &err);
    }
    CHECK(err != NULL && strstr(err, "the space manager allows 102400") != NULL);
    rocksdb_free(err);
    err = NULL;
    CHECK(rocksdb_sst_file_manager_is_max_allowed_space_reached(manager));
    CHECK(rocksdb_sst_file_manager_get_total_size(manager) >= 100 << 10);
    rocksdb_sst_file_manager_set_max_allowed_space_usage(manager, 0);
    for (int tries = 0; tries < 6000; tries++) {
        rocksdb_put(db, write, "again", 5, "", 0, &err);
        if (err == NULL) break;
        rocksdb_free(err);
        err = NULL;
        if (tries == 5999) exit(3);
        usleep(10000);
    }

    rocksdb_wal_files_t* files = rocksdb_get_sorted_wal_files(db, &err);
    CHECK(err == NULL && rocksdb_wal_files_count(files) > 0);
    const rocksdb_wal_file_t* last =
        rocksdb_wal_files_get_wal_file(files, rocksdb_wal_files_count(files) - 1);
    CHECK(strstr(rocksdb_wal_file_path_name(last), ".wal") != NULL);
    CHECK(rocksdb_wal_file_log_number(last) > 0 && rocksdb_wal_file_type(last) == 1);
    CHECK(rocksdb_wal_files_get_wal_file(files, 1000) == NULL);
    rocksdb_wal_file_t* current = rocksdb_get_current_wal_file(db, &err);
    CHECK(err == NULL && rocksdb_wal_file_log_number(current) >= rocksdb_wal_file_log_number(last));
    rocksdb_wal_file_destroy(current);
    rocksdb_wal_files_destroy(files);

    /* Room for the write after it. */
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &err);
    CHECK(err == NULL);
    rocksdb_cancel_all_background_work(db, 1);
    rocksdb_put(db, write, "after", 5, "1", 1, &err);
    CHECK(err == NULL);
    rocksdb_flush(db, flush, &err);
    CHECK(err != NULL && strncmp(err, "Shutdown in progress:", 21) == 0);
    rocksdb_free(err);
    err = NULL;
    rocksdb_flushoptions_destroy(flush);
    rocksdb_close(db);
    db = opened(options, directory);
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    size_t length;
    char* found = rocksdb_get(db, read, "after", 5, &length, &err);
    CHECK(err == NULL && length == 1);
    rocksdb_free(found);
    rocksdb_readoptions_destroy(read);
    rocksdb_close(db);
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(options);
    rocksdb_sst_file_manager_destroy(manager);
    rocksdb_env_destroy(env);
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    logs(argv[1]);
    space(argv[1]);
    printf("all is well\n");
    return 0;
}
