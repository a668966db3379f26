/* Files and ranges of a database, and copying it by its files. */
#define _GNU_SOURCE
#include "rocksdb/c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, err ? err : ""); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static char* err = NULL;
static rocksdb_t* db;
static rocksdb_writeoptions_t* wo;
static rocksdb_readoptions_t* ro;

static void fails_with(const char* beginning) {
    CHECK(err != NULL && strncmp(err, beginning, strlen(beginning)) == 0);
    rocksdb_free(err);
    err = NULL;
}

static void put(const char* key) {
    rocksdb_put(db, wo, key, strlen(key), "some value", 10, &err);
    CHECK(err == NULL);
}

static int has(rocksdb_t* in, const char* key) {
    size_t length = 0;
    char* value = rocksdb_get(in, ro, key, strlen(key), &length, &err);
    CHECK(err == NULL);
    rocksdb_free(value);
    return value != NULL;
}

static void flush(void) {
    rocksdb_flushoptions_t* options = rocksdb_flushoptions_create();
    rocksdb_flush(db, options, &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_destroy(options);
}

/* Directories, including names that are not UTF-8. */
static void directories(const char* below) {
    rocksdb_env_t* env = rocksdb_create_default_env();
    char path[4096];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/a/caf\xe9", below);
        rocksdb_create_dir_if_missing(env, path, &err);
        CHECK(err == NULL);
    }
    struct stat found;
    CHECK(stat(path, &found) == 0 && S_ISDIR(found.st_mode));
    snprintf(path, sizeof path, "%s/a/caf\xe8", below);
    CHECK(stat(path, &found) != 0);
    rocksdb_create_dir_if_missing(env, "/proc/no", &err);
    fails_with("IO error:");
    rocksdb_create_dir_if_missing(env, NULL, &err);
    fails_with("Invalid argument: the path is null");
    rocksdb_env_destroy(env);
}

/* Ranges with bounds in pieces. */
static void ranges_of_pieces(void) {
    put("pa");
    put("pb");
    put("pc");
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    const char* begin[] = {"p", "b"};
    const char* end[] = {"p", "c"};
    size_t lengths[] = {1, 1};
    rocksdb_writebatch_delete_rangev(batch, 2, begin, lengths, end, lengths);
    CHECK(rocksdb_writebatch_count(batch) == 1);
    rocksdb_write(db, wo, batch, &err);
    CHECK(err == NULL && has(db, "pa") && !has(db, "pb") && has(db, "pc"));
    rocksdb_writebatch_clear(batch);
    rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
    begin[1] = "a";
    rocksdb_writebatch_delete_rangev_cf(batch, family, 2, begin, lengths, end, lengths);
    rocksdb_write(db, wo, batch, &err);
    CHECK(err == NULL && !has(db, "pa") && has(db, "pc"));
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_delete_rangev_cf(batch, NULL, 2, begin, lengths, end, lengths);
    rocksdb_write(db, wo, batch, &err);
    fails_with("Invalid argument:");
    rocksdb_column_family_handle_destroy(family);
    rocksdb_writebatch_destroy(batch);
}

static uint64_t size_by_flags(uint8_t flags) {
    const char* begin[] = {"k"};
    const char* end[] = {"l"};
    size_t lengths[] = {1};
    uint64_t size = 77;
    rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
    rocksdb_approximate_sizes_cf_with_flags(
        db, family, 1, begin, lengths, end, lengths, flags, &size, &err);
    rocksdb_column_family_handle_destroy(family);
    return size;
}

static uint64_t size_by_options(int memtables, int files) {
    const char* begin[] = {"k"};
    const char* end[] = {"l"};
    size_t lengths[] = {1};
    uint64_t size = 77;
    rocksdb_size_approximation_options_t* options = rocksdb_size_approximation_options_create();
    CHECK(rocksdb_size_approximation_options_get_include_files(options) == 1);
    CHECK(rocksdb_size_approximation_options_get_include_memtables(options) == 0);
    rocksdb_size_approximation_options_set_include_memtables(options, memtables);
    rocksdb_size_approximation_options_set_include_files(options, files);
    rocksdb_approximate_sizes_with_options(
        db, options, 1, begin, lengths, end, lengths, &size, &err);
    rocksdb_size_approximation_options_destroy(options);
    return size;
}

static void sizes(void) {
    for (int i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%04d", i);
        put(key);
    }
    uint64_t in_memory = size_by_options(1, 0);
    /* 1,000 keys of 5 bytes, values of 10, and their sequence numbers. */
    CHECK(err == NULL && in_memory >= 15000 && in_memory < 40000);
    CHECK(size_by_flags(1) == in_memory && size_by_options(1, 1) == in_memory);
    CHECK(size_by_flags(2) == 0 && size_by_options(0, 1) == 0 && err == NULL);
    flush();
    CHECK(size_by_flags(1) == 0 && size_by_options(1, 0) == 0);
    CHECK(size_by_flags(2) > 0 && size_by_options(0, 1) > 0 && err == NULL);
    CHECK(size_by_flags(4) == 0 && err == NULL);
    size_by_flags(0);
    fails_with("Invalid argument:");
    size_by_options(0, 0);
    fails_with("Invalid argument:");
}

