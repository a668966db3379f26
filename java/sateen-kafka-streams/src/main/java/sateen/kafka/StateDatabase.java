package sateen.kafka;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import sateen.ClosedException;
import sateen.ColumnFamily;
import sateen.Cursor;
import sateen.Database;
import sateen.Histogram;
import sateen.Options;
import sateen.SateenException;
import sateen.WriteBatch;
import sateen.WriteOptions;

/**
 * The database of one store of one partition. The column family {@code default} has its
 * {@link Progress}; each {@link Family} has entries.
 *
 * <p>What must stay true:
 *
 * <ol>
 * <li>An offset is never ahead of the entries: both are in one batch.
 * <li>Under exactly-once the disk has only entries of committed transactions, or the mark
 * {@code uncommitted}, with which the next open knows no offset. Kafka then restores the whole store.
 * <li>Entries of a restoration come from committed transactions. They may be ahead of the offset, and in no
 *     WAL: {@link Restoration}.
 * </ol>
 *
 * <p>A write goes through these steps:
 *
 * <ol>
 * <li>{@link #beforeWrite}: if a commit has passed since the last write, write the buffer and the offset.
 * <li>{@link Family#put} buffers the entry.
 * <li>{@link #afterWrite}: if the buffer is too large, write it without an offset ({@link #spill}).
 * <li>{@link #commit} writes the buffer with the offset that Kafka gives.
 * </ol>
 */
final class StateDatabase {
    private final String store;
    private final Path path;
    private final SateenConfig config;
    private final InstanceRuntime runtime;
    private final Options options;
    private final Database database;
    private final Progress progress;
    private final Restoration restoration;
    private final CommitSignal signal;
    /** Whether the store belongs to the global task. */
    private final boolean global;
    private final Map<String, Family> families = new ConcurrentHashMap<>();
    /** Families that are not used any more, which the next commit drops. */
    private final List<Family> dropped = new ArrayList<>();
    private final Set<StoreIterator> iterators = ConcurrentHashMap.newKeySet();
    /** Iterators and readers share it; it is exclusive while the buffer goes to the disk. */
    private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    private long bufferedBytes;
    /** Whether Kafka has asked for an offset since the open, or the store was given a record. */
    private boolean begun;
    private volatile boolean open = true;

    private StateDatabase(String store, Path path, SateenConfig config, InstanceRuntime runtime,
            StateStoreContext context, String shape) {
        this.store = store;
        this.path = path;
        this.config = config;
        this.runtime = runtime;
        global = context.taskId().subtopology() < 0;
        try {
            Files.createDirectories(path);
        } catch (IOException failed) {
            throw new ProcessorStateException("the directory " + path + " of the store " + store
                + " cannot be made: " + failed, failed);
        }
        try {
            options = runtime.options().setAll(config.options).statistics();
        } catch (IllegalArgumentException wrong) {
            throw new ProcessorStateException("the options of the store " + store + " (" + SateenConfig.OPTIONS
                + ") are wrong: " + wrong.getMessage(), wrong);
        }
        Database opened = call("open", () -> Database.open(path, options));
        boolean done = false;
        try {
            database = opened;
            call("open", () -> {
                Shape.settle(opened, store, shape);
                return null;
            });
            for (ColumnFamily family : opened.columnFamilies()) {
                if (family != opened.defaultColumnFamily()) {
                    families.put(family.name(), new Family(this, family));
                }
            }
            progress = call("open", () -> new Progress(opened.defaultColumnFamily()));
            restoration = new Restoration(new Restored(), runtime.flushes());
            signal = config.exactlyOnce ? CommitSignal.of(context, store) : null;
            done = true;
        } finally {
            if (!done) {
                opened.close();
            }
        }
    }

