package sateen.kafka;

import java.util.Collection;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueIterator;
import sateen.WriteBatch;

/**
 * A store whose keys end with times, and whose entries expire. A segment has the keys of its interval in
 * their order, so that all entries of one key stand together.
 */
abstract class SegmentedStore extends SateenStore {
    private final long interval;
    private final long retention;
    private Segments segments;

    SegmentedStore(String name, long interval, long retention) {
        super(name);
        this.interval = interval;
        this.retention = retention;
    }

    /** Returns what a {@link Shape} says of the segments. */
    final String intervalOfSegments() {
        return Segments.interval(interval);
    }

    /** Returns the time by which an entry belongs to a segment. */
    abstract long time(byte[] key);

    @Override
    final void opened(StateDatabase opened, StateStoreContext storeContext) {
        segments = new Segments(opened, storeContext, interval, retention);
    }

    /** Returns the earliest time that has not expired. */
    final long earliest() {
        return segments.earliest();
    }

    @Override
    final void restoring(Collection<ConsumerRecord<byte[], byte[]>> records) {
        // So that nothing is restored into a segment that the same records make expire.
        for (ConsumerRecord<byte[], byte[]> changed : records) {
            segments.observe(time(changed.key()));
        }
    }

    @Override
    final boolean restore(WriteBatch batch, ConsumerRecord<byte[], byte[]> changed) {
        Family segment = segments.forWriting(time(changed.key()));
        if (segment == null) {
            return false;
        }
        StateDatabase.add(batch, segment, changed.key(), changed.value());
        return true;
    }

    /** Puts an entry, or removes it if the value is null. A record that is too late is counted. */
    final synchronized void write(Bytes key, byte[] value) {
        StateDatabase open = database();
        open.beforeWrite();
        long time = time(key.get());
        segments.observe(time);
        Family segment = segments.forWriting(time);
        if (segment == null) {
            segments.countDropped();
            return;
        }
        advancePosition();
        segment.put(key, value);
        open.afterWrite();
    }

    /** Returns the value of a key, unless it has expired. */
    final byte[] read(Bytes key) {
        long time = time(key.get());
        Family segment = !isOpen() || time < segments.earliest() ? null : segments.forReading(time);
        return segment == null ? null : segment.get(key);
    }

    /** Returns the accepted entries of the segments from one time to another. */
    final KeyValueIterator<Bytes, byte[]> entries(long from, long to, Bytes first, Bytes last,
            boolean forward, Segments.Filter filter) {
        // A closed store of this kind is empty, as Kafka's are.
        List<Family> searched = isOpen() ? segments.between(from, to, forward) : List.of();
        return segments.entries(searched, first, last, forward, filter);
    }

    static void require(Object key) {
        Objects.requireNonNull(key, "key cannot be null");
    }

    /** Returns whether the beginning of {@code stored}, {@code length} bytes, is this key. */
    static boolean begins(byte[] stored, int length, Bytes key) {
        byte[] bytes = key.get();
        return bytes.length == length && java.util.Arrays.equals(stored, 0, length, bytes, 0, length);
    }

    /** Returns whether the beginning of {@code stored} is between two keys; null is no bound. */
    static boolean between(byte[] stored, int length, Bytes from, Bytes to) {
        return (from == null
            || java.util.Arrays.compareUnsigned(stored, 0, length, from.get(), 0, from.get().length) >= 0)
            && (to == null
            || java.util.Arrays.compareUnsigned(stored, 0, length, to.get(), 0, to.get().length) <= 0);
    }
}
