package sateen;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static sateen.ForeignCalls.*;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The C functions by the Foreign Function and Memory API.
 *
 * <p>Bytes of arrays are copied once, between the array and native memory that belongs to the thread: an
 * array cannot be lent to a call that may read the disk, because that would keep the garbage collector
 * waiting. Direct buffers are lent.
 */
final class ForeignMemory extends Native {
    /** Of a thread's native memory: places for an error, a length and a flag; then bytes. */
    private static final int ERROR = 0, LENGTH = 8, FLAG = 16, BYTES = 24;
    /** Memory that a thread keeps. A call with larger arrays gets memory of its own. */
    private static final int KEPT = 64 << 10;

    /** All of memory, to copy from addresses that the library returned. */
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

    ForeignMemory() {
        ForeignCalls.load();
    }

    /** Native memory of a thread. */
    private static final class Scratch {
        private final MemorySegment kept = Arena.ofAuto().allocate(BYTES + KEPT, 8);
        private MemorySegment segment = kept;
        private long used;

        /** Prepares a call with up to {@code bytes} bytes of arguments. */
        long begin(long bytes) {
            segment = bytes <= KEPT ? kept : Arena.ofAuto().allocate(BYTES + bytes, 8);
            used = BYTES;
            segment.set(JAVA_LONG, ERROR, 0);
            segment.set(JAVA_LONG, LENGTH, 0);
            return segment.address();
        }

        /** Copies bytes into the memory and returns their address. */
        long copy(byte[] bytes, int from, int length) {
            MemorySegment.copy(bytes, from, segment, JAVA_BYTE, used, length);
            long at = segment.address() + used;
            used += length;
            return at;
        }

        long length() {
            return segment.get(JAVA_LONG, LENGTH);
        }

        boolean flag() {
            return segment.get(JAVA_BYTE, FLAG) != 0;
        }
    }

    private static Error unexpected(Throwable thrown) {
        if (thrown instanceof RuntimeException) {
            throw (RuntimeException) thrown;
        }
        return thrown instanceof Error ? (Error) thrown : new AssertionError(thrown);
    }

    /** Throws the error that a call stored, if it did. */
    private static void check(Scratch scratch) throws Throwable {
        long text = scratch.segment.get(JAVA_LONG, ERROR);
        if (text != 0) {
            String message = text(text);
            free.invokeExact(text);
            throw SateenException.of(message);
        }
    }

    private static String text(long address) {
        return ALL.getString(address, StandardCharsets.UTF_8);
    }

    private static byte[] bytes(long address, long length) {
        if (length > Integer.MAX_VALUE - 8) {
            throw new SateenException(SateenException.Kind.OTHER,
                "a value of " + length + " bytes does not fit into an array");
        }
        byte[] copy = new byte[(int) length];
        MemorySegment.copy(ALL, JAVA_BYTE, address, copy, 0, copy.length);
        return copy;
    }

    private static MemorySegment text(Arena arena, String text) {
        return arena.allocateFrom(text);
    }

    @Override
    String name() {
        return "ffm";
    }

