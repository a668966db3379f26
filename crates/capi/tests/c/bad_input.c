/* Bad input: column families of another database, null pointers with a length, null handles, empty
 * paths, values of a wrong type, and places that are no database. */
#include "rocksdb/c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, err ? err : ""); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

/* The last call failed, and its error has this text. */
#define REFUSED(text)                            \
    do {                                         \
        CHECK(err != NULL && strstr(err, text)); \
        rocksdb_free(err);                       \
        err = NULL;                              \
    } while (0)

static char* err = NULL;
static rocksdb_writeoptions_t* wo;
static rocksdb_readoptions_t* ro;
static rocksdb_flushoptions_t* fo;

static rocksdb_options_t* fresh_options(void) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    return options;
}

static int has(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char* key) {
    size_t length;
    char* value = rocksdb_get_cf(db, ro, family, key, strlen(key), &length, &err);
    CHECK(err == NULL);
    rocksdb_free(value);
    return value != NULL;
}

static void iterator_fails(rocksdb_iterator_t* iter, const char* text) {
    rocksdb_iter_seek_to_first(iter);
    CHECK(!rocksdb_iter_valid(iter));
    rocksdb_iter_get_error(iter, &err);
    REFUSED(text);
    rocksdb_iter_destroy(iter);
}

/* A handle of one database is refused by all calls of the other one, and nothing is written. */
static void families_of_others(const char* directory) {
    char path[1000];
    rocksdb_options_t* options = fresh_options();
    snprintf(path, sizeof path, "%s/a", directory);
    rocksdb_t* a = rocksdb_open(options, path, &err);
    snprintf(path, sizeof path, "%s/b", directory);
    rocksdb_t* b = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_t* of_a = rocksdb_create_column_family(a, options, "f", &err);
    rocksdb_column_family_handle_t* of_b = rocksdb_create_column_family(b, options, "f", &err);
    CHECK(err == NULL);
    const char* other = "the column family f belongs to another database, ";
    size_t length;
    rocksdb_put_cf(b, wo, of_a, "k", 1, "v", 1, &err);
    REFUSED(other);
    rocksdb_merge_cf(b, wo, of_a, "k", 1, "v", 1, &err);
    REFUSED(other);
    rocksdb_delete_cf(b, wo, of_a, "k", 1, &err);
    REFUSED(other);
    rocksdb_delete_range_cf(b, wo, of_a, "a", 1, "z", 1, &err);
    REFUSED(other);
    CHECK(rocksdb_get_cf(b, ro, of_a, "k", 1, &length, &err) == NULL);
    REFUSED(other);
    CHECK(rocksdb_get_pinned_cf(b, ro, of_a, "k", 1, &err) == NULL);
    REFUSED(other);
    rocksdb_flush_cf(b, fo, of_a, &err);
    REFUSED(other);
    const char* keys[] = {"k"};
    const size_t lengths[] = {1};
    const rocksdb_column_family_handle_t* families[] = {of_a};
    char* values[1];
    size_t value_lengths[1];
    rocksdb_multi_get_cf(b, ro, families, 1, keys, lengths, values, value_lengths, &err);
    REFUSED(other);
    iterator_fails(rocksdb_create_iterator_cf(b, ro, of_a), other);
    CHECK(rocksdb_property_value_cf(b, of_a, "rocksdb.stats") == NULL);
    rocksdb_drop_column_family(b, of_a, &err);
    REFUSED(other);

    /* A batch knows the database of its handles. */
    const char* batch_of = "the batch has a write to the column family f of another database, ";
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put_cf(batch, of_a, "k", 1, "v", 1);
    rocksdb_write(b, wo, batch, &err);
    REFUSED(batch_of);
    CHECK(!has(b, of_b, "k"));
    rocksdb_write(a, wo, batch, &err);
    CHECK(err == NULL && has(a, of_a, "k"));
    rocksdb_writebatch_put_cf(batch, of_b, "k", 1, "v", 1);
    rocksdb_write(a, wo, batch, &err);
    REFUSED(batch_of);
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_put_cf(batch, of_b, "k2", 2, "v", 1);
    rocksdb_write(b, wo, batch, &err);
    CHECK(err == NULL && has(b, of_b, "k2"));
    rocksdb_writebatch_destroy(batch);
    rocksdb_writebatch_wi_t* indexed = rocksdb_writebatch_wi_create(0, 1);
    rocksdb_writebatch_wi_put_cf(indexed, of_a, "k3", 2, "v", 1);
    rocksdb_write_writebatch_wi(b, wo, indexed, &err);
    REFUSED(batch_of);
    rocksdb_writebatch_wi_destroy(indexed);
    CHECK(!has(b, of_b, "k3"));

    /* A closed and reopened database takes a batch that was made before. */
    batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put_cf(batch, of_a, "later", 5, "v", 1);
    rocksdb_column_family_handle_destroy(of_a);
    rocksdb_close(a);
    rocksdb_write(a, wo, batch, &err);
    REFUSED("Shutdown in progress: ");
    snprintf(path, sizeof path, "%s/a", directory);
    const char* names[] = {"default", "f"};
    const rocksdb_options_t* both[] = {options, options};
    rocksdb_column_family_handle_t* handles[2];
    a = rocksdb_open_column_families(options, path, 2, names, both, handles, &err);
    CHECK(err == NULL);
    rocksdb_write(a, wo, batch, &err);
    CHECK(err == NULL && has(a, handles[1], "later"));
    rocksdb_writebatch_destroy(batch);

    /* A closed database says so, whatever the handle is of. */
    rocksdb_close(b);
    rocksdb_put_cf(b, wo, of_b, "k", 1, "v", 1, &err);
    REFUSED("Shutdown in progress: ");
    rocksdb_column_family_handle_destroy(of_b);
    rocksdb_column_family_handle_destroy(handles[0]);
    rocksdb_column_family_handle_destroy(handles[1]);
    rocksdb_close(a);
    rocksdb_options_destroy(options);
}

