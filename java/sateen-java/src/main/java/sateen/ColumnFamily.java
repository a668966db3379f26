package sateen;

import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.Optional;
import java.util.function.LongFunction;

/** A column family: an ordered map of its own within a database. Use it from any thread. */
public final class ColumnFamily {
    /** Native read options without a snapshot, a bound or anything else, for the whole process. */
    private static final long PLAIN = Native.CALLS.readOptions(0, null, null, true);

    final Guard guard;
    private final Database database;
    private final String name;
    private final long handle;

    ColumnFamily(Database database, String name, long handle) {
        this.database = database;
        this.name = name;
        this.handle = handle;
        guard = new Guard("the column family " + name);
    }

    /** Returns the name. */
    public String name() {
        return name;
    }

    /** Returns the database that this is a part of. */
    public Database database() {
        return database;
    }

    /** Returns the handle for a call on {@code of}, which must be this family's database. */
    long handle(Database of) {
        if (of != database) {
            throw new IllegalArgumentException("the column family " + name + " belongs to " + database
                + ", not to " + of);
        }
        return handle;
    }

    // Reading.

    /** Returns the value of a key, or null. */
    public byte[] get(byte[] key) {
        return get(key, ReadOptions.DEFAULT);
    }

    /** Returns the value of a key, or null. */
    public byte[] get(byte[] key, ReadOptions options) {
        Objects.requireNonNull(key, "key");
        guard.enter();
        try {
            if (options == ReadOptions.DEFAULT) {
                return Native.CALLS.get(database.handle, PLAIN, handle, key, 0, key.length);
            }
            return withReadOptions(database, options,
                made -> Native.CALLS.get(database.handle, made, handle, key, 0, key.length));
        } finally {
            guard.leave();
        }
    }

    /**
     * Copies the value of a key into an array from {@code at} on, and returns its length, or -1 if there
     * is no such key. A value that is longer than {@code room} is not copied.
     */
    public int get(byte[] key, byte[] into, int at, int room) {
        Objects.requireNonNull(key, "key");
        Objects.checkFromIndexSize(at, room, into.length);
        guard.enter();
        try {
            return Native.CALLS.get(database.handle, PLAIN, handle, key, 0, key.length, into, at, room);
        } finally {
            guard.leave();
        }
    }

    /**
     * Copies the value of a key into a buffer from its position on, advances the position, and returns
     * the length of the value, or -1 if there is no such key. A value that does not fit is not copied.
     * Two direct buffers need no copy between the engine and the buffer.
     */
    public int get(ByteBuffer key, ByteBuffer into) {
        if (into.isReadOnly()) {
            throw new java.nio.ReadOnlyBufferException();
        }
        guard.enter();
        try {
            int length;
            if (key.isDirect() && into.isDirect()) {
                length = Native.CALLS.get(database.handle, PLAIN, handle, key, into);
            } else {
                byte[] bytes = bytesOf(key);
                if (into.hasArray()) {
                    length = Native.CALLS.get(database.handle, PLAIN, handle, bytes, 0, bytes.length,
                        into.array(), into.arrayOffset() + into.position(), into.remaining());
                } else {
                    byte[] value = Native.CALLS.get(database.handle, PLAIN, handle, bytes, 0, bytes.length);
                    length = value == null ? Native.ABSENT : value.length;
                    if (value != null && length <= into.remaining()) {
                        into.duplicate().put(value);
                    }
                }
            }
            if (length >= 0 && length <= into.remaining()) {
                into.position(into.position() + length);
            }
            return length;
        } finally {
            guard.leave();
        }
    }

    /** Returns a cursor, which is not yet at an entry. Close it after use. */
    public Cursor cursor(ReadOptions options) {
        return database.open(this, options);
    }

    /** Returns a cursor over the newest data. */
    public Cursor cursor() {
        return cursor(ReadOptions.DEFAULT);
    }

    // Writing.

    /** Sets the value of a key. */
    public void put(byte[] key, byte[] value) {
        put(key, value, WriteOptions.DEFAULT);
    }

    /** Sets the value of a key. */
    public void put(byte[] key, byte[] value, WriteOptions options) {
        put(key, 0, key.length, value, 0, value.length, options);
    }

