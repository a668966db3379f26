package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import sateen.WriteBatch;

/** A restoration in bulk writes around the WAL, and no offset is stored before its entries are. */
class RestorationTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);
    private static final int VALUE = 1000;
    private static final int BATCH = 500;

    @TempDir Path directory;

    /** The key of a record of the changelog: each one once, in no order. */
    private static byte[] key(long offset) {
        return ByteBuffer.allocate(8).putLong(offset * 0x9E3779B97F4A7C15L).array();
    }

    private static byte[] value(long offset) {
        byte[] value = new byte[VALUE];
        new Random(offset).nextBytes(value);
        return value;
    }

    /** Restores the records from one offset to another in batches, with a commit after each. */
    private static void restore(StateDatabase database, long from, long to, int batchRecords) {
        for (long begin = from; begin < to; begin += batchRecords) {
            long end = Math.min(begin + batchRecords, to);
            try (WriteBatch batch = new WriteBatch()) {
                for (long offset = begin; offset < end; offset++) {
                    StateDatabase.add(batch, database.family("entries"), key(offset), value(offset));
                }
                database.restore(batch, (int) (end - begin), (end - begin) * (8 + VALUE));
            }
            database.commit(Map.of(CHANGELOG, end));
        }
    }

    private static void assertHas(StateDatabase database, long records) {
        for (long offset = 0; offset < records; offset++) {
            assertArrayEquals(value(offset), database.family("entries").get(Bytes.wrap(key(offset))),
                "record " + offset + " of " + records);
        }
    }

    /** Checks what a crash would leave, and returns its offset; 0 is none. */
    private long afterCrash(StateDatabase live, String name, boolean exactlyOnce) throws IOException {
        Path copy = States.crash(directory.resolve("live"), directory.resolve(name));
        StateDatabase again = States.open(copy, exactlyOnce);
        Long offset = again.committedOffset(CHANGELOG);
        long records = offset == null || offset < 0 ? 0 : offset;
        assertHas(again, records);
        again.close();
        return records;
    }

    private static long written(StateDatabase database, String counter) {
        return database.counters().get("rocksdb." + counter);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void noOffsetIsAheadOfEntriesThatACrashLoses(boolean exactlyOnce) throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), exactlyOnce);
        live.family("entries");
        restore(live, 0, 500, BATCH);
        assertEquals(500, afterCrash(live, "short", exactlyOnce), "a short restoration is logged");
        restore(live, 500, 5000, BATCH);
        assertEquals(5000, live.committedOffset(CHANGELOG));
        long logged = afterCrash(live, "unlogged", exactlyOnce);
        assertTrue(logged >= 500 && logged < 5000, logged + " records are in the WAL");
        // Nothing more comes: the next commit has the rest stored.
        live.commit(Map.of(CHANGELOG, 5000L));
        live.awaitRestored();
        assertEquals(5000, afterCrash(live, "stored", exactlyOnce));
        // The task writes.
        live.beforeWrite();
        live.family("entries").put(Bytes.wrap(key(5000)), value(5000));
        live.commit(Map.of(CHANGELOG, 5001L));
        assertEquals(5001, afterCrash(live, "running", exactlyOnce));
        live.close();
    }

    @Test
    void aTaskThatWritesAtOnceStoresItsOffsetsLater() throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), true);
        restore(live, 0, 3000, BATCH);
        live.beforeWrite();
        live.family("entries").put(Bytes.wrap(key(3000)), value(3000));
        live.commit(Map.of(CHANGELOG, 3001L));
        assertEquals(3001, live.committedOffset(CHANGELOG));
        live.awaitRestored();
        assertEquals(3001, afterCrash(live, "crashed", true));
        live.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCloseStoresWhatWasRestored(boolean exactlyOnce) {
        StateDatabase live = States.open(directory.resolve("live"), exactlyOnce);
        restore(live, 0, 4000, BATCH);
        live.close();
        StateDatabase again = States.open(directory.resolve("live"), exactlyOnce);
        assertEquals(4000, again.committedOffset(CHANGELOG));
        assertHas(again, 4000);
        again.close();
    }

    @Test
    void noOffsetsMeansNoneThatWaitsEither() {
        StateDatabase live = States.open(directory.resolve("live"), false);
        restore(live, 0, 4000, BATCH);
        live.commit(Map.of());
        assertNull(live.committedOffset(CHANGELOG));
        live.awaitRestored();
        assertNull(live.committedOffset(CHANGELOG));
        live.close();
        StateDatabase again = States.open(directory.resolve("live"), false);
        assertNull(again.committedOffset(CHANGELOG));
        again.close();
    }

    @Test
    void aFailedCommitLeavesTheOffsetOfTheOneBefore() {
        StateDatabase live = States.open(directory.resolve("live"), true, SateenConfig.OPTIONS,
            "sateen.value_bytes_max=4KiB");
        restore(live, 0, 4000, BATCH);
        live.beforeWrite();
        live.family("entries").put(Bytes.wrap(key(4000)), new byte[8192]);
        assertThrows(ProcessorStateException.class, () -> live.commit(Map.of(CHANGELOG, 4001L)));
        live.close();
        assertReopensAt(4000);
    }

    @Test
    void anEntryThatTheBatchRefusesFailsTheCommit() {
        StateDatabase live = States.open(directory.resolve("live"), true);
        restore(live, 0, 4000, BATCH);
        live.beforeWrite();
        live.family("entries").put(Bytes.wrap(new byte[70_000]), value(4000));
        assertThrows(ProcessorStateException.class, () -> live.commit(Map.of(CHANGELOG, 4001L)));
        live.close();
        assertReopensAt(4000);
    }

    @Test
    void aRecordThatTheBatchRefusesFailsTheRestoration() {
        SateenKeyValueStore store = new SateenKeyValueStore("store");
        store.init(new InternalMockProcessorContext<Object, Object>(directory.resolve("live").toFile(),
            new StreamsConfig(StreamsTestUtils.getStreamsConfig())), store);
        store.restoreBatch(List.of(new ConsumerRecord<>("changelog", 0, 0, key(0), value(0))));
        store.commit(Map.of(CHANGELOG, 1L));
        ProcessorStateException refused = assertThrows(ProcessorStateException.class, () -> store.restoreBatch(
            List.of(new ConsumerRecord<>("changelog", 0, 1, new byte[70_000], value(1)))));
        assertTrue(refused.getMessage().contains("70000"), refused.getMessage());
        assertEquals(1, store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void offsetsThatWaitAreStoredWithThePositionAndTimeOfTheirCommit() {
        StateDatabase live = States.open(directory.resolve("live"), true);
        restore(live, 0, 3500, BATCH);
        live.streamTime(5);
        live.position().withComponent("input", 0, 5);
        restore(live, 3500, 4000, BATCH);
        // An open transaction.
        live.beforeWrite();
        live.streamTime(1L << 40);
        live.position().withComponent("input", 0, 6);
        live.close();
        StateDatabase again = States.open(directory.resolve("live"), true);
        assertEquals(4000, again.committedOffset(CHANGELOG));
        assertEquals(5, again.streamTime());
        assertEquals(Map.of(0, 5L), again.position().getPartitionPositions("input"));
        again.close();
    }

    /** Checks that the directory of {@code live} has this offset, and the entries below it. */
    private void assertReopensAt(long offset) {
        StateDatabase again = States.open(directory.resolve("live"), true);
        assertEquals(offset, again.committedOffset(CHANGELOG));
        assertHas(again, offset);
        again.close();
    }

    @Test
    void underExactlyOnceAnInterruptedRestorationGoesOn() throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), true);
        // No commit yet: without an offset all of it is logged, and an offset that comes later is stored.
        try (WriteBatch batch = new WriteBatch()) {
            for (long offset = 0; offset < 3000; offset++) {
                StateDatabase.add(batch, live.family("entries"), key(offset), value(offset));
            }
            live.restore(batch, 3000, 3000 * (8 + VALUE));
        }
        live.commit(Map.of(CHANGELOG, 3000L));
        assertEquals(3000, afterCrash(live, "first", true));
        restore(live, 3000, 6000, BATCH);
        long known = afterCrash(live, "second", true);
        assertTrue(known >= 3000 && known < 6000, known + " records are in the WAL");
        live.close();
    }

    @Test
    void aStandbyThatFollowsItsTaskIsLogged() throws Exception {
        StateDatabase live = States.open(directory.resolve("live"), true);
        restore(live, 0, 3000, BATCH);
        restore(live, 3000, 3050, 50);
        live.awaitRestored();
        restore(live, 3050, 3100, 50);
        assertEquals(3100, afterCrash(live, "standby", true));
        live.close();
    }

    @Test
    void aRestorationInBulkWritesLess() throws Exception {
        String options = "write_buffer_size=2MiB";
        int records = 24_000;
        StateDatabase logged = States.open(directory.resolve("logged"), false, SateenConfig.OPTIONS, options);
        // Batches that are too small for bulk: what each restoration was without it.
        restore(logged, 0, records, 99);
        StateDatabase bulk = States.open(directory.resolve("bulk"), false, SateenConfig.OPTIONS, options);
        restore(bulk, 0, records, BATCH);
        bulk.commit(Map.of(CHANGELOG, (long) records));
        bulk.awaitRestored();
        long[] before = bytes("logged", logged);
        long[] after = bytes("in bulk", bulk);
        assertTrue(before[0] >= (long) records * VALUE);
        // The beginning, the offsets and what frames them.
        assertTrue(after[0] < Restoration.LOGGED_BYTES + (1 << 20), after[0] + " bytes in the WAL");
        assertHas(bulk, records);
        logged.close();
        bulk.close();
    }

    private static long[] bytes(String what, StateDatabase database) {
        long[] bytes = {written(database, "wal.bytes"), written(database, "flush.write.bytes"),
            written(database, "compact.write.bytes"), database.property("rocksdb.estimate-pending-compaction-bytes")};
        System.err.printf("restored %s: WAL %d, flushes %d, compactions %d bytes; to be compacted %d%n", what,
            bytes[0], bytes[1], bytes[2], bytes[3]);
        return bytes;
    }
}