static size_t files_listed(int level, const char* begin, const char* end) {
    rocksdb_column_family_metadata_options_t* options =
        rocksdb_column_family_metadata_options_create();
    CHECK(rocksdb_column_family_metadata_options_get_level(options) == -1);
    rocksdb_column_family_metadata_options_set_level(options, level);
    rocksdb_column_family_metadata_options_set_start_key(options, begin, begin ? 1 : 0);
    rocksdb_column_family_metadata_options_set_end_key(options, end, end ? 1 : 0);
    size_t length = 9;
    const char* kept = rocksdb_column_family_metadata_options_get_start_key(options, &length);
    CHECK(begin ? length == 1 && kept[0] == begin[0] : length == 0 && kept == NULL);
    rocksdb_column_family_metadata_t* listed =
        rocksdb_get_column_family_metadata_with_options(db, options);
    size_t count = rocksdb_column_family_metadata_get_file_count(listed);
    rocksdb_column_family_metadata_destroy(listed);
    rocksdb_column_family_metadata_options_destroy(options);
    return count;
}

static void metadata(void) {
    rocksdb_column_family_metadata_t* all = rocksdb_get_column_family_metadata(db);
    size_t count = rocksdb_column_family_metadata_get_file_count(all);
    rocksdb_column_family_metadata_destroy(all);
    CHECK(count > 0 && files_listed(-1, NULL, NULL) == count);
    CHECK(files_listed(-1, "x", "z") == 0 && files_listed(-1, NULL, "a") == 0);
    CHECK(files_listed(-1, "k", "l") > 0);
    size_t by_level = 0;
    for (int level = 0; level < 7; level++) {
        by_level += files_listed(level, NULL, NULL);
    }
    CHECK(by_level == count);
}

/* Each file is copied as the list says. The copy is the database. */
static void copy_by_files(const char* below, int flushes) {
    char to[4096];
    snprintf(to, sizeof to, "%s/copy%d", below, flushes);
    CHECK(mkdir(to, 0700) == 0);
    put(flushes ? "kept by a flush" : "kept by the log");
    rocksdb_livefiles_storage_info_options_t* options =
        rocksdb_livefiles_storage_info_options_create();
    rocksdb_livefiles_storage_info_options_set_wal_size_for_flush(
        options, flushes ? 0 : UINT64_MAX);
    rocksdb_livefiles_storage_info_options_set_include_checksum_info(options, flushes);
    rocksdb_disable_file_deletions(db, &err);
    rocksdb_livefiles_storage_info_t* files = rocksdb_get_livefiles_storage_info(db, options, &err);
    CHECK(err == NULL && files != NULL);
    int types[16] = {0};
    for (size_t i = 0; i < rocksdb_livefiles_storage_info_count(files); i++) {
        const char* name = rocksdb_livefiles_storage_info_relative_filename(files, i);
        types[rocksdb_livefiles_storage_info_file_type(files, i)]++;
        const char* function =
            rocksdb_livefiles_storage_info_file_checksum_func_name(files, i);
        CHECK(strcmp(function, flushes ? "Unknown" : "") == 0);
        size_t length = 0;
        const char* contents =
            rocksdb_livefiles_storage_info_replacement_contents(files, i, &length);
        uint64_t size = rocksdb_livefiles_storage_info_size(files, i);
        char path[8192];
        snprintf(path, sizeof path, "%s/%s", to, name);
        FILE* copy = fopen(path, "wb");
        CHECK(copy != NULL);
        if (length > 0) {
            CHECK(length == size && fwrite(contents, 1, length, copy) == length);
        } else {
            snprintf(path, sizeof path, "%s/%s",
                     rocksdb_livefiles_storage_info_directory(files, i), name);
            FILE* from = fopen(path, "rb");
            CHECK(from != NULL);
            char* bytes = malloc(size + 1);
            CHECK(fread(bytes, 1, size, from) == size && fwrite(bytes, 1, size, copy) == size);
            if (!rocksdb_livefiles_storage_info_trim_to_size(files, i)) {
                CHECK(fread(bytes, 1, 1, from) == 0);
            }
            free(bytes);
            fclose(from);
        }
        fclose(copy);
    }
    CHECK(types[2] > 0 && types[3] == 1 && types[4] == 1 && types[9] == 1 && types[0] > 0);
    CHECK(rocksdb_livefiles_storage_info_relative_filename(files, 9999) == NULL);
    rocksdb_livefiles_storage_info_destroy(files);
    rocksdb_livefiles_storage_info_options_destroy(options);
    rocksdb_enable_file_deletions(db, &err);
    CHECK(err == NULL);
    rocksdb_options_t* open = rocksdb_options_create();
    rocksdb_t* copy = rocksdb_open(open, to, &err);
    CHECK(err == NULL && has(copy, "k0500") && has(copy, "pc"));
    CHECK(has(copy, flushes ? "kept by a flush" : "kept by the log"));
    rocksdb_verify_checksum(copy, &err);
    CHECK(err == NULL);
    rocksdb_close(copy);
    rocksdb_options_destroy(open);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    char path[4096];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    wo = rocksdb_writeoptions_create();
    ro = rocksdb_readoptions_create();

    directories(arguments[1]);
    ranges_of_pieces();
    sizes();
    metadata();
    copy_by_files(arguments[1], 0);
    copy_by_files(arguments[1], 1);

    rocksdb_flushwaloptions_t* flush_wal = rocksdb_flushwaloptions_create();
    rocksdb_flushwaloptions_set_sync(flush_wal, 1);
    rocksdb_flush_wal_with_options(db, flush_wal, &err);
    rocksdb_flush_wal_with_options(db, NULL, &err);
    CHECK(err == NULL);
    rocksdb_flushwaloptions_destroy(flush_wal);

    rocksdb_readoptions_destroy(ro);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    puts("all is well");
    return 0;
}
