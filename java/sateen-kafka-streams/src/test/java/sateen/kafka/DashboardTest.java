package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The dashboard asks for metrics that the stores have. */
class DashboardTest {
    private static final Pattern NAME = Pattern.compile("kafka_streams_store_([a-z0-9_]+)");

    @TempDir Path state;

    @Test
    void itsMetricsOfStoresExist() throws Exception {
        String dashboard = Files.readString(Path.of("../../contrib/kafka-streams-dashboard.json"));
        TreeSet<String> asked = NAME.matcher(dashboard).results()
            .map(match -> match.group(1).replace('_', '-')).collect(Collectors.toCollection(TreeSet::new));
        assertTrue(asked.size() > 8, asked.toString());
        try (TopologyTestDriver driver = new TopologyTestDriver(CountingApplication.topology(),
                CountingApplication.properties("127.0.0.1:1", state.toString(), "at_least_once", "0"))) {
            driver.metrics().keySet().stream().filter(name -> name.group().equals("stream-state-metrics"))
                .forEach(name -> asked.remove(name.name()));
        }
        assertEquals(new TreeSet<String>(), asked);
    }
}
