package sateen;

import java.nio.ByteBuffer;

/**
 * The C functions that this library calls. There are two implementations: {@code ForeignMemory} from
 * Java 22 on, and {@code Jni} before. Both throw {@link SateenException} for an error of the engine.
 *
 * <p>A handle is the address of an object of the C library, 0 for none. No method here checks that a
 * handle is still open: {@link Guard} and the monitors of the public classes do.
 */
abstract class Native {
    /** The backend of this process. */
    static final Native CALLS = load();

    /** Bits of {@link #options}: the merge operator {@code uint64add}, and counters that are read. */
    static final int ADD64 = 1, STATISTICS = 2;

    /** Bits of {@link #writeOptions}. */
    static final int SYNC = 1, NO_WAL = 2, NO_SLOWDOWN = 4, LOW_PRIORITY = 8;

    /** Returned by the reads into a buffer if there is no such key. */
    static final int ABSENT = -1;

    private static Native load() {
        Native calls = backend();
        NativeLibrary.loaded();
        return calls;
    }

    private static Native backend() {
        String wanted = System.getProperty("sateen.backend", "auto");
        boolean foreign = Runtime.version().feature() >= 22;
        if (wanted.equals("jni")) {
            foreign = false;
        } else if (wanted.equals("ffm")) {
            if (!foreign) {
                throw new UnsatisfiedLinkError("sateen.backend=ffm needs Java 22 or newer; this is Java "
                    + Runtime.version().feature());
            }
        } else if (!wanted.equals("auto")) {
            throw new UnsatisfiedLinkError("sateen.backend is " + wanted + "; it must be auto, ffm or jni");
        }
        if (!foreign) {
            return new Jni();
        }
        try {
            return (Native) Class.forName("sateen.ForeignMemory")
                .getDeclaredConstructor().newInstance();
        } catch (ClassNotFoundException missing) {
            // Classes outside a multi-release jar.
            return new Jni();
        } catch (java.lang.reflect.InvocationTargetException failed) {
            Throwable cause = failed.getCause();
            if (cause instanceof Error) {
                throw (Error) cause;
            }
            throw new LinkageError("the library " + NativeLibrary.path() + " cannot be used", cause);
        } catch (ReflectiveOperationException failed) {
            throw new LinkageError("the library " + NativeLibrary.path() + " cannot be used", failed);
        }
    }

    /** The name of the backend: {@code ffm} or {@code jni}. */
    abstract String name();

    // Options and shared objects.

    /** Options from a text, with what the bits of {@code flags} say. */
    abstract long options(String text, int flags, long cache, long writeBuffers, long environment);

    abstract void freeOptions(long options);

    abstract long cache(long bytes);

    abstract long cacheUsage(long cache);

    abstract void freeCache(long cache);

    /** A limit of memtables; their memory is taken from the cache if there is one. */
    abstract long writeBuffers(long bytes, long cache);

    abstract long writeBuffersUsage(long buffers);

    abstract void freeWriteBuffers(long buffers);

    /** An environment, whose databases share threads and a scheduler; 0 threads for the default. */
    abstract long environment(int threads);

    abstract void freeEnvironment(long environment);

    abstract long writeOptions(int bits);

    abstract long readOptions(long snapshot, byte[] lower, byte[] upper, boolean fillCache);

    abstract void freeReadOptions(long options);

    // Databases and column families.

    /**
     * Opens a database. Returns its handle, then those of the column families.
     *
     * @param readOnly whether nothing may be written
     */
    abstract long[] open(String path, long options, byte[][] families, boolean readOnly);

    abstract void close(long database);

    abstract void destroy(String path, long options);

    abstract byte[][] listFamilies(String path, long options);

    abstract long createFamily(long database, long options, byte[] name);

    abstract void dropFamily(long database, long family);

    abstract void freeFamily(long family);

    abstract void flush(long database, long family);

    abstract void flushWal(long database, boolean sync);

    abstract void compact(long database, long family, byte[] from, byte[] to);

    abstract String property(long database, long family, String name);

    abstract void setOption(long database, long family, String name, String value);

    abstract String statistics(long options);

    /** Returns the numbers of a histogram of RocksDB in the order of {@link Histogram}. */
    abstract double[] histogram(long options, int kind);

    abstract long sequence(long database);

    abstract void checkpoint(long database, String path);

    // Reads and writes. A range of an array must have been checked.

    abstract byte[] get(long database, long options, long family, byte[] key, int from, int length);

    /** Copies a value into an array; returns its whole length, or {@link #ABSENT}. */
    abstract int get(long database, long options, long family, byte[] key, int from, int length,
        byte[] into, int at, int room);

    /** Copies a value to an address; returns its whole length, or {@link #ABSENT}. */
    abstract int get(long database, long options, long family, ByteBuffer key, ByteBuffer into);

    abstract void put(long database, long options, long family, byte[] key, int keyFrom, int keyLength,
        byte[] value, int valueFrom, int valueLength);

    /** Puts the remaining bytes of two direct buffers. */
    abstract void put(long database, long options, long family, ByteBuffer key, ByteBuffer value);

    abstract void merge(long database, long options, long family, byte[] key, int keyFrom, int keyLength,
        byte[] value, int valueFrom, int valueLength);

    abstract void delete(long database, long options, long family, byte[] key, int from, int length);

    abstract void deleteRange(long database, long options, long family, byte[] from, byte[] to);

    abstract void write(long database, long options, long batch);

    // Batches. A family of 0 is the default column family.

    abstract long batch();

    abstract void freeBatch(long batch);

    abstract void clearBatch(long batch);

    abstract void batchPut(long batch, long family, byte[] key, int keyFrom, int keyLength, byte[] value,
        int valueFrom, int valueLength);

    abstract void batchMerge(long batch, long family, byte[] key, int keyFrom, int keyLength,
        byte[] value, int valueFrom, int valueLength);

    abstract void batchDelete(long batch, long family, byte[] key, int from, int length);

    abstract void batchDeleteRange(long batch, long family, byte[] from, byte[] to);

    // Snapshots and iterators. A movement returns whether the iterator is at an entry.

    abstract long snapshot(long database);

    abstract void freeSnapshot(long database, long snapshot);

    abstract long iterator(long database, long options, long family);

    abstract void freeIterator(long iterator);

    abstract boolean seekFirst(long iterator);

    abstract boolean seekLast(long iterator);

    abstract boolean seek(long iterator, byte[] key);

    abstract boolean seekForPrevious(long iterator, byte[] key);

    abstract boolean next(long iterator);

    abstract boolean previous(long iterator);

    abstract byte[] key(long iterator);

    abstract byte[] value(long iterator);

    /** Copies the value of the entry into a direct buffer from its position; returns its whole length. */
    abstract int value(long iterator, ByteBuffer into);

    /** Throws what made the iterator stop, if something did. */
    abstract void checkIterator(long iterator);

    // Backups.

    abstract long backups(String path, long options);

    abstract void freeBackups(long backups);

    abstract void backUp(long backups, long database, boolean flush);

    /** The backups: for each its number, its time in seconds, its size in bytes and its files. */
    abstract long[] listBackups(long backups);

    abstract void restore(long backups, int number, String path);

    abstract void keepBackups(long backups, int count);

    abstract void verifyBackup(long backups, int number);
}
