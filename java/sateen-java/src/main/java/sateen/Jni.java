package sateen;

import java.nio.ByteBuffer;

/** The C functions by JNI, for versions of Java without the Foreign Function and Memory API. */
final class Jni extends Native {
    Jni() {
        System.load(NativeLibrary.path().toString());
    }

    @Override
    String name() {
        return "jni";
    }

    /** Makes the exception for an error of the library; the C code calls it. */
    static SateenException error(byte[] text) {
        return SateenException.of(new String(text, java.nio.charset.StandardCharsets.UTF_8));
    }

    @Override
    long options(String text, int flags, long cache, long writeBuffers, long environment) {
        return options0(utf8(text), flags, cache, writeBuffers, environment);
    }

    @Override
    void freeOptions(long options) {
        freeOptions0(options);
    }

    @Override
    long cache(long bytes) {
        return cache0(bytes);
    }

    @Override
    long cacheUsage(long cache) {
        return cacheUsage0(cache);
    }

    @Override
    void freeCache(long cache) {
        freeCache0(cache);
    }

    @Override
    long writeBuffers(long bytes, long cache) {
        return writeBuffers0(bytes, cache);
    }

    @Override
    long writeBuffersUsage(long buffers) {
        return writeBuffersUsage0(buffers);
    }

    @Override
    void freeWriteBuffers(long buffers) {
        freeWriteBuffers0(buffers);
    }

    @Override
    long environment(int threads) {
        return environment0(threads);
    }

    @Override
    void freeEnvironment(long environment) {
        freeEnvironment0(environment);
    }

    @Override
    long writeOptions(int bits) {
        return writeOptions0(bits);
    }

    @Override
    long readOptions(long snapshot, byte[] lower, byte[] upper, boolean fillCache) {
        return readOptions0(snapshot, lower, upper, fillCache);
    }

    @Override
    void freeReadOptions(long options) {
        freeReadOptions0(options);
    }

    @Override
    long[] open(String path, long options, byte[][] families, boolean readOnly) {
        return open0(utf8(path), options, families, readOnly);
    }

    @Override
    void close(long database) {
        close0(database);
    }

    @Override
    void destroy(String path, long options) {
        destroy0(utf8(path), options);
    }

    @Override
    byte[][] listFamilies(String path, long options) {
        return listFamilies0(utf8(path), options);
    }

    @Override
    long createFamily(long database, long options, byte[] name) {
        return createFamily0(database, options, name);
    }

    @Override
    void dropFamily(long database, long family) {
        dropFamily0(database, family);
    }

    @Override
    void freeFamily(long family) {
        freeFamily0(family);
    }

    @Override
    void flush(long database, long family) {
        flush0(database, family);
    }

    @Override
    void flushWal(long database, boolean sync) {
        flushWal0(database, sync);
    }

    @Override
    void compact(long database, long family, byte[] from, byte[] to) {
        compact0(database, family, from, to);
    }

    @Override
    String property(long database, long family, String name) {
        return text(property0(database, family, utf8(name)));
    }

    @Override
    void setOption(long database, long family, String name, String value) {
        setOption0(database, family, utf8(name), utf8(value));
    }

    @Override
    String statistics(long options) {
        return text(statistics0(options));
    }

    @Override
    double[] histogram(long options, int kind) {
        return histogram0(options, kind);
    }

    @Override
    long sequence(long database) {
        return sequence0(database);
    }

    @Override
    void checkpoint(long database, String path) {
        checkpoint0(database, utf8(path));
    }

    @Override
    byte[] get(long database, long options, long family, byte[] key, int from, int length) {
        return get0(database, options, family, key, from, length);
    }

    @Override
    int get(long database, long options, long family, byte[] key, int from, int length, byte[] into,
            int at, int room) {
        return getInto0(database, options, family, key, from, length, into, at, room);
    }

    @Override
    int get(long database, long options, long family, ByteBuffer key, ByteBuffer into) {
        return getBuffer0(database, options, family, key, key.position(), key.remaining(), into,
            into.position(), into.remaining());
    }

    @Override
    void put(long database, long options, long family, byte[] key, int keyFrom, int keyLength,
            byte[] value, int valueFrom, int valueLength) {
        put0(database, options, family, key, keyFrom, keyLength, value, valueFrom, valueLength);
    }

