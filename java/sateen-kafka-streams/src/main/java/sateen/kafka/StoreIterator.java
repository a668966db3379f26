package sateen.kafka;

import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;
import sateen.Cursor;

/**
 * The entries of a family at the moment at which the iterator was made: those of the buffer, which hide
 * those of the same keys in the column family.
 */
final class StoreIterator implements KeyValueIterator<Bytes, byte[]> {
    private final StateDatabase database;
    private final List<Map.Entry<Bytes, byte[]>> buffered;
    private final Cursor cursor;
    private final boolean forward;
    private int at;
    private boolean begun;
    /** The key at the cursor; null behind the last one. */
    private Bytes stored;
    private KeyValue<Bytes, byte[]> next;
    private volatile boolean closed;

    /** Makes an iterator; {@code cursor} is null if there is nothing to read. */
    StoreIterator(StateDatabase database, List<Map.Entry<Bytes, byte[]>> buffered, Cursor cursor,
            boolean forward) {
        this.database = database;
        this.buffered = buffered;
        this.cursor = cursor;
        this.forward = forward;
    }

    /** Returns whether this was closed, by its user or with the store. */
    boolean isClosed() {
        return closed;
    }

    @Override
    public boolean hasNext() {
        if (closed) {
            throw new InvalidStateStoreException("an iterator of the store " + database.store()
                + " was used after it, or the store, was closed");
        }
        if (next == null) {
            next = database.call("iterate", this::find);
        }
        return next != null;
    }

    private KeyValue<Bytes, byte[]> find() {
        if (!begun) {
            begun = true;
            if (cursor != null) {
                move(forward ? cursor.seekToFirst() : cursor.seekToLast());
            }
        }
        for (;;) {
            Map.Entry<Bytes, byte[]> entry = at < buffered.size() ? buffered.get(at) : null;
            if (entry == null && stored == null) {
                return null;
            }
            int order = entry == null ? 1 : stored == null ? -1 : entry.getKey().compareTo(stored);
            if (!forward && entry != null && stored != null) {
                order = -order;
            }
            if (order > 0) {
                KeyValue<Bytes, byte[]> found = KeyValue.pair(stored, cursor.value());
                step();
                return found;
            }
            at++;
            if (order == 0) {
                step();
            }
            if (entry.getValue() != Family.REMOVED) {
                return KeyValue.pair(entry.getKey(), entry.getValue());
            }
        }
    }

    private void step() {
        move(forward ? cursor.next() : cursor.previous());
    }

    private void move(boolean found) {
        stored = found ? Bytes.wrap(cursor.key()) : null;
    }

    @Override
    public KeyValue<Bytes, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        KeyValue<Bytes, byte[]> found = next;
        next = null;
        return found;
    }

    @Override
    public Bytes peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return next.key;
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            if (cursor != null) {
                cursor.close();
            }
            database.forget(this);
        }
    }
}
