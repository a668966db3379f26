package sateen.kafka;

import java.util.Map;
import java.util.function.Supplier;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

/**
 * Gauges of a store, in the group {@code stream-state-metrics} with the tag {@code sateen-state-id}.
 * Kafka's own metrics of a store (put, get, fetch, restore, …) come from the layer above it.
 */
final class StoreMetrics {
    private static final String SCOPE = "sateen";
    /** The name of each gauge, and the property of the database behind it. */
    private static final Map<String, String> GAUGES = Map.of(
        "estimate-num-keys", "rocksdb.estimate-num-keys",
        "total-sst-files-size", "rocksdb.total-sst-files-size",
        "cur-size-all-mem-tables", "rocksdb.cur-size-all-mem-tables",
        "estimate-pending-compaction-bytes", "rocksdb.estimate-pending-compaction-bytes",
        "num-running-compactions", "rocksdb.num-running-compactions");

    private StoreMetrics() {}

    static void register(StateStoreContext context, String store,
            Supplier<StateDatabase> database) {
        StreamsMetricsImpl metrics = ProcessorContextUtils.metricsImpl(context);
        if (metrics == null) {
            return;
        }
        String task = context.taskId().toString();
        GAUGES.forEach((name, property) -> metrics.addStoreLevelMutableMetric(task, SCOPE, store, name,
            "The property " + property + " of the store's database, for all its column families",
            RecordingLevel.INFO, (Gauge<Long>) (config, now) -> {
                StateDatabase current = database.get();
                return current.isOpen() ? current.property(property) : 0L;
            }));
    }
}
