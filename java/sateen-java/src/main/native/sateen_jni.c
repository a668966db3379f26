/* The native methods of the class sateen.Jni. Each calls one function of rocksdb/c.h.
 *
 * Handles are addresses in a jlong. Arrays are copied: a call may read the disk, and an array that is
 * lent to native code would keep the garbage collector waiting. Small copies are on the stack. */
#include <jni.h>
#include <stdlib.h>
#include <string.h>

#include <rocksdb/c.h>

#define NATIVE(type, name, ...) \
    JNIEXPORT type JNICALL Java_sateen_Jni_##name(JNIEnv* env, jclass self, ##__VA_ARGS__)
#define TO(type, handle) ((type*)(intptr_t)(handle))
#define FROM(pointer) ((jlong)(intptr_t)(pointer))

/* Bytes of an array: on the stack if they are few. Ends with a zero byte. */
typedef struct {
    char* data;
    size_t length;
    char few[512];
} bytes_t;

static void throw_out_of_memory(JNIEnv* env) {
    jclass class = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
    if (class != NULL) (*env)->ThrowNew(env, class, "native memory");
}

/* Copies a part of an array. Returns 0 with an exception pending if there is no memory. */
static int copy_part(JNIEnv* env, bytes_t* into, jbyteArray array, jint from, jint length) {
    into->length = (size_t)length;
    into->data = length < (jint)sizeof into->few ? into->few : malloc((size_t)length + 1);
    if (into->data == NULL) {
        throw_out_of_memory(env);
        return 0;
    }
    (*env)->GetByteArrayRegion(env, array, from, length, (jbyte*)into->data);
    if ((*env)->ExceptionCheck(env)) {
        if (into->data != into->few) free(into->data);
        return 0;
    }
    into->data[length] = 0;
    return 1;
}

/* Copies an array; a null array has null data. */
static int copy(JNIEnv* env, bytes_t* into, jbyteArray array) {
    if (array == NULL) {
        into->data = NULL;
        into->length = 0;
        return 1;
    }
    return copy_part(env, into, array, 0, (*env)->GetArrayLength(env, array));
}

static void drop(bytes_t* bytes) {
    if (bytes->data != bytes->few) free(bytes->data);
}

static jbyteArray array_of(JNIEnv* env, const char* data, size_t length) {
    if (length > 0x7ffffff0) {
        throw_out_of_memory(env);
        return NULL;
    }
    jbyteArray array = (*env)->NewByteArray(env, (jsize)length);
    if (array != NULL) (*env)->SetByteArrayRegion(env, array, 0, (jsize)length, (const jbyte*)data);
    return array;
}

/* Throws the error of a call and frees its text. Returns whether there was one. */
static int failed(JNIEnv* env, char* error) {
    if (error == NULL) return 0;
    jbyteArray text = array_of(env, error, strlen(error));
    rocksdb_free(error);
    jclass class = text == NULL ? NULL : (*env)->FindClass(env, "sateen/Jni");
    jmethodID make = class == NULL ? NULL : (*env)->GetStaticMethodID(env, class, "error",
        "([B)Lsateen/SateenException;");
    jthrowable thrown = make == NULL ? NULL : (*env)->CallStaticObjectMethod(env, class, make, text);
    if (thrown != NULL) (*env)->Throw(env, thrown);
    return 1;
}

static jbyteArray owned_text(JNIEnv* env, char* text) {
    if (text == NULL) return NULL;
    jbyteArray array = array_of(env, text, strlen(text));
    rocksdb_free(text);
    return array;
}

static char* address(JNIEnv* env, jobject buffer, jint at) {
    return (char*)(*env)->GetDirectBufferAddress(env, buffer) + at;
}

/* Options and shared objects. */

