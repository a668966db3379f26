package sateen.kafka.example;

import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import sateen.kafka.SateenDslStoreSuppliers;

/**
 * The topology of a shop: it counts the words of its reviews, the clicks of each visit, and joins clicks
 * with the purchases that follow within a minute.
 */
public final class Shop {
    static final String APPLICATION = "shop";
    static final String[] INPUTS = {"reviews", "clicks", "purchases"};
    static final String[] OUTPUTS = {"word-counts", "visits", "bought-after-click"};

    private Shop() {}

    /** The settings: the last line is all that is Sateen's. */
    static Properties settings(String broker, String directory) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, APPLICATION);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, SateenDslStoreSuppliers.class.getName());
        return settings;
    }

    static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> texts = Consumed.with(Serdes.String(), Serdes.String());
        Produced<String, String> out = Produced.with(Serdes.String(), Serdes.String());

        builder.stream("reviews", texts)
            .flatMapValues(review -> Arrays.asList(review.toLowerCase().split("\\W+")))
            .groupBy((user, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("words"))
            .toStream().mapValues(count -> Long.toString(count)).to("word-counts", out);

        KStream<String, String> clicks = builder.stream("clicks", texts);
        clicks.groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofMinutes(5)))
            .count(Materialized.as("visits"))
            .toStream().filter((visit, count) -> count != null)
            .map((visit, count) -> KeyValue.pair(visit.key(), count + " clicks in "
                + (visit.window().end() - visit.window().start()) / 1000 + " s"))
            .to("visits", out);

        clicks.join(builder.stream("purchases", texts), (page, item) -> item + " after " + page,
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMinutes(1), Duration.ofSeconds(10)),
                StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()).withStoreName("clicks-purchases"))
            .to("bought-after-click", out);
        return builder.build();
    }
}
