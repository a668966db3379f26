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
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Uuid;

/**
 * A cluster of one or more brokers, each in a process of its own with 512 MB of heap. With three or more,
 * topics have three replicas, and a write is acknowledged by two: one broker can be dead.
 */
final class Brokers implements AutoCloseable {
    private final List<Path> directories = new ArrayList<>();
    private final List<Process> processes = new ArrayList<>();
    private final String addresses;
    private final short replicas;
    private final Admin admin;

    Brokers(Path directory, int nodes) throws Exception {
        replicas = (short) Math.min(nodes, 3);
        List<Integer> ports = freePorts(2 * nodes);
        addresses = ports.subList(0, nodes).stream().map(port -> "127.0.0.1:" + port)
            .collect(Collectors.joining(","));
        String voters = IntStream.range(0, nodes).mapToObj(node -> node + "@127.0.0.1:" + ports.get(nodes + node))
            .collect(Collectors.joining(","));
        String cluster = Uuid.randomUuid().toString();
        for (int node = 0; node < nodes; node++) {
            Path own = Files.createDirectories(directory.resolve("broker" + node));
            directories.add(own);
            String listener = "PLAINTEXT://127.0.0.1:" + ports.get(node);
            Files.writeString(own.resolve("server.properties"), String.join("\n",
                "node.id=" + node, "process.roles=broker,controller",
                "listeners=" + listener + ",CONTROLLER://127.0.0.1:" + ports.get(nodes + node),
                "advertised.listeners=" + listener, "controller.listener.names=CONTROLLER",
                "controller.quorum.voters=" + voters, "log.dirs=" + own.resolve("logs"),
                "default.replication.factor=" + replicas, "min.insync.replicas=" + (replicas + 1) / 2,
                "offsets.topic.replication.factor=" + replicas, "offsets.topic.num.partitions=1",
                "transaction.state.log.replication.factor=" + replicas,
                "transaction.state.log.min.isr=" + (replicas + 1) / 2,
                "transaction.state.log.num.partitions=1", "group.initial.rebalance.delay.ms=0",
                "group.min.session.timeout.ms=500", "broker.session.timeout.ms=6000",
                "auto.create.topics.enable=false", ""));
            Process format = java(own.resolve("format.log"), "kafka.tools.StorageTool", "format", "-t", cluster,
                "-c", own.resolve("server.properties").toString());
            if (!format.waitFor(60, TimeUnit.SECONDS) || format.exitValue() != 0) {
                format.destroyForcibly();
                throw new IOException("the broker's directory was not formatted: "
                    + Files.readString(own.resolve("format.log")));
            }
        }
        for (int node = 0; node < nodes; node++) {
            processes.add(run(node));
        }
        admin = Admin.create(Map.of("bootstrap.servers", addresses));
        await(nodes);
    }

    String addresses() {
        return addresses;
    }

    int nodes() {
        return directories.size();
    }

    private Process run(int node) throws IOException {
        Path own = directories.get(node);
        return java(own.resolve("broker.log"), "kafka.Kafka", own.resolve("server.properties").toString());
    }

    /** Starts a broker that was killed, and waits until all that should run are members again. */
    void start(int node) throws Exception {
        processes.set(node, run(node));
        await((int) processes.stream().filter(Process::isAlive).count());
    }

    private void await(int nodes) throws Exception {
        for (int tries = 0;; tries++) {
            try {
                if (admin.describeCluster().nodes().get(5, TimeUnit.SECONDS).size() >= nodes) {
                    return;
                }
                Thread.sleep(200);
            } catch (ExecutionException | TimeoutException notYet) {
                // Asked again below.
            }
            if (tries == 200 || processes.stream().noneMatch(Process::isAlive)) {
                throw new IOException("the brokers do not answer: "
                    + Files.readString(directories.get(0).resolve("broker.log")));
            }
        }
    }

    /** Ends a broker as a power failure would end it, without that of the device. */
    void kill(int node) throws InterruptedException {
        processes.get(node).destroyForcibly().waitFor();
    }

    Admin admin() {
        return admin;
    }

    void createTopics(int partitions, String... names) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (String name : names) {
            topics.add(new NewTopic(name, partitions, replicas));
        }
        admin.createTopics(topics).all().get(60, TimeUnit.SECONDS);
    }

    @Override
    public void close() throws Exception {
        admin.close();
        for (Process process : processes) {
            process.destroyForcibly().waitFor();
        }
    }

    private static List<Integer> freePorts(int count) throws IOException {
        List<ServerSocket> sockets = new ArrayList<>();
        try {
            for (int nth = 0; nth < count; nth++) {
                sockets.add(new ServerSocket(0, 1, InetAddress.getLoopbackAddress()));
            }
            return sockets.stream().map(ServerSocket::getLocalPort).toList();
        } finally {
            for (ServerSocket socket : sockets) {
                socket.close();
            }
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
