package sateen.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/**
 * Two instances of an application under exactly-once, with standbys, on three brokers. In each cycle
 * something ends while they count: an instance, both, a broker, or all instances in turn as in an update.
 * At the end each output has each count of each key once, in order.
 */
class ClusterTest {
    private static final int EACH = 4000;
    private static final long CYCLE_SECONDS_MAX = 180;

    @TempDir(cleanup = CleanupMode.ON_SUCCESS) Path directory;

    private final List<Process> instances = new ArrayList<>();
    private Counting counting;

    /** What ends in a cycle. */
    private enum Event { KILL_ONE, KILL_BOTH, KILL_BROKER, ROLLING_RESTART, LEAVE_AND_JOIN }

    @Test
    void countsAreExactWhateverEnds() throws Exception {
        int cycles = Integer.getInteger("sateen.test.cycles", 0);
        assumeTrue(cycles > 0, "SKIPPED(-Dtest.cycles=N says how many)");
        int partitions = Integer.getInteger("sateen.test.partitions", 4);
        Random random = new Random(Integer.getInteger("sateen.test.seed", 1));
        try (Brokers brokers = new Brokers(directory, 3)) {
            counting = new Counting(brokers, partitions, Math.max(50, 4 * partitions));
            for (int one = 0; one < 2; one++) {
                instances.add(start(one));
            }
            for (int cycle = 0; cycle < cycles; cycle++) {
                counting.send(EACH);
                await(counting.sent() - EACH / 2);
                Event event = Event.values()[cycle < Event.values().length ? cycle
                    : random.nextInt(Event.values().length)];
                long began = System.nanoTime();
                happens(event, brokers, random);
                System.err.printf("cycle %d: %s, %.1f s, %d of %d%n", cycle, event,
                    (System.nanoTime() - began) / 1e9, counting.committed(), counting.sent());
            }
            await(counting.sent());
            for (String topic : Counting.OUTPUTS) {
                counting.assertEachCountOnce(topic);
            }
            for (int one = 0; one < instances.size(); one++) {
                assertEquals(List.of(), corruptions(Counting.lines(log(one))));
            }
        } finally {
            for (Process instance : instances) {
                instance.destroyForcibly().waitFor();
            }
        }
    }

    /** Returns the lines that tell of a state to be built anew, unless a broker did not answer in time. */
    private static List<String> corruptions(List<String> log) {
        List<String> found = new ArrayList<>();
        for (int at = 0; at < log.size(); at++) {
            List<String> before = log.subList(Math.max(0, at - 2), at);
            if (log.get(at).contains("TaskCorruptedException")
                    && before.stream().noneMatch(line -> line.contains("TimeoutException"))) {
                found.add(log.get(at));
            }
        }
        return found;
    }

    private void happens(Event event, Brokers brokers, Random random) throws Exception {
        int one = random.nextInt(instances.size());
        switch (event) {
            case KILL_ONE -> {
                kill(one);
                // The other goes on with the standby's state.
                await(counting.sent());
                instances.set(one, start(one));
            }
            case KILL_BOTH -> {
                kill(0);
                kill(1);
                instances.set(0, start(0));
                instances.set(1, start(1));
            }
            case KILL_BROKER -> {
                int node = random.nextInt(brokers.nodes());
                brokers.kill(node);
                await(counting.sent());
                brokers.start(node);
            }
            case ROLLING_RESTART -> {
                for (int each = 0; each < instances.size(); each++) {
                    end(each);
                    instances.set(each, start(each));
                    counting.send(EACH / 4);
                    await(counting.sent());
                }
            }
            case LEAVE_AND_JOIN -> {
                end(one);
                await(counting.sent());
                instances.set(one, start(one));
            }
        }
    }

    private Path log(int one) {
        return directory.resolve("application" + one + ".log");
    }

    private Process start(int one) throws Exception {
        return counting.start(directory.resolve("state" + one), log(one), 1);
    }

    private void kill(int one) throws InterruptedException {
        instances.get(one).destroyForcibly().waitFor();
    }

    /** Ends an instance as a user does: it closes its stores. */
    private void end(int one) throws Exception {
        instances.get(one).destroy();
        if (!instances.get(one).waitFor(60, TimeUnit.SECONDS)) {
            throw new AssertionError("instance " + one + " does not end: "
                + String.join("\n", Counting.lines(log(one))));
        }
    }

    /** Waits until so many inputs are committed. */
    private void await(int committed) throws Exception {
        long until = System.nanoTime() + CYCLE_SECONDS_MAX * 1_000_000_000L;
        while (counting.committed() < committed) {
            if (System.nanoTime() > until) {
                throw new AssertionError(counting.committed() + " of " + committed + " are committed; the log of "
                    + "an instance ends with " + last(log(0)) + ", of the other with " + last(log(1)));
            }
            Thread.sleep(200);
        }
    }

    private static List<String> last(Path log) throws Exception {
        List<String> lines = Counting.lines(log);
        return lines.subList(Math.max(0, lines.size() - 20), lines.size());
    }
}
