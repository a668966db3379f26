package sateen;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Databases with one runtime share threads and memory, and are closed one by one. */
class SharedRuntimeTest {
    private static final int DATABASES = 12;
    private static final int THREADS = 2;

    @TempDir Path directory;

    private List<Database> open(SharedRuntime runtime) {
        List<Database> all = new ArrayList<>();
        for (int nth = 0; nth < DATABASES; nth++) {
            all.add(Database.open(directory.resolve("db" + nth),
                new Options().set("write_buffer_size", "1MiB").runtime(runtime)));
        }
        return all;
    }

    private static byte[] key(long nth) {
        return ByteBuffer.allocate(8).putLong(nth).array();
    }

    /** Returns the number of threads of this process that the engine started. */
    private static long threads() throws IOException {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task"))) {
            return tasks.filter(SharedRuntimeTest::isOurs).count();
        }
    }

    private static boolean isOurs(Path task) {
        try {
            return Files.readString(task.resolve("comm")).startsWith("sateen-");
        } catch (IOException ended) {
            // The thread ended while its name was read.
            return false;
        }
    }

    @Test
    void allDatabasesHaveTheThreadsAndTheMemoryOfOne() throws Exception {
        long before = threads();
        // Two limits, not one budget, so that what the cache has does not depend on the memtables.
        try (SharedRuntime runtime = SharedRuntime.builder().threads(THREADS).blockCacheBytes(32 << 20)
                .memtableBytes(8 << 20).build()) {
            List<Database> all = open(runtime);
            long shared = threads() - before;
            // The workers, a few threads for chores, and one for samples. Alone each database has three.
            assertTrue(shared > THREADS && shared < 2 * DATABASES, shared + " threads of " + DATABASES + " databases");
            byte[] value = new byte[1000];
            for (long nth = 0; nth < 500; nth++) {
                for (Database database : all) {
                    database.put(key(nth), value);
                }
            }
            assertTrue(runtime.memtableUsage() > 0);
            all.forEach(database -> database.defaultColumnFamily().flush());
            for (Database database : all) {
                long cached = runtime.blockCacheUsage();
                for (long nth = 0; nth < 500; nth++) {
                    assertEquals(1000, database.get(key(nth)).length);
                }
                assertTrue(runtime.blockCacheUsage() > cached, "the blocks of " + database + " are not in the cache");
            }
            all.forEach(Database::close);
            assertEquals(0, runtime.memtableUsage());
        }
        assertEquals(before, threads(), "threads end with the last database");
    }

    @Test
    void aCloseHoldsUpNoOtherDatabase() throws Exception {
        ExecutorService writers = Executors.newFixedThreadPool(DATABASES);
        try (SharedRuntime runtime = SharedRuntime.builder().threads(THREADS).memtableBytes(4 << 20).build()) {
            List<Database> all = open(runtime);
            AtomicBoolean done = new AtomicBoolean();
            List<AtomicLong> written = new ArrayList<>();
            List<Future<?>> running = new ArrayList<>();
            for (Database database : all) {
                AtomicLong count = new AtomicLong();
                written.add(count);
                running.add(writers.submit(() -> {
                    byte[] value = new byte[1000];
                    try {
                        while (!done.get()) {
                            database.put(key(count.get() % 500), value);
                            count.incrementAndGet();
                        }
                    } catch (ClosedException closed) {
                        assertTrue(database.isClosed());
                    }
                }));
            }
            for (int nth = 0; nth < DATABASES - 1; nth++) {
                await(written, nth);
                all.get(nth).close();
                // Each of the others goes on, whatever the closed one was doing.
                await(written, nth + 1);
            }
            done.set(true);
            for (Future<?> writer : running) {
                writer.get();
            }
            // The last one does not miss the closed ones: it flushes and compacts.
            Database last = all.get(DATABASES - 1);
            last.defaultColumnFamily().flush();
            last.defaultColumnFamily().compact(null, null);
            last.close();
            for (int nth = 0; nth < DATABASES; nth++) {
                try (Database again = Database.open(directory.resolve("db" + nth), new Options().runtime(runtime))) {
                    long keys = Math.min(written.get(nth).get(), 500);
                    assertTrue(keys > 0);
                    for (long key = 0; key < keys; key++) {
                        assertEquals(1000, again.get(key(key)).length);
                    }
                }
            }
        } finally {
            writers.shutdownNow();
        }
    }

    /** Waits until each database from {@code first} on has written more. */
    private static void await(List<AtomicLong> written, int first) throws InterruptedException {
        List<AtomicLong> waited = written.subList(first, written.size());
        List<Long> before = waited.stream().map(AtomicLong::get).toList();
        for (int nth = 0; nth < waited.size(); nth++) {
            while (waited.get(nth).get() < before.get(nth) + 200) {
                Thread.sleep(1);
            }
        }
    }

    @Test
    void aClosedRuntimeIsRefusedAndServesThoseThatAreOpen() {
        SharedRuntime runtime = SharedRuntime.builder().memoryBudget(8 << 20).build();
        Options options = new Options().runtime(runtime);
        try (Database database = Database.open(directory.resolve("open"), options)) {
            runtime.close();
            runtime.close();
            database.put(key(1), key(1));
            database.defaultColumnFamily().flush();
            assertEquals(8, database.get(key(1)).length);
            assertThrows(ClosedException.class, () -> Database.open(directory.resolve("late"), options));
            assertThrows(ClosedException.class, () -> database.createColumnFamily("late", options));
        }
        assertThrows(ClosedException.class, runtime::memtableUsage);
        assertThrows(ClosedException.class, runtime::blockCacheUsage);
        assertThrows(IllegalArgumentException.class, () -> SharedRuntime.builder().threads(0));
        assertThrows(IllegalArgumentException.class, () -> SharedRuntime.builder().memoryBudget(-1));
    }
}
