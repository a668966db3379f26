package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
        return open(directory, name);
    }

    private static SateenVersionedStore open(Path place, String name, Object... more) {
        SateenVersionedStore store = new SateenVersionedStore(name, 1000, RETENTION);
        var properties = StreamsTestUtils.getStreamsConfig();
        for (int nth = 0; nth < more.length; nth += 2) {
            properties.put(more[nth], more[nth + 1]);
        }
        store.init(new InternalMockProcessorContext<Object, Object>(place.toFile(),
            new StreamsConfig(properties)), store);
        return store;
    }

    private static ConsumerRecord<byte[], byte[]> record(long offset, byte[] key, byte[] value,
            long time) {
        return new ConsumerRecord<>("changelog", 0, offset, time, TimestampType.CREATE_TIME, 0, 0,
            key, value, new RecordHeaders(), java.util.Optional.empty());
    }

    private static Bytes key(int nth) {
        // Keys of different lengths, one of which can look like another with a time behind it.
        return Bytes.wrap(nth % 2 == 0 ? new byte[] {(byte) nth} : new byte[] {(byte) (nth - 1), 0, 0, 0});
    }

    @Test
    void anyOrderOfPutsGivesTheVersionsOfAMap() {
        for (int seed = 0; seed < Integer.getInteger("test.seeds", 12); seed++) {
            Random random = new Random(seed);
            Map<Bytes, TreeMap<Long, byte[]>> model = new HashMap<>();
            List<ConsumerRecord<byte[], byte[]>> changelog = new ArrayList<>();
            long streamTime = -1;
            SateenVersionedStore store = open("store" + seed);
            for (int step = 0; step < 300; step++) {
                Bytes key = key(random.nextInt(4));
                // In some rounds a key often has nothing in the segments before.
                int ahead = seed % 3 == 0 ? 200 : seed % 3 == 1 ? 1500 : 5000;
                long time = Math.max(0, streamTime + ahead
                    - random.nextInt(random.nextInt(8) == 0 ? 15_000 : 3 * ahead));
                byte[] value = random.nextInt(5) == 0 ? null : new byte[] {(byte) step};
                TreeMap<Long, byte[]> versions = model.computeIfAbsent(key, none -> new TreeMap<>());
                long until = store.put(key, value, time);
                changelog.add(record(step, key.get(), value, time));
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

    private static void assertVersion(int value, Long until, VersionedRecord<byte[]> found) {
        assertEquals(value, found.value()[0]);
        assertEquals(java.util.Optional.ofNullable(until), found.validTo());
    }

    @Test
    void aKeyHasNoValueBetweenARemovalAndAMuchLaterVersion() {
        SateenVersionedStore store = open("gap");
        Bytes key = Bytes.wrap(new byte[] {1});
        store.put(key, new byte[] {1}, 100);
        store.put(key, null, 500);
        store.put(key, new byte[] {2}, 3500);
        assertVersion(1, 500L, store.get(key, 400));
        assertNull(store.get(key, 700));
        assertNull(store.get(key, 3499));
        assertEquals(3500, store.put(key, new byte[] {3}, 2500));
        assertNull(store.get(key, 2400));
        assertVersion(3, 3500L, store.get(key, 2600));
        assertEquals(500, store.put(key, new byte[] {4}, 300));
        assertVersion(1, 300L, store.get(key, 200));
        assertVersion(4, 500L, store.get(key, 300));
        // At the time of the removal, so it takes its place.
        assertEquals(2500, store.put(key, new byte[] {5}, 500));
        assertVersion(5, 2500L, store.get(key, 700));
        store.put(key, null, 4000);
        store.put(key, null, 7000);
        assertNull(store.get(key));
        assertVersion(2, 4000L, store.get(key, 3999));
        assertNull(store.get(key, 5000));
        assertEquals(7000, store.put(key, new byte[] {6}, 5000));
        assertVersion(6, 7000L, store.get(key, 6999));
        assertNull(store.get(key, 4999));
        assertNull(store.get(key, 7000));
        store.close();
    }

    private static long counter(SateenVersionedStore store, String name) {
        return store.database().counters().get("rocksdb.number.db." + name);
    }

    @Test
    void aPutOfAnAbsentKeyReadsNoEarlierSegment() {
        SateenVersionedStore store = open("absent");
        for (int time = 0; time < RETENTION; time += 500) {
            store.put(Bytes.wrap(new byte[] {1}), new byte[] {1}, time);
        }
        store.commit(Map.of());
        long before = counter(store, "seek");
        for (int nth = 0; nth < 100; nth++) {
            store.put(Bytes.wrap(new byte[] {2, (byte) nth}), new byte[] {1}, RETENTION - 500);
        }
        long seeks = counter(store, "seek") - before;
        assertTrue(seeks <= 100, seeks + " seeks of 100 puts");
        store.close();
    }

    @Test
    void keysThatBeginWithAKeyAreNotVisitedForIt() {
        SateenVersionedStore store = open("prefix");
        Bytes key = Bytes.wrap("1".getBytes());
        for (int time = 1000; time < 4000; time += 500) {
            for (int nth = 0; nth < 100; nth++) {
                store.put(Bytes.wrap(("1x" + nth).getBytes()), new byte[] {1}, time);
            }
        }
        store.put(key, new byte[] {2}, 2000);
        store.put(key, new byte[] {3}, 3000);
        store.commit(Map.of());
        long before = counter(store, "next");
        assertEquals(2000, store.put(key, new byte[] {1}, 1000));
        assertEquals(3000, store.put(key, new byte[] {4}, 2500));
        store.put(key, null, 3400);
        assertNull(store.get(key));
        store.put(key, new byte[] {5}, 3500);
        assertVersion(1, 2000L, store.get(key, 1999));
        assertVersion(2, 2500L, store.get(key, 2499));
        assertVersion(4, 3000L, store.get(key, 2999));
        assertVersion(3, 3400L, store.get(key, 3399));
        assertNull(store.get(key, 3499));
        assertVersion(5, null, store.get(key, 3500));
        List<Long> times = new ArrayList<>();
        store.query(MultiVersionedKeyQuery.<Bytes, byte[]>withKey(key).withAscendingTimestamps(),
            PositionBound.unbounded(), new QueryConfig(false)).getResult()
            .forEachRemaining(version -> times.add(version.timestamp()));
        assertEquals(List.of(1000L, 2000L, 2500L, 3000L, 3500L), times);
        long steps = counter(store, "next") - before;
        assertTrue(steps < 100, steps + " entries were visited");
        store.close();
    }

    @Test
    void nothingIsLeftOfRemovedKeysAfterTheRetention() {
        SateenVersionedStore store = open("removed");
        for (int nth = 0; nth < 100; nth++) {
            Bytes key = Bytes.wrap(("key" + nth).getBytes());
            store.put(key, new byte[] {1}, nth);
            store.put(key, null, nth + 1000);
            if (nth % 2 == 0) {
                store.put(key, null, nth + 2000);
            }
            assertNull(store.get(key));
            assertEquals(nth, store.get(key, nth + 999).timestamp());
            assertNull(store.get(key, nth + 1000));
        }
        Bytes other = Bytes.wrap(new byte[] {1});
        store.put(other, new byte[] {1}, 3 * RETENTION);
        store.commit(Map.of());
        int left = 0;
        for (String name : store.database().families()) {
            try (StoreIterator all = store.database().family(name).iterator(null, null, true)) {
                for (; all.hasNext(); left++) {
                    assertEquals(other, all.next().key);
                }
            }
        }
        assertEquals(1, left);
        store.close();
    }

    /** A put moves a version to another family; a flush stores one family before the other. */
    @Test
    void aKillBetweenTheFlushesOfFamiliesLosesNoVersion() throws Exception {
        Object[] small = {SateenConfig.UNCOMMITTED_MAX_BYTES, 1000};
        SateenVersionedStore store = open(directory.resolve("live"), "store", small);
        TopicPartition changelog = new TopicPartition("changelog", 0);
        List<ConsumerRecord<byte[], byte[]>> before = new ArrayList<>();
        List<ConsumerRecord<byte[], byte[]>> after = new ArrayList<>();
        for (int nth = 0; nth < 2000; nth++) {
            byte[] key = ("key" + nth).getBytes();
            before.add(record(nth, key, new byte[1000], 1000));
            after.add(record(2000 + nth, key, new byte[1], 2000));
        }
        store.restoreBatch(before);
        store.commit(Map.of(changelog, 2000L));
        store.commit(Map.of(changelog, 2000L));
        store.database().awaitRestored();
        store.restoreBatch(after);
        // The records are ahead of the offset, so they are restored again.
        store.database().family("latest").flush();
        SateenVersionedStore again =
            open(States.crash(directory.resolve("live"), directory.resolve("killed")), "store",
                small);
        assertEquals(2000L, again.committedOffset(changelog));
        again.restoreBatch(after);
        for (int nth = 0; nth < 2000; nth++) {
            Bytes key = Bytes.wrap(("key" + nth).getBytes());
            assertEquals(2000, again.get(key).timestamp());
            VersionedRecord<byte[]> older = again.get(key, 1500);
            assertEquals(1000, older == null ? -1 : older.timestamp(), "older version of " + nth);
        }
        again.close();
        store.close();
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
