package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The versioned store beside a map of all versions. */
class VersionedStoreTest {
    private static final long RETENTION = 10_000;

    @TempDir Path directory;

    private SateenVersionedStore open(String name) {
        SateenVersionedStore store = new SateenVersionedStore(name, 1000, RETENTION);
        store.init(new InternalMockProcessorContext<Object, Object>(directory.toFile(),
            new StreamsConfig(StreamsTestUtils.getStreamsConfig())), store);
        return store;
    }

    private static Bytes key(int nth) {
        // Keys of different lengths, one of which can look like another with a time behind it.
        return Bytes.wrap(nth % 2 == 0 ? new byte[] {(byte) nth} : new byte[] {(byte) (nth - 1), 0, 0, 0});
    }

    @Test
    void anyOrderOfPutsGivesTheVersionsOfAMap() {
        for (int seed = 0; seed < 12; seed++) {
            Random random = new Random(seed);
            Map<Bytes, TreeMap<Long, byte[]>> model = new HashMap<>();
            List<ConsumerRecord<byte[], byte[]>> changelog = new ArrayList<>();
            long streamTime = -1;
            SateenVersionedStore store = open("store" + seed);
            for (int step = 0; step < 300; step++) {
                Bytes key = key(random.nextInt(4));
                long time = Math.max(0, streamTime + 200 - random.nextInt(random.nextInt(8) == 0 ? 15_000 : 600));
                byte[] value = random.nextInt(5) == 0 ? null : new byte[] {(byte) step};
                TreeMap<Long, byte[]> versions = model.computeIfAbsent(key, none -> new TreeMap<>());
                long until = store.put(key, value, time);
                changelog.add(new ConsumerRecord<>("changelog", 0, step, time, TimestampType.CREATE_TIME, 0, 0,
                    key.get(), value, new RecordHeaders(), java.util.Optional.empty()));
                if (time < streamTime - RETENTION) {
                    assertEquals(VersionedKeyValueStore.PUT_RETURN_CODE_NOT_PUT, until);
                    continue;
                }
                streamTime = Math.max(streamTime, time);
                versions.put(time, value == null ? new byte[0] : value);
                Long after = versions.higherKey(time);
                assertEquals(after == null ? VersionedKeyValueStore.PUT_RETURN_CODE_VALID_TO_UNDEFINED : after,
                    until, "seed " + seed + ", step " + step);
                if (step % 40 == 0) {
                    store.commit(Map.of(new TopicPartition("changelog", 0), (long) step));
                }
            }
            check(store, model, streamTime, seed);
            store.commit(Map.of());
            store.close();
            SateenVersionedStore again = open("store" + seed);
            check(again, model, streamTime, seed);
            again.close();
            SateenVersionedStore restored = open("restored" + seed);
            restored.restoreBatch(changelog.subList(0, 100));
            restored.restoreBatch(changelog.subList(100, changelog.size()));
            check(restored, model, streamTime, seed);
            restored.close();
        }
    }

    private static void check(SateenVersionedStore store, Map<Bytes, TreeMap<Long, byte[]>> model,
            long streamTime, int seed) {
        model.forEach((key, versions) -> {
            same(versions.lastEntry(), null, store.get(key), "newest, seed " + seed);
            for (long time = streamTime + 10; time >= streamTime - RETENTION; time -= 37) {
                same(versions.floorEntry(time), versions.higherKey(time), store.get(key, time),
                    "at " + time + ", seed " + seed);
            }
            QueryResult<VersionedRecordIterator<byte[]>> result = store.query(
                MultiVersionedKeyQuery.<Bytes, byte[]>withKey(key)
                    .fromTime(Instant.ofEpochMilli(streamTime - 1000))
                    .toTime(Instant.ofEpochMilli(streamTime - 300)).withAscendingTimestamps(),
                PositionBound.unbounded(), new QueryConfig(false));
            List<Long> expected = new ArrayList<>();
            Long first = versions.floorKey(streamTime - 1000);
            versions.tailMap(first == null ? streamTime - 1000 : first, true).headMap(streamTime - 300, true)
                .forEach((from, value) -> {
                    if (value.length > 0) {
                        expected.add(from);
                    }
                });
            List<Long> actual = new ArrayList<>();
            result.getResult().forEachRemaining(version -> actual.add(version.timestamp()));
            assertEquals(expected, actual, "versions, seed " + seed);
        });
    }

    private static void same(Map.Entry<Long, byte[]> expected, Long until, VersionedRecord<byte[]> actual,
            String what) {
        if (expected == null || expected.getValue().length == 0) {
            assertNull(actual, what);
        } else {
            assertEquals(expected.getKey(), actual.timestamp(), what);
            assertArrayEquals(expected.getValue(), actual.value(), what);
            assertEquals(java.util.Optional.ofNullable(until), actual.validTo(), what);
        }
    }
}