/* A null pointer stands for no bytes only. */
static void null_bytes(rocksdb_t* db) {
    const char* text = "a null pointer with length 5";
    size_t length;
    rocksdb_put(db, wo, NULL, 5, "v", 1, &err);
    REFUSED(text);
    rocksdb_put(db, wo, "k", 1, NULL, 5, &err);
    REFUSED(text);
    rocksdb_delete(db, wo, NULL, 5, &err);
    REFUSED(text);
    CHECK(rocksdb_get(db, ro, NULL, 5, &length, &err) == NULL);
    REFUSED(text);
    const char* keys[] = {NULL};
    const size_t lengths[] = {5};
    char* values[1];
    size_t value_lengths[1];
    rocksdb_multi_get(db, ro, 1, keys, lengths, values, value_lengths, &err);
    REFUSED(text);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "k", 1, NULL, 5);
    rocksdb_write(db, wo, batch, &err);
    REFUSED(text);
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_putv(batch, 1, keys, lengths, 1, keys, lengths);
    rocksdb_write(db, wo, batch, &err);
    REFUSED(text);
    rocksdb_writebatch_destroy(batch);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
    rocksdb_iter_seek(iter, NULL, 5);
    CHECK(!rocksdb_iter_valid(iter));
    rocksdb_iter_get_error(iter, &err);
    REFUSED(text);
    rocksdb_iter_destroy(iter);
    /* Nothing was written, and no bytes are no error. */
    CHECK(rocksdb_get(db, ro, NULL, 0, &length, &err) == NULL && err == NULL);
    rocksdb_put(db, wo, NULL, 0, NULL, 0, &err);
    CHECK(err == NULL);
    char* value = rocksdb_get(db, ro, "", 0, &length, &err);
    CHECK(value != NULL && length == 0);
    rocksdb_free(value);
}

