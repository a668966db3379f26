package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/**
 * An application under exactly-once is killed again and again while it counts. Each output has each count
 * of each key once, in order: nothing is lost, and nothing is counted twice.
 */
class BrokerTest {
    @TempDir(cleanup = CleanupMode.ON_SUCCESS) Path directory;

    @Test
    @Timeout(value = 8, unit = TimeUnit.MINUTES)
    void countsAreExactThoughTheApplicationIsKilled() throws Exception {
        int kills = Integer.getInteger("sateen.test.kills", 3);
        int each = 4000;
        try (Brokers brokers = new Brokers(directory, 1)) {
            Counting counting = new Counting(brokers, 2, 50);
            Path log = directory.resolve("application.log");
            for (int round = 0; round < kills; round++) {
                int linesBefore = Counting.lines(log).size();
                Process application = start(counting, log);
                try {
                    counting.send(each);
                    // It is killed in the middle of its work, some commits after its start.
                    await(counting, application, log, counting.sent() - each / 2);
                } finally {
                    application.destroyForcibly().waitFor();
                }
                if (round > 1) {
                    List<String> lines = Counting.lines(log);
                    assertNotAllWasRestored(lines.subList(linesBefore, lines.size()));
                }
            }
            Process application = start(counting, log);
            try {
                counting.send(each);
                await(counting, application, log, counting.sent());
                for (String topic : Counting.OUTPUTS) {
                    counting.assertEachCountOnce(topic);
                }
                assertEquals(List.of(),
                    Counting.lines(log).stream().filter(line -> line.contains("Corrupted")).toList());
            } finally {
                application.destroy();
                if (!application.waitFor(30, TimeUnit.SECONDS)) {
                    application.destroyForcibly().waitFor();
                }
            }
        }
    }

    private Process start(Counting counting, Path log) throws Exception {
        return counting.start(directory.resolve("state"), log, 0);
    }

    private static void await(Counting counting, Process application, Path log, int committed) throws Exception {
        while (counting.committed() < committed) {
            if (!application.isAlive()) {
                throw new AssertionError("the application ended: " + String.join("\n", Counting.lines(log)));
            }
            Thread.sleep(100);
        }
    }

    /**
     * Checks that a restart after a kill restored what was missing, and not a whole store again: each store
     * had an offset at least from the restoration before.
     */
    private static void assertNotAllWasRestored(List<String> lines) {
        long restored = 0;
        long changes = 0;
        for (String line : lines) {
            String[] words = line.split(" ");
            if (words[0].equals("RESTORE")) {
                assertTrue(Long.parseLong(words[2]) > 0, "a store was restored from the beginning: " + line);
                changes += Long.parseLong(words[3]);
            } else if (words[0].equals("RESTORED")) {
                restored += Long.parseLong(words[2]);
            }
        }
        assertTrue(changes > 0, "the application did not say what it restored");
        System.err.println("restored " + restored + " of " + changes + " records of the changelogs");
    }
}
