package sateen.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;

/**
 * A session store. A stored key is Kafka's key, the end and the start of the session (8 bytes each): that
 * of the changelog. A session belongs to the segment of its end.
 */
class SateenSessionStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    private static final int SUFFIX = 16;

    SateenSessionStore(String name, long interval, long retention) {
        super(name, interval, retention);
    }

    /** A store whose values begin with headers. */
    static final class WithHeaders extends SateenSessionStore implements HeadersBytesStore {
        WithHeaders(String name, long interval, long retention) {
            super(name, interval, retention);
        }
    }

    @Override
    String metricsScope() {
        return SateenStores.SESSION_SCOPE;
    }

    @Override
    String shape() {
        return Shape.of("session", this, intervalOfSegments());
    }

    @Override
    long time(byte[] key) {
        return end(key);
    }

    private static long end(byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - SUFFIX);
    }

    private static long start(byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - 8);
    }

    private static Bytes stored(Bytes key, long end, long start) {
        byte[] bytes = key.get();
        return Bytes.wrap(ByteBuffer.allocate(bytes.length + SUFFIX).put(bytes).putLong(end).putLong(start)
            .array());
    }

    private static Windowed<Bytes> windowed(Bytes stored) {
        byte[] bytes = stored.get();
        return new Windowed<>(Bytes.wrap(Arrays.copyOf(bytes, bytes.length - SUFFIX)),
            new SessionWindow(start(bytes), end(bytes)));
    }

    @Override
    public void put(Windowed<Bytes> session, byte[] aggregate) {
        require(session.key());
        write(stored(session.key(), session.window().end(), session.window().start()), aggregate);
    }

    @Override
    public void remove(Windowed<Bytes> session) {
        require(session.key());
        write(stored(session.key(), session.window().end(), session.window().start()), null);
    }

    @Override
    public byte[] fetchSession(Bytes key, long start, long end) {
        require(key);
        return read(stored(key, end, start));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes key, long earliestEnd,
            long latestStart) {
        return ofKey(key, earliestEnd, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(Bytes key, long earliestEnd,
            long latestStart) {
        return ofKey(key, earliestEnd, latestStart, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKey(Bytes key, long earliestEnd, long latestStart,
            boolean forward) {
        require(key);
        long first = Math.max(Math.max(earliestEnd, earliest()), 0);
        return new Sessions(entries(first, Long.MAX_VALUE, stored(key, first, 0),
            stored(key, Long.MAX_VALUE, Math.max(latestStart, 0)), forward,
            stored -> begins(stored, stored.length - SUFFIX, key) && end(stored) >= first
                && start(stored) <= latestStart));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes keyFrom, Bytes keyTo,
            long earliestEnd, long latestStart) {
        return ofKeys(keyFrom, keyTo, earliestEnd, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(Bytes keyFrom, Bytes keyTo,
            long earliestEnd, long latestStart) {
        return ofKeys(keyFrom, keyTo, earliestEnd, latestStart, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKeys(Bytes keyFrom, Bytes keyTo, long earliestEnd,
            long latestStart, boolean forward) {
        long first = Math.max(earliestEnd, earliest());
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            Ranges.warnInverted();
            return new Sessions(entries(1, 0, null, null, forward, stored -> false));
        }
        Bytes last = keyTo == null ? null : Ranges.greatest(keyTo,
            ByteBuffer.allocate(SUFFIX).putLong(Long.MAX_VALUE).putLong(Math.max(latestStart, 0)).array());
        return new Sessions(entries(first, Long.MAX_VALUE, keyFrom, last, forward,
            stored -> between(stored, stored.length - SUFFIX, keyFrom, keyTo) && end(stored) >= first
                && start(stored) <= latestStart));
    }

    /** Finds all sessions that end from one time to another, both included. */
    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(long earliestEnd, long latestEnd) {
        long first = Math.max(earliestEnd, earliest());
        return new Sessions(entries(first, latestEnd, null, null, true,
            stored -> end(stored) >= first && end(stored) <= latestEnd));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return ofKey(key, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return ofKey(key, 0, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return ofKeys(keyFrom, keyTo, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return ofKeys(keyFrom, keyTo, 0, Long.MAX_VALUE, false);
    }

    /** Sessions, by their keys. */
    private static final class Sessions implements KeyValueIterator<Windowed<Bytes>, byte[]> {
        private final KeyValueIterator<Bytes, byte[]> entries;

        Sessions(KeyValueIterator<Bytes, byte[]> entries) {
            this.entries = entries;
        }

        @Override
        public boolean hasNext() {
            return entries.hasNext();
        }

        @Override
        public KeyValue<Windowed<Bytes>, byte[]> next() {
            KeyValue<Bytes, byte[]> next = entries.next();
            return KeyValue.pair(windowed(next.key), next.value);
        }

        @Override
        public Windowed<Bytes> peekNextKey() {
            return windowed(entries.peekNextKey());
        }

        @Override
        public void close() {
            entries.close();
        }
    }
}
