/* Makes a database with LevelDB and prints what LevelDB reads in it, as rocksdb.c does.
 *
 * leveldb KIND DIRECTORY KEYS
 *
 * The functions are declared here, so that the program needs the library alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void handle;
handle* leveldb_options_create(void);
void leveldb_options_set_create_if_missing(handle*, unsigned char);
void leveldb_options_set_write_buffer_size(handle*, size_t);
void leveldb_options_set_comparator(handle*, handle*);
handle* leveldb_comparator_create(void*, void (*)(void*),
                                  int (*)(void*, const char*, size_t, const char*, size_t),
                                  const char* (*)(void*));
handle* leveldb_open(const handle*, const char*, char**);
void leveldb_close(handle*);
handle* leveldb_writeoptions_create(void);
handle* leveldb_readoptions_create(void);
void leveldb_put(handle*, const handle*, const char*, size_t, const char*, size_t, char**);
void leveldb_delete(handle*, const handle*, const char*, size_t, char**);
handle* leveldb_create_iterator(handle*, const handle*);
void leveldb_iter_seek_to_first(handle*);
unsigned char leveldb_iter_valid(const handle*);
void leveldb_iter_next(handle*);
const char* leveldb_iter_key(const handle*, size_t*);
const char* leveldb_iter_value(const handle*, size_t*);
void leveldb_iter_get_error(const handle*, char**);
void leveldb_iter_destroy(handle*);

static char* err = NULL;

static void check(const char* what) {
  if (err) {
    fprintf(stderr, "%s: %s\n", what, err);
    exit(1);
  }
}

static int backwards(void* state, const char* a, size_t a_size, const char* b, size_t b_size) {
  (void)state;
  int order = memcmp(b, a, a_size < b_size ? a_size : b_size);
  return order ? order : (a_size < b_size) - (a_size > b_size);
}

static void nothing(void* state) { (void)state; }

static const char* name_of(void* state) { return state; }

static void print_hex(const char* bytes, size_t size) {
  for (size_t i = 0; i < size; i++) printf("%02x", (unsigned char)bytes[i]);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  long keys = atol(argv[3]);
  handle* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_write_buffer_size(options, 256 << 10);
  if (!strcmp(argv[1], "own-order")) {
    char name[] = "own.Backwards";
    leveldb_options_set_comparator(options,
                                   leveldb_comparator_create(name, nothing, backwards, name_of));
  }
  handle* db = leveldb_open(options, argv[2], &err);
  check("open");
  handle* write = leveldb_writeoptions_create();
  unsigned long long state = 9;
  for (long i = 0; i < keys; i++) {
    char key[32], value[100];
    snprintf(key, sizeof key, "key%013ld", (i * 7919) % keys);
    for (int at = 0; at < 100; at++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value[at] = (char)(state >> 57);
    }
    leveldb_put(db, write, key, 16, value, i % 5 ? sizeof value : 0, &err);
    if (i % 7 == 0) leveldb_delete(db, write, key, 16, &err);
  }
  for (int byte = 0; byte < 256; byte++) {
    char key[3] = {(char)byte, 0, (char)(255 - byte)};
    leveldb_put(db, write, key, byte % 3 + 1, key, byte % 4 ? 3 : 0, &err);
  }
  check("put");
  if (!strcmp(argv[1], "open")) {
    printf("open\n");
    fflush(stdout);
    getchar();
    leveldb_close(db);
    return 0;
  }
  handle* iter = leveldb_create_iterator(db, leveldb_readoptions_create());
  for (leveldb_iter_seek_to_first(iter); leveldb_iter_valid(iter); leveldb_iter_next(iter)) {
    size_t key_size, size;
    const char* key = leveldb_iter_key(iter, &key_size);
    const char* value = leveldb_iter_value(iter, &size);
    printf("0\t");
    print_hex(key, key_size);
    printf("\t");
    print_hex(value, size);
    printf("\n");
  }
  leveldb_iter_get_error(iter, &err);
  check("iterate");
  leveldb_iter_destroy(iter);
  leveldb_close(db);
  return 0;
}
