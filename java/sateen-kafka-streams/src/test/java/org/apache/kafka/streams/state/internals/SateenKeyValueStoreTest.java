package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import sateen.kafka.SateenStores;

/** The published tests of key-value stores. They are in Kafka's package, as their base class wants. */
public class SateenKeyValueStoreTest extends AbstractKeyValueStoreTest {
    @Override
    @SuppressWarnings("unchecked")
    protected <K, V> KeyValueStore<K, V> createKeyValueStore(StateStoreContext context) {
        KeyValueStore<K, V> store = Stores.keyValueStoreBuilder(SateenStores.keyValueStore("my-store"),
            (Serde<K>) context.keySerde(), (Serde<V>) context.valueSerde()).build();
        store.init(context, store);
        return store;
    }
}
