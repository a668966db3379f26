package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Interactive queries run on threads of the application, beside the thread of the task. */
class QueryThreadTest {
    private static final Bytes KEY = Bytes.wrap(new byte[] {1});
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    @TempDir Path directory;

    private <S extends SateenStore> S open(S store) {
        store.init(new InternalMockProcessorContext<Object, Object>(directory.toFile(),
            new StreamsConfig(StreamsTestUtils.getStreamsConfig())), store);
        return store;
    }

    /** Runs {@code query} again and again on another thread while {@code task} runs, and finds deadlocks. */
    private static void beside(Runnable task, Runnable query) throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        FutureTask<Void> queries = new FutureTask<>(() -> {
            while (!over.get()) {
                query.run();
            }
        }, null);
        FutureTask<Void> work = new FutureTask<>(() -> {
            try {
                task.run();
            } finally {
                over.set(true);
            }
        }, null);
        for (Runnable each : List.of(queries, work)) {
            Thread thread = new Thread(each);
            thread.setDaemon(true);
            thread.start();
        }
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        while (!work.isDone() || !queries.isDone()) {
            long[] stuck = threads.findDeadlockedThreads();
            assertNull(stuck, () -> List.of(threads.getThreadInfo(stuck, 8)).toString());
            Thread.sleep(1);
        }
        work.get();
        queries.get();
    }

    @Test
    void aRangeQueryAndACommitDoNotWaitForEachOther() throws Exception {
        SateenKeyValueStore store = open(new SateenKeyValueStore("store"));
        RangeQuery<Bytes, byte[]> all = RangeQuery.withNoBounds();
        beside(() -> {
            for (long offset = 1; offset <= 5000; offset++) {
                store.put(KEY, new byte[] {2});
                store.commit(Map.of(CHANGELOG, offset));
            }
        }, () -> {
            try (KeyValueIterator<Bytes, byte[]> found =
                    store.query(all, PositionBound.unbounded(), new QueryConfig(false)).getResult()) {
                found.forEachRemaining(entry -> assertEquals(KEY, entry.key));
            }
        });
        store.close();
    }

    @Test
    void aQueryOfVersionsAndAPutDoNotWaitForEachOther() throws Exception {
        SateenVersionedStore store = open(new SateenVersionedStore("store", 1000, 10_000));
        MultiVersionedKeyQuery<Bytes, byte[]> versions = MultiVersionedKeyQuery.withKey(KEY);
        beside(() -> {
            for (int time = 0; time < 5000; time++) {
                store.put(KEY, new byte[] {2}, time);
            }
        }, () -> assertTrue(store.query(versions, PositionBound.unbounded(), new QueryConfig(false)).isSuccess()));
        store.close();
    }

    @Test
    void aVersionStaysVisibleWhileAStandbyRestoresALaterOne() throws Exception {
        SateenVersionedStore store = open(new SateenVersionedStore("store", 100_000, 1_000_000));
        List<ConsumerRecord<byte[], byte[]>> first = List.of(changed(0), changed(100_000));
        store.restoreBatch(first);
        List<ConsumerRecord<byte[], byte[]>> later = new ArrayList<>();
        // Each of them ends the version of time 0 earlier.
        for (long time = 20_000; time > 1; time--) {
            later.add(changed(time));
        }
        beside(() -> store.restoreBatch(later), () -> {
            VersionedRecord<byte[]> found = store.get(KEY, 1);
            assertNotNull(found);
            assertEquals(0, found.timestamp());
        });
        store.close();
    }

    private static ConsumerRecord<byte[], byte[]> changed(long time) {
        return new ConsumerRecord<>("changelog", 0, time, time, TimestampType.CREATE_TIME, 0, 0, KEY.get(),
            new byte[] {2}, new RecordHeaders(), java.util.Optional.empty());
    }
}
