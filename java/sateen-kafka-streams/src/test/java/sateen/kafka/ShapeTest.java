package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A store of another shape than its files is empty and knows no offset, so Kafka restores it. */
class ShapeTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);
    private static final Bytes KEY = Bytes.wrap(new byte[] {1});
    private static final long MINUTE = 60_000;

    @TempDir Path directory;

    private <S extends StateStore> S open(S store, boolean exactlyOnce) {
        Properties properties = StreamsTestUtils.getStreamsConfig();
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
            exactlyOnce ? StreamsConfig.EXACTLY_ONCE_V2 : StreamsConfig.AT_LEAST_ONCE);
        store.init(new InternalMockProcessorContext<Object, Object>(directory.toFile(),
            new StreamsConfig(properties)), store);
        return store;
    }

    private static WindowStore<Bytes, byte[]> windows(long minutes, boolean duplicates) {
        return SateenStores.windowStore("store", Duration.ofMinutes(minutes), Duration.ofMinutes(1),
            duplicates).get();
    }

    private static void assertNothingKnown(StateStore store, boolean exactlyOnce) {
        assertEquals(exactlyOnce ? OffsetCheckpoint.OFFSET_UNKNOWN : null,
            store.committedOffset(CHANGELOG));
    }

    private static void fill(WindowStore<Bytes, byte[]> store) {
        for (long minute = 1; minute <= 10; minute++) {
            store.put(KEY, new byte[] {(byte) minute}, minute * MINUTE);
        }
        store.commit(Map.of(CHANGELOG, 10L));
        store.close();
    }

    @ParameterizedTest
    @CsvSource({"10,40,false", "10,40,true", "40,10,false", "40,10,true"})
    void aStoreOfAnotherRetentionIsRestored(long before, long after, boolean exactlyOnce) {
        fill(open(windows(before, false), exactlyOnce));
        WindowStore<Bytes, byte[]> same = open(windows(before, false), exactlyOnce);
        assertEquals(10, same.committedOffset(CHANGELOG));
        assertEquals(9, same.fetch(KEY, 9 * MINUTE)[0]);
        same.close();
        WindowStore<Bytes, byte[]> other = open(windows(after, false), exactlyOnce);
        assertNothingKnown(other, exactlyOnce);
        try (var all = other.all()) {
            assertEquals(false, all.hasNext());
        }
        fill(other);
        WindowStore<Bytes, byte[]> restored = open(windows(after, false), exactlyOnce);
        assertEquals(10, restored.committedOffset(CHANGELOG));
        assertEquals(9, restored.fetch(KEY, 9 * MINUTE)[0]);
        restored.close();
    }

    @Test
    void aStoreWithDuplicatesIsNotOneWithout() {
        fill(open(windows(10, true), false));
        WindowStore<Bytes, byte[]> other = open(windows(10, false), false);
        assertNothingKnown(other, false);
        other.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aStoreOfAnotherFormatIsRestored(boolean exactlyOnce) {
        byte number = 0;
        for (KeyValueStore<Bytes, byte[]> store : List.of(SateenStores.keyValueStore("store").get(),
                SateenStores.timestampedKeyValueStore("store").get(),
                SateenStores.keyValueStoreWithHeaders("store").get(),
                SateenStores.keyValueStore("store").get())) {
            open(store, exactlyOnce);
            assertNothingKnown(store, exactlyOnce);
            assertNull(store.get(KEY));
            store.put(KEY, new byte[] {++number});
            store.commit(Map.of(CHANGELOG, (long) number));
            store.close();
            open(store, exactlyOnce);
            assertEquals(number, store.committedOffset(CHANGELOG));
            assertEquals(number, store.get(KEY)[0]);
            store.close();
        }
    }

    private static StateStore versioned() {
        return new SateenVersionedStore("store", MINUTE, 10 * MINUTE);
    }

    @Test
    void aVersionedStoreOfTheFirstLayoutIsRestored() {
        byte[] name = "shape".getBytes();
        StateStore first = open(versioned(), true);
        assertNothingKnown(first, true);
        first.commit(Map.of(CHANGELOG, 7L));
        assertEquals(7L, first.committedOffset(CHANGELOG));
        first.close();
        try (sateen.Database old = sateen.Database.open(directory.resolve("sateen/store"),
                new sateen.Options())) {
            String shape = new String(old.get(name));
            old.put(name, shape.replace("versioned-2 ", "versioned ").getBytes());
        }
        StateStore again = open(versioned(), true);
        assertNothingKnown(again, true);
        again.commit(Map.of(CHANGELOG, 8L));
        again.close();
        again = open(versioned(), true);
        assertEquals(8L, again.committedOffset(CHANGELOG));
        again.close();
    }

    @Test
    void filesWithoutARecordAreOfAnotherShape() {
        try (sateen.Database old = sateen.Database.open(directory.resolve("sateen/store"),
                new sateen.Options().set("create_if_missing", "true"))) {
            old.put("offset:changelog-0".getBytes(), new byte[] {0, 0, 0, 0, 0, 0, 0, 7});
            try (sateen.WriteBatch batch = new sateen.WriteBatch()) {
                batch.put(old.createColumnFamily("entries", new sateen.Options()), KEY.get(),
                    new byte[] {1});
                old.write(batch);
            }
        }
        KeyValueStore<Bytes, byte[]> store = open(SateenStores.keyValueStore("store").get(), true);
        assertNothingKnown(store, true);
        assertNull(store.get(KEY));
        store.close();
    }
}
