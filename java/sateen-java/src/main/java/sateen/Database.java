package sateen;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * An open database: an ordered map from byte strings to byte strings, on the disk, divided into column
 * families. Its methods may be called from any thread. The methods for entries are those of the column
 * family {@code default}; other column families have the same methods.
 *
 * <pre>{@code
 * try (Database database = Database.open(Path.of("library"), new Options())) {
 *     database.put(key, value);
 *     byte[] found = database.get(key); // null if there is none
 * }
 * }</pre>
 *
 * <p>A close ends everything that belongs to the database: cursors, snapshots and column families. A use
 * after that is a {@link ClosedException}, whichever thread it comes from.
 */
public final class Database implements AutoCloseable {
    /** The name of the column family that every database has. */
    public static final String DEFAULT = "default";

    final Guard guard = new Guard("the database");
    final long handle;
    private final Path path;
    private final long options;
    private final Map<String, ColumnFamily> families = new LinkedHashMap<>();
    private final ColumnFamily main;
    private final Set<Cursor> cursors = ConcurrentHashMap.newKeySet();
    private final Set<Snapshot> snapshots = ConcurrentHashMap.newKeySet();

    private Database(Path path, long options, List<String> names, long[] handles) {
        this.path = path;
        this.options = options;
        handle = handles[0];
        for (int nth = 0; nth < names.size(); nth++) {
            String name = names.get(nth);
            families.put(name, new ColumnFamily(this, name, handles[nth + 1]));
        }
        main = families.get(DEFAULT);
    }

    /** Opens a database with all its column families, and creates it if it is missing. */
    public static Database open(Path path, Options options) {
        return open(path, options, false);
    }

    /** Opens an existing database for reading. Others may do the same at the same time. */
    public static Database openReadOnly(Path path, Options options) {
        return open(path, options, true);
    }

    private static Database open(Path path, Options options, boolean readOnly) {
        Objects.requireNonNull(path, "path");
        long made = options.make();
        try {
            List<String> names = new ArrayList<>();
            // A directory without a database has no column families to list; the open says what is wrong.
            if (java.nio.file.Files.exists(path.resolve("CURRENT"))) {
                for (byte[] name : Native.CALLS.listFamilies(path.toString(), made)) {
                    names.add(new String(name, StandardCharsets.UTF_8));
                }
            }
            if (!names.contains(DEFAULT)) {
                names.add(0, DEFAULT);
            }
            byte[][] raw = new byte[names.size()][];
            for (int nth = 0; nth < raw.length; nth++) {
                raw[nth] = names.get(nth).getBytes(StandardCharsets.UTF_8);
            }
            long[] handles = Native.CALLS.open(path.toString(), made, raw, readOnly);
            Database database = new Database(path, made, names, handles);
            made = 0;
            return database;
        } finally {
            if (made != 0) {
                Native.CALLS.freeOptions(made);
            }
        }
    }

    /** Removes the files of a database that is not open. A directory without one is no error. */
    public static void destroy(Path path, Options options) {
        long made = options.make();
        try {
            Native.CALLS.destroy(path.toString(), made);
        } finally {
            Native.CALLS.freeOptions(made);
        }
    }

    /** Returns the directory. */
    public Path path() {
        return path;
    }

    // Column families.

    /** Returns the column family {@code default}. */
    public ColumnFamily defaultColumnFamily() {
        return main;
    }

    /** Returns a column family by name, if there is one. */
    public Optional<ColumnFamily> columnFamily(String name) {
        synchronized (families) {
            return Optional.ofNullable(families.get(name));
        }
    }

    /** Returns all column families. */
    public List<ColumnFamily> columnFamilies() {
        synchronized (families) {
            return List.copyOf(families.values());
        }
    }

    /** Creates a column family. A name that exists is an error. */
    public ColumnFamily createColumnFamily(String name, Options familyOptions) {
        if (name.isEmpty() || name.indexOf(0) >= 0) {
            throw new IllegalArgumentException("a column family needs a name without zero characters");
        }
        guard.enter();
        try {
            long made = familyOptions.make();
            try {
                long created = Native.CALLS.createFamily(handle, made, name.getBytes(StandardCharsets.UTF_8));
                ColumnFamily family = new ColumnFamily(this, name, created);
                synchronized (families) {
                    families.put(name, family);
                }
                return family;
            } finally {
                Native.CALLS.freeOptions(made);
            }
        } finally {
            guard.leave();
        }
    }

