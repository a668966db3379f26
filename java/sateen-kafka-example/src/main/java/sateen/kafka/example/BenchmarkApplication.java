package sateen.kafka.example;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.WriteBufferManager;
import sateen.kafka.SateenConfig;
import sateen.kafka.SateenDslStoreSuppliers;

/**
 * The application that {@link StoreBenchmark} measures, in a process of its own. It keeps the last value of
 * each key under exactly-once, and writes the first eight bytes of each value to its output.
 *
 * <pre>
 * ADDRESS STATE sateen|rocksdb MEMORY_BYTES DIRECT
 * </pre>
 *
 * <p>It prints {@code running RESTORED_RECORDS MILLISECONDS} when it has its state (the time from the first
 * record to the last), and ends when its input does.
 */
final class BenchmarkApplication {
    /** The topics, before the name of the stores. */
    static final String INPUT = "bench-input-", OUTPUT = "bench-output-";
    static final String MEMORY_BYTES = "benchmark.memory.bytes", DIRECT = "benchmark.direct";
    private static final String STORE = "last";

    private BenchmarkApplication() {}

    public static void main(String[] arguments) throws Exception {
        String stores = arguments[2];
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "bench-" + stores);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Path.of(arguments[1]).toString());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        // A broker notices within this time that a killed application is gone.
        settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        // Outputs leave at once, as where the time to an output matters.
        settings.put(StreamsConfig.producerPrefix("linger.ms"), 1);
        settings.put(MEMORY_BYTES, arguments[3]);
        settings.put(DIRECT, arguments[4]);
        if (stores.equals("sateen")) {
            settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, SateenDslStoreSuppliers.class.getName());
            settings.put(SateenConfig.MEMORY_BUDGET_BYTES, arguments[3]);
            if (Boolean.parseBoolean(arguments[4])) {
                settings.put(SateenConfig.STORE_OPTIONS_PREFIX + STORE,
                    "use_direct_reads=true;use_direct_io_for_flush_and_compaction=true");
            }
        } else {
            settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG,
                BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class.getName());
            settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, BoundedMemory.class.getName());
        }
        Restorations restored = new Restorations();
        CountDownLatch running = new CountDownLatch(1);
        try (KafkaStreams streams = new KafkaStreams(topology(stores), settings)) {
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING || now == KafkaStreams.State.ERROR) {
                    running.countDown();
                }
            });
            streams.setGlobalStateRestoreListener(restored);
            streams.start();
            running.await();
            if (streams.state() == KafkaStreams.State.ERROR) {
                throw new IllegalStateException("the application did not start; its messages say why");
            }
            System.out.println("running " + restored);
            while (System.in.read() >= 0) {}
            streams.close(Duration.ofSeconds(60));
        }
    }

    private static Topology topology(String stores) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(INPUT + stores, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .groupByKey(Grouped.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .reduce((old, last) -> last, Materialized.as(STORE))
            .toStream().mapValues(value -> Arrays.copyOf(value, 8))
            .to(OUTPUT + stores, Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        return builder.build();
    }

    /** Counts what is restored, and the time from the first beginning to the last end. */
    private static final class Restorations implements StateRestoreListener {
        private long records, began, ended;

        @Override
        public synchronized void onRestoreStart(TopicPartition partition, String store, long from, long to) {
            began = began == 0 ? System.nanoTime() : began;
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {}

        @Override
        public synchronized void onRestoreEnd(TopicPartition partition, String store, long total) {
            records += total;
            ended = System.nanoTime();
        }

        @Override
        public synchronized String toString() {
            return records + " " + (ended - began) / 1_000_000;
        }
    }

    /** One block cache for all RocksDB stores, in which memtables count, too, up to half of it; direct I/O. */
    public static final class BoundedMemory implements RocksDBConfigSetter {
        private static Cache cache;
        private static WriteBufferManager memtables;

        @Override
        public synchronized void setConfig(String store, Options options, Map<String, Object> settings) {
            synchronized (BoundedMemory.class) {
                if (cache == null) {
                    long bytes = Long.parseLong(settings.get(MEMORY_BYTES).toString());
                    cache = new LRUCache(bytes);
                    memtables = new WriteBufferManager(bytes / 2, cache);
                }
            }
            BlockBasedTableConfig tables = (BlockBasedTableConfig) options.tableFormatConfig();
            tables.setBlockCache(cache);
            tables.setCacheIndexAndFilterBlocks(true);
            options.setTableFormatConfig(tables);
            options.setWriteBufferManager(memtables);
            boolean direct = Boolean.parseBoolean(settings.get(DIRECT).toString());
            options.setUseDirectReads(direct);
            options.setUseDirectIoForFlushAndCompaction(direct);
        }

        @Override
        public void close(String store, Options options) {}
    }
}