    @Override
    long options(String text, int flags, long cache, long writeBuffers, long environment) {
        Scratch scratch = SCRATCH.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin(0);
            long base = (long) optionsCreate.invokeExact();
            long options = (long) optionsCreate.invokeExact();
            boolean made = false;
            try {
                if (cache != 0) {
                    long table = (long) tableCreate.invokeExact();
                    tableSetCache.invokeExact(table, cache);
                    optionsSetTable.invokeExact(base, table);
                    tableDestroy.invokeExact(table);
                }
                if (writeBuffers != 0) {
                    optionsSetBuffers.invokeExact(base, writeBuffers);
                }
                if (environment != 0) {
                    optionsSetEnv.invokeExact(base, environment);
                }
                if ((flags & ADD64) != 0) {
                    optionsAdd64.invokeExact(base);
                }
                if ((flags & STATISTICS) != 0) {
                    optionsStatistics.invokeExact(base);
                }
                optionsFromString.invokeExact(base, text(arena, text).address(), options, error);
                check(scratch);
                made = true;
                return options;
            } finally {
                optionsDestroy.invokeExact(base);
                if (!made) {
                    optionsDestroy.invokeExact(options);
                }
            }
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void freeOptions(long options) {
        free(optionsDestroy, options);
    }

    private static void free(MethodHandle by, long handle) {
        try {
            by.invokeExact(handle);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static long make(MethodHandle by, long argument) {
        try {
            return (long) by.invokeExact(argument);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long cache(long bytes) {
        return make(cacheCreate, bytes);
    }

    @Override
    long cacheUsage(long cache) {
        return make(cacheUsage, cache);
    }

    @Override
    void freeCache(long cache) {
        free(cacheDestroy, cache);
    }

    @Override
    long writeBuffers(long bytes, long cache) {
        try {
            if (cache == 0) {
                return (long) buffersCreate.invokeExact(bytes, (byte) 0);
            }
            return (long) buffersCreateWithCache.invokeExact(bytes, cache, (byte) 0);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long writeBuffersUsage(long buffers) {
        return make(buffersUsage, buffers);
    }

    @Override
    void freeWriteBuffers(long buffers) {
        free(buffersDestroy, buffers);
    }

    @Override
    long environment(int threads) {
        try {
            long environment = (long) envCreate.invokeExact();
            if (threads > 0) {
                envThreads.invokeExact(environment, threads);
            }
            return environment;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void freeEnvironment(long environment) {
        free(envDestroy, environment);
    }

    @Override
    long writeOptions(int bits) {
        try {
            long options = (long) writeCreate.invokeExact();
            writeSync.invokeExact(options, flag(bits, SYNC));
            writeNoWal.invokeExact(options, (int) flag(bits, NO_WAL));
            writeNoSlowdown.invokeExact(options, flag(bits, NO_SLOWDOWN));
            writeLow.invokeExact(options, flag(bits, LOW_PRIORITY));
            return options;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static byte flag(int bits, int bit) {
        return (byte) ((bits & bit) != 0 ? 1 : 0);
    }

    @Override
    long readOptions(long snapshot, byte[] lower, byte[] upper, boolean fillCache) {
        Scratch scratch = SCRATCH.get();
        try {
            long options = (long) readCreate.invokeExact();
            if (snapshot != 0) {
                readSnapshot.invokeExact(options, snapshot);
            }
            scratch.begin((lower == null ? 0L : lower.length) + (upper == null ? 0L : upper.length));
            // The library copies the bounds.
            if (lower != null) {
                readLower.invokeExact(options, scratch.copy(lower, 0, lower.length), (long) lower.length);
            }
            if (upper != null) {
                readUpper.invokeExact(options, scratch.copy(upper, 0, upper.length), (long) upper.length);
            }
            readFill.invokeExact(options, (byte) (fillCache ? 1 : 0));
            return options;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void freeReadOptions(long options) {
        free(readDestroy, options);
    }

    @Override
    long[] open(String path, long options, byte[][] families, boolean readOnly) {
        Scratch scratch = SCRATCH.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin(0);
            int count = families.length;
            MemorySegment names = arena.allocate(JAVA_LONG, count);
            MemorySegment familyOptions = arena.allocate(JAVA_LONG, count);
            MemorySegment handles = arena.allocate(JAVA_LONG, count);
            for (int nth = 0; nth < count; nth++) {
                names.setAtIndex(JAVA_LONG, nth, name(arena, families[nth]));
                familyOptions.setAtIndex(JAVA_LONG, nth, options);
            }
            long file = text(arena, path).address();
            long database = readOnly
                ? (long) openReadOnly.invokeExact(options, file, count, names.address(),
                    familyOptions.address(), handles.address(), (byte) 0, error)
                : (long) open.invokeExact(options, file, count, names.address(), familyOptions.address(),
                    handles.address(), error);
            check(scratch);
            long[] opened = new long[count + 1];
            opened[0] = database;
            for (int nth = 0; nth < count; nth++) {
                opened[nth + 1] = handles.getAtIndex(JAVA_LONG, nth);
            }
            return opened;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static long name(Arena arena, byte[] name) {
        MemorySegment copy = arena.allocate(name.length + 1L);
        MemorySegment.copy(name, 0, copy, JAVA_BYTE, 0, name.length);
        return copy.address();
    }

    @Override
    void close(long database) {
        free(close, database);
    }

    @Override
    void destroy(String path, long options) {
        Scratch scratch = SCRATCH.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin(0);
            destroy.invokeExact(options, text(arena, path).address(), error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    byte[][] listFamilies(String path, long options) {
        Scratch scratch = SCRATCH.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin(0);
            long found = (long) list.invokeExact(options, text(arena, path).address(), error + LENGTH, error);
            check(scratch);
            int count = (int) scratch.length();
            byte[][] names = new byte[count][];
            for (int nth = 0; nth < count; nth++) {
                names[nth] = text(ALL.get(JAVA_LONG, found + 8L * nth)).getBytes(StandardCharsets.UTF_8);
            }
            listDestroy.invokeExact(found, (long) count);
            return names;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long createFamily(long database, long options, byte[] name) {
        Scratch scratch = SCRATCH.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin(0);
            long family = (long) familyCreate.invokeExact(database, options, name(arena, name), error);
            check(scratch);
            return family;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void dropFamily(long database, long family) {
        Scratch scratch = SCRATCH.get();
        try {
            familyDrop.invokeExact(database, family, scratch.begin(0));
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void freeFamily(long family) {
        free(familyDestroy, family);
    }

    @Override
    void flush(long database, long family) {
        Scratch scratch = SCRATCH.get();
        try {
            flush.invokeExact(database, FLUSH_OPTIONS, family, scratch.begin(0));
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void flushWal(long database, boolean sync) {
        Scratch scratch = SCRATCH.get();
        try {
            flushWal.invokeExact(database, (byte) (sync ? 1 : 0), scratch.begin(0));
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void compact(long database, long family, byte[] from, byte[] to) {
        Scratch scratch = SCRATCH.get();
        try {
            scratch.begin((from == null ? 0L : from.length) + (to == null ? 0L : to.length));
            long first = from == null ? 0 : scratch.copy(from, 0, from.length);
            long last = to == null ? 0 : scratch.copy(to, 0, to.length);
            compact.invokeExact(database, family, first, from == null ? 0L : (long) from.length, last,
                to == null ? 0L : (long) to.length);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    String property(long database, long family, String name) {
        try (Arena arena = Arena.ofConfined()) {
            return owned((long) property.invokeExact(database, family, text(arena, name).address()));
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    /** Copies a text of the library's and frees it. */
    private static String owned(long address) throws Throwable {
        if (address == 0) {
            return null;
        }
        String copy = text(address);
        free.invokeExact(address);
        return copy;
    }

    @Override
    void setOption(long database, long family, String name, String value) {
        Scratch scratch = SCRATCH.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin(0);
            MemorySegment pair = arena.allocate(JAVA_LONG, 2);
            pair.setAtIndex(JAVA_LONG, 0, text(arena, name).address());
            pair.setAtIndex(JAVA_LONG, 1, text(arena, value).address());
            setOption.invokeExact(database, family, 1, pair.address(), pair.address() + 8, error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    String statistics(long options) {
        try {
            return owned((long) statistics.invokeExact(options));
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long sequence(long database) {
        return make(sequence, database);
    }

    @Override
    void checkpoint(long database, String path) {
        Scratch scratch = SCRATCH.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin(0);
            long object = (long) checkpointCreate.invokeExact(database, error);
            check(scratch);
            try {
                checkpoint.invokeExact(object, text(arena, path).address(), 0L, error);
                check(scratch);
            } finally {
                checkpointDestroy.invokeExact(object);
            }
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    byte[] get(long database, long options, long family, byte[] key, int from, int length) {
        Scratch scratch = SCRATCH.get();
        try {
            long error = scratch.begin(length);
            long at = scratch.copy(key, from, length);
            long pinned = (long) getPinned.invokeExact(database, options, family, at, (long) length, error);
            if (pinned == 0) {
                check(scratch);
                return null;
            }
            try {
                long value = (long) pinnedValue.invokeExact(pinned, error + LENGTH);
                return value == 0 ? null : bytes(value, scratch.length());
            } finally {
                pinnedDestroy.invokeExact(pinned);
            }
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    int get(long database, long options, long family, byte[] key, int from, int length, byte[] into,
            int at, int room) {
        Scratch scratch = SCRATCH.get();
        try {
            long error = scratch.begin(length);
            long copied = scratch.copy(key, from, length);
            long pinned = (long) getPinned.invokeExact(database, options, family, copied, (long) length, error);
            if (pinned == 0) {
                check(scratch);
                return ABSENT;
            }
            try {
                long value = (long) pinnedValue.invokeExact(pinned, error + LENGTH);
                if (value == 0) {
                    return ABSENT;
                }
                int size = Math.toIntExact(scratch.length());
                if (size <= room) {
                    MemorySegment.copy(ALL, JAVA_BYTE, value, into, at, size);
                }
                return size;
            } finally {
                pinnedDestroy.invokeExact(pinned);
            }
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    int get(long database, long options, long family, ByteBuffer key, ByteBuffer into) {
        Scratch scratch = SCRATCH.get();
        try {
            long error = scratch.begin(0);
            byte fits = (byte) getIntoBuffer.invokeExact(database, options, family,
                MemorySegment.ofBuffer(key), (long) key.remaining(), MemorySegment.ofBuffer(into),
                (long) into.remaining(), error + LENGTH, error + FLAG, error);
            java.lang.ref.Reference.reachabilityFence(key);
            java.lang.ref.Reference.reachabilityFence(into);
            check(scratch);
            return fits != 0 || scratch.flag() ? Math.toIntExact(scratch.length()) : ABSENT;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void put(long database, long options, long family, byte[] key, int keyFrom, int keyLength,
            byte[] value, int valueFrom, int valueLength) {
        Scratch scratch = SCRATCH.get();
        try {
            long error = scratch.begin((long) keyLength + valueLength);
            long k = scratch.copy(key, keyFrom, keyLength);
            long v = scratch.copy(value, valueFrom, valueLength);
            put.invokeExact(database, options, family, k, (long) keyLength, v, (long) valueLength, error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void put(long database, long options, long family, ByteBuffer key, ByteBuffer value) {
        Scratch scratch = SCRATCH.get();
        try {
            long error = scratch.begin(0);
            putBuffers.invokeExact(database, options, family, MemorySegment.ofBuffer(key),
                (long) key.remaining(), MemorySegment.ofBuffer(value), (long) value.remaining(), error);
            java.lang.ref.Reference.reachabilityFence(key);
            java.lang.ref.Reference.reachabilityFence(value);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void merge(long database, long options, long family, byte[] key, int keyFrom, int keyLength,
            byte[] value, int valueFrom, int valueLength) {
        Scratch scratch = SCRATCH.get();
        try {
            long error = scratch.begin((long) keyLength + valueLength);
            long k = scratch.copy(key, keyFrom, keyLength);
            long v = scratch.copy(value, valueFrom, valueLength);
            merge.invokeExact(database, options, family, k, (long) keyLength, v, (long) valueLength, error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void delete(long database, long options, long family, byte[] key, int from, int length) {
        Scratch scratch = SCRATCH.get();
        try {
            long error = scratch.begin(length);
            delete.invokeExact(database, options, family, scratch.copy(key, from, length), (long) length,
                error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void deleteRange(long database, long options, long family, byte[] from, byte[] to) {
        Scratch scratch = SCRATCH.get();
        try {
            long error = scratch.begin((long) from.length + to.length);
            long first = scratch.copy(from, 0, from.length);
            long last = scratch.copy(to, 0, to.length);
            deleteRange.invokeExact(database, options, family, first, (long) from.length, last,
                (long) to.length, error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void write(long database, long options, long batch) {
        Scratch scratch = SCRATCH.get();
        try {
            write.invokeExact(database, options, batch, scratch.begin(0));
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long batch() {
        try {
            return (long) batchCreate.invokeExact();
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void freeBatch(long batch) {
        free(batchDestroy, batch);
    }

    @Override
    void clearBatch(long batch) {
        free(batchClear, batch);
    }

    @Override
    void batchPut(long batch, long family, byte[] key, int keyFrom, int keyLength, byte[] value,
            int valueFrom, int valueLength) {
        Scratch scratch = SCRATCH.get();
        try {
            scratch.begin((long) keyLength + valueLength);
            long k = scratch.copy(key, keyFrom, keyLength);
            long v = scratch.copy(value, valueFrom, valueLength);
            batchPut.invokeExact(batch, family, k, (long) keyLength, v, (long) valueLength);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void batchMerge(long batch, long family, byte[] key, int keyFrom, int keyLength, byte[] value,
            int valueFrom, int valueLength) {
        Scratch scratch = SCRATCH.get();
        try {
            scratch.begin((long) keyLength + valueLength);
            long k = scratch.copy(key, keyFrom, keyLength);
            long v = scratch.copy(value, valueFrom, valueLength);
            batchMerge.invokeExact(batch, family, k, (long) keyLength, v, (long) valueLength);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void batchDelete(long batch, long family, byte[] key, int from, int length) {
        Scratch scratch = SCRATCH.get();
        try {
            scratch.begin(length);
            batchDelete.invokeExact(batch, family, scratch.copy(key, from, length), (long) length);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void batchDeleteRange(long batch, long family, byte[] from, byte[] to) {
        Scratch scratch = SCRATCH.get();
        try {
            scratch.begin((long) from.length + to.length);
            long first = scratch.copy(from, 0, from.length);
            long last = scratch.copy(to, 0, to.length);
            batchDeleteRange.invokeExact(batch, family, first, (long) from.length, last, (long) to.length);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long snapshot(long database) {
        return make(snapshot, database);
    }

    @Override
    void freeSnapshot(long database, long released) {
        try {
            snapshotRelease.invokeExact(database, released);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long iterator(long database, long options, long family) {
        try {
            return (long) iterCreate.invokeExact(database, options, family);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void freeIterator(long iterator) {
        free(iterDestroy, iterator);
    }

    private static boolean valid(long iterator) throws Throwable {
        return (byte) iterValid.invokeExact(iterator) != 0;
    }

    @Override
    boolean seekFirst(long iterator) {
        try {
            iterFirst.invokeExact(iterator);
            return valid(iterator);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    boolean seekLast(long iterator) {
        try {
            iterLast.invokeExact(iterator);
            return valid(iterator);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    boolean seek(long iterator, byte[] key) {
        Scratch scratch = SCRATCH.get();
        try {
            scratch.begin(key.length);
            iterSeek.invokeExact(iterator, scratch.copy(key, 0, key.length), (long) key.length);
            return valid(iterator);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    boolean seekForPrevious(long iterator, byte[] key) {
        Scratch scratch = SCRATCH.get();
        try {
            scratch.begin(key.length);
            iterSeekPrevious.invokeExact(iterator, scratch.copy(key, 0, key.length), (long) key.length);
            return valid(iterator);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    boolean next(long iterator) {
        try {
            iterNext.invokeExact(iterator);
            return valid(iterator);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    boolean previous(long iterator) {
        try {
            iterPrevious.invokeExact(iterator);
            return valid(iterator);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    byte[] key(long iterator) {
        Scratch scratch = SCRATCH.get();
        try {
            long base = scratch.begin(0);
            long at = (long) iterKey.invokeExact(iterator, base + LENGTH);
            return bytes(at, scratch.length());
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    byte[] value(long iterator) {
        Scratch scratch = SCRATCH.get();
        try {
            long base = scratch.begin(0);
            long at = (long) iterValue.invokeExact(iterator, base + LENGTH);
            return bytes(at, scratch.length());
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    int value(long iterator, ByteBuffer into) {
        Scratch scratch = SCRATCH.get();
        try {
            long base = scratch.begin(0);
            long at = (long) iterValue.invokeExact(iterator, base + LENGTH);
            long length = scratch.length();
            if (length <= into.remaining()) {
                MemorySegment.copy(ALL, at, MemorySegment.ofBuffer(into), 0, length);
            }
            return Math.toIntExact(length);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void checkIterator(long iterator) {
        Scratch scratch = SCRATCH.get();
        try {
            iterError.invokeExact(iterator, scratch.begin(0));
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long backups(String path, long options) {
        Scratch scratch = SCRATCH.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin(0);
            long backups = (long) backupsOpen.invokeExact(options, text(arena, path).address(), error);
            check(scratch);
            return backups;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void freeBackups(long backups) {
        free(backupsClose, backups);
    }

    @Override
    void backUp(long backups, long database, boolean flushFirst) {
        Scratch scratch = SCRATCH.get();
        try {
            backupsCreate.invokeExact(backups, database, (byte) (flushFirst ? 1 : 0), scratch.begin(0));
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long[] listBackups(long backups) {
        try {
            long info = (long) backupsInfo.invokeExact(backups);
            int count = (int) infoCount.invokeExact(info);
            long[] found = new long[count * 4];
            for (int nth = 0; nth < count; nth++) {
                found[nth * 4] = (int) infoId.invokeExact(info, nth);
                found[nth * 4 + 1] = (long) infoTime.invokeExact(info, nth);
                found[nth * 4 + 2] = (long) infoSize.invokeExact(info, nth);
                found[nth * 4 + 3] = (int) infoFiles.invokeExact(info, nth);
            }
            infoDestroy.invokeExact(info);
            return found;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void restore(long backups, int number, String path) {
        Scratch scratch = SCRATCH.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin(0);
            long options = (long) restoreCreate.invokeExact();
            try {
                long to = text(arena, path).address();
                backupsRestore.invokeExact(backups, to, to, options, number, error);
                check(scratch);
            } finally {
                restoreDestroy.invokeExact(options);
            }
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void keepBackups(long backups, int count) {
        Scratch scratch = SCRATCH.get();
        try {
            backupsPurge.invokeExact(backups, count, scratch.begin(0));
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void verifyBackup(long backups, int number) {
        Scratch scratch = SCRATCH.get();
        try {
            backupsVerify.invokeExact(backups, number, scratch.begin(0));
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }
}