NATIVE(jlong, options0, jbyteArray text, jint flags, jlong cache, jlong buffers,
    jlong environment) {
    bytes_t list;
    if (!copy(env, &list, text)) return 0;
    char* error = NULL;
    rocksdb_options_t* base = rocksdb_options_create();
    rocksdb_options_t* options = rocksdb_options_create();
    if (cache != 0) {
        rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
        rocksdb_block_based_options_set_block_cache(table, TO(rocksdb_cache_t, cache));
        rocksdb_options_set_block_based_table_factory(base, table);
        rocksdb_block_based_options_destroy(table);
    }
    if (buffers != 0) {
        rocksdb_options_set_write_buffer_manager(base, TO(rocksdb_write_buffer_manager_t, buffers));
    }
    if (environment != 0) rocksdb_options_set_env(base, TO(rocksdb_env_t, environment));
    if (flags & 2) rocksdb_options_enable_statistics(base);
    if (flags & 1) rocksdb_options_set_uint64add_merge_operator(base);
    rocksdb_get_options_from_string(base, list.data, options, &error);
    drop(&list);
    rocksdb_options_destroy(base);
    if (failed(env, error)) {
        rocksdb_options_destroy(options);
        return 0;
    }
    return FROM(options);
}

NATIVE(void, freeOptions0, jlong options) { rocksdb_options_destroy(TO(rocksdb_options_t, options)); }

NATIVE(jlong, cache0, jlong bytes) { return FROM(rocksdb_cache_create_lru((size_t)bytes)); }

NATIVE(jlong, cacheUsage0, jlong cache) {
    return (jlong)rocksdb_cache_get_usage(TO(rocksdb_cache_t, cache));
}

NATIVE(void, freeCache0, jlong cache) { rocksdb_cache_destroy(TO(rocksdb_cache_t, cache)); }

NATIVE(jlong, writeBuffers0, jlong bytes, jlong cache) {
    return FROM(cache == 0 ? rocksdb_write_buffer_manager_create((size_t)bytes, false)
        : rocksdb_write_buffer_manager_create_with_cache((size_t)bytes, TO(rocksdb_cache_t, cache), false));
}

NATIVE(jlong, writeBuffersUsage0, jlong buffers) {
    return (jlong)rocksdb_write_buffer_manager_memory_usage(TO(rocksdb_write_buffer_manager_t, buffers));
}

NATIVE(void, freeWriteBuffers0, jlong buffers) {
    rocksdb_write_buffer_manager_destroy(TO(rocksdb_write_buffer_manager_t, buffers));
}

NATIVE(jlong, environment0, jint threads) {
    rocksdb_env_t* made = rocksdb_create_default_env();
    if (threads > 0) rocksdb_env_set_background_threads(made, threads);
    return FROM(made);
}

NATIVE(void, freeEnvironment0, jlong environment) { rocksdb_env_destroy(TO(rocksdb_env_t, environment)); }

NATIVE(jlong, writeOptions0, jint bits) {
    rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(options, (bits & 1) != 0);
    rocksdb_writeoptions_disable_WAL(options, (bits & 2) != 0);
    rocksdb_writeoptions_set_no_slowdown(options, (bits & 4) != 0);
    rocksdb_writeoptions_set_low_pri(options, (bits & 8) != 0);
    return FROM(options);
}

NATIVE(jlong, readOptions0, jlong snapshot, jbyteArray lower, jbyteArray upper, jboolean fill) {
    bytes_t first, last;
    if (!copy(env, &first, lower)) return 0;
    if (!copy(env, &last, upper)) {
        drop(&first);
        return 0;
    }
    rocksdb_readoptions_t* options = rocksdb_readoptions_create();
    if (snapshot != 0) rocksdb_readoptions_set_snapshot(options, TO(rocksdb_snapshot_t, snapshot));
    if (lower != NULL) rocksdb_readoptions_set_iterate_lower_bound(options, first.data, first.length);
    if (upper != NULL) rocksdb_readoptions_set_iterate_upper_bound(options, last.data, last.length);
    rocksdb_readoptions_set_fill_cache(options, fill);
    drop(&first);
    drop(&last);
    return FROM(options);
}

NATIVE(void, freeReadOptions0, jlong options) {
    rocksdb_readoptions_destroy(TO(rocksdb_readoptions_t, options));
}

/* Databases and column families. */

