package sateen.kafka;

import java.util.Map;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Makes every store of the DSL one of Sateen's:
 * {@code dsl.store.suppliers.class=sateen.kafka.SateenDslStoreSuppliers}.
 */
public final class SateenDslStoreSuppliers implements DslStoreSuppliers {
    /**
     * Refuses wrong keys and values of {@link SateenConfig}. Kafka calls this when it is given the
     * topology. Later, a store that cannot be opened fails its task, which under exactly-once
     * removes the state of the task.
     */
    @Override
    public void configure(Map<String, ?> configs) {
        SateenConfig.check(configs);
    }

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        switch (format(params.dslStoreFormat())) {
            case HEADERS:
                return SateenStores.keyValueStoreWithHeaders(params.name());
            case TIMESTAMPED:
                return SateenStores.timestampedKeyValueStore(params.name());
            default:
                return SateenStores.keyValueStore(params.name());
        }
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        return SateenStores.window(params.name(), params.retentionPeriod(), params.windowSize(),
            params.retainDuplicates(), format(params.dslStoreFormat()));
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        return params.storeFormat() == DslStoreFormat.HEADERS
            ? SateenStores.sessionStoreWithHeaders(params.name(), params.retentionPeriod())
            : SateenStores.sessionStore(params.name(), params.retentionPeriod());
    }

    private static SateenStores.Format format(DslStoreFormat format) {
        if (format == null) {
            return SateenStores.Format.TIMESTAMPED;
        }
        switch (format) {
            case HEADERS:
                return SateenStores.Format.HEADERS;
            case PLAIN:
                return SateenStores.Format.PLAIN;
            default:
                return SateenStores.Format.TIMESTAMPED;
        }
    }
}
