/* Makes databases with RocksDB and prints what RocksDB reads in them: column family, key and value
 * in hexadecimal, separated by tabs.
 *
 * rocksdb KIND DIRECTORY [KEYS]
 *
 * Each kind stores some of its writes in tables and leaves the rest in the WAL. */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char* err = NULL;

static void check(const char* what) {
  if (err) {
    fprintf(stderr, "%s: %s\n", what, err);
    exit(1);
  }
}

static const char* names[] = {"default", "users", "r\xc3\xa9sum\xc3\xa9s of \t all"};
static rocksdb_column_family_handle_t* families[3];
static int count = 1;
static rocksdb_t* db;
static rocksdb_options_t* options;

static void put(int family, const char* key, size_t key_size, const char* value, size_t size) {
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_put_cf(db, write, families[family], key, key_size, value, size, &err);
  check("put");
  rocksdb_writeoptions_destroy(write);
}

static void flush(void) {
  rocksdb_flushoptions_t* wait = rocksdb_flushoptions_create();
  rocksdb_flushoptions_set_wait(wait, 1);
  for (int i = 0; i < count; i++) rocksdb_flush_cf(db, wait, families[i], &err);
  check("flush");
  rocksdb_flushoptions_destroy(wait);
}

/* Keys of 16 bytes and values of 100 that barely compress. */
static void fill(int family, long keys, unsigned seed) {
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  unsigned long long state = seed;
  for (long i = 0; i < keys; i++) {
    char key[32], value[100];
    snprintf(key, sizeof key, "key%013ld", (i * 7919) % keys);
    for (int at = 0; at < 100; at++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value[at] = (char)(state >> 57);
    }
    rocksdb_writebatch_put_cf(batch, families[family], key, 16, value, sizeof value);
    if (i % 1000 == 999 || i + 1 == keys) {
      rocksdb_write(db, write, batch, &err);
      check("write");
      rocksdb_writebatch_clear(batch);
    }
  }
  rocksdb_writebatch_destroy(batch);
  rocksdb_writeoptions_destroy(write);
}

/* Deletions, ranges, overwritten and empty values, and every byte in keys. */
static void awkward(int family) {
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  for (int byte = 0; byte < 256; byte++) {
    char key[3] = {(char)byte, 0, (char)(255 - byte)};
    put(family, key, byte % 3 + 1, key, byte % 4 ? 3 : 0);
  }
  put(family, "", 0, "of the empty key", 16);
  put(family, "twice", 5, "first", 5);
  put(family, "gone", 4, "x", 1);
  for (char at = 'a'; at <= 'z'; at++) {
    char key[2] = {'r', at};
    put(family, key, 2, "in a range", 10);
  }
  flush();
  put(family, "twice", 5, "second", 6);
  rocksdb_delete_cf(db, write, families[family], "gone", 4, &err);
  rocksdb_delete_range_cf(db, write, families[family], "rc", 2, "rx", 2, &err);
  put(family, "rm", 2, "back again", 10);
  char* large = malloc(3000000);
  memset(large, 'v', 3000000);
  put(family, "large", 5, large, 3000000);
  free(large);
  check("awkward");
  rocksdb_writeoptions_destroy(write);
}

static int backwards(void* state, const char* a, size_t a_size, const char* b, size_t b_size) {
  (void)state;
  int order = memcmp(b, a, a_size < b_size ? a_size : b_size);
  return order ? order : (a_size < b_size) - (a_size > b_size);
}

static void nothing(void* state) { (void)state; }

static const char* name_of(void* state) { return state; }

static char* keep_last(void* state, const char* key, size_t key_size, const char* const* operands,
                       const size_t* sizes, int operand_count, unsigned char* success,
                       size_t* size) {
  (void)state, (void)key, (void)key_size;
  *success = 1;
  *size = sizes[operand_count - 1];
  char* value = malloc(*size + 1);
  memcpy(value, operands[operand_count - 1], *size);
  return value;
}

static char* keep_last_full(void* state, const char* key, size_t key_size, const char* existing,
                            size_t existing_size, const char* const* operands, const size_t* sizes,
                            int operand_count, unsigned char* success, size_t* size) {
  (void)existing, (void)existing_size;
  return keep_last(state, key, key_size, operands, sizes, operand_count, success, size);
}

