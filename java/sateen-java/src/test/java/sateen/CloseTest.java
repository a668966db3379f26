package sateen;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** A use after a close is an exception and never a crash, whichever thread it comes from. */
class CloseTest {
    @TempDir Path directory;

    private static final byte[] KEY = {1};

    @Test
    void everyCallAfterTheCloseIsAnException() {
        Database database = Database.open(directory, new Options());
        database.put(KEY, KEY);
        ColumnFamily family = database.createColumnFamily("f", new Options());
        Cursor cursor = family.cursor();
        Snapshot snapshot = database.snapshot();
        WriteBatch batch = new WriteBatch().put(family, KEY, KEY);
        database.close();
        assertTrue(database.isClosed());
        List<Executable> calls = List.of(() -> database.get(KEY), () -> database.put(KEY, KEY),
            () -> database.delete(KEY), database::cursor, database::snapshot, database::syncWal,
            database::latestSequenceNumber, database::metrics, () -> database.write(batch),
            () -> database.property("rocksdb.stats"), () -> database.checkpoint(directory.resolve("c")),
            () -> database.createColumnFamily("g", new Options()), () -> database.dropColumnFamily(family),
            () -> family.get(KEY), () -> family.put(KEY, KEY), () -> family.merge(KEY, KEY), family::cursor,
            family::flush, () -> family.compact(null, null), () -> batch.put(family, KEY, KEY),
            () -> family.deleteRange(KEY, new byte[] {2}, WriteOptions.DEFAULT),
            cursor::seekToFirst, cursor::next, cursor::key, cursor::value, cursor::isValid);
        for (Executable call : calls) {
            assertThrows(ClosedException.class, call);
        }
        assertDoesNotThrow(cursor::close);
        assertDoesNotThrow(snapshot::close);
        assertDoesNotThrow(batch::close);
        assertDoesNotThrow(batch::close);
        assertDoesNotThrow(database::close);
        assertThrows(ClosedException.class, batch::count);
        Cache cache = new Cache(1 << 20);
        cache.close();
        cache.close();
        assertThrows(ClosedException.class, cache::usage);
        assertThrows(ClosedException.class, () -> Database.open(directory, new Options().cache(cache)));
        assertThrows(IllegalArgumentException.class, () -> new Cache(0));
    }

    @Test
    void aCloseMeetsCallsOfOtherThreads() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(6);
        try {
            for (int round = 0; round < 20; round++) {
                Database database = Database.open(directory.resolve("r" + round), new Options());
                for (int nth = 0; nth < 100; nth++) {
                    database.put(new byte[] {(byte) nth}, new byte[100]);
                }
                ColumnFamily family = database.createColumnFamily("f", new Options());
                Cursor shared = database.cursor();
                CountDownLatch begun = new CountDownLatch(6);
                List<Future<Long>> all = new ArrayList<>();
                all.add(threads.submit(() -> untilClosed(begun, () -> database.get(KEY))));
                all.add(threads.submit(() -> untilClosed(begun, () -> family.put(KEY, KEY))));
                all.add(threads.submit(() -> untilClosed(begun, () -> {
                    if (!shared.seekToFirst() || !shared.next()) {
                        throw new AssertionError("entries are missing");
                    }
                })));
                all.add(threads.submit(() -> untilClosed(begun, () -> {
                    try (Cursor cursor = database.cursor()) {
                        for (boolean at = cursor.seekToFirst(); at; at = cursor.next()) {
                            cursor.value();
                        }
                    }
                })));
                all.add(threads.submit(() -> untilClosed(begun, () -> {
                    try (Snapshot snapshot = database.snapshot(); WriteBatch batch = new WriteBatch()) {
                        batch.put(family, KEY, KEY);
                        database.write(batch);
                        family.get(KEY, ReadOptions.DEFAULT.at(snapshot));
                    }
                })));
                all.add(threads.submit(() -> untilClosed(begun, family::flush)));
                begun.await();
                if (round % 2 == 0) {
                    database.close();
                } else {
                    Thread other = new Thread(database::close);
                    other.start();
                    database.close();
                    other.join();
                }
                for (Future<Long> one : all) {
                    assertTrue(one.get() > 0);
                }
            }
        } finally {
            threads.shutdownNow();
        }
    }

    /** Calls until the object is closed; returns the number of calls that passed before. */
    private static long untilClosed(CountDownLatch begun, Executable call) throws Exception {
        long calls = 0;
        try {
            for (;; calls++) {
                call.execute();
                if (calls == 0) {
                    begun.countDown();
                }
            }
        } catch (ClosedException end) {
            return calls;
        } catch (Exception other) {
            throw other;
        } catch (Throwable other) {
            throw new AssertionError(other);
        }
    }

    @Test
    void aCursorThatThreadsShareNeitherCrashesNorMixesEntries() throws Exception {
        try (Database database = Database.open(directory, new Options())) {
            for (int nth = 0; nth < 50; nth++) {
                byte[] entry = new byte[nth + 1];
                java.util.Arrays.fill(entry, (byte) nth);
                database.put(entry, entry);
            }
            try (Cursor cursor = database.cursor()) {
                List<Thread> threads = new ArrayList<>();
                List<Throwable> failures = java.util.Collections.synchronizedList(new ArrayList<>());
                for (int nth = 0; nth < 4; nth++) {
                    Thread thread = new Thread(() -> {
                        try {
                            for (int step = 0; step < 2000; step++) {
                                try {
                                    if (step % 60 == 0) {
                                        cursor.seekToFirst();
                                    } else {
                                        cursor.next();
                                    }
                                    byte[] key = cursor.key();
                                    assertEquals(key[0] + 1, key.length);
                                } catch (java.util.NoSuchElementException end) {
                                    cursor.seekToLast();
                                }
                            }
                        } catch (Throwable failure) {
                            failures.add(failure);
                        }
                    });
                    thread.start();
                    threads.add(thread);
                }
                for (Thread thread : threads) {
                    thread.join();
                }
                assertEquals(List.of(), failures);
            }
        }
    }
}
