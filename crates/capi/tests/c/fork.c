/* A forked child has copies of the program's databases. Closing one prints nothing and does not
 * affect the parent. */
#include "rocksdb/c.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, err ? err : ""); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static char* err = NULL;

static void ends_well(pid_t child) {
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[4096], lock[4200];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    snprintf(lock, sizeof lock, "%s/LOCK", path);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_enable_statistics(options);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    rocksdb_put(db, wo, "before", 6, "1", 1, &err);
    CHECK(err == NULL);

    /* The child closes the database, or ends without closing. */
    for (int way = 0; way < 2; way++) {
        pid_t child = fork();
        if (child == 0) {
            if (way == 0) rocksdb_close(db);
            exit(0);
        }
        ends_well(child);
    }
    /* Writing is refused, because the files belong to the parent. */
    pid_t child = fork();
    if (child == 0) {
        rocksdb_put(db, wo, "child", 5, "x", 1, &err);
        CHECK(err != NULL && strstr(err, "Shutdown in progress") != NULL);
        rocksdb_free(err);
        err = NULL;
        rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
        rocksdb_flush(db, fo, &err);
        CHECK(err != NULL);
        rocksdb_flushoptions_destroy(fo);
        rocksdb_close(db);
        rocksdb_close(db);
        _exit(0);
    }
    ends_well(child);

    /* The parent still has the lock. */
    int file = open(lock, O_RDWR);
    CHECK(file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK);
    close(file);
    rocksdb_put(db, wo, "after", 5, "2", 1, &err);
    CHECK(err == NULL);
    rocksdb_close(db);

    db = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    size_t length = 0;
    char* before = rocksdb_get(db, ro, "before", 6, &length, &err);
    char* after = rocksdb_get(db, ro, "after", 5, &length, &err);
    CHECK(before != NULL && after != NULL && err == NULL);
    CHECK(rocksdb_get(db, ro, "child", 5, &length, &err) == NULL);
    rocksdb_free(before);
    rocksdb_free(after);
    rocksdb_close(db);

    /* A child may open a database of its own. */
    child = fork();
    if (child == 0) {
        db = rocksdb_open(options, path, &err);
        CHECK(err == NULL);
        rocksdb_put(db, wo, "child", 5, "3", 1, &err);
        CHECK(err == NULL);
        rocksdb_close(db);
        _exit(0);
    }
    ends_well(child);
    rocksdb_options_destroy(options);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_readoptions_destroy(ro);
    puts("all is well");
    return 0;
}