NATIVE(jlongArray, open0, jbyteArray path, jlong options, jobjectArray families, jboolean read_only) {
    jint count = (*env)->GetArrayLength(env, families);
    bytes_t file;
    if (!copy(env, &file, path)) return NULL;
    bytes_t* copies = calloc((size_t)count, sizeof *copies);
    const char** names = calloc((size_t)count, sizeof *names);
    const rocksdb_options_t** each = calloc((size_t)count, sizeof *each);
    rocksdb_column_family_handle_t** handles = calloc((size_t)count, sizeof *handles);
    jlong* result = calloc((size_t)count + 1, sizeof *result);
    jlongArray opened = NULL;
    jint copied = 0;
    if (copies == NULL || names == NULL || each == NULL || handles == NULL || result == NULL) {
        throw_out_of_memory(env);
        goto end;
    }
    for (; copied < count; copied++) {
        jbyteArray name = (*env)->GetObjectArrayElement(env, families, copied);
        if (!copy(env, &copies[copied], name)) goto end;
        (*env)->DeleteLocalRef(env, name);
        names[copied] = copies[copied].data;
        each[copied] = TO(rocksdb_options_t, options);
    }
    char* error = NULL;
    rocksdb_t* db = read_only
        ? rocksdb_open_for_read_only_column_families(each[0], file.data, count, names, each, handles, 0, &error)
        : rocksdb_open_column_families(each[0], file.data, count, names, each, handles, &error);
    if (failed(env, error)) goto end;
    result[0] = FROM(db);
    for (jint nth = 0; nth < count; nth++) result[nth + 1] = FROM(handles[nth]);
    opened = (*env)->NewLongArray(env, count + 1);
    if (opened != NULL) (*env)->SetLongArrayRegion(env, opened, 0, count + 1, result);
    else rocksdb_close(db);
end:
    for (jint nth = 0; nth < copied; nth++) drop(&copies[nth]);
    free(copies);
    free(names);
    free(each);
    free(handles);
    free(result);
    drop(&file);
    return opened;
}

NATIVE(void, close0, jlong db) { rocksdb_close(TO(rocksdb_t, db)); }

NATIVE(void, destroy0, jbyteArray path, jlong options) {
    bytes_t file;
    if (!copy(env, &file, path)) return;
    char* error = NULL;
    rocksdb_destroy_db(TO(rocksdb_options_t, options), file.data, &error);
    drop(&file);
    failed(env, error);
}

NATIVE(jobjectArray, listFamilies0, jbyteArray path, jlong options) {
    bytes_t file;
    if (!copy(env, &file, path)) return NULL;
    char* error = NULL;
    size_t count = 0;
    char** list = rocksdb_list_column_families(TO(rocksdb_options_t, options), file.data, &count, &error);
    drop(&file);
    if (failed(env, error)) return NULL;
    jobjectArray names = (*env)->NewObjectArray(env, (jsize)count, (*env)->FindClass(env, "[B"), NULL);
    for (size_t nth = 0; names != NULL && nth < count; nth++) {
        jbyteArray name = array_of(env, list[nth], strlen(list[nth]));
        if (name == NULL) break;
        (*env)->SetObjectArrayElement(env, names, (jsize)nth, name);
        (*env)->DeleteLocalRef(env, name);
    }
    rocksdb_list_column_families_destroy(list, count);
    return names;
}

NATIVE(jlong, createFamily0, jlong db, jlong options, jbyteArray name) {
    bytes_t named;
    if (!copy(env, &named, name)) return 0;
    char* error = NULL;
    rocksdb_column_family_handle_t* family =
        rocksdb_create_column_family(TO(rocksdb_t, db), TO(rocksdb_options_t, options), named.data, &error);
    drop(&named);
    return failed(env, error) ? 0 : FROM(family);
}

NATIVE(void, dropFamily0, jlong db, jlong family) {
    char* error = NULL;
    rocksdb_drop_column_family(TO(rocksdb_t, db), TO(rocksdb_column_family_handle_t, family), &error);
    failed(env, error);
}

NATIVE(void, freeFamily0, jlong family) {
    rocksdb_column_family_handle_destroy(TO(rocksdb_column_family_handle_t, family));
}

NATIVE(void, flush0, jlong db, jlong family) {
    char* error = NULL;
    rocksdb_flushoptions_t* options = rocksdb_flushoptions_create();
    rocksdb_flush_cf(TO(rocksdb_t, db), options, TO(rocksdb_column_family_handle_t, family), &error);
    rocksdb_flushoptions_destroy(options);
    failed(env, error);
}

NATIVE(void, flushWal0, jlong db, jboolean sync) {
    char* error = NULL;
    rocksdb_flush_wal(TO(rocksdb_t, db), sync, &error);
    failed(env, error);
}

