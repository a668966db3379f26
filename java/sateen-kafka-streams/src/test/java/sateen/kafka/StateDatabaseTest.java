package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is on the disk after a crash: copies of the directory, taken while the store was open. */
class StateDatabaseTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    @TempDir Path directory;

    private static Bytes b(String text) {
        return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static void put(StateDatabase database, String key, String value) {
        database.beforeWrite();
        database.family("entries").put(b(key), value == null ? null : b(value).get());
        database.afterWrite();
    }

    private static String get(StateDatabase database, String key) {
        byte[] found = database.family("entries").get(b(key));
        return found == null ? null : new String(found, StandardCharsets.UTF_8);
    }

    private static List<String> keys(StateDatabase database, boolean forward) {
        List<String> keys = new ArrayList<>();
        try (StoreIterator all = database.family("entries").iterator(null, null, forward)) {
            all.forEachRemaining(entry -> keys.add(entry.key.toString()));
        }
        return keys;
    }

    private Path crash(String name) throws IOException {
        return States.crash(directory.resolve("live"), directory.resolve(name));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theOffsetAndTheEntriesAreThoseOfTheLastCommit(boolean exactlyOnce) throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), exactlyOnce);
        put(live, "a", "1");
        put(live, "b", "1");
        live.commit(Map.of(CHANGELOG, 1L));
        put(live, "a", "2");
        put(live, "b", null);
        put(live, "c", "2");
        assertEquals("2", get(live, "a"));
        assertNull(get(live, "b"));
        assertEquals(List.of("a", "c"), keys(live, true));
        assertEquals(List.of("c", "a"), keys(live, false));
        Path crashed = crash("crashed");
        live.close();
        for (Path place : exactlyOnce ? List.of(crashed, directory.resolve("live")) : List.of(crashed)) {
            StateDatabase again = States.open(place, exactlyOnce);
            assertEquals(1L, again.committedOffset(CHANGELOG));
            assertEquals("1", get(again, "a"));
            assertEquals("1", get(again, "b"));
            assertNull(get(again, "c"));
            again.close();
        }
        if (!exactlyOnce) {
            StateDatabase again = States.open(directory.resolve("live"), false);
            assertEquals("2", get(again, "a"), "a close keeps what at-least-once may keep");
            assertEquals(1L, again.committedOffset(CHANGELOG));
            again.close();
        }
    }

    @Test
    void underExactlyOnceNothingIsKnownOfEntriesThatMayBeUncommitted() throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), true, SateenConfig.UNCOMMITTED_MAX_BYTES, 1000);
        put(live, "a", "1");
        live.commit(Map.of(CHANGELOG, 7L));
        for (int nth = 0; nth < 20; nth++) {
            put(live, "k" + nth, "x".repeat(100));
        }
        Path crashed = crash("crashed");
        StateDatabase again = States.open(crashed, true);
        assertNull(again.committedOffset(CHANGELOG), "the store has to be restored");
        again.close();
        StateDatabase relaxed = States.open(crashed, false);
        assertEquals(7L, relaxed.committedOffset(CHANGELOG), "at-least-once may keep the entries");
        relaxed.close();
        live.commit(Map.of(CHANGELOG, 27L));
        StateDatabase committed = States.open(crash("committed"), true);
        assertEquals(27L, committed.committedOffset(CHANGELOG));
        assertEquals("x".repeat(100), get(committed, "k0"));
        committed.close();
        live.close();
    }

    @Test
    void anEmptyStoreIsNoDamage() throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), true);
        live.family("entries");
        assertEquals(OffsetCheckpoint.OFFSET_UNKNOWN, live.committedOffset(CHANGELOG));
        put(live, "a", "1");
        assertNull(live.committedOffset(CHANGELOG));
        StateDatabase again = States.open(crash("crashed"), true);
        assertEquals(OffsetCheckpoint.OFFSET_UNKNOWN, again.committedOffset(CHANGELOG));
        again.close();
        live.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void offsetsOfOtherFilesAreNotThoseOfAnEmptyStore(boolean exactlyOnce) throws Exception {
        Long nothing = exactlyOnce ? OffsetCheckpoint.OFFSET_UNKNOWN : null;
        StateDatabase live = States.open(directory.resolve("live"), exactlyOnce);
        live.family("entries");
        live.commit(Map.of(CHANGELOG, 1000L));
        assertEquals(nothing, live.committedOffset(CHANGELOG));
        // The process may die before Kafka has removed its file, and commits the offset again.
        StateDatabase again = States.open(crash("crashed"), exactlyOnce);
        again.commit(Map.of(CHANGELOG, 1000L));
        assertEquals(nothing, again.committedOffset(CHANGELOG));
        again.close();
        put(live, "a", "1");
        live.commit(Map.of(CHANGELOG, 1L));
        assertEquals(1L, live.committedOffset(CHANGELOG));
        put(live, "a", null);
        live.commit(Map.of(CHANGELOG, 2L));
        live.close();
        StateDatabase emptied = States.open(directory.resolve("live"), exactlyOnce);
        assertEquals(2L, emptied.committedOffset(CHANGELOG), "an emptied store has its own offset");
        emptied.commit(Map.of(CHANGELOG, 3L));
        assertEquals(3L, emptied.committedOffset(CHANGELOG));
        emptied.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void offsetsOfOtherFilesDoNotReplaceThoseOfAStore(boolean exactlyOnce) {
        StateDatabase live = States.open(directory.resolve("live"), exactlyOnce);
        put(live, "a", "1");
        live.commit(Map.of(CHANGELOG, 500L));
        live.close();
        for (long other : List.of(400L, 1000L)) {
            StateDatabase again = States.open(directory.resolve("live"), exactlyOnce);
            again.commit(Map.of(CHANGELOG, other));
            assertEquals(500L, again.committedOffset(CHANGELOG));
            again.commit(Map.of(CHANGELOG, 500L));
            assertEquals("1", get(again, "a"));
            again.close();
        }
        StateDatabase again = States.open(directory.resolve("live"), exactlyOnce);
        try (sateen.WriteBatch batch = new sateen.WriteBatch()) {
            StateDatabase.add(batch, again.family("entries"), b("b").get(), b("1").get());
            again.restore(batch, 1, 2);
        }
        again.commit(Map.of(CHANGELOG, 501L));
        assertEquals(501L, again.committedOffset(CHANGELOG), "it was given a record");
        again.close();
    }

    @Test
    void noOffsetsRemoveThoseThatWereStored() {
        StateDatabase live = States.open(directory.resolve("live"), false);
        TopicPartition other = new TopicPartition("changelog", 1);
        Map<TopicPartition, Long> offsets = new HashMap<>(Map.of(CHANGELOG, 1L, other, 2L));
        put(live, "a", "1");
        live.commit(offsets);
        assertEquals(2L, live.committedOffset(other));
        offsets.put(other, null);
        live.commit(offsets);
        assertNull(live.committedOffset(other));
        assertEquals(1L, live.committedOffset(CHANGELOG));
        live.commit(Map.of());
        assertNull(live.committedOffset(CHANGELOG));
        live.close();
    }

    @Test
    void aDroppedSegmentIsThereUntilTheCommit() throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), true);
        Family segment = live.family("segment-1");
        segment.put(b("a"), new byte[] {1});
        live.commit(Map.of(CHANGELOG, 1L));
        live.drop("segment-1");
        StateDatabase aborted = States.open(crash("aborted"), true);
        assertTrue(aborted.families().contains("segment-1"));
        aborted.close();
        live.commit(Map.of(CHANGELOG, 2L));
        StateDatabase committed = States.open(crash("committed"), true);
        assertFalse(committed.families().contains("segment-1"));
        committed.close();
        assertNull(segment.get(b("a")), "a query that still has the segment sees nothing");
        try (StoreIterator all = segment.iterator(null, null, true)) {
            assertFalse(all.hasNext());
        }
        live.close();
    }

    @Test
    void anIteratorShowsTheMomentOfItsBegin() {
        StateDatabase live = States.open(directory.resolve("live"), false);
        for (int nth = 0; nth < 10; nth++) {
            put(live, "k" + nth, "old");
            if (nth == 5) {
                live.commit(Map.of(CHANGELOG, 1L));
            }
        }
        try (StoreIterator all = live.family("entries").iterator(b("k2"), b("k8"), true)) {
            put(live, "k3", "new");
            put(live, "k4", null);
            put(live, "k44", "new");
            live.commit(Map.of(CHANGELOG, 2L));
            put(live, "k6", null);
            int seen = 0;
            while (all.hasNext()) {
                assertEquals("old", new String(all.next().value, StandardCharsets.UTF_8));
                seen++;
            }
            assertEquals(7, seen);
        }
        assertEquals(List.of("k0", "k1", "k2", "k3", "k44", "k5", "k7", "k8", "k9"), keys(live, true));
        StoreIterator open = live.family("entries").iterator(null, null, true);
        live.close();
        assertThrows(InvalidStateStoreException.class, open::hasNext);
        assertThrows(InvalidStateStoreException.class, () -> live.commit(Map.of()));
        assertThrows(InvalidStateStoreException.class, () -> live.committedOffset(CHANGELOG));
    }

    @Test
    void wrongOptionsAreNamed() {
        ProcessorStateException unknown = assertThrows(ProcessorStateException.class,
            () -> States.open(directory.resolve("live"), false, SateenConfig.OPTIONS, "write_bufer_size=1M"));
        assertTrue(unknown.getMessage().contains("write_bufer_size"), unknown.getMessage());
        assertTrue(unknown.getMessage().contains("store"), unknown.getMessage());
        assertThrows(ProcessorStateException.class,
            () -> States.open(directory.resolve("live"), false, SateenConfig.STORE_OPTIONS_PREFIX + "store", "nonsense"));
        assertThrows(ConfigException.class,
            () -> States.open(directory.resolve("live"), false, SateenConfig.UNCOMMITTED_MAX_BYTES, "0"));
        assertThrows(ConfigException.class,
            () -> States.open(directory.resolve("live"), false, SateenConfig.COMMIT_SYNC, "yes"));
        States.open(directory.resolve("live"), false, SateenConfig.COMMIT_SYNC, "true").close();
        for (String misspelled : List.of("sateen.option", "sateen.uncommited.max.bytes",
                "sateen.options-store")) {
            ConfigException refused = assertThrows(ConfigException.class,
                () -> States.open(directory.resolve("live"), false, misspelled, "1"));
            assertTrue(refused.getMessage().contains(misspelled), refused.getMessage());
        }
    }

    @Test
    void optionsComeAfterTheDefaults() {
        assertEquals(SateenConfig.OPTIONS_DEFAULT, new SateenConfig(Map.of(), "store").options);
        Map<String, String> given = Map.of(SateenConfig.OPTIONS, "write_buffer_size=1MiB",
            SateenConfig.STORE_OPTIONS_PREFIX + "store", "max_open_files=9",
            SateenConfig.STORE_OPTIONS_PREFIX + "other", "max_open_files=8");
        assertEquals(SateenConfig.OPTIONS_DEFAULT + ";write_buffer_size=1MiB;max_open_files=9",
            new SateenConfig(given, "store").options);
    }

    @Test
    void anIteratorWithALaterPutHasTheEarlierOne() throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), false,
            SateenConfig.UNCOMMITTED_MAX_BYTES, 1 << 30);
        for (int nth = 0; nth < 5000; nth++) {
            put(live, "m" + nth, "x");
        }
        Family entries = live.family("entries");
        entries.put(b("a"), number(0));
        entries.put(b("z"), number(0));
        var done = new java.util.concurrent.atomic.AtomicBoolean();
        Thread writer = new Thread(() -> {
            for (int round = 1; !done.get(); round++) {
                entries.put(b("a"), number(round));
                entries.put(b("z"), number(round));
            }
        });
        writer.start();
        try {
            for (int round = 0; round < 300; round++) {
                int first;
                int last = 0;
                try (StoreIterator all = entries.iterator(null, null, true)) {
                    first = java.nio.ByteBuffer.wrap(all.next().value).getInt();
                    while (all.hasNext()) {
                        var next = all.next();
                        last = next.value.length < 4 ? last
                            : java.nio.ByteBuffer.wrap(next.value).getInt();
                    }
                }
                assertTrue(first == last || first == last + 1, "puts " + first + " and " + last);
            }
        } finally {
            done.set(true);
            writer.join();
            live.close();
        }
    }

    @Test
    @Timeout(60)
    void aPutDoesNotWaitForACopyOfAnIterator() throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), false);
        Family entries = live.family("entries");
        var copying = new java.util.concurrent.CountDownLatch(1);
        var done = new java.util.concurrent.CountDownLatch(1);
        var copies = new java.util.concurrent.atomic.AtomicInteger();
        // Stops the first copy: each one compares its keys with the end of the range.
        Bytes slow = new Bytes(b("b").get()) {
            @Override
            public int compareTo(Bytes end) {
                if (end.equals(b("y")) && copies.getAndIncrement() == 0) {
                    copying.countDown();
                    try {
                        assertTrue(done.await(30, java.util.concurrent.TimeUnit.SECONDS));
                    } catch (InterruptedException stopped) {
                        throw new AssertionError(stopped);
                    }
                }
                return super.compareTo(end);
            }
        };
        entries.put(slow, number(1));
        var found = new java.util.concurrent.FutureTask<>(() -> {
            List<String> keys = new ArrayList<>();
            try (StoreIterator all = entries.iterator(b("a"), b("y"), true)) {
                all.forEachRemaining(entry -> keys.add(entry.key.toString()));
            }
            return keys;
        });
        Thread query = new Thread(found);
        query.start();
        copying.await();
        // Behind the key at which the copy waits, and before it.
        entries.put(b("x"), number(2));
        entries.put(b("a"), number(3));
        done.countDown();
        assertEquals(List.of("a", "b", "x"), found.get(), "a copy is repeated after later puts");
        query.join();
        live.close();
    }

    private static byte[] number(int number) {
        return java.nio.ByteBuffer.allocate(4).putInt(number).array();
    }

    @Test
    void theGreatestKeyOfARangeIsBehindAllSmallerKeys() {
        java.util.Random random = new java.util.Random(3);
        for (int round = 0; round < 20_000; round++) {
            byte[] key = bytes(random);
            byte[] smaller = bytes(random);
            byte[] suffix = {(byte) random.nextInt(3), (byte) random.nextInt(256), 127};
            byte[] low = {(byte) random.nextInt(suffix[0] + 1), 0, (byte) random.nextInt(100)};
            if (Bytes.wrap(smaller).compareTo(Bytes.wrap(key)) > 0) {
                continue;
            }
            byte[] stored = java.util.Arrays.copyOf(smaller, smaller.length + 3);
            System.arraycopy(low, 0, stored, smaller.length, 3);
            assertTrue(Bytes.wrap(stored).compareTo(Ranges.greatest(Bytes.wrap(key), suffix)) <= 0);
        }
        assertEquals(Bytes.wrap(new byte[] {1, 3}), Ranges.behindPrefix(new byte[] {1, 2, (byte) 255}));
        assertNull(Ranges.behindPrefix(new byte[] {(byte) 255}));
    }

    private static byte[] bytes(java.util.Random random) {
        byte[] bytes = new byte[random.nextInt(5)];
        for (int nth = 0; nth < bytes.length; nth++) {
            bytes[nth] = (byte) random.nextInt(3);
        }
        return bytes;
    }
}
