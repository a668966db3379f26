package sateen.kafka;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.streams.state.internals.VersionedKeyValueToBytesStoreAdapter;
import sateen.WriteBatch;

/**
 * A store of all versions of a value that are not older than the retention.
 *
 * <p>A version is valid from its own time to that of the next version of its key. The family
 * {@code latest} has for each key the time and value of its newest version, unless that is a
 * removal. Each older version is in the segment of the time to which it is valid, so that it
 * expires with the segment. Its key there is Kafka's key and the time from which it is valid (8
 * bytes). A removal is a version without a value. If it is the newest one, it is in the segment of
 * its own time, as if it were valid to that time: the keys of removed values expire too. It stays
 * so if the next version is put into a later segment; the key has no value between the two.
 *
 * <p>To put a version at a time:
 *
 * <ol>
 * <li>If no newer version exists, the newest one goes to the segment of this time
 *     ({@code retire}), and this one becomes the newest ({@code renew}).
 * <li>Otherwise find the version that is valid at this time ({@code find}). It now ends at this time;
 *     the new version ends where that one ended.
 * </ol>
 */
final class SateenVersionedStore extends SateenStore implements VersionedKeyValueStore<Bytes, byte[]> {
    private static final byte VALUE = 1, REMOVAL = 0;

    private final long interval;
    private final long retention;
    private Family latest;
    private Segments segments;

    SateenVersionedStore(String name, long interval, long retention) {
        super(name);
        this.interval = interval;
        this.retention = retention;
    }

    VersionedBytesStore asBytesStore() {
        return new VersionedKeyValueToBytesStoreAdapter(this);
    }

    private Segments segments() {
        database();
        return segments;
    }

