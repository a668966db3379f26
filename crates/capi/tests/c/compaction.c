/* Compaction filters of all kinds. */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, err ? err : "no error"); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

static char* err = NULL;

static void check_get(rocksdb_t* db, const char* key, const char* expected) {
    rocksdb_readoptions_t* options = rocksdb_readoptions_create();
    size_t length = 77;
    char* value = rocksdb_get(db, options, key, strlen(key), &length, &err);
    CHECK(err == NULL);
    CHECK((value == NULL) == (expected == NULL));
    CHECK(length == (expected ? strlen(expected) : 0));
    CHECK(expected == NULL || memcmp(value, expected, length) == 0);
    rocksdb_free(value);
    rocksdb_readoptions_destroy(options);
}

static void put(rocksdb_t* db, const char* key, const char* value) {
    rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
    rocksdb_put(db, options, key, strlen(key), value, strlen(value), &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_destroy(options);
}

static rocksdb_options_t* fresh_options(void) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    return options;
}

/* The state of a filter: how many filters are alive, and how often they were asked. */
typedef struct { int alive, asked, full, manual; } counts;

static void gone(void* state) { ((counts*)state)->alive -= 1; }
static const char* filter_name(void* state) { (void)state; return "marks"; }

/* `-` is removed; `?` becomes `!`. */
static unsigned char by_mark(void* state, int level, const char* key, size_t key_length,
                             const char* value, size_t length, char** new_value,
                             size_t* new_length, unsigned char* changed) {
    static char answer[] = "!";
    (void)key;
    CHECK(level >= 0 && key_length > 0);
    ((counts*)state)->asked += 1;
    if (length == 1 && value[0] == '?') {
        *new_value = answer;
        *new_length = 1;
        *changed = 1;
    }
    return length == 1 && value[0] == '-';
}

static rocksdb_compactionfilter_t* make(void* state, rocksdb_compactionfiltercontext_t* context) {
    counts* counted = state;
    counted->full += rocksdb_compactionfiltercontext_is_full_compaction(context);
    counted->manual += rocksdb_compactionfiltercontext_is_manual_compaction(context);
    counted->alive += 1;
    return rocksdb_compactionfilter_create(state, gone, by_mark, filter_name);
}

static rocksdb_compactionfilter_t* make_none(void* state,
                                             rocksdb_compactionfiltercontext_t* context) {
    (void)state;
    (void)context;
    return NULL;
}

static void fill_and_compact(rocksdb_t* db) {
    put(db, "goes", "-");
    put(db, "changes", "?");
    put(db, "stays", "=");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
}

static void check_filtered(rocksdb_t* db) {
    check_get(db, "goes", NULL);
    check_get(db, "changes", "!");
    check_get(db, "stays", "=");
}

static void filters(const char* directory) {
    char path[1000];
    snprintf(path, sizeof path, "%s/filter", directory);
    counts counted = {1, 0, 0, 0};
    rocksdb_options_t* options = fresh_options();
    rocksdb_compactionfilter_t* filter =
        rocksdb_compactionfilter_create(&counted, gone, by_mark, filter_name);
    rocksdb_compactionfilter_set_ignore_snapshots(filter, 1);
    rocksdb_options_set_compaction_filter(options, filter);
    rocksdb_t* db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    fill_and_compact(db);
    check_filtered(db);
    CHECK(counted.asked >= 3);
    rocksdb_compactionfilter_destroy(filter);
    CHECK(counted.alive == 1); /* the database has it */
    rocksdb_options_destroy(options);
    rocksdb_close(db);
    CHECK(counted.alive == 0);

    snprintf(path, sizeof path, "%s/factory", directory);
    counts made = {1, 0, 0, 0};
    options = fresh_options();
    rocksdb_options_set_compaction_filter_factory(
        options, rocksdb_compactionfilterfactory_create(&made, gone, make, filter_name));
    db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    fill_and_compact(db);
    check_filtered(db);
    CHECK(made.asked >= 3 && made.full >= 1 && made.manual >= 1);
    CHECK(made.alive == 1); /* the factory itself */
    rocksdb_options_set_compaction_filter_factory(options, NULL);
    rocksdb_close(db);
    CHECK(made.alive == 0);
    rocksdb_options_set_compaction_filter_factory(
        options, rocksdb_compactionfilterfactory_create(NULL, NULL, make_none, NULL));
    db = rocksdb_open(options, path, &err);
    CHECK(db != NULL && err == NULL);
    put(db, "goes", "-");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    check_get(db, "goes", "-");
    rocksdb_close(db);
    rocksdb_options_destroy(options);

    made.alive = 1;
    rocksdb_compactionfilterfactory_destroy(
        rocksdb_compactionfilterfactory_create(&made, gone, make, filter_name));
    CHECK(made.alive == 0);
    rocksdb_compactionfilterfactory_destroy(NULL);
    rocksdb_compactionfilter_destroy(NULL);
    CHECK(rocksdb_compactionfiltercontext_is_full_compaction(NULL) == 0);
    CHECK(rocksdb_compactionfiltercontext_is_manual_compaction(NULL) == 0);
}