NATIVE(void, compact0, jlong db, jlong family, jbyteArray from, jbyteArray to) {
    bytes_t first, last;
    if (!copy(env, &first, from)) return;
    if (!copy(env, &last, to)) {
        drop(&first);
        return;
    }
    rocksdb_compact_range_cf(TO(rocksdb_t, db), TO(rocksdb_column_family_handle_t, family), first.data,
        first.length, last.data, last.length);
    drop(&first);
    drop(&last);
}

NATIVE(jbyteArray, property0, jlong db, jlong family, jbyteArray name) {
    bytes_t named;
    if (!copy(env, &named, name)) return NULL;
    char* text = rocksdb_property_value_cf(TO(rocksdb_t, db), TO(rocksdb_column_family_handle_t, family),
        named.data);
    drop(&named);
    return owned_text(env, text);
}

NATIVE(void, setOption0, jlong db, jlong family, jbyteArray name, jbyteArray value) {
    bytes_t named, given;
    if (!copy(env, &named, name)) return;
    if (!copy(env, &given, value)) {
        drop(&named);
        return;
    }
    char* error = NULL;
    const char* names[] = {named.data};
    const char* values[] = {given.data};
    rocksdb_set_options_cf(TO(rocksdb_t, db), TO(rocksdb_column_family_handle_t, family), 1, names, values,
        &error);
    drop(&named);
    drop(&given);
    failed(env, error);
}

NATIVE(jbyteArray, statistics0, jlong options) {
    return owned_text(env, rocksdb_options_statistics_get_string(TO(rocksdb_options_t, options)));
}

NATIVE(jdoubleArray, histogram0, jlong options, jint kind) {
    rocksdb_statistics_histogram_data_t* data = rocksdb_statistics_histogram_data_create();
    rocksdb_options_statistics_get_histogram_data(TO(rocksdb_options_t, options), (uint32_t)kind,
        data);
    const jdouble all[] = {
        (jdouble)rocksdb_statistics_histogram_data_get_count(data),
        (jdouble)rocksdb_statistics_histogram_data_get_sum(data),
        rocksdb_statistics_histogram_data_get_min(data),
        rocksdb_statistics_histogram_data_get_max(data),
        rocksdb_statistics_histogram_data_get_average(data),
        rocksdb_statistics_histogram_data_get_median(data),
        rocksdb_statistics_histogram_data_get_p95(data),
        rocksdb_statistics_histogram_data_get_p99(data),
    };
    rocksdb_statistics_histogram_data_destroy(data);
    const jsize count = sizeof all / sizeof all[0];
    jdoubleArray made = (*env)->NewDoubleArray(env, count);
    if (made != NULL) (*env)->SetDoubleArrayRegion(env, made, 0, count, all);
    return made;
}

NATIVE(jlong, sequence0, jlong db) { return (jlong)rocksdb_get_latest_sequence_number(TO(rocksdb_t, db)); }

NATIVE(void, checkpoint0, jlong db, jbyteArray path) {
    bytes_t file;
    if (!copy(env, &file, path)) return;
    char* error = NULL;
    rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(TO(rocksdb_t, db), &error);
    if (error == NULL) {
        rocksdb_checkpoint_create(checkpoint, file.data, 0, &error);
        rocksdb_checkpoint_object_destroy(checkpoint);
    }
    drop(&file);
    failed(env, error);
}

/* Reads and writes. */

static rocksdb_pinnableslice_t* find(JNIEnv* env, jlong db, jlong options, jlong family, jbyteArray key,
        jint from, jint length) {
    bytes_t wanted;
    if (!copy_part(env, &wanted, key, from, length)) return NULL;
    char* error = NULL;
    rocksdb_pinnableslice_t* found = rocksdb_get_pinned_cf(TO(rocksdb_t, db),
        TO(rocksdb_readoptions_t, options), TO(rocksdb_column_family_handle_t, family), wanted.data,
        wanted.length, &error);
    drop(&wanted);
    if (failed(env, error)) {
        if (found != NULL) rocksdb_pinnableslice_destroy(found);
        return NULL;
    }
    return found;
}