    @Override
    @SuppressWarnings("unchecked")
    public synchronized <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        // As a put, it locks the store before the position. Queries.run locks the position before it reads.
        if (!(query instanceof MultiVersionedKeyQuery)) {
            return super.query(query, bound, config);
        }
        MultiVersionedKeyQuery<Bytes, byte[]> wanted = (MultiVersionedKeyQuery<Bytes, byte[]>) query;
        return Queries.run(this, bound, getPosition(), context(), () -> (R) versions(wanted.key(),
            wanted.fromTime().map(Instant::toEpochMilli).orElse(0L),
            wanted.toTime().map(Instant::toEpochMilli).orElse(Long.MAX_VALUE), wanted.resultOrder()));
    }

    /** A version of a key; the value is null if the key was removed. */
    private static final class Version {
        final byte[] value;
        final long from;
        /** When the next version begins; {@code Long.MAX_VALUE} for the newest one. */
        final long to;

        Version(byte[] value, long from, long to) {
            this.value = value;
            this.from = from;
            this.to = to;
        }
    }

    @Override
    String shape() {
        // In the first layout the family "latest" had removals too.
        return Shape.of("versioned-2", this, Segments.interval(interval));
    }

    @Override
    void opened(StateDatabase opened, StateStoreContext storeContext) {
        latest = opened.family("latest");
        segments = new Segments(opened, storeContext, interval, retention);
    }

    @Override
    void restoring(Collection<ConsumerRecord<byte[], byte[]>> records) {
        // A version depends on those before it, so records are restored one by one, in the buffer.
        for (ConsumerRecord<byte[], byte[]> changed : records) {
            // A query of a standby must not see a version between its removal and its new place.
            synchronized (this) {
                insert(Bytes.wrap(changed.key()), changed.value(), changed.timestamp());
            }
            database().afterRestored();
        }
    }

    @Override
    boolean restore(WriteBatch batch, ConsumerRecord<byte[], byte[]> changed) {
        return true;
    }

    @Override
    public synchronized long put(Bytes key, byte[] value, long time) {
        Objects.requireNonNull(key, "key cannot be null");
        StateDatabase open = database();
        open.beforeWrite();
        advancePosition();
        long until = insert(key, value, time);
        if (until == PUT_RETURN_CODE_NOT_PUT) {
            segments.countDropped();
        }
        open.afterWrite();
        return until;
    }

    /** Inserts a version. Returns the time to which it is valid, or one of the codes of the interface. */
    private long insert(Bytes key, byte[] value, long time) {
        if (time < segments.time() - retention) {
            return PUT_RETURN_CODE_NOT_PUT;
        }
        segments.observe(time);
        Version newest = newest(key);
        if (newest == null) {
            newest = removal(key, time);
        }
        if (newest == null || time >= newest.from) {
            renew(key, newest, value, time);
            return PUT_RETURN_CODE_VALID_TO_UNDEFINED;
        }
        Version covering = find(key, time);
        if (covering == null) {
            // Older than everything, or after a removal that stays: valid up to the next version.
            long until = following(key, time, newest.from);
            retire(key, new Version(value, time, 0), until);
            return until;
        }
        if (covering.from < time) {
            // It ends earlier now, which may be in another segment.
            remove(key, covering);
            retire(key, covering, time);
        }
        retire(key, new Version(value, time, 0), covering.to);
        return covering.to;
    }

    /** Replaces the newest version, which may be null. */
    private void renew(Bytes key, Version newest, byte[] value, long time) {
        boolean removed = newest != null && newest.value == null;
        if (removed) {
            remove(key, new Version(null, newest.from, newest.from));
        }
        if (newest != null && newest.from < time) {
            retire(key, newest, time);
        }
        if (value != null) {
            latest.put(key, encode(time, value));
            return;
        }
        if (newest != null && !removed) {
            latest.put(key, null);
        }
        retire(key, new Version(null, time, 0), time);
    }

    /** Writes an older version, valid to {@code until}, to its segment, unless that has expired. */
    private void retire(Bytes key, Version version, long until) {
        Family segment = segments.forWriting(until);
        if (segment != null) {
            segment.put(stored(key, version.from), encode(until, version.value));
        }
    }

    private void remove(Bytes key, Version version) {
        Family segment = segments.forReading(version.to);
        if (segment != null) {
            segment.put(stored(key, version.from), null);
        }
    }

    /** Returns the newest version, or null if the key has none or it is a removal. */
    private Version newest(Bytes key) {
        byte[] found = latest.get(key);
        return found == null ? null : new Version(value(found), time(found), Long.MAX_VALUE);
    }

    /**
     * Returns the newest version of a key that has none in {@code latest}: a removal, or null. A
     * removal in a segment before that of {@code time} counts as none. It stays where it is.
     */
    private Version removal(Bytes key, long time) {
        for (Map.Entry<Long, Family> segment : segments.since(time, false).entrySet()) {
            try (StoreIterator versions = entries(segment, key, 0, Long.MAX_VALUE, false)) {
                while (versions.hasNext()) {
                    Version version = version(key, versions.next());
                    if (version != null) {
                        // Segments and versions come from the newest: only this one can be it.
                        return version.from == version.to ? version : null;
                    }
                }
            }
        }
        return null;
    }

    /** Returns the older version that is valid at a time, or null. */
    private Version find(Bytes key, long time) {
        if (time < 0) {
            return null;
        }
        for (Map.Entry<Long, Family> segment : segments.since(time, true).entrySet()) {
            try (StoreIterator versions = entries(segment, key, 0, time, false)) {
                while (versions.hasNext()) {
                    Version version = version(key, versions.next());
                    if (version != null && version.to > time) {
                        return version;
                    }
                    if (version != null) {
                        break;
                    }
                }
            }
        }
        return null;
    }

    /** Returns when the first version after a time begins; {@code newest} is the newest one's. */
    private long following(Bytes key, long time, long newest) {
        for (Map.Entry<Long, Family> segment : segments.since(time, true).entrySet()) {
            try (StoreIterator versions =
                    entries(segment, key, Math.max(time + 1, 0), Long.MAX_VALUE, true)) {
                while (versions.hasNext()) {
                    Version version = version(key, versions.next());
                    if (version != null) {
                        // Versions do not overlap, so those of later segments begin later.
                        return Math.min(newest, version.from);
                    }
                }
            }
        }
        return newest;
    }

    /**
     * Returns the entries of a segment, given with its last time, that may be versions of a key
     * which begin from one time to another. No version begins after the segment's end. A greater
     * bound would let in all keys that begin with this one; {@link #version} skips the others.
     */
    private static StoreIterator entries(Map.Entry<Long, Family> segment, Bytes key, long from,
            long to, boolean forward) {
        return segment.getValue().iterator(stored(key, from),
            stored(key, Math.min(to, segment.getKey())), forward);
    }

    @Override
    public synchronized VersionedRecord<byte[]> delete(Bytes key, long time) {
        Objects.requireNonNull(key, "key cannot be null");
        VersionedRecord<byte[]> before = time < segments().time() - retention ? null : get(key, time);
        put(key, null, time);
        return before;
    }

    @Override
    public synchronized VersionedRecord<byte[]> get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        database();
        Version newest = newest(key);
        return newest == null ? null : new VersionedRecord<>(newest.value, newest.from);
    }

    @Override
    public synchronized VersionedRecord<byte[]> get(Bytes key, long asOf) {
        Objects.requireNonNull(key, "key cannot be null");
        database();
        Version newest = newest(key);
        if (newest != null && newest.from <= asOf) {
            return new VersionedRecord<>(newest.value, newest.from);
        }
        if (asOf < segments.time() - retention) {
            return null;
        }
        Version found = find(key, asOf);
        return found == null || found.value == null ? null
            : new VersionedRecord<>(found.value, found.from, found.to);
    }

    /** The versions of a key that are valid at some moment from one time to another, for queries. */
    synchronized VersionedRecordIterator<byte[]> versions(Bytes key, long from,
            long to, ResultOrder order) {
        database();
        List<VersionedRecord<byte[]>> found = new ArrayList<>();
        Version newest = newest(key);
        if (newest != null && newest.from <= to) {
            found.add(new VersionedRecord<>(newest.value, newest.from));
        }
        long earliest = Math.max(Math.max(from, segments.time() - retention), 0);
        for (Map.Entry<Long, Family> segment : segments.since(earliest, false).entrySet()) {
            try (StoreIterator stored = entries(segment, key, 0, Math.max(to, 0), false)) {
                while (stored.hasNext()) {
                    Version version = version(key, stored.next());
                    if (version != null && version.value != null && version.to > earliest) {
                        found.add(new VersionedRecord<>(version.value, version.from, version.to));
                    }
                }
            }
        }
        if (order == ResultOrder.ASCENDING) {
            java.util.Collections.reverse(found);
        }
        return new Versions(found.iterator());
    }

    private static Bytes stored(Bytes key, long from) {
        byte[] bytes = key.get();
        return Bytes.wrap(ByteBuffer.allocate(bytes.length + 8).put(bytes).putLong(from).array());
    }

    /** Returns the version of an entry; null if the entry is another key's. */
    private static Version version(Bytes key, KeyValue<Bytes, byte[]> entry) {
        byte[] stored = entry.key.get();
        if (!SegmentedStore.begins(stored, stored.length - 8, key)) {
            return null;
        }
        return new Version(value(entry.value), ByteBuffer.wrap(stored).getLong(stored.length - 8),
            time(entry.value));
    }

    /** A time, whether there is a value, and the value. */
    private static byte[] encode(long time, byte[] value) {
        ByteBuffer encoded = ByteBuffer.allocate(9 + (value == null ? 0 : value.length)).putLong(time)
            .put(value == null ? REMOVAL : VALUE);
        return (value == null ? encoded : encoded.put(value)).array();
    }

    private static long time(byte[] encoded) {
        return ByteBuffer.wrap(encoded).getLong();
    }

    private static byte[] value(byte[] encoded) {
        return encoded[8] == REMOVAL ? null : Arrays.copyOfRange(encoded, 9, encoded.length);
    }

    /** Versions that have been read. */
    private static final class Versions
            implements VersionedRecordIterator<byte[]> {
        private final Iterator<VersionedRecord<byte[]>> versions;

        Versions(Iterator<VersionedRecord<byte[]>> versions) {
            this.versions = versions;
        }

        @Override
        public boolean hasNext() {
            return versions.hasNext();
        }

        @Override
        public VersionedRecord<byte[]> next() {
            if (!versions.hasNext()) {
                throw new NoSuchElementException();
            }
            return versions.next();
        }

        @Override
        public void close() {}
    }
}
