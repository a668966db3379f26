package sateen.kafka.example;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
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
import org.apache.kafka.streams.state.DslStoreSuppliers;
import sateen.kafka.SateenDslStoreSuppliers;

/**
 * Measures an application with Sateen's stores or with RocksDB's: the time from an input to its output,
 * under bursts, and the time to restore the state.
 *
 * <pre>
 * DIRECTORY sateen|rocksdb SECONDS RATE [VALUE_BYTES]
 * </pre>
 *
 * <p>A burst of RATE records a second lasts five seconds, and a quarter of RATE the next five. The state
 * keeps the last value of each of a million keys.
 */
public final class StoreBenchmark {
    private static final int KEYS = 1_000_000;
    private static final String INPUT = "bench-input", OUTPUT = "bench-output";

    private StoreBenchmark() {}

    /** Runs the measurement. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 4) {
            System.err.println("StoreBenchmark DIRECTORY sateen|rocksdb SECONDS RATE [VALUE_BYTES]");
            System.exit(2);
        }
        Path directory = Path.of(arguments[0]).toAbsolutePath();
        Class<? extends DslStoreSuppliers> stores = stores(arguments[1]);
        int seconds = Integer.parseInt(arguments[2]);
        int rate = Integer.parseInt(arguments[3]);
        int valueBytes = arguments.length > 4 ? Integer.parseInt(arguments[4]) : 400;
        String address = "127.0.0.1:" + Demo.freePort();
        Process broker = Demo.startBroker(directory.resolve("broker"), address);
        try {
            Demo.createTopics(address, broker, directory, new String[] {INPUT, OUTPUT});
            Path state = directory.resolve("state");
            try (KafkaStreams streams = start(address, state, stores)) {
                measure(address, seconds, rate, valueBytes);
                streams.close(Duration.ofSeconds(60));
            }
            delete(state);
            long began = System.nanoTime();
            AtomicLong restored = new AtomicLong();
            try (KafkaStreams streams = start(address, state, stores, restored)) {
                System.out.printf("restored %d records in %.1f s%n", restored.get(),
                    (System.nanoTime() - began) / 1e9);
                streams.close(Duration.ofSeconds(60));
            }
        } finally {
            broker.destroyForcibly().waitFor();
        }
    }

    private static Class<? extends DslStoreSuppliers> stores(String name) {
        switch (name) {
            case "sateen":
                return SateenDslStoreSuppliers.class;
            case "rocksdb":
                return BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class;
            default:
                throw new IllegalArgumentException("the stores are " + name + "; they must be sateen or rocksdb");
        }
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(INPUT, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .groupByKey(Grouped.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .reduce((old, last) -> last, Materialized.as("last"))
            .toStream().mapValues(value -> Arrays.copyOf(value, 8))
            .to(OUTPUT, Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        return builder.build();
    }

    private static KafkaStreams start(String address, Path state, Class<? extends DslStoreSuppliers> stores)
            throws InterruptedException {
        return start(address, state, stores, new AtomicLong());
    }

    private static KafkaStreams start(String address, Path state, Class<? extends DslStoreSuppliers> stores,
            AtomicLong restored) throws InterruptedException {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "bench");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, stores.getName());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArray().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArray().getClass());
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        KafkaStreams streams = new KafkaStreams(topology(), settings);
        CountDownLatch running = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING || now == KafkaStreams.State.ERROR) {
                running.countDown();
            }
        });
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition partition, String store, long from, long to) {}

            @Override
            public void onBatchRestored(TopicPartition partition, String store, long end, long count) {}

            @Override
            public void onRestoreEnd(TopicPartition partition, String store, long total) {
                restored.addAndGet(total);
            }
        });
        streams.start();
        if (!running.await(30, TimeUnit.MINUTES) || streams.state() == KafkaStreams.State.ERROR) {
            streams.close(Duration.ofSeconds(10));
            throw new IllegalStateException("the application did not start; its messages say why");
        }
        return streams;
    }

    /** Sends inputs and prints quantiles of the time to their outputs. An input has the time of its sending. */
    private static void measure(String address, int seconds, int rate, int valueBytes) throws Exception {
        AtomicBoolean done = new AtomicBoolean();
        Map<Long, List<Long>> bySecond = new TreeMap<>();
        List<Long> all = new ArrayList<>();
        long began = System.nanoTime();
        Thread reader = new Thread(() -> read(address, began, bySecond, all, done));
        reader.start();
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        properties.put("linger.ms", 1);
        Random random = new Random(1);
        byte[] filling = new byte[valueBytes];
        random.nextBytes(filling);
        long sent = 0;
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            double due = 0;
            for (long last = began, now; (now = System.nanoTime()) < began + seconds * 1_000_000_000L; last = now) {
                boolean burst = (now - began) / 5_000_000_000L % 2 == 0;
                due += (now - last) / 1e9 * (burst ? rate : rate / 4.0);
                for (; due >= 1; due--, sent++) {
                    byte[] key = java.nio.ByteBuffer.allocate(8).putLong(random.nextInt(KEYS)).array();
                    byte[] value = filling.clone();
                    java.nio.ByteBuffer.wrap(value).putLong(System.nanoTime());
                    producer.send(new ProducerRecord<>(INPUT, key, value));
                }
                Thread.sleep(1);
            }
        }
        while (count(all) < sent) {
            Thread.sleep(100);
        }
        done.set(true);
        reader.join();
        Collections.sort(all);
        long slow = bySecond.values().stream().filter(of -> quantile(of, 0.99) > 100_000_000L).count();
        long worst = bySecond.values().stream().mapToLong(of -> quantile(of, 0.99)).max().orElse(0);
        System.out.printf("%d records, milliseconds to the output: p50 %.1f, p99 %.1f, p99.9 %.1f, max %.1f%n", sent,
            quantile(all, 0.5) / 1e6, quantile(all, 0.99) / 1e6, quantile(all, 0.999) / 1e6,
            quantile(all, 1) / 1e6);
        System.out.printf("worst p99 of a second %.1f ms; %d of %d seconds above 100 ms%n", worst / 1e6, slow,
            bySecond.size());
    }

    private static int count(List<Long> all) {
        synchronized (all) {
            return all.size();
        }
    }

    private static void read(String address, long began, Map<Long, List<Long>> bySecond, List<Long> all,
            AtomicBoolean done) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        properties.put("group.id", "bench-reader");
        properties.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(OUTPUT));
            while (!done.get()) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(20))) {
                    long at = java.nio.ByteBuffer.wrap(one.value()).getLong();
                    long took = System.nanoTime() - at;
                    bySecond.computeIfAbsent((at - began) / 1_000_000_000L, none -> new ArrayList<>()).add(took);
                    synchronized (all) {
                        all.add(took);
                    }
                }
            }
        }
    }

    private static long quantile(List<Long> of, double quantile) {
        List<Long> sorted = new ArrayList<>(of);
        sorted.sort(Comparator.naturalOrder());
        return sorted.isEmpty() ? 0 : sorted.get((int) Math.min(sorted.size() - 1L, (long) (quantile * sorted.size())));
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path one : (Iterable<Path>) all.sorted(Comparator.reverseOrder())::iterator) {
                Files.delete(one);
            }
        }
    }
}
