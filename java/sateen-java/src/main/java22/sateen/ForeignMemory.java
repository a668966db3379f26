package sateen;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static sateen.ForeignCalls.*;
import static sateen.Scratch.FLAG;
import static sateen.Scratch.LENGTH;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/**
 * The C functions by the Foreign Function and Memory API.
 *
 * <p>Bytes of arrays are copied once, between the array and native memory of the thread or the call
 * ({@link Scratch}): an array cannot be lent to a call that may read the disk, because that would
 * keep the garbage collector waiting. Direct buffers are lent.
 */
final class ForeignMemory extends ForeignDatabases {
    private static byte[] bytes(long address, long length) {
        if (length > Integer.MAX_VALUE - 8) {
            throw new SateenException(SateenException.Kind.OTHER,
                "a value of " + length + " bytes does not fit into an array");
        }
        byte[] copy = new byte[(int) length];
        MemorySegment.copy(ALL, JAVA_BYTE, address, copy, 0, copy.length);
        return copy;
    }

    @Override
    String name() {
        return "ffm";
    }

    @Override
    byte[] get(long database, long options, long family, byte[] key, int from, int length) {
        try (Scratch scratch = Scratch.with(length)) {
            long error = scratch.address();
            long at = scratch.copy(key, from, length);
            long pinned = (long) getPinned.invokeExact(database, options, family, at, (long) length,
                error);
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
        try (Scratch scratch = Scratch.with(length)) {
            long error = scratch.address();
            long copied = scratch.copy(key, from, length);
            long pinned = (long) getPinned.invokeExact(database, options, family, copied,
                (long) length, error);
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
        Scratch scratch = Scratch.get();
        try {
            long error = scratch.begin();
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
        try (Scratch scratch = Scratch.with((long) keyLength + valueLength)) {
            long error = scratch.address();
            long k = scratch.copy(key, keyFrom, keyLength);
            long v = scratch.copy(value, valueFrom, valueLength);
            put.invokeExact(database, options, family, k, (long) keyLength, v, (long) valueLength,
                error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void put(long database, long options, long family, ByteBuffer key, ByteBuffer value) {
        Scratch scratch = Scratch.get();
        try {
            long error = scratch.begin();
            putBuffers.invokeExact(database, options, family, MemorySegment.ofBuffer(key),
                (long) key.remaining(), MemorySegment.ofBuffer(value), (long) value.remaining(),
                error);
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
        try (Scratch scratch = Scratch.with((long) keyLength + valueLength)) {
            long error = scratch.address();
            long k = scratch.copy(key, keyFrom, keyLength);
            long v = scratch.copy(value, valueFrom, valueLength);
            merge.invokeExact(database, options, family, k, (long) keyLength, v, (long) valueLength,
                error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void delete(long database, long options, long family, byte[] key, int from, int length) {
        try (Scratch scratch = Scratch.with(length)) {
            long error = scratch.address();
            delete.invokeExact(database, options, family, scratch.copy(key, from, length),
                (long) length, error);
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void deleteRange(long database, long options, long family, byte[] from, byte[] to) {
        try (Scratch scratch = Scratch.with((long) from.length + to.length)) {
            long error = scratch.address();
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
        Scratch scratch = Scratch.get();
        try {
            write.invokeExact(database, options, batch, scratch.begin());
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
        try (Scratch scratch = Scratch.with((long) keyLength + valueLength)) {
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
        try (Scratch scratch = Scratch.with((long) keyLength + valueLength)) {
            long k = scratch.copy(key, keyFrom, keyLength);
            long v = scratch.copy(value, valueFrom, valueLength);
            batchMerge.invokeExact(batch, family, k, (long) keyLength, v, (long) valueLength);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void batchDelete(long batch, long family, byte[] key, int from, int length) {
        try (Scratch scratch = Scratch.with(length)) {
            batchDelete.invokeExact(batch, family, scratch.copy(key, from, length), (long) length);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    void batchDeleteRange(long batch, long family, byte[] from, byte[] to) {
        try (Scratch scratch = Scratch.with((long) from.length + to.length)) {
            long first = scratch.copy(from, 0, from.length);
            long last = scratch.copy(to, 0, to.length);
            batchDeleteRange.invokeExact(batch, family, first, (long) from.length, last,
                (long) to.length);
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
        try (Scratch scratch = Scratch.with(key.length)) {
            iterSeek.invokeExact(iterator, scratch.copy(key, 0, key.length), (long) key.length);
            return valid(iterator);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    boolean seekForPrevious(long iterator, byte[] key) {
        try (Scratch scratch = Scratch.with(key.length)) {
            iterSeekPrevious.invokeExact(iterator, scratch.copy(key, 0, key.length),
                (long) key.length);
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
        Scratch scratch = Scratch.get();
        try {
            long base = scratch.begin();
            long at = (long) iterKey.invokeExact(iterator, base + LENGTH);
            return bytes(at, scratch.length());
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    byte[] value(long iterator) {
        Scratch scratch = Scratch.get();
        try {
            long base = scratch.begin();
            long at = (long) iterValue.invokeExact(iterator, base + LENGTH);
            return bytes(at, scratch.length());
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    @Override
    int value(long iterator, ByteBuffer into) {
        Scratch scratch = Scratch.get();
        try {
            long base = scratch.begin();
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
        Scratch scratch = Scratch.get();
        try {
            iterError.invokeExact(iterator, scratch.begin());
            check(scratch);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }
}
