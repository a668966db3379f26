package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What tests do with {@link CountingApplication}: feed it, follow it, and count what it counted. */
final class Counting {
    /** Its topics, without the input. */
    static final List<String> OUTPUTS = List.of("counts", "windows", "sessions", "versions", "joins");

    /** The beginning of this day: records of one window, which a broker does not delete as too old. */
    private static final long TIME = System.currentTimeMillis() / 86_400_000 * 86_400_000;

    private final Brokers brokers;
    private final int keys;
    private int sent;

    Counting(Brokers brokers, int partitions, int keys) throws Exception {
        this.brokers = brokers;
        this.keys = keys;
        brokers.createTopics(partitions, "input");
        brokers.createTopics(partitions, OUTPUTS.toArray(String[]::new));
    }

    /** Starts an instance whose state is in {@code state} and whose lines go to {@code log}. */
    Process start(Path state, Path log, int standbys) throws Exception {
        return Brokers.java(log, CountingApplication.class.getName(), brokers.addresses(), state.toString(),
            "exactly_once_v2", Integer.toString(standbys));
    }

    int sent() {
        return sent;
    }

    void send(int count) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", brokers.addresses());
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int nth = sent; nth < sent + count; nth++) {
                String ofItsKey = Integer.toString(nth / keys + 1);
                producer.send(new ProducerRecord<>("input", null, TIME + nth, "key" + nth % keys, ofItsKey));
            }
        }
        sent += count;
    }

    /** Returns the number of input records whose results are committed. */
    long committed() throws Exception {
        try {
            return brokers.admin().listConsumerGroupOffsets("counting").partitionsToOffsetAndMetadata()
                .get(30, TimeUnit.SECONDS).entrySet().stream()
                .filter(entry -> entry.getKey().topic().equals("input") && entry.getValue() != null)
                .mapToLong(entry -> entry.getValue().offset()).sum();
        } catch (ExecutionException | TimeoutException noGroupOrNoCoordinatorYet) {
            return 0;
        }
    }

    /** Checks that a topic has each count of each key once, in order. */
    void assertEachCountOnce(String topic) {
        Map<String, List<Long>> counts = new HashMap<>();
        Properties properties = new Properties();
        properties.put("bootstrap.servers", brokers.addresses());
        properties.put("group.id", "reader-of-" + topic);
        properties.put("isolation.level", "read_committed");
        properties.put("auto.offset.reset", "earliest");
        int seen = 0;
        try (KafkaConsumer<String, Long> consumer =
                new KafkaConsumer<>(properties, new StringDeserializer(), new LongDeserializer())) {
            consumer.subscribe(List.of(topic));
            int empty = 0;
            while (empty < 5) {
                int got = 0;
                for (ConsumerRecord<String, Long> one : consumer.poll(Duration.ofMillis(500))) {
                    counts.computeIfAbsent(one.key(), key -> new ArrayList<>()).add(one.value());
                    got++;
                }
                seen += got;
                empty = got == 0 && seen > 0 ? empty + 1 : 0;
            }
        }
        assertEquals(sent, seen, "records of " + topic);
        assertEquals(keys, counts.size());
        counts.forEach((key, all) -> {
            for (int nth = 0; nth < all.size(); nth++) {
                assertEquals(nth + 1, all.get(nth), () -> topic + ", " + key + ": " + all);
            }
        });
    }

    static List<String> lines(Path log) throws Exception {
        return Files.exists(log) ? Files.readAllLines(log) : List.of();
    }
}