static void times(const char* directory) {
    char path[1000];
    snprintf(path, sizeof path, "%s/times", directory);
    rocksdb_options_t* options = fresh_options();
    rocksdb_t* db = rocksdb_open_with_ttl(options, path, 1000, &err);
    CHECK(db != NULL && err == NULL);
    put(db, "key", "value");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    check_get(db, "key", "value");
    rocksdb_column_family_handle_t* family =
        rocksdb_create_column_family_with_ttl(db, options, "brief", 1, &err);
    CHECK(family != NULL && err == NULL);
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);

    const char* names[] = {"default", "brief"};
    const rocksdb_options_t* each[] = {options, options};
    const int ttls[] = {-1, 5};
    rocksdb_column_family_handle_t* handles[2];
    db = rocksdb_open_column_families_with_ttl(options, path, 2, names, each, handles, ttls, &err);
    CHECK(db != NULL && err == NULL);
    check_get(db, "key", "value");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    check_get(db, "key", "value");
    rocksdb_column_family_handle_destroy(handles[0]);
    rocksdb_column_family_handle_destroy(handles[1]);
    rocksdb_close(db);

    /* An open without a time to live takes the form in which values are stored. */
    db = rocksdb_open_for_read_only(options, path, 0, &err);
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    size_t length;
    unsigned char* value = (unsigned char*)rocksdb_get(db, ro, "key", 3, &length, &err);
    CHECK(value != NULL && length == 5 && memcmp(value, "value", 5) == 0);
    rocksdb_free(value);
    rocksdb_readoptions_destroy(ro);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    db = rocksdb_open_with_ttl(NULL, path, 1, &err);
    CHECK(db == NULL && err != NULL);
    rocksdb_free(err);
    err = NULL;
}

/* As in RocksDB, an expired value is visible until it is compacted. An option hides it. */
static void expired(const char* directory) {
    char path[1000];
    snprintf(path, sizeof path, "%s/expired", directory);
    rocksdb_options_t* options = fresh_options();
    rocksdb_options_t* hiding = rocksdb_options_create();
    rocksdb_get_options_from_string(options, "sateen.ttl_hide_expired=true", hiding, &err);
    CHECK(err == NULL);
    rocksdb_t* db = rocksdb_open_with_ttl(options, path, 1, &err);
    CHECK(db != NULL && err == NULL);
    put(db, "key", "value");
    rocksdb_close(db);

    db = rocksdb_open_with_ttl(hiding, path, 1, &err);
    CHECK(db != NULL && err == NULL);
    rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
    const time_t start = time(NULL);
    size_t length;
    char* value;
    while ((value = rocksdb_get(db, ro, "key", 3, &length, &err)) != NULL) {
        rocksdb_free(value);
        CHECK(time(NULL) < start + 60);
    }
    CHECK(err == NULL);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
    rocksdb_iter_seek_to_first(iter);
    CHECK(!rocksdb_iter_valid(iter));
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(ro);
    rocksdb_close(db);

    db = rocksdb_open_with_ttl(options, path, 1, &err);
    CHECK(db != NULL && err == NULL);
    check_get(db, "key", "value");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    check_get(db, "key", NULL);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_options_destroy(hiding);
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    filters(argv[1]);
    times(argv[1]);
    expired(argv[1]);
    puts("all is well");
    return 0;
}