static void open_database(const char* directory) {
  const rocksdb_options_t* each[] = {options, options, options};
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  db = rocksdb_open_column_families(options, directory, count, names, each, families, &err);
  check("open");
}

static void print_hex(const char* bytes, size_t size) {
  for (size_t i = 0; i < size; i++) printf("%02x", (unsigned char)bytes[i]);
}

static void print_all(void) {
  for (int i = 0; i < count; i++) {
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_total_order_seek(read, 1);
    rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(db, read, families[i]);
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
      size_t key_size, size;
      const char* key = rocksdb_iter_key(iter, &key_size);
      const char* value = rocksdb_iter_value(iter, &size);
      printf("%d\t", i);
      print_hex(key, key_size);
      printf("\t");
      print_hex(value, size);
      printf("\n");
    }
    rocksdb_iter_get_error(iter, &err);
    check("iterate");
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(read);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char *kind = argv[1], *directory = argv[2];
  long keys = argc > 3 ? atol(argv[3]) : 0;
  options = rocksdb_options_create();
  rocksdb_options_set_write_buffer_size(options, 4 << 20);
  int quiet = 0;
  if (!strcmp(kind, "families")) {
    count = 3;
    open_database(directory);
    fill(0, keys, 1);
    fill(1, keys / 2, 2);
    for (int i = 0; i < 3; i++) awkward(i);
  } else if (!strcmp(kind, "many")) {
    open_database(directory);
    fill(0, keys, 3);
    quiet = 1;
  } else if (!strcmp(kind, "adds") || !strncmp(kind, "own-merge", 9)) {
    if (kind[0] == 'a') {
      rocksdb_options_set_uint64add_merge_operator(options);
    } else {
      rocksdb_options_set_merge_operator(
          options, rocksdb_mergeoperator_create((void*)"own.Last", nothing, keep_last_full,
                                                keep_last, NULL, name_of));
    }
    open_database(directory);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    for (int i = 0; i < 10; i++) {
      if (i == 5) flush();
      rocksdb_merge(db, write, "sum", 3, "\1\0\0\0\0\0\0", 8, &err);
      put(0, "other", 5, "value", 5);
    }
    check("merge");
    if (!strcmp(kind, "own-merge-compacted")) {
      rocksdb_compactoptions_t* all = rocksdb_compactoptions_create();
      rocksdb_compactoptions_set_bottommost_level_compaction(all, 2);
      rocksdb_compact_range_cf_opt(db, families[0], all, NULL, 0, NULL, 0);
      rocksdb_compactoptions_destroy(all);
    }
    rocksdb_writeoptions_destroy(write);
  } else if (!strcmp(kind, "own-order")) {
    rocksdb_options_set_comparator(
        options, rocksdb_comparator_create((void*)"own.Backwards", nothing, backwards, name_of));
    open_database(directory);
    fill(0, 10, 4);
  } else if (!strcmp(kind, "blobs")) {
    rocksdb_options_set_enable_blob_files(options, 1);
    rocksdb_options_set_min_blob_size(options, 16);
    open_database(directory);
    fill(0, keys, 5);
    awkward(0);
  } else if (!strcmp(kind, "prefixes")) {
    rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_fixed_prefix(2));
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 0.1);
    rocksdb_options_set_plain_table_factory(options, 0, 10, 0.75, 16, 0, 0, 0, 0);
    rocksdb_options_set_allow_mmap_reads(options, 1);
    open_database(directory);
    fill(0, keys, 6);
    flush();
    put(0, "zz more", 7, "in the log", 10);
  } else if (!strcmp(kind, "logs-elsewhere")) {
    char logs[4096];
    snprintf(logs, sizeof logs, "%s.logs", directory);
    rocksdb_options_set_wal_dir(options, logs);
    open_database(directory);
    fill(0, keys, 7);
  } else if (!strcmp(kind, "open")) {
    open_database(directory);
    printf("open\n");
    fflush(stdout);
    getchar();
    quiet = 1;
  } else {
    return 2;
  }
  if (!quiet) print_all();
  for (int i = 0; i < count; i++) rocksdb_column_family_handle_destroy(families[i]);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  return 0;
}
