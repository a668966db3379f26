package sateen.kafka;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.ToDoubleFunction;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.state.internals.metrics.RocksDBMetrics;
import org.apache.kafka.streams.state.internals.metrics.RocksDBMetrics.RocksDBMetricContext;
import org.apache.kafka.streams.state.internals.metrics.RocksDBMetricsRecorder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sateen.Histogram;

/**
 * Records the statistics of a database in Kafka's sensors for RocksDB.
 *
 * <p>{@code KafkaStreams} has one thread that calls {@link #record} of all recorders once a minute,
 * if the recording level is DEBUG. Counters are recorded as what they grew by since the last call.
 * Times of flushes and compactions are those since the database was opened. Both are as Kafka's recorder does it.
 */
final class StatisticsRecorder extends RocksDBMetricsRecorder {
    private static final Logger LOG = LoggerFactory.getLogger(StatisticsRecorder.class);
    private static final String FLUSHES = "rocksdb.db.flush.micros";
    private static final String COMPACTIONS = "rocksdb.compaction.times.micros";

    /** One of Kafka's sensors, and the number for it. */
    private record Source(BiFunction<StreamsMetricsImpl, RocksDBMetricContext, Sensor> sensor,
            ToDoubleFunction<Interval> number) {}

    // The sensors that are missing are in docs/kafka-streams.md, with the reasons.
    private static final List<Source> SOURCES = List.of(
        new Source(RocksDBMetrics::bytesWrittenToDatabaseSensor,
            of -> of.count("rocksdb.bytes.written")),
        new Source(RocksDBMetrics::bytesReadFromDatabaseSensor,
            of -> of.count("rocksdb.bytes.read")),
        new Source(RocksDBMetrics::memtableBytesFlushedSensor,
            of -> of.count("rocksdb.flush.write.bytes")),
        new Source(RocksDBMetrics::memtableHitRatioSensor,
            of -> of.hitRatio("rocksdb.memtable.hit", "rocksdb.memtable.miss")),
        new Source(RocksDBMetrics::memtableAvgFlushTimeSensor, of -> of.flushes.average()),
        new Source(RocksDBMetrics::memtableMinFlushTimeSensor, of -> of.flushes.minimum()),
        new Source(RocksDBMetrics::memtableMaxFlushTimeSensor, of -> of.flushes.maximum()),
        new Source(RocksDBMetrics::writeStallDurationSensor,
            of -> of.count("rocksdb.stall.micros")),
        new Source(RocksDBMetrics::blockCacheDataHitRatioSensor,
            of -> of.hitRatio("rocksdb.block.cache.data.hit", "rocksdb.block.cache.data.miss")),
        new Source(RocksDBMetrics::bytesReadDuringCompactionSensor,
            of -> of.count("rocksdb.compact.read.bytes")),
        new Source(RocksDBMetrics::bytesWrittenDuringCompactionSensor,
            of -> of.count("rocksdb.compact.write.bytes")),
        new Source(RocksDBMetrics::compactionTimeAvgSensor, of -> of.compactions.average()),
        new Source(RocksDBMetrics::compactionTimeMinSensor, of -> of.compactions.minimum()),
        new Source(RocksDBMetrics::compactionTimeMaxSensor, of -> of.compactions.maximum()),
        new Source(RocksDBMetrics::numberOfFileErrorsSensor,
            of -> of.count("rocksdb.no.file.errors")));

    private final TaskId task;
    private final StateDatabase database;
    private final List<Sensor> sensors = new ArrayList<>();
    private StreamsMetricsImpl streams;
    /** Whether Kafka's trigger has this recorder. */
    private boolean triggered;
    /** The counters at the last call. */
    private Map<String, Long> before = Map.of();

    StatisticsRecorder(String scope, TaskId task, StateDatabase database) {
        super(scope, database.store());
        this.task = task;
        this.database = database;
    }

    /** What happened since the last call. */
    private static final class Interval {
        private final Map<String, Long> before;
        private final Map<String, Long> now;
        private final Histogram flushes;
        private final Histogram compactions;

        Interval(Map<String, Long> before, Map<String, Long> now, Histogram flushes,
                Histogram compactions) {
            this.before = before;
            this.now = now;
            this.flushes = flushes;
            this.compactions = compactions;
        }

        long count(String name) {
            return now.getOrDefault(name, 0L) - before.getOrDefault(name, 0L);
        }

        /** Returns the part of the reads that were hits, 0 if there were none. */
        double hitRatio(String hits, String misses) {
            long hit = count(hits);
            return hit == 0 ? 0 : (double) hit / (hit + count(misses));
        }
    }

    /** Adds the sensors, and begins to record. */
    void begin(StreamsMetricsImpl kafkas, RocksDBMetricContext context) {
        streams = kafkas;
        for (Source source : SOURCES) {
            sensors.add(source.sensor().apply(streams, context));
        }
        streams.rocksDBMetricsRecordingTrigger().addMetricsRecorder(this);
        triggered = true;
    }

    /** Removes the sensors. A call of {@link #record} may still be running. */
    void end() {
        if (triggered) {
            triggered = false;
            streams.rocksDBMetricsRecordingTrigger().removeMetricsRecorder(this);
        }
        sensors.forEach(streams::removeSensor);
    }

    @Override
    public TaskId taskId() {
        return task;
    }

    @Override
    public void record(long now) {
        // An exception would end the recording of all stores of the instance.
        try {
            Map<String, Long> counters = database.counters();
            Interval interval = new Interval(before, counters, database.histogram(FLUSHES),
                database.histogram(COMPACTIONS));
            before = counters;
            for (int nth = 0; nth < SOURCES.size(); nth++) {
                sensors.get(nth).record(SOURCES.get(nth).number().applyAsDouble(interval), now);
            }
        } catch (InvalidStateStoreException closed) {
            LOG.debug("The store {} was closed before its statistics were recorded", storeName());
        } catch (RuntimeException failed) {
            LOG.warn("The statistics of the store {} cannot be recorded", storeName(), failed);
        }
    }
}