    /** Sets the value of a key; both are parts of arrays. */
    public void put(byte[] key, int keyFrom, int keyLength, byte[] value, int valueFrom, int valueLength,
            WriteOptions options) {
        Objects.checkFromIndexSize(keyFrom, keyLength, key.length);
        Objects.checkFromIndexSize(valueFrom, valueLength, value.length);
        guard.enter();
        try {
            Native.CALLS.put(database.handle, options.handle, handle, key, keyFrom, keyLength, value,
                valueFrom, valueLength);
        } finally {
            guard.leave();
        }
    }

    /** Sets the value of a key to the remaining bytes of a buffer. Direct buffers are not copied first. */
    public void put(ByteBuffer key, ByteBuffer value, WriteOptions options) {
        if (!key.isDirect() || !value.isDirect()) {
            put(bytesOf(key), bytesOf(value), options);
            return;
        }
        guard.enter();
        try {
            Native.CALLS.put(database.handle, options.handle, handle, key, value);
        } finally {
            guard.leave();
        }
    }

    /** Merges an operand into the value of a key, with the merge operator of the options. */
    public void merge(byte[] key, byte[] operand) {
        guard.enter();
        try {
            Native.CALLS.merge(database.handle, WriteOptions.DEFAULT.handle, handle, key, 0, key.length,
                operand, 0, operand.length);
        } finally {
            guard.leave();
        }
    }

    /** Removes a key, if it is there. */
    public void delete(byte[] key) {
        delete(key, WriteOptions.DEFAULT);
    }

    /** Removes a key, if it is there. */
    public void delete(byte[] key, WriteOptions options) {
        guard.enter();
        try {
            Native.CALLS.delete(database.handle, options.handle, handle, key, 0, key.length);
        } finally {
            guard.leave();
        }
    }

    /** Removes all keys from {@code from} on that are below {@code to}. */
    public void deleteRange(byte[] from, byte[] to, WriteOptions options) {
        Objects.requireNonNull(from, "from");
        Objects.requireNonNull(to, "to");
        guard.enter();
        try {
            Native.CALLS.deleteRange(database.handle, options.handle, handle, from, to);
        } finally {
            guard.leave();
        }
    }

    // Upkeep.

    /** Writes what is in memory to tables, and waits for it. */
    public void flush() {
        guard.enter();
        try {
            Native.CALLS.flush(database.handle, handle);
        } finally {
            guard.leave();
        }
    }

    /** Compacts the keys between two keys, and waits for it; null is no bound. */
    public void compact(byte[] from, byte[] to) {
        guard.enter();
        try {
            Native.CALLS.compact(database.handle, handle, from, to);
        } finally {
            guard.leave();
        }
    }

    /** Returns a property by name, such as {@code rocksdb.estimate-num-keys}, if there is one. */
    public Optional<String> property(String property) {
        Objects.requireNonNull(property, "property");
        guard.enter();
        try {
            return Optional.ofNullable(Native.CALLS.property(database.handle, handle, property));
        } finally {
            guard.leave();
        }
    }

    /** Changes an option while the database is open. An option that needs a new open is refused. */
    public void setOption(String option, String value) {
        guard.enter();
        try {
            Native.CALLS.setOption(database.handle, handle, option, value);
        } finally {
            guard.leave();
        }
    }

    /** Makes native read options for one call of {@code use}. The caller is inside a guard. */
    static <R> R withReadOptions(Database of, ReadOptions options, LongFunction<R> use) {
        if (options == ReadOptions.DEFAULT) {
            return use.apply(PLAIN);
        }
        Snapshot at = options.snapshot;
        if (at == null) {
            return withReadOptions(0, options, use);
        }
        if (!at.belongsTo(of)) {
            throw new IllegalArgumentException("the snapshot belongs to another database than " + of);
        }
        at.guard.enter();
        try {
            return withReadOptions(at.handle, options, use);
        } finally {
            at.guard.leave();
        }
    }

    private static <R> R withReadOptions(long snapshot, ReadOptions options, LongFunction<R> use) {
        long made = Native.CALLS.readOptions(snapshot, options.lower, options.upper, options.fillCache);
        try {
            return use.apply(made);
        } finally {
            Native.CALLS.freeReadOptions(made);
        }
    }

    private static byte[] bytesOf(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    /** Frees the native object, once. The data stay, unless the family was dropped. */
    void closeNow() {
        if (guard.close()) {
            Native.CALLS.freeFamily(handle);
        }
    }

    @Override
    public String toString() {
        return "the column family " + name + " of " + database;
    }
}
