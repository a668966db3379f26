package sateen.kafka;

import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import sateen.WriteBatch;

/** A key-value store: Kafka's keys are keys of the family {@code entries}. */
class SateenKeyValueStore extends SateenStore implements KeyValueStore<Bytes, byte[]> {
    private Family entries;

    SateenKeyValueStore(String name) {
        super(name);
    }

    /** A store whose values begin with a time. */
    static final class Timestamped extends SateenKeyValueStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name);
        }
    }

    /** A store whose values begin with headers and a time. */
    static final class WithHeaders extends SateenKeyValueStore implements HeadersBytesStore {
        WithHeaders(String name) {
            super(name);
        }
    }

    @Override
    String shape() {
        return Shape.of("key-value", this, "");
    }

    @Override
    void opened(StateDatabase opened, StateStoreContext storeContext) {
        entries = opened.family("entries");
    }

    @Override
    boolean restore(WriteBatch batch, ConsumerRecord<byte[], byte[]> changed) {
        StateDatabase.add(batch, entries, changed.key(), changed.value());
        return true;
    }

    @Override
    public synchronized void put(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        StateDatabase open = database();
        open.beforeWrite();
        advancePosition();
        entries.put(key, value);
        open.afterWrite();
    }

    @Override
    public synchronized byte[] putIfAbsent(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        byte[] before = get(key);
        if (before == null) {
            put(key, value);
        }
        return before;
    }

    @Override
    public synchronized void putAll(List<KeyValue<Bytes, byte[]>> all) {
        StateDatabase open = database();
        for (KeyValue<Bytes, byte[]> entry : all) {
            Objects.requireNonNull(entry.key, "key cannot be null");
        }
        open.beforeWrite();
        advancePosition();
        for (KeyValue<Bytes, byte[]> entry : all) {
            entries.put(entry.key, entry.value);
        }
        open.afterWrite();
    }

    @Override
    public synchronized byte[] delete(Bytes key) {
        byte[] before = get(key);
        put(key, null);
        return before;
    }

    @Override
    public byte[] get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        database();
        return entries.get(key);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean forward) {
        database();
        if (from != null && to != null && from.compareTo(to) > 0) {
            Ranges.warnInverted();
        }
        return entries.iterator(from, to, forward);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return range(null, null, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return range(null, null, false);
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix,
            PS serializer) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        database();
        byte[] from = serializer.serialize(null, prefix);
        return entries.iterator(Bytes.wrap(from), Ranges.behindPrefix(from), false, true);
    }

    @Override
    public long approximateNumEntries() {
        return database().entries();
    }
}