    /** Opens the database of a store of a {@link Shape} below the directory of its task. */
    static StateDatabase open(String store, StateStoreContext context, String shape) {
        Path path = new File(context.stateDir(), "sateen").toPath().resolve(store);
        SateenConfig config = new SateenConfig(context.appConfigs(), store);
        // Above the directory of the task is that of the instance.
        InstanceRuntime runtime = InstanceRuntime.enter(
            config.runtimeShared ? context.stateDir().toPath().toAbsolutePath().getParent() : path, config);
        boolean done = false;
        try {
            StateDatabase opened = new StateDatabase(store, path, config, runtime, context, shape);
            done = true;
            return opened;
        } finally {
            if (!done) {
                runtime.leave();
            }
        }
    }

    String store() {
        return store;
    }

    Path path() {
        return path;
    }

    /** Returns what this database shares with those of the other stores. */
    InstanceRuntime runtime() {
        return runtime;
    }

    Position position() {
        return progress.position();
    }

    /** Returns the greatest time of the stream that was committed, or -1. */
    long streamTime() {
        return progress.streamTime();
    }

    /** Sets the time of the stream, which the next commit stores. */
    void streamTime(long time) {
        progress.streamTime(time);
    }

    // Families.

    /** Returns the names of the families. */
    Set<String> families() {
        return families.keySet();
    }

    /** Returns a family, and creates it if it is missing. */
    Family family(String name) {
        Family family = families.get(name);
        if (family == null) {
            family = new Family(this,
                call("make a segment of", () -> database.createColumnFamily(name, options)));
            families.put(name, family);
        }
        return family;
    }

    /** Gives up a family. Its files go with the next commit, so that an aborted transaction loses none. */
    void drop(String name) {
        Family family = families.remove(name);
        if (family != null) {
            dropped.add(family);
        }
    }

    // Reading.

    /** Runs something that needs the buffer and the disk to belong together. */
    <R> R reading(Supplier<R> read) {
        lock.readLock().lock();
        try {
            return call("read", read);
        } finally {
            lock.readLock().unlock();
        }
    }

    StoreIterator track(StoreIterator iterator) {
        iterators.add(iterator);
        return iterator;
    }

    void forget(StoreIterator iterator) {
        iterators.remove(iterator);
    }

    // Writing.

    /** Writes the buffer if a transaction was committed since the last write. Call it before each write. */
    void beforeWrite() {
        checkOpen();
        givenRecords();
        restoration.over();
        if (signal != null) {
            Map<TopicPartition, Long> committed = signal.committed();
            if (committed != null && bufferedBytes > 0) {
                write(committed, false);
            }
        }
    }

    /** Hears that the store is given records, even if it keeps none of them. */
    void givenRecords() {
        begun = true;
    }

    /** Counts bytes that were buffered. */
    void buffered(long bytes) {
        bufferedBytes += bytes;
    }

    /** Writes the buffer if it has grown too large. Call it after each write. */
    void afterWrite() {
        if (bufferedBytes > config.uncommittedMaxBytes) {
            spill();
        }
    }


    /** Writes the buffer without an offset, and the mark that the entries may not be committed. */
    private void spill() {
        lock.writeLock().lock();
        try (WriteBatch batch = new WriteBatch()) {
            addBuffers(batch);
            progress.addMark(batch);
            call("write", () -> {
                database.write(batch);
                return null;
            });
            progress.wrote(true);
            clearBuffers();
        } finally {
            lock.writeLock().unlock();
        }
    }

    /**
     * Writes the buffer, the offsets and the position as one batch. No offsets at all remove those that
     * are stored, and an offset of null removes that of its partition.
     *
     * <p>After the open Kafka commits the offsets of a checkpoint file that an earlier version
     * left, and then asks for the committed offset. Those of the file belong to other files: this
     * store may have fewer records. So it ignores offsets until it is asked for its own, or is
     * given a record.
     */
    void commit(Map<TopicPartition, Long> offsets) {
        checkOpen();
        Map<TopicPartition, Long> own = offsets;
        if (!begun) {
            own = new HashMap<>(offsets);
            own.values().removeIf(offset -> offset != null && offset >= 0);
        }
        write(own, offsets.isEmpty());
    }

