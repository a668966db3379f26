package sateen.kafka;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Uuid;

/** A broker of one node in a process of its own, with 512 MB of heap. */
final class Broker implements AutoCloseable {
    private final Path directory;
    private final int port;
    private final Admin admin;
    private Process process;

    Broker(Path directory) throws Exception {
        this.directory = directory;
        port = freePort();
        int controller = freePort();
        Files.createDirectories(directory);
        Files.writeString(directory.resolve("server.properties"), String.join("\n",
            "node.id=1", "process.roles=broker,controller",
            "listeners=PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controller,
            "advertised.listeners=PLAINTEXT://127.0.0.1:" + port, "controller.listener.names=CONTROLLER",
            "controller.quorum.voters=1@127.0.0.1:" + controller, "log.dirs=" + directory.resolve("logs"),
            "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
            "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
            "transaction.state.log.num.partitions=1", "group.initial.rebalance.delay.ms=0",
            "group.min.session.timeout.ms=500", "auto.create.topics.enable=false", ""));
        Process format = java(directory.resolve("format.log"), "kafka.tools.StorageTool", "format", "-t",
            Uuid.randomUuid().toString(), "-c", directory.resolve("server.properties").toString());
        if (!format.waitFor(60, TimeUnit.SECONDS) || format.exitValue() != 0) {
            format.destroyForcibly();
            throw new IOException("the broker's directory was not formatted: "
                + Files.readString(directory.resolve("format.log")));
        }
        admin = Admin.create(Map.of("bootstrap.servers", address()));
        start();
    }

    String address() {
        return "127.0.0.1:" + port;
    }

    void start() throws Exception {
        process = java(directory.resolve("broker.log"), "kafka.Kafka",
            directory.resolve("server.properties").toString());
        for (int tries = 0;; tries++) {
            try {
                admin.describeCluster().nodes().get(5, TimeUnit.SECONDS);
                return;
            } catch (java.util.concurrent.ExecutionException | java.util.concurrent.TimeoutException e) {
                if (tries == 24 || !process.isAlive()) {
                    throw new IOException("the broker does not answer: "
                        + Files.readString(directory.resolve("broker.log")), e);
                }
            }
        }
    }

    /** Ends the broker as a power failure would end it, without that of the device. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    Admin admin() {
        return admin;
    }

    void createTopics(int partitions, String... names) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (String name : names) {
            topics.add(new NewTopic(name, partitions, (short) 1));
        }
        admin.createTopics(topics).all().get(60, TimeUnit.SECONDS);
    }

    @Override
    public void close() throws Exception {
        admin.close();
        process.destroyForcibly().waitFor();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    /** Starts a class with the class path of this process. */
    static Process java(Path log, String main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-Xmx512m",
            "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path")));
        command.add("--enable-native-access=ALL-UNNAMED");
        String backend = System.getProperty("sateen.backend");
        if (backend != null) {
            command.add("-Dsateen.backend=" + backend);
        }
        command.add(main);
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
            .redirectInput(new File("/dev/null")).start();
    }
}
