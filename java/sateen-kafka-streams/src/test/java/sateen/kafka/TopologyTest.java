package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.ReadOnlySessionStore;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Topologies of the DSL give the same results with these stores as with Kafka's stores in memory. */
class TopologyTest {
    @TempDir Path directory;

    private Properties properties(Class<?> suppliers, String guarantee, long cache) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "topology");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory.resolve(suppliers.getSimpleName()).toString());
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers.getName());
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cache);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        // A small buffer, so that some of what is written is on the disk and some is not.
        properties.put(SateenConfig.UNCOMMITTED_MAX_BYTES, 2000);
        return properties;
    }

    private static StreamsBuilder everything() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> left = builder.stream("left", Consumed.with(Serdes.String(), Serdes.String()));
        KStream<String, String> right = builder.stream("right", Consumed.with(Serdes.String(), Serdes.String()));
        Produced<String, String> out = Produced.with(Serdes.String(), Serdes.String());
        left.groupByKey().count(Materialized.as("counts")).toStream().mapValues(Object::toString)
            .to("counts", out);
        left.groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(5), Duration.ofMinutes(1)))
            .count(Materialized.as("windows")).toStream()
            .map((w, n) -> KeyValue.pair(w.key() + "@" + w.window().start(), "" + n)).to("windows", out);
        left.groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(5), Duration.ofMinutes(1)))
            .emitStrategy(EmitStrategy.onWindowClose()).count().toStream()
            .map((w, n) -> KeyValue.pair(w.key() + "@" + w.window().start(), "" + n)).to("closed", out);
        left.groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofMinutes(2),
            Duration.ofMinutes(1))).count(Materialized.as("sessions")).toStream()
            .map((w, n) -> KeyValue.pair(w.key() + "@" + w.window().start() + "-" + w.window().end(), "" + n))
            .to("sessions", out);
        left.join(right, (a, b) -> a + "+" + b, JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(30)),
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String())).to("joined", out);
        left.outerJoin(right, (a, b) -> a + "|" + b,
            JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(10)),
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String())).to("outer", out);
        KTable<String, String> table = right.toTable(Materialized.as("table"));
        left.join(table, (a, b) -> a + "*" + b).to("enriched", out);
        table.groupBy((key, value) -> KeyValue.pair(value.substring(0, 1), value),
            Grouped.with(Serdes.String(), Serdes.String())).count().toStream().mapValues(Object::toString)
            .to("by-letter", out);
        return builder;
    }

    private static final List<String> OUTPUTS = List.of("counts", "windows", "closed", "sessions", "joined",
        "outer", "enriched", "by-letter");

    private Map<String, List<KeyValue<String, String>>> run(Properties properties) {
        Map<String, List<KeyValue<String, String>>> results = new TreeMap<>();
        try (TopologyTestDriver driver = new TopologyTestDriver(everything().build(), properties,
                Instant.ofEpochMilli(0))) {
            TestInputTopic<String, String> left = driver.createInputTopic("left", Serdes.String().serializer(),
                Serdes.String().serializer());
            TestInputTopic<String, String> right = driver.createInputTopic("right", Serdes.String().serializer(),
                Serdes.String().serializer());
            java.util.Random random = new java.util.Random(7);
            // Not near 0: Kafka's cache of sessions fails for times before 0.
            long time = 10_000_000;
            for (int nth = 0; nth < 400; nth++) {
                time += random.nextInt(8000);
                // Some records are late, a few of them too late.
                long of = Math.max(0, time - (random.nextInt(10) == 0 ? random.nextInt(1_500_000) : 0));
                String key = "k" + random.nextInt(7) + (random.nextInt(5) == 0 ? "x" : "");
                if (random.nextBoolean()) {
                    left.pipeInput(key, "l" + nth, of);
                } else {
                    right.pipeInput(key, random.nextInt(20) == 0 ? null : "abc".charAt(nth % 3) + "" + nth, of);
                }
            }
            for (String output : OUTPUTS) {
                TestOutputTopic<String, String> topic = driver.createOutputTopic(output,
                    Serdes.String().deserializer(), Serdes.String().deserializer());
                results.put(output, topic.readKeyValuesToList());
            }
        }
        return results;
    }

    @ParameterizedTest
    @CsvSource({"at_least_once,0,DEFAULT", "exactly_once_v2,0,HEADERS", "at_least_once,100000,HEADERS",
        "exactly_once_v2,100000,DEFAULT"})
    void resultsAreThoseOfKafkasStores(String guarantee, long cache, String format) {
        var expected = run(properties(BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class, guarantee, cache));
        Properties properties = properties(SateenDslStoreSuppliers.class, guarantee, cache);
        properties.put(StreamsConfig.DSL_STORE_FORMAT_CONFIG, format);
        var actual = run(properties);
        for (String output : OUTPUTS) {
            assertFalse(expected.get(output).isEmpty(), output);
            if (cache == 0 && !output.equals("closed")) {
                assertEquals(expected.get(output), actual.get(output), output);
            } else {
                // The order in which a cache is emptied, and windows of one moment are closed, is the store's.
                assertEquals(sorted(expected.get(output)), sorted(actual.get(output)), output);
            }
        }
    }

    private static List<String> sorted(List<KeyValue<String, String>> results) {
        List<String> sorted = new ArrayList<>();
        results.forEach(one -> sorted.add(one.toString()));
        java.util.Collections.sort(sorted);
        return sorted;
    }

    @ParameterizedTest
    @ValueSource(strings = {"at_least_once", "exactly_once_v2"})
    void queriesSeeWhatIsBufferedAndWhatIsStored(String guarantee) {
        try (TopologyTestDriver driver = new TopologyTestDriver(everything().build(),
                properties(SateenDslStoreSuppliers.class, guarantee, 0), Instant.ofEpochMilli(0))) {
            TestInputTopic<String, String> left = driver.createInputTopic("left", Serdes.String().serializer(),
                Serdes.String().serializer());
            for (int nth = 0; nth < 200; nth++) {
                left.pipeInput("k" + nth % 50, "v", nth * 1000L);
            }
            var counts = driver.<String, Object>getTimestampedKeyValueStore("counts");
            assertEquals(4L, counts.get("k7").value());
            assertNull(counts.get("none"));
            int seen = 0;
            String before = "";
            try (KeyValueIterator<String, ValueAndTimestamp<Object>> all = counts.all()) {
                while (all.hasNext()) {
                    String key = all.next().key;
                    assertTrue(key.compareTo(before) > 0);
                    before = key;
                    seen++;
                }
            }
            assertEquals(50, seen);
            try (var range = counts.reverseRange("k10", "k12")) {
                assertEquals("k12", range.next().key);
                assertEquals("k11", range.peekNextKey());
            }
            assertTrue(counts.approximateNumEntries() > 0);
            ReadOnlyWindowStore<String, ValueAndTimestamp<Long>> windows = driver.getTimestampedWindowStore("windows");
            try (var of = windows.fetch("k7", Instant.EPOCH, Instant.ofEpochMilli(1_000_000))) {
                assertEquals(4L, of.next().value.value());
                assertFalse(of.hasNext());
            }
            ReadOnlySessionStore<String, Long> sessions = driver.getSessionStore("sessions");
            try (KeyValueIterator<Windowed<String>, Long> of = sessions.fetch("k7")) {
                assertEquals(4L, of.next().value);
            }
            for (String kind : List.of("sateen", "sateen-window", "sateen-session")) {
                assertTrue(driver.metrics().keySet().stream().anyMatch(name ->
                    name.group().equals("stream-state-metrics")
                        && name.tags().containsKey(kind + "-state-id")
                        && name.name().equals("total-sst-files-size")), kind);
            }
            assertTrue(driver.metrics().keySet().stream().anyMatch(name -> name.name().equals("put-rate")
                && name.tags().containsKey("sateen-state-id")));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"at_least_once", "exactly_once_v2"})
    void expiredSegmentsAreDroppedWithTheirFiles(String guarantee) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("left", Consumed.with(Serdes.String(), Serdes.String())).groupByKey()
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1)))
            .count(Materialized.as(SateenStores.timestampedWindowStore("windows", Duration.ofMinutes(2),
                Duration.ofMinutes(1), false)));
        Properties properties = properties(SateenDslStoreSuppliers.class, guarantee, 0);
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), properties,
                Instant.ofEpochMilli(0))) {
            TestInputTopic<String, String> left = driver.createInputTopic("left", Serdes.String().serializer(),
                Serdes.String().serializer());
            for (int minute = 0; minute < 20; minute++) {
                for (int key = 0; key < 50; key++) {
                    left.pipeInput("key" + key, "x".repeat(10), minute * 60_000L);
                }
            }
            ReadOnlyWindowStore<String, ?> windows = driver.getTimestampedWindowStore("windows");
            int seen = 0;
            try (var all = windows.all()) {
                for (; all.hasNext(); all.next()) {
                    seen++;
                }
            }
            assertEquals(100, seen, "two minutes of windows");
            // What is buffered after the last commit does not matter: segments are dropped by commits.
            Path database;
            try (Stream<Path> found = Files.walk(directory)) {
                database = found.filter(path -> path.endsWith("sateen/windows")).findFirst().orElseThrow();
            }
            try (sateen.Database opened = sateen.Database.openReadOnly(database, new sateen.Options())) {
                List<String> families = opened.columnFamilies().stream().map(sateen.ColumnFamily::name).sorted().toList();
                assertEquals(List.of("default", "segment-17", "segment-18", "segment-19"), families);
                assertNotNull(opened.columnFamily("segment-19").orElseThrow());
            }
        }
    }

    @Test
    void aStoreWithoutAChangelogIsWrittenByEachCommit() throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("left", Consumed.with(Serdes.String(), Serdes.String())).groupByKey()
            .count(Materialized.<String, Long>as(SateenStores.timestampedKeyValueStore("counts"))
                .withLoggingDisabled());
        Properties properties = properties(SateenDslStoreSuppliers.class, "exactly_once_v2", 0);
        properties.put(SateenConfig.UNCOMMITTED_MAX_BYTES, 1 << 20);
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), properties,
                Instant.ofEpochMilli(0))) {
            TestInputTopic<String, String> left = driver.createInputTopic("left",
                Serdes.String().serializer(), Serdes.String().serializer());
            for (int nth = 0; nth < 10; nth++) {
                left.pipeInput("k" + nth, "v");
            }
            Path database;
            try (Stream<Path> found = Files.walk(directory)) {
                database = found.filter(path -> path.endsWith("sateen/counts")).findFirst()
                    .orElseThrow();
            }
            Path crashed = States.crash(database, directory.resolve("crashed"));
            try (var opened = sateen.Database.openReadOnly(crashed, new sateen.Options());
                    sateen.Cursor stored = opened.columnFamily("entries").orElseThrow().cursor()) {
                int seen = 0;
                for (boolean more = stored.seekToFirst(); more; more = stored.next()) {
                    seen++;
                }
                assertTrue(seen >= 8, seen + " of 10 entries are stored");
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"sateen.option,1", "sateen.commit.sync,yes",
        "sateen.options.counts,block_cache=1MiB"})
    void aWrongKeyOrValueIsFoundBeforeAnyStoreIsOpened(String key, String value) {
        Properties properties = properties(SateenDslStoreSuppliers.class, "exactly_once_v2", 0);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1");
        new KafkaStreams(everything().build(), properties).close();
        properties.put(key, value);
        ConfigException refused = assertThrows(ConfigException.class,
            () -> new KafkaStreams(everything().build(), properties).close());
        assertTrue(refused.getMessage().contains(key), refused.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"at_least_once", "exactly_once_v2"})
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aGlobalTableStartsEmptyAndGoesOn(String guarantee) {
        StreamsBuilder builder = new StreamsBuilder();
        var names = builder.globalTable("names", Consumed.with(Serdes.String(), Serdes.String()),
            Materialized.as("names"));
        builder.stream("left", Consumed.with(Serdes.String(), Serdes.String()))
            .join(names, (key, value) -> key, (value, name) -> value + "=" + name)
            .to("named", Produced.with(Serdes.String(), Serdes.String()));
        Properties properties = properties(SateenDslStoreSuppliers.class, guarantee, 0);
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), properties,
                Instant.ofEpochMilli(0))) {
            driver.createInputTopic("names", Serdes.String().serializer(),
                Serdes.String().serializer()).pipeInput("k", "name");
            driver.createInputTopic("left", Serdes.String().serializer(),
                Serdes.String().serializer()).pipeInput("k", "value");
            assertEquals("value=name", driver.createOutputTopic("named",
                Serdes.String().deserializer(), Serdes.String().deserializer()).readValue());
        }
    }
}
