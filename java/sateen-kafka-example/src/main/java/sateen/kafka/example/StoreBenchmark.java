package sateen.kafka.example;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Measures one application with Sateen's stores and with RocksDB's, one after the other on one broker: the
 * time from an input to its output under bursts, what is restored after a kill, the time to restore
 * everything, memory and processor time.
 *
 * <p>A burst of {@code rate} records a second lasts five seconds, and a quarter of it the next five. Inputs
 * are sent when they are due, whether earlier ones have been answered or not.
 *
 * <p>With {@code direct} neither engine uses the page cache. {@code within} is a command that runs the
 * application, such as one that limits its disk: words with blanks between. It must replace itself by
 * the application.
 */
public final class StoreBenchmark {
    private static final Map<String, String> DEFAULTS = Map.ofEntries(Map.entry("directory", ""),
        Map.entry("state", ""), Map.entry("stores", "rocksdb,sateen"), Map.entry("seconds", "60"),
        Map.entry("rate", "4000"), Map.entry("keys", "500000"), Map.entry("value-bytes", "400"),
        Map.entry("memory-bytes", String.valueOf(64 << 20)), Map.entry("restorations", "3"),
        Map.entry("direct", "false"), Map.entry("within", ""));

    private final Map<String, String> settings;
    private final String address, stores;
    private final Path state;
    /** The times of the inputs that have no output yet. They are different. */
    private final Set<Long> open = ConcurrentHashMap.newKeySet();
    private long lastTime;
    /** Nanoseconds from input to output, by the second of the input. */
    private final TreeMap<Long, List<Long>> took = new TreeMap<>();
    private volatile boolean done;

    private StoreBenchmark(Map<String, String> settings, String address, String stores) {
        this.settings = settings;
        this.address = address;
        this.stores = stores;
        this.state = Path.of(settings.get("state"), stores);
    }

