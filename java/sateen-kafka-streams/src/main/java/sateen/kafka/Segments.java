package sateen.kafka;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * The segments of a store with a retention: each is a family, for the entries of one interval of time. A
 * segment whose interval has expired is dropped whole; no entry is deleted.
 */
final class Segments {
    private static final String PREFIX = "segment-";

    private final StateDatabase database;
    private final long interval;
    private final long retention;
    private final Sensor droppedRecords;
    private final StateStoreContext context;
    /** By number; threads that query read it. */
    private final NavigableMap<Long, Family> segments = new ConcurrentSkipListMap<>();
    private volatile long streamTime;

    Segments(StateDatabase database, StateStoreContext context, long interval, long retention) {
        this.database = database;
        this.context = context;
        this.interval = interval;
        this.retention = retention;
        droppedRecords = TaskMetrics.droppedRecordsSensor(Thread.currentThread().getName(),
            context.taskId().toString(), ProcessorContextUtils.metricsImpl(context));
        for (String name : List.copyOf(database.families())) {
            if (name.startsWith(PREFIX)) {
                segments.put(Long.parseLong(name.substring(PREFIX.length())), database.family(name));
            }
        }
        streamTime = database.streamTime();
        dropExpired();
    }

    /** Returns what a {@link Shape} says of segments: the names of families depend on it. */
    static String interval(long interval) {
        return " segments=" + interval + "ms";
    }

    /** Returns the greatest time that was seen, or -1. */
    long time() {
        return streamTime;
    }

    /** Returns the earliest time that has not expired. */
    long earliest() {
        return streamTime - retention + 1;
    }

    /** Notes the time of an entry, and gives up the segments that expire by it. */
    void observe(long time) {
        if (time > streamTime) {
            streamTime = time;
            database.streamTime(time);
            dropExpired();
        }
    }

    /** Returns the segment for an entry of this time, made if needed; null if it has expired. */
    Family forWriting(long time) {
        long number = number(time);
        if (number < number(streamTime - retention)) {
            return null;
        }
        Family segment = segments.get(number);
        if (segment == null) {
            segment = database.family(PREFIX + number);
            segments.put(number, segment);
        }
        return segment;
    }

    /** Returns the segment that has entries of this time, or null. */
    Family forReading(long time) {
        return segments.get(number(time));
    }

    /** Counts a record that came too late. */
    void countDropped() {
        droppedRecords.record(1.0, System.currentTimeMillis());
    }

    /** Returns the segments with times from {@code from} to {@code to}, both included. */
    List<Family> between(long from, long to, boolean forward) {
        long first = number(from);
        long last = number(to);
        if (first > last) {
            return List.of();
        }
        NavigableMap<Long, Family> found = segments.subMap(first, true, last, true);
        Collection<Family> ordered = forward ? found.values() : found.descendingMap().values();
        return new ArrayList<>(ordered);
    }

    /** Returns the segments with times from {@code from} on, by the last time of each. */
    NavigableMap<Long, Family> since(long from, boolean forward) {
        NavigableMap<Long, Family> found = new TreeMap<>();
        segments.tailMap(number(from), true).forEach((number, segment) -> {
            long start = number * interval;
            long end = start > Long.MAX_VALUE - interval ? Long.MAX_VALUE : start + interval - 1;
            found.put(end, segment);
        });
        return forward ? found : found.descendingMap();
    }

    private void dropExpired() {
        long earliest = number(streamTime - retention);
        NavigableMap<Long, Family> expired = segments.headMap(earliest, false);
        for (Long number : new TreeMap<>(expired).keySet()) {
            segments.remove(number);
            database.drop(PREFIX + number);
        }
    }

    private long number(long time) {
        return time / interval;
    }

    /** Which entries of a range belong to the answer. */
    interface Filter {
        boolean accepts(byte[] key);
    }

    /** Returns the accepted entries of several segments, one segment after the other. */
    KeyValueIterator<Bytes, byte[]> entries(List<Family> searched, Bytes from, Bytes to, boolean forward,
            Filter filter) {
        return new SegmentIterator(searched.iterator(), segment -> segment.iterator(from, to, forward), filter);
    }
}
