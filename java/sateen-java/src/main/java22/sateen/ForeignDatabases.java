package sateen;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static sateen.ForeignCalls.*;
import static sateen.Scratch.LENGTH;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/**
 * The C functions for options, databases, column families and backups by the Foreign Function and
 * Memory API. {@link ForeignMemory} has those for entries.
 */
abstract class ForeignDatabases extends Native {
    /** All of memory, to copy from addresses that the library returned. */
    static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    ForeignDatabases() {
        ForeignCalls.load();
    }

    static Error unexpected(Throwable thrown) {
        if (thrown instanceof RuntimeException) {
            throw (RuntimeException) thrown;
        }
        return thrown instanceof Error ? (Error) thrown : new AssertionError(thrown);
    }

    /** Throws the error that a call stored, if it did. */
    static void check(Scratch scratch) throws Throwable {
        long text = scratch.error();
        if (text != 0) {
            String message = text(text);
            free.invokeExact(text);
            throw SateenException.of(message);
        }
    }

    private static String text(long address) {
        return ALL.getString(address, StandardCharsets.UTF_8);
    }

    private static MemorySegment text(Arena arena, String text) {
        return arena.allocateFrom(text);
    }

    @Override
    long options(String text, int flags, long cache, long writeBuffers, long environment) {
        Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin();
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

    static void free(MethodHandle by, long handle) {
        try {
            by.invokeExact(handle);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static long make(MethodHandle by, long argument) {
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

    /** Returns the length of an array, 0 for none. */
    private static long length(byte[] array) {
        return array == null ? 0 : array.length;
    }

    private static byte flag(int bits, int bit) {
        return (byte) ((bits & bit) != 0 ? 1 : 0);
    }

    @Override
    long readOptions(long snapshot, byte[] lower, byte[] upper, boolean fillCache) {
        try (Scratch scratch = Scratch.with(length(lower) + length(upper))) {
            long options = (long) readCreate.invokeExact();
            if (snapshot != 0) {
                readSnapshot.invokeExact(options, snapshot);
            }
            // The library copies the bounds.
            if (lower != null) {
                readLower.invokeExact(options, scratch.copy(lower, 0, lower.length),
                    (long) lower.length);
            }
            if (upper != null) {
                readUpper.invokeExact(options, scratch.copy(upper, 0, upper.length),
                    (long) upper.length);
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
        Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin();
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
                : (long) open.invokeExact(options, file, count, names.address(),
                    familyOptions.address(), handles.address(), error);
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
        Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin();
            destroy.invokeExact(options, text(arena, path).address(), error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    byte[][] listFamilies(String path, long options) {
        Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin();
            long found = (long) list.invokeExact(options, text(arena, path).address(),
                error + LENGTH, error);
            check(scratch);
            int count = (int) scratch.length();
            byte[][] names = new byte[count][];
            for (int nth = 0; nth < count; nth++) {
                names[nth] = text(ALL.get(JAVA_LONG, found + 8L * nth))
                    .getBytes(StandardCharsets.UTF_8);
            }
            listDestroy.invokeExact(found, (long) count);
            return names;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    long createFamily(long database, long options, byte[] name) {
        Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin();
            long family = (long) familyCreate.invokeExact(database, options, name(arena, name),
                error);
            check(scratch);
            return family;
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void dropFamily(long database, long family) {
        Scratch scratch = Scratch.get();
        try {
            familyDrop.invokeExact(database, family, scratch.begin());
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
        Scratch scratch = Scratch.get();
        try {
            flush.invokeExact(database, FLUSH_OPTIONS, family, scratch.begin());
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void flushWal(long database, boolean sync) {
        Scratch scratch = Scratch.get();
        try {
            flushWal.invokeExact(database, (byte) (sync ? 1 : 0), scratch.begin());
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void compact(long database, long family, byte[] from, byte[] to) {
        try (Scratch scratch = Scratch.with(length(from) + length(to))) {
            long first = from == null ? 0 : scratch.copy(from, 0, from.length);
            long last = to == null ? 0 : scratch.copy(to, 0, to.length);
            compact.invokeExact(database, family, first, length(from), last, length(to));
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    String property(long database, long family, String name) {
        try (Arena arena = Arena.ofConfined()) {
            return owned((long) property.invokeExact(database, family,
                text(arena, name).address()));
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
        Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin();
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
    double[] histogram(long options, int kind) {
        try {
            long data = (long) histogramCreate.invokeExact();
            try {
                histogramRead.invokeExact(options, kind, data);
                return new double[] {
                    (double) (long) histogramCount.invokeExact(data),
                    (double) (long) histogramSum.invokeExact(data),
                    (double) histogramMin.invokeExact(data),
                    (double) histogramMax.invokeExact(data),
                    (double) histogramAverage.invokeExact(data),
                    (double) histogramMedian.invokeExact(data),
                    (double) histogramP95.invokeExact(data),
                    (double) histogramP99.invokeExact(data)};
            } finally {
                histogramDestroy.invokeExact(data);
            }
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
        Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin();
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
    long backups(String path, long options) {
        Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin();
            long backups = (long) backupsOpen.invokeExact(options, text(arena, path).address(),
                error);
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
        Scratch scratch = Scratch.get();
        try {
            backupsCreate.invokeExact(backups, database, (byte) (flushFirst ? 1 : 0),
                scratch.begin());
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
        Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            long error = scratch.begin();
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
        Scratch scratch = Scratch.get();
        try {
            backupsPurge.invokeExact(backups, count, scratch.begin());
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void verifyBackup(long backups, int number) {
        Scratch scratch = Scratch.get();
        try {
            backupsVerify.invokeExact(backups, number, scratch.begin());
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }
}
