package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A disk that becomes full, in a small file system of its own. */
class FullDiskTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    @TempDir Path directory;

    @Test
    void aFullDiskIsSaidAndLosesNothing() throws Exception {
        assumeTrue(run("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", directory.toString()),
            "SKIPPED(no right to mount a file system)");
        try {
            // Room that can be given back.
            Files.write(directory.resolve("filler"), new byte[8 << 20]);
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

            Files.delete(directory.resolve("filler"));
            StateDatabase again = open();
            assertEquals(committed, again.committedOffset(CHANGELOG));
            Random same = new Random(5);
            for (int nth = 0; nth <= committed; nth++) {
                same.nextBytes(value);
                assertArrayEquals(value, again.family("entries").get(key(nth)), "entry " + nth);
            }
            again.commit(Map.of(CHANGELOG, committed + 1));
            again.close();
        } finally {
            run("umount", "-l", directory.toString());
        }
    }

    private StateDatabase open() {
        return States.open(directory, true, SateenConfig.OPTIONS, "write_buffer_size=1MiB");
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
