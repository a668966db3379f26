package sateen;

import java.util.Objects;

/**
 * Writes that happen together or not at all, also across column families of one database. It is filled
 * and written by one thread at a time; others wait. It can be cleared and used again.
 */
public final class WriteBatch implements AutoCloseable {
    private long handle = Native.CALLS.batch();
    private Database database;
    private int count;
    private long bytes;

    private long open() {
        if (handle == 0) {
            throw new ClosedException("the batch");
        }
        return handle;
    }

    /** Returns the handle of the family, for a call between its guard's enter and leave. */
    private long enter(ColumnFamily family) {
        Database of = family.database();
        if (database != null && database != of) {
            throw new IllegalArgumentException("the batch has writes for " + database
                + " and cannot take one for " + family);
        }
        family.guard.enter();
        database = of;
        return family.handle(of);
    }

    /** Adds: set the value of a key. */
    public synchronized WriteBatch put(ColumnFamily family, byte[] key, byte[] value) {
        Objects.requireNonNull(value, "value");
        long batch = open();
        long target = enter(family);
        try {
            Native.CALLS.batchPut(batch, target, key, 0, key.length, value, 0, value.length);
        } finally {
            family.guard.leave();
        }
        count++;
        bytes += key.length + value.length;
        return this;
    }

    /** Adds: merge an operand into the value of a key. */
    public synchronized WriteBatch merge(ColumnFamily family, byte[] key, byte[] operand) {
        Objects.requireNonNull(operand, "operand");
        long batch = open();
        long target = enter(family);
        try {
            Native.CALLS.batchMerge(batch, target, key, 0, key.length, operand, 0, operand.length);
        } finally {
            family.guard.leave();
        }
        count++;
        bytes += key.length + operand.length;
        return this;
    }

    /** Adds: remove a key. */
    public synchronized WriteBatch delete(ColumnFamily family, byte[] key) {
        long batch = open();
        long target = enter(family);
        try {
            Native.CALLS.batchDelete(batch, target, key, 0, key.length);
        } finally {
            family.guard.leave();
        }
        count++;
        bytes += key.length;
        return this;
    }

    /** Adds: remove all keys from {@code from} on that are below {@code to}. */
    public synchronized WriteBatch deleteRange(ColumnFamily family, byte[] from, byte[] to) {
        long batch = open();
        long target = enter(family);
        try {
            Native.CALLS.batchDeleteRange(batch, target, from, to);
        } finally {
            family.guard.leave();
        }
        count++;
        bytes += from.length + to.length;
        return this;
    }

    /** Returns the number of writes. A write that the batch refuses counts too, and fails the batch. */
    public synchronized int count() {
        open();
        // The native batch does not count what it refuses.
        return count;
    }

    /** Returns the bytes of the keys and values. */
    public synchronized long bytes() {
        open();
        return bytes;
    }

    /** Removes all writes, so that the batch can be filled again. */
    public synchronized void clear() {
        Native.CALLS.clearBatch(open());
        database = null;
        count = 0;
        bytes = 0;
    }

    /** Writes the batch. The caller is inside the database's guard. */
    synchronized void writeTo(Database target, WriteOptions options) {
        long batch = open();
        if (database != null && database != target) {
            throw new IllegalArgumentException("the batch has writes for " + database + ", not for " + target);
        }
        Native.CALLS.write(target.handle, options.handle, batch);
    }

    @Override
    public synchronized void close() {
        if (handle != 0) {
            Native.CALLS.freeBatch(handle);
            handle = 0;
        }
    }
}