NATIVE(jbyteArray, get0, jlong db, jlong options, jlong family, jbyteArray key, jint from, jint length) {
    rocksdb_pinnableslice_t* found = find(env, db, options, family, key, from, length);
    if (found == NULL) return NULL;
    size_t size = 0;
    const char* value = rocksdb_pinnableslice_value(found, &size);
    jbyteArray array = value == NULL ? NULL : array_of(env, value, size);
    rocksdb_pinnableslice_destroy(found);
    return array;
}

NATIVE(jint, getInto0, jlong db, jlong options, jlong family, jbyteArray key, jint from, jint length,
        jbyteArray into, jint at, jint room) {
    rocksdb_pinnableslice_t* found = find(env, db, options, family, key, from, length);
    if (found == NULL) return -1;
    size_t size = 0;
    const char* value = rocksdb_pinnableslice_value(found, &size);
    if (value != NULL && size <= (size_t)room) {
        (*env)->SetByteArrayRegion(env, into, at, (jsize)size, (const jbyte*)value);
    }
    rocksdb_pinnableslice_destroy(found);
    return value == NULL ? -1 : (jint)size;
}

NATIVE(jint, getBuffer0, jlong db, jlong options, jlong family, jobject key, jint key_at, jint key_room,
        jobject into, jint into_at, jint into_room) {
    char* error = NULL;
    size_t size = 0;
    unsigned char found = 0;
    rocksdb_get_into_buffer_cf(TO(rocksdb_t, db), TO(rocksdb_readoptions_t, options),
        TO(rocksdb_column_family_handle_t, family), address(env, key, key_at), (size_t)key_room,
        address(env, into, into_at), (size_t)into_room, &size, &found, &error);
    return failed(env, error) || !found ? -1 : (jint)size;
}

/* A write with a key and a value, by the function `call`. */
#define WRITE(call)                                                                                     \
    bytes_t k, v;                                                                                       \
    if (!copy_part(env, &k, key, key_from, key_length)) return;                                         \
    if (!copy_part(env, &v, value, value_from, value_length)) {                                         \
        drop(&k);                                                                                       \
        return;                                                                                         \
    }                                                                                                   \
    call;                                                                                               \
    drop(&k);                                                                                           \
    drop(&v)

NATIVE(void, put0, jlong db, jlong options, jlong family, jbyteArray key, jint key_from, jint key_length,
        jbyteArray value, jint value_from, jint value_length) {
    char* error = NULL;
    WRITE(rocksdb_put_cf(TO(rocksdb_t, db), TO(rocksdb_writeoptions_t, options),
        TO(rocksdb_column_family_handle_t, family), k.data, k.length, v.data, v.length, &error));
    failed(env, error);
}

NATIVE(void, putBuffer0, jlong db, jlong options, jlong family, jobject key, jint key_at, jint key_room,
        jobject value, jint value_at, jint value_room) {
    char* error = NULL;
    rocksdb_put_cf(TO(rocksdb_t, db), TO(rocksdb_writeoptions_t, options),
        TO(rocksdb_column_family_handle_t, family), address(env, key, key_at), (size_t)key_room,
        address(env, value, value_at), (size_t)value_room, &error);
    failed(env, error);
}

NATIVE(void, merge0, jlong db, jlong options, jlong family, jbyteArray key, jint key_from, jint key_length,
        jbyteArray value, jint value_from, jint value_length) {
    char* error = NULL;
    WRITE(rocksdb_merge_cf(TO(rocksdb_t, db), TO(rocksdb_writeoptions_t, options),
        TO(rocksdb_column_family_handle_t, family), k.data, k.length, v.data, v.length, &error));
    failed(env, error);
}

NATIVE(void, delete0, jlong db, jlong options, jlong family, jbyteArray key, jint from, jint length) {
    bytes_t k;
    if (!copy_part(env, &k, key, from, length)) return;
    char* error = NULL;
    rocksdb_delete_cf(TO(rocksdb_t, db), TO(rocksdb_writeoptions_t, options),
        TO(rocksdb_column_family_handle_t, family), k.data, k.length, &error);
    drop(&k);
    failed(env, error);
}

