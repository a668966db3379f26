package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.internals.ThreadCache;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The metrics of databases: Kafka's names, and what the databases did. */
@Timeout(60)
class StoreMetricsTest {
    /** Metrics of Kafka's RocksDB stores that docs/kafka-streams.md names as missing. */
    private static final Set<String> MISSING = Set.of("block-cache-index-hit-ratio",
        "block-cache-filter-hit-ratio", "number-open-files", "num-live-versions");
    private static final Duration DAY = Duration.ofDays(1);

    @TempDir Path directory;
    private final MockTime time = new MockTime();
    private final Metrics metrics =
        new Metrics(new MetricConfig().recordLevel(RecordingLevel.DEBUG), time);
    private final StreamsMetricsImpl streams = new StreamsMetricsImpl(metrics, "client", time);

    private static Bytes b(String text) {
        return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private InternalMockProcessorContext<Object, Object> context() {
        return new InternalMockProcessorContext<>(directory.toFile(), Serdes.Bytes(),
            Serdes.Bytes(), streams, new StreamsConfig(StreamsTestUtils.getStreamsConfig()),
            MockRecordCollector::new, new ThreadCache(new LogContext(), 0, streams), time);
    }

    private SateenKeyValueStore open(String name) {
        SateenKeyValueStore store = new SateenKeyValueStore(name);
        store.init(context(), store);
        return store;
    }

    /** Runs what {@code KafkaStreams} runs once a minute. */
    private void minute() {
        time.sleep(60_000);
        streams.rocksDBMetricsRecordingTrigger().run();
    }

    private double of(String store, String name) {
        return ((Number) metric(store, name).metricValue()).doubleValue();
    }

    private KafkaMetric metric(String store, String name) {
        return metrics.metrics().values().stream()
            .filter(metric -> metric.metricName().name().equals(name)
                && metric.metricName().tags().containsValue(store))
            .findAny().orElseThrow(() -> new AssertionError("no " + name + " of " + store));
    }

    private Set<String> names(String store) {
        return metrics.metrics().keySet().stream()
            .filter(name -> name.tags().containsValue(store))
            .map(MetricName::name).collect(Collectors.toCollection(TreeSet::new));
    }

    /** Returns all that a metric says of itself, by its name. */
    private Map<String, String> described(String store, String scope) {
        Map<String, String> all = new TreeMap<>();
        for (KafkaMetric metric : metrics.metrics().values()) {
            MetricName name = metric.metricName();
            if (store.equals(name.tags().get(scope + "-state-id"))) {
                Map<String, String> tags = new TreeMap<>(name.tags());
                tags.remove(scope + "-state-id");
                all.put(name.name(), name.group() + " " + tags + " " + name.description() + " "
                    + metric.config().recordLevel() + " "
                    + metric.metricValue().getClass().getName() + " "
                    + (metric.isMeasurable() ? metric.measurable().getClass().getName() : ""));
            }
        }
        return all;
    }

    private void compare(String scope, StoreBuilder<?> kafkas, StoreBuilder<?> ours) {
        StateStore rocksDb = kafkas.build();
        StateStore sateen = ours.build();
        rocksDb.init(context(), rocksDb);
        sateen.init(context(), sateen);
        Map<String, String> expected = described("kafkas", "rocksdb" + scope);
        assertTrue(expected.keySet().containsAll(MISSING), expected.keySet().toString());
        assertTrue(expected.containsKey("put-rate") && expected.containsKey("bytes-read-total"));
        expected.keySet().removeAll(MISSING);
        assertEquals(expected, described("ours", "sateen" + scope));
        rocksDb.close();
        sateen.close();
        assertEquals(Set.of(), names("ours"));
    }

    @Test
    void namesTagsTypesAndLevelsAreThoseOfKafkasStores() {
        compare("", builder(Stores.persistentKeyValueStore("kafkas")),
            builder(SateenStores.keyValueStore("ours")));
        compare("-window", builder(Stores.persistentWindowStore("kafkas", DAY, DAY, false)),
            builder(SateenStores.windowStore("ours", DAY, DAY, false)));
        compare("-session", builder(Stores.persistentSessionStore("kafkas", DAY)),
            builder(SateenStores.sessionStore("ours", DAY)));
    }

    private static StoreBuilder<?> builder(KeyValueBytesStoreSupplier supplier) {
        return Stores.keyValueStoreBuilder(supplier, Serdes.Bytes(), Serdes.Bytes())
            .withLoggingDisabled();
    }

    private static StoreBuilder<?> builder(WindowBytesStoreSupplier supplier) {
        return Stores.windowStoreBuilder(supplier, Serdes.Bytes(), Serdes.Bytes())
            .withLoggingDisabled();
    }

    private static StoreBuilder<?> builder(SessionBytesStoreSupplier supplier) {
        return Stores.sessionStoreBuilder(supplier, Serdes.Bytes(), Serdes.Bytes())
            .withLoggingDisabled();
    }

    @Test
    void countersAreThoseOfEachStore() {
        SateenKeyValueStore busy = open("busy");
        SateenKeyValueStore idle = open("idle");
        busy.put(b("k"), new byte[100_000]);
        busy.commit(Map.of());
        busy.get(b("k"));
        minute();
        assertEquals(0, of("idle", "bytes-read-total"));
        assertTrue(of("idle", "bytes-written-total") < 1000);
        assertTrue(of("busy", "bytes-written-total") >= 100_000);
        assertTrue(of("busy", "bytes-written-total") < 110_000);
        assertTrue(of("busy", "bytes-read-total") >= 100_000);
        assertTrue(of("busy", "bytes-written-rate") > 0);
        double written = of("busy", "bytes-written-total");
        minute();
        assertEquals(written, of("busy", "bytes-written-total"));
        busy.close();
        idle.close();
    }

    @Test
    void ratiosAreThoseOfTheLastMinute() {
        SateenKeyValueStore store = open("store");
        store.put(b("k"), new byte[] {1});
        store.commit(Map.of());
        minute();
        store.get(b("k"));
        minute();
        assertEquals(1, of("store", "memtable-hit-ratio"));
        for (int nth = 0; nth < 3; nth++) {
            store.get(b("absent" + nth));
        }
        store.get(b("k"));
        minute();
        assertEquals(0.25, of("store", "memtable-hit-ratio"));
        minute();
        assertEquals(0, of("store", "memtable-hit-ratio"));
        store.close();
    }

    @Test
    void flushesAndCompactionsAreRecorded() {
        SateenKeyValueStore store = open("store");
        minute();
        assertEquals(0, of("store", "memtable-flush-time-avg"));
        assertEquals(0, of("store", "memtable-flush-time-min"));
        Family entries = store.database().family("entries");
        for (int nth = 0; nth < 2; nth++) {
            store.put(b("k" + nth), new byte[50_000]);
            store.put(b("l" + nth), new byte[50_000]);
            store.commit(Map.of());
            entries.flush();
        }
        entries.family.compact(null, null);
        minute();
        double average = of("store", "memtable-flush-time-avg");
        assertTrue(average > 0);
        assertTrue(of("store", "memtable-flush-time-min") > 0);
        assertTrue(of("store", "memtable-flush-time-min") <= average);
        assertTrue(of("store", "memtable-flush-time-max") >= average);
        assertTrue(of("store", "memtable-bytes-flushed-total") > 0);
        assertTrue(of("store", "bytes-written-compaction-rate") > 0);
        assertTrue(of("store", "bytes-read-compaction-rate") > 0);
        // The times are those since the open, as in Kafka's stores.
        minute();
        assertEquals(average, of("store", "memtable-flush-time-avg"));
        store.close();
    }

    @Test
    void gaugesShowTheDatabaseOnce() {
        SateenKeyValueStore store = open("store");
        store.put(b("k"), new byte[50_000]);
        store.put(b("l"), new byte[] {1});
        store.commit(Map.of());
        assertTrue(of("store", "num-entries-active-mem-table") >= 2);
        assertTrue(of("store", "cur-size-active-mem-table") >= 50_000);
        assertEquals(0, of("store", "background-errors"));
        assertEquals(0, of("store", "mem-table-flush-pending"));
        BigInteger capacity = (BigInteger) metric("store", "block-cache-capacity").metricValue();
        assertEquals(Long.toString(capacity.longValue()),
            store.database().family("entries").family.property("rocksdb.block-cache-capacity")
                .orElseThrow());
        assertNotEquals(BigInteger.ZERO, capacity);
        store.close();
    }

    @Test
    void aClosedStoreHasNoMetricsAndMayBeOpenedAgain() throws Exception {
        SateenKeyValueStore store = open("store");
        assertFalse(names("store").isEmpty());
        // A task may be closed by another thread.
        Thread closing = new Thread(store::close);
        closing.start();
        closing.join();
        assertEquals(Set.of(), names("store"));
        minute();
        for (int nth = 0; nth < 2; nth++) {
            store.init(context(), store);
            store.put(b("k"), new byte[1000]);
            store.commit(Map.of());
            minute();
            double written = of("store", "bytes-written-total");
            assertTrue(written >= 1000 && written < 2000, "written: " + written);
            store.close();
            assertEquals(Set.of(), names("store"));
        }
    }

    @Test
    void anErrorOfOneStoreIsNotThatOfTheTrigger() {
        SateenKeyValueStore store = open("store");
        SateenKeyValueStore other = open("other");
        store.database().close();
        other.put(b("k"), new byte[1000]);
        other.commit(Map.of());
        minute();
        assertTrue(of("other", "bytes-written-total") >= 1000);
        assertEquals(0, of("store", "num-entries-active-mem-table"));
        other.close();
    }

    @Test
    void aStoreThatCannotBeInitializedLeavesNoMetrics() {
        SateenKeyValueStore store = new SateenKeyValueStore("store");
        var refusing = new InternalMockProcessorContext<Object, Object>(directory.toFile(),
                Serdes.Bytes(), Serdes.Bytes(), streams,
                new StreamsConfig(StreamsTestUtils.getStreamsConfig()), MockRecordCollector::new,
                new ThreadCache(new LogContext(), 0, streams), time) {
            @Override
            public void register(StateStore registered,
                    org.apache.kafka.streams.processor.StateRestoreCallback callback) {
                throw new IllegalStateException("refused");
            }
        };
        org.junit.jupiter.api.Assertions.assertThrows(IllegalStateException.class,
            () -> store.init(refusing, store));
        assertEquals(Set.of(), names("store"));
        store.init(context(), store);
        minute();
        store.close();
    }
}