    private void write(Map<TopicPartition, Long> offsets, boolean forget) {
        restoration.check();
        Progress.CommitPoint point = progress.point(offsets);
        lock.writeLock().lock();
        try (WriteBatch batch = new WriteBatch()) {
            addBuffers(batch);
            if (forget) {
                restoration.forget();
                progress.addNoOffsets(batch);
            }
            boolean mayStore = restoration.mayStore();
            if (mayStore) {
                progress.addPoint(batch, point);
            }
            progress.addCommit(batch);
            if (batch.count() > 0) {
                call("commit", () -> {
                    database.write(batch, config.commitSync ? WriteOptions.SYNC : WriteOptions.DEFAULT);
                    return null;
                });
            }
            if (!mayStore) {
                restoration.keep(point);
            }
            progress.wrote(false);
            clearBuffers();
            for (Family family : dropped) {
                family.drop();
                call("drop an expired segment of", () -> {
                    database.dropColumnFamily(family.family);
                    return null;
                });
            }
            dropped.clear();
        } finally {
            lock.writeLock().unlock();
        }
        restoration.committed();
    }

    private void addBuffers(WriteBatch batch) {
        for (Family family : families.values()) {
            family.buffered().forEach((key, value) -> {
                if (value == Family.REMOVED) {
                    batch.delete(family.family, key.get());
                } else {
                    batch.put(family.family, key.get(), value);
                }
            });
        }
    }

    private void clearBuffers() {
        families.values().forEach(Family::clear);
        dropped.forEach(Family::clear);
        bufferedBytes = 0;
    }

    /**
     * Writes entries of so many records of the changelog, which have so many bytes. They are committed, so the
     * buffer is not needed.
     */
    void restore(WriteBatch batch, int records, long bytes) {
        checkOpen();
        givenRecords();
        // Without any offset exactly-once would take the entries for those of an open transaction.
        boolean unlogged = (!config.exactlyOnce || progress.isKnown()) && restoration.unlogged(records, bytes);
        WriteOptions how = unlogged ? WriteOptions.WITHOUT_WAL : WriteOptions.DEFAULT;
        call("restore", () -> {
            database.write(batch, config.restoreLowPriority ? how.withLowPriority() : how);
            return null;
        });
    }

    /**
     * Writes the buffer, which has entries of the changelog, if it has grown large. All of it is
     * logged: a record may move an entry to another family, and families are flushed one by one.
     */
    void afterRestored() {
        if (bufferedBytes <= config.uncommittedMaxBytes) {
            return;
        }
        lock.writeLock().lock();
        try (WriteBatch batch = new WriteBatch()) {
            addBuffers(batch);
            restore(batch, 0, bufferedBytes);
            clearBuffers();
        } finally {
            lock.writeLock().unlock();
        }
    }

    /** Waits until everything that was restored is stored, if a flush for it was begun. */
    void awaitRestored() {
        restoration.await();
    }

    /** How a restoration in bulk stores what it wrote around the WAL. */
    private final class Restored implements Restoration.Target {
        @Override
        public void flush() {
            call("restore", () -> {
                families.values().forEach(Family::flush);
                return null;
            });
        }

        @Override
        public void storePoint(Supplier<Progress.CommitPoint> covered) {
            lock.writeLock().lock();
            try (WriteBatch batch = new WriteBatch()) {
                Progress.CommitPoint point = covered.get();
                if (point != null) {
                    progress.addPoint(batch, point);
                    call("commit", () -> {
                        database.write(batch);
                        return null;
                    });
                }
            } finally {
                lock.writeLock().unlock();
            }
        }
    }