NATIVE(void, deleteRange0, jlong db, jlong options, jlong family, jbyteArray from, jbyteArray to) {
    bytes_t first, last;
    if (!copy(env, &first, from)) return;
    if (!copy(env, &last, to)) {
        drop(&first);
        return;
    }
    char* error = NULL;
    rocksdb_delete_range_cf(TO(rocksdb_t, db), TO(rocksdb_writeoptions_t, options),
        TO(rocksdb_column_family_handle_t, family), first.data, first.length, last.data, last.length,
        &error);
    drop(&first);
    drop(&last);
    failed(env, error);
}

NATIVE(void, write0, jlong db, jlong options, jlong batch) {
    char* error = NULL;
    rocksdb_write(TO(rocksdb_t, db), TO(rocksdb_writeoptions_t, options), TO(rocksdb_writebatch_t, batch),
        &error);
    failed(env, error);
}

/* Batches. */

NATIVE(jlong, batch0) { return FROM(rocksdb_writebatch_create()); }

NATIVE(void, freeBatch0, jlong batch) { rocksdb_writebatch_destroy(TO(rocksdb_writebatch_t, batch)); }

NATIVE(void, clearBatch0, jlong batch) { rocksdb_writebatch_clear(TO(rocksdb_writebatch_t, batch)); }

NATIVE(void, batchPut0, jlong batch, jlong family, jbyteArray key, jint key_from, jint key_length,
        jbyteArray value, jint value_from, jint value_length) {
    WRITE(rocksdb_writebatch_put_cf(TO(rocksdb_writebatch_t, batch),
        TO(rocksdb_column_family_handle_t, family), k.data, k.length, v.data, v.length));
}

NATIVE(void, batchMerge0, jlong batch, jlong family, jbyteArray key, jint key_from, jint key_length,
        jbyteArray value, jint value_from, jint value_length) {
    WRITE(rocksdb_writebatch_merge_cf(TO(rocksdb_writebatch_t, batch),
        TO(rocksdb_column_family_handle_t, family), k.data, k.length, v.data, v.length));
}

NATIVE(void, batchDelete0, jlong batch, jlong family, jbyteArray key, jint from, jint length) {
    bytes_t k;
    if (!copy_part(env, &k, key, from, length)) return;
    rocksdb_writebatch_delete_cf(TO(rocksdb_writebatch_t, batch),
        TO(rocksdb_column_family_handle_t, family), k.data, k.length);
    drop(&k);
}

NATIVE(void, batchDeleteRange0, jlong batch, jlong family, jbyteArray from, jbyteArray to) {
    bytes_t first, last;
    if (!copy(env, &first, from)) return;
    if (!copy(env, &last, to)) {
        drop(&first);
        return;
    }
    rocksdb_writebatch_delete_range_cf(TO(rocksdb_writebatch_t, batch),
        TO(rocksdb_column_family_handle_t, family), first.data, first.length, last.data, last.length);
    drop(&first);
    drop(&last);
}

/* Snapshots and iterators. */

NATIVE(jlong, snapshot0, jlong db) { return FROM(rocksdb_create_snapshot(TO(rocksdb_t, db))); }

NATIVE(void, freeSnapshot0, jlong db, jlong snapshot) {
    rocksdb_release_snapshot(TO(rocksdb_t, db), TO(rocksdb_snapshot_t, snapshot));
}

NATIVE(jlong, iterator0, jlong db, jlong options, jlong family) {
    return FROM(rocksdb_create_iterator_cf(TO(rocksdb_t, db), TO(rocksdb_readoptions_t, options),
        TO(rocksdb_column_family_handle_t, family)));
}

#define ITERATOR TO(rocksdb_iterator_t, iterator)

NATIVE(void, freeIterator0, jlong iterator) { rocksdb_iter_destroy(ITERATOR); }

NATIVE(jboolean, seekFirst0, jlong iterator) {
    rocksdb_iter_seek_to_first(ITERATOR);
    return rocksdb_iter_valid(ITERATOR);
}

NATIVE(jboolean, seekLast0, jlong iterator) {
    rocksdb_iter_seek_to_last(ITERATOR);
    return rocksdb_iter_valid(ITERATOR);
}

NATIVE(jboolean, seek0, jlong iterator, jbyteArray key) {
    bytes_t k;
    if (!copy(env, &k, key)) return 0;
    rocksdb_iter_seek(ITERATOR, k.data, k.length);
    drop(&k);
    return rocksdb_iter_valid(ITERATOR);
}

