package org.apache.kafka.streams.state.internals;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import sateen.kafka.SateenStores;

/** The published tests of window stores. They are in Kafka's package, as their base class wants. */
public class SateenWindowStoreTest extends AbstractWindowBytesStoreTest {
    /** Some tests open a second store beside the first: a database is open once. */
    private int made;

    @Override
    <K, V> WindowStore<K, V> buildWindowStore(long retentionPeriod, long windowSize, boolean retainDuplicates,
            Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.windowStoreBuilder(SateenStores.windowStore("window-store" + ++made,
            Duration.ofMillis(retentionPeriod), Duration.ofMillis(windowSize), retainDuplicates), keySerde,
            valueSerde).build();
    }
}