    /** Drops a column family: its files are given back as soon as no cursor reads them. */
    public void dropColumnFamily(ColumnFamily family) {
        if (family == main) {
            throw new IllegalArgumentException("the column family default cannot be dropped");
        }
        guard.enter();
        try {
            family.guard.enter();
            try {
                Native.CALLS.dropFamily(handle, family.handle(this));
            } finally {
                family.guard.leave();
            }
            synchronized (families) {
                families.remove(family.name(), family);
            }
            family.closeNow();
        } finally {
            guard.leave();
        }
    }

    // Entries of the default column family.

    /** Returns the value of a key, or null. */
    public byte[] get(byte[] key) {
        return main.get(key);
    }

    /** Sets the value of a key. */
    public void put(byte[] key, byte[] value) {
        main.put(key, value);
    }

    /** Removes a key, if it is there. */
    public void delete(byte[] key) {
        main.delete(key);
    }

    /** Merges an operand into the value of a key, with the merge operator of the options. */
    public void merge(byte[] key, byte[] operand) {
        main.merge(key, operand);
    }

    /** Returns a cursor over all entries, which is not yet at one. */
    public Cursor cursor() {
        return main.cursor(ReadOptions.DEFAULT);
    }

    // All column families.

    /** Writes a batch: all of it, or nothing. */
    public void write(WriteBatch batch, WriteOptions writeOptions) {
        guard.enter();
        try {
            batch.writeTo(this, writeOptions);
        } finally {
            guard.leave();
        }
    }

    /** Writes a batch with {@link WriteOptions#DEFAULT}. */
    public void write(WriteBatch batch) {
        write(batch, WriteOptions.DEFAULT);
    }

    /** Takes a snapshot. Close it when it is not needed any more. */
    public Snapshot snapshot() {
        guard.enter();
        try {
            Snapshot snapshot = new Snapshot(this, Native.CALLS.snapshot(handle));
            snapshots.add(snapshot);
            return snapshot;
        } finally {
            guard.leave();
        }
    }

    /** Syncs the WAL: what was written before is durable. */
    public void syncWal() {
        guard.enter();
        try {
            Native.CALLS.flushWal(handle, true);
        } finally {
            guard.leave();
        }
    }

    /** Returns the number of the newest write. */
    public long latestSequenceNumber() {
        guard.enter();
        try {
            return Native.CALLS.sequence(handle);
        } finally {
            guard.leave();
        }
    }

    /** Makes a database with the present state at {@code target}, which must not exist; shares files. */
    public void checkpoint(Path target) {
        guard.enter();
        try {
            Native.CALLS.checkpoint(handle, target.toString());
        } finally {
            guard.leave();
        }
    }

    /** Returns a property of the column family {@code default} by name, if there is one. */
    public Optional<String> property(String name) {
        return main.property(name);
    }

    /**
     * Returns the counters of the database by their names, such as {@code rocksdb.bytes.written}. They
     * are empty unless the options have {@link Options#statistics}.
     */
    public Map<String, Long> metrics() {
        guard.enter();
        try {
            return Metrics.parse(Native.CALLS.statistics(options));
        } finally {
            guard.leave();
        }
    }

    /**
     * Returns a histogram by its name, such as {@code rocksdb.db.flush.micros}. It is empty unless
     * the options have {@link Options#statistics}. A name that does not exist is an
     * {@link IllegalArgumentException} with the names.
     */
    public Histogram histogram(String name) {
        guard.enter();
        try {
            return Histogram.read(options, name);
        } finally {
            guard.leave();
        }
    }

    /** Makes a cursor that ends with this database. */
    Cursor open(ColumnFamily family, ReadOptions readOptions) {
        guard.enter();
        try {
            family.guard.enter();
            try {
                Cursor cursor = ColumnFamily.withReadOptions(this, readOptions,
                    made -> new Cursor(this, Native.CALLS.iterator(handle, made, family.handle(this))));
                cursors.add(cursor);
                return cursor;
            } finally {
                family.guard.leave();
            }
        } finally {
            guard.leave();
        }
    }

    void forget(Cursor cursor) {
        cursors.remove(cursor);
    }

    void forget(Snapshot snapshot) {
        snapshots.remove(snapshot);
    }

    /** True once a close has begun. */
    public boolean isClosed() {
        return guard.isClosed();
    }

    /** Closes the database and all that belongs to it, and waits for calls of other threads to end. */
    @Override
    public void close() {
        if (!guard.close()) {
            return;
        }
        cursors.forEach(Cursor::closeNow);
        snapshots.forEach(Snapshot::closeNow);
        synchronized (families) {
            families.values().forEach(ColumnFamily::closeNow);
        }
        Native.CALLS.close(handle);
        Native.CALLS.freeOptions(options);
    }

    @Override
    public String toString() {
        return "the database " + path + (guard.isClosed() ? " (closed)" : "");
    }
}
