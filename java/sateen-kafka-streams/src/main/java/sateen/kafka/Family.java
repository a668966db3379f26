package sateen.kafka;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import sateen.ClosedException;
import sateen.ColumnFamily;
import sateen.Cursor;
import sateen.ReadOptions;
import sateen.SateenException;

/**
 * A column family of a {@link StateDatabase}, and what is buffered for it.
 *
 * <p>Readers of any thread see the buffer before the column family. {@link StateDatabase} moves entries
 * from one to the other under its lock, and iterators begin under that lock, so that none misses an entry.
 */
final class Family {
    /** A removed key in the buffer, which is told from an empty value by its identity. */
    static final byte[] REMOVED = new byte[0];
    /** What an entry of the buffer takes beside its bytes: the node, its key's object, two headers. */
    private static final int ENTRY_OVERHEAD = 128;

    /** How often an iterator copies the buffer while puts go on, before it makes them wait. */
    private static final int FREE_COPIES = 2;

    private final StateDatabase database;
    final ColumnFamily family;
    private volatile ConcurrentSkipListMap<Bytes, byte[]> buffer = new ConcurrentSkipListMap<>();
    /**
     * Held by a put, and by an iterator that copies the buffer after {@link #FREE_COPIES} attempts.
     * Nothing else is locked under it.
     */
    private final Object copying = new Object();
    /** The number of puts that have begun. */
    private volatile long puts;
    /** Whether the column family was dropped. A query that still has this sees nothing in it. */
    private volatile boolean gone;

    Family(StateDatabase database, ColumnFamily family) {
        this.database = database;
        this.family = family;
    }

    /** Buffers a value, or the removal of a key if it is null. */
    void put(Bytes key, byte[] value) {
        byte[] before;
        synchronized (copying) {
            puts++;
            before = buffer.put(key, value == null ? REMOVED : value);
        }
        long bytes = value == null ? 0 : value.length;
        if (before == null) {
            bytes += key.get().length + ENTRY_OVERHEAD;
        } else {
            bytes -= before.length;
        }
        database.buffered(bytes);
    }

    byte[] get(Bytes key) {
        byte[] buffered = buffer.get(key);
        if (buffered != null) {
            return buffered == REMOVED ? null : buffered;
        }
        return database.call("get", () -> unlessGone(() -> family.get(key.get())));
    }

    /** Stores what is in the memtable. */
    void flush() {
        try {
            family.flush();
        } catch (ClosedException | SateenException failed) {
            if (!gone) {
                throw failed;
            }
        }
    }

    /** Notes that the column family is about to be dropped. */
    void drop() {
        gone = true;
    }

    /** Reads the column family; returns null if it was dropped. */
    private <R> R unlessGone(Supplier<R> read) {
        try {
            return read.get();
        } catch (ClosedException closed) {
            if (gone) {
                return null;
            }
            throw closed;
        }
    }

    int bufferedEntries() {
        return buffer.size();
    }

    /** Returns the buffer's entries, whose order does not change while the lock for writing is held. */
    Map<Bytes, byte[]> buffered() {
        return buffer;
    }

    /** Forgets the buffer. Iterators that have begun keep what they took from it. */
    void clear() {
        if (!buffer.isEmpty()) {
            buffer = new ConcurrentSkipListMap<>();
        }
    }

    /** Returns an iterator over the keys from {@code from} to {@code to}, both included; null is no bound. */
    StoreIterator iterator(Bytes from, Bytes to, boolean forward) {
        return iterator(from, to, true, forward);
    }

    StoreIterator iterator(Bytes from, Bytes to, boolean toIncluded, boolean forward) {
        if (from != null && to != null && from.compareTo(to) > 0) {
            return database.track(new StoreIterator(database, List.of(), null, forward));
        }
        return database.reading(() -> {
            NavigableMap<Bytes, byte[]> part = buffer;
            if (from != null) {
                part = part.tailMap(from, true);
            }
            if (to != null) {
                part = part.headMap(to, toIncluded);
            }
            List<Map.Entry<Bytes, byte[]>> entries = copy(forward ? part : part.descendingMap());
            byte[] upper = to == null ? null : toIncluded ? after(to.get()) : to.get();
            ReadOptions bounds = ReadOptions.DEFAULT.between(from == null ? null : from.get(), upper);
            Cursor cursor = unlessGone(() -> family.cursor(bounds));
            return database.track(new StoreIterator(database, entries, cursor, forward));
        });
    }

    /**
     * Returns the entries of a part of the buffer. A put may be missing only if every later put is
     * missing too. A copy has that if no put began meanwhile: then at most one was going on.
     */
    private List<Map.Entry<Bytes, byte[]>> copy(Map<Bytes, byte[]> part) {
        for (int attempt = 0; attempt < FREE_COPIES; attempt++) {
            long before = puts;
            List<Map.Entry<Bytes, byte[]>> entries = new ArrayList<>();
            part.entrySet().forEach(entries::add);
            if (puts == before) {
                return entries;
            }
        }
        synchronized (copying) {
            List<Map.Entry<Bytes, byte[]>> entries = new ArrayList<>();
            part.entrySet().forEach(entries::add);
            return entries;
        }
    }

    /** Returns the first key behind {@code key}. */
    private static byte[] after(byte[] key) {
        return java.util.Arrays.copyOf(key, key.length + 1);
    }
}
