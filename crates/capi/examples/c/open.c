/* Open a database, put, get and delete a key, and look at errors.
 *
 *   cc open.c $(pkg-config --cflags --libs sateen_rocksdb) -o open
 *   ./open DIRECTORY
 */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every call that can fail takes the address of a text, and sets the text if it fails. */
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

    /* With sync a write survives power loss once the call returns. Without sync it survives the
     * end of the process. */
    rocksdb_writeoptions_t* durable = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(durable, 1);
    rocksdb_put(db, durable, "walden", 6, "Thoreau, 1854", 13, &err);
    stop_at(err);

    /* The caller frees the result of get. Null without an error means that the key does not
     * exist. */
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    size_t length = 0;
    char* value = rocksdb_get(db, read, "walden", 6, &length, &err);
    stop_at(err);
    printf("walden: %.*s\n", (int)length, value);
    rocksdb_free(value);

    rocksdb_delete(db, durable, "walden", 6, &err);
    stop_at(err);
    value = rocksdb_get(db, read, "walden", 6, &length, &err);
    stop_at(err);
    printf("walden: %s\n", value == NULL ? "not there" : "still there");

    /* A second handle is refused, and the error says so. */
    rocksdb_t* second = rocksdb_open(options, argv[1], &err);
    printf("a second open: %s\n", second == NULL && err != NULL ? "refused" : "?");
    rocksdb_free(err);

    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(durable);
    rocksdb_options_destroy(options);
    rocksdb_close(db);
    return 0;
}
