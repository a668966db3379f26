package sateen.kafka;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/**
 * An application that counts the records of each key: in all, in a window, in a session and in a versioned
 * store, and joins each with itself. It is a process of its own, so that a test can kill it. For each input it
 * writes one record to each output.
 */
public final class CountingApplication {
    private CountingApplication() {}

    static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> input = builder.stream("input", Consumed.with(Serdes.String(), Serdes.String()));
        KGroupedStream<String, String> records = input.groupByKey();
        records.count().toStream().to("counts", Produced.with(Serdes.String(), Serdes.Long()));
        records.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofDays(1))).count().toStream()
            .map((window, count) -> org.apache.kafka.streams.KeyValue.pair(window.key(), count))
            .to("windows", Produced.with(Serdes.String(), Serdes.Long()));
        records.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofDays(1))).count().toStream()
            .filter((window, count) -> count != null)
            .map((window, count) -> org.apache.kafka.streams.KeyValue.pair(window.key(), count))
            .to("sessions", Produced.with(Serdes.String(), Serdes.Long()));
        builder.addStateStore(Stores.versionedKeyValueStoreBuilder(
            SateenStores.versionedKeyValueStore("versions", Duration.ofDays(1)), Serdes.String(), Serdes.Long()));
        input.process(VersionCounter::new, "versions")
            .to("versions", Produced.with(Serdes.String(), Serdes.Long()));
        // No two records of a key have the same time, so each has only itself as a partner. The input says
        // which of its key it is.
        input.join(input.mapValues(value -> value), (one, same) -> Long.parseLong(one),
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ZERO, Duration.ofDays(1)),
                StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()))
            .to("joins", Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    /** Counts the records of each key in a store that also has the earlier counts. */
    private static final class VersionCounter extends ContextualProcessor<String, String, String, Long> {
        @Override
        public void process(Record<String, String> record) {
            VersionedKeyValueStore<String, Long> store = context().getStateStore("versions");
            VersionedRecord<Long> last = store.get(record.key());
            long count = last == null ? 1 : last.value() + 1;
            store.put(record.key(), count, record.timestamp());
            VersionedRecord<Long> before = store.get(record.key(), record.timestamp() - 1);
            // An earlier count that is lost shows in the output.
            if (count > 1 && (before == null || before.value() != count - 1)) {
                count = -count;
            }
            context().forward(record.withValue(count));
        }
    }

    static Properties properties(String brokers, String directory, String guarantee, String standbys) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "counting");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, SateenDslStoreSuppliers.class.getName());
        properties.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, standbys);
        // As many replicas of the application's own topics as the brokers give others.
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, -1);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        // On a busy machine a transaction with all partitions of six stores takes longer than Kafka Streams'
        // ten seconds, and an instance ends with an error of the commit.
        properties.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 30_000);
        properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 3000);
        properties.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 500);
        properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        return properties;
    }

    /** Runs until it is ended: BROKERS DIRECTORY GUARANTEE STANDBYS. */
    public static void main(String[] arguments) throws Exception {
        KafkaStreams streams = new KafkaStreams(topology(),
            properties(arguments[0], arguments[1], arguments[2], arguments[3]));
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
                say("RESTORE " + partition + " " + from + " " + to);
            }

            @Override
            public void onBatchRestored(TopicPartition partition, String store, long end, long count) {}

            @Override
            public void onRestoreEnd(TopicPartition partition, String store, long total) {
                say("RESTORED " + partition + " " + total);
            }
        });
        streams.setStateListener((now, before) -> {
            say("STATE " + now);
            if (now == KafkaStreams.State.ERROR) {
                Runtime.getRuntime().halt(1);
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
        Thread.currentThread().join();
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
