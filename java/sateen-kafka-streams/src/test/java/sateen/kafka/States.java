package sateen.kafka;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;

/** How tests open the database of a store. */
final class States {
    private States() {}

    /** Opens the store {@code store} of the task whose directory is {@code place}; {@code more} has keys and values. */
    static StateDatabase open(Path place, boolean exactlyOnce, Object... more) {
        var properties = StreamsTestUtils.getStreamsConfig();
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
            exactlyOnce ? StreamsConfig.EXACTLY_ONCE_V2 : StreamsConfig.AT_LEAST_ONCE);
        for (int nth = 0; nth < more.length; nth += 2) {
            properties.put(more[nth], more[nth + 1]);
        }
        return StateDatabase.open("store",
            new InternalMockProcessorContext<Object, Object>(place.toFile(),
                new StreamsConfig(properties)), "test");
    }

    /** Copies the directory of a task whose store is open: what a killed process leaves. */
    static Path crash(Path live, Path copy) throws IOException {
        try (Stream<Path> all = Files.walk(live)) {
            for (Path one : (Iterable<Path>) all::iterator) {
                Path target = copy.resolve(live.relativize(one).toString());
                if (Files.isDirectory(one)) {
                    Files.createDirectories(target);
                } else {
                    Files.copy(one, target);
                }
            }
        }
        return copy;
    }
}
