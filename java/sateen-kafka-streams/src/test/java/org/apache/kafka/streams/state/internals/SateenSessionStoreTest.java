package org.apache.kafka.streams.state.internals;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import sateen.kafka.SateenStores;

/** The published tests of session stores. They are in Kafka's package, as their base class wants. */
public class SateenSessionStoreTest extends AbstractSessionBytesStoreTest {
    /** Some tests open a second store beside the first: a database is open once. */
    private int made;

    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retentionPeriod, Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.sessionStoreBuilder(SateenStores.sessionStore("session-store" + ++made,
            Duration.ofMillis(retentionPeriod)), keySerde, valueSerde).build();
    }

    /** The store whose expiry is by segments of a minute and which finds sessions by time alone. */
    @Override
    StoreType storeType() {
        return StoreType.RocksDBTimeOrderedSessionStoreWithIndex;
    }
}
