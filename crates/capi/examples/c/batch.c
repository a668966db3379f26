/* Several writes that happen together or not at all.
 *
 *   cc batch.c $(pkg-config --cflags --libs sateen_rocksdb) -o batch
 *   ./batch DIRECTORY
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
    rocksdb_t* db = rocksdb_open(options, argv[1], &err);
    stop_at(err);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();

    /* A transfer. No reader ever sees one half of it, not even after a crash. */
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "account/1", 9, "90", 2);
    rocksdb_writebatch_put(batch, "account/2", 9, "110", 3);
    rocksdb_writebatch_delete(batch, "transfer/7", 10);

    /* Writes after a save point can be removed before the batch is written. */
    rocksdb_writebatch_set_save_point(batch);
    rocksdb_writebatch_put(batch, "account/3", 9, "a mistake", 9);
    rocksdb_writebatch_rollback_to_save_point(batch, &err);
    stop_at(err);
    printf("writes: %d\n", rocksdb_writebatch_count(batch));
    rocksdb_write(db, write, batch, &err);
    stop_at(err);

    /* One small write deletes a range, whose end is excluded. A cleared batch can be used again. */
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_delete_range(batch, "account/", 8, "account/2", 9);
    rocksdb_write(db, write, batch, &err);
    stop_at(err);

    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    for (int i = 1; i <= 3; i++) {
        char key[] = {'a', 'c', 'c', 'o', 'u', 'n', 't', '/', (char)('0' + i)};
        size_t length = 0;
        char* value = rocksdb_get(db, read, key, sizeof key, &length, &err);
        stop_at(err);
        printf("account/%d: %.*s\n", i, value ? (int)length : 1, value ? value : "-");
        rocksdb_free(value);
    }

    rocksdb_readoptions_destroy(read);
    rocksdb_writebatch_destroy(batch);
    rocksdb_writeoptions_destroy(write);
    rocksdb_options_destroy(options);
    rocksdb_close(db);
    return 0;
}
