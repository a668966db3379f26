/* Keys in order: all that begin alike, backwards, and as they were at a moment.
 *
 *   cc iterate.c $(pkg-config --cflags --libs sateen_rocksdb) -o iterate
 *   ./iterate DIRECTORY
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

static void print(const rocksdb_iterator_t* iter) {
    size_t key_length, value_length;
    const char* key = rocksdb_iter_key(iter, &key_length);
    const char* value = rocksdb_iter_value(iter, &value_length);
    /* Both belong to the iterator and are valid until it moves. */
    printf(" %.*s=%.*s", (int)key_length, key, (int)value_length, value);
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    char* err = NULL;
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t* db = rocksdb_open(options, argv[1], &err);
    stop_at(err);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    const char* books[] = {"melville/moby-dick", "melville/typee", "thoreau/walden"};
    const char* years[] = {"1851", "1846", "1854"};
    for (int i = 0; i < 3; i++) {
        rocksdb_put(db, write, books[i], strlen(books[i]), years[i], 4, &err);
        stop_at(err);
    }
    const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
    rocksdb_put(db, write, "melville/pierre", 15, "1852", 4, &err);
    stop_at(err);

    /* Keys with a common prefix lie between two bounds, which spare reads. Bounds are not copied:
     * they must live as long as the iterator. */
    rocksdb_readoptions_t* melville = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_lower_bound(melville, "melville/", 9);
    rocksdb_readoptions_set_iterate_upper_bound(melville, "melville0", 9);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, melville);
    printf("now:");
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        print(iter);
    }
    /* An iterator that is not valid is at its end or has met an error. Ask which. */
    rocksdb_iter_get_error(iter, &err);
    stop_at(err);
    printf("\nbackwards:");
    for (rocksdb_iter_seek_to_last(iter); rocksdb_iter_valid(iter); rocksdb_iter_prev(iter)) {
        print(iter);
    }
    rocksdb_iter_get_error(iter, &err);
    stop_at(err);
    rocksdb_iter_destroy(iter);

    rocksdb_readoptions_set_snapshot(melville, snapshot);
    iter = rocksdb_create_iterator(db, melville);
    printf("\nbefore pierre:");
    for (rocksdb_iter_seek(iter, "melville/n", 10); rocksdb_iter_valid(iter);
         rocksdb_iter_next(iter)) {
        print(iter);
    }
    printf("\n");
    rocksdb_iter_get_error(iter, &err);
    stop_at(err);
    rocksdb_iter_destroy(iter);

    rocksdb_release_snapshot(db, snapshot);
    rocksdb_readoptions_destroy(melville);
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(options);
    rocksdb_close(db);
    return 0;
}
