/* Column families: keys apart, with options of their own, written together.
 *
 *   cc families.c $(pkg-config --cflags --libs sateen_rocksdb) -o families
 *   ./families DIRECTORY
 */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>

static void stop_at(char* err) {
    if (err == NULL) return;
    fprintf(stderr, "%s\n", err);
    rocksdb_free(err);
    exit(1);
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    char* err = NULL;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);

    /* Small memtables for the family with few writes, zstd for the one with much data. */
    rocksdb_options_t* sessions = rocksdb_options_create_copy(options);
    rocksdb_options_set_write_buffer_size(sessions, 4 << 20);
    rocksdb_options_t* archive = rocksdb_options_create_copy(options);
    rocksdb_options_set_compression(archive, rocksdb_zstd_compression);

    /* An open must name all column families of the database. */
    const char* names[] = {"default", "sessions", "archive"};
    const rocksdb_options_t* each[] = {options, sessions, archive};
    rocksdb_column_family_handle_t* families[3];
    rocksdb_t* db =
        rocksdb_open_column_families(options, argv[1], 3, names, each, families, &err);
    stop_at(err);

    /* One batch moves a key from one family to another. */
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_put_cf(db, write, families[1], "ishmael", 7, "at sea", 6, &err);
    stop_at(err);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_delete_cf(batch, families[1], "ishmael", 7);
    rocksdb_writebatch_put_cf(batch, families[2], "ishmael", 7, "rescued", 7);
    rocksdb_write(db, write, batch, &err);
    stop_at(err);

    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    for (int i = 0; i < 3; i++) {
        size_t length = 0;
        char* value = rocksdb_get_cf(db, read, families[i], "ishmael", 7, &length, &err);
        stop_at(err);
        printf("%s: %.*s\n", names[i], value ? (int)length : 1, value ? value : "-");
        rocksdb_free(value);
    }
    rocksdb_drop_column_family(db, families[1], &err);
    stop_at(err);

    for (int i = 0; i < 3; i++) rocksdb_column_family_handle_destroy(families[i]);
    rocksdb_close(db);
    /* The names can be listed without opening the database. */
    size_t count = 0;
    char** list = rocksdb_list_column_families(options, argv[1], &count, &err);
    stop_at(err);
    printf("there are:");
    for (size_t i = 0; i < count; i++) printf(" %s", list[i]);
    printf("\n");
    rocksdb_list_column_families_destroy(list, count);

    rocksdb_readoptions_destroy(read);
    rocksdb_writebatch_destroy(batch);
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(archive);
    rocksdb_options_destroy(sessions);
    rocksdb_options_destroy(options);
    return 0;
}