NATIVE(jboolean, seekForPrevious0, jlong iterator, jbyteArray key) {
    bytes_t k;
    if (!copy(env, &k, key)) return 0;
    rocksdb_iter_seek_for_prev(ITERATOR, k.data, k.length);
    drop(&k);
    return rocksdb_iter_valid(ITERATOR);
}

NATIVE(jboolean, next0, jlong iterator) {
    rocksdb_iter_next(ITERATOR);
    return rocksdb_iter_valid(ITERATOR);
}

NATIVE(jboolean, previous0, jlong iterator) {
    rocksdb_iter_prev(ITERATOR);
    return rocksdb_iter_valid(ITERATOR);
}

NATIVE(jbyteArray, key0, jlong iterator) {
    size_t length = 0;
    const char* key = rocksdb_iter_key(ITERATOR, &length);
    return array_of(env, key, length);
}

NATIVE(jbyteArray, value0, jlong iterator) {
    size_t length = 0;
    const char* value = rocksdb_iter_value(ITERATOR, &length);
    return array_of(env, value, length);
}

NATIVE(jint, valueBuffer0, jlong iterator, jobject into, jint at, jint room) {
    size_t length = 0;
    const char* value = rocksdb_iter_value(ITERATOR, &length);
    if (length <= (size_t)room) memcpy(address(env, into, at), value, length);
    return (jint)length;
}

NATIVE(void, checkIterator0, jlong iterator) {
    char* error = NULL;
    rocksdb_iter_get_error(ITERATOR, &error);
    failed(env, error);
}

/* Backups. */

NATIVE(jlong, backups0, jbyteArray path, jlong options) {
    bytes_t file;
    if (!copy(env, &file, path)) return 0;
    char* error = NULL;
    rocksdb_backup_engine_t* backups =
        rocksdb_backup_engine_open(TO(rocksdb_options_t, options), file.data, &error);
    drop(&file);
    return failed(env, error) ? 0 : FROM(backups);
}

NATIVE(void, freeBackups0, jlong backups) {
    rocksdb_backup_engine_close(TO(rocksdb_backup_engine_t, backups));
}

NATIVE(void, backUp0, jlong backups, jlong db, jboolean flush) {
    char* error = NULL;
    rocksdb_backup_engine_create_new_backup_flush(TO(rocksdb_backup_engine_t, backups), TO(rocksdb_t, db),
        flush, &error);
    failed(env, error);
}

NATIVE(jlongArray, listBackups0, jlong backups) {
    const rocksdb_backup_engine_info_t* info =
        rocksdb_backup_engine_get_backup_info(TO(rocksdb_backup_engine_t, backups));
    int count = rocksdb_backup_engine_info_count(info);
    jlongArray list = (*env)->NewLongArray(env, 4 * count);
    for (int nth = 0; list != NULL && nth < count; nth++) {
        jlong one[] = {rocksdb_backup_engine_info_backup_id(info, nth),
            rocksdb_backup_engine_info_timestamp(info, nth),
            (jlong)rocksdb_backup_engine_info_size(info, nth),
            rocksdb_backup_engine_info_number_files(info, nth)};
        (*env)->SetLongArrayRegion(env, list, 4 * nth, 4, one);
    }
    rocksdb_backup_engine_info_destroy(info);
    return list;
}

NATIVE(void, restore0, jlong backups, jint number, jbyteArray path) {
    bytes_t to;
    if (!copy(env, &to, path)) return;
    char* error = NULL;
    rocksdb_restore_options_t* options = rocksdb_restore_options_create();
    rocksdb_backup_engine_restore_db_from_backup(TO(rocksdb_backup_engine_t, backups), to.data, to.data,
        options, (uint32_t)number, &error);
    rocksdb_restore_options_destroy(options);
    drop(&to);
    failed(env, error);
}

NATIVE(void, keepBackups0, jlong backups, jint count) {
    char* error = NULL;
    rocksdb_backup_engine_purge_old_backups(TO(rocksdb_backup_engine_t, backups), (uint32_t)count, &error);
    failed(env, error);
}

NATIVE(void, verifyBackup0, jlong backups, jint number) {
    char* error = NULL;
    rocksdb_backup_engine_verify_backup(TO(rocksdb_backup_engine_t, backups), (uint32_t)number, &error);
    failed(env, error);
}
