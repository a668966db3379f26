package sateen.kafka;

import java.nio.ByteBuffer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * A window store. A stored key is Kafka's key, the start of the window (8 bytes) and a number (4 bytes)
 * that tells duplicates apart: that of the changelog.
 */
class SateenWindowStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    private static final int SUFFIX = 12;

    private final long windowSize;
    private final boolean retainDuplicates;
    private int number;

    SateenWindowStore(String name, long interval, long retention, long windowSize, boolean retainDuplicates) {
        super(name, interval, retention);
        this.windowSize = windowSize;
        this.retainDuplicates = retainDuplicates;
    }

    /** A store whose values begin with a time. */
    static final class Timestamped extends SateenWindowStore implements TimestampedBytesStore {
        Timestamped(String name, long interval, long retention, long windowSize, boolean retainDuplicates) {
            super(name, interval, retention, windowSize, retainDuplicates);
        }
    }

    /** A store whose values begin with headers and a time. */
    static final class WithHeaders extends SateenWindowStore
            implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(String name, long interval, long retention, long windowSize, boolean retainDuplicates) {
            super(name, interval, retention, windowSize, retainDuplicates);
        }
    }

    @Override
    String metricsScope() {
        return SateenStores.WINDOW_SCOPE;
    }

    @Override
    String shape() {
        return Shape.of("window", this, intervalOfSegments() + " duplicates=" + retainDuplicates);
    }

    @Override
    long time(byte[] key) {
        return start(key);
    }

    private static long start(byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - SUFFIX);
    }

    private static Bytes stored(Bytes key, long start, int number) {
        byte[] bytes = key.get();
        return Bytes.wrap(ByteBuffer.allocate(bytes.length + SUFFIX).put(bytes).putLong(start).putInt(number)
            .array());
    }

    @Override
    public synchronized void put(Bytes key, byte[] value, long windowStart) {
        require(key);
        if (retainDuplicates) {
            if (value == null) {
                // Nothing could say which of the duplicates is meant.
                return;
            }
            number = (number + 1) & Integer.MAX_VALUE;
        }
        write(stored(key, windowStart, number), value);
    }

    @Override
    public byte[] fetch(Bytes key, long windowStart) {
        require(key);
        return read(stored(key, windowStart, number));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long from, long to) {
        return new Values(ofKey(key, from, to, true));
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long from, long to) {
        return new Values(ofKey(key, from, to, false));
    }

    private KeyValueIterator<Bytes, byte[]> ofKey(Bytes key, long from, long to, boolean forward) {
        require(key);
        long first = Math.max(Math.max(from, earliest()), 0);
        return entries(first, to, stored(key, first, 0), stored(key, Math.max(to, 0), Integer.MAX_VALUE), forward,
            stored -> begins(stored, stored.length - SUFFIX, key) && within(stored, first, to));
    }

    private static boolean within(byte[] stored, long from, long to) {
        long start = start(stored);
        return start >= from && start <= to;
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo, long from, long to) {
        return ofKeys(keyFrom, keyTo, from, to, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo, long from,
            long to) {
        return ofKeys(keyFrom, keyTo, from, to, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKeys(Bytes keyFrom, Bytes keyTo, long from, long to,
            boolean forward) {
        long first = Math.max(from, earliest());
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            Ranges.warnInverted();
            return new Windows(entries(1, 0, null, null, forward, stored -> false));
        }
        Bytes last = keyTo == null ? null : Ranges.greatest(keyTo,
            ByteBuffer.allocate(SUFFIX).putLong(Math.max(to, 0)).putInt(Integer.MAX_VALUE).array());
        return new Windows(entries(first, to, keyFrom, last, forward,
            stored -> between(stored, stored.length - SUFFIX, keyFrom, keyTo) && within(stored, first, to)));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long from, long to) {
        return ofKeys(null, null, from, to, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long from, long to) {
        return ofKeys(null, null, from, to, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return ofKeys(null, null, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return ofKeys(null, null, 0, Long.MAX_VALUE, false);
    }

    private Windowed<Bytes> windowed(Bytes stored) {
        byte[] bytes = stored.get();
        long start = start(bytes);
        long end = start + windowSize;
        return new Windowed<>(Bytes.wrap(java.util.Arrays.copyOf(bytes, bytes.length - SUFFIX)),
            new TimeWindow(start, end < 0 ? Long.MAX_VALUE : end));
    }

    /** The entries of one key, by the starts of their windows. */
    private static final class Values implements WindowStoreIterator<byte[]> {
        private final KeyValueIterator<Bytes, byte[]> entries;

        Values(KeyValueIterator<Bytes, byte[]> entries) {
            this.entries = entries;
        }

        @Override
        public boolean hasNext() {
            return entries.hasNext();
        }

        @Override
        public KeyValue<Long, byte[]> next() {
            KeyValue<Bytes, byte[]> next = entries.next();
            return KeyValue.pair(start(next.key.get()), next.value);
        }

        @Override
        public Long peekNextKey() {
            return start(entries.peekNextKey().get());
        }

        @Override
        public void close() {
            entries.close();
        }
    }

    /** The entries of several keys. */
    private final class Windows implements KeyValueIterator<Windowed<Bytes>, byte[]> {
        private final KeyValueIterator<Bytes, byte[]> entries;

        Windows(KeyValueIterator<Bytes, byte[]> entries) {
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