    /**
     * Returns the offset up to which the store has the changelog, or null. Under exactly-once an
     * empty store of a partition has the offset that Kafka calls unknown: it is restored, but is no
     * damage. For a global store null says the same; Kafka would seek to any other answer.
     */
    Long committedOffset(TopicPartition partition) {
        checkOpen();
        begun = true;
        if (config.exactlyOnce && progress.isUncommitted()) {
            return null;
        }
        Long offset = restoration.waiting(partition);
        if (offset == null) {
            offset = call("read the offset of", () -> progress.offset(partition));
        }
        if (offset != null) {
            return offset;
        }
        return config.exactlyOnce && !global && isEmpty() ? OffsetCheckpoint.OFFSET_UNKNOWN : null;
    }

    private boolean isEmpty() {
        for (Family family : families.values()) {
            boolean found = call("read", () -> {
                try (Cursor cursor = family.family.cursor()) {
                    return cursor.seekToFirst();
                }
            });
            if (found || family.bufferedEntries() > 0) {
                return false;
            }
        }
        return true;
    }

    /** Returns an estimate of the number of entries. */
    long entries() {
        long entries = 0;
        for (Family family : families.values()) {
            String estimate = call("count", () -> family.family.property("rocksdb.estimate-num-keys"))
                .orElse("0");
            entries += Long.parseLong(estimate) + family.bufferedEntries();
        }
        return Math.max(entries, 0);
    }

    /** Returns the sum of a property of the column families, or 0. */
    long property(String name) {
        long sum = 0;
        for (ColumnFamily family : database.columnFamilies()) {
            try {
                sum += Long.parseLong(family.property(name).orElse("0"));
            } catch (ClosedException | NumberFormatException none) {
                // The family has just been dropped, or the property is a text.
                continue;
            }
        }
        return sum;
    }

    /** Returns a property that the column families have in common, or 0. */
    long propertyOfAll(String name) {
        try {
            return Long.parseLong(database.property(name).orElse("0"));
        } catch (ClosedException | NumberFormatException none) {
            return 0;
        }
    }

    /** Returns the counters of the database by their names. */
    Map<String, Long> counters() {
        return call("count", database::metrics);
    }

    /** Returns a histogram of the database by its name. */
    Histogram histogram(String name) {
        return call("count", () -> database.histogram(name));
    }

    boolean isOpen() {
        return open;
    }

    void checkOpen() {
        if (!open) {
            throw new InvalidStateStoreException("the store " + store + " is closed");
        }
    }

    /** Closes the iterators and the database. What is buffered is written if it cannot be rolled back. */
    void close() {
        if (!open) {
            return;
        }
        open = false;
        try {
            if (!config.exactlyOnce && bufferedBytes > 0) {
                lock.writeLock().lock();
                try (WriteBatch batch = new WriteBatch()) {
                    addBuffers(batch);
                    progress.addMark(batch);
                    call("write", () -> {
                        database.write(batch);
                        return null;
                    });
                } finally {
                    lock.writeLock().unlock();
                }
            }
            restoration.finish();
        } finally {
            List.copyOf(iterators).forEach(StoreIterator::close);
            try {
                call("close", () -> {
                    database.close();
                    return null;
                });
            } finally {
                runtime.leave();
            }
        }
    }

    // Errors.

    /** Runs a call of the database, and says which store an error is about. */
    <R> R call(String what, Supplier<R> call) {
        try {
            return call.get();
        } catch (ClosedException closed) {
            throw new InvalidStateStoreException("the store " + store + " is closed", closed);
        } catch (SateenException failed) {
            if (failed.kind() == SateenException.Kind.NO_SPACE) {
                throw new ProcessorStateException("cannot " + what + " the store " + store
                    + ": the disk of " + path + " is full. Nothing that was committed is lost. Make room, then"
                    + " start the application again. " + failed.getMessage(), failed);
            }
            throw new ProcessorStateException("cannot " + what + " the store " + store + " in " + path + ": "
                + failed.getMessage(), failed);
        }
    }

    /** Adds a put, or the removal of a key if the value is null. */
    static void add(WriteBatch batch, Family family, byte[] key, byte[] value) {
        if (value == null) {
            batch.delete(family.family, key);
        } else {
            batch.put(family.family, key, value);
        }
    }
}