    @Override
    void put(long database, long options, long family, ByteBuffer key, ByteBuffer value) {
        putBuffer0(database, options, family, key, key.position(), key.remaining(), value,
            value.position(), value.remaining());
    }

    @Override
    void merge(long database, long options, long family, byte[] key, int keyFrom, int keyLength,
            byte[] value, int valueFrom, int valueLength) {
        merge0(database, options, family, key, keyFrom, keyLength, value, valueFrom, valueLength);
    }

    @Override
    void delete(long database, long options, long family, byte[] key, int from, int length) {
        delete0(database, options, family, key, from, length);
    }

    @Override
    void deleteRange(long database, long options, long family, byte[] from, byte[] to) {
        deleteRange0(database, options, family, from, to);
    }

    @Override
    void write(long database, long options, long batch) {
        write0(database, options, batch);
    }

    @Override
    long batch() {
        return batch0();
    }

    @Override
    void freeBatch(long batch) {
        freeBatch0(batch);
    }

    @Override
    void clearBatch(long batch) {
        clearBatch0(batch);
    }

    @Override
    void batchPut(long batch, long family, byte[] key, int keyFrom, int keyLength, byte[] value,
            int valueFrom, int valueLength) {
        batchPut0(batch, family, key, keyFrom, keyLength, value, valueFrom, valueLength);
    }

    @Override
    void batchMerge(long batch, long family, byte[] key, int keyFrom, int keyLength, byte[] value,
            int valueFrom, int valueLength) {
        batchMerge0(batch, family, key, keyFrom, keyLength, value, valueFrom, valueLength);
    }

    @Override
    void batchDelete(long batch, long family, byte[] key, int from, int length) {
        batchDelete0(batch, family, key, from, length);
    }

    @Override
    void batchDeleteRange(long batch, long family, byte[] from, byte[] to) {
        batchDeleteRange0(batch, family, from, to);
    }

    @Override
    long snapshot(long database) {
        return snapshot0(database);
    }

    @Override
    void freeSnapshot(long database, long snapshot) {
        freeSnapshot0(database, snapshot);
    }

    @Override
    long iterator(long database, long options, long family) {
        return iterator0(database, options, family);
    }

    @Override
    void freeIterator(long iterator) {
        freeIterator0(iterator);
    }

    @Override
    boolean seekFirst(long iterator) {
        return seekFirst0(iterator);
    }

    @Override
    boolean seekLast(long iterator) {
        return seekLast0(iterator);
    }

    @Override
    boolean seek(long iterator, byte[] key) {
        return seek0(iterator, key);
    }

    @Override
    boolean seekForPrevious(long iterator, byte[] key) {
        return seekForPrevious0(iterator, key);
    }

    @Override
    boolean next(long iterator) {
        return next0(iterator);
    }

    @Override
    boolean previous(long iterator) {
        return previous0(iterator);
    }

    @Override
    byte[] key(long iterator) {
        return key0(iterator);
    }

    @Override
    byte[] value(long iterator) {
        return value0(iterator);
    }

    @Override
    int value(long iterator, ByteBuffer into) {
        return valueBuffer0(iterator, into, into.position(), into.remaining());
    }

    @Override
    void checkIterator(long iterator) {
        checkIterator0(iterator);
    }

    @Override
    long backups(String path, long options) {
        return backups0(utf8(path), options);
    }

    @Override
    void freeBackups(long backups) {
        freeBackups0(backups);
    }

    @Override
    void backUp(long backups, long database, boolean flush) {
        backUp0(backups, database, flush);
    }

    @Override
    long[] listBackups(long backups) {
        return listBackups0(backups);
    }

    @Override
    void restore(long backups, int number, String path) {
        restore0(backups, number, utf8(path));
    }

    @Override
    void keepBackups(long backups, int count) {
        keepBackups0(backups, count);
    }

    @Override
    void verifyBackup(long backups, int number) {
        verifyBackup0(backups, number);
    }

    /** Returns a text as UTF-8 with a zero byte behind it. */
    private static byte[] utf8(String text) {
        byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        return java.util.Arrays.copyOf(bytes, bytes.length + 1);
    }

    private static String text(byte[] utf8) {
        return utf8 == null ? null : new String(utf8, java.nio.charset.StandardCharsets.UTF_8);
    }