/* A null handle is an error. */
static void null_handles(rocksdb_t* db) {
    size_t length;
    rocksdb_put(db, NULL, "k", 1, "v", 1, &err);
    REFUSED("the write options is null");
    CHECK(rocksdb_get(db, NULL, "k", 1, &length, &err) == NULL);
    REFUSED("the read options is null");
    rocksdb_put_cf(db, wo, NULL, "k", 1, "v", 1, &err);
    REFUSED("the column family is null");
    CHECK(rocksdb_get_cf(db, ro, NULL, "k", 1, &length, &err) == NULL);
    REFUSED("the column family is null");
    rocksdb_flush(db, NULL, &err);
    REFUSED("the flush options is null");
    rocksdb_flush_cf(db, fo, NULL, &err);
    REFUSED("the column family is null");
    iterator_fails(rocksdb_create_iterator(db, NULL), "the read options is null");
    iterator_fails(rocksdb_create_iterator_cf(db, ro, NULL), "the column family is null");
    CHECK(rocksdb_property_value_cf(db, NULL, "rocksdb.stats") == NULL);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put_cf(batch, NULL, "k", 1, "v", 1);
    rocksdb_write(db, wo, batch, &err);
    REFUSED("the column family is null");
    rocksdb_writebatch_destroy(batch);
}

/* An empty path does not mean the current directory, in which nothing may appear. */
static void empty_paths(rocksdb_t* db, const char* directory) {
    char before[1000], inside[1000];
    CHECK(getcwd(before, sizeof before) != NULL);
    snprintf(inside, sizeof inside, "%s/inside", directory);
    CHECK(mkdir(inside, 0777) == 0 && chdir(inside) == 0);
    rocksdb_options_t* options = fresh_options();
    const char* text = " is empty: name a directory";
    CHECK(rocksdb_open(options, "", &err) == NULL);
    REFUSED("the path of the database is empty");
    CHECK(rocksdb_open_for_read_only(options, "", 0, &err) == NULL);
    REFUSED(text);
    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
    rocksdb_checkpoint_create(checkpoint, "", 0, &err);
    REFUSED("the path of the checkpoint is empty");
    rocksdb_checkpoint_object_destroy(checkpoint);
    CHECK(rocksdb_backup_engine_open(options, "", &err) == NULL);
    REFUSED("the path of the backups is empty");
    rocksdb_backup_engine_t* backups = rocksdb_backup_engine_open(options, "../backups", &err);
    CHECK(err == NULL);
    rocksdb_backup_engine_create_new_backup(backups, db, &err);
    CHECK(err == NULL);
    rocksdb_restore_options_t* restore = rocksdb_restore_options_create();
    rocksdb_backup_engine_restore_db_from_latest_backup(backups, "", "", restore, &err);
    REFUSED("the path of the restored database is empty");
    rocksdb_restore_options_destroy(restore);
    rocksdb_backup_engine_close(backups);
    rocksdb_repair_db(options, "", &err);
    REFUSED(text);
    rocksdb_destroy_db(options, "", &err);
    REFUSED(text);
    CHECK(rocksdb_list_column_families(options, "", &(size_t){0}, &err) == NULL);
    REFUSED(text);
    rocksdb_options_destroy(options);
    CHECK(chdir(before) == 0 && rmdir(inside) == 0);
}

