package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/**
 * An application under exactly-once is killed again and again while it counts. Each output has each count
 * of each key once, in order: nothing is lost, and nothing is counted twice.
 */
class BrokerTest {
    private static final int KEYS = 50;
    private static final int PARTITIONS = 2;
    /** The beginning of this day: records of one window, which the broker does not delete as too old. */
    private static final long TIME = System.currentTimeMillis() / 86_400_000 * 86_400_000;

    @TempDir(cleanup = CleanupMode.ON_SUCCESS) Path directory;

    @Test
    @Timeout(value = 8, unit = TimeUnit.MINUTES)
    void countsAreExactThoughTheApplicationIsKilled() throws Exception {
        int kills = Integer.getInteger("sateen.test.kills", 3);
        int each = 4000;
        try (Broker broker = new Broker(directory.resolve("broker"))) {
            broker.createTopics(PARTITIONS, "input", "counts", "windows", "sessions");
            Path log = directory.resolve("application.log");
            int sent = 0;
            for (int round = 0; round < kills; round++) {
                int linesBefore = lines(log).size();
                Process application = start(broker, log);
                try {
                    sent = send(broker, sent, each);
                    // It is killed in the middle of its work, some commits after its start.
                    int until = sent - each / 2;
                    await(application, log, () -> committed(broker) >= until);
                } finally {
                    application.destroyForcibly().waitFor();
                }
                if (round > 1) {
                    assertNotAllWasRestored(lines(log).subList(linesBefore, lines(log).size()));
                }
            }
            Process application = start(broker, log);
            try {
                int all = send(broker, sent, each);
                await(application, log, () -> committed(broker) >= all);
                for (String topic : List.of("counts", "windows", "sessions")) {
                    assertEachCountOnce(broker, topic, all);
                }
                assertEquals(List.of(), lines(log).stream().filter(line -> line.contains("Corrupted")).toList());
            } finally {
                application.destroy();
                if (!application.waitFor(30, TimeUnit.SECONDS)) {
                    application.destroyForcibly().waitFor();
                }
            }
        }
    }

    private Process start(Broker broker, Path log) throws Exception {
        return Broker.java(log, CountingApplication.class.getName(), broker.address(),
            directory.resolve("state").toString(), "exactly_once_v2");
    }

    private static List<String> lines(Path log) throws Exception {
        return Files.exists(log) ? Files.readAllLines(log) : List.of();
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(Process application, Path log, Condition condition) throws Exception {
        while (!condition.holds()) {
            if (!application.isAlive()) {
                throw new AssertionError("the application ended: " + String.join("\n", lines(log)));
            }
            Thread.sleep(100);
        }
    }

    /** Returns the number of input records whose results are committed. */
    private static long committed(Broker broker) throws Exception {
        try {
            return broker.admin().listConsumerGroupOffsets("counting").partitionsToOffsetAndMetadata()
                .get(30, TimeUnit.SECONDS).entrySet().stream()
                .filter(entry -> entry.getKey().topic().equals("input") && entry.getValue() != null)
                .mapToLong(entry -> entry.getValue().offset()).sum();
        } catch (java.util.concurrent.ExecutionException noGroupYet) {
            return 0;
        }
    }

    private static int send(Broker broker, int sent, int count) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", broker.address());
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int nth = sent; nth < sent + count; nth++) {
                producer.send(new ProducerRecord<>("input", null, TIME + nth, "key" + nth % KEYS, "x"));
            }
        }
        return sent + count;
    }

    /**
     * Checks that a restart after a kill restored what was missing, and not a whole store again: each store
     * had an offset at least from the restoration before.
     */
    private static void assertNotAllWasRestored(List<String> lines) {
        long restored = 0;
        long changes = 0;
        for (String line : lines) {
            String[] words = line.split(" ");
            if (words[0].equals("RESTORE")) {
                assertTrue(Long.parseLong(words[2]) > 0, "a store was restored from the beginning: " + line);
                changes += Long.parseLong(words[3]);
            } else if (words[0].equals("RESTORED")) {
                restored += Long.parseLong(words[2]);
            }
        }
        assertTrue(changes > 0, "the application did not say what it restored");
        System.err.println("restored " + restored + " of " + changes + " records of the changelogs");
    }

    private static void assertEachCountOnce(Broker broker, String topic, int inputs) {
        Map<String, List<Long>> counts = new HashMap<>();
        Properties properties = new Properties();
        properties.put("bootstrap.servers", broker.address());
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
        assertEquals(inputs, seen, "records of " + topic);
        assertEquals(KEYS, counts.size());
        counts.forEach((key, all) -> {
            for (int nth = 0; nth < all.size(); nth++) {
                assertEquals(nth + 1, all.get(nth), topic + ", " + key + ": " + all);
            }
        });
    }
}
