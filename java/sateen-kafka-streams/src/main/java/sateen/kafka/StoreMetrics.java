package sateen.kafka;

import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.state.internals.metrics.RocksDBMetrics;
import org.apache.kafka.streams.state.internals.metrics.RocksDBMetrics.RocksDBMetricContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The metrics of a store's database, with the names, descriptions, types and recording levels of
 * Kafka's RocksDB stores. They have the tag of the kind of store, such as {@code sateen-state-id}.
 * Kafka's own metrics of a store (put, get, fetch, restore, …) come from the layer above it.
 *
 * <p>A gauge (KIP-607, level INFO) reads a property of the database when it is read. The sensors
 * (KIP-471, level DEBUG) are those of a {@link StatisticsRecorder}. Writes do nothing for either.
 *
 * <p>Kafka removes metrics of a store by the name of the thread that closes it. Another thread may
 * have opened it. So {@link #remove} removes each of these by its own name.
 */
final class StoreMetrics {
    private static final Logger LOG = LoggerFactory.getLogger(StoreMetrics.class);

    /** How a property of a database follows from those of its column families. */
    private enum Scope {
        /** The sum over the column families. */
        SUM,
        /** 1 if it is not 0 for some column family. */
        ANY,
        /** Each column family has the property of the whole database. */
        DATABASE
    }

    private interface Registration {
        void add(StreamsMetricsImpl streams, RocksDBMetricContext context, Gauge<BigInteger> gauge);
    }

    /** A gauge: its name, which is that of the property, and Kafka's function that adds it. */
    private record Property(String name, Scope scope, Registration registration) {}

    // Kafka's constants for the names are not public. num-live-versions is missing: the engine does
    // not count versions.
    private static final List<Property> PROPERTIES = List.of(
        new Property("num-immutable-mem-table", Scope.SUM,
            RocksDBMetrics::addNumImmutableMemTableMetric),
        new Property("cur-size-active-mem-table", Scope.SUM,
            RocksDBMetrics::addCurSizeActiveMemTable),
        new Property("cur-size-all-mem-tables", Scope.SUM, RocksDBMetrics::addCurSizeAllMemTables),
        new Property("size-all-mem-tables", Scope.SUM, RocksDBMetrics::addSizeAllMemTables),
        new Property("num-entries-active-mem-table", Scope.SUM,
            RocksDBMetrics::addNumEntriesActiveMemTableMetric),
        new Property("num-deletes-active-mem-table", Scope.SUM,
            RocksDBMetrics::addNumDeletesActiveMemTableMetric),
        new Property("num-entries-imm-mem-tables", Scope.SUM,
            RocksDBMetrics::addNumEntriesImmMemTablesMetric),
        new Property("num-deletes-imm-mem-tables", Scope.SUM,
            RocksDBMetrics::addNumDeletesImmMemTablesMetric),
        new Property("mem-table-flush-pending", Scope.ANY, RocksDBMetrics::addMemTableFlushPending),
        new Property("num-running-flushes", Scope.DATABASE,
            RocksDBMetrics::addNumRunningFlushesMetric),
        new Property("compaction-pending", Scope.DATABASE,
            RocksDBMetrics::addCompactionPendingMetric),
        new Property("num-running-compactions", Scope.DATABASE,
            RocksDBMetrics::addNumRunningCompactionsMetric),
        new Property("estimate-pending-compaction-bytes", Scope.SUM,
            RocksDBMetrics::addEstimatePendingCompactionBytesMetric),
        new Property("total-sst-files-size", Scope.SUM,
            RocksDBMetrics::addTotalSstFilesSizeMetric),
        new Property("live-sst-files-size", Scope.SUM, RocksDBMetrics::addLiveSstFilesSizeMetric),
        new Property("estimate-num-keys", Scope.SUM, RocksDBMetrics::addEstimateNumKeysMetric),
        new Property("estimate-table-readers-mem", Scope.DATABASE,
            RocksDBMetrics::addEstimateTableReadersMemMetric),
        new Property("background-errors", Scope.DATABASE,
            RocksDBMetrics::addBackgroundErrorsMetric),
        new Property("block-cache-capacity", Scope.DATABASE,
            RocksDBMetrics::addBlockCacheCapacityMetric),
        new Property("block-cache-usage", Scope.DATABASE, RocksDBMetrics::addBlockCacheUsageMetric),
        new Property("block-cache-pinned-usage", Scope.DATABASE,
            RocksDBMetrics::addBlockCachePinnedUsageMetric));

    /** Null if the context has no metrics. */
    private final StreamsMetricsImpl streams;
    private final StateDatabase database;
    /** The tags, which name the thread that opened the store. */
    private final Map<String, String> tags;
    /** Null if there is nothing to record into or with. */
    private StatisticsRecorder recorder;

    private StoreMetrics(StreamsMetricsImpl streams, StateDatabase database,
            Map<String, String> tags) {
        this.streams = streams;
        this.database = database;
        this.tags = tags;
    }

    /** Adds the metrics of an open database. Remove them before it is closed. */
    static StoreMetrics add(StateStoreContext context, String scope, StateDatabase database) {
        StreamsMetricsImpl streams = ProcessorContextUtils.metricsImpl(context);
        if (streams == null) {
            return new StoreMetrics(null, database, Map.of());
        }
        String task = context.taskId().toString();
        StoreMetrics metrics = new StoreMetrics(streams, database,
            streams.storeLevelTagMap(task, scope, database.store()));
        boolean done = false;
        try {
            RocksDBMetricContext kafkas = new RocksDBMetricContext(task, scope, database.store());
            for (Property property : PROPERTIES) {
                property.registration().add(streams, kafkas,
                    (config, now) -> BigInteger.valueOf(metrics.read(property)));
            }
            metrics.recorder = recorder(context, scope, database);
            if (metrics.recorder != null) {
                metrics.recorder.begin(streams, kafkas);
            }
            done = true;
        } finally {
            if (!done) {
                metrics.remove();
            }
        }
        return metrics;
    }

    private static StatisticsRecorder recorder(StateStoreContext context, String scope,
            StateDatabase database) {
        try {
            return new StatisticsRecorder(scope, context.taskId(), database);
        } catch (NoClassDefFoundError missing) {
            // Kafka's recorder refers to classes of RocksDB, whose jar these stores do not need.
            LOG.info("The store {} does not record statistics without the jar of RocksDB: {}",
                database.store(), missing.toString());
            return null;
        }
    }

    /** Returns a property of the database, 0 once it is closed. */
    private long read(Property property) {
        String name = "rocksdb." + property.name();
        switch (property.scope()) {
            case DATABASE:
                return database.propertyOfAll(name);
            case ANY:
                return Math.min(1, database.property(name));
            default:
                return database.property(name);
        }
    }

    /** Removes the metrics. */
    void remove() {
        if (streams == null) {
            return;
        }
        if (recorder != null) {
            recorder.end();
        }
        for (Property property : PROPERTIES) {
            MetricName name = streams.metricsRegistry().metricName(property.name(),
                StreamsMetricsImpl.STATE_STORE_LEVEL_GROUP, "", tags);
            streams.metricsRegistry().removeMetric(name);
        }
    }
}