/* A path that is no directory, or has no database, is named as what it is. */
static void other_paths(const char* directory) {
    char path[6000];
    rocksdb_options_t* options = fresh_options();
    snprintf(path, sizeof path, "%s/file", directory);
    FILE* file = fopen(path, "w");
    CHECK(file != NULL && fclose(file) == 0);
    CHECK(rocksdb_open(options, path, &err) == NULL);
    REFUSED("it is not a directory");
    CHECK(rocksdb_open_for_read_only(options, path, 0, &err) == NULL);
    REFUSED("it is not a directory");
    CHECK(rocksdb_list_column_families(options, path, &(size_t){0}, &err) == NULL);
    REFUSED("it is not a directory");
    snprintf(path, sizeof path, "%s/loop", directory);
    CHECK(symlink(path, path) == 0);
    CHECK(rocksdb_open(options, path, &err) == NULL);
    REFUSED("symbolic links lead back");
    snprintf(path, sizeof path, "%s/%0300d", directory, 0);
    CHECK(rocksdb_open(options, path, &err) == NULL);
    REFUSED("the path is too long");
    snprintf(path, sizeof path, "%s/missing", directory);
    CHECK(rocksdb_open_for_read_only(options, path, 0, &err) == NULL);
    CHECK(strncmp(err, "IO error: ", 10) == 0);
    REFUSED("there is no database here");
    /* A file CURRENT of another program. */
    snprintf(path, sizeof path, "%s/other", directory);
    CHECK(mkdir(path, 0777) == 0);
    strcat(path, "/CURRENT");
    file = fopen(path, "w");
    CHECK(file != NULL && fputs("hi", file) >= 0 && fclose(file) == 0);
    snprintf(path, sizeof path, "%s/other", directory);
    CHECK(rocksdb_open(options, path, &err) == NULL);
    CHECK(strstr(err, "Corruption") == NULL);
    REFUSED("it is no database of Sateen");
    rocksdb_options_destroy(options);
}

/* Values of a wrong type in option strings, and numbers without a name in setters. */
static void values(rocksdb_t* db, const char* directory) {
    static const char* wrong[] = {
        "wal_recovery_mode=kNope",
        "compaction_style=kNope",
        "compaction_pri=kNope",
        "compression=kNope",
        "compression_per_level=kNoCompression:kNope",
        "bottommost_compression=kNope",
        "blob_compression_type=kNope",
        "wal_compression=kNope",
        "info_log_level=NOPE",
        "best_efforts_recovery=maybe",
        "memtable_protection_bytes_per_key=abc",
        "paranoid_checks=maybe",
        "manual_wal_flush=maybe",
        "max_subcompactions=abc",
        "max_open_files=99999999999999",
        "max_background_jobs=99999999999999",
        "default_temperature=kNope",
        "allow_fallocate=maybe",
        "memtable_prefix_bloom_size_ratio=much",
        "write_buffer_size=abc",
        "WAL_size_limit_MB=abc",
        "bgerror_resume_retry_interval=abc",
        "block_based_table_factory={block_size=8K;cache_index_and_filter_blocks=maybe}",
        "block_based_table_factory={index_type=kNope}",
        "block_based_table_factory={block_size=8K",
        "block_based_table_factory=block_size=8K}",
    };
    rocksdb_options_t* base = fresh_options();
    rocksdb_options_t* options = rocksdb_options_create();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        rocksdb_get_options_from_string(base, wrong[i], options, &err);
        if (err == NULL) fprintf(stderr, "%s is accepted\n", wrong[i]);
        /* The error has the name that was given. */
        char name[100];
        const char* inner = strchr(wrong[i], '{');
        const char* last = strrchr(wrong[i], ';') ? strrchr(wrong[i], ';') : inner;
        snprintf(name, sizeof name, "%s", last && strchr(wrong[i], '}') ? last + 1 : wrong[i]);
        *strchr(name, '=') = 0;
        if (err != NULL && strstr(err, name) == NULL) fprintf(stderr, "%s: %s\n", name, err);
        CHECK(err != NULL && strstr(err, "Invalid argument: ") == err && strstr(err, name));
        rocksdb_free(err);
        err = NULL;
    }
    rocksdb_get_options_from_string(base, "max_compaction_bytes=-1;ttl=5s;nope=1", options, &err);
    CHECK(strstr(err, "nearest") == NULL);
    REFUSED("unknown option \"nope\"");
    const char* names[] = {"write_buffer_size"};
    const char* abc[] = {"abc"};
    rocksdb_set_options(db, 1, names, abc, &err);
    REFUSED("option write_buffer_size does not take \"abc\"");

    char path[1000];
    snprintf(path, sizeof path, "%s/codes", directory);
    static void (*const setters[])(rocksdb_options_t*, int) = {
        rocksdb_options_set_compression,       rocksdb_options_set_bottommost_compression,
        rocksdb_options_set_compaction_style,  rocksdb_options_set_compaction_pri,
        rocksdb_options_set_wal_recovery_mode,
    };
    for (size_t i = 0; i < sizeof setters / sizeof setters[0]; i++) {
        rocksdb_options_t* set = fresh_options();
        setters[i](set, 99);
        CHECK(rocksdb_open(set, path, &err) == NULL);
        REFUSED("does not take 99");
        /* A later valid number counts. */
        setters[i](set, 1);
        rocksdb_t* opened = rocksdb_open(set, path, &err);
        CHECK(err == NULL);
        rocksdb_close(opened);
        rocksdb_destroy_db(set, path, &err);
        CHECK(err == NULL);
        rocksdb_options_destroy(set);
    }
    const int codes[] = {0, 99};
    rocksdb_options_set_compression_per_level(base, codes, 2);
    CHECK(rocksdb_open(base, path, &err) == NULL);
    REFUSED("option compression_per_level does not take 99");

    /* The largest number of an unsigned type is shown as that. */
    rocksdb_options_t* largest = fresh_options();
    rocksdb_options_set_memtable_protection_bytes_per_key(largest, 0xffffffff);
    CHECK(rocksdb_open(largest, path, &err) == NULL);
    CHECK(strstr(err, "=-1") == NULL);
    REFUSED("memtable_protection_bytes_per_key=4294967295");
    rocksdb_options_destroy(largest);
    rocksdb_options_destroy(options);
    rocksdb_options_destroy(base);
}