    private static native long options0(byte[] text, int flags, long cache, long writeBuffers,
        long environment);

    private static native void freeOptions0(long options);

    private static native long cache0(long bytes);

    private static native long cacheUsage0(long cache);

    private static native void freeCache0(long cache);

    private static native long writeBuffers0(long bytes, long cache);

    private static native long writeBuffersUsage0(long buffers);

    private static native void freeWriteBuffers0(long buffers);

    private static native long environment0(int threads);

    private static native void freeEnvironment0(long environment);

    private static native long writeOptions0(int bits);

    private static native long readOptions0(long snapshot, byte[] lower, byte[] upper, boolean fillCache);

    private static native void freeReadOptions0(long options);

    private static native long[] open0(byte[] path, long options, byte[][] families, boolean readOnly);

    private static native void close0(long database);

    private static native void destroy0(byte[] path, long options);

    private static native byte[][] listFamilies0(byte[] path, long options);

    private static native long createFamily0(long database, long options, byte[] name);

    private static native void dropFamily0(long database, long family);

    private static native void freeFamily0(long family);

    private static native void flush0(long database, long family);

    private static native void flushWal0(long database, boolean sync);

    private static native void compact0(long database, long family, byte[] from, byte[] to);

    private static native byte[] property0(long database, long family, byte[] name);

    private static native void setOption0(long database, long family, byte[] name, byte[] value);

    private static native byte[] statistics0(long options);

    private static native double[] histogram0(long options, int kind);

    private static native long sequence0(long database);

    private static native void checkpoint0(long database, byte[] path);

    private static native byte[] get0(long database, long options, long family, byte[] key, int from,
        int length);

    private static native int getInto0(long database, long options, long family, byte[] key, int from,
        int length, byte[] into, int at, int room);

    private static native int getBuffer0(long database, long options, long family, ByteBuffer key,
        int keyAt, int keyRoom, ByteBuffer into, int intoAt, int intoRoom);

    private static native void put0(long database, long options, long family, byte[] key, int keyFrom,
        int keyLength, byte[] value, int valueFrom, int valueLength);

    private static native void putBuffer0(long database, long options, long family, ByteBuffer key,
        int keyAt, int keyRoom, ByteBuffer value, int valueAt, int valueRoom);

    private static native void merge0(long database, long options, long family, byte[] key, int keyFrom,
        int keyLength, byte[] value, int valueFrom, int valueLength);

    private static native void delete0(long database, long options, long family, byte[] key, int from,
        int length);

    private static native void deleteRange0(long database, long options, long family, byte[] from, byte[] to);

    private static native void write0(long database, long options, long batch);

    private static native long batch0();

    private static native void freeBatch0(long batch);

    private static native void clearBatch0(long batch);

    private static native void batchPut0(long batch, long family, byte[] key, int keyFrom, int keyLength,
        byte[] value, int valueFrom, int valueLength);

    private static native void batchMerge0(long batch, long family, byte[] key, int keyFrom, int keyLength,
        byte[] value, int valueFrom, int valueLength);

    private static native void batchDelete0(long batch, long family, byte[] key, int from, int length);

    private static native void batchDeleteRange0(long batch, long family, byte[] from, byte[] to);

    private static native long snapshot0(long database);

    private static native void freeSnapshot0(long database, long snapshot);

    private static native long iterator0(long database, long options, long family);

    private static native void freeIterator0(long iterator);

    private static native boolean seekFirst0(long iterator);

    private static native boolean seekLast0(long iterator);

    private static native boolean seek0(long iterator, byte[] key);

    private static native boolean seekForPrevious0(long iterator, byte[] key);

    private static native boolean next0(long iterator);

    private static native boolean previous0(long iterator);

    private static native byte[] key0(long iterator);

    private static native byte[] value0(long iterator);

    private static native int valueBuffer0(long iterator, ByteBuffer into, int intoAt, int intoRoom);

    private static native void checkIterator0(long iterator);

    private static native long backups0(byte[] path, long options);

    private static native void freeBackups0(long backups);

    private static native void backUp0(long backups, long database, boolean flush);

    private static native long[] listBackups0(long backups);

    private static native void restore0(long backups, int number, byte[] path);

    private static native void keepBackups0(long backups, int count);

    private static native void verifyBackup0(long backups, int number);
}
