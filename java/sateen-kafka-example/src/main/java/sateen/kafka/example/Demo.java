package sateen.kafka.example;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;

/** Starts a broker, runs the shop on it, and prints the last result of each output. */
public final class Demo {
    private Demo() {}

    /** Runs the demonstration: DIRECTORY RECORDS. */
    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]).toAbsolutePath();
        int records = Integer.parseInt(arguments[1]);
        String address = "127.0.0.1:" + freePort();
        Process broker = startBroker(directory.resolve("broker"), address);
        try {
            createTopics(address, broker, directory, Shop.INPUTS, Shop.OUTPUTS);
            System.out.println("broker: " + address + ", state: " + directory.resolve("state"));
            try (KafkaStreams streams = new KafkaStreams(Shop.topology(),
                    Shop.settings(address, directory.resolve("state").toString()))) {
                streams.start();
                long began = System.nanoTime();
                send(address, records);
                long expected = 3L * records;
                while (processed(address) < expected) {
                    if (streams.state() == KafkaStreams.State.ERROR) {
                        throw new IllegalStateException("the application failed; its messages say why");
                    }
                    Thread.sleep(200);
                }
                System.out.printf("%d records in %.1f s%n", expected, (System.nanoTime() - began) / 1e9);
                for (String output : Shop.OUTPUTS) {
                    printLast(address, output);
                }
                streams.close(Duration.ofSeconds(30));
            }
        } finally {
            broker.destroyForcibly().waitFor();
        }
    }

    static Process startBroker(Path directory, String address) throws Exception {
        Files.createDirectories(directory);
        String controller = "127.0.0.1:" + freePort();
        Path properties = directory.resolve("server.properties");
        Files.writeString(properties, String.join("\n", "node.id=1", "process.roles=broker,controller",
            "listeners=PLAINTEXT://" + address + ",CONTROLLER://" + controller,
            "advertised.listeners=PLAINTEXT://" + address, "controller.listener.names=CONTROLLER",
            "controller.quorum.voters=1@" + controller, "log.dirs=" + directory.resolve("logs"),
            "offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1", "group.initial.rebalance.delay.ms=0", ""));
        Path log = directory.resolve("broker.log");
        Process format = java(log, "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t",
            Uuid.randomUuid().toString(), "-c", properties.toString());
        if (format.waitFor() != 0) {
            throw new IOException("the broker's directory was not formatted; see " + log);
        }
        return java(log, "kafka.Kafka", properties.toString());
    }

    private static Process java(Path log, String main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java",
            "-Xmx512m", "-cp", System.getProperty("java.class.path"), main));
        command.addAll(Arrays.asList(arguments));
        return new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
            .redirectInput(new File("/dev/null")).start();
    }

    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    static void createTopics(String address, Process broker, Path directory, String[]... all)
            throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            for (int tries = 0;; tries++) {
                try {
                    admin.describeCluster().nodes().get(5, TimeUnit.SECONDS);
                    break;
                } catch (ExecutionException | TimeoutException notYet) {
                    if (tries == 12 || !broker.isAlive()) {
                        throw new IOException("the broker does not answer; see " + directory, notYet);
                    }
                }
            }
            List<String> existing = List.copyOf(admin.listTopics().names().get());
            List<NewTopic> topics = new ArrayList<>();
            for (String[] names : all) {
                for (String name : names) {
                    if (!existing.contains(name)) {
                        topics.add(new NewTopic(name, 4, (short) 1));
                    }
                }
            }
            admin.createTopics(topics).all().get();
        }
    }

    private static void send(String address, int records) {
        String[] words = "a fine chair a bad lamp the chair stands the lamp shines not".split(" ");
        Random random = new Random(1);
        long now = System.currentTimeMillis();
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int nth = 0; nth < records; nth++) {
                String user = "user" + random.nextInt(500);
                long time = now + nth * 10L;
                String review = words[random.nextInt(words.length)] + " " + words[random.nextInt(words.length)];
                producer.send(new ProducerRecord<>("reviews", null, time, user, review));
                producer.send(new ProducerRecord<>("clicks", null, time, user, "page" + random.nextInt(50)));
                producer.send(new ProducerRecord<>("purchases", null, time + 5, "user" + random.nextInt(500),
                    "item" + random.nextInt(20)));
            }
        }
    }

    /** Returns the number of input records whose results are committed. */
    private static long processed(String address) throws Exception {
        List<String> inputs = Arrays.asList(Shop.INPUTS);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            return admin.listConsumerGroupOffsets(Shop.APPLICATION).partitionsToOffsetAndMetadata().get()
                .entrySet().stream()
                .filter(one -> inputs.contains(one.getKey().topic()) && one.getValue() != null)
                .mapToLong(one -> one.getValue().offset()).sum();
        } catch (ExecutionException noGroupYet) {
            return 0;
        }
    }

    private static void printLast(String address, String topic) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        properties.put("group.id", "demo-" + topic);
        properties.put("isolation.level", "read_committed");
        properties.put("auto.offset.reset", "earliest");
        ConsumerRecord<String, String> last = null;
        long count = 0;
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            for (int empty = 0; empty < 3; ) {
                int got = 0;
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofSeconds(1))) {
                    last = one;
                    got++;
                }
                count += got;
                empty = got == 0 && count > 0 ? empty + 1 : 0;
            }
        }
        System.out.println(topic + ": " + count + " results, the last one " + last.key() + " = " + last.value());
    }
}