/* WALs in another directory than the one that the options name are not lost. */
static void logs_elsewhere(const char* directory) {
    char path[1000], logs[1000], moved[1000];
    snprintf(path, sizeof path, "%s/apart", directory);
    snprintf(logs, sizeof logs, "%s/logs", directory);
    snprintf(moved, sizeof moved, "%s/moved", directory);
    rocksdb_options_t* options = fresh_options();
    rocksdb_options_t* without = rocksdb_options_create_copy(options);
    rocksdb_options_set_wal_dir(options, logs);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_put(db, wo, "k", 1, "v", 1, &err);
    CHECK(err == NULL);
    rocksdb_close(db);
    CHECK(rocksdb_open(without, path, &err) == NULL);
    CHECK(strstr(err, "Corruption") == NULL && strstr(err, logs) != NULL);
    REFUSED("OPTIONS names the directory");
    CHECK(rename(logs, moved) == 0);
    CHECK(rocksdb_open(options, path, &err) == NULL);
    CHECK(strstr(err, "Corruption") == NULL);
    REFUSED("there is no WAL here");
    CHECK(rocksdb_open_for_read_only(options, path, 0, &err) == NULL);
    CHECK(strstr(err, "Corruption") == NULL);
    REFUSED("there is no WAL here");
    rocksdb_options_set_wal_dir(options, moved);
    db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_close(db);
    rocksdb_options_destroy(without);
    rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    wo = rocksdb_writeoptions_create();
    ro = rocksdb_readoptions_create();
    fo = rocksdb_flushoptions_create();
    char path[1000];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    rocksdb_options_t* options = fresh_options();
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    families_of_others(arguments[1]);
    null_bytes(db);
    null_handles(db);
    empty_paths(db, arguments[1]);
    other_paths(arguments[1]);
    values(db, arguments[1]);
    logs_elsewhere(arguments[1]);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_flushoptions_destroy(fo);
    rocksdb_readoptions_destroy(ro);
    rocksdb_writeoptions_destroy(wo);
    puts("all is well");
    return 0;
}
