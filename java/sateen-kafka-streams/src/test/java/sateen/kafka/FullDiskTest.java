package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import sateen.WriteBatch;

/** A disk that becomes full, in a small file system of its own. */
class FullDiskTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    @TempDir Path directory;
    private Path disk;
    /** Room that can be given back. */
    private Path filler;

    @BeforeEach
    void mount() throws Exception {
        disk = Files.createDirectory(directory.resolve("disk"));
        assumeTrue(run("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk.toString()),
            "SKIPPED(no right to mount a file system)");
        filler = disk.resolve("filler");
        Files.write(filler, new byte[8 << 20]);
    }

    @AfterEach
    void unmount() throws Exception {
        run("umount", "-l", disk.toString());
    }

    @Test
    void aFullDiskIsSaidAndLosesNothing() throws Exception {
        StateDatabase database = open();
        Random random = new Random(5);
        byte[] value = new byte[10_000];
        ProcessorStateException full = null;
        long committed = -1;
        for (int nth = 0; nth < 5_000 && full == null; nth++) {
            random.nextBytes(value);
            try {
                database.beforeWrite();
                database.family("entries").put(key(nth), value.clone());
                database.afterWrite();
                if (nth % 20 == 0) {
                    database.commit(Map.of(CHANGELOG, (long) nth));
                    committed = nth;
                }
            } catch (ProcessorStateException expected) {
                full = expected;
            }
        }
        assertNotNull(full, "the disk did not become full");
        assertTrue(full.getMessage().contains("is full") && full.getMessage().contains("store"),
            full.getMessage());
        assertTrue(committed > 0);
        assertNotNull(database.family("entries").get(key(0)));
        database.close();

        Files.delete(filler);
        StateDatabase again = open();
        assertEquals(committed, again.committedOffset(CHANGELOG));
        Random same = new Random(5);
        for (int nth = 0; nth <= committed; nth++) {
            same.nextBytes(value);
            assertArrayEquals(value, again.family("entries").get(key(nth)), "entry " + nth);
        }
        again.commit(Map.of(CHANGELOG, committed + 1));
        again.close();
    }

    @Test
    void aRestorationThatFillsTheDiskGoesOnWhenThereIsRoom() throws Exception {
        StateDatabase database = open();
        ProcessorStateException full = null;
        long known = 0;
        for (int begin = 0; begin < 50_000 && full == null; begin += 500) {
            try {
                restore(database, begin, begin + 500);
                database.commit(Map.of(CHANGELOG, begin + 500L));
                known = begin + 500;
            } catch (ProcessorStateException expected) {
                full = expected;
            }
        }
        assertNotNull(full, "the disk did not become full");
        assertTrue(full.getMessage().contains("is full"), full.getMessage());
        try {
            database.close();
        } catch (ProcessorStateException stillFull) {
            assertTrue(stillFull.getMessage().contains("is full"), stillFull.getMessage());
        }

        Files.delete(filler);
        StateDatabase again = open();
        long offset = again.committedOffset(CHANGELOG);
        assertTrue(offset > 0 && offset <= known, offset + " of " + known);
        assertRestored(again, offset);
        restore(again, (int) offset, (int) offset + 1000);
        again.commit(Map.of(CHANGELOG, offset + 1000));
        again.close();
        StateDatabase last = open();
        assertEquals(offset + 1000, last.committedOffset(CHANGELOG));
        assertRestored(last, offset + 1000);
        last.close();
    }

    private static byte[] value(int nth) {
        byte[] value = new byte[1000];
        new Random(nth).nextBytes(value);
        return value;
    }

    private static void restore(StateDatabase database, int from, int to) {
        try (WriteBatch batch = new WriteBatch()) {
            for (int nth = from; nth < to; nth++) {
                StateDatabase.add(batch, database.family("entries"), key(nth).get(), value(nth));
            }
            database.restore(batch, to - from, (to - from) * 1000L);
        }
    }

    private static void assertRestored(StateDatabase database, long records) {
        for (int nth = 0; nth < records; nth++) {
            assertArrayEquals(value(nth), database.family("entries").get(key(nth)), "record " + nth);
        }
    }

    @Test
    @Timeout(value = 5, unit = TimeUnit.MINUTES)
    void anApplicationGoesOnWhenThereIsRoom() throws Exception {
        try (Brokers brokers = new Brokers(directory, 1)) {
            Counting counting = new Counting(brokers, 1, 2000);
            Properties properties = CountingApplication.properties(brokers.addresses(),
                disk.resolve("state").toString(), "exactly_once_v2", "0");
            properties.put(SateenConfig.OPTIONS, "write_buffer_size=256KiB");
            // What a user does who waits for room: a new thread takes the place of the one that failed.
            List<String> errors = Collections.synchronizedList(new ArrayList<>());
            AtomicReference<Throwable> other = new AtomicReference<>();
            try (KafkaStreams streams = new KafkaStreams(CountingApplication.topology(), properties)) {
                streams.setUncaughtExceptionHandler(failed -> {
                    for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
                        String message = cause.getMessage() + "";
                        // The store's error, or that of a file of Kafka's own.
                        if (message.contains("is full") || message.contains("No space left")) {
                            errors.add(message);
                            return StreamThreadExceptionResponse.REPLACE_THREAD;
                        }
                    }
                    other.set(failed);
                    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                });
                streams.start();
                counting.send(2000);
                await(counting, errors, other, false);
                // No room at all.
                Path rest = disk.resolve("rest");
                fill(rest);
                for (int rounds = 0; rounds < 100 && errors.isEmpty(); rounds++) {
                    counting.send(2000);
                    await(counting, errors, other, true);
                }
                assertFalse(errors.isEmpty(), "the disk did not become full");
                assertTrue(errors.stream().anyMatch(error -> error.contains(disk.toString())
                    && error.contains("Make room")), errors.toString());
                Files.delete(rest);
                Files.delete(filler);
                counting.send(2000);
                await(counting, errors, other, false);
                System.err.println("the disk was full " + errors.size() + " times");
            }
            for (String topic : Counting.OUTPUTS) {
                counting.assertEachCountOnce(topic);
            }
        }
    }

    /** Waits until all that was sent is committed, or until the disk is full if that may be. */
    private static void await(Counting counting, List<String> errors, AtomicReference<Throwable> other,
            boolean mayBeFull) throws Exception {
        while (counting.committed() < counting.sent() && !(mayBeFull && !errors.isEmpty())) {
            if (other.get() != null) {
                throw new AssertionError("another error than that of a full disk", other.get());
            }
            Thread.sleep(50);
        }
    }

    private static void fill(Path file) throws IOException {
        try (OutputStream out = Files.newOutputStream(file)) {
            while (true) {
                out.write(new byte[4096]);
            }
        } catch (IOException full) {
            assertTrue(Files.size(file) > 0, "the disk is full of something else: " + full);
        }
    }

    private StateDatabase open() {
        return States.open(disk, true, SateenConfig.OPTIONS, "write_buffer_size=1MiB");
    }

    private static Bytes key(int nth) {
        return Bytes.wrap(("key" + nth).getBytes(java.nio.charset.StandardCharsets.US_ASCII));
    }

    private static boolean run(String... command) throws Exception {
        try {
            return new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor() == 0;
        } catch (java.io.IOException none) {
            return false;
        }
    }
}