    /** Runs the measurement: {@code --NAME VALUE} for each setting. */
    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = new HashMap<>(DEFAULTS);
        for (int at = 0; at < arguments.length; at += 2) {
            String name = arguments[at].replaceFirst("^--", "");
            if (!DEFAULTS.containsKey(name) || at + 1 == arguments.length) {
                System.err.println("the settings are --NAME VALUE, with the names and defaults " + new TreeMap<>(DEFAULTS)
                    + "; not " + arguments[at]);
                System.exit(2);
            }
            settings.put(name, arguments[at + 1]);
        }
        if (!Set.of("true", "false").contains(settings.get("direct"))) {
            System.err.println("direct is true or false; not " + settings.get("direct"));
            System.exit(2);
        }
        Path directory = Path.of(settings.get("directory")).toAbsolutePath();
        if (settings.get("state").isEmpty()) {
            settings.put("state", directory.resolve("state").toString());
        }
        String address = "127.0.0.1:" + Demo.freePort();
        Process broker = Demo.startBroker(directory.resolve("broker"), address);
        try {
            for (String stores : settings.get("stores").split(",")) {
                if (!stores.equals("sateen") && !stores.equals("rocksdb")) {
                    throw new IllegalArgumentException("the stores are " + stores + "; they must be sateen or rocksdb");
                }
                Demo.createTopics(address, broker, directory,
                    new String[] {BenchmarkApplication.INPUT + stores, BenchmarkApplication.OUTPUT + stores});
                new StoreBenchmark(settings, address, stores).run();
            }
        } finally {
            broker.destroyForcibly().waitFor();
        }
    }

    private int number(String name) {
        return Integer.parseInt(settings.get(name));
    }

    private void run() throws Exception {
        delete(state);
        Application application = new Application();
        application.awaitRunning();
        Thread reader = new Thread(this::read);
        reader.start();
        int keys = number("keys");
        // Each key once, so that the state has its size.
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            for (int key = 0; key < keys; key++) {
                send(producer, key);
                // The producer's buffer would otherwise hold minutes.
                while (open.size() > 50_000) {
                    Thread.sleep(5);
                }
            }
        }
        awaitOutputs();
        synchronized (this) {
            took.clear();
        }
        double processor = application.processorSeconds();
        long records = bursts(number("seconds"));
        awaitOutputs();
        report(records, application.processorSeconds() - processor, application.peakMemory());

        bursts(3);
        application.kill();
        bursts(2);
        application = new Application();
        application.awaitRunning();
        awaitOutputs();
        application.printRestored("after a kill");
        application.close();
        for (int round = 0; round < number("restorations"); round++) {
            delete(state);
            application = new Application();
            application.awaitRunning();
            application.printRestored("without state");
            application.close();
        }
        done = true;
        reader.join();
        delete(state);
    }

    private KafkaProducer<byte[], byte[]> producer() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        properties.put("linger.ms", 1);
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Sends a value for a key. It begins with the time. */
    private void send(KafkaProducer<byte[], byte[]> producer, int key) {
        byte[] value = new byte[number("value-bytes")];
        lastTime = Math.max(lastTime + 1, System.nanoTime());
        // Half of it compresses.
        new Random(lastTime).nextBytes(value);
        Arrays.fill(value, value.length / 2, value.length, (byte) 0);
        ByteBuffer.wrap(value).putLong(lastTime);
        open.add(lastTime);
        producer.send(new ProducerRecord<>(BenchmarkApplication.INPUT + stores,
            ByteBuffer.allocate(8).putLong(key).array(), value));
    }

    /** Sends inputs in bursts, and returns how many. */
    private long bursts(int seconds) throws Exception {
        Random random = new Random(1);
        int rate = number("rate"), keys = number("keys");
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            long began = System.nanoTime();
            double due = 0;
            long sent = 0;
            for (long last = began, now; (now = System.nanoTime()) < began + seconds * 1_000_000_000L; last = now) {
                boolean burst = (now - began) / 5_000_000_000L % 2 == 0;
                due += (now - last) / 1e9 * (burst ? rate : rate / 4.0);
                for (; due >= 1; due--, sent++) {
                    send(producer, random.nextInt(keys));
                }
                Thread.sleep(1);
            }
            return sent;
        }
    }

    /** Waits until each input has its output. */
    private void awaitOutputs() throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(10);
        while (!open.isEmpty()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(open.size() + " inputs have no output after ten minutes");
            }
            Thread.sleep(50);
        }
    }

    private void read() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        properties.put("group.id", "bench-reader-" + stores);
        properties.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(BenchmarkApplication.OUTPUT + stores));
            while (!done) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(20))) {
                    long at = ByteBuffer.wrap(one.value()).getLong();
                    long nanoseconds = System.nanoTime() - at;
                    // A killed application repeats some outputs.
                    if (open.remove(at)) {
                        synchronized (this) {
                            took.computeIfAbsent(at / 1_000_000_000L, none -> new ArrayList<>()).add(nanoseconds);
                        }
                    }
                }
            }
        }
    }

    private synchronized void report(long records, double processorSeconds, long peakMemory) {
        List<Long> all = took.values().stream().flatMap(List::stream).toList();
        double[] seconds = took.values().stream().mapToDouble(of -> milliseconds(of, 0.99)).sorted().toArray();
        System.out.printf("%s: %d records; milliseconds to the output: p50 %.1f, p99 %.1f, p99.9 %.1f, longest %.1f%n",
            stores, records, milliseconds(all, 0.5), milliseconds(all, 0.99), milliseconds(all, 0.999),
            milliseconds(all, 1));
        System.out.printf("%s: p99 of a second: median %.1f, worst %.1f ms%n", stores, seconds[seconds.length / 2],
            seconds[seconds.length - 1]);
        System.out.printf("%s: %.1f us of processor time a record, %d MiB resident at most%n", stores,
            processorSeconds * 1e6 / records, peakMemory >> 20);
    }

    private static double milliseconds(List<Long> of, double quantile) {
        List<Long> sorted = of.stream().sorted().toList();
        int at = (int) Math.min(sorted.size() - 1L, (long) (quantile * sorted.size()));
        return sorted.isEmpty() ? 0 : sorted.get(at) / 1e6;
    }

    private static void delete(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return;
        }
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path one : (Iterable<Path>) all.sorted(Comparator.reverseOrder())::iterator) {
                Files.delete(one);
            }
        }
    }

    /** The application in its own process. */
    private final class Application {
        private final Process process;
        private final BufferedReader output;
        private final long began = System.nanoTime();
        private double startSeconds;
        private long restoredRecords, restoreMilliseconds;

        Application() throws IOException {
            Path log = Path.of(settings.get("directory"), "application-" + stores + ".log");
            List<String> command = new ArrayList<>(
                Stream.of(settings.get("within").split(" ")).filter(word -> !word.isEmpty()).toList());
            command.addAll(List.of(System.getProperty("java.home") + "/bin/java", "-Xmx256m",
                "--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path"),
                BenchmarkApplication.class.getName(), address, state.toString(), stores, settings.get("memory-bytes"),
                settings.get("direct")));
            process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
            output = process.inputReader();
        }

        void awaitRunning() throws IOException {
            for (String line; (line = output.readLine()) != null; ) {
                if (line.startsWith("running ")) {
                    startSeconds = (System.nanoTime() - began) / 1e9;
                    String[] words = line.split(" ");
                    restoredRecords = Long.parseLong(words[1]);
                    restoreMilliseconds = Long.parseLong(words[2]);
                    return;
                }
            }
            throw new IOException("the application ended; its log in " + settings.get("directory") + " says why");
        }

        void printRestored(String when) {
            System.out.printf("%s: %s, %d records restored in %d ms; running after %.1f s%n", stores, when,
                restoredRecords, restoreMilliseconds, startSeconds);
        }

        double processorSeconds() {
            return process.info().totalCpuDuration().orElse(Duration.ZERO).toNanos() / 1e9;
        }

        /** Returns the largest resident size so far in bytes, 0 where the system does not tell. */
        long peakMemory() throws IOException {
            Path status = Path.of("/proc", String.valueOf(process.pid()), "status");
            if (!Files.exists(status)) {
                return 0;
            }
            return Files.readAllLines(status).stream().filter(line -> line.startsWith("VmHWM:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")) << 10).findFirst().orElse(0);
        }

        void kill() throws InterruptedException {
            process.destroyForcibly().waitFor();
        }

        void close() throws Exception {
            process.getOutputStream().close();
            if (!process.waitFor(2, TimeUnit.MINUTES)) {
                process.destroyForcibly();
                throw new IOException("the application did not end");
            }
        }
    }
}
